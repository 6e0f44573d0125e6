"""`localfields reproduce`: figures and claims of the paper and its working notes, into one folder with one page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ._options import run_command, use_compilation_cache


def run(argv: Sequence[str]) -> None:
    """Parse, then reproduce."""
    run_command(reproduce, argv, "localfields reproduce")


def reproduce(
    figures: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(help="all of the paper's if none", metavar="FIGURE"),
    ] = (),
    notes: Annotated[
        bool,
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.arg(help="the figures of the working notes, and those named"),
    ] = False,
    out: Annotated[
        str, tyro.conf.arg(help="folder for figures and report", metavar="PATH")
    ] = "report",
    scale: Annotated[
        Literal["paper", "quick", "tiny"],
        tyro.conf.arg(
            help="the paper's settings, smaller ones for a first look, or the least that runs"
        ),
    ] = "paper",
    only_missing: Annotated[
        bool,
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.arg(help="leave figures that are there as they are"),
    ] = False,
    store: Annotated[
        str,
        tyro.conf.arg(
            help="folder of results; otherwise $LOCALFIELDS_STORE, or runs", metavar="PATH"
        ),
    ] = "",
) -> None:
    """Redraw the paper's figures and hold every published number against ours.

    With `--notes`, the figures that the paper's working notes show or ask for, and answers to their questions. Others
    are made when named: `baselines`, where a network stands beside methods that learn without labels.

    Runs are kept in a store: what was computed before is read from there, what was interrupted goes on. Figures of an
    earlier report in the same folder stay in it.
    """
    from rich.console import Console

    from ..errors import unknown
    from ..figures import all_figures
    from ..figures.make import Interrupted, is_current, make, read_made
    from ..figures.report import questions_of, summary, write_report
    from ..store import Store

    known = all_figures()
    for name in figures:
        if name not in known:
            unknown("The figure", name, known)
    use_compilation_cache()
    folder, where = _folder(out), Store(store or None)
    made = {name: one for name, one in read_made(folder).items() if name in known}
    group = "notes" if notes else "paper"
    whole = (
        ()
        if figures and not notes
        else [name for name, figure in known.items() if figure.group == group]
    )
    chosen = [known[name] for name in dict.fromkeys((*figures, *whole))]
    if only_missing:
        chosen = [figure for figure in chosen if not is_current(figure, scale, folder, made)]
    with _Bar(Console(stderr=True), len(chosen)) as bar:
        for place, figure in enumerate(chosen):
            try:
                made[figure.name] = make(
                    figure, scale, where, folder, bar.teller(place, figure.name)
                )
            except (Interrupted, KeyboardInterrupt):
                print("interrupted; the same command goes on from there.", file=sys.stderr)
                sys.exit(130)
            # After every figure, so that one can look while the others are made.
            made = {name: made[name] for name in known if name in made}
            write_report(folder, made)
            one = made[figure.name]
            bar.print(
                f"{one.name}: {one.elapsed:.1f} s (runs {one.computed:.1f} s, drawing {one.drawn:.1f} s)"
            )
    claims = write_report(folder, made)
    questions = questions_of(made.values())
    _print_ledger(claims, questions)
    print(f"{summary(claims, questions)}\nThe page: {folder / 'report.html'}")


def _folder(out: str) -> Path:
    from ..errors import refuse

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse("`--out`", out, "a folder that can be made", f"The system says: {error.strerror}.")
    return folder


class _Bar:
    """One bar for all figures; nothing where nobody looks."""

    def __init__(self, console: Any, count: int):
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description:<44}"), BarColumn(), TimeElapsedColumn()
        self.progress = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self.task = self.progress.add_task("starting", total=count)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def teller(self, place: int, name: str) -> Any:
        """What one figure tells its progress to."""
        return lambda words, share: self.progress.update(
            self.task, description=f"{name}: {words}", completed=place + share
        )

    def print(self, words: str) -> None:
        """A line that stays."""
        self.progress.stop()
        print(words, flush=True)
        self.progress.start()


def _print_ledger(claims: Any, questions: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if claims:
        table = Table("", "claim", "published", "here", "verdict")
        colors = {"reproduced": "green", "differs": "yellow"}
        for claim in claims:
            color = colors.get(claim.verdict, "default")
            table.add_row(
                claim.id,
                claim.statement,
                claim.published,
                claim.measured,
                f"[{color}]{claim.verdict}[/]",
            )
        console.print(table)
    if questions:
        table = Table("", "question", "answer", "measured")
        for one in questions:
            table.add_row(one.id, one.question, one.answer, one.measured)
        console.print(table)
