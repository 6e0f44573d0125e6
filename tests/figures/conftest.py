"""What a figure needs at the smallest scale, and figures made by the command line at little cost."""

from pathlib import Path

import jax
import pytest

from .altered import results_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results(request, tiny_store):
    """The runs of the `FIGURE` that a file is about."""
    return results_of(request.module.FIGURE, tiny_store)


@pytest.fixture(scope="module")
def at_little_cost():
    """Pictures have one format (`test_make` and the command line's tests look at all of them).

    Compiled programs are kept where the other tests keep them.
    """
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(ROOT / ".cache"))
        patch.setattr("localfields.figures.make.SUFFIXES", (".png",))
        yield
    for name, value in before.items():
        jax.config.update(name, value)
