"""Reads the imports of a package's modules from their source, and holds them against the layers
of the design.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "localfields"

# The rooms, as in the design: one row a layer. Imports go down.
LAYERS = (
    (
        "lattice",
        "marginals",
        "_types",
        "errors",
        "_kinds",
        "_registry",
        "_spec",
        "_memory",
        "_files",
        "_prng",
        "_start",
        "fields",
    ),
    ("stimuli", "networks"),
    ("tasks", "trajectory", "data", "_ensemble"),
    ("training", "theory"),
    ("analysis", "baselines"),
    ("experiments", "store"),
    ("plots", "figures"),
    ("cli", "app"),
    ("__main__",),
)

# Within a layer rooms do not know of each other, with these exceptions; in the lowest, any order
# without a cycle.
NEIGHBORS = {
    ("figures", "plots"),
    ("experiments", "store"),
    ("data", "tasks"),
    ("_ensemble", "tasks"),
    ("cli", "app"),
}


class Import(NamedTuple):
    """One import found in a module's source."""

    source: str  # the importing module
    target: str  # the imported module of the package
    line: int
    eager: bool  # carried out when the module is imported, not later inside a function


def sources(folder: Path) -> dict[str, str]:
    """The text of every module below a folder, by dotted name; a package's `__init__` has the
    package's name.
    """
    result = {}
    for path in sorted(folder.rglob("*.py")):
        parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
        result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(
            encoding="utf-8"
        )
    return result


def imports(modules: Mapping[str, str]) -> list[Import]:
    """Every import of one of these modules by another, except those for the type checker alone."""
    return [
        result
        for name, text in modules.items()
        for result in _visit(ast.parse(text), name, modules, True)
    ]


def _visit(node: ast.AST, name: str, modules: Mapping[str, str], eager: bool) -> Iterator[Import]:
    if isinstance(node, ast.If) and _for_types(node.test):
        children = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for target in _targets(node, name, modules):
                if target != name:
                    yield Import(name, target, node.lineno, eager)
    lazy = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    for child in children:
        yield from _visit(child, name, modules, eager and not lazy)


def _for_types(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _targets(
    node: ast.Import | ast.ImportFrom, name: str, modules: Mapping[str, str]
) -> Iterator[str]:
    root = min(modules, key=len).partition(".")[0]
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == root)
        return
    if node.level:
        is_package = any(other.startswith(f"{name}.") for other in modules)
        parts = name.split(".")
        base = parts[: len(parts) - node.level + (1 if is_package else 0)]
        start = ".".join([*base, *([node.module] if node.module else [])])
    else:
        start = node.module or ""
    if start.partition(".")[0] != root:
        return
    for alias in node.names:
        inner = f"{start}.{alias.name}"
        # A room that has no file here is still a room: `from . import app` must not pass for a
        # plain name.
        yield (
            inner if inner in modules or (start == root and layer_of(inner) is not None) else start
        )


def room_of(module: str) -> str:
    """`localfields.stimuli.base` lives in `stimuli`; the package's own `__init__` in none."""
    return module.split(".")[1] if "." in module else ""


def layer_of(module: str) -> int | None:
    """The layer of a module's room, None when the design knows no such room."""
    return next((layer for layer, rooms in enumerate(LAYERS) if room_of(module) in rooms), None)


def homeless(modules: Mapping[str, str]) -> list[str]:
    """Modules that no layer of the design has a place for."""
    return [name for name in modules if room_of(name) and layer_of(name) is None]


def upward(modules: Mapping[str, str]) -> list[str]:
    """Imports that do not go down, told in a line each."""
    violations = []
    for imported in imports(modules):
        source, target = room_of(imported.source), room_of(imported.target)
        if source == target or not target:
            continue
        mine, other = layer_of(imported.source), layer_of(imported.target)
        down = mine is not None and other is not None and other < mine
        if not (down or mine == other == 0 or (source, target) in NEIGHBORS):
            violations.append(
                f"{imported.source}, line {imported.line}, imports {imported.target}: layer {mine} may not import layer {other}"
            )
    return violations


def cycle(modules: Mapping[str, str]) -> list[str]:
    """Modules that import each other around a circle, when they are imported; empty when there
    is none.
    """
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for imported in imports(modules):
        if imported.eager and imported.target in graph:
            graph[imported.source].add(imported.target)
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if result := walk(other, [*path, name]):
                return result
        done.add(name)
        return []

    return next((result for name in sorted(graph) if (result := walk(name, []))), [])
