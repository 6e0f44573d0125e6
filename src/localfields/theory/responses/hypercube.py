"""Exact responses and steady states for ±1 data: enumeration, meet in the middle, and the single-bump theorem.

On {±1}^N the response f(w) = ½E[sgn⟨w, X⟩ X] is constant within the chambers that the hyperplanes ⟨w, x⟩ = 0 cut, so
gradient flow is linear in each, and where one entry outweighs all others its rest is a closed form. Ties are
halved, sgn 0 = 0, which by sign symmetry is what either convention gives.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import Said, refuse
from ...lattice import row_of, shifted, spectrum
from ...marginals import TwoPoint
from ...stimuli import Ising
from ...stimuli._ring import TIE, as_field, enumerate_states, ising_weights
from ...tasks import Discrimination
from ...trajectory import inverse_participation_ratio
from ..base import Covariance, NeuronFlow

Atoms = tuple[np.ndarray, np.ndarray]


def enumerated_response(
    w: Any, law: Ising | Atoms | Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """f(w) = ½E[sgn⟨w, X⟩ X] of a sign-symmetric law, summed over its states.

    Args:
        w: The field, (size,); up to 20 sites unless the law is given by atoms.
        law: An Ising stimulus; a function of the states (2ⁿ, n) that returns weights in any units; or a pair of atoms
            (count, size) and their weights.

    Returns:
        (size,).

    Example:
        >>> enumerated_response([2.0, 1.0, 0.0], lambda states: np.ones(8)).tolist()  # independent spins
        [0.5, 0.0, 0.0]
    """
    w = as_field(w)
    if isinstance(law, tuple):
        states, weights = np.asarray(law[0]), np.asarray(law[1], np.float64)
    else:
        states = enumerate_states(w.size)
        weights = (
            ising_weights(states, law.coupling)
            if isinstance(law, Ising)
            else np.asarray(law(states), np.float64)
        )
    if states.ndim != 2 or states.shape[1] != w.size or weights.shape != states.shape[:1]:
        got = Said(f"states of shape {states.shape} and weights of shape {weights.shape}")
        refuse(
            "The law",
            got,
            f"(count, {w.size}) and (count,)",
            "Give one weight a state, one column a site.",
        )
    total = np.zeros(w.size)
    for start in range(
        0, len(states), 2**16
    ):  # a million states of 20 sites at once would take 168 MB
        part = states[start : start + 2**16].astype(np.float64)
        s = part @ w
        s[np.abs(s) <= TIE * np.abs(w).sum()] = 0
        total += (weights[start : start + 2**16] * np.sign(s)) @ part
    return 0.5 * total / weights.sum()


@dataclasses.dataclass(frozen=True)
class Bump:
    """The steady state of one neuron on ±1 data in which one site outweighs all others.

    Attributes:
        field: w*, of the lattice's shape.
        dominance: Σ_{j≠i}|w*_j| / |w*_i|.
        loss: Population loss at w*, when it holds.
        ipr: Inverse participation ratio of w*.
        holds: Whether w* is an exact, stable steady state: dominance below one, and w*_i positive.
    """

    field: np.ndarray
    dominance: float
    loss: float
    ipr: float
    holds: bool


def bump(
    rows: Sequence[np.ndarray],
    labels: Sequence[float] | np.ndarray = (0.0, 1.0),
    priors: Sequence[float] | None = None,
    site: int | tuple[int, ...] = 0,
    l2: float = 0.0,
) -> Bump:
    """The single-bump steady state from covariance rows: Σ̄ w* = Σ_c p_c y_c Σ_c e_i.

    Where |w_i| > Σ_{j≠i}|w_j| the sign of ⟨w, x⟩ is that of w_i x_i, so f_c = ½Σ_c e_i and the flow is linear. With
    labels 0 and 1, w* = (Σ₀ + Σ₁)⁻¹Σ₁e_i. Where Σ̄ is singular w* is the shortest solution, which a small start finds;
    its dominance is then at least one, as an entry cannot outweigh the others in a sum that vanishes.

    Args:
        rows: Covariance row of each class, of the lattice's shape, 1 at the origin.
        labels: Label of each class.
        priors: Probability of each class; equal if left out.
        site: Where the bump sits: coordinates, or a number in C order.
        l2: Penalty on Σw².

    Example:
        >>> found = bump([Ising(40, coupling=j).covariance() for j in (0.3, 0.7)])
        >>> found.holds, round(found.dominance, 3), round(found.ipr, 4)
        (True, 0.674, 0.8537)
    """
    priors = [1 / len(rows)] * len(rows) if priors is None else priors
    mean = sum(p * spectrum(row) for p, row in zip(priors, rows, strict=True))
    pull = sum(p * y * spectrum(row) for p, y, row in zip(priors, labels, rows, strict=True))
    stiffness = np.asarray(mean) + 2 * l2
    # Where no class varies nothing pulls, and a small start stays small: the least of all solutions.
    seen = _seen(stiffness)
    modes = np.where(seen, pull, 0) / np.where(seen, stiffness, 1)
    field = row_of(modes)
    here = field.flat[0]
    rest = np.abs(field).sum() - abs(here)
    dominance = float(rest / abs(here)) if here else np.inf
    constant = sum(p * y**2 for p, y in zip(priors, labels, strict=True))
    place = site if isinstance(site, tuple) else np.unravel_index(site % field.size, field.shape)
    return Bump(
        field=shifted(field, [int(i) for i in place], field.ndim),
        dominance=dominance,
        loss=float(constant - 0.5 * np.mean(pull * modes)),
        ipr=float(inverse_participation_ratio(field, field.ndim))
        if field.any()
        else 1 / field.size,
        holds=bool(
            dominance < 1 and here > 0 and seen.all()
        ),  # else it is at least one, but for rounding
    )


def _seen(stiffness: np.ndarray) -> np.ndarray:
    """Which eigenvalues of Σ̄ are more than rounding of zero."""
    return stiffness > stiffness.size * np.finfo(np.float64).eps * stiffness.max()


def hypercube_bump(
    task: Discrimination, site: int | tuple[int, ...] = 0, approximate: bool = False
) -> Bump:
    """The single-bump steady state of one ReLU neuron on a task whose stimuli are ±1.

    Args:
        task: Mean squared error, one number a class, no L1 penalty.
        site: Where the bump sits.
        approximate: Take it for stimuli that are only nearly ±1, such as `NLGP` at gain 100, too.

    Raises:
        InputError: When the task is another, or its stimuli are not ±1.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Ising(40, coupling=0.3), lf.stimuli.Ising(40, coupling=0.7))
        >>> round(hypercube_bump(task).loss, 6)
        0.365626
    """
    task.require_one("for a bump")
    if task.loss != "mse" or task.outputs != 1 or task.l1 != 0:
        got = Said(f"loss {task.loss!r}, labels {task.labels!r}, l1 = {task.l1}")
        advice = "Use loss='mse' and no L1 penalty."
        refuse(
            "The task of a bump",
            got,
            "mean squared error with one number a class and l1 = 0",
            advice,
        )
    for stimulus in task.stimuli:
        signs = isinstance(marginal := stimulus.marginal(), TwoPoint) and marginal.scale == 1
        if not (signs or approximate):
            got, advice = (
                Said(f"{stimulus!r} with marginal {marginal!r}"),
                "For nearly ±1 data set approximate=True.",
            )
            refuse("Every stimulus for a bump", got, "±1 at each site", advice)
        if not (stimulus.sign_symmetric and stimulus.translation_invariant):
            advice = "Use a stimulus with both symmetries."
            refuse(
                "Every stimulus for a bump",
                stimulus,
                "sign symmetric and translation invariant",
                advice,
            )
    return bump(
        [s.covariance() for s in task.stimuli],
        task.targets()[:, 0],
        task.priors,
        site,
        float(task.l2),
    )


def ising_bump(j0: float, j1: float, distance: Any) -> np.ndarray:
    """The bump on an infinite Ising ring, labels 0 and 1: a point and an exponential.

    w*_d = sinh 2J₀/(sinh 2J₀ + sinh 2J₁) δ_d0 + tanh(J₁ − J₀)/(2 sinh(J₀ + J₁)) tanh((J₀ + J₁)/2)^|d|.

    Example:
        >>> ising_bump(0.3, 0.7, [0, 1, 2]).round(4).tolist()
        [0.4122, 0.0747, 0.0345]
    """
    d = np.abs(np.asarray(distance, np.float64))
    point = np.sinh(2 * j0) / (np.sinh(2 * j0) + np.sinh(2 * j1))
    tail = np.tanh(j1 - j0) / (2 * np.sinh(j0 + j1)) * np.tanh((j0 + j1) / 2) ** d
    return np.where(d == 0, point + tail, tail)


@dataclasses.dataclass(frozen=True)
class Iteration:
    """A run of `fixed_point_iteration`.

    Attributes:
        fields: Every iterate, the start first, (iterations + 1, size).
        losses: Population loss at each.
        settled: Whether the last change was below the tolerance.
    """

    fields: np.ndarray
    losses: np.ndarray
    settled: bool

    @property
    def iterations(self) -> int:
        """How often the map was applied."""
        return len(self.losses) - 1


def fixed_point_iteration(
    flow: NeuronFlow, w: Any, tol: float = 1e-10, most: int = 500
) -> Iteration:
    """Solve for a steady state by freezing the response and solving the rest: w ← Σ̄⁻¹ 2Σ p_c y_c f_c(w).

    The loss is a difference of convex functions where no label is negative, and each step minimizes the upper bound in
    which the subtracted one is replaced by its tangent: the loss never rises. On ±1 data the iteration is finite. The
    rest it finds need not be the one that gradient flow finds from the same start. Where no class varies in some
    direction, each step is the shortest solution, as for `bump`.

    Args:
        flow: Population loss of one ReLU neuron, from any theory's `flow`; no L1 penalty.
        w: Where to start, (size,).
        tol: Largest change of an entry to stop at.
        most: Iterations at most.

    Example:
        >>> import localfields as lf
        >>> from localfields.theory.responses.ising import ExactIsing
        >>> task = lf.Discrimination(lf.stimuli.Ising(40, coupling=0.3), lf.stimuli.Ising(40, coupling=0.7))
        >>> flow = ExactIsing().flow(task, lf.networks.SingleNeuron())
        >>> run = fixed_point_iteration(flow, np.random.default_rng(0).normal(size=40))
        >>> round(float(run.losses[-1]), 6)
        0.365626
    """
    if float(flow.l1):
        refuse("`l1`", float(flow.l1), "0 for the iteration", "Follow the gradient flow instead.")
    fields, losses, settled = [as_field(w)], [], False
    with jax.enable_x64(True):
        inverse = _inverse(flow.covariance, 2 * float(flow.l2))
        loss, after = _frozen_step(flow, inverse, jnp.asarray(fields[0]))
        losses.append(float(loss))
        while not settled and len(losses) <= most:
            fields.append(np.asarray(after))
            loss, after = _frozen_step(flow, inverse, after)
            losses.append(float(loss))
            settled = bool(np.abs(fields[-1] - fields[-2]).max() < tol)
    return Iteration(np.stack(fields), np.array(losses), settled)


@jax.jit
def _frozen_step(
    flow: NeuronFlow, inverse: Covariance, w: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Loss at w, and the next iterate."""
    toward = jnp.zeros_like(w)
    for pull, response in zip(flow.pull, flow.responses, strict=True):
        toward = toward + pull * response(w)
    return flow({"weights": w[None, :]})[0], inverse(toward)


