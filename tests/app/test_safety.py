"""Safe by default: who may ask, what a link may say, and what is never served."""

import html
import re
import sys

import pytest

from localfields.app.guard import HostNames, host_name, is_loopback

from .serving import Visitor, ask, knock

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the libraries that draw the pages

OURS = [
    "127.0.0.1:{port}",
    "localhost:{port}",
    "localhost",
    "LOCALHOST:{port}",
    "[::1]:{port}",
    "localhost:8080",
]
FOREIGN = [
    "evil.example:{port}",
    "evil.example",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example",
    "127.0.0.1:{port}@evil.example",
    "evil.example@127.0.0.1:{port}",
    "127.0.0.1:port",
    "127.0.0.1/evil.example",
    "192.0.2.7:{port}",
    "0.0.0.0:{port}",
    "",
    None,
]


@pytest.mark.parametrize("host", OURS)
def test_our_names_are_answered(server, host):
    assert (
        ask(server.port, "/health", headers={"Host": host.format(port=server.port)}).status == 200
    )


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize(
    "path", ["/", "/health", "/static/js/bokeh.min.js", "/ws", "/download/x.nc"]
)
def test_a_foreign_name_that_points_here_is_refused(server, host, path):
    before = server.service.num_pages()
    host = host and host.format(port=server.port)
    reply = ask(server.port, path, headers={"Host": host})
    assert reply.status in (400, 403) and "token" not in reply.text
    assert server.service.num_pages() <= before


@pytest.mark.parametrize("host", FOREIGN[:3])
def test_a_websocket_of_a_foreign_name_is_refused(server, host):
    """DNS rebinding: origin and host agree, and both are foreign."""
    host = host.format(port=server.port)
    assert knock(server.port, Host=host, Origin=f"http://{host}") == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:3000",  # another program of this machine
        "http://127.0.0.1",
        "https://127.0.0.1:{port}.evil.example",
        "null",
        "file://",
        "chrome-extension://127.0.0.1:{port}",
    ],
)
def test_a_websocket_of_a_foreign_origin_is_refused(server, origin):
    assert knock(server.port, Origin=origin.format(port=server.port)) == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_websocket_of_our_own_page_is_let_in(server, name):
    here = f"{name}:{server.port}"
    visitor = Visitor(server.url)
    assert visitor.document.roots
    protocol = {"Sec-WebSocket-Protocol": f"bokeh, {visitor.token}"}
    assert knock(server.port, Host=here, Origin=f"http://{here}", **protocol) == 101
    visitor.close()


@pytest.mark.parametrize(
    "protocols",
    [
        None,
        "bokeh",
        "bokeh, token",
        "bokeh, eyJ4IjoxfQ",  # JSON, but no session
        "bokeh, eyJzZXNzaW9uX2lkIjoieCJ9.abc",  # a session that is not signed
        "bokeh, x, y",
        "other, token",
    ],
)
def test_a_websocket_without_our_token_is_refused_without_a_word(server, protocols, capfd):
    assert knock(server.port, **{"Sec-WebSocket-Protocol": protocols}) == 403
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("query", ["bokeh-session-id=mine", "bokeh-token=mine"])
def test_a_session_that_the_server_did_not_sign_is_refused(server, query):
    assert ask(server.port, f"/?{query}").status == 403
    headers = {"Bokeh-Session-Id": "mine"}
    assert ask(server.port, "/", headers=headers).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_answered(server, method):
    assert ask(server.port, "/", method).status == 405


LINK = "/?stimulus=nlgp&xi=1,3"


