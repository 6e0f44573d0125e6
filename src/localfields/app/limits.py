"""What a visitor may ask for: how large, how long, and of which classes."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .. import _spec
from .._spec import Spec, fields, num_members, registered
from ..errors import InputError
from ..experiments import Experiment, Training
from ..experiments.experiment import Names, One
from ..tasks import Labels, Proportions
from ..training.optimizers import OptimizerName

# Fields of these kinds hold numbers, names from a list, or other specifications. A class with a
# field of any other kind may open files or run code when it is built, so visitors cannot have it.
SAFE_KINDS = {
    *(_spec.Choice, _spec.Count, _spec.Many, _spec.Nested, _spec.Number, _spec.Row, _spec.Seeds),
    *(_spec.Shape, Labels, Names, One, OptimizerName, Proportions),
}
SPEC_FAMILIES = (
    *("stimulus", "marginal", "kernel", "network", "gates"),
    *("task", "method", "experiment", "theory"),
)
MAX_PARTS = 64  # specifications nested in one experiment
SMALLER = "Choose a smaller one; the library itself has no such limit."


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on what one visitor asks for, and on what all of them together get.

    Args:
        sites: Of a lattice.
        neurons: Of a network.
        members: Of an ensemble.
        classes: Of a task.
        steps: Of a run.
        batch: Samples per step, and held-out samples per record.
        batch_values: batch × sites; with the estimator `orbit` also × neurons.
        run_samples: steps × batch × members × neurons.
        record_bytes: Memory of a run's records.
        run_seconds: How long a run may take.
        theory_seconds: How long a summary, a verdict or a theory may take.
        stop_seconds: How soon a worker must react when it is stopped.
        text_length: Characters of an experiment's JSON, and of a link.
        sessions: Open pages.
        queue: Requests that wait.
        store_bytes: Size of the store above which results are shown but not stored.
        worker_jobs: Jobs after which a worker is replaced.
        worker_idle_bytes: Memory above which an idle worker is replaced.
        worker_bytes: Memory above which a worker is ended at once.

    Example:
        >>> import localfields as lf
        >>> Limits().check(lf.Experiment(method=lf.Training(steps=100)))
        >>> Limits(steps=50).check(lf.Experiment(method=lf.Training(steps=100)))
        Traceback (most recent call last):
        ...
        localfields.errors.InputError: `steps` must be at most 50 here, got 100. ...
    """

    sites: int = 4096
    neurons: int = 400
    members: int = 100
    classes: int = 8
    steps: int = 50_000
    batch: int = 20_000
    batch_values: int = 20_000_000
    run_samples: int = 20_000_000_000
    record_bytes: int = 32_000_000
    run_seconds: float = 120.0
    theory_seconds: float = 60.0
    stop_seconds: float = 10.0
    text_length: int = 200_000
    sessions: int = 60
    queue: int = 100
    store_bytes: int = 2_000_000_000
    worker_jobs: int = 200
    worker_idle_bytes: int = 1_500_000_000
    worker_bytes: int = 3_000_000_000

    def read(self, text: str) -> Experiment:
        """Build an experiment from a visitor's JSON, after checking that it is safe to build.

        Raises:
            InputError: If it is no experiment, too large, or of a class that reads files.
        """
        self._check_length(len(text))
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"The experiment is not valid JSON ({error}). Copy the whole link."
            ) from None
        values = list(_walk(plain))
        check_class_names(value for value in values if isinstance(value, str))
        parts = [
            value
            for value in values
            if isinstance(value, dict) and isinstance(value.get("type"), str)
        ]
        _at_most("The number of parts of an experiment", len(parts), MAX_PARTS)
        for part in parts:
            family, _, name = part["type"].partition("/")
            if name in registered(family):
                self._check_part(registered(family)[name], part)
        experiment = Experiment.of(text)
        self.check(experiment)
        return experiment

    def _check_length(self, size: int) -> None:
        if size > self.text_length:
            raise InputError(
                f"The description of an experiment has {size} characters; at most "
                f"{self.text_length} are possible here. {SMALLER}"
            )

    def _check_part(self, cls: type[Spec], plain: dict[str, Any]) -> None:
        """Check a part while it is JSON: building a large lattice would take seconds."""
        check_safe(cls)
        for field in fields(cls):
            given = plain.get(field.name)
            if isinstance(field.kind, _spec.Shape):
                sides = given if isinstance(given, list) else [given]
                sites = math.prod(side for side in sides if isinstance(side, int))
                _at_most("The number of sites", sites, self.sites)
            elif isinstance(field.kind, (_spec.Number, _spec.Many, _spec.Seeds)) and isinstance(
                given, list
            ):
                most = self.classes if isinstance(field.kind, _spec.Many) else self.members
                _check_count(field.name, len(given), most)

    def check_texts(self, texts: Mapping[str, str]) -> None:
        """Check texts by field before anything is built from them.

        Raises:
            InputError: If they name a class that reads files, or are too large.
        """
        self._check_length(sum(len(name) + len(text) for name, text in texts.items()))
        check_class_names(texts.values())
        for name, text in texts.items():
            _check_count(name, text.count(",") + 1, self.members)
        sites = math.prod(_spec.Shape().parse("shape", texts.get("shape", "40")))
        _at_most("The number of sites", sites, self.sites)

    def check(self, experiment: Experiment) -> None:
        """Check that an experiment is not too large, and is one for visitors.

        Raises:
            InputError: If it is not; the message says what is too large and how large it may be.
        """
        task, network, method = experiment.task, experiment.network, experiment.method
        if not isinstance(method, Training):
            raise InputError(
                "Only training can be run here. Theory is drawn beside it automatically."
            )
        for part in _parts(experiment):
            check_safe(type(part))
        swept = [num_members(part) or 0 for part in (task, network, method)]
        seeds = len(method.seed) if isinstance(method.seed, tuple) else 0
        members, hidden = max(method.members, seeds, *swept), network.hidden
        values = method.batch * task.size * (hidden if method.estimator == "orbit" else 1)
        samples = method.steps * method.batch * members * hidden
        for name, got, most in (
            ("The number of sites", task.size, self.sites),
            ("The number of neurons", hidden, self.neurons),
            ("`members`", members, self.members),
            ("The number of classes", len(task.stimuli), self.classes),
            ("`steps`", method.steps, self.steps),
            ("`batch`", method.batch, self.batch),
            ("`evaluate`", method.evaluate, self.batch),
            ("`batch` × sites", values, self.batch_values),
            ("`evaluate` × sites", method.evaluate * task.size, self.batch_values),
            ("Steps × batch × members × neurons", samples, self.run_samples),
        ):
            _at_most(name, got, most)
        size = record_bytes(experiment, members)
        if size > self.record_bytes:
            raise InputError(
                f"The memory for records must be at most {self.record_bytes / 1e6:.0f} MB here, "
                f"got {size / 1e6:.0f} MB. Record less often, or use fewer members."
            )

    def sentences(self) -> tuple[str, ...]:
        """The limits as sentences for the page."""
        samples = f"{self.run_samples:.0e}".replace("e+", "e")
        return (
            f"A run has at most {self.sites} sites, {self.neurons} neurons, {self.members} "
            f"members, {self.steps} steps and {self.batch} samples per step.",
            f"Steps × batch × members × neurons is at most {samples}, and records take at most "
            f"{self.record_bytes / 1e6:.0f} MB.",
            f"A run takes at most {self.run_seconds:.0f} s at a time; after that it is paused and "
            "can be continued.",
            f"At most {self.sessions} pages are open and {self.queue} requests wait at once.",
            f"Results are kept until the store holds {self.store_bytes / 1e9:g} GB.",
            "Stimuli made of files are for Python and the command line.",
        )


