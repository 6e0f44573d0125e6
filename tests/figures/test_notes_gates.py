"""The race of gating structures: answers follow from closed forms and from what a neuron's gate becomes."""

import numpy as np

from localfields.figures.notes_gates import (
    FIGURE,
    GAUSSIAN,
    SPINS,
    by_number,
    losses,
    sites,
    spectra,
)

from .altered import waves, with_fields


def answers(results):
    return {one.id: one for one in FIGURE.questions(results)}


def test_a_bump_wins_on_spins_and_the_flat_gate_on_gaussian_data(results):
    found = answers(results)
    assert found["GATE1"].answer.startswith(
        "Of single half-spaces a bump on spins and the flat gate on Gaussian"
    )
    assert min(losses(results, SPINS), key=losses(results, SPINS).__getitem__) == "bump"
    assert "half the mean covariance" in found["GATE2"].answer
    assert all(
        (np.diff(values, axis=1) < 0).all() for values in by_number(results, GAUSSIAN).values()
    )
    # One gate four times is a quarter as fast as one alone, and three quarters of its modes never move.
    rates = spectra(results)
    size = sites("tiny")
    alone, again = rates["one half-space, any direction"], rates["one bump four times"]
    np.testing.assert_allclose(again[:size], alone / 4, rtol=1e-9)
    assert (again[size:] == 0).all()


def test_the_neuron_ends_with_the_winner(results):
    assert answers(results)["GATE3"].answer.startswith("By the limiting loss")
    size = sites("tiny")
    altered = with_fields(results, SPINS, waves(2, size))
    assert answers(altered)["GATE3"].answer.startswith("Neither throughout: on spins the")
    altered = with_fields(results, GAUSSIAN, np.eye(size)[:2])
    assert answers(altered)["GATE3"].answer.startswith("Neither throughout: on Gaussian the")


def test_it_is_drawn(results):
    figure = FIGURE.draw(results)
    assert len(figure.axes) == 6 and all(ax.get_title() and ax.lines for ax in figure.axes)
    assert FIGURE.group == "notes" and "12" in FIGURE.setting("tiny")
