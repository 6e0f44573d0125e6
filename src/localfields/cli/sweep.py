"""`localfields sweep`: an experiment over values of its fields and over seeds, here or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._spec import Count, registered
from ._options import option, run_command, run_one_of, use_compilation_cache, with_options
from ._run import experiment_options, joined, read_experiment

OPTIONS = {
    "seeds": option(str, "1", "how many seeds, from --seed on", "INT"),
    "together": option(
        str, "grid", "grid: every combination of values; list: first with first, …", "NAME"
    ),
    "chunk": option(
        str,
        "256",
        "points that run together at most: what is resumed, and a task of a cluster",
        "INT",
    ),
}
RUN_OPTIONS = {
    "store": option(str, "", "folder of results; otherwise $LOCALFIELDS_STORE, or runs", "PATH"),
    "cluster": option(
        str, "", "local:2, tcp://host:8786, or slurm:4,queue=…,walltime=…,memory=…", "WHERE"
    ),
    "dry_run": option(
        bool, False, "say what would run, with the job script of a slurm cluster, and stop"
    ),
    "out": option(
        str, "", "file to write: .nc (netCDF), all points on the axes of the sweep", "PATH"
    ),
    "table": option(str, "", "file to write: .csv, one row a point", "PATH"),
    "overwrite": option(bool, False, "replace files that exist"),
}
MOST_ROWS = 20  # of the table in the terminal

ABOUT = """Repeat an experiment over values of its options and over seeds. Any option of `localfields run` takes

  linspace:FROM:TO:COUNT   logspace:FROM:TO:COUNT   range:FROM:TO[:STEP]   values:A:B:C

(both ends are included; those of logspace are the values themselves). Commas keep their meaning, one value a class:
--xi 1,3 is one pair, --xi 1,range:2:5 varies that of the second class, --xi values:1,3:0.3,0.7 takes two pairs.

  localfields sweep nlgp --xi 1,3 --gain logspace:0.1:10:10 --seeds 30 --cluster local:2

or from a file, localfields sweep FILE.toml (or .json): an experiment as for `localfields run`, with

  seeds = 30
  [axes]
  gain = "logspace:0.1:10:10"

