"""Gated linear networks: the loss is quadratic, so that learning is known for all times.

With x̃ = g(x) ⊗ x, A = E[x̃x̃ᵀ] and b = E[Y x̃] the output is ⟨w, x̃⟩/K and, under the loss without
½, ẇ = (2/K)(b − Aw/K). (The notes have half of it, for their loss with ½, and print it without the
inner 1/K.)
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
from ...errors import InputError, show
from ...networks import GatedLinear, Network
from ...networks.base import Params
from ...networks.gates import Gates
from ...tasks import Discrimination
from ..base import Coverage, Flow, Theory, not_covered, not_mse, not_single, raise_if
from ..checks.sampling import jackknife
from .moments import gate_moments, is_known, too_large

NUM_MOMENT_SAMPLES = 200_000  # samples of each class if moments must be measured
# An eigenvalue below this fraction of the largest is rounding: nothing moves along its mode.
MIN_EIGENVALUE = 1e-12


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
        groups: A and b of independent groups of samples; one group if exact.
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
        """Whether nothing was measured on samples."""
        return len(self.groups[0]) == len(self.groups[1]) == 1

    @functools.cached_property
    def _modes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues of A + K²λ₂, their eigenvectors, and the limit of each mode that moves."""
        values, vectors = np.linalg.eigh(self.second)
        values = values + self.neurons**2 * self.l2
        moving = values > MIN_EIGENVALUE * values.max()
        values = np.where(moving, values, 0.0)
        limits = self.neurons * (vectors.T @ self.first) / np.where(moving, values, 1)
        return values, vectors, np.where(moving, limits, 0.0)

    @property
    def rates(self) -> np.ndarray:
        """Rate 2λ/K² at which each mode nears its limit, fastest first; zero if it never moves.

        (Modes of large eigenvalues are fast. The notes look for the smallest.)
        """
        return 2 * self._modes[0][::-1] / self.neurons**2

    def weights(self, times: Any, initial: Any = None) -> np.ndarray:
        """Receptive fields w(t) = K A⁻¹b + exp(−2At/K²)(w₀ − K A⁻¹b).

        Args:
            times: Flow times, (time,); `inf` for the end.
            initial: Fields at time zero, (K, *shape); zeros by default.

        Returns:
            (time, K, *shape).
        """
        times = np.atleast_1d(np.asarray(times, np.float64))
        fields = (self.neurons, *self.shape)
        start = np.zeros(fields) if initial is None else Row(axes=None).check("initial", initial)
        if start.shape != fields:
            raise InputError(
                f"`initial` must have shape {fields}, one field per gate, got {start.shape}."
            )
        values, vectors, ends = self._modes
        begin = vectors.T @ start.ravel()
        # A mode that never moves keeps its initial value, also at infinite time: 0 · ∞ is nan.
        decay = np.where(values > 0, values, 1.0)[None, :] * times[:, None] * (2 / self.neurons**2)
        modes = np.where(values > 0, ends + np.exp(-decay) * (begin - ends), begin)
        return (modes @ vectors.T).reshape(len(times), self.neurons, *self.shape)

    def limit(self, initial: Any = None) -> np.ndarray:
        """Receptive fields at the end, (K, *shape): K A⁻¹b, and the start where nothing moves."""
        return self.weights(math.inf, initial)[0]

    def loss(self, weights: Any) -> Any:
        """Population loss, penalty included, at fields (…, K, *shape)."""
        w = np.asarray(weights, np.float64)
        w = w.reshape(*w.shape[: w.ndim - 1 - len(self.shape)], -1)
        square = np.einsum("...i,ij,...j->...", w, self.second, w) / self.neurons**2
        linear = 2 / self.neurons * w @ self.first
        return self.constant - linear + square + self.l2 * np.sum(w**2, axis=-1)

    @functools.cached_property
    def _limits(self) -> tuple[float, float]:
        """Limiting loss and its standard error."""
        ridge = self.neurons**2 * self.l2
        loss = _limit_loss(self.second, self.first, self.constant, ridge)
        if self.exact:
            return loss, 0.0
        count = max(len(part) for part in self.groups)

        def without(part: np.ndarray, group: int) -> np.ndarray:
            return part[0] if len(part) == 1 else np.delete(part, group, axis=0).mean(axis=0)

        left_out = []
        for group in range(count):
            second, first = (without(part, group) for part in self.groups)
            left_out.append(_limit_loss(second, first, self.constant, ridge))
        # Fitting the noise of b lowers the loss, by about (number of weights)/(number of samples);
        # the jackknife corrects for it.
        return count * loss - (count - 1) * float(np.mean(left_out)), float(
            jackknife(np.array(left_out))
        )

    @property
    def limiting_loss(self) -> float:
        """Loss at the end, E[Y²] − bᵀA⁻¹b; with measured moments corrected for overfitting."""
        return self._limits[0]

    @property
    def limiting_error(self) -> float:
        """Standard error of the limiting loss; zero if nothing was measured."""
        return self._limits[1]

    def time_to(self, fraction: float) -> float:
        """Flow time by which the loss has made this fraction of its fall, from zero fields."""
        from scipy.optimize import brentq

        if not 0 < fraction < 1:
            raise InputError(f"`fraction` must be between 0 and 1, got {show(fraction)}.")
        values, _, ends = self._modes
        gains = values * ends**2
        if gains.sum() <= MIN_EIGENVALUE * self.constant:  # nothing to learn
            return math.inf
        rates = 4 / self.neurons**2 * values

        def excess(log_time: float) -> float:
            return float(gains @ np.exp(-rates * math.exp(log_time))) / gains.sum() - (1 - fraction)

        low = high = -math.log(rates.max())
        while excess(low) < 0:
            low -= 1
        while excess(high) > 0:
            high += 1
        root: Any = brentq(excess, low, high, xtol=1e-13)
        return math.exp(root)


