"""Experiments and sweeps in files a person writes: TOML or JSON, with short names for types."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from .._spec import Many, Nested, Spec, fields, name_of, registered
from ..errors import InputError, shorten, show
from .experiment import Experiment, experiment_from
from .sweep import Sweep, sweep_from

SUFFIXES = (".toml", ".json")
MAX_FILE_BYTES = 10**8
_PARTS = [field.name for field in fields(Experiment)]


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a file.

    A `type` may be short, `nlgp` for `stimulus/nlgp`, and may be left out for task, network and
    method.

    Raises:
        InputError: If it cannot be read, or is none.
    """
    return experiment_from(completed(_read(Path(path)), "experiment", "experiment"))


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep from a file: an experiment with `axes` and `seeds` beside its parts.

    Raises:
        InputError: If it cannot be read, or is none.
    """
    given = _read(Path(path))
    parts = {name: given.pop(name) for name in _PARTS if name in given}
    return sweep_from(completed({"base": parts, **given} if parts else given, "sweep", "sweep"))


def _read(path: Path) -> dict[str, Any]:
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"Cannot read {path}: an experiment's file ends in {' or '.join(SUFFIXES)}. "
            "See `localfields run --help`."
        )
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"Cannot read {path}: it is not a file.")  # reading a pipe would wait
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(
                f"{path} has {path.stat().st_size} bytes; at most {MAX_FILE_BYTES} are read."
            )
        text = path.read_text(encoding="utf-8")
        plain = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or shorten(error)}.") from None
    except (ValueError, RecursionError) as error:
        kind = path.suffix.removeprefix(".").upper()
        raise InputError(f"{path} is not valid {kind}: {shorten(error)}.") from None
    if plain == {}:
        raise InputError(f"{path} is empty. See `localfields run --help` for what it may hold.")
    if not isinstance(plain, dict):
        raise InputError(
            f"{path} must hold an object with `task`, `network` and `method`, got {show(plain)}. "
            "See `localfields run --help`."
        )
    return plain


def completed(plain: Any, family: str, default: str = "") -> Any:
    """Plain values with every `type` in full; mistakes in them are left to their reader.

    Example:
        >>> completed({"type": "nlgp", "gain": 3}, "stimulus")
        {'type': 'stimulus/nlgp', 'gain': 3}
    """
    if not isinstance(plain, dict):
        return plain
    kind = plain.get("type", default)
    if not isinstance(kind, str) or not kind:
        return plain
    kind = kind if "/" in kind else f"{family}/{kind}"
    cls = registered(family).get(kind.partition("/")[2])
    result = {**plain, "type": kind}
    for field in fields(cls) if cls else ():
        if field.name not in result:
            continue
        inner, usual = result[field.name], field.default
        if isinstance(field.kind, Nested):
            usual = name_of(type(usual)) if isinstance(usual, Spec) else ""
            result[field.name] = completed(inner, field.kind.family, usual)
        elif isinstance(field.kind, Many) and isinstance(inner, list):
            result[field.name] = [completed(item, field.kind.family) for item in inner]
    return result
