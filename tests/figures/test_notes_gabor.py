"""Gabors against the gain: fits and uncertainties of stored fields, and what is answered from
them.
"""

import dataclasses

import numpy as np
import pytest
from drawn import legend, level, line

from localfields.analysis import fit_gabor, uncertainty
from localfields.figures.base import Results
from localfields.figures.notes_gabor import ERF, FIGURE, RELU, experiments, fields_by_gain, gains
from localfields.plots._style import BLUE, ORANGE

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
    result = experiments("paper")[RELU]
    assert (
        result.network.hidden == 12
        and result.network.bias == "none"
        and result.network.init_scale == 1
    )
    assert [float(stimulus.xi) for stimulus in result.task.stimuli] == [1.0, 2.0]
    assert set(result.task.stimuli[0].gain) == set(gains("paper")) and gains("paper")[0] == 0.01


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
    result = rows(with_relu(results, np.stack([bump, bump])))["GAB3"]
    assert (
        "falls at every gain, and monotonically" in result.answer
        and "least of all fields is 0.51" in result.measured
    )
    waves = np.cos(2 * np.pi * 19 * X / 40) + 1e-6 * np.random.default_rng(0).normal(size=(12, 40))
    assert "does not fall" in rows(with_relu(results, np.stack([waves, waves])))["GAB3"].answer


def test_populations_are_split_by_their_biases(results):
    groups = fields_by_gain(results)
    negative = results[ERF].biases[:, -1] < 0
    counts = {name: sum(len(value) for value in values.values()) for name, values in groups.items()}
    first = [0, 2]  # one member a gain
    assert counts["erf, negative biases"] == negative[first].sum()
    assert counts["erf, positive biases"] == (~negative[first]).sum()


# What is drawn, of Gabors that are known.

ENVELOPES, CYCLES = (4.0, 2.0), (3.0, 6.0)  # width and frequency at the two gains


@pytest.fixture(scope="module")
def known(results):
    """Gabors of another width and frequency at each gain, at twelve places of the ring."""
    fields = []
    for width, cycles in zip(ENVELOPES, CYCLES, strict=True):
        wave = np.exp(-(X**2) / 2 / width**2) * np.cos(2 * np.pi * cycles * X / 40)
        fields.append([np.roll(wave, 3 * place) for place in range(12)])
    return with_relu(results, np.array(fields))


@pytest.fixture(scope="module")
def grid(known):
    return np.reshape(FIGURE.draw(known).axes, (2, 4))


def test_fields_and_their_gabors_are_drawn_by_gain(grid):
    # Two gains for four panels: each twice.
    for ax, place in zip(grid[0], (0, 0, 1, 1), strict=True):
        assert ax.get_title() == f"ReLU, gain {(0.01, 100)[place]:g}: error 0 %"
        wave = np.exp(-(X**2) / 2 / ENVELOPES[place] ** 2) * np.cos(
            2 * np.pi * CYCLES[place] * X / 40
        )
        for label in ("field", "Gabor"):
            np.testing.assert_allclose(line(ax, label)[1], wave, atol=1e-4)
    assert legend(grid[0, 0]) == {"field": "#000000", "Gabor": ORANGE.lower()}


def test_quartiles_of_every_group_against_the_gain(known, grid):
    labels = (RELU, "erf, negative biases", "erf, positive biases")
    assert legend(grid[1, 1]) == dict(
        zip(labels, ("#000000", ORANGE.lower(), BLUE.lower()), strict=True)
    )
    for ax, name, factor in zip(
        grid[1], ("error", "width", "frequency"), (100, 1, 1), strict=False
    ):
        assert ax.get_xscale() == "log" and ax.get_ylabel().startswith(name)
        for group, (label, band) in enumerate(zip(labels, ax.collections, strict=True)):
            fits = {
                gain: factor * getattr(fit_gabor(fields.astype(float)), name)
                for gain, fields in fields_by_gain(known)[label].items()
            }
            gain, middle = line(ax, label)
            np.testing.assert_allclose(gain, list(fits))
            medians = [np.median(value) for value in fits.values()]
            np.testing.assert_allclose(middle, medians, rtol=1e-6, atol=1e-9)
            corners = band.get_paths()[0].vertices
            for at, values in fits.items():
                heights = corners[np.isclose(corners[:, 0], at), 1]
                ends = np.quantile(values, [0.25, 0.75])
                np.testing.assert_allclose([heights.min(), heights.max()], ends, atol=1e-9)
            if group == 0 and name != "error":
                wanted = {"width": ENVELOPES, "frequency": CYCLES}[name]
                np.testing.assert_allclose(middle, wanted, rtol=1e-3)


def test_uncertainty_over_time(known, grid):
    ax, run = grid[1, 3], known[RELU]
    assert ax.get_xscale() == ax.get_yscale() == "log" and level(ax, style="--") == 0.5
    values = uncertainty(run.weights.astype(float))  # one committee a gain
    for gain, fields in zip((0.01, 100), values, strict=True):
        times, drawn = line(ax, f"gain {gain:g}")
        np.testing.assert_allclose(times, run.times[1:])
        np.testing.assert_allclose(drawn, np.median(fields, axis=1)[1:])
