"""Gated linear networks: the loss is quadratic, so that learning is known for all times.

With x̃ = g(x) ⊗ x, A = E[x̃x̃ᵀ] and b = E[Y x̃] the output is ⟨w, x̃⟩/K and, under the loss without ½,
ẇ = (2/K)(b − Aw/K). (The notes have half of it, for their loss with ½, and print it without the inner 1/K.)
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from ..._spec import Count, Row, declare
from ..._types import Whole
from ...errors import Said, refuse, show
from ...networks import GatedLinear, Network
from ...networks.base import Params
from ...networks.gates import Gates
from ...tasks import Discrimination
from ..base import Coverage, Flow, Theory, not_covered, not_squares, require, swept
from ..checks.draws import jackknife
from .moments import gate_moments, is_known, too_large

DRAWS = 200_000  # of each class, where moments must be measured
SMALLEST_MODE = (
    1e-12  # an eigenvalue below this fraction of the largest is rounding: nothing moves along it
)


@dataclasses.dataclass(frozen=True)
class GatedSolution:
    """Learning of a gated linear network, for all times and starts.

    Attributes:
        second: A = E[x̃x̃ᵀ], (K·N, K·N).
        first: b = E[Y x̃], (K·N,).
        constant: E[Y²], the loss of a silent network.
        neurons: K.
        shape: The lattice.
        l2: Penalty on Σw².
        groups: A and b of independent groups of draws, with an axis of length one for what is known exactly.
    """

    second: np.ndarray
    first: np.ndarray
    constant: float
    neurons: int
    shape: tuple[int, ...]
    l2: float
    groups: tuple[np.ndarray, np.ndarray]

    @property
    def exact(self) -> bool:
        """Whether nothing was measured on draws."""
        return len(self.groups[0]) == len(self.groups[1]) == 1

    @functools.cached_property
    def _modes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues of A + K²λ₂, their eigenvectors, and where each mode ends; what never moves has no end."""
        values, vectors = np.linalg.eigh(self.second)
        values = values + self.neurons**2 * self.l2
        moving = values > SMALLEST_MODE * values.max()
        values = np.where(moving, values, 0.0)
        ends = np.where(
            moving, self.neurons * (vectors.T @ self.first) / np.where(moving, values, 1), 0.0
        )
        return values, vectors, ends

    @property
    def rates(self) -> np.ndarray:
        """Rate 2λ/K² at which each mode nears its end, fastest first; zero for what never moves.

        (Modes of large eigenvalues are the fast ones. The notes look for the smallest.)
        """
        return 2 * self._modes[0][::-1] / self.neurons**2

    def weights(self, times: Any, initial: Any = None) -> np.ndarray:
        """Receptive fields w(t) = K A⁻¹b + exp(−2At/K²)(w₀ − K A⁻¹b).

        Args:
            times: Flow times, (time,); `inf` for the end.
            initial: Fields at time zero, (K, *shape); zeros if left out.

        Returns:
            (time, K, *shape).
        """
        times = np.atleast_1d(np.asarray(times, np.float64))
        values, vectors, ends = self._modes
        begin = vectors.T @ self._start(initial)
        # A mode that never moves keeps its first value, also at infinite time, where 0 · ∞ would say nothing.
        turns = np.where(values > 0, values, 1.0)[None, :] * times[:, None] * (2 / self.neurons**2)
        modes = np.where(values > 0, ends + np.exp(-turns) * (begin - ends), begin)
        return (modes @ vectors.T).reshape(len(times), self.neurons, *self.shape)

    def limit(self, initial: Any = None) -> np.ndarray:
        """Receptive fields at the end, (K, *shape): K A⁻¹b, and what the start has where nothing moves."""
        return self.weights(math.inf, initial)[0]

    def loss(self, weights: Any) -> Any:
        """Population loss, penalty included, at fields (…, K, *shape)."""
        w = np.asarray(weights, np.float64)
        w = w.reshape(*w.shape[: w.ndim - 1 - len(self.shape)], -1)
        square = np.einsum("...i,ij,...j->...", w, self.second, w) / self.neurons**2
        return (
            self.constant
            - 2 / self.neurons * w @ self.first
            + square
            + self.l2 * np.sum(w**2, axis=-1)
        )

    @functools.cached_property
    def _limits(self) -> tuple[float, float]:
        """Limiting loss and its standard error."""
        ridge = self.neurons**2 * self.l2
        found = _limit_loss(self.second, self.first, self.constant, ridge)
        if self.exact:
            return found, 0.0
        count = max(len(part) for part in self.groups)
        second, first = self.groups
        left = [
            _limit_loss(_without(second, group), _without(first, group), self.constant, ridge)
            for group in range(count)
        ]
        # Noise in b lowers the loss, by about as many parts in the number of draws as there are weights: taken off.
        return count * found - (count - 1) * float(np.mean(left)), float(jackknife(np.array(left)))

    @property
    def limiting_loss(self) -> float:
        """Loss at the end, E[Y²] − bᵀA⁻¹b; where moments were measured, corrected for the fit to their noise."""
        return self._limits[0]

    @property
    def limiting_error(self) -> float:
        """Standard error of the limiting loss; zero where nothing was measured."""
        return self._limits[1]

    def time_to(self, fraction: float) -> float:
        """Flow time at which the loss has fallen by this fraction of all that it will, from fields of zeros."""
        from scipy.optimize import brentq

        values, vectors, ends = self._modes
        gains = values * ends**2
        if not 0 < fraction < 1:
            refuse(
                "`fraction`",
                fraction,
                "between 0 and 1",
                "One half is when half of the fall is done.",
            )
        if gains.sum() <= SMALLEST_MODE * self.constant:  # nothing to learn
            return math.inf
        rates = 4 / self.neurons**2 * values

        def left(log_time: float) -> float:
            return float(gains @ np.exp(-rates * math.exp(log_time))) / gains.sum() - (1 - fraction)

        low = high = -math.log(rates.max())
        while left(low) < 0:
            low -= 1
        while left(high) > 0:
            high += 1
        log_time: Any = brentq(left, low, high, xtol=1e-13)
        return math.exp(log_time)

    def _start(self, initial: Any) -> np.ndarray:
        fields = (self.neurons, *self.shape)
        if initial is None:
            return np.zeros(math.prod(fields))
        array = Row(axes=None).check("initial", initial)
        if array.shape != fields:
            refuse(
                "`initial`",
                Said(f"shape {array.shape}"),
                f"of shape {fields}",
                "Give one field a gate.",
            )
        return array.ravel()


