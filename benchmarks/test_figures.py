"""Whether the draws that a figure takes have at most the gradient variance of the paper's batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from localfields._prng import make_key
from localfields._spec import member
from localfields.figures import fig1, fig3, fig5, fig8
from localfields.training.estimators import class_counts, orbit, orbit_extra, sampled

SHARES = (0.0, 0.1, 1.0)  # of the run, at whose fields the variance is measured


def of_family(family, value):
    """Training of one value of Figure 5, from one start."""
    one = fig5.Family(family.name, (value,), {"paper": 1}, family.samples)
    method = fig5.experiments("paper")["kur" if family is fig5.KURS else "nlgp"].method
    task = member(one.task(1), 0)
    return fig5.Experiment(
        task, fig5.NETWORK, method.replace(members=1, seed=0, quantities=("weights",))
    )


CASES = {
    "Figure 1": (fig1.FIGURE.experiments("paper")["committee"], 10_000),
    **{
        f"Figure 3, {name}": (fig3.FIGURE.experiments("paper")[f"{name}: training"], 10_000)
        for name in ("NLGP(0.01)", "Kur(5)")
    },
    **{
        f"Figure 5, {family.name}({value:g})": (of_family(family, value), fig5.BATCH)
        for family in (fig5.NLGPS, fig5.KURS)
        for value in (family.values[0], family.values[len(family.values) // 2], family.values[-1])
    },
    **{
        f"Figure 8, {name}": (fig8.FIGURE.experiments("paper")[f"{name}: training"], 50_000)
        for name in fig8.NAMES.values()
    },
}


def noise(estimate, experiment, extra, params, batch, repeats):
    """Variance of the gradient, summed over all weights."""
    task, network, counts = (
        experiment.task,
        experiment.network,
        class_counts(experiment.task, batch),
    )

    @jax.jit
    def many(key):
        def one(key):
            return estimate(task, network, extra, params, key, counts)[1]["weights"].ravel()

        return jax.lax.map(one, jax.random.split(key, repeats))

    return np.asarray(many(make_key(7)), np.float64).var(axis=0, ddof=1).sum()


@pytest.mark.parametrize("name", CASES)
def test_draws_of_figures(name, report):
    """At the fields that the run starts from, when they have grown, and where it ends."""
    experiment, batch = CASES[name]
    network, shape, method = experiment.network, experiment.task.shape, experiment.method
    assert method.estimator == "orbit"
    steps = [round(share * method.steps) for share in SHARES]
    if name == "Figure 1":  # two minutes' training
        steps = steps[:2]
    extra = orbit_extra(experiment.task, network)
    for step in steps:
        params = network.initial(make_key(0), shape)
        if step:
            short = method.replace(steps=step, every=step, members=1, seed=0)
            fields = experiment.replace(method=short).run().final[0]
            params = {"weights": jnp.asarray(fields.reshape(network.hidden, -1))}
        plain = noise(sampled, experiment, None, params, batch, 40)
        ours = noise(orbit, experiment, extra, params, method.batch, 200)
        report(
            f"{name}, step {step}: gradient variance / that of {batch} independent draws",
            ours / plain,
            limit=1.0,
        )
