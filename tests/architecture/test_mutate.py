"""The mutation runner: which changes it makes, that each is one program more, and what it says of them."""

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "mutate.py"


@pytest.fixture(scope="module")
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


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


def test_the_changes_of_a_module(mutate):
    """All of them, none in annotations, texts and `__repr__`, and each in one place."""
    source = SOURCE.encode()
    expected = {(kind, SOURCE.replace(old, new, 1)) for kind, old, new in EXPECTED}
    found = mutate._Finder("a.py", source).mutants
    assert {(one.kind, one.apply(source).decode()) for one in found} == expected
    assert len(found) == len({one.id for one in found}) == len(EXPECTED)
    for one in found:
        ast.parse(one.apply(source))
        assert one.is_valid(source)
        removed, added = one.diff(source).splitlines()
        assert removed[0] == "-" and added[0] == "+" and removed[1:] in SOURCE


def test_names_of_changes_survive_edits_elsewhere(mutate):
    before = mutate._Finder("a.py", SOURCE.encode()).mutants
    after = mutate._Finder("a.py", b"import numpy as np\n\n\n" + SOURCE.encode()).mutants
    assert [one.id for one in before] == [one.id for one in after]
    assert [one.line + 3 for one in before] == [one.line for one in after]


def test_the_tests_of_a_module_are_found(mutate):
    own, around = mutate.find_tests("store/index.py")
    assert own == ["src/localfields/store/index.py", "tests/store/test_index.py"]
    assert "tests/store/test_store.py" in around and "tests/store/test_index.py" not in around
    assert "tests/theory/test_solve.py" in mutate.find_tests("theory/_solve.py")[0]
    for module in (ROOT / "src" / "localfields").rglob("*.py"):
        files = mutate.find_tests(str(module.relative_to(ROOT / "src" / "localfields")))
        assert all((ROOT / file).exists() for stage in files for file in stage)


def test_a_run_tells_survivors_from_the_killed(tmp_path):
    """In a package of its own with a test that sees one function and not the other."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "mutate.py").write_text(SCRIPT.read_text())
    package = tmp_path / "src" / "localfields"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "area.py").write_text(
        "def seen(x):\n    return x + 2\n\n\ndef unseen(x):\n    return x - 7\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_area.py").write_text(
        "from localfields.area import seen, unseen\n\n\n"
        "def test_area():\n    assert seen(1) == 3 and unseen(1) is not None\n\n\n"
        "def test_broken():\n    assert False\n"
    )
    command = [sys.executable, "scripts/mutate.py", "area", "--out", "found.json", "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads((tmp_path / "found.json").read_text())
    outcomes = {(one["line"], one["kind"]): one["outcome"] for one in found["mutants"].values()}
    assert outcomes == {
        (2, "sign"): "killed",
        (2, "off by one"): "killed",
        (6, "sign"): "survived",
        (6, "off by one"): "survived",
    }
    assert "src/localfields/area.py:6 (sign)\n-    return x - 7\n+    return x + 7" in done.stdout
    assert "not used here: tests/test_area.py: tests/test_area.py::test_broken" in done.stdout
    assert "| `area` | 2 | 2 | 0 | 0 | 0 | 50 % |" in done.stdout
    assert (package / "area.py").read_text().count("7") == 1  # the tree itself is as before
    # A second run has nothing left to do; a list of equivalent mutants is counted apart.
    name = next(name for name, one in found["mutants"].items() if one["outcome"] == "survived")
    listed = f'[[mutant]]\nid = "{name}"\nreason = "an example"\n'
    (tmp_path / "scripts" / "mutate_equivalent.toml").write_text(listed)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "| `area` | 2 | 1 | 0 | 1 | 0 | 33 % |" in done.stdout
