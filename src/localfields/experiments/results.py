"""What came of a sweep: one labelled dataset, and one row per point."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from ..store import Store
from ..trajectory import Trajectory, inverse_participation_ratio, localized_from, peak_position
from .sweep import Ensemble, Sweep

MISSING = "missing"  # the outcome of a point that failed, or was not reached

# Arrays by name: the names of their axes after that of members, and the values.
Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Failure:
    """Points that could not be computed, and why."""

    points: tuple[int, ...]
    message: str


@dataclasses.dataclass(frozen=True, eq=False)
class SweepResult:
    """The points of a sweep, as far as they are in the store.

    Args:
        sweep: What was asked for.
        store: Where the trajectories are.
        parts: The ensembles that were computed, each an entry of the store.
        failures: What could not be computed.
        reused: How many points were in the store before.
        seconds: What the rest took.
        stopped: `finished` or `cancelled`.
    """

    sweep: Sweep
    store: Store
    parts: tuple[Ensemble, ...]
    failures: tuple[Failure, ...]
    reused: int
    seconds: float
    stopped: str

    @property
    def complete(self) -> bool:
        """Whether every point was computed."""
        return sum(len(part.points) for part in self.parts) == len(self.sweep)

    def dataset(self, over_time: bool = True) -> Any:
        """Everything as one `xarray.Dataset` on the sweep's axes; what is missing is nan.

        Args:
            over_time: Whether to include IPR, loss and accuracy at every record.

        Returns:
            At the end: `ipr` and `peak` of every neuron, `loss`, `accuracy`, `outcome`; over time
            `ipr_over_time`, ….
        """
        import xarray as xr

        gathered = _Gathered(len(self.sweep))
        for part in self.parts:
            run = self.store.load(part.digest)
            arrays = {**_at_the_end(run), **(_over_time(run) if over_time else {})}
            for name, (axes, values) in arrays.items():
                gathered.add(name, part.points, axes, values, run.steps)
        dims, shape = self.sweep.dims, self.sweep.shape
        data = {
            name: ((*dims, *axes), values.reshape(*shape, *values.shape[1:]))
            for name, axes, values in gathered.arrays()
        }
        coordinates: dict[str, Any] = {"seed": list(self.sweep.seeds)}
        if gathered.steps:
            coordinates["step"] = ("step", np.array(gathered.steps))
            times = data["flow_time"][1].reshape(-1, len(gathered.steps))
            first = times[np.flatnonzero(np.isfinite(times).all(axis=1))[:1]]
            if len(first) and not (times != first)[np.isfinite(times)].any():  # the same for all
                coordinates["flow_time"] = ("step", first[0])
                del data["flow_time"]
        for label, (_, values) in zip(self.sweep.labels, self.sweep.axes, strict=True):
            cells = np.array([_cell(value) for value in values])
            coordinates[label] = (label if label in dims else "point", cells)
        notes = {"sweep": self.sweep.canonical(), "stopped": self.stopped}
        return xr.Dataset(data, coords=coordinates, attrs=notes)

    @functools.cached_property
    def _rows(self) -> list[dict[str, Any]]:
        rows = [{**row, "outcome": MISSING} for row in self.sweep.values(range(len(self.sweep)))]
        for failure in self.failures:
            for index in failure.points:
                rows[index] |= {"outcome": "failed", "message": failure.message}
        for part in self.parts:
            run = self.store.load(part.digest)
            ends, size = _at_the_end(run), int(np.prod(run.shape))
            for member, index in enumerate(part.points):
                ipr = ends["ipr"][1][member]
                numbers = {
                    name: values[member] for name, (axes, values) in ends.items() if not axes
                }
                rows[index] |= {
                    "outcome": str(numbers.pop("outcome")),
                    "ipr": float(ipr.mean()),
                    "localized": float(np.mean(ipr > localized_from(size))),
                    **{name: float(value) for name, value in numbers.items()},
                    "run": part.digest,
                    "member": member,
                }
        return rows

    def table(self) -> list[dict[str, Any]]:
        """One row per point.

        Its values and seed, `outcome`, mean `ipr` of its neurons, the fraction `localized`, `loss`,
        `accuracy`, and where its trajectory is: `run`, a digest of the store, and `member`.
        """
        return [dict(row) for row in self._rows]

    def write_csv(self, path: str | Path) -> None:
        """Write the table, with one line of names."""
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            for row in self._rows:
                writer.writerow({name: _cell(value) for name, value in row.items()})

    def __repr__(self) -> str:
        computed = sum(len(part.points) for part in self.parts) - self.reused
        failed = sum(len(failure.points) for failure in self.failures)
        return (
            f"SweepResult: {len(self.sweep)} points in {len(self.parts)} runs, {self.stopped}; "
            f"{self.reused} reused, {computed} computed in {self.seconds:.1f} s, {failed} failed"
        )


def _cell(value: Any) -> int | float | str:
    """A number or a text; anything else becomes a text."""
    if isinstance(value, (int, float, str)):
        return value
    if isinstance(value, list) and all(isinstance(item, (int, float)) for item in value):
        return ",".join(f"{item:g}" for item in value)
    return json.dumps(value, ensure_ascii=False)


def _at_the_end(run: Trajectory) -> Arrays:
    """What a sweep keeps of each member's end."""
    axes = len(run.shape)
    arrays: Arrays = {
        "ipr": (("neuron",), inverse_participation_ratio(run.final, axes)),
        "peak": (
            ("neuron",) if axes == 1 else ("neuron", "coordinate"),
            peak_position(run.final, axes),
        ),
        "outcome": ((), np.array([str(outcome) for outcome in run.outcome])),
    }
    for name in ("loss", "accuracy"):
        if name in run.series:
            arrays[name] = ((), run.series[name][:, -1])
    return arrays | {f"{name}_time": ((), times) for name, times in run.events.items()}


