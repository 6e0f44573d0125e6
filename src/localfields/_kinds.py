"""The kinds of plain values a field of a specification may have: numbers, counts, shapes, choices, arrays.

A kind knows how to check a value, read it from the command line, and write it as JSON. Kinds that hold other
specifications are in `_spec`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jax.core import Tracer

from .errors import InputError, Said, refuse, unknown

LARGEST_LATTICE = (
    2**24
)  # one float32 draw of it is 64 MB; beyond, a typing error is likelier than a wish


def _real(value: Any) -> np.ndarray:
    """A float64 array of what are numbers already; numpy alone would read '3', True, 1+2j and dates as numbers too."""
    array = np.asarray(value)
    whole = array.dtype.kind == "O" and all(
        isinstance(one, int) for one in array.flat
    )  # beyond 64 bits
    if array.size and array.dtype.kind not in "iuf" and not whole:
        raise TypeError
    return array.astype(np.float64)


@dataclasses.dataclass(frozen=True)
class Number:
    """A real number in a range. Swept as a one-dimensional array; traced inside compiled code."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = False
    hint: str = ""
    static: ClassVar[bool] = False
    metavar: ClassVar[str] = "FLOAT"

    @property
    def expected(self) -> str:
        """The legal range in words."""
        if self.low == -math.inf and self.high == math.inf:
            return "a finite number"
        if self.low == 0 and self.high == math.inf:
            return "zero or positive" if self.closed else "positive"
        word, other = ("at least", "at most") if self.closed else ("above", "below")
        ends = [f"{word} {self.low:g}"] * (self.low > -math.inf) + [f"{other} {self.high:g}"] * (
            self.high < math.inf
        )
        return "a number " + " and ".join(ends)

    def check(self, name: str, value: Any) -> Any:
        """Return a float (or a float64 array for a sweep), or refuse."""
        if isinstance(value, Tracer):
            return value
        hint = self.hint or "Give a plain number."
        try:
            array = _real(value)
        except (TypeError, ValueError, OverflowError):
            refuse(f"`{name}`", value, self.expected, "Give a plain number, such as 3 or 0.5.")
        if array.ndim > 1 or array.size == 0:
            expected = "one number, or a one-dimensional array of them to sweep"
            refuse(
                f"`{name}`",
                Said(f"an array of shape {array.shape}"),
                expected,
                "Give a plain number.",
            )
        above = array >= self.low if self.closed else array > self.low
        below = array <= self.high if self.closed else array < self.high
        bad = ~(np.isfinite(array) & above & below)
        if bad.any():
            refuse(f"`{name}`", float(array[bad].flat[0]), self.expected, hint)
        return (
            float(array) + 0.0 if array.ndim == 0 else array + 0.0
        )  # -0.0 and 0.0 are one number, with one digest

    def parse(self, name: str, text: str) -> Any:
        """Read one number from the command line."""
        try:
            return float(text)
        except ValueError:
            refuse(
                f"`{name}`",
                text,
                self.expected,
                self.hint or "Give a plain number, such as 3 or 0.5.",
            )

    def text(self, value: Any) -> str:
        """As it is typed: 3, not 3.0."""
        return repr(float(value)).removesuffix(".0")

    def encode(self, value: Any) -> Any:
        """The JSON form: 3 and 3.0 are one number."""
        return np.asarray(value, dtype=np.float64).tolist()


@dataclasses.dataclass(frozen=True)
class Count:
    """A whole number in a closed range; it shapes the program, so it is static."""

    low: int = 1
    high: int = LARGEST_LATTICE
    hint: str = ""
    static: ClassVar[bool] = True
    metavar: ClassVar[str] = "INT"

    def check(self, name: str, value: Any) -> int:
        """Return an int, or refuse."""
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        whole = whole or (isinstance(value, float) and value.is_integer())
        if not whole or not self.low <= int(value) <= self.high:
            expected = f"a whole number from {self.low} to {self.high}"
            refuse(f"`{name}`", value, expected, self.hint or "Give a whole number in that range.")
        return int(value)

    def parse(self, name: str, text: str) -> int:
        """Read a whole number from the command line."""
        try:
            value = (
                int(text) if re.fullmatch(r"\s*[+-]?\d{1,40}\s*", text) else float(text)
            )  # 2**60 + 1 is no float
        except ValueError:
            refuse(
                f"`{name}`",
                text,
                f"a whole number from {self.low} to {self.high}",
                self.hint or "Give digits.",
            )
        return self.check(name, value)

    def encode(self, value: int) -> int:
        """The JSON form."""
        return value