def _limit_loss(second: np.ndarray, first: np.ndarray, constant: float, ridge: float) -> float:
    try:  # ten times faster than eigenvalues, if the matrix is well conditioned
        root = np.linalg.cholesky(second + ridge * np.eye(len(second)))
        if np.diagonal(root).min() ** 2 > 1e-6 * np.diagonal(root).max() ** 2:
            along = scipy.linalg.solve_triangular(root, first, lower=True)
            return constant - float(along @ along)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(second)
    values, along = values + ridge, vectors.T @ first
    # Along directions that no sample varies in, the weights do not move.
    moving = values > MIN_EIGENVALUE * values.max()
    return constant - float(np.sum(along[moving] ** 2 / values[moving]))


def gated_solution(
    task: Discrimination,
    gates: Gates,
    *,
    num_samples: int | None = NUM_MOMENT_SAMPLES,
    seed: int = 0,
) -> GatedSolution:
    """Solve a gated linear network: A, b, w(t), its limit and the limiting loss.

    Single half-space gates have a closed form for every sign-symmetric stimulus, A = ½Σ̄ and b = Σ
    p_c y_c f_c(v), if f has one: on elliptical, Ising and pulse data, and on Gaussian copulas for a
    gate that sees one site. Pairs of them have one on elliptical data. Finite distributions
    (pulses, Ising rings up to 14 sites) are summed for any gates. Everything else is measured.

    Args:
        task: Mean squared error with one number per class, no L1 penalty.
        gates: Any gates, such as `lf.networks.gates.Bump()`.
        num_samples: Samples of each class if moments must be measured; None to raise an error
            instead.
        seed: Seed of those samples.

    Raises:
        InputError: If the task is another, or something is not known and must not be measured.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> round(gated_solution(task, lf.networks.gates.Bump()).limiting_loss, 5)
        0.36563
    """
    for name, value, kind in (("task", task, Discrimination), ("gates", gates, Gates)):
        if not isinstance(value, kind):
            raise InputError(
                f"`{name}` must be a {kind.__name__}, got {show(value)}. "
                "See `lf.Discrimination` and `lf.networks.gates`."
            )
    raise_if(not_mse("gated_solution", task, l1=False))
    num = None if num_samples is None else Count(1000, 10**8).check("num_samples", num_samples)
    groups = _task_moments(task, gates, num, seed)
    if groups is None:
        raise InputError(
            "The moments of these gates have no closed form. Give `num_samples` to measure them."
        )
    second, first = groups
    return GatedSolution(
        second=second.mean(axis=0),
        first=first.mean(axis=0),
        constant=_mean_square_label(task),
        neurons=gates.num_gates,
        shape=task.shape,
        l2=float(task.l2),
        groups=groups,
    )


