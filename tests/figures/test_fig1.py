"""Figure 1: settings, drawing, and claims that follow from the fields stored."""

import dataclasses

import numpy as np
from drawn import columns_of, ipr, legend, level, lines, scaled, tiles, upright

from localfields.figures.base import Results
from localfields.figures.fig1 import FIGURE
from localfields.stimuli import NLGP


def with_fields(results, name, make):
    """The same with one run whose fields are others: `make` is given the coordinates of every
    site.
    """
    run = results[name]
    one = make(*np.indices(run.shape)).astype(np.float32)
    fields = np.broadcast_to(one, run.weights.shape)
    other = dataclasses.replace(run, series={**run.series, "weights": fields}, final=fields[:, -1])
    return Results(results.scale, {**results.runs, name: other})


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    result = FIGURE.experiments("paper")
    committee, fit = result["committee"], result["ICA"]
    wanted = [NLGP((30, 30), xi=xi, gain=100.0) for xi in (1.0, 2.0)]
    assert [repr(stimulus) for stimulus in committee.task.stimuli] == list(map(repr, wanted))
    network, method = committee.network, committee.method
    assert (network.hidden, network.activation, network.bias, network.init_scale) == (
        20,
        "relu",
        "none",
        0.01,
    )
    assert (method.learning_rate, method.steps, method.estimator) == (3.0, 10_000, "orbit")
    wanted = [NLGP((16, 16), xi=xi, gain=100.0) for xi in (0.7, 0.5)]
    assert [repr(stimulus) for stimulus in fit.task.stimuli] == list(map(repr, wanted))
    assert (fit.method.samples, fit.method.baseline.components) == (100_000, 80)
    assert fit.method.baseline.algorithm == "parallel"


def test_both_sheets_hold_every_field_in_order(results, figure):
    for ax, name, across, title in (
        (figure.axes[0], "ICA", 10, "ICA: 6 components on a 6×6 torus"),
        (figure.axes[1], "committee", 5, "committee (SCM): 20 neurons on a 16×16 torus"),
    ):
        run = results[name]
        assert ax.get_title() == title
        np.testing.assert_allclose(tiles(ax, run.shape), scaled(run.final[0]), rtol=1e-6)
        assert columns_of(ax, run.shape) == across
        assert ax.images[0].get_clim() == (-1, 1) and ax.images[0].get_cmap().name == "RdBu_r"


def test_ratios_are_in_units_of_the_threshold(results, figure):
    ica, committee = results["ICA"], results["committee"]
    histogram, history = figure.axes[2:]
    values = ipr(ica.final[0].reshape(6, 36)) / (4 / 38)
    edges = [patch.get_x() for patch in histogram.patches]
    edges.append(edges[-1] + histogram.patches[-1].get_width())
    np.testing.assert_allclose([edges[0], edges[-1]], [values.min(), values.max()])
    counts = [patch.get_height() for patch in histogram.patches]
    np.testing.assert_array_equal(counts, np.histogram(values, 30)[0])
    assert upright(histogram) == 1 and set(legend(histogram)) == {"localization threshold"}

    curves = lines(history, style="-")
    result = ipr(committee.weights[0].reshape(*committee.weights.shape[1:3], 256)) / (4 / 258)
    assert len(curves) == 20
    for curve, values in zip(curves, result.T, strict=True):
        np.testing.assert_allclose(curve, [committee.times, values], rtol=1e-5)
    assert level(history, style="--") == 1
    assert [ax.get_title() for ax in (histogram, history)] == [
        "ours: every component",
        "ours: every neuron in training",
    ]


def test_claims_follow_from_the_fields(results):
    def spot(x, y):
        return np.exp(-((x - 3) ** 2) - (y - 2) ** 2)

    def wave(x, y):
        return np.cos(2 * np.pi * x / (x.max() + 1))

    for name, id in (("committee", "F1a"), ("ICA", "F1b")):
        assert verdicts(with_fields(results, name, spot))[id] == "reproduced"
        assert verdicts(with_fields(results, name, wave))[id] == "differs"
