"""`localfields runs`: what is in a store, and taking out of it."""

# Annotations are evaluated here, where their names are known, and not by tyro.
import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from ._options import run_one_of

LONGEST = 1000  # rows that are drawn as a table: laying out more takes seconds

StoreOption = Annotated[
    str, tyro.conf.arg(help="folder of the store (or $LOCALFIELDS_STORE, or runs)", metavar="PATH")
]
Digest = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(help="a run's digest, or the start of it", metavar="RUN"),
]


def run(argv: Sequence[str]) -> None:
    """Offer what can be done with stored runs."""
    about = "Stored runs: each is named by the digest of its specification; its first digits are enough."
    commands = {"list": show_list, "show": show, "rm": remove, "export": write, "verify": verify}
    run_one_of(commands, argv, "localfields runs", "action", about)


def show_list(
    filters: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(help="such as gain=100 'steps>=1000'", metavar="FILTER"),
    ] = (),
    store: StoreOption = "",
) -> None:
    """List the runs of a store, all or those that pass every filter.

    A filter names any field of a run's specification, metrics or manifest, bare or dotted, and compares it by
    = != < <= > or >=: localfields runs list gain=100 estimator=orbit 'steps>=1000' 'ipr>0.3'
    """
    from rich.console import Console

    place = _store(store)
    entries = place.list(filters)
    if not entries:
        print(f"no {'such ' if filters else ''}runs in {place.path}")
        return
    rows = [_row(entry) for entry in entries]
    console = Console()
    if console.is_terminal and len(rows) <= LONGEST:
        from rich.table import Table

        table = Table(*rows[0])
        for row in rows:
            table.add_row(*row.values())
        console.print(table)
    else:
        cells = [list(rows[0]), *(list(row.values()) for row in rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)
        sys.stdout.write("\n".join(lines) + "\n")
    print(f"{len(entries)} run{'s' if len(entries) > 1 else ''} in {place.path}", file=sys.stderr)


def show(run: Digest, store: StoreOption = "") -> None:
    """Print a run's specification, metrics and manifest, as JSON."""
    from rich.console import Console

    place = _store(store)
    entry = place.entry(place.find(run))
    found = {
        "digest": entry.digest,
        "path": str(place.path / entry.digest),
        "created": entry.created,
    }
    found |= {
        "specification": entry.specification,
        "metrics": entry.metrics,
        "manifest": entry.manifest,
    }
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    console = Console()
    if console.is_terminal:
        console.print_json(text, indent=1)
    else:
        print(text)


def remove(
    runs: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(help="digests or their starts", metavar="RUN"),
    ],
    store: StoreOption = "",
    yes: Annotated[bool, tyro.conf.arg(help="do not ask")] = False,
) -> None:
    """Remove runs from a store, after asking."""
    from ..errors import InputError, Said, refuse

    place = _store(store)
    digests = list(dict.fromkeys(place.find(one) for one in runs))
    if not digests:
        refuse(
            "The runs to remove",
            Said("none"),
            "named by their digests",
            "See `localfields runs list`.",
        )
    if not yes:
        if not sys.stdin.isatty():
            refuse(
                "The answer to a question",
                Said("nobody to ask"),
                "given beforehand",
                "Add --yes to remove them.",
            )
        for digest in digests:
            try:
                print("  ".join(text for text in _row(place.entry(digest)).values() if text))
            except InputError as error:
                print(f"{digest[:12]}  {error}")
        if input(
            f"Remove {len(digests)} run{'s' if len(digests) > 1 else ''}? [y/N] "
        ).strip().lower() not in (
            "y",
            "yes",
        ):
            print("nothing removed")
            return
    for digest in digests:
        place.remove(digest)
        print(f"removed {digest[:12]}")


def write(
    run: Digest,
    out: Annotated[
        str,
        tyro.conf.arg(help="file: .nc (netCDF), .csv (a table) or .npz (arrays)", metavar="PATH"),
    ],
    store: StoreOption = "",
    overwrite: Annotated[bool, tyro.conf.arg(help="replace a file that exists")] = False,
) -> None:
    """Write a run to a file for other programs: netCDF, CSV or npz."""
    from pathlib import Path

    from .._files import check_target
    from ..store.export import SUFFIXES, export

    check_target(Path(out), SUFFIXES, overwrite)
    place = _store(store)
    digest = place.find(run)
    export(place.load(digest), out, digest=digest, overwrite=overwrite)
    print(f"wrote run {digest[:12]} to {out}")


def verify(
    runs: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(help="digests or their starts; all if none", metavar="RUN"),
    ] = (),
    store: StoreOption = "",
) -> None:
    """Hold runs against their checksums; exit code 1 when one is damaged."""
    place = _store(store)
    digests = [place.find(one) for one in runs]
    problems = (
        [one for digest in digests for one in place.verify(digest)] if runs else place.verify_all()
    )
    for problem in problems:
        print(problem.message)
    count = len(digests) if runs else len(place.digests())
    bad = len({problem.digest for problem in problems})
    print(
        f"{count} runs in {place.path} checked: {f'{bad} damaged' if bad else 'all as they were written'}"
    )
    if problems:
        sys.exit(1)


def _store(path: str) -> Any:
    from ..store import Store

    return Store(path or None)


# -- one line a run ---------------------------------------------------------------------------------------------


def _row(entry: Any) -> dict[str, str]:
    """What a list shows of a run."""
    spec, metrics = entry.specification, entry.metrics
    method = spec.get("method") if isinstance(spec.get("method"), dict) else {}
    outcomes = metrics.get("outcomes") or {}
    bad = [f"{count} {kind}" for kind, count in outcomes.items() if kind != "ok"]
    return {
        "run": entry.digest[:12],
        "stored": entry.created[:16].replace("T", " "),
        "stimuli": _stimuli(spec),
        "network": _name(spec.get("network")),
        "method": _name(method.get("theory")) or method.get("estimator") or _name(method),
        "steps": str(method.get("steps", "")),
        "members": str(metrics.get("members", "")),
        "IPR": _short(metrics.get("ipr")),
        "loss": _short(metrics.get("loss")),
        "outcome": ", ".join(bad) or str(entry.manifest.get("outcome", "")),
        "seconds": _short(entry.manifest.get("seconds")),
    }


def _stimuli(spec: dict[str, Any]) -> str:
    """The family and its numbers, one a class where the classes differ: nlgp 40 gain=100 xi=1,3."""
    task = spec.get("task")
    stimuli = task.get("stimuli") if isinstance(task, dict) else None
    if (
        not isinstance(stimuli, list)
        or not stimuli
        or not all(isinstance(one, dict) for one in stimuli)
    ):
        return ""
    if len({_name(one) for one in stimuli}) > 1:
        return ", ".join(_name(one) for one in stimuli)
    words = [_name(stimuli[0])]
    if isinstance(shape := stimuli[0].get("shape"), list):
        words.append("x".join(map(str, shape)))
    for field in stimuli[0]:
        values = [one.get(field) for one in stimuli]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            shown = dict.fromkeys(_short(value) for value in values)
            words.append(f"{field}={','.join(shown if len(shown) == 1 else map(_short, values))}")
    return " ".join(words)


def _name(value: Any) -> str:
    """`nlgp` of a value of type `stimulus/nlgp`; one with nothing to tell is its name."""
    kind = (
        value.get("type", "")
        if isinstance(value, dict)
        else value
        if isinstance(value, str)
        else ""
    )
    return str(kind).rpartition("/")[2]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
