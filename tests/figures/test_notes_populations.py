"""The two populations: answers follow from stored fields and biases."""

import dataclasses

import numpy as np
import pytest
from drawn import dots, ipr, legend, lines
from matplotlib.colors import to_hex

from localfields.figures.base import Results
from localfields.figures.notes_populations import (
    ERF,
    FIGURE,
    GAIN,
    GAUSSIAN,
    HIDDEN,
    SIGMOID,
    SITES,
    advantage,
    at_gain,
    centered,
    experiments,
    foretold,
    gains,
    task_of,
)
from localfields.lattice import matrix
from localfields.plots._style import BLUE, ORANGE
from localfields.stimuli import NLGP

X = np.arange(SITES)
BUMPS = np.exp(-((X - np.array([[5], [15], [25], [35]])) ** 2) / 2)
FAST = np.cos(2 * np.pi * 16 * X / SITES + np.arange(4)[:, None])
SLOW = np.cos(2 * np.pi * X / SITES + np.arange(4)[:, None])
BIASES = np.repeat([-5.0, 4.0], 4)


def with_committee(results, fields, biases, first=None, names=(ERF, SIGMOID, GAUSSIAN)):
    """Every member of some runs ends with these fields and biases; where given, all began with
    others.
    """
    runs = dict(results.runs)
    for name in names:
        run = runs[name]
        final = np.broadcast_to(fields, run.final.shape).astype(np.float32)
        shape = run.biases.shape
        runs[name] = dataclasses.replace(
            run,
            final=final,
            initial=run.initial if first is None else np.broadcast_to(first, final.shape),
            series={**run.series, "biases": np.broadcast_to(biases, shape).astype(np.float32)},
        )
    return Results(results.scale, runs)


def rows(results):
    return {question.id: question for question in FIGURE.questions(results)}


def test_the_settings_of_the_notes():
    result = experiments("paper")
    for name in (ERF, SIGMOID, GAUSSIAN):
        assert (
            result[name].network.hidden == HIDDEN == 100 and result[name].network.bias == "trained"
        )
        assert [stimulus.xi for stimulus in result[name].task.stimuli] == [1.0, 2.0] and result[
            name
        ].task.shape == (40,)
    assert [result[name].network.activation for name in (ERF, SIGMOID)] == ["erf", "sigmoid"]
    assert result[GAUSSIAN].method.estimator == "exact"


def test_what_the_notes_say_is_recognized(results):
    result = rows(with_committee(results, np.concatenate([BUMPS, FAST]), BIASES))
    assert result["POP1"].answer.startswith("Yes") and "4.0 ± 0.0 of 8" in result["POP1"].measured
    assert result["POP2"].answer.startswith("Yes, at gain 3")
    assert "erf: 8 of 8 localized negative, 8 of 8 oscillatory positive" in result["POP2"].measured
    assert "negative biases go with slow fields" in result["POP2"].answer
    assert (
        result["POP3"].answer.startswith("Yes")
        and "correlate by 1.000 ± 0.000" in result["POP3"].measured
    )


def test_other_biases_change_the_answers(results):
    swapped = rows(with_committee(results, np.concatenate([BUMPS, FAST]), -BIASES))
    assert (
        swapped["POP2"].answer.startswith("Not in general")
        and "0 of 8 localized" in swapped["POP2"].measured
    )
    assert "no clear split" in swapped["POP2"].answer
    one = rows(with_committee(results, np.concatenate([BUMPS, FAST]), -np.ones(8)))
    assert one["POP1"].answer.startswith("No, one")
    uneven = rows(
        with_committee(results, np.concatenate([BUMPS, FAST]), BIASES * np.linspace(0.2, 2, 8))
    )
    assert uneven["POP3"].answer.startswith("Not yet")


def test_tiling_against_crowding(results):
    blocks = np.kron(np.eye(8), np.ones(5))
    spread_out = rows(with_committee(results, blocks, -np.ones(8)))
    crowded = rows(with_committee(results, np.repeat(blocks[:1], 8, axis=0), -np.ones(8)))
    assert "keep out of each other's way" in spread_out["POP4"].answer
    assert "not more evenly" in crowded["POP4"].answer


def test_first_fields_foretell_biases(results):
    altered_rows = rows(
        with_committee(results, np.concatenate([BUMPS, FAST]), BIASES, np.concatenate([SLOW, FAST]))
    )
    assert "erf: 100 ± 0 % of the final signs" in altered_rows["POP5"].measured
    wrong = rows(
        with_committee(
            results, np.concatenate([BUMPS, FAST]), -BIASES, np.concatenate([SLOW, FAST])
        )
    )
    assert "erf: 0 ± 0 % of the final signs" in wrong["POP5"].measured


def test_advantage_is_the_difference_of_variances():
    stimuli = task_of(NLGP, gain=GAIN).stimuli
    first, second = (
        np.asarray(matrix(np.asarray(stimulus.covariance(), float))) for stimulus in stimuli
    )
    fields = np.random.default_rng(0).normal(size=(3, 2, SITES))
    np.testing.assert_allclose(
        advantage(fields, stimuli),
        np.einsum("...i,ij,...j", fields, second - first, fields),
        rtol=1e-9,
    )


