"""The compiled part of `solve`: one program integrates all members, each with its own step sizes.

The program runs several times: through the records, in stages if their end is not known, and
between two records to find when a field became localized or came to rest.
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

MAX_STEPS = 200_000  # of the integrator, per member and call
# Stability alone forces an explicit solver to about rate · time / 3 steps. Beyond this many an
# implicit solver is faster, if its dense Newton steps are small enough.
MAX_EXPLICIT_STEPS = 20_000
MAX_STIFF_PARAMETERS = 400
MAX_BISECTIONS = 100  # for the time of an event
EVENT_TOLERANCE = 1e-6  # relative error of that time
# Members integrated together: few, so that none waits long for the slowest and a step fits the
# cache.
CHUNK_MEMBERS = 32
FIRST_STAGE = 20.0  # flow time of the first stage on the way to rest
STAGE_RECORDS = 25


class FlowRecords(eqx.Module):
    """Parameters, loss and relative speed at the recorded times, and whether all went well."""

    series: dict[str, Any]  # (member, time, …)
    loss: Any  # (member, time)
    speed: Any  # (member, time)
    succeeded: Any  # (member,)


class EnsembleIntegrator:
    """Integrates an ensemble, a chunk of members at a time.

    Args:
        flow: The flow; with `swept`, its leaves have a leading axis of members.
        swept: Whether they do.
        stiff: Whether to use an implicit solver.
        params: Initial parameters, (member, …).
        tolerance: Relative error per step.
        times: The records, if known in advance.
    """

    def __init__(
        self,
        flow: Any,
        swept: bool,
        stiff: bool,
        params: Params,
        tolerance: float,
        times: np.ndarray | None = None,
    ):
        self.flow, self.swept, self.stiff = flow, swept, stiff
        self.params, self.tolerance = params, tolerance
        # All calls record the same number of times, so that they share one compiled program.
        self.num_records = STAGE_RECORDS if times is None else times.shape[-1]
        loss, speed = _initial_loss_and_speed(flow, params, swept)
        self.start = FlowRecords(
            {name: np.asarray(values)[:, None] for name, values in params.items()},
            np.asarray(loss)[:, None],
            np.asarray(speed)[:, None],
            np.ones(len(loss), bool),
        )

    def __call__(
        self,
        times: np.ndarray,
        params: Mapping[str, Any] | None = None,
        begin: Any = 0.0,
        only: Any = None,
    ) -> FlowRecords:
        """Integrate members through `times`, (time,) or (member, time), from `params` at `begin`.

        With `only`, a mask, the other members stay where they are.
        """
        params = self.params if params is None else params
        params = {name: np.asarray(values) for name, values in params.items()}
        count = len(params["weights"])
        begin = np.broadcast_to(np.asarray(begin, np.float64), (count,))
        times = np.broadcast_to(times, (count, np.shape(times)[-1]))
        # Chunks of about equal size: 33 members are 17 and 16, not 32 and 1 with 31 copies.
        size = math.ceil(count / math.ceil(count / CHUNK_MEMBERS))
        chosen = np.arange(count) if only is None else np.flatnonzero(only)

        def integrate_chunk(start: int) -> FlowRecords:
            # The last chunk is filled up with copies: one size, one program.
            rows = chosen[np.minimum(np.arange(start, start + size), len(chosen) - 1)]
            take = functools.partial(jax.tree.map, lambda leaf: leaf[rows])
            with jax.enable_x64(True):  # a setting of the thread
                records = _integrate_members(
                    take(self.flow) if self.swept else self.flow,
                    take(params),
                    begin[rows],
                    times[rows],
                    jnp.asarray(self.tolerance),
                    self.swept,
                    self.stiff,
                )
                return jax.tree.map(np.asarray, records)

        result = FlowRecords(
            {
                name: np.repeat(values[:, None], times.shape[1], axis=1)
                for name, values in params.items()
            },
            np.full(times.shape, np.nan),
            np.full(times.shape, np.nan),
            np.ones(count, bool),
        )
        if not len(chosen):
            return result
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            # The first chunk runs alone, to compile. Each program uses one core, so the others
            # run side by side.
            chunks = [
                integrate_chunk(0),
                *pool.map(integrate_chunk, range(size, len(chosen), size)),
            ]
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(chosen)], *chunks)
        for target, values in zip(jax.tree.leaves(result), jax.tree.leaves(joined), strict=True):
            target[chosen] = values
        return result

    def to_rest(self, until: float, stop_tol: float) -> tuple[np.ndarray, FlowRecords]:
        """Times and records up to the first at which all members are at rest, or `until`.

        Each stage is half as long as all before it together, so that records grow sparser as the
        flow slows down. Checking the records is cheaper than an event of the integrator, which is
        evaluated at every step of every member. A member at rest at the end of a stage stays there.
        """
        times, begin = [np.zeros(1)], 0.0
        stages = [self.start]
        moving = np.ones(len(self.params["weights"]), bool)
        while True:
            stage_times = np.linspace(
                begin, min(until, max(FIRST_STAGE, 1.5 * begin)), STAGE_RECORDS + 1
            )[1:]
            last = stages[-1]
            params = {name: values[:, -1] for name, values in last.series.items()}
            stage = self(stage_times, params, begin, moving)
            # Members at rest were not integrated: their fields are repeated, the rest is nan.
            stage.loss[~moving] = last.loss[~moving, -1:]
            stage.speed[~moving] = last.speed[~moving, -1:]
            stages.append(stage)
            times.append(stage_times)
            begin = stage_times[-1]
            at_rest = stage.speed <= stop_tol
            all_rest: Any = at_rest.all(axis=0)
            moving = ~at_rest[:, -1] & stage.succeeded & moving
            if not moving.any() or begin >= until:
                break
        # Drop the records after the first from which on all members are at rest.
        surplus = 0
        if all_rest[-1] and not all_rest.all():
            surplus = max(0, int((~all_rest[::-1]).argmax()) - 1)
        kept = sum(map(len, times)) - surplus

        def join(*leaves: np.ndarray) -> np.ndarray:
            return np.concatenate(leaves, axis=1)[:, :kept]

        succeeded = np.logical_and.reduce([stage.succeeded for stage in stages])
        series = [dataclasses.replace(stage, succeeded=None) for stage in stages]
        records = dataclasses.replace(jax.tree.map(join, *series), succeeded=succeeded)
        return np.concatenate(times)[:kept], records

    def time_since(
        self,
        records: FlowRecords,
        times: np.ndarray,
        ipr_above: float = math.inf,
        speed_below: float = -1.0,
    ) -> np.ndarray:
        """Flow time from which on a condition holds until the last record, (member,); nan if never.

        The condition is an IPR above `ipr_above`, or else a relative speed of at most
        `speed_below`. The records bracket the time; the flow is integrated again inside the
        bracket, and so on until the bracket is narrow.
        """

        def holds(records: FlowRecords) -> np.ndarray:
            if ipr_above == math.inf:
                return records.speed <= speed_below
            ratios = inverse_participation_ratio(records.series["weights"], 1)
            return np.fmax.reduce(ratios, axis=2) > ipr_above  # fmax: nan for a neuron of zeros

        count, num = records.loss.shape
        rows = np.arange(count)
        fractions = np.linspace(0, 1, self.num_records + 2)[None, 1:-1]
        left = {name: values[:, 0] for name, values in self.start.series.items()}
        left_holds = holds(self.start)
        begin, inner = np.zeros(count), np.broadcast_to(times, (count, num))
        end = inner[:, -1]
        ever = always = np.zeros(count, bool)
        for bisection in range(MAX_BISECTIONS):
            grid = np.concatenate([begin[:, None], inner, end[:, None]], axis=1)
            true = np.concatenate([left_holds, holds(records)], axis=1)
            if bisection == 0:
                ever, always = true[:, -1], true.all(axis=1)
            # The last point of the grid at which the condition does not hold opens the bracket.
            last = np.where(
                true.all(axis=1), 0, true.shape[1] - 1 - (~true[:, ::-1]).argmax(axis=1)
            )
            begin, end = grid[rows, last], grid[rows, last + 1]
            unresolved = ever & ~always & (end - begin > EVENT_TOLERANCE * end)
            if not unresolved.any():
                break
            # Point j of the grid is record j − 1; point 0 is the left end, known already.
            moved = rows[last > 0]
            for name, values in records.series.items():
                left[name] = left[name].copy()
                left[name][moved] = values[moved, last[moved] - 1]
            left_holds = np.zeros((count, 1), bool)  # that is what made it the left end
            inner = begin[:, None] + (end - begin)[:, None] * fractions
            records = self(inner, left, begin, unresolved)
        return np.where(ever, np.where(always, 0.0, end), np.nan)


@functools.partial(jax.jit, static_argnames=("swept", "stiff"))
def _integrate_members(
    flow: Any, params: Params, begin: Any, times: Any, tolerance: Any, swept: bool, stiff: bool
) -> FlowRecords:
    """Integrate every member from its time `begin` (member,) through `times` (member, time)."""
    TRACES["solve"] += 1

    def integrate(flow: Any, params: Params, begin: jax.Array, times: jax.Array) -> FlowRecords:
        solution: Any = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, flow: jax.tree.map(jnp.negative, flow(y)[1])),
            diffrax.Kvaerno5() if stiff else diffrax.Tsit5(),
            t0=begin,
            # diffrax cannot integrate over an interval of length zero.
            t1=jnp.maximum(times[-1], begin * (1 + 1e-12) + 1e-300),
            dt0=None,
            y0=params,
            args=flow,  # not closed over: a closed-over matrix makes compilation slow
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance / 100),
            max_steps=MAX_STEPS,
            adjoint=diffrax.ForwardMode(),
            throw=False,  # a program with a host check is never taken from the compilation cache
        )
        finite = jnp.all(jnp.isfinite(solution.ys["weights"]))
        succeeded = (solution.result == diffrax.RESULTS.successful) & finite
        # Inside the program, where the records are still in the cache.
        loss, speed = jax.lax.map(functools.partial(_loss_and_speed, flow), solution.ys)
        return FlowRecords(solution.ys, loss, speed, succeeded)

    return jax.vmap(integrate, in_axes=(0 if swept else None, 0, 0, 0))(flow, params, begin, times)


@functools.partial(jax.jit, static_argnames="swept")
def _initial_loss_and_speed(flow: Any, params: Params, swept: bool) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(_loss_and_speed, in_axes=(0 if swept else None, 0))(flow, params)


def _loss_and_speed(flow: Any, params: Params) -> tuple[jax.Array, jax.Array]:
    """The loss, and how fast the parameters move relative to their length."""
    loss, gradient = flow(params)
    length, speed = (
        sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)) for tree in (params, gradient)
    )
    return loss, jnp.sqrt(speed / jnp.maximum(length, 1e-300))


def is_stiff(flow: Any, swept: bool, params: Params, end: float) -> bool:
    """Whether stability alone would force an explicit solver to too many steps."""
    if sum(leaf[0].size for leaf in jax.tree.leaves(params)) > MAX_STIFF_PARAMETERS:
        return False
    first = jax.tree.map(lambda leaf: leaf[0], params)
    rate = _largest_rate(jax.tree.map(lambda leaf: leaf[0], flow) if swept else flow, first)
    return float(rate) * end / 3 > MAX_EXPLICIT_STEPS  # Tsit5 is stable up to rate · step ≈ 3


@jax.jit
def _largest_rate(flow: Any, params: Params) -> jax.Array:
    """Largest rate of the linearized flow, by power iteration."""
    # Near zero the gate turns quickly, but not for long: later fields have about unit length.
    length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)))
    unit = jax.tree.map(lambda leaf: leaf / jnp.maximum(length, 1e-300), params)

    def iterate(_: Any, carry: Any) -> Any:
        direction, _ = carry
        product = jax.jvp(lambda y: flow(y)[1], (unit,), (direction,))[1]
        size = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(product)))
        return jax.tree.map(lambda leaf: leaf / jnp.maximum(size, 1e-300), product), size

    return jax.lax.fori_loop(0, 30, iterate, (unit, jnp.zeros(())))[1]