def _over_time(run: Trajectory) -> Arrays:
    times = np.broadcast_to(run.times, (run.num_members, len(run.steps)))
    arrays: Arrays = {"flow_time": (("step",), times)}
    for name in ("loss", "accuracy"):
        if name in run.series:
            arrays[f"{name}_over_time"] = (("step",), run.series[name])
    if "ipr" in run.series or "weights" in run.series:
        arrays["ipr_over_time"] = (("step", "neuron"), run.ipr)
    return arrays


class _Gathered:
    """Arrays of many ensembles, put into one array per name; shorter ones are filled up."""

    def __init__(self, count: int):
        self.count = count
        self.pieces: dict[tuple[str, tuple[str, ...]], list[Any]] = {}
        self.steps: list[int] = []

    def add(
        self, name: str, points: Any, axes: tuple[str, ...], values: np.ndarray, steps: np.ndarray
    ) -> None:
        """Take a piece."""
        self.pieces.setdefault((name, axes), []).append((list(points), values, steps))
        if "step" in axes:
            self.steps = sorted({*self.steps, *steps.tolist()})

    def arrays(self) -> Any:
        """Yield name, axes and array; of a name with two kinds of axes (ring and torus) one."""
        seen = set()
        for (name, axes), pieces in self.pieces.items():
            if name in seen:
                continue
            seen.add(name)
            shape = [self.count]
            for place, axis in enumerate(axes, start=1):
                longest = max(values.shape[place] for _, values, _ in pieces)
                shape.append(len(self.steps) if axis == "step" else longest)
            kind = pieces[0][1].dtype.kind
            filler: Any = {"U": MISSING, "i": -1}.get(kind, np.nan)
            array = np.full(shape, filler, dtype=object if kind == "U" else None)
            for points, values, steps in pieces:
                places = [np.asarray(points), *(np.arange(n) for n in values.shape[1:])]
                if "step" in axes:
                    places[1 + axes.index("step")] = np.searchsorted(self.steps, steps)
                array[np.ix_(*places)] = values
            yield name, axes, array.astype(str) if kind == "U" else array
