"""The comparison of methods: settings, drawing, answers that follow from stored fields, and its
place in the report.
"""

import dataclasses
import json

import numpy as np
import pytest
from drawn import dots, ipr, is_color, lines, scaled, ticks, tiles, upright, words

from localfields.cli import main
from localfields.figures import all_figures
from localfields.figures.base import Question, none
from localfields.figures.baselines import (
    FIGURE,
    HEAVY,
    ICA,
    IMAGES,
    METHODS,
    NEGATIVE,
    NETWORK,
    SHELL,
    STIMULI,
    kurtosis_of,
    task_of,
)
from localfields.plots._style import BLUE, ORANGE

from .altered import bumps, waves, with_neurons
from .test_make import TOY


def answers(results):
    return {question.id: question.answer for question in FIGURE.questions(results)}


def altered(results, localized):
    """The same with bumps where `localized` says so, and waves elsewhere."""
    for method in METHODS:
        for stimulus in STIMULI:
            name = f"{method}, {stimulus}"
            shape = results[name].weights.shape
            size, count = int(np.prod(shape[3:])), shape[2]
            fields = (
                bumps(np.arange(count) % size, size)
                if localized(method, stimulus)
                else waves(count, size)
            )
            results = with_neurons(results, name, fields.reshape(count, *shape[3:]))
    return results


def test_every_method_meets_every_stimulus(results):
    assert len(METHODS) == len(STIMULI) == 6
    result = FIGURE.experiments("tiny")
    assert list(result) == [f"{method}, {stimulus}" for stimulus in STIMULI for method in METHODS]
    # Of one stimulus all methods see the same classes; a network alone is told which is which.
    for stimulus in STIMULI:
        assert (
            len({json.dumps(result[f"{method}, {stimulus}"].task.to_json()) for method in METHODS})
            == 1
        )
    assert kurtosis_of(task_of(HEAVY, "paper")) == "∞"
    assert all(kurtosis_of(task_of(name, "paper")).startswith("−") for name in (*NEGATIVE, SHELL))


def test_fields_and_ratios_are_those_of_their_row_and_column(results):
    """Localized on the diagonal of the table and nowhere else."""
    diagonal = dict(zip(METHODS, STIMULI, strict=True))
    shown = altered(results, lambda method, stimulus: diagonal[method] == stimulus)
    grid = np.reshape(FIGURE.draw(shown).axes, (7, 6))
    for column, stimulus in enumerate(STIMULI):
        below = grid[-1, column]
        size = int(np.prod(shown[f"{NETWORK}, {stimulus}"].shape))
        threshold = 4 / (size + 2)
        assert upright(below, "black", "--") == threshold and below.get_xscale() == "log"
        assert ticks(below.yaxis) == (
            [-place for place in range(6)],
            list(METHODS) if column == 0 else [""] * 6,
        )
        head = words(grid[0, column])
        assert f"{stimulus}\nexcess kurtosis {kurtosis_of(task_of(stimulus, 'tiny'))}" in head
        for row, method in enumerate(METHODS):
            ax, run = grid[row, column], shown[f"{method}, {stimulus}"]
            local = diagonal[method] == stimulus
            values = ipr(run.final.reshape(-1, size))
            share = (values > threshold).mean()
            assert share == float(local)
            text = f"IPR {np.median(values):.2f}, {100 * share:.0f} % localized"
            assert ax.get_title() == text
            color = ORANGE if local else BLUE
            assert is_color(ax.title.get_color(), color)
            points, colors = dots(below.collections[row])
            np.testing.assert_allclose(points[:, 0], np.maximum(values, 1 / size), rtol=1e-5)
            assert (points[:, 1].round() == -row).all() and set(colors) == {color.lower()}
            if stimulus == IMAGES:
                assert {tuple(tile.ravel()) for tile in tiles(ax, run.shape).round(4)} <= {
                    tuple(one.ravel()) for one in scaled(run.final.reshape(-1, *run.shape)).round(4)
                }
            else:
                curves = [y for _, y in lines(ax, color) if len(y) == size]
                fields = run.final.reshape(-1, size)
                assert len(curves) == min(4, len(fields))
                for place, curve in enumerate(curves):  # one above the other, largest weight 1
                    curve = curve + 2.2 * place
                    assert np.abs(curve).max() == pytest.approx(1)
                    alike = np.abs(fields @ curve) / np.linalg.norm(fields, axis=1)
                    assert alike.max() == pytest.approx(np.linalg.norm(curve), rel=1e-5)
    for row, method in enumerate(METHODS):
        count = shown[f"{method}, {HEAVY}"].final[:, :, 0].size
        assert f"{method}\n({count} fields)" in words(grid[row, 0])


def test_answers_follow_from_the_fields(results):
    as_told = altered(results, lambda method, s: s in NEGATIVE or (method == ICA and s == HEAVY))
    result = answers(as_told)
    assert (
        result["BASE1"].startswith("Yes.") and result["BASE3"] == result["BASE4"] == "None of them."
    )
    assert (
        "localized on Kur(3), Kur(10), NLGP(100) and Ising; most neurons on Kur(10), NLGP"
        in result["BASE1"]
    )
    for method, stimulus in ((ICA, HEAVY), (ICA, NEGATIVE[0]), (NETWORK, NEGATIVE[1])):
        other = altered(
            as_told, lambda m, s, out=(method, stimulus): (m, s) != out and s in (*NEGATIVE, HEAVY)
        )
        assert answers(other)["BASE1"].startswith("Not throughout.")
    heavy = altered(as_told, lambda m, s: s in (*NEGATIVE, HEAVY))
    assert answers(heavy)["BASE1"].startswith(
        "Not throughout."
    )  # the network localized on heavy tails as well
    shell = altered(as_told, lambda m, s: (m, s) == ("autoencoder", SHELL) or s == IMAGES)
    assert answers(shell)["BASE3"] == "Most fields of autoencoder do."
    assert all(method in answers(shell)["BASE4"] for method in METHODS)
    assert "sparse coding on none" in answers(shell)["BASE2"]


def test_is_made_when_named_and_not_with_the_papers(tmp_path, monkeypatch, capsys):
    assert FIGURE.group == "extra" and FIGURE.name in list(all_figures())[-2:]
    mine = dataclasses.replace(
        TOY, name="mine", title="Of our own", claims=none, questions=asked, extra=True
    )
    monkeypatch.setattr("localfields.figures.all_figures", lambda: {"toy": TOY, "mine": mine})

    def reproduce(*words):
        main(
            [
                "reproduce",
                *words,
                "--scale",
                "tiny",
                "--out",
                str(tmp_path / "out"),
                "--store",
                str(tmp_path / "runs"),
            ]
        )
        text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
        return (
            capsys.readouterr().out,
            text,
            (tmp_path / "out" / "report.html").read_text(encoding="utf-8"),
        )

    out, text, page = reproduce("mine")
    assert "1 beyond the paper is answered" in out and "published" not in out
    assert (
        text.startswith("# Beyond the paper") and "| B1 |" in text and "Smaller than ours" in text
    )
    assert (
        page.count("<img ") == 1 and 'id="T1"' not in page
    )  # no part of what the paper's figures take
    out, text, page = reproduce()
    assert (
        "mine" not in out.split("┏")[0] and page.count("<img ") == 2
    )  # not made again, and still there
    assert (
        text.startswith("# Published against measured") and text.count("## Beyond the paper") == 1
    )
    assert page.count('<h2 id="extra">Beyond the paper</h2>') == 1 and 'id="T1"' in page


def asked(results):
    return [Question("B1", "ours", "Do fields grow?", "Yes.", "1", "by looking")]
