"""What every theory is: a value that turns a task into the gradient of its population loss.

For one ReLU neuron on sign-symmetric classes the population loss needs, beside covariances, a single vector a class:
the mean of what the gate lets through, f(w) = E[1(⟨w, X⟩ ≥ 0) X]. A theory of that neuron is its `response`, exact or
approximate; loss, gradient and flow follow here, once for all of them.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Spec, number_values
from ..errors import InputError, show
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


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Whether a theory describes something, whether exactly, and if not, why; true where it does."""

    ok: bool
    exact: bool = False
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether the theory applies."""
        return self.ok

    def require(self) -> None:
        """Raise the reason as an InputError where the theory does not apply."""
        if not self.ok:
            raise InputError(self.reason)


EXACT, APPROXIMATE = Coverage(True, exact=True), Coverage(True)


def not_covered(reason: str) -> Coverage:
    """The answer of a theory that does not apply."""
    return Coverage(False, reason=reason)


class Theory(Spec):
    """A description of learning that needs no draws.

    Defining a subclass is enough for it to take part: `best_for` asks every theory, at its default
    fields, whether it `covers` a task.
    """

    family: ClassVar[str] = "theory"
    priority: ClassVar[int] = 0  # among equally exact theories the one with the largest is chosen

    @abc.abstractmethod
    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """Whether the theory describes this network on this task (no swept numbers); nothing is raised."""

    @abc.abstractmethod
    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient for one task (no swept numbers), in float64.

        Raises:
            InputError: When the theory does not cover the task or the network.
        """

    def coarse(self) -> Theory:
        """A cheaper version, accurate enough to tell in what a flow ends; itself unless there is one."""
        return self

    def title(self, task: Discrimination) -> str:
        """What to call it in a report on this task."""
        return type(self).__name__


class NeuronTheory(Theory):
    """A theory of one ReLU neuron under mean squared error, given by its response to a class."""

    @abc.abstractmethod
    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Whether the theory describes this class."""

    @abc.abstractmethod
    def response(self, stimulus: Stimulus) -> Response:
        """The response of one class that the theory covers."""

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """One ReLU neuron, where every class that pulls is covered; of the others the covariance is enough."""
        name = type(self).__name__
        if reason := not_a_neuron(name, task, network):
            return not_covered(reason)
        classes = [self.covers_class(stimulus) for stimulus in labelled(task)]
        missing = [one for one in classes if not one]
        return missing[0] if missing else Coverage(True, exact=all(one.exact for one in classes))

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Assemble the loss from the responses of the classes that pull."""
        self.covers(task, network).require()
        return neuron_flow(task, alike(task), lambda c: self.response(task.stimuli[c]))


def labelled(task: Discrimination) -> list[Stimulus]:
    """The classes that pull on a neuron: those whose label is not zero."""
    marked = (task.targets() != 0).any(axis=1)
    return [stimulus for stimulus, pulls in zip(task.stimuli, marked, strict=True) if pulls]


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


def alike(task: Discrimination) -> list[np.ndarray]:
    """Covariances of the classes in one form: rows where all have one, else whole matrices."""
    if all(stimulus.translation_invariant for stimulus in task.stimuli):
        return [np.asarray(stimulus.covariance(), np.float64) for stimulus in task.stimuli]
    return [stimulus.covariance_matrix() for stimulus in task.stimuli]


def not_a_neuron(name: str, task: Discrimination, network: Network) -> str:
    """Why a theory of one ReLU neuron on sign-symmetric classes does not apply; empty if it does."""
    if not isinstance(network, SingleNeuron) or network.activation != "relu":
        return (
            f"The network for {name} must be SingleNeuron(activation='relu'), got {show(network)}. "
            "The theory is of that neuron."
        )
    return not_squares(name, task) or not_symmetric(name, task.stimuli)


def not_squares(name: str, task: Discrimination) -> str:
    """Why a task is not one task of mean squared error with one number per class; empty if it is."""
    if task.loss != "mse" or task.outputs != 1:
        return (
            f"The task for {name} must be mean squared error with one number per class, "
            f"got loss {task.loss!r} with labels {task.labels!r}. Use loss='mse'."
        )
    return swept(name, task)


def swept(name: str, *values: Spec) -> str:
    """Why one of these cannot stand for a single member; empty if all can."""
    for value in values:
        for field, given in number_values(value):
            if np.ndim(given):
                return (
                    f"`{field}` must be one number for {name}, got {np.size(given)} values. "
                    "An array sweeps an ensemble in training; give one number here."
                )
    return ""


def not_symmetric(name: str, stimuli: Sequence[Stimulus]) -> str:
    """Why some class is not sign symmetric; empty if all are."""
    for stimulus in stimuli:
        if not stimulus.sign_symmetric:
            return (
                f"Every stimulus for {name} must be sign symmetric, got {show(stimulus)}, which is "
                "not. Use the coding by signs, or `ExactPulse` for pulses."
            )
    return ""


def require(reason: str) -> None:
    """Raise an InputError where there is a reason to."""
    if reason:
        raise InputError(reason)
