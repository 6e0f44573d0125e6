"""Fields of a run over time, its ratios and its loss."""

from pathlib import Path

import numpy as np
import pytest
from drawn import ipr, level, lines, words
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from localfields.plots.stimulus import BLUE, GRAY
from localfields.plots.trajectory import draw_fields, draw_series, save_overview

from .canned import canned_trajectory


@pytest.fixture
def run(rng):
    """Two members of three neurons on six sites at five times."""
    return canned_trajectory(rng.normal(size=(2, 5, 3, 6)), loss=rng.uniform(size=(2, 5)))


def test_a_field_is_drawn_from_pale_to_dark(run):
    ax = Figure().subplots()
    draw_fields(ax, run, member=1, neuron=2)
    curves = [one for one in ax.lines if len(one.get_xdata()) == 6]
    np.testing.assert_array_equal([one.get_ydata() for one in curves], run.weights[1, :, 2])
    pale, dark = (to_hex(curves[place].get_color()) for place in (0, -1))
    assert dark == to_hex(colormaps["viridis_r"](1.0)) and pale == to_hex(
        colormaps["viridis_r"](0.05)
    )
    ax = Figure().subplots()
    draw_fields(ax, run, curves=2)
    assert [list(y) for _, y in lines(ax) if len(y) == 6] == [
        list(run.weights[0, record, 0]) for record in (0, 4)
    ]


def test_on_a_torus_the_last_field_is_a_picture(rng):
    run = canned_trajectory(rng.normal(size=(2, 5, 3, 4, 5)))
    ax = Figure().subplots()
    draw_fields(ax, run, member=1, neuron=2)
    np.testing.assert_array_equal(ax.images[0].get_array(), run.weights[1, -1, 2])


def test_series_are_one_curve_per_member_and_their_mean(rng):
    times, values = np.array([0.0, 1.0, 5.0]), rng.uniform(size=(4, 3))
    ax = Figure().subplots()
    draw_series(ax, times, values)
    *each, mean = lines(ax, BLUE)
    np.testing.assert_allclose(each, [[times, one] for one in values])
    np.testing.assert_allclose(mean, [times, values.mean(axis=0)])
    assert ax.lines[-1].get_linewidth() > ax.lines[0].get_linewidth()
    ax = Figure().subplots()
    swept = np.outer([1.0, 2.0, 3.0, 4.0], times)  # own times, and so no mean
    draw_series(ax, swept, values)
    np.testing.assert_allclose(lines(ax), [[t, one] for t, one in zip(swept, values, strict=True)])


def test_the_overview_names_its_fields_and_has_ratio_and_loss(run, saved):
    save_overview(run, Path("x.png"))
    *fields, ratio, loss = saved[0].axes
    places = [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert [ax.get_title() for ax in fields] == [f"member {m}, neuron {k}" for m, k in places]
    for ax, (member, neuron) in zip(fields, places, strict=True):
        np.testing.assert_array_equal(ax.lines[-1].get_ydata(), run.weights[member, -1, neuron])
    assert (ratio.get_title(), loss.get_title()) == ("inverse participation ratio", "held-out loss")
    for ax, values in ((ratio, ipr(run.weights).mean(axis=2)), (loss, run.loss)):
        np.testing.assert_allclose([y for _, y in lines(ax)][:2], values)
    assert ratio.get_ylim() == (0, 1.02)


def test_the_overview_of_a_torus_says_where_localized_begins(rng, saved):
    run = canned_trajectory(rng.normal(size=(1, 5, 2, 4, 5)))
    save_overview(run, Path("x.png"))
    *fields, ratio, _ = saved[0].axes
    assert len(fields) == 2
    assert level(ratio, GRAY, "--") == 4 / 22 and words(ratio) == ["localized above "]
