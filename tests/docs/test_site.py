"""The site builds strictly, and no page fetches a script, a style, a font or a picture from
another host.
"""

import re
from html.parser import HTMLParser

import pytest

from docs.pages import ROOT

FETCHED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}
ABROAD = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)
URL = re.compile(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)")


class Fetches(HTMLParser):
    """What a page makes a browser fetch by itself."""

    def __init__(self):
        super().__init__()
        self.found, self.classes = [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "link" and given.get("rel") in ("canonical", "next", "prev"):
            return
        self.found += [given[name] for name in FETCHED.get(tag, ()) if given.get(name)]
        self.found += [match[0] or match[1] for match in URL.findall(given.get("style") or "")]
        self.classes += (given.get("class") or "").split()


def fetched(page):
    parser = Fetches()
    parser.feed(page)
    return parser.found


def test_every_page_is_listed_once():
    listed = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(
        str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")
    )


@pytest.mark.slow
def test_every_page_is_there(site):
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert all((site / path.with_suffix(".html")).is_file() for path in sources)
    assert "Trajectory" in (site / "search" / "search_index.json").read_text()


@pytest.mark.slow
def test_nothing_is_fetched_from_another_host(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        abroad = [link for link in fetched(page.read_text(encoding="utf-8")) if ABROAD.match(link)]
        assert not abroad, f"{page.name} fetches {abroad}"
    for style in site.rglob("*.css"):
        named = [match[0] or match[1] for match in URL.findall(style.read_text(encoding="utf-8"))]
        assert not [name for name in named if ABROAD.match(name)], style


@pytest.mark.slow
def test_what_is_fetched_is_there(site):
    for page in site.rglob("*.html"):
        for link in fetched(page.read_text(encoding="utf-8")):
            name = re.split("[?#]", link)[0]
            if (
                page.name != "404.html"
                and name
                and name != "report/report.html"
                and not name.startswith("data:")
            ):
                assert (page.parent / name).is_file(), f"{page.name} names {link}"
    fonts = re.findall(
        r"url\((fonts/[^)]+\.woff2)\)", (site / "assets" / "katex" / "katex.min.css").read_text()
    )
    assert fonts and all((site / "assets" / "katex" / font).is_file() for font in fonts)


@pytest.mark.slow
def test_fields_and_examples_are_in_the_reference(site):
    page = (site / "reference" / "stimuli.html").read_text(encoding="utf-8")
    assert "coupling of neighbors; positive aligns them" in page
    assert page.count("highlight") > 20, "examples are code"


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example.org/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<img src="http://example.org/x.png">',
        "<div style=\"background: url('https://example.org/x.png')\">",
    ],
)
def test_another_host_is_seen(page):
    assert [link for link in fetched(page) if ABROAD.match(link)]
