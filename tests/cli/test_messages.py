"""No bad command line hangs, ends in a traceback or is accepted: each gets its one line."""

import sys
from pathlib import Path

import pytest

from .bad_lines import LINES, attempt, prepare

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import messages  # noqa: E402

EXPECTED = messages.read(messages.LINE_MESSAGES)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    prepare(path)
    return path


def names(folder):
    """Everything in a folder but the bytecode of plugins."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_every_line_has_a_message():
    assert list(EXPECTED) == LINES and len(LINES) >= 180 and len(set(LINES)) == len(LINES)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:80])
def test_a_bad_line_gets_its_message(line, files, monkeypatch):
    monkeypatch.chdir(files)
    before = names(files)
    code, out, err = attempt(line)
    assert (code, out) == (2, ""), err
    assert len(err.splitlines()) == 1 and err.startswith("localfields: ")
    assert err.strip() == EXPECTED[line], "run scripts/messages.py --update and read it"
    assert names(files) == before
