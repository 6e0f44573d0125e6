"""What a worker computes for a page: a summary and a verdict before a run, the run, its theory."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._spec import member, num_members
from ..errors import InputError
from ..experiments import Experiment
from ..store import Store
from ..trajectory import Trajectory, inverse_participation_ratio
from . import messages as msg
from .limits import Limits

NUM_SHOWN_SAMPLES = 4  # per class
NUM_MEMBERS = 4  # with theory and gates
NUM_NEURONS = 64  # with gates
NUM_TIMES = 48  # of theory and gates: always as many, so that compiled programs serve every run
NUM_GATE_SAMPLES = 2000
NUM_DENSITY_BINS = 400
MAX_ATOMS = 32  # values up to which a distribution is shown as atoms
RECORD_INTERVAL = 0.12  # seconds between messages with records
GATE_INTERVAL = 1.0  # seconds between computing gates while a run goes on,
MAX_GATE_SECONDS = 0.05  # as long as that takes less than this

Send = Callable[[msg.Message], None]
StopReason = Callable[[], str]  # `pause`, `cancel` or `time`; empty to go on


def carry_out(
    stage: str,
    request: msg.Request,
    limits: Limits,
    store: Store | None,
    send: Send,
    stop_reason: StopReason,
) -> None:
    """Carry out one stage of a request: `summary`, `verdict`, `theory` or `run`.

    Raises:
        InputError: If the request is not allowed.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        experiment = limits.read(request.experiment)
        if stage == "run":
            RunTask(request, experiment, limits, store, send, stop_reason).run()
            return
        compute = {"summary": task_summary, "verdict": theory_verdict, "theory": theory_curves}[
            stage
        ]
        result: Any = compute(experiment)
    if stage == "summary":
        texts = dict.fromkeys(str(warning.message) for warning in caught)
        result = dataclasses.replace(result, warnings=tuple(texts))
    send(result)


def _at(value: Any, index: int) -> Any:
    """The value of one member; the value itself if it is not swept."""
    return value if num_members(value) is None else member(value, index)


# -- before a run --------------------------------------------------------------------------------


def labelled_marginal(task: Any) -> Any:
    """The distribution of one site of the class with the strongest label; None if unknown."""
    return task.stimuli[task.dominant_class()].marginal()


def task_summary(experiment: Experiment) -> msg.TaskSummary:
    """Samples, marginal and amplifier of the task; of the first member's if it is swept."""
    from ..theory import Amplifier
    from ..theory.responses.amplifier import SLOPE

    task, seed = _at(experiment.task, 0), getattr(experiment.method, "seed", 0)
    seed = seed[0] if isinstance(seed, tuple) else seed
    marginal = density = amplifier = None
    atoms = False
    with contextlib.suppress(InputError):  # for example of a distribution without a variance
        marginal = labelled_marginal(task)
        if marginal is not None:
            *density, atoms = marginal_density(marginal)
            correlation = np.linspace(0, 1, 101)
            amplifier = (correlation, Amplifier(marginal)(correlation))
    return msg.TaskSummary(
        samples=tuple(
            np.asarray(stimulus.sample(seed, NUM_SHOWN_SAMPLES), np.float32).reshape(
                -1, *stimulus.shape
            )
            for stimulus in task.stimuli
        ),
        density=None if density is None else (density[0], density[1]),
        atoms=atoms,
        kurtosis=math.nan if marginal is None else float(marginal.excess_kurtosis),
        amplifier=amplifier,
        slope=SLOPE,
    )


