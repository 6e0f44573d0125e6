"""The prediction table: what `predict` says of many tasks, against what training does. No rule was
chosen by it.

`python benchmarks/predictions.py` prints the whole table, `… NAME …` some rows of it; `make bench`
checks it.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

import localfields as lf
from localfields import marginals
from localfields.trajectory import localized_from

MEMBERS, RATE, STEPS, BATCH = 4, 0.1, 5000, 200


def classes(
    cls: Any, shape: tuple[int, ...] = (40,), task: Any = None, **values: Any
) -> lf.Discrimination:
    """A task whose classes differ in the values given as tuples, label 0 first."""
    count = max(len(value) for value in values.values() if isinstance(value, tuple))
    each = [
        {k: v[c] if isinstance(v, tuple) else v for k, v in values.items()} for c in range(count)
    ]
    return lf.Discrimination(*(cls(shape, **one) for one in each), **(task or {}))


def tasks() -> dict[str, Any]:
    """Every family, both lattices, several parameters, on both sides of the border and near it."""
    s = lf.stimuli
    wide, narrow = (1.0, 3.0), (0.3, 0.7)
    found: dict[str, Any] = {}
    for gain in (0.01, 0.1, 1.0, 3.0, 100.0):
        found[f"nlgp gain {gain:g}, ξ=1,3"] = classes(s.NLGP, xi=wide, gain=gain)
    for gain in (0.01, 0.5, 1.0, 10.0):
        found[f"nlgp gain {gain:g}, ξ=0.3,0.7"] = classes(s.NLGP, xi=narrow, gain=gain)
    found["nlgp gain 100, ξ=1,2"] = classes(s.NLGP, xi=(1.0, 2.0), gain=100.0)
    found["nlgp gain 100, ξ=0.3,0.7, 100 sites"] = classes(s.NLGP, (100,), xi=narrow, gain=100.0)
    found["nlgp gain 100, three classes, ξ=0.5,1,3"] = classes(
        s.NLGP, xi=(0.5, 1.0, 3.0), gain=100.0
    )
    found["nlgp gain 100, labels ±1, ξ=1,3"] = classes(
        s.NLGP, xi=wide, gain=100.0, task={"labels": "signs"}
    )
    found["gaussian, ξ=1,3"] = classes(s.Gaussian, xi=wide)
    found["gaussian, ξ=2,0.5"] = classes(s.Gaussian, xi=(2.0, 0.5))
    for k in (3.0, 4.0, 5.0, 10.0, 30.0):
        found[f"kur k={k:g}, ξ=1,3"] = classes(s.Kur, xi=wide, k=k)
    for k in (4.1, 5.0, 7.7, 10.0, 50.0):
        found[f"kur k={k:g}, ξ=0.3,0.7"] = classes(s.Kur, xi=narrow, k=k)
    for pair in ((0.3, 0.7), (0.5, 0.7), (0.0, 0.7), (0.3, 1.2), (0.3, 1.0)):
        found[f"ising J={pair[0]:g},{pair[1]:g}"] = classes(s.Ising, coupling=pair)
    found["ising J=0.3,0.7, 100 sites"] = classes(s.Ising, (100,), coupling=(0.3, 0.7))
    for law in (
        marginals.Laplace(),
        marginals.Logistic(),
        marginals.Uniform(),
        marginals.Triangular(),
        marginals.NormalMixture(0.85),
        marginals.StudentT(5.0),
        marginals.TwoPoint(),
    ):
        found[f"copula of {type(law).__name__}, ξ=0.5,1.5"] = classes(
            s.Copula, xi=(0.5, 1.5), marginal_law=law
        )
    for nu in (3.0, 5.0):
        found[f"student-t ν={nu:g}, ξ=1,3"] = classes(s.StudentT, xi=wide, nu=nu)
    for xi in (wide, narrow):
        found[f"elliptical shell, ξ={xi[0]:g},{xi[1]:g}"] = classes(s.EllipticalShell, xi=xi)
    found["elliptical extreme, ξ=1,3"] = classes(s.EllipticalExtreme, xi=wide)
    found["elliptical, radius uniform, ξ=1,3"] = classes(s.Elliptical, xi=wide, radial=lambda u: u)
    found["pulses 1–3, 4–8"] = classes(s.SinglePulse, shortest=(1, 4), longest=(3, 8))
    found["pulses 2–4, 8–10 of zeros and ones"] = classes(
        s.SinglePulse, shortest=(2, 8), longest=(4, 10), coding="zero-one"
    )
    torus = (12, 12)
    found["nlgp gain 100 on a torus, ξ=0.5,1"] = classes(s.NLGP, torus, xi=(0.5, 1.0), gain=100.0)
    found["kur k=3 on a torus, ξ=0.5,1"] = classes(s.Kur, torus, xi=(0.5, 1.0), k=3.0)
    found["kur k=20 on a torus, ξ=0.5,1"] = classes(s.Kur, torus, xi=(0.5, 1.0), k=20.0)
    found["gaussian on a torus, ξ=0.5,1"] = classes(s.Gaussian, torus, xi=(0.5, 1.0))
    found["student-t ν=5 on a torus, ξ=0.5,1"] = classes(s.StudentT, torus, xi=(0.5, 1.0), nu=5.0)
    return found


def trained(task: lf.Discrimination, largest_rate: float) -> tuple[str, float]:
    """What training ends in, by the median IPR of its last tenth, and that IPR; at a rate well
    below the largest.
    """
    rate = min(RATE, largest_rate / 4)
    steps = round(STEPS * RATE / rate)
    symmetric = all(one.translation_invariant and one.sign_symmetric for one in task.stimuli)
    run = lf.train(
        task,
        lf.networks.SingleNeuron(),
        learning_rate=rate,
        steps=steps,
        batch=BATCH if symmetric else 20 * BATCH,
        members=MEMBERS,
        seed=1,
        estimator="orbit" if symmetric else "independent",
        record=lf.Record(every=steps // 50, quantities=("ipr",)),
    )
    ipr = float(np.median(run.ipr[:, -5:, 0]))
    return ("localized" if ipr > localized_from(task.size) else "oscillatory"), ipr


def row(name: str, task: lf.Discrimination) -> dict[str, Any]:
    """One task: verdict, what training did, and both inverse participation ratios."""
    start = time.perf_counter()
    said = lf.predict(task)
    predicted = time.perf_counter() - start
    did, ipr = trained(task, said.largest_rate)
    return {
        "task": name,
        "verdict": said.verdict,
        "trained": did,
        "predicted_ipr": round(said.ipr, 4),
        "trained_ipr": round(ipr, 4),
        "noise_ipr": round(3 / (task.size + 2), 4),
        "onset": round(said.onset, 2),
        "seconds": [round(predicted, 1), round(time.perf_counter() - start - predicted, 1)],
    }


def confusion(rows: list[dict[str, Any]]) -> str:
    """Verdicts against outcomes, as a table of counts."""
    kinds = ("localized", "oscillatory", "undecided")
    lines = [f"{'trained':<14}" + "".join(f"{kind:>14}" for kind in kinds)]
    for did in kinds[:2]:
        counts = [
            sum(one["trained"] == did and one["verdict"] == kind for one in rows) for kind in kinds
        ]
        lines.append(f"{did:<14}" + "".join(f"{count:>14}" for count in counts))
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    every = tasks()
    chosen = sys.argv[1:] or list(every)
    made = []
    for name in chosen:
        made.append(row(name, every[name]))
        print(json.dumps(made[-1], ensure_ascii=False), flush=True)
    print(confusion(made))
