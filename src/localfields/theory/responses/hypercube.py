"""Exact responses and steady states for ±1 data: sums over states and the single-bump theorem.

On {±1}^N the response f(w) = ½E[sgn⟨w, X⟩ X] is constant within the chambers that the hyperplanes
⟨w, x⟩ = 0 cut, so that gradient flow is linear in each. Where one entry outweighs all others its
steady state is a closed form. Ties count half, sgn 0 = 0, which sign symmetry makes exact.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError, show
from ...lattice import row_of, shifted, spectrum
from ...marginals import TwoPoint
from ...stimuli import Ising
from ...stimuli._ring import TIE_TOLERANCE, as_field, enumerate_states, ising_weights
from ...tasks import Discrimination
from ...trajectory import inverse_participation_ratio
from ..base import Covariance, NeuronFlow, not_mse, raise_if


def enumerated_response(
    w: Any,
    distribution: Ising | tuple[np.ndarray, np.ndarray] | Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """f(w) = ½E[sgn⟨w, X⟩ X] of a sign-symmetric distribution, summed over its states.

    Args:
        w: The field, (size,); up to 20 sites unless atoms are given.
        distribution: An Ising stimulus; a function from the states (2ⁿ, n) to unnormalized
            weights; or a pair of atoms (count, size) and their weights.

    Example:
        >>> enumerated_response([2.0, 1.0, 0.0], lambda states: np.ones(8)).tolist()
        [0.5, 0.0, 0.0]
    """
    w = as_field(w)
    if isinstance(distribution, tuple):
        states, weights = np.asarray(distribution[0]), np.asarray(distribution[1], np.float64)
    else:
        states = enumerate_states(w.size)
        weights = (
            ising_weights(states, distribution.coupling)
            if isinstance(distribution, Ising)
            else np.asarray(distribution(states), np.float64)
        )
    if states.ndim != 2 or states.shape[1] != w.size or weights.shape != states.shape[:1]:
        raise InputError(
            f"The states must have shape (count, {w.size}) and their weights (count,), got "
            f"{states.shape} and {weights.shape}."
        )
    total = np.zeros(w.size)
    # In blocks: a million states of 20 sites at once would take 168 MB.
    for start in range(0, len(states), 2**16):
        block = states[start : start + 2**16].astype(np.float64)
        s = block @ w
        s[np.abs(s) <= TIE_TOLERANCE * np.abs(w).sum()] = 0  # a tie, but for rounding of the sum
        total += (weights[start : start + 2**16] * np.sign(s)) @ block
    return 0.5 * total / weights.sum()


@dataclasses.dataclass(frozen=True)
class HypercubeBump:
    """The steady state of one neuron on ±1 data in which one site outweighs all others."""

    field: np.ndarray  # w*, of the lattice's shape
    dominance: float  # Σ_{j≠i}|w*_j| / |w*_i|
    loss: float  # population loss at w*, if it holds
    ipr: float  # inverse participation ratio of w*
    holds: bool  # whether w* is an exact, stable steady state: dominance < 1 and w*_i > 0


def bump(
    rows: Sequence[np.ndarray],
    labels: Sequence[float] | np.ndarray = (0.0, 1.0),
    priors: Sequence[float] | None = None,
    site: int | tuple[int, ...] = 0,
    l2: float = 0.0,
) -> HypercubeBump:
    """The single-bump steady state from covariance rows: Σ̄ w* = Σ_c p_c y_c Σ_c e_i.

    Where |w_i| > Σ_{j≠i}|w_j| the sign of ⟨w, x⟩ is that of w_i x_i, so that f_c = ½Σ_c e_i and the
    flow is linear. With labels 0 and 1, w* = (Σ₀ + Σ₁)⁻¹Σ₁e_i. If Σ̄ is singular w* is the shortest
    solution, which a small start finds; its dominance is then at least one, as an entry cannot
    outweigh the others in a sum that vanishes.

    Args:
        rows: Covariance row of each class, of the lattice's shape, 1 at the origin.
        labels: Label of each class.
        priors: Probability of each class; equal by default.
        site: Where the bump sits: coordinates, or a number in C order.
        l2: Penalty on Σw².
    """
    priors = [1 / len(rows)] * len(rows) if priors is None else priors
    mean = sum(p * spectrum(row) for p, row in zip(priors, rows, strict=True))
    pull = sum(p * y * spectrum(row) for p, y, row in zip(priors, labels, rows, strict=True))
    stiffness = np.asarray(mean) + 2 * l2
    # Where no class varies nothing pulls, and a small start stays small: the shortest solution.
    regular = _regular(stiffness)
    # All covariances are circulant, so that the equation for w* is solved mode by mode.
    modes = np.where(regular, pull, 0) / np.where(regular, stiffness, 1)
    field = row_of(modes)
    peak = field.flat[0]
    rest = np.abs(field).sum() - abs(peak)
    dominance = float(rest / abs(peak)) if peak else np.inf
    constant = sum(p * y**2 for p, y in zip(priors, labels, strict=True))
    place = site if isinstance(site, tuple) else np.unravel_index(site % field.size, field.shape)
    return HypercubeBump(
        field=shifted(field, [int(i) for i in place], field.ndim),
        dominance=dominance,
        loss=float(constant - 0.5 * np.mean(pull * modes)),
        ipr=float(inverse_participation_ratio(field, field.ndim))
        if field.any()
        else 1 / field.size,
        # With a singular Σ̄ the dominance is at least one, but for rounding.
        holds=bool(dominance < 1 and peak > 0 and regular.all()),
    )


def _regular(stiffness: np.ndarray) -> np.ndarray:
    """Which eigenvalues of Σ̄ differ from zero by more than rounding."""
    return stiffness > stiffness.size * np.finfo(np.float64).eps * stiffness.max()


def no_bump(task: Discrimination, approximate: bool = False) -> str:
    """Why `hypercube_bump` does not cover a task; empty if it does."""
    if reason := not_mse("hypercube_bump", task, l1=False):
        return reason
    for stimulus in task.stimuli:
        signs = isinstance(marginal := stimulus.marginal(), TwoPoint) and marginal.scale == 1
        if not (signs or approximate):
            return (
                f"hypercube_bump needs stimuli that are ±1 at each site, got {show(stimulus)} with "
                f"marginal {show(marginal)}. For nearly ±1 data set approximate=True."
            )
        if not (stimulus.sign_symmetric and stimulus.translation_invariant):
            return (
                "hypercube_bump needs sign-symmetric, translation-invariant stimuli, but "
                f"{show(stimulus)} is not."
            )
    return ""


def hypercube_bump(
    task: Discrimination, site: int | tuple[int, ...] = 0, approximate: bool = False
) -> HypercubeBump:
    """The single-bump steady state of one ReLU neuron on a task whose stimuli are ±1.

    Args:
        task: Mean squared error, one number per class, no L1 penalty.
        site: Where the bump sits.
        approximate: Accept stimuli that are only nearly ±1, such as `NLGP` at gain 100.

    Raises:
        InputError: If the task is another, or its stimuli are not ±1.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising(40, coupling=j) for j in (0.3, 0.7)))
        >>> round(hypercube_bump(task).loss, 6)
        0.365626
    """
    raise_if(no_bump(task, approximate))
    return bump(
        [s.covariance() for s in task.stimuli],
        task.targets()[:, 0],
        task.priors,
        site,
        float(task.l2),
    )


def ising_bump(j0: float, j1: float, distance: Any) -> np.ndarray:
    """The bump on an infinite Ising ring with labels 0 and 1: a point and an exponential.

    w*_d = sinh 2J₀/(sinh 2J₀ + sinh 2J₁) δ_d0
    + tanh(J₁ − J₀)/(2 sinh(J₀ + J₁)) tanh((J₀ + J₁)/2)^|d|.

    Example:
        >>> ising_bump(0.3, 0.7, [0, 1, 2]).round(4).tolist()
        [0.4122, 0.0747, 0.0345]
    """
    d = np.abs(np.asarray(distance, np.float64))
    point = np.sinh(2 * j0) / (np.sinh(2 * j0) + np.sinh(2 * j1))
    tail = np.tanh(j1 - j0) / (2 * np.sinh(j0 + j1)) * np.tanh((j0 + j1) / 2) ** d
    return np.where(d == 0, point + tail, tail)


@dataclasses.dataclass(frozen=True)
class FixedPointIteration:
    """The iterates of `fixed_point_iteration`."""

    fields: np.ndarray  # the start first, (iterations + 1, size)
    losses: np.ndarray  # population loss at each
    converged: bool  # whether the last change was below the tolerance

    @property
    def iterations(self) -> int:
        """How often the map was applied."""
        return len(self.losses) - 1


def fixed_point_iteration(
    flow: NeuronFlow, w: Any, tol: float = 1e-10, max_steps: int = 500
) -> FixedPointIteration:
    """Find a steady state by iterating w ← Σ̄⁻¹ 2Σ p_c y_c f_c(w).

    If no label is negative the loss is a difference of convex functions, and each step minimizes
    the upper bound in which the subtracted one is replaced by its tangent: the loss never rises. On
    ±1 data the iteration is finite. It may end in another steady state than gradient flow from the
    same start. If no class varies in some direction, each step is the shortest solution, as in
    `bump`.

    Args:
        flow: Population loss of one ReLU neuron, from any theory's `flow`; no L1 penalty.
        w: Start, (size,).
        tol: Largest change of an entry to stop at.
        max_steps: Largest number of iterations.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising(40, coupling=j) for j in (0.3, 0.7)))
        >>> flow = lf.theory.ExactIsing().flow(task, lf.networks.SingleNeuron())
        >>> iteration = fixed_point_iteration(flow, np.random.default_rng(0).normal(size=40))
        >>> round(float(iteration.losses[-1]), 6)
        0.365626
    """
    if float(flow.l1):
        raise InputError(
            f"`l1` must be 0 for fixed_point_iteration, got {float(flow.l1)}. "
            "Follow the gradient flow instead."
        )
    fields, losses, converged = [as_field(w)], [], False
    with jax.enable_x64(True):
        inverse = _inverse(flow.covariance, 2 * float(flow.l2))
        loss, next_field = _frozen_step(flow, inverse, jnp.asarray(fields[0]))
        losses.append(float(loss))
        while not converged and len(losses) <= max_steps:
            fields.append(np.asarray(next_field))
            loss, next_field = _frozen_step(flow, inverse, next_field)
            losses.append(float(loss))
            converged = bool(np.abs(fields[-1] - fields[-2]).max() < tol)
    return FixedPointIteration(np.stack(fields), np.array(losses), converged)


@jax.jit
def _frozen_step(
    flow: NeuronFlow, inverse: Covariance, w: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Loss at w, and the next iterate: the minimum of the loss with the gate frozen at w."""
    toward = jnp.zeros_like(w)
    for pull, response in zip(flow.pull, flow.responses, strict=True):
        toward = toward + pull * response(w)
    return flow({"weights": w[None, :]})[0], inverse(toward)


