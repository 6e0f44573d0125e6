"""`localfields baseline`: the fields that an unsupervised method learns from a stimulus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._spec import Shape, fields, from_text, name_of, parse_fields, registered
from .._start import use_compilation_cache
from ..errors import InputError, unknown_name
from ..experiments.texts import read_classes
from ._data import leading_files
from ._options import Command, field_options, given, run_one_of, working
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
    rest = list(argv[1:])
    if files := leading_files(rest, list(commands)):
        rest = ["samples", "--data", ",".join(files), *rest[len(files) :]]
    run_one_of(commands, rest, f"localfields baseline {name}", "stimulus", ABOUT)


def full_name(name: str, known: Iterable[str]) -> str:
    """The method of that name, or the only one of whose name it is a part: `ica` is `fast-ica`."""
    alike = [other for other in known if name in other.split("-")]
    if name not in known and len(alike) != 1:
        raise unknown_name("method", name, known)
    return name if name in known else alike[0]


def _command(method: Any, cls: Any) -> Command:
    from ..experiments import Fit
    from ..tasks import Discrimination

    stimulus_options, method_options = field_options(cls), field_options(method)
    fit_options = field_options(Fit)
    del fit_options["baseline"]
    task_options = {"proportions": field_options(Discrimination)["proportions"]}

    def command(**values: Any) -> None:
        classes = _read_classes(cls, given(stimulus_options, values))
        settings = parse_fields(Discrimination, given(task_options, values))
        fit = from_text(Fit, given(fit_options, values))
        baseline = from_text(method, given(method_options, values))
        if all(stimulus is classes[0] for stimulus in classes):
            settings["labels"] = "none"
        task = Discrimination(*classes, **settings)
        _fit(task, fit.replace(baseline=baseline), **values)

    groups = {
        "stimulus": {**stimulus_options, **task_options},
        "method": {**method_options, **fit_options},
        "output": OUTPUT,
    }
    return Command(command, groups, cls.__doc__)


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
