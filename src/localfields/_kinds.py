"""Kinds of values that a field of a specification may hold: numbers, shapes, choices, arrays.

A kind checks a value, reads it from the command line, and writes it as text and as JSON. Kinds that
hold other specifications are in `_spec`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, TypeGuard

import numpy as np
from jax.core import Tracer

from .errors import InputError, show, unknown_name

LARGEST_LATTICE = 2**24  # a float32 sample of it is 64 MB; beyond, a typing error is likely
LARGEST_SEED = 2**63 - 1


class Kind:
    """What a field holds. A new kind defines `check`; the other methods suit most."""

    static: ClassVar[bool] = True  # part of the compiled program, not a traced leaf
    typed: ClassVar[bool] = True  # has an option at the command line
    per_class: ClassVar[bool] = False  # there, values joined by commas are one per class
    shown: ClassVar[bool] = False  # in `repr` even at its default
    metavar = "TEXT"

    def check(self, name: str, value: Any) -> Any:
        """Return the value in its plain form, or raise `InputError`."""
        raise NotImplementedError

    def parse(self, name: str, text: str) -> Any:
        """Read a value from the command line."""
        return self.check(name, text)

    def text(self, value: Any) -> str:
        """Write a value as it is typed."""
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    def encode(self, value: Any) -> Any:
        """Write a value as JSON."""
        return list(value) if isinstance(value, tuple) else value


def _real(value: Any) -> np.ndarray:
    """A float64 array of numbers; numpy alone would accept '3', True, 1+2j and dates, too."""
    array = np.asarray(value)
    # Integers beyond 64 bits are objects to numpy.
    big = array.dtype.kind == "O" and all(isinstance(item, int) for item in array.flat)
    if array.size and array.dtype.kind not in "iuf" and not big:
        raise TypeError
    return array.astype(np.float64)


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@dataclasses.dataclass(frozen=True)
class Number(Kind):
    """A real number in a range. Swept as a one-dimensional array; traced inside compiled code."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = False
    hint: str = ""  # what to do about a number outside of the range
    limit: str = ""  # what to do instead of giving infinity
    static: ClassVar[bool] = False
    per_class: ClassVar[bool] = True
    shown: ClassVar[bool] = True
    metavar = "FLOAT"

    @property
    def expected(self) -> str:
        """The legal range in words."""
        if self.low == -math.inf and self.high == math.inf:
            return "finite"
        if self.low == 0 and self.high == math.inf:
            return "zero or positive" if self.closed else "positive"
        above, below = ("at least", "at most") if self.closed else ("above", "below")
        ends = [f"{above} {self.low:g}"] if self.low > -math.inf else []
        ends += [f"{below} {self.high:g}"] if self.high < math.inf else []
        return " and ".join(ends)

    def check(self, name: str, value: Any) -> Any:
        """Return a float, or a float64 array for a sweep."""
        # Inside compiled code a value has no number to check; it was checked where it was made.
        if isinstance(value, Tracer):
            return value
        try:
            array = _real(value)
        except (TypeError, ValueError):
            raise InputError(f"`{name}` must be a number, got {show(value)}.") from None
        except OverflowError:
            raise InputError(f"`{name}` is too large for a float: {show(value)}.") from None
        if array.ndim > 1 or array.size == 0:
            raise InputError(
                f"`{name}` must be one number, or a one-dimensional array of numbers to sweep, "
                f"got shape {array.shape}."
            )
        above = array >= self.low if self.closed else array > self.low
        below = array <= self.high if self.closed else array < self.high
        bad = array[~(np.isfinite(array) & above & below)]
        if bad.size:
            number = float(bad.flat[0])
            if math.isnan(number):
                problem, advice = "must be a number", ""
            elif number == math.inf and self.high == math.inf:
                problem, advice = "must be finite", self.limit
            else:
                problem, advice = f"must be {self.expected}", self.hint
            raise InputError(f"`{name}` {problem}, got {number!r}. {advice}".rstrip())
        # -0.0 and 0.0 are one number, with one digest.
        return array + 0.0 if array.ndim else float(array) + 0.0

    def parse(self, name: str, text: str) -> Any:
        """Read one number."""
        try:
            return float(text)
        except ValueError:
            raise InputError(f"`{name}` must be a number, got {show(text)}.") from None

    def text(self, value: Any) -> str:
        """Write 3, not 3.0."""
        return repr(float(value)).removesuffix(".0")

    def encode(self, value: Any) -> Any:
        """Write 3 and 3.0 as one number."""
        return np.asarray(value, dtype=np.float64).tolist()


@dataclasses.dataclass(frozen=True)
class Count(Kind):
    """A whole number in a closed range; it shapes the program, so it is static."""

    low: int = 1
    high: int = LARGEST_LATTICE
    hint: str = ""
    per_class: ClassVar[bool] = True
    shown: ClassVar[bool] = True
    metavar = "INT"

    def check(self, name: str, value: Any) -> int:
        """Return an int."""
        if not (_is_whole(value) or (isinstance(value, float) and value.is_integer())):
            raise InputError(f"`{name}` must be a whole number, got {show(value)}.")
        number = int(value)
        if number < self.low or number > self.high:
            bound = f"at least {self.low}" if number < self.low else f"at most {self.high}"
            message = f"`{name}` must be {bound}, got {show(number)}. {self.hint}"
            raise InputError(message.rstrip())
        return number

    def parse(self, name: str, text: str) -> int:
        """Read a whole number."""
        try:  # 2**60 + 1 is no float
            value = int(text) if re.fullmatch(r"\s*[+-]?\d{1,40}\s*", text) else float(text)
        except ValueError:
            raise InputError(f"`{name}` must be a whole number, got {show(text)}.") from None
        return self.check(name, value)