def _inverse(covariance: Covariance, ridge: float) -> Covariance:
    """Multiplication by the inverse of Σ̄ + ridge, which leaves out directions in which there is none."""
    values, size = np.asarray(covariance.values), math.prod(covariance.shape)
    dense = values.shape == (size, size)
    modes, vectors = np.linalg.eigh(values) if dense else (values, None)
    seen = _seen(modes + ridge)
    modes = np.where(seen, 1 / np.where(seen, modes + ridge, 1), 0)
    return Covariance(
        jnp.asarray(modes if vectors is None else (vectors * modes) @ vectors.T), covariance.shape
    )


def bump_response(
    covariance: np.ndarray,
    sites: Sequence[int],
    heights: Sequence[float],
    fourth: np.ndarray | None = None,
) -> np.ndarray:
    """Response to a field with one, two or three nonzero entries, for any sign-symmetric law on {±1}^N.

    With C_i = Σe_i and heights |α| ≥ |β| ≥ |γ| (signs go with the C): ½C_i if |α| > |β| + |γ|; ¼(C_i + C_j) if
    |α| = |β| and γ = 0; and a majority vote, ¼(C_i + C_j + C_k − E[X_i X_j X_k X]), if 0 < |α| < |β| + |γ|. On the
    border between first and last it is their mean. (The notes miss the factors ½ and ¼, and the vote.)

    Args:
        covariance: Σ, (size, size).
        sites: One to three different sites.
        heights: The entries there.
        fourth: E[X_i X_j X_k X], (size,); needed for a majority vote.

    Example:
        >>> bump_response(np.eye(3), [0, 1], [2.0, 1.0]).tolist()
        [0.5, 0.0, 0.0]
    """
    if not 1 <= len(sites) <= 3 or len(set(sites)) < len(sites) or len(heights) != len(sites):
        got = Said(f"sites {list(sites)} and heights {list(heights)}")
        refuse(
            "The bumps",
            got,
            "one to three different sites, a height each",
            "Use `enumerated_response` for more.",
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
        advice = "Give E[X_i X_j X_k X] as `fourth`; `ising_fourth` has it for Ising rings."
        refuse(
            "Three bumps of which none outweighs the others",
            list(heights),
            "given with a fourth moment",
            advice,
        )
    majority = 0.25 * (sum(columns) - np.prod(signs) * fourth)
    return majority if excess < 0 else 0.5 * (largest + majority)


def ising_fourth(size: int, coupling: float, sites: Sequence[int]) -> np.ndarray:
    """E[X_i X_j X_k X_l] of an Ising ring at every l, (size,): (t^D + t^(N−D))/(1 + t^N), D the two inner gaps."""
    t = np.tanh(coupling)
    four = np.sort(
        np.concatenate([np.tile(sites, (size, 1)), np.arange(size)[:, None]], axis=1), axis=1
    )
    inner = four[:, 1] - four[:, 0] + four[:, 3] - four[:, 2]
    return (t**inner + t ** (size - inner)) / (1 + t**size)
