"""Watching a run: how often it is looked at, and what is seen on the way."""

import numpy as np
import pytest

import localfields as lf


@pytest.fixture
def task():
    return lf.Discrimination(*(lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)))


def run(task, **more):
    return lf.train(task, lf.networks.SingleNeuron(), steps=40, batch=100, members=2, **more)


def test_every_record_is_told_as_it_is_in_the_result(task):
    told = []
    found = run(
        task,
        poll_interval=0,
        on_progress=lambda progress: told.append((progress.step, progress.records[-1])),
    )
    assert [step for step, _ in told] == found.steps.tolist()
    for place, (_, record) in enumerate(told):
        assert np.array_equal(
            np.reshape(record["weights"], found.weights[:, place].shape), found.weights[:, place]
        )


def test_cancel_is_asked_at_the_first_record(task):
    found = run(task, poll_interval=0, cancel=lambda: True)
    assert found.stopped == "cancelled" and found.steps.tolist() == [0, 10]


def test_seconds_between_looks_are_not_negative(task):
    with pytest.raises(lf.InputError, match="poll_interval"):
        run(task, poll_interval=-1)
