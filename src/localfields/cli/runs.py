"""`localfields runs`: list, show, export, verify and remove stored runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, printable, shorten
from ._options import OVERWRITE, STORE, Command, Option, run_one_of

LONGEST_TABLE = 1000  # that are drawn as a table: laying out more takes seconds
LONGEST_CELL = 200  # characters

RUN = Option("a run's digest, or the start of it", "RUN", positional="1")
RUNS = Option("digests or their starts", "RUN", positional="*")


def run(argv: Sequence[str]) -> None:
    """Offer what can be done with stored runs."""
    about = "Stored runs. Each is named by its digest, of which the first digits are enough."
    run_one_of(ACTIONS, argv, "localfields runs", "action", about)


def show_list(filters: Sequence[str], store: str) -> None:
    """List the runs of a store, all or those that pass every filter.

    A filter names any field of a run's experiment, metrics or manifest, bare or dotted, and
    compares it by = != < <= > or >=:

      localfields runs list gain=100 estimator=orbit 'steps>=1000' 'ipr>0.3'
    """
    from rich.console import Console

    results = _store(store)
    entries = results.list(filters)
    if not entries:
        print(f"no {'such ' if filters else ''}runs in {results.path}")
        return
    rows = [_row(entry) for entry in entries]
    console = Console()
    if console.is_terminal and len(rows) <= LONGEST_TABLE:
        from rich.table import Table
        from rich.text import Text

        table = Table(*rows[0])
        for row in rows:
            table.add_row(*map(Text, row.values()))  # as it is: brackets are no markup
        console.print(table)
    else:
        cells = [list(rows[0]), *(list(row.values()) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)
        sys.stdout.write("\n".join(lines) + "\n")
    print(f"{_count(entries)} in {results.path}", file=sys.stderr)


def show(run: str, store: str) -> None:
    """Print a run's experiment, metrics and manifest, as JSON."""
    from rich.console import Console
    from rich.highlighter import JSONHighlighter

    results = _store(store)
    entry = results.entry(results.find(run))
    document = {
        "digest": entry.digest,
        "path": str(results.path / entry.digest),
        "created": entry.created,
        "experiment": entry.experiment,
        "metrics": entry.metrics,
        "manifest": entry.manifest,
    }
    text = printable(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
    console = Console()
    if console.is_terminal:
        console.print(JSONHighlighter()(text), soft_wrap=True)
    else:
        print(text)


def remove(runs: Sequence[str], store: str, yes: bool) -> None:
    """Remove runs from a store, after asking."""
    results = _store(store)
    digests = list(dict.fromkeys(results.find(run) for run in runs))
    if not digests:
        raise InputError("Name the runs to remove. List them with `localfields runs list`.")
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("Not deleting without confirmation. Pass --yes.")
        for digest in digests:
            try:
                print("  ".join(text for text in _row(results.entry(digest)).values() if text))
            except InputError as error:  # a damaged run can be removed, too
                print(f"{digest[:12]}  {error}")
        answer = input(f"Remove {_count(digests)}? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing removed")
            return
    for digest in digests:
        results.remove(digest)
        print(f"removed {digest[:12]}")


def write(run: str, out: str, store: str, overwrite: bool) -> None:
    """Write a run to a file for other programs: netCDF, CSV or npz."""
    from .._files import check_target
    from ..store.export import SUFFIXES, export

    check_target(Path(out), SUFFIXES, overwrite)
    results = _store(store)
    digest = results.find(run)
    export(results.load(digest), out, digest=digest, overwrite=overwrite)
    print(f"wrote run {digest[:12]} to {out}")


def verify(runs: Sequence[str], store: str) -> None:
    """Compare runs with their checksums; exit code 1 if one cannot be used."""
    results = _store(store)
    digests = [results.find(run) for run in runs] or results.digests()
    if runs:
        problems = [problem for digest in digests for problem in results.verify(digest)]
    else:
        problems = results.verify_all()
    for problem in problems:
        print(problem.message)
    bad = len({problem.digest for problem in problems})
    outcome = f"{bad} cannot be used" if bad else "all as they were written"
    print(f"{len(digests)} runs in {results.path} checked: {outcome}")
    if problems:
        sys.exit(1)


def _command(function: Any, **options: Option) -> Command:
    return Command(function, {"options": options}, function.__doc__)


ACTIONS = {
    "list": _command(
        show_list,
        filters=Option("such as gain=100 'steps>=1000'", "FILTER", positional="*"),
        store=STORE,
    ),
    "show": _command(show, run=RUN, store=STORE),
    "rm": _command(remove, runs=RUNS, store=STORE, yes=Option("do not ask", default=False)),
    "export": _command(
        write,
        run=RUN,
        out=Option("file: .nc (netCDF), .csv (a table) or .npz (arrays)", "PATH", required=True),
        store=STORE,
        overwrite=OVERWRITE,
    ),
    "verify": _command(
        verify,
        runs=Option("digests or their starts; all if none", "RUN", positional="*"),
        store=STORE,
    ),
}


def _store(path: str) -> Any:
    from ..store import Store

    return Store(path or None)


def _count(runs: Sequence[Any]) -> str:
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}"


def _row(entry: Any) -> dict[str, str]:
    """The cells of a run in the list, by column."""
    spec, metrics = entry.experiment, entry.metrics
    method = spec.get("method") if isinstance(spec.get("method"), dict) else {}
    outcomes = metrics.get("outcomes") or {}
    bad = [f"{count} {kind}" for kind, count in outcomes.items() if kind != "ok"]
    # The store may be somebody else's: nothing is known of its texts but that they are JSON.
    cells = {
        "run": entry.digest[:12],
        "stored": entry.created[:16].replace("T", " "),
        "stimuli": _stimuli(spec),
        "network": _name(spec.get("network")),
        "method": _name(method.get("theory")) or _name(method.get("estimator")) or _name(method),
        "steps": str(method.get("steps", "")),
        "members": str(metrics.get("members", "")),
        "IPR": _short(metrics.get("ipr")),
        "loss": _short(metrics.get("loss")),
        "outcome": ", ".join(bad) or str(entry.manifest.get("outcome", "")),
        "seconds": _short(entry.manifest.get("seconds")),
    }
    return {name: printable(shorten(text, LONGEST_CELL)) for name, text in cells.items()}


def _stimuli(spec: dict[str, Any]) -> str:
    """The family and its numbers, one per class if the classes differ: nlgp 40 gain=100 xi=1,3."""
    task = spec.get("task")
    stimuli = task.get("stimuli") if isinstance(task, dict) else None
    # A store can hold results of other programs, whose specifications are not experiments.
    if not isinstance(stimuli, list) or not all(isinstance(part, dict) for part in stimuli):
        return ""
    names = [_name(stimulus) for stimulus in stimuli]
    if len(set(names)) != 1:
        return ", ".join(names)
    parts = names[:1]
    if isinstance(shape := stimuli[0].get("shape"), list):
        parts.append("x".join(map(str, shape)))
    for field in stimuli[0]:
        values = [_short(stimulus.get(field)) for stimulus in stimuli]
        if all(values):
            parts.append(f"{field}={','.join(values if len(set(values)) > 1 else values[:1])}")
    return " ".join(parts)


def _name(value: Any) -> str:
    """`nlgp` for the type `stimulus/nlgp`; specifications without fields are stored as names."""
    if isinstance(value, dict):
        value = value.get("type", "")
    return value.rpartition("/")[2] if isinstance(value, str) else ""


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
