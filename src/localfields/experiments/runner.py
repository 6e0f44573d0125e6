"""Carrying out sweeps: every ensemble once, failures listed, and where it was interrupted it goes on."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, show
from ..store import Store
from .cluster import Cluster, Report, compute, modules_of, told
from .results import Failure, SweepResult
from .sweep import Ensemble, Sweep, sweep_from


@dataclasses.dataclass(frozen=True)
class SweepProgress:
    """Where a sweep is: points done (a part of one while it trains), found in the store, and failed."""

    done: float
    total: int
    found: int
    failed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Points a second, without those found."""
        return (self.done - self.found) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Time to go at that rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else float("inf")


def run_sweep(
    sweep: Sweep,
    store: Store | str | Path | None = None,
    *,
    cluster: str | Cluster | None = None,
    on_progress: Callable[[SweepProgress], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> SweepResult:
    """Carry out a sweep; what is in the store already is not computed again.

    Where an ensemble fails its halves are tried, down to single points, so that one bad value costs one point.

    Args:
        sweep: What to compute.
        store: A store or its folder; by default `$LOCALFIELDS_STORE`, or `./runs`. Workers must see the same folder.
        cluster: Where: here when left out, `local:2`, `tcp://host:8786` or `slurm:4`.
        on_progress: Called with a `SweepProgress`.
        cancel: Called now and then; the sweep stops when it returns true. Ctrl-C does the same.

    Returns:
        A `SweepResult`; its `failures` say what could not be computed.

    Raises:
        InputError: When the sweep is none, not one of its points can be made, or the cluster is not found.

    Example:
        >>> import tempfile
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
        >>> base = lf.Experiment(task, method=lf.Training(steps=10, batch=20))
        >>> sweep = lf.Sweep(base, {"coupling[1]": [0.5, 0.9]}, seeds=3)
        >>> lf.experiments.run_sweep(sweep, tempfile.mkdtemp()).dataset()["ipr"].sizes
        Frozen({'coupling[1]': 2, 'seed': 3, 'neuron': 1})
    """
    if not isinstance(sweep, Sweep):
        raise InputError(
            "`sweep` must be a Sweep, such as `lf.Sweep(lf.Experiment(), {'gain': [1, 10]}, "
            "seeds=5)`, "
            f"got {show(sweep)}."
        )
    store = store if isinstance(store, Store) else Store(store)
    where = Cluster.of(cluster) if isinstance(cluster, str) else cluster
    work = _Work(sweep, store, on_progress)
    work.prepare()
    try:
        work.keep()
        if work.waiting and where is None:
            work.run_here(cancel)
        elif work.waiting and where is not None:
            with where.connect(len(work.waiting)) as client:
                work.run_on(client, cancel)
    except KeyboardInterrupt:
        work.stopped = "cancelled"
    work.keep()
    return work.result()


def stored_points(sweep: Sweep, store: Store) -> int:
    """How many points of a sweep are in the store."""
    divided = _divided(sweep, store)
    waiting, count = sweep.ensembles(), 0
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(InputError):
            if one.digest in store:
                count += len(one.points)
                continue
        if one.points in divided:
            waiting += one.halves()
    return count


def _divided(sweep: Sweep, store: Store) -> set[tuple[int, ...]]:
    if sweep.digest not in store.list_sweeps():
        return set()
    return {tuple(one) for one in json.loads(store.load_sweep(sweep.digest)).get("divided", [])}


@dataclasses.dataclass
class _Work:
    """A sweep under way."""

    sweep: Sweep
    store: Store
    on_progress: Callable[[SweepProgress], Any] | None
    waiting: list[Ensemble] = dataclasses.field(default_factory=list)
    parts: list[Ensemble] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    divided: list[Ensemble] = dataclasses.field(default_factory=list)
    found: int = 0
    stopped: str = "finished"
    begin: float = dataclasses.field(default_factory=time.perf_counter)

    def prepare(self) -> None:
        """Make every ensemble, and look which are stored; values that do not fit together fail here."""
        ensembles, self.waiting = self.sweep.ensembles(), []
        while ensembles:
            self._sort(ensembles.pop(0), ensembles)
        if not self.waiting and not self.parts and self.failures:
            raise InputError(self.failures[0].message)

    def _sort(self, one: Ensemble, others: list[Ensemble]) -> None:
        try:
            stored = one.digest in self.store
        except InputError as error:
            others[:0] = self._apart(one, str(error))
            return
        if stored:
            self.parts.append(one)
            self.found += len(one.points)
        else:
            self.waiting.append(one)

    def _apart(self, one: Ensemble, message: str) -> list[Ensemble]:
        """The halves of an ensemble that failed; of a single point, a failure."""
        if len(one.points) > 1:
            self.divided.append(one)
            return one.halves()
        self.failures.append(Failure(one.points, message))
        return []

    def settle(self, one: Ensemble, report: Report) -> list[Ensemble]:
        """Take note of how an ensemble ended; returns what is to be run in its place."""
        if report.end == "done" and one.digest not in self.store:
            advice = "Put the store on a disk that all workers see."
            report = Report(
                one.digest,
                "failed",
                f"A worker has stored it elsewhere than in {self.store.path}. {advice}",
            )
        if report.end == "done":
            self.parts.append(one)
        elif report.end == "cancelled":
            self.stopped = "cancelled"
        elif report.end == "divide":
            before = len(self.waiting)
            for half in self._apart(one, report.message):
                self._sort(half, self.waiting)
            new, self.waiting = self.waiting[before:], self.waiting[:before]
            self.tell()
            return new
        else:
            self.failures.append(Failure(one.points, report.message))
        self.tell()
        return []

    def run_here(self, cancel: Callable[[], bool] | None) -> None:
        """One after another, in this process."""
        self.tell()
        while self.waiting and self.stopped == "finished":
            one = self.waiting.pop(0)

            def tell(progress: Any, size: int = len(one.points)) -> None:
                self.tell(size * progress.step / progress.steps)

            report = compute(one.text, str(self.store.path), (), tell, cancel)
            self.waiting[:0] = self.settle(one, report)
            if cancel is not None and self.waiting and cancel():
                self.stopped = "cancelled"

    def run_on(self, client: Any, cancel: Callable[[], bool] | None) -> None:
        """As tasks of a Dask client."""
        from distributed import as_completed

        modules = modules_of(self.sweep.base)
        running: dict[Any, Ensemble] = {}

        def submit(ensembles: Sequence[Ensemble]) -> list[Any]:
            futures = []
            for one in ensembles:
                key = f"localfields-{one.digest}"
                future = client.submit(
                    compute, one.text, str(self.store.path), modules, key=key, pure=False
                )
                running[future] = one
                futures.append(future)
            return futures

        self.tell()
        try:
            queue = as_completed(submit(self.waiting), raise_errors=False)
            self.waiting = []
            for future in queue:
                one = running.pop(future)
                error = None if future.status == "finished" else future.exception()
                report = (
                    future.result() if error is None else Report(one.digest, "failed", told(error))
                )
                for more in submit(self.settle(one, report)):
                    queue.add(more)
                if cancel is not None and running and cancel():
                    self.stopped = "cancelled"
                    break
        finally:
            if running:
                client.cancel(list(running))

    def tell(self, partly: float = 0.0) -> None:
        """Say where the sweep is."""
        if self.on_progress is None:
            return
        done = sum(len(one.points) for one in (*self.parts, *self.failures)) + partly
        failed = sum(len(one.points) for one in self.failures)
        seconds = time.perf_counter() - self.begin
        self.on_progress(SweepProgress(done, len(self.sweep), self.found, failed, seconds))

    def keep(self) -> None:
        """Write the sweep to the store, with what is not seen from the entries."""
        failures = [{"points": list(one.points), "message": one.message} for one in self.failures]
        divided = [list(one.points) for one in self.divided]
        document = {
            "sweep": json.loads(self.sweep.canonical()),
            "failures": failures,
            "divided": divided,
        }
        self.store.save_sweep(self.sweep.digest, json.dumps(document, allow_nan=False))

    def result(self) -> SweepResult:
        """What came of it."""
        parts = tuple(sorted(self.parts, key=lambda one: one.points))
        messages: dict[str, list[int]] = {}
        for one in sorted(self.failures, key=lambda one: one.points):
            messages.setdefault(one.message, []).extend(one.points)
        failures = tuple(Failure(tuple(points), message) for message, points in messages.items())
        seconds = time.perf_counter() - self.begin
        return SweepResult(
            self.sweep, self.store, parts, failures, self.found, seconds, self.stopped
        )


def stored_sweeps(store: Store) -> Iterator[tuple[str, Sweep]]:
    """Every sweep of a store, with its digest."""
    for digest in store.list_sweeps():
        yield digest, sweep_from(json.loads(store.load_sweep(digest))["sweep"])
