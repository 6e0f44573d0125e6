"""What it costs that a run can never be lost: checkpoints, the lock, and the result written down
to the disk.
"""

from __future__ import annotations

import itertools

from conftest import interleaved, ratio

import localfields as lf


def test_overhead_of_the_store(tmp_path, report, monkeypatch):
    """A run of some seconds with a record every ten steps, and a checkpoint every two seconds in
    place of ten.
    """
    monkeypatch.setattr("localfields.training.loop.CHECKPOINT_INTERVAL", 2.0)
    task = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=100) for xi in (1.0, 3.0)))
    method = lf.Training(steps=6500, batch=1000, members=5)
    seeds = itertools.count()

    def made():
        return lf.Experiment(task, method=method.replace(seed=next(seeds)))

    calls = {
        "stored": lambda: lf.run_or_load(made(), tmp_path).final,
        "alone": lambda: made().run().final,
    }
    times = interleaved(calls, 4)
    assert min(times["alone"]) > 4, times
    alone = sorted(times["alone"])[2]
    report(
        "store: a run through run_or_load / the same by train",
        ratio(times, "stored", "alone"),
        limit=1.05,
        s=alone,
    )
