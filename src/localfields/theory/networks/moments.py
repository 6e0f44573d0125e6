"""Moments of gated inputs, E[g ⊗ X] and E[(g ⊗ X)(g ⊗ X)ᵀ]: closed forms, sums, or measured."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...networks.gates import Gates, Open
from ...stimuli import Stimulus
from ..checks.sampling import GROUPS, sample_groups

MAX_GATED = 4096  # neurons × sites: a matrix of 134 MB
MAX_GATED_MEASURED = 1024  # with one such matrix per group of samples
DIRECTION_ROUNDING = 1e-12  # closer unit vectors count as equal


@dataclasses.dataclass(frozen=True)
class GateMoments:
    """Moments of one class, per group of samples; one group if they are exact."""

    first: np.ndarray  # (groups, K·N)
    second: np.ndarray  # (groups, K·N, K·N)


def gate_moments(
    stimulus: Stimulus, gates: Gates, num: int | None, seed: int, pulls: bool = True
) -> GateMoments | None:
    """Both moments, exact as far as they are known.

    Args:
        stimulus: One class.
        gates: Any gates.
        num: Number of samples if something must be measured; None to measure nothing.
        seed: Seed of those samples.
        pulls: Whether the first moment matters; for a class with label zero it does not, and is
            left at zero.

    Returns:
        The moments; None if they are not known and must not be measured.
    """
    size = gates.num_gates * stimulus.size
    if size > MAX_GATED:
        raise InputError(too_large(gates, stimulus.size))
    if isinstance(gates, Open) and stimulus.sign_symmetric:
        second = np.tile(stimulus.covariance_matrix(), (gates.copies,) * 2)
        return GateMoments(np.zeros((1, size)), second[None])
    rows = _half_spaces(gates, stimulus)
    second = None if rows is None else _half_space_second(stimulus, rows)
    means: list[np.ndarray | None] = [None]
    if rows is not None and second is not None:
        means = [stimulus.gated_mean(row) if pulls else np.zeros(stimulus.size) for row in rows]
    exact = [mean for mean in means if mean is not None]
    if second is not None and len(exact) == len(means):
        return GateMoments(np.concatenate(exact)[None], second[None])
    if stimulus.has_atoms:
        x, p = stimulus.atoms()
        through = gated(gates, stimulus.shape, x)
        return GateMoments((p @ through)[None], (through.T @ (p[:, None] * through))[None])
    if num is None:
        return None
    if second is None and size > MAX_GATED_MEASURED:
        raise InputError(too_large(gates, stimulus.size, measured=True))
    first, measured = _measured(stimulus, gates, num, seed, second is None)
    if second is None:  # both from the same samples: a regression on them, whatever its rank
        assert measured is not None
        return GateMoments(first, measured)
    first = first.reshape(GROUPS, len(means), -1)
    for k, mean in enumerate(means):
        first[:, k] = first[:, k] if mean is None else mean
    return GateMoments(first.reshape(GROUPS, -1), second[None])


def too_large(gates: Gates, sites: int, measured: bool = False) -> str:
    """Why there are too many neurons for the moments of their gates; empty if there are not."""
    limit = MAX_GATED_MEASURED if measured else MAX_GATED
    if gates.num_gates * sites <= limit:
        return ""
    purpose = " to measure their moments" if measured else ""
    return (
        f"{gates.num_gates} neurons × {sites} sites are too many{purpose}: at most {limit} in all. "
        "Take fewer gates, or a smaller lattice."
    )


def is_known(stimulus: Stimulus, gates: Gates, pulls: bool) -> tuple[bool, bool]:
    """Whether the first and the second moment need no samples."""
    if stimulus.has_atoms or (isinstance(gates, Open) and stimulus.sign_symmetric):
        return True, True
    rows = _half_spaces(gates, stimulus)
    if rows is None:
        return False, False
    second = stimulus.elliptical or np.abs(rows - rows[0]).max() < DIRECTION_ROUNDING
    return second and (not pulls or all(stimulus.has_gated_mean(row) for row in rows)), second


def _half_spaces(gates: Gates, stimulus: Stimulus) -> np.ndarray | None:
    """Unit normals of half-space gates, (K, size), if closed forms may apply."""
    if not stimulus.sign_symmetric:
        return None
    with jax.enable_x64(True):
        rows = gates.half_spaces(stimulus.shape)
    if rows is None:
        return None
    rows = np.asarray(rows, np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def quadrant_moment(covariance: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """E[1(⟨v, X⟩ > 0) 1(⟨u, X⟩ > 0) X Xᵀ] of elliptical data, (size, size), for directions v and u.

    With a = Σv/√(vᵀΣv), b = Σu/√(uᵀΣu) and γ the correlation of the two projections it is (¼ +
    arcsin γ/2π) Σ + (abᵀ + baᵀ − γaaᵀ − γbbᵀ)/(2π√(1 − γ²)); ½Σ for one gate twice, 0 for opposite
    ones. It does not depend on the radial distribution, which gates do not see.
    """
    a, b = (covariance @ d / math.sqrt(d @ covariance @ d) for d in (v, u))
    norms = math.sqrt((v @ covariance @ v) * (u @ covariance @ u))
    cosine = float(np.clip((v @ covariance @ u) / norms, -1, 1))
    both = 0.25 + math.asin(cosine) / (2 * math.pi)
    sine = math.sqrt((1 - cosine) * (1 + cosine))
    if sine < 1e-7:  # the rest is of the order of the sine
        return (0.5 if cosine > 0 else 0.0) * covariance
    # Written with the difference (or sum), which vanishes if the two are equal (or opposite).
    side = 1.0 if cosine > 0 else -1.0
    apart = a - side * b
    rest = (side - cosine) * (np.outer(a, a) + np.outer(b, b)) - side * np.outer(apart, apart)
    return both * covariance + rest / (2 * math.pi * sine)


def _half_space_second(stimulus: Stimulus, rows: np.ndarray) -> np.ndarray | None:
    """The second moment of half-space gates, (K·N, K·N); None if that of some pair is not known."""
    covariance, count = stimulus.covariance_matrix(), len(rows)
    blocks: list[list[Any]] = [[None] * count for _ in range(count)]
    for k in range(count):
        for other in range(k + 1):
            if np.abs(rows[k] - rows[other]).max() < DIRECTION_ROUNDING:
                block = 0.5 * covariance
            elif stimulus.elliptical:
                block = quadrant_moment(covariance, rows[k], rows[other])
            else:
                return None
            blocks[k][other] = blocks[other][k] = block
    return np.block(blocks)


def gated(gates: Gates, shape: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    """g(x) ⊗ x for many inputs, (num, size) to (num, K·N)."""
    with jax.enable_x64(True):
        h = x @ np.asarray(gates.directions(shape), np.float64).T
        leaves = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), gates)
        opened = np.asarray(_opened(leaves, jnp.asarray(h)), np.float64)
    return (opened[:, :, None] * x[:, None, :]).reshape(len(x), -1)


@jax.jit
def _opened(gates: Gates, h: jax.Array) -> jax.Array:
    return jax.vmap(gates.open)(h)


def _measured(
    stimulus: Stimulus, gates: Gates, num: int, seed: int, both: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Moments of independent groups of samples; the second only if `both`."""
    size = gates.num_gates * stimulus.size
    first, count = np.zeros((GROUPS, size)), np.zeros(GROUPS)
    second = np.zeros((GROUPS, size, size)) if both else None
    for group, x in sample_groups(stimulus, num, seed):
        # A sample stands for its negative, too, if that is as likely.
        for signed in (x, -x) if stimulus.sign_symmetric else (x,):
            through = gated(gates, stimulus.shape, signed)
            first[group] += through.sum(axis=0)
            count[group] += len(through)
            if second is not None:
                second[group] += through.T @ through
    return first / count[:, None], None if second is None else second / count[:, None, None]
