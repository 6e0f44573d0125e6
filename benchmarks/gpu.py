"""Training on a GPU against the rate at which the same GPU draws plain normals: `python
benchmarks/gpu.py`.

600 members × batch 5000 × N = 40, NLGP at gain 100, all draws independent: the 120 million normals
of one step, drawn by `jax.random.normal` from a default key, set the scale. What is timed is right:
the kernel's gradients equal those of the same draws without a kernel, and their mean equals the one
of the general path.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import jax
import numpy as np

import localfields as lf
from localfields._prng import make_key
from localfields.training import estimators, fused

MEMBERS, BATCH, SITES, STEPS = 600, 5000, 40, 400
LEAST_RATE = 0.9  # of plain normals
LARGEST_Z = 5.0
LARGEST_DIFFERENCE = 3e-5  # of a gradient: white normals that round to another float16 make 1e-5

# Stimulus, sites, activation and loss: every law, activation and kind of padding.
CASES = [("nlgp", 40, "relu", "mse"), ("kur", 40, "relu", "mse"), ("gaussian", 40, "tanh", "mse")]
CASES += [("gaussian", 33, "sigmoid", "absolute"), ("nlgp", 2, "tanh", "absolute")]
CASES += [("kur", 128, "identity", "mse")]
LAWS = {
    "nlgp": lambda n, xi: lf.stimuli.NLGP((n,), xi=xi, gain=3.0),
    "kur": lambda n, xi: lf.stimuli.Kur((n,), xi=xi, k=4.5),
    "gaussian": lambda n, xi: lf.stimuli.Gaussian((n,), xi=xi),
}


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
    network = lf.networks.SingleNeuron()
    runs = [lf.train(task, network, record=record, seed=turn, **settings) for turn in range(4)]
    times = [run.manifest["run_seconds"] for run in runs[1:]]
    return statistics.median(times) / settings["steps"] * 1e3


def difference(kind, sites, activation, loss):
    """How far gradients of the same draws with and without the kernel are apart, in their own
    size.
    """
    task = lf.Discrimination(*(LAWS[kind](sites, xi) for xi in (0.5, 0.8)), loss=loss)
    network = lf.networks.SingleNeuron(activation=activation)
    weights = 0.3 * jax.random.normal(make_key(1), (8, 1, sites))

    def gradient(weights, key, kernel):
        params = {"weights": weights}
        return fused.sampled(task, network, None, params, key, (2500, 2500), kernel)[1]["weights"]

    each = jax.jit(jax.vmap(gradient, (0, 0, None)), static_argnums=2)
    keys = jax.random.split(make_key(2), 8)
    found, wanted = (np.asarray(each(weights, keys, kernel), float) for kernel in (True, False))
    return float(np.sqrt(np.sum((found - wanted) ** 2) / np.sum(wanted**2)))


def agreement(task):
    """The kernel's mean gradient against the general path's, over members, at one point.

    Returns:
        The largest z, and the z at which a gradient wrong by 1 % would stand out.
    """
    weights = np.random.default_rng(0).normal(size=(1, SITES)).astype(np.float32) * 0.1
    counts, network = estimators.class_counts(task, BATCH), lf.networks.SingleNeuron()
    found = []
    for seed, estimate in enumerate((fused.sampled, estimators.sampled)):

        def gradient(key, estimate=estimate):
            return estimate(task, network, None, {"weights": weights}, key, counts)[1]["weights"][0]

        keys = jax.random.split(make_key(seed), 64 * MEMBERS).reshape(64, MEMBERS)
        each = jax.jit(jax.vmap(gradient))
        found.append(np.concatenate([np.asarray(each(part), np.float64) for part in keys]))
    error = np.sqrt(sum(part.var(axis=0, ddof=1) / len(part) for part in found))
    kernel, general = (part.mean(axis=0) for part in found)
    return float(np.abs((kernel - general) / error).max()), float(
        np.abs(general / error).max() / 100
    )


def main():
    if jax.default_backend() != "gpu":
        sys.exit("benchmarks/gpu.py needs a GPU that JAX can see; this machine has none.")
    if not fused.available():
        sys.exit("benchmarks/gpu.py times the kernel, which needs a Hopper GPU and JAX 0.11.")
    task = lf.Discrimination(*(lf.stimuli.NLGP((SITES,), xi=xi, gain=100.0) for xi in (1.0, 3.0)))
    kur = lf.Discrimination(*(lf.stimuli.Kur((SITES,), xi=xi, k=4.1) for xi in (1.0, 3.0)))
    draw = jax.jit(lambda key: jax.random.normal(key, (MEMBERS, BATCH, SITES)))
    rows = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    rows["plain normals, ms"] = milliseconds(lambda: draw(jax.random.key(0)))
    rows["step, independent, ms"] = step(task)
    rows["rate against plain normals"] = rows["plain normals, ms"] / rows["step, independent, ms"]
    rows["step, independent, Kur(4.1), ms"] = step(kur)
    rows["step, shared, ms"] = step(task, estimator="shared")
    rows["step, orbit with 200 draws, ms"] = step(task, estimator="orbit", batch=200)
    available, fused.available = fused.available, lambda: False
    rows["step, independent, general path, ms"] = step(task, steps=100)
    rows["step, independent, Kur(4.1), general path, ms"] = step(kur, steps=100)
    fused.available = available
    same = {" ".join(map(str, case)): difference(*case) for case in CASES}
    scores = {"NLGP(100)": agreement(task), "Kur(4.1)": agreement(kur)}
    rows["the same draws with and without the kernel"] = same
    rows["kernel against general path: largest z of 40, z of an error of 1 %"] = scores
    print(json.dumps(rows, indent=2))
    assert max(same.values()) < LARGEST_DIFFERENCE, same
    assert all(z < LARGEST_Z < power for z, power in scores.values()), scores
    assert rows["rate against plain normals"] > LEAST_RATE, rows["rate against plain normals"]


if __name__ == "__main__":
    main()
