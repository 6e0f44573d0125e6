"""Pulses: finitely many patterns, so that every population average is a finite sum.

That makes pulses a test bed: loss and gradient are exact for any network and any loss, and nothing
is assumed, not even sign symmetry.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import show
from ...networks import Network
from ...networks.base import Params
from ...stimuli import Stimulus
from ...stimuli.pulse import Pulse
from ...tasks import Discrimination
from ..base import EXACT, Coverage, Flow, Theory, not_covered, not_single


def too_many_atoms(stimulus: Stimulus) -> str:
    """Why a stimulus is not one whose patterns are summed; empty if it is."""
    if not isinstance(stimulus, Pulse):
        return (
            f"ExactPulse covers SinglePulse and BlockPulse, got {show(stimulus)}. "
            "Other distributions are not finite sums; use another theory."
        )
    if stimulus.has_atoms:
        return ""
    return (
        f"{stimulus.num_atoms} patterns on {stimulus.size} sites are too many to sum over. "
        "Take fewer lengths, or a smaller lattice."
    )


class PulseFlow(Flow):
    """Population loss and gradient as a sum over the patterns of all classes."""

    x: jax.Array  # patterns of all classes, (num, size)
    p: jax.Array  # their probabilities times the classes' priors, (num,)
    targets: jax.Array  # (num, outputs)
    network: Network
    task: Discrimination

    def loss(self, params: Params, nudge: Any = 0.0) -> jax.Array:
        """Population loss; `nudge` is added to every preactivation."""
        h = self.x @ self.network.projections(params, self.task.shape).T + nudge
        outputs = jax.vmap(lambda row: self.network.readout(params, row, self.task.outputs))(h)
        losses = jax.vmap(self.task.sample_loss)(outputs, self.targets)
        return jnp.vdot(self.p, losses) + self.task.penalty(params["weights"])

    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient; a ReLU at exactly zero counts one half, the mean of its two slopes."""
        # Ties have positive probability here: with equal weights many preactivations are exactly
        # zero. The smallest positive number moves them to either side and no other preactivation.
        tiny = float(jnp.finfo(self.x.dtype).tiny)
        loss, above = jax.value_and_grad(self.loss)(params, tiny)
        below = jax.grad(self.loss)(params, -tiny)
        return loss, jax.tree.map(lambda a, b: 0.5 * (a + b), above, below)


class ExactPulse(Theory):
    """Exact learning on pulses, of any network with any loss: averages are sums over all patterns.

    Example:
        >>> import jax, jax.numpy as jnp, localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.SinglePulse(12, a, a + 1) for a in (2, 4)))
        >>> flow = ExactPulse().flow(task, lf.networks.SingleNeuron())
        >>> with jax.enable_x64(True):
        ...     loss, gradient = flow({"weights": jnp.zeros((1, 12))})
        >>> float(loss)  # a silent neuron is right about the class with label 0
        0.5
    """

    priority: ClassVar[int] = 1

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """Any network on pulses that do not have too many patterns."""
        reason = network.wrong_outputs(task.outputs) or not_single("ExactPulse", task, network)
        reasons = [reason, *map(too_many_atoms, task.stimuli)]
        return not_covered(next(filter(None, reasons))) if any(reasons) else EXACT

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Sum over the patterns of every class."""
        self.covers(task, network).require()
        return summed_flow(task, network, [stimulus.atoms() for stimulus in task.stimuli])


def summed_flow(
    task: Discrimination, network: Network, atoms: list[tuple[np.ndarray, np.ndarray]]
) -> PulseFlow:
    """The flow of a task from each class's patterns, (num, size), and probabilities, (num,)."""

    def leaf(value: Any) -> jax.Array:
        return jnp.asarray(value, jnp.float64)

    # Patterns of all classes in one list: the loss is one weighted sum.
    weights = [prior * p for prior, (_, p) in zip(task.priors, atoms, strict=True)]
    with jax.enable_x64(True):
        return PulseFlow(
            x=leaf(np.concatenate([x for x, _ in atoms])),
            p=leaf(np.concatenate(weights)),
            targets=leaf(np.repeat(task.targets(), [len(p) for _, p in atoms], axis=0)),
            network=jax.tree.map(leaf, network),
            task=jax.tree.map(leaf, task),
        )
