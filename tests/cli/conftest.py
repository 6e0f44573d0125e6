"""Command lines run in a folder of their own."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from localfields._registry import CLASSES, name_of
from localfields._start import PLUGINS

SCRIPT = Path(sys.executable).with_name("localfields")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder: empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture(autouse=True)
def plugins_of_one_test():
    """What other tests registered is not seen, and plugins of a command line are not handed on."""
    plugins, path = list(PLUGINS), list(sys.path)
    foreign = [cls for known in CLASSES.values() for cls in known.values() if is_foreign(cls)]
    forget_foreign()
    yield
    forget_foreign()
    for cls in foreign:
        CLASSES[cls.family][name_of(cls)] = cls
    PLUGINS[:], sys.path[:] = plugins, path


def is_foreign(cls):
    return not cls.__module__.startswith("localfields.")


def forget_foreign():
    for known in CLASSES.values():
        for name in [name for name, cls in known.items() if is_foreign(cls)]:
            del known[name]


def read_table(text):
    """The rows of a table drawn with lines, by the names of its columns; cells may go over
    several lines.
    """
    lines = [re.split("[│┃]", line)[1:-1] for line in text.splitlines() if line[:1] in ("│", "┃")]
    head, *body = ([cell.strip() for cell in line] for line in lines)
    rows = []
    for cells in body:
        if cells[0]:
            rows.append(cells)
        else:  # goes on
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
    return [dict(zip(head, cells, strict=True)) for cells in rows]


def shell(*words, **settings):
    """Run the installed command, as from a shell."""
    environment = {**os.environ, "COLUMNS": "160", **settings.pop("env", {})}
    return subprocess.run(
        [SCRIPT, *map(str, words)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
        **settings,
    )


@pytest.fixture
def run():
    return shell


@pytest.fixture
def quick(asked, monkeypatch):
    """No flow is followed: every task has the answer that the file's own `asked` knows, and the
    calls are noted.
    """
    calls = []

    def predict(task, **settings):
        calls.append((task, settings))
        return dataclasses.replace(asked[1], task=task)

    monkeypatch.setattr("localfields.theory.predict", predict)
    return calls
