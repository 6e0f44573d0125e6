"""Committees on Gaussian data: preactivations are jointly normal, and the loss has a closed form.

With Q = WΣWᵀ the covariance of the preactivations under one class, the loss needs only the means
E[σ(S + b)] and, for pairs of neurons, E[σ(S + b) σ(T + c)], which `pairs` has with derivatives.
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Choice, Count, Declaration, declare, required
from ..._types import Whole
from ...errors import show
from ...networks import Committee, Network, SingleNeuron
from ...networks.base import Params
from ...tasks import Discrimination
from ..base import (
    APPROXIMATE,
    EXACT,
    Covariance,
    Coverage,
    Flow,
    Theory,
    covariance_of,
    not_covered,
    not_mse,
    not_single,
    not_symmetric,
)
from .pairs import erf_mean, erf_pair, relu_mean, relu_pair, series

# Error functions erf(slope · x/√2), by name.
ERF_SLOPES = {"erf": 1.0, "erf-unscaled": math.sqrt(2)}


class GaussianFlow(Flow):
    """A flow on Gaussian data; `gaussian_classes` returns its fields."""

    covariances: tuple[Covariance, ...]
    labels: jax.Array
    priors: jax.Array
    bias: jax.Array  # fixed biases, (K,)
    l1: jax.Array
    l2: jax.Array

    @abc.abstractmethod
    def loss(self, params: Params) -> jax.Array:
        """Population loss."""

    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient."""
        return jax.value_and_grad(self.loss)(params)


