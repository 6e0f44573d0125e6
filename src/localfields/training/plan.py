"""From the arguments of `train` to a program and its numbers; what does not fit together is refused here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._prng import STREAM, make_key, member_keys
from .._spec import Number, swept_leaves
from .._types import working_dtype
from ..errors import InputError, Said, refuse, shorten, unknown
from ..networks import Network
from ..tasks import Discrimination, count_members, for_members
from . import fused
from .engine import Program, Setting, View
from .estimators import ESTIMATORS, check_symmetry, class_counts, exact_flow, in_order, orbit_extra
from .record import Record
from .stream import Stream, make_stream

OPTIMIZERS = ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "nadam", "adabelief")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a run is made of."""

    program: Program
    view: View
    setting: Setting
    rate: Any  # learning rates as they were given: a number, or one a member; 1 for a schedule
    count: int  # of members
    stream: Stream | None = None  # of rows that are brought from outside


def make_plan(
    task: Discrimination,
    network: Network,
    learning_rate: Any,
    batch: int,
    members: int | None,
    seed: int | tuple[int, ...],
    record: Record,
    estimator: str,
    optimizer: str | Callable[..., Any],
) -> Plan:
    """Check that everything fits together, and gather it."""
    for name, value, kind in (
        ("task", task, Discrimination),
        ("network", network, Network),
        ("record", record, Record),
    ):
        if not isinstance(value, kind):
            refuse(f"`{name}`", value, f"a {kind.__name__}", f"See `lf.{kind.__name__}`.")
    network.check_outputs(task.outputs)
    schedule = _schedule(learning_rate) if callable(learning_rate) else None
    rate: Any = 1.0 if schedule else Number(low=0).check("learning_rate", learning_rate)
    count = count_members(
        task, network, seed, members, {"the learning rate": len(rate) if np.ndim(rate) else None}
    )
    if estimator not in tuple(ESTIMATORS):  # a list is a mistake, too, and not hashable
        unknown("The estimator", estimator, ESTIMATORS)
    if estimator == "orbit":
        check_symmetry(task)
    counts = class_counts(task, batch)
    stream = make_stream(task, counts, seed, count, estimator, record.every)
    estimate, extra, extra_swept = _estimate(task, network, estimator, count)
    program = Program(
        estimate=estimate if stream is None else in_order,
        counts=counts,
        shared=estimator in ("shared", "epochs"),
        one_by_one=jax.default_backend() == "cpu",
        optimizer=_optimizer(optimizer),
        schedule=schedule,
        in_order=stream is not None,
    )
    view = View(
        record.quantities,
        class_counts(task, record.evaluate, "evaluate"),
        exact=estimator == "exact",
    )
    whole = (task, network, extra)
    mask = (swept_leaves(task), swept_leaves(network), jax.tree.map(lambda _: extra_swept, extra))
    swept, fixed = eqx.partition(jax.tree.map(_working, whole), mask)
    rates = jnp.broadcast_to(jnp.asarray(rate, working_dtype()), (count,))
    shared_key = jax.random.fold_in(make_key(seed[0] if isinstance(seed, tuple) else seed), 2**31)
    setting = Setting(swept, fixed, rates, member_keys(seed, count, STREAM), shared_key)
    return Plan(program, view, setting, rate, count, stream)


def _working(leaf: Any) -> jax.Array:
    leaf = np.asarray(leaf)
    return jnp.asarray(
        leaf, working_dtype() if np.issubdtype(leaf.dtype, np.floating) else leaf.dtype
    )


def _schedule(schedule: Callable[..., Any]) -> Callable[..., Any]:
    example = "for example `optax.cosine_decay_schedule`."
    try:
        found = jax.eval_shape(schedule, jnp.zeros((), jnp.int32))
    except (TypeError, ValueError) as error:
        # JAX names the file of the function, which tells the user nothing.
        reason = "it returns no number" if "traced for jit" in str(error) else shorten(error)
        raise InputError(
            f"The function given as `learning_rate` fails: {reason}. "
            f"Give a function of the step that returns one number, {example}"
        ) from None
    if not isinstance(found, jax.ShapeDtypeStruct) or found.shape != ():
        raise InputError(
            f"`learning_rate` must return one number for a step, got {shorten(found)}; {example}"
        )
    return schedule


def _estimate(
    task: Discrimination, network: Network, estimator: str, members: int
) -> tuple[Callable[..., Any], Any, bool]:
    """The estimator, what it knows beforehand, and whether that differs between members."""
    prepare = {"exact": exact_flow, "orbit": orbit_extra}.get(estimator)
    extra, swept = (None, False) if prepare is None else for_members(prepare, task, network)
    if estimator == "independent" and working_dtype() == jnp.float32 and fused.available():
        if fused.applies(task, network, members):
            return fused.sampled, extra, swept
    return ESTIMATORS[estimator], extra, swept


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
            refuse(
                "`optimizer`",
                made,
                "a function of `learning_rate` that returns an optax transformation",
                advice,
            )
        return optimizer
    if optimizer not in OPTIMIZERS:
        unknown("The optimizer", optimizer, OPTIMIZERS)
    return getattr(optax, optimizer)


def flow_times(at: np.ndarray, rate: Any, schedule: Any) -> np.ndarray:
    """Flow time of each step number: steps × learning rate, summed for a schedule."""
    if schedule is not None:
        each = np.asarray(jax.vmap(schedule)(jnp.arange(max(int(at[-1]), 1))), dtype=np.float64)
        each = np.broadcast_to(each, (max(int(at[-1]), 1),))
        return np.concatenate([[0.0], np.cumsum(each)])[at]
    return at * rate if np.ndim(rate) == 0 else rate[:, None] * at[None, :]
