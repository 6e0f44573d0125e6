"""What every theory is: a value that turns a task into the gradient of its population loss.

For one ReLU neuron on sign-symmetric classes the population loss needs, beside covariances, a single vector a class:
the mean of what the gate lets through, f(w) = E[1(⟨w, X⟩ ≥ 0) X]. A theory of that neuron is its `response`, exact or
approximate; loss, gradient and flow follow here, once for all of them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Spec
from ..errors import Said, refuse
from ..lattice import filtered, matrix, spectrum
from ..networks import Network, SingleNeuron
from ..networks.base import Params
from ..stimuli import Stimulus
from ..tasks import Discrimination

# A dense product is faster than two FFTs up to about this many sites.
LARGEST_DENSE = 256


class Covariance(eqx.Module):
    """Multiplication by a covariance: dense while that is small, by FFT for a large translation-invariant one."""

    values: jax.Array  # the whole matrix, or the eigenvalues at each frequency
    shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, w: jax.Array) -> jax.Array:
        """Σ w, for w of shape (size,)."""
        if self.values.shape == (w.size, w.size):
            return self.values @ w
        return filtered(self.values, w.reshape(self.shape)).ravel()


def covariance_of(values: np.ndarray, shape: tuple[int, ...]) -> Covariance:
    """Wrap what `Stimulus.covariance` returns: a row, or the whole matrix (*shape, *shape)."""
    size = int(np.prod(shape))
    if values.shape != shape:
        return Covariance(jnp.asarray(values.reshape(size, size)), shape)
    return Covariance(
        jnp.asarray(matrix(values) if size <= LARGEST_DENSE else spectrum(values)), shape
    )


class Response(eqx.Module):
    """f(w) = E[1(⟨w, X⟩ ≥ 0) X] of one class. Its arrays are leaves, so that responses stack over members."""

    @abc.abstractmethod
    def __call__(self, w: jax.Array) -> jax.Array:
        """The response at a field, (size,) to (size,)."""


class Flow(eqx.Module):
    """The population loss of one task and network, and its gradient; gradient flow follows −gradient."""

    @abc.abstractmethod
    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient at parameters as a network has them: `weights` (K, size) and what it adds."""


class NeuronFlow(Flow):
    """One ReLU neuron, mean squared error, sign-symmetric classes with labels y_c and probabilities p_c.

    L = Σ p_c y_c² − 2 Σ p_c y_c ⟨w, f_c(w)⟩ + ½ wᵀ Σ̄ w with Σ̄ = Σ p_c Σ_c, exactly; so −∇L = 2 Σ p_c y_c f_c − Σ̄ w.
    (Paper eq. 5 with two classes, labels 0 and 1; the notes' loss has a further ½.)
    """

    responses: tuple[Response, ...]
    pull: tuple[jax.Array, ...]  # 2 p_c y_c of each response
    covariance: Covariance  # Σ̄
    constant: jax.Array  # Σ p_c y_c²
    l1: jax.Array
    l2: jax.Array

    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient."""
        w = params["weights"][0]
        toward = jnp.zeros_like(w)
        for pull, response in zip(self.pull, self.responses, strict=True):
            toward = toward + pull * response(w)
        back = self.covariance(w)
        loss = self.constant - jnp.vdot(w, toward) + 0.5 * jnp.vdot(w, back)
        loss = loss + self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        gradient = back - toward + self.l1 * jnp.sign(w) + 2 * self.l2 * w
        return loss, {"weights": gradient[None, :]}


class Theory(Spec):
    """A description of learning that needs no draws."""

    family: ClassVar[str] = "theory"

    @abc.abstractmethod
    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient for one task (no swept numbers), in float64.

        Raises:
            InputError: When the theory does not cover the task or the network.
        """


class NeuronTheory(Theory):
    """A theory of one ReLU neuron under mean squared error, given by its response to a class."""

    @abc.abstractmethod
    def response(self, stimulus: Stimulus) -> Response:
        """The response of one class; refuse a stimulus that the theory does not cover."""

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Assemble the loss from the responses of the classes that pull."""
        check_neuron(type(self).__name__, task, network)
        return neuron_flow(task, alike(task), lambda c: self.response(task.stimuli[c]))


def neuron_flow(
    task: Discrimination, covariances: Sequence[np.ndarray], response: Callable[[int], Response]
) -> NeuronFlow:
    """The flow of a task from the covariances of its classes, all rows or all matrices, and a response a class.

    Only classes whose label is not zero are asked for their response.
    """
    labels, priors = task.targets()[:, 0], task.priors
    mean = sum(p * values for p, values in zip(priors, covariances, strict=True))
    with jax.enable_x64(True):
        pulled = [c for c, label in enumerate(labels) if label != 0]
        return NeuronFlow(
            responses=tuple(response(c) for c in pulled),
            pull=tuple(jnp.asarray(2 * priors[c] * labels[c]) for c in pulled),
            covariance=covariance_of(np.asarray(mean), task.shape),
            constant=jnp.asarray(float(np.dot(priors, labels**2))),
            l1=jnp.asarray(float(task.l1)),
            l2=jnp.asarray(float(task.l2)),
        )


def whole(stimulus: Stimulus) -> np.ndarray:
    """The covariance matrix of a class, (size, size)."""
    values = np.asarray(stimulus.covariance(), np.float64)
    return (
        matrix(values)
        if values.shape == stimulus.shape
        else values.reshape(stimulus.size, stimulus.size)
    )


def alike(task: Discrimination) -> list[np.ndarray]:
    """Covariances of the classes in one form: rows where all have one, else whole matrices."""
    if all(stimulus.translation_invariant for stimulus in task.stimuli):
        return [np.asarray(stimulus.covariance(), np.float64) for stimulus in task.stimuli]
    return [whole(stimulus) for stimulus in task.stimuli]


def check_neuron(name: str, task: Discrimination, network: Network) -> None:
    """Refuse a task or a network that is not one ReLU neuron on sign-symmetric classes."""
    if not isinstance(network, SingleNeuron) or network.activation != "relu":
        refuse(
            f"The network for {name}",
            network,
            "SingleNeuron(activation='relu')",
            "The theory is of that neuron.",
        )
    check_squares(name, task)
    for stimulus in task.stimuli:
        if not stimulus.sign_symmetric:
            got = Said(f"{stimulus!r}, which is not sign symmetric")
            advice = "Use the coding by signs, or `ExactPulse` for pulses."
            refuse(f"Every stimulus for {name}", got, "sign symmetric", advice)


def check_squares(name: str, task: Discrimination) -> None:
    """Refuse a task that is not one task of mean squared error with one number a class."""
    if task.loss != "mse" or task.outputs != 1:
        got = Said(f"loss {task.loss!r} with labels {task.labels!r}")
        refuse(
            f"The task for {name}",
            got,
            "mean squared error with one number a class",
            "Use loss='mse'.",
        )
    task.require_one(f"for {name}")
