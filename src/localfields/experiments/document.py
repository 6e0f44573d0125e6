"""Experiments and sweeps in files a person writes: TOML or JSON, with short names for types."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from .._spec import Many, Nested, Spec, fields, name_of, registered
from ..errors import Said, refuse, shorten
from .experiment import Experiment, experiment_from
from .sweep import Sweep, sweep_from

SUFFIXES = (".toml", ".json")
LARGEST = 10**8  # bytes
_PARTS = [field.name for field in fields(Experiment)]


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a file.

    A `type` may be short, `nlgp` for `stimulus/nlgp`, and may be left out for task, network and method.

    Raises:
        InputError: When it cannot be read, or is none.
    """
    return experiment_from(completed(_read(Path(path)), "experiment", "experiment"))


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep from a file: an experiment with `axes` and `seeds` beside task, network and method.

    Raises:
        InputError: When it cannot be read, or is none.
    """
    given = _read(Path(path))
    parts = {name: given.pop(name) for name in _PARTS if name in given}
    return sweep_from(completed({"base": parts, **given} if parts else given, "sweep", "sweep"))


def _read(path: Path) -> dict[str, Any]:
    advice = "See `localfields run --help`."
    if path.suffix not in SUFFIXES:
        refuse(
            "The name of an experiment's file",
            str(path),
            f"one ending in {' or '.join(SUFFIXES)}",
            advice,
        )
    try:
        if path.stat().st_size > LARGEST:
            refuse(
                "An experiment's file",
                Said(f"{path.stat().st_size} bytes"),
                f"at most {LARGEST}",
                advice,
            )
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        advice = f"The system says: {error.strerror or shorten(error)}."
        refuse("An experiment's file", str(path), "one that can be read", advice)
    except (ValueError, RecursionError) as error:
        kind = path.suffix.removeprefix(".").upper()
        refuse(
            f"The file {path}",
            Said(f"something else ({shorten(error)})"),
            kind,
            "Check that place.",
        )
    if not isinstance(found, dict):
        refuse(f"The file {path}", found, "an object with `task`, `network` and `method`", advice)
    return found


def completed(plain: Any, family: str, default: str = "") -> Any:
    """Plain values with every `type` in full; what is wrong with them is left for their reader to say.

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
    found = {"type": kind, **{name: value for name, value in plain.items() if name != "type"}}
    for field in fields(cls) if cls else ():
        if field.name not in found:
            continue
        inner, usual = found[field.name], field.default
        if isinstance(field.kind, Nested):
            usual = name_of(type(usual)) if isinstance(usual, Spec) else ""
            found[field.name] = completed(inner, field.kind.family, usual)
        elif isinstance(field.kind, Many) and isinstance(inner, list):
            found[field.name] = [completed(one, field.kind.family) for one in inner]
    return found
