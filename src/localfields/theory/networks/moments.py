"""Moments of gated inputs, E[g ⊗ X] and E[(g ⊗ X)(g ⊗ X)ᵀ]: in closed form, as a finite sum, or measured on draws."""

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
from ..checks.draws import GROUPS, draws

LARGEST = 4096  # neurons × sites: a matrix of 134 MB
LARGEST_MEASURED = 1024  # of which there is one a group
ALIKE = 1e-12  # difference of two directions of unit length that is rounding


@dataclasses.dataclass(frozen=True)
class Moments:
    """Of one class. The first axis is one group of draws each, or of length one where nothing was drawn."""

    first: np.ndarray  # (groups, K·N)
    second: np.ndarray  # (groups, K·N, K·N)


def gate_moments(
    stimulus: Stimulus, gates: Gates, num: int | None, seed: int, pulls: bool = True
) -> Moments | None:
    """Both moments, in closed form as far as known.

    Args:
        stimulus: One class.
        gates: Any gates.
        num: Draws, where something must be measured; None to measure nothing.
        seed: Of those draws.
        pulls: Whether the first moment matters; that of a class with label zero does not, and is left at zero.

    Returns:
        The moments; None where they are not known and nothing may be drawn.
    """
    size = gates.num_gates * stimulus.size
    if size > LARGEST:
        raise InputError(too_large(gates, stimulus.size))
    if isinstance(gates, Open) and stimulus.sign_symmetric:
        return Moments(
            np.zeros((1, size)), np.tile(stimulus.covariance_matrix(), (gates.copies,) * 2)[None]
        )
    rows = _half_spaces(gates, stimulus)
    second = None if rows is None else _blocks(stimulus, rows)
    known: list[np.ndarray | None] = [None]
    if rows is not None and second is not None:
        known = [stimulus.gated_mean(row) if pulls else np.zeros(stimulus.size) for row in rows]
    if second is None or any(one is None for one in known):
        if stimulus.has_atoms:
            return _summed(gates, stimulus.shape, *stimulus.atoms())
        if num is None:
            return None
        if second is None and size > LARGEST_MEASURED:
            raise InputError(too_large(gates, stimulus.size, measured=True))
        first, measured = _measured(stimulus, gates, num, seed, second is None)
        if second is None:  # both from the same draws: a regression on them, whatever its rank
            assert measured is not None
            return Moments(first, measured)
        first = first.reshape(GROUPS, len(known), -1)
        for k, one in enumerate(known):
            first[:, k] = first[:, k] if one is None else one
        return Moments(first.reshape(GROUPS, -1), second[None])
    return Moments(np.concatenate([one for one in known if one is not None])[None], second[None])


def too_large(gates: Gates, sites: int, measured: bool = False) -> str:
    """Why there are too many neurons for the moments of their gates; empty if there are not."""
    most = LARGEST_MEASURED if measured else LARGEST
    if gates.num_gates * sites <= most:
        return ""
    advice = "Take fewer gates, or a smaller lattice."
    if measured:
        advice = "Only half-spaces one by one, or on elliptical data, are known without draws."
    what = "Neurons × sites of gates to measure" if measured else "Neurons × sites of gates"
    return f"{what} must be at most {most}, got {gates.num_gates} × {sites}. {advice}"


def is_known(stimulus: Stimulus, gates: Gates, pulls: bool) -> tuple[bool, bool]:
    """Whether the first and the second moment need no draws."""
    if isinstance(gates, Open) and stimulus.sign_symmetric:
        return True, True
    if stimulus.has_atoms:
        return True, True
    rows = _half_spaces(gates, stimulus)
    if rows is None:
        return False, False
    alike = stimulus.elliptical or np.abs(rows - rows[0]).max() < ALIKE
    return alike and (not pulls or all(stimulus.has_gated_mean(row) for row in rows)), alike


