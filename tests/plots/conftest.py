"""Axes to draw on, and figures that would have been written."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture
def saved(monkeypatch):
    """The figures that were to be written to a file, in place of the files."""
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **more: figures.append(figure))
    return figures
