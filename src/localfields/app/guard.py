"""Which requests the server answers: host names, paths, and headers that bound the browser.

Bokeh rejects a websocket by its origin, but a foreign name that resolves to this machine has the
right origin (DNS rebinding). So every request is checked first, its Host header included.
"""

from __future__ import annotations

import asyncio
import functools
import html
import ipaddress
import socket
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

from bokeh.util.token import check_token_signature, get_token_payload
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

from ..errors import InputError

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
FRAMES = ("iframe", "frame", "embed", "object", "fencedframe")
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


class ForeignLink(RequestHandler):
    """Asks before a link from another site is followed; it opens no session."""

    def prepare(self) -> None:
        """Answer with the same link: a click on it comes from here."""
        link = html.escape(f"{self.request.path}?{self.request.query}")
        self.set_status(403)
        self.finish(
            "<!doctype html><meta charset='utf-8'><title>localfields</title>"
            "<p>A page of another site opened this link to the explorer:</p>"
            f"<p><code>{link}</code></p><p><a href='{link}'>Open it</a></p>"
        )


def install(
    application: Any,
    names: HostNames,
    full: Callable[[], str],
    check_query: Callable[[str], object],
    pages: Iterable[str],
) -> None:
    """Check every request before the application handles it.

    Args:
        application: Of tornado.
        names: That it answers to.
        full: Returns why no more pages can be opened; empty if they can.
        check_query: Raises InputError for the query of a page that cannot be read.
        pages: Paths at which a page is opened.
    """
    find_handler, pages = application.find_handler, set(pages)
    # Building a page takes the server's only thread: pages are built one at a time, with a pause
    # between them in which the open ones are answered.
    building = asyncio.Lock()

    def find_checked(request: Any, **more: Any) -> Any:
        status, text = rejection(request, names)
        is_page = not status and request.path.rstrip("/") in pages
        if is_page and (text := full()):
            status = 503
        elif is_page:
            try:
                check_query(request.query)
            except InputError as error:
                status, text = 400, str(error)
        if status:
            answer = {"status": status, "text": text}
            delegate = application.get_handler_delegate(request, PlainText, answer)
        elif is_page and request.query and is_foreign(request):
            delegate = application.get_handler_delegate(request, ForeignLink)
        else:
            delegate = find_handler(request, **more)
        if hasattr(delegate, "handler_class"):
            opens_page = is_page and not status and delegate.handler_class is not ForeignLink
            secure = functools.partial(secured_page, building=building, full=full)
            delegate.handler_class = (secure if opens_page else secured)(delegate.handler_class)
        return delegate

    application.find_handler = find_checked


def is_foreign(request: Any) -> bool:
    """Whether the browser says that a page of another origin asks.

    It says so on this machine and over https, not over plain http from another machine. Another
    port of this machine is of the same site but of another origin. `none` is somebody who typed the
    address, or clicked on it outside of the browser.
    """
    return request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")


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
    elif is_foreign(request) and headers.get("Sec-Fetch-Mode") != "navigate":
        return 403, "Pages of other origins may not read from here."
    elif headers.get("Sec-Fetch-Dest") in FRAMES:  # a navigation, too, but nobody's click
        return 403, "The explorer cannot be shown within another page."
    # Bokeh would take up the session that is named, or stumble over it.
    if "Bokeh-Session-Id" in headers or any(
        name.startswith("bokeh-") for name in request.arguments
    ):
        return 403, "The explorer chooses the session itself. Open it without bokeh-… parameters."
    path = urllib.parse.unquote(request.path)
    # The first two are for embedding in other pages, which nobody does.
    hidden = path.endswith(("/autoload.js", "/metadata"))
    hidden |= ".." in path.split("/") or "\\" in path or "\0" in path
    if path.startswith("/components/"):  # Panel would import whatever module is named here
        module = path.split("/")[2]
        hidden |= not module.startswith("panel.") or module not in sys.modules
    return (404, "Not found.") if hidden else (0, "")


@functools.cache
def secured(handler: type[Any]) -> type[Any]:
    """A handler that adds our headers to every answer, and lets only our own pages connect."""

    class Secured(handler):
        def set_default_headers(self) -> None:
            super().set_default_headers()
            host = self.request.headers.get("Host", "")
            sockets = f"ws://{host} wss://{host}" if host_name(host) else ""
            for name, value in HEADERS.items():
                self.set_header(name, value)
            self.set_header("Content-Security-Policy", CONTENT_POLICY.format(socket=sockets))

    class SecuredSocket(Secured):
        async def prepare(self) -> None:
            """Reject a token that is not ours; bokeh would log a traceback for each."""
            await super().prepare()
            protocols = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")
            ours = len(protocols) == 2 and protocols[0].strip() == "bokeh"
            if not self._finished and not (ours and is_valid(protocols[1].strip(), self)):
                self.set_status(403)
                self.finish("This page has expired. Load it again.\n")

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


@functools.cache
def secured_page(handler: type[Any], building: asyncio.Lock, full: Callable[[], str]) -> type[Any]:
    """A secured handler that opens a page: one at a time, and only for visitors who wait for it."""

    class SecuredPage(secured(handler)):
        left = False

        def on_connection_close(self) -> None:
            super().on_connection_close()
            self.left = True

        async def get(self, *arguments: Any, **more: Any) -> None:
            async with building:
                await asyncio.sleep(0)  # in which the server notices who has left
                if self.left:
                    return
                if text := full():  # others came while this visitor waited
                    self.set_status(503)
                    self.finish(f"{text}\n")
                    return
                await super().get(*arguments, **more)
                if not self._finished:
                    self.finish()
                await asyncio.sleep(PAGE_INTERVAL)

    SecuredPage.__name__ = SecuredPage.__qualname__ = handler.__name__
    return SecuredPage


def is_valid(token: str, handler: Any) -> bool:
    """Whether the server signed the token of a websocket, and it has not expired."""
    key = handler.application.secret_key
    try:
        signed = check_token_signature(token, secret_key=key, signed=True)
        return signed and get_token_payload(token)["session_expiry"] > time.time()
    except Exception:  # whatever bokeh stumbles over in a forged token
        return False


def _expire(session: Any) -> None:
    if not session.destroyed and session.connection_count == 0:
        session.request_expiration()
