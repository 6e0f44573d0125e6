"""`localfields sweep`: values and classes from options, files written, resumed, failures told, a
job script shown.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
import xarray as xr

import localfields as lf
from localfields.cli import main

from .conftest import read_table

SMALL = "--shape 8 --steps 6 --batch 20 --every 3 --evaluate 10".split()
TRAINING = lf.Training(steps=6, batch=20, every=3, evaluate=10)


def ising(low, high):
    return lf.Discrimination(
        lf.stimuli.Ising((8,), coupling=low), lf.stimuli.Ising((8,), coupling=high)
    )


def sweep_in(store):
    """The one sweep of a store."""
    ((_, sweep),) = lf.experiments.stored_sweeps(lf.Store(store))
    return sweep


def test_a_sweep_from_options(capsys):
    line = "--coupling 0.3,linspace:0.5:0.9:3 --learning-rate logspace:0.01:1:3 --seeds 2 --seed 4"
    main(["sweep", "ising", *line.split(), *SMALL, "--out", "all.nc", "--table", "all.csv"])
    shown = capsys.readouterr().out
    assert "18 of 18 points" in shown and "learning_rate" in shown and "wrote all.nc" in shown
    with xr.open_dataset("all.nc", engine="scipy") as data:
        assert dict(data["loss"].sizes) == {"coupling[1]": 3, "learning_rate": 3, "seed": 2}
        np.testing.assert_allclose(data["learning_rate"], [0.01, 0.1, 1.0])
        assert data["seed"].values.tolist() == [4, 5] and np.isfinite(data["ipr"]).all()
    with open("all.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 18
    expected = {"stimuli.coupling[1]": [0.5, 0.7, 0.9], "method.learning_rate": [0.01, 0.1, 1.0]}
    base = lf.Experiment(ising(0.3, 0.5), method=TRAINING.replace(seed=4, learning_rate=0.01))
    assert sweep_in("runs").digest == lf.Sweep(base, expected, seeds=2).digest
    main(["sweep", "ising", *line.split(), *SMALL])
    assert "18 were there before" in capsys.readouterr().out


def test_the_table_is_of_the_points(capsys):
    """Mean and extremes over the seeds of one combination of values that ended well; a rate of
    1000 diverges.
    """
    line = "--coupling 0.3,values:0.5:0.9 --learning-rate values:0.1:1000 --seeds 20"
    main(["sweep", "ising", *line.split(), *SMALL, "--init-scale", "0.1"])
    printed = read_table(capsys.readouterr().out)
    points = lf.experiments.run_sweep(sweep_in("runs"), "runs").table()
    assert len(points) == 80 and len(printed) == 4
    fractions = []
    for place, row in enumerate(printed):
        seeds = points[20 * place : 20 * place + 20]
        ended = [one for one in seeds if one["outcome"] == "ok"]
        ipr = [one["ipr"] for one in ended]
        fractions.append(np.mean([one["localized"] for one in ended]) if ended else np.nan)
        assert row == {
            "coupling[1]": f"{seeds[0]['coupling[1]']:.4g}",
            "learning_rate": f"{seeds[0]['learning_rate']:.4g}",
            "ended": f"{len(ended)} of 20",
            "IPR": f"{np.mean(ipr):.3f}" if ended else "",
            "from": f"{min(ipr):.3f}" if ended else "",
            "to": f"{max(ipr):.3f}" if ended else "",
            "localized": f"{fractions[-1]:.0%}" if ended else "",
        }
    assert np.isnan(fractions[1::2]).all() and all(0 < one < 1 for one in fractions[::2])


def test_what_varies_is_told_before_anything_runs(capsys):
    """Commas separate classes: the first line varies nothing but the seed."""
    main(["sweep", "kur", "--k", "3,5", "--xi", "0.3,0.7", *SMALL, "--seeds", "2", "--dry-run"])
    apart = capsys.readouterr().out
    for row in ("seed: 2 seeds", "xi: 0.3 in class 0; 0.7 in class 1", "k: 3 in class 0; 5 in cl"):
        assert row in apart
    main(["sweep", "kur", "--k", "values:3:5", "--xi", "0.3,values:0.5:0.7", *SMALL, "--dry-run"])
    grid = capsys.readouterr().out
    for row in ("k: 3, 5\n", "xi[1]: 0.5, 0.7\n", "xi: 0.3 in class 0; 0.5, 0.7 in class 1"):
        assert row in grid
    assert "k: 3 in class 0" not in grid and "4 in 1 run" in grid and "about" in grid


def test_a_long_table_is_cut(capsys, monkeypatch):
    monkeypatch.setattr("localfields.cli.sweep.MOST_ROWS", 2)
    line = ["sweep", "ising", "--coupling", "0.3,0.7", *SMALL, "--learning-rate"]
    for values, shown in (("values:0.1:0.2", ""), ("values:0.1:0.2:0.3", "and 1 more: --table")):
        main([*line, values])
        out = capsys.readouterr().out
        assert len(read_table(out)) == 2 and (shown in out if shown else "more" not in out)


def test_pairs_names_and_lists():
    line = "--coupling values:0.3,0.7:0.1,0.8 --estimator values:independent:shared --together list --network committee"
    main(["sweep", "ising", *line.split(), *SMALL, "--hidden", "range:2:3", "--seeds", "2"])
    sweep = sweep_in("runs")
    assert dict(sweep.axes) == {
        "stimuli.coupling": ([0.3, 0.7], [0.1, 0.8]),
        "network.hidden": (2, 3),
        "method.estimator": ("independent", "shared"),
    }
    assert sweep.together == "list" and len(sweep) == 4


def test_a_sweep_from_a_file(folder, capsys):
    text = 'seeds = 2\n[task]\nstimuli = [{type = "ising", shape = [8], coupling = 0.3}, '
    text += '{type = "ising", shape = [8], coupling = 0.7}]\n[method]\nsteps = 6\nbatch = 20\nevery = 3\nevaluate = 10\n'
    (folder / "sweep.toml").write_text(text + '[axes]\nlearning_rate = "values:0.1:0.2"\n')
    main(["sweep", "sweep.toml"])
    assert "4 of 4 points" in capsys.readouterr().out


def test_failures_are_told_after_the_rest_is_done(capsys):
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "sweep",
                "ising",
                "--coupling",
                "0.3,0.7",
                *" ".join(SMALL).replace("--batch 20", "--batch values:20:1").split(),
                "--seeds",
                "2",
            ]
        )
    found = capsys.readouterr()
    assert stop.value.code == 1 and "2 of 4 points" in found.out
    assert found.err.count("\n") == 1 and "batch 1, seed 0 and 1 more: `batch` is 1" in found.err


def test_a_dry_run_computes_nothing(folder, capsys):
    line = [
        "sweep",
        "ising",
        "--coupling",
        "0.3,0.7",
        *SMALL,
        "--seeds",
        "4",
        "--chunk",
        "2",
        "--dry-run",
    ]
    main(line)
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["points", "4 in 2 runs"] in rows and ["stored", f"0 of 4, in {folder / 'runs'}"] in rows
    main([*line, "--cluster", "slurm:2,queue=long,walltime=01:00:00"])
    shown = capsys.readouterr().out
    assert "#SBATCH -p long" in shown and "export NPROC=1" in shown and "-t 01:00:00" in shown
    assert not (folder / "runs").exists()


MISTAKES = [
    ("--coupling 0.3,0.7 --learning-rate linspace:1:2", "linspace:FROM:TO:COUNT"),
    ("--coupling 0.3,0.7 --learning-rate logspace:0:1:3", "positive"),
    ("--coupling 0.3,0.7 --learning-rate linspace:-1:1:3", "`learning_rate` must be positive"),
    ("--coupling 0.3,0.7 --estimator values:shared:foo", "estimator"),
    ("--coupling values:0.3,0.7:0.1,0.2,0.3", "2 classes"),
    ("--coupling linspace:0.1:0.2:2", "The classes are identical"),
    ("--coupling 0.3,0.7", "Nothing varies in this sweep"),
    ("--coupling 0.3,linspace:0.3:0.5:3", "Classes 0 and 1 are identical: Ising"),
    ("--coupling 0.3,linspace:0.1:0.5:3", "identical at coupling[1] = 0.3"),
    ("--coupling values:0.3,0.7:0.2,0.2", "identical at coupling = [0.2, 0.2]."),
    ("--coupling 0.3,0.7 --members 3", "--members"),
    ("--coupling 0.3,0.7 --seeds 0", "`seeds`"),
    ("--coupling 0.3,0.7 --seeds 2 --together both", "`together`"),
    ("--coupling 0.3,0.7 --seeds 2 --cluster lokal:2", "cluster"),
    ("--coupling 0.3,0.7 --seeds 2 --out a.npz", ".nc"),
]


@pytest.mark.parametrize(("line", "words"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistakes_are_one_line(line, words, capsys, folder):
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "ising", *line.split(), *SMALL])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and told.count("\n") == 1 and words in told
    assert not (folder / "runs").exists()


def test_help_explains_values(capsys):
    main(["sweep"])
    assert "logspace:FROM:TO:COUNT" in capsys.readouterr().out
