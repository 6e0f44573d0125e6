"""`train`: the verb that turns a task and a network into a trajectory."""

from __future__ import annotations

import dataclasses
import functools
import math
import platform
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import __version__
from .._check import Said, refuse, shorten, unknown
from .._random import STREAM, make_key, member_keys
from .._spec import Count, Number, Row, num_members, swept_leaves
from .._types import working_dtype
from ..networks import Network
from ..tasks import Discrimination, for_members, initial_params
from ..trajectory import Outcome, Trajectory, inverse_participation_ratio
from .engine import Program, Setting, State, View, advance, look, start_state
from .estimators import ESTIMATORS, check_symmetry, class_counts, exact_flow, orbit_extra
from .record import LARGEST, Record

SYNC = 0.15  # seconds between looks at the clock, at cancel and at rest


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

    @property
    def rate(self) -> float:
        """Steps a second so far."""
        return self.step / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Time to go at that rate."""
        return (self.steps - self.step) / self.rate if self.rate > 0 else float("inf")


def train(
    task: Discrimination,
    network: Network,
    *,
    learning_rate: Any = 0.05,
    steps: int = 1000,
    batch: int = 1000,
    members: int | None = None,
    seed: int = 0,
    record: Record | None = None,
    estimator: str = "independent",
    optimizer: str | Callable[..., Any] = "sgd",
    initial: Any = None,
    rest: float | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Trajectory:
    """Train an ensemble by gradient descent on fresh draws.

    Args:
        task: Stimuli, labels and loss. Its numbers, like those of the network, may be arrays: one value a member.
        network: The architecture and how it starts.
        learning_rate: A number, an array with one a member, or a schedule (a function of the step, as in optax).
        steps: Number of gradient steps.
        batch: Draws a step, divided over the classes by their proportions.
        members: Size of the ensemble; by default the length of what is swept, or 1.
        seed: Of everything random. Member m has its own stream, whatever runs beside it.
        record: What to keep, and how often.
        estimator: `independent` (each member its own draws), `shared` (all see the same draws), `orbit` (each draw
            stands for all its shifts and signs), or `exact` (the population gradient, where a theory knows it).
        optimizer: `sgd`, another name of optax, or a function of `learning_rate` that returns an optax transformation.
        initial: Receptive fields to start from, (neuron, *shape) or (member, neuron, *shape).
        rest: Stop when no member's fields move by more than this fraction of their length per unit of flow time.
        on_progress: Called with a `Progress` before the first step (it tells the memory of the records), and between
            chunks.
        cancel: Called between chunks; training stops when it returns true. Ctrl-C does the same.

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
    seed = Count(low=0, high=2**63 - 1).check("seed", seed)
    _check_callbacks(rest, on_progress, cancel)
    program, view, setting, rate, count = _plan(
        task, network, learning_rate, batch, members, seed, record, estimator, optimizer
    )
    given = None if initial is None else _given(initial, count, network.hidden, task.shape)

    def start() -> State:
        params = initial_params(task, network, seed, count)
        return start_state(program, params if given is None else {**params, "weights": given})

    size = record.nbytes(steps, jax.eval_shape(lambda: _look(view, setting, start())))
    if size > LARGEST:
        advice = "Record less often, or only reductions such as ('ipr', 'loss')."
        refuse("The memory for records", Said(f"{size / 1e9:.1f} GB"), f"at most {LARGEST / 1e9:g} GB", advice)
    clock = time.perf_counter()
    begin = start()
    state = jax.block_until_ready(advance(program, setting, begin, 0))
    first = _look(view, setting, state)
    jax.block_until_ready(first)
    compiled = time.perf_counter() - clock
    clock = time.perf_counter()
    times = _flow_times(np.asarray(record.at(steps)), rate, program.schedule)
    go, see = functools.partial(advance, program, setting), functools.partial(_look, view, setting)
    state, records, stopped = _loop(go, see, state, first, record.at(steps), times, rest, on_progress, cancel)
    at = record.at(steps)[: len(records)]
    seconds = time.perf_counter() - clock
    series = {name: np.stack([np.asarray(one[name]) for one in records], axis=1) for name in records[0]}
    fields = (count, network.hidden, *task.shape)
    if "weights" in series:
        series["weights"] = series["weights"].reshape(count, len(at), network.hidden, *task.shape)
    manifest = _manifest(compiled, seconds, size)
    specification = {
        "task": task.to_json(),
        "network": network.to_json(),
        "learning_rate": np.asarray(rate).tolist() if program.schedule is None else "schedule",
        "steps": steps,
        "batch": batch,
        "members": count,
        "seed": seed,
        "record": record.to_json(),
        "estimator": estimator,
        "optimizer": optimizer if isinstance(optimizer, str) else getattr(optimizer, "__name__", "custom"),
    }
    return Trajectory(
        steps=np.asarray(at),
        times=times[..., : len(at)],
        initial=np.asarray(begin.params["weights"]).reshape(fields),
        final=np.asarray(state.params["weights"]).reshape(fields),
        series=series,
        outcome=tuple(_outcome(int(bad)) for bad in np.asarray(state.bad)),
        specification=specification,
        manifest=manifest,
        stopped=stopped,
    )


