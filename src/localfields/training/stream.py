"""Rows of data for the steps to come, brought from a file or from memory, a window at a time.

Python fills a window with the rows of the next steps, the compiled program takes them in order, and
Python fills the next window. The rows of a step depend on the seed and the step alone, not on where
windows end, so that a run that was interrupted resumes with the rows it would have had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._types import working_dtype
from ..errors import InputError, show
from ..stimuli.samples import Rows
from ..tasks import Discrimination
from .engine import Program, Setting, State

WINDOW_BYTES = 2**26  # bytes of the rows of one window


@dataclasses.dataclass
class Stream:
    """The rows of every step.

    Args:
        task: Classes made of data.
        counts: Rows of each class in a step.
        seeds: One per stream: a single one that all members see, or one per member.
        epochs: Whether every row comes once before any comes again; otherwise rows are random.
        shared: Whether all members see one stream.
        max_steps: The most steps that are wanted at a time.
    """

    task: Discrimination
    counts: tuple[int, ...]
    seeds: tuple[tuple[int, ...], ...]
    epochs: bool
    shared: bool
    max_steps: int
    _orders: dict[tuple[int, int, int], np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Steps of one window."""
        numbers = len(self.seeds) * sum(self.counts) * self.task.size
        bytes_per_step = numbers * np.dtype(working_dtype()).itemsize
        return max(1, min(self.max_steps, WINDOW_BYTES // bytes_per_step))

    def _stimulus(self, c: int) -> Rows:
        stimulus = self.task.stimuli[c]
        assert isinstance(stimulus, Rows), "checked by `make_stream`"
        return stimulus

    def _row_numbers(self, stream: int, c: int, step: int) -> np.ndarray:
        """Which rows of class c are in one step."""
        num, count, seed = self._stimulus(c).num, self.counts[c], self.seeds[stream]
        if not self.epochs:
            return np.random.default_rng([*seed, c, step]).integers(0, num, count)
        epochs, places = np.divmod(step * count + np.arange(count, dtype=np.int64), num)
        parts = [self._order(stream, c, int(e))[places[epochs == e]] for e in np.unique(epochs)]
        return np.concatenate(parts)

    def _order(self, stream: int, c: int, epoch: int) -> np.ndarray:
        """The order of the rows of class c in one epoch; that of the epoch before is kept, too."""
        if (stream, c, epoch) not in self._orders:
            old = [key for key in self._orders if key[:2] == (stream, c) and key[2] < epoch - 1]
            for key in old:
                del self._orders[key]
            generator = np.random.default_rng([*self.seeds[stream], c, epoch])
            self._orders[stream, c, epoch] = generator.permutation(self._stimulus(c).num)
        return self._orders[stream, c, epoch]

    def rows(self, stream: int, c: int, first_step: int, steps: int) -> np.ndarray:
        """Rows of class c for these steps, padded by zeros to the length of a window."""
        stimulus, count = self._stimulus(c), self.counts[c]
        window = np.zeros((self.steps * count, stimulus.size), np.dtype(working_dtype()))
        if not steps:
            return window
        numbers = [self._row_numbers(stream, c, first_step + place) for place in range(steps)]
        rows = stimulus.take(np.concatenate(numbers))
        # Shifted a step at a time, so that nothing depends on where a window ends.
        for place in range(steps):
            part = slice(place * count, (place + 1) * count)
            generator = np.random.default_rng([*self.seeds[stream], c, first_step + place, 1])
            window[part] = stimulus.moved(rows[part], generator)
        return window

    def filled(self, setting: Setting, first_step: int, steps: int) -> Setting:
        """The setting with the rows of these steps as what the estimator is given beforehand."""
        streams = [
            [self.rows(stream, c, first_step, steps) for c in range(len(self.counts))]
            for stream in range(len(self.seeds))
        ]
        if self.shared:
            extra: Any = [jnp.asarray(x) for x in streams[0]], jnp.asarray(first_step, jnp.int32)
        else:  # with an axis of members
            by_class = [jnp.asarray(np.stack(of_class)) for of_class in zip(*streams, strict=True)]
            extra = by_class, jnp.full((len(self.seeds),), first_step, jnp.int32)
        none = jax.tree.map(lambda _: None, extra)
        swept, fixed = (none, extra) if self.shared else (extra, none)
        halves = (*setting.swept[:2], swept), (*setting.fixed[:2], fixed)
        return Setting(*halves, setting.learning_rate, setting.keys, setting.shared_key)

    def advance(
        self,
        compiled: Callable[..., State],
        program: Program,
        setting: Setting,
        state: State,
        steps: int,
    ) -> State:
        """The compiled `advance`, one window after another; with no steps, it only compiles."""
        step, end = int(state.step), int(state.step) + steps
        if not steps:
            return compiled(program, self.filled(setting, step, 0), state, 0)
        while step < end:
            count = min(self.steps, end - step)
            state = compiled(program, self.filled(setting, step, count), state, count)
            step += count
        return state


def make_stream(
    task: Discrimination,
    counts: tuple[int, ...],
    seed: int | tuple[int, ...],
    members: int,
    estimator: str,
    max_steps: int,
) -> Stream | None:
    """The stream of a run, or None for one that samples in compiled code.

    Raises:
        InputError: If the classes are not made of data, or too large for the estimator.
    """
    too_large = any(isinstance(stimulus, Rows) and stimulus.streamed for stimulus in task.stimuli)
    if estimator != "epochs" and not too_large:
        return None
    for stimulus in task.stimuli:
        if not isinstance(stimulus, Rows):
            raise InputError(
                f"The estimator {estimator!r} needs every stimulus made of data here, got "
                f"{show(stimulus)}. Use estimator='independent': its samples never repeat."
            )
        stimulus.require_one("where rows are streamed")
    if estimator not in ("epochs", "independent", "shared"):
        raise InputError(
            f"The estimator {estimator!r} cannot be used on data too large for memory. Use "
            "'epochs', 'independent' or 'shared', or fewer samples."
        )
    shared = estimator != "independent"
    if shared:
        seeds = ((seed[0] if isinstance(seed, tuple) else seed,),)
    elif isinstance(seed, tuple):
        seeds = tuple((s, 0) for s in seed)
    else:
        seeds = tuple((seed, member) for member in range(members))
    return Stream(task, counts, seeds, estimator == "epochs", shared, max_steps)
