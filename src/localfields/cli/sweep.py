"""`localfields sweep`: an experiment over values of its fields and over seeds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .._spec import Count, registered
from .._start import use_compilation_cache
from ..errors import InputError
from ._data import experiment_from_files, experiment_groups, leading_files
from ._options import OVERWRITE, STORE, Command, Option, run_command, run_one_of
from ._run import Groups, experiment_from_options, experiment_options

OPTIONS = {
    "seeds": Option("how many seeds, from --seed on", "INT", default="1"),
    "together": Option(
        "grid: every combination of values; list: first with first, …", "NAME", default="grid"
    ),
    "chunk": Option(
        "most points that run together; each chunk is a job on a cluster", "INT", default="256"
    ),
}
RUN_OPTIONS = {
    "store": STORE,
    "cluster": Option(
        "local:2, tcp://host:8786, or slurm:4,queue=…,walltime=…,memory=…", "WHERE", default=""
    ),
    "dry_run": Option(
        "say what would run, with the job script of a slurm cluster, and stop", default=False
    ),
    "out": Option(
        "file to write: .nc (netCDF), all points on the axes of the sweep", "PATH", default=""
    ),
    "table": Option("file to write: .csv, one row per point", "PATH", default=""),
    "overwrite": OVERWRITE,
}
MOST_ROWS = 20  # of the table in the terminal

# Where the options of each group are in an experiment: the axis of `--gain` is `stimuli.gain`.
PATHS = {"stimulus": "stimuli.", "task": "task.", "network": "network.", "training": "method."}

ABOUT = """Repeat an experiment over values of its options and over seeds. Any option of
`localfields run` takes

  linspace:FROM:TO:COUNT   logspace:FROM:TO:COUNT   range:FROM:TO[:STEP]   values:A:B:C

Both ends are included; those of logspace are the values themselves. Commas keep their meaning, one
value per class: --xi 1,3 is one pair, --xi 1,range:2:5 varies that of the second class, and
--xi values:1,3:0.3,0.7 takes two pairs. A table says what varies over points and what differs
between classes before anything runs; --dry-run stops there. IPR over gain × ξ₁:

  localfields sweep nlgp --gain logspace:0.1:100:7 --xi 1,range:2:5 --seeds 5

or on files of your own data,

  localfields sweep short.npy long.npy --learning-rate logspace:0.01:0.1:3

or from a file, localfields sweep FILE.toml (or .json): an experiment as for `localfields run`, with

  seeds = 30
  [axes]
  gain = "logspace:0.1:10:10"

