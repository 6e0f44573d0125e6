"""The server: its pages, what they share, and how it starts and stops."""

from __future__ import annotations

import dataclasses
import errno
import logging
import secrets
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import panel as pn
from panel.io.server import get_server
from tornado.ioloop import IOLoop

from .._files import absolute_path
from ..errors import InputError, show
from ..experiments.texts import experiment_of
from .downloads import Downloads
from .explore import Explorer
from .guard import HostNames, PlainText, install, is_loopback
from .library import Library, patterns
from .limits import Limits
from .page import Page, open_page, set_location
from .phase import Phase
from .pool import Pool
from .presets import OUR_PRESETS
from .state import settings_in

PAGES: dict[str, type[Page]] = {"/": Explorer, "/phase": Phase, "/runs": Library}
SESSION_CHECK = 1000  # milliseconds between looks for pages that were closed,
UNUSED_LIFETIME = 60_000  # and that a page may take to load
MAX_MESSAGE = 2**21  # bytes that a page may send at a time
MAX_BODY = 2**12  # bytes of a request's body, which none of ours has
OPEN_WARNING = (
    "localfields: warning: {} can be reached by others, who may start runs on this machine and "
    "read what is stored; nobody is asked for a password."
)


@dataclasses.dataclass
class Service:
    """What pages share."""

    pool: Pool
    limits: Limits
    store: Path | None = None  # folder of stored runs
    report: Path | None = None  # folder of the reproduction report
    downloads: Downloads = dataclasses.field(default_factory=Downloads)
    # Asks the server, which knows it even where building a page failed.
    num_pages: Callable[[], int] = lambda: 0

    def full(self) -> str:
        """Why no more pages can be opened; empty if they can."""
        most = self.limits.sessions
        if self.num_pages() < most:
            return ""
        return f"The explorer is full: {most} pages are open. Try again in a minute."


class Server:
    """A running explorer; the arguments are those of `serve`.

    Args:
        warm: JSON of an experiment that worker processes compile first, as in `Pool`; by default
            what a visitor sees first.
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
        if warm is None:
            warm = experiment_of(next(iter(OUR_PRESETS.values()))).canonical()
        self.address, limits = address, Limits() if limits is None else limits
        self.loop = IOLoop.current()
        folders = _folder(store), _folder(report)  # before processes are started
        pool = Pool(workers, limits=limits, store=store, warm=warm)
        self.service = Service(pool, limits, *folders)
        try:
            self._server = self._listen(port, HostNames(address, hosts))
        except BaseException:
            pool.close()
            raise
        self.port: int = self._server.port

    @property
    def url(self) -> str:
        """Where the explorer can be opened."""
        name = {"0.0.0.0": "localhost", "::": "localhost"}.get(self.address, self.address)
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/"

    def _listen(self, port: int, names: HostNames) -> Any:
        pn.config.reuse_sessions = False
        service = self.service
        health = ("/health", PlainText, {"status": 200, "text": "ok"})
        try:
            server = get_server(
                {path: page_builder(service, kind) for path, kind in PAGES.items()},
                port=port,
                address=self.address,
                websocket_origin=[f"localhost:{port}"],
                title="localfields",
                loop=self.loop,
                start=False,
                show=False,
                verbose=False,
                admin=False,
                extra_patterns=[health, *service.downloads.patterns(), *patterns(service)],
                check_unused_sessions_milliseconds=SESSION_CHECK,
                unused_session_lifetime_milliseconds=UNUSED_LIFETIME,
                websocket_max_message_size=MAX_MESSAGE,
                http_server_kwargs={"max_body_size": MAX_BODY},
                sign_sessions=True,
                secret_key=secrets.token_urlsafe(32),
                include_headers=[],
                include_cookies=[],
            )
        except OSError as error:
            place = f"{self.address}:{port}"
            message = f"The explorer cannot listen at {place}: {error.strerror}. Try 127.0.0.1."
            if error.errno == errno.EADDRINUSE:
                message = f"{place} is in use. Stop what runs there, or choose --port 5007."
            raise InputError(message) from None
        # Bokeh takes fixed ports only, and there may be a tunnel.
        server._tornado._websocket_origins = names.origin_patterns()
        service.num_pages = lambda: sum(len(server.get_sessions(path)) for path in PAGES)
        install(
            server._tornado,
            names,
            service.full,
            lambda query: settings_in(query, service.limits),
            [path.rstrip("/") for path in PAGES],
        )
        return server

    def run(self) -> None:
        """Serve until Ctrl-C, or until the process is asked to end."""
        self.start()
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
        store: Folder of results, read and written; None stores nothing.
        show: Open a browser.
        workers: Processes for runs.
        hosts: Names, besides the address, under which it may be opened.
        report: Folder of the reproduction report.
        limits: On what visitors may ask for.

    Raises:
        InputError: If it cannot listen there.
    """
    server = Server(address, port, store, report, workers, hosts, limits)
    if not is_loopback(address):
        print(OPEN_WARNING.format(address), file=sys.stderr)
    # Visitors who leave and requests that are rejected are nothing to log.
    for name in ("bokeh.server.views.ws", "tornado.access"):
        logging.getLogger(name).setLevel(logging.ERROR)
    print(f"The explorer is at {server.url} (Ctrl-C ends it).", flush=True)
    if show:
        import webbrowser

        server.loop.add_callback(webbrowser.open, server.url)
    server.run()


def page_builder(service: Service, kind: type[Page]) -> Callable[[], Any]:
    """The function that builds a page for each visitor."""

    def build() -> Any:
        try:
            set_location()
            if text := service.full():  # for a page whose websocket comes back after a while
                return pn.pane.Str(text)
            return open_page(kind, service)
        except InputError as error:
            return pn.pane.Str(str(error))
        except Exception:  # for whoever runs the server, not for the visitor
            traceback.print_exc(file=sys.stderr)
            return pn.pane.Str("This page failed to load. The server log has the details.")

    return build


def _folder(path: str | Path | None) -> Path | None:
    return None if path is None else absolute_path(path)
