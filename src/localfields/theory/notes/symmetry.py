"""Symmetries that every response f(w) = E[1(⟨w, X⟩ ≥ 0) X] obeys, and its Jacobian (note 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Row
from ...errors import InputError, show
from ...marginals import TwoPoint
from ...stimuli import Stimulus
from ...stimuli._ring import MOST_IN_HALVES, as_field
from ..base import Response
from ..responses.linear import LinearResponse, response_jacobian
from .separation import separation


@dataclasses.dataclass(frozen=True)
class Symmetries:
    """How far a response is from its symmetries at one field, in units of its largest entry."""

    scale: float  # f(αw) = f(w) for α > 0
    sign: float  # f(−w) = −f(w)
    shift: float  # f of a shifted field is the shifted response, over single steps along every axis
    # f(Aᵀw) = A⁻¹f(w) for a linear symmetry AX ~ X; nan if none is given. (The note prints f(Aw) =
    # A⁻ᵀf(w), which is the same only for orthogonal A.)
    linear: float


def check_symmetries(
    response: Callable[[Any], Any], w: Any, shape: tuple[int, ...] | None = None, linear: Any = None
) -> Symmetries:
    """Measure how well a response obeys its scale, sign, shift and linear symmetries.

    Args:
        response: f, from a field (size,) to (size,): a theory's `response(stimulus)`, or a
            function.
        w: A field, (size,).
        shape: The lattice; a ring by default.
        linear: A, (size, size), such that AX has the distribution of X.

    Example:
        >>> from localfields.theory.responses.hypercube import enumerated_response
        >>> from localfields.stimuli import Ising
        >>> def response(w):
        ...     return enumerated_response(w, Ising(6, coupling=0.7))
        >>> check_symmetries(response, [0.3, -1.0, 0.2, 0.5, 0.1, 0.7]).shift < 1e-14
        True
    """
    w = as_field(w)
    shape = (w.size,) if shape is None else shape
    if np.prod(shape) != w.size:
        raise InputError(f"`shape` must be a lattice of {w.size} sites, got {show(shape)}.")
    base = _at(response, w)
    unit = np.abs(base).max() or 1.0

    def deviation(field: np.ndarray, expected: np.ndarray) -> float:
        return float(np.abs(_at(response, field) - expected).max() / unit)

    shifts = []
    for axis in range(len(shape)):
        moved, expected = (np.roll(part.reshape(shape), 1, axis).ravel() for part in (w, base))
        shifts.append(deviation(moved, expected))
    under_linear = float("nan")
    if linear is not None:
        a = Row(axes=2, hint="Give one row and one column per site.").check("linear", linear)
        under_linear = deviation(a.T @ w, np.linalg.solve(a, base))
    scale = max(deviation(factor * w, base) for factor in (0.1, 3.7))
    return Symmetries(scale, deviation(-w, -base), max(shifts), under_linear)


def _at(response: Callable[[Any], Any], w: np.ndarray) -> np.ndarray:
    if isinstance(response, Response):
        with jax.enable_x64(True):
            return np.asarray(response(jnp.asarray(w)))
    return np.asarray(response(w), np.float64)


def jacobian(of: Stimulus | Response, w: Any) -> np.ndarray:
    """∂f_i/∂w_j = E[δ(⟨w, X⟩) X_i X_j], (size, size): symmetric, and Jw = 0.

    Args:
        of: An elliptical stimulus, J = (m₁/s)(Σ − Σw wᵀΣ/s²); a ±1 stimulus, for which f is
            constant within chambers, J = 0; or a theory's `response(stimulus)`, which is
            differentiated (of an approximation J need not be symmetric).
        w: A nonzero field, (size,).

    Raises:
        InputError: For other stimuli, and on a wall between two chambers, where f jumps.

    Example:
        >>> from localfields.stimuli import Gaussian, Ising
        >>> w = np.array([0.3, -1.0, 0.2, 0.4])
        >>> bool(jacobian(Ising(4, coupling=0.7), w).any())
        False
        >>> bool(np.abs(jacobian(Gaussian(4, xi=0.5), w) @ w).max() < 1e-15)
        True
    """
    w = as_field(w)
    if isinstance(of, Response):
        with jax.enable_x64(True):
            return np.asarray(jax.jacfwd(of)(jnp.asarray(w)))
    of.require_one("for a Jacobian")
    if of.size != w.size or not w.any():
        given = f"{w.size} numbers" if w.any() else "zeros"
        raise InputError(f"`w` must be a nonzero field of {of.size} sites, got {given}.")
    if of.elliptical:  # closed form
        return response_jacobian(LinearResponse().slope_of(of), of.covariance_matrix(), w)
    if isinstance(of.marginal(), TwoPoint) and w.size <= MOST_IN_HALVES:
        if separation(w, w.size) == 0:
            raise InputError(
                "The field is on a wall between two chambers, ⟨w, x⟩ = 0 for some x, where the "
                "response jumps. Move it off the wall."
            )
        return np.zeros((w.size, w.size))
    raise InputError(
        f"The Jacobian is known for elliptical stimuli, and ±1 on at most {MOST_IN_HALVES} sites, "
        f"got {show(of)}. Give `EffectiveFlow().response(stimulus)` for the effective response."
    )
