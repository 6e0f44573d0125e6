"""The choice between numpy and jax by what is given, and the precision of draws.

Exact statistics are computed in numpy at float64; the same formulas run in compiled simulation code on traced
arrays. Code that serves both asks `namespace` which one it is in.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import scipy.special


def namespace(*values: Any) -> tuple[Any, Any]:
    """Return (`jax.numpy`, `jax.scipy.special`) if any value is a jax array, else numpy's pair."""
    if any(isinstance(value, jax.Array) for value in values):
        return jnp, jax.scipy.special
    return np, scipy.special


def working_dtype() -> Any:
    """Return float32, or float64 when the user has switched x64 on."""
    return jnp.zeros(()).dtype
