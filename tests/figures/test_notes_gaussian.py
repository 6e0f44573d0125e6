"""Note 1's own figures: one neuron on Gaussian data, gates that flip, limits under fixed gates."""

import dataclasses

import numpy as np
import pytest

from localfields.figures import notes_flipping, notes_gaussian, notes_limits
from localfields.figures.base import Results

from .altered import results_of, with_fields


def rows(figure, results):
    return {question.id: question for question in figure.questions(results)}


def test_the_settings_of_the_note():
    found = notes_gaussian.experiments("paper")[notes_gaussian.TRAINED]
    method, stimuli = found.method, found.task.stimuli
    assert (method.learning_rate, method.steps, method.batch, method.every) == (
        0.01,
        2000,
        10_000,
        20,
    )
    assert [(one.xi, one.gain) for one in stimuli] == [
        (1.0, 0.01),
        (2.0, 0.01),
    ] and found.network.init_scale == 1
    found = notes_flipping.experiments("paper")[notes_flipping.NOTE]
    method = found.method
    assert (method.learning_rate, method.steps, method.batch, method.every) == (
        0.01,
        5000,
        10_000,
        20,
    )
    assert found.network.hidden == 12 and [one.gain for one in found.task.stimuli] == [0.01, 0.01]


def test_training_is_held_against_the_closed_form(tiny_store):
    name, quiet, figure = notes_gaussian.TRAINED, notes_gaussian.QUIET, notes_gaussian.FIGURE
    results = results_of(figure, tiny_store)
    run = results[name]
    exact = np.stack([flow.fields for flow in notes_gaussian.followed(run, run.times)])[:, :, None]
    same = dataclasses.replace(run, series={"weights": exact}, final=exact[:, -1])
    found = rows(figure, Results("tiny", {name: same, quiet: same}))["GAU1"]
    assert found.answer == "Yes." and found.measured.startswith(
        "distance from the closed form at the end 0.0"
    )
    other = dataclasses.replace(same, series={"weights": 1.5 * exact})
    found = rows(figure, Results("tiny", {name: other, quiet: other}))["GAU1"]
    assert found.answer.startswith("Not") and "at most 50.0 %" in found.measured
    found = rows(figure, Results("tiny", {name: other, quiet: same}))["GAU1"]
    assert "noise of the batches" in found.answer


def test_the_flat_wave_wins_from_the_first_fields(tiny_store):
    name, figure = notes_gaussian.TRAINED, notes_gaussian.FIGURE
    results = results_of(figure, tiny_store)
    assert "here of 0 cycles" in rows(figure, results)["GAU2"].answer
    flat = dataclasses.replace(results[name], initial=np.ones_like(results[name].initial))
    told = rows(figure, Results("tiny", {**results.runs, name: flat}))["GAU2"].measured
    assert told.startswith("90 % of ‖w‖² from flow time 0 ± 0 on") and "predicted 0.2825" in told


@pytest.fixture(scope="module")
def flipping(tiny_store):
    return results_of(notes_flipping.FIGURE, tiny_store)


def test_gates_that_never_flip(flipping):
    still = {
        name: dataclasses.replace(
            run, series={"weights": np.repeat(run.weights[:, :1], len(run.times), axis=1)}
        )
        for name, run in flipping.runs.items()
    }
    found = rows(notes_flipping.FIGURE, Results("tiny", still))
    assert (
        found["FLIP2"].answer == "Yes, nearly from the start."
        and "100 ± 0 % never flip" in found["FLIP2"].measured
    )
    assert "0.00 ± 0.00 % at first" in found["FLIP1"].measured


def test_gates_that_flip_all_the_time(flipping):
    rng = np.random.default_rng(0)
    wild = {
        name: dataclasses.replace(run, series={"weights": rng.normal(size=run.weights.shape)})
        for name, run in flipping.runs.items()
    }
    found = rows(notes_flipping.FIGURE, Results("tiny", wild))
    assert found["FLIP2"].answer == "Not from the start."


def test_kurtosis_of_fields_that_gather(flipping):
    name = notes_flipping.LONG
    weights = np.array(flipping[name].weights)
    weights[:, -1] = np.eye(40)[:12]  # a single site has the marginal's kurtosis, −1.83 at gain 3
    runs = {**flipping.runs, name: dataclasses.replace(flipping[name], series={"weights": weights})}
    found = rows(notes_flipping.FIGURE, Results("tiny", runs))["FLIP3"]
    end = float(
        found.measured.split("ours, longer")[1].split("start, ")[1].split(" ")[0].replace("−", "-")
    )
    assert found.answer.startswith("They stay Gaussian") and abs(end + 1.83) < 0.1


def test_fields_are_held_against_their_limits(tiny_store):
    name, figure = notes_limits.TRAINED, notes_limits.FIGURE
    results = results_of(figure, tiny_store)
    limits = np.stack(
        [np.roll(notes_limits.solved(results, "small bump").limit()[0], by) for by in (3, 8)]
    )
    found = rows(figure, with_fields(results, name, -limits))["LIM3"]
    assert "under that of its largest site 0.0 ± 0.0 %; 2 of 2 localized" in found.measured
    noise = np.random.default_rng(0).normal(size=limits.shape)
    found = rows(figure, with_fields(results, name, noise))["LIM3"]
    assert found.answer.startswith("Nearly") and "0 of 2 localized" in found.measured


def test_widths_at_half_height():
    d = np.minimum(np.arange(40), 40 - np.arange(40))
    tent = np.roll(np.maximum(0, 1 - d / 4), notes_limits.CENTER)
    assert notes_limits.half_width(tent) == pytest.approx(4.0)
    wide, narrow = (notes_limits.half_width(notes_limits.pull(gain)) for gain in (0.1, 100.0))
    assert narrow < wide
