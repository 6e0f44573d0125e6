"""The comparison of methods: settings, drawing, answers that follow from stored fields, and its place in the report."""

import dataclasses
import json

import numpy as np

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
    found = FIGURE.experiments("tiny")
    assert list(found) == [f"{method}, {stimulus}" for stimulus in STIMULI for method in METHODS]
    # Of one stimulus all methods see the same classes; a network alone is told which is which.
    for stimulus in STIMULI:
        assert (
            len({json.dumps(found[f"{method}, {stimulus}"].task.to_json()) for method in METHODS})
            == 1
        )
    assert kurtosis_of(task_of(HEAVY, "paper")) == "∞"
    assert all(kurtosis_of(task_of(name, "paper")).startswith("−") for name in (*NEGATIVE, SHELL))


def test_draws(results):
    figure = FIGURE.draw(results)
    pictures = [ax for ax in figure.axes if ax.images]
    curves = [ax for ax in figure.axes if len(ax.lines) >= 4]
    assert len(pictures) == len(METHODS) and len(curves) == len(METHODS) * (len(STIMULI) - 1)


def test_answers_follow_from_the_fields(results):
    as_told = altered(results, lambda method, s: s in NEGATIVE or (method == ICA and s == HEAVY))
    found = answers(as_told)
    assert found["BASE1"].startswith("Yes.") and found["BASE3"] == found["BASE4"] == "None of them."
    assert (
        "localized on Kur(3), Kur(10), NLGP(100) and Ising; most neurons on Kur(10), NLGP"
        in found["BASE1"]
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
