"""Two trajectories side by side."""

import numpy as np
import pytest
from drawn import dots, ipr, level, lines
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots._style import BLUE, GREEN, ORANGE

from .canned import canned_trajectory

TIMES = np.arange(8.0)


def growing(sites, onsets, size=20, amplitude=1.0):
    """A wave until its onset and one site from then on, for each member."""
    wave = np.cos(2 * np.pi * np.arange(size) / size)
    rows = [
        [amplitude * np.eye(size)[site] if time >= onset else 0.3 * wave for time in TIMES]
        for site, onset in zip(sites, onsets, strict=True)
    ]
    return canned_trajectory(np.array(rows)[:, :, None], TIMES)


@pytest.fixture
def pair():
    """Five members: two peaks on the same site, one beside it around the ring, two far away."""
    first = growing([0, 5, 10, 15, 3], [1, 2, 3, 4, 5])
    second = growing([19, 5, 14, 15, 9], [2, 3, 4, 5, 6], amplitude=2.0)
    return first, second


@pytest.fixture
def panels(pair):
    """Fields, agreement, localization and peaks; the field is that of the fourth member."""
    return lf.plots.comparison(*pair, member=3, ax=Figure)


def test_fields_are_solid_and_dashed_at_milestones_of_the_first(pair, panels):
    (first, second), ax = pair, panels[0]
    curves = [line for line in ax.lines if len(line.get_xdata()) == 20]
    solid, dashed = (
        [one for one in curves if one.get_linestyle() == style] for style in ("-", "--")
    )
    # A wave until time 4, then a site for good: the start, when it has gone a third, two thirds and
    # all of its way.
    records = [int(one.get_label().removeprefix("time ")) for one in solid]
    assert records == [0, 4, 7]
    for one, other, record in zip(solid, dashed, records, strict=True):
        np.testing.assert_allclose(one.get_ydata(), first.weights[3, record, 0])
        np.testing.assert_allclose(other.get_ydata(), second.weights[3, record, 0])
        assert one.get_color() is not None and tuple(one.get_color()) == tuple(other.get_color())
    assert ax.get_title("left") == "a   member 3"


def test_agreement_is_median_and_middle_of_members(pair, panels):
    (first, second), ax = pair, panels[1]
    a, b = (run.weights[:, :, 0] for run in (first, second))
    norms = np.linalg.norm(a, axis=2), np.linalg.norm(b, axis=2)
    distance = np.linalg.norm(a - b, axis=2) / norms[0]
    cosine = np.einsum("mts,mts->mt", a, b) / (norms[0] * norms[1])
    for color, values, band in zip(
        (ORANGE, GREEN), (distance, cosine), ax.collections, strict=True
    ):
        ((times, middle),) = lines(ax, color)
        np.testing.assert_allclose(times, TIMES)
        np.testing.assert_allclose(middle, np.median(values, axis=0), atol=1e-9)
        corners = band.get_paths()[0].vertices
        for time, column in zip(TIMES, values.T, strict=True):
            heights = corners[corners[:, 0] == time, 1]
            ends = np.quantile(column, [0.1, 0.9])
            np.testing.assert_allclose([heights.min(), heights.max()], ends, atol=1e-9)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["relative ℓ2 distance", "cosine"]


def test_ratios_and_onsets_of_both(pair, panels):
    (first, second), ax = pair, panels[2]
    assert level(ax, style=":") == 4 / 22
    # The ratio of a wave is 1.5/N, that of a site 1; between records it is taken to be a straight
    # line.
    late = (4 / 22 - 1.5 / 20) / (1 - 1.5 / 20) - 1
    for run, color, triangle, onsets in (
        (first, BLUE, "v", np.arange(1, 6) + late),
        (second, ORANGE, "^", np.arange(2, 7) + late),
    ):
        (curve,) = (one for one in lines(ax, color) if len(one[0]) == len(TIMES))
        np.testing.assert_allclose(curve, [TIMES, np.median(ipr(run.weights[:, :, 0]), axis=0)])
        ((middle, _),) = lines(ax, color, marker=triangle)
        assert middle[0] == pytest.approx(np.median(onsets))
        ((marks, heights),) = (one for one in lines(ax, color) if len(one[0]) == 5)
        np.testing.assert_allclose(marks, onsets)
        np.testing.assert_allclose(heights, 4 / 22)
    labels = [text.get_text().rpartition(", ")[2] for text in ax.get_legend().get_texts()]
    assert labels == [f"onset {3 + late:.3g}", f"onset {4 + late:.3g}"]


def test_peaks_of_the_first_are_across_and_those_of_the_second_up(panels):
    ax = panels[3]
    points, _ = dots(ax.collections[-1])
    assert sorted(points.tolist()) == [[0, 19], [3, 9], [5, 5], [10, 14], [15, 15]]
    assert ax.get_title("left") == "d   final peaks: 2 of 5 exact, 3 within ±1"
    assert ax.get_xlabel().startswith("site, ") and ax.get_ylabel().startswith("site, ")


def test_peaks_on_a_torus_are_how_far_apart_they_are():
    def at(place):
        field = np.zeros((6, 8))
        field[place] = 1.0
        return field

    first = canned_trajectory(np.array([[[at((0, 0))]] * 2, [[at((2, 3))]] * 2]))
    second = canned_trajectory(np.array([[[at((5, 2))]] * 2, [[at((4, 3))]] * 2]))
    pictures, *_, ax = lf.plots.comparison(first, second, member=1, ax=Figure)
    shown = np.ma.filled(pictures.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown[:, :8], first.weights[1, -1, 0])
    np.testing.assert_array_equal(shown[:, -8:], second.weights[1, -1, 0])
    points, _ = dots(ax.collections[-1])
    assert sorted(points.tolist()) == [[0, 2], [2, -1]]  # across and down, the short way around
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sites apart, across", "sites apart, down")
    low, high = ax.get_ylim()
    assert low > high  # down is down


def test_four_panels_in_order(pair):
    axes = Figure().subplots(2, 2)
    drawn = lf.plots.comparison(*pair, member=2, ax=axes)
    assert list(drawn) == list(axes.flat)
    titles = [ax.get_title("left") for ax in axes.flat]
    assert [title[0] for title in titles] == list("abcd")
    assert titles[0] == "a   member 2" and titles[1] == "b   agreement" and titles[2] == "c   IPR"
