"""What a sweep is going to do: what varies, what differs between classes, how many runs."""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import TYPE_CHECKING, Any

from .._memory import Memory
from ..errors import InputError
from .classes import class_differences
from .experiment import Training

if TYPE_CHECKING:
    from .sweep import Ensemble, Sweep

PLAN_COLUMN = 19  # width of the labels of the table
SHOWN = 8  # values of an axis in the table
COMPILE_SECONDS = 5.0  # of one program, about
# Time of a training step in units of its random normals, and its least time, for one member: found
# to be right within a factor of three for rings and tori, one neuron and committees.
COST_OF_A_NUMBER = 2.0
LEAST_SECONDS = 15e-6


@dataclasses.dataclass(frozen=True)
class SweepPlan:
    """What a sweep is going to do. Printed, it is a table.

    Args:
        varies: Values of every field that varies over points.
        differs: Fields in which classes differ: one value per class, a tuple where it varies.
        seeds: Number of seeds.
        points: Number of points: combinations of values, times the seeds.
        runs: Number of runs in which they are computed together.
        seconds: About how long it takes on this machine, within a factor of three or so; None for
            a theory or a baseline.
        memory: What the largest run needs, estimated; None for a theory or a baseline.
    """

    varies: dict[str, tuple[Any, ...]]
    differs: dict[str, list[Any]]
    seeds: int
    points: int
    runs: int
    seconds: float | None
    memory: Memory | None

    def rows(self) -> list[tuple[str, str]]:
        """The table: labels and texts."""
        rows = [("varies over points", f"{name}: {_values(v)}") for name, v in self.varies.items()]
        if self.seeds > 1:
            rows.append(("varies over points", f"seed: {self.seeds} seeds"))
        for name, values in self.differs.items():
            classes = (f"{_values(value)} in class {number}" for number, value in enumerate(values))
            rows.append(("differs by class", f"{name}: {'; '.join(classes)}"))
        runs = f"{self.runs} {'run' if self.runs == 1 else 'runs'}"
        rows.append(("points", f"{self.points} in {runs}"))
        if self.seconds is not None:
            rows.append(("time", f"about {duration(self.seconds)}"))
        if self.memory is not None:
            rows.append(("memory", str(self.memory)))
        labels = [label for label, _ in rows]
        return [
            ("" if place and labels[place - 1] == label else label, text)
            for place, (label, text) in enumerate(rows)
        ]

    def __str__(self) -> str:
        """The table as text."""
        return "\n".join(f"{label:<{PLAN_COLUMN}} {text}" for label, text in self.rows())


def plan_sweep(sweep: Sweep) -> SweepPlan:
    """The plan of a sweep."""
    values = (tuple(values) for _, values in sweep.axes)
    ensembles = sweep.ensembles()
    return SweepPlan(
        varies=dict(zip(sweep.labels, values, strict=True)),
        differs=class_differences(sweep),
        seeds=len(sweep.seeds),
        points=len(sweep),
        runs=len(ensembles),
        seconds=_seconds(sweep, [len(ensemble.points) for ensemble in ensembles]),
        memory=_memory(max(ensembles, key=lambda ensemble: len(ensemble.points))),
    )


def _memory(ensemble: Ensemble) -> Memory | None:
    """What a run needs."""
    try:
        experiment = ensemble.experiment
    except InputError:  # its values do not fit together, which is told when it runs
        return None
    method = experiment.method
    if not isinstance(method, Training):
        return None
    return method.memory(experiment.task, experiment.network)


def _seconds(sweep: Sweep, sizes: list[int]) -> float | None:
    """About the time of all runs; what changes their size is taken from the base experiment."""
    method, task = sweep.base.method, sweep.base.task
    if not isinstance(method, Training):
        return None
    numbers = method.batch * task.size * (1 + sweep.base.network.hidden / 20)
    step = max(LEAST_SECONDS, COST_OF_A_NUMBER * numbers * _seconds_per_normal())
    members = len(sizes) if method.estimator == "shared" else sum(sizes)
    return COMPILE_SECONDS * len(set(sizes)) + method.steps * members * step


@functools.cache
def _seconds_per_normal() -> float:
    """What a random number takes on this machine."""
    import jax

    from .._prng import make_key

    count = 2**18
    draw = jax.jit(lambda key: jax.random.normal(key, (count,)).sum())
    seconds = []
    for seed in range(4):
        clock = time.perf_counter()
        draw(make_key(seed)).block_until_ready()
        seconds.append(time.perf_counter() - clock)
    return min(seconds) / count


def duration(seconds: float) -> str:
    """Such as 12 s, 3 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _values(value: Any) -> str:
    if not isinstance(value, tuple):
        return _text(value)
    if len(value) <= SHOWN:
        return ", ".join(map(_text, value))
    return f"{_text(value[0])}, {_text(value[1])}, …, {_text(value[-1])} ({len(value)} values)"


def _text(value: Any) -> str:
    """A value in its JSON form, in few characters."""
    if isinstance(value, list):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, dict):  # a specification, such as a network
        return str(value.get("type", value)).rpartition("/")[2]
    return f"{value:.4g}" if isinstance(value, float) else str(value)
