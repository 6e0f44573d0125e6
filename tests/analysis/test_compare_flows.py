"""Comparison from end to end: a theory with itself on two grids."""

import dataclasses

import numpy as np
import pytest

import localfields as lf
from localfields.analysis import compare, onset_times


@pytest.fixture(scope="module")
def flows():
    """One theory from the same fields to two times, by the same number of records: one compiled
    program.
    """
    # More sites than are summed state by state: there the flow has kinks, and lines between records
    # follow it worse.
    task = lf.Discrimination(*(lf.stimuli.Ising((24,), coupling=j) for j in (0.3, 0.7)))
    return [
        lf.solve(task, lf.theory.ExactIsing(64), times=np.linspace(0, end, 21), members=4)
        for end in (20, 10)
    ]


def test_a_theory_agrees_with_itself_on_two_grids(flows):
    long, short = flows
    comparison = compare(long, short)
    assert comparison.times.tolist() == list(range(11)) and comparison.interpolation.max() < 1e-9
    assert comparison.distance.shape == (4, 11, 1) and comparison.distance.max() < 1e-6
    assert (comparison.exact, comparison.within_one) == (1.0, 1.0) and comparison.ok.all()
    assert comparison.names == ("exact-ising theory (first)", "exact-ising theory (second)")
    back = compare(
        short, long
    )  # lines between the records of the other: no longer the same, and it says so
    off = back.distance > 1e-3
    assert off.any() and not off[:, ::2].any()
    assert (back.interpolation[off] > back.distance[off] / 4).all()


def test_recorded_onset_is_between_the_same_records(flows):
    for flow in flows:
        again = onset_times(dataclasses.replace(flow, events={}))
        assert np.isfinite(again).all() and np.ptp(again) > 0
        bins = [np.searchsorted(flow.times, when) for when in (again, flow.events["onset"])]
        np.testing.assert_array_equal(*bins)
