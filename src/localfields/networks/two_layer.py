"""The two-layer network with everything trained."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._spec import Choice, Count, declare
from .._types import Real, Whole, working_dtype
from .base import ACTIVATION, ACTIVATIONS, INIT, INIT_SCALE, Network, Params


class TwoLayer(Network):
    """b + Σ_k v_k σ(⟨w_k, x⟩ + b_k), all trained (model M1 of the paper).

    The second layer starts like the first, normal with variance s·2/(K + outputs); biases start at
    zero. They may be absent, or only those of the hidden layer, b_k.

    Example:
        >>> import localfields as lf
        >>> sorted(lf.networks.TwoLayer(4).initial(jax.random.key(0), (40,)))
        ['biases', 'readout', 'readout_bias', 'weights']
    """

    hidden: Whole = declare(Count(high=100_000), default=10, symbol="K", help="number of neurons")
    activation: str = declare(ACTIVATION, default="relu")
    bias: str = declare(
        Choice(("trained", "hidden", "none")),
        default="trained",
        symbol="b",
        help="biases: of both layers, of one, or none",
    )
    init: str = declare(INIT, default="glorot")
    init_scale: Real = declare(INIT_SCALE, default=0.001)

    def wrong_outputs(self, outputs: int) -> str:
        """Any number will do."""
        return ""

    def initial_rest(self, key: Any, outputs: int) -> Params:
        """Second layer and biases."""
        dtype = working_dtype()
        sd = jnp.sqrt(jnp.asarray(self.init_scale, dtype) * 2 / (self.hidden + outputs))
        rest = {"readout": sd * jax.random.normal(key, (outputs, self.hidden), dtype)}
        if self.bias != "none":
            rest["biases"] = jnp.zeros((self.hidden,), dtype)
        if self.bias == "trained":
            rest["readout_bias"] = jnp.zeros((outputs,), dtype)
        return rest

    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """Second layer on the activations."""
        h = h if self.bias == "none" else h + params["biases"]
        output = params["readout"] @ ACTIVATIONS[self.activation](h)
        return output + params["readout_bias"] if self.bias == "trained" else output
