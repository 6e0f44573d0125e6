"""The race of gating structures: answers follow from closed forms and from what a neuron's gate
becomes.
"""

import itertools

import numpy as np
import pytest
from drawn import error_bars, legend, level, line, lines, ticks

from localfields.figures.notes_gates import (
    FIGURE,
    GAUSSIAN,
    SINGLE,
    SPINS,
    by_number,
    losses,
    sites,
    spectra,
)
from localfields.plots._style import BLUE, GRAY, ORANGE

from .altered import waves, with_fields


def answers(results):
    return {question.id: question for question in FIGURE.questions(results)}


def test_a_bump_wins_on_spins_and_the_flat_gate_on_gaussian_data(results):
    result = answers(results)
    assert result["GATE1"].answer.startswith(
        "Of single half-spaces a bump on spins and the flat gate on Gaussian"
    )
    assert min(losses(results, SPINS), key=losses(results, SPINS).__getitem__) == "bump"
    assert "half the mean covariance" in result["GATE2"].answer
    assert all(
        (np.diff(values, axis=1) < 0).all() for values in by_number(results, GAUSSIAN).values()
    )
    # One gate four times is a quarter as fast as one alone, and three quarters of its modes never
    # move.
    rates = spectra(results)
    size = sites("tiny")
    alone, again = rates["one half-space, any direction"], rates["one bump four times"]
    np.testing.assert_allclose(again[:size], alone / 4, rtol=1e-9)
    assert (again[size:] == 0).all()


def test_the_answer_follows_from_the_gates_that_the_neuron_ends_with(results):
    size = sites("tiny")
    winners = with_fields(results, SPINS, np.eye(size)[:2])
    winners = with_fields(winners, GAUSSIAN, np.ones((2, size)))
    assert answers(winners)["GATE3"].answer.startswith("By the limiting loss")
    altered = with_fields(winners, SPINS, waves(2, size))
    assert answers(altered)["GATE3"].answer.startswith("Neither throughout: on spins the")
    altered = with_fields(winners, GAUSSIAN, np.eye(size)[:2])
    assert answers(altered)["GATE3"].answer.startswith("Neither throughout: on Gaussian the")


@pytest.mark.slow
def test_the_neuron_ends_with_the_winner(computed):
    assert answers(computed)["GATE3"].answer.startswith("By the limiting loss")


def enumerated_spins(coupling, size):
    """All states of a ring of spins, and their probabilities."""
    states = np.array(list(itertools.product((-1.0, 1.0), repeat=size)))
    weight = np.exp(coupling * (states * np.roll(states, 1, axis=1)).sum(axis=1))
    return states, weight / weight.sum()


def least_loss(gate, size):
    """Of a linear network behind the gate 1(⟨g, x⟩ > 0), half open on ties, for labels 0 and 1,
    by enumeration.
    """
    second, first = np.zeros((size, size)), np.zeros(size)
    for label, coupling in enumerate((0.3, 0.7)):
        x, p = enumerated_spins(coupling, size)
        h = x @ gate
        p = 0.5 * p * np.where(np.abs(h) < 1e-9, 0.5, h > 0)
        second += (x * p[:, None]).T @ x
        first += label * (x * p[:, None]).sum(axis=0)
    return 0.5 - first @ np.linalg.solve(second, first)


def test_the_race_is_drawn_law_by_law(results, figure):
    ax = figure.axes[0]
    order = list(SINGLE)
    assert ticks(ax.yaxis) == ([-place for place in range(len(order))], order)
    bump = np.eye(12)[0]
    three = np.roll(np.isin(np.arange(12), (0, 1, 2)).astype(float), 0)
    for name, color in (
        ("spins (Ising)", ORANGE),
        ("NLGP, gain 1", GRAY),
        ("Gaussian", BLUE),
    ):
        x, y = line(ax, name)
        np.testing.assert_array_equal(y, -np.arange(len(order)))
        assert legend(ax)[name] == color.lower()
        rings = [curve for curve in ax.lines if curve.get_markersize() == 10]
        (ring,) = (ring for ring in rings if ring.get_markeredgecolor() == color)
        best = np.argmin(x)
        assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (x[best], y[best])
    spins = dict(zip(order, line(ax, "spins (Ising)")[0], strict=True))
    assert spins["bump"] == pytest.approx(least_loss(bump, 12), abs=1e-6)
    assert spins["majority of three"] == pytest.approx(least_loss(three, 12), abs=1e-6)


