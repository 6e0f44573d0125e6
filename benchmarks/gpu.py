"""Training on a GPU against the rate at which the same GPU draws plain normals: `python benchmarks/gpu.py`.

600 members × batch 5000 × N = 40, NLGP at gain 100, all draws independent: the 120 million normals of one step, drawn
by `jax.random.normal` from a default key, set the scale.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import jax
import numpy as np

import localfields as lf
from localfields.training import estimators, fused

MEMBERS, BATCH, SITES, STEPS = 600, 5000, 40, 400


def milliseconds(call, rounds=9):
    jax.block_until_ready(call())
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(20):
            out = call()
        jax.block_until_ready(out)
        times.append((time.perf_counter() - start) / 20 * 1e3)
    return statistics.median(times)


def step(task, **more):
    record = lf.Record(every=10**9, quantities=("ipr",))
    settings = {"steps": STEPS, "batch": BATCH, "members": MEMBERS, "learning_rate": 0.05} | more
    times = [
        lf.train(task, lf.networks.SingleNeuron(), record=record, seed=turn, **settings).manifest[
            "run_seconds"
        ]
        for turn in range(4)
    ]
    return statistics.median(times[1:]) / settings["steps"] * 1e3


def agreement(task):
    """Largest z of the kernel's mean gradient against the general path's, over members, at one point."""
    weights = np.random.default_rng(0).normal(size=(1, SITES)).astype(np.float32) * 0.1
    counts = estimators.class_counts(task, BATCH)
    network = lf.networks.SingleNeuron()
    found = []
    for seed, estimate in enumerate((fused.sampled, estimators.sampled)):
        keys = jax.random.split(jax.random.key(seed), MEMBERS)
        one = jax.jit(
            jax.vmap(
                lambda key, e=estimate: e(task, network, None, {"weights": weights}, key, counts)[
                    1
                ]["weights"]
            )
        )
        found.append(np.asarray(one(keys), np.float64)[:, 0])
    error = np.sqrt(sum(part.var(axis=0, ddof=1) for part in found) / MEMBERS)
    return float(np.abs((found[0].mean(axis=0) - found[1].mean(axis=0)) / error).max())


def main():
    if jax.default_backend() != "gpu":
        sys.exit("benchmarks/gpu.py needs a GPU that JAX can see; this machine has none.")
    task = lf.Discrimination(*(lf.stimuli.NLGP((SITES,), xi=xi, gain=100.0) for xi in (1.0, 3.0)))
    draw = jax.jit(lambda key: jax.random.normal(key, (MEMBERS, BATCH, SITES)))
    rows = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    rows["plain normals, ms"] = milliseconds(lambda: draw(jax.random.key(0)))
    rows["step, independent, ms"] = step(task)
    rows["rate against plain normals"] = rows["plain normals, ms"] / rows["step, independent, ms"]
    rows["kernel against general path, largest z of 40"] = agreement(task)
    rows["step, shared, ms"] = step(task, estimator="shared")
    rows["step, orbit with 200 draws, ms"] = step(task, estimator="orbit", batch=200)
    kur = lf.Discrimination(*(lf.stimuli.Kur((SITES,), xi=xi, k=4.1) for xi in (1.0, 3.0)))
    rows["step, independent, Kur(4.1), ms"] = step(kur)
    rows["kernel against general path, Kur(4.1), largest z of 40"] = agreement(kur)
    kernel = fused.applies
    fused.applies = lambda task, network: False
    rows["step, independent, general path, ms"] = step(task, steps=100)
    rows["step, independent, Kur(4.1), general path, ms"] = step(kur, steps=100)
    fused.applies = kernel
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
