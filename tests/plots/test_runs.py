"""What a run does over time: ratios, loss, spectrum, and the page of all of them."""

import numpy as np
import pytest
from drawn import ipr, legend, level, lines, over_time, words
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots._style import BLUE, EXTENDED, GREEN, LOCALIZED

from .canned import canned_trajectory

SIZE = 20
WAVE, SITE = np.cos(2 * np.pi * np.arange(SIZE) / SIZE), np.eye(SIZE)[3]
TIMES = np.array([0.0, 1.0, 10.0, 100.0])
# Three starts: one that localizes, one that never does, one that falls apart.
FIELDS = np.array([[WAVE, WAVE, SITE, SITE], [WAVE, WAVE, WAVE, WAVE], [SITE, SITE, SITE, WAVE]])


@pytest.fixture
def run(rng):
    """Two members of three neurons on six sites at five times."""
    return canned_trajectory(rng.normal(size=(2, 5, 3, 6)), loss=rng.uniform(size=(2, 5)))


def test_ratios_are_colored_by_how_their_fields_end(ax):
    assert lf.plots.ipr(canned_trajectory(FIELDS[:, :, None], TIMES), ax=ax) is ax
    (localized,) = lines(ax, LOCALIZED)
    np.testing.assert_allclose(localized, [TIMES, ipr(FIELDS[0])])
    np.testing.assert_allclose(lines(ax, EXTENDED), [[TIMES, ipr(fields)] for fields in FIELDS[1:]])
    assert level(ax, "black", "--") == 4 / 22 and not lines(ax, GREEN)
    assert legend(ax) == {
        "ends localized": LOCALIZED.lower(),
        "ends otherwise": EXTENDED.lower(),
        "localization threshold": "#000000",
    }
    assert ax.get_xlim() == (0, 100) and ax.get_xscale() == "linear"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("flow time", "inverse participation ratio")


def test_an_onset_is_marked_and_time_may_be_logarithmic(ax):
    lf.plots.ipr(canned_trajectory(FIELDS[:, :, None], TIMES), onset=10.0, log_time=True, ax=ax)
    ((x, _),) = lines(ax, GREEN, "-.")
    assert x.tolist() == [10, 10] and "onset, median 10" in legend(ax)
    assert ax.get_xscale() == "symlog" and ax.get_xlim() == (0, 100)


def test_every_neuron_of_every_member_has_a_ratio_at_its_own_times(rng):
    weights = 1 + 0.1 * rng.normal(size=(2, 4, 3, SIZE))  # nowhere localized
    times = np.outer([1.0, 3.0], TIMES)  # learning rates were swept
    drawn = lines(lf.plots.ipr(canned_trajectory(weights, times), ax=Figure().subplots()), EXTENDED)
    wanted = [[times[m], ipr(weights[m, :, k])] for m in range(2) for k in range(3)]
    np.testing.assert_allclose(drawn, wanted)


def test_losses_are_one_curve_per_member_and_their_mean(run, ax):
    lf.plots.loss(run, ax=ax)
    *each, mean = lines(ax, BLUE)
    np.testing.assert_allclose(each, [[run.times, member] for member in run.loss])
    np.testing.assert_allclose(mean, [run.times, run.loss.mean(axis=0)])
    assert ax.lines[-1].get_linewidth() > ax.lines[0].get_linewidth()
    times = np.outer([1.0, 2.0], run.times)  # own times, and so no mean
    swept = canned_trajectory(run.weights, times, loss=run.loss)
    drawn = lines(lf.plots.loss(swept, ax=Figure().subplots()))
    np.testing.assert_allclose(drawn, [[t, y] for t, y in zip(times, run.loss, strict=True)])


def test_a_loss_that_was_not_recorded_is_asked_for():
    with pytest.raises(lf.InputError, match="`loss` was not recorded"):
        lf.plots.loss(canned_trajectory(FIELDS[:, :, None]), ax=Figure().subplots())


def test_spectra_are_shares_of_the_power_at_each_frequency(ax, rng):
    weights = rng.normal(size=(2, 5, 3, 8))
    weights[1, 0, 2] = 0  # a start at zero has none
    lf.plots.spectrum(canned_trajectory(weights), member=1, neuron=2, ax=ax)
    power = np.abs(np.fft.fft(weights[1, 1:, 2], axis=1)) ** 2
    folded = power[:, :5] + np.pad(power[:, :4:-1], ((0, 0), (1, 1)))  # k and −k are one wave
    drawn, times, _ = over_time(ax)
    np.testing.assert_allclose(drawn, folded / power.sum(axis=1, keepdims=True))
    assert times.tolist() == [1, 2, 3, 4]


def test_the_spectrum_of_a_torus_has_the_flat_wave_in_the_middle(ax):
    rows, columns = np.meshgrid(np.arange(4), np.arange(6), indexing="ij")
    field = 1 + 2 * np.cos(2 * np.pi * (rows / 4 + 2 * columns / 6))  # one cycle down, two across
    lf.plots.spectrum(canned_trajectory(field[None, None, None]), ax=ax)
    (image,) = ax.images
    left, right, bottom, top = image.get_extent()
    power = np.asarray(image.get_array())
    assert power.sum() == pytest.approx(1) and (left, right, bottom, top) == (-3.5, 2.5, -2.5, 1.5)
    result = {
        (int(bottom + 0.5 + row), int(left + 0.5 + column)): round(float(power[row, column]), 6)
        for row, column in np.argwhere(power > 1e-9)
    }
    assert result == {(0, 0): round(1 / 3, 6), (1, 2): round(1 / 3, 6), (-1, -2): round(1 / 3, 6)}


def test_the_overview_names_its_fields_and_has_ratio_and_loss(run):
    *fields, ratio, loss = lf.plots.overview(run, ax=Figure)
    places = [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert [ax.get_title() for ax in fields] == [f"member {m}, neuron {k}" for m, k in places]
    for ax, (member, neuron) in zip(fields, places, strict=True):
        np.testing.assert_array_equal(over_time(ax)[0], run.weights[member, :, neuron])
    assert (ratio.get_title(), loss.get_title()) == ("inverse participation ratio", "held-out loss")
    drawn = sorted(y.tolist() for x, y in lines(ratio) if len(x) == 5)
    np.testing.assert_allclose(
        drawn, sorted(ipr(run.weights[m, :, k]).tolist() for m in range(2) for k in range(3))
    )
    np.testing.assert_allclose([y for _, y in lines(loss)][:2], run.loss)


def test_the_overview_of_a_torus_shows_pictures_and_what_was_not_recorded(rng):
    run = canned_trajectory(rng.normal(size=(1, 5, 2, 4, 5)))
    *fields, ratio, loss = lf.plots.overview(run, ax=Figure)
    for neuron, ax in enumerate(fields):
        np.testing.assert_array_equal(ax.images[0].get_array(), run.weights[0, -1, neuron])
    assert len(fields) == 2 and level(ratio, "black", "--") == 4 / 22
    assert words(loss) == ["not recorded"]
