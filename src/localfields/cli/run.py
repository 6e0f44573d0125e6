"""`localfields run`: one experiment, computed once; its result is kept, and what was interrupted goes on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .._spec import name_of, registered
from ._options import option, run_command, run_one_of, use_compilation_cache, with_options
from ._run import (
    OUTPUT,
    LiveTable,
    experiment_options,
    joined,
    output_files,
    read_experiment,
    show_run,
)

OPTIONS = {
    "store": option(str, "", "folder of results; otherwise $LOCALFIELDS_STORE, or runs", "PATH"),
    **OUTPUT,
}

ABOUT = """Carry out an experiment and keep its result in a store; asked for again, it is read from there. What was
interrupted goes on where it was. From options, as of `localfields train`:

  localfields run nlgp --gain 100 --xi 1,3 --steps 2000

or from a file, localfields run FILE.toml (or .json), such as

  [task]
  stimuli = [{type = "nlgp", shape = [40], gain = 100, xi = 1}, {type = "nlgp", shape = [40], gain = 100, xi = 3}]
  [network]
  type = "single-neuron"
  [method]
  type = "training"
  steps = 2000"""


def run(argv: Sequence[str]) -> None:
    """Read a file, or offer every registered stimulus."""
    from ..experiments import Experiment

    if argv and argv[0].endswith((".toml", ".json")):
        from ..experiments.document import read_experiment as read_document

        def of_file(**values: Any) -> None:
            _run(read_document(argv[0]), **values)

        run_command(
            with_options(of_file, OPTIONS, Experiment), argv[1:], f"localfields run {argv[0]}"
        )
        return
    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields run", "stimulus", ABOUT)


def _command(cls: Any) -> Any:
    own = joined(experiment_options(cls))

    def command(**values: Any) -> None:
        _run(read_experiment(cls, own, values), **values)

    return with_options(command, {**own, **OPTIONS}, cls)


def _run(experiment: Any, store: str, out: str, plot: bool, overwrite: bool) -> None:
    from rich.console import Console

    from ..experiments import run_or_load
    from ..store import Store

    name = name_of(type(experiment.task.stimuli[0]))
    target, picture = output_files(name, out, plot, overwrite)
    use_compilation_cache()
    where, digest = Store(store or None), experiment.digest
    known = digest in where
    with LiveTable(Console(stderr=True)) as table:
        found = run_or_load(experiment, where, on_progress=table.show)
    if found.stopped == "cancelled":
        print(
            f"interrupted at step {found.steps[-1]}; the same command goes on from there.",
            file=sys.stderr,
        )
        sys.exit(130)
    print(
        f"{'loaded' if known else 'stored as'} {digest[:12]} {'from' if known else 'in'} {where.path}"
    )
    show_run(found, target, picture)
