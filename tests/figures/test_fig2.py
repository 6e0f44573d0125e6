"""Figure 2: what is drawn of each data model, and the kurtosis claims."""

import numpy as np
import pytest
from closed_forms import ising_covariance, kur_cdf, normal_density
from drawn import legend, line, lines

from localfields.figures.fig2 import FIGURE, NUM_SAMPLES, SITES

from .altered import claims_by_id

ROWS = ("Ising", "NLGP(0.01)", "Kur(5)")


@pytest.fixture(scope="module")
def panels(figure):
    return np.reshape(figure.axes, (3, 4))


def test_rows_are_the_models_and_columns_say_what_they_are(panels):
    assert [ax.get_ylabel() for ax in panels[:, 0]] == list(ROWS)
    assert [ax.get_title() for ax in panels[0]] == [
        "long lengthscale",
        "short lengthscale",
        "covariance (long)",
        "marginal",
    ]
    assert (
        legend(panels[0, 2]) == legend(panels[0, 3]) == {"samples": "#d55e00", "exact": "#0072b2"}
    )


def test_samples_are_of_the_model_and_lengthscale_of_their_panel(panels):
    values = [[y for (_, y) in lines(ax) if len(y) == SITES] for ax in panels[:, :2].flat]
    assert [len(value) for value in values] == [1] * 6
    long, short = (np.array([value[0] for value in values])[side::2] for side in (0, 1))
    assert set(np.unique(long[0])) == set(np.unique(short[0])) == {-1.0, 1.0}  # spins
    assert all(len(np.unique(one)) == SITES for one in (*long[1:], *short[1:]))
    # Neighbors of the long one are more alike: the mean square step against that of a shuffled
    # ring.
    for slow, fast in zip(long, short, strict=True):
        steps = [np.mean((one - np.roll(one, 1)) ** 2) / (2 * np.var(one)) for one in (slow, fast)]
        assert steps[0] < steps[1]


def test_covariances_are_exact_and_of_the_samples(panels):
    half = np.arange(SITES // 2 + 1)
    x, exact = line(panels[0, 2], "exact")
    np.testing.assert_array_equal(x, half)
    np.testing.assert_allclose(exact, ising_covariance(1.2, half, SITES), atol=1e-12)
    for ax in panels[:, 2]:
        x, exact = line(ax, "exact")
        _, sampled = line(ax, "samples")
        assert exact[0] == pytest.approx(1) and exact[1] > 0.8  # unit variance, long
        # A mean over sites of products, whose variance is at most that of NUM_SAMPLES independent
        # ones; Kur(5) has the largest fourth moment, 4.3.
        assert np.abs(sampled - exact).max() < 5 * np.sqrt(4.3 / NUM_SAMPLES)
        assert not np.array_equal(sampled, exact)


def test_marginals_are_histograms_with_the_probability_of_every_bin(panels):
    for ax in panels[:, 3]:
        (steps,) = (patch for patch in ax.patches if hasattr(patch, "get_data"))
        bars = [patch for patch in ax.patches if patch is not steps]
        exact, edges, _ = steps.get_data()
        width = np.diff(edges)
        np.testing.assert_allclose([bar.get_x() for bar in bars], edges[:-1])
        heights = np.array([bar.get_height() for bar in bars])
        for values in (exact, heights):
            assert (values * width).sum() == pytest.approx(1, abs=0.005)
        # A bin's share over NUM_SAMPLES samples of SITES dependent sites: at most p(1 − p) over
        # NUM_SAMPLES.
        share = exact * width
        error = np.sqrt(np.maximum(share * (1 - share), 1e-4) / NUM_SAMPLES)
        assert (np.abs(heights - exact) * width < 5 * error).all()
    steps = [
        next(p for p in ax.patches if hasattr(p, "get_data")).get_data() for ax in panels[:, 3]
    ]
    ising, normal, heavy = steps
    assert (ising[0] * np.diff(ising[1]) > 0.4).sum() == 2  # two points
    middle = (normal[1][1:] + normal[1][:-1]) / 2
    np.testing.assert_allclose(normal[0], normal_density(middle), atol=0.002)
    np.testing.assert_allclose(
        heavy[0], np.diff(kur_cdf(heavy[1], 5.0)) / np.diff(heavy[1]), rtol=1e-9
    )


def test_claims_are_those_of_the_closed_forms(results):
    result = claims_by_id(FIGURE, results)
    assert list(result) == ["K1", "K2", "K3", "K4", "K5", "K6"]
    assert result["K1"].measured == "−2" and result["K3"].measured == "4.2853"
    assert {name: one.verdict for name, one in result.items()} == {
        **dict.fromkeys(("K1", "K2", "K4", "K6"), "reproduced"),
        **dict.fromkeys(("K3", "K5"), "differs"),
    }
