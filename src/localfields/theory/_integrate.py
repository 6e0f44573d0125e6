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

from .._ensemble import TRACES
from ..networks.base import Params
from ..trajectory import inverse_participation_ratio

MOST_STEPS = 200_000  # of the integrator, a member and pass
STIFF_STEPS = 20_000  # explicit steps that stability alone would force, beyond which an implicit solver is faster
LARGEST_STIFF = 400  # parameters, for the dense Newton steps of that solver
MOST_LOOKS = 100  # for the time of an event
CLOSE = 1e-6  # relative error of that time
CHUNK = 32  # members integrated together: few, so that none waits long for the slowest, and a step fits the cache
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
        self,
        times: np.ndarray,
        params: Mapping[str, Any] | None = None,
        begin: Any = 0.0,
        only: Any = None,
    ) -> Found:
        """Follow members through the times, (time,) or (member, time), from where they are at `begin`.

        With `only`, a mask, the others stay where they are.
        """
        params = {
            name: np.asarray(values)
            for name, values in (self.params if params is None else params).items()
        }
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
                found = _follow(
                    self.plan,
                    flow,
                    take(params),
                    begin[rows],
                    times[rows],
                    jnp.asarray(self.tolerance),
                )
                return jax.tree.map(np.asarray, found)

        still = {
            name: np.repeat(values[:, None], times.shape[1], axis=1)
            for name, values in params.items()
        }
        result = Found(
            still, np.full(times.shape, np.nan), np.full(times.shape, np.nan), np.ones(count, bool)
        )
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
        parts = [self.start]
        while True:
            stage = np.linspace(begin, min(until, max(FIRST_STAGE, 1.5 * begin)), STAGE + 1)[1:]
            before = parts[-1]
            found = self(
                stage,
                {name: values[:, -1] for name, values in before.series.items()},
                begin,
                moving,
            )
            found.loss[~moving], found.speed[~moving] = (
                before.loss[~moving, -1:],
                before.speed[~moving, -1:],
            )
            parts.append(found)
            times.append(stage)
            begin = stage[-1]
            rests = found.speed <= rest
            quiet: Any = rests.all(axis=0)
            moving = ~rests[:, -1] & found.good & moving
            if not moving.any() or begin >= until:
                break
        # Of the last stage, what comes after the first record from which on all rest is left out.
        surplus = max(0, int((~quiet[::-1]).argmax()) - 1) if quiet[-1] and not quiet.all() else 0
        keep = sum(map(len, times)) - surplus

        def joined(*leaves: np.ndarray) -> np.ndarray:
            return np.concatenate(leaves, axis=1)[:, :keep]

        good = np.logical_and.reduce([part.good for part in parts])
        records = [dataclasses.replace(part, good=None) for part in parts]
        return np.concatenate(times)[:keep], dataclasses.replace(
            jax.tree.map(joined, *records), good=good
        )

    @functools.cached_property
    def start(self) -> Found:
        """Where the members begin, as one record."""
        loss, speed = (
            np.asarray(values)[:, None] for values in _first_look(self.plan, self.flow, self.params)
        )
        series = {name: np.asarray(first)[:, None] for name, first in self.params.items()}
        return Found(series, loss, speed, np.ones(len(loss), bool))

    def since(
        self, found: Found, times: np.ndarray, localized: float = math.inf, rest: float = -1.0
    ) -> np.ndarray:
        """Flow time from which on a member is localized, or at rest, until the end of the records; nan for never.

        The records tell between which two; between those the flow is followed again, and so on until they are close.
        """

        def shows(records: Found) -> np.ndarray:
            if localized == math.inf:
                return records.speed <= rest
            ratios = inverse_participation_ratio(
                records.series["weights"], 1
            )  # nan for a neuron of zeros
            return np.fmax.reduce(ratios, axis=2) > localized

        count, num = found.loss.shape
        rows, within = np.arange(count), np.linspace(0, 1, self.num + 2)[None, 1:-1]
        left, shown = (
            {name: values[:, 0] for name, values in self.start.series.items()},
            shows(self.start),
        )
        begin, inner = np.zeros(count), np.broadcast_to(times, (count, num))
        end, now = inner[:, -1], found
        ever = always = np.zeros(count, bool)
        for look in range(MOST_LOOKS):
            at = np.concatenate([begin[:, None], inner, end[:, None]], axis=1)
            seen = np.concatenate([shown, shows(now)], axis=1)
            if look == 0:
                ever, always = seen[:, -1], seen.all(axis=1)
            length = seen.shape[1] - 1
            last = np.where(
                seen.all(axis=1), 0, length - (~seen[:, ::-1]).argmax(axis=1)
            )  # that does not show it
            begin, end = at[rows, last], at[rows, last + 1]
            open_ = ever & ~always & (end - begin > CLOSE * end)
            if not open_.any():
                break
            moved = rows[last > 0]
            for name, values in now.series.items():
                left[name] = left[name].copy()
                left[name][moved] = values[moved, last[moved] - 1]
            shown = np.zeros((count, 1), bool)
            inner = begin[:, None] + (end - begin)[:, None] * within
            now = self(inner, left, begin, open_)
        return np.where(ever, np.where(always, 0.0, end), np.nan)


class Plan(eqx.Module):
    """What shapes the compiled program."""

    swept: bool = eqx.field(static=True)
    stiff: bool = eqx.field(static=True)


class Found(eqx.Module):
    """One integration: parameters, loss and relative speed at the times asked for, and whether it went well."""

    series: dict[str, Any]  # (member, time, …)
    loss: Any  # (member, time), as the speed
    speed: Any
    good: Any  # (member,)


@functools.partial(jax.jit, static_argnames="plan")
def _follow(
    plan: Plan, flow: Any, params: Params, begin: Any, times: Any, tolerance: jax.Array
) -> Found:
    """Integrate every member from its time `begin` (member,) through `times` (member, time)."""
    TRACES["solve"] += 1
    over = jax.vmap(
        functools.partial(_one, plan, tolerance), in_axes=(0 if plan.swept else None, 0, 0, 0)
    )
    return over(flow, params, begin, times)


def _one(
    plan: Plan, tolerance: Any, flow: Any, params: Params, begin: jax.Array, times: jax.Array
) -> Found:
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
        throw=False,  # a program with a check of its own is never taken from the compilation cache: `leave_checks_out`
    )
    good = (found.result == diffrax.RESULTS.successful) & jnp.all(jnp.isfinite(found.ys["weights"]))
    # Here, where the records still are in the cache, not afterwards for all of them.
    loss, speed = jax.lax.map(functools.partial(_look, flow), found.ys)
    return Found(found.ys, loss, speed, good)


@functools.partial(jax.jit, static_argnames="plan")
def _first_look(plan: Plan, flow: Any, params: Params) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(_look, in_axes=(0 if plan.swept else None, 0))(flow, params)


def _look(flow: Any, params: Params) -> tuple[jax.Array, jax.Array]:
    """The loss, and how fast the parameters move relative to their length."""
    loss, gradient = flow(params)
    length, speed = (
        sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)) for tree in (params, gradient)
    )
    return loss, jnp.sqrt(speed / jnp.maximum(length, 1e-300))


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
