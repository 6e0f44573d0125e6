"""What the commands that make a run share: their options, a live table, and where results go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._spec import name_of, registered
from ._options import OVERWRITE, Option, field_options, given

OUTPUT = {
    "out": Option("file to write: .npz, .nc (netCDF) or .csv", "PATH", default=""),
    "plot": Option("draw a picture, beside --out or named after the stimulus", default=False),
    "overwrite": OVERWRITE,
}

Groups = dict[str, dict[str, Option]]


def experiment_options(cls: Any) -> Groups:
    """The options that make an experiment on a stimulus of this class, by group.

    The order of the groups is that of the axes of a sweep.
    """
    from ..experiments import Experiment, Training
    from ..experiments.texts import DEFAULT_NETWORK
    from ..tasks import Discrimination

    network = Option(
        f"one of {', '.join(registered('network'))} (default: {DEFAULT_NETWORK})", "NAME"
    )
    return {
        "stimulus": field_options(cls),
        "training": field_options(Training),
        "experiment": {"precision": field_options(Experiment)["precision"], "network": network},
        "task": field_options(Discrimination),
        "network": _network_options(),
    }


def _network_options() -> dict[str, Option]:
    """The fields of every network; the help says whose they are."""
    variants: dict[str, dict[Option, list[str]]] = {}
    for network, cls in registered("network").items():
        for name, option in field_options(cls).items():
            variants.setdefault(name, {}).setdefault(option, []).append(network)
    merged = {}
    for name, owners in variants.items():
        parts = [f"{option.help} [{', '.join(networks)}]" for option, networks in owners.items()]
        metavars = {option.metavar for option in owners}
        metavar = metavars.pop() if len(metavars) == 1 else "NAME"
        merged[name] = Option("; ".join(parts), metavar)
    return merged


def experiment_from_options(cls: Any, groups: Groups, values: dict[str, Any]) -> Any:
    """The experiment that the options of some groups specify; they are taken out of `values`."""
    from ..experiments.texts import experiment_of

    texts = {name: text for group in groups.values() for name, text in given(group, values).items()}
    return experiment_of({"stimulus": name_of(cls), **texts})


def output_files(
    name: str, out: str, plot: bool, overwrite: bool, suffixes: tuple[str, ...] = ()
) -> tuple[Path | None, Path | None]:
    """The paths of a result and of its picture, if wanted, checked before anything is computed."""
    from .._files import check_target
    from ..store.export import SUFFIXES

    target = Path(out) if out else None
    picture = (target or Path(name)).with_suffix(".png") if plot else None
    if target is not None:
        check_target(target, suffixes or SUFFIXES, overwrite)
    if picture is not None:
        check_target(picture, (".png",), overwrite)
    return target, picture


def until_interrupt(make: Callable[[], Any]) -> Any:
    """The run that `make` returns, or what was recorded before Ctrl-C."""
    from ..errors import TrainingInterrupted

    try:
        return make()
    except TrainingInterrupted as stop:
        return stop.trajectory


def show_run(run: Any, target: Path | None, picture: Path | None) -> None:
    """Print a run and how long it took, and write what was asked for."""
    from .._memory import size_text
    from ..plots import overview

    compiled, seconds = run.manifest.get("compile_seconds"), run.manifest["run_seconds"]
    compilation = "" if compiled is None else f"compiled in {compiled:.1f} s, "
    memory = run.manifest.get("memory_bytes")
    needed = "" if memory is None else f", needed about {size_text(memory)} of memory"
    print(f"{run}\n  {compilation}ran in {seconds:.1f} s{needed}")
    write_run(run, target, picture, overview)


def write_run(
    run: Any, target: Path | None, picture: Path | None, plot: Callable[..., Any]
) -> None:
    """Write the result and the picture that `plot` draws, where they are asked for."""
    from .._files import publish
    from ..plots._style import save_picture
    from ..store.export import export

    if target is not None:
        export(run, target, overwrite=True)  # `output_files` has checked that this is allowed
        print(f"wrote {target}")
    if picture is not None:
        publish(picture, lambda path: save_picture(path, plot, run))
        print(f"drew {picture}")


class LiveTable:
    """Step, flow time, IPR and loss while training runs; nothing unless on a terminal."""

    def __init__(self, console: Any):
        from rich.live import Live

        live = Live(console=console, refresh_per_second=8, transient=True)
        self.live = live if console.is_terminal else None

    def __enter__(self) -> LiveTable:
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
