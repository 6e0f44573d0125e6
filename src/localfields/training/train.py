"""`train`: the verb that turns a task and a network into a trajectory."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from .._ensemble import count_members, for_members, given_fields, initial_params
from .._memory import training_memory
from .._prng import STREAM, make_key, member_keys
from .._spec import Count, Number, Seeds, swept_leaves
from .._types import ArrayLike, RealLike, WholeLike, working_dtype
from ..errors import InputError, TrainingInterrupted, shorten, show
from ..networks import Network
from ..tasks import Discrimination
from ..trajectory import Outcome, Trajectory, experiment_json, made_with
from . import fused
from .engine import (
    QUANTITIES,
    STATUS_NAMES,
    Program,
    Record,
    Setting,
    State,
    View,
    advance,
    observe,
)
from .engine import start_state as engine_start
from .estimators import (
    ESTIMATORS,
    check_estimator,
    class_counts,
    exact_extra,
    in_order,
    orbit_extra,
)
from .loop import Checkpointer, Loop, Progress
from .optimizers import OptimizerName, check_optimizer, num_arrays
from .stream import Stream, make_stream

MAX_RECORD_BYTES = 4e9


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
    """Train an ensemble by gradient descent on fresh samples.

    Args:
        task: Stimuli, labels and loss. Its numbers, like those of the network, may be arrays with
            one value per member.
        network: The architecture and how it starts.
        learning_rate: A number, an array with one per member, or a schedule (a function of the
            step, as in optax).
        steps: Number of gradient steps.
        batch: Samples per step, divided over the classes by their proportions.
        members: Size of the ensemble; by default the length of what is swept, or 1.
        seed: Seed for all random numbers. Member m has its own stream, whatever runs beside it. A
            list gives one seed per member: each is then what a run with that seed alone would be.
        record: What to keep, and how often.
        estimator: `independent` (each member has its own samples), `shared` (all see the same
            ones), `orbit` (each sample stands for all its shifts and signs), `exact` (the
            population gradient, where a theory knows it), or `epochs` (on data: every sample once,
            in an order all members see, before any comes again).
        optimizer: `sgd`, another name of optax, a name with options such as
            `sgd:momentum=0.9,nesterov=true`, or a function of `learning_rate` that returns an optax
            transformation. A name can be stored, a function cannot.
        initial: Receptive fields to start from, (neuron, *shape) or (member, neuron, *shape).
        stop_tol: Stop when no member's fields move by more than this fraction of their length per
            unit of flow time.
        on_progress: Called with a `Progress` before the first step, where it tells the memory of
            the records, and between chunks of steps.
        cancel: Called between chunks; training stops when it returns true.
        checkpoint: Where to save checkpoints, about every ten seconds: an object with
            `save(arrays)` and `load()`. A run that finds a checkpoint resumes from it and ends with
            the same result, bit for bit.
        poll_interval: Seconds between calls of `on_progress` and `cancel`, by default 0.15. With 0
            they are called at every record, which is slower.

    Returns:
        A `Trajectory`, with what was recorded before a cancel.

    Raises:
        InputError: If arguments do not fit together, before anything is computed.
        TrainingInterrupted: A `KeyboardInterrupt` for Ctrl-C, whose `trajectory` is what was
            recorded until then.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)))
        >>> run = lf.train(task, lf.networks.SingleNeuron(), steps=20, batch=100, members=3)
        >>> run.weights.shape
        (3, 3, 1, 12)
    """
    # Check. What can be wrong is found here, before anything is compiled.
    record = Record() if record is None else record
    steps, batch = Count(high=10**9).check("steps", steps), Count(high=10**9).check("batch", batch)
    seed = Seeds().check("seed", seed)
    _check_arguments(task, network, record, stop_tol, poll_interval, on_progress, cancel)
    schedule = _check_schedule(learning_rate) if callable(learning_rate) else None
    rate: Any = 1.0 if schedule else Number(low=0).check("learning_rate", learning_rate)
    rates = {"the learning rate": len(rate) if np.ndim(rate) else None}
    count = count_members(task, network, seed, members, rates)
    check_estimator(task, estimator)
    needed = functools.partial(
        training_memory,
        task,
        network,
        members=count,
        batch=batch,
        evaluate=record.evaluate if record.needs_samples(estimator) else 0,
        estimator=estimator,
        optimizer_arrays=num_arrays(check_optimizer(optimizer)),
    )
    needed(record_bytes=0).check()

    # Build the program, the numbers it is given, and the state it starts from.
    ensemble = _build(
        task,
        network,
        estimator=estimator,
        batch=batch,
        optimizer=optimizer,
        schedule=schedule,
        rate=rate,
        seed=seed,
        count=count,
        record=record,
    )
    fields = None if initial is None else given_fields(initial, network.hidden, task.shape, count)

    def start_state() -> State:
        params = initial_params(task, network, seed, count)
        if fields is not None:
            weights = jnp.asarray(fields, working_dtype())
            params["weights"] = jnp.broadcast_to(weights, params["weights"].shape)
        return engine_start(ensemble.program, params)

    # Shapes alone: records that would not fit are refused before anything is compiled.
    shapes = jax.eval_shape(lambda: ensemble.observe(start_state()))
    record_bytes = _check_memory(record.nbytes(steps, shapes))
    memory = needed(record_bytes=record_bytes).check()
    settings = {
        "learning_rate": "schedule" if schedule else np.asarray(rate).tolist(),
        "steps": steps,
        "batch": batch,
        "members": count,
        "seed": Seeds().encode(seed),
        "estimator": estimator,
        "optimizer": _optimizer_name(optimizer),
        "stop_tol": float(stop_tol or 0),
        "every": record.every,
        "quantities": [name for name in QUANTITIES if name in record.quantities],
        "evaluate": record.evaluate,
    }
    experiment = experiment_json(
        task, network, "training", settings, initial=initial, precision=working_dtype()
    )

    # Compile. No steps and one record compile everything, so that `run_seconds` has none of it.
    clock = time.perf_counter()
    start = start_state()
    state = ensemble.advance(start, 0)
    first_record = jax.block_until_ready(ensemble.observe(state))
    compile_seconds = time.perf_counter() - clock

    # Train. Weights change inside `ensemble.advance`, which is `engine.advance`.
    clock = time.perf_counter()
    record_steps = record.at(steps)
    loop = Loop(
        advance=ensemble.advance,
        observe=ensemble.observe,
        steps=record_steps,
        times=_flow_times(np.asarray(record_steps), rate, schedule),
        stop_tol=stop_tol,
        on_progress=on_progress,
        cancel=cancel,
        checkpoint=checkpoint,
        run_digest="" if checkpoint is None else _digest(experiment),
        poll_interval=poll_interval,
    )
    state = loop.run(state, first_record)
    run_seconds = time.perf_counter() - clock

    manifest = {
        **made_with(working_dtype()),
        "matmul_precision": "highest",
        "compile_seconds": compile_seconds,
        "run_seconds": run_seconds,
        "record_bytes": record_bytes,
        "memory_bytes": memory.total,
    }
    shape = (network.hidden, *task.shape)
    trajectory = _to_trajectory(loop, start, state, shape, experiment, manifest)
    if loop.interrupted:  # also at its very end: a loop around `train` must not go on
        raise TrainingInterrupted(trajectory)
    return trajectory


def _check_arguments(
    task: Any,
    network: Any,
    record: Any,
    stop_tol: Any,
    poll_interval: Any,
    on_progress: Any,
    cancel: Any,
) -> None:
    if stop_tol is not None:
        hint = "Give a small fraction, such as 1e-3."
        Number(low=0, closed=True, hint=hint).check("stop_tol", stop_tol)
    if poll_interval is not None:
        hint = "Give seconds, such as 0.5."
        Number(low=0, closed=True, hint=hint).check("poll_interval", poll_interval)
    for name, value in (("on_progress", on_progress), ("cancel", cancel)):
        if value is not None and not callable(value):
            raise InputError(
                f"`{name}` must be a function, which is called between chunks of steps, got "
                f"{show(value)}."
            )
    for name, value, kind, example in (
        ("task", task, Discrimination, "lf.Discrimination(…)"),
        ("network", network, Network, "lf.networks.SingleNeuron()"),
        ("record", record, Record, "lf.Record(every=10)"),
    ):
        if not isinstance(value, kind):
            raise InputError(
                f"`{name}` must be a {kind.__name__}, such as `{example}`, got {show(value)}."
            )
    network.check_outputs(task.outputs)


def _check_memory(record_bytes: int) -> int:
    if record_bytes > MAX_RECORD_BYTES:
        raise InputError(
            f"The records of this run would take {record_bytes / 1e9:.1f} GB of memory; at most "
            f"{MAX_RECORD_BYTES / 1e9:g} GB are allowed. Record less often, or only reductions "
            "such as ('ipr', 'loss')."
        )
    return record_bytes


def _optimizer_name(optimizer: str | Callable[..., Any]) -> str:
    if isinstance(optimizer, str):
        return OptimizerName().check("optimizer", optimizer)
    return getattr(optimizer, "__name__", "custom")


def _check_schedule(schedule: Callable[..., Any]) -> Callable[..., Any]:
    example = "for example `optax.cosine_decay_schedule`."
    try:
        result = jax.eval_shape(schedule, jnp.zeros((), jnp.int32))
    except (TypeError, ValueError) as error:
        # JAX names the file of the function, which tells the user nothing.
        reason = "it returns no number" if "traced for jit" in str(error) else shorten(error)
        raise InputError(
            f"The function given as `learning_rate` fails: {reason}. "
            f"Give a function of the step that returns one number, {example}"
        ) from None
    if not isinstance(result, jax.ShapeDtypeStruct) or result.shape != ():
        raise InputError(
            f"`learning_rate` must return one number for a step, got {shorten(result)}; {example}"
        )
    return schedule


def choose_estimate(
    task: Discrimination, network: Network, estimator: str, members: int
) -> tuple[Callable[..., Any], Any, bool]:
    """The estimator, what it is given beforehand, and whether that differs between members."""
    prepare = {"exact": exact_extra, "orbit": orbit_extra}.get(estimator)
    extra, swept = (None, False) if prepare is None else for_members(prepare, task, network)
    if estimator == "independent" and working_dtype() == jnp.float32 and fused.available():
        if fused.applies(task, network, members):
            return fused.sampled, extra, swept
    return ESTIMATORS[estimator], extra, swept


@dataclasses.dataclass(frozen=True)
class _Ensemble:
    """The compiled functions of `engine.py` with the numbers of one ensemble filled in."""

    program: Program
    view: View
    setting: Setting
    stream: Stream | None  # of rows that come from outside the compiled program
    count: int

    def advance(self, state: State, steps: int) -> State:
        """The state `steps` later."""
        compiled = _sharded(advance, self.count)
        if self.stream is not None:
            return self.stream.advance(compiled, self.program, self.setting, state, steps)
        return compiled(self.program, self.setting, state, steps)

    def observe(self, state: State) -> dict[str, jax.Array]:
        """One record of every member."""
        compiled = _sharded(observe, self.count)
        return compiled(self.view, self.setting, state.members.params, state.step)


def _build(
    task: Discrimination,
    network: Network,
    *,
    estimator: str,
    batch: int,
    optimizer: Any,
    schedule: Callable[..., Any] | None,
    rate: Any,
    seed: int | tuple[int, ...],
    count: int,
    record: Record,
) -> _Ensemble:
    """What is compiled (program, view), and the numbers it is given (setting)."""
    counts = class_counts(task, batch)
    stream = make_stream(task, counts, seed, count, estimator, record.every)
    estimate, extra, extra_swept = choose_estimate(task, network, estimator, count)
    program = Program(
        estimate=estimate if stream is None else in_order,
        counts=counts,
        shared=estimator in ("shared", "epochs"),
        one_by_one=jax.default_backend() == "cpu",
        optimizer=check_optimizer(optimizer),
        schedule=schedule,
        in_order=stream is not None,
    )
    held_out = class_counts(task, record.evaluate, "evaluate")
    view = View(record.quantities, held_out, exact=estimator == "exact")
    setting = _make_setting(task, network, extra, extra_swept, rate, seed, count)
    return _Ensemble(program, view, setting, stream, count)


def _make_setting(
    task: Discrimination,
    network: Network,
    extra: Any,
    extra_swept: bool,
    rate: Any,
    seed: int | tuple[int, ...],
    count: int,
) -> Setting:
    def to_working(leaf: Any) -> jax.Array:
        leaf = np.asarray(leaf)
        floating = np.issubdtype(leaf.dtype, np.floating)
        return jnp.asarray(leaf, working_dtype() if floating else leaf.dtype)

    # Arrays of one type throughout: a Python float is weakly typed and would be another program.
    model = jax.tree.map(to_working, (task, network, extra))
    mask = (swept_leaves(task), swept_leaves(network), jax.tree.map(lambda _: extra_swept, extra))
    swept, fixed = eqx.partition(model, mask)
    rates = jnp.broadcast_to(jnp.asarray(rate, working_dtype()), (count,))
    # A number above all members and steps: the shared stream is none of theirs.
    shared_key = jax.random.fold_in(make_key(seed[0] if isinstance(seed, tuple) else seed), 2**31)
    return Setting(swept, fixed, rates, member_keys(seed, count, STREAM), shared_key)


@functools.cache
def _sharded(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`advance` or `observe`, with members divided evenly over several devices where possible."""
    devices = jax.devices()
    if len(devices) == 1 or count % len(devices):
        return function
    divided: Any = PartitionSpec("member")
    copied: Any = PartitionSpec()
    # The fields of `Setting`: swept, fixed, learning_rate, keys, shared_key.
    setting = Setting(divided, copied, divided, divided, copied)
    state = State(divided, copied) if function is advance else divided
    mesh = Mesh(devices, ("member",))

    def call(static: Any, *args: Any) -> Any:
        part = functools.partial(function, static)
        specs: Any = {"in_specs": (setting, state, copied), "out_specs": state}
        return jax.shard_map(part, mesh=mesh, check_vma=False, **specs)(*args)

    return jax.jit(call, static_argnums=0)


