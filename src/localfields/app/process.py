"""One worker: a process that takes tasks from a pipe and sends messages back.

It is started with plain bytes, so that nothing is imported before its environment is set. A thread listens to the
pipe while the task is computed: it hears that the task is to stop, and that the parent is gone.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from typing import Any

from .._start import leave_checks_out

NICE = {
    "answers": 0,
    "thinking": 5,
    "runs": 10,
}  # the server and what is answered at once come first


def main(pipe: Any, setup: bytes) -> None:
    """Work until the pipe is closed.

    Args:
        pipe: Takes `("task", number, stage, request)` and `("stop", number, why)`; sends `("ready",)`,
            `("message", number, message)` and `("idle", number, bytes of memory)`.
        setup: Pickled arguments of `Worker`, with the lane first.
    """
    os.environ["NPROC"] = "1"  # JAX would take every core
    os.environ["JAX_PLATFORMS"] = "cpu"
    leave_checks_out()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is the parent's, which then closes the pipe
    lane, *rest = pickle.loads(setup)
    os.nice(NICE[lane])
    Worker(pipe, lane, *rest).work()


class Worker:
    """The loop of one process.

    Args:
        pipe: To the pool.
        lane: `answers`, `thinking` or `runs`.
        limits: That hold for every request.
        store: Folder of the store, or None.
        warm: JSON of an experiment to compile the programs of before the first task.
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
        self.stops: dict[int, str] = {}
        self.lock = threading.Lock()

    def work(self) -> None:
        """Warm up, then one task after another."""
        threading.Thread(target=self._listen, daemon=True).start()
        self._warm_up()
        self._send("ready")
        while True:
            number, stage, request = self.tasks.get()
            try:
                self._carry_out(number, stage, request)
            finally:
                self.stops.pop(number, None)
                self._send("idle", number, resident())

    def _listen(self) -> None:
        try:
            while True:
                what, number, *rest = self.pipe.recv()
                if what == "task":
                    self.tasks.put((number, *rest))
                else:
                    self.stops[number] = rest[0]
        except (EOFError, OSError):
            os._exit(0)  # the server is gone, and nobody waits for what is being computed

    def _send(self, *parts: Any) -> None:
        with self.lock:
            try:
                self.pipe.send(parts)
            except OSError:
                os._exit(0)

    def _carry_out(self, number: int, stage: str, request: Any) -> None:
        from ..errors import InputError, shorten
        from . import work
        from .messages import Failed

        def send(message: Any) -> None:
            if self.stops.get(number) != "cancel":
                self._send("message", number, message)

        try:
            work.carry_out(
                stage, request, self.limits, self.store, send, lambda: self.stops.get(number, "")
            )
        except InputError as error:
            send(Failed(str(error)))
        except Exception as error:
            import traceback

            traceback.print_exc(file=sys.stderr)
            what = shorten(f"{type(error).__name__}: {error}", 200)
            send(
                Failed(
                    f"The computation failed in a way that was not foreseen ({what}). Please report it."
                )
            )

    def _warm_up(self) -> None:
        """Compile what most visitors see first; a failure here is told when a visitor meets it."""
        from .messages import Request

        if not self.warm:
            return
        stages = {"answers": ("answer",), "thinking": ("verdict", "theory"), "runs": ("run",)}
        send, store = self._send, self.store
        self._send, self.store = lambda *parts: None, None  # nobody asked for it
        for stage in stages[self.lane]:
            self._carry_out(-1, stage, Request("run", self.warm, one_record=True))
        self._send, self.store = send, store


def resident(pid: int | str = "self") -> int:
    """Memory that a process holds, in bytes; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
