"""The site in a real browser: every formula is typeset, and nothing is asked of another host."""

import functools
import http.server
import os
import shutil
import threading

import pytest
from playwright.sync_api import sync_playwright

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Silent, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def page():
    path = os.environ.get("LOCALFIELDS_BROWSER") or shutil.which("chromium")
    assert path, "set LOCALFIELDS_BROWSER to a Chromium, as `make test` does"
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=[*QUIET, *root])
        yield chromium.new_page()
        chromium.close()


def test_formulas_are_typeset_without_another_host(site, address, page):
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    count = 0
    for path in sorted((site / "mathematics").glob("*.html")):
        page.goto(f"{address}mathematics/{path.name}", wait_until="load")
        marked, done = (page.locator(one).count() for one in (".arithmatex", ".arithmatex .katex"))
        wrong = page.locator(".katex-error").all_text_contents()
        assert (done, wrong) == (marked, []), path.name
        count += done
    assert count > 50
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert complaints == []


def test_the_search_finds_a_name(address, page):
    page.goto(f"{address}index.html", wait_until="load")
    page.locator("input.md-search__input").fill("critical kurtosis")
    page.locator(".md-search-result__item").first.wait_for(timeout=60_000)
    assert page.locator(".md-search-result__item").count() > 0
