"""A server for the tests of the explorer."""

import pytest


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that only ask; its processes compile on demand."""
    from localfields.app import guard
    from localfields.app import server as module

    from .serving import Serving

    # Tests ask for many pages that they do not look at: these are forgotten soon, but not before
    # a visitor of a busy server has connected to one, which would build it again.
    module.SESSION_CHECK, module.UNUSED_LIFETIME, guard.CLOSED_LIFETIME = 100, 1000, 0.2
    with Serving(port=0, workers=1, warm="", store=tmp_path_factory.mktemp("store")) as running:
        yield running
