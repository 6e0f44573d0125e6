"""`localfields run`: computed once, kept, loaded the second time; a file and options say the
same.
"""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest

import localfields as lf
from localfields.cli import main

from .conftest import SCRIPT

SMALL = "--shape 8 --steps 6 --batch 20 --every 2 --seed 5 --evaluate 10".split()
TOML = """
[task]
stimuli = [{type = "ising", shape = [8], coupling = 0.3}, {type = "ising", shape = [8], coupling = 0.7}]
[method]
steps = 6
batch = 20
every = 2
seed = 5
evaluate = 10
"""
EXPERIMENT = lf.Experiment(
    lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7))),
    method=lf.Training(steps=6, batch=20, every=2, seed=5, evaluate=10),
)


def test_options_and_a_file_name_the_same_run(folder, capsys):
    main(["run", "ising", "--coupling", "0.3,0.7", *SMALL])
    first = capsys.readouterr().out
    assert f"stored as {EXPERIMENT.digest[:12]}" in first and "1 members" in first
    (folder / "one.toml").write_text(TOML)
    main(["run", "one.toml", "--out", "run.npz"])
    second = capsys.readouterr().out
    assert f"loaded {EXPERIMENT.digest[:12]}" in second and "wrote run.npz" in second
    (folder / "one.json").write_text(EXPERIMENT.canonical())
    main(["run", "one.json", "--store", "runs"])
    assert "loaded" in capsys.readouterr().out
    assert lf.Store("runs").digests() == [EXPERIMENT.digest]
    with np.load("run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["weights"], EXPERIMENT.run().weights)


def test_every_option_reaches_the_experiment():
    options = "--network committee --hidden 4 --init-scale 0.1 --l2 0.01 --members 2 "
    options += "--quantities ipr,loss --stop-tol 0.001"
    main(
        [
            "run",
            "nlgp",
            "--xi",
            "0.3,0.7",
            "--gain",
            "3",
            *SMALL,
            *options.split(),
            "--store",
            "kept",
        ]
    )
    (entry,) = lf.Store("kept").list()
    one = lf.Experiment.of(entry.spec)
    assert (one.network.hidden, one.network.init_scale, one.task.l2) == (4, 0.1, 0.01)
    assert (
        one.method.members,
        set(one.method.quantities),
        one.method.stop_tol,
        one.method.seed,
    ) == (
        2,
        {"ipr", "loss"},
        0.001,
        5,
    )


def test_ctrl_c_keeps_what_was_done(folder):
    """Interrupted, it says that it can go on, and the same command does; that bits agree is
    tested with tasks.
    """
    words = "run ising --coupling 0.3,0.7 --shape 8 --steps 3000 --batch 4000 --every 50 --evaluate 10".split()
    script = folder / "interrupt.py"
    script.write_text(
        "import os, signal, sys\n"
        "from localfields.cli import _run, main\n"
        "from localfields.training import loop\n"
        "loop.POLL_INTERVAL = 0.0\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background inherits its absence
        "seen = []\n"
        "def show(self, progress):\n"
        "    if progress.step > 0 and not seen:\n"
        "        seen.append(1)\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "_run.LiveTable.show = show\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run(
        [SCRIPT.with_name("python"), script, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 130 and "the same command resumes it" in done.stderr, done.stderr
    assert lf.Store().digests() == [] and len(os.listdir("runs/checkpoints")) == 1
    done = subprocess.run(
        [SCRIPT, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0 and "stored as" in done.stdout, done.stderr
    assert os.listdir("runs/checkpoints") == []


MISTAKES = [
    ("missing.toml", "Cannot read missing.toml"),
    ("bad.toml", "is not valid TOML"),
    ("nlpg --xi 1,2", "Did you mean 'nlgp'"),
    ("nlgp --xi 0.3,0.7 --stpes 3", "--steps"),
    ("nlgp --xi 0.3,0.7 --out run.pkl", ".npz"),
    ("nlgp --xi 0.3,0.7 --quantities wights", "weights"),
    ("nlgp --xi 0.3,0.7 --seed -1", "`seed`"),
]


@pytest.mark.parametrize(("line", "words"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistakes_are_one_line(line, words, capsys, folder):
    (folder / "bad.toml").write_text("[task")
    with pytest.raises(SystemExit) as stop:
        main(["run", *line.split()])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and told.count("\n") == 1 and words in told
    assert not (folder / "runs").exists()


def test_help_shows_a_file(capsys):
    main(["run", "--help"])
    shown = capsys.readouterr().out
    assert "FILE.toml" in shown and 'type = "nlgp"' in shown
