"""Committees and what their tests share."""

import jax
import jax.numpy as jnp
import numpy as np

import localfields as lf
from localfields.theory.networks.pairs import relu_pair

N = 6
SIGMAS = 5.0
GAUSSIANS = tuple(lf.stimuli.Gaussian((N,), xi=xi) for xi in (0.6, 1.1, 0.9))


def covariance(stimulus):
    return np.asarray(lf.lattice.matrix(stimulus.covariance()))


def gated(w, v, sigma):
    """E[1(⟨w, X⟩ > 0) ReLU⟨v, X⟩ X]: the gradient of E[ReLU ReLU]."""
    return np.asarray(_slope(*map(jnp.asarray, (w, v, sigma))))


_slope = jax.jit(
    jax.grad(lambda w, v, sigma: relu_pair(w @ sigma @ w, v @ sigma @ v, w @ sigma @ v))
)
