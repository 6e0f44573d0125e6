"""`localfields train`: what it writes is what the Python call gives; mistakes are one line."""

from __future__ import annotations

import json

import jax
import matplotlib.image
import numpy as np
import pytest
import xarray as xr

import localfields as lf
from localfields.cli import main

SMALL = [
    "--shape",
    "8",
    "--steps",
    "6",
    "--batch",
    "20",
    "--members",
    "2",
    "--every",
    "2",
    "--seed",
    "5",
]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_arrays_are_those_of_the_python_call(capsys):
    main(["train", "ising", "--coupling", "0.3,0.7", *SMALL, "--out", "run.npz", "--plot"])
    task = lf.Discrimination(
        *(lf.stimuli.Ising((8,), coupling=coupling) for coupling in (0.3, 0.7))
    )
    record = lf.Record(every=2)
    with jax.enable_x64(False):
        run = lf.train(
            task, lf.networks.SingleNeuron(), steps=6, batch=20, members=2, seed=5, record=record
        )
    with np.load("run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["weights"], run.weights)
        np.testing.assert_array_equal(found["times"], run.times)
        experiment = lf.from_json(json.loads(str(found["experiment"])))
    assert repr(experiment.task) == repr(task)
    assert experiment.method.estimator == "independent" and experiment.method.members == 2
    picture = matplotlib.image.imread("run.png")
    assert picture[..., :3].std() > 0.05
    assert "2 members" in capsys.readouterr().out


def test_every_option_reaches_the_run():
    options = "--network committee --hidden 4 --activation sigmoid --bias trained --init-scale 0.1 --labels signs"
    options += (
        " --loss absolute --l2 0.01 --proportions 0.25,0.75 --estimator shared --optimizer adam"
    )
    options += " --precision float64"
    main(
        [
            "train",
            "nlgp",
            "--xi",
            "0.5,1",
            "--gain",
            "3",
            *SMALL,
            *options.split(),
            "--out",
            "run.nc",
        ]
    )
    with xr.open_dataset("run.nc", engine="scipy") as data:
        assert dict(data.sizes) == {"member": 2, "time": 4, "neuron": 4, "x": 8}
        assert {"weights", "biases", "loss", "accuracy"} <= set(data)
        assert data["weights"].dtype == np.float64
        experiment = lf.from_json(json.loads(data.attrs["experiment"]))
    network, task, method = experiment.network, experiment.task, experiment.method
    assert (network.hidden, network.activation, network.bias, network.init_scale) == (
        4,
        "sigmoid",
        "trained",
        0.1,
    )
    assert (task.labels, task.loss, task.l2, task.proportions) == (
        "signs",
        "absolute",
        0.01,
        (0.25, 0.75),
    )
    assert [stimulus.xi for stimulus in task.stimuli] == [0.5, 1.0]
    assert (method.estimator, method.optimizer) == ("shared", "adam")


MISTAKES = [
    ("nlgp", "The classes are identical"),
    ("nlgp --xi 1,2 --gain 1,2,3", "number of classes"),
    ("nlgp --xi 0.5,1 --network comittee", "committee"),
    ("nlgp --xi 0.5,1 --hidden 4", "single-neuron"),
    ("nlgp --xi 0.5,1 --estimator foo", "estimator"),
    ("nlgp --xi 0.5,1 --optimizer foo", "optimizer"),
    ("nlgp --xi 0.5,1 --labels foo", "labels"),
    ("nlgp --xi 0.5,-1", "`xi` must be positive"),
    ("nlgp --xi 0.5,1 --steps 0", "`steps`"),
    ("nlgp --xi 0.5,1 --batch 1", "`batch`"),
    ("nlgp --xi 0.5,1 --members many", "`members`"),
    ("nlgp --xi 0.5,1 --learning-rate 0", "`learning_rate`"),
    ("nlgp --xi 0.5,1 --every 0", "`every`"),
    ("nlgp --xi 0.5,1 --out run.pkl", ".npz"),
    ("nlgp --xi 0.5,1 --lerning-rate 1", "--learning-rate"),
    ("ising --coupling 0.3,0.7 --shape 3x3", "ring"),
    ("single-pulse --shortest 2,3 --estimator orbit --coding zero-one", "sign symmetric"),
    ("nlgp --xi 0.5,1 --estimator exact", "No exact gradient is known for SingleNeuron on NLGP"),
]


@pytest.mark.parametrize(("line", "words"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistakes_are_one_line(line, words, capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["train", *line.split(), *([] if "--shape" in line else ["--shape", "16"])])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and told.count("\n") == 1 and words in told
    assert not list(tmp_path.iterdir())


def test_an_old_file_is_kept(capsys):
    main(["train", "ising", "--coupling", "0.3,0.7", *SMALL, "--out", "run.npz"])
    with pytest.raises(SystemExit):
        main(["train", "ising", "--coupling", "0.3,0.7", *SMALL, "--out", "run.npz"])
    assert "--overwrite" in capsys.readouterr().err


def test_an_interrupt_keeps_what_was_recorded(monkeypatch, capsys):
    """The command goes on after Ctrl-C: it prints and writes the records made until then."""

    def interrupt(self, progress):
        if progress.step == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("localfields.cli._run.LiveTable.show", interrupt)
    monkeypatch.setattr("localfields.training.loop.POLL_INTERVAL", 0.0)
    main(["train", "ising", "--coupling", "0.3,0.7", *SMALL, "--out", "run.npz"])
    assert "cancelled" in capsys.readouterr().out
    with np.load("run.npz", allow_pickle=False) as found:
        assert found["weights"].shape[:2] == (2, 3)
