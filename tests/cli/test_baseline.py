"""`localfields baseline`: what it writes is what the Python call gives; its table says which
fields are localized.
"""

import matplotlib.image
import numpy as np
import pytest

import localfields as lf
from localfields._spec import fields, registered
from localfields.cli import main

from .conftest import read_table

KUR = ["kur", "--k", "3", "--shape", "8", "--samples", "500", "--components", "3"]


def test_arrays_are_those_of_the_python_call(capsys):
    main(
        [
            "baseline",
            "ica",
            *KUR,
            "--xi",
            "0.5,1",
            "--contrast",
            "cube",
            "--seed",
            "5",
            "--out",
            "run.npz",
            "--plot",
        ]
    )
    task = lf.Discrimination(*(lf.stimuli.Kur((8,), xi=xi, k=3) for xi in (0.5, 1)))
    method = lf.Fit(lf.baselines.FastICA(3, contrast="cube"), samples=500, seed=5)
    run = lf.Experiment(task, method=method).run()
    with np.load("run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["weights"], run.weights)
    out = capsys.readouterr().out
    assert read_table(out) == expected_rows(run)
    assert f"{int((run.ipr > 0.4).sum())} of 3 fields localized" in out
    assert (
        f"median IPR {np.median(run.ipr):.3f}, from {run.ipr.min():.3f} to {run.ipr.max():.3f}\n"
        in out
    )
    assert matplotlib.image.imread("run.png")[..., :3].std() > 0.02


def expected_rows(run):
    """What the table shows of a fit, member by member where there are several."""
    return [
        ({"fit": str(m)} if run.num_members > 1 else {})
        | {
            "component": str(k),
            "IPR": f"{run.ipr[m, 0, k]:.3f}",
            "peak": str(run.peak[m, 0, k]),
            "localized": "yes" if run.ipr[m, 0, k] > 4 / (8 + 2) else "no",
        }
        for m in range(run.num_members)
        for k in range(3)
    ]


def test_the_table_of_several_fits(capsys):
    main(["baseline", "ica", *KUR, "--xi", "0.3", "--members", "2"])
    law = lf.stimuli.Kur((8,), xi=0.3, k=3)
    method = lf.Fit(lf.baselines.FastICA(3), samples=500, members=2)
    run = lf.Experiment(lf.Discrimination(law, law, labels="none"), method=method).run()
    assert read_table(capsys.readouterr().out) == expected_rows(run)
    assert len({row["localized"] for row in expected_rows(run)}) == 2


@pytest.mark.parametrize("name", vars(lf.baselines) and registered("baseline"))
def test_every_method_takes_one_law(name, capsys):
    steps = (
        ["--steps", "4"]
        if "steps" in {field.name for field in fields(registered("baseline")[name])}
        else []
    )
    main(["baseline", name, "ising", *KUR[3:], *steps, "--members", "2"])
    out = capsys.readouterr().out
    assert "of 6 fields localized (IPR above 0.400)" in out and "on 500 samples" in out


def test_on_a_torus(capsys, folder):
    line = "baseline pca gaussian --xi 0.5 --shape 3x4 --samples 300 --components 2 --plot"
    main(line.split())
    assert "of 2 fields" in capsys.readouterr().out
    assert (folder / "pca-gaussian.png").read_bytes().startswith(b"\x89PNG")


def test_files_of_data(capsys, folder):
    generator = np.random.default_rng(0)
    for name in ("a.npy", "b.npy"):
        np.save(name, generator.laplace(size=(200, 5)))
    main(
        [
            "baseline",
            "pca",
            "a.npy",
            "b.npy",
            "--samples",
            "300",
            "--components",
            "2",
            "--out",
            "run.npz",
        ]
    )
    task = lf.Discrimination(*(lf.stimuli.Samples(name) for name in ("a.npy", "b.npy")))
    run = lf.Experiment(task, method=lf.Fit(lf.baselines.PCA(2), samples=300)).run()
    with np.load("run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["weights"], run.weights)
    main(["baseline", "pca", "a.npy", "--samples", "300", "--components", "2"])
    assert "of 2 fields localized" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["baseline", "baseline --help", "baseline pca", "baseline ica --help"]
)
def test_help_lists_what_there_is(line, capsys):
    main(line.split())
    names = registered(
        "stimulus" if "ca" in line.split()[-1] or len(line.split()) > 2 else "baseline"
    )
    listed = [
        text.split()[0] for text in capsys.readouterr().out.splitlines() if text.startswith("  ")
    ]
    assert set(names) <= set(listed)


MISTAKES = {
    "baseline icaa kur": "Unknown method 'icaa'",
    "baseline ica kurr": "Did you mean 'kur'?",
    "baseline ica nothing.npy": "No such file",
    "baseline ica kur --k 2": "`k` must be above 2",
    "baseline ica kur --k 3,2": "`k` must be above 2",
    "baseline ica kur --shape 8 --xi 0.5": "components cannot be fitted",
    "baseline ica kur --contrast log": "Did you mean 'logcosh'?",
    "baseline rbm ising --penalty 3": "--penalty",
    "baseline pca kur --samples 1": "`samples`",
    "baseline pca kur --out x.txt": ".npz",
    "baseline ica kur --xi 1,3 --k 3,4,5": "number of classes",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line(line, capsys, folder):
    with pytest.raises(SystemExit) as stop:
        main([*line.split(), *([] if "--samples" in line else ["--samples", "100"])])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and told.count("\n") == 1 and MISTAKES[line] in told
    assert list(folder.iterdir()) == []


def test_options_of_methods_and_stimuli_do_not_meet():
    # Both are options of one command, and would hide each other.
    of_fit = {"samples", "members", "seed", "proportions", "out", "plot", "overwrite"}
    assert len(vars(lf.baselines) and registered("baseline")) >= 5
    for method in registered("baseline").values():
        names = {field.name for field in fields(method)} | of_fit
        for stimulus in registered("stimulus").values():
            assert not names & {field.name for field in fields(stimulus)}, (method, stimulus)
