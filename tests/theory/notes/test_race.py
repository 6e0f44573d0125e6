"""The race of gates: which loss each ends at, and when."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.networks.gates import (
    Block,
    Bump,
    Flat,
    Gates,
    Open,
    RandomDirections,
    Wave,
)
from localfields.theory import gated_solution, race

from .. import sheet
from ..networks.gate_sums import TASK

RING = [lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)]
ENTERED = {
    "bump": Bump(),
    "majority": Block(length=3),
    "two equal": Block(length=2),
    "flat": Flat(),
    "cos": Wave(),
    "random": RandomDirections(),
}


@pytest.fixture(scope="module")
def spins():
    return race(lf.Discrimination(*RING), ENTERED, num_samples=None)


@pytest.mark.parametrize(
    "name, loss",
    [
        ("bump", ".36563"),
        ("majority", ".36890"),
        ("two equal", ".38398"),
        ("flat", ".38771"),
        ("cos", ".38899"),
    ],
)
def test_race_on_spins(name, loss, spins):
    assert sheet.rounds_to(spins[name].loss, loss)
    assert spins[name].error == 0


def test_race_is_won_by_a_bump_on_spins_and_by_a_flat_gate_on_gaussians(spins):
    assert [entry.name for entry in spins.by_loss] == list(ENTERED)
    clones = race(lf.Discrimination(*(s.gaussian_clone() for s in RING)), ENTERED, num_samples=None)
    for name, loss in (("flat", ".39019"), ("cos", ".39283"), ("bump", ".41445")):
        assert sheet.rounds_to(clones[name].loss, loss)
    assert clones.by_loss[0].name == "flat"
    # One half-space as good as another by its rates; what differs is where b lies.
    assert len({(entry.fastest, entry.slowest) for entry in spins.by_loss}) == 1
    assert spins.by_speed[0].name == clones.by_speed[0].name == "flat"


def test_random_gates_lose_on_spins(spins):
    """The sheet's random direction is not printed: ours are of the same law."""
    task = lf.Discrimination(*RING)
    drawn = race(task, [RandomDirections(seed=seed) for seed in range(5)]).by_loss
    assert sheet.fits(".42514", [one.loss for one in drawn])
    assert min(one.loss for one in drawn) > spins["cos"].loss


def test_times_of_a_race(spins):
    task = lf.Discrimination(*RING)
    for name in ("bump", "flat"):
        one, solution = spins[name], gated_solution(task, ENTERED[name])
        for time, fraction in ((one.half_time, 0.5), (one.most_time, 0.99)):
            left = solution.loss(solution.weights(time)[0]) - one.loss
            assert left / (0.5 - one.loss) == pytest.approx(1 - fraction, rel=1e-6)
        np.testing.assert_allclose(one.fields, solution.limit(), rtol=0, atol=1e-12)


class Shut(Gates):
    """A gate that never opens."""

    num_gates = 1

    def open(self, h):
        return jnp.zeros(1)


def test_who_never_starts_is_in_the_table():
    shut = race(TASK, {"shut": Shut()})["shut"]
    assert (shut.loss, shut.half_time, shut.fastest, shut.slowest) == (0.5, math.inf, 0.0, 0.0)


def test_race_prints_as_a_table():
    result = race(TASK, {"one": Bump(), "none": Open()})
    lines = repr(result).splitlines()
    assert lines[0].split() == "gates limiting loss half time 99 % time by speed rates".split()
    assert [line.split()[0] for line in lines[1:]] == ["one", "none"]
    assert result["none"].loss == pytest.approx(0.5) and result["none"].half_time == math.inf
    with pytest.raises(KeyError):
        result["two"]
    measured = race(
        lf.Discrimination(*(lf.stimuli.NLGP((6,), xi=xi, gain=3.0) for xi in (0.5, 0.9))),
        [Flat()],
        num_samples=1000,
    )
    assert "±" in repr(measured) and measured.by_loss[0].error > 0
