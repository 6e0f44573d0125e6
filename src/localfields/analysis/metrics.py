"""Metrics: functions from fields to numbers, and `measure`, which takes them along a trajectory.

A metric is a function of fields (…, *shape) and the number of lattice axes that gives one number
per field, (…,), or on a torus one per axis, (…, axis). Decorated with `metric`, in a file here or
in one of your own, it is known to `measure`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, show, unknown_name
from ..trajectory import Trajectory, inverse_participation_ratio

Function = Callable[[Any, int], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A registered metric: name, function, meaning in one line, and whether it is slow."""

    name: str
    function: Function
    help: str
    slow: bool = False


METRICS: dict[str, Metric] = {}


def metric(function: Function | None = None, *, name: str = "", slow: bool = False) -> Any:
    """Register a function of fields and axes as a metric; its first docstring line is the help.

    Args:
        function: The function.
        name: A name other than the function's.
        slow: Whether `measure` should leave it out unless it is asked for.

    Example:
        >>> import numpy as np
        >>> from localfields import analysis
        >>> @analysis.metric
        ... def mean_weight(fields, axes=1):
        ...     '''Mean over the sites.'''
        ...     return np.asarray(fields).mean(axis=tuple(range(-axes, 0)))
        >>> analysis.METRICS["mean_weight"].help
        'Mean over the sites.'
        >>> del analysis.METRICS["mean_weight"]
    """
    if function is None:
        return lambda function: metric(function, name=name, slow=slow)
    key = name or function.__name__
    existing = METRICS.get(key)
    # A second one of the same module is a new version, as in a notebook.
    if existing is not None and existing.function.__module__ != function.__module__:
        raise InputError(
            f"There are two metrics called `{key}`, in {existing.function.__module__} and in "
            f"{function.__module__}. Rename one of the functions."
        )
    METRICS[key] = Metric(key, function, (inspect.getdoc(function) or key).splitlines()[0], slow)
    return function


metric(inverse_participation_ratio, name="ipr")


def measure(trajectory: Trajectory, *names: str) -> Any:
    """Measure every recorded field of a trajectory.

    Args:
        trajectory: What `train` or `solve` gave, with recorded weights.
        names: Which metrics; all but the slow ones where none is given.

    Returns:
        An `xarray.Dataset` with one variable per metric over member, time and neuron (and
        coordinate on a torus), nan for fields that are zero everywhere or not finite.

    Raises:
        InputError: For a name that is not known, or where no weights were recorded.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> run = lf.solve(task, lf.theory.ExactIsing(), times=[0.0, 0.01], members=2)
        >>> values = measure(run, "ipr", "position")
        >>> values["position"].dims, values["position"].shape
        (('member', 'time', 'neuron'), (2, 2, 1))
    """
    import xarray as xr

    require_trajectory(trajectory)
    for name in names:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    chosen = [METRICS[name] for name in names] or [
        metric for metric in METRICS.values() if not metric.slow
    ]
    axes, weights = len(trajectory.shape), trajectory.weights
    data = {}
    for metric in chosen:
        values = over_sound(metric.function, weights, axes)
        along = ["member", "time", "neuron", *(["coordinate"] if values.ndim > 3 else [])]
        data[metric.name] = (along, values, {"long_name": metric.help})
    flow = trajectory.times
    time = trajectory.steps if flow.ndim == 2 else flow
    coordinates = {
        "time": time,
        "step": ("time", trajectory.steps),
        "member": np.arange(trajectory.num_members),
    }
    if flow.ndim == 2:
        coordinates["flow_time"] = (["member", "time"], flow)
    return xr.Dataset(data, coords=coordinates)


def require_trajectory(value: Any, name: str = "trajectory") -> None:
    """Refuse anything else."""
    if not isinstance(value, Trajectory):
        raise InputError(
            f"`{name}` must be a Trajectory, as `lf.train` and `lf.solve` return, got "
            f"{show(value)}."
        )


def over_sound(function: Function, fields: np.ndarray, axes: int) -> np.ndarray:
    """A function of those fields that are finite and not zero everywhere; nan for the others."""
    lead, shape = fields.shape[: fields.ndim - axes], fields.shape[fields.ndim - axes :]
    flat = fields.reshape(-1, *shape)
    sites = tuple(range(1, flat.ndim))
    sound = np.isfinite(flat).all(axis=sites) & flat.any(axis=sites)
    # Without a single sound field, one of ones still tells the shape of the result.
    measured = flat[sound] if sound.any() else np.ones((1, *shape))
    measured_values = np.asarray(function(measured, axes), dtype=np.float64)
    values = np.full((len(flat), *measured_values.shape[1:]), np.nan)
    if sound.any():
        values[sound] = measured_values
    return values.reshape(*lead, *measured_values.shape[1:])
