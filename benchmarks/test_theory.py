"""What theory costs, and how often its prediction is right."""

from __future__ import annotations

import statistics
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import predictions
import pytest
from conftest import clock, seconds

import localfields as lf
from localfields.theory.responses.ising import ising_response
from localfields.trajectory import localized_from

ISING = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=coupling) for coupling in (0.3, 0.7)))
NLGP = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=100.0) for xi in (1.0, 3.0)))
KUR = lf.Discrimination(*(lf.stimuli.Kur((40,), xi=xi, k=10.0) for xi in (1.0, 3.0)))


def warm_clock(call, rounds):
    """The same after a call that compiles."""
    call()
    return clock(call, rounds)


def to_rest(task, rounds, **more):
    """Seconds of an effective flow, which must have come to rest in bumps."""
    found = []
    value = warm_clock(
        lambda: found.append(lf.solve(task, lf.theory.EffectiveFlow(), until=5000.0, **more)),
        rounds,
    )
    assert found[-1].stopped == "at rest"
    assert (found[-1].ipr[:, -1] > localized_from(40)).mean() > 0.9
    return value


@pytest.mark.parametrize(
    ("name", "task"), [("Ising", ISING), ("NLGP g=100", NLGP), ("Kur k=10", KUR)]
)
def test_effective_flow_to_rest(name, task, report):
    value = to_rest(task, rounds=7)
    report(f"effective flow to rest, {name}, N=40", value, "s", limit=0.2)


def test_a_thousand_starts(report):
    value = to_rest(ISING, rounds=1, members=1000)
    report("effective flow to rest, Ising, N=40, 1000 starts", value, "s", limit=15)


@pytest.mark.parametrize(("size", "limit"), [(40, 1.0), (1000, None)])
def test_exact_ising_gradient(size, limit, report):
    task = lf.Discrimination(
        *(lf.stimuli.Ising((size,), coupling=coupling) for coupling in (0.3, 0.7))
    )
    with jax.enable_x64(True):
        flow = lf.theory.ExactIsing(frequencies=256).flow(task, lf.networks.SingleNeuron())
        params = {"weights": jnp.asarray(np.random.default_rng(0).normal(size=(1, size)) * 0.05)}
        gradient = jax.jit(lambda flow, params: flow(params)[1]["weights"])
        seconds(lambda: gradient(flow, params))
        times = [seconds(lambda: gradient(flow, params)) for _ in range(51)]
        found = np.asarray(gradient(flow, params))
        finer = np.asarray(ising_response(params["weights"][0], jnp.asarray(0.7), 1024))
    assert np.isfinite(found).all()
    assert np.abs(finer).max() < 1
    report(
        f"exact Ising gradient, N={size}, M=256", 1e3 * statistics.median(times), "ms", limit=limit
    )


@pytest.mark.parametrize("activation", ["relu", "erf", "sigmoid"])
def test_committee_gradient(activation, report):
    """A hundred neurons with all their pairs, weights and biases."""
    task = lf.Discrimination(*(lf.stimuli.Gaussian((40,), xi=xi) for xi in (1.0, 3.0)))
    smooth = activation != "relu"
    network = lf.networks.Committee(100, activation, "trained" if smooth else "none")
    theory = lf.theory.ErfCommittee() if smooth else lf.theory.GaussianCommittee()
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        params = {"weights": jnp.asarray(rng.normal(size=(100, 40)) * 0.2)}
        if smooth:
            params["biases"] = jnp.asarray(rng.normal(size=100))
        flow = theory.flow(task, network)
        gradient = jax.jit(lambda flow, params: flow(params)[1])
        assert all(
            np.isfinite(part).all() and np.abs(part).max() > 0
            for part in gradient(flow, params).values()
        )
        value = warm_clock(lambda: gradient(flow, params), rounds=51)
    report(f"exact gradient of 100 {activation} neurons, N=40", 1e3 * value, "ms", limit=5.0)


def test_exact_ising_flow_to_rest(report):
    value = warm_clock(lambda: lf.solve(ISING, lf.theory.ExactIsing()), rounds=3)
    assert (
        round(float(lf.solve(ISING, lf.theory.ExactIsing()).ipr[0, -1, 0]), 4) == 0.8537
    )  # the closed form's
    report("exact Ising flow to rest, N=40", value, "s")


def test_predictions(report):
    """At least 38 of 40 right, and no verdict that is wrong and sure of itself."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, task in predictions.tasks().items():
            rows.append(predictions.row(name, task))
            print(rows[-1], flush=True)
    print(predictions.confusion(rows))
    wrong = [one["task"] for one in rows if one["verdict"] not in ("undecided", one["trained"])]
    right = sum(one["verdict"] == one["trained"] for one in rows)
    assert len(rows) >= 40
    report(f"predictions sure and wrong, of {len(rows)}", len(wrong), "tasks", limit=0, rows=rows)
    report(
        f"predictions not right (wrong or undecided), of {len(rows)}",
        len(rows) - right,
        "tasks",
        limit=len(rows) / 20,
    )
