"""The absolute loss on Gaussian data: a closed form, and why learning with it needs biases (working note 3)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import declare
from ...errors import show
from ...networks import Committee, Network
from ...networks.base import Params
from ...tasks import Discrimination
from ..base import Coverage, Flow, Theory, not_covered, swept
from .committee import ERF, LAW, GaussianFlow, gaussian_classes, gaussian_coverage
from .pairs import erf_mean


class AbsoluteFlow(GaussianFlow):
    """L = 1 − Σ_c p_c y_c E[ŷ | c], E ŷ = (1/K) Σ_k erf(b_k/√(2(1 + w_kᵀΣw_k))), and its gradient."""

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

    As |ŷ| ≤ 1, the loss is linear in ŷ, 1 − Σ p_c y_c E[ŷ | c], and needs no pairs of neurons. Each neuron's mean
    output is erf(b/√(2(1 + q))): without a bias it is zero whatever the field, the gradient vanishes everywhere, and
    nothing is learned. Trained biases that start at zero move first, at the rate √(2/π)/K Σ p_c y_c (1 + q_c)^(−½), and
    the fields follow. (The note's eqs. 29 and 30 lack the probabilities ½ of the classes.)

    Example:
        >>> import jax, jax.numpy as jnp, localfields as lf
        >>> classes = (lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2))
        >>> task = lf.Discrimination(*classes, labels="signs", loss="absolute")
        >>> flow = AbsoluteCommittee().flow(task, lf.networks.Committee(2, "erf", "trained"))
        >>> with jax.enable_x64(True):
        ...     loss, gradient = flow({"weights": jnp.ones((2, 16)), "biases": jnp.zeros(2)})
        >>> float(loss), bool(np.asarray(gradient["weights"]).any()), bool(np.asarray(gradient["biases"]).all())
        (1.0, False, True)
    """

    law: str = declare(LAW, default="exact")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """A committee of erf neurons under the absolute loss with labels ±1, on Gaussian classes."""
        if type(network) is not Committee or network.activation not in ERF:
            return not_covered(
                "The network for AbsoluteCommittee must be a Committee of erf neurons, got "
                f"{show(network)}. Its activation is to be {' or '.join(ERF)}."
            )
        labels = np.abs(task.targets())
        if task.loss != "absolute" or task.outputs != 1 or (labels != 1).any():
            return not_covered(
                "The task for AbsoluteCommittee must be the absolute loss with labels of ±1, got "
                f"loss {task.loss!r} with labels {task.labels!r}. Use loss='absolute', labels='signs'."
            )
        if reason := swept("AbsoluteCommittee", network):
            return not_covered(reason)
        return gaussian_coverage(task, "AbsoluteCommittee", self.law)

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient in closed form."""
        self.covers(task, network).require()
        with jax.enable_x64(True):
            return AbsoluteFlow(
                **gaussian_classes(task, network),
                slope=ERF[network.activation],  # pyright: ignore[reportAttributeAccessIssue]  # as covered
            )
