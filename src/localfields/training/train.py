"""`train`: the verb that turns a task and a network into a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._spec import Count, Number, Seeds
from .._types import ArrayLike, RealLike, WholeLike
from ..errors import refuse
from ..networks import Network
from ..tasks import Discrimination
from ..trajectory import Trajectory
from .loop import Checkpointer, Progress
from .plan import make_plan
from .record import Record
from .run import Run


def train(
    task: Discrimination,
    network: Network,
    *,
    learning_rate: RealLike | Callable[[Any], Any] = 0.05,
    steps: WholeLike = 1000,
    batch: WholeLike = 1000,
    members: int | None = None,
    seed: int | Sequence[int] = 0,
    record: Record | None = None,
    estimator: str = "independent",
    optimizer: str | Callable[..., Any] = "sgd",
    initial: ArrayLike | None = None,
    stop_tol: float | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
    checkpoint: Checkpointer | None = None,
    poll_interval: float | None = None,
) -> Trajectory:
    """Train an ensemble by gradient descent on fresh draws.

    Args:
        task: Stimuli, labels and loss. Its numbers, like those of the network, may be arrays: one value a member.
        network: The architecture and how it starts.
        learning_rate: A number, an array with one a member, or a schedule (a function of the step, as in optax).
        steps: Number of gradient steps.
        batch: Draws a step, divided over the classes by their proportions.
        members: Size of the ensemble; by default the length of what is swept, or 1.
        seed: Of everything random. Member m has its own stream, whatever runs beside it. A list gives one a member:
            each is then what a run with that seed alone would be.
        record: What to keep, and how often.
        estimator: `independent` (each member its own draws), `shared` (all see the same draws), `orbit` (each draw
            stands for all its shifts and signs), `exact` (the population gradient, where a theory knows it), or
            `epochs` (on data: every sample once, in an order all members see, before any comes again).
        optimizer: `sgd`, another name of optax, or a function of `learning_rate` that returns an optax transformation.
        initial: Receptive fields to start from, (neuron, *shape) or (member, neuron, *shape).
        stop_tol: Stop when no member's fields move by more than this fraction of their length per unit of flow time.
        on_progress: Called with a `Progress` before the first step (it tells the memory of the records), and between
            chunks.
        cancel: Called between chunks; training stops when it returns true. Ctrl-C does the same.
        checkpoint: Where to save checkpoints, about every ten seconds: an object with
            `save(arrays)` and `load()`. A run that finds a checkpoint resumes from it and ends with
            the same result, bit for bit.
        poll_interval: Seconds between calls of `on_progress` and `cancel`, by default 0.15. With 0
            they are called at every record, which is slower.

    Returns:
        A `Trajectory`. What was recorded before a cancel is in it.

    Raises:
        InputError: When something does not fit together, before anything is computed.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Ising((12,), coupling=0.3), lf.stimuli.Ising((12,), coupling=0.7))
        >>> run = lf.train(task, lf.networks.SingleNeuron(), steps=20, batch=100, members=3)
        >>> run.weights.shape
        (3, 3, 1, 12)
    """
    record = Record() if record is None else record
    steps, batch = Count(high=10**9).check("steps", steps), Count(high=10**9).check("batch", batch)
    seed = Seeds().check("seed", seed)
    _check_callbacks(stop_tol, on_progress, cancel, poll_interval)
    plan = make_plan(
        task, network, learning_rate, batch, members, seed, record, estimator, optimizer
    )
    run = Run(
        plan, task, network, steps, batch, seed, record, estimator, optimizer, initial, stop_tol
    )
    return run.follow(on_progress, cancel, checkpoint, poll_interval)


def _check_callbacks(stop_tol: Any, on_progress: Any, cancel: Any, poll_interval: Any) -> None:
    if stop_tol is not None:
        Number(low=0, closed=True, hint="Give a small fraction, such as 1e-3.").check(
            "stop_tol", stop_tol
        )
    if poll_interval is not None:
        Number(low=0, closed=True, hint="Give seconds, such as 0.5.").check(
            "poll_interval", poll_interval
        )
    for name, value in (("on_progress", on_progress), ("cancel", cancel)):
        if value is not None and not callable(value):
            refuse(f"`{name}`", value, "a function", "It is called between chunks of steps.")
