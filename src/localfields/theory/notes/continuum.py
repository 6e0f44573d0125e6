"""The continuum limit: with lengthscales that grow as the lattice does, weights are samples of a function.

On N sites of spacing 1/N put w_i = w(x_i)/N and keep the kernels σ_y fixed as functions of x. Then sums over sites
become convolutions, and a steady state of the effective flow solves (paper eq. 8, which has a ½ too many)

    φ(σ₁⋆w / √⟨σ₁⋆w, w⟩) − (σ₀ + σ₁)⋆w = 0.

φ is the amplifier, odd and increasing on [−1, 1], of the law at unit variance; it is a plain function here. What acts
on an axis acts on every axis of a torus, where N is the number of sites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..._spec import Count, Row
from ...errors import Said, refuse
from ...lattice import Given, filtered, spectrum
from ...stimuli.base import Colored
from ...tasks import Discrimination
from ..responses.linear import pull_of

Function = Callable[[np.ndarray], np.ndarray]

# An operator with eigenvalues below this fraction of its largest cannot be inverted on what float64 keeps.
SMALLEST_EIGENVALUE = 1e-12


def residual(
    phi: Function,
    rows: Sequence[np.ndarray],
    w: np.ndarray,
    *,
    ridge: float = 0.0,
    label: float = 1.0,
) -> np.ndarray:
    """Left side of the steady-state equation, y φ(σ₁⋆w/√⟨σ₁⋆w, w⟩) − (σ₀ + σ₁)⋆w − ρw, at every point.

    It is 2/τ times the velocity of the weights w/N under the effective flow, for two equally likely classes.

    Args:
        phi: The amplifier of the class with the label, at unit variance.
        rows: Covariances σ₀ and σ₁ at each displacement, of the lattice's shape. σ₁(0) may differ from 1.
        w: The function at the sites, of the lattice's shape; not zero throughout.
        ridge: ρ ≥ 0; on N sites the task's `l2` is ρN/4 for two equally likely classes.
        label: y of the second class; the first has 0.

    Returns:
        An array of the lattice's shape.

    Example:
        >>> import numpy as np
        >>> from localfields.lattice import Periodized
        >>> def at(num):  # the same function on more and more points: the same value
        ...     rows = [Periodized().correlation((num,), xi * num) for xi in (0.05, 0.1)]
        ...     w = np.exp(np.cos(2 * np.pi * np.arange(num) / num))
        ...     return residual(lambda a: np.sqrt(2 / np.pi) * a, rows, w)[0]
        >>> bool(abs(at(400) - at(100)) < 1e-12)
        True
    """
    row0, row1 = (Row(axes=None).check("rows", row) for row in rows)
    w = Row(axes=None).check("w", w)
    if not row0.shape == row1.shape == w.shape:
        got = Said(f"shapes {row0.shape}, {row1.shape} and {w.shape}")
        refuse(
            "`rows` and `w`",
            got,
            "of one shape",
            "Sample the kernels where the function is sampled.",
        )
    return label * driven(phi, row1, w) - filtered(spectrum(row0 + row1) / w.size + ridge, w)


def driven(phi: Function, row: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Twice the response in the continuum, 2f = σ φ(σ₁⋆w/(σ√⟨σ₁⋆w, w⟩)), σ² = σ₁(0)."""
    seen = filtered(spectrum(row) / w.size, w)
    square = float(np.mean(seen * w))
    if not square > 0:
        got = Said(f"one with ⟨σ₁⋆w, w⟩ = {square:.3g}")
        refuse("`w`", got, "a function that the class drives", "Start from one that is not zero.")
    sd = float(np.sqrt(row.flat[0]))
    # The argument is a correlation, by Cauchy and Schwarz; rounding may put it just beyond 1.
    return sd * phi(np.clip(seen / (sd * np.sqrt(square)), -1, 1))


