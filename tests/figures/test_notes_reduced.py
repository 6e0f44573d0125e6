"""Note 3's figure: it is drawn, and its answers follow from what was computed."""

import copy

import numpy as np
import pytest
from closed_forms import nlgp_kurtosis
from drawn import error_bars, level, line, lines

from localfields.figures import all_figures
from localfields.figures import notes_reduced as reduced
from localfields.figures.base import Results
from localfields.plots._style import BLUE, GREEN, ORANGE


@pytest.fixture(scope="module")
def results():
    return Results("tiny", {})


def answers(results):
    return {question.id: question for question in reduced.FIGURE.questions(results)}


def test_it_is_known():
    assert all_figures()["notes/reduced"] is reduced.FIGURE
    assert not reduced.FIGURE.experiments("paper")
    assert "N = 400" in reduced.FIGURE.setting("paper")
    assert "no training" in reduced.FIGURE.setting("tiny")


@pytest.fixture(scope="module")
def parts(results):
    top, bottom = reduced.FIGURE.draw(results).subfigs
    return np.reshape(top.axes, (2, 3)), bottom.axes


def test_samples_are_one_latent_curve_at_growing_gain(parts):
    samples = [
        [lines(ax, color)[0][1] for ax in row]
        for row, color in zip(parts[0], (BLUE, GREEN), strict=True)
    ]
    assert [ax.get_title() for ax in parts[0][0]] == ["gain 0.01", "gain 1", "gain 100"]
    assert [row[0].get_ylabel() for row in parts[0]] == ["ξ = 20", "ξ = 10"]
    steps = []
    for soft, medium, hard in samples:
        # erf(gz)/Z of one z: of one sign, and of one order; at gain 100 nearly ±1.
        assert (np.sign(soft) == np.sign(hard)).all()
        np.testing.assert_array_equal(np.argsort(soft), np.argsort(medium))
        assert (np.abs(hard) > 0.99).mean() > 0.9 > (np.abs(soft) > 0.99).mean()
        steps.append(np.mean(np.diff(soft) ** 2) / soft.var())
    assert steps[0] < steps[1]  # the longer lengthscale is smoother


def test_losses_before_learning_are_drawn_with_two_errors(results, parts):
    for ax, name, title in zip(
        parts[1], ("ReLU", "erf"), ("ReLU, labels 0 and 1", "erf, labels ±1"), strict=False
    ):
        whole, error, alone = reduced.losses(results)[name]
        ((_, color, x, y, low, high),) = error_bars(ax)
        assert ax.get_title() == title and ax.get_xscale() == "log" and color == BLUE
        np.testing.assert_allclose(x, [0.01, 1, 100])
        np.testing.assert_allclose(y, whole)
        np.testing.assert_allclose([y - low, high - y], [2 * error] * 2, atol=1e-12)
        np.testing.assert_allclose(line(ax, "covariances alone")[1], alone)
    # ReLU, labels 0 and 1, the notes' loss with ½, from normal data: h of variance 2|x|²/(N + 1)
    # given x, so that E relu² = |x|²/(N + 1) and E relu = |x|/√(π(N + 1)).
    draws = np.random.default_rng(0).multivariate_normal
    classes = [stimulus.gaussian_clone().covariance() for stimulus in reduced.task_at(1.0).stimuli]
    index = (np.arange(40)[:, None] - np.arange(40)) % 40
    parts_of_loss = []
    for label, covariance in enumerate(classes):
        length = np.linalg.norm(draws(np.zeros(40), covariance[index], 40_000), axis=1)
        parts_of_loss.append(length**2 / 41 - 2 * label * length / np.sqrt(np.pi * 41) + label)
    both = [(part.mean() / 2 / 2, part.std() / 4 / np.sqrt(len(part))) for part in parts_of_loss]
    drawn = line(parts[1][0], "covariances alone")[1]
    np.testing.assert_allclose(
        drawn, sum(mean for mean, _ in both), atol=5 * np.hypot(*(error for _, error in both))
    )


