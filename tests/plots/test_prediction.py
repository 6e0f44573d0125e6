"""Covariances, law, amplifier and flow of a prediction."""

import numpy as np
import pytest
from closed_forms import ising_covariance, kur_cdf, normal_density
from drawn import ipr, legend, level, line, lines
from scipy.special import erf

import localfields as lf
from localfields.plots.prediction import (
    STYLES,
    draw_amplifier,
    draw_covariances,
    draw_ipr,
    draw_law,
)
from localfields.plots.stimulus import BLUE, GREEN, ORANGE

from .canned import canned_trajectory


def test_covariances_of_all_classes_with_their_labels(ax):
    task = lf.Discrimination(*(lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)))
    draw_covariances(ax, task)
    half = np.arange(7)
    for number, coupling in enumerate((0.3, 0.7)):
        found = line(ax, f"class {number}, y = {number}")
        np.testing.assert_allclose(found, [half, ising_covariance(coupling, half, 12)])
    colors = [color.lower() for color, _ in STYLES[:2]]
    assert list(legend(ax).values()) == colors and ax.get_xlabel() == "distance"


def test_covariances_without_invariance_are_those_of_the_middle_site(ax):
    matrix = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1 * np.ones((4, 4))
    dense = lf.stimuli.DenseGaussian((4,), matrix=matrix)
    task = lf.Discrimination(dense, lf.stimuli.Ising((4,), coupling=0.7))
    draw_covariances(ax, task)
    np.testing.assert_allclose(line(ax, "class 0, y = 0")[1], matrix[2])
    ring = ising_covariance(0.7, np.array([2, 1, 0, 1]), 4)
    np.testing.assert_allclose(line(ax, "class 1, y = 1")[1], ring)
    assert ax.get_xlabel() == "site; covariance with site 2"


def test_laws_are_densities_with_the_normal_one_beside(ax):
    draw_law(ax, lf.marginals.Algebraic(k=10.0))
    x, density = line(ax, "law")
    step = x[1] - x[0]
    edges = np.append(x - step / 2, x[-1] + step / 2)
    np.testing.assert_allclose(density, np.diff(kur_cdf(edges, 10.0)) / step, rtol=1e-6, atol=1e-9)
    x, normal = line(ax, "normal")
    np.testing.assert_allclose(normal, normal_density(x), atol=1e-9)
    (filled,) = ax.patches
    np.testing.assert_allclose(filled.get_data().values, density)
    assert ax.get_ylabel() == "density" and ax.get_ylim()[0] == 0


def test_normal_laws_have_the_mean_and_deviation_of_the_law(ax):
    law = lf.marginals.Empirical(np.random.default_rng(0).normal(3.0, 2.0, size=500))
    draw_law(ax, law)
    x, normal = line(ax, "normal")
    np.testing.assert_allclose(normal, normal_density((x - law.mean) / law.sd) / law.sd)


def test_laws_of_few_values_are_atoms(ax):
    draw_law(ax, lf.marginals.Empirical([1.0, 1.0, 3.0], [1.0]))
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
    draw_amplifier(ax, law)
    a, value = line(ax, "φ(a)")
    _, normal = line(ax, "normal: √(2/π) a")
    np.testing.assert_allclose(normal, np.sqrt(2 / np.pi) * a)
    if name == "super-linear":
        inner = a < 1
        exact = erf(a[inner] / np.sqrt(2 * (1 - a[inner] ** 2)))
        np.testing.assert_allclose(value[inner], exact, atol=1e-6)
    assert legend(ax)[name].startswith(color.lower())
    assert {"super-linear", "sub-linear"} & set(legend(ax)) == {name}


def test_ratios_are_colored_by_how_their_starts_end(ax):
    size = 20
    wave, site = np.cos(2 * np.pi * np.arange(size) / size), np.eye(size)[3]
    times = np.array([0.0, 1.0, 10.0, 100.0])
    weights = np.array(
        [[wave, wave, site, site], [wave, wave, wave, wave], [site, site, site, wave]]
    )
    flow = canned_trajectory(weights[:, :, None], times)
    draw_ipr(ax, flow, onset=10.0)
    (ends,) = lines(ax, ORANGE)
    others = lines(ax, BLUE)
    np.testing.assert_allclose(ends, [times, ipr(weights[0])])
    np.testing.assert_allclose(others, [[times, ipr(one)] for one in weights[1:]])
    assert level(ax, "black", "--") == 4 / 22
    ((x, _),) = lines(ax, GREEN, "-.")
    assert x.tolist() == [10, 10] and "onset, median 10" in legend(ax)
    assert ax.get_xscale() == "symlog" and ax.get_xlim() == (0, 100)
    assert {"ends localized": ORANGE.lower(), "ends otherwise": BLUE.lower()}.items() <= legend(
        ax
    ).items()
