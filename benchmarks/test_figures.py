"""Whether the draws that a figure takes have at most the gradient variance of the paper's batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from localfields._random import make_key
from localfields.figures.fig1 import FIGURE
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


@pytest.mark.parametrize("steps", [0, 1000])
def test_draws_of_figure_1(steps, report):
    """At the fields it starts from and, when spots have formed, at those of one tenth of the run."""
    experiment = FIGURE.experiments("paper")["committee"]
    network, shape = experiment.network, experiment.task.shape
    params = network.initial(make_key(0), shape)
    if steps:
        method = experiment.method.replace(steps=steps, every=steps)
        fields = experiment.replace(method=method).run().final[0]
        params = {"weights": jnp.asarray(fields.reshape(network.hidden, -1))}
    plain = variance(sampled, experiment, params, 10_000, 40)
    ours = variance(orbit, experiment, params, experiment.method.batch, 200)
    what = f"Figure 1 at step {steps}: gradient variance / that of 10 000 independent draws"
    report(what, ours / plain, limit=1.0)
