"""Fields over flow time and sheets of fields."""

import numpy as np
from drawn import level, over_time, tiles
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from localfields.plots.fields import (
    EARLY_TO_LATE,
    add_time_bar,
    draw_many,
    draw_over_time,
    draw_pictures,
    time_colors,
)


def test_curves_are_the_records_with_their_times(ax, rng):
    fields, times = rng.normal(size=(7, 5)), np.geomspace(1, 64, 7)
    draw_over_time(ax, fields, times)
    drawn, told, until = over_time(ax)
    np.testing.assert_array_equal(drawn, fields)
    np.testing.assert_array_equal(told, times)
    assert until == 64 and ax.collections[0].get_clim()[0] == 0 and level(ax) == 0
    assert ax.get_xlim() == (-0.5, 4.5)
    low, high = ax.get_ylim()
    assert low <= fields.min() and fields.max() <= high
    widths = ax.collections[0].get_linewidths()
    assert widths[-1] == 2 * widths[0]


def test_of_many_records_some_are_drawn_the_ends_among_them(ax):
    fields = np.repeat(np.arange(1000.0)[:, None], 3, axis=1)
    draw_over_time(ax, fields, np.arange(1000.0), until=2000.0, curves=10)
    drawn, times, until = over_time(ax)
    np.testing.assert_array_equal(drawn[:, 0], np.linspace(0, 999, 10).round())
    np.testing.assert_array_equal(times, drawn[:, 0])
    assert until == 2000


def test_early_is_blue_and_late_is_red(ax):
    draw_over_time(ax, np.eye(3), np.arange(3.0))
    collection = ax.collections[0]
    collection.update_scalarmappable()
    first, _, last = (to_hex(color) for color in collection.get_edgecolors())
    assert (first, last) == (EARLY_TO_LATE[0].lower(), EARLY_TO_LATE[-1].lower())
    red, _, blue, _ = time_colors()(0.0)
    assert blue > red and time_colors()(1.0)[0] > time_colors()(1.0)[2]
    figure = Figure()
    bar = add_time_bar(figure, figure.subplots(), 30.0)
    assert (bar.vmin, bar.vmax) == (0, 30) and bar.ax.get_ylabel() == "flow time"
    np.testing.assert_allclose(bar.cmap(0.3), time_colors()(0.3))


def test_pictures_are_laid_row_by_row_each_on_its_own_scale(ax, rng):
    fields = rng.normal(size=(5, 3, 4)) * 10.0 ** np.arange(5)[:, None, None]
    draw_pictures(ax, fields, columns=2)
    (image,) = ax.images
    assert image.get_array().shape == (3 * 4 - 1, 2 * 5 - 1)
    wanted = [field / np.abs(field).max() for field in fields]
    np.testing.assert_allclose(tiles(ax, (3, 4)), wanted)
    assert image.get_clim() == (-1, 1)
    assert image.get_cmap().name == "RdBu_r" and image.origin == "upper"


def test_neurons_share_a_scale_but_for_one_far_beyond(rng):
    fields = rng.uniform(-1, 1, size=(4, 3, 6))
    fields[:, 2] *= 30
    axes = Figure().subplots(1, 4)
    draw_many(axes, fields, np.arange(4.0))
    for neuron, ax in enumerate(axes[:3]):
        np.testing.assert_array_equal(over_time(ax)[0], fields[:, neuron])
    bounds = np.abs(fields).max(axis=(0, 2))
    np.testing.assert_allclose([ax.get_ylim()[1] for ax in axes[:2]], 1.15 * bounds[:2].max())
    np.testing.assert_allclose(axes[2].get_ylim(), np.array([-1.15, 1.15]) * bounds[2])
    colors = [ax.yaxis.get_major_ticks()[0].label1.get_color() for ax in axes[:3]]
    assert colors == ["black", "black", EARLY_TO_LATE[-1]]  # red numbers: a scale of its own
    assert not axes[3].axison
