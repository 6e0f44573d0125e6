"""The list of slow tests: what the script writes, and that its names are those of tests."""

import importlib
from pathlib import Path

from conftest import COLLECTED, slow_names

ROOT = Path(__file__).parents[2]
TIMES = """\
0.10 tests/test_a.py::test_quick
0.90 tests/test_a.py::test_compiled_once
0.39 tests/test_a.py::test_compiled_once
0.41 tests/test_a.py::test_slow[c]
2.00 tests/test_a.py::test_slow[a b]
"""


def test_the_script_lists_tests_above_the_limit(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("slow_tests")
    needed = script.NEEDED.read_text().splitlines()
    assert script.slow_tests(f"9.0 {needed[0]}\n") == ""
    listed = "2.0 tests/test_a.py::test_slow[a b]\n0.4 tests/test_a.py::test_slow[c]\n"
    assert script.slow_tests(TIMES) == listed
    assert slow_names(listed) == {
        "tests/test_a.py::test_slow[a b]",
        "tests/test_a.py::test_slow[c]",
    }


def test_slow_tests_are_marked_and_exist(request):
    """A renamed test would run in the wrong tier. Only files of this run are known here."""
    collected = request.config.stash[COLLECTED]
    files = {name.partition("::")[0] for name in collected}
    needed = set((ROOT / "tests" / "fast.txt").read_text().splitlines())
    for names, slow in ((slow_names(), True), (needed, False)):
        listed = {name for name in names if name.partition("::")[0] in files}
        if not any("::" in argument for argument in request.config.args):
            assert listed <= collected.keys(), "rename them in tests/slow.txt or tests/fast.txt"
        assert all(collected[name] == slow for name in listed & collected.keys())
    assert not collected[request.node.nodeid]
