"""Running sweeps: every ensemble once, failures listed; an interrupted sweep resumes."""

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
from .cluster import Cluster, Report, compute, describe_error, modules_of
from .results import Failure, SweepResult
from .sweep import Ensemble, Sweep, sweep_from


@dataclasses.dataclass(frozen=True)
class SweepProgress:
    """Where a sweep is: points done (a fraction of one while it trains), reused, failed."""

    done: float
    total: int
    reused: int
    failed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Points per second, without those reused."""
        return (self.done - self.reused) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Time left at that rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else float("inf")


def run_sweep(
    sweep: Sweep,
    store: Store | str | Path | None = None,
    *,
    cluster: str | Cluster | None = None,
    on_progress: Callable[[SweepProgress], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> SweepResult:
    """Run a sweep; what is in the store already is not computed again.

    If an ensemble fails its halves are tried, down to single points, so that one bad value costs
    one point.

    Args:
        sweep: What to compute.
        store: A store or its folder; by default `$LOCALFIELDS_STORE`, or `./runs`. Workers must see
            the same folder.
        cluster: Where to run: here by default, `local:2`, `tcp://host:8786` or `slurm:4`.
        on_progress: Called with a `SweepProgress`.
        cancel: Called now and then; the sweep stops when it returns true. Ctrl-C does the same.

    Returns:
        A `SweepResult`; its `failures` say what could not be computed.

    Raises:
        InputError: If `sweep` is not a Sweep, no point of it can be made, or the cluster is not
            found.

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
            f"seeds=5)`, got {show(sweep)}."
        )
    store = store if isinstance(store, Store) else Store(store)
    cluster = Cluster.of(cluster) if isinstance(cluster, str) else cluster
    runner = _Runner(sweep, store, on_progress)
    runner.prepare()
    try:
        runner.save()  # now, too: whoever looks while it runs, or after a crash, finds the sweep
        if runner.waiting and cluster is None:
            runner.run_here(cancel)
        elif runner.waiting and cluster is not None:
            with cluster.connect(len(runner.waiting)) as client:
                runner.run_on(client, cancel)
    except KeyboardInterrupt:
        runner.stopped = "cancelled"
    runner.save()
    return runner.result()


def stored_points(sweep: Sweep, store: Store) -> int:
    """How many points of a sweep are in the store."""
    divided = set()
    if sweep.digest in store.list_sweeps():
        document = json.loads(store.load_sweep(sweep.digest))
        divided = {tuple(points) for points in document.get("divided", [])}
    waiting, count = sweep.ensembles(), 0
    while waiting:
        ensemble = waiting.pop()
        with contextlib.suppress(InputError):  # values that do not fit together have no digest
            if ensemble.digest in store:
                count += len(ensemble.points)
                continue
        if ensemble.points in divided:
            waiting += ensemble.halves()
    return count


