"""An experiment as texts that people type: one spelling for command line, explorer and addresses.

The classes of a task are of one family of stimuli; a number in which they differ has one value per
class, `xi=1,3`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from .._spec import (
    Count,
    Number,
    Spec,
    fields,
    find,
    from_text,
    name_of,
    parse_fields,
    registered,
    to_text,
)
from ..errors import InputError, unknown_name
from ..tasks import Discrimination
from .experiment import Experiment, Training

DEFAULT_NETWORK = "single-neuron"


def experiment_of(texts: Mapping[str, str], task: Discrimination | None = None) -> Experiment:
    """The experiment that texts by field spell; `stimulus` and `network` say whose the others are.

    Args:
        texts: For example `{"stimulus": "nlgp", "gain": "100", "xi": "1,3", "steps": "2000"}`.
            Fields that are left out have their defaults.
        task: The task where it is made otherwise; then texts are of network and training alone.

    Raises:
        InputError: If a name is unknown or a text is illegal.

    Example:
        >>> experiment_of({"stimulus": "ising", "coupling": "0.3,0.7", "steps": "3"}).method.steps
        3
    """
    given = dict(texts)
    stimulus = find("stimulus", given.pop("stimulus", "nlgp")) if task is None else None
    network = find("network", given.pop("network", DEFAULT_NETWORK))
    of_task = () if stimulus is None else (stimulus, Discrimination)
    parts: dict[Any, dict[str, str]] = {
        owner: {name: given.pop(name) for name in names_of(owner) if name in given}
        for owner in (*of_task, network, Training)
    }
    more: Any = {"precision": given.pop("precision")} if "precision" in given else {}
    if given:
        name = next(iter(given))
        if any(name in names_of(cls) for cls in registered("network").values()):
            raise unknown_name(
                f"field of the network `{name_of(network)}`", name, names_of(network)
            )
        known = [name for owner in parts for name in names_of(owner)]
        raise unknown_name("field", name, ["stimulus", "network", *known, "precision"])
    if task is None:
        task = read_task(stimulus, {**parts[stimulus], **parts[Discrimination]})
    return Experiment(
        task, from_text(network, parts[network]), from_text(Training, parts[Training]), **more
    )


def texts_of(experiment: Experiment) -> dict[str, str]:
    """The texts that spell an experiment; fields at their defaults are left out.

    Raises:
        InputError: If it cannot be typed: classes of several families, swept numbers, fields to
            start from, data in memory, or a theory instead of training.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=100) for xi in (1, 3)))
        >>> texts_of(lf.Experiment(task, method=lf.Training(steps=10)))
        {'stimulus': 'nlgp', 'xi': '1,3', 'gain': '100', 'steps': '10'}
    """
    classes = experiment.task.stimuli
    family = type(classes[0])
    network, method = experiment.network, experiment.method
    if any(type(stimulus) is not family for stimulus in classes):
        raise _untyped("its classes are of several families")
    if not isinstance(method, Training):
        raise _untyped("it is not trained")
    try:
        by_class = [to_text(stimulus) for stimulus in classes]
        of_task = {k: v for k, v in to_text(experiment.task).items() if k != "stimuli"}
        others = of_task | to_text(network) | to_text(method)
    except TypeError:  # an array is no number
        raise _untyped("its members differ in numbers") from None
    texts = {"stimulus": name_of(family)}
    for name, default in default_texts(family).items():
        values = [given.get(name, default) for given in by_class]
        if len(set(values)) > 1:
            texts[name] = ",".join(values)
        elif name in by_class[0]:
            texts[name] = values[0]
    if name_of(type(network)) != DEFAULT_NETWORK:
        texts["network"] = name_of(type(network))
    texts |= others
    if experiment.precision != "float32":
        texts["precision"] = experiment.precision
    try:
        same = experiment_of(texts).digest == experiment.digest
    except InputError:  # an array has no text
        same = False
    if not same:
        raise _untyped("it has arrays")
    return texts


def _untyped(reason: str) -> InputError:
    return InputError(
        f"This experiment cannot be typed as options: {reason}. Use its file, or Python."
    )


def command_of(texts: Mapping[str, str]) -> str:
    """The command line that runs what texts spell.

    Example:
        >>> command_of({"stimulus": "nlgp", "gain": "100", "learning_rate": "0.1"})
        'localfields run nlgp --gain 100 --learning-rate 0.1'
    """
    command = ["localfields", "run", texts.get("stimulus", "nlgp")]
    for name, text in texts.items():
        if name != "stimulus":
            command += [f"--{name.replace('_', '-')}", text]
    return shlex.join(command)


def names_of(cls: type[Spec]) -> list[str]:
    """Fields that can be typed: lists of other values and arrays are for Python."""
    return [field.name for field in fields(cls) if field.kind.typed]


def default_texts(cls: type[Spec]) -> dict[str, str]:
    """Every field's default as it is typed."""
    return {field.name: field.kind.text(field.default) for field in fields(cls)}


def read_task(cls: Any, given: Mapping[str, str]) -> Discrimination:
    """A task from texts of a stimulus's fields, one value or one per class, and of its own fields.

    Raises:
        InputError: If the classes do not differ, or a text is illegal.
    """
    of_task = {name: given[name] for name in names_of(Discrimination) if name in given}
    classes = read_classes(cls, {name: text for name, text in given.items() if name not in of_task})
    return Discrimination(*classes, **parse_fields(Discrimination, of_task))


def read_classes(cls: Any, given: Mapping[str, str]) -> list[Any]:
    """One stimulus per class, from texts such as `{"gain": "100", "xi": "1,3"}`.

    Raises:
        InputError: If the classes do not differ, or a text is illegal.
    """
    kinds = {field.name: field.kind for field in fields(cls)}
    varied = {name: text for name, text in given.items() if name in kinds and may_vary(kinds[name])}
    several = {name: text.split(",") for name, text in varied.items() if "," in text}
    counts = {len(parts) for parts in several.values()}
    if not counts:
        first = next((name for name, kind in kinds.items() if may_vary(kind)), "xi")
        numbers = isinstance(kinds.get(first, Number()), (Number, Count))
        kind = (
            "one of the stimulus's numbers" if numbers else "one of the stimulus's numbers or files"
        )
        raise InputError(
            "The classes are identical. "
            f"Give {kind} a value per class, for example --{first} {'1,3' if numbers else 'A,B'}."
        )
    if len(counts) > 1:
        raise InputError(
            f"The options disagree about the number of classes: "
            f"{', '.join(f'--{name} has {len(parts)} values' for name, parts in several.items())}."
        )
    return [
        from_text(cls, {**given, **{name: parts[c] for name, parts in several.items()}})
        for c in range(counts.pop())
    ]


def may_vary(kind: Any) -> bool:
    """Whether a field of this kind can have one value per class."""
    return kind.per_class
