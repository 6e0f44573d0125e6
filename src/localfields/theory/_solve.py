"""`solve`: gradient flow of a theory, on the axes of `train`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._ensemble import count_members, for_members, given_fields, initial_params
from .._spec import Number, Row, Seeds
from .._types import ArrayLike, working_dtype
from ..errors import Said, refuse, unknown
from ..networks import Network, SingleNeuron
from ..tasks import Discrimination
from ..trajectory import Outcome, Trajectory, experiment_json, localized_from, made_with
from ._integrate import STAGE, Followed, is_stiff
from .base import Theory


def solve(
    task: Discrimination,
    theory: Theory,
    *,
    network: Network | None = None,
    initial: ArrayLike | None = None,
    times: ArrayLike | None = None,
    until: float = 1000.0,
    stop_tol: float = 1e-6,
    members: int | None = None,
    seed: int | Sequence[int] = 0,
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
        times: Flow times to record, (time,) or (member, time), such as `run.times`; by default until all members rest,
            closely at first and sparser as the flow slows down.
        until: The longest flow time, where no times are given.
        stop_tol: A member rests when its parameters move by less than this fraction of their length per unit of time.
        members: Size of the ensemble; by default the length of what is swept or of `initial`, or 1.
        seed: Of the first fields; a list gives one a member, each of which starts as it would alone.
        tolerance: Relative error a step of the integrator; the absolute one is a hundredth of it.
        solver: `explicit`, `stiff`, or `auto` to choose by the spread of rates.

    Returns:
        A `Trajectory`; its `events` hold the flow times of `onset` (from then on the IPR stays above
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
    _check(task, theory, network, until, stop_tol, tolerance, solver)
    seed = Seeds().check("seed", seed)
    clock = time.perf_counter()
    start, count = _start(task, network, initial, members, seed)
    times = None if times is None else _check_times(times, count)
    settings = {
        "theory": theory.to_json(),
        "times": [] if times is None else times.tolist(),
        "until": float(until),
        "stop_tol": float(stop_tol),
        "members": count,
        "seed": Seeds().encode(seed),
        "tolerance": float(tolerance),
        "solver": solver,
    }
    experiment = experiment_json(
        task, network, "solution", settings, initial=initial, precision=working_dtype()
    )
    with jax.enable_x64(True):
        flow, swept = for_members(theory.flow, task, network)
        params = {name: jnp.asarray(values, jnp.float64) for name, values in start.items()}
        end = until if times is None else float(np.max(times))
        stiff = is_stiff(flow, swept, params, end) if solver == "auto" else solver == "stiff"
        num = STAGE if times is None else times.shape[-1]
        go = Followed(flow, swept, stiff, params, float(tolerance), num)
        times, result = (
            go.to_rest(float(until), float(stop_tol)) if times is None else (times, go(times))
        )
        onset = go.since(result, times, localized=localized_from(task.size))
        rested = go.since(result, times, rest=float(stop_tol))
    events = {"onset": onset, "rest": rested}
    notes = {
        "solver": "stiff" if stiff else "explicit",
        "run_seconds": time.perf_counter() - clock,
    }
    axes = (count, network.hidden, *task.shape)
    return _trajectory(axes, times, params, result, experiment, events, notes)


def _trajectory(
    axes: tuple[int, ...],
    times: np.ndarray,
    params: dict[str, Any],
    result: Any,
    experiment: dict[str, Any],
    events: dict[str, np.ndarray],
    notes: dict[str, Any],
) -> Trajectory:
    """What was followed, on the axes (member, neuron, *shape)."""
    found = {name: np.asarray(values) for name, values in result.series.items()}
    weights = found["weights"].reshape(axes[0], -1, *axes[1:])
    return Trajectory(
        steps=np.arange(np.shape(times)[-1]),
        times=np.asarray(times),
        initial=np.asarray(params["weights"]).reshape(axes),
        final=weights[:, -1],
        series={**found, "weights": weights, "loss": np.asarray(result.loss)},
        outcome=tuple(_outcome(*one) for one in zip(np.asarray(result.good), weights, strict=True)),
        experiment=experiment,
        manifest={**made_with(np.float64), **notes},
        stopped="at rest" if np.isfinite(events.get("rest", np.nan)).all() else "finished",
        events=events,
    )


def _check(
    task: Any, theory: Any, network: Any, until: Any, stop_tol: Any, tolerance: Any, solver: Any
) -> None:
    kinds = (
        ("task", task, Discrimination),
        ("theory", theory, Theory),
        ("network", network, Network),
    )
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            refuse(f"`{name}`", value, f"a {kind.__name__}", f"For example `{_EXAMPLES[name]}`.")
    network.check_outputs(task.outputs)
    numbers = (
        ("until", until, Number(low=0, hint="The longest flow time to look at.")),
        (
            "stop_tol",
            stop_tol,
            Number(low=0, closed=True, hint="Give a small fraction, such as 1e-6."),
        ),
        ("tolerance", tolerance, Number(low=1e-14, high=1e-1, hint="For example 1e-8.")),
    )
    for name, value, kind in numbers:
        if np.ndim(kind.check(name, value)):
            refuse(f"`{name}`", value, "one number", kind.hint)
    if np.any(task.l1 > 0):
        advice = 'Its slope jumps at w = 0, where an integrator is caught: use `train(..., estimator="exact")`.'
        refuse("`l1` of the task for solve", task.l1, "zero", advice)
    if solver not in ("auto", "explicit", "stiff"):
        unknown("The solver", solver, ("auto", "explicit", "stiff"))


_EXAMPLES = {
    "task": "lf.Discrimination(…)",
    "theory": "lf.theory.EffectiveFlow()",
    "network": "lf.networks.SingleNeuron()",
}


def _outcome(good: Any, weights: np.ndarray) -> Outcome:
    """How a member ended; a bad one with the first record that it did not reach."""
    reached = np.isfinite(weights.reshape(len(weights), -1)).all(axis=1)
    return Outcome("ok", -1) if good else Outcome("non-finite", int(reached.sum()))


def _start(
    task: Discrimination,
    network: Network,
    initial: Any,
    members: int | None,
    seed: int | tuple[int, ...],
) -> tuple[dict[str, np.ndarray], int]:
    """Parameters of every member, and their number; drawn at the caller's precision, as `train` draws them."""
    given = None if initial is None else given_fields(initial, network.hidden, task.shape)
    several = None if given is None or len(given) == 1 else len(given)
    count = count_members(task, network, seed, members, {"`initial`": several})
    params = {
        name: np.asarray(values)
        for name, values in initial_params(task, network, seed, count).items()
    }
    if given is not None:
        params["weights"] = np.broadcast_to(given, (count, *given.shape[1:]))
    return params, count


def _check_times(times: Any, count: int) -> np.ndarray:
    advice = "Give increasing flow times, such as `run.times`."
    array = Row(axes=None, hint=advice).check("times", times)
    if array.ndim not in (1, 2) or (array.ndim == 2 and len(array) != count):
        refuse("`times`", Said(f"shape {array.shape}"), f"(time,) or ({count}, time)", advice)
    if array.min() < 0 or (np.diff(array, axis=-1) <= 0).any():
        refuse(
            "`times`",
            Said("some that do not increase, or negative ones"),
            "increasing from 0 or later",
            advice,
        )
    return array