@dataclasses.dataclass(frozen=True)
class Seeds(Kind):
    """A seed, or one per member."""

    metavar = "INT"
    _seed: ClassVar[Count] = Count(low=0, high=LARGEST_SEED)

    def check(self, name: str, value: Any) -> int | tuple[int, ...]:
        """Return an int, or a tuple of them."""
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(value, (tuple, list)) and value:
            return tuple(self._seed.check(name, seed) for seed in value)
        return self._seed.check(name, value)

    def parse(self, name: str, text: str) -> int | tuple[int, ...]:
        """Read one number, or several joined by commas."""
        seeds = tuple(self._seed.parse(name, part) for part in text.split(","))
        return seeds[0] if len(seeds) == 1 else seeds


@dataclasses.dataclass(frozen=True)
class Shape(Kind):
    """The lattice: (40,) a ring, (30, 30) a torus."""

    most_axes: int = 3
    hint: str = "Give (40,) for a ring of 40 sites, (30, 30) for a torus."
    shown: ClassVar[bool] = True
    metavar = "40 | 30x30"

    def check(self, name: str, value: Any) -> tuple[int, ...]:
        """Return a tuple of ints. A bare number is a ring."""
        if _is_whole(value):
            return self.check(name, (value,))
        sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        sequence = sequence or (isinstance(value, np.ndarray) and value.ndim == 1)
        if not sequence or not all(_is_whole(length) and length >= 1 for length in value):
            self._reject(name, value, "a tuple of positive whole numbers")
        shape = tuple(int(length) for length in value)
        if not 1 <= len(shape) <= self.most_axes:
            axes = "1 axis" if self.most_axes == 1 else f"1 to {self.most_axes} axes"
            self._reject(name, shape, f"a lattice of {axes}")
        if not 2 <= math.prod(shape) <= LARGEST_LATTICE:
            self._reject(name, shape, f"a lattice of 2 to {LARGEST_LATTICE} sites")
        return shape

    def _reject(self, name: str, value: Any, expected: str) -> NoReturn:
        raise InputError(f"`{name}` must be {expected}, got {show(value)}. {self.hint}")

    def parse(self, name: str, text: str) -> tuple[int, ...]:
        """Read 40, 30x30, 30,30 or (30, 30)."""
        parts = re.split(r"\s*[x,\s]\s*", text.strip(" ()[],"))
        if not all(re.fullmatch(r"-?\d{1,18}", part) for part in parts):
            raise InputError(
                f"`{name}` must be whole numbers joined by x, got {show(text)}. "
                "Give 40 for a ring, 30x30 for a torus."
            )
        return self.check(name, tuple(int(part) for part in parts))

    def text(self, value: tuple[int, ...]) -> str:
        """Write 30x30."""
        return "x".join(map(str, value))


@dataclasses.dataclass(frozen=True)
class Choice(Kind):
    """One of a few names."""

    names: tuple[str, ...]

    @property
    def metavar(self) -> str:
        """The names, as the command line shows them."""
        return " | ".join(self.names)

    def check(self, name: str, value: Any) -> str:
        """Return the name."""
        if not isinstance(value, str) or value not in self.names:
            raise unknown_name(f"`{name}`", value, self.names)
        return value


@dataclasses.dataclass(frozen=True)
class Row(Kind):
    """A fixed array of numbers (a covariance row, a table, samples); a leaf, never swept."""

    axes: int | None = 1
    hint: str = ""
    least: int = 1  # how many numbers there must be
    static: ClassVar[bool] = False
    typed: ClassVar[bool] = False
    metavar = "X,Y,…"

    def check(self, name: str, value: Any) -> Any:
        """Return a float64 array."""
        if isinstance(value, Tracer):
            return value
        try:
            array = _real(value)
        except (TypeError, ValueError, OverflowError):
            message = f"`{name}` must be an array of numbers, got {show(value)}. {self.hint}"
            raise InputError(message.rstrip()) from None
        if array.size < self.least or (self.axes is not None and array.ndim != self.axes):
            axes = {None: "", 1: " with one axis"}.get(self.axes, f" with {self.axes} axes")
            message = f"`{name}` must be a non-empty array{axes}, got shape {array.shape}. "
            raise InputError((message + self.hint).rstrip())
        if not np.isfinite(array).all():
            count = np.sum(~np.isfinite(array))
            values = "1 value that is" if count == 1 else f"{count} values that are"
            raise InputError(f"`{name}` contains {values} nan or infinite.")
        return np.asarray(array + 0.0)  # no -0.0, as above

    def parse(self, name: str, text: str) -> np.ndarray:
        """Read numbers joined by commas."""
        try:
            numbers = [float(part) for part in text.split(",")] if text else []
        except ValueError:
            message = f"`{name}` must be numbers joined by commas, got {show(text)}. {self.hint}"
            raise InputError(message.rstrip()) from None
        return self.check(name, numbers)

    def encode(self, value: Any) -> list[Any]:
        """Write nested lists."""
        return np.asarray(value, dtype=np.float64).tolist()
