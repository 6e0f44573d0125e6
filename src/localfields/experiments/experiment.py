"""An experiment is a value: what is shown, what learns, and how it is followed."""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .._memory import Memory, training_memory
from .._spec import (
    Choice,
    Count,
    Kind,
    Nested,
    Number,
    Row,
    Seeds,
    Spec,
    declare,
    from_json,
    name_of,
    num_members,
    number,
)
from .._types import Array, Field, Real, Scalar, Seed, Whole
from ..errors import InputError, TrainingInterrupted, show, unknown_name
from ..networks import Network, SingleNeuron
from ..store.entry import SCHEMA
from ..tasks import Discrimination
from ..theory import EffectiveFlow, Theory
from ..training import Record, train
from ..training.engine import QUANTITIES
from ..training.estimators import ESTIMATORS
from ..training.optimizers import OptimizerName, check_optimizer, num_arrays
from ..trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class Names(Kind):
    """Several of a few names."""

    names: tuple[str, ...]
    metavar = "NAME,…"

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the names as a tuple, in one order, so that theirs makes no other experiment."""
        if isinstance(value, str) or not isinstance(value, (tuple, list)):
            raise InputError(
                f"`{name}` must be a list of names, such as [{self.names[0]!r}], got {show(value)}."
            )
        for item in value:
            if item not in self.names:
                raise unknown_name(f"name in `{name}`", item, self.names)
        return tuple(known for known in self.names if known in value)

    def parse(self, name: str, text: str) -> tuple[str, ...]:
        """Read names joined by commas."""
        return self.check(name, tuple(text.split(",")))


@dataclasses.dataclass(frozen=True)
class One(Number):
    """A number that all members have in common."""

    def check(self, name: str, value: Any) -> Any:
        """Return a float."""
        checked = super().check(name, value)
        if np.ndim(checked):
            raise InputError(
                f"`{name}` must be one number, got {show(value)}. "
                "It is common to all members; run members that differ in it separately."
            )
        return checked


class Method(Spec):
    """How a trajectory is made: by training, by a theory, or by fitting a baseline."""

    family: ClassVar[str] = "method"

    @abc.abstractmethod
    def run(self, task: Discrimination, network: Network, initial: Any, **more: Any) -> Trajectory:
        """Make it; `more` is what does not change the result: progress, cancel, checkpoints."""


class Training(Method):
    """Gradient descent, with the arguments of `train`.

    Example:
        >>> Training(steps=2000, batch=500, members=30).replace(batch=100).steps
        2000
    """

    learning_rate: Real = number(
        default=0.05, low=0, symbol="τ", help="step size; flow time is steps × learning rate"
    )
    steps: Whole = declare(Count(high=10**9), default=1000, help="number of gradient steps")
    batch: Whole = declare(
        Count(high=10**9), default=1000, help="samples per step, divided over the classes"
    )
    members: Whole = declare(Count(high=10**7), default=1, help="size of the ensemble")
    seed: Seed = declare(Seeds(), default=0, help="seed for all random numbers; or one per member")
    estimator: str = declare(
        Choice(tuple(ESTIMATORS)), default="independent", help="how samples become a gradient"
    )
    optimizer: str = declare(
        OptimizerName(),
        default="sgd",
        help="plain gradient descent, or another name of optax, with options",
    )
    stop_tol: Scalar = declare(
        One(low=0, closed=True),
        default=0.0,
        help="stop when fields move by less than this; 0: never",
    )
    every: Whole = declare(Count(high=10**9), default=10, help="steps between records")
    quantities: Field[tuple[str, ...], Sequence[str]] = declare(
        Names(QUANTITIES), default=Record().quantities, help="what is recorded"
    )
    evaluate: Whole = declare(Count(high=10**9), default=2000, help="held-out samples per record")

    def run(self, task: Discrimination, network: Network, initial: Any, **more: Any) -> Trajectory:
        """Train."""
        swept = isinstance(self.seed, tuple) or any(
            num_members(part) is not None for part in (task, network, self)
        )
        return train(
            task,
            network,
            learning_rate=self.learning_rate,
            steps=self.steps,
            batch=self.batch,
            members=None if swept and self.members == 1 else self.members,
            seed=self.seed,
            record=Record(self.every, self.quantities, self.evaluate),
            estimator=self.estimator,
            optimizer=self.optimizer,
            initial=initial,
            stop_tol=self.stop_tol or None,
            **more,
        )

    def memory(self, task: Discrimination, network: Network) -> Memory:
        """What training needs, estimated from sizes, without its records."""
        record = Record(self.every, self.quantities, self.evaluate)
        seeds = len(self.seed) if isinstance(self.seed, tuple) else 1
        return training_memory(
            task,
            network,
            members=max(self.members, seeds),
            batch=self.batch,
            evaluate=self.evaluate if record.needs_samples(self.estimator) else 0,
            estimator=self.estimator,
            optimizer_arrays=num_arrays(check_optimizer(self.optimizer)),
            record_bytes=0,
        )


class Solution(Method):
    """The gradient flow of a theory, with the arguments of `solve`.

    Example:
        >>> import localfields as lf
        >>> Solution(lf.theory.ExactIsing(), members=4).members
        4
    """

    theory: Field[Theory, Theory | str | Mapping[str, Any]] = declare(
        Nested("theory"),
        default=EffectiveFlow(),
        help="effective-flow, linear-response, exact-ising, …",
    )
    times: Array = declare(
        Row(axes=None, least=0),
        default=(),
        symbol="t",
        help="flow times to record; empty: from 0 to rest",
    )
    until: Scalar = declare(
        One(low=0), default=1000.0, help="longest flow time, where no times are given"
    )
    stop_tol: Scalar = declare(
        One(low=0, closed=True), default=1e-6, help="a member rests when it moves by less than this"
    )
    members: Whole = declare(Count(high=10**7), default=1, help="size of the ensemble")
    seed: Seed = declare(Seeds(), default=0, help="seed of the first fields; or one per member")
    tolerance: Scalar = declare(
        One(low=1e-14, high=0.1), default=1e-8, help="relative error per step of the integrator"
    )
    solver: str = declare(
        Choice(("auto", "explicit", "stiff")),
        default="auto",
        help="integrator; auto chooses by the spread of rates",
    )

    def run(self, task: Discrimination, network: Network, initial: Any, **more: Any) -> Trajectory:
        """Solve. It takes seconds: there are no checkpoints."""
        from ..theory import solve  # loads the integrator

        return solve(
            task,
            self.theory,
            network=network,
            initial=initial,
            times=self.times if self.times.size else None,
            until=self.until,
            stop_tol=self.stop_tol,
            # What is swept may say how many members there are.
            members=None if self.members == 1 else self.members,
            seed=self.seed,
            tolerance=self.tolerance,
            solver=self.solver,
        )


class Digested(Spec):
    """A value with a digest, the name under which its result is stored."""

    def canonical(self) -> str:
        """One line of JSON: keys sorted, numbers in one form, with the version of the schema."""
        plain = {"schema": SCHEMA, **self.to_json()}
        return json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form: the name under which the result is stored."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


class Experiment(Digested):
    """Task, network and method as one value, with a digest by which its result is found.

    Example:
        >>> import localfields as lf
        >>> ising = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> experiment = lf.Experiment(ising, method=lf.Training(steps=100))
        >>> experiment.digest == lf.Experiment.of(experiment.canonical()).digest
        True
    """

    family: ClassVar[str] = "experiment"

    task: Field[Discrimination, Discrimination | Mapping[str, Any]] = declare(
        Nested("task"), default=Discrimination(), help="stimuli, labels and loss"
    )
    network: Field[Network, Network | str | Mapping[str, Any]] = declare(
        Nested("network"), default=SingleNeuron(), help="what learns"
    )
    method: Field[Method, Method | str | Mapping[str, Any]] = declare(
        Nested("method"), default=Training(), help="training, or the solution of a theory"
    )
    initial: Array = declare(
        Row(axes=None, least=0),
        default=(),
        symbol="w₀",
        help="fields to start from, (member, neuron, *shape); empty: drawn",
    )

    precision: str = declare(
        Choice(("float32", "float64")),
        default="float32",
        help="of training, and of first fields that are drawn",
    )

    @classmethod
    def of(cls, text: str) -> Experiment:
        """Read the canonical form, or any JSON text of an experiment.

        Raises:
            InputError: If it is not one, or of a newer schema.
        """
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"An experiment must be a JSON object, and this is not valid JSON: {error}."
            ) from None
        return experiment_from(plain)

    def run(
        self,
        *,
        on_progress: Callable[..., Any] | None = None,
        cancel: Any = None,
        checkpoint: Any = None,
        poll_interval: float | None = None,
    ) -> Trajectory:
        """Carry it out, at its own precision whatever JAX is set to.

        Args:
            on_progress: Called between chunks of training with its `Progress`.
            cancel: Called between chunks; training stops when it returns true.
            checkpoint: Where training saves checkpoints (see `train`).
            poll_interval: Seconds between calls of `on_progress` and `cancel` (see `train`).
        """
        import jax

        initial = self.initial if self.initial.size else None
        more = {
            "on_progress": on_progress,
            "cancel": cancel,
            "checkpoint": checkpoint,
            "poll_interval": poll_interval,
        }
        # The same but for what a method leaves to be inferred, such as the number of members.
        complete = functools.partial(dataclasses.replace, experiment=self.to_json())
        with jax.enable_x64(self.precision == "float64"):
            try:
                return complete(self.method.run(self.task, self.network, initial, **more))
            except TrainingInterrupted as stop:
                raise TrainingInterrupted(complete(stop.trajectory)) from None


def experiment_from(plain: Any) -> Experiment:
    """Build an experiment from plain values, as `Trajectory.experiment` or JSON give them.

    Raises:
        InputError: If a name is unknown, a value illegal, or the schema newer.
    """
    return read_plain(
        Experiment, plain, "`task`, `network` and `method`", "See `localfields run --help`."
    )


def read_plain(cls: type[Any], plain: Any, fields: str, advice: str) -> Any:
    """Build a value of this class from plain values; `type` and `schema` may be left out.

    Raises:
        InputError: If a name is unknown, a value illegal, or the schema newer.
    """
    article = f"{'An' if cls.__name__[0] in 'AEIOU' else 'A'} {cls.family}"
    if not isinstance(plain, dict):
        raise InputError(f"{article} must be an object with {fields}, got {show(plain)}. {advice}")
    given = {"type": f"{cls.family}/{name_of(cls)}", **plain}
    schema = given.pop("schema", SCHEMA)
    if not isinstance(schema, int) or isinstance(schema, bool) or not 1 <= schema <= SCHEMA:
        raise InputError(
            f"{article} has schema {show(schema)}, and this version reads at most {SCHEMA}. "
            "It was written by a newer version of localfields: update this one."
        )
    value = from_json(given)
    if not isinstance(value, cls):
        raise InputError(f"{article} was expected, got a {value.family}. Give {fields}.")
    return value