def _to_trajectory(
    loop: Loop,
    start: State,
    end: State,
    shape: tuple[int, ...],
    experiment: dict[str, Any],
    manifest: dict[str, Any],
) -> Trajectory:
    """What a run recorded and where it ended; `shape` is that of a member's fields."""
    recorded, count = len(loop.records), len(end.members.status)
    series = {
        name: np.stack([np.asarray(record[name]) for record in loop.records], axis=1)
        for name in loop.records[0]
    }
    if "weights" in series:
        series["weights"] = series["weights"].reshape(count, recorded, *shape)
    status, failed_at = np.asarray(end.members.status), np.asarray(end.members.failed_at)
    return Trajectory(
        steps=np.asarray(loop.steps[:recorded]),
        times=loop.times[..., :recorded],
        initial=np.asarray(start.members.params["weights"]).reshape(count, *shape),
        final=np.asarray(end.members.params["weights"]).reshape(count, *shape),
        series=series,
        outcome=tuple(
            Outcome(STATUS_NAMES[kind], int(step))
            for kind, step in zip(status, failed_at, strict=True)
        ),
        experiment=experiment,
        manifest=manifest,
        stopped=loop.stopped,
    )


def _flow_times(steps: np.ndarray, rate: Any, schedule: Any) -> np.ndarray:
    """Flow time of each step number: steps × learning rate, summed for a schedule."""
    if schedule is None:
        return steps * rate if np.ndim(rate) == 0 else rate[:, None] * steps[None, :]
    # Step n has been moved by the rates of the steps 0 … n − 1; the sum in float64, since a long
    # run adds up millions of them.
    count = max(int(steps[-1]), 1)
    rates = np.asarray(jax.vmap(schedule)(jnp.arange(count)), dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(np.broadcast_to(rates, (count,)))])[steps]


def _digest(experiment: dict[str, Any]) -> str:
    """The name of this run in its checkpoints."""
    return hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()
