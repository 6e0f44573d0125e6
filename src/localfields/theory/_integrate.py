"""The compiled part of `solve`: one program integrates all members, each with steps of its own.

It is run up to four times: to the time of rest, through the records, and between two records to an event.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix

from ..networks.base import Params
from ..tasks import TRACES

MOST_STEPS = 200_000  # of the integrator, a member and pass
STIFF_STEPS = 20_000  # explicit steps that stability alone would force, beyond which an implicit solver is faster
LARGEST_STIFF = 400  # parameters, for the dense Newton steps of that solver
CHUNK = 128  # members integrated together: beyond, a step no longer fits a core's cache


@dataclasses.dataclass(frozen=True)
class Followed:
    """An ensemble ready to be followed, a chunk of members at a time."""

    flow: Any
    swept: bool  # whether the flow's leaves have an axis of members
    stiff: bool
    params: Params
    tolerance: float

    @property
    def plan(self) -> Plan:
        """What shapes the compiled program."""
        return Plan(self.swept, self.stiff)

    def __call__(
        self,
        times: np.ndarray,
        params: Params | None = None,
        begin: np.ndarray | None = None,
        localized: float = math.inf,
        rest: float = -1.0,
    ) -> Found:
        """Follow all members through the times, or until one localizes or rests."""
        params = self.params if params is None else params
        count = len(params["weights"])
        begin = np.zeros(count) if begin is None else begin
        times = np.broadcast_to(times, (count, np.shape(times)[-1]))
        numbers = Numbers(*(jnp.asarray(float(x)) for x in (localized, rest, self.tolerance)))
        size = math.ceil(count / math.ceil(count / CHUNK))
        parts = []
        for start in range(0, count, size):
            # The last chunk is filled up with copies: one size, one program.
            rows = np.minimum(np.arange(start, start + size), count - 1)
            take = functools.partial(jax.tree.map, lambda leaf, rows=rows: leaf[rows])
            flow = take(self.flow) if self.plan.swept else self.flow
            parts.append(_follow(self.plan, flow, take(params), begin[rows], times[rows], numbers))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)

    def since(self, found: Found, times: np.ndarray, localized: float = math.inf, rest: float = -1.0) -> np.ndarray:
        """Flow time from which on a member is localized, or at rest, until the end of the records; nan for never.

        The records tell between which two; from the earlier one the flow is followed once more, to the event.
        """
        times = np.broadcast_to(times, found.series["loss"].shape)
        numbers = Numbers(*(jnp.asarray(float(x)) for x in (localized, rest, self.tolerance)))
        params = {name: values for name, values in found.series.items() if name != "loss"}
        seen = np.asarray(_seen(self.plan, self.flow, params, numbers))
        # The last record that does not show it; −1 where all do.
        before = np.where(seen.all(axis=1), -1, seen.shape[1] - 1 - (~seen[:, ::-1]).argmax(axis=1))
        rows, left = np.arange(len(seen)), np.maximum(before, 0)
        right = np.minimum(left + 1, seen.shape[1] - 1)
        begin, end = times[rows, left], times[rows, right]
        fine = begin[:, None] + (end - begin)[:, None] * np.linspace(0, 1, times.shape[1])[None, :]
        again = self(fine, {name: values[rows, left] for name, values in params.items()}, begin, localized, rest)
        when = np.fmin(again.onset, again.rest)  # one of the two is not asked for
        when = np.where(np.isfinite(when), when, end)
        return np.where(seen[:, -1], np.where(before < 0, times[:, 0], when), np.nan)


class Plan(eqx.Module):
    """What shapes the compiled program."""

    swept: bool = eqx.field(static=True)
    stiff: bool = eqx.field(static=True)


class Numbers(eqx.Module):
    """What does not: what ends a member early, and how exact a step is."""

    localized: jax.Array  # an IPR; infinite: never
    rest: jax.Array  # a relative speed; negative: never
    tolerance: jax.Array


class Found(eqx.Module):
    """One integration: parameters and loss at the times asked for, infinite after an event."""

    series: dict[str, jax.Array]
    onset: jax.Array  # flow time at which the event ended it, nan if it did not
    rest: jax.Array
    good: jax.Array


@functools.partial(jax.jit, static_argnames="plan")
def _follow(plan: Plan, flow: Any, params: Params, begin: jax.Array, times: jax.Array, numbers: Numbers) -> Found:
    """Integrate every member from its time `begin` (member,) through `times` (member, time), or to an event."""
    TRACES["solve"] += 1
    over = jax.vmap(functools.partial(_one, plan, numbers), in_axes=(0 if plan.swept else None, 0, 0, 0))
    return over(flow, params, begin, times)


def _one(plan: Plan, numbers: Numbers, flow: Any, params: Params, begin: jax.Array, times: jax.Array) -> Found:
    def localizes(t: Any, y: Params, args: Any, **_: Any) -> jax.Array:
        return jnp.max(_ipr(y["weights"])) - numbers.localized

    def rests(t: Any, y: Params, args: Any, **_: Any) -> jax.Array:
        return _speed(args, y) <= numbers.rest

    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, flow: jax.tree.map(jnp.negative, flow(y)[1])),
        diffrax.Kvaerno5() if plan.stiff else diffrax.Tsit5(),
        t0=begin,
        t1=jnp.maximum(times[-1], begin * (1 + 1e-12) + 1e-300),  # a span of nothing is none
        dt0=None,
        y0=params,
        args=flow,  # through here, not closed over: a closed-over matrix makes compilation slow
        saveat=diffrax.SaveAt(subs=[diffrax.SubSaveAt(ts=times), diffrax.SubSaveAt(t1=True)]),
        stepsize_controller=diffrax.PIDController(rtol=numbers.tolerance, atol=numbers.tolerance / 100),
        event=diffrax.Event({"onset": localizes, "rest": rests}, optimistix.Newton(1e-8, 1e-8)),
        max_steps=MOST_STEPS,
        adjoint=diffrax.ForwardMode(),
        throw=False,  # with a check of its own the program would never be taken from the compilation cache
    )
    good = (found.result == diffrax.RESULTS.successful) | (found.result == diffrax.RESULTS.event_occurred)
    last = found.ts[1][0]
    fields = found.ys[0]
    return Found(
        series={**fields, "loss": jax.vmap(lambda y: flow(y)[0])(fields)},
        onset=jnp.where(found.event_mask["onset"], last, jnp.nan),
        rest=jnp.where(found.event_mask["rest"], last, jnp.nan),
        good=good & jnp.all(jnp.isfinite(found.ys[1]["weights"])),
    )


@functools.partial(jax.jit, static_argnames="plan")
def _seen(plan: Plan, flow: Any, series: Params, numbers: Numbers) -> jax.Array:
    """Whether a record shows an event, (member, time)."""

    def one(flow: Any, params: Params) -> jax.Array:
        return (jnp.max(_ipr(params["weights"])) > numbers.localized) | (_speed(flow, params) <= numbers.rest)

    over_time = jax.vmap(one, in_axes=(None, 0))
    return jax.vmap(over_time, in_axes=(0 if plan.swept else None, 0))(flow, series)


def _ipr(weights: jax.Array) -> jax.Array:
    square = weights**2
    return jnp.sum(square**2, axis=-1) / jnp.maximum(jnp.sum(square, axis=-1) ** 2, jnp.finfo(square.dtype).tiny)


def _speed(flow: Any, params: Params) -> jax.Array:
    """How fast the parameters move, relative to their length."""
    gradient = flow(params)[1]
    length, speed = (sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)) for tree in (params, gradient))
    return jnp.sqrt(speed / jnp.maximum(length, 1e-300))


def is_stiff(flow: Any, swept: bool, params: Params, end: float) -> bool:
    """Whether stability alone would force an explicit solver to more steps than an implicit one costs."""
    if sum(leaf[0].size for leaf in jax.tree.leaves(params)) > LARGEST_STIFF:
        return False
    first = jax.tree.map(lambda leaf: leaf[0], params)
    rate = _largest_rate(jax.tree.map(lambda leaf: leaf[0], flow) if swept else flow, first)
    return float(rate) * end / 3 > STIFF_STEPS


@jax.jit
def _largest_rate(flow: Any, params: Params) -> jax.Array:
    # Near zero the gate turns quickly, but not for long: fields of unit length say what the flow is like later on.
    length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)))
    here = jax.tree.map(lambda leaf: leaf / jnp.maximum(length, 1e-300), params)

    def stretch(_: Any, carry: Any) -> Any:
        direction, _ = carry
        turned = jax.jvp(lambda y: flow(y)[1], (here,), (direction,))[1]
        size = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(turned)))
        return jax.tree.map(lambda leaf: leaf / jnp.maximum(size, 1e-300), turned), size

    return jax.lax.fori_loop(0, 30, stretch, (here, jnp.zeros(())))[1]
