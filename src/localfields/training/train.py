"""`train`: the verb that turns a task and a network into a trajectory."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import __version__
from .._check import Said, refuse, unknown
from .._random import make_key
from .._spec import Count, Number, num_members, swept_leaves
from .._types import working_dtype
from ..networks import Network
from ..tasks import Discrimination
from ..trajectory import Outcome, Trajectory, inverse_participation_ratio
from .engine import Program, Setting, State, advance, look, start_params, start_state
from .estimators import ESTIMATORS, check_symmetry, class_counts, exact_estimator
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
        on_progress: Called between chunks with a `Progress`.
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
    record = record or Record()
    plan = _plan(task, network, learning_rate, steps, batch, members, seed, record, estimator, optimizer)
    program, setting, count = plan
    params = start_params(setting.swept, setting.fixed, _keys(seed, count, 1), task.outputs)
    if initial is not None:
        params = {**params, "weights": _given(initial, params["weights"].shape, task.shape)}
    state = start_state(program, params)
    clock = time.perf_counter()
    state = jax.block_until_ready(advance(program, setting, state, 0))
    first = look(program, setting, state)
    jax.block_until_ready(first)
    compiled = time.perf_counter() - clock
    size = record.nbytes(steps, first)
    if size > LARGEST:
        advice = "Record less often, or only reductions such as ('ipr', 'loss')."
        refuse("The memory for records", Said(f"{size / 1e9:.1f} GB"), f"at most {LARGEST / 1e9:g} GB", advice)
    clock = time.perf_counter()
    state, records, at, stopped = _loop(program, setting, state, first, record.at(steps), rest, on_progress, cancel)
    seconds = time.perf_counter() - clock
    series = {name: np.stack([np.asarray(one[name]) for one in records], axis=1) for name in records[0]}
    fields = (count, network.hidden, *task.shape)
    if "weights" in series:
        series["weights"] = series["weights"].reshape(count, len(at), network.hidden, *task.shape)
    manifest = _manifest(compiled, seconds, size)
    specification = {
        "task": task.to_json(),
        "network": network.to_json(),
        "learning_rate": np.asarray(setting.learning_rate).tolist() if program.schedule is None else "schedule",
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
        times=_flow_times(np.asarray(at), setting.learning_rate, program.schedule),
        initial=np.asarray(params["weights"]).reshape(fields),
        final=np.asarray(state.params["weights"]).reshape(fields),
        series=series,
        outcome=tuple(_outcome(int(bad)) for bad in np.asarray(state.bad)),
        specification=specification,
        manifest=manifest,
        stopped=stopped,
    )


def _plan(task, network, learning_rate, steps, batch, members, seed, record, estimator, optimizer) -> Any:
    for name, value, kind in (
        ("task", task, Discrimination),
        ("network", network, Network),
        ("record", record, Record),
    ):
        if not isinstance(value, kind):
            refuse(f"`{name}`", value, f"a {kind.__name__}", f"See `lf.{kind.__name__}`.")
    Count(high=10**9).check("steps", steps)
    Count(high=10**9).check("batch", batch)
    Count(low=0, high=2**63 - 1).check("seed", seed)
    network.check_outputs(task.outputs)
    schedule = learning_rate if callable(learning_rate) else None
    rate = 1.0 if schedule else Number(low=0).check("learning_rate", learning_rate)
    count = _count(task, network, rate, members)
    if estimator != "exact" and estimator not in ESTIMATORS:
        unknown("The estimator", estimator, [*ESTIMATORS, "exact"])
    if estimator == "orbit":
        check_symmetry(task)
    program = Program(
        estimate=exact_estimator(task, network) if estimator == "exact" else ESTIMATORS[estimator],
        counts=class_counts(task, batch),
        evaluate=class_counts(task, max(record.evaluate, len(task.stimuli))),
        shared=estimator == "shared",
        one_by_one=jax.default_backend() == "cpu",
        optimizer=_optimizer(optimizer),
        schedule=schedule,
        what=record.what,
    )
    whole = (task, network)
    mask = (swept_leaves(task), swept_leaves(network))
    swept, fixed = eqx.partition(jax.tree.map(lambda leaf: jnp.asarray(leaf, working_dtype()), whole), mask)
    rates = jnp.broadcast_to(jnp.asarray(rate, working_dtype()), (count,))
    shared_key = jax.random.fold_in(make_key(seed), 2**31)
    return program, Setting(swept, fixed, rates, _keys(seed, count, 0), shared_key), count


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


def _keys(seed: int, count: int, use: int) -> jax.Array:
    # A member's key depends on the seed and its number alone; one use is the stream, the other the start.
    base = jax.random.fold_in(make_key(seed), use)
    return jax.vmap(lambda m: jax.random.fold_in(base, m))(jnp.arange(count))


def _optimizer(optimizer: str | Callable[..., Any]) -> Callable[..., Any] | None:
    if optimizer == "sgd":
        return None
    if callable(optimizer):
        return optimizer
    import optax

    names = ("adam", "adamw", "rmsprop", "adagrad", "sgd", "lion", "nadam", "adabelief")
    if optimizer not in names:
        unknown("The optimizer", optimizer, names)
    return getattr(optax, optimizer)


def _given(initial: Any, shape: tuple[int, ...], lattice: tuple[int, ...]) -> jax.Array:
    count, hidden, size = shape
    try:
        array = jnp.asarray(initial, working_dtype())
    except (TypeError, ValueError):
        refuse(
            "`initial`", initial, "an array of receptive fields", "Give (neuron, *shape) or (member, neuron, *shape)."
        )
    one, all_of_them = (hidden, *lattice), (count, hidden, *lattice)
    if array.shape not in (one, all_of_them):
        got = Said(f"shape {array.shape}")
        refuse("`initial`", got, f"of shape {one} or {all_of_them}", "Give one field a neuron on the task's lattice.")
    return jnp.broadcast_to(array.reshape(-1, hidden, size), shape)


def _loop(program, setting, state: State, first, at: list[int], rest, on_progress, cancel) -> Any:
    """Chunks between records. The device runs ahead; Python looks at the clock, at cancel and at rest now and then."""
    records, done, stopped = [first], [at[0]], "finished"
    begin = last = time.perf_counter()
    before = None
    try:
        for here, there in zip(at[:-1], at[1:], strict=True):
            state = advance(program, setting, state, there - here)
            records.append(look(program, setting, state))
            done.append(there)
            if time.perf_counter() - last < SYNC and there != at[-1]:
                continue
            jax.block_until_ready(records[-1])
            last = time.perf_counter()
            if on_progress is not None:
                on_progress(_progress(setting, state, records[-1], there, at[-1], last - begin))
            if cancel is not None and cancel():
                stopped = "cancelled"
                break
            if rest is not None and there != at[-1]:
                now = (np.asarray(state.params["weights"]), there)
                if before is not None and _at_rest(before, now, setting.learning_rate, rest):
                    stopped = "at rest"
                    break
                before = now
    except KeyboardInterrupt:
        stopped = "cancelled"
        records, done = records[: len(done)], done[: len(records)]
    return state, records, done, stopped


def _at_rest(before: Any, now: Any, rates: Any, rest: float) -> bool:
    moved = np.sqrt(((now[0] - before[0]) ** 2).sum(axis=(1, 2))) / np.sqrt((now[0] ** 2).sum(axis=(1, 2)))
    return bool(np.all(moved <= rest * (now[1] - before[1]) * np.asarray(rates)))


def _progress(setting, state: State, one, step: int, steps: int, seconds: float) -> Progress:
    weights = np.asarray(state.params["weights"])
    ipr = inverse_participation_ratio(weights, 1)
    loss = np.asarray(one["loss"]) if "loss" in one else None
    return Progress(step, steps, seconds, float(step * np.mean(np.asarray(setting.learning_rate))), ipr, loss)


def _outcome(bad: int) -> Outcome:
    if bad == -1:
        return Outcome("ok", -1)
    return Outcome("diverged", bad) if bad >= 0 else Outcome("non-finite", -bad - 1)


def _flow_times(at: np.ndarray, rates: Any, schedule: Any) -> np.ndarray:
    if schedule is not None:
        each = np.asarray(jax.vmap(schedule)(jnp.arange(max(int(at[-1]), 1))), dtype=np.float64)
        each = np.broadcast_to(each, (max(int(at[-1]), 1),))
        return np.concatenate([[0.0], np.cumsum(each)])[at]
    rates = np.asarray(rates, dtype=np.float64)
    if np.all(rates == rates[0]):
        return at * rates[0]
    return rates[:, None] * at[None, :]


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
