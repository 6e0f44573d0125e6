"""A network of your own: copy this file and complete the lines marked FILL IN.

    localfields --plugin my_network.py train ising --coupling 0.3,0.7 --network my-network

A network is one hidden layer of receptive fields and a readout of their preactivations
h_k = ⟨w_k, x⟩. The engine computes h, for single samples or for all shifts of one at once, so that
every estimator works without code of its own.
"""

import jax
import jax.numpy as jnp  # noqa: F401 (for what you fill in)

from localfields.fields import Count, Real, Whole, declare
from localfields.networks.base import INIT, INIT_SCALE, Network, Params


class MyNetwork(Network):
    """One sentence: the output as a formula, and what it models."""

    hidden: Whole = declare(Count(high=100_000), default=2, symbol="K", help="number of neurons")
    init: str = declare(INIT, default="glorot")
    init_scale: Real = declare(INIT_SCALE, default=0.001)

    def readout(self, params: Params, h: jax.Array, outputs: int = 1) -> jax.Array:
        """Output of one input, (outputs,), from its preactivations h, (K,); no batch axis here.

        `params` holds `weights` (K, size) and whatever `initial_rest` adds.
        """
        return ...  # FILL IN readout

    # Trained parameters beside the fields, such as biases or output weights (leave out if none):
    # def initial_rest(self, key, outputs):
    #     return {"biases": jnp.zeros(self.hidden)}

    # More than one output: by default they are refused. Accept by
    # def wrong_outputs(self, outputs): return ""
