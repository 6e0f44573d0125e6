"""`localfields baseline`: the fields that another method learns from samples of a stimulus, without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._spec import Shape, fields, from_text, name_of, parse_fields, registered
from ..errors import InputError, unknown
from ..experiments.texts import read_classes
from ._data import leading_files
from ._options import (
    changed,
    field_options,
    run_one_of,
    use_compilation_cache,
    with_options,
    working,
)
from ._run import OUTPUT, output_files, write_run

ABOUT = """Fit a method that learns without labels to samples of a stimulus, and say which of its fields are localized:

  localfields baseline ica kur --k 3
  localfields baseline ica mydata.npy

A parameter with several values, as --xi 1,3, makes a mixture of classes, as a network is trained on."""


def run(argv: Sequence[str]) -> None:
    """Offer every registered baseline, and for each every registered stimulus."""
    from .. import baselines as baselines
    from .. import stimuli as stimuli

    known = registered("baseline")
    if not argv or argv[0] in ("-h", "--help"):
        run_one_of(known, [], "localfields baseline", "method", ABOUT)
        return
    name = full_name(argv[0], known)
    commands = {
        stimulus: _command(known[name], cls) for stimulus, cls in registered("stimulus").items()
    }
    rest = list(argv[1:])
    if files := leading_files(rest, list(commands)):
        rest = ["samples", "--data", ",".join(files), *rest[len(files) :]]
    run_one_of(commands, rest, f"localfields baseline {name}", "stimulus", ABOUT)


def full_name(word: str, known: Mapping[str, Any]) -> str:
    """The method of that name, or the only one of whose name it is a part: `ica` is `fast-ica`."""
    alike = [name for name in known if word in name.split("-")]
    if word not in known and len(alike) == 1:
        return alike[0]
    if word not in known:
        unknown("The method", word, known)
    return word


def _command(method: Any, cls: Any) -> Any:
    from ..experiments import Fit
    from ..tasks import Discrimination

    own, of_method = field_options(cls), field_options(method)
    of_fit = {name: one for name, one in field_options(Fit).items() if name != "baseline"}
    of_task = {
        name: one for name, one in field_options(Discrimination).items() if name == "proportions"
    }

    def command(**values: Any) -> None:
        classes = _read_classes(cls, changed(own, values))
        task = Discrimination(*classes, **parse_fields(Discrimination, changed(of_task, values)))
        baseline = from_text(method, changed(of_method, values))
        _fit(task, from_text(Fit, changed(of_fit, values)).replace(baseline=baseline), **values)

    return with_options(command, {**own, **of_method, **of_fit, **of_task, **OUTPUT}, cls)


def _read_classes(cls: Any, given: dict[str, str]) -> list[Any]:
    """The classes, of which one is enough here: a mixture of a law with itself is that law."""
    kinds = {field.name: field.kind for field in fields(cls)}
    try:
        one = from_text(cls, given)
    except InputError:
        if not any(
            "," in text for name, text in given.items() if not isinstance(kinds[name], Shape)
        ):
            raise
        return read_classes(cls, given)
    return [one, one]


def _fit(task: Any, method: Any, out: str, plot: bool, overwrite: bool) -> None:
    from ..experiments import Experiment
    from ..plots.baselines import save_fields

    names = name_of(type(method.baseline)), name_of(type(task.stimuli[0]))
    target, picture = output_files("-".join(names), out, plot, overwrite)
    use_compilation_cache()
    with working(f"fitting {names[0]} to {method.samples} samples"):
        found = Experiment(task, method=method).run()
    _print(found, method)
    write_run(found, target, picture, save_fields)


def _print(found: Any, method: Any) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from ..trajectory import localized_from

    size = int(np.prod(found.shape))
    several = found.num_members > 1
    ipr, peak = found.ipr[:, -1], found.peak[:, -1]
    local = np.nan_to_num(ipr) > localized_from(size)
    table = Table(*(["fit"] * several), "component", "IPR", "peak", "localized")
    for m, k in np.ndindex(*ipr.shape):
        place = str(peak[m, k]) if len(found.shape) == 1 else ", ".join(map(str, peak[m, k]))
        table.add_row(
            *([str(m)] * several), str(k), f"{ipr[m, k]:.3f}", place, "yes" if local[m, k] else "no"
        )
    Console().print(table)
    print(
        f"{local.sum()} of {local.size} fields localized (IPR above {localized_from(size):.3f}); "
        f"median IPR {np.nanmedian(ipr):.3f}, from {np.nanmin(ipr):.3f} to {np.nanmax(ipr):.3f}"
    )
    ends = ", ".join(dict.fromkeys(map(str, found.outcome)))
    seconds = found.manifest["run_seconds"]
    print(f"{method.baseline} on {method.samples:,} samples: {ends}; {seconds:.1f} s")
