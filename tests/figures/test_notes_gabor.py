"""Gabors against the gain: fits and uncertainties of stored fields, and what is answered from them."""

import dataclasses

import numpy as np

from localfields.figures.base import Results
from localfields.figures.notes_gabor import ERF, FIGURE, RELU, experiments, fields_by_gain, gains

X = np.arange(40) - 20


def with_relu(results, fields):
    """The fields of each gain's committee, (gain, neuron, site), at all times but the first."""
    run = results[RELU]
    weights = np.array(run.weights)
    weights[:, 1:] = fields[:, None]
    other = dataclasses.replace(run, final=weights[:, -1], series={"weights": weights})
    return Results(results.scale, {**results.runs, RELU: other})


def rows(results):
    return {question.id: question for question in FIGURE.questions(results)}


def test_the_settings_of_the_note():
    found = experiments("paper")[RELU]
    assert (
        found.network.hidden == 12
        and found.network.bias == "none"
        and found.network.init_scale == 1
    )
    assert [float(one.xi) for one in found.task.stimuli] == [1.0, 2.0]
    assert set(found.task.stimuli[0].gain) == set(gains("paper")) and gains("paper")[0] == 0.01


def test_gabors_and_noise_are_told_apart(results):
    wave = np.exp(-(X**2) / 2 / 3**2) * np.cos(2 * np.pi * 4 * X / 40)
    gabors = np.stack([np.roll(wave, 3 * place) for place in range(12)])
    noise = np.random.default_rng(0).normal(size=(12, 40))
    both = rows(with_relu(results, np.stack([gabors, gabors])))
    assert both["GAB1"].answer == "In both." and "ReLU: 0.01: 0, 100: 0" in both["GAB1"].measured
    assert "3.0 sites, 4.0 cycles" in both["GAB2"].measured and both["GAB2"].answer.startswith(
        "Widths change little"
    )
    assert rows(with_relu(results, np.stack([noise, noise])))["GAB1"].answer == "In neither."
    assert rows(with_relu(results, np.stack([noise, gabors])))["GAB1"].answer.startswith(
        "At high gain"
    )
    assert (
        rows(with_relu(results, np.stack([gabors, noise])))["GAB1"].answer
        == "On Gaussian data only."
    )


def test_uncertainty_falls_where_fields_become_bumps(results):
    bump = np.stack([np.roll(np.exp(-(X**2) / 2 / 2**2), place) for place in range(12)])
    found = rows(with_relu(results, np.stack([bump, bump])))["GAB3"]
    assert (
        "falls at every gain, and monotonically" in found.answer
        and "least of all fields is 0.51" in found.measured
    )
    waves = np.cos(2 * np.pi * 19 * X / 40) + 1e-6 * np.random.default_rng(0).normal(size=(12, 40))
    assert "does not fall" in rows(with_relu(results, np.stack([waves, waves])))["GAB3"].answer


def test_populations_are_split_by_their_biases(results):
    groups = fields_by_gain(results)
    negative = results[ERF].biases[:, -1] < 0
    counts = {name: sum(len(one) for one in values.values()) for name, values in groups.items()}
    first = [0, 2]  # one member a gain
    assert counts["erf, negative biases"] == negative[first].sum()
    assert counts["erf, positive biases"] == (~negative[first]).sum()
