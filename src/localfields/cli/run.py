"""`localfields run`: one experiment, whose result is stored; interrupted runs resume."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .._spec import name_of, registered
from .._start import use_compilation_cache
from ._data import experiment_command, leading_files
from ._options import STORE, Command, open_store, run_command, run_one_of
from ._run import (
    OUTPUT,
    LiveTable,
    experiment_from_options,
    experiment_options,
    output_files,
    show_run,
    until_interrupt,
)

OPTIONS = {"store": STORE, **OUTPUT}

ABOUT = """Run an experiment and store its result. Finished runs are reused; interrupted runs
resume. From options, as of `localfields train`:

  localfields run nlgp --gain 100 --xi 1,3 --steps 2000
  localfields run short.npy long.npy --steps 2000

or from a file, localfields run FILE.toml (or .json), such as

  [task]
  stimuli = [
    {type = "nlgp", shape = [40], gain = 100, xi = 1},
    {type = "nlgp", shape = [40], gain = 100, xi = 3},
  ]
  [network]
  type = "single-neuron"
  [method]
  type = "training"
  steps = 2000"""


def run(argv: Sequence[str]) -> None:
    """Read a file, or offer every registered stimulus."""
    if argv and argv[0].endswith((".toml", ".json")):
        from ..experiments.document import read_experiment

        about = f"Run the experiment of {argv[0]} and store its result."
        command = Command(
            lambda **values: _run(read_experiment(argv[0]), **values), {"output": OPTIONS}, about
        )
        run_command(command, argv[1:], f"localfields run {argv[0]}")
        return
    if files := leading_files(argv, list(registered("stimulus"))):
        command = experiment_command(files, _run, OPTIONS)
        run_command(command, argv[len(files) :], f"localfields run {' '.join(files)}")
        return
    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields run", "stimulus", ABOUT)


def _command(cls: Any) -> Command:
    groups = experiment_options(cls)

    def command(**values: Any) -> None:
        _run(experiment_from_options(cls, groups, values), **values)

    return Command(command, {**groups, "output": OPTIONS}, cls.__doc__)


def _run(experiment: Any, store: str, out: str, plot: bool, overwrite: bool) -> None:
    from rich.console import Console

    from ..experiments import run_or_load

    name = name_of(type(experiment.task.stimuli[0]))
    target, picture = output_files(name, out, plot, overwrite)
    use_compilation_cache()
    results, digest = open_store(store), experiment.digest
    is_stored = digest in results
    with LiveTable(Console(stderr=True)) as table:
        trajectory = until_interrupt(
            lambda: run_or_load(experiment, results, on_progress=table.show)
        )
    if trajectory.stopped == "cancelled":
        step = trajectory.steps[-1]
        print(f"interrupted at step {step}; the same command resumes it.", file=sys.stderr)
        sys.exit(130)
    verb, preposition = ("loaded", "from") if is_stored else ("stored as", "in")
    print(f"{verb} {digest[:12]} {preposition} {results.path}")
    show_run(trajectory, target, picture)