def _at_most(name: str, got: int, most: int) -> None:
    if got > most:
        raise InputError(f"{name} must be at most {most} here, got {got}. {SMALLER}")


def _check_count(name: str, count: int, most: int) -> None:
    if count > most:
        raise InputError(f"`{name}` must have at most {most} values here, got {count}. {SMALLER}")


def record_bytes(experiment: Experiment, members: int) -> int:
    """Memory of a run's records; quantities that its network does not have are counted too."""
    method: Any = experiment.method
    task, hidden = experiment.task, experiment.network.hidden
    sizes = {
        "weights": hidden * task.size,
        "readout": task.outputs * hidden,
        "readout_bias": task.outputs,
        "loss": 1,
        "accuracy": 1,
        "peak": hidden * len(task.shape),
    }
    per_member = sum(sizes.get(name, hidden) for name in method.quantities)
    records = len(range(0, method.steps, method.every)) + 1
    return records * members * per_member * (8 if experiment.precision == "float64" else 4)


def _walk(plain: Any) -> Iterator[Any]:
    """Every value within plain values; not recursive, as JSON may be nested deeply."""
    pending = collections.deque([plain])
    while pending:
        value = pending.popleft()
        yield value
        if isinstance(value, (dict, list)):
            pending.extend(value.values() if isinstance(value, dict) else value)


def _parts(value: Any) -> Iterator[Spec]:
    """A specification and all those within it."""
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, Spec):
            yield part
            for field in fields(type(part)):
                yield from _parts(getattr(part, field.name))


def is_safe(cls: type[Spec]) -> bool:
    """Whether a class takes only numbers and names, so that a visitor may ask for it."""
    return all(type(field.kind) in SAFE_KINDS for field in fields(cls))


def check_safe(cls: type[Spec]) -> None:
    """Raise InputError for a class that is not safe."""
    for field in fields(cls):
        if type(field.kind) not in SAFE_KINDS:
            raise InputError(
                f"A {cls.family} here is made of numbers and names alone, and the `{field.name}` "
                f"of {cls.__name__} may name a file. Use Python or the command line for it."
            )


def check_class_names(texts: Iterable[str]) -> None:
    """Raise InputError for texts that name an unsafe class, as in `name:field=value`."""
    unsafe = {
        name: cls
        for family in SPEC_FAMILIES
        for name, cls in registered(family).items()
        if not is_safe(cls)
    }
    for text in texts:
        for name in unsafe.keys() & re.split(r"[:,=]", text):
            check_safe(unsafe[name])
