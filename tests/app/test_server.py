"""The server: pages, headers, local assets, sessions that are counted, and words when it cannot
start.
"""

import contextlib
import re
import socket
import sys
import time

import pytest

from localfields import InputError
from localfields.app import server as module
from localfields.app.guard import HEADERS
from localfields.app.limits import Limits
from localfields.app.server import PAGES, Server, Service
from localfields.cli import app as command

from .serving import Visitor, ask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the libraries that draw the pages


@contextlib.contextmanager
def forget_unused(server):
    """Have pages that nobody looks at forgotten at once, not after a minute.

    Only for a while: on a busy server a visitor connects to a page long after it was built, and
    would get another one.
    """
    application = server._server._tornado
    before = application._unused_session_lifetime_milliseconds
    application._unused_session_lifetime_milliseconds = 100
    try:
        yield
    finally:
        application._unused_session_lifetime_milliseconds = before


@pytest.fixture
def counted(server, monkeypatch):
    """The number of open pages after each one that is opened or closed, starting from none."""
    service = server.service
    with forget_unused(server):
        assert wait_until(lambda: service.sessions == 0)
    numbers = []

    def recorded(method):
        def call():
            result = method()
            numbers.append(service.sessions)
            return result

        return call

    for name in ("enter", "leave"):
        monkeypatch.setattr(service, name, recorded(getattr(service, name)))
    return numbers


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_health_opens_no_page(server, counted):
    reply = ask(server.port, "/health")
    assert (reply.status, reply.text) == (200, "ok\n") and counted == []


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_counted(server, counted, path):
    reply = ask(server.port, path)
    assert reply.status == 200 and "text/html" in reply.headers["content-type"]
    assert counted == [1]
    with forget_unused(server):
        assert wait_until(lambda: counted == [1, 0])


@pytest.mark.parametrize("path", [*PAGES, "/health", "/nothing", "/static/js/bokeh.min.js"])
def test_every_answer_keeps_the_browser_in_bounds(server, path):
    headers = ask(server.port, path).headers
    for name, value in HEADERS.items():
        assert headers[name.lower()] == value
    policy = headers["content-security-policy"]
    assert (
        "default-src 'self'" in policy
        and "frame-ancestors 'none'" in policy
        and "object-src 'none'" in policy
    )
    assert "http:" not in policy and "https:" not in policy
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", PAGES)
def test_all_that_a_page_loads_comes_from_here(server, path):
    page = ask(server.port, path).text
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    loaded = [link for link in links if not link.startswith("data:")]
    assert len(loaded) >= 5
    for link in loaded:
        assert "//" not in link
        assert ask(server.port, "/" + link.removeprefix(".").lstrip("/")).status == 200, link
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", page)


def test_a_page_that_is_looked_at_stays(server, counted):
    """It is forgotten once it is closed, unlike one that nobody has looked at."""
    visitor = Visitor(server.url)
    with forget_unused(server):
        time.sleep(1)
        assert counted == [1]
        visitor.force_roundtrip()
    visitor.close()
    assert wait_until(lambda: counted == [1, 0])


def test_a_page_that_fails_tells_the_visitor_nothing_of_the_inside(server, monkeypatch, capfd):
    def broken(kind, service):
        raise RuntimeError("of the inside")

    monkeypatch.setattr(module, "open_page", broken)
    visitor = Visitor(server.url)
    words = visitor.texts()
    visitor.close()
    assert "failed to load" in words and "inside" not in words and "Traceback" not in words
    assert "of the inside" in capfd.readouterr().err


def test_a_full_explorer_says_so_and_opens_nothing(server, counted):
    server.service.sessions = server.service.limits.sessions
    try:
        reply = ask(server.port, "/")
        assert reply.status == 503 and "full: 60 pages are open" in reply.text
        assert counted == []
        assert ask(server.port, "/health").status == 200
    finally:
        server.service.sessions = 0


def test_service_counts():
    service = Service(None, Limits(sessions=2))  # type: ignore[arg-type]
    assert service.enter() and service.enter() and not service.enter()
    assert "2 pages" in service.full()
    service.leave()
    service.leave()
    assert service.full() == ""


def test_a_port_that_is_taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            InputError, match=f"127.0.0.1:{port}.*Stop what runs there, or choose --port"
        ):
            Server(port=port, warm="")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"address": "192.0.2.1"}, "cannot listen at"),
        ({"port": 70_000}, "`port`"),
        ({"workers": 0}, "`workers`"),
    ],
)
def test_what_it_cannot_do(more, words):
    with pytest.raises(InputError, match=words):
        Server(**{"port": 0, "warm": "", **more})


class Stub:
    """Stands for a server that was started."""

    url = "http://here/"

    def __init__(self, *given):
        Stub.given = given

    def run(self):
        pass


@pytest.mark.parametrize(
    ("address", "warned"), [("127.0.0.1", False), ("::1", False), ("0.0.0.0", True)]
)
def test_others_are_let_in_only_with_a_warning(monkeypatch, capsys, address, warned):
    monkeypatch.setattr(module, "Server", Stub)
    module.serve(address)
    output = capsys.readouterr()
    assert "http://here/" in output.out
    assert ("can be reached by others" in output.err) == warned


def test_the_command_passes_its_options_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(module, "Server", Stub)
    command.run(
        [
            *("--port", "5007", "--host", "lab.example.org", "--host=a.example,b.example"),
            *("--store", str(tmp_path), "--report", "there", "--workers", "1"),
        ]
    )
    address, port, store, report, workers, hosts, _ = Stub.given
    assert (address, port, store, str(report), workers) == ("127.0.0.1", 5007, tmp_path, "there", 1)
    assert hosts == ["lab.example.org", "a.example", "b.example"]


def test_without_panel_the_command_says_what_to_install(monkeypatch):
    for name in command.NEEDED:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"The explorer needs panel.*localfields\[app\].*make app"):
        command.run([])
