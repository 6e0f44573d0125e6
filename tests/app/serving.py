"""A server in a thread, and what it takes to ask it things as a browser does, or as a browser
must not.
"""

import asyncio
import http.client
import json
import re
import threading
import time
import urllib.request

from bokeh.client import ClientSession
from bokeh.util.token import get_session_id
from tornado.httpclient import HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

from localfields.app.server import Server


class Serving:
    """A server whose loop runs in a thread of its own."""

    def __init__(self, **more):
        self.options = more
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        asyncio.set_event_loop(asyncio.new_event_loop())
        try:
            self.server = Server(**self.options)
            self.server.start()
            self.loop = IOLoop.current()
            self.loop.add_callback(self._up.set)
            self.loop.start()
        finally:
            self._up.set()

    def __enter__(self):
        self._thread.start()
        assert self._up.wait(120) and hasattr(self, "loop")
        return self.server

    def __exit__(self, *error):
        def stop():
            self.server.close()
            self.loop.stop()

        self.loop.add_callback(stop)
        self._thread.join(30)


class Reply:
    def __init__(self, reply):
        self.status, self.headers = (
            reply.status,
            {name.lower(): value for name, value in reply.getheaders()},
        )
        self.text = reply.read().decode("utf-8", "replace")


def ask(port, path="/", method="GET", headers=None, **more):
    """One request, with the headers given instead of the usual ones; a header given as None is
    left out.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=240)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": f"127.0.0.1:{port}", **(headers or {})}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        return Reply(connection.getresponse())
    finally:
        connection.close()


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def knock(port, path="/ws", **headers):
    """The status of a websocket's handshake: 101 when it is let in."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=240)
    try:
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        given = {"Host": f"127.0.0.1:{port}", **UPGRADE, **headers}
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


class Visitor(ClientSession):
    """A page as its script sees it: opened by a GET, then a websocket with the token it brought."""

    def __init__(self, url, path=""):
        port = int(url.rstrip("/").rpartition(":")[2])
        self._token = re.findall(r'"token":"([^"]+)"', ask(port, f"/{path}").text)[0]
        super().__init__(
            get_session_id(self._token), websocket_url=url.replace("http", "ws") + "ws"
        )
        self.connect()
        self.pull()

    @property
    def token(self):
        return self._token

    def texts(self):
        """All the words on the page."""
        return "\n".join(
            str(model.text) for model in self.document.models if hasattr(model, "text")
        )

    def wait(self, condition, seconds=60):
        """Look at the page again until the condition holds; whether it does."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.5)
            self.pull()
        return condition()


class Visitors:
    """Many pages at once, without anything to draw them: what the server sends is taken, counted
    and looked through.

    Args:
        url: Of the explorer.
        queries: One a visitor.
        word: What they listen for.
    """

    def __init__(self, url, queries, word="Predicted:"):
        self.url, self.queries, self.word = url, queries, word
        self.messages, self.heard = [0] * len(queries), [False] * len(queries)
        self.failed, self.sockets = [], []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(
            asyncio.gather(*(self._visit(place) for place in range(len(self.queries))))
        )
        self.loop.close()

    async def _visit(self, place):
        """Get the page, open its websocket with the token it brought, ask for the document, and
        listen.
        """
        try:
            page = await asyncio.to_thread(self._get, self.url + self.queries[place])
            token = re.findall(r'"token":"([^"]+)"', page)[0]
            request = HTTPRequest(
                self.url.replace("http", "ws") + "ws", request_timeout=300, connect_timeout=300
            )
            socket = await websocket_connect(
                request, subprotocols=["bokeh", token], max_message_size=2**28
            )
            self.sockets.append(socket)
            await socket.read_message()  # until it greets, the server cannot listen
            for part in ({"msgid": "1", "msgtype": "PULL-DOC-REQ"}, {}, {}):
                await socket.write_message(json.dumps(part))
            while (message := await socket.read_message()) is not None:
                self.messages[place] += 1
                self.heard[place] = self.heard[place] or (
                    isinstance(message, str) and self.word in message
                )
        except Exception as error:
            self.failed.append(error)

    def _get(self, address):
        with urllib.request.urlopen(address, timeout=300) as reply:
            return reply.read().decode()

    def wait(self, condition, seconds=300):
        """Until it holds."""
        deadline = time.monotonic() + seconds
        while not condition() and not self.failed and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not self.failed and condition()

    def close(self):
        """All of them leave."""
        for socket in self.sockets:
            self.loop.call_soon_threadsafe(socket.close)
        self.thread.join(60)
