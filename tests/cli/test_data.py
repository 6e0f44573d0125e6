"""Data at the command line: images in, fields out, from one line."""

from pathlib import Path

import numpy as np
import pytest
import xarray

import localfields as lf
from localfields.cli import main

SMALL = ["--steps", "20", "--batch", "20", "--every", "10"]


def test_images_in_fields_out(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    patches = [
        "--shape",
        "8x8",
        "--patches",
        "200",
        "--preprocess",
        "wrap+contrast-normalize:floor=0.2+center+scale",
    ]
    network = ["--network", "committee", "--hidden", "3"]
    main(
        [
            "train",
            "image-patches",
            "--blur",
            "0.5,2",
            *patches,
            *network,
            *SMALL,
            "--out",
            "run.npz",
            "--plot",
        ]
    )
    assert "3 neurons on (8, 8)" in capsys.readouterr().out
    assert np.load("run.npz")["weights"].shape == (1, 3, 3, 8, 8)
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_files_are_classes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(50, 12))
    np.save("a.npy", rows)
    np.savetxt("b.csv", rows.cumsum(axis=1), delimiter=",")
    np.save("labels.npy", np.arange(50) % 2)
    main(
        [
            "train",
            "samples",
            "--data",
            "a.npy,b.csv",
            "--preprocess",
            "center+scale",
            *SMALL,
            "--estimator",
            "epochs",
        ]
    )
    main(
        [
            "train",
            "samples",
            "--data",
            "a.npy",
            "--classes",
            "labels.npy",
            "--chosen",
            "0,1",
            *SMALL,
        ]
    )
    assert capsys.readouterr().out.count("1 neurons on (12,)") == 2
    main(["sample", "samples", "--data", "a.npy", "--num", "30", "--out", "drawn.npz"])
    assert {tuple(one) for one in np.load("drawn.npz")["x"].tolist()} <= {
        tuple(one) for one in rows.tolist()
    }
    main(
        ["sample", "samples", "--data", "drawn.npz", "--num", "10"]
    )  # what was written can be read


LABELS = ["quiet", "loud"] * 30
ROWS = np.random.default_rng(3).normal(size=(60, 12)).cumsum(axis=1)
FILES = {
    "two files": (["a.npy", "b.csv"], lambda: lf.data.sources(ROWS, -2 * ROWS)),
    "labels": (["a.npy", "--classes", "labels.csv"], lambda: lf.data.labelled(ROWS, LABELS)),
    "blurs": (
        ["a.npy", "--blur", "0,2", "--symmetry", "signs"],
        lambda: lf.data.blurs(lf.stimuli.Samples(ROWS, symmetry="signs"), (0, 2)),
    ),
}


@pytest.fixture
def files(folder):
    np.save("a.npy", ROWS)
    np.savetxt("b.csv", -2 * ROWS, delimiter=",", fmt="%.17g")
    Path("labels.csv").write_text("\n".join(["loudness", *LABELS]))


@pytest.mark.parametrize(
    "name", ["two files", *(pytest.param(n, marks=pytest.mark.slow) for n in ("labels", "blurs"))]
)
def test_every_command_takes_the_same_files(name, files, capsys):
    words, make = FILES[name]
    task = make()
    expected = lf.Experiment(task, method=lf.Training(steps=20, batch=20, every=10)).run()
    main(["train", *words, *SMALL, "--out", "train.npz"])
    main(["run", *words, *SMALL, "--store", "runs", "--out", "run.npz"])
    for out in ("train.npz", "run.npz"):
        np.testing.assert_array_equal(np.load(out)["weights"], expected.weights)
    main(["sweep", *words, *SMALL, "--seeds", "2", "--store", "runs", "--out", "sweep.nc"])
    with xarray.open_dataset("sweep.nc", engine="scipy") as swept:
        ipr = swept["ipr"].isel(seed=0).to_numpy().squeeze()
    assert ipr == pytest.approx(expected.ipr[0, -1, 0], rel=1e-4)
    main(["baseline", "pca", *words, "--samples", "300", "--components", "2", "--out", "pca.npz"])
    components = lf.Experiment(task, method=lf.Fit(lf.baselines.PCA(2), samples=300)).run()
    np.testing.assert_array_equal(np.load("pca.npz")["weights"], components.weights)


@pytest.mark.parametrize("command", ["train", "run", "sweep", "baseline pca", "predict"])
@pytest.mark.parametrize(
    "line, says",
    [
        ("no.npy other.npy", "cannot be read (No such file"),
        ("a.npy b.csv --blur 0,1", "--blur needs one file, got 2"),
        ("a.npy --classes labels.csv --blur 0,1", "--classes or --blur, not both"),
        ("a.npy --blur 1,1", "--blur must be two or more different widths"),
        ("a.npy b.csv --gain 3", "Unknown option"),
        ("a.npy b.csv --symmetry shift", "Did you mean 'shifts'"),
        ("wide.npy b.csv", "12 samples of 60 sites, or the other way round"),
    ],
)
def test_mistakes_with_files_are_told_alike(command, line, says, files, capsys):
    np.save("wide.npy", ROWS.T)
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), *line.split()])
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert says in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "words, says",
    [
        (["samples", "--data", "no.npy,no.npy"], "cannot be read (No such file"),
        (["samples"], "for example --data A,B"),
        (
            ["image-patches", "--source", "nowhere", "--blur", "1,2"],
            "is not an image that can be read",
        ),
        (["image-patches", "--blur", "1,2", "--preprocess", "whitten"], "Did you mean 'whiten'"),
        (["nlgp", "--xi", "1,2", "--estimator", "epochs"], "made of data"),
    ],
)
def test_mistakes_are_told_in_one_line(words, says, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["train", *words, *SMALL])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and says in told and told.count("\n") == 1
