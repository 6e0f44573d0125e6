"""The compiled part of training: start, advance, observe.

One program advances all members. What is swept (numbers of stimuli, task and network, learning rates) and what is not
arrive as two halves of one tree, so that sweeping a number neither recompiles nor makes a copy of what is common.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..networks import Network
from ..networks.base import Params
from ..tasks import TRACES, Discrimination
from .estimators import draw_classes, mean_loss, preactivations
from .record import PARAMETERS, REDUCERS

DIVERGED = 1e6  # a weight of this size ends a member: fields here are of order one

RUNNING = -1  # in place of the step at which a member stopped


@dataclasses.dataclass(frozen=True)
class Program:
    """What shapes the compiled program; everything else is a traced number."""

    estimate: Callable[..., Any]
    counts: tuple[int, ...]
    shared: bool
    one_by_one: bool
    optimizer: Callable[..., Any] | None
    schedule: Callable[[Any], Any] | None
    in_order: bool = False  # rows are brought from outside: an estimate is told the step, not a key

    def transform(self) -> Any:
        """The optimizer at unit learning rate; the engine multiplies by the real one, which may be traced."""
        return None if self.optimizer is None else self.optimizer(learning_rate=1.0)


@dataclasses.dataclass(frozen=True)
class View:
    """What a record shows, apart from the program: who looks at something else need not compile the training again."""

    quantities: tuple[str, ...]
    evaluate: tuple[int, ...]
    exact: bool  # whether the loss is known without a held-out stream


class Setting(eqx.Module):
    """The numbers of an ensemble: swept leaves have an axis of members, fixed ones do not.

    Both halves have the form (task, network, extra), where `extra` is what an estimator knows beforehand.
    """

    swept: Any
    fixed: Any
    learning_rate: jax.Array  # (members,)
    keys: jax.Array  # (members,), of the training stream
    shared_key: jax.Array  # of the stream all members see, and of the held-out one


class State(eqx.Module):
    """Where an ensemble is. Every leaf but `step` has an axis of members."""

    params: Params
    memory: Any  # of the optimizer
    bad: jax.Array  # step at which a member stopped, `RUNNING` while it runs
    step: jax.Array


def start_state(program: Program, params: Params) -> State:
    """The state before the first step."""
    transform = program.transform()
    memory = None if transform is None else jax.vmap(transform.init)(params)
    members = params["weights"].shape[0]
    return State(params, memory, jnp.full((members,), RUNNING, jnp.int32), jnp.zeros((), jnp.int32))


def _step(program: Program, whole: Any, rate: Any, key: Any, state: State) -> State:
    """One step of one member. A member that leaves the finite world stays where it last was."""
    task, network, extra = whole
    if program.schedule is not None:
        rate = rate * program.schedule(state.step)
    draw = state.step if program.in_order else jax.random.fold_in(key, state.step)
    _, gradient = program.estimate(task, network, extra, state.params, draw, program.counts)
    transform = program.transform()
    if transform is None:
        change, memory = jax.tree.map(lambda g: -g, gradient), None
    else:
        change, memory = transform.update(gradient, state.memory, state.params)
    params = jax.tree.map(lambda p, c: p + (rate * c).astype(p.dtype), state.params, change)
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(params)]))
    running = state.bad == RUNNING
    alive = running & (largest < DIVERGED)  # false for nan, too
    keep = functools.partial(jax.tree.map, lambda new, old: jnp.where(alive, new, old))
    stopped = jnp.where(running & ~alive, state.step + 1, state.bad)
    # A member that met nan is told from one that grew by the sign: −2 for the first step, −3 for the second, …
    stopped = jnp.where(running & jnp.isnan(largest), -(state.step + 2), stopped)
    return State(keep(params, state.params), keep(memory, state.memory), stopped, state.step + 1)


@functools.partial(jax.jit, static_argnames="program")
def advance(program: Program, setting: Setting, state: State, steps: Any) -> State:
    """Advance every member by `steps` (a traced number: any length, one program)."""
    TRACES["advance"] += 1

    if program.shared:
        # All members see one stream: the loop over steps is outside, so that a draw is made once for all of them.
        def one(
            swept: Any, rate: Any, params: Params, memory: Any, bad: Any, step: Any
        ) -> tuple[Any, ...]:
            whole = eqx.combine(swept, setting.fixed)
            end = _step(program, whole, rate, setting.shared_key, State(params, memory, bad, step))
            return end.params, end.memory, end.bad

        def together(_: Any, state: State) -> State:
            over = jax.vmap(one, in_axes=(0, 0, 0, 0, 0, None))
            parts = (
                setting.swept,
                setting.learning_rate,
                state.params,
                state.memory,
                state.bad,
                state.step,
            )
            params, memory, bad = over(*parts)
            return State(params, memory, bad, state.step + 1)

        return jax.lax.fori_loop(0, steps, together, state)

    def alone(
        swept: Any, rate: Any, key: Any, params: Params, memory: Any, bad: Any
    ) -> tuple[Any, ...]:
        whole, begin = eqx.combine(swept, setting.fixed), State(params, memory, bad, state.step)
        end = jax.lax.fori_loop(0, steps, lambda _, s: _step(program, whole, rate, key, s), begin)
        return end.params, end.memory, end.bad

    parts = (
        setting.swept,
        setting.learning_rate,
        setting.keys,
        state.params,
        state.memory,
        state.bad,
    )
    if program.one_by_one:
        # On a CPU a member at a time keeps its draws in the cache, and its products are those of a single run.
        params, memory, bad = jax.lax.map(lambda part: alone(*part), parts)
    else:
        params, memory, bad = jax.vmap(alone)(*parts)
    return State(params, memory, bad, state.step + jnp.asarray(steps, jnp.int32))


@functools.partial(jax.jit, static_argnames="view")
def observe(view: View, setting: Setting, params: Params, step: jax.Array) -> dict[str, jax.Array]:
    """One record of every member."""
    TRACES["observe"] += 1
    held_out = jax.random.fold_in(jax.random.fold_in(setting.shared_key, 2**31 - 1), step)

    def one(swept: Any, params: Params) -> dict[str, jax.Array]:
        task, network, extra = eqx.combine(swept, setting.fixed)
        found = {
            name: params[name] for name in PARAMETERS if name in view.quantities and name in params
        }
        found |= {
            name: REDUCERS[name](params, task.shape) for name in REDUCERS if name in view.quantities
        }
        if "loss" in view.quantities and view.exact:
            found["loss"] = extra(params)[0]
        if "accuracy" in view.quantities or ("loss" in view.quantities and not view.exact):
            draws = draw_classes(task, held_out, view.evaluate)
            fields = [preactivations(task, network, params, x) for x in draws]
            if "loss" in view.quantities and not view.exact:
                found["loss"] = mean_loss(task, network, params, fields)
            if "accuracy" in view.quantities:
                found["accuracy"] = _accuracy(task, network, params, fields)
        return found

    return jax.vmap(one)(setting.swept, params)


def _accuracy(
    task: Discrimination, network: Network, params: Params, fields: list[jax.Array]
) -> jax.Array:
    total = jnp.zeros((), fields[0].dtype)
    for c, prior in enumerate(task.priors):
        chosen = jax.vmap(lambda h: task.choose(network.readout(params, h, task.outputs)))(
            fields[c]
        )
        total = total + prior * jnp.mean(chosen == c, dtype=total.dtype)
    return total
