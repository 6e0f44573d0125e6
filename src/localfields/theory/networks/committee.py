"""Committees on Gaussian data: the preactivations are jointly normal, so that the population loss is in closed form.

With Q = WΣWᵀ the covariance of the preactivations under one class, the loss needs only the means E[σ(S + b)] and, for
pairs of neurons, E[σ(S + b) σ(T + c)], which `_pairs` knows with their derivatives.
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
    not_squares,
    not_symmetric,
    swept,
)
from .pairs import erf_mean, erf_pair, relu_mean, relu_pair, series

# Error functions, by what they multiply x with in erf(·/√2).
ERF = {"erf": 1.0, "erf-unscaled": math.sqrt(2)}


class GaussianFlow(Flow):
    """What flows on Gaussian data know of their task; `gaussian_classes` reads it."""

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
    """L = Σ_c p_c (y_c² − 2y_c/K Σ_k E[σ_k] + 1/K² Σ_kl E[σ_k σ_l]) and its gradient, for weights and biases."""

    activation: str = eqx.field(static=True)
    terms: int = eqx.field(static=True)

    def loss(self, params: Params) -> jax.Array:
        """Population loss."""
        w, b = params["weights"], params.get("biases", self.bias)
        total = self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        for covariance, y, p in zip(self.covariances, self.labels, self.priors, strict=True):
            q = w @ jax.vmap(covariance)(w).T
            mean, square = self.moments(0.5 * (q + q.T), b)
            total = total + p * (y**2 - 2 * y * mean + square)
        return total

    def moments(self, q: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """E[ŷ] and E[ŷ²] when the preactivations have covariance q, (K, K), and biases b, (K,)."""
        own = jnp.diagonal(q)
        if self.activation == "relu":
            return jnp.mean(relu_mean(own)), jnp.mean(relu_pair(own[:, None], own[None, :], q))
        if self.activation in ERF:
            slope = ERF[self.activation]
            q, own, b = slope**2 * q, slope**2 * own, slope * b
            pairs = erf_pair(own[:, None], own[None, :], q, b[:, None], b[None, :])
            return jnp.mean(erf_mean(own, b)), jnp.mean(pairs)
        return series(self.activation, self.terms, q, b)


class AbstractCommittee(Theory):
    """What committees on Gaussian data have in common; the activation decides which of the two below serves."""

    activations: ClassVar[tuple[str, ...]]
    law = required(str)

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """A committee of one output under mean squared error, on Gaussian classes."""
        name = type(self).__name__
        # Of these classes exactly: one derived from them may have another readout.
        exactly = type(network) in (Committee, SingleNeuron)
        if not exactly or getattr(network, "activation", "") not in self.activations:
            return not_covered(
                f"The network for {name} must be a Committee or a SingleNeuron, got {show(network)}. "
                f"Its activation is to be {' or '.join(self.activations)}."
            )
        reason = not_squares(name, task) or swept(name, network)
        return not_covered(reason) if reason else gaussian_coverage(task, name, self.law)

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient in closed form."""
        self.covers(task, network).require()
        with jax.enable_x64(True):
            return CommitteeFlow(
                **gaussian_classes(task, network),
                activation=network.activation,  # pyright: ignore[reportAttributeAccessIssue]  # as covered
                terms=getattr(self, "terms", 0),
            )


def gaussian_coverage(task: Discrimination, name: str, law: str) -> Coverage:
    """Whether a closed form for Gaussian data, of this name, covers the classes."""
    if reason := swept(name, task) or not_symmetric(name, task.stimuli):
        return not_covered(reason)
    other = [stimulus for stimulus in task.stimuli if not stimulus.gaussian]
    if other and law == "exact":
        return not_covered(
            f"Every stimulus for {name} must be Gaussian, got {show(other[0])}. Use its "
            "`.gaussian_clone()`, or law='gaussian' to describe it by its covariance alone."
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
    """Biases that are not trained, (K,): what the readout adds to preactivations of zero."""
    kind = getattr(network, "bias", "none")
    if kind in ("none", "trained"):
        return np.zeros(network.hidden)
    value = float(getattr(network, "bias_value", 0.0))
    if kind == "halves":
        return value * np.where(np.arange(network.hidden) < network.hidden / 2, 1.0, -1.0)
    return np.full(network.hidden, value)


LAW = Declaration(
    Choice(("exact", "gaussian")),
    help="exact: every class must be Gaussian; gaussian: of any class its covariance alone",
)


class GaussianCommittee(AbstractCommittee):
    """K ReLU neurons on Gaussian data: exact loss, gradient and flow.

    Pairs of neurons enter through the arc-cosine kernel, E[1(S > 0) ReLU(T) X] included. Without biases.

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
    law: str = declare(LAW, default="exact")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """ReLU neurons without biases."""
        coverage = super().covers(task, network)
        if coverage and getattr(network, "bias", "none") != "none":
            return not_covered(
                f"`bias` of the network for GaussianCommittee must be none, got {show(network)}. "
                "ErfCommittee covers biases."
            )
        return coverage


class ErfCommittee(AbstractCommittee):
    """K sigmoidal neurons with biases on Gaussian data: erf in closed form, logistic and tanh by a Hermite series.

    Weights and trained biases flow together. Labels may be 0 and 1, ±1 or any others. With 48 terms the series of two
    logistic neurons with preactivations of variance q and correlation γ is right to |γ|⁴⁸ times 1e-14, 1e-9, 1e-5, 1e-3
    for q = 1, 4, 16, 64, beside an error of the quadrature of 1e-11 at q = 16 and 2e-5 at 64; that of tanh to four
    times that at a quarter of the variance. Neurons by themselves do not need the series.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)), labels="signs")
        >>> flow = lf.solve(task, ErfCommittee(), network=lf.networks.Committee(2, "erf", "trained"), times=[0, 1])
        >>> flow.biases.shape
        (1, 2, 2)
    """

    activations: ClassVar[tuple[str, ...]] = (*ERF, "sigmoid", "tanh", "identity")
    law: str = declare(LAW, default="exact")
    terms: Whole = declare(
        Count(8, 200), default=48, help="terms of the Hermite series of activations other than erf"
    )
