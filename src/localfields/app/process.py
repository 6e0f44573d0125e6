"""A worker process: it takes tasks from a pipe and sends messages back.

It starts from plain bytes, so that nothing is imported before its environment is set. A thread
listens to the pipe meanwhile: it hears that a task is to stop, and that the server is gone.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from typing import Any

from .._start import leave_checks_out

# The stages that processes of each lane carry out, and their priority: the server and what is
# answered at once come first.
STAGES = {"summaries": ("summary",), "theory": ("verdict", "theory"), "runs": ("run",)}
NICENESS = {"summaries": 0, "theory": 5, "runs": 10}


def run_worker(pipe: Any, setup: bytes) -> None:
    """Work until the pipe is closed.

    Args:
        pipe: Takes `("task", number, stage, request)` and `("stop", number, reason)`; sends
            `("ready",)`, `("message", number, message)` and `("idle", number, memory in bytes)`.
        setup: Pickled arguments of `WorkerLoop` after the pipe.
    """
    os.environ["NPROC"] = "1"  # JAX would take every core
    os.environ["JAX_PLATFORMS"] = "cpu"
    leave_checks_out()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    lane, *arguments = pickle.loads(setup)
    os.nice(NICENESS[lane])
    WorkerLoop(pipe, lane, *arguments).work()


class WorkerLoop:
    """The loop of one process.

    Args:
        pipe: To the pool.
        lane: `summaries`, `theory` or `runs`.
        limits: For every request.
        store: Folder of the store, or None.
        warm: JSON of an experiment whose programs are compiled before the first task; may be empty.
        plugins: Modules and files to import first.
    """

    def __init__(
        self, pipe: Any, lane: str, limits: Any, store: str | None, warm: str, plugins: list[str]
    ):
        from .._start import load_plugins, use_compilation_cache
        from ..store import Store

        load_plugins(plugins)
        use_compilation_cache()
        self.pipe, self.lane, self.limits, self.warm = pipe, lane, limits, warm
        self.store = None if store is None else Store(store)
        self.tasks: queue.Queue[tuple[int, str, Any]] = queue.Queue()
        self.stops: dict[int, str] = {}  # why a task is to stop, by its number
        self.lock = threading.Lock()

    def work(self) -> None:
        """Warm up, then carry out one task after another."""
        threading.Thread(target=self._listen, daemon=True).start()
        if self.warm:
            self._warm_up()
        self._send("ready")
        while True:
            number, stage, request = self.tasks.get()
            try:
                self._carry_out(number, stage, request)
            finally:
                self.stops.pop(number, None)
                self._send("idle", number, memory_bytes())

    def _listen(self) -> None:
        try:
            while True:
                kind, number, *rest = self.pipe.recv()
                if kind == "task":
                    self.tasks.put((number, *rest))
                else:
                    self.stops[number] = rest[0]
        except (EOFError, OSError):
            os._exit(0)  # the server is gone

    def _send(self, *parts: Any) -> None:
        with self.lock:
            try:
                self.pipe.send(parts)
            except OSError:
                os._exit(0)

    def _carry_out(self, number: int, stage: str, request: Any) -> None:
        from ..errors import InputError, shorten
        from .messages import Failed
        from .work import carry_out

        def send(message: Any) -> None:
            if self.stops.get(number) != "cancel":
                self._send("message", number, message)

        def stop_reason() -> str:
            return self.stops.get(number, "")

        try:
            carry_out(stage, request, self.limits, self.store, send, stop_reason)
        except InputError as error:
            send(Failed(str(error)))
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            reason = shorten(f"{type(error).__name__}: {error}", 200)
            send(Failed(f"The computation failed unexpectedly ({reason}). Please report this."))

    def _warm_up(self) -> None:
        """Compile what most visitors see first; failures are left to the visitor who meets them."""
        from .messages import Request

        send, store = self._send, self.store
        self._send, self.store = lambda *parts: None, None
        for stage in STAGES[self.lane]:
            self._carry_out(-1, stage, Request("run", self.warm, one_record=True))
        self._send, self.store = send, store


def memory_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
