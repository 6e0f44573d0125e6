"""The two populations: answers follow from stored fields and biases."""

import dataclasses

import numpy as np

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
from localfields.stimuli import NLGP

X = np.arange(SITES)
BUMPS = np.exp(-((X - np.array([[5], [15], [25], [35]])) ** 2) / 2)
FAST = np.cos(2 * np.pi * 16 * X / SITES + np.arange(4)[:, None])
SLOW = np.cos(2 * np.pi * X / SITES + np.arange(4)[:, None])
BIASES = np.repeat([-5.0, 4.0], 4)


def with_committee(results, fields, biases, first=None, names=(ERF, SIGMOID, GAUSSIAN)):
    """Every member of some runs ends with these fields and biases; where given, all began with others."""
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
    found = experiments("paper")
    for name in (ERF, SIGMOID, GAUSSIAN):
        assert found[name].network.hidden == HIDDEN == 100 and found[name].network.bias == "trained"
        assert [one.xi for one in found[name].task.stimuli] == [1.0, 2.0] and found[
            name
        ].task.shape == (40,)
    assert [found[name].network.activation for name in (ERF, SIGMOID)] == ["erf", "sigmoid"]
    assert found[GAUSSIAN].method.estimator == "exact"


def test_what_the_notes_say_is_recognized(results):
    found = rows(with_committee(results, np.concatenate([BUMPS, FAST]), BIASES))
    assert found["POP1"].answer.startswith("Yes") and "4.0 ± 0.0 of 8" in found["POP1"].measured
    assert found["POP2"].answer.startswith("Yes, at gain 3")
    assert "erf: 8 of 8 localized negative, 8 of 8 oscillatory positive" in found["POP2"].measured
    assert "negative biases go with slow fields" in found["POP2"].answer
    assert (
        found["POP3"].answer.startswith("Yes")
        and "correlate by 1.000 ± 0.000" in found["POP3"].measured
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
    told = rows(
        with_committee(results, np.concatenate([BUMPS, FAST]), BIASES, np.concatenate([SLOW, FAST]))
    )
    assert "erf: 100 ± 0 % of the final signs" in told["POP5"].measured
    wrong = rows(
        with_committee(
            results, np.concatenate([BUMPS, FAST]), -BIASES, np.concatenate([SLOW, FAST])
        )
    )
    assert "erf: 0 ± 0 % of the final signs" in wrong["POP5"].measured


def test_advantage_is_the_difference_of_variances():
    stimuli = task_of(NLGP, gain=GAIN).stimuli
    first, second = (np.asarray(matrix(np.asarray(one.covariance(), float))) for one in stimuli)
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
