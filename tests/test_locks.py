"""The locks: hashed, with the installer itself, and without known vulnerabilities."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import audit  # noqa: E402


@pytest.mark.parametrize("lock", audit.LOCKS, ids=lambda lock: lock.stem)
def test_the_installer_is_locked_too(lock):
    """What `python -m venv` brings is as old as Python, and is replaced with the rest."""
    packages = re.findall(
        r"^([a-z0-9._-]+)==.* \\\n    --hash=sha256:", lock.read_text(), re.MULTILINE
    )
    assert {"pip", "setuptools", "jax"} <= set(packages)


def test_a_vulnerable_package_is_found():
    problem = {"id": "PYSEC-1", "fix_versions": ["2.0"], "aliases": [], "description": ""}
    report = {
        "dependencies": [
            {"name": "good", "version": "1.0", "vulns": []},
            {"name": "bad", "version": "1.0", "vulns": [problem]},
            {"name": "unknown", "skip_reason": "Dependency not found on PyPI"},
        ]
    }
    assert audit.judge(report) == (["bad 1.0: PYSEC-1, fixed in 2.0"], ["unknown"])


@pytest.mark.slow
def test_no_locked_package_has_a_known_vulnerability():
    done = subprocess.run(
        [sys.executable, audit.__file__], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    if done.returncode == 3:  # no network, or one without PyPI's list of vulnerabilities
        pytest.skip(f"NOT AUDITED: {done.stderr.strip()}")
