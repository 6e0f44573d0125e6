"""`solve`: gradient flow of a theory, on the axes of `train`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._ensemble import count_members, for_members, given_fields, initial_params
from .._memory import flow_memory
from .._spec import Number, Row, Seeds
from .._types import ArrayLike, working_dtype
from ..errors import InputError, show, unknown_name
from ..networks import Network, SingleNeuron
from ..tasks import Discrimination
from ..trajectory import Outcome, Trajectory, experiment_json, localized_from, made_with
from .base import Theory

TYPICAL_RECORDS = 100  # of a flow that is followed to rest; see `_integrate`
SOLVERS = ("auto", "explicit", "stiff")
EXAMPLES = {
    "task": "lf.Discrimination(…)",
    "theory": "lf.theory.EffectiveFlow()",
    "network": "lf.networks.SingleNeuron()",
}


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
        task: Stimuli, labels and loss. Its numbers may be arrays: one value per member.
        theory: For example `EffectiveFlow()`, `ExactIsing()`, or a theory of your own.
        network: The architecture and its initialization; one ReLU neuron by default.
        initial: Receptive fields to start from, (neuron, *shape) or (member, neuron, *shape), such
            as `run.initial`; by default those that `train` starts from at this seed.
        times: Flow times to record, (time,) or (member, time), such as `run.times`; by default
            until all members are at rest, closely at first and sparser as the flow slows down.
        until: The longest flow time if no times are given.
        stop_tol: A member is at rest when its parameters move by less than this fraction of their
            length per unit of time.
        members: Size of the ensemble; by default the length of what is swept or of `initial`, or 1.
        seed: Seed for the initial fields; a list gives one seed per member.
        tolerance: Relative error per step of the integrator; the absolute one is a hundredth of it.
        solver: `explicit`, `stiff`, or `auto` to choose by the largest rate of the flow.

    Returns:
        A `Trajectory`; its `events` hold the flow times of `onset` (from then on the IPR stays
        above `localized_from`) and `rest` of each member, nan where there is none.

    Raises:
        InputError: If the theory does not cover the task, or shapes or member counts disagree.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> flow = lf.solve(task, lf.theory.ExactIsing(), members=2)
        >>> flow.ipr[:, -1, 0].round(4)
        array([0.8537, 0.8537])
    """
    network = SingleNeuron() if network is None else network
    check_solvable(task, theory, network, until, stop_tol, tolerance, solver)
    seed = Seeds().check("seed", seed)
    clock = time.perf_counter()
    num_records = TYPICAL_RECORDS if times is None else (np.shape(times) or (1,))[-1]
    params, count = initial_state(task, network, initial, members, seed, num_records)
    times = None if times is None else _check_times(times, count)
    with jax.enable_x64(True):
        flow, swept = for_members(theory.flow, task, network)
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
    axes = (network.hidden, *task.shape)
    return follow_flow(flow, swept, params, axes, times, experiment, clock)


def follow_flow(
    flow: Any,
    swept: bool,
    params: dict[str, np.ndarray],
    axes: tuple[int, ...],
    times: np.ndarray | None,
    experiment: dict[str, Any],
    clock: float,
    find_rest: bool = True,
) -> Trajectory:
    """Integrate a flow from given parameters and return the trajectory.

    Args:
        flow: A `Flow`; with `swept`, its leaves have a leading axis of members.
        swept: Whether they do.
        params: Initial parameters, (member, …) each.
        axes: (neuron, *shape), the axes of one member's weights.
        times: Flow times to record; None to stop when all members are at rest.
        experiment: What the trajectory is a result of; `until`, `stop_tol`, `tolerance` and
            `solver` of its method are used.
        clock: When the work began, by `time.perf_counter`.
        find_rest: Whether to find when each member comes to rest, which costs further integrations.
    """
    from ._integrate import EnsembleIntegrator, is_stiff  # loads diffrax, which takes a second

    settings = experiment["method"]
    until, stop_tol, solver = settings["until"], settings["stop_tol"], settings["solver"]
    end = until if times is None else float(np.max(times))
    with jax.enable_x64(True):
        start = {name: jnp.asarray(values, jnp.float64) for name, values in params.items()}
        stiff = is_stiff(flow, swept, start, end) if solver == "auto" else solver == "stiff"
        integrator = EnsembleIntegrator(flow, swept, stiff, start, settings["tolerance"], times)
        times, records = (
            integrator.to_rest(until, stop_tol) if times is None else (times, integrator(times))
        )
        localized = localized_from(math.prod(axes[1:]))
        events = {"onset": integrator.time_since(records, times, ipr_above=localized)}
        if find_rest:
            events["rest"] = integrator.time_since(records, times, speed_below=stop_tol)
    series = {name: np.asarray(values) for name, values in records.series.items()}
    count = len(start["weights"])
    weights = series["weights"].reshape(count, -1, *axes)
    # A member that failed reports the first record that it did not reach; diffrax fills those
    # with inf.
    reached = np.isfinite(weights.reshape(*weights.shape[:2], -1)).all(axis=2).sum(axis=1)
    return Trajectory(
        steps=np.arange(np.shape(times)[-1]),  # a flow has no steps: its records are counted
        times=np.asarray(times),
        initial=np.asarray(start["weights"]).reshape(count, *axes),
        final=weights[:, -1],
        series={**series, "weights": weights, "loss": np.asarray(records.loss)},
        outcome=tuple(
            Outcome("ok", -1) if ok else Outcome("non-finite", int(record))
            for ok, record in zip(records.succeeded, reached, strict=True)
        ),
        experiment=experiment,
        manifest={
            **made_with(np.float64),
            "solver": "stiff" if stiff else "explicit",
            "run_seconds": time.perf_counter() - clock,
        },
        stopped="at rest" if np.isfinite(events.get("rest", np.nan)).all() else "finished",
        events=events,
    )


