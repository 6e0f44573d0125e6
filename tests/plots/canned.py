"""Runs and results made of known numbers, to be drawn."""

import dataclasses

import numpy as np

from localfields.trajectory import Outcome, Trajectory


def canned_trajectory(weights, times=None, ended="ok", **series):
    """A run with these fields, (member, time, neuron, *shape), one record per unit of flow time
    by default.
    """
    weights = np.asarray(weights, float)
    times = np.arange(float(weights.shape[1])) if times is None else np.asarray(times, float)
    return Trajectory(
        steps=np.arange(weights.shape[1]),
        times=times,
        initial=weights[:, 0],
        final=weights[:, -1],
        series={"weights": weights, **series},
        outcome=(Outcome(ended, -1),) * len(weights),
        experiment={},
        manifest={},
    )


def partly(cls, **known):
    """A result of which a picture needs only some fields; the others are None."""
    return cls(**{field.name: None for field in dataclasses.fields(cls)} | known)
