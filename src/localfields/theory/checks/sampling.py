"""Estimates with uncertainties from samples in independent groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from ..._spec import Count
from ...stimuli import Stimulus
from ...stimuli.base import as_key
from ...stimuli.samples import Rows

GROUPS = 20  # independent parts of the samples; their spread is the uncertainty
NUMBERS = 4_000_000  # sampled by default: a second or two
MAX_PIECE = 400_000  # numbers held at a time
BINS = 16  # of the site conditioned on, equally likely (fewer if it has fewer values)


def sample_groups(
    stimulus: Stimulus, num: int | None, seed: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Samples in pieces of equal size, each with the number of its group.

    Of data every row is used at most once: sampling with replacement would count chance twice.

    Args:
        stimulus: What to sample.
        num: Number of samples; by default 100 000, fewer on large lattices.
        seed: Of the random numbers.

    Yields:
        The group and samples, (sample, size) in float64.
    """
    least = 2 * GROUPS
    num = (
        max(5000, min(100_000, NUMBERS // stimulus.size))
        if num is None
        else Count(least, 10**9).check("num", num)
    )
    seed = Count(0, 2**63 - 1).check("seed", seed)
    if isinstance(stimulus, Rows) and len(stimulus.rows) >= least:
        num = min(num, len(stimulus.rows))
        pieces = -(-num * stimulus.size // (GROUPS * MAX_PIECE))  # per group
        per_piece, generator = num // (GROUPS * pieces), np.random.default_rng(seed)
        chosen = np.linspace(0, len(stimulus.rows) - 1, GROUPS * pieces * per_piece).astype(int)
        for index, part in enumerate(chosen.reshape(GROUPS * pieces, per_piece)):
            rows = np.asarray(stimulus.rows[part], np.float64)
            yield index // pieces, stimulus.moved(rows, generator)
        return
    pieces = -(-num * stimulus.size // (GROUPS * MAX_PIECE))
    with jax.enable_x64(False):  # sampled in float32, whatever the user computes in
        for index, key in enumerate(jax.random.split(as_key(seed), GROUPS * pieces)):
            rows = stimulus.sample(key, -(-num // (GROUPS * pieces)))
            yield index // pieces, np.asarray(rows, np.float64)


def mean_square(parts: np.ndarray, axes: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """‖E part‖² without bias, from independent parts along the first axis.

    It is the average product of two different parts, in which noise cancels.

    Returns:
        The square, summed over `axes` (of one part), and the squares with each part left out.
    """
    groups = len(parts)
    total, own = parts.sum(axis=0, dtype=np.float64), (parts.astype(np.float64) ** 2).sum(axis=0)
    square = (total**2 - own).sum(axis=axes) / (groups * (groups - 1))
    left_out = [
        ((total - p) ** 2 - (own - p**2)).sum(axis=axes) / ((groups - 1) * (groups - 2))
        for p in parts
    ]
    return square, np.array(left_out)


def jackknife(left_out: np.ndarray) -> Any:
    """Standard error from the values with each group left out, (group, …)."""
    return np.sqrt((len(left_out) - 1) * left_out.var(axis=0))


def signed_root(square: Any, error: Any) -> np.ndarray:
    """A distance and its standard error from those of its square, which noise may make negative."""
    value = np.sqrt(np.maximum(square, 0))
    return np.array([value, np.sqrt(value**2 + error) - value])
