"""Running experiments so that nothing is computed twice and nothing is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, TrainingInterrupted, show
from ..store import Store
from ..trajectory import Trajectory
from .experiment import Experiment


def run_or_load(
    experiment: Experiment,
    store: Store | str | Path | None = None,
    *,
    on_progress: Callable[[Any], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Trajectory:
    """The result of an experiment: from the store if it is there, otherwise computed and stored.

    If several processes ask at once, one computes and the others wait for it. An interrupted run
    resumes from its last checkpoint, to the same result bit for bit. A cancelled run keeps its
    checkpoint and is not stored.

    Args:
        experiment: What to compute.
        store: A store or its folder; by default `$LOCALFIELDS_STORE`, or `./runs`.
        on_progress: Called between chunks of training with its `Progress`.
        cancel: Called between chunks; training stops when it returns true.

    Returns:
        The trajectory; its `stopped` says whether it was cancelled.

    Raises:
        InputError: If `experiment` is not an Experiment, or the stored result is damaged.
        TrainingInterrupted: A `KeyboardInterrupt` for Ctrl-C; the next call resumes.
    """
    if not isinstance(experiment, Experiment):
        raise InputError(
            "`experiment` must be an Experiment, such as `lf.Experiment(task, network, "
            f"lf.Training())`, got {show(experiment)}."
        )
    store = store if isinstance(store, Store) else Store(store)
    digest = experiment.digest
    checkpoint = store.checkpoint(digest)

    def load() -> Trajectory:
        result = store.load(digest)
        # A process that was killed right after storing left its checkpoint behind. The store may be
        # one to read only.
        with contextlib.suppress(InputError):
            checkpoint.clear()
        return result

    if digest in store:
        return load()
    with store.lock(digest):
        if digest in store:  # whoever held the lock has computed it
            return load()
        interrupt = None
        try:
            result = experiment.run(on_progress=on_progress, cancel=cancel, checkpoint=checkpoint)
        except TrainingInterrupted as stop:
            interrupt, result = stop, stop.trajectory
        if result.stopped != "cancelled":
            store.save(experiment.canonical(), digest, result)
            checkpoint.clear()
    if interrupt is not None:
        raise interrupt
    return result
