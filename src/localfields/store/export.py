"""A stored run in a file of its own, for other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._files import check_target, publish
from ..errors import InputError, shorten
from ..trajectory import Trajectory

SUFFIXES = (".nc", ".csv", ".npz")


def export(
    trajectory: Trajectory, path: str | Path, *, digest: str = "", overwrite: bool = False
) -> None:
    """Write a trajectory as netCDF (.nc), a table (.csv, one row per member and record) or .npz.

    Args:
        trajectory: What to write.
        path: The file; its ending chooses the format.
        digest: The run's name in the store, noted in .nc and .npz.
        overwrite: Replace a file that exists.

    Raises:
        InputError: When it cannot be written.
    """
    path = Path(path)
    check_target(path, SUFFIXES, overwrite)
    write = {".nc": _netcdf, ".csv": _csv, ".npz": _npz}[path.suffix]
    publish(path, lambda part: write(trajectory, part, digest))


def _netcdf(trajectory: Trajectory, path: Path, digest: str) -> None:
    data = trajectory.to_xarray()
    data.attrs["digest"] = digest
    try:
        data.to_netcdf(path, engine="scipy")
    except (ValueError, TypeError) as error:
        raise InputError(
            f"netCDF cannot hold this run: {shorten(error)}. Export it to .npz instead."
        ) from None


def _npz(trajectory: Trajectory, path: Path, digest: str) -> None:
    texts = {
        name: json.dumps(getattr(trajectory, name), default=str)
        for name in ("experiment", "manifest")
    }
    arrays: dict[str, Any] = {
        name: getattr(trajectory, name) for name in ("steps", "times", "initial", "final")
    }
    arrays |= {f"{name}_time": when for name, when in trajectory.events.items()}
    arrays |= {
        **texts,
        "digest": digest,
        "outcome": np.array([str(outcome) for outcome in trajectory.outcome], dtype=np.str_),
    }
    np.savez(path, allow_pickle=False, **{**trajectory.series, **arrays})


def _csv(trajectory: Trajectory, path: Path, digest: str) -> None:
    columns = [
        f"{name}{place}"
        for name, values in trajectory.series.items()
        for place in _places(values.shape[2:])
    ]
    times = np.broadcast_to(trajectory.times, (trajectory.num_members, len(trajectory.steps)))
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["member", "step", "time", "outcome", *columns])
        for member, outcome in enumerate(trajectory.outcome):
            for record, step in enumerate(trajectory.steps):
                row = [values[member, record].ravel() for values in trajectory.series.values()]
                cells = [
                    str(cell) for values in row for cell in values
                ]  # as many digits as read back the same
                table.writerow([member, step, str(times[member, record]), outcome, *cells])


def _places(shape: tuple[int, ...]) -> list[str]:
    return ["".join(f".{i}" for i in place) for place in np.ndindex(*shape)]
