"""Samples of a stimulus, drawn for the tests of `localfields.stimuli._statistics`."""

import zlib

import jax
import numpy as np

import localfields as lf
from localfields.stimuli._statistics import (
    SIGMAS,
    declared,
    independence,
    marginal,
    shift_invariance,
    sign_invariance,
)

__all__ = ["declared", "independence", "marginal", "shift_invariance", "sign_invariance"]

CHUNK = 50_000


def seed_of(*names):
    """A seed for what the names say, the same in every run."""
    return zlib.crc32(" ".join(names).encode())


def drawn(stimulus, *names, chunks):
    """Samples in float32, as a user draws them; in pieces, each with the seed of its names and
    number.
    """
    with jax.enable_x64(False):
        pieces = [stimulus.sample(seed_of(*names, str(chunk)), CHUNK) for chunk in range(chunks)]
    return np.concatenate([np.asarray(piece) for piece in pieces])


def broken(laws, stimulus, samples):
    """Worst z score of each law that the samples break."""
    worst = {name: np.abs(law(stimulus, samples)).max() for name, law in laws.items()}
    return {name: z for name, z in worst.items() if not z <= SIGMAS}


def covariance_matrix(stimulus):
    """The declared covariance of all pairs of sites, (size, size)."""
    found = stimulus.covariance()
    if found.shape == stimulus.shape:
        return lf.lattice.matrix(found)
    return found.reshape(stimulus.size, stimulus.size)
