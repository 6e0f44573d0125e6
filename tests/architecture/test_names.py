"""One meaning per class name, and values that cannot be changed after they were made."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "localfields"

# The same distribution, of one site and of a whole lattice.
SHARED_NAMES = {"StudentT": {"marginals/numeric.py", "stimuli/elliptical.py"}}
# These carry a run, a page or a process from one moment to the next.
MUTABLE = {
    "app/diagram.py:Cell",
    "app/live_run.py:LiveRun",
    "app/pool.py:LaneTask",
    "app/pool.py:WorkerProcess",
    "app/server.py:Service",
    "app/work.py:RunTask",
    "experiments/runner.py:_Runner",
    "training/loop.py:Loop",
    "training/stream.py:Stream",
}


def classes(folder):
    """The classes of a package: (module, definition)."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield path.relative_to(folder).as_posix(), node


def modules_by_class(folder):
    modules = defaultdict(set)
    for module, definition in classes(folder):
        modules[definition.name].add(module)
    return modules


def mutable_dataclasses(folder):
    mutable = set()
    for module, definition in classes(folder):
        for decorator in definition.decorator_list:
            text = ast.unparse(decorator)
            name = text.partition("(")[0].removeprefix("dataclasses.")
            if name == "dataclass" and "frozen=True" not in text:
                mutable.add(f"{module}:{definition.name}")
    return mutable


def test_a_class_name_means_one_thing():
    twice = {name: where for name, where in modules_by_class(SOURCES).items() if len(where) > 1}
    assert twice == SHARED_NAMES


def test_values_are_frozen():
    assert mutable_dataclasses(SOURCES) == MUTABLE


def test_both_checks_have_power(tmp_path):
    (tmp_path / "a.py").write_text(
        "import dataclasses\n\n@dataclasses.dataclass\nclass A:\n    x: int\n"
    )
    (tmp_path / "b.py").write_text("class A:\n    pass\n\nclass B:\n    class A: pass\n")
    assert modules_by_class(tmp_path) == {"A": {"a.py", "b.py"}, "B": {"b.py"}}
    assert mutable_dataclasses(tmp_path) == {"a.py:A"}
