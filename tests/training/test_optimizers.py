"""Optimizers with options are values: stored, read back, and one digest for all spellings."""

import numpy as np
import pytest

import localfields as lf

TASK = lf.Discrimination(*(lf.stimuli.Gaussian((8,), xi=xi) for xi in (0.6, 1.1)))
QUICK = lf.Training(steps=12, batch=10, every=1, evaluate=20, quantities=("weights",))


def experiment(optimizer):
    return lf.Experiment(TASK, method=QUICK.replace(optimizer=optimizer))


def test_an_optimizer_with_options_is_stored_and_read_back(tmp_path):
    momentum = experiment("sgd:momentum=0.9")
    first = lf.run_or_load(momentum, tmp_path)
    again = lf.Experiment.of(momentum.canonical())
    assert again.digest == momentum.digest and again.method.optimizer == "sgd:momentum=0.9"
    np.testing.assert_array_equal(again.run().weights, first.weights)
    assert np.abs(experiment("sgd").run().weights - first.weights).max() > 1e-3


@pytest.mark.parametrize(
    "spelling",
    ["adam:b1=0.80,nesterov=True", "adam:nesterov=true,b1=8e-1", "adam: b1 = 0.8, nesterov=true"],
)
def test_spellings_of_one_optimizer_share_a_digest(spelling):
    assert experiment(spelling).digest == experiment("adam:b1=0.8,nesterov=true").digest


def test_a_sweep_over_optimizers():
    axes = {"optimizer": "values:sgd:sgd:momentum=0.9:adam:b1=0.8,b2=0.9"}
    ((_, values),) = lf.Sweep(lf.Experiment(TASK, method=QUICK), axes).axes
    assert values == ("sgd", "sgd:momentum=0.9", "adam:b1=0.8,b2=0.9")
