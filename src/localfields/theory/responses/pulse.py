"""Pulses: the law has finitely many atoms, so that every population average is a finite sum.

That makes pulses a test bed: loss and gradient are exact for any network and any loss, with nothing assumed of the
law, sign symmetry included.
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
from ..base import EXACT, Coverage, Flow, Theory, not_covered, swept


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
    """Population loss and gradient as a sum over the atoms of all classes, for any network and loss."""

    x: jax.Array  # atoms of all classes, (num, size)
    p: jax.Array  # their probabilities, those of the classes included, (num,)
    targets: jax.Array  # (num, outputs)
    network: Network
    task: Discrimination

    def loss(self, params: Params, nudge: Any = 0.0) -> jax.Array:
        """Population loss; `nudge` is added to every preactivation."""
        h = self.x @ self.network.projections(params, self.task.shape).T + nudge
        outputs = jax.vmap(lambda one: self.network.readout(params, one, self.task.outputs))(h)
        each = jax.vmap(self.task.sample_loss)(outputs, self.targets)
        return jnp.vdot(self.p, each) + self.task.penalty(params["weights"])

    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient; a ReLU at exactly zero counts one half, the mean of its two slopes."""
        # Here ties are atoms, not accidents: with a field of equal weights many preactivations are exactly zero. The
        # smallest number there is moves those to either side and leaves every other as it is.
        tiny = float(jnp.finfo(self.x.dtype).tiny)
        loss, above = jax.value_and_grad(self.loss)(params, tiny)
        below = jax.grad(self.loss)(params, -tiny)
        return loss, jax.tree.map(lambda a, b: 0.5 * (a + b), above, below)


class ExactPulse(Theory):
    """Exact learning on pulses: all population averages are sums over the atoms, for any network and any loss.

    Both codings are exact; sign symmetry is not needed.

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
        """Any network on classes of pulses that do not have too many atoms."""
        reason = network.wrong_outputs(task.outputs) or swept("ExactPulse", task, network)
        reasons = [reason, *map(too_many_atoms, task.stimuli)]
        return not_covered(next(filter(None, reasons))) if any(reasons) else EXACT

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """List the atoms of every class."""
        self.covers(task, network).require()
        return summed_flow(task, network, [stimulus.atoms() for stimulus in task.stimuli])


def summed_flow(
    task: Discrimination, network: Network, found: list[tuple[np.ndarray, np.ndarray]]
) -> PulseFlow:
    """The flow of a task from the patterns of each class, (num, size), and their probabilities, (num,)."""

    def leaf(value: Any) -> jax.Array:
        return jnp.asarray(value, jnp.float64)

    with jax.enable_x64(True):
        return PulseFlow(
            x=leaf(np.concatenate([x for x, _ in found])),
            p=leaf(
                np.concatenate(
                    [prior * p for prior, (_, p) in zip(task.priors, found, strict=True)]
                )
            ),
            targets=leaf(np.repeat(task.targets(), [len(p) for _, p in found], axis=0)),
            network=jax.tree.map(leaf, network),
            task=jax.tree.map(leaf, task),
        )
