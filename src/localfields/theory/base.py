"""What every theory is: a value that turns a task into the gradient of its population loss.

For one ReLU neuron on sign-symmetric classes the population loss needs, besides covariances, one
vector per class: the mean of what the gate lets through, f(w) = E[1(⟨w, X⟩ ≥ 0) X]. A theory of
that neuron is its `response`, exact or approximate; loss, gradient and flow follow here.
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
MAX_DENSE_SITES = 256


class Covariance(eqx.Module):
    """Multiplication by a covariance: dense if small, by FFT if large and translation invariant."""

    values: jax.Array  # the matrix, or the eigenvalue at each frequency
    shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, w: jax.Array) -> jax.Array:
        """Σ w, for w of shape (size,)."""
        if self.values.shape == (w.size, w.size):  # a spectrum has at most w.size numbers
            return self.values @ w
        return filtered(self.values, w.reshape(self.shape)).ravel()


def covariance_of(values: np.ndarray, shape: tuple[int, ...]) -> Covariance:
    """Wrap what `Stimulus.covariance` returns: a row, or a matrix (*shape, *shape)."""
    size = int(np.prod(shape))
    if values.shape != shape:
        values = values.reshape(size, size)
    else:
        values = matrix(values) if size <= MAX_DENSE_SITES else spectrum(values)
    return Covariance(jnp.asarray(values), shape)


class Response(eqx.Module):
    """f(w) = E[1(⟨w, X⟩ ≥ 0) X] of one class; its arrays stack over members."""

    @abc.abstractmethod
    def __call__(self, w: jax.Array) -> jax.Array:
        """The response at a field, (size,) to (size,)."""


class Flow(eqx.Module):
    """The population loss of one task and network, and its gradient."""

    @abc.abstractmethod
    def __call__(self, params: Params) -> tuple[jax.Array, Params]:
        """Loss and gradient at a network's parameters: `weights` (K, size), and others it has."""


class NeuronFlow(Flow):
    """One ReLU neuron, mean squared error, sign-symmetric classes with labels y_c and priors p_c.

    L = Σ p_c y_c² − 2 Σ p_c y_c ⟨w, f_c(w)⟩ + ½ wᵀ Σ̄ w with Σ̄ = Σ p_c Σ_c, exactly, so that
    −∇L = 2 Σ p_c y_c f_c − Σ̄ w. (Paper eq. 5 for labels 0 and 1; the notes' loss has another ½.)
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
        # f does not depend on the length of w, so that ⟨w, f(w)⟩ has the gradient f(w).
        loss = self.constant - jnp.vdot(w, toward) + 0.5 * jnp.vdot(w, back)
        loss = loss + self.l1 * jnp.sum(jnp.abs(w)) + self.l2 * jnp.sum(w**2)
        gradient = back - toward + self.l1 * jnp.sign(w) + 2 * self.l2 * w
        return loss, {"weights": gradient[None, :]}


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Whether a theory covers a task, whether exactly, and if not, why; true if it does."""

    ok: bool
    exact: bool = False
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether the theory applies."""
        return self.ok

    def require(self) -> None:
        """Raise the reason as an InputError if the theory does not apply."""
        if not self.ok:
            raise InputError(self.reason)


EXACT, APPROXIMATE = Coverage(True, exact=True), Coverage(True)


def not_covered(reason: str) -> Coverage:
    """The answer of a theory that does not apply."""
    return Coverage(False, reason=reason)


class Theory(Spec):
    """A description of learning that needs no samples.

    Defining a subclass is enough for it to take part: `best_for` asks every theory, at its default
    fields, whether it `covers` a task.
    """

    family: ClassVar[str] = "theory"
    priority: ClassVar[int] = 0  # among equally exact theories the largest is chosen

    @abc.abstractmethod
    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """Whether the theory describes this network on this task (no swept numbers)."""

    @abc.abstractmethod
    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Loss and gradient for one task (no swept numbers), in float64.

        Raises:
            InputError: If the theory does not cover the task or the network.
        """

    def coarse(self) -> Theory:
        """A cheaper version, accurate enough for a verdict; the theory itself if there is none."""
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
        """One ReLU neuron; of classes with label zero the covariance is enough."""
        if reason := not_a_neuron(type(self).__name__, task, network):
            return not_covered(reason)
        # A class with label 0 enters the loss by wᵀΣ_c w alone: f_c is not needed.
        coverages = [self.covers_class(stimulus) for stimulus in labelled_stimuli(task)]
        for coverage in coverages:
            if not coverage:
                return coverage
        return Coverage(True, exact=all(coverage.exact for coverage in coverages))

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """Assemble the loss from the responses of the labelled classes."""
        self.covers(task, network).require()
        return neuron_flow(task, class_covariances(task), lambda c: self.response(task.stimuli[c]))


