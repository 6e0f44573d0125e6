"""The page of a prediction from data in a real browser: alone, on a phone and on a desk, nothing
cut off.
"""

import numpy as np
import pytest

import localfields as lf
from localfields.cli import main

from .test_report import CONTRAST, SCREENS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Of a heavy-tailed recording of few samples, about which there is much to say."""
    folder = tmp_path_factory.mktemp("prediction")
    rows = np.asarray(lf.stimuli.Kur((12,), xi=1, k=3).sample(0, 400))
    np.save(folder / "some-recording-of-a-rather-long-name.npy", rows)
    path = folder / "page.html"
    main(["predict", str(folder / "some-recording-of-a-rather-long-name.npy"), "--out", str(path)])
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_loads_alone_and_fits(browser, page_file, width, scheme):  # noqa: F811
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri(), wait_until="load")
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"prediction-{width}-{scheme}.png", full_page=True)
    assert [url for url in asked if not url.startswith("data:")] == [
        page_file.as_uri()
    ] and complaints == []
    inner, outer = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert inner <= outer == width  # nothing scrolls sideways
    picture = page.locator("img")
    assert picture.evaluate(
        "image => image.complete && image.naturalWidth"
    ) > 1000 and picture.get_attribute("alt")
    assert page.locator("h1 strong").inner_text().lower().startswith("undecided")
    for cell in page.locator("th, td").all():
        box = cell.bounding_box()
        assert 0 <= box["x"] and box["x"] + box["width"] <= width
    for selector in ("h1", "p", "li", "th", "td", ".small"):
        found = page.evaluate(CONTRAST, selector)
        assert found and [one for one in found if one["ratio"] < 4.5] == []
    page.close()


def test_legends_stay_inside_their_panels():
    """Also where everything is nearly zero, or a class bends far: no legend beyond the axes, or
    over a curve's end.
    """
    from matplotlib.figure import Figure

    for law in (lf.stimuli.Gaussian((12,), xi=1), lf.stimuli.NLGP((12,), xi=1, gain=100)):
        task = lf.data.blurs(lf.stimuli.Samples(np.asarray(law.sample(0, 400))), (0, 1))
        figure = lf.plots.prediction(lf.predict(task), ax=Figure)[0].figure
        figure.draw_without_rendering()
        legends = [(ax, ax.get_legend()) for ax in figure.axes if ax.get_legend() is not None]
        assert len(legends) >= 4
        for ax, legend in legends:
            inside, frame = legend.get_window_extent(), ax.get_window_extent()
            assert frame.x0 <= inside.x0 and inside.x1 <= frame.x1, ax.get_title()
            assert frame.y0 <= inside.y0 and inside.y1 <= frame.y1, ax.get_title()
