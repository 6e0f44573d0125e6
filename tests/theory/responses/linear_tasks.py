"""Tasks of the linear response."""

import functools

import numpy as np

import localfields as lf
from localfields.stimuli import DenseGaussian, Gaussian
from localfields.theory.responses.linear import LinearResponse

NEURON = lf.networks.SingleNeuron()


def pair(make, xis, **values):
    return lf.Discrimination(*(make(xi=xi) for xi in xis), **values)


def gaussians(xis, shape=(40,), **values):
    """On small lattices with the periodized kernel, which is positive there."""
    kernel = "squared-exponential" if shape == (40,) else "periodized"
    return pair(functools.partial(Gaussian, shape, kernel=kernel), xis, **values)


def velocity(task, theory=None):
    """−∇L as a function of a field, (size,) to (size,)."""
    flow = (theory or LinearResponse()).flow(task, NEURON)
    return lambda w: -flow({"weights": w[None, :]})[1]["weights"][0]


def uneven():
    root = np.random.default_rng(0).normal(size=(8, 8))
    return DenseGaussian((8,), root @ root.T / 4)
