"""Every figure of the working notes at the smallest scale: all questions have answers, and
nothing is made twice.
"""

import json

import pytest

from localfields.cli import main
from localfields.experiments import Experiment
from localfields.figures import all_figures

NAMES = [name for name, figure in all_figures().items() if figure.group == "notes"]
# What the notes show (note 1: Figs. 1–5, note 3: Fig. 1 and populations) and ask for.
WANTED = {"gaussian", "flipping", "limits", "populations", "balance", "gabor", "gates", "reduced"}
pytestmark = pytest.mark.slow  # `test_canned` draws and claims without computing


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_store, at_little_cost):
    folder = tmp_path_factory.mktemp("notes")
    main(
        [
            "reproduce",
            "--notes",
            "--scale",
            "tiny",
            "--out",
            str(folder),
            "--store",
            str(tiny_store.path),
        ]
    )
    return folder


def ledger(folder):
    return json.loads((folder / "claims.json").read_text(encoding="utf-8"))["figures"]


def test_every_question_is_answered(folder):
    assert {name.removeprefix("notes/") for name in NAMES} >= WANTED
    figures = ledger(folder)
    assert [record["name"] for record in figures] == NAMES
    questions = [question for record in figures for question in record["questions"]]
    ids = [question["id"] for question in questions]
    assert len(ids) == len(set(ids))
    for question in questions:
        assert all(
            question[part] for part in ("source", "question", "answer", "measured", "how")
        ), question["id"]
        assert question["source"].startswith("note") and question["answer"].endswith(".")
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert all(f"| {one} |" in text for one in ids)


def test_figures_are_drawn_and_described(folder):
    for record in ledger(folder):
        assert (
            record["scale"] == "tiny"
            and record["title"].startswith("Note")
            and record["caption"]
            and record["setting"]
        )
        assert record["questions"] and not record["claims"]
        name = record["name"].replace("/", "-")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == len(NAMES)
    assert "http://" not in page and "https://" not in page


def test_a_second_time_everything_is_read(folder, tiny_store, monkeypatch):
    def run(self, **more):
        raise AssertionError(f"computed again: {self}")

    monkeypatch.setattr(Experiment, "run", run)
    before = ledger(folder)
    main(
        [
            "reproduce",
            "notes/limits",
            "--scale",
            "tiny",
            "--out",
            str(folder),
            "--store",
            str(tiny_store.path),
        ]
    )
    assert [record["questions"] for record in ledger(folder)] == [
        one["questions"] for one in before
    ]
