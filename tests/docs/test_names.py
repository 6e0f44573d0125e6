"""What documents name exists: functions and classes by their dotted names, tests, files of the
source, skeletons.
"""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

import localfields

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MATHEMATICS = sorted((ROOT / "docs" / "mathematics").glob("*.md"))

DOTTED = re.compile(r"`(localfields(?:\.\w+)+)(?:\(\))?`")
SHORT = re.compile(r"`(lf(?:\.\w+)+)(?:\(\))?`")
FILE = re.compile(r"`((?:src|tests|benchmarks|skeletons|scripts|docs)/[\w./-]+?)(?:::(\w+))?`")


def resolve(name):
    """The object of a dotted name; fails where there is none."""
    parts = name.split(".")
    if parts[0] == "lf":  # as a reader has it, who imports nothing else
        return reduce(getattr, parts[1:], localfields)
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module)
    raise AttributeError(name)


def missing(page):
    """What a text names that is not there."""
    lost = []
    for name in (*DOTTED.findall(page), *SHORT.findall(page)):
        try:
            resolve(name)
        except AttributeError:
            lost.append(name)
    for file, test in FILE.findall(page):
        path = ROOT / file
        if not path.exists() or (
            test and not re.search(rf"^def {test}\(", path.read_text("utf-8"), re.MULTILINE)
        ):
            lost.append(f"{file}::{test}" if test else file)
    return lost


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_names_exists(path):
    assert missing(path.read_text(encoding="utf-8")) == []


def test_a_wrong_name_is_noticed():
    page = "`localfields.theory.Amplifer` `lf.trian` `src/localfields/nowhere.py` `tests/test_lattice.py::test_nothing`"
    assert len(missing(page)) == 4
    assert missing("`localfields.theory.Amplifier.taylor` `lf.train` `tests/test_lattice.py`") == []


@pytest.mark.parametrize("path", MATHEMATICS, ids=lambda path: path.stem)
def test_every_equation_has_its_code_and_its_test(path):
    page = path.read_text(encoding="utf-8")
    # An equation is followed, before the next one of its section or after it, by where it is
    # computed and held.
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        if "$$" in section and not section.startswith("Notation"):
            assert "- Code: `" in section, section[:60]
            assert re.search(r"- Tests?: `tests/", section), section[:60]
    assert page.count("$$") % 2 == 0


def test_every_word_of_the_glossary_has_a_name_in_the_code():
    rows = [
        line
        for line in (ROOT / "docs/glossary.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ][1:]
    words = [row.split("|")[1].strip() for row in rows]
    assert len(rows) > 40 and words == sorted(words, key=str.lower)
    assert all(
        DOTTED.search(row.split("|")[-2]) or SHORT.search(row.split("|")[-2]) for row in rows
    )
