"""Note 1, Figs. 1 and 2: one neuron on Gaussian data, against the flow and the waves it is made
of.
"""

import dataclasses

import numpy as np
import pytest
from drawn import legend, level, line, lines, over_time, upright
from scipy.integrate import solve_ivp

from localfields.figures.base import Results
from localfields.figures.notes_gaussian import FIGURE, QUIET, TRAINED, task
from localfields.lattice import matrix
from localfields.plots._style import BLUE, GRAY, ORANGE


def flow_from(field, times):
    """The gradient flow of one ReLU neuron on Gaussian data, integrated: E relu(h)² = v/2, E
    relu(h) = √(v/2π).

    With v = wᵀΣw of each class and labels 0 and 1, the loss without ½ is half of v₀/2 + v₁/2 −
    2√(v₁/2π) + 1.
    """
    first, second = (np.asarray(matrix(stimulus.covariance())) for stimulus in task().stimuli)

    def velocity(_, w):
        pull = second @ w / np.sqrt(2 * np.pi * (w @ second @ w))
        return pull - (first + second) @ w / 2

    span = (0.0, float(times[-1]))
    return solve_ivp(velocity, span, field, t_eval=times, rtol=1e-8, atol=1e-10).y.T


def length_of_flat():
    """At which the loss of a constant field is least: with v = ℓ²λ, ℓ = √(2λ₁/π)/(λ₀ + λ₁)."""
    first, second = (stimulus.covariance().sum() for stimulus in task().stimuli)
    return np.sqrt(2 * second / np.pi) / (first + second)


def rows(results):
    return {question.id: question for question in FIGURE.questions(results)}


def test_the_settings_of_the_note():
    result = FIGURE.experiments("paper")[TRAINED]
    method, stimuli = result.method, result.task.stimuli
    assert (method.learning_rate, method.steps, method.batch, method.every) == (
        0.01,
        2000,
        10_000,
        20,
    )
    assert [(stimulus.xi, stimulus.gain) for stimulus in stimuli] == [
        (1.0, 0.01),
        (2.0, 0.01),
    ] and result.network.init_scale == 1


def test_training_is_compared_with_the_closed_form(results):
    run = results[TRAINED]
    flow = [flow_from(field, run.times) for field in run.initial[:, 0].astype(float)]
    exact = np.stack(flow)[:, :, None]
    same = dataclasses.replace(run, series={"weights": exact}, final=exact[:, -1])
    result = rows(Results("tiny", {TRAINED: same, QUIET: same}))["GAU1"]
    assert result.answer == "Yes." and result.measured.startswith(
        "distance from the closed form at the end 0.0"
    )
    other = dataclasses.replace(same, series={"weights": 1.5 * exact})
    result = rows(Results("tiny", {TRAINED: other, QUIET: other}))["GAU1"]
    assert result.answer.startswith("Not") and "at most 50.0 %" in result.measured
    result = rows(Results("tiny", {TRAINED: other, QUIET: same}))["GAU1"]
    assert "noise of the batches" in result.answer


def test_the_flat_wave_wins_from_the_first_fields(results):
    assert "here of 0 cycles" in rows(results)["GAU2"].answer
    flat = dataclasses.replace(results[TRAINED], initial=np.ones_like(results[TRAINED].initial))
    measured = rows(Results("tiny", {**results.runs, TRAINED: flat}))["GAU2"].measured
    assert measured.startswith("90 % of ‖w‖² from flow time 0 ± 0 on")
    assert f"predicted {length_of_flat():.4f}" in measured


def test_fields_are_drawn_trained_and_from_the_closed_form(results, figure):
    run = results[TRAINED]
    solved = flow_from(run.initial[0, 0].astype(float), run.times)
    for ax, title, fields in zip(
        figure.axes, ("trained", "closed form"), (run.weights[0, :, 0], solved), strict=False
    ):
        drawn, times, _ = over_time(ax)
        assert ax.get_title() == title
        np.testing.assert_allclose(drawn, fields, atol=1e-5)
        np.testing.assert_allclose(times, run.times)
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    # Energy of every frequency, from the coefficients in the order of the basis that is drawn
    # beside them.
    cycles = np.r_[0, np.repeat(np.arange(1, 20), 2), 20]
    for label, field in (("trained", run.weights[0, -1, 0]), ("closed form", solved[-1])):
        _, coefficient = line(figure.axes[2], label)
        energy = np.bincount(cycles, coefficient**2)
        power = np.abs(np.fft.rfft(field)) ** 2 / 40
        power[1:-1] *= 2
        np.testing.assert_allclose(energy, power, rtol=1e-4, atol=1e-7)
    assert legend(figure.axes[2]) == {"trained": ORANGE.lower(), "closed form": BLUE.lower()}
    basis = figure.axes[3].images[0].get_array()
    np.testing.assert_allclose(basis.T @ basis, np.eye(40), atol=1e-9)
    assert np.abs(np.fft.rfft(basis, axis=0)).argmax(axis=0).tolist() == cycles.tolist()


def test_distances_of_all_seeds_and_the_waves_that_are_left(results, figure):
    five, six = figure.axes[4:6]
    for name, color in ((TRAINED, ORANGE), (QUIET, BLUE)):
        run = results[name]
        curves = lines(five, color)
        assert len(curves) == run.num_members and legend(five)[name] == color.lower()
        for (times, distance), fields in zip(
            curves, run.weights[:, :, 0].astype(float), strict=True
        ):
            exact = flow_from(fields[0], run.times)
            np.testing.assert_allclose(times, run.times[1:])
            apart = np.linalg.norm(fields - exact, axis=1) / np.linalg.norm(exact, axis=1)
            np.testing.assert_allclose(distance, 100 * apart[1:], rtol=1e-3, atol=1e-4)
    assert six.get_xscale() == "log" and list(legend(six)) == list("012345")
    times, _ = line(six, "0")
    long = flow_from(results[TRAINED].initial[0, 0].astype(float), times)
    length = np.sqrt(np.abs(np.fft.rfft(long, axis=1)) ** 2 * np.r_[1, [2] * 19, 1] / 40)
    for wave in range(6):
        np.testing.assert_allclose(line(six, f"{wave}")[1], length[:, wave], atol=1e-4)
    assert level(six, "black", ":") == pytest.approx(length_of_flat(), rel=1e-6)
    assert upright(six, GRAY, "--") == results[TRAINED].times[-1]
