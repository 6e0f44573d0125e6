"""The mutation runner: which changes it makes, that each is one program more, and what it says
of them.
"""

import ast
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"


@pytest.fixture(scope="module")
def mutate():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        yield importlib.import_module("mutate")


@pytest.fixture(scope="module")
def mutants(mutate):
    return importlib.import_module("mutants")


SOURCE = '''"""A module - with 1 docstring + some signs."""

def scale(x: int = 1 + 1, *, flag=True) -> "a - b":
    """Returns 2 * x."""
    if x <= 3 and flag:
        return -x + 2.5 * np.sum(x[:, None], axis=0)
    return solve(x, f"{x + 1}", zip(x, y, strict=True), tol=1e-3)

class A:
    def __repr__(self):
        return "A" * (1 - 2)
'''
EXPECTED = {
    ("off by one", "1 + 1", "2 + 1"),
    ("off by one", "1 + 1", "1 + 2"),
    ("sign", "1 + 1", "1 - 1"),
    ("comparison", "flag=True", "flag=False"),
    ("comparison", "if x <= 3 and flag", "if (not (x <= 3 and flag))"),
    ("comparison", "x <= 3", "x < 3"),
    ("comparison", "x <= 3", "x > 3"),
    ("comparison", "3 and flag", "3 or flag"),
    ("off by one", "<= 3", "<= 4"),
    ("sign", "return -x +", "return (x) +"),
    ("sign", "-x + 2.5", "-x - 2.5"),
    ("factor", "2.5 * np", "5.0 * np"),
    ("factor", "2.5 * np", "2.5 / np"),
    ("axis", "x[:, None]", "x[None, :]"),
    ("axis", "axis=0", "axis=-1"),
    ("dropped", ", axis=0)", ", )"),
    ("swap", "zip(x, y", "zip(y, x"),
    ("dropped", ", tol=1e-3)", ", )"),
    ("factor", "tol=1e-3", "tol=0.002"),
}


def test_the_changes_of_a_module(mutants):
    """All of them, none in annotations, texts and `__repr__`, and each in one place."""
    source = SOURCE.encode()
    expected = {(kind, SOURCE.replace(old, new, 1)) for kind, old, new in EXPECTED}
    changes = mutants.find_mutants("a.py", source)
    assert {(change.kind, change.apply(source).decode()) for change in changes} == expected
    assert len(changes) == len({change.id for change in changes}) == len(EXPECTED)
    for change in changes:
        ast.parse(change.apply(source))
        assert change.is_valid(source)
        removed, added = change.diff(source).splitlines()
        assert removed[0] == "-" and added[0] == "+" and removed[1:] in SOURCE


def test_names_of_changes_survive_edits_elsewhere(mutants):
    before = mutants.find_mutants("a.py", SOURCE.encode())
    after = mutants.find_mutants("a.py", b"import numpy as np\n\n\n" + SOURCE.encode())
    assert [change.id for change in before] == [change.id for change in after]
    assert [change.line + 3 for change in before] == [change.line for change in after]


def test_the_tests_of_a_module_are_found(mutate):
    own, around = mutate.find_tests("store/index.py")
    assert own == ["src/localfields/store/index.py", "tests/store/test_index.py"]
    assert "tests/store/test_store.py" in around and "tests/store/test_index.py" not in around
    assert "tests/theory/test_solve.py" in mutate.find_tests("theory/solve.py")[0]
    for module in (ROOT / "src" / "localfields").rglob("*.py"):
        files = mutate.find_tests(str(module.relative_to(ROOT / "src" / "localfields")))
        assert all((ROOT / file).exists() for stage in files for file in stage)


def test_a_run_tells_survivors_from_the_killed(tmp_path):
    """In a package of its own with a test that sees one function and not the other."""
    (tmp_path / "scripts").mkdir()
    for script in ("mutate.py", "mutants.py"):
        shutil.copy(SCRIPTS / script, tmp_path / "scripts")
    package = tmp_path / "src" / "localfields"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "area.py").write_text(
        "import os\n\n\ndef seen(x):\n    return x + 2\n\n\ndef unseen(x):\n    return x - 7\n"
        "\n\ndef fatal(x, limit):\n    if x == limit:\n        os.abort()\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_area.py").write_text(
        "from localfields.area import fatal, seen, unseen\n\n\n"
        "def test_area():\n    assert seen(1) == 3 and unseen(1) is not None\n    fatal(1, 2)\n\n\n"
        "def test_broken():\n    assert False\n"
    )
    command = [
        sys.executable,
        "scripts/mutate.py",
        "area",
        "--out",
        "mutants.json",
        "--workers",
        "2",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    result = json.loads((tmp_path / "mutants.json").read_text())
    outcomes = {
        (mutant["line"], mutant["kind"]): mutant["outcome"] for mutant in result["mutants"].values()
    }
    assert outcomes == {
        (5, "sign"): "killed",
        (5, "off by one"): "killed",
        (9, "sign"): "survived",
        (9, "off by one"): "survived",
        (13, "comparison"): "crashed",
    }
    assert "src/localfields/area.py:9 (sign)\n-    return x - 7\n+    return x + 7" in done.stdout
    assert "not used here: tests/test_area.py: tests/test_area.py::test_broken" in done.stdout
    assert "| `area` | 2 | 2 | 1 | 0 | 0 | 0 | 50 % |" in done.stdout
    assert (package / "area.py").read_text().count("7") == 1  # the tree itself is as before
    # A second run has nothing left to do; a list of equivalent mutants is counted apart.
    survivors = (i for i, mutant in result["mutants"].items() if mutant["outcome"] == "survived")
    name = next(survivors)
    listed = f'[[mutant]]\nid = "{name}"\nreason = "an example"\n'
    (tmp_path / "scripts" / "mutate_equivalent.toml").write_text(listed)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "| `area` | 2 | 1 | 1 | 0 | 1 | 0 | 33 % |" in done.stdout
