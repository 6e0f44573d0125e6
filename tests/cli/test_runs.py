"""`localfields runs`: lists, shows, removes, exports and verifies what is in a store."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest
import xarray as xr
from store.helpers import experiment, named, put, trajectory

from localfields.cli import main
from localfields.store import Store
from localfields.store.document import seal
from localfields.trajectory import Outcome

from .conftest import read_table

SERIES = ("weights", "loss")


def plain(seed=0):
    """A trajectory with the usual series alone."""
    made = trajectory(seed)
    return trajectory(seed, series={name: made.series[name] for name in SERIES})


@pytest.fixture
def store(folder, monkeypatch):
    """Three runs in the default place."""
    monkeypatch.delenv("LOCALFIELDS_STORE", raising=False)
    made = Store()
    for number, steps in enumerate((100, 1000, 2000)):
        put(made, steps=steps, gain=100.0 if number else 5.0, made=plain(number))
    return made


def stop(line):
    with pytest.raises(SystemExit) as stopped:
        main(line)
    return stopped.value.code


def table(text):
    """The rows of a plain table, by column."""
    head, *rows = text.splitlines()
    starts = [at for at in range(len(head)) if head[at] != " " and (at == 0 or head[at - 1] == " ")]
    cut = [slice(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return [{head[part].strip(): row[part].strip() for part in cut} for row in rows]


def test_list(store, capsys):
    main(["runs", "list"])
    out, err = capsys.readouterr()
    rows = table(out)
    assert [row["run"] for row in rows] == [one.digest[:12] for one in store.list()]
    assert err == f"3 runs in {store.path}\n"
    entry = store.list()[0]
    assert rows[0] == {
        "run": entry.digest[:12],
        "stored": entry.created[:16].replace("T", " "),
        "stimuli": "nlgp 40 gain=5 xi=1,3",  # fields by name, as the canonical text has them
        "network": "single-neuron",
        "method": "independent",
        "steps": "100",
        "members": "3",
        "IPR": f"{entry.metrics['ipr']:.4g}",
        "loss": f"{entry.metrics['loss']:.4g}",
        "outcome": "1 diverged",
        "seconds": "1.5",
    }


def test_list_with_filters(store, capsys):
    main(["runs", "list", "gain=100", "estimator=independent", "steps>=2000"])
    (row,) = table(capsys.readouterr().out)
    assert row["steps"] == "2000"
    main(["runs", "list", "gain=7"])
    assert capsys.readouterr().out == f"no such runs in {store.path}\n"
    assert stop(["runs", "list", "gian=7"]) == 2
    told = capsys.readouterr().err
    assert "Did you mean 'gain'?" in told and told.count("\n") == 1


def test_list_in_a_terminal_is_a_table(store, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["runs", "list"])
    drawn = capsys.readouterr().out
    monkeypatch.delenv("FORCE_COLOR")
    main(["runs", "list"])
    assert read_table(re.sub(r"\x1b\[[\d;]*m", "", drawn)) == table(capsys.readouterr().out)


def test_a_long_list_in_a_terminal_is_plain(store, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for longest, drawn in ((2, False), (3, True)):
        monkeypatch.setattr("localfields.cli.runs.LONGEST_TABLE", longest)
        main(["runs", "list"])
        assert ("┃" in capsys.readouterr().out) == drawn


def test_the_place(store, folder, capsys, monkeypatch):
    main(["runs", "list", "--store", "elsewhere"])
    assert (
        capsys.readouterr().out == f"no runs in {folder / 'elsewhere'}\n"
        and not (folder / "elsewhere").exists()
    )
    monkeypatch.setenv("LOCALFIELDS_STORE", str(folder / "other"))
    main(["runs", "list"])
    assert capsys.readouterr().out == f"no runs in {folder / 'other'}\n"
    main(["runs", "list", "--store", "runs"])
    assert len(table(capsys.readouterr().out)) == 3


def test_show(store, capsys, monkeypatch):
    entry = store.list()[1]
    main(["runs", "show", entry.digest[:8]])
    found = json.loads(capsys.readouterr().out)
    assert found["experiment"] == entry.experiment == json.loads(experiment(steps=1000)[0])
    assert found["metrics"] == entry.metrics and found["manifest"] == entry.manifest
    assert found["digest"] == entry.digest and found["path"] == str(store.path / entry.digest)
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["runs", "show", entry.digest])
    assert "\x1b[" in capsys.readouterr().out


class Person(io.StringIO):
    """Somebody at a terminal."""

    def isatty(self):
        return True


def test_rm_asks(store, capsys, monkeypatch):
    one, other, _ = store.digests()
    for answer, left in (("\n", 3), ("no\n", 3), ("y\n", 2)):
        monkeypatch.setattr(sys, "stdin", Person(answer))
        main(["runs", "rm", one[:10]])
        out = capsys.readouterr().out
        assert one[:12] in out and "Remove 1 run? [y/N]" in out
        assert ("removed" if left == 2 else "nothing removed") in out and len(
            store.digests()
        ) == left
    main(["runs", "rm", "--yes", other[:10], store.digests()[-1]])
    assert store.digests() == []


def test_rm_in_a_script_needs_a_yes(store, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert stop(["runs", "rm", store.digests()[0]]) == 2
    assert "Pass --yes" in capsys.readouterr().err and len(store.digests()) == 3


def test_rm_of_damaged_runs(store, capsys, monkeypatch):
    digest = store.digests()[0]
    (store.path / digest / "meta.json").write_text("")
    monkeypatch.setattr(sys, "stdin", Person("y\n"))
    main(["runs", "rm", digest])
    assert "not JSON" in capsys.readouterr().out and digest not in store


def test_export_npz(store, capsys):
    digest = store.digests()[0]
    main(["runs", "export", digest[:9], "--out", "run.npz"])
    assert capsys.readouterr().out == f"wrote run {digest[:12]} to run.npz\n"
    wanted = store.load(digest)
    with np.load("run.npz", allow_pickle=False) as found:
        for name in ("steps", "times", "initial", "final"):
            np.testing.assert_array_equal(found[name], getattr(wanted, name))
        for name in SERIES:
            np.testing.assert_array_equal(found[name], wanted.series[name])
        np.testing.assert_array_equal(found["onset_time"], wanted.events["onset"])
        assert str(found["digest"]) == digest
        assert json.loads(str(found["experiment"])) == wanted.experiment != {}
        assert found["outcome"].tolist() == ["diverged at step 7", "ok", "ok"]


def test_export_netcdf(store):
    digest = put(
        store, seed=9, made=trajectory(series={**plain().series, "own": np.ones((3, 4, 5))})
    )
    main(["runs", "export", digest, "--out", "run.nc"])
    wanted = store.load(digest)
    with xr.open_dataset("run.nc", engine="scipy") as found:
        np.testing.assert_array_equal(found["weights"], wanted.weights)
        assert found["weights"].dims == ("member", "time", "neuron", "x") and found[
            "own"
        ].shape == (3, 4, 5)
        assert found.attrs["digest"] == digest and found.attrs["stopped"] == "at rest"


def test_export_csv(store):
    digest = store.digests()[0]
    wanted = store.load(digest)
    main(["runs", "export", digest, "--out", "run.csv"])
    with open("run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 4 and rows[0]["outcome"] == "diverged at step 7"
    for number, row in enumerate(rows):
        member, record = divmod(number, 4)
        assert (int(row["member"]), int(row["step"])) == (member, wanted.steps[record])
        assert float(row["time"]) == wanted.times[record]
        np.testing.assert_equal(np.float32(row["loss"]), wanted.loss[member, record])
        assert np.float32(row["weights.1.5"]) == wanted.weights[member, record, 1, 5]


def test_export_keeps_old_files(store, folder, capsys):
    digest = store.digests()[0]
    (folder / "run.csv").write_text("precious")
    assert stop(["runs", "export", digest, "--out", "run.csv"]) == 2
    assert (
        "--overwrite" in capsys.readouterr().err and (folder / "run.csv").read_text() == "precious"
    )
    main(["runs", "export", digest, "--out", "run.csv", "--overwrite"])
    assert (folder / "run.csv").read_text().startswith("member,")


def test_what_netcdf_cannot_hold_is_told(store, folder, capsys):
    digest = put(store, seed=9, made=trajectory(series={"a": np.full((3, 4), 2**60)}))
    assert stop(["runs", "export", digest, "--out", "run.nc"]) == 2
    told = capsys.readouterr().err
    assert (
        "Export it to .npz instead." in told
        and told.count("\n") == 1
        and not list(folder.glob("*run*nc"))
    )


def test_verify(store, capsys):
    main(["runs", "verify"])
    assert capsys.readouterr().out == f"3 runs in {store.path} checked: all as they were written\n"
    one, other, _ = store.digests()
    path = store.path / one / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert stop(["runs", "verify"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert (
        one[:12] in first
        and "checksum" in first
        and "runs rm" in first
        and last.endswith("checked: 1 cannot be used")
    )
    assert stop(["runs", "verify", one[:9], other]) == 1
    main(["runs", "verify", other])
    assert "1 runs" in capsys.readouterr().out.splitlines()[-1]


def test_damaged_runs_are_left_out_of_a_list(store, run):
    digest = store.digests()[0]
    (store.path / digest / "meta.json").write_text("{}")
    done = run("runs", "list")
    assert done.returncode == 0 and len(table(done.stdout)) == 2
    assert "warning: 1 of 3 runs cannot be read" in done.stderr and "Traceback" not in done.stderr


def forge(store, digest, **metrics):
    """Seal other metrics into an entry, as anybody can."""
    path = store.path / digest / "meta.json"
    meta = json.loads(path.read_text())
    del meta["checksum"]
    meta["metrics"] |= metrics
    path.write_text(seal(meta))


@pytest.mark.filterwarnings("default")  # the command prints them
@pytest.mark.parametrize("metrics", [{"ipr": 10**299}, {"ipr": "big"}, {"outcomes": ["ok"]}])
def test_a_forged_run_is_left_out_and_reported(store, capsys, metrics):
    digest = store.digests()[0]
    forge(store, digest, **metrics)
    main(["runs", "list"])
    out, err = capsys.readouterr()
    assert len(table(out)) == 2 and "1 of 3 runs cannot be read" in err
    assert stop(["runs", "show", digest]) == 2
    told = capsys.readouterr().err
    assert f"`{next(iter(metrics))}`" in told and told.count("\n") == 1
    assert stop(["runs", "verify"]) == 1
    assert digest[:12] in capsys.readouterr().out


HOSTILE = "\x1b]0;title\x07\x9b31m\u202e[/bold][link=x]\n"


@pytest.mark.parametrize("color", [True, False])
def test_a_terminal_obeys_nothing_that_a_store_says(folder, capsys, monkeypatch, color):
    store = Store("any")
    spec = {
        "task": {"stimuli": [{"type": f"stimulus/{HOSTILE}", HOSTILE: 1.0}]},
        "network": HOSTILE,
        "method": {"type": HOSTILE, "steps": HOSTILE, "estimator": {"a": HOSTILE}},
    }
    canonical, digest = named(spec)
    store.save(canonical, digest, trajectory(manifest={"device": HOSTILE}))
    monkeypatch.setenv("COLUMNS", "1000")
    if color:
        monkeypatch.setenv("FORCE_COLOR", "1")
    main(["runs", "list", "--store", "any"])
    listed = capsys.readouterr().out
    main(["runs", "show", digest, "--store", "any"])
    shown = capsys.readouterr().out
    for text in (listed, shown):
        plain_text = re.sub(r"\x1b\[[\d;]*m", "", text)  # colors of our own
        assert not set(plain_text) & set("\x1b\x07\x9b\u202e") and "[/bold]" in plain_text
    if not color:
        assert json.loads(shown)["manifest"]["device"] == HOSTILE  # still the same JSON


MISTAKES = [
    ("frobnicate", "Unknown action 'frobnicate'. Choose one of export, list, rm, show, verify"),
    ("lst", "Did you mean 'list'?"),
    ("list gain", "Cannot read the filter 'gain'"),
    ("list --sotre x", "Did you mean '--store'?"),
    ("list --store occupied", "The store cannot be read or written at "),
    ("list --store " + "x" * 300, "File name too long"),
    ("list --store ~nosuchuser/x", "There is no home folder ~nosuchuser"),
    ("show", "RUN"),
    ("show zz", "No run zz… in"),
    ("show 0 1", "Unexpected argument '1'"),
    ("rm", "Name the runs to remove"),
    ("rm zz --yes", "No run zz… in"),
    ("verify zz", "No run zz… in"),
    ("export zz --out x.nc", "No run zz… in"),
    ("export zz --out x.pkl", "its name must end in .nc or .csv or .npz"),
    ("export zz", "--out"),
]


@pytest.mark.parametrize(("line", "words"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistakes_are_one_line(store, folder, line, words, capsys):
    (folder / "occupied").write_text("mine")
    assert stop(["runs", *line.split()]) == 2
    told = capsys.readouterr().err
    assert words in told and told.startswith("localfields: ") and told.count("\n") == 1, told
    assert len(store.digests()) == 3


def test_help(capsys):
    main(["runs", "--help"])
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in ("list", "show", "rm", "export", "verify"))
    main(["runs", "list", "--help"])
    assert "--store" in capsys.readouterr().out


def test_runs_that_are_no_experiments_are_listed(folder, capsys):
    store = Store("any")
    odd = [
        {},
        {"task": 1, "method": [], "network": "x"},
        {"task": {"stimuli": [1]}},
        {"task": {"stimuli": []}},
    ]
    odd.append(
        {
            "task": {"stimuli": [{"type": "stimulus/a"}, {"type": "stimulus/b"}]},
            "method": {"type": "method/m"},
        }
    )
    for spec in odd:
        store.save(*named(spec), trajectory(outcome=(Outcome("ok", 1),) * 3))
    main(["runs", "list", "--store", "any"])
    rows = table(capsys.readouterr().out)
    assert len(rows) == len(odd) and rows[-1]["stimuli"] == "a, b" and rows[-1]["method"] == "m"
