"""`localfields train`: an ensemble on one family of stimuli, with a live table and a picture at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._check import unknown
from .._spec import Count, Number, find, from_text, name_of, registered
from ._classes import read_task
from ._options import changed, field_options, option, run_one_of, use_compilation_cache, with_options

SUFFIXES = (".npz", ".nc")

OPTIONS = {
    "learning_rate": option(str, "0.05", "τ: step size; flow time is steps × learning rate", "FLOAT"),
    "steps": option(str, "1000", "number of gradient steps", "INT"),
    "batch": option(str, "1000", "draws a step, divided over the classes", "INT"),
    "members": option(str, "1", "size of the ensemble", "INT"),
    "seed": option(str, "0", "of everything random", "INT"),
    "every": option(str, "10", "steps between records", "INT"),
    "estimator": option(str, "independent", "independent, shared, orbit or exact", "NAME"),
    "optimizer": option(str, "sgd", "sgd, adam or another name of optax", "NAME"),
    "network": option(str, "single-neuron", "architecture; its own options follow below", "NAME"),
    "out": option(str, "", "file to write: .npz, or .nc (netCDF)", "PATH"),
    "plot": option(bool, False, "draw a picture, beside --out or named after the stimulus"),
    "overwrite": option(bool, False, "replace files that exist"),
}


def run(argv: Sequence[str]) -> None:
    """Offer every registered stimulus; its numbers take one value, or one a class."""
    from .. import networks as networks
    from ..tasks import Discrimination

    task_options = field_options(Discrimination)
    network_options = {}
    for cls in registered("network").values():
        for name, (kind, default, help, metavar) in field_options(cls).items():
            network_options[name] = option(kind, "", f"{help} (the network's own default: {default})", metavar)
    commands = {}
    for name, cls in registered("stimulus").items():
        commands[name] = _command(cls, field_options(cls), task_options, network_options)
    about = (
        "Train an ensemble to tell the classes of one stimulus family apart. Give the parameter in which they differ\n"
        "one value a class, label 0 first: localfields train nlgp --gain 100 --xi 1,3"
    )
    run_one_of(commands, argv, "localfields train", "stimulus", about)


def _command(cls: Any, own: Any, task_options: Any, network_options: Any) -> Any:
    def command(**values: Any) -> None:
        task = read_task(cls, own, task_options, values)
        network = _network(values.pop("network"), changed(network_options, values))
        _train(task, network, **values)

    return with_options(command, {**own, **OPTIONS, **task_options, **network_options}, cls)


def _network(name: str, given: dict[str, str]) -> Any:
    cls = find("network", name)
    known = field_options(cls)
    for option_name in given:
        if option_name not in known:
            unknown(f"An option of the network `{name}`", option_name.replace("_", "-"), known)
    return from_text(cls, given)


def _train(task: Any, network: Any, out: str, plot: bool, overwrite: bool, every: str, **values: str) -> None:
    from rich.console import Console

    from .._files import check_target, publish
    from ..training import Record, train

    target = Path(out) if out else None
    picture = (target or Path(name_of(type(task.stimuli[0])))).with_suffix(".png") if plot else None
    if target is not None:
        check_target(target, SUFFIXES, overwrite)
    if picture is not None:
        check_target(picture, (".png",), overwrite)
    whole = ("steps", "batch", "members", "seed")
    numbers: dict[str, Any] = {name: Count(low=0, high=2**62).parse(name, values[name]) for name in whole}
    rate = Number(low=0).parse("learning_rate", values["learning_rate"])
    record = Record(every=Count(high=10**9).parse("every", every))
    use_compilation_cache()
    console = Console(stderr=True)
    with _LiveTable(console) as table:
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
    print(run)
    seconds = run.manifest
    print(f"  compiled in {seconds['compile_seconds']:.1f} s, ran in {seconds['run_seconds']:.1f} s")
    if target is not None:
        publish(target, lambda path: _write(path, run))
        print(f"wrote {target}")
    if picture is not None:
        from ..plots.trajectory import save_overview

        publish(picture, lambda path: save_overview(run, path))
        print(f"drew {picture}")


def _write(path: Path, run: Any) -> None:
    import json

    import numpy as np

    if path.suffix == ".nc":
        run.to_xarray().to_netcdf(path, engine="scipy")
        return
    arrays: dict[str, Any] = {name: getattr(run, name) for name in ("steps", "times", "initial", "final")}
    arrays |= {"specification": json.dumps(run.specification), "manifest": json.dumps(run.manifest)}
    np.savez(path, **arrays, **run.series)


class _LiveTable:
    """Step, flow time, IPR and loss while training runs; nothing where nobody looks."""

    def __init__(self, console: Any):
        from rich.live import Live

        self.live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None

    def __enter__(self) -> _LiveTable:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, progress: Any) -> None:
        """Replace the table by the present one."""
        from rich.table import Table

        if self.live is None:
            return
        table = Table("step", "flow time", "IPR", "loss", "steps/s", "left", "records")
        ipr = f"{progress.ipr.mean():.3f} ({progress.ipr.min():.3f}–{progress.ipr.max():.3f})"
        loss = "" if progress.loss is None else f"{progress.loss.mean():.4f}"
        left = f"{progress.seconds_left:.0f} s" if progress.rate else ""
        memory = f"{progress.record_bytes / 1e6:.1f} MB"
        step = f"{progress.step} of {progress.steps}"
        table.add_row(step, f"{progress.time:g}", ipr, loss, f"{progress.rate:.0f}", left, memory)
        self.live.update(table)
