"""Who may ask the server for what: names it answers to, addresses it serves, headers that keep a browser in bounds.

A websocket is refused by its origin, but a page of a foreign name that points at loopback has the right origin (DNS
rebinding). So every request is looked at first, by its Host header too.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import ipaddress
import socket
import sys
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

from tornado.ioloop import IOLoop
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

LOOPBACK = ("localhost", "127.0.0.1", "::1")

# Scripts and styles within the page are how bokeh works; nothing else comes from, or goes to, any other place.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' {socket}",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "localfields",
}
METHODS = ("GET", "HEAD")
PAUSE = 0.1  # seconds between two pages being made
GONE = 2.0  # seconds after which a page that was left is forgotten


class Names:
    """The names a server answers to.

    Args:
        address: That it is bound to.
        hosts: Further names, of a proxy or of this machine.

    Example:
        >>> names = Names("127.0.0.1", ["lab.example.org"])
        >>> [names.knows(one) for one in ("127.0.0.1:5006", "localhost:80", "lab.example.org", "evil.example.org:5006")]
        [True, True, True, False]
    """

    def __init__(self, address: str, hosts: Iterable[str] = ()):
        self.given = {one.strip().lower().rstrip(".") for one in hosts}
        self.open = not is_loopback(address)
        self.names = {*LOOPBACK, address.strip("[]").lower(), *self.given}
        if self.open:
            self.names.add(socket.gethostname().lower())

    def knows(self, host: str) -> bool:
        """Whether a Host header is one of ours, at any port (there may be a tunnel)."""
        name = host_name(host)
        # Beyond loopback every number is as good as the bound one: no name system can turn it into another.
        return name in self.names or (self.open and bool(name) and _is_number(name))

    def from_here(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is ours: of the same name and port as the request, or of a name given."""
        parts = urllib.parse.urlsplit(origin)
        if parts.scheme not in ("http", "https") or not self.knows(parts.netloc):
            return False
        return parts.netloc.lower() == host.lower() or host_name(parts.netloc) in self.given

    def origins(self) -> set[str]:
        """Patterns of origins for bokeh, which looks at them once more."""
        return (
            {"*"}
            if self.open
            else {f"[{one}]:*" if ":" in one else f"{one}:*" for one in self.names}
        )


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty for what is none."""
    try:
        parts = urllib.parse.urlsplit(f"//{host}")
        _ = parts.port  # raises for one that is none
        plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
        return (parts.hostname or "").rstrip(".") if plain else ""
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    name = address.strip("[]").lower()
    return name == "localhost" or (_is_number(name) and ipaddress.ip_address(name).is_loopback)


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Refusal(RequestHandler):
    """A plain answer that makes no session."""

    def initialize(self, status: int, words: str) -> None:
        """Take what to say."""
        self.status, self.words = status, words

    def prepare(self) -> None:
        """Say it, whatever the method."""
        self.set_status(self.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self.words}\n")


class Health(RequestHandler):
    """That the server lives; it makes no session."""

    def get(self) -> None:
        """Say so."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish("ok\n")


class Door:
    """Lets visitors in one at a time, with a moment between them.

    To make a page takes the server's only thread. When many come at once, those who have theirs would wait for all the
    others' before they are answered again.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def enter(self) -> None:
        """Wait until it is free."""
        await self.lock.acquire()

    def leave(self) -> None:
        """Free it for the next."""
        asyncio.get_running_loop().call_later(PAUSE, self.lock.release)


def install(application: Any, names: Names, full: Callable[[], str], pages: Iterable[str]) -> None:
    """Look at every request before the application does.

    Args:
        application: Of tornado.
        names: It answers to.
        full: Returns why no more pages can be opened, or nothing.
        pages: Addresses at which a page is opened.
    """
    find, pages, door = application.find_handler, set(pages), Door()

    def found(request: Any, **more: Any) -> Any:
        status, words = judge(request, names)
        is_page = request.path.rstrip("/") in pages
        if not status and is_page and (words := full()):
            status = 503
        if status:
            delegate = application.get_handler_delegate(
                request, Refusal, {"status": status, "words": words}
            )
        else:
            delegate = find(request, **more)
        if hasattr(delegate, "handler_class"):
            delegate.handler_class = secured(
                delegate.handler_class, door if is_page and not status else None
            )
        return delegate

    application.find_handler = found


def judge(request: Any, names: Names) -> tuple[int, str]:
    """The status with which a request is refused and why; 0 for one that is not."""
    host = request.headers.get("Host", "")
    if len(request.headers.get_list("Host")) != 1 or not names.knows(host):
        return (
            403,
            "This name is not one the explorer answers to. Start it with --host NAME to allow it.",
        )
    if request.method not in METHODS:
        return 405, "Only GET is answered here."
    origin = request.headers.get("Origin")
    if request.headers.get("Upgrade", "").lower() == "websocket":
        if origin is not None and not names.from_here(origin, host):
            return 403, "Pages of other origins may not connect."
    elif _is_foreign_script(request):
        return 403, "Pages of other origins may not read from here."
    path = urllib.parse.unquote(request.path)
    if path.endswith(("/autoload.js", "/metadata")):
        return 404, "Not found."  # for embedding in other pages, which nobody does
    if ".." in path.split("/") or "\\" in path or "\0" in path:
        return 404, "Not found."
    if path.startswith("/components/"):
        # Panel would import whatever module is named here.
        module = path.split("/")[2]
        if not module.startswith("panel.") or module not in sys.modules:
            return 404, "Not found."
    return 0, ""


def _is_foreign_script(request: Any) -> bool:
    """Whether a page of another site asks for something to be used in it; a link from there is fine."""
    site, mode = (request.headers.get(f"Sec-Fetch-{what}") for what in ("Site", "Mode"))
    return site == "cross-site" and mode != "navigate"


@functools.cache
def secured(handler: type[Any], door: Door | None = None) -> type[Any]:
    """A handler with the headers that every answer has, behind the door if it makes a page."""

    class Secured(handler):
        entered = False

        def set_default_headers(self) -> None:
            super().set_default_headers()
            host = self.request.headers.get("Host", "")
            socket_of = f"ws://{host} wss://{host}" if host_name(host) else ""
            for name, value in HEADERS.items():
                self.set_header(name, value)
            self.set_header("Content-Security-Policy", POLICY.format(socket=socket_of))

        async def prepare(self) -> None:
            if inspect.isawaitable(made := super().prepare()):
                await made
            if door is not None and not self._finished:
                await door.enter()
                self.entered = True

        def on_finish(self) -> None:
            super().on_finish()
            if self.entered and door is not None:
                self.entered = False
                door.leave()

    class Watched(Secured):
        def on_close(self) -> None:
            """A page that was left is forgotten soon; one that is still loading is given its time."""
            session = getattr(
                self.connection, "_session", None
            )  # none once it was closed for a bad message
            super().on_close()
            if session is not None:
                IOLoop.current().call_later(GONE, _forget, session)

    made = Watched if issubclass(handler, WebSocketHandler) else Secured
    made.__name__ = made.__qualname__ = handler.__name__
    return made


def _forget(session: Any) -> None:
    if not session.destroyed and session.connection_count == 0:
        session.request_expiration()
