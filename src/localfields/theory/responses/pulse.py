"""Pulses: the law has finitely many atoms, so that every population average is a finite sum.

That makes pulses a test bed: loss and gradient are exact for any network and any loss, with nothing assumed of the
law, sign symmetry included.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import show
from ...networks import Network
from ...networks.base import Params
from ...stimuli import BlockPulse, SinglePulse, Stimulus
from ...tasks import Discrimination
from ..base import EXACT, Coverage, Flow, Theory, not_covered, require, swept

LARGEST_NUMBER = 200_000  # of atoms a class
LARGEST_TABLE = 50_000_000  # numbers in one class's table of atoms: 400 MB


def atoms(stimulus: Stimulus) -> tuple[np.ndarray, np.ndarray]:
    """Every pattern that a pulse stimulus can show, with its probability.

    Args:
        stimulus: A `SinglePulse` or a `BlockPulse`.

    Returns:
        Patterns x, (num, size) with the sites in C order, and probabilities p, (num,). A pattern may stand there more
        than once, such as the pulse as long as its axis, once for every start.

    Raises:
        InputError: When the stimulus is not a pulse, or has too many atoms for a table.

    Example:
        >>> import localfields as lf
        >>> x, p = atoms(lf.stimuli.BlockPulse(4, length=2, coding="zero-one"))
        >>> x, p
        (array([[1., 1., 0., 0.],
               [0., 0., 1., 1.]]), array([0.5, 0.5]))
    """
    require(no_table(stimulus))
    assert isinstance(stimulus, (SinglePulse, BlockPulse))
    covered = np.ones((1, 1))
    for intervals in _intervals(stimulus):
        covered = np.kron(covered, intervals)
    if stimulus.coding == "signs":
        covered = np.concatenate([2 * covered - 1, 1 - 2 * covered])
    return covered, np.full(len(covered), 1 / len(covered))


def no_table(stimulus: Stimulus) -> str:
    """Why the atoms of a stimulus cannot be listed; empty if they can."""
    if not isinstance(stimulus, (SinglePulse, BlockPulse)):
        return (
            f"A stimulus with atoms must be a SinglePulse or a BlockPulse, got {show(stimulus)}. "
            "Other laws are not finite sums; use another theory."
        )
    num = num_atoms(stimulus)
    if num <= LARGEST_NUMBER and num * stimulus.size <= LARGEST_TABLE:
        return ""
    return (
        f"A stimulus for a sum over atoms must be one with at most {LARGEST_NUMBER} atoms and "
        f"{LARGEST_TABLE} numbers in all, got {num} atoms on {stimulus.size} sites. "
        "Take fewer lengths, or a smaller lattice."
    )


def num_atoms(stimulus: SinglePulse | BlockPulse) -> int:
    """How many patterns `atoms` would list."""
    if isinstance(stimulus, BlockPulse):
        along = [n // stimulus.length for n in stimulus.shape]
    else:
        along = [n * (stimulus.longest - stimulus.shortest + 1) for n in stimulus.shape]
    return math.prod(along) * (2 if stimulus.coding == "signs" else 1)


def _intervals(stimulus: SinglePulse | BlockPulse) -> list[np.ndarray]:
    """For each axis, the intervals on it that a pulse covers, one a row; all are equally likely."""
    if isinstance(stimulus, BlockPulse):
        return [
            np.kron(np.eye(n // stimulus.length), np.ones((1, stimulus.length)))
            for n in stimulus.shape
        ]
    lengths = np.arange(stimulus.shortest, stimulus.longest + 1)[:, None, None]
    after = [
        (np.arange(n)[None, :] - np.arange(n)[:, None]) % n for n in stimulus.shape
    ]  # sites after the start
    return [
        (d < lengths).reshape(-1, n).astype(float)
        for d, n in zip(after, stimulus.shape, strict=True)
    ]


def pulse_response(w: np.ndarray, stimulus: Stimulus) -> np.ndarray:
    """The gated mean f(w) = E[1(⟨w, X⟩ > 0) X] of a pulse stimulus, as a finite sum; a tie counts one half.

    Args:
        w: Field, (size,).
        stimulus: A `SinglePulse` or a `BlockPulse`.

    Returns:
        (size,).

    Example:
        >>> import numpy as np, localfields as lf
        >>> pulses = lf.stimuli.SinglePulse(6, shortest=2, longest=3)
        >>> bool(np.allclose(pulse_response(np.eye(6)[0], pulses), pulses.covariance() / 2))  # signs: f(e₀) = Σe₀/2
        True
    """
    x, p = atoms(stimulus)
    return (p * np.heaviside(x @ np.asarray(w, np.float64), 0.5)) @ x


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
        reasons = [reason, *map(no_table, task.stimuli)]
        return not_covered(next(filter(None, reasons))) if any(reasons) else EXACT

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """List the atoms of every class."""
        self.covers(task, network).require()
        return summed_flow(task, network, [atoms(stimulus) for stimulus in task.stimuli])


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
