"""What pages ask of the workers, and what these answer: plain data that travel between processes."""

from __future__ import annotations

import dataclasses

import numpy as np

Curve = tuple[np.ndarray, np.ndarray]  # places and values

KINDS = ("answer", "run")


@dataclasses.dataclass(frozen=True)
class Request:
    """Something to compute.

    Args:
        kind: `answer` for what is known before a run (an `Answer`, then a `Verdict`), `run` for a run.
        experiment: JSON of an experiment, as `Experiment.canonical` writes it.
        checkpoint: Of a run that was paused: go on from there.
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
    """The place in the queue, 1 for the next; told again whenever it changes."""

    position: int


@dataclasses.dataclass(frozen=True)
class Started(Message):
    """A worker has begun."""


@dataclasses.dataclass(frozen=True)
class Answer(Message):
    """What is known of a task at once.

    Attributes:
        samples: One array a class, (4, *shape).
        density: Of the labelled class's law, at places x; with `atoms` their probabilities instead.
        atoms: Whether the law is discrete.
        kurtosis: Its excess kurtosis.
        amplifier: φ(a) at correlations a from 0 to 1.
        slope: Of the straight line that is the amplifier of a normal law.
        notes: Warnings.
    """

    samples: tuple[np.ndarray, ...]
    density: Curve | None
    atoms: bool
    kurtosis: float
    amplifier: Curve | None
    slope: float
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Verdict(Message):
    """What `predict` says, and why."""

    verdict: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Theory(Message):
    """The theory's flow from where the first members of a run start.

    Attributes:
        name: Of the theory.
        exact: Whether it is exact for the task.
        times: Flow times, (time,).
        ipr: (member, time, neuron).
        weights: (member, time, neuron, *shape).
        loss: (member, time).
        gates: Probability that a stimulus finds the gate as at the end, (member, time, neuron); may be missing alone.
        missing: Why there is none; the arrays are None then.
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
    """Records that are new since the last message: `weights`, `ipr`, `loss`, …, each (member, time, …)."""

    steps: np.ndarray
    times: np.ndarray
    series: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Gates(Message):
    """Probability that a stimulus finds the gate as at the last record, (member, time, neuron), of a few members."""

    times: np.ndarray
    agreement: np.ndarray


@dataclasses.dataclass(frozen=True)
class Checkpoint(Message):
    """What a run needs to go on from here."""

    arrays: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Done(Message):
    """The end of a run.

    Attributes:
        stopped: `finished`, `at rest` or `cancelled`.
        digest: Name of the result in the store.
        seconds: That it ran.
        outcomes: How each member ended.
        stored: Whether the result is in the store.
        note: A sentence for the visitor, such as that the time limit was reached.
    """

    stopped: str
    digest: str
    seconds: float
    outcomes: tuple[str, ...] = ()
    stored: bool = False
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Failed(Message):
    """The request was refused, or could not be carried out: why, in a sentence or two."""

    message: str


@dataclasses.dataclass(frozen=True)
class Lost(Message):
    """The worker died on the way: what is lost, in words."""

    message: str


ENDS = (Verdict, Done, Failed, Lost)  # a message of these kinds is the last one of its job