Points that differ in numbers and seeds alone run together. Every one is kept in the store: the same command computes
what is missing."""


def run(argv: Sequence[str]) -> None:
    """Read a file, or offer every registered stimulus."""
    from ..experiments import Sweep

    if argv and argv[0].endswith((".toml", ".json")):
        from ..experiments.document import read_sweep

        def of_file(**values: Any) -> None:
            _sweep(read_sweep(argv[0]), **values)

        run_command(
            with_options(of_file, RUN_OPTIONS, Sweep), argv[1:], f"localfields sweep {argv[0]}"
        )
        return
    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields sweep", "stimulus", ABOUT)


def _command(cls: Any) -> Any:
    from ..experiments import Sweep

    parts = experiment_options(cls)
    del parts["method"]["members"]  # a seed is a member
    own = joined(parts)

    def command(**values: Any) -> None:
        axes = {}
        for part, options in parts.items():
            for name in options:
                values[name], found = _axes(f"{part}.{name}" if part else name, values[name])
                axes |= found
        base = read_experiment(cls, own, values)
        seeds, chunk = (
            Count(high=10**7).parse(name, values.pop(name)) for name in ("seeds", "chunk")
        )
        _sweep(Sweep(base, axes, seeds, values.pop("together"), chunk), **values)

    return with_options(command, {**own, **OPTIONS, **RUN_OPTIONS}, cls)


def _axes(path: str, text: str) -> tuple[str, dict[str, list[Any]]]:
    """What an option gives to the experiment itself, and the axes that it adds to the sweep."""
    from ..experiments.values import is_spread, spread

    if is_spread(text) and text.startswith("values:"):
        found = spread(text)
        return _text(found[0]), {path: found}
    parts = text.split(",")
    if not any(is_spread(part) for part in parts):
        return text, {}
    if len(parts) == 1:
        found = spread(text)
        return _text(found[0]), {path: found}
    axes = {f"{path}[{place}]": spread(part) for place, part in enumerate(parts) if is_spread(part)}
    first = [
        _text(axes[f"{path}[{place}]"][0]) if is_spread(part) else part
        for place, part in enumerate(parts)
    ]
    return ",".join(first), axes


def _text(value: Any) -> str:
    return ",".join(_text(one) for one in value) if isinstance(value, list) else str(value)


def _sweep(
    sweep: Any, store: str, cluster: str, dry_run: bool, out: str, table: str, overwrite: bool
) -> None:
    from .._files import check_target, publish
    from ..experiments import run_sweep, stored_points
    from ..experiments.cluster import Cluster
    from ..store import Store

    targets = [Path(name) if name else None for name in (out, table)]
    for target, suffix in zip(targets, (".nc", ".csv"), strict=True):
        if target is not None:
            check_target(target, (suffix,), overwrite)
    use_compilation_cache()
    where, place = Store(store or None), Cluster.of(cluster) if cluster else None
    ensembles = sweep.ensembles()
    what = f"{len(sweep)} points in {len(ensembles)} {'run' if len(ensembles) == 1 else 'runs'}"
    if dry_run:
        print(f"{what}; {stored_points(sweep, where)} points are in {where.path}")
        if place is not None and place.kind == "slurm":
            print(place.job_script(), end="")
        return
    with _Bar(what) as bar:
        found = run_sweep(sweep, where, cluster=place, on_progress=bar.show)
    for target, write in zip(
        targets, (lambda path: _write(path, found), found.write_csv), strict=True
    ):
        if target is not None:
            publish(target, write)
            print(f"wrote {target}")
    _tell(found, where)


def _write(path: str | Path, found: Any) -> None:
    found.dataset().to_netcdf(path, engine="scipy")


def _tell(found: Any, where: Any) -> None:
    """Print how it went; exit code 130 when it was interrupted, 1 when points failed."""
    _print_table(found)
    computed = sum(len(one.points) for one in found.parts)
    print(
        f"{computed} of {len(found.sweep)} points in {where.path}; {found.found} were there before"
    )
    for one in found.failures[:5]:
        first = ", ".join(
            f"{name} {value}" for name, value in found.sweep.values(one.points[0])[0].items()
        )
        many = f" and {len(one.points) - 1} more" if len(one.points) > 1 else ""
        print(f"localfields: failed: {first}{many}: {one.message}", file=sys.stderr)
    if len(found.failures) > 5:
        print(f"localfields: and {len(found.failures) - 5} more failed.", file=sys.stderr)
    if found.stopped == "cancelled":
        print("interrupted; the same command goes on from there.", file=sys.stderr)
        sys.exit(130)
    if found.failures:
        sys.exit(1)


def _print_table(found: Any) -> None:
    """Mean and extremes of the final IPR over seeds, for every combination of values."""
    from rich.console import Console
    from rich.table import Table

    groups: dict[str, list[Any]] = {}
    rows = found.table()
    names = found.sweep.labels
    for row in rows:
        groups.setdefault(repr([row[name] for name in names]), []).append(row)
    table = Table(*names, "ended", "IPR", "from", "to", "localized")
    for group in list(groups.values())[:MOST_ROWS]:
        ipr = [row["ipr"] for row in group if row["outcome"] == "ok"]
        local = [row["localized"] for row in group if row["outcome"] == "ok"]
        shown = (
            [f"{sum(ipr) / len(ipr):.3f}", f"{min(ipr):.3f}", f"{max(ipr):.3f}"]
            if ipr
            else ["", "", ""]
        )
        part = f"{sum(local) / len(local):.0%}" if local else ""
        values = [_short(group[0][name]) for name in names]
        table.add_row(*values, f"{len(ipr)} of {len(group)}", *shown, part)
    Console().print(table)
    if len(groups) > MOST_ROWS:
        print(f"and {len(groups) - MOST_ROWS} more: --table FILE.csv writes them all")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_short(one) for one in value)
    if isinstance(value, dict):  # of a network, say
        return str(value["type"]).rpartition("/")[2]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Bar:
    """Points done and time left, where somebody looks."""

    def __init__(self, what: str):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self.bar = (
            Progress(*columns, console=console, transient=True) if console.is_terminal else None
        )
        self.task = None if self.bar is None else self.bar.add_task(what, total=None, left="")

    def __enter__(self) -> _Bar:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, progress: Any) -> None:
        """Move it."""
        if self.bar is None or self.task is None:
            return
        left = f"{_duration(progress.seconds_left)} left" if progress.rate else "compiling"
        left += f", {progress.failed} failed" if progress.failed else ""
        self.bar.update(self.task, completed=int(progress.done), total=progress.total, left=left)


def _duration(seconds: float) -> str:
    """Such as 12 s, 3 min, 2.5 h."""
    for unit, size in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 100 * size or unit == "h":
            return f"{seconds / size:.0f} {unit}" if unit != "h" else f"{seconds / size:.1f} h"
    return ""
