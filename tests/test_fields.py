"""Defaults, ranges and symbols of all fields, as a list that people have read.

A default or a limit that changes by accident alters results and the names under which they are
stored, and no formula notices. A change that is meant is written down with `python
tests/test_fields.py`.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

from localfields._registry import HOMES
from localfields._spec import fields, registered

LIST = Path(__file__).with_name("fields.txt")


def describe():
    """One line per field of every class of the package."""
    lines = []
    for family in sorted(HOMES):
        for name, cls in registered(family).items():
            if getattr(sys.modules[cls.__module__], cls.__name__, None) is not cls:
                continue  # of an example in a docstring
            if not cls.__module__.startswith("localfields."):
                continue  # of another test
            lines.append(f"{family}/{name}")
            for field in fields(cls):
                symbol = f" ({field.symbol})" if field.symbol else ""
                lines.append(f"  {field.name}{symbol} = {show(field.default)}: {kind(field.kind)}")
    return "\n".join(lines) + "\n"


def show(value):
    if isinstance(value, tuple) and len(value) > 20:
        return f"{len(value)} numbers from {float(min(value))} to {float(max(value))}"
    return repr(np.asarray(value).tolist() if isinstance(value, np.ndarray) else value)


def kind(value):
    """A kind of field with its limits, without the words of its messages."""
    limits = {
        field.name: getattr(value, field.name)
        for field in dataclasses.fields(value)
        if field.name not in ("hint", "limit") and not callable(getattr(value, field.name))
    }
    words = ", ".join(f"{name}={limit!r}" for name, limit in limits.items())
    return f"{type(value).__name__}({words})"


def test_fields_are_as_listed():
    assert describe().splitlines() == LIST.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    LIST.write_text(describe(), encoding="utf-8")
