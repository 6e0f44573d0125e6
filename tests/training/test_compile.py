"""Sweeping a number compiles nothing: neither by giving another value, nor another array of
values.
"""

import contextlib

import numpy as np
import pytest

import localfields as lf
from localfields.training import engine

from .helpers import gaussians, run


@contextlib.contextmanager
def traces(expected):
    """How many functions are traced inside."""
    before = sum(engine.TRACES.values())
    yield
    assert sum(engine.TRACES.values()) - before == expected


def pair(cls, **values):
    """Two stimuli of a class, with these numbers."""
    return [
        cls((8,), **{name: value * factor for name, value in values.items()})
        for factor in (1.0, 0.9)
    ]


FAMILIES = {
    "nlgp": lambda x: pair(lf.stimuli.NLGP, xi=0.5 * x, gain=2.0 * x),
    "kur": lambda x: pair(lf.stimuli.Kur, xi=0.5 * x, k=6.0 * x),
    "ising": lambda x: pair(lf.stimuli.Ising, coupling=0.5 * x),
}


def sweep(family, x):
    """Everything that is a number, as numbers or as arrays of them."""
    task = lf.Discrimination(*FAMILIES[family](x), l1=0.01 * x, l2=0.02 * x)
    network = lf.networks.Committee(2, bias="fixed", bias_value=0.3 * x, init_scale=0.5 * x)
    return {"task": task, "network": network, "learning_rate": 0.05 * x}


@pytest.mark.parametrize("family", FAMILIES)
def test_another_number_is_no_other_program(family):
    run(**sweep(family, 1.0))
    with traces(0):
        found = run(**sweep(family, 1.1))
    assert not np.allclose(found.final, run(**sweep(family, 1.0)).final)


def test_other_numbers_of_a_sweep_are_no_other_program():
    def swept(*values):
        return run(**sweep("nlgp", np.array(values)), members=None)

    swept(0.8, 1.0, 1.2)
    with traces(0):
        found = swept(0.7, 0.9, 1.3)
    assert found.num_members == 3 and len(np.unique(found.final[:, 0, 0])) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"seed": 2**40},
        {"steps": 7},
        {"steps": 500, "every": 13},
        {"every": 1},
        {"learning_rate": 0.01},
        {"learning_rate": [0.01, 0.02, 0.03]},
        {"initial": np.ones((1, 8))},
        {"stop_tol": 1e-9},
        {"on_progress": lambda progress: None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_no_shape_compiles_nothing(changes):
    run()
    with traces(0):
        run(**changes)


def test_first_run_traces_every_function_once():
    with traces(3):
        run(gaussians((7,)))


def test_what_is_recorded_does_not_touch_the_training():
    run()
    before = engine.TRACES["advance"]
    run(quantities=("norm",))
    run(quantities=("peak", "weights"))
    assert engine.TRACES["advance"] == before


def test_another_shape_is_another_program():
    # The power of the tests above.
    run()
    with traces(3):
        run(network=lf.networks.SingleNeuron("tanh", init_scale=0.1))
