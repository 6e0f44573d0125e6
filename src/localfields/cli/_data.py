"""Files of data at the command line: they are named first, one per class; options follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, show
from ._options import Command, Option, field_options, given
from ._run import Groups, experiment_options

DEFAULT_BLUR = "0,1"


def leading_files(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """The files that a command line begins with; none if its first word is one of `names`."""
    from ..stimuli._load import SUFFIXES

    count = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    files = list(argv[:count])
    if not files or files[0] in names:
        return []
    # `data.npz:x` names one array of a file.
    path = files[0].rpartition(":")[0] or files[0]
    has_suffix = any(name.lower().endswith(SUFFIXES) for name in (path, files[0]))
    return files if has_suffix or "/" in files[0] or Path(files[0]).exists() else []


def data_options() -> dict[str, Option]:
    """How files are read: the fields of `Samples`, and what makes several classes of one file."""
    from ..stimuli import Samples

    options = field_options(Samples)
    del options["data"], options["chosen"]
    labels = "one file: labels, one number per sample; each is a class"
    options["classes"] = Option(labels, options["classes"].metavar)
    blur = f"one file: blurs, in sites, each of which makes a class (default: {DEFAULT_BLUR})"
    return {"blur": Option(blur, "SIGMA,…"), **options}


def experiment_groups() -> Groups:
    """The options that make an experiment on files, by group."""
    from ..stimuli import Samples

    groups = experiment_options(Samples)
    del groups["stimulus"]
    return {"data": data_options(), **groups}


def experiment_from_files(files: Sequence[str], groups: Groups, values: dict[str, Any]) -> Any:
    """The experiment on some files that options specify; they are taken out of `values`."""
    from ..experiments.texts import experiment_of

    task = read_files(files, groups["data"], groups["task"], values)
    others = [group for title, group in groups.items() if title not in ("data", "task")]
    return experiment_of({k: v for group in others for k, v in given(group, values).items()}, task)


def experiment_command(
    files: Sequence[str], run: Callable[..., None], output: dict[str, Option]
) -> Command:
    """A command that runs an experiment on some files; `run` takes it and the options of output."""
    from ..stimuli import Samples

    groups = experiment_groups()

    def command(**values: Any) -> None:
        run(experiment_from_files(files, groups, values), **values)

    return Command(command, {**groups, "output": output}, Samples.__doc__ or "")


def read_files(
    files: Sequence[str],
    options: Mapping[str, Option],
    task_options: Mapping[str, Option],
    values: dict[str, Any],
    unlabelled: bool = False,
) -> Any:
    """The task of some files, whose classes are files, labels or blurs.

    The options are taken out of `values`. One file without labels or blurs is one stimulus without
    classes if `unlabelled` is set, else two blurs of it.
    """
    from .. import data
    from .._spec import parse_fields
    from ..stimuli import Samples
    from ..stimuli.images import stimulus_of
    from ..tasks import Discrimination

    texts = given(options, values)
    blur, labels = texts.pop("blur", ""), texts.pop("classes", "")
    settings = parse_fields(Samples, texts)
    if len(files) > 1 and (labels or blur):
        name = "--classes" if labels else "--blur"
        raise InputError(f"{name} needs one file, got {len(files)}. Each file is a class already.")
    if labels and blur:
        raise InputError("Give --classes or --blur, not both: the labels are the classes already.")
    if labels:
        task = data.labelled(files[0], labels, labels="zero-one", **settings)
    elif len(files) > 1:
        task = data.sources(*files, **settings)
    elif unlabelled and not blur:
        task = Discrimination(*[stimulus_of(files[0], **settings)] * 2, labels="none")
    else:
        task = data.blurs(stimulus_of(files[0], **settings), _widths(blur or DEFAULT_BLUR))
    return task.replace(**parse_fields(Discrimination, given(task_options, values)))


def _widths(text: str) -> list[float]:
    try:
        widths = [float(part) for part in text.split(",")]
    except ValueError:
        widths = []
    if len(set(widths)) < max(2, len(widths)):
        raise InputError(
            f"--blur must be two or more different widths, got {show(text)}. "
            "For example --blur 0,1."
        )
    return widths