def test_preferences_are_drawn_gain_by_gain(results, parts):
    for ax, which, title in zip(
        parts[1][2:], "96", ("at random shifts (eq. 9)", "summed over shifts (eq. 6)"), strict=True
    ):
        assert ax.get_title() == title and ax.get_xscale() == "log"
        drawn = {
            color: (label, x, y, low, high) for label, color, x, y, low, high in error_bars(ax)
        }
        for (gain, result), color in zip(
            reduced.preferences(results).items(), (BLUE, GREEN, ORANGE), strict=True
        ):
            label, x, y, low, high = drawn[color]
            values, error = result[which], result[f"{which} error"]
            assert label == f"gain {gain:g}" and level(ax, color, ":") == values[-1]
            np.testing.assert_allclose(x, np.geomspace(0.4, 12, 3))
            np.testing.assert_allclose(y, values[:-1])
            np.testing.assert_allclose([y - low, high - y], [2 * error[:-1]] * 2, atol=1e-12)


def test_rows_are_whole(results):
    result = answers(results)
    assert list(result) == [f"RED{number}" for number in range(1, 7)]
    for value in result.values():
        assert (
            value.source.startswith("note 3")
            and value.question.endswith("?")
            and value.answer.endswith(".")
        )
        assert value.measured and value.how


def test_exact_rows(results):
    result = answers(results)
    excess = f"gain 0.01: {nlgp_kurtosis(0.01) - 3:.3f}, 1: {nlgp_kurtosis(1.0) - 3:.3f}, 100: "
    assert excess.replace("-", "−") in result["RED1"].measured
    assert "opposite" in result["RED1"].answer
    # (2/π) arctan √(λ₁/λ₀) with λ in proportion to ξ at frequency zero.
    best = 2 / np.pi * np.arctan(np.sqrt(3))
    assert f"{best:.4f}" in result["RED2"].measured and "flat" in result["RED2"].answer
    # Where (ξ₁ exp(−(πkξ₁/N)²) − ξ₀ exp(−(πkξ₀/N)²))√π is least among whole numbers of cycles.
    k = np.arange(21)
    short, long = (xi * np.exp(-((np.pi * k * xi / 40) ** 2)) for xi in (1.0, 3.0))
    assert f"most negative at {np.argmin(long - short)} cycles" in result["RED5"].measured
    peak = 40 / np.pi * np.sqrt(3 * np.log(3) / 8)
    assert f"= {peak:.2f}" in result["RED5"].measured


def test_answers_follow_from_the_numbers(results):
    """Bumps that never beat a flat field, sums that prefer it too, losses that do not move."""
    answers(results)
    other = Results("tiny", {}, copy.deepcopy(results.kept))
    preferences, losses = reduced.preferences(other), reduced.losses(other)
    for gain in reduced.SAMPLE_GAINS:
        preferences[gain]["9"][:] = preferences[gain]["6"][:] = np.linspace(
            0.5, 0.8, len(preferences[gain]["9"])
        )
    losses["ReLU"] = (losses["ReLU"][0][::-1], *losses["ReLU"][1:])
    result = answers(other)
    assert "never worse" in result["RED3"].answer and "prefer bumps" not in result["RED4"].answer
    assert "does not fall" in result["RED6"].answer
    for gain in reduced.SAMPLE_GAINS:
        preferences[gain]["9"][:] = preferences[gain]["9"][::-1].copy()
        preferences[gain]["9 error"][:] = 1e-3
    assert answers(other)["RED3"].answer == "At every gain."


def test_at_full_draws_the_reduced_model_prefers_bumps_at_high_gain():
    result = Results("quick", {})
    assert "by itself" in answers(result)["RED3"].answer
    assert "prefer bumps already" in answers(result)["RED4"].answer
    assert "E|X| grows" in answers(result)["RED6"].answer