def test_members_are_told_by_their_gain(results):
    run = results[ERF]
    assert run.num_members == len(gains("tiny")) == 3
    kept, other = (at_gain(run, gain, "tiny") for gain in (GAIN, 100.0))
    np.testing.assert_array_equal(kept.final, run.final[:2])
    np.testing.assert_array_equal(other.final, run.final[2:])
    assert foretold(kept, task_of(NLGP, gain=GAIN).stimuli).shape == (2,)


def test_fields_are_moved_between_sites():
    wide = np.exp(-((X - 12.4) ** 2) / 8)
    other = -np.exp(-((X - 20.9) ** 2) / 8)
    first, second = centered(np.stack([wide, other]))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert first.argmax() == 0


# What is drawn, of committees that are known.


def shuffled(fields, biases, seed):
    """The same neurons in another order, some with their sign turned."""
    order = np.random.default_rng(seed).permutation(len(fields))
    signs = np.where(np.arange(len(fields)) % 2, -1.0, 1.0)[:, None]
    return (fields * signs)[order], biases[order]


@pytest.fixture(scope="module")
def known(results):
    """Of erf four bumps with negative biases and fast waves; of sigmoid other biases; of
    Gaussian data waves alone.
    """
    bumps = np.concatenate([BUMPS, FAST])
    result = with_committee(results, *shuffled(bumps, BIASES, 0), names=[ERF])
    result = with_committee(result, *shuffled(bumps, 0.5 * BIASES, 1), names=[SIGMOID])
    waves = np.concatenate([SLOW, FAST])
    result = with_committee(result, *shuffled(waves, 2 * BIASES, 2), names=[GAUSSIAN])
    run = result[ERF]  # at gain 100 all eight are bumps, half of them with positive biases
    final = np.array(run.final)
    final[2] = np.roll(np.concatenate([BUMPS, BUMPS]), 3, axis=1)
    return Results("tiny", {**result.runs, ERF: dataclasses.replace(run, final=final)})


@pytest.fixture(scope="module")
def parts(known):
    top, bottom = FIGURE.draw(known).subfigs
    return top.subfigs, bottom.axes


def test_committees_are_rows_with_their_biases(known, parts):
    """Negative biases first, by the place of their fields; then positive ones, by their
    frequency.
    """
    titles = ("erf, gain 3", "sigmoid, gain 3", GAUSSIAN)
    for group, name, title in zip(parts[0], (ERF, SIGMOID, GAUSSIAN), titles, strict=True):
        run, (picture, bars) = known[name], group.axes
        assert group.get_suptitle() == title
        rows_drawn = picture.images[0].get_array()
        assert picture.images[0].get_clim() == (-1, 1)
        bias = run.biases[0, -1]
        drawn = np.array([bar.get_width() for bar in bars.patches])
        assert sorted(drawn) == sorted(bias) and (np.diff(drawn >= 0) >= 0).all()
        assert [to_hex(bar.get_facecolor()) for bar in bars.patches] == [
            (ORANGE if one < 0 else BLUE).lower() for one in drawn
        ]
        assert bars.get_ylim() == (7.5, -0.5)  # the first row above, as in the picture
        for row in rows_drawn:
            assert row.max() == pytest.approx(1) and np.abs(row).max() == pytest.approx(1)
        fields = {
            tuple(np.round(field / field[np.abs(field).argmax()], 4)): value
            for field, value in zip(run.final[0].astype(float), bias, strict=True)
        }
        assert [
            fields[tuple(np.round(row, 4))] for row in rows_drawn.astype(float)
        ] == drawn.tolist()
        if name != GAUSSIAN:
            assert rows_drawn[:4].argmax(axis=1).tolist() == [5, 15, 25, 35]


def test_what_populations_share(known, parts):
    moved, fast, scatter, by_gain = parts[1]
    run = known[ERF]
    curves = lines(moved, ORANGE)
    assert len(curves) == 4
    for x, y in curves:  # one shape at one place, positive, of norm one
        assert x[y.argmax()] == 0 and np.linalg.norm(y) == pytest.approx(1)
        np.testing.assert_allclose(y, curves[0][1], atol=1e-5)
    positive = run.final[0][run.biases[0, -1] > 0].astype(float)
    stacked = [y for _, y in lines(fast, BLUE)]
    wanted = [row / np.abs(row).max() - 2.3 * place for place, row in enumerate(positive)]
    np.testing.assert_allclose(stacked, wanted, atol=1e-6)
    for group, name in zip(scatter.collections, (ERF, SIGMOID), strict=True):
        runs = known[name].members(slice(0, 2))  # the two at gain 3
        points, colors = dots(group)
        np.testing.assert_allclose(points[:, 0], runs.biases[:, -1].ravel())
        np.testing.assert_allclose(points[:, 1], ipr(runs.final).ravel(), rtol=1e-5)
        assert colors == [(ORANGE if x < 0 else BLUE).lower() for x in points[:, 0]]
    assert list(legend(scatter)) == [ERF, SIGMOID]
    # At gain 3 every negative bias has a bump and no positive one; at gain 100 all fields are
    # bumps.
    assert by_gain.get_xscale() == "log"
    np.testing.assert_array_equal(lines(by_gain, ORANGE), [[[3, 100], [100, 100]]])
    np.testing.assert_array_equal(lines(by_gain, BLUE), [[[3, 100], [0, 100]]])
    assert {one.get_text(): one.get_color() for one in by_gain.texts} == {
        "negative\nbiases": ORANGE,
        "positive\nbiases": BLUE,
    }