def _check_callbacks(rest: Any, on_progress: Any, cancel: Any) -> None:
    if rest is not None:
        Number(low=0, closed=True, hint="Give a small fraction, such as 1e-3.").check("rest", rest)
    for name, value in (("on_progress", on_progress), ("cancel", cancel)):
        if value is not None and not callable(value):
            refuse(f"`{name}`", value, "a function", "It is called between chunks of steps.")


def _plan(task, network, learning_rate, batch, members, seed, record, estimator, optimizer) -> Any:
    for name, value, kind in (
        ("task", task, Discrimination),
        ("network", network, Network),
        ("record", record, Record),
    ):
        if not isinstance(value, kind):
            refuse(f"`{name}`", value, f"a {kind.__name__}", f"See `lf.{kind.__name__}`.")
    network.check_outputs(task.outputs)
    schedule = _schedule(learning_rate) if callable(learning_rate) else None
    rate = 1.0 if schedule else Number(low=0).check("learning_rate", learning_rate)
    count = _count(task, network, rate, members)
    if estimator not in tuple(ESTIMATORS):  # a list is a mistake, too, and not hashable
        unknown("The estimator", estimator, ESTIMATORS)
    if estimator == "orbit":
        check_symmetry(task)
    estimate, extra, extra_swept = _estimate(task, network, estimator)
    program = Program(
        estimate=estimate,
        counts=class_counts(task, batch),
        shared=estimator == "shared",
        one_by_one=jax.default_backend() == "cpu",
        optimizer=_optimizer(optimizer),
        schedule=schedule,
    )
    view = View(record.what, class_counts(task, record.evaluate, "evaluate"), exact=estimator == "exact")
    whole = (task, network, extra)
    mask = (swept_leaves(task), swept_leaves(network), jax.tree.map(lambda _: extra_swept, extra))
    swept, fixed = eqx.partition(jax.tree.map(_working, whole), mask)
    rates = jnp.broadcast_to(jnp.asarray(rate, working_dtype()), (count,))
    shared_key = jax.random.fold_in(make_key(seed), 2**31)
    return program, view, Setting(swept, fixed, rates, member_keys(seed, count, STREAM), shared_key), rate, count


def _working(leaf: Any) -> jax.Array:
    leaf = np.asarray(leaf)
    return jnp.asarray(leaf, working_dtype() if np.issubdtype(leaf.dtype, np.floating) else leaf.dtype)


def _schedule(schedule: Callable[..., Any]) -> Callable[..., Any]:
    expected, advice = "a function of the step that returns one number", "For example `optax.cosine_decay_schedule`."
    try:
        found = jax.eval_shape(schedule, jnp.zeros((), jnp.int32))
    except (TypeError, ValueError) as error:
        refuse("`learning_rate`", Said(f"one that fails ({shorten(error)})"), expected, advice)
    if not isinstance(found, jax.ShapeDtypeStruct) or found.shape != ():
        refuse("`learning_rate`", Said(f"one that returns {shorten(found)}"), expected, advice)
    return schedule


def _estimate(task: Discrimination, network: Network, estimator: str) -> tuple[Callable[..., Any], Any, bool]:
    """The estimator, what it knows beforehand, and whether that differs between members."""
    prepare = {"exact": exact_flow, "orbit": orbit_extra}.get(estimator)
    extra, swept = (None, False) if prepare is None else for_members(prepare, task, network)
    if estimator == "independent" and jax.default_backend() == "gpu" and working_dtype() == jnp.float32:
        from . import fused

        if fused.applies(task, network):
            return fused.sampled, extra, swept
    return ESTIMATORS[estimator], extra, swept


def _count(task: Discrimination, network: Network, rate: Any, members: int | None) -> int:
    lengths = {
        name: length
        for name, length in (
            ("the task", num_members(task)),
            ("the network", num_members(network)),
            ("the learning rate", len(rate) if np.ndim(rate) else None),
            ("`members`", None if members is None else Count(high=10**7).check("members", members)),
        )
        if length is not None
    }
    if len(set(lengths.values())) > 1:
        got = Said(", ".join(f"{name} has {length}" for name, length in lengths.items()))
        refuse("The number of members", got, "the same wherever it is given", "Repeat values: one for every member.")
    return next(iter(lengths.values()), 1)


