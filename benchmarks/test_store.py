"""What the run store costs: listing many runs, and keeping one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import clock

from localfields.store import Store
from localfields.store.document import dump, seal
from localfields.store.index import NAME
from localfields.trajectory import Outcome, Trajectory

MANY = 10_000


def trajectory(members: int, records: int) -> Trajectory:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(members, records, 1, 40)).astype(np.float32)
    return Trajectory(
        steps=np.arange(records),
        times=np.arange(records) * 0.05,
        initial=weights[:, 0],
        final=weights[:, -1],
        series={
            "weights": weights,
            "loss": rng.uniform(size=(members, records)).astype(np.float32),
        },
        outcome=(Outcome("ok", records),) * members,
        experiment={},
        manifest={"jax": "0.10", "device": "cpu", "precision": "float32", "run_seconds": 1.0},
    )


def experiment(seed: int) -> tuple[str, str]:
    stimuli = [
        {"type": "stimulus/nlgp", "shape": [40], "gain": 100.0, "kernel": "periodized", "xi": x}
        for x in (1, 3)
    ]
    task = {
        "type": "task/discrimination",
        "stimuli": stimuli,
        "l1": 0.0,
        "l2": 0.0,
        "labels": "signs",
        "loss": "mse",
    }
    method = {
        "type": "method/training",
        "steps": 1000 + seed % 7,
        "batch": 1000,
        "seed": seed,
        "estimator": "orbit",
    }
    network = {
        "type": "network/single-neuron",
        "activation": "relu",
        "init": "glorot",
        "init_scale": 0.001,
    }
    text = dump({"schema": 2, "task": task, "network": network, "method": method, "initial": []})
    return text, hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Ten thousand runs with the same arrays, made without waiting for the disk."""
    made = Store(tmp_path_factory.mktemp("many"))
    canonical, first = experiment(0)
    made.save(canonical, first, trajectory(10, 20))
    meta = json.loads((made.path / first / "meta.json").read_text())
    del meta["checksum"]
    for seed in range(1, MANY):
        canonical, digest = experiment(seed)
        folder = made.path / digest
        folder.mkdir()
        (folder / "spec.json").write_text(canonical)
        checksums = {**meta["checksums"], "spec.json": digest}
        (folder / "meta.json").write_text(seal({**meta, "digest": digest, "checksums": checksums}))
        os.link(made.path / first / "arrays.npz", folder / "arrays.npz")
    return made


def test_first_list(store, report):
    def cold():
        (store.path / NAME).unlink(missing_ok=True)
        assert len(store.list()) == MANY

    report(f"first list of {MANY} runs, index rebuilt from the entries", clock(cold, 1), "s")


def test_list(store, report):
    assert len(store.list()) == MANY
    seconds = clock(lambda: store.list())
    report(f"list of {MANY} runs", seconds, "s", limit=2)
    assert seconds <= 2


def test_list_with_filters(store, report):
    def filtered():
        assert 0 < len(store.list(["gain=100", "estimator=orbit", "steps>=1003"])) < MANY

    report(f"list of {MANY} runs through three filters", clock(filtered), "s", limit=2)


def test_command(store, report):
    words = [
        Path(sys.executable).with_name("localfields"),
        "runs",
        "list",
        "--store",
        store.path,
        "xi=3",
    ]

    def command():
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.count("\n") == MANY + 1

    command()
    help_only = clock(
        lambda: subprocess.run(
            [words[0], "runs", "list", "--help"], capture_output=True, check=True
        )
    )
    whole = clock(command)
    report(
        f"`localfields runs list` of {MANY} runs, the whole command", whole, "s", start=help_only
    )
    report(
        f"`localfields runs list` of {MANY} runs, beyond what --help takes",
        whole - help_only,
        "s",
        limit=2,
    )


def test_save_and_load(tmp_path, report):
    store, made, digests = Store(tmp_path), trajectory(30, 100), []

    def save():
        canonical, digest = experiment(len(digests))
        store.save(canonical, digest, made)
        digests.append(digest)

    save()
    report("store a run of 30 members × 100 records, down to the disk", 1e3 * clock(save, 20), "ms")
    report("load it, checksums verified", 1e3 * clock(lambda: store.load(digests[0]), 20), "ms")
    assert all((store.load(digest).final == made.final).all() for digest in digests)
