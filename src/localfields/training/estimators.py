"""Estimators of the population gradient: how a step turns samples into a gradient.

Each is a function of one member: (task, network, extra, params, key, counts) → (loss, gradient).
`extra` is what the estimator was given beforehand (a tree of arrays, or None), `counts` are the
samples of each class; `in_order` takes the step in place of a key. Class means are weighted by the
exact class probabilities, so that rounding of the counts never biases a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import find
from ..errors import InputError, unknown_name
from ..lattice import filtered, matrix, spectrum
from ..networks import Network, SingleNeuron
from ..networks.base import Params
from ..stimuli.base import draw
from ..tasks import Discrimination

Estimate = tuple[jax.Array, Params]

# float32 products in full: TF32 would bias a gradient by 1e-3 of its size.
FULL = jax.lax.Precision.HIGHEST

# A circulant matrix of the fields is faster than FFTs while it is small.
LARGEST_DENSE_ORBIT = 256

# A preactivation's variance below this, in units of a site's times |w|², is rounding error:
# nothing is divided by it.
SMALLEST_VARIANCE = 1e-6


def draw_classes(task: Discrimination, key: Any, counts: tuple[int, ...]) -> list[jax.Array]:
    """Fresh samples of every class, exactly as many as `counts` says."""
    keys = jax.random.split(key, len(counts))
    return [draw(stimulus, keys[c], counts[c]) for c, stimulus in enumerate(task.stimuli)]


def mean_loss(
    task: Discrimination, network: Network, params: Params, fields: list[jax.Array]
) -> jax.Array:
    """Loss over classes with the given preactivations, each (…, K or what the network needs)."""
    # A mean per class, times the exact probability: the rounded counts of a batch would bias it.
    targets = jnp.asarray(task.targets(), fields[0].dtype)
    total = task.penalty(params["weights"])
    for c, prior in enumerate(task.priors):
        h = fields[c].reshape(-1, fields[c].shape[-1])
        outputs = jax.vmap(lambda row: network.readout(params, row, task.outputs))(h)
        total = total + prior * jnp.mean(jax.vmap(task.sample_loss, (0, None))(outputs, targets[c]))
    return total


def preactivations(
    task: Discrimination, network: Network, params: Params, x: jax.Array
) -> jax.Array:
    """⟨w_k, x⟩ of every sample, (num, K), and what else the network needs."""
    return jnp.matmul(x, network.projections(params, task.shape).T, precision=FULL)


def sampled(
    task: Discrimination,
    network: Network,
    extra: Any,
    params: Params,
    key: Any,
    counts: tuple[int, ...],
) -> Estimate:
    """The gradient on fresh samples: what batch gradient descent means."""
    return _gradient(task, network, params, draw_classes(task, key, counts))


def _gradient(
    task: Discrimination, network: Network, params: Params, samples: list[jax.Array]
) -> Estimate:
    def loss(params: Params) -> jax.Array:
        fields = [preactivations(task, network, params, x) for x in samples]
        return mean_loss(task, network, params, fields)

    return jax.value_and_grad(loss)(params)


def in_order(
    task: Discrimination,
    network: Network,
    extra: Any,
    params: Params,
    step: Any,
    counts: tuple[int, ...],
) -> Estimate:
    """The gradient on the rows of this step, from a window of rows (`stream.py`)."""
    rows, first_step = extra
    samples = [
        jax.lax.dynamic_slice_in_dim(x, (step - first_step) * n, n)
        for x, n in zip(rows, counts, strict=True)
    ]
    return _gradient(task, network, params, samples)


def orbit(
    task: Discrimination,
    network: Network,
    extra: Any,
    params: Params,
    key: Any,
    counts: tuple[int, ...],
) -> Estimate:
    """The gradient on all shifts of each sample and their negatives: same mean, less variance.

    Right for stimuli that are translation invariant and sign symmetric. A sample costs one circular
    correlation with each field forward and one backward. What is known of the classes
    (`orbit_extra`) need not be sampled.
    """
    samples = draw_classes(task, key, counts)
    if extra is not None:
        return _neuron_orbit(task, extra, params["weights"], samples)

    def loss(params: Params) -> jax.Array:
        projections = network.projections(params, task.shape)
        fields = [all_shifts(projections, x, task.shape) for x in samples]
        negated = [-h for h in fields]  # of −X; biases and readout make the two losses differ
        return 0.5 * (
            mean_loss(task, network, params, fields) + mean_loss(task, network, params, negated)
        )

    return jax.value_and_grad(loss)(params)


def orbit_extra(task: Discrimination, network: Network) -> list[tuple[np.ndarray, float]] | None:
    """What `orbit` knows beforehand of one ReLU neuron under mean squared error; otherwise None.

    Returns:
        For each class, the covariance row and how far h X can be trusted as a control variate:
        √(2/(κ − 1)) for a kurtosis κ above that of the normal distribution, after the variance of
        h²; else 1.
    """
    # These classes exactly: one derived from them may have another readout, or another loss.
    neuron = type(network) is SingleNeuron and network.activation == "relu"
    if not neuron or type(task) is not Discrimination or task.loss != "mse" or task.outputs != 1:
        return None
    marginals = [stimulus.marginal() for stimulus in task.stimuli]
    kurtosis = [3.0 if marginal is None else max(3.0, marginal.kurtosis) for marginal in marginals]
    return [
        (s.covariance(), math.sqrt(2 / (k - 1)))
        for s, k in zip(task.stimuli, kurtosis, strict=True)
    ]


def _neuron_orbit(
    task: Discrimination, extra: Any, weights: jax.Array, samples: list[jax.Array]
) -> Estimate:
    """L = Σ p_c (y_c² + ½ wᵀΣ_c w − 2 y_c ⟨w, f_c⟩): samples serve only f_c = E[1(⟨w, X⟩ > 0) X].

    A class with label 0 needs none, and none are drawn: compiled code drops what nothing uses.
    """
    loss, gradient = jax.value_and_grad(task.penalty)(weights)
    for c, (prior, label) in enumerate(
        zip(task.priors, task.targets()[:, 0].tolist(), strict=True)
    ):
        row, trust = extra[c]
        back = _times(row, weights)
        loss, gradient = (
            loss + prior * (label**2 + 0.5 * jnp.vdot(weights, back)),
            gradient + prior * back,
        )
        if label != 0:
            toward = 2 * prior * label * _response(weights, samples[c], row, trust, back)
            loss, gradient = loss - jnp.vdot(weights, toward), gradient - toward
    return loss, {"weights": gradient}


def _response(
    weights: jax.Array, x: jax.Array, row: jax.Array, trust: jax.Array, back: jax.Array
) -> jax.Array:
    """½ E[sgn(h) X], h = ⟨w, X⟩, from all shifts of some samples, with h X as a control variate.

    The mean of h X is known, Σw (`back`), and most of the noise in sgn(h) X is in h X, too. Any
    multiple of h X − Σw can be subtracted, and biases nothing if it does not depend on the samples.
    For Gaussian h of deviation s the best is √(2/π)/s across Σw and half of that along Σw. With
    heavy tails h X is of less use (`trust` below 1), or of none.
    """
    h, pull = jax.vjp(lambda w: all_shifts(w, x, row.shape), weights)
    variance = jnp.vdot(weights, back)
    smallest = SMALLEST_VARIANCE * row.ravel()[0] * jnp.vdot(weights, weights)
    # The smallest number keeps a field of zeros from dividing by zero.
    square = jnp.maximum(variance, smallest) + jnp.finfo(h.dtype).tiny
    multiple = trust * math.sqrt(2 / math.pi) / jnp.sqrt(square)
    # The transpose of w ↦ h is the sum of c X over all shifts and samples, with coefficients c.
    (across,) = pull((jnp.sign(h) - multiple * h) / (2 * h.size))
    along = (1 - trust / 2) * (jnp.mean(h**2) - variance) / square
    return across + 0.5 * multiple * (1 + along) * back


def _times(row: jax.Array, weights: jax.Array) -> jax.Array:
    """Σw for the row of Σ, (1, size)."""
    if row.size <= LARGEST_DENSE_ORBIT:
        return jnp.matmul(weights, matrix(row), precision=FULL)
    return filtered(spectrum(row), weights.reshape(1, *row.shape)).reshape(weights.shape)


def all_shifts(weights: jax.Array, x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Preactivations of every shift of every sample, (num, size, K)."""
    num, hidden = x.shape[0], weights.shape[0]
    if weights.shape[1] <= LARGEST_DENSE_ORBIT:
        # Column (s, k) of the matrix is field k moved by s: one product gives all shifts of all
        # samples.
        moved = jax.vmap(lambda w: matrix(w.reshape(shape)))(weights)  # (K, shift, site)
        columns = moved.transpose(2, 1, 0).reshape(weights.shape[1], -1)
        return jnp.matmul(x, columns, precision=FULL).reshape(num, -1, hidden)
    axes = tuple(range(-len(shape), 0))
    of_x = jnp.fft.rfftn(x.reshape(num, 1, *shape), axes=axes)
    of_w = jnp.fft.rfftn(weights.reshape(1, hidden, *shape), axes=axes)
    h = jnp.fft.irfftn(of_x * jnp.conj(of_w), s=shape, axes=axes)
    return h.reshape(num, hidden, -1).transpose(0, 2, 1)


