"""No module above 500 lines, no function above 80, unless a comment at its head says why: `# long: because …`."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE, FUNCTION = 500, 80
REASON = "# long: "


def too_long(name, text):
    """What is longer than it may be, told in a line each."""
    lines = text.splitlines()
    told = []
    if len(lines) > MODULE and not any(is_reason(line) for line in lines[:3]):
        told.append(f"{name} has {len(lines)} lines, more than {MODULE}")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        count = node.end_lineno - node.lineno + 1
        if count > FUNCTION and not (first > 1 and is_reason(lines[first - 2])):
            told.append(f"{name}, line {node.lineno}: `{node.name}` has {count} lines, more than {FUNCTION}")
    return told


def is_reason(line):
    """A comment that gives one; the mark alone is none."""
    return line.strip().startswith(REASON) and len(line.strip()) > len(REASON) + 10


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_nothing_is_long_without_a_reason(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    assert [line for path in files for line in too_long(path.relative_to(ROOT), path.read_text(encoding="utf-8"))] == []


def function(lines, above=""):
    return f"{above}def f(\n    x,\n):\n" + (lines - 3) * "    x += 1\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (500 * "x = 1\n", 0),
        (501 * "x = 1\n", 1),
        ('"""A table."""\n# long: one table, read from top to bottom\n' + 501 * "x = 1\n", 0),
        ('"""A table."""\n# long: \n' + 501 * "x = 1\n", 1),
        (10 * "x = 1\n" + "# long: said where nobody looks for it\n" + 501 * "x = 1\n", 1),
        (function(80), 0),
        (function(81), 1),
        (function(81, "# long: one formula a line, as in the appendix\n"), 0),
        (function(81, "# long: one formula a line, as in the appendix\n@cache\n@checked\n"), 0),
        (function(81, "# one formula a line, as in the appendix\n"), 1),
        ("class A:\n    async " + function(81).replace("\n", "\n    "), 1),
        (function(81) + function(82), 2),
    ],
)
def test_length_is_noticed(text, count):
    assert len(too_long("made up", text)) == count
