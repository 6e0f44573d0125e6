"""An autoencoder: one layer with tied weights, and a penalty on activity if wanted."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._prng import make_key
from .._spec import Choice, Count, declare, number
from .._types import Real, Whole
from .base import Baseline, Fitted, check_seed

ACTIVATIONS = {
    "linear": lambda h: h,
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
}


class Weights(NamedTuple):
    """What is learned: fields, (component, size); biases, (component,); offset, (size,)."""

    fields: Any
    biases: Any
    offset: Any


class Autoencoder(Baseline):
    """Fields that encode samples, and decode them as well: y = f(Wx + b), x̂ = Wᵀy + c.

    Minimizes the mean of ½‖x − x̂‖² + λ‖y‖₁ by Adam, whose step shrinks to nothing along a cosine;
    samples are centered and divided by one standard deviation, that of all sites together. Linear
    and without a price it spans the leading principal components, turned in any way. The fields are
    the rows of W, over that deviation: a component's preactivation is ⟨field, x⟩ less a constant.

    Example:
        >>> import localfields as lf
        >>> x = lf.stimuli.Kur((12,), xi=1, k=3).sample(0, 500)
        >>> Autoencoder(4, steps=20).fit(x).fields.shape
        (4, 12)
    """

    components: Whole = declare(
        Count(high=100_000), default=40, help="number of fields; may be more than sites"
    )
    activation: str = declare(
        Choice(tuple(ACTIVATIONS)), default="relu", symbol="f", help="of the components"
    )
    sparsity: Real = number(
        default=0.0, low=0, closed=True, symbol="λ", help="price of a component's activity"
    )
    learning_rate: Real = number(default=0.003, low=0, help="step size of Adam at the start")
    steps: Whole = declare(Count(high=10**8), default=5000, help="number of steps")
    batch: Whole = declare(
        Count(high=10**6), default=200, help="samples per step, drawn with replacement"
    )

    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields from samples, (num, size); see `Baseline.fit`.

        Returns:
            Fields. Iterations are steps. Notes: `loss`, its mean over the last tenth of them, and
            `residual`, the share of the variance that is not given back, over at most 20 000
            samples.

        Raises:
            InputError: If the samples cannot be fitted.
        """
        x = self.check_samples(samples, overcomplete=True)
        x = x - x.mean(axis=0, dtype=np.float64).astype(x.dtype)
        scale = float(x.std(dtype=np.float64))
        data = jnp.asarray(x / np.asarray(scale, x.dtype))
        key = make_key(check_seed(seed))
        weights, losses = _descend(self, data, key, self.steps, min(self.batch, len(x)))
        subset = data[:: max(1, len(x) // 20_000)]
        decoded = decode(weights, encode(weights, subset, self.activation))
        residual = float(jnp.mean((subset - decoded) ** 2))
        notes = {"loss": float(np.mean(losses[-max(1, self.steps // 10) :])), "residual": residual}
        fields = np.asarray(weights.fields, np.float64) / scale
        return Fitted(fields, bool(np.isfinite(fields).all()), self.steps, notes)

    def loss(self, weights: Weights, x: jax.Array) -> jax.Array:
        """Mean over samples of ½‖x − x̂‖² + λ‖y‖₁, for samples that are centered and scaled."""
        y = encode(weights, x, self.activation)
        error = jnp.sum((x - decode(weights, y)) ** 2, axis=1) / 2
        return jnp.mean(error + self.sparsity * jnp.sum(jnp.abs(y), axis=1))


def encode(weights: Weights, x: jax.Array, activation: str) -> jax.Array:
    """Activity of the components, (num, component)."""
    return ACTIVATIONS[activation](x @ weights.fields.T + weights.biases[None])


def decode(weights: Weights, y: jax.Array) -> jax.Array:
    """Samples given back, (num, size)."""
    return y @ weights.fields + weights.offset[None]


@functools.partial(jax.jit, static_argnames=("steps", "batch"))
def _descend(method: Autoencoder, x: jax.Array, key: Any, steps: int, batch: int) -> Any:
    import optax

    for_start, for_draws = jax.random.split(key)
    sites = x.shape[1]
    fields = jax.random.normal(for_start, (method.components, sites), x.dtype) / np.sqrt(sites)
    start = Weights(fields, jnp.zeros(method.components, x.dtype), jnp.zeros(sites, x.dtype))
    optimizer = optax.adam(optax.cosine_decay_schedule(method.learning_rate, steps))

    def step(state: Any, number: Any) -> Any:
        weights, inner = state
        chosen = jax.random.randint(jax.random.fold_in(for_draws, number), (batch,), 0, len(x))
        loss, gradient = jax.value_and_grad(method.loss)(weights, x[chosen])
        change, inner = optimizer.update(gradient, inner)
        return (optax.apply_updates(weights, change), inner), loss

    (weights, _), losses = jax.lax.scan(step, (start, optimizer.init(start)), jnp.arange(steps))
    return weights, losses
