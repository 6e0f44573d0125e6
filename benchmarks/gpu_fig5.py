"""Figure 5 on a GPU as the paper has it: 600 runs of 5000 independent draws a step.

`python benchmarks/gpu_fig5.py OUT.json`

Prints and writes as JSON the seconds of compilation and of training apart, and the IPR at each
point.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import jax
import numpy as np

import localfields as lf
from localfields.figures.fig5 import BATCH, FAMILIES, RATE, SEEDS, STEPS


def train(name, seeds, steps, batch):
    """All values of a family, every member with a start and draws of its own."""
    family = FAMILIES[name]
    starts = tuple(range(len(family.values) * seeds))
    network = lf.networks.SingleNeuron(init_scale=0.001)
    record = lf.Record(every=steps, quantities=("ipr",))
    more = {"learning_rate": RATE, "steps": steps, "batch": batch, "seed": starts, "record": record}
    run = lf.train(family.task(seeds), network, estimator="independent", **more)
    ipr = run.ipr[:, -1, 0].astype(float).reshape(len(family.values), seeds)
    points = [
        {"value": value, "excess_kurtosis": kurtosis, "ipr": mean, "deviation": deviation}
        for value, kurtosis, mean, deviation in zip(
            family.values,
            family.kurtosis.tolist(),
            ipr.mean(axis=1).round(5).tolist(),
            (ipr.std(axis=1, ddof=1) if seeds > 1 else np.zeros(len(ipr))).round(5).tolist(),
            strict=True,
        )
    ]
    good = all(one.kind == "ok" for one in run.outcome)
    return {
        "members": run.num_members,
        "all_members_ok": good,
        "compile_seconds": run.manifest["compile_seconds"],
        "run_seconds": run.manifest["run_seconds"],
        "points": points,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="where the JSON goes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="starts of each value")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int, default=BATCH)
    given = parser.parse_args()
    found = {name: train(name, given.seeds, given.steps, given.batch) for name in ("nlgp", "kur")}
    parts = ("compile_seconds", "run_seconds")
    total = {part: round(sum(one[part] for one in found.values()), 3) for part in parts}
    device = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    setting = {
        "seeds": given.seeds,
        "steps": given.steps,
        "batch": given.batch,
        "estimator": "independent",
    }
    text = json.dumps({**device, **setting, **total, **found}, indent=2) + "\n"
    given.out.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
