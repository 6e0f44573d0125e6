"""The setting of a page as texts by field: in its link, and as Python code."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

from .._spec import Spec, fields
from ..errors import InputError, show
from ..experiments import Experiment
from ..experiments.texts import experiment_of
from .limits import Limits

KEPT_RUN = "beside"  # the parameter that holds the link of the run kept for comparison
IGNORED = ("theme",)  # parameters that say nothing about the setting
MAX_TEXT = 4000  # characters of one field: room for a hundred numbers

# Where a class of each family is found after `import localfields as lf`.
NAMESPACES = {
    "stimulus": "lf.stimuli",
    "network": "lf.networks",
    "marginal": "lf.marginals",
    "kernel": "lf.lattice",
    "gates": "lf.networks.gates",
    **dict.fromkeys(("task", "method", "experiment"), "lf"),
}


def to_query(texts: Mapping[str, str], beside: Mapping[str, str] | None = None) -> str:
    """The part of a link after the question mark.

    Example:
        >>> to_query({"stimulus": "nlgp", "xi": "1,3"})
        'stimulus=nlgp&xi=1,3'
    """
    pairs = dict(texts) | ({KEPT_RUN: to_query(beside)} if beside else {})
    return urllib.parse.urlencode(pairs, safe=",:", quote_via=urllib.parse.quote)


def page_link(path: str, query: str, dark: bool) -> str:
    """A link to a page of the explorer in the same theme."""
    return f"{path}?{query}{'&theme=dark' if dark else ''}"


def texts_in(query: str, limits: Limits) -> dict[str, str]:
    """The texts of a link by field, not interpreted yet.

    Raises:
        InputError: If it is malformed or too long, or names a field twice.
    """
    if len(query) > limits.text_length:
        raise InputError(
            f"This link has {len(query)} characters; at most {limits.text_length} are possible. "
            "Copy it again."
        )
    try:
        pairs = urllib.parse.parse_qsl(
            query.removeprefix("?"),
            keep_blank_values=True,
            strict_parsing=bool(query),
            errors="strict",
            max_num_fields=MAX_TEXT,
        )
    except ValueError as error:
        raise InputError(
            f"This link cannot be read ({error}). Links look like ?stimulus=nlgp&xi=1,3; copy it "
            "again."
        ) from None
    pairs = [(name, text) for name, text in pairs if name not in IGNORED]
    if len(dict(pairs)) < len(pairs):
        raise InputError("This link names a field twice. Remove one of them.")
    for name, text in pairs:
        if name != KEPT_RUN and len(text) > MAX_TEXT:
            raise InputError(
                f"The field {show(name)} of this link has {len(text)} characters; at most "
                f"{MAX_TEXT} are possible. Shorten it."
            )
        if odd := next((c for c in text if c.isdigit() and not c.isascii()), ""):
            raise InputError(
                f"The field {show(name)} of this link contains {odd!r}. Write numbers with the "
                "digits 0 to 9."
            )
    return dict(pairs)


def settings_in(query: str, limits: Limits) -> tuple[dict[str, str], dict[str, str] | None]:
    """The texts of a link and those of the kept run, if any, not interpreted yet.

    Raises:
        InputError: If it is malformed, or more than one run is kept.
    """
    texts = texts_in(query, limits)
    if KEPT_RUN not in texts:
        return texts, None
    kept = texts_in(texts.pop(KEPT_RUN), limits)
    if KEPT_RUN in kept:
        raise InputError("This link keeps more than one run for comparison. Remove one of them.")
    return texts, kept


def from_query(query: str, limits: Limits) -> tuple[dict[str, str], dict[str, str] | None]:
    """The texts of a link (empty if it has none) and those of the kept run, if any.

    Raises:
        InputError: If it does not describe an experiment, or one that is too large.
    """
    texts, kept = settings_in(query, limits)
    for setting in (texts, kept):
        if setting:
            read(setting, limits)
    return texts, kept


def read(texts: Mapping[str, str], limits: Limits) -> Experiment:
    """The experiment that a visitor's texts describe.

    Raises:
        InputError: If they describe none, or one that is too large.
    """
    limits.check_texts(texts)
    experiment = experiment_of(texts)
    limits.check(experiment)
    return experiment


def to_python(experiment: Experiment) -> str:
    """Python code that runs an experiment.

    Example:
        >>> print(to_python(Experiment()).splitlines()[0])
        import localfields as lf
    """
    task: Any = experiment.task
    options = [f"    {name}={value!r}," for name, value in _changed(task) if name != "stimuli"]
    precision = experiment.precision
    more = "" if precision == "float32" else f", precision={precision!r}"
    return "\n".join(
        (
            "import localfields as lf",
            "",
            "task = lf.Discrimination(",
            *(f"    {_call(stimulus)}," for stimulus in task.stimuli),
            *options,
            ")",
            f"network = {_call(experiment.network)}",
            f"method = {_call(experiment.method)}",
            f"run = lf.run_or_load(lf.Experiment(task, network, method{more}))",
            "print(run)",
        )
    )


def _changed(value: Spec) -> list[tuple[str, Any]]:
    """Names and values of the fields that are not at their defaults."""
    return [
        (field.name, getattr(value, field.name))
        for field in fields(type(value))
        if repr(getattr(value, field.name)) != repr(field.default)
    ]


def _call(value: Spec) -> str:
    """The constructor call of a value."""
    arguments = (
        f"{name}={_call(part) if isinstance(part, Spec) else repr(part)}"
        for name, part in _changed(value)
    )
    return f"{NAMESPACES[value.family]}.{type(value).__name__}({', '.join(arguments)})"
