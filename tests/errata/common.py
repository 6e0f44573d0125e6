"""Tasks on which the sources are checked, small enough to enumerate or to integrate, and their
losses from scratch.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

import localfields as lf
from localfields.stimuli._ring import enumerate_states, ising_weights

from .row import normal_mean, quadrant

ROOT = math.sqrt(2 / math.pi)

# Gaussian classes on eight sites: label 0 short, label 1 long.
SHORT, LONG = (lf.stimuli.Gaussian((8,), xi=xi, kernel="periodized") for xi in (0.8, 1.6))
GAUSSIAN = lf.Discrimination(SHORT, LONG)
SIGMA0, SIGMA1 = (lf.lattice.matrix(stimulus.covariance()) for stimulus in (SHORT, LONG))

# Spins on nine sites, all 512 states.
WEAK, STRONG = (lf.stimuli.Ising((9,), coupling=coupling) for coupling in (0.3, 0.7))
ISING = lf.Discrimination(WEAK, STRONG)
STATES = enumerate_states(9).astype(float)
P0, P1 = (ising_weights(STATES, stimulus.coupling) for stimulus in (WEAK, STRONG))
C0, C1 = (STATES.T @ (p[:, None] * STATES) for p in (P0, P1))


def field(size=8, seed=0):
    """A field of random weights."""
    return np.random.default_rng(seed).normal(size=size)


def root(w, sigma):
    """s = √(wᵀΣw), the standard deviation of a preactivation."""
    return math.sqrt(w @ sigma @ w)


@functools.cache
def half_mean():
    """E[ReLU(Z)] by quadrature."""
    return normal_mean(lambda z: z, 0.0)


def gaussian_loss(fields):
    """E(Y − ŷ)² of a committee of ReLU neurons on the Gaussian classes, (K, size), by
    quadrature.
    """
    fields = np.atleast_2d(fields)
    count, total = len(fields), 0.5
    for sigma in (SIGMA0, SIGMA1):
        q = fields @ sigma @ fields.T
        pairs = sum(
            quadrant(q[k, k], q[m, m], q[k, m], 1, 1) for k in range(count) for m in range(count)
        )
        total += 0.5 * pairs / count**2
    return total - sum(root(w, SIGMA1) for w in fields) * half_mean() / count


def ising_loss(w):
    """E(Y − ReLU⟨w, X⟩)² on the spins, summed over states."""
    out = np.maximum(STATES @ w, 0)
    return 0.5 * (P0 @ out**2 + P1 @ (1 - out) ** 2)


def spins_response(w, p):
    """E[1(⟨w, X⟩ ≥ 0) X], summed over states."""
    return (p * (STATES @ w >= 0)) @ STATES


def descent(theory, task, network=None, **params):
    """−∇L of the library's, in its convention: L = E(Y − ŷ)², without a ½."""
    flow = theory.flow(task, network or lf.networks.SingleNeuron())
    gradient = jax.jit(lambda params: flow(params)[1])  # compiled, the loss itself is left out
    result = gradient({name: jnp.asarray(np.atleast_1d(value)) for name, value in params.items()})
    return {name: -np.asarray(value) for name, value in result.items()}


def neuron(w, task=GAUSSIAN, theory=None):
    """ẇ = −∇L of one ReLU neuron."""
    return descent(theory or lf.theory.LinearResponse(), task, weights=w[None])["weights"][0]


def erf(x):
    """σ(x) = erf(x/√2)."""
    return scipy.special.erf(np.asarray(x) / math.sqrt(2))