def check_estimator(task: Discrimination, estimator: str) -> None:
    """Raise an InputError for an unknown name, or if a stimulus lacks a symmetry of `orbit`."""
    if estimator not in tuple(ESTIMATORS):  # a list is a mistake, too, and not hashable
        raise unknown_name("estimator", estimator, ESTIMATORS)
    for stimulus in task.stimuli if estimator == "orbit" else ():
        for name in ("translation_invariant", "sign_symmetric"):
            if not getattr(stimulus, name):
                raise InputError(
                    f"The estimator 'orbit' averages over shifts and signs, and {stimulus!r} is "
                    f"not {name.replace('_', ' ')}. Use estimator='independent'."
                )


def exact(
    task: Any, network: Any, extra: Any, params: Params, key: Any, counts: tuple[int, ...]
) -> Estimate:
    """The population loss and gradient, by a theory (`exact_extra`); nothing is drawn."""
    return extra(params)


def exact_extra(task: Discrimination, network: Network) -> Any:
    """The population gradient of the best theory: a tree of arrays, called with parameters.

    Raises:
        InputError: If no theory does.
    """
    # Training does not import theory: the registry finds the theory that chooses the best one.
    theory: Any = find("theory", "best-known")()
    if theory.covers(task, network).exact:
        return theory.flow(task, network)
    names = ", ".join(type(stimulus).__name__ for stimulus in task.stimuli)
    raise InputError(
        f"No exact gradient is known for {type(network).__name__} on {names}. "
        "Use the estimator 'orbit' or 'independent'."
    )


def class_counts(task: Discrimination, batch: int, name: str = "batch") -> tuple[int, ...]:
    """Samples of each class in a batch: proportions, rounded to add up with no class empty."""
    ideal = np.asarray(task.priors) * batch
    # 1e-9: a third of 300 may be 99.999… in floating point. What is left over goes to the classes
    # with the largest remainders.
    counts = np.floor(ideal + 1e-9).astype(int)
    for c in np.argsort(counts - ideal)[: batch - counts.sum()]:
        counts[c] += 1
    if counts.min() < 1:
        raise InputError(
            f"`{name}` is {batch}, which leaves no sample for the rarest class; its probability is "
            f"{min(task.priors):g}. Use more samples."
        )
    return tuple(int(n) for n in counts)


ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    "independent": sampled,
    "shared": sampled,
    "orbit": orbit,
    "exact": exact,
    "epochs": in_order,
}
