"""Samples, covariance and marginal of a stimulus."""

from pathlib import Path

import numpy as np
from closed_forms import ising_covariance, normal_density
from drawn import legend, line, lines
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots.stimulus import (
    BLUE,
    draw_covariance,
    draw_marginal,
    draw_sample,
    save_overview,
)

SPINS = lf.stimuli.Ising((12,), coupling=0.7)


def test_a_sample_is_a_curve_or_a_picture(ax, rng):
    x = rng.normal(size=12)
    draw_sample(ax, x, (12,))
    ((sites, values),) = lines(ax, BLUE)
    np.testing.assert_array_equal([sites, values], [np.arange(12), x])
    ax = Figure().subplots()
    draw_sample(ax, x, (3, 4))
    np.testing.assert_array_equal(ax.images[0].get_array(), x.reshape(3, 4))
    assert ax.images[0].get_clim() == (-np.abs(x).max(), np.abs(x).max())
    assert ax.images[0].get_cmap().name == "RdBu_r"


def test_covariances_are_exact_and_those_of_the_samples(ax, rng):
    x = rng.normal(size=(50, 12)) + 3.0
    draw_covariance(ax, SPINS, x)
    half = np.arange(7)
    np.testing.assert_allclose(line(ax, "exact"), [half, ising_covariance(0.7, half, 12)])
    centered = x - x.mean()
    by_hand = [np.mean(centered * np.roll(centered, -d, axis=1)) for d in half]
    np.testing.assert_allclose(line(ax, "samples"), [half, by_hand])
    assert ax.get_xlabel() == "distance"


def test_a_covariance_matrix_is_a_picture(ax):
    matrix = np.diag([1.0, 2.0, 3.0]) + 0.5
    draw_covariance(ax, lf.stimuli.DenseGaussian((3,), matrix=matrix))
    np.testing.assert_allclose(ax.images[0].get_array(), matrix)


def test_marginals_are_densities_of_samples_and_law(ax, rng):
    normal = lf.stimuli.Gaussian((12,), xi=1.0)
    x = rng.normal(size=(4000, 12))
    draw_marginal(ax, normal, x, bins=20)
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


def test_the_overview_shows_four_samples_in_order(rng, saved):
    x = rng.normal(size=(6, 12))
    save_overview(SPINS, x, Path("x.png"))
    axes = saved[0].axes
    titles = [ax.get_title() for ax in axes]
    assert titles == [
        *(f"sample {n}" for n in (1, 2, 3, 4)),
        "covariance",
        "marginal, excess kurtosis -2",
    ]
    for ax, sample in zip(axes[:4], x, strict=False):
        np.testing.assert_array_equal(lines(ax, BLUE)[0][1], sample)
    assert set(legend(axes[4])) == set(legend(axes[5])) == {"samples", "exact"}
    assert "Ising" in saved[0].get_suptitle()
