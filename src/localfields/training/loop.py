"""The part of training that Python sees: chunks between records, the clock, cancel, stop_tol, checkpoints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import Said, refuse
from ..trajectory import inverse_participation_ratio
from .engine import State

POLL_INTERVAL = 0.15  # seconds between looks at the clock, at cancel and at rest
CHECKPOINT_INTERVAL = 10.0  # seconds between checkpoints,
APART = 30  # and at least this many times what one takes


@runtime_checkable
class Checkpointer(Protocol):
    """Where a run keeps what it needs to go on after an interruption: plain arrays by name."""

    def load(self) -> dict[str, np.ndarray] | None:
        """What was saved last, if anything."""

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        """Keep these in place of what was saved before."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a run is, as told to `on_progress` between chunks of steps."""

    step: int
    steps: int
    seconds: float
    time: float
    ipr: np.ndarray
    loss: np.ndarray | None
    record_bytes: int  # that the whole run's records take
    begun: int = 0  # step at which this run went on from a checkpoint
    records: Sequence[
        Mapping[str, Any]
    ] = ()  # what was recorded so far, arrays with an axis of members by name

    @property
    def rate(self) -> float:
        """Steps a second so far."""
        return (self.step - self.begun) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Time to go at that rate."""
        return (self.steps - self.step) / self.rate if self.rate > 0 else float("inf")


@dataclasses.dataclass
class Loop:
    """One run, from its first record or from a checkpoint to its end."""

    go: Callable[[State, int], State]
    see: Callable[[State], dict[str, jax.Array]]
    at: list[int]  # steps of the records
    times: np.ndarray  # their flow times
    stop_tol: float | None
    on_progress: Callable[[Progress], Any] | None
    cancel: Callable[[], bool] | None
    checkpoint: Checkpointer | None
    run_digest: str  # names the run in its checkpoints
    poll_interval: float | None = None  # seconds between looks; None: POLL_INTERVAL
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    stopped: str = "finished"

    def run(self, state: State, first: dict[str, jax.Array]) -> State:
        """Chunks between records. The device runs ahead; Python looks at the clock and at cancel now and then.

        Rest is looked for at every record, and only when asked for: where a run stops must not depend on the clock. It
        comes before cancel and checkpoints, as a run that goes on later does not look at its last record again.
        """
        self.records = [first]
        state = self._resume(state)
        begun = len(self.records) - 1
        begin = last = kept = time.perf_counter()
        pause, poll = (
            CHECKPOINT_INTERVAL,
            POLL_INTERVAL if self.poll_interval is None else self.poll_interval,
        )
        end = "finished" if begun == len(self.at) - 1 else ""
        try:
            self._tell(state, begun, begun, 0.0)
            for index in range(begun + 1, len(self.at)):
                ahead = self.go(state, self.at[index] - self.at[index - 1])
                seen = self.see(ahead)
                how = self._end(index, state, ahead)
                self.records.append(seen)
                state, end = ahead, how
                now = time.perf_counter()
                if now - last >= poll or end:
                    jax.block_until_ready(self.records[-1])
                    last = time.perf_counter()
                    self._tell(state, index, begun, last - begin)
                    if end or (self.cancel is not None and self.cancel()):
                        break
                if self.checkpoint is not None and now - kept >= pause:
                    self._save(state)
                    kept = time.perf_counter()
                    pause = max(CHECKPOINT_INTERVAL, APART * (kept - now))
        except KeyboardInterrupt:
            del self.records[
                self.at.index(int(state.step)) + 1 :
            ]  # it may have come between a record and its state
        self.stopped = end or "cancelled"
        if self.checkpoint is not None and not end:
            self._save(state)
        return state

    def _end(self, index: int, before: State, now: State) -> str:
        """How the run ends at this record, if it does."""
        if index == len(self.at) - 1:
            return "finished"
        if self.stop_tol is None:
            return ""
        span = self.times[..., index] - self.times[..., index - 1]
        return "at rest" if _at_rest(before, now, self.stop_tol * span) else ""

    def _tell(self, state: State, index: int, begun: int, seconds: float) -> None:
        if self.on_progress is None:
            return
        one = self.records[index]
        ipr = inverse_participation_ratio(np.asarray(state.params["weights"]), 1)
        loss = np.asarray(one["loss"]) if "loss" in one else None
        size = len(self.at) * sum(leaf.nbytes for leaf in one.values())
        here = float(np.mean(self.times[..., index]))
        told = Progress(
            self.at[index],
            self.at[-1],
            seconds,
            here,
            ipr,
            loss,
            size,
            self.at[begun],
            self.records,
        )
        self.on_progress(told)

    def _save(self, state: State) -> None:
        assert self.checkpoint is not None
        arrays = {"run": np.array(self.run_digest)}
        arrays |= {
            f"state_{place}": np.asarray(leaf) for place, leaf in enumerate(jax.tree.leaves(state))
        }
        for name in self.records[0]:
            arrays[f"record_{name}"] = np.stack([np.asarray(one[name]) for one in self.records])
        self.checkpoint.save(arrays)

    def _resume(self, state: State) -> State:
        """The state and records of a checkpoint of this run; without one, where it begins.

        Raises:
            InputError: When the checkpoint is of another run.
        """
        arrays = None if self.checkpoint is None else self.checkpoint.load()
        if arrays is None:
            return state
        if str(arrays.get("run")) != self.run_digest:
            self._refuse("one of another run", "the same task, network, seed and all else")

        def take(name: str, like: Any, *lead: int) -> np.ndarray:
            found = arrays.get(name)
            if found is None or (found.dtype, found.shape) != (like.dtype, (*lead, *like.shape)):
                got = (
                    f"no `{name}`"
                    if found is None
                    else f"a `{name}` of {found.dtype} and shape {found.shape}"
                )
                self._refuse(got, f"{like.dtype} of shape {(*lead, *like.shape)}")
            return found

        leaves, form = jax.tree.flatten(state)
        found = jax.tree.unflatten(
            form, [take(f"state_{place}", leaf) for place, leaf in enumerate(leaves)]
        )
        if int(found.step) not in self.at:
            self._refuse(
                f"one at step {found.step}", f"at a step that is recorded, of {self.at[-1]}"
            )
        count = self.at.index(int(found.step)) + 1
        series = {name: take(f"record_{name}", one, count) for name, one in self.records[0].items()}
        self.records = [
            {name: values[place] for name, values in series.items()} for place in range(count)
        ]
        return jax.tree.map(jnp.asarray, found)

    def _refuse(self, got: str, expected: str) -> NoReturn:
        advice = f"Remove {getattr(self.checkpoint, 'path', 'it')} to start anew."
        refuse("The checkpoint", Said(got), f"one of this run ({expected})", advice)


def _at_rest(before: State, now: State, most: Any) -> bool:
    old, new = (np.asarray(state.params["weights"], np.float64) for state in (before, now))
    moved, length = (np.sqrt((field**2).sum(axis=(1, 2))) for field in (new - old, new))
    return bool(np.all(moved <= most * length))
