"""What a training step costs, and what each estimator's gradient is worth."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import interleaved, ratio, seconds
from test_sampling import normals

import localfields as lf
from localfields._prng import make_key
from localfields.training.estimators import orbit, orbit_extra, sampled

NEURON = lf.networks.SingleNeuron()
QUIET = lf.Record(every=10**9, quantities=("ipr",))


def nlgp(xi, shape=(40,), gain=100.0):
    return lf.Discrimination(*(lf.stimuli.NLGP(shape, xi=one, gain=gain) for one in xi))


def step(task, network=NEURON, *, steps, **more):
    """A call that trains for `steps` and returns the seconds of one, as the run itself measured
    them.
    """
    return lambda: (
        lf.train(task, network, steps=steps, record=QUIET, **more).manifest["run_seconds"] / steps
    )


def steps_against(calls, rounds):
    """Seconds a step of each call, and of one call of drawing, taken in turn; the first round
    compiles.
    """
    times = {name: [] for name in calls}
    for turn in range(rounds + 2):
        for name, call in calls.items():
            found = call() if name != "normals" else seconds(call)
            if turn > 1:
                times[name].append(found)
    return times


def test_step_of_independent_draws(report):
    calls = {"steps": step(nlgp((1, 3)), steps=50, batch=10_000), "normals": normals(10_000, 40)}
    value = ratio(steps_against(calls, rounds=15), "steps", "normals")
    report("independent, NLGP, batch 10 000: a step / its 400 000 plain normals", value, limit=1.3)


def test_thirty_members_on_shared_draws(report):
    calls = {
        name: step(nlgp((1, 3)), steps=50, batch=5000, members=members, estimator="shared")
        for name, members in (("one", 1), ("thirty", 30))
    }
    value = ratio(steps_against(calls, rounds=15), "thirty", "one")
    report("shared, NLGP, batch 5000: 30 members / one member", value, limit=1.6)


def test_ising_step(report):
    task = lf.Discrimination(
        *(lf.stimuli.Ising((40,), coupling=coupling) for coupling in (0.3, 0.7))
    )
    times = steps_against({"steps": step(task, steps=1000, batch=500)}, rounds=7)
    report(
        "independent, Ising, batch 500: a step",
        1e3 * float(np.median(times["steps"])),
        "ms",
        limit=0.5,
    )


def localized(size):
    return np.exp(-np.minimum(np.arange(size), size - np.arange(size)) / 0.8)[None, :] * 0.5


def gradients(estimate, task, weights, counts, repeats):
    """A call that makes many gradients at one point, (repeats, size)."""
    extra = orbit_extra(task, NEURON) if estimate is orbit else None
    extra = jax.tree.map(lambda leaf: jnp.asarray(leaf, weights.dtype), extra)

    @jax.jit
    def many(key):
        def one(key):
            return estimate(task, NEURON, extra, {"weights": weights}, key, counts)[1][
                "weights"
            ].ravel()

        return jax.lax.map(one, jax.random.split(key, repeats))

    return lambda: many(make_key(7))


def variance(call):
    found = np.asarray(call(), np.float64)
    return float(found.var(axis=0, ddof=1).sum())


@pytest.mark.parametrize(("xi", "limit"), [((1.0, 3.0), 1 / 15), ((0.3, 0.7), 1 / 30)], ids=str)
@pytest.mark.parametrize("where", ["random", "localized"])
def test_orbit_reaches_the_variance_of_a_large_batch(xi, limit, where, report):
    """Time of as many orbit draws as have the gradient variance of a batch of 10 000, over the
    time of that batch.
    """
    task = nlgp(xi)
    random = np.random.default_rng(5).normal(size=(1, 40)) * 0.05
    weights = jnp.asarray(random if where == "random" else localized(40), jnp.float32)
    plain = gradients(sampled, task, weights, (5000, 5000), 60)
    probe = variance(gradients(orbit, task, weights, (50, 50), 400)) / variance(plain)
    needed = max(1, round(50 * probe))
    enough = gradients(orbit, task, weights, (needed, needed), 60)
    reached = variance(gradients(orbit, task, weights, (needed, needed), 400)) / variance(plain)
    times = interleaved({"orbit": enough, "independent": plain}, rounds=7)
    value = (
        ratio(times, "orbit", "independent") * reached
    )  # corrected for what rounding left of the difference
    what = f"orbit at ξ={xi}, {where} weights ({needed} samples per class)"
    what += ": time to the variance of batch 10 000"
    report(what, value, limit=limit, variance_reached=reached)


def test_variance_for_time(report):
    """Gradient variance × seconds of each estimator, against independent draws (shared costs the
    same a draw).
    """
    task = nlgp((1.0, 3.0))
    weights = jnp.asarray(localized(40), jnp.float32)
    calls = {
        "independent": gradients(sampled, task, weights, (500, 500), 200),
        "orbit": gradients(orbit, task, weights, (50, 50), 200),
    }
    worth = {name: variance(call) for name, call in calls.items()}
    times = interleaved(calls, rounds=9)
    value = ratio(times, "orbit", "independent") * worth["orbit"] / worth["independent"]
    report("variance × time of orbit against independent, localized weights, ξ=(1, 3)", value)


SIZES = [
    (
        "committee K=100, N=40",
        (40,),
        lf.networks.Committee(100, activation="sigmoid", bias="trained"),
    ),
    ("two-layer K=100, N=40", (40,), lf.networks.TwoLayer(100)),
    ("committee K=20, 30×30", (30, 30), lf.networks.Committee(20)),
    ("committee K=10, N=40", (40,), lf.networks.Committee(10)),
    ("committee K=10, N=160", (160,), lf.networks.Committee(10)),
    ("single neuron, N=40", (40,), NEURON),
    ("single neuron, N=160", (160,), NEURON),
    ("single neuron, N=640", (640,), NEURON),
]


@pytest.mark.parametrize(("name", "shape", "network"), SIZES, ids=[name for name, _, _ in SIZES])
def test_cost_against_size(name, shape, network, report):
    calls = {
        "steps": step(nlgp((1, 2), shape), network, steps=20, batch=1000),
        "orbit": step(nlgp((1, 2), shape), network, steps=20, batch=20, estimator="orbit"),
        "normals": normals(1000, int(np.prod(shape))),
    }
    times = steps_against(calls, rounds=5)
    report(f"{name}: step at batch 1000 / its plain normals", ratio(times, "steps", "normals"))
    report(f"{name}: orbit step of 20 draws / step at batch 1000", ratio(times, "orbit", "steps"))
