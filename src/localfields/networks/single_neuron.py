"""One neuron: the model the theory is about."""

from __future__ import annotations

import jax

from .base import ACTIVATIONS, Network, Params, activation_field, init_field, init_scale_field


class SingleNeuron(Network):
    """σ(⟨w, x⟩) without bias (model M2 of the paper, with σ = ReLU).

    Example:
        >>> import localfields as lf
        >>> lf.networks.SingleNeuron().hidden
        1
    """

    activation: str = activation_field()
    init: str = init_field()
    init_scale: float = init_scale_field()

    @property
    def hidden(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One."""
        return 1

    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """The activation itself."""
        return ACTIVATIONS[self.activation](h)
