"""`localfields reproduce`: the paper's figures and claims, into one folder with one page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from ._options import run_command, use_compilation_cache


def run(argv: Sequence[str]) -> None:
    """Parse, then reproduce."""
    run_command(reproduce, argv, "localfields reproduce")


def reproduce(
    figures: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(help="all if none", metavar="FIGURE")] = (),
    out: Annotated[str, tyro.conf.arg(help="folder for figures and report", metavar="PATH")] = "report",
) -> None:
    """Redraw the paper's figures and hold every published number against the exact one."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .._check import unknown
    from ..figures import all_figures
    from ..figures.report import Drawn, summary, write_report

    known = all_figures()
    for name in figures:
        if name not in known:
            unknown("The figure", name, known)
    chosen = [known[name] for name in (figures or known)]
    use_compilation_cache()
    folder = _folder(out)
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    drawn, claims = [], []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=sum(figure.steps for figure in chosen))
        for figure in chosen:

            def step(words: str, name: str = figure.name) -> None:
                progress.update(task, description=f"{name}: {words}", advance=1)

            start = time.perf_counter()
            picture = figure.draw(step)
            png = _save(picture, folder / figure.name)
            claims += figure.claims(step)
            drawn.append(Drawn(figure, png, time.perf_counter() - start))
    write_report(folder, drawn, claims)
    _print_ledger(claims)
    print(f"{summary(claims)}\nThe page: {folder / 'report.html'}")


def _folder(out: str) -> Path:
    from .._check import refuse

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse("`--out`", out, "a folder that can be made", f"The system says: {error.strerror}.")
    return folder


def _save(picture: Any, stem: Path) -> Path:
    from .._files import publish

    for suffix in (".pdf", ".svg", ".png"):
        publish(stem.with_suffix(suffix), lambda path: picture.savefig(path, dpi=160))
    return stem.with_suffix(".png")


def _print_ledger(claims: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "claim", "published", "here", "verdict")
    colors = {"reproduced": "green", "differs": "yellow"}
    for claim in claims:
        color = colors.get(claim.verdict, "default")
        table.add_row(claim.id, claim.statement, claim.published, claim.measured, f"[{color}]{claim.verdict}[/]")
    Console().print(table)
