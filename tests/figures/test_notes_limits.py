"""Note 1, Figs. 4 and 5: limits under fixed gates, from closed forms written down a second time."""

import numpy as np
import pytest
from closed_forms import nlgp_covariance
from drawn import legend, line, lines

from localfields.figures.notes_limits import (
    CENTER,
    FIGURE,
    GAIN,
    GAINS,
    TRAINED,
    half_width,
    own_limits,
    pull,
    solved,
)
from localfields.plots._style import BLUE, ORANGE

from .altered import with_fields

DISTANCE = np.minimum(np.arange(40), 40 - np.arange(40))


def rows(results):
    return {question.id: question for question in FIGURE.questions(results)}


def pull_of_one_site(gain):
    """½E[x 1(x₂₀ > 0)] of the class of label 1: arcsin(r√(2g²/(1 + 2g²)))/(2πZ), r = exp(−d²/4)."""
    share = 2 * gain**2 / (1 + 2 * gain**2)
    r = np.exp(-(np.roll(DISTANCE, CENTER) ** 2) / 4)
    return np.arcsin(r * np.sqrt(share)) / (2 * np.pi * np.sqrt(2 / np.pi * np.arcsin(share)))


def test_fields_are_compared_with_their_limits(results):
    limits = np.stack([np.roll(solved(results, "small bump").limit()[0], by) for by in (3, 8)])
    result = rows(with_fields(results, TRAINED, -limits))["LIM3"]
    assert "under that of its largest site 0.0 ± 0.0 %; 2 of 2 localized" in result.measured
    noise = np.random.default_rng(0).normal(size=limits.shape)
    result = rows(with_fields(results, TRAINED, noise))["LIM3"]
    assert result.answer.startswith("Nearly") and "0 of 2 localized" in result.measured


def test_widths_at_half_height():
    d = np.minimum(np.arange(40), 40 - np.arange(40))
    tent = np.roll(np.maximum(0, 1 - d / 4), CENTER)
    assert half_width(tent) == pytest.approx(4.0)
    wide, narrow = (half_width(pull(gain)) for gain in (0.1, 100.0))
    assert narrow < wide


def test_pulls_and_the_trained_field_are_drawn(results, figure):
    left, right = figure.subfigs[0].axes
    assert list(legend(left)) == [f"gain {gain:g}" for gain in GAINS]
    for gain in GAINS:
        np.testing.assert_allclose(
            line(left, f"gain {gain:g}")[1], pull_of_one_site(gain), atol=1e-9
        )
    field, limit = (
        line(right, "trained ReLU neuron")[1],
        line(right, "limit under its final gate")[1],
    )
    np.testing.assert_allclose(field, results[TRAINED].weights[0, -1, 0])
    np.testing.assert_allclose(limit, own_limits(results)[0, 0])
    assert list(legend(right).values()) == [ORANGE.lower(), BLUE.lower()]


def test_covariances_and_what_is_learned_from_them(results, figure):
    grid = np.reshape(figure.subfigs[1].axes, (2, 5))
    assert [row[0].get_ylabel() for row in grid] == ["small bump", "Mexican hat"]
    # Behind half of all stimuli, which are symmetric: half of the mean covariance.
    classes = [nlgp_covariance(xi, GAIN, DISTANCE) for xi in (1.0, 2.0)]
    index = (np.arange(40)[:, None] - np.arange(40)) % 40
    inputs = 0.25 * sum(classes)[index]
    pulled = pull_of_one_site(GAIN)
    middle = slice(14, 27)
    for ax, wanted in zip(grid[0, :2], (inputs, np.linalg.inv(inputs)), strict=True):
        (image,) = ax.images
        np.testing.assert_allclose(image.get_array(), wanted[middle, middle], atol=1e-8)
        np.testing.assert_allclose(image.get_clim(), np.array([-1, 1]) * np.abs(wanted).max())
        assert list(image.get_extent()) == [13.5, 26.5, 26.5, 13.5]
    gate, first, learned = (lines(ax, ORANGE)[0][1] for ax in grid[0, 2:])
    assert gate.argmax() == CENTER and (np.delete(gate, CENTER) == 0).all()
    np.testing.assert_allclose(first, pulled, atol=1e-9)
    np.testing.assert_allclose(learned, np.linalg.solve(inputs, pulled), atol=1e-8)
    # The Mexican hat's are measured on 2000 draws of a class; its limit follows from what is drawn.
    other = solved(results, "Mexican hat")
    gate, first, learned = (lines(ax, ORANGE)[0][1] for ax in grid[1, 2:])
    assert gate.argmax() == CENTER and gate.min() < 0
    np.testing.assert_allclose(learned, np.linalg.solve(other.second, first), rtol=1e-6)
    np.testing.assert_allclose(grid[1, 0].images[0].get_array(), other.second[middle, middle])