def labelled_stimuli(task: Discrimination) -> list[Stimulus]:
    """The classes whose label is not zero: only they pull on a neuron."""
    nonzero = (task.targets() != 0).any(axis=1)
    return [stimulus for stimulus, pulls in zip(task.stimuli, nonzero, strict=True) if pulls]


def neuron_flow(
    task: Discrimination, covariances: Sequence[np.ndarray], response: Callable[[int], Response]
) -> NeuronFlow:
    """The flow of a task from the covariances and responses of its classes.

    Args:
        task: Labels, priors and penalties.
        covariances: One per class, all rows or all matrices.
        response: From the number of a labelled class to its response.
    """
    labels, priors = task.targets()[:, 0], task.priors
    mean = sum(p * values for p, values in zip(priors, covariances, strict=True))
    # Theory is float64, whatever the caller's JAX computes in.
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


def class_covariances(task: Discrimination) -> list[np.ndarray]:
    """Covariances of all classes: rows if all are translation invariant, else matrices."""
    if all(stimulus.translation_invariant for stimulus in task.stimuli):
        return [np.asarray(stimulus.covariance(), np.float64) for stimulus in task.stimuli]
    return [stimulus.covariance_matrix() for stimulus in task.stimuli]


def site_variances(stimulus: Stimulus) -> np.ndarray:
    """Variance of every site, (size,)."""
    values = np.asarray(stimulus.covariance(), np.float64)
    if values.shape == stimulus.shape:
        return np.full(stimulus.size, values.flat[0])
    return np.diagonal(values.reshape(stimulus.size, stimulus.size))


# Reasons why a theory does not apply; an empty string if it does.


def not_a_neuron(name: str, task: Discrimination, network: Network) -> str:
    """Why a theory of one ReLU neuron on sign-symmetric classes does not apply."""
    if not isinstance(network, SingleNeuron) or network.activation != "relu":
        return (
            f"{name} describes SingleNeuron(activation='relu') only, got {show(network)}. "
            "Use that network, or another theory."
        )
    return not_mse(name, task) or not_symmetric(name, task.stimuli)


def not_mse(name: str, task: Discrimination, l1: bool = True) -> str:
    """Why a task is not a single task with mean squared error and one label per class.

    Without `l1`, an L1 penalty is a reason too.
    """
    if task.loss != "mse" or task.outputs != 1:
        return (
            f"{name} needs mean squared error with one number per class, got loss {task.loss!r} "
            f"with labels {task.labels!r}. Use loss='mse'."
        )
    reason = not_single(name, task)
    if not reason and not l1 and task.l1 != 0:
        return (
            f"`l1` must be 0 for {name}, got {show(task.l1)}. "
            "With that penalty there is no closed form; use `train`."
        )
    return reason


def not_single(name: str, *values: Spec) -> str:
    """Why a task, stimulus or network has swept numbers."""
    for value in values:
        for field, given in number_values(value):
            if np.ndim(given):
                return (
                    f"`{field}` must be one number for {name}, got {np.size(given)} values. "
                    "An array sweeps an ensemble in training; give one number here."
                )
    return ""


def not_symmetric(name: str, stimuli: Sequence[Stimulus]) -> str:
    """Why some class is not sign symmetric."""
    for stimulus in stimuli:
        if not stimulus.sign_symmetric:
            return (
                f"{name} needs sign-symmetric stimuli, but {show(stimulus)} is not. "
                "For pulses use coding='signs', or `ExactPulse`."
            )
    return ""


def raise_if(reason: str) -> None:
    """Raise a reason as an InputError, unless it is empty."""
    if reason:
        raise InputError(reason)
