"""The site, built once for the tests that look at it."""

import hashlib
import os
import subprocess
import sys

import pytest

from docs.pages import ROOT


@pytest.fixture(scope="session")
def site():
    """A folder with the site, built again where a page, the package or a library has changed
    since.
    """
    sources = [ROOT / "mkdocs.yml", ROOT / "requirements" / "dev.lock"]
    sources += [file for name in ("docs", "src", "scripts") for file in (ROOT / name).rglob("*.*")]
    digest = hashlib.sha256()
    for file in sorted(sources):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    folder = ROOT / ".cache" / "site"
    stamp = folder / "built-from"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return folder
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [*words, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=settings,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    stamp.write_text(digest.hexdigest())
    return folder
