"""Predictions of tasks and of data: every panel holds the numbers of the prediction."""

import dataclasses

import numpy as np
import pytest
from closed_forms import ising_covariance
from drawn import legend, line, lines, over_time, words
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots._prediction import _draw_covariances
from localfields.plots._style import CLASS_STYLES, GREEN, LOCALIZED


def test_covariances_of_all_classes_with_their_labels(ax):
    task = lf.Discrimination(*(lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)))
    _draw_covariances(ax, task)
    half = np.arange(7)
    for number, coupling in enumerate((0.3, 0.7)):
        result = line(ax, f"class {number}, y = {number}")
        np.testing.assert_allclose(result, [half, ising_covariance(coupling, half, 12)])
    colors = [color.lower() for color, _ in CLASS_STYLES[:2]]
    assert list(legend(ax).values()) == colors and ax.get_xlabel() == "distance (sites)"


def test_covariances_without_invariance_are_those_of_the_middle_site(ax):
    matrix = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1 * np.ones((4, 4))
    dense = lf.stimuli.DenseGaussian((4,), matrix=matrix)
    task = lf.Discrimination(dense, lf.stimuli.Ising((4,), coupling=0.7))
    _draw_covariances(ax, task)
    np.testing.assert_allclose(line(ax, "class 0, y = 0")[1], matrix[2])
    ring = ising_covariance(0.7, np.array([2, 1, 0, 1]), 4)
    np.testing.assert_allclose(line(ax, "class 1, y = 1")[1], ring)
    assert ax.get_xlabel() == "site; covariance with site 2"


@pytest.fixture(scope="module")
def predicted():
    task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
    return lf.predict(task, starts=3)


def test_the_panels_of_a_task_hold_its_prediction(predicted):
    axes = lf.plots.prediction(predicted, ax=Figure)
    covariance, marginal, amplifier, field, ratios = axes
    half = np.arange(21)
    for number, coupling in enumerate((0.3, 0.7)):
        wanted = [half, ising_covariance(coupling, half, 40)]
        np.testing.assert_allclose(line(covariance, f"class {number}, y = {number}"), wanted)
    assert marginal.get_title() == "marginal: excess kurtosis −2"
    assert amplifier.get_title().startswith("amplifier, index ")
    assert set(legend(amplifier)) == {"super-linear", "φ(a)", "normal: √(2/π) a"}
    drawn, times, _ = over_time(field)
    np.testing.assert_array_equal(drawn[-1], predicted.flow.weights[0, -1, 0])
    np.testing.assert_array_equal(drawn[0], predicted.flow.weights[0, 0, 0])
    assert times[0] == 0 and times[-1] == predicted.flow.times[-1]
    curves = [y for _, y in lines(ratios, LOCALIZED)]
    np.testing.assert_allclose(curves, predicted.flow.ipr[:, :, 0])
    ((x, _),) = lines(ratios, GREEN, "-.")
    assert x[0] == predicted.onset and ratios.get_title().endswith("3 starts")
    heading = axes[0].figure.get_suptitle()
    assert heading.startswith("LOCALIZED (") and heading.split("\n")[1:]


def test_without_a_flow_there_is_one_row(predicted):
    bare = dataclasses.replace(predicted, flow=None, field=None)
    assert len(lf.plots.prediction(bare, ax=Figure)) == 3
    axes = lf.plots.prediction(bare, ax=Figure().subplots(1, 3))
    assert axes[0].figure.get_suptitle() == ""  # a figure of the caller's own


def test_of_too_few_samples_nothing_is_drawn(rng):
    task = lf.Discrimination(
        *(lf.stimuli.Samples(rng.normal(size=(2, 6)), shape=6) for _ in range(2))
    )
    axes = lf.plots.prediction(lf.predict(task), ax=Figure)
    assert [words(ax) for ax in axes] == [["too few samples"]] * 6
