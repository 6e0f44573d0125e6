"""What a figure needs at the smallest scale, and figures made by the command line at little cost."""

import pytest

from .altered import results_of


@pytest.fixture(scope="module")
def results(request, tiny_store):
    """The runs of the `FIGURE` that a file is about."""
    return results_of(request.module.FIGURE, tiny_store)


@pytest.fixture(scope="module")
def figure(request, results):
    """That figure of those runs, as matplotlib has it before anything is rendered."""
    return request.module.FIGURE.draw(results)


@pytest.fixture(scope="module")
def at_little_cost():
    """Pictures have one format (`test_make` and the command line's tests look at all of them)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("localfields.figures.make.SUFFIXES", (".png",))
        yield
