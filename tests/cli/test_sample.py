"""`localfields sample`: files hold what the Python API draws, whole or not at all."""

import json

import jax
import matplotlib.image
import numpy as np
import pytest

import localfields as lf
from localfields.cli import main

NLGP = lf.stimuli.NLGP(24, xi=2.0, gain=5.0)
LINE = "sample nlgp --shape 24 --xi 2 --gain 5 --num 20 --seed 7"


def read(path):
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return archive["x"]
    return np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_files_hold_the_draws_of_the_python_api(suffix, folder, run):
    done = run(*LINE.split(), "--out", f"x{suffix}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"wrote 20 samples of 24 sites to x{suffix}\n"
    with jax.enable_x64(False):
        wanted = np.asarray(NLGP.sample(7, 20))
    found = read(folder / f"x{suffix}")
    assert wanted.dtype == np.float32 and found.shape == (20, 24)
    np.testing.assert_array_equal(found.astype(np.float32), wanted)
    assert [path.name for path in folder.iterdir()] == [f"x{suffix}"]


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv"])
def test_files_keep_double_precision(suffix, folder):
    main([*LINE.split(), "--out", f"x{suffix}"])
    np.testing.assert_array_equal(read(folder / f"x{suffix}"), NLGP.sample(7, 20))


def test_archive_holds_the_specification(folder):
    main([*LINE.split(), "--out", "x.npz"])
    with np.load(folder / "x.npz") as archive:
        assert sorted(archive) == ["seed", "specification", "x"]
        stimulus = lf.from_json(json.loads(str(archive["specification"])))
        assert stimulus.to_json() == NLGP.to_json()
        np.testing.assert_array_equal(
            archive["x"], stimulus.sample(int(archive["seed"]), len(archive["x"]))
        )


@pytest.mark.parametrize("seed", [0, 2**32 + 1, 2**53 + 1])
def test_large_seeds_keep_their_digits(seed, folder):
    main(["sample", "ising", "--shape", "8", "--num", "3", "--seed", str(seed), "--out", "x.npz"])
    with np.load(folder / "x.npz") as archive:
        assert int(archive["seed"]) == seed


def test_a_torus(folder):
    main("sample kur --shape 6x4 --xi 0.5 --k 5 --num 1e1 --out x.npz".split())
    with np.load(folder / "x.npz") as archive:
        stimulus = lf.from_json(json.loads(str(archive["specification"])))
        assert stimulus.shape == (6, 4)
        np.testing.assert_array_equal(
            archive["x"], lf.stimuli.Kur((6, 4), xi=0.5, k=5.0).sample(0, 10)
        )


def test_nested_specifications(folder):
    words = "sample copula --shape 12 --xi 1 --marginal-law student-t:nu=9 --kernel periodized --num 5 --out x.npz"
    main(words.split())
    with np.load(folder / "x.npz") as archive:
        stimulus = lf.from_json(json.loads(str(archive["specification"])))
    wanted = lf.stimuli.Copula(
        12, xi=1.0, marginal_law=lf.marginals.StudentT(9), kernel="periodized"
    )
    assert stimulus.to_json() == wanted.to_json()


def test_a_kernel_given_by_its_row(folder):
    main("sample gaussian --shape 4 --kernel given:row=1,0.5,0.25,0.5 --num 5 --out x.npz".split())
    with np.load(folder / "x.npz") as archive:
        stimulus = lf.from_json(json.loads(str(archive["specification"])))
    assert stimulus.to_json() == lf.stimuli.Gaussian(4, kernel=[1, 0.5, 0.25, 0.5]).to_json()
    with pytest.raises(SystemExit):
        main("sample gaussian --shape 4 --kernel given:1,0.5 --num 5 --out y.npz".split())


def test_a_file_is_not_overwritten_unasked(folder, capsys):
    target = folder / "x.npy"
    target.write_text("precious")
    with pytest.raises(SystemExit) as stop:
        main([*LINE.split(), "--out", "x.npy"])
    assert stop.value.code == 2 and "Add --overwrite" in capsys.readouterr().err
    assert target.read_text() == "precious"
    main([*LINE.split(), "--out", "x.npy", "--overwrite"])
    np.testing.assert_array_equal(np.load(target), NLGP.sample(7, 20))
    assert list(folder.iterdir()) == [target]


def test_a_picture_is_not_overwritten_unasked(folder, capsys):
    (folder / "x.png").write_text("precious")
    with pytest.raises(SystemExit) as stop:
        main([*LINE.split(), "--out", "x.npz", "--plot"])
    assert stop.value.code == 2 and "x.png" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == [
        "x.png"
    ]  # no samples either: it is seen before the work


def half_written(error):
    def write(path, *_, **__):
        with open(path, "wb") as file:
            file.write(b"half")
        raise error

    return write


@pytest.mark.parametrize("old", [None, "precious"])
def test_a_full_disk_leaves_nothing_half_written(old, folder, monkeypatch, capsys):
    if old:
        (folder / "x.npz").write_text(old)
    monkeypatch.setattr(np, "savez", half_written(OSError(28, "No space left on device")))
    with pytest.raises(SystemExit) as stop:
        main([*LINE.split(), "--out", "x.npz", "--overwrite"])
    told = capsys.readouterr().err
    assert (
        stop.value.code == 2
        and "Cannot write x.npz: No space left on device." in told
        and len(told.splitlines()) == 1
    )
    assert {path.name: path.read_text() for path in folder.iterdir()} == (
        {"x.npz": old} if old else {}
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_an_interruption_leaves_nothing_half_written(error, folder, monkeypatch):
    monkeypatch.setattr(np, "savez", half_written(error))
    with pytest.raises((SystemExit, RuntimeError)) as stop:
        main([*LINE.split(), "--out", "x.npz"])
    assert stop.value is error or stop.value.code == 130
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        f"{LINE} --out x.npz --plot",
        "sample ising --shape 20 --num 2 --plot",
        "sample gaussian --shape 12x10 --xi 1 --num 30 --plot",
        "sample block-pulse --shape 12 --coding zero-one --num 30 --plot",
    ],
)
def test_a_picture_shows_something(line, folder, capsys):
    main(line.split())
    name = "x.png" if "--out" in line else f"{line.split()[1]}.png"
    assert f"drew {name}" in capsys.readouterr().out
    picture = matplotlib.image.imread(folder / name)[..., :3]
    assert picture.shape[0] > 400 and picture.shape[1] > 1000
    colored = (
        np.ptp(picture, axis=2) > 0.2
    )  # neither white nor black nor gray: curves, bars, images
    assert colored.mean() > 0.005
    # In each quarter of the page there is something: samples to the left, covariance and marginal
    # to the right.
    assert all(
        (quarter.min(axis=2) < 0.9).mean() > 0.005 for quarter in np.array_split(picture, 4, axis=1)
    )


def test_without_a_file_a_table_is_shown(capsys, folder):
    main("sample kur --shape 24 --k 3 --num 50".split())
    rows = {
        line.split("│")[1].strip(): line.split("│")[3].strip()
        for line in capsys.readouterr().out.splitlines()
        if "│" in line
    }
    law = lf.marginals.Algebraic(3)
    assert rows == {
        "mean": "0.0000",
        "variance": "1.0000",
        "mean size E|X|": f"{law.mean_abs:.4f}",
        "kurtosis": "∞",
    }
    assert list(folder.iterdir()) == []


def test_defaults_are_the_python_defaults(folder):
    main("sample nlgp --num 5 --out x.npz".split())
    with np.load(folder / "x.npz") as archive:
        assert json.loads(str(archive["specification"])) == lf.stimuli.NLGP().to_json()


def test_a_warning_is_one_line(run):
    done = run("sample", "nlgp", "--shape", "12", "--num", "3")
    assert done.returncode == 0 and "kurtosis" in done.stdout
    assert done.stderr.startswith(
        "localfields: warning: The kernel is not positive on a lattice of shape (12,)"
    )
    assert len(done.stderr.splitlines()) == 1
