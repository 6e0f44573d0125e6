"""What a worker computes for a page: answers before a run, the run itself, the theory beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._spec import Spec, member, num_members
from ..errors import InputError
from ..experiments import Experiment
from ..store import Store
from ..trajectory import Trajectory, inverse_participation_ratio
from . import messages as say
from .limits import Limits

SHOWN = 4  # samples a class, and members with a theory and gates beside them
NEURONS = 64  # with gates
GRID = 48  # flow times of theory and gates: always as many, so that their programs serve every run
DRAWS = 2000  # for gates
EVERY = 0.12  # seconds between messages with records
CHEAP = 0.05  # seconds that gates may take while a run goes on
AGAIN = 1.0  # and how often
PLACES = 400  # of a density
FEW = 32  # values up to which a law is shown as atoms

Send = Callable[[say.Message], None]
Stop = Callable[[], str]  # why to stop: `pause`, `cancel`, `time`; empty to go on


def carry_out(
    stage: str, request: say.Request, limits: Limits, store: Store | None, send: Send, stop: Stop
) -> None:
    """One stage of a request: `answer`, `verdict`, `theory` or `run`; only an answer tells of warnings.

    Raises:
        InputError: When the request is refused.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if stage == "run":
            Run(request, limits, store, send, stop)()
            return
        experiment = limits.read(request.experiment)
        found: Any = {"answer": answer, "verdict": verdict, "theory": theory}[stage](experiment)
    if stage == "answer":
        found = dataclasses.replace(
            found, notes=tuple(dict.fromkeys(str(one.message) for one in caught))
        )
    send(found)


# -- before a run -----------------------------------------------------------------------------------------------


def answer(experiment: Experiment) -> say.Answer:
    """Samples, marginal and amplifier of the task; of the first member's, where they are swept."""
    from ..theory import Amplifier
    from ..theory.responses.amplifier import SLOPE

    task = _first(experiment.task)
    weights = np.abs(task.targets()).max(axis=1) * np.asarray(task.priors)
    stimulus = task.stimuli[int(np.argmax(weights))]
    law = density = amplifier = None
    with contextlib.suppress(InputError):  # of a law without a variance, say
        law = stimulus.marginal()
        if law is not None:
            density = _density(law)
            a = np.linspace(0, 1, 101)
            amplifier = (a, Amplifier(law)(a))
    return say.Answer(
        samples=tuple(_samples(one, _seed(experiment)) for one in task.stimuli),
        density=None if density is None else density[:2],
        atoms=density is not None and density[2],
        kurtosis=math.nan if law is None else float(law.excess_kurtosis),
        amplifier=amplifier,
        slope=SLOPE,
    )


def verdict(experiment: Experiment) -> say.Verdict:
    """What `predict` says of the task; of the first member's, where they are swept."""
    from ..theory import predict

    try:
        found = predict(_first(experiment.task))
    except InputError as error:
        return say.Verdict("undecided", str(error))
    return say.Verdict(found.verdict, found.reason)


def _first(value: Any) -> Any:
    return value if num_members(value) is None else member(value, 0)


def _seed(experiment: Experiment) -> int:
    seed = getattr(experiment.method, "seed", 0)
    return seed[0] if isinstance(seed, tuple) else seed


def _samples(stimulus: Any, seed: int) -> np.ndarray:
    return np.asarray(stimulus.sample(seed, SHOWN), np.float32).reshape(SHOWN, *stimulus.shape)


