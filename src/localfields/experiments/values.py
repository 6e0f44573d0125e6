"""Values of a sweep in a few characters: `linspace:1:3:5`, `logspace:0.1:10:10`, `range:1:5`, `values:1:3:10`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, show

FORMS = {
    "linspace": "linspace:FROM:TO:COUNT",
    "logspace": "logspace:FROM:TO:COUNT",
    "range": "range:FROM:TO[:STEP]",
    "values": "values:A:B:C",
}
MOST = 10**6


def is_spread(text: str) -> bool:
    """Whether a text stands for several values of a sweep."""
    return text.partition(":")[0] in FORMS and ":" in text


def spread(text: str) -> list[Any]:
    """The values that a text stands for. Both ends are included, and for `logspace` they are the values themselves.

    A value with commas is one a class.

    Raises:
        InputError: When it has another form.

    Example:
        >>> spread("logspace:0.1:10:3"), spread("range:1:5:2"), spread("values:1,3:0.3,0.7")
        ([0.1, 1.0, 10.0], [1, 3, 5], [[1.0, 3.0], [0.3, 0.7]])
    """
    name, _, rest = text.partition(":")
    if name not in FORMS or not rest:
        raise InputError(
            f"Cannot read the values {show(text)}. "
            f"Use {' or '.join(FORMS.values())}, for example logspace:0.1:10:10."
        )
    parts = rest.split(":")
    if name == "values":
        return [_value(part) for part in parts]
    try:
        return _range(*parts) if name == "range" else _space(name, *parts)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"Cannot read the values {show(text)}. Write {FORMS[name]}, numbers joined by colons."
        ) from None


def _value(text: str) -> Any:
    parts = [_number(part) for part in text.split(",")]
    return parts[0] if len(parts) == 1 else parts


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _space(name: str, low: str, high: str, count: str) -> list[float]:
    first, last, number = float(low), float(high), int(count)
    if not 1 <= number <= MOST:
        raise InputError(
            f"{name}:{low}:{high}:{count} asks for {number} values; 1 to {MOST} are possible. "
            f"The number is the last in {FORMS[name]}."
        )
    if name == "linspace":
        return np.linspace(first, last, number).tolist()
    if first <= 0 or last <= 0:
        raise InputError(
            f"The ends of a logspace must be positive, got {low}, {high}. "
            "They are the values themselves, not their logarithms."
        )
    inner = np.geomspace(first, last, number).tolist()
    # Powers of ten are rounded to what a person would write: 0.1 · 10^(1/2)² is 1.
    return [first, *(float(f"{one:.12g}") for one in inner[1:-1]), last][:number]


def _range(low: str, high: str, step: str = "1") -> list[Any]:
    first, last, by = (float(part) for part in (low, high, step))
    count = int(np.floor((last - first) / by + 1e-9)) + 1 if by else 0
    if not 1 <= count <= MOST:
        raise InputError(
            f"The range {low}:{high}:{step} has {count} values; 1 to {MOST} are possible. "
            "Check its ends and its step."
        )
    found = [float(f"{first + by * place:.12g}") for place in range(count)]
    return [int(one) for one in found] if all(one.is_integer() for one in (first, by)) else found
