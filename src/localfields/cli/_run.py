"""What the commands that make a run share: options of networks, a live table, and where the result goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._spec import name_of, registered
from ._options import Option, changed, field_options, option

OUTPUT = {
    "out": option(str, "", "file to write: .npz, .nc (netCDF) or .csv", "PATH"),
    "plot": option(bool, False, "draw a picture, beside --out or named after the stimulus"),
    "overwrite": option(bool, False, "replace files that exist"),
}


def experiment_options(cls: Any) -> dict[str, dict[str, Option]]:
    """The options that make an experiment on a stimulus, by the part of it whose fields they are."""
    from ..experiments import Experiment, Training
    from ..experiments.texts import DEFAULT_NETWORK
    from ..tasks import Discrimination

    network = {
        "network": option(
            str, DEFAULT_NETWORK, "architecture; its own options follow below", "NAME"
        )
    }
    return {
        "stimuli": field_options(cls),
        "method": field_options(Training),
        "": {"precision": field_options(Experiment)["precision"], **network},
        "task": field_options(Discrimination),
        "network": _network_options(),
    }


def _network_options() -> dict[str, Option]:
    """The fields of every network, as options that are empty unless given."""
    found = {}
    for cls in registered("network").values():
        for name, (kind, default, help, metavar) in field_options(cls).items():
            found[name] = option(
                kind, "", f"{help} (the network's own default: {default})", metavar
            )
    return found


def joined(parts: dict[str, dict[str, Option]]) -> dict[str, Option]:
    """The options of all parts."""
    return {name: one for part in parts.values() for name, one in part.items()}


def read_experiment(cls: Any, options: dict[str, Option], values: dict[str, Any]) -> Any:
    """The experiment that some options tell, which are taken out of `values`."""
    from ..experiments.texts import experiment_of

    return experiment_of({"stimulus": name_of(cls), **changed(options, values)})


def output_files(
    name: str, out: str, plot: bool, overwrite: bool, suffixes: tuple[str, ...] = ()
) -> tuple[Path | None, Path | None]:
    """Where arrays (or what else has one of the suffixes) and a picture are to go, checked before all computing."""
    from .._files import check_target
    from ..store.export import SUFFIXES

    target = Path(out) if out else None
    picture = (target or Path(name)).with_suffix(".png") if plot else None
    if target is not None:
        check_target(target, suffixes or SUFFIXES, overwrite)
    if picture is not None:
        check_target(picture, (".png",), overwrite)
    return target, picture


def show_run(run: Any, target: Path | None, picture: Path | None) -> None:
    """Print what a run is, and write what was asked for."""
    from ..plots.trajectory import save_overview

    print(run)
    compiled, seconds = run.manifest.get("compile_seconds"), run.manifest["run_seconds"]
    print(
        f"  ran in {seconds:.1f} s"
        if compiled is None
        else f"  compiled in {compiled:.1f} s, ran in {seconds:.1f} s"
    )
    write_run(run, target, picture, save_overview)


def write_run(
    run: Any, target: Path | None, picture: Path | None, save: Callable[[Any, Path], Any]
) -> None:
    """Write what was asked for, the picture as `save` draws it."""
    from .._files import publish
    from ..store.export import export

    if target is not None:
        export(run, target, overwrite=True)  # whether it may be replaced was asked before
        print(f"wrote {target}")
    if picture is not None:
        publish(picture, lambda path: save(run, path))
        print(f"drew {picture}")


class LiveTable:
    """Step, flow time, IPR and loss while training runs; nothing where nobody looks."""

    def __init__(self, console: Any):
        from rich.live import Live

        self.live = (
            Live(console=console, refresh_per_second=8, transient=True)
            if console.is_terminal
            else None
        )

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
