"""What a visitor may ask for: how large, how long, and of which kinds. All of it is checked in the server."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._spec import (
    Choice,
    Count,
    Many,
    Nested,
    Number,
    Row,
    Seeds,
    Shape,
    Spec,
    fields,
    num_members,
    registered,
)
from ..errors import InputError
from ..experiments import Experiment, Training
from ..experiments.experiment import Names, One
from ..tasks import Labels, Proportions

# Kinds of fields that hold numbers, names out of a list, or other specifications. A class with a field of any other
# kind may open files or run code when it is made, so that a visitor cannot ask for it.
PLAIN = {Choice, Count, Labels, Many, Names, Nested, Number, One, Proportions, Row, Seeds, Shape}
FAMILIES = (
    "stimulus",
    "marginal",
    "kernel",
    "network",
    "gates",
    "task",
    "method",
    "experiment",
    "theory",
)
MOST_PARTS = 64  # specifications within one
SMALLER = "Choose a smaller one; the library itself has no such limit."


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on what a visitor asks for, and on what all of them together get.

    Args:
        sites: Of a lattice.
        neurons: Of a network.
        members: Of an ensemble.
        classes: Of a task.
        steps: Of a run.
        batch: Draws a step, and held-out samples a record.
        numbers: Drawn at a time: batch × sites; with the estimator `orbit` also × neurons.
        draws: Of a run, times neurons: steps × batch × members × neurons.
        record_bytes: Memory of a run's records.
        seconds: That a run may take.
        thinking: Seconds that an answer, a verdict or a theory may take.
        patience: Seconds within which a worker must react to being stopped.
        text: Characters of an experiment's JSON, and of a link.
        sessions: Open pages.
        queue: Requests that wait.
        store_bytes: Of the store; beyond, results are shown but not kept.
        worker_jobs: After which a worker is replaced,
        worker_bytes: or when it holds more memory than this while it is idle;
        worker_most: a worker that takes more than this is ended at once.

    Example:
        >>> import localfields as lf
        >>> Limits().check(lf.Experiment(method=lf.Training(steps=100)))
        >>> Limits(steps=50).check(lf.Experiment(method=lf.Training(steps=100)))
        Traceback (most recent call last):
        ...
        localfields.errors.InputError: `steps` must be at most 50 here, got 100. Choose a smaller one; ...
    """

    sites: int = 4096
    neurons: int = 400
    members: int = 100
    classes: int = 8
    steps: int = 50_000
    batch: int = 20_000
    numbers: int = 20_000_000
    draws: int = 20_000_000_000
    record_bytes: int = 32_000_000
    seconds: float = 120.0
    thinking: float = 60.0
    patience: float = 10.0
    text: int = 200_000
    sessions: int = 60
    queue: int = 100
    store_bytes: int = 2_000_000_000
    worker_jobs: int = 200
    worker_bytes: int = 1_500_000_000
    worker_most: int = 3_000_000_000

    def read(self, text: str) -> Experiment:
        """Build an experiment from what a visitor sent; nothing of it is made before it is known to be harmless.

        Raises:
            InputError: When it is no experiment, too large, or of a kind that reads files.
        """
        if not isinstance(text, str) or len(text) > self.text:
            got = f"{len(text)} characters" if isinstance(text, str) else "no text"
            raise InputError(
                "The description of an experiment must be a text of at most "
                f"{self.text} characters, got {got}. {SMALLER}"
            )
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"The experiment is not valid JSON ({error}). Copy the whole link."
            ) from None
        self._check_plain(plain)
        experiment = Experiment.of(text)
        self.check(experiment)
        return experiment

    def check_texts(self, texts: Mapping[str, str]) -> None:
        """Refuse, before anything is made of them, texts by field that name what reads files, or are too large.

        Raises:
            InputError: When they do, or are.
        """
        size = sum(len(name) + len(text) for name, text in texts.items())
        if size > self.text:
            raise InputError(
                f"The description of an experiment has {size} characters; at most {self.text} are "
                f"possible here. {SMALLER}"
            )
        check_words(texts.values())
        for name, text in texts.items():
            count = text.count(",") + 1
            if count > self.members:
                raise InputError(
                    f"`{name}` must have at most {self.members} values here, got {count}. {SMALLER}"
                )
        sites = math.prod(Shape().parse("shape", texts.get("shape", "40")))
        if sites > self.sites:
            raise InputError(
                f"The number of sites must be at most {self.sites} here, got {sites}. {SMALLER}"
            )

    def check(self, experiment: Experiment) -> None:
        """Refuse an experiment that is too large, or not for visitors.

        Raises:
            InputError: Which says what is too large, and how large it may be.
        """
        task, network, method = experiment.task, experiment.network, experiment.method
        if not isinstance(method, Training):
            raise InputError(
                "Only training can be run here. Theory is drawn beside it automatically."
            )
        for part in _parts(experiment):
            check_kinds(type(part))
        swept = [
            count for one in (task, network, method) if (count := num_members(one)) is not None
        ]
        swept += [len(method.seed)] if isinstance(method.seed, tuple) else []
        members, hidden = max([method.members, *swept]), network.hidden
        held = task.size * (hidden if method.estimator == "orbit" else 1)
        for name, got, most in (
            ("The number of sites", task.size, self.sites),
            ("The number of neurons", hidden, self.neurons),
            ("`members`", members, self.members),
            ("The number of classes", len(task.stimuli), self.classes),
            ("`steps`", method.steps, self.steps),
            ("`batch`", method.batch, self.batch),
            ("`evaluate`", method.evaluate, self.batch),
            ("`batch` × sites", method.batch * held, self.numbers),
            ("`evaluate` × sites", method.evaluate * task.size, self.numbers),
            (
                "Steps × batch × members × neurons",
                method.steps * method.batch * members * hidden,
                self.draws,
            ),
        ):
            if got > most:
                raise InputError(f"{name} must be at most {most} here, got {got}. {SMALLER}")
        size = record_bytes(experiment, members)
        if size > self.record_bytes:
            raise InputError(
                f"The memory for records must be at most {self.record_bytes / 1e6:.0f} MB here, "
                f"got {size / 1e6:.0f} MB. "
                "Record less often, or use fewer members."
            )

    def words(self) -> tuple[str, ...]:
        """The limits as sentences for the page."""
        return (
            f"A run has at most {self.sites} sites, {self.neurons} neurons, {self.members} "
            f"members, {self.steps} "
            f"steps and {self.batch} draws a step.",
            f"Steps × draws × members × neurons is at most {self.draws:.0e}, and records take at "
            "most "
            f"{self.record_bytes / 1e6:.0f} MB.".replace("e+", "e"),
            f"A run takes at most {self.seconds:.0f} s at a time; after that it is paused and can "
            "be continued.",
            f"At most {self.sessions} pages are open and {self.queue} requests wait at once.",
            f"Results are kept until the store holds {self.store_bytes / 1e9:g} GB.",
            "Stimuli made of files are for Python and the command line.",
        )

    def _check_plain(self, plain: Any) -> None:
        """Look through JSON for what must not even be constructed."""
        parts = 0
        whole = list(_walk(plain))
        check_words(one for one in whole if isinstance(one, str))
        for one in whole:
            if isinstance(one, dict) and isinstance(one.get("type"), str):
                parts += 1
                family, _, name = one["type"].partition("/")
                cls = registered(family).get(name)
                if cls is not None:
                    check_kinds(cls)
                    self._check_sizes(cls, one)
        if parts > MOST_PARTS:
            raise InputError(
                f"The number of parts of an experiment must be at most {MOST_PARTS} here, got "
                f"{parts}. {SMALLER}"
            )

    def _check_sizes(self, cls: type[Spec], plain: dict[str, Any]) -> None:
        for field in fields(cls):
            given = plain.get(field.name)
            if isinstance(field.kind, Shape):
                axes = given if isinstance(given, list) else [given]
                whole = [n for n in axes if isinstance(n, int)]
                if math.prod(whole) > self.sites:
                    raise InputError(
                        f"The number of sites must be at most {self.sites} here, got "
                        f"{math.prod(whole)}. {SMALLER}"
                    )
            elif isinstance(field.kind, (Number, Many, Seeds)) and isinstance(given, list):
                most = self.classes if isinstance(field.kind, Many) else self.members
                if len(given) > most:
                    raise InputError(
                        f"`{field.name}` must have at most {most} values here, got {len(given)}. "
                        f"{SMALLER}"
                    )


