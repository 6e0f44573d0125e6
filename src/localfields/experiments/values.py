"""Values of a sweep in a few characters: `linspace:1:3:5`, `logspace:0.1:10:10`, `range:1:5`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, show

VALUE_FORMS = {
    "linspace": "linspace:FROM:TO:COUNT",
    "logspace": "logspace:FROM:TO:COUNT",
    "range": "range:FROM:TO[:STEP]",
    "values": "values:A:B:C",
}
MAX_SWEEP_VALUES = 10**6


def is_value_list(text: str) -> bool:
    """Whether a text stands for several values of a sweep."""
    return text.partition(":")[0] in VALUE_FORMS and ":" in text


def value_list(text: str) -> list[Any]:
    """The values that a text stands for.

    Both ends are included, and for `logspace` they are the values themselves. A value with commas
    has one part per class.

    Raises:
        InputError: If it has another form.

    Example:
        >>> value_list("logspace:0.1:10:3"), value_list("range:1:5:2")
        ([0.1, 1.0, 10.0], [1, 3, 5])
        >>> value_list("values:1,3:0.3,0.7")
        [[1.0, 3.0], [0.3, 0.7]]
        >>> value_list("values:sgd:adam:b1=0.8,b2=0.9")
        ['sgd', 'adam:b1=0.8,b2=0.9']
    """
    name, _, rest = text.partition(":")
    if name not in VALUE_FORMS or not rest:
        raise InputError(
            f"Cannot read the values {show(text)}. "
            f"Use {' or '.join(VALUE_FORMS.values())}, for example logspace:0.1:10:10."
        )
    parts = rest.split(":")
    if name == "values":
        return [_value(text) for text in _with_options(parts)]
    try:
        return _range(*parts) if name == "range" else _space(name, *parts)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"Cannot read the values {show(text)}. Write {VALUE_FORMS[name]}, numbers joined by "
            "colons."
        ) from None


def _with_options(parts: list[str]) -> list[str]:
    """Put options back to their names: `sgd`, `adam` and `b1=0.8` are `sgd` and `adam:b1=0.8`."""
    values: list[str] = []
    for part in parts:
        if "=" in part and values:
            values[-1] += f":{part}"
        else:
            values.append(part)
    return values


def _value(text: str) -> Any:
    """A number or a name, or a list of them, one per class; the commas of options are theirs."""
    split = [text] if "=" in text else text.split(",")
    value = [_number(part) for part in split]
    return value[0] if len(value) == 1 else value


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _space(name: str, low: str, high: str, count: str) -> list[float]:
    first, last, number = float(low), float(high), int(count)
    if not 1 <= number <= MAX_SWEEP_VALUES:
        raise InputError(
            f"{name}:{low}:{high}:{count} asks for {number} values; 1 to {MAX_SWEEP_VALUES} are "
            f"possible. The number is the last in {VALUE_FORMS[name]}."
        )
    if name == "linspace":
        return np.linspace(first, last, number).tolist()
    if first <= 0 or last <= 0:
        raise InputError(
            f"The ends of a logspace must be positive, got {low}, {high}. "
            "They are the values themselves, not their logarithms."
        )
    # Rounded to what a person would write: 0.1 · 10^(1/2)² is 1.
    inner = [float(f"{value:.12g}") for value in np.geomspace(first, last, number)[1:-1]]
    return [first, *inner, last][:number]


def _range(low: str, high: str, step: str = "1") -> list[Any]:
    first, last, by = (float(part) for part in (low, high, step))
    count = int(np.floor((last - first) / by + 1e-9)) + 1 if by else 0
    if not 1 <= count <= MAX_SWEEP_VALUES:
        raise InputError(
            f"The range {low}:{high}:{step} has {count} values; 1 to {MAX_SWEEP_VALUES} are "
            "possible. Check its ends and its step."
        )
    values = [float(f"{first + by * place:.12g}") for place in range(count)]
    return [int(value) for value in values] if first.is_integer() and by.is_integer() else values
