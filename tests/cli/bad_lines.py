"""Command lines that must be refused, in a folder with files that are not what they seem.

`scripts/messages.py` calls them all and prints what they say; `tests/cli/messages.txt` holds that.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from pathlib import Path

LONG = 300 * "x"  # longer than the name of a file may be
EXPERIMENT = """
[task]
stimuli = [{type = "ising", shape = [8], coupling = 0.3}, {type = "ising", shape = [8], coupling = 0.7}]
"""
TINY = "ising --shape 8 --coupling 0.3,0.7"

LINES = [
    # commands and plugins
    "frobnicate",
    "SAMPLE nlgp",
    "train,predict",
    "--verbose",
    "-v",
    "'' nlgp",
    "--plugin",
    "--plugin= sample nlgp",
    "--plugin folder.py sample nlgp",
    "--plugin garbage.py sample nlgp",
    "--plugin json.py sample nlgp",
    "--plugin quits.py sample nlgp",
    "--plugin raises.py sample nlgp",
    "--plugin no.such.module sample nlgp",
    "--plugin ../outside.py sample nlgp",
    # sample
    "sample nlgp2",
    "sample NLGP",
    "sample ''",
    "sample nlgp ising",
    "sample nlgp --gain",
    "sample nlgp --gain ''",
    "sample nlgp --gain 1e400",
    "sample nlgp --gain 3x",
    "sample nlgp --gain 1,2",
    "sample nlgp --gain=--xi",
    "sample nlgp --gain 3 --gain 4",
    "sample nlgp --gain=3 --gain 3",
    "train ising --coupling 0.3,0.7 --steps 3 --batch 20 --steps 4",
    "runs list --store a --store b",
    "sample nlgp --plot --no-plot --plot=1",
    "sample nlgp --xi 1e-400",
    "sample nlgp --kernel no-such-kernel",
    "sample nlgp --kernel given:row=1,2",
    "sample nlgp --kernel given:row=abc",
    "sample nlgp --shape 8x",
    "sample nlgp --shape 1",
    "sample nlgp --num -5",
    "sample nlgp --num 1e30",
    "sample nlgp --num 1,000",
    "sample nlgp --num 9999999999",
    "sample nlgp --seed 1.5",
    "sample nlgp --seed 99999999999999999999",
    "sample nlgp --out result",
    "sample nlgp --out result.txt",
    "sample nlgp --out .npz",
    "sample nlgp --out nowhere/result.npz",
    "sample nlgp --out occupied/result.npz",
    "sample nlgp --out folder.npz",
    "sample nlgp --out occupied.npz",
    "sample nlgp --out /dev/null",
    f"sample nlgp --out {LONG}.npz",
    "sample copula --marginal-law nothing",
    "sample copula --marginal-law student-t:nu=1",
    "sample copula --marginal-law student-t:mu=5",
    "sample copula --marginal-law student-t:nu",
    "sample samples --data missing.npy",
    "sample samples --data garbage.npy",
    "sample samples --data folder.npy",
    "sample samples --data empty.csv",
    "sample samples --data words.csv",
    "sample samples --data pickled.npy",
    "sample samples --data good.npz:nothing",
    "sample samples --data pipe.npy",
    "sample image-patches --data nowhere",
    "sample image-patches --data garbage.png",
    # train
    "train nlgp",
    "train nlgp --xi 1,1",
    "train nlgp --xi 1,2,3 --gain 1,2",
    f"train {TINY} --steps 0",
    f"train {TINY} --steps -1",
    f"train {TINY} --steps 1e99",
    f"train {TINY} --steps many",
    f"train {TINY} --batch 0",
    f"train {TINY} --batch 1",
    f"train {TINY} --members 0",
    f"train {TINY} --members 10000000000",
    f"train {TINY} --learning-rate 0",
    f"train {TINY} --learning-rate fast",
    f"train {TINY} --learning-rate nan",
    f"train {TINY} --estimator best",
    f"train {TINY} --optimizer addam",
    f"train {TINY} --every 0",
    f"train {TINY} --evaluate 0",
    f"train {TINY} --quantities lost",
    f"train {TINY} --precision float16",
    f"train {TINY} --network deep",
    f"train {TINY} --hidden 3",
    f"train {TINY} --network committee --hidden 0",
    f"train {TINY} --labels 1,1",
    f"train {TINY} --labels 1,2,3",
    f"train {TINY} --labels a,b",
    f"train {TINY} --proportions 0,1",
    f"train {TINY} --loss hinge",
    f"train {TINY} --l2 -1",
    f"train {TINY} --activation swish",
    f"train {TINY} --seed -1",
    f"train {TINY} --stop-tol -1",
    f"train {TINY} --out folder.npz",
    f"train {TINY} --out run.zip",
    # predict
    "predict nlgp",
    "predict missing.npy other.npy",
    "predict good.npy missing.npy",
    "predict garbage.npy",
    "predict folder.npy",
    "predict empty.csv",
    "predict pipe.npy",
    "predict good.npy good.npy",
    "predict good.npy wide.npy",
    "predict good.npy --blur 1",
    "predict good.npy --blur 1,1",
    "predict good.npy --blur wide",
    "predict good.npy wide.npy --blur 0,1",
    "predict good.npy --classes missing.csv",
    "predict good.npy --classes words.csv --blur 0,1",
    "predict nlgp --xi 1,3 --starts 0",
    "predict nlgp --xi 1,3 --starts x",
    "predict nlgp --xi 1,3 --seed -1",
    "predict nlgp --xi 1,3 --out report.pdf",
    # baseline
    "baseline deep kur",
    "baseline ica kurr",
    "baseline ica kur --components 0",
    "baseline ica kur --samples -3",
    "baseline ica kur --k 1",
    "baseline ica missing.npy",
    # run
    "run missing.toml",
    "run garbage.toml",
    "run empty.toml",
    "run folder.toml",
    "run words.json",
    "run typo.toml",
    "run wrong.toml",
    "run pipe.toml",
    f"run {TINY} --store occupied",
    f"run {TINY} --store occupied/below",
    f"run {TINY} --store /{LONG}",
    f"run {TINY} --store '~nosuchuser/x'",
    f"run {TINY} --store /proc/nothing",
    "run experiment.toml --gain 3",
    # sweep
    "sweep missing.json",
    f"sweep {TINY} --steps linspace:1:2",
    f"sweep {TINY} --steps linspace:1:2:0",
    f"sweep {TINY} --steps logspace:0:2:3",
    f"sweep {TINY} --steps range:5:1",
    f"sweep {TINY} --steps range:1:5:0",
    f"sweep {TINY} --steps values:",
    f"sweep {TINY} --steps linspace:a:b:c",
    f"sweep {TINY} --seeds 0",
    f"sweep {TINY} --seeds 10000000000",
    f"sweep {TINY} --chunk 0",
    f"sweep {TINY} --together both --steps range:1:2",
    f"sweep {TINY} --members 3",
    f"sweep {TINY} --seeds 2 --cluster moon",
    f"sweep {TINY} --seeds 2 --cluster local:0",
    f"sweep {TINY} --seeds 2 --cluster local:99999",
    f"sweep {TINY} --seeds 2 --cluster slurm:2,color=red",
    f"sweep {TINY} --seeds 2 --cluster slurm:2,cores=many",
    f"sweep {TINY} --seeds 2 --cluster tcp://",
    f"sweep {TINY} --seeds 2 --out sweep.npz",
    f"sweep {TINY} --seeds 2 --table table.txt",
    # runs
    "runs forget",
    "runs show",
    "runs show 000000",
    "runs show a b",
    "runs show ../../etc/passwd",
    "runs list gain",
    "runs list --store occupied",
    "runs rm",
    "runs rm 000000",
    "runs export 000000",
    "runs export 000000 --out x.pdf",
    "runs verify 000000",
    f"runs list --store /{LONG}",
    "runs list --store '~nosuchuser/x'",
    # reproduce and app
    "reproduce fig99",
    "reproduce fig1 --scale huge",
    "reproduce --out occupied",
    "reproduce fig1 --store occupied",
    "app --port 99999",
    "app --port -1",
    "app --port http",
    "app --workers 0",
    "app --workers two",
    "app --store occupied",
    "app extra",
    # check
    "check missing.py",
    "check garbage.py",
    "check nlgp2",
    "check json.py --num -1",
]


def prepare(folder: Path) -> None:
    """Fill a folder with the files that the lines name."""
    import numpy as np

    rng = np.random.default_rng(0)
    (folder / "occupied").write_text("mine")
    (folder / "occupied.npz").write_text("mine")
    for name in ("folder.npz", "folder.npy", "folder.py", "folder.toml"):
        (folder / name).mkdir()
    for name in ("garbage.npy", "garbage.png", "garbage.py", "garbage.toml"):
        (folder / name).write_bytes(bytes(range(256)))
    (folder / "json.py").write_text("")
    (folder / "quits.py").write_text("raise SystemExit(0)")
    (folder / "raises.py").write_text("raise RuntimeError('first line\\nsecond line')")
    (folder / "empty.csv").write_text("")
    (folder / "empty.toml").write_text("")
    (folder / "words.csv").write_text("a,b\nc,d\n")
    (folder / "words.json").write_text('"nlgp"')
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "typo.toml").write_text(EXPERIMENT + "[method]\ntype = 'training'\nsteps_ = 3\n")
    (folder / "wrong.toml").write_text(EXPERIMENT + "[method]\ntype = 'training'\nsteps = 'x'\n")
    np.save(folder / "good.npy", rng.normal(size=(50, 8)))
    np.save(folder / "wide.npy", rng.normal(size=(50, 9)))
    np.savez(folder / "good.npz", a=rng.normal(size=(50, 8)))
    np.save(folder / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    os.mkfifo(folder / "pipe.npy")
    os.mkfifo(folder / "pipe.toml")


def attempt(line: str) -> tuple[object, str, str]:
    """What comes of a line: its exit code or its error, and what is on stdout and stderr."""
    from localfields.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(shlex.split(line))
        except SystemExit as stop:
            code = stop.code
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"
    here = str(Path.cwd())
    return code, out.getvalue(), err.getvalue().replace(here, "FOLDER").replace(LONG, "LONG")
