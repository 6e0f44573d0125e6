"""The server: pages, headers, local assets, sessions that are counted, and words when it cannot
start.
"""

import concurrent.futures
import contextlib
import re
import socket
import sys
import time

import pytest
from bokeh.application import Application

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
def num_pages(server):
    """Counts open pages, of which there is none at first."""
    with forget_unused(server):
        assert wait_until(lambda: server.service.num_pages() == 0)
    return server.service.num_pages


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_health_opens_no_page(server, num_pages):
    reply = ask(server.port, "/health")
    assert (reply.status, reply.text) == (200, "ok\n") and num_pages() == 0


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_counted(server, num_pages, path):
    reply = ask(server.port, path)
    assert reply.status == 200 and "text/html" in reply.headers["content-type"]
    assert num_pages() == 1
    with forget_unused(server):
        assert wait_until(lambda: num_pages() == 0)


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


def test_a_page_that_is_looked_at_stays(server, num_pages):
    """It is forgotten once it is closed, unlike one that nobody has looked at."""
    visitor = Visitor(server.url)
    with forget_unused(server):
        time.sleep(1)
        assert num_pages() == 1
        visitor.force_roundtrip()
    visitor.close()
    assert wait_until(lambda: num_pages() == 0)


def test_a_page_that_fails_tells_the_visitor_nothing_of_the_inside(server, monkeypatch, capfd):
    def broken(kind, service):
        raise RuntimeError("of the inside")

    monkeypatch.setattr(module, "open_page", broken)
    visitor = Visitor(server.url)
    words = visitor.texts()
    visitor.close()
    assert "failed to load" in words and "inside" not in words and "Traceback" not in words
    assert "of the inside" in capfd.readouterr().err


def test_a_full_explorer_says_so_and_opens_nothing(server, num_pages, monkeypatch):
    monkeypatch.setattr(server.service, "limits", Limits(sessions=1))
    assert ask(server.port, "/runs").status == 200
    reply = ask(server.port, "/runs")
    assert reply.status == 503 and "full: 1 pages are open" in reply.text
    assert num_pages() == 1
    assert ask(server.port, "/health").status == 200


def test_visitors_who_come_at_once_are_counted_one_by_one(server, num_pages, monkeypatch):
    monkeypatch.setattr(server.service, "limits", Limits(sessions=2))
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        replies = threads.map(lambda _: ask(server.port, "/runs").status, range(4))
        assert sorted(replies) == [200, 200, 503, 503]
    assert num_pages() == 2


def test_a_page_that_cannot_be_built_is_not_counted(server, num_pages, monkeypatch):
    """The libraries fail after our part of the page was made, as they did on some addresses."""
    initialize = Application.initialize_document

    def broken(*arguments):
        initialize(*arguments)
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(Application, "initialize_document", broken)
        assert [ask(server.port, "/runs").status for _ in range(2)] == [500, 500]
    assert num_pages() == 0
    assert ask(server.port, "/runs").status == 200


def test_who_has_left_gets_no_page(server, num_pages):
    """Requests that were called off while they waited for their turn are not carried out."""
    with socket.create_connection(("127.0.0.1", server.port)) as first:
        request = f"GET /runs HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        first.sendall(request)
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", server.port)) as other:
                other.sendall(request)
        assert ask(server.port, "/runs").status == 200
        assert num_pages() <= 4  # of those who left at most two, before the server could notice


def test_large_bodies_are_not_taken(server):
    """The server hangs up before it has taken what it would reject."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 90000000"
        connection.sendall(f"{head}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        sent = 0
        with contextlib.suppress(ConnectionError):
            for _ in range(90):
                connection.sendall(bytes(10**6))
                sent += 1
        assert sent < 20  # what the system keeps on the way


def test_service_says_when_it_is_full():
    service = Service(None, Limits(sessions=2), num_pages=lambda: 2)  # type: ignore[arg-type]
    assert "2 pages" in service.full()
    service.num_pages = lambda: 1
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
        ({"store": "~nosuchuser/x"}, "no home folder"),
        ({"report": "~nosuchuser/x"}, "no home folder"),
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
