"""The compiled part of `solve`: one program integrates all members, each with steps of its own.

It is run several times: through the records, in stages where their end is not known, and between two records to find
when a field became localized or came to rest.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import math
import os
from collections.abc import Mapping
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..networks.base import Params
from ..tasks import TRACES

MOST_STEPS = 200_000  # of the integrator, a member and pass
STIFF_STEPS = 20_000  # explicit steps that stability alone would force, beyond which an implicit solver is faster
LARGEST_STIFF = 400  # parameters, for the dense Newton steps of that solver
MOST_LOOKS = 100  # for the time of an event
CLOSE = 1e-6  # relative error of that time
CHUNK = 128  # members integrated together: beyond, a step no longer fits a core's cache
FIRST_STAGE, STAGE = 20.0, 25  # flow time of the first stage to rest, and records of each


@dataclasses.dataclass(frozen=True)
class Followed:
    """An ensemble ready to be followed, a chunk of members at a time."""

    flow: Any
    swept: bool  # whether the flow's leaves have an axis of members
    stiff: bool
    params: Params
    tolerance: float
    num: int  # records of one integration, the same in all so that they share a program

    @property
    def plan(self) -> Plan:
        """What shapes the compiled program."""
        return Plan(self.swept, self.stiff)

    def __call__(
        self, times: np.ndarray, params: Mapping[str, Any] | None = None, begin: Any = 0.0, only: Any = None
    ) -> Found:
        """Follow members through the times, (time,) or (member, time), from where they are at `begin`.

        With `only`, a mask, the others stay where they are.
        """
        params = {name: np.asarray(values) for name, values in (self.params if params is None else params).items()}
        count = len(params["weights"])
        begin = np.broadcast_to(np.asarray(begin, np.float64), (count,))
        times = np.broadcast_to(times, (count, np.shape(times)[-1]))
        size = math.ceil(count / math.ceil(count / CHUNK))
        chosen = np.arange(count) if only is None else np.flatnonzero(only)

        def chunk(start: int) -> Found:
            # The last chunk is filled up with copies: one size, one program.
            rows = chosen[np.minimum(np.arange(start, start + size), len(chosen) - 1)]
            take = functools.partial(jax.tree.map, lambda leaf: leaf[rows])
            with jax.enable_x64(True):  # a setting of the thread
                flow = take(self.flow) if self.swept else self.flow
                found = _follow(self.plan, flow, take(params), begin[rows], times[rows], jnp.asarray(self.tolerance))
                return jax.tree.map(np.asarray, found)

        still = {name: np.repeat(values[:, None], times.shape[1], axis=1) for name, values in params.items()}
        result = Found(still, np.ones(count, bool))
        if not len(chosen):
            return result
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            # The first by itself, to compile; such programs leave all cores but one idle, so the rest side by side.
            parts = [chunk(0), *pool.map(chunk, range(size, len(chosen), size))]
        found = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(chosen)], *parts)
        for whole, part in zip(jax.tree.leaves(result), jax.tree.leaves(found), strict=True):
            whole[chosen] = part
        return result

    def to_rest(self, until: float, rest: float) -> tuple[np.ndarray, Found]:
        """Times and records up to the first at which all members rest, or `until`.

        In stages, each half as long as all before it, so that records grow sparser as the flow grows slower. Looking
        at the records costs less than an event would, which is looked for at every step of every member. A member
        that rests at the end of a stage stays there.
        """
        times, begin, moving = [np.zeros(1)], 0.0, np.ones(len(self.params["weights"]), bool)
        parts = [Found({name: np.asarray(first)[:, None] for name, first in self.params.items()}, np.array(True))]
        while True:
            stage = np.linspace(begin, min(until, max(FIRST_STAGE, 1.5 * begin)), STAGE + 1)[1:]
            here = {name: values[:, -1] for name, values in parts[-1].series.items()}
            parts.append(self(stage, here, begin, moving))
            times.append(stage)
            begin = stage[-1]
            rests = np.asarray(_seen(self.plan, self.flow, parts[-1].series, math.inf, rest, True))
            quiet: Any = rests.all(axis=0)
            moving = ~rests[:, -1] & parts[-1].good & moving
            if not moving.any() or begin >= until:
                break
        series = {name: np.concatenate([part.series[name] for part in parts], axis=1) for name in self.params}
        # Of the last stage, what comes after the first record from which on all rest is left out.
        surplus = max(0, int((~quiet[::-1]).argmax()) - 1) if quiet[-1] and not quiet.all() else 0
        keep = sum(map(len, times)) - surplus
        good = np.logical_and.reduce([part.good for part in parts[1:]])
        found = Found({name: values[:, :keep] for name, values in series.items()}, good)
        return np.concatenate(times)[:keep], found

    def losses(self, found: Found) -> np.ndarray:
        """The loss at every record, (member, time)."""
        return np.asarray(_losses(self.plan, self.flow, found.series))

    def since(self, found: Found, times: np.ndarray, localized: float = math.inf, rest: float = -1.0) -> np.ndarray:
        """Flow time from which on a member is localized, or at rest, until the end of the records; nan for never.

        The records tell between which two; between those the flow is followed again, and so on until they are close.
        """
        count, num = found.series["weights"].shape[:2]
        rows, within = np.arange(count), np.linspace(0, 1, self.num + 2)[None, 1:-1]
        left = {name: np.asarray(values) for name, values in self.params.items()}
        begin, inner = np.zeros(count), np.broadcast_to(times, (count, num))
        end, now = inner[:, -1], found
        ever = always = np.zeros(count, bool)
        for look in range(MOST_LOOKS):
            at = np.concatenate([begin[:, None], inner, end[:, None]], axis=1)
            series = {name: np.concatenate([left[name][:, None], now.series[name]], axis=1) for name in left}
            seen = np.asarray(_seen(self.plan, self.flow, series, localized, rest, localized == math.inf))
            if look == 0:
                ever, always = seen[:, -1], seen.all(axis=1)
            length = seen.shape[1] - 1
            last = np.where(seen.all(axis=1), 0, length - (~seen[:, ::-1]).argmax(axis=1))  # that does not show it
            begin, end = at[rows, last], at[rows, last + 1]
            open_ = ever & ~always & (end - begin > CLOSE * end)
            if not open_.any():
                break
            left = {name: values[rows, np.where(ever, last, 0)] for name, values in series.items()}
            inner = begin[:, None] + (end - begin)[:, None] * within
            now = self(inner, left, begin, open_)
        return np.where(ever, np.where(always, 0.0, end), np.nan)


class Plan(eqx.Module):
    """What shapes the compiled program."""

    swept: bool = eqx.field(static=True)
    stiff: bool = eqx.field(static=True)


class Found(eqx.Module):
    """One integration: parameters at the times asked for, (member, time, …), and whether a member's went well."""

    series: dict[str, Any]
    good: Any


