"""A stimulus of your own: copy this file and complete the lines marked FILL IN.

    localfields check my_stimulus.py
    localfields --plugin my_stimulus.py sample my-stimulus --strength 0.5 --num 1000 --out x.npz
    localfields --plugin my_stimulus.py train my-stimulus --strength 0.2,0.5

In Python, importing the file is enough: `lf.stimuli.MyStimulus`. Inside the package
(`src/localfields/stimuli/`) it is found by itself, and the tests in `tests/laws` compare its
samples with the statistics that it declares.
"""

from typing import Any

import jax
import jax.numpy as jnp  # noqa: F401 (for what you fill in)
import numpy as np

from localfields.fields import LATTICE, Lattice, Real, declare, number
from localfields.marginals import Marginal
from localfields.stimuli.base import Stimulus


class MyStimulus(Stimulus):
    """One sentence in the field's language: which distribution, and when to choose it."""

    # Fields are the specification: range, default, symbol and meaning are declared here and nowhere
    # else. Numbers may be swept, so that in `draw` they may be traced: no `if` on them there.
    shape: Lattice = declare(LATTICE, default=(40,))  # RING for what exists on a ring only
    strength: Real = number(
        default=0.5, low=0, high=1, symbol="q", help="what it does, in a few words"
    )

    # Properties that the theories and the estimator `orbit` rely on. The defaults are
    # translation_invariant = sign_symmetric = weakly_dependent = True and elliptical = False;
    # override them with a property.

    def draw(self, key: Any, num: int) -> jax.Array:
        """Samples, (num, size), sites in C order, mean zero, unit variance; compiled by JAX."""
        return ...  # FILL IN draw

    def covariance(self) -> np.ndarray:
        """Exact Cov(X_0, X_d) at every displacement d, of the lattice's shape, float64."""
        return ...  # FILL IN covariance

    def marginal(self) -> Marginal | None:
        """Exact distribution of one site, a `localfields.marginals.Marginal`; None if unknown."""
        return ...  # FILL IN marginal
