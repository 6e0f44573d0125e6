"""Section 4.2: settings, drawing, and a count of peaks that follows from the fields stored."""

import numpy as np
import pytest
from drawn import error_bars, legend, level, lines, ticks
from matplotlib.colors import to_hex
from scipy.stats import beta

from localfields.figures.sec42 import FIGURE, apart, counts, experiments, first_fields, interval
from localfields.plots._style import BLUE, GRAY, GREEN, ORANGE

from .altered import bumps, with_fields


def test_settings_are_the_papers():
    paper = experiments("paper")
    method = paper["training"].method
    assert (method.members, method.batch, method.steps, method.learning_rate) == (
        28,
        500,
        2000,
        0.05,
    )
    assert method.estimator == "independent"
    assert (
        paper["Taylor"].method.theory.amplifier == "taylor" and paper["Taylor"].method.members == 28
    )
    assert paper["other data"].method.seed != method.seed
    assert paper["larger batch"].method.batch == 5000
    assert paper["many: training"].method.members == 280


@pytest.mark.slow
def test_other_data_from_the_same_starts(computed):
    np.testing.assert_array_equal(first_fields(2), computed["training"].initial)
    for name, run in computed.items():
        np.testing.assert_array_equal(run.initial, computed["training"].initial, err_msg=name)
    assert np.abs(computed["training"].final - computed["other data"].final).max() > 0


def peaks(results, name, sites):
    """Results with bumps at these sites, for as many members as sites."""
    return with_fields(results, name, bumps(sites, 40))


def test_the_count_follows_from_fields(results):
    sites = np.arange(28) % 40
    for name in results:
        results = peaks(results, name, sites)
    claim = FIGURE.claims(results)[0]
    assert (
        claim.id == "P1" and claim.verdict == "reproduced" and claim.measured.startswith("28 of 28")
    )
    # Two peaks elsewhere, as published; then half of them one site away, once around the end of the
    # ring.
    two = peaks(results, "Taylor", np.where(sites < 2, sites + 15, sites))
    assert FIGURE.claims(two)[0].measured.startswith("26 of 28")
    assert FIGURE.claims(two)[0].verdict == "reproduced"
    beside = peaks(results, "Taylor", np.where(sites % 2 == 0, (sites - 1) % 40, sites))
    claim = FIGURE.claims(beside)[0]
    assert (
        claim.verdict == "differs"
        and "14 of 28" in claim.measured
        and "±1 site 28 of 28" in claim.measured
    )
    assert counts(apart(beside, "training", "Taylor")) == (14, 28, 28)


def test_interval_is_clopper_and_pearsons():
    low, high = interval(26, 28)
    assert low == pytest.approx(beta.ppf(0.025, 26, 3)) and high == pytest.approx(
        beta.ppf(0.975, 27, 2)
    )
    assert interval(0, 5)[0] == 0 and interval(5, 5)[1] == 1


# What is drawn, of fields that peak at known sites.

TRAINED_AT = np.array([0, 5, 10, 20, 39])
PREDICTED_AT = {  # with what training and each prediction agree in is different everywhere
    "Taylor": [0, 5, 11, 25, 39],
    "exact φ": [0, 5, 10, 21, 0],
    "exact flow": [0, 5, 10, 20, 38],
    "other data": [3, 6, 12, 21, 0],
    "larger batch": [0, 5, 10, 25, 38],
    "exact gradient": [0, 5, 10, 20, 38],
}
COLORS = {"Taylor": ORANGE, "exact φ": BLUE, "exact flow": GREEN}