@functools.partial(jax.jit, static_argnames="plan")
def _follow(plan: Plan, flow: Any, params: Params, begin: Any, times: Any, tolerance: jax.Array) -> Found:
    """Integrate every member from its time `begin` (member,) through `times` (member, time)."""
    TRACES["solve"] += 1
    over = jax.vmap(functools.partial(_one, plan, tolerance), in_axes=(0 if plan.swept else None, 0, 0, 0))
    return over(flow, params, begin, times)


def _one(plan: Plan, tolerance: Any, flow: Any, params: Params, begin: jax.Array, times: jax.Array) -> Found:
    found: Any = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, flow: jax.tree.map(jnp.negative, flow(y)[1])),
        diffrax.Kvaerno5() if plan.stiff else diffrax.Tsit5(),
        t0=begin,
        t1=jnp.maximum(times[-1], begin * (1 + 1e-12) + 1e-300),  # a span of nothing is none
        dt0=None,
        y0=params,
        args=flow,  # through here, not closed over: a closed-over matrix makes compilation slow
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance / 100),
        max_steps=MOST_STEPS,
        adjoint=diffrax.ForwardMode(),
        throw=False,  # with a check of its own the program would never be taken from the compilation cache
    )
    good = (found.result == diffrax.RESULTS.successful) & jnp.all(jnp.isfinite(found.ys["weights"]))
    return Found(found.ys, good)


@functools.partial(jax.jit, static_argnames="plan")
def _losses(plan: Plan, flow: Any, series: Params) -> jax.Array:
    over_time = jax.vmap(lambda flow, params: flow(params)[0], in_axes=(None, 0))
    return jax.vmap(over_time, in_axes=(0 if plan.swept else None, 0))(flow, series)


@functools.partial(jax.jit, static_argnames=("plan", "for_rest"))
def _seen(plan: Plan, flow: Any, series: Params, localized: Any, rest: Any, for_rest: bool) -> jax.Array:
    """Whether a record shows a localized field, or rest, (member, time)."""

    def one(flow: Any, params: Params) -> jax.Array:
        return _speed(flow, params) <= rest if for_rest else jnp.max(_ipr(params["weights"])) > localized

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
