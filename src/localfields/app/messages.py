"""Requests from pages to worker processes, and the messages that come back: plain data."""

from __future__ import annotations

import dataclasses

import numpy as np

Curve = tuple[np.ndarray, np.ndarray]  # x and y

REQUEST_KINDS = ("summary", "run")


@dataclasses.dataclass(frozen=True)
class Request:
    """Something to compute.

    Args:
        kind: `summary` (answered by a `TaskSummary`, then a `TheoryVerdict`) or `run`.
        experiment: JSON of an experiment, as `Experiment.canonical` writes it.
        checkpoint: Arrays of a paused run to resume from.
        one_record: Pause again after one more record.
    """

    kind: str
    experiment: str
    checkpoint: dict[str, np.ndarray] | None = None
    one_record: bool = False


class Message:
    """One of the answers below."""


@dataclasses.dataclass(frozen=True)
class Queued(Message):
    """The position in the queue, 1 for the next; sent again whenever it changes."""

    position: int


@dataclasses.dataclass(frozen=True)
class Started(Message):
    """A worker has started."""


@dataclasses.dataclass(frozen=True)
class TaskSummary(Message):
    """What is known of a task without theory or training.

    Attributes:
        samples: One array per class, (4, *shape).
        density: Of one site of the labelled class; with `atoms`, values and probabilities instead.
        atoms: Whether that distribution is discrete.
        kurtosis: Its excess kurtosis.
        amplifier: φ(a) at correlations a from 0 to 1.
        slope: Of the straight line that is the amplifier of normal data.
        warnings: What Python warned of.
    """

    samples: tuple[np.ndarray, ...]
    density: Curve | None
    atoms: bool
    kurtosis: float
    amplifier: Curve | None
    slope: float
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TheoryVerdict(Message):
    """The verdict of `predict`, and its reason."""

    verdict: str
    reason: str


@dataclasses.dataclass(frozen=True)
class TheoryCurves(Message):
    """The flow of a theory from the initial weights of a run's first members.

    Attributes:
        name: Of the theory.
        exact: Whether it is exact for the task.
        times: Flow times, (time,).
        ipr: (member, time, neuron).
        weights: (member, time, neuron, *shape).
        loss: (member, time).
        gates: As in `GateAgreement`; None where that cannot be computed.
        missing: Why no theory applies; all arrays are None then.
    """

    name: str
    exact: bool
    times: np.ndarray | None = None
    ipr: np.ndarray | None = None
    weights: np.ndarray | None = None
    loss: np.ndarray | None = None
    gates: np.ndarray | None = None
    missing: str = ""


@dataclasses.dataclass(frozen=True)
class Records(Message):
    """New records of a run: `weights`, `ipr`, `loss`, …, each (member, time, …)."""

    steps: np.ndarray
    times: np.ndarray
    series: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class GateAgreement(Message):
    """Probability that a gate is as at the last record, (member, time, neuron), of a few members."""

    times: np.ndarray
    agreement: np.ndarray


@dataclasses.dataclass(frozen=True)
class RunCheckpoint(Message):
    """The arrays from which a run can be resumed."""

    arrays: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Done(Message):
    """The end of a run.

    Attributes:
        stopped: `finished`, `at rest` or `cancelled`.
        digest: Name of the result in the store.
        seconds: How long it ran.
        outcomes: How each member ended.
        stored: Whether the result is in the store.
        note: A sentence for the visitor, for example that the time limit was reached.
    """

    stopped: str
    digest: str
    seconds: float
    outcomes: tuple[str, ...] = ()
    stored: bool = False
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Failed(Message):
    """The request was rejected or its computation failed; `message` says why."""

    message: str


@dataclasses.dataclass(frozen=True)
class Lost(Message):
    """The worker process died; `message` says what that means for the visitor."""

    message: str


LAST_MESSAGES = (TheoryVerdict, Done, Failed, Lost)  # nothing follows one of these
