"""What training computes: the state of an ensemble, one step of it, and one record.

A weight is updated in `update_member`, along a gradient from `estimators.py`. One compiled program
advances all members. Numbers that are swept (of stimuli, task, network, and the learning rate) and
numbers that are not arrive as two halves of one tree, so that sweeping a number neither recompiles
nor copies what the members share.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._ensemble import TRACES
from ..errors import InputError, show, unknown_name
from ..networks import Network
from ..networks.base import Params
from ..tasks import Discrimination
from ..trajectory import inverse_participation_ratio
from .estimators import draw_classes, mean_loss, preactivations

DIVERGED_WEIGHT = 1e6  # a weight of this size ends a member: fields are of order one here

# How a member is doing. One that failed keeps the parameters it had before it did.
RUNNING, DIVERGED, NON_FINITE = 0, 1, 2
STATUS_NAMES = ("ok", "diverged", "non-finite")


# -- what is recorded ------------------------------------------------------------------------------


def _peak(weights: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    site = jnp.argmax(jnp.abs(weights), axis=1)
    return site if len(shape) == 1 else jnp.stack(jnp.unravel_index(site, shape), axis=-1)


# Functions of one member's parameters, recorded in place of or beside the parameters themselves.
REDUCERS: dict[str, Callable[[Params, tuple[int, ...]], jax.Array]] = {
    "ipr": lambda params, shape: inverse_participation_ratio(params["weights"], axes=1),
    "norm": lambda params, shape: jnp.sqrt(jnp.sum(params["weights"] ** 2, axis=1)),
    "peak": lambda params, shape: _peak(params["weights"], shape),
}
PARAMETERS = ("weights", "biases", "readout", "readout_bias")
QUANTITIES = (*PARAMETERS, "loss", "accuracy", *REDUCERS)


@dataclasses.dataclass(frozen=True)
class Record:
    """How often to record, and what.

    Args:
        every: Steps between records; the start and the end are always recorded.
        quantities: Parameters (`weights`, `biases`, `readout`, `readout_bias`), reductions of them
            (`ipr`, `norm`, `peak`), and `loss` and `accuracy` on a held-out stream. Parameters that
            a network does not have are left out.
        evaluate: Held-out samples per record, shared by the members.

    Example:
        >>> Record(every=100, quantities=("ipr", "loss")).every
        100
    """

    every: int = 10
    quantities: tuple[str, ...] = (*PARAMETERS, "loss", "accuracy")
    evaluate: int = 2000

    def __post_init__(self):
        """Check every field."""
        for name, unit in (("every", "steps"), ("evaluate", "samples")):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(
                    f"`{name}` must be a whole number of {unit}, at least 1, got {show(value)}."
                )
        if not isinstance(self.quantities, (tuple, list)):
            raise InputError(
                "`quantities` must be a tuple of names, such as ('weights', 'loss'), got "
                f"{show(self.quantities)}."
            )
        for name in self.quantities:
            if name not in QUANTITIES:
                raise unknown_name("recorded quantity", name, QUANTITIES)
        object.__setattr__(self, "quantities", tuple(self.quantities))

    def at(self, steps: int) -> list[int]:
        """Step numbers of the records of a run."""
        return [*range(0, steps, self.every), steps]

    def needs_samples(self, estimator: str) -> bool:
        """Whether held-out samples are drawn: an exact loss needs none."""
        return "accuracy" in self.quantities or ("loss" in self.quantities and estimator != "exact")

    def nbytes(self, steps: int, record: dict[str, Any]) -> int:
        """Memory for the records of a run, given one of all members (arrays or their shapes)."""
        # The length of `at(steps)`, which may itself be too long to make.
        count = len(range(0, steps, self.every)) + 1
        return count * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(record))


# -- program, numbers, state -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Program:
    """What shapes the compiled program; everything else is a traced number."""

    estimate: Callable[..., Any]
    counts: tuple[int, ...]  # samples of each class in a batch
    shared: bool  # whether all members see the same batches
    one_by_one: bool  # whether members run one after another
    optimizer: Callable[..., Any] | None  # None for plain gradient descent
    schedule: Callable[[Any], Any] | None
    in_order: bool = False  # rows come from outside: estimates are given the step, not a key

    def transform(self) -> Any:
        """The optimizer at unit learning rate; `update_member` multiplies by the traced one."""
        return None if self.optimizer is None else self.optimizer(learning_rate=1.0)


@dataclasses.dataclass(frozen=True)
class View:
    """What a record shows. Apart from the program, so that another view compiles no training."""

    quantities: tuple[str, ...]
    counts: tuple[int, ...]  # held-out samples of each class
    exact: bool  # whether the loss is known without held-out samples


class Setting(eqx.Module):
    """The numbers of an ensemble: swept leaves have an axis of members, fixed ones do not.

    Both halves have the form (task, network, extra), where `extra` is what the estimator was given
    beforehand.
    """

    swept: Any
    fixed: Any
    learning_rate: jax.Array  # (members,)
    keys: jax.Array  # (members,), of the training stream
    shared_key: jax.Array  # of the stream all members see, and of the held-out one


class MemberState(eqx.Module):
    """Everything that training changes; every leaf has an axis of members."""

    params: Params
    optimizer_state: Any
    status: jax.Array  # RUNNING, DIVERGED or NON_FINITE
    failed_at: jax.Array  # the step at which it failed; -1 while it runs


class State(eqx.Module):
    """Where an ensemble is."""

    members: MemberState
    step: jax.Array


def start_state(program: Program, params: Params) -> State:
    """The state before the first step."""
    transform = program.transform()
    optimizer_state = None if transform is None else jax.vmap(transform.init)(params)
    count = params["weights"].shape[0]
    status = jnp.full((count,), RUNNING, jnp.int32)
    failed_at = jnp.full((count,), -1, jnp.int32)
    return State(MemberState(params, optimizer_state, status, failed_at), jnp.zeros((), jnp.int32))


# -- compiled functions ----------------------------------------------------------------------------


def update_member(
    program: Program, model: Any, rate: Any, key: Any, step: Any, member: MemberState
) -> MemberState:
    """One step of gradient descent of one member: here weights change, and nowhere else."""
    task, network, extra = model
    if program.schedule is not None:
        rate = rate * program.schedule(step)
    # The samples of a step depend on the key and the step alone, so that a run that resumes, or is
    # divided into other chunks, has the same ones.
    source = step if program.in_order else jax.random.fold_in(key, step)
    _, gradient = program.estimate(task, network, extra, member.params, source, program.counts)
    transform = program.transform()
    if transform is None:
        change, optimizer_state = jax.tree.map(lambda g: -g, gradient), None
    else:
        change, optimizer_state = transform.update(gradient, member.optimizer_state, member.params)
    # What optax's optimizers return is proportional to the learning rate. Multiplied here, it is a
    # traced number, and rates can be swept without compiling again.
    params = jax.tree.map(lambda p, c: p + (rate * c).astype(p.dtype), member.params, change)

    # A member whose weights explode, or are no numbers any more, stays where it last was: its
    # arrays remain finite, and the other members never notice.
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(params)]))
    running = member.status == RUNNING
    alive = running & (largest < DIVERGED_WEIGHT)  # false for nan, too
    failed = running & ~alive
    reason = jnp.where(jnp.isnan(largest), NON_FINITE, DIVERGED)
    keep = functools.partial(jax.tree.map, lambda new, old: jnp.where(alive, new, old))
    return MemberState(
        params=keep(params, member.params),
        optimizer_state=keep(optimizer_state, member.optimizer_state),
        status=jnp.where(failed, reason, member.status).astype(jnp.int32),
        failed_at=jnp.where(failed, step + 1, member.failed_at),
    )


@functools.partial(jax.jit, static_argnames="program")
def advance(program: Program, setting: Setting, state: State, steps: Any) -> State:
    """Advance every member by `steps`, a traced number: one program for any length."""
    TRACES["advance"] += 1
    first, end = state.step, state.step + jnp.asarray(steps, jnp.int32)

    def update_all(step: Any, members: MemberState) -> MemberState:
        def update(swept: Any, rate: Any, member: MemberState) -> MemberState:
            model = eqx.combine(swept, setting.fixed)
            return update_member(program, model, rate, setting.shared_key, step, member)

        return jax.vmap(update)(setting.swept, setting.learning_rate, members)

    def advance_member(swept: Any, rate: Any, key: Any, member: MemberState) -> MemberState:
        model = eqx.combine(swept, setting.fixed)

        def update(step: Any, member: MemberState) -> MemberState:
            return update_member(program, model, rate, key, step, member)

        return jax.lax.fori_loop(first, end, update, member)

    parts = (setting.swept, setting.learning_rate, setting.keys, state.members)
    if program.shared:
        # The loop over steps is outside, so that each batch is drawn once for all members.
        members = jax.lax.fori_loop(first, end, update_all, state.members)
    elif program.one_by_one:
        # On a CPU a member's batch then stays in the cache, and its products are those of a run
        # with that member alone.
        members = jax.lax.map(lambda part: advance_member(*part), parts)
    else:
        members = jax.vmap(advance_member)(*parts)
    return State(members, end)


@functools.partial(jax.jit, static_argnames="view")
def observe(view: View, setting: Setting, params: Params, step: jax.Array) -> dict[str, jax.Array]:
    """One record of every member."""
    TRACES["observe"] += 1
    # A number that no step has, so that held-out samples are never those of training. Every record
    # has samples of its own: its error then averages out over a trajectory.
    held_out = jax.random.fold_in(jax.random.fold_in(setting.shared_key, 2**31 - 1), step)

    def observe_member(swept: Any, params: Params) -> dict[str, jax.Array]:
        task, network, extra = eqx.combine(swept, setting.fixed)
        record = {
            name: params[name] for name in PARAMETERS if name in view.quantities and name in params
        }
        record |= {
            name: REDUCERS[name](params, task.shape) for name in REDUCERS if name in view.quantities
        }
        if "loss" in view.quantities and view.exact:
            record["loss"] = extra(params)[0]
        # Held-out samples are drawn only where a quantity needs them.
        if "accuracy" in view.quantities or ("loss" in view.quantities and not view.exact):
            samples = draw_classes(task, held_out, view.counts)
            fields = [preactivations(task, network, params, x) for x in samples]
            if "loss" in view.quantities and not view.exact:
                record["loss"] = mean_loss(task, network, params, fields)
            if "accuracy" in view.quantities:
                record["accuracy"] = _accuracy(task, network, params, fields)
        return record

    return jax.vmap(observe_member)(setting.swept, params)


def _accuracy(
    task: Discrimination, network: Network, params: Params, fields: list[jax.Array]
) -> jax.Array:
    def choose(h: jax.Array) -> jax.Array:
        return task.choose(network.readout(params, h, task.outputs))

    targets = task.targets().tolist()
    total = jnp.zeros((), fields[0].dtype)
    for c, prior in enumerate(task.priors):
        right = targets.index(targets[c])  # of classes that share a label, the first is chosen
        total = total + prior * jnp.mean(jax.vmap(choose)(fields[c]) == right, dtype=total.dtype)
    return total
