"""A mistake is told in one line before anything is computed: what, got, expected, what to do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .mistakes import MISTAKES


@pytest.fixture(scope="session")
def outcomes():
    """What each mistake led to, all made in one fresh process."""
    program = [sys.executable, "-m", "training.mistakes"]
    folder = Path(__file__).parents[1]
    done = subprocess.run(
        program, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_told(name, outcomes):
    mistake, outcome = MISTAKES[name], outcomes[name]
    message = outcome["message"]
    assert outcome["is InputError"], f"{outcome['type']}: {message}"
    assert not outcome["compiled"] and not outcome["traced"], (
        f"refused after something was compiled: {message}"
    )
    assert outcome["seconds"] < 5, f"refused after {outcome['seconds']:.1f} s: {message}"
    assert mistake.is_told(message), message


def test_table_is_complete():
    assert len(MISTAKES) >= 80
    assert all(mistake.what and mistake.expected and mistake.got for mistake in MISTAKES.values())