def _without(part: np.ndarray, group: int) -> np.ndarray:
    return part[0] if len(part) == 1 else np.delete(part, group, axis=0).mean(axis=0)


def _limit_loss(second: np.ndarray, first: np.ndarray, constant: float, ridge: float) -> float:
    try:  # a tenth of the time, where no mode is without an end
        root = np.linalg.cholesky(second + ridge * np.eye(len(second)))
        if np.diagonal(root).min() ** 2 > 1e-6 * np.diagonal(root).max() ** 2:
            along = scipy.linalg.solve_triangular(root, first, lower=True)
            return constant - float(along @ along)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(second)
    values, along = values + ridge, vectors.T @ first
    moving = values > SMALLEST_MODE * values.max()
    return constant - float(np.sum(along[moving] ** 2 / values[moving]))


def gated_solution(
    task: Discrimination, gates: Gates, *, draws: int | None = DRAWS, seed: int = 0
) -> GatedSolution:
    """Solve a gated linear network: A, b, w(t), its limit and the limiting loss.

    Half-space gates are known in closed form one by one for every sign-symmetric law, A = ½Σ̄ and b = Σ p_c y_c f_c(v),
    as far as f is: on elliptical, Ising and pulse data, and on Gaussian copulas for a gate that looks at one site.
    What two such gates share is known on elliptical data. Finite laws (pulses, Ising rings up to 14 sites) are summed
    for any gates. Everything else is measured.

    Args:
        task: Mean squared error with one number a class, no L1 penalty.
        gates: Any gates, such as `lf.networks.gates.Bump()`.
        draws: Draws of each class where moments must be measured; None to refuse to measure.
        seed: Of those draws.

    Raises:
        InputError: When the task is another, or something is not known and must not be measured.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> round(gated_solution(task, lf.networks.gates.Bump()).limiting_loss, 5)
        0.36563
    """
    for name, value, kind in (("task", task, Discrimination), ("gates", gates, Gates)):
        if not isinstance(value, kind):
            advice = "See `lf.Discrimination` and `lf.networks.gates`; a function of yours is a subclass of `Gates`."
            refuse(f"`{name}`", value, f"a {kind.__name__}", advice)
    require(not_squares("gates", task))
    if task.l1 != 0:
        refuse(
            "`l1` of the task",
            task.l1,
            "zero",
            "Train it: with an L1 penalty the flow is not linear.",
        )
    found = _groups(
        task, gates, None if draws is None else Count(1000, 10**8).check("draws", draws), seed
    )
    if found is None:
        advice = "Give `draws` to measure them."
        refuse(
            "Moments of these gates",
            Said("some that are not known"),
            "known in closed form",
            advice,
        )
    second, first = found
    return GatedSolution(
        second=second.mean(axis=0),
        first=first.mean(axis=0),
        constant=_constant(task),
        neurons=gates.num_gates,
        shape=task.shape,
        l2=float(task.l2),
        groups=found,
    )