def test_losses_fall_to_their_limits_and_fields_end_behind_their_gates(results, figure):
    falls, ends = figure.axes[1:3]
    assert falls.get_xscale() == "log"
    limits = dict(zip(SINGLE, line(figure.axes[0], "spins (Ising)")[0], strict=True))
    assert list(legend(falls)) == list(SINGLE)
    for name, limit in limits.items():
        times, loss = line(falls, name)
        assert (np.diff(loss) <= 1e-9).all() and loss[-1] >= limit - 1e-6
        assert loss[0] > 0.45  # that of zeros is ½
    # Twenty units of time are long for the fast modes of a bump.
    assert line(falls, "bump")[1][-1] == pytest.approx(limits["bump"], abs=0.02)
    for name in ("bump", "majority of three", "Mexican hat", "flat"):
        _, field = line(ends, name)
        assert len(field) == 12 and field.argmax() == 6  # the largest in the middle
    assert len(set(legend(ends).values())) == 4
    assert all(legend(ends)[name] == legend(falls)[name] for name in legend(ends))
    # The optimum behind a single site's gate, from the enumeration.
    second, first = np.zeros((12, 12)), np.zeros(12)
    for label, coupling in enumerate((0.3, 0.7)):
        x, p = enumerated_spins(coupling, 12)
        p = 0.5 * p * (x[:, 6] > 0)
        second, first = (
            second + (x * p[:, None]).T @ x,
            first + label * (x * p[:, None]).sum(axis=0),
        )
    np.testing.assert_allclose(line(ends, "bump")[1], np.linalg.solve(second, first), atol=1e-6)


def test_gates_of_a_neuron_frozen_at_each_time(results, figure):
    ax = figure.axes[3]
    assert ax.get_xscale() == "log"
    for law, label, color in ((SPINS, "spins (Ising)", ORANGE), (GAUSSIAN, "Gaussian", BLUE)):
        run = results[law]
        rows = lines(ax, color, marker="o")
        assert len(rows) == 2 and legend(ax)[f"{label}, 2 starts"] == color.lower()
        for times, _ in rows:
            np.testing.assert_allclose(times, np.maximum(run.times, 0.5))
        winner = line(figure.axes[0], label)[0].min()
        assert level(ax, color, ":") == pytest.approx(winner)
        if law == SPINS:
            for (_, loss), fields in zip(rows, run.weights[:, :, 0].astype(float), strict=True):
                wanted = [least_loss(field, 12) for field in fields]
                np.testing.assert_allclose(loss, wanted, atol=1e-6)


def test_more_gates_and_rates(results, figure):
    more, spectrum = figure.axes[4:]
    assert more.get_xscale() == "log" and ticks(more.xaxis) == ([1, 2], ["1", "2"])
    bars = {label: (color, x, y, low, high) for label, color, x, y, low, high in error_bars(more)}
    for law, label, color in ((SPINS, "spins (Ising)", ORANGE), (GAUSSIAN, "Gaussian", BLUE)):
        for name, values in by_number(results, law).items():
            drawn, x, y, low, high = bars[f"{name}, {label}"]
            assert drawn == color and x.tolist() == [1, 2]
            np.testing.assert_allclose(y, values.mean(axis=0))
            if len(values) > 1:
                np.testing.assert_allclose(high - low, 2 * values.std(axis=0, ddof=1))
            else:
                assert low.size == 0
    assert spectrum.get_yscale() == "log"
    for name, rates in spectra(results).items():
        x, y = line(spectrum, name)
        np.testing.assert_allclose(y, rates[rates > 0])
        np.testing.assert_allclose(x, (np.arange(len(y)) + 0.5) / len(rates))
    assert FIGURE.group == "notes" and "12" in FIGURE.setting("tiny")
