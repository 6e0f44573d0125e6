"""A bounded number of processes that compute for all pages, and the queues in front of them.

There are three lanes, each with processes of its own: `summaries` for what must come at once,
`theory` for verdicts and theories, which may have to be compiled first, and `runs`. A page hears of
its job through a listener, which is called from the pool's one thread.
"""

from __future__ import annotations

import collections
import dataclasses
import multiprocessing
import multiprocessing.connection
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._start import PLUGINS
from ..errors import InputError, show
from . import messages as msg
from .limits import Limits
from .process import STAGES, memory_bytes, run_worker

CHECK_INTERVAL = 0.25  # seconds between checks of time and memory
STARTUP_SECONDS = 180.0  # within which a process must be ready
MAX_DEATHS = 3  # processes of a lane that may die while starting, one after another,
RETRY_SECONDS = 30.0  # before the lane pauses this long
NO_PROCESS = "No process can be started on this machine now. Try again in a minute."

Listener = Callable[[msg.Message], None]


class Job:
    """A request in progress.

    Attributes:
        state: `waiting`, `running`, `done` or `cancelled`.
        position: Place in the queue, 1 for the next; 0 once it runs.
    """

    def __init__(self, pool: Pool, request: msg.Request, listener: Listener, background: bool):
        self._pool, self._listener = pool, listener
        self.request, self.background = request, background
        self.state, self.position = "waiting", 0
        self.resumable = request.checkpoint is not None

    def cancel(self) -> None:
        """End it. A run says `Done` at once, a summary nothing; after that nothing is heard."""
        self._pool.stop(self, "cancel")

    def pause(self) -> None:
        """End a run so that it can be resumed: it says `RunCheckpoint`, then `Done`."""
        self._pool.stop(self, "pause")


@dataclasses.dataclass(eq=False)
class LaneTask:
    """The part of a job that one lane carries out: a summary, a verdict, a theory or a run."""

    job: Job
    stage: str
    lane: str
    number: int

    @property
    def optional(self) -> bool:
        """Whether the job lives on without it."""
        return self.stage in ("verdict", "theory")

    def without(self, reason: str) -> msg.Message:
        """What the page hears in place of the result."""
        if self.stage == "theory":
            return msg.TheoryCurves("", False, missing=reason)
        if self.stage == "verdict":
            return msg.TheoryVerdict("undecided", reason)
        return msg.Failed(reason)


@dataclasses.dataclass(eq=False)
class WorkerProcess:
    """A process as the pool sees it."""

    lane: str
    process: Any
    pipe: Any
    born: float
    ready: bool = False
    task: LaneTask | None = None
    task_start: float = 0.0
    jobs: int = 0
    stop_deadline: float | None = None  # when it must have reacted to being stopped
    death_reason: str = ""  # for the visitor