def _density(law: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """Places and densities; or atoms, their probabilities, and true."""
    from ..marginals import Empirical, TwoPoint

    if isinstance(law, TwoPoint):
        return np.array([-law.sd, law.sd]), np.array([0.5, 0.5]), True
    if isinstance(law, Empirical) and len(places := np.unique(law.values)) <= FEW:
        last = np.searchsorted(law.values, places, side="right") - 1
        return places, np.diff(np.asarray(law.mass)[last], prepend=0.0), True
    ends = np.asarray(law.quantile(np.array([1e-3, 1 - 1e-3])), np.float64)
    width = (ends[1] - ends[0]) / PLACES
    edges = np.linspace(ends[0] - 5 * width, ends[1] + 5 * width, PLACES + 11)
    return (
        (edges[1:] + edges[:-1]) / 2,
        np.diff(np.asarray(law.cdf(edges), np.float64)) / np.diff(edges),
        False,
    )


# -- a run ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Run:
    """One run: what is sent to the page, in which order.

    Args:
        request: What was asked for.
        limits: That hold for it.
        store: Where its result goes; None: nowhere.
        send: Takes the messages.
        stop: Returns why the run is to stop: `pause`, `cancel`, `time`, or empty to go on.
    """

    request: say.Request
    limits: Limits
    store: Store | None
    send: Send
    stop: Stop
    sent: int = 0  # records,
    told: float = 0.0  # and when the last ones were
    gated: float = 0.0  # when gates were last sent,
    cost: float = 0.0  # and how long they took

    def __post_init__(self):
        self.experiment = self.limits.read(self.request.experiment)
        self.method: Any = self.experiment.method
        self.at = np.array([*range(0, self.method.steps, self.method.every), self.method.steps])

    def __call__(self) -> None:
        """Carry it out."""
        begin, digest = time.perf_counter(), self.experiment.digest
        fresh = self.request.checkpoint is None and not self.request.one_record
        if fresh and self.store is not None and digest in self.store:
            self._show(self.store.load(digest))
            return
        self.sent = self._kept_records()
        # Looked at after every record: left to itself, the device is given a second of work at a time.
        found = self.experiment.run(
            on_progress=self._tell, cancel=self._stopped, checkpoint=self, poll_interval=0.0
        )
        self._rest({name: values[:, self.sent :] for name, values in found.series.items()})
        why, cancelled = self.stop(), found.stopped == "cancelled"
        if why == "cancel" and cancelled:
            return
        self._gates(found)
        note = ""
        if cancelled and why == "time":
            note = f"Paused at the limit of {self.limits.seconds:.0f} s; it can be continued from here."
        stored = False
        if not cancelled and self.store is not None:
            stored, note = self._save(found)
        seconds = time.perf_counter() - begin
        self.send(
            say.Done(found.stopped, digest, seconds, tuple(map(str, found.outcome)), stored, note)
        )

    def load(self) -> dict[str, np.ndarray] | None:
        """The checkpoint to go on from."""
        return self.request.checkpoint

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        """Send a checkpoint, if anybody wants it; after all the records that it holds."""
        if self.stop() == "cancel":
            return
        head = "record_"
        kept = {
            name.removeprefix(head): values
            for name, values in arrays.items()
            if name.startswith(head)
        }
        self._rest({name: np.moveaxis(values[self.sent :], 0, 1) for name, values in kept.items()})
        self.send(say.Checkpoint(arrays))

    def _stopped(self) -> bool:
        return self.request.one_record or bool(
            self.stop()
        )  # asked after a record, not before the first

    def _kept_records(self) -> int:
        """How many records a checkpoint holds: the page has them."""
        kept = [
            len(values)
            for name, values in (self.request.checkpoint or {}).items()
            if name.startswith("record_")
        ]
        return min(kept, default=0)

    def _tell(self, progress: Any) -> None:
        new, now = progress.records[self.sent :], time.perf_counter()
        if not new or now - self.told < EVERY:
            return
        series = {name: np.stack([np.asarray(one[name]) for one in new], axis=1) for name in new[0]}
        self._rest(series)
        self.told = now = time.perf_counter()
        if self.sent > 1 and now - self.gated > AGAIN and self.cost < CHEAP and "weights" in new[0]:
            found = self._so_far(progress.records)
            self._gates(found)
            # The first time includes the compilation, or finding out that there are none.
            self.cost = time.perf_counter() - now if self.gated else 0.0
            self.gated = time.perf_counter()

    def _rest(self, series: dict[str, np.ndarray]) -> None:
        """Send the records that come next, each (member, time, …); there may be none."""
        count = next((values.shape[1] for values in series.values()), 0)
        if count:
            self._send(self.at[self.sent : self.sent + count], series)
            self.sent += count

    def _send(self, steps: np.ndarray, series: dict[str, np.ndarray]) -> None:
        shape, axes = self.experiment.task.shape, len(self.experiment.task.shape)
        if "weights" in series:
            lead = series["weights"].shape[:2]
            series["weights"] = series["weights"].reshape(*lead, -1, *shape)
            series.setdefault("ipr", inverse_participation_ratio(series["weights"], axes))
        self.send(say.Records(steps, _times(self.method, steps), series))

    def _show(self, found: Trajectory) -> None:
        """Send a result of the store as a run that is over."""
        self._send(found.steps, dict(found.series))
        self._gates(found)
        seconds = float(found.manifest.get("run_seconds", 0.0))
        outcomes = tuple(map(str, found.outcome))
        self.send(
            say.Done(
                found.stopped,
                self.experiment.digest,
                seconds,
                outcomes,
                True,
                "Found in the store.",
            )
        )

    def _so_far(self, records: Any) -> Trajectory:
        """The records of a few members as far as they go, on the axes that gates are taken along."""
        count = len(records)
        which = np.unique(np.linspace(0, count - 1, GRID).round().astype(int))
        names = [name for name in ("weights", "biases") if name in records[0]]
        series = {
            name: np.stack([np.asarray(records[i][name])[:SHOWN] for i in which], axis=1)
            for name in names
        }
        lead = series["weights"].shape[:2]
        series["weights"] = series["weights"].reshape(*lead, -1, *self.experiment.task.shape)
        steps = self.at[which]
        ends = series["weights"][:, 0], series["weights"][:, -1]
        return Trajectory(steps, _times(self.method, steps), *ends, series, (), {}, {})

    def _gates(self, found: Trajectory) -> None:
        made = gates(found, self.experiment)
        if made is not None:
            self.send(made)

    def _save(self, found: Trajectory) -> tuple[bool, str]:
        """Store the result; whether it is, and a note if not."""
        assert self.store is not None
        if stored_bytes(self.store) > self.limits.store_bytes:
            return False, "The store is full: this result is not kept."
        try:
            self.store.save(self.experiment.canonical(), self.experiment.digest, found)
        except InputError as error:
            return False, f"The result is not kept: {error}"
        return True, ""


def stored_bytes(store: Store) -> int:
    """How much the entries of a store take."""
    total = 0
    for digest in store.digests():
        try:
            total += (store.path / digest / "arrays.npz").stat().st_size
        except OSError:  # removed on the way, or damaged
            continue
    return total


def _times(method: Any, steps: np.ndarray) -> np.ndarray:
    return np.multiply.outer(np.asarray(method.learning_rate, np.float64), steps)


# -- beside a run -----------------------------------------------------------------------------------------------


def theory(experiment: Experiment) -> say.Theory:
    """The flow of the best known theory from where the first members start."""
    import jax

    from ..tasks import initial_params
    from ..theory import solve

    method: Any = experiment.method
    task, network = experiment.task, experiment.network
    swept = num_members(task) or num_members(network)
    seeds = method.seed[:SHOWN] if isinstance(method.seed, tuple) else method.seed
    given = experiment.initial.reshape(-1, network.hidden, *task.shape)
    sizes = (method.members, swept or 1, num_members(method) or 1, len(given))
    count = len(seeds) if isinstance(seeds, tuple) else min(SHOWN, max(sizes))
    try:
        first = _first(task), _first(network)
        flow, name, exact = _theory(*first)
        until = float(np.max(method.learning_rate)) * method.steps
        times = np.linspace(0, until, GRID)
        if len(given):
            start = np.broadcast_to(given[:SHOWN], (count, *given.shape[1:]))
        else:
            with jax.enable_x64(experiment.precision == "float64"):
                size = swept or count  # of a sweep, all: its numbers come one a member
                drawn = initial_params(task, network, method.seed if swept else seeds, size)[
                    "weights"
                ]
            start = np.asarray(drawn)[:count].reshape(count, network.hidden, *task.shape)
        more: dict[str, Any] = {"times": times, "tolerance": 1e-6, "seed": 0}
        if swept is None:
            runs = [solve(task, flow, network=network, initial=start, **more)]
        else:
            runs = [
                solve(_at(task, m), flow, network=_at(network, m), initial=start[m : m + 1], **more)
                for m in range(count)
            ]
    except InputError as error:
        return say.Theory("", False, missing=str(error))
    weights, loss = (
        np.concatenate([getattr(one, part) for one in runs]) for part in ("weights", "loss")
    )
    ipr = inverse_participation_ratio(weights, len(task.shape))
    both = dataclasses.replace(
        runs[0], initial=weights[:, 0], final=weights[:, -1], series={"weights": weights}
    )
    made = gates(both, experiment)
    return say.Theory(
        name, exact, times, ipr, weights, loss, None if made is None else made.agreement
    )


def _at(value: Spec, index: int) -> Any:
    return value if num_members(value) is None else member(value, index)


def _theory(task: Any, network: Any) -> tuple[Any, str, bool]:
    """The theory that describes a network on a task best, its name, and whether it is exact.

    Raises:
        InputError: When none does.
    """
    from ..theory import BestKnown, best_for

    best = best_for(task, network) or BestKnown()
    coverage = best.covers(task, network)
    coverage.require()
    return best.coarse(), best.title(task), coverage.exact


def gates(found: Trajectory, experiment: Experiment) -> say.Gates | None:
    """How many stimuli find the gates as at the last record; None where that cannot be told."""
    from ..analysis import gates_along

    if "weights" not in found.series or len(found.steps) < 2:
        return None
    count = len(found.steps)
    which = np.linspace(0, count - 1, GRID).round().astype(int)
    names = [name for name in ("weights", "biases") if name in found.series]
    series = {name: found.series[name][:SHOWN, which][:, :, :NEURONS] for name in names}
    times = found.times[..., which]
    few = dataclasses.replace(
        found,
        steps=found.steps[which],
        times=times[:SHOWN] if times.ndim == 2 else times,
        initial=series["weights"][:, 0],
        final=series["weights"][:, -1],
        series=series,
    )
    biases = _fixed_biases(experiment.network)
    task = experiment.task
    try:
        if num_members(task) is None:
            parts = [gates_along(few, task, reference="final", num=DRAWS, biases=biases)]
        else:
            parts = [
                gates_along(
                    few.members(slice(m, m + 1)),
                    member(task, m),
                    reference="final",
                    num=DRAWS,
                    biases=biases,
                )
                for m in range(few.num_members)
            ]
    except InputError:
        return None
    _, once = np.unique(which, return_index=True)
    agreement = np.concatenate([part.agreement for part in parts])
    return say.Gates(few.times[..., once], agreement[:, once])


def _fixed_biases(network: Any) -> np.ndarray | None:
    """Biases that are not trained, (neuron,)."""
    from ..theory.networks.committee import fixed_biases

    if getattr(network, "bias", "none") not in ("fixed", "halves") or np.ndim(network.bias_value):
        return None
    return fixed_biases(network)[:NEURONS]
