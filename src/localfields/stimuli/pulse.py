"""Pulses: one interval, or on a torus one rectangle. Population averages are finite sums."""

from __future__ import annotations

import abc
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Choice, Count, Declaration, declare, required
from .._types import Lattice, Whole, working_dtype
from ..errors import InputError
from ..lattice import along
from ..marginals import Empirical, Marginal, TwoPoint
from .base import LATTICE, Stimulus

CODING = Declaration(
    Choice(("signs", "zero-one")),
    help="signs: ±1 with a random overall sign; zero-one: 1 inside the pulse and 0 outside, "
    "not normalized",
)


class Pulse(Stimulus):
    """What pulses share: coding, mean, marginal and covariance, from where a pulse may lie."""

    coding = required(str)

    @abc.abstractmethod
    def inside(self, key: Any, num: int) -> jax.Array:
        """Whether each site lies in the pulse, (num, *shape)."""

    @abc.abstractmethod
    def coverage(self) -> float:
        """Probability that a site lies in the pulse."""

    @abc.abstractmethod
    def pair_coverage(self) -> np.ndarray:
        """Probability that two sites both do, at every displacement (or for every pair)."""

    @abc.abstractmethod
    def intervals(self) -> list[np.ndarray]:
        """The intervals that a pulse covers on each axis, one per row, all equally likely."""

    @property
    @abc.abstractmethod
    def num_places(self) -> int:
        """Number of pulses that `intervals` describes."""

    @property
    def num_atoms(self) -> int:
        """One per pulse, or two where the sign is random."""
        return self.num_places * (2 if self.coding == "signs" else 1)

    def list_atoms(self) -> tuple[np.ndarray, np.ndarray]:
        """A pattern may be listed more than once, such as a pulse as long as its axis."""
        covered = np.ones((1, 1))
        for intervals in self.intervals():
            covered = np.kron(covered, intervals)
        if self.coding == "signs":
            covered = np.concatenate([2 * covered - 1, 1 - 2 * covered])
        return covered, np.full(len(covered), 1 / len(covered))

    @property
    def sign_symmetric(self) -> bool:
        """With a random overall sign."""
        return self.coding == "signs"

    @property
    def weakly_dependent(self) -> bool:
        """No: there is one pulse, and distant sites know of each other."""
        return False

    def draw(self, key: Any, num: int) -> jax.Array:
        """Place the pulse, then code it."""
        for_place, for_sign = jax.random.split(key)
        pulse = self.inside(for_place, num).reshape(num, self.size).astype(working_dtype())
        if self.coding == "zero-one":
            return pulse
        return jax.random.rademacher(for_sign, (num, 1), pulse.dtype) * (2 * pulse - 1)

    def mean(self) -> float:
        """Zero with a random sign, the fraction covered without."""
        return 0.0 if self.coding == "signs" else self.coverage()

    def marginal(self) -> Marginal:
        """±1, or 0 and 1 with the fraction covered."""
        p = self.coverage()
        if self.coding == "signs":
            return TwoPoint()
        return Empirical(np.array([0.0, 1.0]), np.array([1 - p, p]))

    def covariance(self) -> np.ndarray:
        """From the chance that two sites both lie in the pulse."""
        p, both = self.coverage(), self.pair_coverage()
        # With a random sign the product of two sites is −1 exactly when one is inside and the other
        # is not.
        return both - p**2 if self.coding == "zero-one" else 1 - 4 * (p - both)


