"""Balance: the floor of the loss holds and is reached, ranks are right, and answers follow from
stored runs.
"""

import dataclasses

import numpy as np
import pytest
from drawn import is_color, line, lines, ticks
from scipy.special import erf

from localfields.figures.base import Results
from localfields.figures.notes_balance import (
    BOTH,
    FIGURE,
    LABELS,
    LOCALIZED,
    OSCILLATORY,
    STARTS,
    experiments,
    floor,
    ranked,
    start_names,
    starts,
)
from localfields.figures.notes_populations import GAIN, task_of
from localfields.plots._style import BLUE, GRAY, ORANGE
from localfields.stimuli import NLGP


def loss(weights, biases, draws):
    """Of an erf committee for labels ±1, over draws of both classes and their negatives."""
    parts = []
    for label, x in zip((-1, 1), draws, strict=True):
        both = np.concatenate([x, -x])
        parts.append(
            np.mean((erf((both @ weights.T + biases) / np.sqrt(2)).mean(axis=1) - label) ** 2)
        )
    return np.mean(parts)


def test_no_committee_is_below_the_floor():
    rng = np.random.default_rng(0)
    for _ in range(200):
        neurons = int(rng.integers(1, 9))
        weights = rng.normal(size=(neurons, 5)) * 10 ** rng.uniform(-1, 2)
        biases = rng.normal(size=neurons) * 10 ** rng.uniform(-1, 2)
        result = loss(weights, biases, rng.normal(size=(2, 20, 5)) * [[[0.1]], [[3.0]]])
        assert result >= floor((biases < 0).mean()) - 1e-12


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_floor_is_reached(share):
    """Neurons of either sign with negative biases hear the second class alone, the others the
    first.
    """
    negative, sign = np.arange(8) < 8 * share, (-1.0) ** np.arange(8)[:, None]
    weights = sign * np.where(negative[:, None], [[0.0, 1e4]], [[1e4, 0.0]])
    biases = np.where(negative, -50.0, 50.0)
    assert loss(weights, biases, np.array([[[1.0, 0.0]], [[0.0, 1.0]]])) == pytest.approx(
        float(floor(share))
    )


def test_ranks_are_counted_right(results):
    import jax

    run = results[LOCALIZED].members(slice(1))
    which = np.arange(run.final.shape[1]) < 3
    first, second = (
        np.asarray(stimulus.sample(jax.random.key(place), 200))
        for place, stimulus in enumerate(task_of(NLGP, gain=GAIN).stimuli)
    )
    outputs = [
        erf((x @ run.final[0][which].T + run.biases[0, -1][which]) / np.sqrt(2)).mean(axis=1)
        for x in (first, second)
    ]
    by_hand = (
        np.mean(outputs[1][:, None] > outputs[0][None])
        + np.mean(outputs[1][:, None] == outputs[0][None]) / 2
    )
    assert ranked(run, which[None], "tiny")[0] == pytest.approx(by_hand)
    assert np.isnan(ranked(run, np.zeros((1, 8), bool), "tiny")[0])


def test_starts_are_what_they_are_called():
    result = starts("paper")
    assert len(start_names("paper")) == 11 and experiments("paper")[STARTS].initial.shape == (
        11,
        100,
        40,
    )
    power = np.abs(np.fft.rfft(result["75 % slow"][0], axis=1)) ** 2
    slow = power[:, :6].sum(axis=1) > 0.99 * power.sum(axis=1)
    fast = power[:, 12:].sum(axis=1) > 0.99 * power.sum(axis=1)
    assert slow.sum() == 75 and fast.sum() == 25
    assert (result["all positive"] > 0).all() and 0.8 < (
        result["mostly positive"] > 0
    ).mean() < 0.88
    norms = np.linalg.norm(np.concatenate(list(result.values())), axis=2)
    np.testing.assert_allclose(norms**2, 2 * 40 / 140)


def test_answers_follow_from_biases_and_fields(results):
    def rows(results):
        return {question.id: question for question in FIGURE.questions(results)}

    def altered(**biases):
        runs = dict(results.runs)
        for name, value in biases.items():
            run = runs[name]
            series = {**run.series, "biases": np.full_like(run.biases, value)}
            runs[name] = dataclasses.replace(run, series=series)
        return Results(results.scale, runs)

    decided = rows(altered(**{LOCALIZED: -1.0, OSCILLATORY: 1.0}))["BAL1"]
    assert "make all biases negative" in decided.answer and decided.measured.count("100 ± 0 %") == 1
    other = rows(altered(**{LOCALIZED: 1.0, OSCILLATORY: 1.0}))["BAL1"]
    assert "make all biases negative" not in other.answer

    deaf = {
        name: dataclasses.replace(results[name], final=0 * results[name].final) for name in LABELS
    }
    result = rows(Results(results.scale, {**results.runs, **deaf}))["BAL2"]
    assert result.answer == "Not here." and "only localized: 0.500" in result.measured

    bumps = np.broadcast_to(np.eye(40)[:8], results[STARTS].final.shape)
    local = {**results.runs, STARTS: dataclasses.replace(results[STARTS], final=bumps)}
    flat = {
        **local,
        BOTH: dataclasses.replace(results[BOTH], final=np.ones_like(results[BOTH].final)),
    }
    result = rows(Results(results.scale, flat))["BAL4"]
    assert (
        result.answer.startswith("Somewhat more")
        and "100 ± 0" not in rows(results)["BAL4"].measured
    )


