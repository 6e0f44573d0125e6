"""`train`: the verb that turns a task and a network into a trajectory."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from .. import __version__
from .._check import Said, refuse
from .._spec import Count, Number, Seeds
from .._types import working_dtype
from ..networks import Network
from ..tasks import Discrimination, initial_params
from ..trajectory import Outcome, Trajectory
from .engine import Setting, State, advance, look, start_state
from .loop import Keep, Loop, Progress
from .plan import Plan, flow_times, given_fields, make_plan
from .record import LARGEST, Record


def train(
    task: Discrimination,
    network: Network,
    *,
    learning_rate: Any = 0.05,
    steps: int = 1000,
    batch: int = 1000,
    members: int | None = None,
    seed: int | Sequence[int] = 0,
    record: Record | None = None,
    estimator: str = "independent",
    optimizer: str | Callable[..., Any] = "sgd",
    initial: Any = None,
    rest: float | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
    keep: Keep | None = None,
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
        rest: Stop when no member's fields move by more than this fraction of their length per unit of flow time.
        on_progress: Called with a `Progress` before the first step (it tells the memory of the records), and between
            chunks.
        cancel: Called between chunks; training stops when it returns true. Ctrl-C does the same.
        keep: Where to keep checkpoints, every ten seconds or so: an object with `save(arrays)` and `load()`. A run that
            finds one goes on from there, to the same result, bit for bit.

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
    _check_callbacks(rest, on_progress, cancel)
    plan = make_plan(task, network, learning_rate, batch, members, seed, record, estimator, optimizer)
    given = None if initial is None else given_fields(initial, plan.count, network.hidden, task.shape)

    def start() -> State:
        params = initial_params(task, network, seed, plan.count)
        return start_state(plan.program, params if given is None else {**params, "weights": given})

    size = record.nbytes(steps, jax.eval_shape(lambda: _see(plan, start())))
    if size > LARGEST:
        advice = "Record less often, or only reductions such as ('ipr', 'loss')."
        refuse("The memory for records", Said(f"{size / 1e9:.1f} GB"), f"at most {LARGEST / 1e9:g} GB", advice)
    specification = {
        "task": task.to_json(),
        "network": network.to_json(),
        "learning_rate": np.asarray(plan.rate).tolist() if plan.program.schedule is None else "schedule",
        "steps": steps,
        "batch": batch,
        "members": plan.count,
        "seed": Seeds().encode(seed),
        "record": record.to_json(),
        "estimator": estimator,
        "optimizer": optimizer if isinstance(optimizer, str) else getattr(optimizer, "__name__", "custom"),
        "initial": None if initial is None else np.asarray(initial, np.float64).tolist(),
        "rest": None if rest is None else float(rest),
    }
    clock = time.perf_counter()
    begin = start()
    forward = _divided(advance, plan.count)
    if plan.stream is not None:
        forward = functools.partial(plan.stream.forward, forward)
    state = forward(plan.program, plan.setting, begin, 0)
    first = jax.block_until_ready(_see(plan, state))
    compiled = time.perf_counter() - clock
    clock = time.perf_counter()
    at = record.at(steps)
    times = flow_times(np.asarray(at), plan.rate, plan.program.schedule)
    go, see = functools.partial(forward, plan.program, plan.setting), functools.partial(_see, plan)
    loop = Loop(go, see, at, times, rest, on_progress, cancel, keep, "" if keep is None else _digest(specification))
    state = loop.run(state, first)
    seconds = time.perf_counter() - clock
    count, recorded = plan.count, len(loop.records)
    series = {name: np.stack([np.asarray(one[name]) for one in loop.records], axis=1) for name in first}
    fields = (count, network.hidden, *task.shape)
    if "weights" in series:
        series["weights"] = series["weights"].reshape(count, recorded, network.hidden, *task.shape)
    return Trajectory(
        steps=np.asarray(at[:recorded]),
        times=times[..., :recorded],
        initial=np.asarray(begin.params["weights"]).reshape(fields),
        final=np.asarray(state.params["weights"]).reshape(fields),
        series=series,
        outcome=tuple(_outcome(int(bad)) for bad in np.asarray(state.bad)),
        specification=specification,
        manifest=_manifest(compiled, seconds, size),
        stopped=loop.stopped,
    )


def _digest(specification: dict[str, Any]) -> str:
    """What tells this run's checkpoints from those of others; functions are told apart by their names alone."""
    plain = {**specification, "precision": str(np.dtype(working_dtype()))}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _see(plan: Plan, state: State) -> dict[str, jax.Array]:
    return _divided(look, plan.count)(plan.view, plan.setting, state.params, state.step)


@functools.cache
def _divided(call: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`call`, with members divided over the devices where there are several and all get as many."""
    devices, each, same = jax.devices(), PartitionSpec("member"), PartitionSpec()
    if len(devices) == 1 or count % len(devices):
        return call
    state: Any = State(each, each, each, same) if call is advance else each  # pyright: ignore[reportArgumentType]
    setting: Any = Setting(each, same, each, each, same)  # pyright: ignore[reportArgumentType]
    more = {"mesh": Mesh(devices, ("member",)), "in_specs": (setting, state, same), "out_specs": state}
    part = lambda static, *args: jax.shard_map(functools.partial(call, static), check_vma=False, **more)(*args)  # noqa: E731
    return jax.jit(part, static_argnums=0)


def _check_callbacks(rest: Any, on_progress: Any, cancel: Any) -> None:
    if rest is not None:
        Number(low=0, closed=True, hint="Give a small fraction, such as 1e-3.").check("rest", rest)
    for name, value in (("on_progress", on_progress), ("cancel", cancel)):
        if value is not None and not callable(value):
            refuse(f"`{name}`", value, "a function", "It is called between chunks of steps.")


def _outcome(bad: int) -> Outcome:
    if bad == -1:
        return Outcome("ok", -1)
    return Outcome("diverged", bad) if bad >= 0 else Outcome("non-finite", -bad - 1)


def _manifest(compiled: float, seconds: float, size: int) -> dict[str, Any]:
    return {
        "localfields": __version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": str(jax.devices()[0].device_kind),
        "precision": str(np.dtype(working_dtype())),
        "matmul_precision": "highest",
        "compile_seconds": round(compiled, 4),
        "run_seconds": round(seconds, 4),
        "record_bytes": size,
    }
