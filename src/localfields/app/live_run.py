"""A run as a page sees it: records as they arrive, theory beside them, and whether it was right."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..experiments import Experiment
from ..trajectory import Outcome, Trajectory, inverse_participation_ratio, localized_from
from .messages import Done, GateAgreement, Records, RunCheckpoint, TheoryCurves, TheoryVerdict


@dataclasses.dataclass
class LiveRun:
    """What has arrived of one run."""

    texts: dict[str, str]  # the setting, as typed
    experiment: Experiment  # the same
    verdict: TheoryVerdict | None = None  # what `predict` said before the run
    theory: TheoryCurves | None = None
    steps: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    times: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    series: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    gate_times: np.ndarray | None = None
    gates: np.ndarray | None = None
    checkpoint: dict[str, np.ndarray] | None = None
    done: Done | None = None
    cancelled: bool = False  # by the visitor: it cannot be resumed

    def receive(self, message: Any) -> None:
        """Add what a message brings."""
        if isinstance(message, TheoryCurves):
            self.theory = None if message.missing else message
        elif isinstance(message, Records):
            self._append(message)
        elif isinstance(message, GateAgreement):
            self.gate_times, self.gates = message.times, message.agreement
        elif isinstance(message, RunCheckpoint):
            self.checkpoint = None if self.cancelled else message.arrays
        elif isinstance(message, Done):
            self.done = message
            if message.stopped != "cancelled":  # nothing is left to resume
                self.checkpoint = None

    def _append(self, records: Records) -> None:
        # A resumed run may send records that are here already.
        new = records.steps > (self.steps[-1] if len(self.steps) else -1)
        times = records.times if records.times.ndim == 1 else records.times.mean(axis=0)
        for name, values in records.series.items():
            parts = [self.series[name]] if name in self.series else []
            self.series[name] = np.concatenate([*parts, values[:, new]], axis=1)
        self.steps = np.concatenate([self.steps, records.steps[new]])
        self.times = np.concatenate([self.times, times[new]])

    @property
    def started(self) -> bool:
        """Whether there is anything to draw."""
        return len(self.steps) > 0

    @property
    def ipr(self) -> np.ndarray:
        """Inverse participation ratio, (member, time, neuron)."""
        if "ipr" in self.series:
            return self.series["ipr"]
        return inverse_participation_ratio(self.series["weights"], len(self.experiment.task.shape))

    @property
    def end_time(self) -> float:
        """Flow time at which the run will end."""
        method: Any = self.experiment.method
        return float(np.mean(method.learning_rate)) * method.steps

    @property
    def last_record(self) -> int:
        """Index of the record with which the run will end."""
        method: Any = self.experiment.method
        return -(-method.steps // method.every)

    @property
    def threshold(self) -> float:
        """The IPR from which a field counts as localized."""
        return localized_from(self.experiment.task.size)

    def judgment(self) -> str:
        """What became of the prediction, in one or two sentences."""
        share = float(np.mean(self.ipr[:, -1] > self.threshold))
        mean = float(np.nanmean(self.ipr[:, -1]))
        result = f"{round(100 * share)} % of the fields are localized, mean IPR {mean:.2f}"
        predicted = self.verdict.verdict if self.verdict is not None else "undecided"
        if self.done is None or self.done.stopped not in ("finished", "at rest"):
            return f"So far {result}."
        if any(outcome != "ok" for outcome in self.done.outcomes):
            return f"Training diverged: {result}. Try a smaller learning rate."
        if predicted == "undecided":
            return f"Nothing was predicted; {result}."
        right = (share >= 0.5) == (predicted == "localized")
        return f"{'Confirmed' if right else 'Refuted'}: predicted {predicted}; {result}."

    def trajectory(self) -> Trajectory:
        """The run as a `Trajectory` of the library."""
        weights = self.series["weights"]
        done = self.done or Done("cancelled", "", 0.0)
        return Trajectory(
            steps=self.steps,
            times=self.times,
            initial=weights[:, 0],
            final=weights[:, -1],
            series=dict(self.series),
            outcome=tuple(
                Outcome(outcome.split(" ")[0], -1)
                for outcome in done.outcomes or ("ok",) * len(weights)
            ),
            experiment=self.experiment.to_json(),
            manifest={"run_seconds": done.seconds},
            stopped=done.stopped,
        )