def _half_spaces(gates: Gates, stimulus: Stimulus) -> np.ndarray | None:
    """Directions of unit length, (K, size), where the closed forms may apply."""
    if not stimulus.sign_symmetric:
        return None
    with jax.enable_x64(True):
        rows = gates.half_spaces(stimulus.shape)
    if rows is None:
        return None
    rows = np.asarray(rows, np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def quadrant_moment(covariance: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """E[1(⟨v, X⟩ > 0) 1(⟨u, X⟩ > 0) X Xᵀ] of an elliptical law: what two half-space gates share.

    With a = Σv/√(vᵀΣv), b = Σu/√(uᵀΣu) and γ the correlation of the two projections it is
    (¼ + arcsin γ/2π) Σ + (abᵀ + baᵀ − γaaᵀ − γbbᵀ)/(2π√(1 − γ²)); ½Σ for one gate twice, 0 for opposite ones. It does
    not depend on the radius, of which gates see nothing.

    Args:
        covariance: Σ, (size, size).
        v: One direction, (size,).
        u: The other.

    Returns:
        (size, size).

    Example:
        >>> quadrant_moment(np.eye(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(4).tolist()
        [[0.25, 0.1592], [0.1592, 0.25]]
    """
    a, b = (covariance @ d / math.sqrt(d @ covariance @ d) for d in (v, u))
    cosine = float(
        np.clip(
            (v @ covariance @ u) / math.sqrt((v @ covariance @ v) * (u @ covariance @ u)), -1, 1
        )
    )
    both = 0.25 + math.asin(cosine) / (2 * math.pi)
    sine = math.sqrt((1 - cosine) * (1 + cosine))
    if sine < 1e-7:  # the rest is of the order of the sine
        return (0.5 if cosine > 0 else 0.0) * covariance
    # Written with the difference (or the sum), which vanishes where the two are alike (or opposite).
    side = 1.0 if cosine > 0 else -1.0
    apart = a - side * b
    rest = (side - cosine) * (np.outer(a, a) + np.outer(b, b)) - side * np.outer(apart, apart)
    return both * covariance + rest / (2 * math.pi * sine)


def _blocks(stimulus: Stimulus, rows: np.ndarray) -> np.ndarray | None:
    """The second moment of half-space gates, (K·N, K·N), or None where two of them share what is not known."""
    covariance, count = stimulus.covariance_matrix(), len(rows)
    blocks: list[list[Any]] = [[None] * count for _ in range(count)]
    for k in range(count):
        for other in range(k + 1):
            if np.abs(rows[k] - rows[other]).max() < ALIKE:
                found = 0.5 * covariance
            elif stimulus.elliptical:
                found = quadrant_moment(covariance, rows[k], rows[other])
            else:
                return None
            blocks[k][other] = blocks[other][k] = found
    return np.block(blocks)


def gated(gates: Gates, shape: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    """g(x) ⊗ x for many inputs, (num, size) to (num, K·N)."""
    with jax.enable_x64(True):
        seen = x @ np.asarray(gates.directions(shape), np.float64).T
        leaves = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), gates)
        opened = np.asarray(_opened(leaves, jnp.asarray(seen)), np.float64)
    return (opened[:, :, None] * x[:, None, :]).reshape(len(x), -1)


@jax.jit
def _opened(gates: Gates, h: jax.Array) -> jax.Array:
    return jax.vmap(gates.open)(h)


def _summed(gates: Gates, shape: tuple[int, ...], x: np.ndarray, p: np.ndarray) -> Moments:
    through = gated(gates, shape, x)
    return Moments((p @ through)[None], (through.T @ (p[:, None] * through))[None])


def _measured(
    stimulus: Stimulus, gates: Gates, num: int, seed: int, both: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Moments of independent groups of draws; the second only if asked for."""
    size = gates.num_gates * stimulus.size
    first, drawn = np.zeros((GROUPS, size)), np.zeros(GROUPS)
    second = np.zeros((GROUPS, size, size)) if both else None
    for group, x in draws(stimulus, num, seed):
        # A draw stands for its negative, too, where that is as likely.
        for turned in (x, -x) if stimulus.sign_symmetric else (x,):
            through = gated(gates, stimulus.shape, turned)
            first[group] += through.sum(axis=0)
            drawn[group] += len(through)
            if second is not None:
                second[group] += through.T @ through
    return first / drawn[:, None], None if second is None else second / drawn[:, None, None]
