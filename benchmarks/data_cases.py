"""What `predict` says of arrays drawn from known stimuli, against what it says of the stimuli.

No rule was chosen by it.

`python benchmarks/data_cases.py` prints the table at 50 000 and at 500 samples, `… 3000` at other
numbers of samples, `… others` the tasks of the prediction table that are not in it, `… NAME …` some
rows.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import jax
import numpy as np
import predictions

import localfields as lf
from localfields import marginals

MANY, FEW = 50_000, 500


def cases() -> dict[str, lf.Discrimination]:
    """Twenty tasks: every family, both signs of kurtosis, rings and tori."""
    s, wide, narrow, torus = lf.stimuli, (1.0, 3.0), (0.3, 0.7), (12, 12)
    make = predictions.classes
    return {
        "gaussian, ξ=1,3": make(s.Gaussian, xi=wide),
        "gaussian on a torus, ξ=0.5,1": make(s.Gaussian, torus, xi=(0.5, 1.0)),
        "nlgp gain 0.01, ξ=1,3": make(s.NLGP, xi=wide, gain=0.01),
        "nlgp gain 3, ξ=1,3": make(s.NLGP, xi=wide, gain=3.0),
        "nlgp gain 100, ξ=1,3": make(s.NLGP, xi=wide, gain=100.0),
        "nlgp gain 1, ξ=0.3,0.7": make(s.NLGP, xi=narrow, gain=1.0),
        "nlgp gain 100, labels ±1, ξ=1,3": make(
            s.NLGP, xi=wide, gain=100.0, task={"labels": "signs"}
        ),
        "kur k=3, ξ=1,3": make(s.Kur, xi=wide, k=3.0),
        "kur k=5, ξ=1,3": make(s.Kur, xi=wide, k=5.0),
        "kur k=10, ξ=1,3": make(s.Kur, xi=wide, k=10.0),
        "kur k=20 on a torus, ξ=0.5,1": make(s.Kur, torus, xi=(0.5, 1.0), k=20.0),
        "ising J=0.3,0.7": make(s.Ising, coupling=(0.3, 0.7)),
        "ising J=0.3,1.2": make(s.Ising, coupling=(0.3, 1.2)),
        "copula of Laplace, ξ=0.5,1.5": make(
            s.Copula, xi=(0.5, 1.5), marginal_law=marginals.Laplace()
        ),
        "copula of Uniform, ξ=0.5,1.5": make(
            s.Copula, xi=(0.5, 1.5), marginal_law=marginals.Uniform()
        ),
        "student-t ν=3, ξ=1,3": make(s.StudentT, xi=wide, nu=3.0),
        "elliptical shell, ξ=1,3": make(s.EllipticalShell, xi=wide),
        "elliptical shell, ξ=0.3,0.7": make(s.EllipticalShell, xi=narrow),
        "elliptical extreme, ξ=1,3": make(s.EllipticalExtreme, xi=wide),
        "pulses 1–3, 4–8": make(s.SinglePulse, shortest=(1, 4), longest=(3, 8)),
    }


def as_data(task: lf.Discrimination, num: int, seed: int = 1) -> lf.Discrimination:
    """The same task with rows drawn from each class in place of the class."""
    with jax.enable_x64(False):
        drawn = [np.asarray(one.sample(seed * 100 + c, num)) for c, one in enumerate(task.stimuli)]
    rows = [lf.stimuli.Samples(data=one.reshape(num, *task.shape)) for one in drawn]
    return task.replace(stimuli=tuple(rows))


def row(name: str, task: lf.Discrimination, num: int, seed: int = 1) -> dict[str, Any]:
    """One task at one number of samples."""
    exact = lf.predict(task)
    start = time.perf_counter()
    said = lf.predict(as_data(task, num, seed))
    assert isinstance(said, lf.theory.DataPrediction)
    return {
        "task": name,
        "samples": num,
        "exact": exact.verdict,
        "data": said.verdict,
        "leaning": said.leaning,
        "theory": said.theory,
        "ipr": [round(exact.ipr, 4), round(said.ipr, 4)],
        "seconds": round(time.perf_counter() - start, 1),
        "doubts": said.doubts,
    }


if __name__ == "__main__":
    from localfields.cli._options import use_compilation_cache

    warnings.simplefilter("ignore")
    use_compilation_cache()
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()] or [MANY, FEW]
    names = [word for word in sys.argv[1:] if not word.isdigit() and word != "others"]
    chosen = cases()
    if "others" in sys.argv:
        chosen = {name: task for name, task in predictions.tasks().items() if name not in chosen}
    for num in numbers:
        made = []
        for name, task in chosen.items():
            if not names or any(word in name for word in names):
                made.append(row(name, task, num))
                print(json.dumps(made[-1], ensure_ascii=False), flush=True)
        same = sum(one["exact"] == one["data"] for one in made)
        wrong = sum(one["data"] not in (one["exact"], "undecided") for one in made)
        print(f"{num} samples: {same} of {len(made)} alike, {wrong} wrong")
