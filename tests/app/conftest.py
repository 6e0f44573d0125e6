"""Processes of the explorer keep their compiled programs where the tests do."""

import os
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache"


@pytest.fixture(scope="session", autouse=True)
def kept_programs():
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(CACHE)
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that only ask; its processes compile what is asked for when it is."""
    from localfields.app import server as module

    from .serving import Serving

    module.UNUSED = 6000  # milliseconds: tests ask for many pages that they do not look at
    with Serving(port=0, workers=1, warm="", store=tmp_path_factory.mktemp("store")) as running:
        yield running
