"""Requests from pages to worker processes, and the messages that come back: plain data."""

from __future__ import annotations

import dataclasses

import numpy as np

Curve = tuple[np.ndarray, np.ndarray]  # x and y

REQUEST_KINDS = ("summary", "run")


@dataclasses.dataclass(frozen=True)
class Request:
    """Something to compute."""

    kind: str  # `summary` (answered by a `TaskSummary`, then a `TheoryVerdict`) or `run`
    experiment: str  # JSON, as `Experiment.canonical` writes it
    checkpoint: dict[str, np.ndarray] | None = None  # of a paused run that is resumed
    one_record: bool = False  # pause again after one more record


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
    """What is known of a task without theory or training."""

    samples: tuple[np.ndarray, ...]  # one array per class, (4, *shape)
    density: Curve | None  # of one site of the labelled class
    atoms: bool  # whether `density` is that of a discrete distribution: values and probabilities
    kurtosis: float  # excess kurtosis of that distribution
    amplifier: Curve | None  # φ(a) at correlations a from 0 to 1
    slope: float  # of the straight line that is the amplifier of normal data
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TheoryVerdict(Message):
    """The verdict of `predict`, and its reason."""

    verdict: str
    reason: str


@dataclasses.dataclass(frozen=True)
class TheoryCurves(Message):
    """The flow of a theory from the initial weights of a run's first members."""

    name: str
    exact: bool
    times: np.ndarray | None = None  # (time,)
    ipr: np.ndarray | None = None  # (member, time, neuron)
    weights: np.ndarray | None = None  # (member, time, neuron, *shape)
    loss: np.ndarray | None = None  # (member, time)
    gates: np.ndarray | None = None  # as in `GateAgreement`; None where they cannot be computed
    missing: str = ""  # why no theory applies; all arrays are None then


@dataclasses.dataclass(frozen=True)
class Records(Message):
    """New records of a run: `weights`, `ipr`, `loss`, …, each (member, time, …)."""

    steps: np.ndarray
    times: np.ndarray
    series: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class GateAgreement(Message):
    """Probability that a gate is as at the last record, (member, time, neuron), of some members."""

    times: np.ndarray
    agreement: np.ndarray


@dataclasses.dataclass(frozen=True)
class RunCheckpoint(Message):
    """The arrays from which a run can be resumed."""

    arrays: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Done(Message):
    """The end of a run."""

    stopped: str  # `finished`, `at rest` or `cancelled`
    digest: str  # name of the result in the store
    seconds: float
    outcomes: tuple[str, ...] = ()  # how each member ended
    stored: bool = False
    note: str = ""  # for the visitor, for example that the time limit was reached


@dataclasses.dataclass(frozen=True)
class Failed(Message):
    """The request was rejected or its computation failed; `message` says why."""

    message: str


@dataclasses.dataclass(frozen=True)
class Lost(Message):
    """The worker process died; `message` says what that means for the visitor."""

    message: str


LAST_MESSAGES = (TheoryVerdict, Done, Failed, Lost)  # nothing follows one of these
