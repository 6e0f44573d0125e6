"""Settings every test runs under, and one random key a test."""

import ctypes
import gc
import os
import resource
import time
import zlib
from pathlib import Path
from typing import Any, Self

import jax
import jaxtyping
import numpy as np
import psutil  # that of distributed
import pytest
from beartype import BeartypeConf, beartype

ROOT = Path(__file__).parents[1]
UNUSED = 30 * 24 * 3600  # seconds after which a compiled program that no test has read is deleted
SLOW_TESTS = Path(__file__).with_name("slow.txt")  # those that `make test` leaves out
COLLECTED = pytest.StashKey[dict[str, bool]]()  # every test of this run: whether it is slow
MEMORY = 2 * 10**9  # bytes of a process, above which compiled programs are let go

# Files that take longest, by processor time. They come first, so that workers that take a file at
# a time end together.
LONG_FILES = (
    "tests/figures/test_all.py",
    "tests/figures/test_notes_all.py",
    "tests/training/test_estimators.py",
    "tests/theory/networks/test_committee.py",
    "tests/theory/checks/test_assumptions.py",
    "tests/docs/test_pages.py",
    "tests/theory/data/test_prediction.py",
    "tests/experiments/test_cluster.py",
    "tests/experiments/test_sweep.py",
    "tests/networks/test_networks.py",
    "tests/training/test_engine.py",
    "tests/experiments/test_resume.py",
    "tests/training/test_exactness.py",
    "tests/training/test_fused.py",
    "tests/experiments/test_experiment.py",
    "tests/training/test_compile.py",
)


def checked(function):
    """Beartype, where an annotation is a promise.

    A constructor's is not: `xi=3`, `kernel="periodized"` and `marginal_law=lambda u: u` are legal,
    and the field's declaration validates them. `Self` is known to beartype only inside a class that
    it decorates itself.
    """
    if function.__name__ == "__init__":
        return function
    function.__annotations__ = {
        name: Any if hint is Self else hint for name, hint in function.__annotations__.items()
    }
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(function)


# Compiled programs are shared by all clones and by all processes that tests start. They are apart
# from those of the user's own runs, since tests kill processes, which may leave a file half
# written. Whatever else would go to the user's cache (fonts of matplotlib) stays in the clone.
user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("LOCALFIELDS_CACHE", str(user_cache / "localfields" / "tests"))
os.environ["XDG_CACHE_HOME"] = str(ROOT / ".cache")
# Compiling is most of the work, so programs are not optimized, here and in processes that tests
# start, and signatures are not checked at run time. Where XLA_FLAGS is set, if only to nothing,
# both is done: programs are compiled as for users. So `make test-all` does.
UNOPTIMIZED = "--xla_cpu_use_fusion_emitters=false"
THOROUGH = os.environ.get("XLA_FLAGS", UNOPTIMIZED) != UNOPTIMIZED  # workers inherit it
if not THOROUGH:
    os.environ["XLA_FLAGS"] = UNOPTIMIZED
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    jax.config.update("jax_disable_most_optimizations", True)
os.environ.setdefault("EQX_ON_ERROR", "off")  # as the command line does, before equinox is imported
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
if THOROUGH:
    jaxtyping.install_import_hook("localfields", f"{__name__}.checked")


def pytest_configure(config):
    from localfields._start import use_compilation_cache

    use_compilation_cache()
    # A program that cannot be kept, or that another process is still writing, is compiled anew.
    config.addinivalue_line(
        "filterwarnings", "ignore:Error (reading|writing) persistent compilation cache entry"
    )


def pytest_sessionfinish(session):
    """Delete compiled programs of code that has changed, which nothing reads any more."""
    if not hasattr(session.config, "workerinput"):
        oldest = time.time() - UNUSED
        for file in Path(os.environ["LOCALFIELDS_CACHE"]).rglob("*-cache"):
            if file.stat().st_atime < oldest:
                file.unlink(missing_ok=True)


def pytest_addoption(parser):
    parser.addoption("--cpu-times", metavar="FILE", help="append the CPU seconds of each test")


def slow_names(text=None):
    """The tests in tests/slow.txt, whose lines are CPU seconds and the name of a test."""
    lines = (SLOW_TESTS.read_text() if text is None else text).splitlines()
    return {line.split(maxsplit=1)[1] for line in lines}


def pytest_collection_modifyitems(config, items):
    """Mark the tests that were measured to be slow, and begin with the files that take longest."""
    slow = slow_names()
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
    config.stash[COLLECTED] = {i.nodeid: i.get_closest_marker("slow") is not None for i in items}
    place = {str(ROOT / name): rank for rank, name in enumerate(LONG_FILES)}
    assert all(map(os.path.isfile, place)), "a slow file has moved: name it anew"
    items.sort(key=lambda item: place.get(str(item.path), len(LONG_FILES)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Measure a test with its fixtures and the processes it started and waited for."""
    path = item.config.getoption("--cpu-times")
    before = cpu_seconds()
    result = yield
    if path:
        with open(path, "a") as file:  # one short write, so that workers do not mix their lines
            file.write(f"{cpu_seconds() - before:.2f} {item.nodeid}\n")
    return result


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """Let go of compiled programs between files, where they have become many: the next file
    reads its own from disk.
    """
    yield
    if psutil.Process().memory_info().rss > MEMORY:
        jax.clear_caches()
        gc.collect()
        trim = getattr(
            ctypes.CDLL(None), "malloc_trim", None
        )  # of glibc: without it the memory stays with the process
        if trim is not None:
            trim(0)


@pytest.fixture
def key(request):
    """A random key of the test's own, the same in every run; its seed is shown when the test
    fails.
    """
    seed = zlib.crc32(request.node.nodeid.encode())
    request.node.add_report_section("call", "seed", f"jax.random.key({seed})")
    return jax.random.key(seed)


@pytest.fixture
def rng(request):
    """Random numbers of the test's own, the same in every run."""
    return np.random.default_rng(list(request.node.name.encode()))


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory):
    """A store for figures at the smallest scale: what one test computes, all others load, in
    every worker.
    """
    from localfields.store import Store

    base = tmp_path_factory.getbasetemp()
    return Store((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny")
