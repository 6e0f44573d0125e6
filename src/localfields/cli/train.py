"""`localfields train`: an ensemble on one family of stimuli, with a live table and a picture at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._spec import name_of, registered
from ._options import run_one_of, use_compilation_cache, with_options
from ._run import (
    OUTPUT,
    LiveTable,
    experiment_options,
    joined,
    output_files,
    read_experiment,
    show_run,
)

ABOUT = """Train an ensemble to tell the classes of one stimulus family apart. Give the parameter in which they differ
one value a class, label 0 first: localfields train nlgp --gain 100 --xi 1,3"""


def run(argv: Sequence[str]) -> None:
    """Offer every registered stimulus; its numbers take one value, or one a class."""
    from .. import experiments as experiments

    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields train", "stimulus", ABOUT)


def _command(cls: Any) -> Any:
    own = joined(experiment_options(cls))

    def command(**values: Any) -> None:
        _train(read_experiment(cls, own, values), **values)

    return with_options(command, {**own, **OUTPUT}, cls)


def _train(experiment: Any, out: str, plot: bool, overwrite: bool) -> None:
    from rich.console import Console

    target, picture = output_files(name_of(type(experiment.task.stimuli[0])), out, plot, overwrite)
    use_compilation_cache()
    with LiveTable(Console(stderr=True)) as table:
        run = experiment.run(on_progress=table.show)
    show_run(run, target, picture)