# What is drawn, of committees that are known.


@pytest.fixture(scope="module")
def known(results):
    """Biases of the sign of their labels, and members of the unbalanced starts with one to four
    negative biases.
    """
    runs = dict(results.runs)
    signs = {LOCALIZED: -1.0, OSCILLATORY: 1.0}
    for name, sign in signs.items():
        run = runs[name]
        biases = np.broadcast_to(sign * np.linspace(1, 2, 8), run.biases.shape)
        runs[name] = dataclasses.replace(run, series={**run.series, "biases": biases})
    run = runs[STARTS]
    biases = np.ones(run.biases.shape)
    for member in range(run.num_members):
        biases[member, :, : member + 1] = -1
    loss = np.broadcast_to(0.6 + 0.01 * np.arange(run.num_members)[:, None], run.loss.shape)
    series = {**run.series, "biases": biases, "loss": loss}
    runs[STARTS] = dataclasses.replace(run, series=series)
    return Results(results.scale, runs)


NAMES = ["all positive", "0 % slow", "100 % slow", "mostly positive"]


@pytest.fixture(scope="module")
def parts(known):
    """With starts in another order, in which the unbalanced one is not the first member."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("localfields.figures.notes_balance.start_names", lambda scale: NAMES)
        top, bottom = FIGURE.draw(known).subfigs
    return top.subfigs, bottom.axes


def test_committees_shown_are_those_named(known, parts):
    shown = (
        ("only localized: labels −1 and 0", LOCALIZED, 0),
        ("only oscillatory: labels 0 and 1", OSCILLATORY, 0),
        ("unbalanced: 0 % slow at the start", STARTS, 1),
    )
    assert sorted(start_names("tiny")) == sorted(NAMES)
    for group, (title, name, member) in zip(parts[0], shown, strict=True):
        picture, bars = group.axes
        assert group.get_suptitle() == title
        run = known[name]
        drawn = sorted(bar.get_width() for bar in bars.patches)
        np.testing.assert_allclose(drawn, sorted(run.biases[member, -1]))
        final = run.final[member].astype(float)
        wanted = {tuple(np.round(row / row[np.abs(row).argmax()], 4)) for row in final}
        assert {tuple(np.round(row, 4)) for row in picture.images[0].get_array()} == wanted


def test_worth_of_each_part(known, parts):
    ax = parts[1][0]
    both = known[BOTH].members(slice(0, 2))  # at the gain of all others
    negative = both.biases[:, -1] < 0
    worth = {
        "both": ranked(both, np.ones_like(negative), "tiny"),
        "both, its negative biases": ranked(both, negative, "tiny"),
        "both, its positive biases": ranked(both, ~negative, "tiny"),
        LOCALIZED: ranked(known[LOCALIZED], np.ones((4, 8), bool), "tiny"),
        OSCILLATORY: ranked(known[OSCILLATORY], np.ones((4, 8), bool), "tiny"),
    }
    assert ticks(ax.yaxis) == ([0, -1, -2, -3, -4], list(worth))
    colors = (GRAY, ORANGE, BLUE, ORANGE, BLUE)
    for place, (values, color) in enumerate(zip(worth.values(), colors, strict=True)):
        bar = ax.patches[place]
        assert (bar.get_y() + bar.get_height() / 2) == pytest.approx(-place)
        assert bar.get_x() + bar.get_width() == pytest.approx(values.mean())
        assert is_color(bar.get_facecolor(), color)
        x, y = (np.asarray(part) for part in ax.lines[place].get_data())
        np.testing.assert_allclose(x, values)
        assert (y == -place).all() and is_color(ax.lines[place].get_color(), color)


def test_where_starts_lead(known, parts):
    left, right = parts[1][1:]
    share = (known[STARTS].biases[:, -1] < 0).mean(axis=1)
    np.testing.assert_allclose(share, [0.125, 0.25, 0.375, 0.5])
    np.testing.assert_allclose(lines(left, ORANGE), [[[0, 1], share[1:3]]])
    for kind, value in (("mostly", share[3]), ("all", share[0])):
        x, y = line(left, f"start {kind} positive")
        assert (x.tolist(), y.tolist()) == ([1.15], [value])
    f, least = line(right, "none can have less")
    np.testing.assert_allclose(least, (f**2 + (1 - f) ** 2) / 2)
    np.testing.assert_allclose(
        line(right, "at the end of training"), [share, known[STARTS].loss[:, -1]]
    )
