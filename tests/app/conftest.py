"""A server for the tests of the explorer."""

import pytest


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that only ask; its processes compile on demand."""
    from localfields.app import guard
    from localfields.app import server as module

    from .serving import Serving

    module.SESSION_CHECK, guard.CLOSED_LIFETIME = 100, 0.2  # see `forget_unused` in test_server.py
    with Serving(port=0, workers=1, warm="", store=tmp_path_factory.mktemp("store")) as running:
        yield running