class Pool:
    """Processes, queues and limits.

    Args:
        workers: Processes for runs.
        limits: Of requests and of the pool itself.
        store: Folder of results; None stores nothing.
        warm: JSON of an experiment whose programs each process compiles before its first task;
            empty for none.

    Raises:
        InputError: If `workers` is not from 1 to 64.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        store: str | Path | None = None,
        warm: str = "",
    ):
        if not isinstance(workers, int) or not 1 <= workers <= 64:
            raise InputError(
                f"`workers` must be a whole number from 1 to 64, got {show(workers)}. One per "
                "core is usual."
            )
        self.limits = Limits() if limits is None else limits
        self.size = {"summaries": 1, "theory": 1, "runs": workers}
        self._store = None if store is None else str(Path(store).absolute())
        self._warm = warm
        self._spawn = multiprocessing.get_context("spawn")
        self._lock = threading.RLock()
        self._queues = {lane: collections.deque[LaneTask]() for lane in STAGES}
        self._workers: list[WorkerProcess] = []
        self._deaths = dict.fromkeys(STAGES, 0)  # of processes that were not ready yet
        self._retry_time = dict.fromkeys(STAGES, 0.0)
        self._outbox: collections.deque[tuple[Job, msg.Message]] = collections.deque()
        self._last_number = 0
        self._closed = False
        self._wake_receiver, self._wake_sender = self._spawn.Pipe(duplex=False)
        self._waking = False
        self._thread = threading.Thread(target=self._run, name="pool", daemon=True)
        self._thread.start()

    # -- for pages -----------------------------------------------------------------------------

    def submit(self, request: msg.Request, listener: Listener, *, background: bool = False) -> Job:
        """Ask for something.

        Args:
            request: What.
            listener: Called with every `Message` from the pool's thread; it must return at once.
            background: Wait until no other request waits.

        Returns:
            The job. If it is rejected, the listener gets `Failed`.
        """
        if request.kind not in msg.REQUEST_KINDS:
            raise InputError(
                f"Unknown kind of request {show(request.kind)}. It must be "
                f"{' or '.join(msg.REQUEST_KINDS)}."
            )
        job = Job(self, request, listener, background)
        with self._lock:
            waiting = sum(len(queue) for queue in self._queues.values())
            if self._closed or waiting >= self.limits.queue:
                job.state = "done"
                full = f"The queue is full: {waiting} requests are waiting. Try again in a minute."
                self._post(job, msg.Failed("The explorer is closing." if self._closed else full))
            elif request.kind == "summary":
                self._enqueue(job, "summary", "summaries")
            else:
                # The page of a resumed run has its theory already, a background run has no use.
                if request.checkpoint is None and not background:
                    self._enqueue(job, "theory", "theory")
                self._enqueue(job, "run", "runs")
        self._wake()
        return job

    def stop(self, job: Job, reason: str) -> None:
        """End a job: `cancel`, or `pause` so that a run can be resumed."""
        is_run = job.request.kind == "run"
        reason = reason if is_run else "cancel"
        with self._lock:
            if job.state in ("done", "cancelled"):
                return
            for queue in self._queues.values():
                for task in [task for task in queue if task.job is job]:
                    queue.remove(task)
            for worker in self._workers:
                if worker.task is not None and worker.task.job is job:
                    self._request_stop(worker, reason)
            waiting = job.state == "waiting"
            if reason == "cancel" or waiting:
                job.state = "cancelled"
                if is_run:
                    if waiting and reason == "pause" and job.request.checkpoint is not None:
                        self._post(job, msg.RunCheckpoint(job.request.checkpoint))
                    self._post(job, msg.Done("cancelled", "", 0.0))
        self._wake()

    def close(self) -> None:
        """End all processes; requests in progress are dropped."""
        with self._lock:
            self._closed = True
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    def processes(self) -> list[WorkerProcess]:
        """The processes that there are now."""
        with self._lock:
            return list(self._workers)

    # -- the pool's thread -----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                with self._lock:
                    if self._closed:
                        break
                    self._start_processes()
                    self._dispatch()
                    pipes = {worker.pipe: worker for worker in self._workers}
                self._deliver()
                ready = multiprocessing.connection.wait(
                    [self._wake_receiver, *pipes], CHECK_INTERVAL
                )
                with self._lock:
                    for pipe in ready:
                        if pipe is self._wake_receiver:
                            self._wake_receiver.recv()
                            self._waking = False
                        else:
                            self._receive(pipes[pipe])
                    self._check_processes()
                self._deliver()
        finally:
            with self._lock:
                for worker in self._workers:
                    worker.process.kill()
                for worker in self._workers:
                    worker.process.join(timeout=5)
                    worker.pipe.close()
                self._workers.clear()

    def _wake(self) -> None:
        """Wake the thread; once is enough until it has woken."""
        with self._lock:
            if not self._waking:
                self._waking = True
                self._wake_sender.send(None)

    def _post(self, job: Job, message: msg.Message) -> None:
        self._outbox.append((job, message))

    def _deliver(self) -> None:
        """Call the listeners; without the lock, as they may take one of their own."""
        while True:
            with self._lock:
                if not self._outbox:
                    return
                job, message = self._outbox.popleft()
                last = isinstance(message, (msg.Done, msg.RunCheckpoint))
                if job.state == "cancelled" and not last:
                    continue
            try:
                job._listener(message)
            except Exception:
                traceback.print_exc(file=sys.stderr)

    def _enqueue(self, job: Job, stage: str, lane: str) -> None:
        self._last_number += 1
        queue = self._queues[lane]
        place = len(queue)
        if not job.background:
            place = next((i for i, task in enumerate(queue) if task.job.background), place)
        queue.insert(place, LaneTask(job, stage, lane, self._last_number))

    def _start_processes(self) -> None:
        """Start those that are missing; summaries first, as visitors ask for them first."""
        for lane in STAGES:
            if time.monotonic() < self._retry_time[lane]:
                continue
            running = sum(worker.lane == lane for worker in self._workers)
            for _ in range(self.size[lane] - running):
                ours, theirs = self._spawn.Pipe()
                setup = pickle.dumps((lane, self.limits, self._store, self._warm, list(PLUGINS)))
                name = f"localfields-{lane}"
                process = self._spawn.Process(
                    target=run_worker, args=(theirs, setup), name=name, daemon=True
                )
                process.start()
                theirs.close()
                self._workers.append(WorkerProcess(lane, process, ours, time.monotonic()))

    def _dispatch(self) -> None:
        """Give waiting tasks to idle processes, and tell the others their places in the queue."""
        for worker in self._workers:
            queue = self._queues[worker.lane]
            if not worker.ready or worker.task is not None or not queue:
                continue
            task = queue.popleft()
            try:
                worker.pipe.send(("task", task.number, task.stage, task.job.request))
            except OSError:  # it died: the task waits for the next one
                queue.appendleft(task)
                continue
            worker.task, worker.task_start = task, time.monotonic()
            worker.stop_deadline, worker.death_reason = None, ""
            if not task.optional:
                task.job.state, task.job.position = "running", 0
                self._post(task.job, msg.Started())
        for lane in ("summaries", "runs"):
            for place, task in enumerate(self._queues[lane], start=1):
                if task.job.position != place:
                    task.job.position = place
                    self._post(task.job, msg.Queued(place))

    def _receive(self, worker: WorkerProcess) -> None:
        """Take everything that a process has sent, or notice that it is dead."""
        try:
            while worker in self._workers and worker.pipe.poll():
                kind, *rest = worker.pipe.recv()
                if kind == "ready":
                    worker.ready, self._deaths[worker.lane] = True, 0
                elif kind == "message":
                    self._forward(worker, *rest)
                elif kind == "idle":
                    self._finish_task(worker, rest[1])
        except (EOFError, OSError):
            self._remove(worker)

    def _forward(self, worker: WorkerProcess, number: int, message: msg.Message) -> None:
        task = worker.task
        if task is None or task.number != number:
            return
        job = task.job
        if task.optional and isinstance(message, msg.Failed):
            message = task.without(message.message)
        if job.state == "running" or task.stage == "theory":
            job.resumable |= isinstance(message, msg.RunCheckpoint)
            self._post(job, message)
            if isinstance(message, msg.LAST_MESSAGES):
                job.state = "done"
            if isinstance(message, msg.TaskSummary):
                self._enqueue(job, "verdict", "theory")

    def _finish_task(self, worker: WorkerProcess, size: int) -> None:
        """A process is idle again; an old or large one makes room for a new one."""
        worker.task, worker.stop_deadline = None, None
        worker.jobs += 1
        if worker.jobs >= self.limits.worker_jobs or size > self.limits.worker_idle_bytes:
            self._workers.remove(worker)
            worker.pipe.close()  # it ends by itself
            worker.process.join(timeout=0.2)

    def _request_stop(self, worker: WorkerProcess, reason: str) -> None:
        assert worker.task is not None
        if worker.lane != "runs":
            return  # its result is not forwarded
        try:
            worker.pipe.send(("stop", worker.task.number, reason))
        except OSError:
            return
        if worker.stop_deadline is None:
            worker.stop_deadline = time.monotonic() + self.limits.stop_seconds

    def _check_processes(self) -> None:
        """Compare every process with its limits of time and memory."""
        now, limits = time.monotonic(), self.limits
        for worker in list(self._workers):
            if not worker.ready:
                if now - worker.born > STARTUP_SECONDS:
                    self._kill(worker, "")
                continue
            if worker.task is None:
                continue
            seconds, deadline = now - worker.task_start, worker.stop_deadline
            if worker.lane == "runs":
                if deadline is None and seconds > limits.run_seconds:
                    self._request_stop(worker, "time")
                elif deadline is not None and now > deadline:
                    reason = f"It did not stop within {limits.stop_seconds:g} s of being asked to"
                    self._kill(worker, reason)
            elif seconds > limits.theory_seconds:
                self._kill(worker, f"It took longer than {limits.theory_seconds:g} s")
            if memory_bytes(worker.process.pid) > limits.worker_bytes:
                gigabytes = limits.worker_bytes / 1e9
                self._kill(worker, f"It took more than {gigabytes:g} GB of memory")

    def _kill(self, worker: WorkerProcess, reason: str) -> None:
        worker.death_reason = reason
        worker.process.kill()
        self._remove(worker)

    def _remove(self, worker: WorkerProcess) -> None:
        """Tell the visitor of a dead process; the next `_start_processes` replaces it."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join(timeout=5)
        lane, task = worker.lane, worker.task
        if not worker.ready:
            self._deaths[lane] += 1
            if self._deaths[lane] >= MAX_DEATHS:
                self._suspend(lane)
        if task is None:
            return
        job = task.job
        reason = worker.death_reason or "Its process ended, out of memory or from outside"
        if task.optional:
            if job.state != "cancelled":
                self._post(job, task.without(f"{reason}."))
            if task.stage == "verdict" and job.state == "running":
                job.state = "done"
        elif job.state == "running":
            job.state = "done"
            if job.request.kind == "run":
                last = "it can be continued from its last checkpoint"
                reason += f"; {last if job.resumable else 'start it again'}"
            self._post(job, msg.Lost(f"{reason}."))

    def _suspend(self, lane: str) -> None:
        """No process of a lane starts: tell those who wait, and try again later."""
        self._deaths[lane] = 0
        self._retry_time[lane] = time.monotonic() + RETRY_SECONDS
        for task in self._queues[lane]:
            self._post(task.job, task.without(NO_PROCESS))
            if task.stage != "theory":
                task.job.state = "done"
        self._queues[lane].clear()
