"""What a page shows, as texts by field: in its address, as a command and as Python."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

from .._spec import Spec, fields
from ..errors import InputError
from ..experiments import Experiment
from ..experiments.texts import experiment_of
from .limits import Limits

BESIDE = (
    "beside"  # the setting of the run that is kept for comparison, as an address within the address
)
VIEW = ("theme",)  # what an address may say besides

# Where a class of each family is found in `import localfields as lf`.
ROOMS = {
    "stimulus": "lf.stimuli",
    "network": "lf.networks",
    "marginal": "lf.marginals",
    "kernel": "lf.lattice",
}
ROOMS |= {"gates": "lf.networks.gates", "task": "lf", "method": "lf", "experiment": "lf"}


def to_query(texts: Mapping[str, str], beside: Mapping[str, str] | None = None) -> str:
    """The part of an address after the question mark.

    Example:
        >>> to_query({"stimulus": "nlgp", "xi": "1,3"})
        'stimulus=nlgp&xi=1,3'
    """
    whole = dict(texts) | ({BESIDE: to_query(beside)} if beside else {})
    return urllib.parse.urlencode(whole, safe=",:", quote_via=urllib.parse.quote)


def texts_in(query: str, limits: Limits) -> dict[str, str]:
    """The texts of an address by their names, unread.

    Raises:
        InputError: When they are no such texts, or one is given twice.
    """
    if len(query) > limits.text:
        raise InputError(
            f"This link has {len(query)} characters; at most {limits.text} are possible. Copy it "
            "again."
        )
    try:
        pairs = urllib.parse.parse_qsl(
            query.removeprefix("?"), keep_blank_values=True, strict_parsing=bool(query)
        )
    except ValueError as error:
        raise InputError(
            f"This link cannot be read ({error}). Links look like ?stimulus=nlgp&xi=1,3; copy it "
            "again."
        ) from None
    texts = {name: text for name, text in pairs if name not in VIEW}
    if len(texts) < len([name for name, _ in pairs if name not in VIEW]):
        raise InputError("This link names a field twice. Remove one of them.")
    return texts


def from_query(query: str, limits: Limits) -> tuple[dict[str, str], dict[str, str] | None]:
    """The texts of an address, and those of the run beside it; an address without any has none.

    Raises:
        InputError: When it is no address of this page, or spells an experiment that is illegal or too large.
    """
    texts = texts_in(query, limits)
    other = texts.pop(BESIDE, None)
    if texts:
        read(texts, limits)
    return texts, None if other is None else from_query(other, limits)[0]


def read(texts: Mapping[str, str], limits: Limits) -> Experiment:
    """The experiment that a visitor's texts spell, if it is legal and not too large.

    Raises:
        InputError: When it is not.
    """
    limits.check_texts(texts)
    experiment = experiment_of(texts)
    limits.check(experiment)
    return experiment


def to_python(experiment: Experiment) -> str:
    """The lines that run an experiment.

    Example:
        >>> print(to_python(Experiment()).splitlines()[0])
        import localfields as lf
    """
    task: Any = experiment.task
    lines = ["import localfields as lf", "", "task = lf.Discrimination("]
    lines += [f"    {_call(one)}," for one in task.stimuli]
    lines += [f"    {name}={value!r}," for name, value in _given(task) if name != "stimuli"]
    lines += [")", f"network = {_call(experiment.network)}", f"method = {_call(experiment.method)}"]
    more = "" if experiment.precision == "float32" else f", precision={experiment.precision!r}"
    lines += [f"run = lf.run_or_load(lf.Experiment(task, network, method{more}))", "print(run)"]
    return "\n".join(lines)


def _given(value: Spec) -> list[tuple[str, Any]]:
    now = [(field.name, getattr(value, field.name), field.default) for field in fields(type(value))]
    return [(name, one) for name, one, default in now if repr(one) != repr(default)]


def _call(value: Spec) -> str:
    """The call that makes a value; what is at its default is left out."""
    words = (
        f"{name}={_call(one) if isinstance(one, Spec) else repr(one)}"
        for name, one in _given(value)
    )
    return f"{ROOMS[value.family]}.{type(value).__name__}({', '.join(words)})"
