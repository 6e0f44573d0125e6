"""What came of a sweep: one labelled dataset, and one row a point."""

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
        found: How many points were in the store before.
        seconds: What the rest took.
        stopped: `finished` or `cancelled`.
    """

    sweep: Sweep
    store: Store
    parts: tuple[Ensemble, ...]
    failures: tuple[Failure, ...]
    found: int
    seconds: float
    stopped: str

    @property
    def complete(self) -> bool:
        """Whether every point was computed."""
        return sum(len(one.points) for one in self.parts) == len(self.sweep)

    def dataset(self, over_time: bool = True) -> Any:
        """Everything as one `xarray.Dataset` on the sweep's axes; what is missing is nan.

        Args:
            over_time: Whether to include IPR, loss and accuracy at every record.

        Returns:
            At the end: `ipr` and `peak` of every neuron, `loss`, `accuracy`, `outcome`; over time `ipr_over_time`, ….
        """
        import xarray as xr

        gathered = _Gathered(len(self.sweep))
        for part in self.parts:
            run = self.store.load(part.digest)
            for name, (axes, values) in {
                **at_the_end(run),
                **(_over_time(run) if over_time else {}),
            }.items():
                gathered.add(name, part.points, axes, values, run.steps)
        dims, shape = self.sweep.dims, self.sweep.shape
        data = {
            name: ((*dims, *axes), whole.reshape(*shape, *whole.shape[1:]))
            for name, axes, whole in gathered.whole()
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
            coordinates[label] = (
                label if label in dims else "point",
                np.array([_cell(one) for one in values]),
            )
        return xr.Dataset(
            data,
            coords=coordinates,
            attrs={"sweep": self.sweep.canonical(), "stopped": self.stopped},
        )

    @functools.cached_property
    def _rows(self) -> list[dict[str, Any]]:
        rows = [{**one, "outcome": MISSING} for one in self.sweep.values(range(len(self.sweep)))]
        for one in self.failures:
            for index in one.points:
                rows[index]["outcome"] = "failed"
                rows[index]["message"] = one.message
        for part in self.parts:
            run = self.store.load(part.digest)
            ends, size = at_the_end(run), int(np.prod(run.shape))
            for member, index in enumerate(part.points):
                ipr = ends["ipr"][1][member]
                numbers = {
                    name: values[member] for name, (axes, values) in ends.items() if not axes
                }
                row = {"outcome": str(numbers.pop("outcome")), "ipr": float(ipr.mean())}
                row |= {"localized": float(np.mean(ipr > localized_from(size)))}
                row |= {name: float(value) for name, value in numbers.items()}
                rows[index] |= {**row, "run": part.digest, "member": member}
        return rows

    def table(self) -> list[dict[str, Any]]:
        """One row a point.

        Its values and seed, `outcome`, mean `ipr` of its neurons, the fraction `localized`, `loss`, `accuracy`,
        and where its trajectory is: `run`, a digest of the store, and `member`.
        """
        return [dict(row) for row in self._rows]

    def write_csv(self, path: str | Path) -> None:
        """Write the table, with one line of names."""
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            for row in self._rows:
                writer.writerow({name: _cell(one) for name, one in row.items()})

    def __repr__(self) -> str:
        """What it is, in a line."""
        computed = sum(len(one.points) for one in self.parts) - self.found
        failed = sum(len(one.points) for one in self.failures)
        return (
            f"SweepResult: {len(self.sweep)} points in {len(self.parts)} runs, {self.stopped}; {self.found} found, "
            f"{computed} computed in {self.seconds:.1f} s, {failed} failed"
        )


def _cell(value: Any) -> int | float | str:
    """A number or a text: what is neither is written as one."""
    if isinstance(value, (int, float, str)):
        return value
    if isinstance(value, list) and all(isinstance(one, (int, float)) for one in value):
        return ",".join(f"{one:g}" for one in value)
    return json.dumps(value, ensure_ascii=False)


def at_the_end(run: Trajectory) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """What a sweep keeps of each member's end, with the names of axes after the member's."""
    axes = len(run.shape)
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "ipr": (("neuron",), inverse_participation_ratio(run.final, axes)),
        "peak": (
            ("neuron",) if axes == 1 else ("neuron", "coordinate"),
            peak_position(run.final, axes),
        ),
        "outcome": ((), np.array([str(one) for one in run.outcome])),
    }
    for name in ("loss", "accuracy"):
        if name in run.series:
            found[name] = ((), run.series[name][:, -1])
    return found | {f"{name}_time": ((), when) for name, when in run.events.items()}


def _over_time(run: Trajectory) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    times = np.broadcast_to(run.times, (run.num_members, len(run.steps)))
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {"flow_time": (("step",), times)}
    for name in ("loss", "accuracy"):
        if name in run.series:
            found[f"{name}_over_time"] = (("step",), run.series[name])
    if "ipr" in run.series or "weights" in run.series:
        found["ipr_over_time"] = (("step", "neuron"), run.ipr)
    return found


class _Gathered:
    """Arrays of many ensembles, put in their places of one array a name; shorter ones are filled up."""

    def __init__(self, count: int):
        self.count = count
        self.pieces: dict[
            tuple[str, tuple[str, ...]], list[tuple[Any, np.ndarray, np.ndarray]]
        ] = {}
        self.steps: list[int] = []

    def add(
        self, name: str, points: Any, axes: tuple[str, ...], values: np.ndarray, steps: np.ndarray
    ) -> None:
        """Take a piece."""
        self.pieces.setdefault((name, axes), []).append((list(points), values, steps))
        if "step" in axes:
            self.steps = sorted({*self.steps, *steps.tolist()})

    def whole(self) -> Any:
        """Yield name, axes and array. Of a name with two kinds of axes (a ring and a torus) the first is kept."""
        names = set()
        for (name, axes), pieces in self.pieces.items():
            if name in names:
                continue
            names.add(name)
            inner = [
                max(values.shape[place] for _, values, _ in pieces)
                for place in range(1, 1 + len(axes))
            ]
            inner = [
                len(self.steps) if axis == "step" else n
                for axis, n in zip(axes, inner, strict=True)
            ]
            yield name, axes, self._filled(axes, inner, pieces)

    def _filled(self, axes: tuple[str, ...], inner: list[int], pieces: Any) -> np.ndarray:
        kind = pieces[0][1].dtype.kind
        whole = np.full(
            (self.count, *inner),
            {"U": MISSING, "i": -1}.get(kind, np.nan),
            dtype=object if kind == "U" else None,
        )
        for points, values, steps in pieces:
            places = [np.asarray(points), *(np.arange(n) for n in values.shape[1:])]
            if "step" in axes:
                places[1 + axes.index("step")] = np.searchsorted(self.steps, steps)
            whole[np.ix_(*places)] = values
        return whole.astype(str) if kind == "U" else whole
