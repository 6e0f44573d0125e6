"""JSON of bounded size and depth, sealed with a checksum, and exact for plain Python values."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from ..errors import InputError
from .disk import Damaged, sha256

MAX_JSON_BYTES = 1 << 26
MAX_DEPTH = 64
MAX_DIGITS = 300  # of a whole number: a float has no more, and formatting one of 4000 fails


class OutOfRange(ValueError):
    """A number in JSON that no float holds."""


def dump(value: Any) -> str:
    """One line, keys sorted, no nan."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse(content: bytes | str, name: str) -> dict[str, Any]:
    """Read a JSON object; `name` is what messages call it.

    Raises:
        Damaged: If it is none, too large or too deep, or has a number that is out of range.
    """
    if len(content) > MAX_JSON_BYTES:
        raise Damaged(f"{name} of more than {MAX_JSON_BYTES} bytes")
    try:
        text = content.decode() if isinstance(content, bytes) else content
        # Checking every number takes as long again, and hardly any text has one that may be wrong.
        value = (_CHECKED if _LARGE.search(text) else _DECODER).decode(text)
    except OutOfRange:
        raise Damaged(f"{name} with a number that is out of range") from None
    except (ValueError, RecursionError):
        raise Damaged(f"{name} that is not JSON") from None
    if not isinstance(value, dict):
        raise Damaged(f"{name} that is not a JSON object")
    # Brackets are counted first: walking through every value takes long.
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise Damaged(f"{name} nested more than {MAX_DEPTH} deep")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise OutOfRange
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):  # 1e999
        raise OutOfRange
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_CHECKED = json.JSONDecoder(parse_constant=_no_constant, parse_int=_whole, parse_float=_finite)
_LARGE = re.compile(r"[0-9](?:[eE]\+?[0-9]{3}|[0-9]{299})")  # MAX_DIGITS, or three in an exponent


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        nested = [item for item in level if isinstance(item, (dict, list))]
        level = [i for item in nested for i in (item.values() if isinstance(item, dict) else item)]
    return depth


def seal(body: dict[str, Any]) -> str:
    """The object as one line, with the checksum of that line in front."""
    text = dump(body)
    return f'{{"checksum":"{sha256(text)}",{text[1:]}'


def unseal(line: bytes, body: dict[str, Any], name: str) -> None:
    """Compare every byte of what `seal` wrote with its checksum, and take that out of the body.

    Raises:
        Damaged: If a byte has changed.
    """
    checksum = body.pop("checksum", None)
    start = f'{{"checksum":"{checksum}",'.encode(errors="replace")
    if not line.startswith(start) or sha256(b"{" + line[len(start) :]) != checksum:
        raise Damaged(f"{name} with another checksum than it says")


# -- plain values, exactly -------------------------------------------------------------------------


def pack(value: Any, name: str) -> Any:
    """Plain values as JSON from which `unpack` restores tuples, nan and keys of any type, too.

    Example:
        >>> unpack(pack({"seed": (1, 2), 3: float("inf")}, "it"))
        {'seed': (1, 2), 3: inf}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, list):
        return [pack(item, name) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [pack(item, name) for item in value]}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(item, name) for key, item in value.items()}
        return {"$dict": [[pack(key, name), pack(item, name)] for key, item in value.items()]}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufU":
        return pack(value.tolist(), name)
    kind = type(value).__name__
    raise InputError(
        f"`{name}` contains a {kind}, which cannot be stored. "
        "Use numbers, strings, lists and dicts."
    )


def unpack(value: Any) -> Any:
    """Turn what `pack` made back.

    Raises:
        Damaged: If it did not make it.
    """
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith("$"):
        ((tag, inner),) = value.items()
        try:
            if tag == "$float" and inner in ("nan", "inf", "-inf"):
                return float(inner)
            if tag == "$tuple" and isinstance(inner, list):
                return tuple(unpack(item) for item in inner)
            if tag == "$dict" and isinstance(inner, list):
                return {unpack(key): unpack(item) for key, item in inner}
        except (TypeError, ValueError):
            pass
        raise Damaged("values that were not stored by it")
    return {key: unpack(item) for key, item in value.items()}


def without_nan(value: Any) -> Any:
    """Plain values with null for every number that is not finite, and lists for tuples."""
    if isinstance(value, dict):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return without_nan(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