def navigation(site, dest="document"):
    """What a browser says when it opens an address."""
    return {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": dest}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])  # the latter: another port of ours
def test_other_sites_may_link_but_not_read(server, site):
    assert ask(server.port, "/health", headers=navigation(site)).status == 200
    assert ask(server.port, "/runs", headers=navigation(site)).status == 200
    for path in ("/", "/health", "/static/js/bokeh.min.js"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert ask(server.port, path, headers=headers).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_setting_that_another_site_sends_waits_for_a_click(server, site):
    before = server.service.num_pages()
    reply = ask(server.port, f"{LINK}&labels='%3E%3Cscript%3E", headers=navigation(site))
    assert reply.status == 403 and "token" not in reply.text and "<script>" not in reply.text
    (link,) = re.findall("<a href='([^']*)'>Open it</a>", reply.text)
    assert html.unescape(link) == f"{LINK}&labels='%3E%3Cscript%3E"
    assert server.service.num_pages() <= before


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_a_setting_that_was_typed_or_clicked_here_is_opened(server, site):
    reply = ask(server.port, LINK, headers=navigation(site))
    assert reply.status == 200 and "token" in reply.text


@pytest.mark.parametrize("dest", ["iframe", "frame", "embed", "object"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin"])
def test_no_page_is_built_for_a_frame(server, site, dest):
    before = server.service.num_pages()
    reply = ask(server.port, "/", headers=navigation(site, dest))
    assert reply.status == 403 and "token" not in reply.text
    assert server.service.num_pages() <= before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("seed=%C2%B2", "digits 0 to 9"),
        ("seed=" + "1" * 5000, "5000 characters"),
        ("beside=" * 5000 + "xi=1,3", "more than one run"),
        ("beside=xi%3D1,3%26beside%3Dxi%253D1,3", "more than one run"),
        ("xi=1,3&xi=1,4", "twice"),
        ("xi=%ff", "cannot be read"),
        ("&&", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_read_opens_no_page(server, query, words, capfd):
    before = server.service.num_pages()
    reply = ask(server.port, f"/?{query}")
    assert reply.status == 400 and words in reply.text
    assert server.service.num_pages() <= before
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "query",
    [
        "stimulus=nlgp&gain=1e308&xi=1,3",
        "stimulus=nlgp&xi=1e-308,3",
        "stimulus=nlgp&xi=1,3&a=1?b=2",
        "?",
        "=",
    ],
)
def test_an_odd_address_is_a_page(server, query, capfd):
    visitor = Visitor(server.url, f"?{query}")
    words = visitor.texts()
    visitor.close()
    assert "failed to load" not in words and "limits" in words
    assert "Traceback" not in capfd.readouterr().err


def test_a_page_of_a_host_with_colons_is_opened(server):
    assert ask(server.port, "/runs", headers={"Host": f"[::1]:{server.port}"}).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2f..%2f..%2fetc/passwd",
        "/static//etc/passwd",
        "/static/extensions/panel/../../../../../etc/passwd",
        "/static/extensions/panel/%2e%2e%2f%2e%2e%2fconfig.py",
        "/static/extensions/panel/..%5c..%5cconfig.py",
        "/static/extensions/etc/passwd",
        "/download/../../etc/passwd",
        "/download/%2e%2e%2fetc%2fpasswd.nc",
        "/download/anything.nc",
        "/phase/etc/passwd",
        "/runs/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/etc/passwd",
        "/components/localfields.app.server/Server/__css__/server.py",
        "/components/panel.config/panel_extension/_resources/config.py",
        "/autoload.js",
        "/phase/autoload.js",
        "/metadata",
        "/admin",
        "/rest/session_info",
    ],
)
def test_nothing_else_is_served(server, path):
    reply = ask(server.port, path)
    assert (
        reply.status in (301, 302, 400, 403, 404)
        and "root:" not in reply.text
        and "import " not in reply.text
    )


def test_no_module_is_imported_because_an_address_names_it(server):
    """Panel serves resources of components, and imports the module that the address names."""
    assert "antigravity" not in sys.modules
    assert ask(server.port, "/components/antigravity/x/__css__/x.css").status == 404
    assert ask(server.port, "/components/panel.tests.util/x/__css__/x.css").status == 404
    assert "antigravity" not in sys.modules and "panel.tests.util" not in sys.modules


OPENED: list[str] = []
RUN: list[str] = []
PARSED: list[str] = []


def _hook(event, args):
    if event == "open":
        OPENED.append(str(args[0]))
    elif event == "compile":
        PARSED.append(str(args[0])[:1000])
    elif event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn"):
        RUN.append(str(args))


sys.addaudithook(_hook)


@pytest.mark.parametrize(
    "query",
    [
        "stimulus=samples&data={path}&shape=12",
        "stimulus=image-patches&source={path}&blur=1,2",
        "stimulus=copula&xi=1,3&marginal_law=samples:data={path}",
        "stimulus=nlgp&xi=1,3&kernel={path}",
        "stimulus={path}",
        "beside=stimulus%3Dsamples%26data%3D{path}",
        "xi=__import__('os').system('touch+{path}'),3",
        "stimulus=nlgp&xi=1,3&network=__import__('os').system('touch+{path}')",
    ],
)
def test_a_link_that_names_a_file_or_code_gives_a_message(server, tmp_path, query):
    path = tmp_path / "marked.npy"
    OPENED.clear()
    RUN.clear()
    visitor = Visitor(server.url, f"?{query.format(path=path)}")
    words = visitor.texts()
    visitor.close()
    assert "The link could not be read" in words
    assert not [
        path_or_command for path_or_command in OPENED if "marked" in path_or_command
    ] and not [path_or_command for path_or_command in RUN if "marked" in path_or_command]
    assert not path.exists()


def test_no_text_of_a_link_is_parsed_as_python(server):
    PARSED.clear()
    visitor = Visitor(server.url, "?stimulus=nlgp&xi=[1,anything]&gain={2:anything}")
    visitor.close()
    assert not [text for text in PARSED if "anything]" in text or "anything}" in text]


def test_words_of_a_link_are_shown_and_not_carried_out(server):
    visitor = Visitor(server.url, "?stimulus=%3Cscript%3Ealert(1)%3C/script%3E")
    words = visitor.texts()
    visitor.close()
    assert "<script>" not in words


@pytest.mark.parametrize(
    ("address", "loop"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True)]
    + [
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_loopback(address, loop):
    assert is_loopback(address) == loop


def test_names_beyond_loopback():
    """Any number may be asked for, as no name system can turn it into another; names must be
    given.
    """
    names = HostNames("0.0.0.0", ["Lab.Example.org"])
    assert (
        names.knows("192.0.2.7:5006")
        and names.knows("lab.example.org")
        and names.knows("[2001:db8::1]:5006")
    )
    assert not names.knows("evil.example") and not names.knows("")
    assert names.allows_origin("http://192.0.2.7:5006", "192.0.2.7:5006")
    assert not names.allows_origin("http://192.0.2.8:5006", "192.0.2.7:5006")
    assert names.allows_origin(
        "https://lab.example.org", "127.0.0.1:5006"
    )  # behind a proxy that was named


def test_names_of_hosts():
    assert (
        host_name("localhost:80") == "localhost"
        and host_name("[::1]:80") == "::1"
        and host_name("a.b.:1") == "a.b"
    )
    for odd in ("a:b", "a/b", "a@b", "a?b", "[::1", "a:99999"):
        assert host_name(odd) == ""
