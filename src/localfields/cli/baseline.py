"""`localfields baseline`: the fields that an unsupervised method learns from a stimulus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._spec import Shape, fields, from_text, name_of, parse_fields, registered
from .._start import use_compilation_cache
from ..errors import InputError, unknown_name
from ..experiments.texts import read_classes
from ._data import data_options, leading_files, read_files
from ._options import Command, Option, field_options, given, run_command, run_one_of, working
from ._run import OUTPUT, output_files, write_run

ABOUT = """Fit an unsupervised method to samples of a stimulus, and say which fields are localized:

  localfields baseline ica kur --k 3
  localfields baseline ica mydata.npy

A parameter with several values, as --xi 1,3, makes a mixture of classes, as for a network."""


def run(argv: Sequence[str]) -> None:
    """Offer every registered baseline, and for each every registered stimulus."""
    baselines = registered("baseline")
    if not argv or argv[0] in ("-h", "--help"):
        commands = {name: Command(print, {}, cls.__doc__ or "") for name, cls in baselines.items()}
        run_one_of(commands, [], "localfields baseline", "method", ABOUT)
        return
    name = full_name(argv[0], baselines)
    commands = {
        stimulus: _command(baselines[name], cls) for stimulus, cls in registered("stimulus").items()
    }
    rest, prog = list(argv[1:]), f"localfields baseline {name}"
    if files := leading_files(rest, list(commands)):
        command = _file_command(baselines[name], files)
        run_command(command, rest[len(files) :], f"{prog} {' '.join(files)}")
        return
    run_one_of(commands, rest, prog, "stimulus", ABOUT)


def full_name(name: str, known: Iterable[str]) -> str:
    """The method of that name, or the only one of whose name it is a part: `ica` is `fast-ica`."""
    alike = [other for other in known if name in other.split("-")]
    if name not in known and len(alike) != 1:
        raise unknown_name("method", name, known)
    return name if name in known else alike[0]


def _command(method: Any, cls: Any) -> Command:
    """Fit a method to the stimuli of a class."""
    from ..tasks import Discrimination

    stimulus_options, task_options = field_options(cls), _task_options()

    def read(values: dict[str, Any]) -> Any:
        classes = _read_classes(cls, given(stimulus_options, values))
        settings = parse_fields(Discrimination, given(task_options, values))
        if all(stimulus is classes[0] for stimulus in classes):
            settings["labels"] = "none"
        return Discrimination(*classes, **settings)

    return _fit_command(method, {**stimulus_options, **task_options}, read, cls.__doc__)


def _file_command(method: Any, files: list[str]) -> Command:
    """Fit a method to files of data."""
    from ..stimuli import Samples

    options, task_options = data_options(), _task_options()

    def read(values: dict[str, Any]) -> Any:
        return read_files(files, options, task_options, values, unlabelled=True)

    return _fit_command(method, {**options, **task_options}, read, Samples.__doc__ or "")


def _task_options() -> dict[str, Option]:
    from ..tasks import Discrimination

    return {"proportions": field_options(Discrimination)["proportions"]}


def _fit_command(
    method: Any,
    stimulus_options: dict[str, Option],
    read: Callable[[dict[str, Any]], Any],
    about: str,
) -> Command:
    from ..experiments import Fit

    method_options, fit_options = field_options(method), field_options(Fit)
    del fit_options["baseline"]

    def command(**values: Any) -> None:
        task = read(values)
        fit = from_text(Fit, given(fit_options, values))
        baseline = from_text(method, given(method_options, values))
        _fit(task, fit.replace(baseline=baseline), **values)

    groups = {
        "stimulus": stimulus_options,
        "method": {**method_options, **fit_options},
        "output": OUTPUT,
    }
    return Command(command, groups, about)


def _read_classes(cls: Any, texts: dict[str, str]) -> list[Any]:
    """The classes; one stimulus is enough, since a mixture of it with itself is the same."""
    kinds = {field.name: field.kind for field in fields(cls)}
    try:
        stimulus = from_text(cls, texts)
    except InputError:
        may_differ = [text for name, text in texts.items() if not isinstance(kinds[name], Shape)]
        if not any("," in text for text in may_differ):
            raise
        return read_classes(cls, texts)
    return [stimulus, stimulus]


def _fit(task: Any, method: Any, out: str, plot: bool, overwrite: bool) -> None:
    from ..experiments import Experiment
    from ..plots import final_fields

    names = name_of(type(method.baseline)), name_of(type(task.stimuli[0]))
    target, picture = output_files("-".join(names), out, plot, overwrite)
    use_compilation_cache()
    with working(f"fitting {names[0]} to {method.samples} samples"):
        run = Experiment(task, method=method).run()
    _print(run, method)
    write_run(run, target, picture, final_fields)


def _print(run: Any, method: Any) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from ..trajectory import localized_from

    size = int(np.prod(run.shape))
    several = run.num_members > 1
    ipr, peak = run.ipr[:, -1], run.peak[:, -1]
    local = np.nan_to_num(ipr) > localized_from(size)
    table = Table(*(["fit"] * several), "component", "IPR", "peak", "localized")
    for m, k in np.ndindex(*ipr.shape):
        site = str(peak[m, k]) if len(run.shape) == 1 else ", ".join(map(str, peak[m, k]))
        localized = "yes" if local[m, k] else "no"
        table.add_row(*([str(m)] * several), str(k), f"{ipr[m, k]:.3f}", site, localized)
    Console().print(table)
    print(
        f"{local.sum()} of {local.size} fields localized (IPR above {localized_from(size):.3f}); "
        f"median IPR {np.nanmedian(ipr):.3f}, from {np.nanmin(ipr):.3f} to {np.nanmax(ipr):.3f}"
    )
    ends = ", ".join(dict.fromkeys(map(str, run.outcome)))
    seconds = run.manifest["run_seconds"]
    print(f"{method.baseline} on {method.samples:,} samples: {ends}; {seconds:.1f} s")
