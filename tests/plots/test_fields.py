"""Fields over flow time and sheets of fields."""

import numpy as np
import pytest
from drawn import ipr, is_color, level, lines, over_time, scaled, tiles
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots._fields import (
    draw_many,
    draw_over_time,
    draw_sheet,
    draw_stack,
    is_localized,
    select_fields,
)
from localfields.plots._style import (
    BLUE,
    EARLY_TO_LATE,
    EXTENDED,
    LOCALIZED,
    add_time_bar,
    time_colors,
)

from .canned import canned_trajectory

SIZE = 20


def block(length):
    """A field on so many sites of 20: its ratio is one over them."""
    return (np.arange(SIZE) < length) * -2.0


LENGTHS = (10, 1, 20, 4, 2)
FIELDS = np.array([block(length) for length in LENGTHS])


def test_curves_are_the_records_with_their_times(ax, rng):
    fields, times = rng.normal(size=(7, 5)), np.geomspace(1, 64, 7)
    draw_over_time(ax, fields, times)
    drawn, colored, until = over_time(ax)
    np.testing.assert_array_equal(drawn, fields)
    np.testing.assert_array_equal(colored, times)
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


def test_the_field_of_a_neuron_of_a_member_is_drawn_over_its_own_times(ax, rng):
    times = np.outer([1.0, 10.0], np.arange(5.0))  # learning rates were swept
    run = canned_trajectory(rng.normal(size=(2, 5, 3, 6)), times)
    assert lf.plots.fields(run, member=1, neuron=2, ax=ax) is ax
    drawn, colored, until = over_time(ax)
    np.testing.assert_array_equal(drawn, run.weights[1, :, 2])
    np.testing.assert_array_equal(colored, times[1])
    assert until == 40 and (ax.get_xlabel(), ax.get_ylabel()) == ("site", "weight")
    assert len(ax.figure.axes) == 1  # the color bar is for a figure of its own


def test_a_new_figure_has_a_color_bar(rng):
    run = canned_trajectory(rng.normal(size=(1, 5, 1, 6)))
    figure = lf.plots.fields(run, until=8.0, ax=Figure).figure
    assert figure.axes[1].get_ylabel() == "flow time" and figure.axes[1].get_ylim() == (0, 8)


def test_without_recorded_weights_the_final_field_is_drawn(ax, rng):
    run = canned_trajectory(rng.normal(size=(2, 5, 3, 6)))
    final = run.final.copy()
    run.series.clear()
    lf.plots.fields(run, member=1, neuron=2, ax=ax)
    drawn, times, _ = over_time(ax)
    np.testing.assert_array_equal(drawn, final[1, 2][None])
    assert times.tolist() == [4]


def test_on_a_torus_the_last_field_is_a_picture(ax, rng):
    run = canned_trajectory(rng.normal(size=(2, 5, 3, 4, 5)))
    lf.plots.fields(run, member=1, neuron=2, ax=ax)
    np.testing.assert_array_equal(ax.images[0].get_array(), run.weights[1, -1, 2])


def test_a_sample_is_a_curve_or_a_picture(ax, rng):
    x = rng.normal(size=12)
    lf.plots.sample(x, ax=ax)
    ((sites, values),) = lines(ax, BLUE)
    np.testing.assert_array_equal([sites, values], [np.arange(12), x])
    ax = lf.plots.sample(x, (3, 4), ax=Figure().subplots())
    np.testing.assert_array_equal(ax.images[0].get_array(), x.reshape(3, 4))
    assert ax.images[0].get_clim() == (-np.abs(x).max(), np.abs(x).max())
    assert ax.images[0].get_cmap().name == "RdBu_r"


def test_pictures_are_laid_row_by_row_each_on_its_own_scale(ax, rng):
    fields = rng.normal(size=(5, 3, 4)) * 10.0 ** np.arange(5)[:, None, None]
    lf.plots.pictures(fields, columns=2, ax=ax)
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


def test_localized_is_above_four_over_n_and_two():
    assert is_localized(FIELDS, 1).tolist() == [1 / length > 4 / 22 for length in LENGTHS]
    assert is_localized(np.zeros((1, SIZE)), 1).tolist() == [False]
    edge = np.eye(2)[:1]  # N = 2: the ratio 1 is the threshold itself
    assert is_localized(edge, 1).tolist() == [False]
    torus = FIELDS.reshape(-1, 4, 5)
    assert is_localized(torus, 2).tolist() == is_localized(FIELDS, 1).tolist()


def test_a_few_are_selected_from_the_most_to_the_least_localized():
    assert select_fields(FIELDS, 1, 5).tolist() == [1, 4, 3, 0, 2]
    assert select_fields(FIELDS, 1, 3).tolist() == [1, 3, 2]
    assert select_fields(FIELDS, 1, 9).tolist() == [1, 4, 3, 0, 2]


def test_a_stack_has_the_largest_weight_of_each_at_plus_one(ax):
    draw_stack(ax, FIELDS, shown=3)
    curves = [curve for curve in ax.lines if len(curve.get_xdata()) == SIZE]
    for place, (curve, field) in enumerate(zip(curves, FIELDS[[1, 3, 2]], strict=True)):
        np.testing.assert_allclose(curve.get_ydata() + 2.2 * place, field / -2.0)
    colors = [curve.get_color() for curve in curves]
    assert colors == [LOCALIZED, LOCALIZED, EXTENDED]
    low, high = ax.get_ylim()
    assert low < -2.2 * 2 and high > 1


def test_a_sheet_has_them_side_by_side(ax):
    fields = FIELDS.reshape(-1, 4, 5)
    draw_sheet(ax, fields, columns=2, rows=2)
    np.testing.assert_allclose(tiles(ax, (4, 5)), scaled(fields[[1, 4, 0, 2]]))


@pytest.mark.parametrize("shape", [(SIZE,), (4, 5)])
def test_final_fields_are_those_of_a_member_with_their_ratios(shape, rng):
    fields = rng.normal(size=(2, 45, SIZE))
    fields[1, 1] = block(1)
    run = canned_trajectory(fields.reshape(2, 1, 45, *shape))
    axes = lf.plots.final_fields(run, member=1, ax=Figure)
    assert len(axes) == 40 and "the first 40 of 45" in axes[0].figure.get_suptitle()
    for place, ax in enumerate(axes):
        value = ipr(fields[1, place])
        assert ax.get_title() == f"{place}: {value:.3f}"
        color = LOCALIZED if value > 4 / 22 else EXTENDED
        assert is_color(ax.title.get_color(), color)
        if len(shape) == 1:
            np.testing.assert_array_equal(lines(ax, color)[0][1], fields[1, place])
        else:
            picture = fields[1, place].reshape(1, *shape)
            np.testing.assert_allclose(tiles(ax, shape), scaled(picture))
