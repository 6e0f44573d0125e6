"""The continuum limit: if lengthscales grow with the lattice, weights are samples of a function.

On N sites of spacing 1/N put w_i = w(x_i)/N and keep the kernels σ_y fixed as functions of x. Then
sums over sites become convolutions, and a steady state of the effective flow solves (paper eq. 8,
which has a ½ too many)

    φ(σ₁⋆w / √⟨σ₁⋆w, w⟩) − (σ₀ + σ₁)⋆w = 0.

φ is the amplifier, odd and increasing on [−1, 1], of the marginal at unit variance; it is a plain
function here. On a torus N is the number of sites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..._spec import Row
from ...errors import InputError
from ...lattice import filtered, spectrum
from ...tasks import Discrimination
from ..responses.linear import pulling_class

AmplifierFunction = Callable[[np.ndarray], np.ndarray]

# An operator with eigenvalues below this fraction of the largest cannot be inverted in float64.
MIN_OPERATOR_EIGENVALUE = 1e-12


def residual(
    phi: AmplifierFunction,
    rows: Sequence[np.ndarray],
    w: np.ndarray,
    *,
    ridge: float = 0.0,
    label: float = 1.0,
) -> np.ndarray:
    """Residual y φ(σ₁⋆w/√⟨σ₁⋆w, w⟩) − (σ₀ + σ₁)⋆w − ρw; zero at a steady state.

    It is 2/τ times the velocity of w/N under the effective flow, for two equally likely classes.

    Args:
        phi: The amplifier of the labelled class, at unit variance.
        rows: Covariances σ₀ and σ₁ at each displacement, of the lattice's shape.
        w: The function at the sites, of the lattice's shape; not zero.
        ridge: ρ ≥ 0; on N sites the task's `l2` is ρN/4 for two equally likely classes.
        label: y of the second class; the first has 0.
    """
    row0, row1 = (Row(axes=None).check("rows", row) for row in rows)
    w = Row(axes=None).check("w", w)
    if not row0.shape == row1.shape == w.shape:
        raise InputError(
            f"`rows` and `w` must have the same shape, got {row0.shape}, {row1.shape}, {w.shape}."
        )
    return label * driven(phi, row1, w) - filtered(spectrum(row0 + row1) / w.size + ridge, w)


def driven(phi: AmplifierFunction, row: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Twice the response in the continuum, 2f = σ φ(σ₁⋆w/(σ√⟨σ₁⋆w, w⟩)), σ² = σ₁(0)."""
    product = filtered(spectrum(row) / w.size, w)
    square = float(np.mean(product * w))
    if not square > 0:
        raise InputError(
            f"The labelled class does not drive `w`: ⟨σ₁⋆w, w⟩ = {square:.3g}. "
            "Start from a function that is not zero."
        )
    sd = float(np.sqrt(row.flat[0]))
    # The argument is a correlation, by Cauchy and Schwarz; rounding may put it just beyond 1.
    return sd * phi(np.clip(product / (sd * np.sqrt(square)), -1, 1))


def steady_state(
    phi: AmplifierFunction,
    task: Discrimination,
    start: np.ndarray | None = None,
    *,
    tolerance: float = 1e-10,
    max_steps: int = 10_000,
) -> np.ndarray:
    """A steady state of the effective flow as a function on the ring or torus, w(x_i) = N w_i.

    Iterates w ← (σ₀ + σ₁ + ρ)⁻¹ y φ(σ₁⋆w/√⟨σ₁⋆w, w⟩), which keeps the symmetry of `start`.

    As the lattice is refined the result converges to a function: at second order for kernels with a
    kink at zero, faster than any power for smooth kernels with a penalty (λ₂ > 0). **Without a
    penalty a smooth kernel has no limit**: the powers in φ reach frequencies at which the operator
    has no power, and w grows there with every refinement. The Gaussian's linear φ has no such
    powers.

    Args:
        phi: The amplifier of the labelled class, at unit variance.
        task: Translation-invariant, sign-symmetric classes, one positive label and zeros otherwise.
        start: Where to begin, of the lattice's shape; by default a bump in the middle.
        tolerance: Largest residual.
        max_steps: Largest number of iterations.

    Returns:
        w, of the lattice's shape.

    Raises:
        InputError: If the operator cannot be inverted, or the iteration does not converge.

    Example:
        >>> import math, localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian(40, xi=xi) for xi in (1, 3)))
        >>> w = steady_state(lambda a: math.sqrt(2 / math.pi) * a, task, start=np.ones(40))
        >>> round(float(w[0] / 40), 4)  # the flat level that `winning_mode` predicts
        0.041
    """
    pulling = pulling_class("steady_state", task)
    if start is None:
        places = zip(np.indices(task.shape), task.shape, strict=True)
        away = sum(((x / n) - 0.5) ** 2 for x, n in places)
        w = np.exp(-np.asarray(away) / 0.05**2)
    else:
        w = Row(axes=None).check("start", start)
    if w.shape != task.shape:
        raise InputError(f"`start` must have the lattice's shape {task.shape}, got {w.shape}.")
    row = pulling.stimulus.covariance()
    operator = (spectrum(row + pulling.rest) + pulling.ridge) / task.size
    if operator.min() <= MIN_OPERATOR_EIGENVALUE * operator.max():
        raise InputError(
            f"σ₀ + σ₁ cannot be inverted: its eigenvalues are {operator.min():.2g} to "
            f"{operator.max():.2g}. Give the task a penalty `l2`, or use a kernel with a kink."
        )
    worst = np.inf
    for _ in range(max_steps):
        pulled = pulling.label * driven(phi, row, w)
        worst = np.abs(pulled - filtered(operator, w)).max()
        if worst <= tolerance:
            return w
        w = filtered(1 / operator, pulled)
    raise InputError(
        f"The residual is {worst:.2g} after {max_steps} steps, above the tolerance {tolerance:g}. "
        "Start nearer, or take more steps."
    )