def _mean_square_label(task: Discrimination) -> float:
    return float(np.dot(task.priors, task.targets()[:, 0] ** 2))


def _task_moments(
    task: Discrimination, gates: Gates, num_samples: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """A and b, (group, …) each; None if something is not known and must not be measured."""
    second, first = np.zeros((1, 1, 1)), np.zeros((1, 1))
    parts = zip(task.stimuli, task.priors, task.targets()[:, 0], strict=True)
    for index, (stimulus, prior, label) in enumerate(parts):
        moments = gate_moments(stimulus, gates, num_samples, seed + index, pulls=bool(label))
        if moments is None:
            return None
        second = second + prior * moments.second
        # A class with label zero adds nothing to b, not even an axis of groups.
        if label:
            first = first + prior * label * moments.first
        else:
            first = first + np.zeros((1, moments.first.shape[1]))
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
        product = self.second.astype(w.dtype) @ w / count
        first = self.first.astype(w.dtype)
        loss = self.constant + (jnp.vdot(w, product) - 2 * jnp.vdot(w, first)) / count
        loss = loss + self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        gradient = 2 / count * (product - first) + self.l1 * jnp.sign(w) + 2 * self.l2 * w
        return loss, {"weights": gradient.reshape(fields.shape)}


class GatedFlow(Theory):
    """Learning of a `GatedLinear` network: exact if the moments of its gates are, else measured.

    `gated_solution(task, gates).weights(times, initial)` is the same in closed form.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)))
        >>> network = lf.networks.GatedLinear(lf.networks.gates.Bump(copies=2))
        >>> lf.solve(task, GatedFlow(), network=network, times=[0, 10]).weights.shape
        (1, 2, 2, 16)
    """

    num_samples: Whole = declare(
        Count(1000, 10**8),
        default=NUM_MOMENT_SAMPLES,
        help="samples of each class, if moments must be measured",
    )
    seed: Whole = declare(Count(0, 2**62), default=0, help="seed of those samples")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """Gated linear networks under mean squared error; exact if no moment must be measured."""
        # This class exactly: a subclass may have another readout.
        if type(network) is not GatedLinear:
            return not_covered(
                f"GatedFlow covers GatedLinear networks only, got {show(network)}. "
                "For example `lf.networks.GatedLinear()`."
            )
        gates, labels = network.gates, task.targets()[:, 0]
        name = "GatedFlow"
        reason = not_mse(name, task) or not_single(name, network) or too_large(gates, task.size)
        if reason:
            return not_covered(reason)
        exact = [
            is_known(stimulus, gates, pulls=bool(label))
            for stimulus, label in zip(task.stimuli, labels, strict=True)
        ]
        if not all(second for _, second in exact):
            if reason := too_large(gates, task.size, measured=True):
                return not_covered(reason)
        return Coverage(True, exact=all(first and second for first, second in exact))

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient from the moments of the gated inputs."""
        self.covers(task, network).require()
        assert isinstance(network, GatedLinear)
        groups = _task_moments(task, network.gates, self.num_samples, self.seed)
        assert groups is not None  # because `num_samples` are given
        with jax.enable_x64(True):
            return QuadraticFlow(
                second=jnp.asarray(groups[0].mean(axis=0)),
                first=jnp.asarray(groups[1].mean(axis=0)),
                constant=jnp.asarray(_mean_square_label(task)),
                l1=jnp.asarray(float(task.l1)),
                l2=jnp.asarray(float(task.l2)),
            )