def marginal_density(marginal: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """Values and their densities; or atoms, their probabilities, and true."""
    from ..marginals import Empirical, TwoPoint

    if isinstance(marginal, TwoPoint):
        return np.array([-marginal.sd, marginal.sd]), np.array([0.5, 0.5]), True
    if isinstance(marginal, Empirical) and len(np.unique(marginal.values)) <= MAX_ATOMS:
        atoms = np.unique(marginal.values)
        last = np.searchsorted(marginal.values, atoms, side="right") - 1
        return atoms, np.diff(np.asarray(marginal.mass)[last], prepend=0.0), True
    low, high = np.asarray(marginal.quantile(np.array([1e-3, 1 - 1e-3])), np.float64)
    margin = 5 * (high - low) / NUM_DENSITY_BINS
    edges = np.linspace(low - margin, high + margin, NUM_DENSITY_BINS + 11)
    density = np.diff(np.asarray(marginal.cdf(edges), np.float64)) / np.diff(edges)
    return (edges[1:] + edges[:-1]) / 2, density, False


def theory_verdict(experiment: Experiment) -> msg.TheoryVerdict:
    """What `predict` says of the task; of the first member's if it is swept."""
    from ..theory import predict

    try:
        prediction = predict(_at(experiment.task, 0))
    except InputError as error:
        return msg.TheoryVerdict("undecided", str(error))
    return msg.TheoryVerdict(prediction.verdict, prediction.reason)


# -- a run ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class RunTask:
    """A run, and the messages that it sends; it is the checkpointer of its own training."""

    request: msg.Request
    experiment: Experiment
    limits: Limits
    store: Store | None
    send: Send
    stop_reason: StopReason
    num_sent: int = 0  # records
    sent_time: float = 0.0  # of the last records
    gate_time: float = 0.0  # when gates were last sent,
    gate_seconds: float = 0.0  # and how long they took

    def __post_init__(self):
        method: Any = self.experiment.method
        self.steps = np.array([*range(0, method.steps, method.every), method.steps])

    def run(self) -> None:
        """Carry it out, or load the result from the store."""
        start, request, digest = time.perf_counter(), self.request, self.experiment.digest
        fresh = request.checkpoint is None and not request.one_record
        if fresh and self.store is not None and digest in self.store:
            result = self.store.load(digest)
            self._send_records(result.steps, dict(result.series))
            self._send_gates(result)
            seconds, stored = float(result.manifest.get("run_seconds", 0.0)), True
            note = "Found in the store."
        else:
            # The page has the records that the checkpoint holds.
            sizes = [len(values) for values in _recorded(request.checkpoint or {}).values()]
            self.num_sent = min(sizes, default=0)
            # Polled after every record: by default the device gets a second of work at a time.
            result = self.experiment.run(
                on_progress=self._on_progress,
                cancel=lambda: request.one_record or bool(self.stop_reason()),
                checkpoint=self,
                poll_interval=0.0,
            )
            self._send_next(
                {name: part[:, self.num_sent :] for name, part in result.series.items()}
            )
            reason, cancelled = self.stop_reason(), result.stopped == "cancelled"
            if reason == "cancel" and cancelled:
                return
            self._send_gates(result)
            stored, note = (False, "") if cancelled else self._save(result)
            if cancelled and reason == "time":
                limit = f"{self.limits.run_seconds:.0f} s"
                note = f"Paused at the limit of {limit}; it can be continued from here."
            seconds = time.perf_counter() - start
        outcomes = tuple(map(str, result.outcome))
        self.send(msg.Done(result.stopped, digest, seconds, outcomes, stored, note))

    def load(self) -> dict[str, np.ndarray] | None:
        """The checkpoint to resume from."""
        return self.request.checkpoint

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        """Send a checkpoint, after all the records that it holds; not if the run is cancelled."""
        if self.stop_reason() == "cancel":
            return
        records = _recorded(arrays)
        self._send_next(
            {name: np.moveaxis(part[self.num_sent :], 0, 1) for name, part in records.items()}
        )
        self.send(msg.RunCheckpoint(arrays))

    def _on_progress(self, progress: Any) -> None:
        records, now = progress.records[self.num_sent :], time.perf_counter()
        if not records or now - self.sent_time < RECORD_INTERVAL:
            return
        self._send_next(_stack(records, records[0]))
        self.sent_time = now = time.perf_counter()
        due = self.num_sent > 1 and now - self.gate_time > GATE_INTERVAL
        if due and self.gate_seconds < MAX_GATE_SECONDS and "weights" in records[0]:
            self._send_gates(self._trajectory(progress.records))
            # The first time includes the compilation, or finding out that there are none.
            self.gate_seconds = time.perf_counter() - now if self.gate_time else 0.0
            self.gate_time = time.perf_counter()

    def _send_next(self, series: dict[str, np.ndarray]) -> None:
        """Send the next records, each (member, time, …); there may be none."""
        count = next((values.shape[1] for values in series.values()), 0)
        if count:
            self._send_records(self.steps[self.num_sent : self.num_sent + count], series)
            self.num_sent += count

    def _send_records(self, steps: np.ndarray, series: dict[str, np.ndarray]) -> None:
        if "weights" in series:
            series["weights"] = self._shaped(series["weights"])
            axes = len(self.experiment.task.shape)
            series.setdefault("ipr", inverse_participation_ratio(series["weights"], axes))
        self.send(msg.Records(steps, self._times(steps), series))

    def _shaped(self, weights: np.ndarray) -> np.ndarray:
        """Weights (member, time, …) with the axes of the lattice."""
        return weights.reshape(*weights.shape[:2], -1, *self.experiment.task.shape)

    def _times(self, steps: np.ndarray) -> np.ndarray:
        method: Any = self.experiment.method
        return np.multiply.outer(np.asarray(method.learning_rate, np.float64), steps)

    def _trajectory(self, records: Sequence[Mapping[str, Any]]) -> Trajectory:
        """The records so far of a few members, at no more times than gates are computed at."""
        chosen = np.unique(np.linspace(0, len(records) - 1, NUM_TIMES).round().astype(int))
        names = [name for name in ("weights", "biases") if name in records[0]]
        series = _stack([records[i] for i in chosen], names, slice(NUM_MEMBERS))
        weights = series["weights"] = self._shaped(series["weights"])
        steps = self.steps[chosen]
        times = self._times(steps)
        return Trajectory(steps, times, weights[:, 0], weights[:, -1], series, (), {}, {})

    def _send_gates(self, run: Trajectory) -> None:
        gates = gate_agreement(run, self.experiment)
        if gates is not None:
            self.send(gates)

    def _save(self, run: Trajectory) -> tuple[bool, str]:
        """Store a result; whether it is stored, and a note if it could not be."""
        if self.store is None:
            return False, ""
        if stored_bytes(self.store) > self.limits.store_bytes:
            return False, "The store is full: this result is not kept."
        try:
            self.store.save(self.experiment.canonical(), self.experiment.digest, run)
        except InputError as error:
            return False, f"The result is not kept: {error}"
        return True, ""


def _recorded(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The records in a checkpoint, each (time, member, …)."""
    prefix = "record_"
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }


def _stack(
    records: Sequence[Mapping[str, Any]], names: Any, members: slice = slice(None)
) -> dict[str, np.ndarray]:
    """Records as arrays (member, time, …)."""
    return {
        name: np.stack([np.asarray(record[name])[members] for record in records], axis=1)
        for name in names
    }


def stored_bytes(store: Store) -> int:
    """How much the entries of a store take."""
    total = 0
    for digest in store.digests():
        with contextlib.suppress(OSError):  # removed in the meantime, or damaged
            total += (store.path / digest / "arrays.npz").stat().st_size
    return total


# -- beside a run --------------------------------------------------------------------------------


def theory_curves(experiment: Experiment) -> msg.TheoryCurves:
    """The flow of the best theory from the initial weights of the first members."""
    import jax

    from .._ensemble import initial_params
    from ..theory import BestKnown, best_for, solve

    method: Any = experiment.method
    task, network = experiment.task, experiment.network
    first_task, first_network = _at(task, 0), _at(network, 0)
    theory = best_for(first_task, first_network) or BestKnown()
    coverage = theory.covers(first_task, first_network)
    if not coverage:
        return msg.TheoryCurves("", False, missing=coverage.reason)
    swept = num_members(task) or num_members(network)
    seeds = method.seed[:NUM_MEMBERS] if isinstance(method.seed, tuple) else method.seed
    given = experiment.initial.reshape(-1, network.hidden, *task.shape)
    sizes = (method.members, swept or 1, num_members(method) or 1, len(given))
    count = len(seeds) if isinstance(seeds, tuple) else min(NUM_MEMBERS, max(sizes))
    times = np.linspace(0, float(np.max(method.learning_rate)) * method.steps, NUM_TIMES)
    try:
        if len(given):
            initial = np.broadcast_to(given[:NUM_MEMBERS], (count, *given.shape[1:]))
        else:
            with jax.enable_x64(experiment.precision == "float64"):
                # Of a sweep all members are drawn: each has numbers of its own.
                seed, size = (method.seed, swept) if swept else (seeds, count)
                params = initial_params(task, network, seed, size)
            weights = np.asarray(params["weights"])[:count]
            initial = weights.reshape(count, network.hidden, *task.shape)
        # Members that share their task are solved in one call.
        groups = [slice(None)] if swept is None else [slice(m, m + 1) for m in range(count)]
        runs = [
            solve(
                _at(task, group.start or 0),
                theory.coarse(),
                network=_at(network, group.start or 0),
                initial=initial[group],
                times=times,
                tolerance=1e-6,
                seed=0,
            )
            for group in groups
        ]
    except InputError as error:
        return msg.TheoryCurves("", False, missing=str(error))
    weights = np.concatenate([run.weights for run in runs])
    loss = np.concatenate([run.loss for run in runs])
    ipr = inverse_participation_ratio(weights, len(task.shape))
    joined = dataclasses.replace(
        runs[0], initial=weights[:, 0], final=weights[:, -1], series={"weights": weights}
    )
    gates = gate_agreement(joined, experiment)
    agreement = None if gates is None else gates.agreement
    name, exact = theory.title(first_task), coverage.exact
    return msg.TheoryCurves(name, exact, times, ipr, weights, loss, agreement)


def gate_agreement(run: Trajectory, experiment: Experiment) -> msg.GateAgreement | None:
    """How often gates are as at the last record; None where that cannot be computed."""
    from ..analysis import gates_along
    from ..theory.networks.committee import fixed_biases

    if "weights" not in run.series or len(run.steps) < 2:
        return None
    chosen = np.linspace(0, len(run.steps) - 1, NUM_TIMES).round().astype(int)
    names = [name for name in ("weights", "biases") if name in run.series]
    series = {name: run.series[name][:NUM_MEMBERS, chosen][:, :, :NUM_NEURONS] for name in names}
    times = run.times[..., chosen]
    thinned = dataclasses.replace(
        run,
        steps=run.steps[chosen],
        times=times[:NUM_MEMBERS] if times.ndim == 2 else times,
        initial=series["weights"][:, 0],
        final=series["weights"][:, -1],
        series=series,
    )
    network: Any = experiment.network
    biases = None  # unless there are some that are not trained
    if getattr(network, "bias", "none") in ("fixed", "halves") and not np.ndim(network.bias_value):
        biases = fixed_biases(network)[:NUM_NEURONS]
    groups = [(thinned, experiment.task)]
    if num_members(experiment.task) is not None:
        groups = [
            (thinned.members(slice(m, m + 1)), member(experiment.task, m))
            for m in range(thinned.num_members)
        ]
    try:
        parts = [
            gates_along(part, task, reference="final", num=NUM_GATE_SAMPLES, biases=biases)
            for part, task in groups
        ]
    except InputError:
        return None
    agreement = np.concatenate([part.agreement for part in parts])
    _, distinct = np.unique(
        chosen, return_index=True
    )  # of a short run, records are chosen repeatedly
    return msg.GateAgreement(thinned.times[..., distinct], agreement[:, distinct])