def record_bytes(experiment: Experiment, members: int) -> int:
    """Memory that the records of a run take; what a network does not have counts all the same."""
    method: Any = experiment.method
    hidden, outputs, axes = (
        experiment.network.hidden,
        experiment.task.outputs,
        len(experiment.task.shape),
    )
    sizes = {
        "weights": hidden * experiment.task.size,
        "readout": outputs * hidden,
        "readout_bias": outputs,
        "loss": 1,
        "accuracy": 1,
        "peak": hidden * axes,
    }
    one = sum(sizes.get(name, hidden) for name in method.quantities)
    records = len(range(0, method.steps, method.every)) + 1
    return records * members * one * (8 if experiment.precision == "float64" else 4)


def _walk(plain: Any) -> Iterator[Any]:
    """Every value within plain values."""
    level = [plain]
    while level:
        yield from level
        inner = []
        for one in level:
            inner += (
                list(one.values())
                if isinstance(one, dict)
                else one
                if isinstance(one, list)
                else []
            )
        level = inner


def _parts(value: Any) -> Iterator[Spec]:
    """A specification and all those within it."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, Spec):
            yield one
            for field in fields(type(one)):
                yield from _parts(getattr(one, field.name))


def check_words(texts: Iterable[str]) -> None:
    """Refuse texts in which a class is named that a visitor may not ask for, as in `name:field=value`."""
    odd = {
        name: cls
        for family in FAMILIES
        for name, cls in registered(family).items()
        if not is_plain(cls)
    }
    for text in texts:
        for word in odd.keys() & re.split(r"[:,=]", text):
            check_kinds(odd[word])


def is_plain(cls: type[Spec]) -> bool:
    """Whether a class takes numbers and names alone, so that a visitor may ask for it."""
    return all(type(field.kind) in PLAIN for field in fields(cls))


def check_kinds(cls: type[Spec]) -> None:
    """Refuse a class that takes more than numbers and names."""
    if not is_plain(cls):
        odd = [field.name for field in fields(cls) if type(field.kind) not in PLAIN]
        raise InputError(
            f"A {cls.family} here is made of numbers and names alone, and the `{odd[0]}` of "
            f"{cls.__name__} may name a file. "
            "Use Python or the command line for it."
        )