def _optimizer(optimizer: str | Callable[..., Any]) -> Callable[..., Any] | None:
    if isinstance(optimizer, str) and optimizer == "sgd":
        return None
    import optax

    if callable(optimizer):
        try:
            made = optimizer(learning_rate=1.0)
        except TypeError as error:
            made = Said(f"one that fails ({shorten(error)})")
        if not isinstance(made, optax.GradientTransformation):
            advice = "For example `functools.partial(optax.sgd, momentum=0.9)`."
            refuse("`optimizer`", made, "a function of `learning_rate` that returns an optax transformation", advice)
        return optimizer
    names = ("adam", "adamw", "rmsprop", "adagrad", "sgd", "lion", "nadam", "adabelief")
    if optimizer not in names:
        unknown("The optimizer", optimizer, names)
    return getattr(optax, optimizer)


def _given(initial: Any, count: int, hidden: int, lattice: tuple[int, ...]) -> jax.Array:
    advice = "Give (neuron, *shape) or (member, neuron, *shape)."
    array = Row(axes=None, hint=advice).check("initial", initial)
    one, all_of_them = (hidden, *lattice), (count, hidden, *lattice)
    if array.shape not in (one, all_of_them):
        refuse("`initial`", Said(f"shape {array.shape}"), f"of shape {one} or {all_of_them}", advice)
    flat = jnp.asarray(array.reshape(-1, hidden, math.prod(lattice)), working_dtype())
    return jnp.broadcast_to(flat, (count, *flat.shape[1:]))


def _look(view: View, setting: Setting, state: State) -> dict[str, jax.Array]:
    return look(view, setting, state.params, state.step)


def _loop(go, see, state: State, first, at: list[int], times, rest, on_progress, cancel) -> Any:
    """Chunks between records. The device runs ahead; Python looks at the clock and at cancel now and then.

    Rest is looked for at every record, and only when asked for: where a run stops must not depend on the clock.
    """
    records, stopped = [first], "finished"
    begin = last = time.perf_counter()
    try:
        if on_progress is not None:
            on_progress(_progress(state, first, at, 0, 0.0, 0.0))
        for index in range(1, len(at)):
            before = state
            ahead = go(state, at[index] - at[index - 1])
            records.append(see(ahead))
            state = ahead
            if time.perf_counter() - last >= SYNC or at[index] == at[-1]:
                jax.block_until_ready(records[-1])
                last = time.perf_counter()
                if on_progress is not None:
                    time_here = float(np.mean(times[..., index]))
                    on_progress(_progress(state, records[-1], at, index, last - begin, time_here))
                if cancel is not None and cancel():
                    stopped = "cancelled"
                    break
            span = times[..., index] - times[..., index - 1]
            if rest is not None and at[index] != at[-1] and _at_rest(before, state, rest * span):
                stopped = "at rest"
                break
    except KeyboardInterrupt:
        stopped = "cancelled"
    return state, records, stopped


def _at_rest(before: State, now: State, most: Any) -> bool:
    old, new = (np.asarray(state.params["weights"], np.float64) for state in (before, now))
    moved, length = (np.sqrt((field**2).sum(axis=(1, 2))) for field in (new - old, new))
    return bool(np.all(moved <= most * length))


def _progress(state: State, one, at: list[int], index: int, seconds: float, flow_time: float) -> Progress:
    ipr = inverse_participation_ratio(np.asarray(state.params["weights"]), 1)
    loss = np.asarray(one["loss"]) if "loss" in one else None
    size = len(at) * sum(leaf.nbytes for leaf in one.values())
    return Progress(at[index], at[-1], seconds, flow_time, ipr, loss, size)


def _outcome(bad: int) -> Outcome:
    if bad == -1:
        return Outcome("ok", -1)
    return Outcome("diverged", bad) if bad >= 0 else Outcome("non-finite", -bad - 1)


def _flow_times(at: np.ndarray, rate: Any, schedule: Any) -> np.ndarray:
    if schedule is not None:
        each = np.asarray(jax.vmap(schedule)(jnp.arange(max(int(at[-1]), 1))), dtype=np.float64)
        each = np.broadcast_to(each, (max(int(at[-1]), 1),))
        return np.concatenate([[0.0], np.cumsum(each)])[at]
    return at * rate if np.ndim(rate) == 0 else rate[:, None] * at[None, :]


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
