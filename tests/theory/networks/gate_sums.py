"""What gates do to eight spins, summed over all states without the package."""

import itertools
import math

import numpy as np

import localfields as lf

N = 8
SPINS = tuple(lf.stimuli.Ising((N,), coupling=j) for j in (0.3, 0.7))
TASK = lf.Discrimination(*SPINS)
STATES = np.array(list(itertools.product((1.0, -1.0), repeat=N)))


def probabilities(coupling):
    weights = np.exp(coupling * (STATES * np.roll(STATES, 1, axis=1)).sum(axis=1))
    return weights / weights.sum()


PRIOR = [0.5 * probabilities(stimulus.coupling) for stimulus in SPINS]  # of a state and a class


def half(*directions):
    """Gates of half-spaces on all states, (state, K), written without the package: √½ on a tie."""
    h = STATES @ np.array(directions, float).T
    return np.where(np.abs(h) < 1e-9, math.sqrt(0.5), (h > 0) * 1.0)


def regression(opened, labels=(0.0, 1.0)):
    """A, b and E[Y²] for gates on all states, (state, K), as sums over states and classes."""
    through = (opened[:, :, None] * STATES[:, None, :]).reshape(len(STATES), -1)
    second = sum(through.T @ (p[:, None] * through) for p in PRIOR)
    first = sum(label * p @ through for label, p in zip(labels, PRIOR, strict=True))
    return second, first, sum(label**2 * p.sum() for label, p in zip(labels, PRIOR, strict=True))


def loss_of(opened, fields, labels=(0.0, 1.0)):
    """E(ŷ − Y)² at fields (K, N), summed."""
    output = (opened * (STATES @ np.asarray(fields).T)).mean(axis=1)
    return sum(p @ (output - label) ** 2 for label, p in zip(labels, PRIOR, strict=True))
