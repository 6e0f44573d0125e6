"""Figures are made of stored runs: nothing is computed twice or lost, and claims follow from
what is stored.
"""

import dataclasses
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import localfields as lf
from localfields.cli import main
from localfields.experiments import Experiment, Training, run_or_load
from localfields.figures.base import (
    Claim,
    PaperFigure,
    Question,
    at,
    no_experiments,
    none,
    printed,
    spread,
    verdict,
)
from localfields.figures.make import Interrupted, is_current, make, read_records
from localfields.figures.report import ledger, questions_of, summary
from localfields.store import Store


def experiments(scale):
    task = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
    training = Training(steps=at(scale, paper=60, quick=40, tiny=20), batch=50, members=2)
    return {"first": Experiment(task, method=training)}


def draw(results):
    figure = Figure()
    figure.subplots().plot(results["first"].final[:, 0].T)
    return figure


def claims(results):
    norm = np.linalg.norm(results["first"].final, axis=(1, 2))
    holds = (norm < 10).all()
    return [
        Claim(
            "X1",
            "Fields stay small",
            "small",
            spread(norm),
            verdict(holds),
            "A toy.",
            "norm of the field",
        )
    ]


TOY = PaperFigure("toy", "A toy", "Two fields.", lambda scale: "Ising.", draw, claims, experiments)
OTHER = dataclasses.replace(
    TOY, name="other", claims=lambda results: [dataclasses.replace(claims(results)[0], id="X2")]
)


def questions(results):
    norm = np.linalg.norm(results["first"].final, axis=(1, 2))
    return [
        Question("Q1", "note 1, §1", "Do fields | grow?", "Yes.", spread(norm), "norm of the field")
    ]


NOTE = PaperFigure(
    "notes/toy",
    "Of a note",
    "Again.",
    lambda scale: "Ising.",
    draw,
    experiments=experiments,
    questions=questions,
)


@pytest.fixture
def no_training(monkeypatch):
    """Calling it makes every computation of an experiment an error."""

    def forbid():
        def run(self, **more):
            raise AssertionError("computed again")

        monkeypatch.setattr(Experiment, "run", run)

    return forbid


@pytest.fixture
def figures(monkeypatch):
    known = {"other": OTHER, "toy": TOY, "notes/toy": NOTE}
    monkeypatch.setattr("localfields.figures.all_figures", lambda: known)


def test_a_second_time_nothing_is_computed(tmp_path, no_training):
    store = Store(tmp_path / "runs")
    first = make(TOY, "tiny", store, tmp_path)
    no_training()
    again = make(TOY, "tiny", store, tmp_path)
    assert dataclasses.replace(again, drawn=first.drawn, elapsed=first.elapsed) == first
    assert first.runs == {"first": experiments("tiny")["first"].digest}
    assert first.computed > 0 and first.slowest[1] == 2
    with pytest.raises(AssertionError, match="computed again"):
        make(TOY, "quick", store, tmp_path)


def test_the_same_runs_give_the_same_files(tmp_path):
    store = Store(tmp_path / "runs")
    files = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        make(TOY, "tiny", store, folder)
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert sorted(files[0]) == ["toy.pdf", "toy.png", "toy.svg"]
    assert files[0] == files[1]


def test_interrupted_and_called_again(tmp_path):
    calls = []

    def tell(words, share):
        calls.append((words, share))
        if "step" in words and len(calls) < 3:
            raise KeyboardInterrupt

    whole = run_or_load(experiments("tiny")["first"], Store(tmp_path / "whole"))
    store = Store(tmp_path / "runs")
    with pytest.raises(Interrupted):
        make(TOY, "tiny", store, tmp_path, tell)
    assert store.digests() == [] and not (tmp_path / "toy.png").exists()
    record = make(TOY, "tiny", store, tmp_path, tell)
    assert calls[-1] == ("drawing", 1.0)
    np.testing.assert_array_equal(store.load(record.runs["first"]).weights, whole.weights)


@pytest.mark.parametrize(("scale", "verdict"), [("paper", "differs"), ("tiny", "not comparable")])
def test_a_verdict_follows_from_the_stored_run(tmp_path, scale, verdict):
    store, experiment = Store(tmp_path / "runs"), experiments(scale)["first"]
    assert make(TOY, scale, store, tmp_path).claims[0].verdict == "reproduced"
    run = store.load(experiment.digest)
    store.remove(experiment.digest)
    store.save(
        experiment.canonical(), experiment.digest, dataclasses.replace(run, final=run.final + 100)
    )
    claim = make(TOY, scale, store, tmp_path).claims[0]
    assert claim.verdict == verdict
    assert ("smaller than the paper's" in claim.reason) == (scale != "paper")
    assert claim.measured == spread(np.linalg.norm(run.final + 100, axis=(1, 2)))