def _inverse(covariance: Covariance, ridge: float) -> Covariance:
    """Multiplication by the pseudoinverse of Σ̄ + ridge."""
    values, size = np.asarray(covariance.values), math.prod(covariance.shape)
    dense = values.shape == (size, size)
    modes, vectors = np.linalg.eigh(values) if dense else (values, None)
    regular = _regular(modes + ridge)
    modes = np.where(regular, 1 / np.where(regular, modes + ridge, 1), 0)
    return Covariance(
        jnp.asarray(modes if vectors is None else (vectors * modes) @ vectors.T), covariance.shape
    )


def bump_response(
    covariance: np.ndarray,
    sites: Sequence[int],
    heights: Sequence[float],
    fourth: np.ndarray | None = None,
) -> np.ndarray:
    """Response to a field with one, two or three nonzero entries, for sign-symmetric ±1 data.

    With C_i = Σe_i and heights |α| ≥ |β| ≥ |γ| (signs go with the C): ½C_i if |α| > |β| + |γ|;
    ¼(C_i + C_j) if |α| = |β| and γ = 0; and a majority vote, ¼(C_i + C_j + C_k − E[X_i X_j X_k X]),
    if 0 < |α| < |β| + |γ|. On the border between the first and the last it is their mean. (The
    notes miss the factors ½ and ¼, and the vote.)

    Args:
        covariance: Σ, (size, size).
        sites: One to three different sites.
        heights: The entries there.
        fourth: E[X_i X_j X_k X], (size,); needed for a majority vote.
    """
    if not 1 <= len(sites) <= 3 or len(set(sites)) < len(sites) or len(heights) != len(sites):
        raise InputError(
            "Give one to three different sites and a height for each, got sites "
            f"{list(sites)} and heights {list(heights)}. Use `enumerated_response` for more."
        )
    order = np.argsort(-np.abs(heights), kind="stable")
    sizes = np.append(np.abs(heights)[order], [0.0, 0.0])[:3]
    signs = np.sign(np.asarray(heights, np.float64)[order])
    columns = [sign * covariance[:, sites[k]] for sign, k in zip(signs, order, strict=True)]
    largest = 0.5 * columns[0]
    excess = sizes[0] - sizes[1] - sizes[2]
    if excess > 0 or sizes[0] == 0:
        return largest
    if sizes[2] == 0:  # two equal bumps: a tie half of the time
        return 0.25 * (columns[0] + columns[1])
    if fourth is None:
        raise InputError(
            f"None of the heights {list(heights)} outweighs the others, so that a fourth moment "
            "is needed. Give E[X_i X_j X_k X] as `fourth`; for Ising rings it is `ising_fourth`."
        )
    majority = 0.25 * (sum(columns) - np.prod(signs) * fourth)
    return majority if excess < 0 else 0.5 * (largest + majority)


def ising_fourth(size: int, coupling: float, sites: Sequence[int]) -> np.ndarray:
    """E[X_i X_j X_k X_l] of an Ising ring at every l, (size,), given the other three sites.

    It is (t^D + t^(N−D))/(1 + t^N), where D is the sum of the first and last gap of the sorted
    sites.
    """
    t = np.tanh(coupling)
    four = np.sort(
        np.concatenate([np.tile(sites, (size, 1)), np.arange(size)[:, None]], axis=1), axis=1
    )
    inner = four[:, 1] - four[:, 0] + four[:, 3] - four[:, 2]
    return (t**inner + t ** (size - inner)) / (1 + t**size)
