"""Note 1, Fig. 3: gates that flip, or do not, and how that is drawn."""

import dataclasses

import numpy as np
import pytest
from closed_forms import nlgp_kurtosis, nlgp_kurtosis_error
from drawn import legend, line, lines

from localfields.figures.base import Results
from localfields.figures.notes_flipping import FIGURE, GAINS, LONG, NOTE
from localfields.plots._style import BLUE, GREEN, ORANGE


def rows(results):
    return {question.id: question for question in FIGURE.questions(results)}


def test_the_settings_of_the_note():
    result = FIGURE.experiments("paper")[NOTE]
    method = result.method
    assert (method.learning_rate, method.steps, method.batch, method.every) == (
        0.01,
        5000,
        10_000,
        20,
    )
    assert result.network.hidden == 12 and [stimulus.gain for stimulus in result.task.stimuli] == [
        0.01,
        0.01,
    ]


def test_gates_that_never_flip(results):
    still = {
        name: dataclasses.replace(
            run, series={"weights": np.repeat(run.weights[:, :1], len(run.times), axis=1)}
        )
        for name, run in results.runs.items()
    }
    result = rows(Results("tiny", still))
    assert (
        result["FLIP2"].answer == "Yes, nearly from the start."
        and "100 ± 0 % never flip" in result["FLIP2"].measured
    )
    assert "0.00 ± 0.00 % at first" in result["FLIP1"].measured


def test_gates_that_flip_all_the_time(results):
    rng = np.random.default_rng(0)
    wild = {
        name: dataclasses.replace(run, series={"weights": rng.normal(size=run.weights.shape)})
        for name, run in results.runs.items()
    }
    result = rows(Results("tiny", wild))
    assert result["FLIP2"].answer == "Not from the start."


def test_kurtosis_of_fields_that_gather(results):
    weights = np.array(results[LONG].weights)
    weights[:, -1] = np.eye(40)[:12]  # a single site has the marginal's kurtosis
    runs = {**results.runs, LONG: dataclasses.replace(results[LONG], series={"weights": weights})}
    result = rows(Results("tiny", runs))["FLIP3"]
    end = float(
        result.measured.split("ours, longer")[1].split("start, ")[1].split(" ")[0].replace("−", "-")
    )
    assert result.answer.startswith("They stay Gaussian")
    # Mean over twelve neurons, rounded to two digits, of 100 draws of each class.
    assert end == pytest.approx(
        nlgp_kurtosis(3.0) - 3, abs=0.005 + 5 * nlgp_kurtosis_error(3.0, 200)
    )


@pytest.fixture(scope="module")
def known(results):
    """Fields that never move in the note's run; in ours they turn by 0.6 a record, and end on
    one site each.
    """
    note, long = results[NOTE], results[LONG]
    still = np.repeat(note.weights[:, :1], len(note.times), axis=1)
    angle = 0.6 * np.arange(len(long.times))[:, None, None]
    ends = np.random.default_rng(0).normal(size=(2, 12, 40))
    turning = np.cos(angle) * ends[0] + np.sin(angle) * ends[1]
    turning[-1] = np.eye(40)[:12] * np.linspace(1, 2, 12)[:, None]
    weights = {NOTE: still, LONG: turning[None]}
    runs = {
        name: dataclasses.replace(
            run, series={"weights": weights[name]}, final=weights[name][:, -1]
        )
        for name, run in results.runs.items()
    }
    return Results("tiny", runs)


@pytest.fixture(scope="module")
def grid(known):
    return np.reshape(FIGURE.draw(known).axes, (2, 4))


def test_flips_between_records(known, grid):
    for row, name in zip(grid, GAINS, strict=True):
        run, ax = known[name], row[0]
        curves = lines(ax, BLUE)
        assert len(curves) == 12 and list(legend(ax)) == ["drawn", "by covariance, mean"]
        for times, flips in curves:
            np.testing.assert_allclose(times, run.times[:-1])
            if name == NOTE:
                np.testing.assert_allclose(flips, 0, atol=1e-4)
        _, expected = line(ax, "by covariance, mean")
        if name == NOTE:
            np.testing.assert_allclose(expected, 0, atol=1e-4)
        else:
            # Two gates of normal data differ in a share of angle over π. Twelve neurons share 100
            # draws of a class.
            angles = [
                np.degrees(np.arccos(cosines(known, record))).mean() / 1.8
                for record in range(len(run.times) - 1)
            ]
            np.testing.assert_allclose(expected, angles, rtol=1e-4)
            drawn = np.array([flips for _, flips in curves]).mean(axis=0)
            error = np.sqrt(expected * (100 - expected) / 200)
            assert (np.abs(drawn - expected) < 5 * error).all()
            assert (np.abs(drawn - (100 - expected)) > 5 * error)[:-1].all()
        (text,) = (text.get_text() for text in ax.texts)
        assert text == f"{name}: gain {GAINS[name]:g}"


def cosines(known, record):
    """Of fields at a record and the next, under the mean covariance of both classes."""
    from localfields.figures.notes_flipping import task
    from localfields.lattice import matrix

    fields = known[LONG].weights[0].astype(float)
    result = []
    for stimulus in task(GAINS[LONG]).stimuli:
        covariance = np.asarray(matrix(stimulus.covariance()))
        a, b = fields[record], fields[record + 1]
        inner = np.einsum("ki,ij,kj->k", a, covariance, b)
        norms = [np.einsum("ki,ij,kj->k", w, covariance, w) for w in (a, b)]
        result.append(inner / np.sqrt(norms[0] * norms[1]))
    return np.array(result)


def test_kurtosis_fields_and_gates_that_never_flip(known, grid):
    for row, name in zip(grid, GAINS, strict=True):
        run = known[name]
        curves = lines(row[1], GREEN)
        assert len(curves) == 12
        for times, kurtosis in curves:
            np.testing.assert_allclose(times, run.times)
            if name == LONG:  # one site at the end; 100 draws of each class
                error = nlgp_kurtosis_error(3.0, 200)
                assert kurtosis[-1] == pytest.approx(nlgp_kurtosis(3.0) - 3, abs=5 * error)
        drawn = [y for _, y in lines(row[2], ORANGE)]
        largest = 1.1 * np.abs(run.final).max()
        wanted = [field / largest - 2 * (place // 2) for place, field in enumerate(run.final[0])]
        np.testing.assert_allclose(drawn, wanted, rtol=1e-6)
        start, late, bound = (
            line(row[3], label)[1]
            for label in ("from the start", "from half time on", "its union bound")
        )
        assert (np.diff(start) >= 0).all()  # neurons in this order
        if name == NOTE:
            np.testing.assert_allclose([start, late, bound], 100, atol=1e-4)
        else:
            assert start.mean() < late.mean() < 99 and (late >= start - 1e-4).all()
    labels = {"from half time on": BLUE.lower(), "from the start": ORANGE.lower()}
    assert legend(grid[0, 3]) == {**labels, "its union bound": BLUE.lower()}
    assert [ax.get_ylabel() for ax in grid[0]] == [
        "gates that flip (%)",
        "excess kurtosis of ⟨w, x⟩",
        "",
        "gates that never flip (%)",
    ]
