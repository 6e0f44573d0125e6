"""The server: pages, their service, and what it takes to open and close both."""

from __future__ import annotations

import dataclasses
import errno
import importlib
import logging
import secrets
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import panel as pn
from panel.io.server import get_server
from tornado.ioloop import IOLoop

from ..errors import InputError, show
from ..experiments.texts import experiment_of
from .downloads import Downloads
from .guard import Health, Names, install, is_loopback
from .library import patterns
from .limits import Limits
from .pool import Pool
from .presets import OURS

PAGES = {"/": "explore", "/phase": "phase", "/runs": "library"}
CHECK, UNUSED = (
    1000,
    60_000,
)  # milliseconds between looks for pages that were left, and that one may take to load
LARGEST_MESSAGE = 2**21  # bytes that a page may send at a time


@dataclasses.dataclass
class Service:
    """What pages share.

    Attributes:
        pool: Computes for them.
        limits: Of what they may ask for.
        store: Folder of stored runs, or None.
        report: Folder of the reproduction report, or None.
        downloads: Files that they offer.
    """

    pool: Pool
    limits: Limits
    store: Path | None = None
    report: Path | None = None
    downloads: Downloads = dataclasses.field(default_factory=Downloads)
    sessions: int = 0
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def enter(self) -> bool:
        """Count a page that is opened; false if there are too many."""
        with self._lock:
            self.sessions += 1
            return self.sessions <= self.limits.sessions

    def leave(self) -> None:
        """Count a page that is closed."""
        with self._lock:
            self.sessions -= 1

    def full(self) -> str:
        """Why no more pages can be opened; empty when they can."""
        if self.sessions < self.limits.sessions:
            return ""
        return (
            f"The explorer is full: {self.limits.sessions} pages are open. Try again in a minute."
        )


class Server:
    """A running explorer.

    Args:
        address: To listen on.
        port: To listen on; 0 for any that is free.
        store: Folder of results, read and written; None keeps none.
        report: Folder of the reproduction report.
        workers: Processes for runs.
        hosts: Names, besides the address, by which it may be asked for.
        limits: Of what visitors may ask for.
        warm: See `Pool`.

    Raises:
        InputError: When it cannot listen there.
    """

    def __init__(
        self,
        address: str = "127.0.0.1",
        port: int = 5006,
        store: str | Path | None = None,
        report: str | Path | None = None,
        workers: int = 2,
        hosts: Sequence[str] = (),
        limits: Limits | None = None,
        warm: str | None = None,
    ):
        if not isinstance(port, int) or not 0 <= port <= 65535:
            raise InputError(
                f"`port` must be a whole number from 0 to 65535, got {show(port)}. The usual one "
                "is 5006."
            )
        self.address, limits = address, Limits() if limits is None else limits
        self.loop = IOLoop.current()
        pool = Pool(workers, limits=limits, store=store, warm=_first() if warm is None else warm)
        self.service = Service(pool, limits, _folder(store), _folder(report))
        try:
            for (
                name
            ) in PAGES.values():  # while processes start, and not when the first visitor comes
                _module(name)
            self._server = self._listen(port, Names(address, hosts))
        except BaseException:
            pool.close()
            raise
        self.port: int = self._server.port

    @property
    def url(self) -> str:
        """Where the explorer is found."""
        name = {"0.0.0.0": "localhost", "::": "localhost"}.get(self.address, self.address)
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/"

    def _listen(self, port: int, names: Names) -> Any:
        pn.config.reuse_sessions = False
        try:
            server = get_server(
                {path: page(self.service, name) for path, name in PAGES.items()},
                port=port,
                address=self.address,
                websocket_origin=[f"localhost:{port}"],
                title="localfields",
                loop=self.loop,
                start=False,
                show=False,
                verbose=False,
                admin=False,
                extra_patterns=[
                    ("/health", Health),
                    *self.service.downloads.patterns(),
                    *patterns(self.service),
                ],
                check_unused_sessions_milliseconds=CHECK,
                unused_session_lifetime_milliseconds=UNUSED,
                websocket_max_message_size=LARGEST_MESSAGE,
                sign_sessions=True,
                secret_key=secrets.token_urlsafe(32),
                include_headers=[],
                include_cookies=[],
            )
        except OSError as error:
            where = f"{self.address}:{port}"
            if error.errno == errno.EADDRINUSE:
                raise InputError(
                    f"{where} is in use. Stop what runs there, or choose --port 5007."
                ) from None
            raise InputError(
                f"The explorer cannot listen at {where}: {error.strerror}. Try 127.0.0.1."
            ) from None
        server._tornado._websocket_origins = (
            names.origins()
        )  # bokeh takes fixed ports only, and there may be a tunnel
        install(server._tornado, names, self.service.full, [path.rstrip("/") for path in PAGES])
        return server

    def run(self) -> None:
        """Serve until Ctrl-C, or until the process is asked to end."""
        self._server.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.loop.add_callback_from_signal(self.loop.stop))
        try:
            self.loop.start()
        finally:
            self.close()

    def start(self) -> None:
        """Begin to answer; the loop is the caller's to run."""
        self._server.start()

    def close(self) -> None:
        """Close pages, processes and the port."""
        self.service.pool.close()
        if not self._server._stopped:
            self._server.stop(wait=False)


def serve(
    address: str = "127.0.0.1",
    port: int = 5006,
    store: str | Path | None = None,
    show: bool = False,
    workers: int = 2,
    hosts: Sequence[str] = (),
    report: str | Path | None = None,
    limits: Limits | None = None,
) -> None:
    """Open the explorer and serve it until Ctrl-C.

    Args:
        address: To listen on; any but a loopback address lets others in, and a warning says so.
        port: To listen on.
        store: Folder of results, read and written; None keeps none.
        show: Open a browser.
        workers: Processes for runs.
        hosts: Names, besides the address, by which it may be asked for.
        report: Folder of the reproduction report.
        limits: Of what visitors may ask for.

    Raises:
        InputError: When it cannot listen there.
    """
    server = Server(address, port, store, report, workers, hosts, limits)
    if not is_loopback(address):
        print(
            f"localfields: warning: {address} can be reached by others, who may start runs on this "
            "machine and read "
            "what is stored; nobody is asked for a password.",
            file=sys.stderr,
        )
    for name in (
        "bokeh.server.views.ws",
        "tornado.access",
    ):  # visitors who leave, and what was refused
        logging.getLogger(name).setLevel(logging.ERROR)
    print(f"The explorer is at {server.url} (Ctrl-C ends it).", flush=True)
    if show:
        import webbrowser

        server.loop.add_callback(webbrowser.open, server.url)
    server.run()


def page(service: Service, name: str) -> Callable[[], Any]:
    """What makes a page of that name for each visitor."""

    def make() -> Any:
        entered = service.enter()
        pn.state.on_session_destroyed(lambda context: service.leave())
        if not entered:  # the door was open when it was asked
            return pn.pane.Str(service.full())
        try:
            return _module(name).page(service)
        except InputError as error:
            return pn.pane.Str(str(error))
        except Exception:  # for the one who runs the server, not for the visitor
            traceback.print_exc(file=sys.stderr)
            return pn.pane.Str(
                "This page could not be made. Whoever runs the explorer finds the reason in its "
                "output."
            )

    return make


def _module(name: str) -> Any:
    return importlib.import_module(f"{__package__}.{name}")


def _first() -> str:
    """What visitors see first: processes compile its programs before they come."""
    return experiment_of(next(iter(OURS.values()))).canonical()


def _folder(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path).expanduser().absolute()
