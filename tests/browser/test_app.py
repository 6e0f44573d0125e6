"""The explorer in a real browser: watch a field being born, pause, scrub, compare, share, take
along.
"""

import io
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from localfields.app.presets import presets
from localfields.app.state import to_query

pytestmark = pytest.mark.browser

SCREENS = Path("report/app")
PATIENCE = 120_000  # milliseconds: other programs may use the machine too
# A run that lasts long enough to be paused on any machine.
LONG = {
    "stimulus": "nlgp",
    "xi": "1,3",
    "gain": "100",
    "members": "4",
    "batch": "500",
    "steps": "20000",
    "every": "20",
}


# How far a figure reaches to the right, its title, and the rows of a picture from below.
REACH = "(name) => window.Bokeh.documents[0].get_model_by_name(name).x_range.end"
TITLE = "(name) => window.Bokeh.documents[0].get_model_by_name(name).title.text"
ROWS = """(name) => {
    const data = window.Bokeh.documents[0].get_model_by_name(name).data
    const image = (data.get ? data.get('image') : data['image'])[0]
    const [height, width] = image.shape, values = Array.from(image)
    return Array.from({length: height}, (_, row) => values.slice(row * width, (row + 1) * width))
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server of the command line's, with an empty store."""
    folder = tmp_path_factory.mktemp("app")
    command = [
        sys.executable,
        "-m",
        "localfields.cli",
        "app",
        "--port",
        "0",
        "--store",
        str(folder / "runs"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
    ) as server:
        assert server.stdout is not None
        try:
            said = server.stdout.readline()
            match = re.search(r"http://127\.0\.0\.1:\d+/", said)
            assert match, said
            yield match.group()
        finally:
            server.terminate()


class Visitor:
    """A page, and what it asked for and complained of."""

    def __init__(self, browser, address, query="", width=1280, height=800):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console",
            lambda message: message.type == "error" and self.complaints.append(message.text),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.goto(f"{address}{query}", wait_until="load")

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=True)

    def values(self, name, column="y"):
        """Numbers that a picture shows, from the data behind it."""
        script = """([name, column]) => {
            const found = window.Bokeh.documents[0].get_model_by_name(name)
            const data = found.data
            return Array.from(data.get ? data.get(column) : data[column])
        }"""
        return self.page.evaluate(script, [name, column])

    def wait(self, condition, what):
        """Until a function of this visitor is true."""
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end:
            match = condition()
            if match:
                return match
            self.page.wait_for_timeout(100)
        raise AssertionError(f"waited in vain for {what}")

    def text(self):
        """What the page says of prediction, run and mistakes."""
        return " ".join(self.page.locator(".note").all_inner_texts())

    def shoot(self, name):
        """Keep a picture of the whole page, which scrolls inside its frame."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        width = self.page.viewport_size["width"]
        self.page.mouse.move(width - 1, 1)
        self.page.set_viewport_size({"width": width, "height": 1500 if width > 600 else 4000})
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=SCREENS / f"{name}.png")


@pytest.fixture
def visit(browser, address):
    made = []

    def make(path="", texts=None, **more):
        query = "" if texts is None else "?" + to_query(texts)
        made.append(Visitor(browser, address, path + query, **more))
        return made[-1]

    yield make
    for visitor in made:
        visitor.context.close()


def predicted(visitor, word):
    visitor.page.get_by_text(f"Predicted: {word}").wait_for()


def finished(visitor):
    return visitor.page.get_by_text(re.compile("Confirmed|Refuted|Nothing was predicted"))


def test_it_asks_no_other_host_and_complains_of_nothing(visit, address):
    visitor = visit()
    predicted(visitor, "localized")
    visitor.button("Start").wait_for()
    elsewhere = [url for url in visitor.requests if not url.startswith((address, "data:", "blob:"))]
    assert elsewhere == []
    assert len(visitor.requests) > 5  # it did ask this visitor
    assert visitor.complaints == []


def test_a_field_is_born(visit):
    """The first preset, as a newcomer sees it: predicted, started, watched, confirmed."""
    visitor = visit()
    predicted(visitor, "localized")
    visitor.button("Start").click()
    first = visitor.wait(lambda: visitor.values("this run: field"), "the first field")
    last = visitor.wait(
        lambda: (now := visitor.values("this run: field")) != first and now, "another field"
    )
    assert len(first) == len(last) == 40
    finished(visitor).wait_for()
    assert "Confirmed" in visitor.text()
    ratio = visitor.values("this run: ipr")
    assert ratio[0] < 0.2 < 0.5 < ratio[-1]
    visitor.shoot("localized")


@pytest.mark.slow
def test_the_slider_chooses_the_field_that_is_drawn(visit):
    """Compared with the picture of all fields, whose rows are the fields divided by their
    maxima.
    """
    visitor = visit()
    visitor.button("Start").click()
    finished(visitor).wait_for()
    rows = visitor.page.evaluate(ROWS, "this run: all fields")
    assert len(rows) == 6

    def drawn_row():
        """The row of the picture that is the field in the figure beside it; None if none is."""
        field = np.array(visitor.values("this run: field"))
        equal = [np.allclose(field / np.abs(field).max(), row, atol=1e-5) for row in rows]
        return equal.index(True) if sum(equal) == 1 else None

    assert drawn_row() == 5  # the first field is on top
    visitor.page.locator(".noUi-handle").last.focus()
    for member in range(1, 4):
        visitor.page.keyboard.press("ArrowRight")
        visitor.wait(lambda: drawn_row() == 5 - member, f"field {member + 1}")  # noqa: B023
        title = visitor.page.evaluate(TITLE, "this run: lines")
        assert title == f"this run: member {member + 1}"


@pytest.mark.slow
def test_a_wave_is_born(visit):
    visitor = visit(texts=presets()["A wave is born (Gaussian)"])
    predicted(visitor, "oscillatory")
    visitor.button("Start").click()
    finished(visitor).wait_for()
    assert "Confirmed" in visitor.text()
    assert max(visitor.values("this run: ipr")) < 0.2
    visitor.shoot("oscillatory")


@pytest.mark.slow
def test_a_slider_changes_the_law(visit):
    """With the keyboard, as sliders are used without a mouse."""
    visitor = visit()
    predicted(visitor, "localized")
    before, law = visitor.page.url, visitor.values("amplifier")
    box = visitor.page.get_by_label("gain g")
    assert box.input_value() == "100"
    slider = visitor.page.locator(".noUi-handle").nth(2)  # after the two lengthscales
    slider.focus()
    for _ in range(30):
        visitor.page.keyboard.press("ArrowLeft")
    visitor.wait(lambda: float(box.input_value()) < 50, "the text to follow the slider")
    visitor.wait(lambda: visitor.values("amplifier") != law, "another amplifier")
    visitor.wait(
        lambda: visitor.page.url != before and f"gain={box.input_value()}" in visitor.page.url,
        "the address to follow",
    )

    def settled():
        """Whether the server has answered the last key: later ones would replace what is typed."""
        text = box.input_value()
        visitor.page.wait_for_timeout(1000)
        return box.input_value() == text and f"gain={text}" in visitor.page.url

    visitor.wait(settled, "the slider to rest")
    box.fill("0.01")
    box.press("Enter")
    predicted(visitor, "oscillatory")


@pytest.mark.slow
def test_pause_scrub_go_on_and_cancel(visit):
    visitor = visit(texts=LONG)
    predicted(visitor, "localized")
    visitor.button("Start").click()
    visitor.wait(lambda: len(visitor.values("this run: ipr")) > 5, "records")
    visitor.button("Pause").click()
    visitor.button("Go on").wait_for()
    length = len(visitor.values("this run: ipr"))
    end = visitor.values("this run: field")
    visitor.page.wait_for_timeout(1000)
    assert len(visitor.values("this run: ipr")) == length  # it does stand still
    visitor.page.locator("input[type=range]").first.evaluate(
        "(slider) => { slider.value = 0; slider.dispatchEvent(new Event('change')); }"
    )
    visitor.wait(lambda: visitor.values("this run: field") != end, "the first record")
    visitor.shoot("scrubbed")
    visitor.button("Step").click()
    visitor.wait(lambda: len(visitor.values("this run: ipr")) > length, "one more record")
    visitor.button("Go on").wait_for()
    visitor.button("Go on").click()
    visitor.wait(lambda: len(visitor.values("this run: ipr")) > length + 5, "more records")
    visitor.button("Cancel").click()
    visitor.page.get_by_text("Cancelled.").wait_for()
    assert visitor.button("Start").is_enabled()
    visitor.button("Reset").click()
    visitor.wait(lambda: visitor.values("this run: ipr") == [], "an empty page")
    assert visitor.complaints == []


@pytest.mark.slow
def test_two_runs_side_by_side_and_a_link_to_both(visit):
    texts = presets()["A bump is born (NLGP, gain 100)"]
    visitor = visit(texts=texts)
    visitor.button("Start").click()
    finished(visitor).wait_for()
    visitor.button("Keep beside").click()
    box = visitor.page.get_by_label("gain g")
    box.fill("0.01")
    box.press("Enter")
    predicted(visitor, "oscillatory")
    visitor.button("Start").click()
    visitor.wait(lambda: "predicted oscillatory" in visitor.text(), "the second run")
    kept, now = visitor.values("kept run: ipr")[-1], visitor.values("this run: ipr")[-1]
    assert now < 0.2 < 0.5 < kept
    for name in ("this run", "kept run"):
        assert visitor.page.evaluate(REACH, f"{name}: lines") == 39
    visitor.shoot("beside")
    link = visitor.page.get_by_label("to copy").input_value()
    assert link.startswith("http://127.0.0.1") and "beside=" in link
    other = visit(path="?" + link.partition("?")[2])
    predicted(other, "oscillatory")
    assert other.page.get_by_label("gain g").input_value() == "0.01"
    assert other.values("kept run: ipr") == []  # a link starts nothing
    other.button("Run it").click()
    other.wait(
        lambda: (got := other.values("kept run: ipr")) and got[-1] == kept,
        "the kept run, from the store",
    )
    assert visitor.complaints == other.complaints == []


@pytest.mark.slow
def test_what_it_copies(visit):
    visitor = visit(texts=LONG)
    visitor.button("Command").click()
    visitor.wait(
        lambda: (
            visitor.page.get_by_label("to copy").input_value().startswith("localfields run nlgp")
        ),
        "a command",
    )
    visitor.button("Python").click()
    visitor.wait(
        lambda: "lf.stimuli.NLGP(" in visitor.page.get_by_label("to copy").input_value(), "Python"
    )
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.button("Copy").click()
    text = visitor.wait(
        lambda: visitor.page.evaluate("navigator.clipboard.readText()"), "the clipboard"
    )
    assert text == visitor.page.get_by_label("to copy").input_value()


@pytest.mark.slow
def test_downloads_open(visit):
    visitor = visit()
    visitor.button("Start").click()
    finished(visitor).wait_for()
    files = {}
    for words in ("Data (netCDF)", "Picture (SVG)"):
        with visitor.page.expect_download() as waiting:
            visitor.page.get_by_text(words).click()
        files[words] = Path(waiting.value.path()).read_bytes()
    with xr.open_dataset(io.BytesIO(files["Data (netCDF)"])) as data:
        assert data["weights"].shape[0] == 6 and data["weights"].shape[-1] == 40
    picture = ElementTree.fromstring(files["Picture (SVG)"])
    assert picture.tag.endswith("svg") and len(list(picture.iter())) > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?stimulus=nlgp&xi=1,3&gain=-1", "gain"),
        ("?stimulus=nlpg", "nlgp"),
        ("?stimulus=samples&data=/etc/passwd,/etc/hosts", "may name a file"),
        ("?stimulus=nlgp&xi=1,3&steps=100000000", "at most"),
        ("?stimulus=%3Cimg%20src=x%20onerror=alert(1)%3E", "could not be read"),
    ],
)
def test_a_wrong_link_gives_a_message(visit, query, says):
    visitor = visit(path=query)
    visitor.page.get_by_text("The link could not be read").wait_for()
    assert says in visitor.text()
    assert visitor.complaints == []
    visitor.button("Start").wait_for()


@pytest.mark.slow
def test_fields_on_a_torus(visit):
    visitor = visit(texts=presets()["fig1: committee"] | {"steps": "400"})
    visitor.button("Start").click()
    finished(visitor).wait_for()
    assert visitor.values("this run: ipr")[-1] > visitor.values("this run: ipr")[0]
    visitor.shoot("torus")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), [(390, "default"), (390, "dark"), (1280, "dark")])
def test_it_fits_and_can_be_read(visit, width, theme):
    visitor = visit(path=f"?{to_query(presets()['fig3: Ising'])}&theme={theme}", width=width)
    predicted(visitor, "localized")
    visitor.shoot(f"page-{width}-{theme}")
    wide = visitor.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    back = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = sum(map(int, re.findall(r"\d+", back)[:3])) < 3 * 128
    assert dark == (theme == "dark")


@pytest.mark.slow
def test_the_phase_diagram_fills_and_a_cell_opens(visit):
    """Two by two quick cells, computed in the background; stored, they are there at once for the
    next visitor.
    """
    query = "?stimulus=nlgp&across=gain&up=xi&x=0.01,100,2&y=0.7,1,2&steps=200&members=2"
    visitor = visit(path=f"phase{query}")
    visitor.button("Start").wait_for()
    visitor.wait(lambda: visitor.button("Start").is_enabled(), "the cells")
    visitor.button("Start").click()
    cells = visitor.page.locator("table.cells a")
    visitor.wait(
        lambda: (
            len([text for text in cells.all_inner_texts() if re.fullmatch(r"0\.\d+.*", text)]) == 4
        ),
        "4 cells",
    )
    visitor.shoot("phase")
    assert visitor.complaints == []
    numbers = [float(re.match(r"0\.\d+", text).group()) for text in cells.all_inner_texts()]
    again = visit(path=f"phase{query}")
    again.wait(
        lambda: len(again.page.locator("table.cells a").all_inner_texts()) == 4, "stored cells"
    )
    again.wait(
        lambda: (
            [
                float(match.group())
                for text in again.page.locator("table.cells a").all_inner_texts()
                if (match := re.match(r"0\.\d+", text))
            ]
            == numbers
        ),
        "the same numbers",
    )
    cells.last.click()
    visitor.page.wait_for_url(re.compile(r"/\?stimulus=nlgp"))
    visitor.button("Start").wait_for()
    assert visitor.page.get_by_label("steps").input_value() == "200"


@pytest.mark.slow
def test_stored_runs_are_listed_and_open(visit):
    first = visit()
    first.button("Start").click()
    finished(first).wait_for()
    visitor = visit(path="runs")
    link = visitor.page.get_by_role("link", name=re.compile("^open run")).first
    link.wait_for()
    visitor.shoot("runs")
    assert visitor.complaints == []
    link.click()
    visitor.page.wait_for_url(re.compile(r"/\?stimulus="))
    visitor.button("Start").wait_for()
