"""Axes to draw on, and the figures that pyplot was asked for."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def ax():
    return Figure().subplots()
