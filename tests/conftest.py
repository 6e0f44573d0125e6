"""Settings every test runs under, and one random key a test."""

import os
import zlib
from pathlib import Path
from typing import Any, Self

import jax
import jaxtyping
import pytest
from beartype import BeartypeConf, beartype

CACHE = Path(__file__).parents[1] / ".cache"


def checked(function):
    """Beartype, where an annotation is a promise.

    A constructor's is not: `xi=3`, `kernel="periodized"` and `marginal_law=lambda u: u` are legal, and the field's
    declaration validates them. `Self` is known to beartype only inside a class that it decorates itself.
    """
    if function.__name__ == "__init__":
        return function
    function.__annotations__ = {name: Any if hint is Self else hint for name, hint in function.__annotations__.items()}
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(function)


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(CACHE / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jaxtyping.install_import_hook("localfields", f"{__name__}.checked")


def pytest_configure(config):
    CACHE.mkdir(exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    # A program that cannot be kept, or that another process is still writing, is compiled anew.
    config.addinivalue_line("filterwarnings", "ignore:Error (reading|writing) persistent compilation cache entry")


@pytest.fixture
def key(request):
    """A random key of the test's own, the same in every run; its seed is shown when the test fails."""
    seed = zlib.crc32(request.node.nodeid.encode())
    request.node.add_report_section("call", "seed", f"jax.random.key({seed})")
    return jax.random.key(seed)


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory):
    """A store for figures at the smallest scale: what one test computes, all others load, in every worker."""
    from localfields.store import Store

    base = tmp_path_factory.getbasetemp()
    return Store((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny")
