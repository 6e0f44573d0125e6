"""`localfields train`: an ensemble on one family of stimuli, with a live table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._spec import name_of, registered
from .._start import use_compilation_cache
from ._data import experiment_command, leading_files
from ._options import Command, run_command, run_one_of
from ._run import (
    OUTPUT,
    LiveTable,
    experiment_from_options,
    experiment_options,
    output_files,
    show_run,
    until_interrupt,
)

ABOUT = """Train an ensemble to tell the classes of one stimulus family apart. Give the parameter in
which they differ one value per class, label 0 first:

  localfields train nlgp --gain 100 --xi 1,3

Or give files of your own data: one per class, one with --classes, or one whose blurs are classes:

  localfields train short.npy long.npy --steps 2000"""


def run(argv: Sequence[str]) -> None:
    """Read files of data, or offer every registered stimulus with one value or one per class."""
    if files := leading_files(argv, list(registered("stimulus"))):
        command = experiment_command(files, _train, OUTPUT)
        run_command(command, argv[len(files) :], f"localfields train {' '.join(files)}")
        return
    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields train", "stimulus", ABOUT)


def _command(cls: Any) -> Command:
    groups = experiment_options(cls)

    def command(**values: Any) -> None:
        _train(experiment_from_options(cls, groups, values), **values)

    return Command(command, {**groups, "output": OUTPUT}, cls.__doc__)


def _train(experiment: Any, out: str, plot: bool, overwrite: bool) -> None:
    from rich.console import Console

    target, picture = output_files(name_of(type(experiment.task.stimuli[0])), out, plot, overwrite)
    use_compilation_cache()
    with LiveTable(Console(stderr=True)) as table:
        run = until_interrupt(lambda: experiment.run(on_progress=table.show))
    show_run(run, target, picture)
