"""Running experiments so that nothing is computed twice and nothing is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, show
from ..store import Checkpoint, Store
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

    Of several processes that ask at once, one computes and the others wait for it. A run that was interrupted, by
    whatever, goes on from its last checkpoint, to the same result bit for bit. A cancelled run keeps its checkpoint
    and is not stored.

    Args:
        experiment: What to compute.
        store: A store or its folder; by default `$LOCALFIELDS_STORE`, or `./runs`.
        on_progress: Called between chunks of training with its `Progress`.
        cancel: Called between chunks; training stops when it returns true.

    Returns:
        The trajectory; its `stopped` says whether it was cancelled.

    Raises:
        InputError: When the experiment is none, or the stored result is damaged.
    """
    if not isinstance(experiment, Experiment):
        raise InputError(
            "`experiment` must be an Experiment, such as `lf.Experiment(task, network, "
            "lf.Training())`, "
            f"got {show(experiment)}."
        )
    store = store if isinstance(store, Store) else Store(store)
    digest = experiment.digest
    checkpoint = Kept(store, digest)
    if digest in store:
        return checkpoint.done()
    with store.lock(digest):
        if digest in store:  # whoever held the lock has computed it
            return checkpoint.done()
        found = experiment.run(on_progress=on_progress, cancel=cancel, checkpoint=checkpoint)
        if found.stopped != "cancelled":
            store.save(experiment.canonical(), digest, found)
            checkpoint.clear()
    return found


class Kept(Checkpoint):
    """The checkpoint of one experiment, which goes when the result is stored."""

    def __init__(self, store: Store, digest: str):
        super().__init__(store.checkpoint(digest).path)
        self.store, self.digest = store, digest

    def done(self) -> Trajectory:
        """The stored result, without the checkpoint that a process killed right after storing it left behind."""
        found = self.store.load(self.digest)
        with contextlib.suppress(InputError):  # the store may be one to read only
            self.clear()
        return found
