"""The site, built once for the tests that look at it."""

import os
import subprocess
import sys

import pytest

from docs.pages import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, env=settings, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
