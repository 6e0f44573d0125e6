"""Command lines run in a folder of their own."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("localfields")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder: empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


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
    """No flow is followed: every task has the answer that the file's own `asked` knows, and the calls are noted."""
    calls = []

    def predict(task, **settings):
        calls.append((task, settings))
        return dataclasses.replace(asked[1], task=task)

    monkeypatch.setattr("localfields.theory.predict", predict)
    return calls
