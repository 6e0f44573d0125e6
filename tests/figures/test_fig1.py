"""Figure 1: settings, drawing, and claims that follow from the fields stored."""

import dataclasses

import numpy as np

from localfields.figures.base import Results
from localfields.figures.fig1 import FIGURE
from localfields.stimuli import NLGP


def with_fields(results, name, make):
    """The same with one run whose fields are others: `make` is given the coordinates of every site."""
    run = results[name]
    one = make(*np.indices(run.shape)).astype(np.float32)
    fields = np.broadcast_to(one, run.weights.shape)
    other = dataclasses.replace(run, series={**run.series, "weights": fields}, final=fields[:, -1])
    return Results(results.scale, {**results.runs, name: other})


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    found = FIGURE.experiments("paper")
    committee, fit = found["committee"], found["ICA"]
    wanted = [NLGP((30, 30), xi=xi, gain=100.0) for xi in (1.0, 2.0)]
    assert [repr(one) for one in committee.task.stimuli] == list(map(repr, wanted))
    network, method = committee.network, committee.method
    assert (network.hidden, network.activation, network.bias, network.init_scale) == (
        20,
        "relu",
        "none",
        0.01,
    )
    assert (method.learning_rate, method.steps, method.estimator) == (3.0, 10_000, "orbit")
    wanted = [NLGP((16, 16), xi=xi, gain=100.0) for xi in (0.7, 0.5)]
    assert [repr(one) for one in fit.task.stimuli] == list(map(repr, wanted))
    assert (fit.method.samples, fit.method.baseline.components) == (100_000, 80)
    assert fit.method.baseline.algorithm == "parallel"


def test_draws(results):
    figure = FIGURE.draw(results)
    assert len(figure.axes) == 4 and [len(ax.images) for ax in figure.axes] == [1, 1, 0, 0]


def test_claims_follow_from_the_fields(results):
    def spot(x, y):
        return np.exp(-((x - 3) ** 2) - (y - 2) ** 2)

    def wave(x, y):
        return np.cos(2 * np.pi * x / (x.max() + 1))

    for name, id in (("committee", "F1a"), ("ICA", "F1b")):
        assert verdicts(with_fields(results, name, spot))[id] == "reproduced"
        assert verdicts(with_fields(results, name, wave))[id] == "differs"