@pytest.fixture(scope="module")
def known(results):
    results = peaks(results, "training", TRAINED_AT)
    for name, sites in PREDICTED_AT.items():
        results = peaks(results, name, sites)
    # Eq. (5) with the exact φ has its peak on site 7 until half of the time.
    run = results["exact φ"]
    fields = run.weights[:, :, 0].copy()
    fields[:, : len(run.times) // 2] = np.eye(40)[7]
    return with_fields(results, "exact φ", fields)


@pytest.fixture(scope="module")
def panels(known):
    top, bottom = FIGURE.draw(known).subfigs
    return top.axes, bottom.axes


def on_ring(first, second):
    """Sites between two places on a ring of 40, by walking both ways."""
    return np.array([min((a - b) % 40, (b - a) % 40) for a, b in zip(first, second, strict=True)])


def test_sites_are_drawn_by_how_far_they_are_apart(panels):
    titles = ("eq. (5), Taylor φ", "ours: eq. (5), exact φ", "ours: exact flow")
    titles += ("ours: training, other data",)
    for ax, name, title in zip(panels[0], list(PREDICTED_AT)[:4], titles, strict=True):
        predicted = np.array(PREDICTED_AT[name])
        apart = on_ring(TRAINED_AT, predicted)
        for mark, color, fill, which in (
            ("o", BLUE, BLUE, apart == 0),
            ("o", BLUE, "white", apart == 1),
            ("X", ORANGE, ORANGE, apart > 1),
        ):
            result = [
                (line.get_xdata(), line.get_ydata())
                for line in ax.lines
                if (line.get_marker(), line.get_color(), line.get_markerfacecolor())
                == (mark, color, fill)
            ]
            assert len(result) == which.any()
            for points in result:
                np.testing.assert_array_equal(points, [TRAINED_AT[which], predicted[which]])
        counted = f"{(apart == 0).sum()} of 5 on the same site, {(apart <= 1).sum()} within ±1"
        assert ax.get_title() == f"{title}\n{counted}"
        assert ax.get_xlabel() == "site in training"


def test_bars_are_shares_with_their_intervals(panels):
    ax = panels[1][0]
    assert level(ax, "black", "--") == 26 / 28
    places, names = ticks(ax.xaxis)
    assert names == [
        "eq. (5),\nTaylor φ",
        "eq. (5),\nexact φ",
        "exact flow",
        "training,\nother data",
    ]
    assert legend(ax) == {"same site": BLUE.lower(), "within ±1": GRAY}
    bars = {
        (round(bar.get_x() + bar.get_width() / 2, 6), to_hex(bar.get_facecolor())): bar.get_height()
        for bar in ax.patches
    }
    intervals = {round(x[0], 6): (low[0], high[0]) for _, _, x, _, low, high in error_bars(ax)}
    for place, name in zip(places, PREDICTED_AT, strict=False):
        apart = on_ring(TRAINED_AT, PREDICTED_AT[name])
        for side, color, count in (
            (-0.2, BLUE, (apart == 0).sum()),
            (0.2, GRAY, (apart < 2).sum()),
        ):
            at = round(place + side, 6)
            assert bars[at, color.lower()] == count / 5
            wanted = (beta.ppf(0.025, count, 6 - count), beta.ppf(0.975, count + 1, 5 - count))
            wanted = (wanted[0] if count else 0, wanted[1] if count < 5 else 1)
            np.testing.assert_allclose(intervals[at], wanted)


def test_less_noise_and_other_times(known, panels):
    _, noise, reading = panels[1]
    trainings = (TRAINED_AT, PREDICTED_AT["larger batch"], PREDICTED_AT["exact gradient"])
    assert ticks(noise.xaxis) == ([0, 1, 2], ["batch 20", "batch 20", "exact\ngradient"])
    drawn = {color: (x, y, low, high) for _, color, x, y, low, high in error_bars(noise)}
    for name, color in COLORS.items():
        shares = [np.mean(on_ring(where, PREDICTED_AT[name]) == 0) for where in trainings]
        x, y, low, high = drawn[color]
        np.testing.assert_allclose(y, shares)
        np.testing.assert_allclose(x.round(), [0, 1, 2])
        ends = np.transpose([interval(round(5 * share), 5) for share in shares])
        np.testing.assert_allclose([low, high], ends)
    assert legend(noise) == {
        "eq. (5), Taylor φ": ORANGE.lower(),
        "eq. (5), exact φ": BLUE.lower(),
        "exact flow": GREEN.lower(),
    }
    assert reading.get_xscale() == "log"
    for name, color in COLORS.items():
        run = known[name]
        where = np.abs(run.weights[:, :, 0]).argmax(axis=2)
        apart = np.array([on_ring(TRAINED_AT, sites) for sites in where.T])
        for style, most in (("-", 0), (":", 1)):
            ((times, share),) = lines(reading, color, style)
            np.testing.assert_allclose(times, run.times[1:])
            np.testing.assert_allclose(share, (apart <= most).mean(axis=1)[1:])
