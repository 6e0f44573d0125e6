"""The browser that all tests of this folder look through."""

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

QUIET = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("LOCALFIELDS_BROWSER") or shutil.which("chromium")
    assert path, "set LOCALFIELDS_BROWSER to a Chromium, as `make test` does"
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=[*QUIET, *root])
        yield chromium
        chromium.close()
