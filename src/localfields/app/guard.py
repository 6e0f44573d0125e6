"""Which requests the server answers: host names, paths, and headers that bound the browser.

Bokeh rejects a websocket by its origin, but a foreign name that resolves to this machine has the
right origin (DNS rebinding). So every request is checked first, its Host header included.
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

# Bokeh needs scripts and styles within the page; nothing else comes from, or goes to, another host.
CONTENT_POLICY = "; ".join(
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
PAGE_INTERVAL = 0.1  # seconds between building two pages
CLOSED_LIFETIME = 2.0  # seconds after which a page that was closed is forgotten


class HostNames:
    """The names a server answers to.

    Args:
        address: To which it is bound.
        hosts: Further names, of a proxy or of this machine.

    Example:
        >>> names = HostNames("127.0.0.1", ["lab.example.org"])
        >>> hosts = ("127.0.0.1:5006", "localhost:80", "lab.example.org", "evil.example.org:5006")
        >>> [names.knows(host) for host in hosts]
        [True, True, True, False]
    """

    def __init__(self, address: str, hosts: Iterable[str] = ()):
        self.given = {host.strip().lower().rstrip(".") for host in hosts}
        self.open = not is_loopback(address)
        loopback = ("localhost", "127.0.0.1", "::1")
        self.names = {*loopback, address.strip("[]").lower(), *self.given}
        if self.open:
            self.names.add(socket.gethostname().lower())

    def knows(self, host: str) -> bool:
        """Whether a Host header is one of ours, at any port (there may be a tunnel)."""
        name = host_name(host)
        # Beyond loopback any number is as good as the bound one: DNS cannot redirect a number.
        return name in self.names or (self.open and bool(name) and _is_number(name))

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is ours: of the request's host, or of a name given."""
        parts = urllib.parse.urlsplit(origin)
        if parts.scheme not in ("http", "https") or not self.knows(parts.netloc):
            return False
        return parts.netloc.lower() == host.lower() or host_name(parts.netloc) in self.given

    def origin_patterns(self) -> set[str]:
        """Patterns of origins for bokeh, which checks them once more."""
        if self.open:
            return {"*"}
        return {f"[{name}]:*" if ":" in name else f"{name}:*" for name in self.names}


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty if the header is invalid."""
    try:
        parts = urllib.parse.urlsplit(f"//{host}")
        _ = parts.port  # raises ValueError for an invalid one
    except ValueError:
        return ""
    plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    return (parts.hostname or "").rstrip(".") if plain else ""


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


class PlainText(RequestHandler):
    """A fixed text, whatever the method; it opens no session."""

    def initialize(self, status: int, text: str) -> None:
        """Take what to answer."""
        self.status, self.text = status, text

    def prepare(self) -> None:
        """Answer."""
        self.set_status(self.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self.text}\n")


def install(
    application: Any, names: HostNames, full: Callable[[], str], pages: Iterable[str]
) -> None:
    """Check every request before the application handles it.

    Args:
        application: Of tornado.
        names: That it answers to.
        full: Returns why no more pages can be opened; empty if they can.
        pages: Paths at which a page is opened.
    """
    find_handler, pages = application.find_handler, set(pages)
    # Building a page takes the server's only thread: pages are built one at a time, with a pause
    # between them in which the open ones are answered.
    building = asyncio.Lock()

    def find_checked(request: Any, **more: Any) -> Any:
        status, text = rejection(request, names)
        is_page = request.path.rstrip("/") in pages
        if not status and is_page and (text := full()):
            status = 503
        if status:
            answer = {"status": status, "text": text}
            delegate = application.get_handler_delegate(request, PlainText, answer)
        else:
            delegate = find_handler(request, **more)
        if hasattr(delegate, "handler_class"):
            lock = building if is_page and not status else None
            delegate.handler_class = secured(delegate.handler_class, lock)
        return delegate

    application.find_handler = find_checked


def rejection(request: Any, names: HostNames) -> tuple[int, str]:
    """The status and the text with which a request is rejected; 0 if it is not."""
    headers = request.headers
    host, origin = headers.get("Host", ""), headers.get("Origin")
    if len(headers.get_list("Host")) != 1 or not names.knows(host):
        return 403, "The explorer does not answer to this name. Start it with --host NAME."
    if request.method not in ("GET", "HEAD"):
        return 405, "Only GET is answered here."
    if headers.get("Upgrade", "").lower() == "websocket":
        if origin is not None and not names.allows_origin(origin, host):
            return 403, "Pages of other origins may not connect."
    elif headers.get("Sec-Fetch-Site") == "cross-site" and (
        headers.get("Sec-Fetch-Mode") != "navigate"  # a link from another site is fine
    ):
        return 403, "Pages of other origins may not read from here."
    path = urllib.parse.unquote(request.path)
    # The first two are for embedding in other pages, which nobody does.
    hidden = path.endswith(("/autoload.js", "/metadata"))
    hidden |= ".." in path.split("/") or "\\" in path or "\0" in path
    if path.startswith("/components/"):  # Panel would import whatever module is named here
        module = path.split("/")[2]
        hidden |= not module.startswith("panel.") or module not in sys.modules
    return (404, "Not found.") if hidden else (0, "")


@functools.cache
def secured(handler: type[Any], building: asyncio.Lock | None = None) -> type[Any]:
    """A handler that adds our headers to every answer, and holds the lock while it runs."""

    class Secured(handler):
        locked = False

        def set_default_headers(self) -> None:
            super().set_default_headers()
            host = self.request.headers.get("Host", "")
            sockets = f"ws://{host} wss://{host}" if host_name(host) else ""
            for name, value in HEADERS.items():
                self.set_header(name, value)
            self.set_header("Content-Security-Policy", CONTENT_POLICY.format(socket=sockets))

        async def prepare(self) -> None:
            if inspect.isawaitable(prepared := super().prepare()):
                await prepared
            if building is not None and not self._finished:
                await building.acquire()
                self.locked = True

        def on_finish(self) -> None:
            super().on_finish()
            if self.locked and building is not None:
                self.locked = False
                asyncio.get_running_loop().call_later(PAGE_INTERVAL, building.release)

    class SecuredSocket(Secured):
        def on_close(self) -> None:
            """Forget a closed page soon; bokeh alone gives it as long as one still loading."""
            # The session is missing once the connection was closed for a bad message.
            session = getattr(self.connection, "_session", None)
            super().on_close()
            if session is not None:
                IOLoop.current().call_later(CLOSED_LIFETIME, _expire, session)

    cls = SecuredSocket if issubclass(handler, WebSocketHandler) else Secured
    cls.__name__ = cls.__qualname__ = handler.__name__
    return cls


def _expire(session: Any) -> None:
    if not session.destroyed and session.connection_count == 0:
        session.request_expiration()
