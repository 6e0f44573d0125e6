"""A theory of your own: copy this file, complete the lines marked FILL IN, and import it.

    import my_theory
    lf.solve(task, lf.theory.MyTheory(), times=[0, 1, 10])
    lf.predict(task)  # takes it where it is the best that covers the task

A theory of one ReLU neuron is its gated mean f(w) = E[1(⟨w, X⟩ ≥ 0) X] of a class; loss, gradient
and flow follow from it for any labels, proportions and number of classes. For another network
derive from `localfields.theory.Theory` and return a `Flow`: a function of the parameters that gives
the population loss and its gradient.
"""

import jax
import jax.numpy as jnp
import numpy as np

from localfields.fields import Real, number
from localfields.stimuli import Stimulus
from localfields.theory.base import Covariance, Coverage, NeuronTheory, Response, covariance_of


class MyResponse(Response):
    """f as a formula."""

    # What f needs, as arrays (never Python numbers): members of an ensemble are stacked.
    covariance: Covariance  # a function: covariance(w) is Σw
    factor: jax.Array

    def __call__(self, w: jax.Array) -> jax.Array:
        """f(w), (size,) to (size,), in code that JAX can compile; finite at w = 0, too."""
        return ...  # FILL IN response


class MyTheory(NeuronTheory):
    """One sentence: what is assumed, and for which data it holds."""

    factor: Real = number(default=1.0, low=0, symbol="c", help="what it does, in a few words")

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """`EXACT` or `APPROXIMATE` if the theory describes the class, else `not_covered(…)`."""
        return ...  # FILL IN coverage

    def response(self, stimulus: Stimulus) -> MyResponse:
        """The response to one class that is covered."""
        with jax.enable_x64(True):  # theory is float64 whatever JAX is set to
            covariance = covariance_of(
                np.asarray(stimulus.covariance(), np.float64), stimulus.shape
            )
            return MyResponse(covariance, jnp.asarray(self.factor, jnp.float64))