class CommitteeFlow(GaussianFlow):
    """L = Σ_c p_c (y_c² − 2y_c/K Σ_k E[σ_k] + 1/K² Σ_kl E[σ_k σ_l]), for weights and biases."""

    activation: str = eqx.field(static=True)
    terms: int = eqx.field(static=True)

    def loss(self, params: Params) -> jax.Array:
        """Population loss."""
        w, b = params["weights"], params.get("biases", self.bias)
        total = self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        for covariance, y, p in zip(self.covariances, self.labels, self.priors, strict=True):
            # Products by FFT are symmetric only up to rounding.
            q = w @ jax.vmap(covariance)(w).T
            mean, square = self.moments(0.5 * (q + q.T), b)
            total = total + p * (y**2 - 2 * y * mean + square)
        return total

    def moments(self, q: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """E[ŷ] and E[ŷ²] when the preactivations have covariance q, (K, K), and biases b, (K,)."""
        own = jnp.diagonal(q)
        if self.activation == "relu":
            return jnp.mean(relu_mean(own)), jnp.mean(relu_pair(own[:, None], own[None, :], q))
        if self.activation in ERF_SLOPES:
            slope = ERF_SLOPES[self.activation]
            q, own, b = slope**2 * q, slope**2 * own, slope * b
            pairs = erf_pair(own[:, None], own[None, :], q, b[:, None], b[None, :])
            return jnp.mean(erf_mean(own, b)), jnp.mean(pairs)
        return series(self.activation, self.terms, q, b)


class AbstractCommittee(Theory):
    """Committees on Gaussian data; the activation decides which of the two subclasses applies."""

    activations: ClassVar[tuple[str, ...]]
    distribution = required(str)

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """A committee of one output under mean squared error, on Gaussian classes."""
        name = type(self).__name__
        # These classes exactly: a subclass may have another readout.
        known = type(network) in (Committee, SingleNeuron)
        if not known or getattr(network, "activation", "") not in self.activations:
            return not_covered(
                f"{name} covers Committee and SingleNeuron with the activation "
                f"{' or '.join(self.activations)}, got {show(network)}."
            )
        reason = not_mse(name, task) or not_single(name, network)
        return not_covered(reason) if reason else gaussian_coverage(task, name, self.distribution)

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient in closed form."""
        self.covers(task, network).require()
        with jax.enable_x64(True):
            return CommitteeFlow(
                **gaussian_classes(task, network),
                activation=getattr(network, "activation"),  # noqa: B009 (covers says it has one)
                terms=getattr(self, "terms", 0),
            )


def gaussian_coverage(task: Discrimination, name: str, distribution: str) -> Coverage:
    """Whether a closed form for Gaussian data covers the classes."""
    if reason := not_single(name, task) or not_symmetric(name, task.stimuli):
        return not_covered(reason)
    other = [stimulus for stimulus in task.stimuli if not stimulus.gaussian]
    if other and distribution == "exact":
        return not_covered(
            f"{name} needs Gaussian stimuli, got {show(other[0])}. Use its "
            "`.gaussian_clone()`, or distribution='gaussian' to use only its covariance."
        )
    return APPROXIMATE if other else EXACT


def gaussian_classes(task: Discrimination, network: Network) -> dict[str, Any]:
    """The fields of a `GaussianFlow`."""
    return {
        "covariances": tuple(
            covariance_of(np.asarray(s.covariance(), np.float64), s.shape) for s in task.stimuli
        ),
        "labels": jnp.asarray(task.targets()[:, 0]),
        "priors": jnp.asarray(task.priors),
        "bias": jnp.asarray(fixed_biases(network)),
        "l1": jnp.asarray(float(task.l1)),
        "l2": jnp.asarray(float(task.l2)),
    }


def fixed_biases(network: Network) -> np.ndarray:
    """Biases that are not trained, (K,)."""
    kind = getattr(network, "bias", "none")
    if kind in ("none", "trained"):
        return np.zeros(network.hidden)
    value = float(getattr(network, "bias_value", 0.0))
    if kind == "halves":
        return value * np.where(np.arange(network.hidden) < network.hidden / 2, 1.0, -1.0)
    return np.full(network.hidden, value)


DISTRIBUTION = Declaration(
    Choice(("exact", "gaussian")),
    help="exact: every class must be Gaussian; gaussian: use only the covariance of each class",
)


class GaussianCommittee(AbstractCommittee):
    """K ReLU neurons without biases on Gaussian data: exact, through the arc-cosine kernel.

    Example:
        >>> import jax, jax.numpy as jnp, localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)))
        >>> flow = GaussianCommittee().flow(task, lf.networks.Committee(3))
        >>> with jax.enable_x64(True):
        ...     loss, gradient = flow({"weights": jnp.zeros((3, 16))})
        >>> float(loss)  # silent neurons are right about the class with label 0
        0.5
    """

    activations: ClassVar[tuple[str, ...]] = ("relu",)
    distribution: str = declare(DISTRIBUTION, default="exact")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """ReLU neurons without biases."""
        coverage = super().covers(task, network)
        if coverage and getattr(network, "bias", "none") != "none":
            return not_covered(
                f"GaussianCommittee covers networks without biases, got {show(network)}. "
                "ErfCommittee covers biases."
            )
        return coverage


class ErfCommittee(AbstractCommittee):
    """K sigmoidal neurons with biases on Gaussian data: erf exactly, others by a Hermite series.

    With 48 terms the series of two logistic neurons with preactivations of variance q and
    correlation γ is right to |γ|⁴⁸ times 1e-14, 1e-9, 1e-5, 1e-3 for q = 1, 4, 16, 64, besides an
    error of the quadrature of 1e-11 at q = 16 and 2e-5 at 64; that of tanh to four times that at a
    quarter of the variance. Single neurons do not need the series.

    Example:
        >>> import localfields as lf
        >>> classes = [lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)]
        >>> task = lf.Discrimination(*classes, labels="signs")
        >>> network = lf.networks.Committee(2, "erf", "trained")
        >>> lf.solve(task, ErfCommittee(), network=network, times=[0, 1]).biases.shape
        (1, 2, 2)
    """

    activations: ClassVar[tuple[str, ...]] = (*ERF_SLOPES, "sigmoid", "tanh", "identity")
    distribution: str = declare(DISTRIBUTION, default="exact")
    terms: Whole = declare(
        Count(8, 200), default=48, help="terms of the Hermite series of activations other than erf"
    )


class AbsoluteFlow(GaussianFlow):
    """L = 1 − Σ_c p_c y_c E[ŷ | c], E ŷ = (1/K) Σ_k erf(b_k/√(2(1 + w_kᵀΣw_k)))."""

    slope: float = eqx.field(static=True)

    def loss(self, params: Params) -> jax.Array:
        """Population loss."""
        w, b = params["weights"], params.get("biases", self.bias)
        total = 1 + self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        for covariance, y, p in zip(self.covariances, self.labels, self.priors, strict=True):
            q = jnp.sum(w * jax.vmap(covariance)(w), axis=1)
            total = total - p * y * jnp.mean(erf_mean(self.slope**2 * q, self.slope * b))
        return total


class AbsoluteCommittee(Theory):
    """K erf neurons with biases under the mean of |ŷ − y|, labels ±1, on Gaussian data: exact.

    As |ŷ| ≤ 1, the loss is linear in ŷ, 1 − Σ p_c y_c E[ŷ | c], and needs no pairs of neurons. Each
    neuron's mean output is erf(b/√(2(1 + q))): without a bias it is zero whatever the field, and
    nothing is learned. Trained biases that start at zero move first, at the rate
    √(2/π)/K Σ p_c y_c (1 + q_c)^(−½), and the fields follow. (The note's eqs. 29 and 30 lack the
    probabilities ½ of the classes.)

    Example:
        >>> import jax, jax.numpy as jnp, localfields as lf
        >>> classes = (lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2))
        >>> task = lf.Discrimination(*classes, labels="signs", loss="absolute")
        >>> flow = AbsoluteCommittee().flow(task, lf.networks.Committee(2, "erf", "trained"))
        >>> with jax.enable_x64(True):
        ...     loss, gradient = flow({"weights": jnp.ones((2, 16)), "biases": jnp.zeros(2)})
        >>> {name: bool(np.asarray(slope).any()) for name, slope in gradient.items()}
        {'biases': True, 'weights': False}
    """

    distribution: str = declare(DISTRIBUTION, default="exact")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """Committees of erf neurons under the absolute loss with labels ±1, on Gaussian classes."""
        if type(network) is not Committee or network.activation not in ERF_SLOPES:
            return not_covered(
                "AbsoluteCommittee covers committees of erf neurons only, got "
                f"{show(network)}. Use the activation {' or '.join(ERF_SLOPES)}."
            )
        labels = np.abs(task.targets())
        if task.loss != "absolute" or task.outputs != 1 or (labels != 1).any():
            return not_covered(
                "AbsoluteCommittee needs the absolute loss with labels ±1, got loss "
                f"{task.loss!r} with labels {task.labels!r}. Use loss='absolute', labels='signs'."
            )
        if reason := not_single("AbsoluteCommittee", network):
            return not_covered(reason)
        return gaussian_coverage(task, "AbsoluteCommittee", self.distribution)

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient in closed form."""
        self.covers(task, network).require()
        with jax.enable_x64(True):
            return AbsoluteFlow(
                **gaussian_classes(task, network),
                slope=ERF_SLOPES[getattr(network, "activation")],  # noqa: B009 (covers says it has one)
            )
