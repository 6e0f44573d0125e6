"""The report page in a real browser: it loads from a file, alone, and can be read on a phone and
in the dark.
"""

import dataclasses
import json
from pathlib import Path

import pytest

from localfields.cli import main
from localfields.figures.make import read_records
from localfields.figures.report import write_report

pytestmark = pytest.mark.browser

SCREENS = Path(__file__).parents[2] / "report" / "screens"
VIEWS = [
    (1280, "light"),
    *(
        pytest.param(view, marks=pytest.mark.slow)
        for view in ((1280, "dark"), (390, "light"), (390, "dark"))
    ),
]

# Colors of the text that a selector's elements show, and of what lies behind it, with opacity
# carried out.
CONTRAST = """
(selector) => {
  const parse = (text) => { const v = text.match(/[\\d.]+/g).map(Number); return [v[0], v[1], v[2], v[3] ?? 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll(selector)].map((element) => {
    const chain = [];
    for (let node = element; node; node = node.parentElement) chain.unshift(node);
    let behind = null, opacity = 1;
    for (const node of chain) {
      const style = getComputedStyle(node), color = parse(style.backgroundColor);
      opacity *= Number(style.opacity);
      if (color[3] > 0) behind = behind ? over(color, behind) : color[3] === 1 ? color : null;
    }
    if (!behind) return { text: element.textContent.slice(0, 40), ratio: 0 };  // a background nobody has set
    const ink = parse(getComputedStyle(element).color);
    ink[3] *= opacity;
    const a = light(over(ink, behind)), b = light(behind);
    return { text: element.textContent.slice(0, 40), ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) };
  });
}
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report made with the command line, and a row with as many words as other figures have."""
    folder = tmp_path_factory.mktemp("report")
    main(["reproduce", "fig2", "--out", str(folder), "--store", str(folder / "runs")])
    made = read_records(folder)
    claims = made["fig2"].claims
    wordy = {
        part: ", ".join(f"{part} {number}.000 ± 0.009" for number in range(30))
        for part in ("measured", "reason")
    }
    wordy |= {"id": "K9", "published": "IPR near 1 / near 0 / near 0 " * 5}
    longer = dataclasses.replace(
        made["fig2"], claims=(*claims, dataclasses.replace(claims[0], **wordy))
    )
    write_report(folder, {"fig2": longer})
    return folder


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def view(request, browser, report):
    """The page at one width and in one color scheme, and what it asked for and complained of on
    the way.
    """
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.requests, page.complaints = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("requestfailed", lambda request: page.complaints.append(request.url))
    page.goto((report / "report.html").as_uri(), wait_until="load")
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"report-{width}-{scheme}.png", full_page=True)
    yield page
    context.close()


def test_it_loads_alone(view, report):
    elsewhere = [url for url in view.requests if not url.startswith(("file://", "data:"))]
    files = [url for url in view.requests if url.startswith("file://")]
    assert elsewhere == []
    assert files == [(report / "report.html").as_uri()]
    assert view.complaints == []
    assert "localfields" in view.title()


def test_the_ledger_is_shown(view, report):
    plain = json.loads((report / "claims.json").read_text(encoding="utf-8"))
    claims = [claim for figure in plain["figures"] for claim in figure["claims"]]
    rows = view.locator("table").first.locator("tbody tr")
    assert rows.count() == len(claims) == 7
    for place, claim in enumerate(claims):
        row = rows.nth(place)
        assert row.is_visible()
        for part in ("id", "statement", "published", "measured", "verdict", "reason"):
            words = row.get_by_text(claim[part], exact=part in ("id", "verdict")).first
            assert words.is_visible(), (claim["id"], part)
            box = words.bounding_box()
            assert 0 <= box["x"] and box["x"] + box["width"] <= view.viewport_size["width"]


def test_the_picture_decodes_and_fits(view):
    picture = view.locator("figure img")
    assert picture.count() == 1
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 500
    assert picture.evaluate("image => image.naturalHeight") > 300
    box = picture.bounding_box()
    natural = picture.evaluate("image => image.naturalWidth / image.naturalHeight")
    assert box["width"] / box["height"] == pytest.approx(natural, rel=0.01)
    assert (
        box["width"] >= 700
    )  # below, twelve panels cannot be read: on a phone it is moved inside its frame
    frame = view.locator("figure .scroll")
    assert frame.bounding_box()["width"] <= view.viewport_size["width"]
    frame.evaluate("frame => { frame.scrollLeft = 1e6; }")
    assert (
        picture.evaluate("image => image.getBoundingClientRect().right")
        <= view.viewport_size["width"]
    )
    assert picture.get_attribute("alt")


def test_nothing_scrolls_sideways(view):
    inner, outer = view.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert inner <= outer == view.viewport_size["width"]


@pytest.mark.parametrize(
    "selector",
    [
        "body",
        "h1",
        "p",
        "td",
        "td .reproduced",
        "td .differs",
        "td .small",
        "figcaption",
        "p.small",
        "th",
        ".id",
    ],
)
def test_text_can_be_read(view, selector):
    colors = view.evaluate(CONTRAST, selector)
    assert colors
    assert [color for color in colors if color["ratio"] < 4.5] == []


def test_dark_is_dark_and_light_is_light(view):
    color = view.evaluate("getComputedStyle(document.body).backgroundColor")
    level = sum(map(int, color.removeprefix("rgb(").removesuffix(")").split(","))) / 3
    dark = view.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert level < 60 if dark else level > 200


def test_contrast_is_measured(browser):
    page = browser.new_page()
    page.set_content(
        "<body style='background:#fff;color:#000'><p style='color:#777'>a</p><i style='opacity:.5'>b</i>"
    )
    ratios = {color["text"]: color["ratio"] for color in page.evaluate(CONTRAST, "p, i")}
    # #777 on white is known to fall just short; half-transparent black is rgb(127.5) on white.
    assert ratios["a"] == pytest.approx(4.48, abs=0.005)
    assert ratios["b"] == pytest.approx(
        1.05 / ((((127.5 / 255 + 0.055) / 1.055) ** 2.4) + 0.05), rel=1e-6
    )
    page.close()
