"""Every relative link and every anchor leads somewhere. Links to other hosts are counted, not
followed.
"""

import re
import unicodedata

import pytest

from docs.pages import ROOT, pages

LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
NAMED = re.compile(r"`((?:docs|tests|src|benchmarks|scripts|requirements|skeletons)/[\w./-]+)`")


def without_code(text, inline=True):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "", text) if inline else text


def anchors(path):
    """The names of a page's headings, as its Markdown makes them, and those of documented
    objects.
    """
    text = path.read_text(encoding="utf-8")
    result = set(re.findall(r"^::: (\S+)", text, re.MULTILINE)) | set(
        re.findall(r"\{ ?#([\w-]+)", text)
    )
    for heading in re.findall(r"^#+ (.+)$", without_code(text, inline=False), re.MULTILINE):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        result.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return result


def broken(path, link):
    """Why a link leads nowhere, or nothing."""
    if re.match(r"[a-z]+:", link):
        return ""
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists():
        return f"there is no {name}"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{target.name} has no heading #{anchor}"
    return ""


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    wrong = {link: why for link in LINK.findall(without_code(text)) if (why := broken(path, link))}
    assert not wrong
    # Files that are named, not linked: `tests/theory/networks/test_gated.py`.
    missing = [
        name
        for name in NAMED.findall(without_code(text, inline=False))
        if not (ROOT / name).exists()
    ]
    assert not missing


def test_links_to_other_hosts_are_few():
    abroad = {
        link
        for path in pages()
        for link in re.findall(r"https?://[^\s)>`\"]+", path.read_text(encoding="utf-8"))
    }
    print(*sorted(abroad), sep="\n")  # to be looked at: pytest -s
    assert len(abroad) < 40


@pytest.mark.parametrize("link", ["nowhere.md", "theory.md#no-such-heading", "#nothing"])
def test_a_dead_link_is_seen(link):
    assert broken(ROOT / "docs" / "index.md", link)
    assert not broken(ROOT / "docs" / "index.md", "theory.md#one-neuron")