@dataclasses.dataclass
class _Runner:
    """A sweep under way."""

    sweep: Sweep
    store: Store
    on_progress: Callable[[SweepProgress], Any] | None
    waiting: list[Ensemble] = dataclasses.field(default_factory=list)
    parts: list[Ensemble] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    divided: list[Ensemble] = dataclasses.field(default_factory=list)
    reused: int = 0
    stopped: str = "finished"
    began: float = dataclasses.field(default_factory=time.perf_counter)

    def prepare(self) -> None:
        """Make every ensemble, and see which are stored; values that do not fit together fail."""
        self.waiting = self._unstored(self.sweep.ensembles())
        # A single mistake in a sweep is a failed point; if every point has it, it is in the sweep.
        if not self.waiting and not self.parts and self.failures:
            raise InputError(self.failures[0].message)

    def _unstored(self, ensembles: list[Ensemble]) -> list[Ensemble]:
        """Those to compute; an ensemble that cannot be made is replaced by its halves."""
        unstored = []
        while ensembles:
            ensemble, *ensembles = ensembles
            try:
                stored = ensemble.digest in self.store
            except InputError as error:
                ensembles = self._divide(ensemble, str(error)) + ensembles
                continue
            if stored:
                self.parts.append(ensemble)
                self.reused += len(ensemble.points)
            else:
                unstored.append(ensemble)
        return unstored

    def _divide(self, ensemble: Ensemble, message: str) -> list[Ensemble]:
        """The halves of an ensemble that failed; a single point is a failure."""
        if len(ensemble.points) > 1:
            self.divided.append(ensemble)
            return ensemble.halves()
        self.failures.append(Failure(ensemble.points, message))
        return []

    def finish(self, ensemble: Ensemble, report: Report) -> list[Ensemble]:
        """Note how an ensemble ended; returns what must be run in its place."""
        retries: list[Ensemble] = []
        if report.end == "done" and ensemble.digest not in self.store:
            message = (
                f"A worker has stored it elsewhere than in {self.store.path}. "
                "Put the store on a disk that all workers see."
            )
            self.failures.append(Failure(ensemble.points, message))
        elif report.end == "done":
            self.parts.append(ensemble)
        elif report.end == "cancelled":
            self.stopped = "cancelled"
        elif report.end == "divide":
            retries = self._unstored(self._divide(ensemble, report.message))
        else:
            self.failures.append(Failure(ensemble.points, report.message))
        self.report()
        return retries

    def run_here(self, cancel: Callable[[], bool] | None) -> None:
        """One after another, in this process."""
        self.report()
        while self.waiting and self.stopped == "finished":
            ensemble = self.waiting.pop(0)

            def on_progress(progress: Any, size: int = len(ensemble.points)) -> None:
                self.report(size * progress.step / progress.steps)

            report = compute(ensemble.text, str(self.store.path), (), on_progress, cancel)
            self.waiting[:0] = self.finish(ensemble, report)
            if cancel is not None and self.waiting and cancel():
                self.stopped = "cancelled"

    def run_on(self, client: Any, cancel: Callable[[], bool] | None) -> None:
        """As tasks of a Dask client."""
        from distributed import CancelledError, as_completed

        modules = modules_of(self.sweep.base)
        running: dict[Any, Ensemble] = {}

        def submit(ensembles: Sequence[Ensemble]) -> list[Any]:
            futures = []
            for ensemble in ensembles:
                arguments = (ensemble.text, str(self.store.path), modules)
                key = f"localfields-{ensemble.digest}"
                futures.append(client.submit(compute, *arguments, key=key, pure=False))
                running[futures[-1]] = ensemble
            return futures

        self.report()
        try:
            queue = as_completed(submit(self.waiting), raise_errors=False)
            self.waiting = []
            for future in queue:
                ensemble = running.pop(future)
                try:
                    report = future.result()
                except (OSError, CancelledError):
                    # Tasks report their errors, and we cancel none before the end: this is the
                    # connection to the scheduler.
                    raise self._lost(client) from None
                except Exception as error:  # a worker that died several times
                    report = Report(ensemble.digest, "failed", describe_error(error))
                for retry in submit(self.finish(ensemble, report)):
                    queue.add(retry)
                if cancel is not None and running and cancel():
                    self.stopped = "cancelled"
                    break
        finally:
            if running and client.status == "running":
                client.cancel(list(running))

    def _lost(self, client: Any) -> InputError:
        stored = sum(len(part.points) for part in self.parts)
        self.save()
        return InputError(
            f"The connection to the scheduler at {client.scheduler.address} is lost. {stored} of "
            f"{len(self.sweep)} points are stored; run the sweep again to compute the others."
        )

    def report(self, partly: float = 0.0) -> None:
        """Call `on_progress`; `partly` are points of the ensemble that is being computed."""
        if self.on_progress is None:
            return
        done = sum(len(part.points) for part in (*self.parts, *self.failures)) + partly
        failed = sum(len(failure.points) for failure in self.failures)
        seconds = time.perf_counter() - self.began
        self.on_progress(SweepProgress(done, len(self.sweep), self.reused, failed, seconds))

    def save(self) -> None:
        """Write the sweep to the store, with what the entries do not show."""
        failures = [
            {"points": list(failure.points), "message": failure.message}
            for failure in self.failures
        ]
        document = {
            "sweep": json.loads(self.sweep.canonical()),
            "failures": failures,
            "divided": [list(ensemble.points) for ensemble in self.divided],
        }
        self.store.save_sweep(self.sweep.digest, json.dumps(document, allow_nan=False))

    def result(self) -> SweepResult:
        """What came of it; points that failed for the same reason are one failure."""
        parts = tuple(sorted(self.parts, key=lambda part: part.points))
        messages: dict[str, list[int]] = {}
        for failure in sorted(self.failures, key=lambda failure: failure.points):
            messages.setdefault(failure.message, []).extend(failure.points)
        failures = tuple(Failure(tuple(points), message) for message, points in messages.items())
        seconds = time.perf_counter() - self.began
        return SweepResult(
            self.sweep, self.store, parts, failures, self.reused, seconds, self.stopped
        )


def stored_sweeps(store: Store) -> Iterator[tuple[str, Sweep]]:
    """Every sweep of a store, with its digest."""
    for digest in store.list_sweeps():
        yield digest, sweep_from(json.loads(store.load_sweep(digest))["sweep"])
