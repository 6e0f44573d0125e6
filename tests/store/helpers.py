"""Trajectories made by hand, and a program that other processes run on a store."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

from localfields.store import Store
from localfields.trajectory import Outcome, Trajectory


def trajectory(seed=0, members=3, records=4, shape=(6,), dtype=np.float32, **changes):
    """A trajectory with something of every kind: dtypes, nan, an outcome that is not ok, events,
    odd names.
    """
    rng = np.random.default_rng(seed)
    fields = (members, 2, *shape)
    series = {
        "weights": rng.normal(size=(members, records, 2, *shape)).astype(dtype),
        "loss": rng.uniform(size=(members, records)).astype(dtype),
        "peak": rng.integers(0, 6, size=(members, records, 2)),
        "Any Näme/..\\": rng.uniform(size=(members, records)) < 0.5,
    }
    series["loss"][0, 0] = np.nan
    series["weights"][0, 0, 0] = -np.inf
    parts = {
        "steps": np.arange(records) * 10,
        "times": np.arange(records) * 0.5,
        "initial": rng.normal(size=fields).astype(dtype),
        "final": rng.normal(size=fields).astype(dtype),
        "series": series,
        "outcome": tuple(
            Outcome("ok", 30) if m else Outcome("diverged", 7) for m in range(members)
        ),
        "experiment": {},
        "manifest": {
            "odd": [None, True, float("nan"), (seed, {1: 2})],
            "jax": "0.10.0",
            "device": "cpu",
            "precision": "float32",
            "run_seconds": 1.5,
            "inf": float("inf"),
        },
        "stopped": "at rest",
        "events": {"onset": np.where(np.arange(members) == 0, np.nan, 2.0)},
    }
    return Trajectory(**{**parts, **changes})


def named(plain):
    """A specification in canonical form, and its digest."""
    text = json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text, hashlib.sha256(text.encode()).hexdigest()


def experiment(
    steps=1000, xi=(1.0, 3.0), gain=100.0, estimator="independent", seed=0, network="single-neuron"
):
    """Such as `Experiment.canonical()` gives."""
    stimuli = [
        {"type": "stimulus/nlgp", "shape": [40], "xi": one, "gain": gain, "kernel": "periodized"}
        for one in xi
    ]
    method = {
        "type": "method/training",
        "steps": steps,
        "estimator": estimator,
        "learning_rate": 0.05,
        "seed": seed,
    }
    task = {"type": "task/discrimination", "stimuli": stimuli, "l2": 0.0, "labels": "zero-one"}
    return named(
        {"schema": 2, "task": task, "network": {"type": f"network/{network}"}, "method": method}
    )


def put(store, *, made=None, **settings):
    """Save one and return its digest."""
    canonical, digest = experiment(**settings)
    store.save(canonical, digest, trajectory() if made is None else made)
    return digest


def assert_same(one, other):
    """Equal to the last bit, types and order included."""
    for name in ("steps", "times", "initial", "final"):
        assert_same_array(getattr(one, name), getattr(other, name))
    for name in ("series", "events"):
        assert list(getattr(one, name)) == list(getattr(other, name))
        for key, values in getattr(one, name).items():
            assert_same_array(values, getattr(other, name)[key])
    for name in ("outcome", "manifest", "stopped"):
        assert repr(getattr(one, name)) == repr(
            getattr(other, name)
        )  # tells tuples from lists, and nan is nan
    assert type(one) is type(other)


def assert_same_array(one, other):
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


# -- a program of its own --------------------------------------------------------------------------


def start(*words, **settings):
    """Run one of the functions below in a process of its own."""
    command = [sys.executable, "-W", "error", __file__, *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    )


def save_range(path, first, last):
    """Store some entries, all from one moment on."""
    print("ready", flush=True)
    sys.stdin.readline()
    for seed in range(int(first), int(last)):
        put(Store(path), seed=seed, made=trajectory(seed))


def save_forever(path, first):
    """Store, checkpoint and list until killed."""
    store = Store(path)
    print("ready", flush=True)
    for seed in range(int(first), int(first) + 10**6):
        made = trajectory(seed, members=50, records=50)
        digest = put(store, seed=seed, made=made)
        store.checkpoint("0" * 64).save({"seed": np.array(seed), "many": np.full(10**5, seed)})
        store.save_sweep("0" * 64, json.dumps({"last": digest}))
        store.list()


def die_at(path, call):
    """Be killed at one of the calls by which an entry reaches the disk."""
    left = [int(call)]

    def deadly(function):
        def instead(*arguments, **settings):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **settings)

        return instead

    for name in ("mkdir", "open", "fsync", "rename", "unlink"):
        setattr(os, name, deadly(getattr(os, name)))
    put(Store(path), seed=1)
    print("alive", flush=True)


def hold_lock(path, digest):
    """Hold a lock until killed."""
    with Store(path).lock(digest):
        print("held", flush=True)
        time.sleep(600)


def count_up(path, digest, times):
    """Add to a number in a file, in two steps that another process must not come between."""
    store = Store(path)
    counter = store.path / "counter"
    for _ in range(int(times)):
        with store.lock(digest):
            number = int(counter.read_text()) if counter.exists() else 0
            time.sleep(0.001)
            counter.write_text(str(number + 1))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        globals()[sys.argv[1]](*sys.argv[2:])
