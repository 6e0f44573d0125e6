"""What a figure needs at the smallest scale, made up or computed, and figures made at little
cost.
"""

import pytest

from .altered import results_of
from .canned import canned_results


@pytest.fixture(scope="module")
def results(request):
    """Made-up runs of the `FIGURE` that a file is about."""
    return canned_results(request.module.FIGURE)


@pytest.fixture(scope="module")
def computed(request, tiny_store):
    """The same, computed: for slow tests."""
    return results_of(request.module.FIGURE, tiny_store)


@pytest.fixture(scope="module")
def figure(request, results):
    """That figure of the made-up runs, as matplotlib has it before anything is rendered."""
    return request.module.FIGURE.draw(results)


@pytest.fixture(scope="module")
def at_little_cost():
    """Pictures have one format (`test_make` and the command line's tests look at all of them)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("localfields.figures.make.SUFFIXES", (".png",))
        yield
