"""`solve`: gradient flow of a theory, on the axes of `train`.

One compiled program integrates all members, each with its own steps. It is run twice: once to find when a field begins
to localize and when it comes to rest, once to record.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import platform
import time
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix

from .. import __version__
from .._check import Said, refuse, unknown
from .._spec import Count, Number, Row, num_members
from ..networks import Network, SingleNeuron
from ..networks.base import Params
from ..tasks import TRACES, Discrimination, for_members, initial_params
from ..trajectory import Outcome, Trajectory
from .base import Theory

RECORDS = 201  # where no times are asked for
MOST_STEPS = 200_000  # of the integrator, a member and pass
STIFF_STEPS = 20_000  # explicit steps that stability alone would force, beyond which an implicit solver is faster
CHUNK = 128  # members integrated together: beyond, a step no longer fits a core's cache
LARGEST_STIFF = 400  # parameters, for the dense Newton steps of that solver


def localized_from(size: int) -> float:
    """IPR from which a field counts as localized: twice that of Gaussian noise, 3/(N + 2).

    Such a field lives on fewer than a sixth of the sites; a wave has 1.5/N.

    Example:
        >>> round(localized_from(40), 3)
        0.143
    """
    return 6 / (size + 2)


def solve(
    task: Discrimination,
    theory: Theory,
    *,
    network: Network | None = None,
    initial: Any = None,
    times: Any = None,
    until: float = 1000.0,
    rest: float = 1e-6,
    members: int | None = None,
    seed: int = 0,
    tolerance: float = 1e-8,
    solver: str = "auto",
) -> Trajectory:
    """Follow the gradient flow of a theory.

    Args:
        task: Stimuli, labels and loss. Its numbers may be arrays: one value a member.
        theory: `EffectiveFlow()`, `LinearResponse()`, `ExactIsing()`, `ExactPulse()`, or one of your own.
        network: The architecture and how it starts; one ReLU neuron by default.
        initial: Receptive fields to start from, (neuron, *shape) or (member, neuron, *shape), such as `run.initial`;
            by default those that `train` starts from at this seed.
        times: Flow times to record, (time,) or (member, time), such as `run.times`; by default an even grid from 0 to
            the time at which all members rest.
        until: The longest flow time, where no times are given.
        rest: A member rests when its parameters move by less than this fraction of their length per unit of time.
        members: Size of the ensemble; by default the length of what is swept or of `initial`, or 1.
        seed: Of the first fields.
        tolerance: Relative error a step of the integrator; the absolute one is a hundredth of it.
        solver: `explicit`, `stiff`, or `auto` to choose by the spread of rates.

    Returns:
        A `Trajectory`; its `events` hold the flow times of `onset` (the IPR first exceeds that of noise twofold, see
        `localized_from`) and `rest` of each member, nan where there is none.

    Raises:
        InputError: When the theory does not cover the task, or something does not fit together.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> flow = lf.solve(task, lf.theory.ExactIsing(), members=2)
        >>> flow.ipr[:, -1, 0].round(4)
        array([0.8537, 0.8537])
    """
    network = SingleNeuron() if network is None else network
    _check(task, theory, network, until, rest, tolerance, solver)
    seed = Count(low=0, high=2**63 - 1).check("seed", seed)
    clock = time.perf_counter()
    with jax.enable_x64(True):
        flow, swept = for_members(lambda one, net: theory.flow(one, net), task, network)
        params, count = _start(task, network, initial, members, seed)
        times = None if times is None else _check_times(times, count)
        end = until if times is None else float(np.max(times))
        plan = _Plan(swept, _is_stiff(flow, swept, params, end) if solver == "auto" else solver == "stiff")
        go = _Go(plan, flow, params, float(tolerance))
        rested = None
        if times is None:
            rested = np.asarray(go(np.linspace(0.0, until, RECORDS), rest=rest).rest)
            times = np.linspace(0.0, float(np.where(np.isfinite(rested), rested, until).max()), RECORDS)
        result = go(times)
        onset = go.first(result, times, localized=localized_from(task.size))
        rested = go.first(result, times, rest=rest) if rested is None else rested
    found = {name: np.asarray(values) for name, values in result.series.items()}
    weights = found["weights"].reshape(count, -1, network.hidden, *task.shape)
    seconds = time.perf_counter() - clock
    return Trajectory(
        steps=np.arange(np.shape(times)[-1]),
        times=np.asarray(times),
        initial=np.asarray(params["weights"]).reshape(count, network.hidden, *task.shape),
        final=weights[:, -1],
        series={**found, "weights": weights},
        outcome=tuple(Outcome("ok", -1) if g else Outcome("non-finite", -1) for g in np.asarray(result.good)),
        specification={
            "task": task.to_json(),
            "theory": theory.to_json(),
            "network": network.to_json(),
            "members": count,
            "seed": seed,
            "until": float(end),
            "rest": float(rest),
            "tolerance": float(tolerance),
            "solver": "stiff" if plan.stiff else "explicit",
        },
        manifest=_manifest(seconds),
        stopped="at rest" if np.isfinite(rested).all() else "finished",
        events={"onset": onset, "rest": rested},
    )


@dataclasses.dataclass(frozen=True)
class _Go:
    """An ensemble ready to be followed, a chunk of members at a time."""

    plan: _Plan
    flow: Any
    params: Params
    tolerance: float

    def __call__(
        self,
        times: np.ndarray,
        params: Params | None = None,
        begin: np.ndarray | None = None,
        localized: float = math.inf,
        rest: float = -1.0,
    ) -> _Found:
        """Follow all members through the times, or until one localizes or rests."""
        params = self.params if params is None else params
        count = len(params["weights"])
        begin = np.zeros(count) if begin is None else begin
        times = np.broadcast_to(times, (count, np.shape(times)[-1]))
        numbers = _Numbers(*(jnp.asarray(float(x)) for x in (localized, rest, self.tolerance)))
        size = math.ceil(count / math.ceil(count / CHUNK))
        parts = []
        for start in range(0, count, size):
            # The last chunk is filled up with copies: one size, one program.
            rows = np.minimum(np.arange(start, start + size), count - 1)
            take = functools.partial(jax.tree.map, lambda leaf, rows=rows: leaf[rows])
            flow = take(self.flow) if self.plan.swept else self.flow
            parts.append(_follow(self.plan, flow, take(params), begin[rows], times[rows], numbers))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)

    def first(self, found: _Found, times: np.ndarray, **event: float) -> np.ndarray:
        """Flow time at which an event first happens in what was recorded, nan for never.

        The records tell between which two; from the earlier one the flow is followed once more, to the event.
        """
        times = np.broadcast_to(times, found.series["loss"].shape)
        seen = np.asarray(
            _seen(
                self.plan,
                self.flow,
                _parameters(found),
                _Numbers(
                    jnp.asarray(event.get("localized", math.inf)),
                    jnp.asarray(event.get("rest", -1.0)),
                    jnp.asarray(0.0),
                ),
            )
        )
        index = seen.argmax(axis=1)
        before = np.maximum(index - 1, 0)
        rows = np.arange(len(index))
        begin, end = times[rows, before], times[rows, index]
        start = {name: values[rows, before] for name, values in _parameters(found).items()}
        fine = begin[:, None] + (end - begin)[:, None] * np.linspace(0, 1, times.shape[1])[None, :]
        again = self(fine, start, begin, **event)
        when = again.onset if "localized" in event else again.rest
        when = np.where(np.isfinite(when) & (index > 0), when, end)
        return np.where(seen.any(axis=1), when, np.nan)


def _parameters(found: _Found) -> Params:
    return {name: values for name, values in found.series.items() if name != "loss"}


class _Plan(eqx.Module):
    """What shapes the compiled program."""

    swept: bool = eqx.field(static=True)
    stiff: bool = eqx.field(static=True)


class _Numbers(eqx.Module):
    """What does not: what ends a member early, and how exact a step is."""

    localized: jax.Array  # an IPR; infinite: never
    rest: jax.Array  # a relative speed; negative: never
    tolerance: jax.Array


class _Found(eqx.Module):
    """One integration: parameters and loss at the times asked for, infinite after an event."""

    series: dict[str, jax.Array]
    onset: jax.Array  # flow time at which the event ended it, nan if it did not
    rest: jax.Array
    good: jax.Array


@functools.partial(jax.jit, static_argnames="plan")
def _follow(plan: _Plan, flow: Any, params: Params, begin: jax.Array, times: jax.Array, numbers: _Numbers) -> _Found:
    """Integrate every member from its time `begin` (member,) through `times` (member, time), or to an event."""
    TRACES["solve"] += 1
    over = jax.vmap(functools.partial(_one, plan, numbers), in_axes=(0 if plan.swept else None, 0, 0, 0))
    return over(flow, params, begin, times)


def _one(plan: _Plan, numbers: _Numbers, flow: Any, params: Params, begin: jax.Array, times: jax.Array) -> _Found:
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
    return _Found(
        series={**fields, "loss": jax.vmap(lambda y: flow(y)[0])(fields)},
        onset=jnp.where(found.event_mask["onset"], last, jnp.nan),
        rest=jnp.where(found.event_mask["rest"], last, jnp.nan),
        good=good & jnp.all(jnp.isfinite(found.ys[1]["weights"])),
    )


@functools.partial(jax.jit, static_argnames="plan")
def _seen(plan: _Plan, flow: Any, series: Params, numbers: _Numbers) -> jax.Array:
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


def _is_stiff(flow: Any, swept: bool, params: Params, end: float) -> bool:
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


def _check(task: Any, theory: Any, network: Any, until: Any, rest: Any, tolerance: Any, solver: Any) -> None:
    kinds = (("task", task, Discrimination), ("theory", theory, Theory), ("network", network, Network))
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            refuse(f"`{name}`", value, f"a {kind.__name__}", f"For example `{_EXAMPLES[name]}`.")
    network.check_outputs(task.outputs)
    Number(low=0, hint="The longest flow time to look at.").check("until", until)
    Number(low=0, closed=True, hint="Give a small fraction, such as 1e-6.").check("rest", rest)
    Number(low=1e-14, high=1e-1, hint="For example 1e-8.").check("tolerance", tolerance)
    if solver not in ("auto", "explicit", "stiff"):
        unknown("The solver", solver, ("auto", "explicit", "stiff"))


_EXAMPLES = {
    "task": "lf.Discrimination(…)",
    "theory": "lf.theory.EffectiveFlow()",
    "network": "lf.networks.SingleNeuron()",
}


def _start(task: Discrimination, network: Network, initial: Any, members: int | None, seed: int) -> tuple[Params, int]:
    """Parameters of every member in float64, and their number."""
    given = None if initial is None else _given(initial, network.hidden, task.shape)
    lengths = {
        name: length
        for name, length in (
            ("the task", num_members(task)),
            ("the network", num_members(network)),
            ("`initial`", None if given is None or len(given) == 1 else len(given)),
            ("`members`", None if members is None else Count(high=10**7).check("members", members)),
        )
        if length is not None
    }
    if len(set(lengths.values())) > 1:
        got = Said(", ".join(f"{name} has {length}" for name, length in lengths.items()))
        refuse("The number of members", got, "the same wherever it is given", "Repeat values: one for every member.")
    count = next(iter(lengths.values()), 1)
    params = initial_params(task, network, seed, count)
    if given is not None:
        params = {**params, "weights": np.broadcast_to(given, (count, *given.shape[1:]))}
    return {name: jnp.asarray(np.asarray(values), jnp.float64) for name, values in params.items()}, count


def _given(initial: Any, hidden: int, lattice: tuple[int, ...]) -> np.ndarray:
    advice = "Give (neuron, *shape) or (member, neuron, *shape)."
    array = Row(axes=None, hint=advice).check("initial", initial)
    fields = (hidden, *lattice)
    if array.shape not in (fields, (len(array), *fields)):
        refuse("`initial`", Said(f"shape {array.shape}"), f"of shape {fields} or (member, {fields})", advice)
    return array.reshape(-1, hidden, math.prod(lattice))


def _check_times(times: Any, count: int) -> np.ndarray:
    advice = "Give increasing flow times, such as `run.times`."
    array = Row(axes=None, hint=advice).check("times", times)
    if array.ndim > 2 or (array.ndim == 2 and len(array) != count):
        refuse("`times`", Said(f"shape {array.shape}"), f"(time,) or ({count}, time)", advice)
    if array.min() < 0 or (np.diff(array, axis=-1) <= 0).any():
        refuse("`times`", Said("some that do not increase, or negative ones"), "increasing from 0 or later", advice)
    return array


def _manifest(seconds: float) -> dict[str, Any]:
    return {
        "localfields": __version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": str(jax.devices()[0].device_kind),
        "precision": "float64",
        "run_seconds": round(seconds, 4),
    }
