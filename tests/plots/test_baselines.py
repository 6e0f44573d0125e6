"""Fields of methods without labels: which are chosen, in which colors, with which numbers."""

from pathlib import Path

import numpy as np
import pytest
from drawn import ipr, is_color, lines, scaled, tiles
from matplotlib.figure import Figure

from localfields.plots.baselines import (
    LOCALIZED,
    SPREAD_OUT,
    chosen,
    draw_sheet,
    draw_stack,
    is_localized,
    save_fields,
)

from .canned import canned_trajectory

SIZE = 20


def block(length):
    """A field on so many sites of 20: its ratio is one over them."""
    return (np.arange(SIZE) < length) * -2.0


LENGTHS = (10, 1, 20, 4, 2)
FIELDS = np.array([block(length) for length in LENGTHS])


def test_localized_is_above_four_over_n_and_two():
    assert is_localized(FIELDS, 1).tolist() == [1 / length > 4 / 22 for length in LENGTHS]
    assert is_localized(np.zeros((1, SIZE)), 1).tolist() == [False]
    edge = np.eye(2)[:1]  # N = 2: the ratio 1 is the threshold itself
    assert is_localized(edge, 1).tolist() == [False]
    torus = FIELDS.reshape(-1, 4, 5)
    assert is_localized(torus, 2).tolist() == is_localized(FIELDS, 1).tolist()


def test_a_few_are_chosen_from_the_most_to_the_least_localized():
    assert chosen(FIELDS, 1, 5).tolist() == [1, 4, 3, 0, 2]
    assert chosen(FIELDS, 1, 3).tolist() == [1, 3, 2]
    assert chosen(FIELDS, 1, 9).tolist() == [1, 4, 3, 0, 2]


def test_a_stack_has_the_largest_weight_of_each_at_plus_one():
    ax = Figure().subplots()
    draw_stack(ax, FIELDS, shown=3)
    curves = [one for one in ax.lines if len(one.get_xdata()) == SIZE]
    for place, (curve, field) in enumerate(zip(curves, FIELDS[[1, 3, 2]], strict=True)):
        np.testing.assert_allclose(curve.get_ydata() + 2.2 * place, field / -2.0)
    colors = [curve.get_color() for curve in curves]
    assert colors == [LOCALIZED, LOCALIZED, SPREAD_OUT]
    low, high = ax.get_ylim()
    assert low < -2.2 * 2 and high > 1


def test_a_sheet_has_them_side_by_side(rng):
    fields = FIELDS.reshape(-1, 4, 5)
    ax = Figure().subplots()
    draw_sheet(ax, fields, columns=2, rows=2)
    np.testing.assert_allclose(tiles(ax, (4, 5)), scaled(fields[[1, 4, 0, 2]]))


@pytest.mark.parametrize("shape", [(SIZE,), (4, 5)])
def test_all_fields_are_saved_with_their_ratios(shape, saved, rng):
    fields = rng.normal(size=(45, SIZE))
    fields[1] = block(1)
    save_fields(canned_trajectory(fields.reshape(1, 1, 45, *shape)), Path("x.png"))
    axes = saved[0].axes
    assert len(axes) == 40 and "the first 40 of 45" in saved[0].get_suptitle()
    for place, ax in enumerate(axes):
        value = ipr(fields[place])
        assert ax.get_title() == f"{place}: {value:.3f}"
        color = LOCALIZED if value > 4 / 22 else SPREAD_OUT
        assert is_color(ax.title.get_color(), color)
        if len(shape) == 1:
            np.testing.assert_array_equal(lines(ax, color)[0][1], fields[place])
        else:
            np.testing.assert_allclose(tiles(ax, shape), scaled(fields[place].reshape(1, *shape)))
