"""Pages of Markdown and their fenced blocks, as the tests of this folder read them.

A comment before a block says what is done with it, where its language does not:

    <!-- not run: why -->     it cannot run here, and the reader is told why
    <!-- file: name.py -->    the reader is to save it under this name
"""

import dataclasses
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"(?:<!-- (?P<word>not run|file): (?P<value>[^>]+?) -->\n+)?"
    r"^```(?P<language>[\w-]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line on which it begins, and what a comment
    before it says.
    """

    language: str
    text: str
    line: int
    word: str
    value: str


def pages():
    """Every page of the project that a reader is sent to."""
    own = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [path for path in own if path.exists()] + sorted((ROOT / "docs").rglob("*.md"))


def blocks(path):
    """The fenced blocks of a page, in order."""
    page = path.read_text(encoding="utf-8")
    result = [
        Block(
            _language(match["language"], match["text"]),
            match["text"],
            page.count("\n", 0, match.start("text")),
            match["word"] or "",
            match["value"] or "",
        )
        for match in FENCE.finditer(page)
    ]
    assert 2 * len(result) == len(re.findall("^ *```", page, re.MULTILINE)), (
        f"{path}: a block that is not closed, or indented"
    )
    return result


def _language(given, text):
    """What a block without a name is: commands, or a drawing."""
    return "sh" if not given and text.startswith(("localfields ", "make ")) else given


def prose(path):
    """A page without its blocks, code and addresses: what is read as words. Lines keep their
    numbers.
    """
    text = path.read_text(encoding="utf-8")
    code = (r"^```.*?^```$", r"<!--.*?-->", r"`[^`]+?`", r"^::: \S+$")
    for pattern in (*code, r"\]\([^)]*\)", r"https?://\S+"):
        text = re.sub(
            pattern,
            lambda result: "\n" * result[0].count("\n"),
            text,
            flags=re.MULTILINE | re.DOTALL,
        )
    return text
