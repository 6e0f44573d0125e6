"""Runs in other processes, and runs compared with each other to the last bit."""

import multiprocessing

SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload(
    ["localfields.experiments", "localfields.theory", "localfields.training.train"]
)


def assert_same(one, other):
    """Equal to the last bit, in all that is no clock."""
    assert list(one.series) == list(other.series)
    parts = [
        (getattr(one, name), getattr(other, name))
        for name in ("steps", "times", "initial", "final")
    ]
    parts += [(one.series[name], other.series[name]) for name in one.series]
    for a, b in parts:
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    assert (one.outcome, one.stopped, one.experiment) == (
        other.outcome,
        other.stopped,
        other.experiment,
    )
