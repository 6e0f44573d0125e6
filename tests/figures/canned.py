"""Made-up runs of the names and shapes that a figure's experiments have, so that nothing is
trained.
"""

import zlib

import numpy as np

from localfields.analysis import onset_times
from localfields.experiments import Fit, Solution
from localfields.figures.base import Results
from localfields.trajectory import Outcome, Trajectory, inverse_participation_ratio

UNTIL_RECORDS = 26  # records of a solution whose times are not given


def canned_results(figure, scale="tiny"):
    """What a figure is drawn from, without a run."""
    experiments = figure.experiments(scale)
    return Results(
        scale, {name: canned_run(name, experiment) for name, experiment in experiments.items()}
    )


def canned_run(name, experiment):
    """Fields that go from a start, the same for the same seeds, to bumps, waves and noise in
    turn.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    method, shape = experiment.method, experiment.task.shape
    steps, times = _records(method)
    members, neurons = _members(experiment), _neurons(experiment)
    start = np.asarray(experiment.initial)
    if not start.size:  # none was given
        start = np.random.default_rng(0).normal(size=(members, neurons, *shape)) / 10
    start = np.broadcast_to(start, (members, neurons, *shape))
    end = _shapes(rng, members, neurons, shape)
    progress = np.linspace(0, 1, len(steps)) if len(steps) > 1 else np.ones(1)
    moved = progress.reshape(1, -1, *(1,) * (1 + len(shape)))
    weights = (1 - moved) * start[:, None] + moved * end[:, None]
    weights = weights.astype(np.float64 if isinstance(method, Fit | Solution) else np.float32)
    signs = np.where(np.arange(members * neurons).reshape(members, neurons) % 2, 1, -1)
    growing = progress[None, :, None] * (signs * rng.uniform(0.5, 2, signs.shape))[:, None]
    recorded = {
        "weights": weights,
        "biases": growing.astype(np.float32),
        "readout": (0.1 + growing)[:, :, None].astype(np.float32),
        "loss": np.float32(1 - 0.5 * progress + 0.01 * rng.uniform(size=(members, 1))),
        "accuracy": np.float32(0.5 + 0.3 * progress + 0.01 * rng.uniform(size=(members, 1))),
        "ipr": np.float32(inverse_participation_ratio(weights, len(shape))),
    }
    names = {Fit: ("weights",), Solution: ("weights", "loss")}.get(type(method))
    names = getattr(method, "quantities", None) if names is None else names
    run = Trajectory(
        steps=steps,
        times=times,
        initial=weights[:, 0],
        final=weights[:, -1],
        series={name: recorded[name] for name in names},
        outcome=(Outcome("ok", -1),) * members,
        experiment=experiment.to_json(),
        manifest={},
    )
    if isinstance(method, Solution):
        nothing = np.full(members, np.nan)
        run.events.update(onset=onset_times(run), rest=nothing)
    return run


def _records(method):
    if isinstance(method, Fit):
        return np.zeros(1, int), np.zeros(1)
    if isinstance(method, Solution):
        times = np.asarray(method.times)
        if not times.size:
            times = np.linspace(0, method.until, UNTIL_RECORDS)
        return np.arange(len(times)), times
    steps = np.unique([*range(0, method.steps + 1, method.every), method.steps])
    rate = np.asarray(method.learning_rate, float)
    return steps, steps * rate if rate.ndim == 0 else np.outer(rate, steps)


def _members(experiment):
    """The most that any part has of anything: seeds, learning rates, swept numbers, starts."""
    method = experiment.method
    swept = [np.size(value) for stimulus in experiment.task.stimuli for value in _numbers(stimulus)]
    starts = max(1, len(experiment.initial))
    rates = np.size(getattr(method, "learning_rate", 0.0))
    return max(method.members, np.size(method.seed), rates, starts, *swept)


def _numbers(stimulus):
    return [getattr(stimulus, name) for name in ("xi", "gain", "k") if hasattr(stimulus, name)]


def _neurons(experiment):
    if isinstance(experiment.method, Fit):
        return experiment.method.baseline.components
    return getattr(experiment.network, "hidden", 1)


def _shapes(rng, members, neurons, shape):
    """Bumps, waves and noise in turn, of several sizes."""
    size = int(np.prod(shape))
    site = np.arange(size)
    fields = np.empty((members * neurons, size))
    for place in range(len(fields)):
        center, sharp = rng.integers(size), rng.uniform(0.3, 2)
        kind = place % 3
        if kind == 0:
            away = np.minimum((site - center) % size, (center - site) % size)
            fields[place] = np.exp(-((away / sharp) ** 2)) + 0.001 * rng.normal(size=size)
        elif kind == 1:
            fields[place] = np.cos(2 * np.pi * (rng.integers(1, 5) * site / size + sharp))
        else:
            fields[place] = rng.normal(size=size)
        fields[place] *= rng.uniform(0.3, 1) * rng.choice([-1, 1])
    return fields.reshape(members, neurons, *shape)
