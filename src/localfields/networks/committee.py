"""The soft committee machine: many neurons, one vote each."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Choice, Count, declare, number
from .._types import Real, Whole, working_dtype
from .base import ACTIVATION, ACTIVATIONS, INIT, INIT_SCALE, Network, Params


class Committee(Network):
    """(1/K) Σ_k σ(⟨w_k, x⟩ + b_k): model M1 of the paper with its second layer fixed.

    Biases are absent, trained from `bias_value`, fixed at it, or fixed at +`bias_value` for the
    first half of the neurons and −`bias_value` for the second. With several outputs each is the
    mean of its own K/outputs neurons.

    Example:
        >>> import localfields as lf
        >>> lf.networks.Committee(10, activation="sigmoid", bias="trained")
        Committee(hidden=10, activation='sigmoid', bias='trained', bias_value=0.0, init_scale=0.001)
    """

    hidden: Whole = declare(Count(high=100_000), default=10, symbol="K", help="number of neurons")
    activation: str = declare(ACTIVATION, default="relu")
    bias: str = declare(
        Choice(("none", "trained", "fixed", "halves")),
        default="none",
        symbol="b",
        help="biases: none, trained, fixed at bias-value, or fixed at ± bias-value by halves",
    )
    bias_value: Real = number(
        default=0.0, symbol="b", help="value of fixed biases, start of trained ones"
    )
    init: str = declare(INIT, default="glorot")
    init_scale: Real = declare(INIT_SCALE, default=0.001)

    def wrong_outputs(self, outputs: int) -> str:
        """Each output needs as many neurons as the others."""
        if self.hidden % outputs == 0:
            return ""
        return (
            f"{self.hidden} neurons cannot be divided evenly among {outputs} outputs. "
            f"Choose `hidden` as a multiple of {outputs}."
        )

    def initial_rest(self, key: Any, outputs: int) -> Params:
        """Trained biases start at `bias_value`."""
        if self.bias != "trained":
            return {}
        return {"biases": jnp.full((self.hidden,), self.bias_value, working_dtype())}

    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """Mean over the neurons of each output."""
        if self.bias == "trained":
            h = h + params["biases"]
        elif self.bias == "fixed":
            h = h + self.bias_value
        elif self.bias == "halves":
            h = h + self.bias_value * np.where(
                np.arange(self.hidden) < self.hidden / 2, 1, -1
            ).astype(h.dtype)
        return jnp.mean(ACTIVATIONS[self.activation](h).reshape(outputs, -1), axis=1)
