"""Whether the draws that a figure takes have at most the gradient variance of the paper's batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from localfields._random import make_key
from localfields.figures.fig1 import FIGURE
from localfields.lattice import distance
from localfields.training.estimators import class_counts, orbit, sampled


def variance(estimate, experiment, params, batch, repeats):
    """Summed over all weights."""
    task, network, counts = experiment.task, experiment.network, class_counts(experiment.task, batch)

    @jax.jit
    def many(key):
        def one(key):
            return estimate(task, network, None, params, key, counts)[1]["weights"].ravel()

        return jax.lax.map(one, jax.random.split(key, repeats))

    return float(np.asarray(many(make_key(7)), np.float64).var(axis=0, ddof=1).sum())


@pytest.mark.parametrize("where", ["start", "end"])
def test_draws_of_figure_1(where, report):
    """At the fields it starts from, and at spots like those it ends at."""
    experiment = FIGURE.experiments("paper")["committee"]
    network, shape = experiment.network, experiment.task.shape
    params = network.initial(make_key(0), shape)
    if where == "end":
        spot = np.exp(-(distance(shape) ** 2) / (2 * 2.0**2))
        signs = np.where(np.arange(network.hidden) % 2, -1, 1)
        spots = [0.12 * sign * np.roll(spot, (7 * k, 11 * k), (0, 1)) for k, sign in enumerate(signs)]
        params = {"weights": jnp.asarray(np.stack(spots).reshape(network.hidden, -1), jnp.float32)}
    plain = variance(sampled, experiment, params, 10_000, 40)
    ours = variance(orbit, experiment, params, experiment.method.batch, 200)
    report(f"Figure 1 at its {where}: gradient variance / that of 10 000 independent draws", ours / plain, limit=1.0)
