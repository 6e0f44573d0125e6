"""Note 3's figure: it is drawn, and its answers follow from what was computed."""

import copy

import numpy as np
import pytest

from localfields.figures import all_figures
from localfields.figures import notes_reduced as reduced
from localfields.figures.base import Results


@pytest.fixture(scope="module")
def results():
    return Results("tiny", {})


def answers(results):
    return {one.id: one for one in reduced.FIGURE.questions(results)}


def test_it_is_known_and_drawn(results, tmp_path):
    assert all_figures()["notes/reduced"] is reduced.FIGURE and not reduced.FIGURE.experiments(
        "paper"
    )
    figure = reduced.FIGURE.draw(results)
    figure.savefig(tmp_path / "reduced.png")
    assert len(figure.axes) == 10
    assert "N = 400" in reduced.FIGURE.setting("paper") and "no training" in reduced.FIGURE.setting(
        "tiny"
    )


def test_rows_are_whole(results):
    found = answers(results)
    assert list(found) == [f"RED{number}" for number in range(1, 7)]
    for one in found.values():
        assert (
            one.source.startswith("note 3")
            and one.question.endswith("?")
            and one.answer.endswith(".")
        )
        assert one.measured and one.how


def test_exact_rows(results):
    found = answers(results)
    assert "−1.440" in found["RED1"].measured and "opposite" in found["RED1"].answer
    assert "0.6667" in found["RED2"].measured and "flat" in found["RED2"].answer
    assert "8.17" in found["RED5"].measured and "8 cycles" in found["RED5"].measured


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
    found = answers(other)
    assert "never worse" in found["RED3"].answer and "prefer bumps" not in found["RED4"].answer
    assert "does not fall" in found["RED6"].answer
    for gain in reduced.SAMPLE_GAINS:
        preferences[gain]["9"][:] = preferences[gain]["9"][::-1].copy()
        preferences[gain]["9 error"][:] = 1e-3
    assert answers(other)["RED3"].answer == "At every gain."


def test_at_full_draws_the_reduced_model_prefers_bumps_at_high_gain():
    found = Results("quick", {})
    assert "by itself" in answers(found)["RED3"].answer
    assert "prefer bumps already" in answers(found)["RED4"].answer
    assert "E|X| grows" in answers(found)["RED6"].answer
