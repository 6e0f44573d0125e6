"""Command lines run in a folder of their own; what they change in JAX's settings is put back."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("localfields")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder: empty. Compiled programs are kept where the other tests keep them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(ROOT / ".cache"))
    monkeypatch.setenv("COLUMNS", "160")
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)


def shell(*words, **settings):
    """Run the installed command, as from a shell."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(ROOT / ".cache"), "COLUMNS": "160", **settings.pop("env", {})}
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
        return asked[1]

    monkeypatch.setattr("localfields.theory.predict", predict)
    return calls
