"""What every response f(w) = E[1(⟨w, X⟩ ≥ 0) X] obeys, checked; and its Jacobian (working note 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Row
from ...errors import Said, refuse
from ...marginals import TwoPoint
from ...stimuli import Stimulus
from ...stimuli._ring import MOST_IN_HALVES, as_field
from ..base import Response
from ..responses.linear import LinearResponse, response_jacobian
from .separation import separation


@dataclasses.dataclass(frozen=True)
class Symmetries:
    """How far a response is from its symmetries at one field, in units of its largest entry. 0 is perfect.

    Attributes:
        scale: f(αw) = f(w) for α > 0.
        sign: f(−w) = −f(w).
        shift: f of a shifted field is the shifted response, over single steps along every axis.
        linear: f(Aᵀw) = A⁻¹f(w) for a linear symmetry AX ~ X; nan where none was given. (The note prints
            f(Aw) = A⁻ᵀf(w), which is the same only for orthogonal A.)
    """

    scale: float
    sign: float
    shift: float
    linear: float


def check_symmetries(
    response: Callable[[Any], Any], w: Any, shape: tuple[int, ...] | None = None, linear: Any = None
) -> Symmetries:
    """Hold a response against scale, sign, shift and linear symmetry.

    Args:
        response: f, from a field (size,) to (size,): a theory's `response(stimulus)`, or a function such as
            `enumerated_response` of one law.
        w: A field, (size,).
        shape: The lattice; a ring if left out.
        linear: A, (size, size), such that AX has the law of X.

    Example:
        >>> from localfields.theory.responses.hypercube import enumerated_response
        >>> from localfields.stimuli import Ising
        >>> law = Ising(6, coupling=0.7)
        >>> check_symmetries(lambda w: enumerated_response(w, law), [0.3, -1.0, 0.2, 0.5, 0.1, 0.7]).shift < 1e-14
        True
    """
    w = as_field(w)
    shape = (w.size,) if shape is None else shape
    if np.prod(shape) != w.size:
        refuse(
            "`shape`",
            shape,
            f"a lattice of {w.size} sites",
            "Give the lattice that the field lives on.",
        )
    base = _at(response, w)
    unit = np.abs(base).max() or 1.0

    def apart(found: np.ndarray, expected: np.ndarray) -> float:
        return float(np.abs(found - expected).max() / unit)

    moved = []
    for axis in range(len(shape)):
        one, other = (np.roll(part.reshape(shape), 1, axis).ravel() for part in (w, base))
        moved.append(apart(_at(response, one), other))
    law = float("nan")
    if linear is not None:
        a = Row(axes=2, hint="Give one row and one column a site.").check("linear", linear)
        law = apart(_at(response, a.T @ w), np.linalg.solve(a, base))
    scale = max(apart(_at(response, factor * w), base) for factor in (0.1, 3.7))
    return Symmetries(scale, apart(_at(response, -w), -base), max(moved), law)


def _at(response: Callable[[Any], Any], w: np.ndarray) -> np.ndarray:
    if isinstance(response, Response):
        with jax.enable_x64(True):
            return np.asarray(response(jnp.asarray(w)))
    return np.asarray(response(w), np.float64)


def jacobian(of: Stimulus | Response, w: Any) -> np.ndarray:
    """∂f_i/∂w_j = E[δ(⟨w, X⟩) X_i X_j] at a field: symmetric, and Jw = 0, as f does not depend on the size of w.

    Args:
        of: A stimulus: elliptical, J = (m₁/s)(Σ − Σw wᵀΣ/s²); or ±1, of which f is constant within chambers, J = 0. Or
            a theory's `response(stimulus)`, differentiated as it stands; of an approximation J need not be symmetric.
        w: A field other than zero, (size,).

    Returns:
        (size, size).

    Raises:
        InputError: For other laws, and on a wall between two chambers, where f jumps.

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
        refuse(
            "`w`",
            Said(f"{w.size} numbers" if w.any() else "zero"),
            f"a field of {of.size} sites",
            "Give one.",
        )
    if of.elliptical:
        return response_jacobian(LinearResponse().slope_of(of), of.covariance_matrix(), w)
    if isinstance(of.marginal(), TwoPoint) and w.size <= MOST_IN_HALVES:
        if separation(w, w.size) == 0:
            got, advice = (
                Said("one with ⟨w, x⟩ = 0 for some x"),
                "Move it off the wall: the response jumps there.",
            )
            refuse("A field for the Jacobian on ±1 data", got, "in a chamber", advice)
        return np.zeros((w.size, w.size))
    advice = "Give `EffectiveFlow().response(stimulus)` for that of the effective response."
    refuse(
        "The stimulus for a Jacobian",
        of,
        f"elliptical, or ±1 on at most {MOST_IN_HALVES} sites",
        advice,
    )
