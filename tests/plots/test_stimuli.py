"""Samples, covariance and marginal of a stimulus."""

import numpy as np
import pytest
from closed_forms import ising_covariance, kur_cdf, normal_density
from drawn import legend, line, lines
from matplotlib.figure import Figure
from scipy.special import erf

import localfields as lf
from localfields.plots._style import BLUE, ORANGE

SPINS = lf.stimuli.Ising((12,), coupling=0.7)


def test_covariances_are_exact_and_those_of_the_samples(ax, rng):
    x = rng.normal(size=(50, 12)) + 3.0
    assert lf.plots.covariance(SPINS, x, ax=ax) is ax
    half = np.arange(7)
    np.testing.assert_allclose(line(ax, "exact"), [half, ising_covariance(0.7, half, 12)])
    centered = x - x.mean()
    by_hand = [np.mean(centered * np.roll(centered, -d, axis=1)) for d in half]
    np.testing.assert_allclose(line(ax, "samples"), [half, by_hand])
    assert ax.get_xlabel() == "distance (sites)"


def test_a_covariance_matrix_is_a_picture(ax):
    matrix = np.diag([1.0, 2.0, 3.0]) + 0.5
    lf.plots.covariance(lf.stimuli.DenseGaussian((3,), matrix=matrix), ax=ax)
    np.testing.assert_allclose(ax.images[0].get_array(), matrix)


def test_marginals_are_densities_of_samples_and_law(ax, rng):
    normal = lf.stimuli.Gaussian((12,), xi=1.0)
    x = rng.normal(size=(4000, 12))
    lf.plots.marginal(normal, x, bins=20, ax=ax)
    (steps,) = (patch for patch in ax.patches if hasattr(patch, "get_data"))
    exact, edges, _ = steps.get_data()
    width, middle = np.diff(edges)[0], (edges[1:] + edges[:-1]) / 2
    bars = [patch for patch in ax.patches if patch is not steps]
    np.testing.assert_allclose(
        [bar.get_height() for bar in bars], np.histogram(x, edges)[0] / (x.size * width)
    )
    np.testing.assert_allclose([bar.get_x() + width / 2 for bar in bars], middle)
    # The mean of the density over a bin, to third order in its width.
    second = (middle**2 - 1) * normal_density(middle)
    np.testing.assert_allclose(exact, normal_density(middle) + second * width**2 / 24, atol=2e-3)


def test_the_page_of_a_stimulus_shows_four_samples_in_order(rng):
    x = rng.normal(size=(6, 12))
    axes = lf.plots.stimulus(SPINS, x, ax=Figure)
    titles = [ax.get_title() for ax in axes]
    assert titles == [
        *(f"sample {n}" for n in (1, 2, 3, 4)),
        "covariance",
        "marginal, excess kurtosis −2",
    ]
    for ax, sample in zip(axes[:4], x, strict=False):
        np.testing.assert_array_equal(lines(ax, BLUE)[0][1], sample)
    assert set(legend(axes[4])) == set(legend(axes[5])) == {"samples", "exact"}
    assert "Ising" in axes[0].figure.get_suptitle()


def test_samples_are_drawn_from_the_seed_where_none_are_given():
    axes = lf.plots.stimulus(SPINS, num=3, seed=5, ax=Figure)
    for ax, sample in zip(axes[:3], np.asarray(SPINS.sample(5, 3)), strict=True):
        np.testing.assert_array_equal(lines(ax, BLUE)[0][1], sample)
    assert not axes[3].axison


def test_marginals_are_densities_with_the_normal_one_beside(ax):
    lf.plots.density(lf.marginals.Algebraic(k=10.0), ax=ax)
    x, density = line(ax, "marginal")
    step = x[1] - x[0]
    edges = np.append(x - step / 2, x[-1] + step / 2)
    np.testing.assert_allclose(density, np.diff(kur_cdf(edges, 10.0)) / step, rtol=1e-6, atol=1e-9)
    x, normal = line(ax, "normal")
    np.testing.assert_allclose(normal, normal_density(x), atol=1e-9)
    (filled,) = ax.patches
    np.testing.assert_allclose(filled.get_data().values, density)
    assert ax.get_ylabel() == "density" and ax.get_ylim()[0] == 0


def test_the_normal_density_has_mean_and_deviation_of_the_marginal(ax):
    law = lf.marginals.Empirical(np.random.default_rng(0).normal(3.0, 2.0, size=500))
    lf.plots.density(law, ax=ax)
    x, normal = line(ax, "normal")
    np.testing.assert_allclose(normal, normal_density((x - law.mean) / law.sd) / law.sd)


def test_marginals_of_few_values_are_their_probabilities(ax):
    lf.plots.density(lf.marginals.Empirical([1.0, 1.0, 3.0], [1.0]), ax=ax)
    ((x, mass),) = lines(ax, BLUE)
    np.testing.assert_allclose([x, mass], [[1, 3], [2 / 3, 1 / 3]])
    (bars,) = ax.collections
    np.testing.assert_allclose(
        [segment.tolist() for segment in bars.get_segments()],
        [[[1, 0], [1, 2 / 3]], [[3, 0], [3, 1 / 3]]],
    )
    assert ax.get_ylabel() == "probability"


@pytest.mark.parametrize(
    ("law", "name", "color"),
    [
        (lf.marginals.TwoPoint(), "super-linear", ORANGE),
        (lf.marginals.Algebraic(k=3.0), "sub-linear", BLUE),
    ],
)
def test_amplifiers_are_shaded_by_which_side_of_the_line_they_are(ax, law, name, color):
    lf.plots.amplifier(law, ax=ax)
    a, value = line(ax, "φ(a)")
    _, normal = line(ax, "normal: √(2/π) a")
    np.testing.assert_allclose(normal, np.sqrt(2 / np.pi) * a)
    if name == "super-linear":
        inner = a < 1
        exact = erf(a[inner] / np.sqrt(2 * (1 - a[inner] ** 2)))
        np.testing.assert_allclose(value[inner], exact, atol=1e-6)
    assert legend(ax)[name].startswith(color.lower())
    assert {"super-linear", "sub-linear"} & set(legend(ax)) == {name}
