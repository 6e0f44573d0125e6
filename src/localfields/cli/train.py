"""`localfields train`: an ensemble on one family of stimuli, with a live table and a picture at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._spec import Count, Number, name_of, registered
from ._classes import read_task
from ._options import changed, field_options, option, run_one_of, use_compilation_cache, with_options
from ._run import NETWORK, OUTPUT, LiveTable, network_options, output_files, read_network, show_run

OPTIONS = {
    "learning_rate": option(str, "0.05", "τ: step size; flow time is steps × learning rate", "FLOAT"),
    "steps": option(str, "1000", "number of gradient steps", "INT"),
    "batch": option(str, "1000", "draws a step, divided over the classes", "INT"),
    "members": option(str, "1", "size of the ensemble", "INT"),
    "seed": option(str, "0", "of everything random", "INT"),
    "every": option(str, "10", "steps between records", "INT"),
    "estimator": option(str, "independent", "independent, shared, orbit, exact or, on data, epochs", "NAME"),
    "optimizer": option(str, "sgd", "sgd, adam or another name of optax", "NAME"),
    "network": NETWORK,
    **OUTPUT,
}


def run(argv: Sequence[str]) -> None:
    """Offer every registered stimulus; its numbers take one value, or one a class."""
    from .. import networks as networks
    from ..tasks import Discrimination

    task_options = field_options(Discrimination)
    of_network = network_options()
    commands = {}
    for name, cls in registered("stimulus").items():
        commands[name] = _command(cls, field_options(cls), task_options, of_network)
    about = (
        "Train an ensemble to tell the classes of one stimulus family apart. Give the parameter in which they differ\n"
        "one value a class, label 0 first: localfields train nlgp --gain 100 --xi 1,3"
    )
    run_one_of(commands, argv, "localfields train", "stimulus", about)


def _command(cls: Any, own: Any, task_options: Any, of_network: Any) -> Any:
    def command(**values: Any) -> None:
        task = read_task(cls, own, task_options, values)
        network = read_network(values.pop("network"), changed(of_network, values))
        _train(task, network, **values)

    return with_options(command, {**own, **OPTIONS, **task_options, **of_network}, cls)


def _train(task: Any, network: Any, out: str, plot: bool, overwrite: bool, every: str, **values: str) -> None:
    from rich.console import Console

    from .. import Record, train  # with the exact gradients that theories offer

    target, picture = output_files(name_of(type(task.stimuli[0])), out, plot, overwrite)
    whole = ("steps", "batch", "members", "seed")
    numbers: dict[str, Any] = {name: Count(low=0, high=2**62).parse(name, values[name]) for name in whole}
    rate = Number(low=0).parse("learning_rate", values["learning_rate"])
    record = Record(every=Count(high=10**9).parse("every", every))
    use_compilation_cache()
    console = Console(stderr=True)
    with LiveTable(console) as table:
        run = train(
            task,
            network,
            learning_rate=rate,
            record=record,
            estimator=values["estimator"],
            optimizer=values["optimizer"],
            on_progress=table.show,
            **numbers,
        )
    show_run(run, target, picture)
