"""Data at the command line: images in, fields out, from one line."""

import numpy as np
import pytest

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
