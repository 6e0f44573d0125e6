"""What every network here is: receptive fields, and a readout of their responses.

All have one hidden layer, so that a network is its first-layer weights (the receptive fields, one a
row) and a function of the preactivations ⟨w_k, x⟩. The engine computes the preactivations, for
single draws or for all shifts of one at once; the network says what follows.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Choice, Declaration, Number, Spec, required
from .._types import Real, Whole, working_dtype
from ..errors import InputError
from ..lattice import distance

Params = dict[str, jax.Array]

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    # erf(h/√2), as the committee literature writes it, and erf(h), as some do.
    "erf": lambda h: jax.scipy.special.erf(h * math.sqrt(0.5)),
    "erf-unscaled": jax.scipy.special.erf,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "identity": lambda h: h,
}

INITS = ("glorot", "glorot-truncated", "positive", "bump", "basis")


class Network(Spec):
    """A hidden layer of receptive fields and a readout."""

    family: ClassVar[str] = "network"

    hidden = required(Whole)
    init = required(str)
    init_scale = required(Real)

    @abc.abstractmethod
    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """Output, (outputs,), from the projections of one input, (K,) or more."""

    def initial(self, key: Any, shape: tuple[int, ...], outputs: int = 1) -> Params:
        """Draw initial trained parameters: `weights` (K, size), and what the architecture adds.

        Args:
            key: A JAX random key.
            shape: The lattice of the input.
            outputs: Number of outputs.
        """
        self.check_outputs(outputs)
        for_fields, for_rest = jax.random.split(key)
        weights = initial_fields(for_fields, self.init, self.init_scale, self.hidden, shape)
        return {"weights": weights, **self.initial_rest(for_rest, outputs)}

    def initial_rest(self, key: Any, outputs: int) -> Params:
        """Initial values of everything trained beside the receptive fields."""
        return {}

    def wrong_outputs(self, outputs: int) -> str:
        """Why the architecture cannot have this number of outputs; empty if it can."""
        if outputs == 1:
            return ""
        return (
            f"{type(self).__name__} has one output, and this task needs {outputs}. "
            "Use `TwoLayer`, or labels that are single numbers."
        )

    def check_outputs(self, outputs: int) -> None:
        """Raise an InputError for a number of outputs that the architecture cannot have."""
        if reason := self.wrong_outputs(outputs):
            raise InputError(reason)

    def projections(self, params: Params, shape: tuple[int, ...]) -> jax.Array:
        """Fields whose projections the readout needs, (…, size), receptive fields first."""
        return params["weights"]

    def apply(
        self, params: Params, x: jax.Array, outputs: int = 1, shape: tuple[int, ...] | None = None
    ) -> jax.Array:
        """Output for one input, (size,) to (outputs,); `shape` is the lattice, if it is not a ring.

        Example:
            >>> import localfields as lf
            >>> neuron = lf.networks.SingleNeuron()
            >>> params = {"weights": jnp.array([[1.0, -1.0]])}
            >>> float(neuron.apply(params, jnp.array([3.0, 1.0]))[0])
            2.0
        """
        return self.readout(params, self.projections(params, shape or x.shape) @ x, outputs)

    def receptive_fields(self, params: Params, shape: tuple[int, ...]) -> jax.Array:
        """First-layer weights on the lattice, (K, *shape)."""
        return params["weights"].reshape(self.hidden, *shape)


ACTIVATION = Declaration(
    Choice(tuple(ACTIVATIONS)),
    help="activation of each neuron; erf means erf(h/√2), erf-unscaled erf(h)",
    symbol="σ",
)
INIT = Declaration(
    Choice(INITS),
    help="start: Glorot normal (plain or truncated), mostly positive, a bump at a random site, "
    "or one site alone",
)
INIT_SCALE = Declaration(Number(low=0), help="initial variance in units of 2/(N + K)", symbol="s")


def initial_fields(
    key: Any, init: str, scale: Any, hidden: int, shape: tuple[int, ...]
) -> jax.Array:
    """Initial receptive fields, (K, size), all of mean square s·2/(N + K)."""
    size, dtype = math.prod(shape), working_dtype()
    sd = jnp.sqrt(jnp.asarray(scale, dtype) * 2 / (size + hidden))
    if init == "glorot":
        return sd * jax.random.normal(key, (hidden, size), dtype)
    if init == "glorot-truncated":
        # Cut at two standard deviations of the parent, and widened so that the result has the
        # standard deviation.
        parent = 0.87962566103423978
        return sd / parent * jax.random.truncated_normal(key, -2.0, 2.0, (hidden, size), dtype)
    if init == "positive":
        # Mean equal to standard deviation: five in six entries are positive.
        return sd * math.sqrt(0.5) * (1 + jax.random.normal(key, (hidden, size), dtype))
    d = distance(shape)
    profile = (d == 0).astype(float) if init == "basis" else np.exp(-(d**2) / 8)
    profile = profile / np.sqrt(np.mean(profile**2))
    moves = [
        jax.random.randint(jax.random.fold_in(key, axis), (hidden,), 0, n)
        for axis, n in enumerate(shape)
    ]
    axes = tuple(range(len(shape)))
    rolled = jax.vmap(lambda by: jnp.roll(jnp.asarray(profile, dtype), by, axes))
    return sd * rolled(jnp.stack(moves, 1)).reshape(hidden, size)
