"""The gated linear network: linear neurons, each behind a gate that does not learn."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._spec import Nested, Spec, declare
from .._types import Real
from ..errors import InputError
from .base import INIT, INIT_SCALE, Network, Params
from .gates import Flat
from .gates.base import GatesField


def _as_gates(name: str, value: Any) -> Any:
    if callable(value) and not isinstance(value, (type, Spec)):
        raise InputError(
            f"`{name}` must be gates, not a function. "
            "Write a subclass of `lf.networks.gates.Gates` with `num_gates` and `open`."
        )
    return value


class GatedLinear(Network):
    """(1/K) Σ_k g_k(x) ⟨w_k, x⟩ with fixed gates g_k: a ReLU network whose gates are frozen.

    The gates decide the number of neurons. They are values of `networks.gates`, among them `Flat`,
    `Bump`, `Block`, `MexicanHat`, `Wave`, `RandomDirections` and `Directions` (half-spaces),
    `Exclusive`, `Redundant`, `Several` and `Open`; or a subclass of `networks.gates.Gates` of your
    own.

    Example:
        >>> import localfields as lf
        >>> network = lf.networks.GatedLinear(lf.networks.gates.Bump(site=1))
        >>> params = {"weights": jnp.array([[2.0, 1.0]])}
        >>> inputs = jnp.array([[3.0, 1.0], [3.0, -1.0]])  # gate open, gate shut
        >>> [network.apply(params, x).item() for x in inputs]
        [7.0, 0.0]
    """

    gates: GatesField = declare(
        Nested("gates", _as_gates),
        default=Flat(),
        symbol="g",
        help="flat, bump, block, mexican-hat, wave, open, …",
    )
    init: str = declare(INIT, default="glorot")
    init_scale: Real = declare(INIT_SCALE, default=0.001)

    @property
    def hidden(self) -> int:
        """One neuron a gate."""
        return self.gates.num_gates

    def projections(self, params: Params, shape: tuple[int, ...]) -> jax.Array:
        """The receptive fields, then what the gates look at."""
        fields = params["weights"]
        return jnp.concatenate([fields, self.gates.directions(shape).astype(fields.dtype)])

    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """Mean of what the gates let through."""
        through = self.gates.open(h[self.hidden :]).astype(h.dtype) * h[: self.hidden]
        return jnp.mean(through, keepdims=True)
