"""Every figure from made-up runs: it can be drawn, its rows are whole, and both follow from the
runs.
"""

import dataclasses
import functools

import numpy as np
import pytest

from localfields.figures import all_figures
from localfields.figures.base import Results

from .altered import results_of
from .canned import canned_results
from .test_all import NAMES, PUBLISHED
from .test_notes_all import WANTED

FIGURES = all_figures()
WITH_RUNS = [name for name, figure in FIGURES.items() if figure.experiments("tiny")]


def contents(figure):
    """All numbers and words that are drawn."""
    result = []
    for ax in figure.axes:
        result += [text.get_text() for text in (ax.title, ax.xaxis.label, *ax.texts)]
        for line in ax.lines:
            result += [np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)]
        for part in ax.collections:
            result += [np.ma.filled(np.asarray(part.get_offsets(), float), np.nan)]
            result += [path.vertices for path in part.get_paths()]
        result += [np.ma.filled(image.get_array().astype(float), np.nan) for image in ax.images]
        result += [np.asarray(patch.get_path().vertices) for patch in ax.patches]
    return result


def same(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b, equal_nan=not isinstance(a, str))
        for a, b in zip(first, second, strict=True)
    )


@functools.cache
def drawn(name):
    """What a figure shows and says of its made-up runs."""
    figure, results = FIGURES[name], canned_results(FIGURES[name])
    return (
        contents(figure.draw(results)),
        tuple(figure.claims(results)),
        tuple(figure.questions(results)),
    )


@pytest.mark.slow  # it draws every figure
def test_every_published_claim_and_every_question_has_a_row():
    rows = [row for name in FIGURES for part in drawn(name)[1:] for row in part]
    ids = [row.id for row in rows]
    assert len(ids) == len(set(ids)) and {*ids, "T1"} >= PUBLISHED  # T1 is of all figures together
    assert [name for name in FIGURES if FIGURES[name].group == "paper"] == NAMES
    assert {name.removeprefix("notes/") for name in FIGURES} >= WANTED


@pytest.mark.parametrize("name", FIGURES)
def test_rows_are_whole(name):
    shown, claims, questions = drawn(name)
    assert len(shown) > 20
    figure = FIGURES[name]
    assert all([figure.title, figure.caption, figure.setting("tiny")])
    assert bool(claims) == (figure.group == "paper") and bool(questions) != bool(claims)
    for row in (*claims, *questions):
        assert all(dataclasses.astuple(row)), row.id
    for claim in claims:
        assert claim.verdict in ("reproduced", "differs", "not comparable")
        assert claim.reason.endswith(".")
    for question in questions:
        assert question.answer.endswith(".")
        assert figure.group == "extra" or question.source.startswith("note")


def shaken(run):
    """The same run with other fields, all at the same place, and all else that it recorded
    changed.
    """
    generator = np.random.default_rng(1)
    series = {
        name: (values * generator.uniform(0.5, 1, values.shape)).astype(values.dtype)
        for name, values in run.series.items()
    }
    if "weights" not in series:
        return dataclasses.replace(run, series=series)
    series["weights"][..., 3] += 5 * np.abs(series["weights"]).max()
    return dataclasses.replace(run, series=series, final=series["weights"][:, -1])


@pytest.mark.parametrize("name", WITH_RUNS)
def test_other_runs_are_drawn_and_told_otherwise(name):
    figure = FIGURES[name]
    runs = canned_results(figure).runs
    altered = Results("tiny", {key: shaken(run) for key, run in runs.items()})
    shown, claims, questions = drawn(name)
    assert not same(contents(figure.draw(altered)), shown)
    rows = (*figure.claims(altered), *figure.questions(altered))
    assert [row.measured for row in rows] != [row.measured for row in (*claims, *questions)]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_RUNS)
def test_made_up_runs_have_the_shapes_of_computed_ones(tiny_store, name):
    made_up = canned_results(FIGURES[name])
    for key, run in results_of(FIGURES[name], tiny_store).items():
        other = made_up[key]
        np.testing.assert_array_equal(run.steps, other.steps, err_msg=key)
        assert (run.times.shape, run.times.max()) == (other.times.shape, other.times.max()), key
        for name in ("initial", "final"):
            assert getattr(run, name).shape == getattr(other, name).shape, key
            assert getattr(run, name).dtype == getattr(other, name).dtype, key
        recorded = ({k: v.shape for k, v in one.series.items()} for one in (run, other))
        assert next(recorded) == next(recorded), key
        assert set(run.events) == set(other.events), key
