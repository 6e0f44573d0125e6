"""What surrounds a command: Ctrl-C, the standard streams, and errors of the system.

Only light modules are imported here, so that Ctrl-C is handled from the first moments on.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from types import FrameType

TYPE_CHECKING = False  # checkers know the name; Ctrl-C should be handled before `typing` is loaded
if TYPE_CHECKING:
    from typing import Any

AGAIN = 0.02  # seconds after which Ctrl-C is delivered again where it could not be handled
PATIENCE = 3.0  # seconds for which an import may put it off


class Interrupts:
    """Ctrl-C raises KeyboardInterrupt, but only where the exception is safe and cannot be lost.

    Python raises it wherever it happens to be. Extension modules that are being imported print it,
    turn it into an ImportError or crash, so there it waits for the import to end. A callback of the
    garbage collector (JAX has one) or a destructor can only drop it: `sys.unraisablehook` sees
    that, and Ctrl-C is delivered again.

    Args:
        at_exit: Whether the process exits after this.
    """

    def __init__(self, at_exit: bool) -> None:
        self.asked = 0.0  # when, in seconds of the monotonic clock
        self.at_exit = at_exit
        self.timer: threading.Timer | None = None
        # Elsewhere Python allows no handlers, and delivers no signals.
        self.active = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupts:
        if self.active:
            self.hook, sys.unraisablehook = sys.unraisablehook, self._not_raised
            self.handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.active:
            # Nothing handles an exception while Python exits: there Ctrl-C just ends the process.
            signal.signal(signal.SIGINT, signal.SIG_DFL if self.at_exit else self.handler)
            sys.unraisablehook = self.hook

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self.asked = self.asked or now
        if _importing(frame) and now - self.asked < PATIENCE:
            self._again()
        else:
            raise KeyboardInterrupt

    def _not_raised(self, unraisable: Any) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            self._again()
        else:
            self.hook(unraisable)

    def _again(self) -> None:
        # To the main thread, so that whatever it waits for ends.
        main = threading.main_thread().ident
        self.timer = threading.Timer(AGAIN, signal.pthread_kill, (main, signal.SIGINT))
        self.timer.daemon = True
        self.timer.start()


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def open_streams() -> None:
    """Make the standard streams such that printing cannot fail for what is printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed, as by `>&-`
            setattr(sys, name, open(os.devnull, mode))
        elif hasattr(stream, "reconfigure") and mode == "w":
            # A terminal without ξ and ∞ gets question marks, not a traceback.
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Discard what could not be written to standard output; Python would try again at the end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a stream that is not a file, as in a notebook
        pass


def describe_failure(error: BaseException) -> str:
    """What to say of an error that is not ours but the system's; empty for any other."""
    from ..errors import show

    if isinstance(error, OSError):
        if error.errno == errno.ENOENT and not _has_folder():
            return "The current folder no longer exists. Change to another one."
        # Files are named, standard output is not.
        verb = f"open {show(error.filename)}" if error.filename else "write the output"
        return f"Cannot {verb}: {error.strerror or error}."
    if isinstance(error, MemoryError):
        return "Not enough memory. Use fewer members or samples, or a smaller lattice."
    if isinstance(error, RuntimeError) and "Unable to initialize backend" in str(error):
        name = os.environ.get("JAX_PLATFORMS", "")
        cause = f"JAX_PLATFORMS is {name!r}" if name else "a driver may be missing"
        return f"JAX cannot start on this machine: {cause}. Set JAX_PLATFORMS=cpu, or unset it."
    return ""


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False