def refined(task: Discrimination, factor: int) -> Discrimination:
    """The same problem of the continuum on a finer lattice: `factor` times the sites an axis, ξ and λ₂ to match.

    Every `factor`-th site of the finer lattice is a site of this one.

    Args:
        task: Classes that have a lengthscale `xi` and a kernel by name.
        factor: How many times finer.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.NLGP(50, xi=xi, kernel="periodized") for xi in (2, 5)))
        >>> refined(task, 2).stimuli[1]
        NLGP(shape=(100,), xi=10.0, gain=3.0, kernel=Periodized())
    """
    factor = Count().check("factor", factor)
    finer = []
    for stimulus in task.stimuli:
        if not isinstance(stimulus, Colored) or isinstance(stimulus.kernel, Given):
            got = Said(f"{stimulus!r}, which is tied to its lattice")
            advice = "Give the kernel by name, or build each lattice's task by hand."
            refuse(
                "Every stimulus to refine",
                got,
                "one with a lengthscale and a kernel by name",
                advice,
            )
        shape = tuple(factor * n for n in stimulus.shape)
        finer.append(stimulus.replace(shape=shape, xi=factor * stimulus.xi))
    return task.replace(stimuli=tuple(finer), l2=task.l2 * factor ** len(task.shape))


def steady_state(
    phi: Function,
    task: Discrimination,
    start: np.ndarray | None = None,
    *,
    tolerance: float = 1e-10,
    most_steps: int = 10_000,
) -> np.ndarray:
    """A steady state of the effective flow as a function on the ring or torus, w(x_i) = N w_i.

    Iterates w ← (σ₀ + σ₁ + ρ)⁻¹ y φ(σ₁⋆w/√⟨σ₁⋆w, w⟩), each step of which keeps the symmetry of `start`.

    As the lattice is refined the result converges to a function: at second order for kernels with a kink at zero,
    faster than any power for smooth kernels with a penalty (λ₂ > 0). **Without a penalty a smooth kernel has no
    limit**: the powers in φ reach frequencies at which the operator has no power left to answer, and w grows there
    with every refinement. The Gaussian's φ, which is linear, has no such powers.

    Args:
        phi: The amplifier of the labelled class, at unit variance.
        task: One ReLU neuron's: translation invariant, sign symmetric, one positive label and the others zero.
        start: Where to begin, of the lattice's shape; a bump in the middle when left out. The solution found is the
            one its basin belongs to.
        tolerance: Largest residual to leave.
        most_steps: Give up after so many.

    Returns:
        w, of the lattice's shape.

    Raises:
        InputError: When the operator cannot be inverted, or the iteration does not arrive.

    Example:
        >>> import math, localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian(40, xi=xi) for xi in (1, 3)))
        >>> w = steady_state(lambda a: math.sqrt(2 / math.pi) * a, task, start=np.ones(40))
        >>> round(float(w[0] / 40), 4)  # the flat level that `winning_mode` predicts
        0.041
    """
    pull = pull_of("steady_state", task)
    w = _bump(task.shape) if start is None else Row(axes=None).check("start", start)
    if w.shape != task.shape:
        refuse(
            "`start`",
            Said(f"shape {w.shape}"),
            f"of the lattice's shape {task.shape}",
            "Give one value a site.",
        )
    row = pull.stimulus.covariance()
    operator = (spectrum(row + pull.rest) + pull.ridge) / task.size
    if operator.min() <= SMALLEST_EIGENVALUE * operator.max():
        got = Said(f"one with eigenvalues from {operator.min():.2g} to {operator.max():.2g}")
        advice = "Give the task a penalty `l2`, or take a kernel with a kink: a smooth one has no steady function."
        refuse("The operator σ₀ + σ₁", got, "one that can be inverted", advice)
    worst = np.inf
    for _ in range(most_steps):
        pulled = pull.label * driven(phi, row, w)
        worst = np.abs(pulled - filtered(operator, w)).max()
        if worst <= tolerance:
            return w
        w = filtered(1 / operator, pulled)
    got = Said(f"{worst:.2g} after {most_steps} steps")
    refuse(
        "The residual of `steady_state`",
        got,
        f"at most {tolerance:g}",
        "Start nearer, or take more steps.",
    )


def _bump(shape: tuple[int, ...]) -> np.ndarray:
    away = sum(((x / n) - 0.5) ** 2 for x, n in zip(np.indices(shape), shape, strict=True))
    return np.exp(-np.asarray(away) / 0.05**2)
