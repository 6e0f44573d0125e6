"""A run as a page sees it: records as they arrive, theory beside them, and what became of the prediction."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..experiments import Experiment
from ..trajectory import Outcome, Trajectory, inverse_participation_ratio, localized_from
from .messages import Checkpoint, Done, Gates, Records, Theory, Verdict


@dataclasses.dataclass
class Watched:
    """What has arrived of one run.

    Args:
        texts: The setting, as typed.
        experiment: What was asked for.
        predicted: What `predict` said before.
    """

    texts: dict[str, str]
    experiment: Experiment
    predicted: Verdict | None = None
    theory: Theory | None = None
    steps: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    times: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    series: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    gate_times: np.ndarray | None = None
    gates: np.ndarray | None = None
    checkpoint: dict[str, np.ndarray] | None = None
    done: Done | None = None
    dropped: bool = False  # cancelled by its visitor: it cannot be gone on with

    def take(self, message: Any) -> None:
        """Add what a message brings."""
        if isinstance(message, Theory):
            self.theory = None if message.missing else message
        elif isinstance(message, Records):
            self._add(message)
        elif isinstance(message, Gates):
            self.gate_times, self.gates = message.times, message.agreement
        elif isinstance(message, Checkpoint):
            self.checkpoint = None if self.dropped else message.arrays
        elif isinstance(message, Done):
            self.done = message
            if message.stopped != "cancelled":  # there is nothing to go on with
                self.checkpoint = None

    def _add(self, new: Records) -> None:
        """Records after those that are here; a run that went on may send some again."""
        fresh = new.steps > (self.steps[-1] if len(self.steps) else -1)
        if not fresh.any():
            return
        times = new.times if new.times.ndim == 1 else new.times.mean(axis=0)
        parts = {name: values[:, fresh] for name, values in new.series.items()}
        first = not len(self.steps)
        self.steps = np.concatenate([self.steps, new.steps[fresh]])
        self.times = np.concatenate([self.times, times[fresh]])
        for name, values in parts.items():
            self.series[name] = (
                values if first else np.concatenate([self.series[name], values], axis=1)
            )

    @property
    def started(self) -> bool:
        """Whether anything can be drawn."""
        return len(self.steps) > 0

    @property
    def ipr(self) -> np.ndarray:
        """(member, time, neuron)."""
        if "ipr" in self.series:
            return self.series["ipr"]
        return inverse_participation_ratio(self.series["weights"], len(self.experiment.task.shape))

    @property
    def neurons(self) -> int:
        """Of the network."""
        return self.experiment.network.hidden

    @property
    def whole_time(self) -> float:
        """Flow time at which the run will end."""
        method: Any = self.experiment.method
        return float(np.mean(method.learning_rate)) * method.steps

    @property
    def last_record(self) -> int:
        """Index of the record with which the run will end."""
        method: Any = self.experiment.method
        return -(-method.steps // method.every)

    @property
    def border(self) -> float:
        """The IPR from which a field counts as localized."""
        return localized_from(math.prod(self.experiment.task.shape))

    @property
    def localized(self) -> float:
        """The part of the fields that are localized at the last record."""
        return float(np.mean(self.ipr[:, -1] > self.border))

    def judgment(self) -> str:
        """What became of the prediction, in words."""
        share, mean = self.localized, float(np.nanmean(self.ipr[:, -1]))
        found = f"{round(100 * share)} % of the fields are localized, mean IPR {mean:.2f}"
        said = self.predicted.verdict if self.predicted is not None else "undecided"
        if self.done is None or self.done.stopped not in ("finished", "at rest"):
            return f"So far {found}."
        if any(one != "ok" for one in self.done.outcomes):
            return f"Training diverged: {found}. Try a smaller learning rate."
        if said == "undecided":
            return f"Nothing was predicted; {found}."
        right = share >= 0.5 if said == "localized" else share < 0.5
        return f"{'Confirmed' if right else 'Refuted'}: predicted {said}; {found}."

    def trajectory(self) -> Trajectory:
        """The run as the library has it."""
        weights = self.series["weights"]
        ok = (
            self.done.outcomes
            if self.done is not None and self.done.outcomes
            else ("ok",) * len(weights)
        )
        return Trajectory(
            steps=self.steps,
            times=self.times,
            initial=weights[:, 0],
            final=weights[:, -1],
            series=dict(self.series),
            outcome=tuple(Outcome(one.split(" ")[0], -1) for one in ok),
            specification=self.experiment.to_json(),
            manifest={"run_seconds": self.done.seconds if self.done is not None else 0.0},
            stopped=self.done.stopped if self.done is not None else "cancelled",
        )
