"""One neuron: the model the theory is about."""

from __future__ import annotations

import jax

from .._spec import declare
from .._types import Real
from .base import ACTIVATION, ACTIVATIONS, INIT, INIT_SCALE, Network, Params


class SingleNeuron(Network):
    """σ(⟨w, x⟩) without bias (model M2 of the paper, with σ = ReLU).

    Example:
        >>> import localfields as lf
        >>> lf.networks.SingleNeuron().hidden
        1
    """

    activation: str = declare(ACTIVATION, default="relu")
    init: str = declare(INIT, default="glorot")
    init_scale: Real = declare(INIT_SCALE, default=0.001)

    @property
    def hidden(self) -> int:
        """One."""
        return 1

    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """The activation itself."""
        return ACTIVATIONS[self.activation](h)