class SinglePulse(Pulse):
    """A pulse at a random place, of uniform length from `shortest` to `longest` (notes, SP).

    On a torus each axis has its own place and length. The distribution has only N × (number of
    lengths) atoms an axis.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.SinglePulse((40,), shortest=2, longest=4).covariance()[:3].round(3)
        array([1. , 0.9, 0.8])
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    shortest: Whole = declare(Count(), default=4, symbol="ℓ₋", help="shortest pulse, in sites")
    longest: Whole = declare(Count(), default=8, symbol="ℓ₊", help="longest pulse, in sites")
    coding: str = declare(CODING, default="signs")

    def __check_init__(self):
        """Refuse lengths that do not fit."""
        if not self.shortest <= self.longest <= min(self.shape):
            raise InputError(
                f"Pulses of length {self.shortest} to {self.longest} do not fit on {self.shape}. "
                f"Choose `shortest` ≤ `longest` ≤ {min(self.shape)}."
            )
        if self.shortest == min(self.shape) == max(self.shape) and self.coding == "zero-one":
            raise InputError(
                f"A pulse of length {self.shortest} always covers the whole lattice. "
                "Shorten it, or use coding='signs'."
            )

    def inside(self, key: Any, num: int) -> jax.Array:
        """An interval on each axis; their product."""
        result = jnp.ones((num,) + (1,) * len(self.shape), bool)
        for axis, n in enumerate(self.shape):
            for_start, for_length = jax.random.split(jax.random.fold_in(key, axis))
            start = jax.random.randint(for_start, (num, 1), 0, n)
            length = jax.random.randint(for_length, (num, 1), self.shortest, self.longest + 1)
            covered = (jnp.arange(n)[None, :] - start) % n < length
            result = result & along(covered, axis, len(self.shape))
        return result

    def _lengths(self) -> np.ndarray:
        return np.arange(self.shortest, self.longest + 1)

    @property
    def num_places(self) -> int:
        """Starts and lengths on each axis."""
        return math.prod(n * (self.longest - self.shortest + 1) for n in self.shape)

    def intervals(self) -> list[np.ndarray]:
        """Every start and length."""
        lengths = self._lengths()[:, None, None]
        # How many sites after the start each site lies, for every start.
        after = [(np.arange(n)[None, :] - np.arange(n)[:, None]) % n for n in self.shape]
        return [
            (d < lengths).reshape(-1, n).astype(float)
            for d, n in zip(after, self.shape, strict=True)
        ]

    def coverage(self) -> float:
        """Product over the axes of mean length over N."""
        return math.prod(float(self._lengths().mean()) / n for n in self.shape)

    def pair_coverage(self) -> np.ndarray:
        """Product over the axes of E[(ℓ − d)₊ + (ℓ − N + d)₊]/N."""
        result = np.ones(self.shape)
        for axis, n in enumerate(self.shape):
            d = np.arange(n)[:, None]
            overlap = np.maximum(self._lengths() - d, 0) + np.where(
                d > 0, np.maximum(self._lengths() - n + d, 0), 0
            )
            result = result * along(overlap.mean(axis=1), axis, len(self.shape)) / n
        return result


class BlockPulse(Pulse):
    """A pulse that fills one of the N/ℓ disjoint blocks of the ring; not translation invariant.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.BlockPulse((6,), length=3, coding="zero-one").covariance()[0]
        array([ 0.25,  0.25,  0.25, -0.25, -0.25, -0.25])
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    length: Whole = declare(
        Count(), default=4, symbol="ℓ", help="length of a block, in sites; it divides the lattice"
    )
    coding: str = declare(CODING, default="signs")

    def __check_init__(self):
        """Refuse a length that does not tile the lattice."""
        if any(n % self.length for n in self.shape) or all(n == self.length for n in self.shape):
            raise InputError(
                f"`length` {self.length} does not divide the axes of {self.shape} into two blocks "
                "or more. Choose a proper divisor of every axis."
            )

    @property
    def translation_invariant(self) -> bool:
        """Only under shifts by whole blocks."""
        return False

    def _blocks(self) -> tuple[np.ndarray, int]:
        counts = tuple(n // self.length for n in self.shape)
        number = np.arange(math.prod(counts)).reshape(counts)
        for axis in range(len(counts)):
            number = np.repeat(number, self.length, axis=axis)
        return number, math.prod(counts)

    def inside(self, key: Any, num: int) -> jax.Array:
        """One block of all."""
        number, count = self._blocks()
        chosen = jax.random.randint(key, (num, 1), 0, count)
        return (jnp.asarray(number.reshape(1, -1)) == chosen).reshape((num, *self.shape))

    @property
    def num_places(self) -> int:
        """The blocks."""
        return math.prod(n // self.length for n in self.shape)

    def intervals(self) -> list[np.ndarray]:
        """The blocks along each axis."""
        block = np.ones((1, self.length))
        return [np.kron(np.eye(n // self.length), block) for n in self.shape]

    def coverage(self) -> float:
        """One over the number of blocks."""
        return 1 / self._blocks()[1]

    def pair_coverage(self) -> np.ndarray:
        """The same for two sites of one block, zero otherwise; (*shape, *shape)."""
        number, count = self._blocks()
        return (number.ravel()[:, None] == number.ravel()[None, :]).reshape(self.shape * 2) / count
