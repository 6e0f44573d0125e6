"""A store in a folder of the test's own."""

import pytest

from localfields.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")
