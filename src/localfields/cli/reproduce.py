"""`localfields reproduce`: figures and claims of the paper and its notes, on one page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._start import use_compilation_cache
from ..errors import InputError, unknown_name
from ._options import STORE, Command, Option, open_store, run_command

OPTIONS = {
    "figures": Option("figures; all of the paper's if none is named", "FIGURE", positional="*"),
    "notes": Option("the figures of the working notes, and those named", default=False),
    "scale": Option(
        "the paper's settings, smaller ones for a first look, or the smallest that run",
        "paper | quick | tiny",
        default="paper",
        choices=("paper", "quick", "tiny"),
    ),
    "only_missing": Option("leave figures that exist as they are", default=False),
    "out": Option("folder for figures and report", "PATH", default="report"),
    "store": STORE,
}


def run(argv: Sequence[str]) -> None:
    """Parse, then reproduce."""
    run_command(Command(reproduce, {"options": OPTIONS}, ABOUT), argv, "localfields reproduce")


ABOUT = """Redraw the paper's figures and compare every published number with ours.

With --notes, the figures that the paper's working notes show or ask for, and answers to their
questions. Others are made when named: `baselines` compares a network with methods that learn
without labels.

Finished runs are read from the store; interrupted runs resume. Figures of an earlier report in the
same folder stay in it."""


def reproduce(
    figures: Sequence[str], notes: bool, scale: Any, only_missing: bool, out: str, store: str
) -> None:
    """Make figures one after the other, and the report after each."""
    from rich.console import Console

    from ..figures import all_figures
    from ..figures.make import Interrupted, is_current, make, read_records
    from ..figures.report import questions_of, summary, write_report

    known = all_figures()
    for name in figures:
        if name not in known:
            raise unknown_name("figure", name, known)
    use_compilation_cache()
    folder, results = Path(out), open_store(store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {out}: {error.strerror}.") from None
    finished = {name: figure for name, figure in read_records(folder).items() if name in known}
    group = "notes" if notes else "paper"
    in_group = [name for name, figure in known.items() if figure.group == group]
    names = figures if figures and not notes else [*figures, *in_group]
    chosen = [known[name] for name in dict.fromkeys(names)]
    if only_missing:
        chosen = [figure for figure in chosen if not is_current(figure, scale, folder, finished)]
    with figures_bar(Console(stderr=True), len(chosen)) as bar:
        for position, figure in enumerate(chosen):
            try:
                update = updater(bar, position, figure.name)
                result = make(figure, scale, results, folder, update)
            except (Interrupted, KeyboardInterrupt):
                print("interrupted; the same command resumes it.", file=sys.stderr)
                sys.exit(130)
            # After every figure, so that one can look while the others are made.
            finished[figure.name] = result
            finished = {name: finished[name] for name in known if name in finished}
            write_report(folder, finished)
            bar.stop()  # a bar on stderr and a line on stdout would mix
            parts = f"runs {result.computed:.1f} s, drawing {result.drawn:.1f} s"
            print(f"{result.name}: {result.elapsed:.1f} s ({parts})", flush=True)
            bar.start()
    claims = write_report(folder, finished)
    questions = questions_of(finished.values())
    _print_ledger(claims, questions)
    print(f"{summary(claims, questions)}\nThe page: {folder / 'report.html'}")


def figures_bar(console: Any, count: int) -> Any:
    """One bar for all figures, shown on terminals only."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description:<44}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    bar.add_task("starting", total=count)
    return bar


def updater(bar: Any, position: int, name: str) -> Any:
    """The function that moves the bar while one figure is made, by the share of it that is done."""
    return lambda text, share: bar.update(
        bar.task_ids[0], description=f"{name}: {text}", completed=position + share
    )


def _print_ledger(claims: Any, questions: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if claims:
        table = Table("", "claim", "published", "here", "verdict")
        colors = {"reproduced": "green", "differs": "yellow"}
        for claim in claims:
            verdict = f"[{colors.get(claim.verdict, 'default')}]{claim.verdict}[/]"
            table.add_row(claim.id, claim.statement, claim.published, claim.measured, verdict)
        console.print(table)
    if questions:
        table = Table("", "question", "answer", "measured")
        for question in questions:
            table.add_row(question.id, question.question, question.answer, question.measured)
        console.print(table)
