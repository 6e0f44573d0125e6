"""How training is driven: chunks between records, progress, cancel, `stop_tol`, checkpoints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..trajectory import inverse_participation_ratio
from .engine import State

POLL_INTERVAL = 0.15  # seconds between calls of `on_progress` and `cancel`
CHECKPOINT_INTERVAL = 10.0  # seconds between checkpoints,
CHECKPOINT_SHARE = 30  # and at least this many times what writing one takes


@runtime_checkable
class Checkpointer(Protocol):
    """Where a run keeps what it needs to resume after an interruption: plain arrays by name."""

    def load(self) -> dict[str, np.ndarray] | None:
        """The arrays saved last, or None."""

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        """Keep these arrays in place of the ones saved before."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a run is: the argument of `on_progress`."""

    step: int
    steps: int
    seconds: float
    time: float
    ipr: np.ndarray
    loss: np.ndarray | None
    record_bytes: int  # memory that the records of the whole run take
    first_step: int = 0  # the step at which the run resumed from a checkpoint
    records: Sequence[Mapping[str, Any]] = ()  # so far: arrays with an axis of members, by name

    @property
    def rate(self) -> float:
        """Steps per second so far."""
        return (self.step - self.first_step) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Time left at that rate."""
        return (self.steps - self.step) / self.rate if self.rate > 0 else float("inf")


@dataclasses.dataclass
class Loop:
    """One run, from its first record or from a checkpoint to its end."""

    advance: Callable[[State, int], State]
    observe: Callable[[State], dict[str, jax.Array]]
    steps: list[int]  # of the records
    times: np.ndarray  # their flow times
    stop_tol: float | None
    on_progress: Callable[[Progress], Any] | None
    cancel: Callable[[], bool] | None
    checkpoint: Checkpointer | None
    run_digest: str  # names the run in its checkpoints
    poll_interval: float | None = None  # seconds; None: POLL_INTERVAL
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    stopped: str = "finished"
    interrupted: bool = False  # whether Ctrl-C was pressed

    def run(self, state: State, first_record: dict[str, jax.Array]) -> State:
        """Advance from record to record; returns the last state and sets `records` and `stopped`.

        The device runs ahead of Python, which waits for it only when it polls. `stop_tol` is
        tested at every record, whatever the clock says: where a run stops must not depend on the
        machine. It is tested before `cancel` and before a checkpoint, since a run that resumes
        does not test its last record again.
        """
        self.records = [first_record]
        state = self._resume(state)
        first = len(self.records) - 1
        poll_interval = POLL_INTERVAL if self.poll_interval is None else self.poll_interval
        checkpoint_interval = CHECKPOINT_INTERVAL
        # Writing the records of a long run may take seconds: saving at most one part in
        # CHECKPOINT_SHARE of the time keeps checkpoints from slowing the run down.
        began = polled = saved = time.perf_counter()
        # How the run ends at the record reached last; empty while it does not.
        ending = "finished" if first == len(self.steps) - 1 else ""
        try:
            self._report(state, first, first, 0.0)
            for index in range(first + 1, len(self.steps)):
                next_state = self.advance(state, self.steps[index] - self.steps[index - 1])
                record = self.observe(next_state)
                next_ending = self._ending(index, state, next_state)
                self.records.append(record)
                # In one statement: Ctrl-C between two would forget that the run came to rest here,
                # and a resumed run would go on past it.
                state, ending = next_state, next_ending
                now = time.perf_counter()
                if now - polled >= poll_interval or ending:
                    jax.block_until_ready(record)
                    polled = time.perf_counter()
                    self._report(state, index, first, polled - began)
                    if ending or (self.cancel is not None and self.cancel()):
                        break
                if self.checkpoint is not None and now - saved >= checkpoint_interval:
                    self._save(state)
                    saved = time.perf_counter()
                    checkpoint_interval = max(CHECKPOINT_INTERVAL, CHECKPOINT_SHARE * (saved - now))
        except KeyboardInterrupt:
            self.interrupted = True
            # It may have come between a record and its state.
            del self.records[self.steps.index(int(state.step)) + 1 :]
        self.stopped = ending or "cancelled"
        if self.checkpoint is not None and not ending:
            self._save(state)
        return state

    def _ending(self, index: int, before: State, after: State) -> str:
        """How the run ends at this record; empty if it does not."""
        if index == len(self.steps) - 1:
            return "finished"
        if self.stop_tol is None:
            return ""
        span = self.times[..., index] - self.times[..., index - 1]
        old, new = (
            np.asarray(state.members.params["weights"], np.float64) for state in (before, after)
        )
        # A member that failed does not move any more, and counts as at rest.
        moved, length = (np.sqrt((field**2).sum(axis=(1, 2))) for field in (new - old, new))
        return "at rest" if np.all(moved <= self.stop_tol * span * length) else ""

    def _report(self, state: State, index: int, first: int, seconds: float) -> None:
        if self.on_progress is None:
            return
        record = self.records[index]
        weights = np.asarray(state.members.params["weights"])
        progress = Progress(
            step=self.steps[index],
            steps=self.steps[-1],
            seconds=seconds,
            time=float(np.mean(self.times[..., index])),
            ipr=inverse_participation_ratio(weights, 1),
            loss=np.asarray(record["loss"]) if "loss" in record else None,
            record_bytes=len(self.steps) * sum(leaf.nbytes for leaf in record.values()),
            first_step=self.steps[first],
            records=self.records,
        )
        self.on_progress(progress)

    def _save(self, state: State) -> None:
        assert self.checkpoint is not None
        # Leaves by their number, not a pickle: a checkpoint must be safe to load from anywhere.
        arrays = {"run": np.array(self.run_digest)}
        for place, leaf in enumerate(jax.tree.leaves(state)):
            arrays[f"state_{place}"] = np.asarray(leaf)
        for name in self.records[0]:
            series = [np.asarray(record[name]) for record in self.records]
            arrays[f"record_{name}"] = np.stack(series)
        self.checkpoint.save(arrays)

    def _resume(self, state: State) -> State:
        """The state of the checkpoint, whose records become ours; without one, the given state.

        Raises:
            InputError: If the checkpoint is of another run.
        """
        arrays = None if self.checkpoint is None else self.checkpoint.load()
        if arrays is None:
            return state
        if str(arrays.get("run")) != self.run_digest:
            raise self._misfit("it is of a run with another task, network, seed or setting")

        def take(name: str, like: Any, *lead: int) -> np.ndarray:
            array, shape = arrays.get(name), (*lead, *like.shape)
            if array is None:
                raise self._misfit(f"it has no `{name}`")
            if (array.dtype, array.shape) != (like.dtype, shape):
                raise self._misfit(
                    f"it has a `{name}` of {array.dtype} and shape {array.shape}, and this run "
                    f"{like.dtype} and {shape}"
                )
            return array

        leaves, form = jax.tree.flatten(state)
        saved = [take(f"state_{place}", leaf) for place, leaf in enumerate(leaves)]
        state = jax.tree.map(jnp.asarray, jax.tree.unflatten(form, saved))
        if int(state.step) not in self.steps:
            raise self._misfit(f"it is of step {state.step}, which this run does not record")
        count = self.steps.index(int(state.step)) + 1
        series = {
            name: take(f"record_{name}", value, count) for name, value in self.records[0].items()
        }
        self.records = [
            {name: values[place] for name, values in series.items()} for place in range(count)
        ]
        return state

    def _misfit(self, reason: str) -> InputError:
        path = getattr(self.checkpoint, "path", "it")
        return InputError(
            f"The checkpoint does not belong to this run: {reason}. Remove {path} to start anew."
        )
