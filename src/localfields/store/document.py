"""JSON of bounded size and depth, sealed with a checksum where it is stored, and exact for plain Python values."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ..errors import InputError
from .disk import Damaged, sha256

LARGEST = 1 << 26  # bytes
DEEPEST = 64


def dump(value: Any) -> str:
    """One line, keys sorted, no nan."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse(found: bytes | str, what: str) -> dict[str, Any]:
    """Read an object.

    Raises:
        Damaged: When it is not one, too large or too deep.
    """
    if len(found) > LARGEST:
        raise Damaged(f"{what} of more than {LARGEST} bytes")
    try:
        text = found.decode() if isinstance(found, bytes) else found
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise Damaged(f"{what} that is no JSON") from None
    if not isinstance(value, dict):
        raise Damaged(f"{what} that is no JSON object")
    if text.count("{") + text.count("[") > DEEPEST and _depth(value) > DEEPEST:
        raise Damaged(f"{what} nested more than {DEEPEST} deep")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        inner = [one for one in level if isinstance(one, (dict, list))]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
    return depth


def seal(body: dict[str, Any]) -> str:
    """The object as one line, with the checksum of that line in front."""
    text = dump(body)
    return f'{{"checksum":"{sha256(text)}",{text[1:]}'


def unseal(found: bytes, body: dict[str, Any], what: str) -> None:
    """Hold what `seal` wrote against its checksum, every byte of it.

    Args:
        found: The line.
        body: The object that it is, from which the checksum is taken out.
        what: Its name, for the message.

    Raises:
        Damaged: When a byte has changed.
    """
    checksum = body.pop("checksum", None)
    start = f'{{"checksum":"{checksum}",'.encode(errors="replace")
    if not found.startswith(start) or sha256(b"{" + found[len(start) :]) != checksum:
        raise Damaged(f"{what} with another checksum than it says")


# -- plain values, exactly --------------------------------------------------------------------------------------


def pack(value: Any, name: str) -> Any:
    """Plain Python values as JSON that `unpack` turns back into the same: tuples, nan and keys of any type included.

    Example:
        >>> unpack(pack({"seed": (1, 2), 3: float("inf")}, "it"))
        {'seed': (1, 2), 3: inf}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, list):
        return [pack(one, name) for one in value]
    if isinstance(value, tuple):
        return {"$tuple": [pack(one, name) for one in value]}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(one, name) for key, one in value.items()}
        return {"$dict": [[pack(key, name), pack(one, name)] for key, one in value.items()]}
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
        Damaged: When it did not make it.
    """
    if isinstance(value, list):
        return [unpack(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith("$"):
        ((tag, inner),) = value.items()
        try:
            if tag == "$float" and inner in ("nan", "inf", "-inf"):
                return float(inner)
            if tag == "$tuple" and isinstance(inner, list):
                return tuple(unpack(one) for one in inner)
            if tag == "$dict" and isinstance(inner, list):
                return {unpack(key): unpack(one) for key, one in inner}
        except (TypeError, ValueError):
            pass
        raise Damaged("values that were not stored by it")
    return {key: unpack(one) for key, one in value.items()}


def without_nan(value: Any) -> Any:
    """The same with null for every number that is not finite, and lists for tuples."""
    if isinstance(value, dict):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return without_nan(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
