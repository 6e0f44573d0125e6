"""What a sweep saves, and what each of its parts costs: the numbers behind `docs/scaling.md`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import localfields as lf
from localfields.experiments import run_or_load, run_sweep
from localfields.experiments.cluster import Cluster, compute

SCRIPT = Path(sys.executable).with_name("localfields")
BATCH, GAINS, SEEDS = 5000, 10, 30


def command(folder, *words):
    """Seconds of one command line in a process of its own."""
    start = time.perf_counter()
    subprocess.run([SCRIPT, *words, "--store", folder], check=True, capture_output=True, cwd=folder)
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("estimator", "steps", "limit"), [("shared", 2000, 1 / 20), ("independent", 50, None)]
)
def test_a_sweep_against_single_runs(estimator, steps, limit, report, tmp_path):
    """10 gains × 30 seeds at N = 40, batch 5000, against 300 commands with draws of their own;
    three are timed.

    Both with programs compiled before. Seeds of the sweep share the draws of a gain, or are
    independent: then what is saved is the start of processes, which counts when runs are short.
    """
    numbers = f"--xi 1,3 --shape 40 --batch {BATCH} --steps {steps}".split()
    single = ["run", "nlgp", *numbers]
    axes = f"--gain logspace:0.1:10:{GAINS} --seeds {SEEDS} --estimator {estimator}".split()
    many = ["sweep", "nlgp", *numbers, *axes]
    command(tmp_path, *single, "--gain", "3", "--seed", "99")  # compiles
    command(tmp_path, *many, "--seed", "50", "--steps", "20")
    alone = [
        command(tmp_path, *single, "--gain", gain, "--seed", "0") for gain in ("0.1", "1", "10")
    ]
    together = command(tmp_path, *many)
    trained = [
        one.manifest["run_seconds"]
        for one in lf.Store(tmp_path).list([f"steps={steps}", "members=1"])
    ]
    singles = GAINS * SEEDS * statistics.median(alone)
    what = (
        f"sweep of 10 gains × 30 seeds, {steps} steps, {estimator} draws / 300 commands (3 timed)"
    )
    more = {
        "seconds": together,
        "seconds_of_one": alone,
        "of_which_training": statistics.median(trained),
    }
    report(what, together / singles, limit=limit, **more)


def training(estimator, steps):
    return lf.Training(
        steps=steps, batch=BATCH, every=10**6, quantities=("ipr",), evaluate=2, estimator=estimator
    )


@pytest.mark.parametrize("estimator", ["shared", "independent"])
def test_a_step_of_a_sweep_against_single_steps(estimator, report, tmp_path):
    """The same without processes, compilation and records: what is left of the ratio when runs
    are long.
    """
    steps = 60
    task = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=1) for xi in (1, 3)))
    base = lf.Experiment(task, method=training(estimator, steps))
    sweep = lf.Sweep(base, {"gain": [0.1, 0.3, 1.0, 3.0, 10.0]}, seeds=SEEDS)
    seconds = {"sweep": [], "alone": []}
    for turn in range(3):
        found = run_sweep(sweep, tmp_path / f"{turn}")
        seconds["sweep"].append(
            sum(found.store.load(part.digest).manifest["run_seconds"] for part in found.parts)
        )
        runs = [run_or_load(sweep.point(index), tmp_path / f"{turn}") for index in (0, 60, 120)]
        seconds["alone"].append(len(sweep) / 3 * sum(run.manifest["run_seconds"] for run in runs))
    turns = zip(seconds["sweep"][1:], seconds["alone"][1:], strict=True)
    report(
        f"the same, training alone, {estimator} draws", statistics.median(a / b for a, b in turns)
    )


@pytest.mark.parametrize("chunk", [1, 16, 64, 256])
def test_what_a_point_costs_beside_its_training(chunk, report, tmp_path):
    """Value, digest, program, store: milliseconds a point of one step, by how many run together."""
    task = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=1) for xi in (1, 3)))
    method = lf.Training(steps=1, batch=2, every=10, quantities=("ipr", "loss"), evaluate=2)
    points = {1: 32, 16: 128, 64: 512, 256: 1024}[chunk]
    axes = {"gain": [1 + i / 100 for i in range(points // 8)]}
    run_sweep(
        lf.Sweep(lf.Experiment(task, method=method), axes, seeds=range(100, 108), chunk=chunk),
        tmp_path / "first",
    )
    sweep = lf.Sweep(lf.Experiment(task, method=method), axes, seeds=8, chunk=chunk)
    start = time.perf_counter()
    found = run_sweep(sweep, tmp_path / "second")
    assert found.complete
    report(
        f"beside training, {chunk} points together: a point",
        1e3 * (time.perf_counter() - start) / points,
        "ms",
    )
    entries = [
        sum(file.stat().st_size for file in (found.store.path / part.digest).iterdir())
        for part in found.parts
    ]
    report(
        "  its bytes in the store, with the first and last field, IPR and loss at 2 records",
        sum(entries) / points,
        "B",
    )
    found.dataset()  # imports
    start = time.perf_counter()
    found.dataset()
    report("  reading it back", 1e3 * (time.perf_counter() - start) / points, "ms")


def test_what_the_scheduler_costs(report, tmp_path):
    """Tasks whose result is stored already: what is left is the scheduler, a lookup and the
    answer.
    """
    task = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
    experiment = lf.Experiment(task, method=lf.Training(steps=1, batch=20))
    run_or_load(experiment, tmp_path)
    count = 1000
    with Cluster.of("local:2").connect() as client:
        client.wait_for_workers(2)
        warm = [
            client.submit(compute, experiment.canonical(), str(tmp_path), (), key=f"w{i}")
            for i in range(20)
        ]
        assert {one.end for one in client.gather(warm)} == {"done"}
        start = time.perf_counter()
        tasks = [
            client.submit(compute, experiment.canonical(), str(tmp_path), (), key=f"t{i}")
            for i in range(count)
        ]
        assert {one.end for one in client.gather(tasks)} == {"done"}
        report(
            "scheduler and lookup: a task",
            1e3 * (time.perf_counter() - start) / count,
            "ms",
            cores=os.cpu_count(),
        )
    big = lf.Sweep(experiment, {"coupling[1]": [0.5 + i / 1000 for i in range(16)]}, seeds=16)
    report("text of a task of 256 points", float(len(big.ensembles()[0].text)), "B")


def test_a_million_points_are_divided(report):
    """Naming a million points and the ensembles they run in, before anything is computed."""
    start = time.perf_counter()
    sweep = lf.Sweep(lf.Experiment(), {"gain": [1 + i / 100 for i in range(1000)]}, seeds=1000)
    ensembles = sweep.ensembles()
    report(
        "a million points: dividing them into ensembles",
        time.perf_counter() - start,
        "s",
        entries=len(ensembles),
    )
    start = time.perf_counter()
    for one in ensembles[:20]:
        assert one.digest
    report("  making one of them, with its digest", 1e3 * (time.perf_counter() - start) / 20, "ms")
    report("  how many there are", float(len(ensembles)), "runs")
