"""A bounded number of processes that compute for all pages, and the queues before them.

There are three lanes with processes of their own: `answers` for what must come at once, `thinking` for verdicts and
theories, which may have to be compiled first, and `runs`. Pages hear from their jobs through a function that is called
from the pool's one thread.
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
from . import messages as say
from .limits import Limits
from .process import main, resident

LANES: tuple[str, ...] = ("answers", "thinking", "runs")
TICK = 0.25  # seconds between looks at the clock and at memory
STARTING = 180.0  # seconds within which a process must be ready
TRIES = 3  # processes of a lane that may die at the start, one after another,
REST = 30.0  # before the lane waits so long

Listener = Callable[[say.Message], None]


class Job:
    """A request under way.

    Attributes:
        state: `waiting`, `running`, `done` or `cancelled`.
        position: Place in the queue, 1 for the next; 0 once it runs.
    """

    def __init__(self, pool: Pool, request: say.Request, listener: Listener, background: bool):
        self._pool, self._listener = pool, listener
        self.request, self.background = request, background
        self.state, self.position = "waiting", 0
        self.kept = request.checkpoint is not None  # whether it could be continued

    def cancel(self) -> None:
        """End it. A run says `Done` at once, an answer nothing; after that nothing more is heard."""
        self._pool.stop(self, "cancel")

    def pause(self) -> None:
        """End a run and keep what it needs to go on: it says `Checkpoint`, then `Done`."""
        self._pool.stop(self, "pause")


@dataclasses.dataclass(eq=False)
class Task:
    """A part of a job for one lane."""

    job: Job
    stage: str
    lane: str
    number: int


@dataclasses.dataclass(eq=False)
class Worker:
    """A process as the pool sees it."""

    lane: str
    process: Any
    pipe: Any
    born: float
    ready: bool = False
    task: Task | None = None
    since: float = 0.0  # when its task began
    jobs: int = 0
    stop_by: float | None = None  # when it must have reacted
    why: str = ""  # why it was ended, in words for the visitor


class Pool:
    """Processes, queues, limits.

    Args:
        workers: Processes for runs.
        answerers: Processes for answers.
        limits: Of requests and of the pool itself.
        store: Folder of results; None keeps none.
        warm: JSON of an experiment whose programs each process compiles before its first task; empty: none.

    Raises:
        InputError: For a number of processes that is none.
    """

    def __init__(
        self,
        workers: int = 2,
        answerers: int = 1,
        limits: Limits | None = None,
        store: str | Path | None = None,
        warm: str | None = None,
    ):
        for name, count in (("workers", workers), ("answerers", answerers)):
            if not isinstance(count, int) or not 1 <= count <= 64:
                raise InputError(
                    f"`{name}` must be a whole number from 1 to 64, got {show(count)}. One per "
                    "core is usual."
                )
        self.limits = Limits() if limits is None else limits
        self.size = {"answers": answerers, "thinking": 1, "runs": workers}
        self._store = None if store is None else str(Path(store).absolute())
        self._warm = _usual() if warm is None else warm
        self._spawn = multiprocessing.get_context("spawn")
        self._lock = threading.Condition(threading.RLock())
        self._queues: dict[str, collections.deque[Task]] = {
            lane: collections.deque() for lane in LANES
        }
        self._workers: list[Worker] = []
        self._deaths = dict.fromkeys(LANES, 0)  # of processes that were not ready yet
        self._wait_until = dict.fromkeys(LANES, 0.0)
        self._outbox: collections.deque[tuple[Job, say.Message]] = collections.deque()
        self._numbers = 0
        self._closed = False
        self._woken, self._wake = self._spawn.Pipe(duplex=False)
        self._roused = False
        self._thread = threading.Thread(target=self._run, name="pool", daemon=True)
        self._thread.start()

    # -- for pages ----------------------------------------------------------------------------------------------

    def submit(self, request: say.Request, listener: Listener, *, background: bool = False) -> Job:
        """Ask for something.

        Args:
            request: What.
            listener: Called with every `Message`, from the pool's thread: it must return at once.
            background: Runs only while no other request waits.

        Returns:
            The job. A refusal comes to the listener, as `Failed`.
        """
        if request.kind not in say.KINDS:
            raise InputError(
                f"Unknown kind of request {show(request.kind)}. It must be "
                f"{' or '.join(say.KINDS)}."
            )
        job = Job(self, request, listener, background)
        with self._lock:
            lane, stage = ("answers", "answer") if request.kind == "answer" else ("runs", "run")
            waiting = sum(len(one) for one in self._queues.values())
            if self._closed or waiting >= self.limits.queue:
                job.state = "done"
                words = f"The queue is full: {waiting} requests are waiting. Try again in a minute."
                self._post(
                    job, say.Failed("The explorer is being closed." if self._closed else words)
                )
            else:
                if request.kind == "run" and request.checkpoint is None and not background:
                    self._enter(job, "theory", "thinking")
                self._enter(job, stage, lane)
        self._rouse()
        return job

    def stop(self, job: Job, why: str) -> None:
        """End a job: `cancel`, or `pause` to keep what a run needs to go on."""
        why = why if job.request.kind == "run" else "cancel"
        with self._lock:
            if job.state in ("done", "cancelled"):
                return
            for queue in self._queues.values():
                for task in [task for task in queue if task.job is job]:
                    queue.remove(task)
            for worker in self._workers:
                if worker.task is not None and worker.task.job is job:
                    self._tell_to_stop(worker, why)
            waiting = job.state == "waiting"
            if why == "cancel" or waiting:
                job.state = "cancelled"
                if job.request.kind == "run":
                    if waiting and why == "pause" and job.request.checkpoint is not None:
                        self._post(job, say.Checkpoint(job.request.checkpoint))
                    self._post(job, say.Done("cancelled", "", 0.0))
        self._rouse()

    def close(self) -> None:
        """End all processes; requests under way are dropped."""
        with self._lock:
            self._closed = True
        self._rouse()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def wait_ready(self, seconds: float = STARTING) -> bool:
        """Wait until every process has warmed up; false if that takes longer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._lock:
                ready = [worker for worker in self._workers if worker.ready]
                if len(ready) >= sum(self.size.values()):
                    return True
            time.sleep(0.05)
        return False

    def processes(self) -> list[dict[str, Any]]:
        """The processes there are: lane, pid, whether ready and busy, memory in bytes."""
        with self._lock:
            return [
                {
                    "lane": one.lane,
                    "pid": one.process.pid,
                    "ready": one.ready,
                    "busy": one.task is not None,
                    "bytes": resident(one.process.pid),
                }
                for one in self._workers
            ]

    # -- the pool's thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                with self._lock:
                    if self._closed:
                        break
                    self._fill()
                    self._dispatch()
                    pipes = {worker.pipe: worker for worker in self._workers}
                self._deliver()
                ready = multiprocessing.connection.wait([self._woken, *pipes], TICK)
                with self._lock:
                    for pipe in ready:
                        if pipe is self._woken:
                            self._woken.recv()
                            self._roused = False
                        else:
                            self._hear(pipes[pipe])
                    self._watch()
                self._deliver()
        finally:
            with self._lock:
                for worker in self._workers:
                    worker.process.kill()
                for worker in self._workers:
                    worker.process.join(timeout=5)
                    worker.pipe.close()
                self._workers.clear()

    def _rouse(self) -> None:
        """Wake the thread; once is enough until it has woken."""
        with self._lock:
            if not self._roused:
                self._roused = True
                self._wake.send(None)

    def _post(self, job: Job, message: say.Message) -> None:
        self._outbox.append((job, message))

    def _deliver(self) -> None:
        """Call the listeners; without the lock, as they may take one of their own."""
        while True:
            with self._lock:
                if not self._outbox:
                    return
                job, message = self._outbox.popleft()
                silent = job.state == "cancelled" and not isinstance(
                    message, (say.Done, say.Checkpoint)
                )
            if silent:
                continue
            try:
                job._listener(message)
            except Exception:
                traceback.print_exc(file=sys.stderr)

    def _enter(self, job: Job, stage: str, lane: str) -> None:
        self._numbers += 1
        task, queue = Task(job, stage, lane, self._numbers), self._queues[lane]
        if not job.background:
            place = next((i for i, other in enumerate(queue) if other.job.background), len(queue))
            queue.insert(place, task)
        else:
            queue.append(task)

    def _fill(self) -> None:
        """Start the processes that are missing; answers first, as they are asked for first."""
        now = time.monotonic()
        for lane in LANES:
            have = sum(worker.lane == lane for worker in self._workers)
            for _ in range(self.size[lane] - have if now >= self._wait_until[lane] else 0):
                here, there = self._spawn.Pipe()
                setup = pickle.dumps((lane, self.limits, self._store, self._warm, list(PLUGINS)))
                process = self._spawn.Process(
                    target=main, args=(there, setup), name=f"localfields-{lane}", daemon=True
                )
                process.start()
                there.close()
                self._workers.append(Worker(lane, process, here, time.monotonic()))

    def _dispatch(self) -> None:
        for worker in self._workers:
            queue = self._queues[worker.lane]
            if worker.ready and worker.task is None and queue:
                task = queue.popleft()
                try:
                    worker.pipe.send(("task", task.number, task.stage, task.job.request))
                except OSError:  # it died: the task waits for the next
                    queue.appendleft(task)
                    continue
                worker.task, worker.since = task, time.monotonic()
                worker.stop_by, worker.why = None, ""
                if task.stage in ("answer", "run"):
                    task.job.state, task.job.position = "running", 0
                    self._post(task.job, say.Started())
        for lane in ("answers", "runs"):
            for place, task in enumerate(self._queues[lane], start=1):
                if task.job.position != place:
                    task.job.position = place
                    self._post(task.job, say.Queued(place))

    def _hear(self, worker: Worker) -> None:
        """Everything that a process has sent; or that it is dead."""
        try:
            while worker.pipe.poll():
                what, *rest = worker.pipe.recv()
                if what == "ready":
                    worker.ready, self._deaths[worker.lane] = True, 0
                elif what == "message":
                    self._pass_on(worker, *rest)
                elif what == "idle":
                    self._ended(worker, rest[1])
                if worker not in self._workers:
                    return
        except (EOFError, OSError):
            self._bury(worker)

    def _pass_on(self, worker: Worker, number: int, message: say.Message) -> None:
        task = worker.task
        if task is None or task.number != number:
            return
        job = task.job
        if task.stage in ("verdict", "theory") and isinstance(message, say.Failed):
            message = _without(task.stage, message.message)
        if job.state == "running" or task.stage == "theory":
            job.kept = job.kept or isinstance(message, say.Checkpoint)
            self._post(job, message)
            if isinstance(message, say.ENDS):
                job.state = "done"
            if isinstance(message, say.Answer):
                self._enter(job, "verdict", "thinking")

    def _ended(self, worker: Worker, size: int) -> None:
        """A process is idle again; one that is old or large makes room for a new one."""
        worker.task, worker.stop_by = None, None
        worker.jobs += 1
        if worker.jobs >= self.limits.worker_jobs or size > self.limits.worker_bytes:
            self._workers.remove(worker)
            worker.pipe.close()  # it ends by itself
            worker.process.join(timeout=0.2)

    def _tell_to_stop(self, worker: Worker, why: str) -> None:
        assert worker.task is not None
        if worker.task.lane != "runs":
            return  # what comes is not passed on
        try:
            worker.pipe.send(("stop", worker.task.number, why))
        except OSError:
            return
        if worker.stop_by is None:
            worker.stop_by = time.monotonic() + self.limits.patience

    def _watch(self) -> None:
        """Hold every process against the clock and its memory."""
        now = time.monotonic()
        for worker in list(self._workers):
            if not worker.ready:
                if now - worker.born > STARTING:
                    self._end(worker, "")
                continue
            if worker.task is None:
                continue
            took = now - worker.since
            if worker.lane == "runs":
                if worker.stop_by is None and took > self.limits.seconds:
                    self._tell_to_stop(worker, "time")
                elif worker.stop_by is not None and now > worker.stop_by:
                    self._end(
                        worker,
                        f"It did not stop within {self.limits.patience:g} s of being asked to",
                    )
            elif took > self.limits.thinking:
                self._end(worker, f"It took longer than {self.limits.thinking:g} s")
            if resident(worker.process.pid) > self.limits.worker_most:
                self._end(
                    worker, f"It took more than {self.limits.worker_most / 1e9:g} GB of memory"
                )

    def _end(self, worker: Worker, why: str) -> None:
        worker.why = why
        worker.process.kill()
        self._bury(worker)

    def _bury(self, worker: Worker) -> None:
        """A process is dead: tell its visitor. The next one is started by itself."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join(timeout=5)
        if not worker.ready:
            self._deaths[worker.lane] += 1
            if self._deaths[worker.lane] >= TRIES:
                self._give_up(worker.lane)
        task = worker.task
        if task is None:
            return
        job = task.job
        why = worker.why or "The process that computed it ended, out of memory or from outside"
        if task.stage in ("verdict", "theory"):
            if job.state != "cancelled":
                self._post(job, _without(task.stage, f"{why}."))
            if task.stage == "verdict" and job.state == "running":
                job.state = "done"
        elif job.state == "running":
            job.state = "done"
            rest = "it can be continued from its last checkpoint" if job.kept else "start it again"
            self._post(job, say.Lost(f"{why}; {rest}." if job.request.kind == "run" else f"{why}."))

    def _give_up(self, lane: str) -> None:
        """No process of a lane starts: those who wait are told, and it is tried again later."""
        self._deaths[lane] = 0
        self._wait_until[lane] = time.monotonic() + REST
        for task in self._queues[lane]:
            words = "Processes that compute cannot be started on this machine now; try again in a minute."
            if task.stage in ("verdict", "theory"):
                self._post(task.job, _without(task.stage, words))
            else:
                self._post(task.job, say.Failed(words))
            if task.stage != "theory":
                task.job.state = "done"
        self._queues[lane].clear()


def _without(stage: str, words: str) -> say.Message:
    """What is sent in place of a verdict or a theory that there is none of."""
    return (
        say.Theory("", False, missing=words)
        if stage == "theory"
        else say.Verdict("undecided", words)
    )


def _usual() -> str:
    """The experiment that processes warm up on: the default one, short."""
    from ..experiments import Experiment, Training

    return Experiment(method=Training(steps=20, members=4)).canonical()