Points that differ only in numbers and seeds run together. Every point is stored; the same command
computes what is missing."""


def run(argv: Sequence[str]) -> None:
    """Read a file, or offer every registered stimulus."""
    if argv and argv[0].endswith((".toml", ".json")):
        from ..experiments.document import read_sweep

        about = f"Run the sweep of {argv[0]} and store its results."
        command = Command(
            lambda **values: _sweep(read_sweep(argv[0]), **values), {"output": RUN_OPTIONS}, about
        )
        run_command(command, argv[1:], f"localfields sweep {argv[0]}")
        return
    if files := leading_files(argv, list(registered("stimulus"))):
        run_command(
            _file_command(files), argv[len(files) :], f"localfields sweep {' '.join(files)}"
        )
        return
    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields sweep", "stimulus", ABOUT)


def _command(cls: Any) -> Command:
    groups = experiment_options(cls)

    def read(values: dict[str, Any]) -> Any:
        return experiment_from_options(cls, groups, values)

    return _sweep_command(groups, read, cls.__doc__)


def _file_command(files: list[str]) -> Command:
    from ..stimuli import Samples

    groups = experiment_groups()

    def read(values: dict[str, Any]) -> Any:
        return experiment_from_files(files, groups, values)

    return _sweep_command(groups, read, Samples.__doc__ or "")


def _sweep_command(groups: Groups, read: Callable[[dict[str, Any]], Any], about: str) -> Command:
    from ..experiments import Sweep

    del groups["training"]["members"]  # a seed is a member

    def command(**values: Any) -> None:
        axes = {}
        for title, options in groups.items():
            if title == "data":
                continue  # files and what is made of them are the same at every point
            for name in [name for name in options if name in values]:
                path = f"{PATHS.get(title, '')}{name}"
                values[name], option_axes = _axes(path, values[name])
                axes |= option_axes
        base = read(values)
        seeds, chunk = (
            Count(high=10**7).parse(name, values.pop(name)) for name in ("seeds", "chunk")
        )
        if not axes and seeds == 1:
            raise InputError(
                "Nothing varies in this sweep. A comma separates classes; give several values as "
                "in --gain values:0.1:100 or --xi 1,range:2:5, or give --seeds."
            )
        _sweep(Sweep(base, axes, seeds, values.pop("together"), chunk), **values)

    return Command(command, {**groups, "sweep": OPTIONS, "output": RUN_OPTIONS}, about)


def _axes(path: str, text: str) -> tuple[str, dict[str, list[Any]]]:
    """The value of an option in the base experiment, and the axes that it adds to the sweep."""
    from ..experiments.values import is_value_list, value_list

    parts = text.split(",")
    # The values of `values:1,3:0.3,0.7` have commas of their own.
    if is_value_list(text) and (text.startswith("values:") or len(parts) == 1):
        values = value_list(text)
        return _text(values[0]), {path: values}
    axes = {
        f"{path}[{place}]": value_list(part)
        for place, part in enumerate(parts)
        if is_value_list(part)
    }
    first = [
        _text(axes[f"{path}[{place}]"][0]) if is_value_list(part) else part
        for place, part in enumerate(parts)
    ]
    return ",".join(first), axes


def _text(value: Any) -> str:
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def _sweep(
    sweep: Any, store: str, cluster: str, dry_run: bool, out: str, table: str, overwrite: bool
) -> None:
    from .._files import check_target, publish
    from ..experiments import run_sweep, stored_points
    from ..experiments.cluster import Cluster
    from ..experiments.plan import PLAN_COLUMN
    from ..store import Store

    for name, suffix in ((out, ".nc"), (table, ".csv")):
        if name:
            check_target(Path(name), (suffix,), overwrite)
    use_compilation_cache()
    results, workers = Store(store or None), Cluster.of(cluster) if cluster else None
    plan = sweep.plan()
    size = f"{plan.points} points in {plan.runs} {'run' if plan.runs == 1 else 'runs'}"
    print(plan)
    if dry_run:
        stored = stored_points(sweep, results)
        print(f"{'stored':<{PLAN_COLUMN}} {stored} of {plan.points}, in {results.path}")
        if workers is not None and workers.kind == "slurm":
            print(workers.job_script(), end="")
        return
    with sweep_bar(size) as bar:
        result = run_sweep(
            sweep, results, cluster=workers, on_progress=lambda progress: update(bar, progress)
        )
    if out:
        publish(Path(out), lambda path: result.dataset().to_netcdf(path, engine="scipy"))
        print(f"wrote {out}")
    if table:
        publish(Path(table), result.write_csv)
        print(f"wrote {table}")
    _print_table(result)
    _report(result, results.path)


def _report(result: Any, path: Path) -> None:
    """Print how it went; exit code 130 if it was interrupted, 1 if points failed."""
    computed = sum(len(part.points) for part in result.parts)
    print(f"{computed} of {len(result.sweep)} points in {path}; {result.reused} were there before")
    for failure in result.failures[:5]:
        values = result.sweep.values(failure.points[0])[0]
        first = ", ".join(f"{name} {value}" for name, value in values.items())
        more = f" and {len(failure.points) - 1} more" if len(failure.points) > 1 else ""
        print(f"localfields: failed: {first}{more}: {failure.message}", file=sys.stderr)
    if len(result.failures) > 5:
        print(f"localfields: and {len(result.failures) - 5} more failed.", file=sys.stderr)
    if result.stopped == "cancelled":
        print("interrupted; the same command resumes it.", file=sys.stderr)
        sys.exit(130)
    if result.failures:
        sys.exit(1)


def _print_table(result: Any) -> None:
    """Mean and extremes of the final IPR over seeds, for every combination of values."""
    from rich.console import Console
    from rich.table import Table

    groups: dict[str, list[Any]] = {}
    names = result.sweep.labels
    for row in result.table():
        groups.setdefault(repr([row[name] for name in names]), []).append(row)
    table = Table(*names, "ended", "IPR", "from", "to", "localized")
    for group in list(groups.values())[:MOST_ROWS]:
        ended = [row for row in group if row["outcome"] == "ok"]
        cells = ["", "", "", ""]
        if ended:
            ipr = [row["ipr"] for row in ended]
            localized = sum(row["localized"] for row in ended) / len(ended)
            cells = [f"{value:.3f}" for value in (sum(ipr) / len(ipr), min(ipr), max(ipr))]
            cells.append(f"{localized:.0%}")
        values = [_short(group[0][name]) for name in names]
        table.add_row(*values, f"{len(ended)} of {len(group)}", *cells)
    Console().print(table)
    if len(groups) > MOST_ROWS:
        print(f"and {len(groups) - MOST_ROWS} more: --table FILE.csv writes them all")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_short, value))
    if isinstance(value, dict):  # a specification, such as a network
        return str(value["type"]).rpartition("/")[2]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def sweep_bar(text: str) -> Any:
    """A bar of points done, with the time left; shown on terminals only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    bar.add_task(text, total=None, left="")
    return bar


def update(bar: Any, progress: Any) -> None:
    """Move the bar of a sweep."""
    from ..experiments.plan import duration

    left = f"{duration(progress.seconds_left)} left" if progress.rate else "compiling"
    left += f", {progress.failed} failed" if progress.failed else ""
    bar.update(bar.task_ids[0], completed=int(progress.done), total=progress.total, left=left)