def _constant(task: Discrimination) -> float:
    return float(np.dot(task.priors, task.targets()[:, 0] ** 2))


def _groups(
    task: Discrimination, gates: Gates, draws: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """A and b, each with an axis of groups; None where something is not known and must not be measured."""
    second, first = np.zeros((1, 1, 1)), np.zeros((1, 1))
    parts = zip(task.stimuli, task.priors, task.targets()[:, 0], strict=True)
    for index, (stimulus, prior, label) in enumerate(parts):
        moments = gate_moments(stimulus, gates, draws, seed + index, pulls=bool(label))
        if moments is None:
            return None
        second = second + prior * moments.second
        # Of a class that does not pull nothing enters b, not even an axis of groups.
        first = first + (
            prior * label * moments.first if label else np.zeros((1, moments.first.shape[1]))
        )
    return second, first


class QuadraticFlow(Flow):
    """L = E[Y²] − (2/K)⟨b, w⟩ + wᵀAw/K², and its gradient."""

    second: jax.Array
    first: jax.Array
    constant: jax.Array
    l1: jax.Array
    l2: jax.Array

    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient."""
        fields = params["weights"]
        w, count = fields.ravel(), fields.shape[0]
        back = self.second.astype(w.dtype) @ w / count
        pull = self.first.astype(w.dtype)
        loss = self.constant + (jnp.vdot(w, back) - 2 * jnp.vdot(w, pull)) / count
        loss = loss + self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        gradient = 2 / count * (back - pull) + self.l1 * jnp.sign(w) + 2 * self.l2 * w
        return loss, {"weights": gradient.reshape(fields.shape)}


class GatedFlow(Theory):
    """Learning of a `GatedLinear` network: exact where `gated_solution` knows the moments, else with measured ones.

    `gated_solution(task, gates).weights(times, initial)` is the same in closed form.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)))
        >>> network = lf.networks.GatedLinear(lf.networks.gates.Bump(copies=2))
        >>> lf.solve(task, GatedFlow(), network=network, times=[0, 10]).weights.shape
        (1, 2, 2, 16)
    """

    draws: Whole = declare(
        Count(1000, 10**8),
        default=DRAWS,
        help="draws of each class, where moments must be measured",
    )
    seed: Whole = declare(Count(0, 2**62), default=0, help="of those draws")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """Gated linear networks under mean squared error; exact where no moment must be measured."""
        # Of this class exactly: one derived from it may have another readout.
        if type(network) is not GatedLinear:
            return not_covered(
                f"The network for GatedFlow must be a GatedLinear, got {show(network)}. "
                "For example `lf.networks.GatedLinear()`."
            )
        gates, labels = network.gates, task.targets()[:, 0]
        reason = not_squares("gates", task) or swept("gates", network)
        if reason := reason or too_large(gates, task.size):
            return not_covered(reason)
        known = [
            is_known(stimulus, gates, pulls=bool(label))
            for stimulus, label in zip(task.stimuli, labels, strict=True)
        ]
        if not all(second for _, second in known):
            if reason := too_large(gates, task.size, measured=True):
                return not_covered(reason)
        return Coverage(True, exact=all(first and second for first, second in known))

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient from the moments of the gated inputs."""
        self.covers(task, network).require()
        assert isinstance(network, GatedLinear)
        found = _groups(task, network.gates, self.draws, self.seed)
        assert found is not None
        with jax.enable_x64(True):
            return QuadraticFlow(
                second=jnp.asarray(found[0].mean(axis=0)),
                first=jnp.asarray(found[1].mean(axis=0)),
                constant=jnp.asarray(_constant(task)),
                l1=jnp.asarray(float(task.l1)),
                l2=jnp.asarray(float(task.l2)),
            )