def test_figures_made_before_stay_in_the_report(tmp_path, figures, capsys, no_training):
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
        return capsys.readouterr().out

    assert "1 of 2 published" in reproduce("toy")  # the other is T1, on time
    out = reproduce("other")
    assert "2 of 3 published" in out and "other: " in out and "toy: " not in out
    records = read_records(tmp_path / "out")
    assert list(records) == ["other", "toy"]
    assert [claim.id for claim in ledger(records.values())] == ["X2", "X1", "T1"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 2 and page.count("scale tiny") == 2

    no_training()
    assert "drawing" not in reproduce("--only-missing")
    (tmp_path / "out" / "toy.svg").unlink()
    out = reproduce("--only-missing")
    assert "toy: " in out and "other: " not in out
    assert (tmp_path / "out" / "toy.svg").exists()


def test_notes_are_made_when_asked_for(tmp_path, figures, capsys):
    def reproduce(*words):
        main(
            [
                "reproduce",
                *words,
                "--scale",
                "tiny",
                "--out",
                str(tmp_path),
                "--store",
                str(tmp_path / "runs"),
            ]
        )
        return capsys.readouterr().out

    out = reproduce("--notes")
    assert "1 question of the notes is answered" in out and "published" not in out
    assert list(read_records(tmp_path)) == ["notes/toy"]
    assert (tmp_path / "notes-toy.png").is_file() and (tmp_path / "notes-toy.svg").is_file()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>Questions of the working notes</h1>" in page and page.count("<tr id=") == 1
    assert "Smaller than the note's" in page.replace("&#x27;", "'")

    assert "1 of 2 published" in reproduce("toy")
    records = read_records(tmp_path)
    assert list(records) == ["toy", "notes/toy"]  # what was made before stays
    assert [question.id for question in questions_of(records.values())] == ["Q1"]
    assert [record.id for record in ledger(records.values())] == [
        "X1",
        "T1",
    ]  # notes are no part of the paper's time
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        page.index('id="T1"')
        < page.index('<h2 id="notes">')
        < page.index('id="Q1"')
        < page.index('id="notes-toy"')
    )
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert (
        "| Q1 | Do fields \\| grow? | note 1, §1 | Yes. |" in text
        and "![Of a note](notes-toy.png)" in text
    )

    reproduce("notes/toy", "--only-missing")
    assert "notes/toy: " not in reproduce("notes/toy", "other", "--only-missing")
    assert list(read_records(tmp_path)) == ["other", "toy", "notes/toy"]


def test_the_paper_alone_unless_asked(tmp_path, figures, capsys):
    main(
        ["reproduce", "--scale", "tiny", "--out", str(tmp_path), "--store", str(tmp_path / "runs")]
    )
    assert list(read_records(tmp_path)) == ["other", "toy"]
    assert "Questions" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_ledger_without_questions_is_read(tmp_path):
    record = make(TOY, "tiny", Store(tmp_path / "runs"), tmp_path)
    plain = dataclasses.asdict(record)
    del plain["questions"]
    (tmp_path / "claims.json").write_text(json.dumps({"figures": [plain]}))
    assert read_records(tmp_path) == {"toy": record}


def test_interrupting_the_command(tmp_path, figures, capsys, monkeypatch):
    def run(self, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "run", run)
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "reproduce",
                "toy",
                "--scale",
                "tiny",
                "--out",
                str(tmp_path),
                "--store",
                str(tmp_path / "runs"),
            ]
        )
    assert stop.value.code == 130
    assert "the same command resumes it" in capsys.readouterr().err


def test_a_figure_of_another_scale_is_made_again(tmp_path):
    """Also where no experiment tells the scales apart, as draws of the drawing itself may."""
    bare = dataclasses.replace(
        TOY, draw=lambda results: Figure(), claims=none, experiments=no_experiments
    )
    records = {"toy": make(bare, "quick", Store(tmp_path / "runs"), tmp_path)}
    assert is_current(bare, "quick", tmp_path, records) and not is_current(
        bare, "paper", tmp_path, records
    )


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"figures": [{}]}', '{"figures": [{"name": "toy"}]}', "\x00", '{"figures": 3}'],
)
def test_an_unreadable_ledger_is_started_anew(tmp_path, text):
    (tmp_path / "claims.json").write_text(text)
    assert read_records(tmp_path) == {}


def test_what_a_single_run_takes(tmp_path):
    record = make(TOY, "paper", Store(tmp_path / "runs"), tmp_path)
    for minutes, members, words, result in (
        (0.5, 2, "at most 0.5 minutes, of 2 runs together", "differs"),
        (30, 1, "at most 30.0 minutes, of a single run", "reproduced"),
        (90, 1, "at most 90.0 minutes, of a single run", "differs"),
    ):
        claim = ledger([dataclasses.replace(record, slowest=(60.0 * minutes, members))])[-1]
        assert (claim.id, claim.measured, claim.verdict) == ("T1", words, result)
        assert claim.reason.startswith("Faster") == (minutes < 10)
    smaller = ledger([dataclasses.replace(record, scale="quick")])[-1]
    assert (smaller.id, smaller.verdict) == ("T1", "not comparable")


def test_rows_of_our_own_are_not_counted(tmp_path):
    record = make(TOY, "tiny", Store(tmp_path / "runs"), tmp_path)
    ours = dataclasses.replace(record.claims[0], id="X3", published="not published")
    assert summary([*record.claims, ours]).startswith("1 of 1 published")


def test_numbers_in_print():
    assert spread([1.0]) == "1.00"
    assert spread([1.0, 3.0], 1) == "2.0 ± 1.4"
    assert printed(-0.5, 1) == "−0.5"
    json.dumps(
        dataclasses.asdict(claims({"first": type("Run", (), {"final": np.ones((2, 1, 8))})})[0])
    )