@dataclasses.dataclass(frozen=True)
class Seeds:
    """A seed, or one a member."""

    static: ClassVar[bool] = True
    metavar: ClassVar[str] = "INT"

    def check(self, name: str, value: Any) -> int | tuple[int, ...]:
        """Return whole numbers, or refuse."""
        kind = Count(low=0, high=2**63 - 1)
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(value, (tuple, list)) and value:
            return tuple(kind.check(name, one) for one in value)
        return kind.check(name, value)

    def parse(self, name: str, text: str) -> int | tuple[int, ...]:
        """Read one number, or several joined by commas."""
        parts = [Count(low=0, high=2**63 - 1).parse(name, part) for part in text.split(",")]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def encode(self, value: int | tuple[int, ...]) -> int | list[int]:
        """The JSON form."""
        return value if isinstance(value, int) else list(value)


@dataclasses.dataclass(frozen=True)
class Shape:
    """The lattice: (40,) a ring, (30, 30) a torus."""

    most_axes: int = 3
    hint: str = "Give (40,) for a ring of 40 sites, (30, 30) for a torus."
    static: ClassVar[bool] = True
    metavar: ClassVar[str] = "40 | 30x30"

    def check(self, name: str, value: Any) -> tuple[int, ...]:
        """Return a tuple of ints, or refuse. A bare number is a ring."""
        value = (
            (value,)
            if isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            else value
        )
        sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        sequence = sequence or (isinstance(value, np.ndarray) and value.ndim == 1)
        if not sequence or not all(
            isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 1 for n in value
        ):
            refuse(f"`{name}`", value, "a tuple of positive whole numbers", self.hint)
        shape = tuple(int(n) for n in value)
        if not 1 <= len(shape) <= self.most_axes:
            axes = "1 axis" if self.most_axes == 1 else f"1 to {self.most_axes} axes"
            refuse(f"`{name}`", shape, f"a lattice of {axes}", self.hint)
        size = math.prod(shape)
        if not 2 <= size <= LARGEST_LATTICE:
            refuse(f"`{name}`", shape, f"a lattice of 2 to {LARGEST_LATTICE} sites", self.hint)
        return shape

    def parse(self, name: str, text: str) -> tuple[int, ...]:
        """Read 40, 30x30, 30,30 or (30, 30)."""
        parts = re.split(r"\s*[x,\s]\s*", text.strip(" ()[],"))
        if not all(re.fullmatch(r"-?\d{1,18}", part) for part in parts):
            refuse(
                f"`{name}`",
                text,
                "whole numbers joined by x",
                "Give 40 for a ring, 30x30 for a torus.",
            )
        return self.check(name, tuple(int(part) for part in parts))

    def text(self, value: tuple[int, ...]) -> str:
        """As it is typed: 30x30."""
        return "x".join(map(str, value))

    def encode(self, value: tuple[int, ...]) -> list[int]:
        """The JSON form."""
        return list(value)


@dataclasses.dataclass(frozen=True)
class Choice:
    """One of a few names."""

    names: tuple[str, ...]
    static: ClassVar[bool] = True

    @property
    def metavar(self) -> str:
        """The names, as the command line shows them."""
        return " | ".join(self.names)

    def check(self, name: str, value: Any) -> str:
        """Return the name, or refuse with the nearest one."""
        if not isinstance(value, str) or value not in self.names:
            unknown(f"`{name}`", value, self.names)
        return value

    def parse(self, name: str, text: str) -> str:
        """Read a name from the command line."""
        return self.check(name, text)

    def encode(self, value: str) -> str:
        """The JSON form."""
        return value


@dataclasses.dataclass(frozen=True)
class Row:
    """A fixed array of numbers (a covariance row, a table, samples); a leaf, never swept."""

    axes: int | None = 1
    hint: str = "Give a list or an array of finite numbers."
    least: int = 1  # how many numbers there must be
    static: ClassVar[bool] = False
    metavar: ClassVar[str] = "X,Y,…"

    def check(self, name: str, value: Any) -> np.ndarray:
        """Return a float64 array, or refuse."""
        if isinstance(value, Tracer):
            return value  # type: ignore[return-value]
        try:
            array = _real(value)
        except (TypeError, ValueError, OverflowError):
            refuse(f"`{name}`", value, "an array of numbers", self.hint)
        if array.size < self.least or (self.axes is not None and array.ndim != self.axes):
            axes = {None: "", 1: " with one axis"}.get(self.axes, f" with {self.axes} axes")
            refuse(f"`{name}`", Said(f"shape {array.shape}"), f"a non-empty array{axes}", self.hint)
        if not np.isfinite(array).all():
            refuse(
                f"`{name}`",
                Said(f"{np.sum(~np.isfinite(array))} nan or infinite"),
                "finite throughout",
                self.hint,
            )
        return np.asarray(array + 0.0)  # as above

    def parse(self, name: str, text: str) -> np.ndarray:
        """Read numbers joined by commas."""
        try:
            return self.check(name, [float(part) for part in text.split(",")] if text else [])
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            refuse(f"`{name}`", text, "numbers joined by commas", self.hint)

    def encode(self, value: Any) -> list:
        """The JSON form."""
        return np.asarray(value, dtype=np.float64).tolist()