def check_solvable(
    task: Any, theory: Any, network: Any, until: Any, stop_tol: Any, tolerance: Any, solver: Any
) -> None:
    """Raise an InputError for arguments of `solve` that cannot be used."""
    types = {
        "task": (task, Discrimination),
        "theory": (theory, Theory),
        "network": (network, Network),
    }
    for name, (value, cls) in types.items():
        if not isinstance(value, cls):
            raise InputError(
                f"`{name}` must be a {cls.__name__}, got {show(value)}. "
                f"For example `{EXAMPLES[name]}`."
            )
    network.check_outputs(task.outputs)
    numbers = {
        "until": (until, Number(low=0, hint="Give the longest flow time to integrate to.")),
        "stop_tol": (
            stop_tol,
            Number(low=0, closed=True, hint="Give a small fraction, such as 1e-6."),
        ),
        "tolerance": (tolerance, Number(low=1e-14, high=1e-1, hint="For example 1e-8.")),
    }
    for name, (value, kind) in numbers.items():
        if np.ndim(kind.check(name, value)):
            raise InputError(f"`{name}` must be one number, got {show(value)}. {kind.hint}")
    if np.any(task.l1 > 0):
        raise InputError(
            f"`l1` must be 0 for solve, got {show(task.l1)}. The slope of that penalty jumps at "
            'w = 0, where the integrator gets stuck; use `train(..., estimator="exact")`.'
        )
    if solver not in SOLVERS:
        raise unknown_name("solver", solver, SOLVERS)


def initial_state(
    task: Discrimination,
    network: Network,
    initial: Any,
    members: int | None,
    seed: int | tuple[int, ...],
    num_records: int = TYPICAL_RECORDS,
) -> tuple[dict[str, np.ndarray], int]:
    """Initial parameters of every member and their number, sampled in `train`'s precision."""
    given = None if initial is None else given_fields(initial, network.hidden, task.shape)
    # One field given for all members says nothing of their number.
    several = None if given is None or len(given) == 1 else len(given)
    count = count_members(task, network, seed, members, {"`initial`": several})
    flow_memory(task, network, count, num_records).check()
    sampled = initial_params(task, network, seed, count)
    params = {name: np.asarray(values) for name, values in sampled.items()}
    if given is not None:
        params["weights"] = np.broadcast_to(given, (count, *given.shape[1:]))
    return params, count


def _check_times(times: Any, count: int) -> np.ndarray:
    advice = "Give increasing flow times, such as `run.times`."
    array = Row(axes=None, hint=advice).check("times", times)
    if array.ndim not in (1, 2) or (array.ndim == 2 and len(array) != count):
        raise InputError(
            f"`times` must have shape (time,) or ({count}, time), got {array.shape}. {advice}"
        )
    if array.min() < 0 or (np.diff(array, axis=-1) <= 0).any():
        raise InputError(f"`times` must increase from 0 or later, got {show(times)}. {advice}")
    return array
