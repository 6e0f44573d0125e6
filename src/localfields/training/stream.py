"""Rows of data for the steps to come, brought from where they lie, a window at a time.

Python fills a window with the rows of the next steps, the compiled program takes them in their order, and Python fills
the next one. What a step sees depends on the seed and the step alone, not on where windows end, so that a run that
was interrupted goes on with the rows it would have had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._types import working_dtype
from ..errors import Said, refuse
from ..stimuli.samples import Rows
from ..tasks import Discrimination
from .engine import Setting, State

WINDOW = 2**26  # bytes of the rows of one window


def _is_streamed(task: Discrimination) -> bool:
    """Whether a class has more rows than compiled code can hold."""
    return any(isinstance(one, Rows) and one.streamed for one in task.stimuli)


def _check_made_of_rows(task: Discrimination, estimator: str) -> None:
    """Refuse what cannot be streamed: classes that are not made of rows, or that are swept."""
    for stimulus in task.stimuli:
        if not isinstance(stimulus, Rows):
            advice = 'Use estimator="independent": its draws never repeat.'
            refuse(
                f"Every stimulus for the estimator `{estimator}`", stimulus, "made of data", advice
            )
        stimulus.require_one("where rows are streamed")
    if estimator not in ("epochs", "independent", "shared"):
        got, advice = Said(f"`{estimator}`"), "Use epochs, independent or shared, or fewer samples."
        refuse(
            "The estimator on data too large to hold",
            got,
            "one that takes rows from the file",
            advice,
        )


@dataclasses.dataclass
class Stream:
    """The rows of every step.

    Args:
        task: Classes made of data.
        counts: Rows of each class in a step.
        seeds: One a stream: a single one that all members see, or one a member.
        epochs: Whether every row comes once before any comes again; otherwise rows are drawn at random.
        shared: Whether all members see one stream.
        most: Steps that are wanted at a time.
    """

    task: Discrimination
    counts: tuple[int, ...]
    seeds: tuple[tuple[int, ...], ...]
    epochs: bool
    shared: bool
    most: int
    _order: dict[Any, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Steps of one window."""
        one = (
            len(self.seeds) * sum(self.counts) * self.task.size * np.dtype(working_dtype()).itemsize
        )
        return max(1, min(self.most, WINDOW // one))

    def numbers(self, stream: int, which: int, step: int) -> np.ndarray:
        """Numbers of the rows of one class in one step."""
        stimulus: Any = self.task.stimuli[which]
        count, seed = self.counts[which], self.seeds[stream]
        if not self.epochs:
            return np.random.default_rng([*seed, which, step]).integers(0, stimulus.num, count)
        epoch, place = np.divmod(step * count + np.arange(count, dtype=np.int64), stimulus.num)
        return np.concatenate(
            [self._epoch(stream, which, int(e))[place[epoch == e]] for e in np.unique(epoch)]
        )

    def _epoch(self, stream: int, which: int, epoch: int) -> np.ndarray:
        """The order of the rows of a class in one epoch."""
        if (stream, which, epoch) not in self._order:
            for old in [
                key for key in self._order if key[:2] == (stream, which) and key[2] < epoch - 1
            ]:
                del self._order[old]
            seed, stimulus = self.seeds[stream], self.task.stimuli[which]
            order = np.random.default_rng([*seed, which, epoch]).permutation(stimulus.num)  # pyright: ignore[reportAttributeAccessIssue]  # a stream is of data
            self._order[stream, which, epoch] = order
        return self._order[stream, which, epoch]

    def rows(self, stream: int, which: int, begin: int, steps: int) -> np.ndarray:
        """Rows of one class for these steps of a window; what lies beyond them in the window is zero."""
        stimulus: Any = self.task.stimuli[which]
        count = self.counts[which]
        found = np.zeros((self.steps * count, stimulus.size), np.dtype(working_dtype()))
        if not steps:
            return found
        wanted = np.concatenate(
            [self.numbers(stream, which, step) for step in range(begin, begin + steps)]
        )
        taken = stimulus.take(wanted)
        for place in range(
            steps
        ):  # moved a step at a time, so that nothing depends on where a window ends
            part = slice(place * count, (place + 1) * count)
            generator = np.random.default_rng([*self.seeds[stream], which, begin + place, 1])
            found[part] = stimulus.moved(taken[part], generator)
        return found

    def filled(self, setting: Setting, begin: int, steps: int) -> Setting:
        """The setting with the rows of these steps in the place of what an estimator knows beforehand."""
        streams = [
            [self.rows(stream, which, begin, steps) for which in range(len(self.counts))]
            for stream in range(len(self.seeds))
        ]
        if self.shared:
            extra: Any = [jnp.asarray(x) for x in streams[0]], jnp.asarray(begin, jnp.int32)
        else:  # with an axis of members
            each = [jnp.asarray(np.stack(of_class)) for of_class in zip(*streams, strict=True)]
            extra = each, jnp.full((len(self.seeds),), begin, jnp.int32)
        none = jax.tree.map(lambda _: None, extra)
        swept, fixed = (none, extra) if self.shared else (extra, none)
        halves = (*setting.swept[:2], swept), (*setting.fixed[:2], fixed)
        return Setting(*halves, setting.learning_rate, setting.keys, setting.shared_key)

    def forward(
        self,
        advance: Callable[..., State],
        program: Any,
        setting: Setting,
        state: State,
        steps: int,
    ) -> State:
        """`advance`, one window after another; with no steps, what compiles it."""
        begin, end = int(state.step), int(state.step) + steps
        if not steps:
            return advance(program, self.filled(setting, begin, 0), state, 0)
        while begin < end:
            now = min(self.steps, end - begin)
            state = advance(program, self.filled(setting, begin, now), state, now)
            begin += now
        return state


def make_stream(
    task: Discrimination,
    counts: tuple[int, ...],
    seed: int | tuple[int, ...],
    members: int,
    estimator: str,
    most: int,
) -> Stream | None:
    """The stream of a run, or None for one that draws in compiled code.

    Raises:
        InputError: When the classes are not made of data, or too large for the estimator.
    """
    if estimator != "epochs" and not _is_streamed(task):
        return None
    _check_made_of_rows(task, estimator)
    shared = estimator != "independent"
    first = seed[0] if isinstance(seed, tuple) else seed
    each = (
        [(one, 0) for one in seed]
        if isinstance(seed, tuple)
        else [(seed, m) for m in range(members)]
    )
    seeds = ((first,),) if shared else tuple(each)
    return Stream(task, counts, seeds, estimator == "epochs", shared, most)
