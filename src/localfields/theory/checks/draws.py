"""Estimates with uncertainties from draws in independent groups, shared by the checks of assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from ..._spec import Count
from ...lattice import product
from ...stimuli import Stimulus
from ...stimuli.base import as_key
from ...stimuli.samples import Rows

GROUPS = 20  # independent parts of the draws; their spread is the uncertainty
NUMBERS = 4_000_000  # drawn by default: a second or two
LARGEST_PIECE = 400_000  # numbers held at a time
BINS = 16  # of the site conditioned on, equally likely (fewer where it has fewer values)


def draws(stimulus: Stimulus, num: int | None, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    """The draws in pieces of one size, (draws, size) in float64, each with the number of the group it belongs to.

    Of data every row is taken once: drawn with replacement, chance would count twice.
    """
    least = 2 * GROUPS
    num = (
        max(5000, min(100_000, NUMBERS // stimulus.size))
        if num is None
        else Count(least, 10**9).check("num", num)
    )
    seed = Count(0, 2**63 - 1).check("seed", seed)
    if isinstance(stimulus, Rows) and len(stimulus.rows) >= least:
        yield from _once(stimulus, min(num, len(stimulus.rows)), seed)
        return
    pieces = -(-num * stimulus.size // (GROUPS * LARGEST_PIECE))  # a group
    with jax.enable_x64(False):  # drawn in float32, whatever the user computes in
        for index, key in enumerate(jax.random.split(as_key(seed), GROUPS * pieces)):
            yield (
                index // pieces,
                np.asarray(stimulus.sample(key, -(-num // (GROUPS * pieces))), np.float64),
            )


def _once(stimulus: Rows, num: int, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    pieces = -(-num * stimulus.size // (GROUPS * LARGEST_PIECE))
    each, generator = num // (GROUPS * pieces), np.random.default_rng(seed)
    chosen = np.linspace(0, len(stimulus.rows) - 1, GROUPS * pieces * each).astype(int)
    for index, part in enumerate(chosen.reshape(GROUPS * pieces, each)):
        yield (
            index // pieces,
            stimulus.moved(np.asarray(stimulus.rows[part], np.float64), generator),
        )


class Covariances:
    """Entries of the covariance matrix, without building it for a translation-invariant stimulus."""

    def __init__(self, stimulus: Stimulus):
        self.values = np.asarray(stimulus.covariance(), np.float64)
        self.shape = stimulus.shape

    def __call__(self, these: np.ndarray, those: np.ndarray) -> np.ndarray:
        """Cov(X_a, X_b) for sites a and b in C order, (a, b)."""
        if self.values.shape != self.shape:
            return self.values.reshape(math.prod(self.shape), -1)[np.ix_(these, those)]
        a, b = (np.unravel_index(sites, self.shape) for sites in (these, those))
        return self.values[
            tuple((q[None, :] - p[:, None]) % n for p, q, n in zip(a, b, self.shape, strict=True))
        ]

    def variances(self) -> np.ndarray:
        """Of every site, (size,)."""
        size = math.prod(self.shape)
        if self.values.shape == self.shape:
            return np.full(size, self.values.flat[0])
        return np.diagonal(self.values.reshape(size, size))

    def times(self, fields: np.ndarray) -> np.ndarray:
        """Σw for several fields, (field, size)."""
        if self.values.shape != self.shape:
            return fields @ self.values.reshape(fields.shape[1], -1)
        return product(self.values, fields.reshape(-1, *self.shape)).reshape(fields.shape)


def mean_square(parts: np.ndarray, axes: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """‖E part‖² without bias, from independent parts along the first axis: the average product of two unlike ones.

    Returns:
        The square, summed over `axes` (of one part), and the squares with one part left out each, for a jackknife.
    """
    groups = len(parts)
    total, own = parts.sum(axis=0, dtype=np.float64), (parts.astype(np.float64) ** 2).sum(axis=0)
    whole = (total**2 - own).sum(axis=axes) / (groups * (groups - 1))
    left = [
        ((total - p) ** 2 - (own - p**2)).sum(axis=axes) / ((groups - 1) * (groups - 2))
        for p in parts
    ]
    return whole, np.array(left)


def jackknife(left: np.ndarray) -> Any:
    """Standard error from what is found without each of the groups, (group, …)."""
    return np.sqrt((len(left) - 1) * left.var(axis=0))


def signed_root(square: Any, error: Any) -> np.ndarray:
    """A distance and its standard error from those of its square, which may come out below zero by noise."""
    value = np.sqrt(np.maximum(square, 0))
    return np.array([value, np.sqrt(value**2 + error) - value])
