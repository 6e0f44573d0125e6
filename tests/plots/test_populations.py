"""A committee as a picture: its order, its signs and its biases."""

import numpy as np
import pytest
from drawn import dots, level, upright
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots._populations import NEGATIVE, POSITIVE, neuron_order

from .canned import canned_trajectory

X = np.arange(24)


def bump(site):
    return np.exp(-(np.minimum((X - site) % 24, (site - X) % 24) ** 2) / 2.0)


def wave(cycles):
    return np.cos(2 * np.pi * cycles * X / 24 + 0.4)


# Two members of six neurons: bumps with negative biases and waves with positive ones, in no order.
FIELDS = np.array(
    [
        [wave(9), -bump(17), wave(3), bump(2), -wave(6), bump(11)],
        [bump(20), wave(2), wave(8), bump(5), bump(9), wave(5)],
    ]
)
BIASES = np.array([[2.0, -1.0, 3.0, -3.0, 1.0, -2.0], [-1.0, 2.0, 1.0, -2.0, -3.0, 3.0]])
# By the place of their bumps, then by frequency.
ORDERS = ([3, 5, 1, 2, 4, 0], [3, 4, 0, 1, 5, 2])


@pytest.fixture
def run():
    return canned_trajectory(FIELDS[:, None], biases=BIASES[:, None])


@pytest.mark.parametrize("member", [0, 1])
def test_negative_biases_go_by_place_and_positive_ones_by_frequency(run, member):
    assert neuron_order(lf.populations(run), member).tolist() == ORDERS[member]


@pytest.mark.parametrize("member", [0, 1])
def test_rows_are_positive_at_their_largest_and_have_their_biases(run, member):
    ax, beside = lf.plots.populations(run, member, ax=Figure)
    fields, biases = FIELDS[member][ORDERS[member]], BIASES[member][ORDERS[member]]
    largest = fields[np.arange(6), np.abs(fields).argmax(axis=1)]
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), fields / largest[:, None])
    assert image.get_clim() == (-1, 1) and image.get_cmap().name == "RdBu_r"
    bars = sorted(beside.patches, key=lambda bar: bar.get_y())
    np.testing.assert_allclose([bar.get_y() + bar.get_height() / 2 for bar in bars], np.arange(6))
    np.testing.assert_allclose([bar.get_width() for bar in bars], biases)
    colors = [to_hex(bar.get_facecolor()) for bar in bars]
    assert colors == [(NEGATIVE if one < 0 else POSITIVE).lower() for one in biases]
    assert beside.get_ylim() == (5.5, -0.5)  # as the picture, from above
    assert (
        level(ax, "black", "--") == level(beside, "black", "--") == 2.5
    )  # between the populations


def test_fields_on_a_torus_have_no_rows(rng):
    with pytest.raises(lf.InputError, match="on a ring"):
        lf.plots.populations(canned_trajectory(rng.normal(size=(1, 2, 3, 4, 4))), ax=Figure)


def test_tuning_is_one_dot_per_field(rng):
    x = np.arange(12.0)
    stripes = np.cos(2 * np.pi * x / 4)[None, :] * np.exp(-((x[:, None] - 6) ** 2) / 8)
    fields = np.stack([stripes, stripes.T, np.exp(-((x[:, None] - 6) ** 2 + (x - 6) ** 2) / 4)])
    run = canned_trajectory(fields.reshape(1, 1, 3, 12, 12))
    selectivity, phases = lf.plots.tuning(run, color="#123456", ax=Figure)
    exact = lf.analysis.tuning(fields)
    points, colors = dots(selectivity.collections[0])
    ratios = (fields**4).sum(axis=(1, 2)) / (fields**2).sum(axis=(1, 2)) ** 2
    np.testing.assert_allclose(points, np.stack([ratios, exact.selectivity], axis=1))
    assert set(colors) == {"#123456"} and upright(selectivity, "black", "--") == 4 / 146
    points, _ = dots(phases.collections[0])
    # Stripes along either axis have an orientation, the round bump has none.
    np.testing.assert_allclose(sorted(points[:, 0]), [0, 90], atol=3)
    oddness = np.degrees(np.arcsin(np.abs(np.sin(exact.phase[:2]))))
    np.testing.assert_allclose(points[:, 1], oddness)
