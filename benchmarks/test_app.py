"""The explorer as its visitors feel it: how soon a slider is answered, how often a run is drawn,
how much it all takes.

In a real browser, on one server: alone, while two runs go on, and with twenty pages open. Twenty
visitors have computers of their own to draw their pages on: nineteen of them only take what the
server sends. That all twenty are drawn by one browser on the server's own cores is measured
besides, without a limit: it is mostly the browser's time.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from app.serving import Visitors
from playwright.sync_api import sync_playwright

from localfields.app.state import to_query

BROWSER = os.environ.get("LOCALFIELDS_BROWSER") or shutil.which("chromium")
PAGES = 20
# The time from a key to the first frame in which the amplifier is another one, in the page's own
# clock.
ANSWERED = """() => new Promise((done) => {
    const source = window.Bokeh.documents[0].get_model_by_name('amplifier')
    const read = () => Array.from(source.data.get ? source.data.get('y') : source.data['y']).join()
    const before = read(), start = performance.now()
    window.answered = new Promise((resolve) => {
        const look = () => read() !== before
            ? resolve(performance.now() - window.pressed) : setTimeout(look, 2)
        look()
    })
    document.addEventListener('keydown', () => { window.pressed = performance.now() },
        { once: true, capture: true })
    done(start)
})"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    command = [
        sys.executable,
        "-m",
        "localfields.cli",
        "app",
        "--port",
        "0",
        "--store",
        str(folder),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        yield found.group(), process.pid
        process.terminate()


@pytest.fixture(scope="module")
def browser():
    assert BROWSER, "set LOCALFIELDS_BROWSER to a Chromium"
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield chromium
        chromium.close()


def opened(browser, address, query=""):
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(180_000)
    page.goto(address + query)
    page.get_by_text("Predicted:").wait_for()
    return page


def answer(page) -> float:
    """Milliseconds from a key on the gain's slider to the new amplifier."""
    slider = page.locator(".noUi-handle").nth(2)
    slider.focus()
    page.evaluate(ANSWERED)
    page.keyboard.press("ArrowLeft")
    return page.evaluate("() => window.answered")


def answers(page, count=15) -> list[float]:
    found = []
    for _ in range(count):
        found.append(answer(page))
        page.wait_for_timeout(700)  # let the verdict come, as for somebody who looks
    return found


def family(pid: int) -> list[int]:
    """A process and all below it."""
    children = [
        one
        for file in Path(f"/proc/{pid}/task").glob("*/children")
        for one in file.read_text().split()
    ]
    return [pid, *(one for child in children for one in family(int(child)))]


def memory(pid: int) -> float:
    """MB resident, of a process and all below it."""
    pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in family(pid)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_a_slider_is_answered_at_once(server, browser, report):
    page = opened(browser, server[0])
    answers(page, 3)  # the first ones find things for the first time
    alone = statistics.median(answers(page))
    report("explorer: a slider answered, alone", alone, "ms", limit=200)
    long = "?stimulus=nlgp&xi=1,3&gain=100&members=10&batch=5000&steps=20000"
    busy = [opened(browser, server[0], long) for _ in range(2)]
    for one in busy:
        one.get_by_role("button", name="Start", exact=True).click()
        one.get_by_text(re.compile(r"^Step \d")).wait_for()
    beside = statistics.median(answers(page))
    for one in busy:
        one.get_by_role("button", name="Cancel", exact=True).click()
        one.context.close()
    page.context.close()
    report("explorer: a slider answered, while two runs go on", beside, "ms", limit=200)
    assert alone > 0 and beside > 0


def test_a_run_is_drawn_five_times_a_second(server, browser, report):
    page = opened(browser, server[0])
    page.evaluate(
        """() => {
        window.drawn = []
        const source = window.Bokeh.documents[0].get_model_by_name('this run: ipr')
        source.properties.data.change.connect(() => { window.drawn.push(performance.now()) })
    }"""
    )
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text(re.compile("Confirmed|Refuted")).wait_for()
    drawn = page.evaluate("() => window.drawn")
    page.context.close()
    assert len(drawn) > 3
    between = [b - a for a, b in zip(drawn[:-1], drawn[1:], strict=True)]
    report(
        "explorer: between drawings of a run, median", statistics.median(between), "ms", limit=200
    )


def test_twenty_visitors(server, browser, report):
    setting = {"stimulus": "nlgp", "xi": "1,3", "gain": "100", "members": "10"}
    # Four of them have a run going on: a link may name a second setting, which is run at once.
    long = [
        {**setting, "batch": "5000", "steps": "20000", "seed": str(place)} for place in range(4)
    ]
    queries = [
        f"?{to_query(setting, long[place] if place < 4 else None)}" for place in range(PAGES - 1)
    ]
    start = time.perf_counter()
    others = Visitors(server[0], queries)
    others.wait(lambda: min(others.messages) >= 10)
    report(f"explorer: {PAGES - 1} pages opened at once", time.perf_counter() - start, "s")
    page = opened(browser, server[0])
    answers(page, 3)
    before = sum(others.messages)
    found = answers(page)
    report("explorer: messages to the others meanwhile", sum(others.messages) - before, "")
    report(
        f"explorer: a slider answered, one of {PAGES} visitors, four runs going on",
        statistics.median(found),
        "ms",
    )
    report("explorer: the slowest of them", max(found), "ms", limit=1000)
    report(
        f"explorer: server and workers with {PAGES} visitors", memory(server[1]), "MB", limit=4000
    )
    page.context.close()
    others.close()
    assert not others.failed


def test_twenty_pages_in_one_browser(server, browser, report):
    before = memory(server[1])
    start = time.perf_counter()
    pages = [opened(browser, server[0]) for _ in range(PAGES)]
    report(f"explorer: {PAGES} pages opened one after another", time.perf_counter() - start, "s")
    for one in pages[:4]:
        one.get_by_role("button", name="Start", exact=True).click()
    found = [answer(page) for page in pages]
    report(
        f"explorer: a slider answered in {PAGES} pages of one browser",
        statistics.median(found),
        "ms",
    )
    report("explorer: the slowest of these", max(found), "ms")
    for one in pages[:4]:
        one.get_by_text(re.compile("Confirmed|Refuted")).wait_for()
    held = memory(server[1])
    report("explorer: server and workers before these pages", before, "MB")
    report(f"explorer: server and workers with {PAGES} pages", held, "MB", limit=4000)
    for page in pages:
        page.context.close()
    assert held > 0
