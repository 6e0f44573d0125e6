"""Estimators of the population gradient: how a step turns draws into a gradient.

Each is a function of one member: (task, network, params, key, counts) → (loss, gradient), where `counts` are the
draws of each class. Class means are weighted by the exact class probabilities, so that rounding of the counts never
biases a gradient.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._check import Said, refuse
from ..lattice import matrix
from ..networks import Network
from ..networks.base import Params
from ..tasks import EXACT, Discrimination

Estimate = tuple[jax.Array, Params]
FULL = jax.lax.Precision.HIGHEST  # float32 products in full: TF32 would bias a gradient by 1e-3 of its size

# A circulant matrix of the fields is faster than FFTs while it is small.
LARGEST_DENSE_ORBIT = 256


def draw_classes(task: Discrimination, key: Any, counts: tuple[int, ...]) -> list[jax.Array]:
    """Fresh draws of every class, exactly as many as `counts` says."""
    keys = jax.random.split(key, len(counts))
    return [stimulus.draw(keys[c], counts[c]) for c, stimulus in enumerate(task.stimuli)]


def mean_loss(task: Discrimination, network: Network, params: Params, fields: list[jax.Array]) -> jax.Array:
    """Loss over classes whose preactivations are given, each (…, K)."""
    targets = jnp.asarray(task.targets(), fields[0].dtype)
    total = task.penalty(params["weights"])
    for c, prior in enumerate(task.priors):
        h = fields[c].reshape(-1, network.hidden)
        outputs = jax.vmap(lambda one: network.readout(params, one, task.outputs))(h)
        total = total + prior * jnp.mean(jax.vmap(task.sample_loss, (0, None))(outputs, targets[c]))
    return total


def preactivations(params: Params, x: jax.Array) -> jax.Array:
    """⟨w_k, x⟩ for every draw, (num, K)."""
    return jnp.matmul(x, params["weights"].T, precision=FULL)


def sampled(task: Discrimination, network: Network, params: Params, key: Any, counts: tuple[int, ...]) -> Estimate:
    """The gradient on fresh draws: what batch gradient descent means."""
    draws = draw_classes(task, key, counts)

    def loss(params: Params) -> jax.Array:
        return mean_loss(task, network, params, [preactivations(params, x) for x in draws])

    return jax.value_and_grad(loss)(params)


def orbit(task: Discrimination, network: Network, params: Params, key: Any, counts: tuple[int, ...]) -> Estimate:
    """The gradient on all shifts of each draw, and on their negatives: the same expectation, less variance.

    Right for stimuli that are translation invariant and sign symmetric. A draw costs one circular correlation with
    each field forward and one backward.
    """
    draws = draw_classes(task, key, counts)

    def loss(params: Params) -> jax.Array:
        fields = [all_shifts(params["weights"], x, task.shape) for x in draws]
        turned = [-h for h in fields]
        return 0.5 * (mean_loss(task, network, params, fields) + mean_loss(task, network, params, turned))

    return jax.value_and_grad(loss)(params)


def all_shifts(weights: jax.Array, x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Preactivations of every shift of every draw, (num, size, K)."""
    num, hidden = x.shape[0], weights.shape[0]
    if weights.shape[1] <= LARGEST_DENSE_ORBIT:
        # Column (s, k) of the matrix is field k moved by s, so that one product gives all shifts of all draws.
        moved = jax.vmap(lambda w: matrix(w.reshape(shape)))(weights)  # (K, shift, site)
        columns = moved.transpose(2, 1, 0).reshape(weights.shape[1], -1)
        return jnp.matmul(x, columns, precision=FULL).reshape(num, -1, hidden)
    axes = tuple(range(-len(shape), 0))
    of_x = jnp.fft.rfftn(x.reshape(num, 1, *shape), axes=axes)
    of_w = jnp.fft.rfftn(weights.reshape(1, hidden, *shape), axes=axes)
    h = jnp.fft.irfftn(of_x * jnp.conj(of_w), s=shape, axes=axes)
    return h.reshape(num, hidden, -1).transpose(0, 2, 1)


def check_symmetry(task: Discrimination) -> None:
    """Refuse `orbit` for stimuli without the symmetries it uses."""
    for stimulus in task.stimuli:
        for name, words in (("translation_invariant", "translation invariant"), ("sign_symmetric", "sign symmetric")):
            if not getattr(stimulus, name):
                got, advice = Said(f"{stimulus!r}, which is not {words}"), 'Use estimator="independent".'
                refuse("Every stimulus for the estimator `orbit`", got, f"{words}", advice)


@dataclasses.dataclass(frozen=True)
class Exact:
    """An estimator that needs no draws; equal for equal gradients, so that it is compiled once."""

    gradient: Callable[..., Estimate]

    def __call__(self, task: Any, network: Any, params: Params, key: Any, counts: tuple[int, ...]) -> Estimate:
        """The exact loss and gradient."""
        return self.gradient(task, network, params)


def exact_estimator(task: Discrimination, network: Network) -> Callable[..., Estimate]:
    """The population gradient, where some theory knows it.

    Raises:
        InputError: When none does.
    """
    for offer in EXACT:
        gradient = offer(task, network)
        if gradient is not None:
            return Exact(gradient)
    got = Said(f"{type(network).__name__} on {', '.join(type(s).__name__ for s in task.stimuli)}")
    refuse("The estimator `exact`", got, "asked for where a theory knows the gradient", 'Use "orbit" or "independent".')


def class_counts(task: Discrimination, batch: int, name: str = "batch") -> tuple[int, ...]:
    """Draws of each class in a batch: the proportions, rounded so that they add up and no class is empty."""
    ideal = np.asarray(task.priors) * batch
    counts = np.floor(ideal + 1e-9).astype(int)
    for c in np.argsort(counts - ideal)[: batch - counts.sum()]:
        counts[c] += 1
    if counts.min() < 1:
        advice = f"The rarest class has probability {min(task.priors):g}."
        refuse(f"`{name}`", batch, "large enough to hold a draw of every class", advice)
    return tuple(int(n) for n in counts)


ESTIMATORS: dict[str, Callable[..., Estimate]] = {"independent": sampled, "shared": sampled, "orbit": orbit}
