"""Every figure at the smallest scale through the command line: the ledger is whole, and nothing
is made twice.
"""

import json

import pytest

from localfields.cli import main
from localfields.experiments import Experiment
from localfields.figures import all_figures

# The ids of the published claims, K: kurtosis, L: localization, P: position, E: elliptical, M: many
# neurons, I: ICA, A: eq. (5), T: time. Rows of our own come in addition.
PUBLISHED = {
    "K1",
    "K2",
    "K3",
    "K4",
    "K5",
    "K6",
    "L1",
    "L2",
    "L3",
    "P1",
    "E1",
    "M1",
    "M2",
    "I1",
    "A1",
    "T1",
}
NAMES = ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "sec4.2"]
pytestmark = pytest.mark.slow  # `test_canned` draws and claims without computing


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_store, at_little_cost):
    folder = tmp_path_factory.mktemp("report")
    main(["reproduce", "--scale", "tiny", "--out", str(folder), "--store", str(tiny_store.path)])
    return folder


def ledger(folder):
    return json.loads((folder / "claims.json").read_text(encoding="utf-8"))["figures"]


def test_every_published_claim_has_a_row(folder):
    assert [name for name, figure in all_figures().items() if figure.group == "paper"] == NAMES
    figures = ledger(folder)
    assert [record["name"] for record in figures] == NAMES
    rows = [
        line.split("|")[1].strip()
        for line in (folder / "report.md").read_text("utf-8").splitlines()
        if "|" in line
    ]
    ids = [claim["id"] for record in figures for claim in record["claims"]]
    assert len(ids) == len(set(ids))
    assert {*ids, "T1"} >= PUBLISHED
    assert {*ids, "T1"} <= set(rows)


def test_rows_are_whole(folder):
    for record in ledger(folder):
        assert (
            record["scale"] == "tiny"
            and record["title"]
            and record["caption"]
            and record["setting"]
        )
        assert all(len(digest) == 64 for digest in record["runs"].values())
        assert (record["computed"] > 0) == bool(record["runs"])
        for claim in record["claims"]:
            assert all(
                claim[part] for part in ("statement", "published", "measured", "reason", "how")
            ), claim["id"]
            assert claim["verdict"] in ("reproduced", "differs", "not comparable")
            assert claim["reason"].endswith(".")


def test_every_figure_is_drawn(folder):
    for name in NAMES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == len(NAMES)
    assert "http://" not in page and "https://" not in page


def test_a_second_time_everything_is_read(folder, tiny_store, monkeypatch):
    def run(self, **more):
        raise AssertionError(f"computed again: {self}")

    monkeypatch.setattr(Experiment, "run", run)
    before = ledger(folder)
    some = ["fig5", "fig6", "sec4.2"]  # drawing takes its time
    main(
        [
            "reproduce",
            *some,
            "--scale",
            "tiny",
            "--out",
            str(folder),
            "--store",
            str(tiny_store.path),
        ]
    )
    after = ledger(folder)
    assert [one["claims"] for one in after] == [one["claims"] for one in before]
    assert [one["runs"] for one in after] == [one["runs"] for one in before]
