"""Type checkers in a user's files: what is right is accepted, mistakes are seen, and signatures are
those of Python.

The files are `calls.py`, `mistakes.py`, the Python blocks of every page, and a file that asks
pyright for the signature of every class.
"""

import doctest
import importlib
import inspect
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from docs.pages import ROOT, blocks, pages
from hatchling.builders.wheel import WheelBuilder

from localfields._registry import HOMES
from localfields._spec import fields, registered

HERE = Path(__file__).parent
CLASSES = [cls for family in HOMES for cls in registered(family).values()]
CLASSES = [cls for cls in CLASSES if cls.__module__.startswith("localfields.")]
PYRIGHT = {
    "typeCheckingMode": "standard",
    "pythonVersion": "3.11",
    "extraPaths": [str(ROOT / "src")],
}
# Other libraries are not followed, except those whose types are in our signatures: that saves most
# of the time.
MYPY = """[mypy]
follow_imports = silent
python_version = 3.11
[mypy-bokeh.*,dask.*,diffrax.*,distributed.*,equinox.*,lineax.*,matplotlib.*,optax.*,optimistix.*,pandas.*,panel.*,rich.*,scipy.*,sklearn.*,xarray.*,zarr.*]
follow_imports = skip
[mypy-h5py.*]
ignore_missing_imports = True
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder with all files."""
    folder = tmp_path_factory.mktemp("user")
    for name in ("calls.py", "mistakes.py"):
        shutil.copy(HERE / name, folder)
    for path in pages():
        write_page(path, folder)
    lines = [f"import {module}" for module in sorted({cls.__module__ for cls in CLASSES})]
    lines += [f"reveal_type({cls.__module__}.{cls.__name__}.__init__)" for cls in CLASSES]
    (folder / "signatures.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    return folder


def write_page(path, folder):
    """The Python of a page as one file, and the files that its reader is to save."""
    lines = []
    for block in blocks(path):
        if block.language != "python":
            continue
        if block.word == "file":
            assert not (folder / block.value).exists(), f"two pages have a file {block.value}"
            (folder / block.value).write_text(block.text, encoding="utf-8")
        elif ">>>" in block.text:
            examples = doctest.DocTestParser().get_examples(block.text)
            # What a page shows to fail is wrong on purpose.
            lines += [example.source for example in examples if example.exc_msg is None]
        else:
            lines.append(block.text)
    if lines:
        name = re.sub(r"\W", "_", str(path.relative_to(ROOT).with_suffix("")))
        (folder / f"page_{name}.py").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def pyright(folder):
    """What pyright says: (file, line, severity, message)."""
    command = [str(Path(sys.executable).with_name("pyright")), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return [
        (Path(row["file"]).name, row["range"]["start"]["line"] + 1, row["severity"], row["message"])
        for row in answer["generalDiagnostics"]
    ]


@pytest.fixture(scope="module")
def mypy(folder):
    """What mypy says, in the same form."""
    files = [path.name for path in folder.glob("*.py") if path.name != "signatures.py"]
    done = subprocess.run(
        # What it knows of the package and its dependencies is kept in the clone for the next time.
        [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".cache" / "mypy"), *files],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"(checked {len(files)} source files)" in done.stdout, done.stdout + done.stderr
    lines = re.findall(r"^([\w.]+):(\d+): (\w+): (.*)$", done.stdout, re.MULTILINE)
    return [(name, int(line), severity, message) for name, line, severity, message in lines]


@pytest.fixture(params=["pyright", "mypy"])
def errors(request):
    """Errors of a checker: (file, line, message)."""
    rows = request.getfixturevalue(request.param)
    return [(name, line, text) for name, line, severity, text in rows if severity == "error"]


def test_right_calls_are_accepted(errors):
    assert [row for row in errors if row[0] != "mistakes.py"] == []


def test_mistakes_are_seen(errors):
    lines = (HERE / "mistakes.py").read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# WRONG")}
    assert len(wrong) > 25
    assert {line for name, line, _ in errors if name == "mistakes.py"} == wrong


def test_right_calls_run(tmp_path, monkeypatch):
    """The types are not wider than what is accepted."""
    text = (HERE / "calls.py").read_text(encoding="utf-8")
    assert len(re.findall(r"^(\w+\.)*[A-Z]\w*\(", text, re.MULTILINE)) >= 40
    np.save(tmp_path / "recordings.npy", np.random.default_rng(0).normal(size=(50, 64)))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(HERE / "calls.py"))


def split(text):
    """The parts between commas that are in no bracket and no string."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if character in "\"'":
            quote = "" if character == quote else quote or character
        elif not quote:
            depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def parameters(text, module):
    """Names, kinds and defaults from a signature as pyright writes it."""
    kind, rows = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    for part in split(text):
        name, _, rest = part.partition(": ")
        if name.startswith("*"):
            if name != "*":
                rows.append((name[1:], inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.empty))
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        _, equals, default = rest.rpartition(" = ")
        value = eval(default, vars(module)) if equals else inspect.Parameter.empty
        rows.append((name, kind, value))
    return rows


def same(one, other):
    return repr(one) == repr(other) or (not isinstance(one, type) and one == other)


def test_signatures_are_those_of_python(pyright):
    revealed = {line: text for name, line, _, text in pyright if name == "signatures.py"}
    assert len(revealed) == len(CLASSES) > 60
    for (_, text), cls in zip(sorted(revealed.items()), CLASSES, strict=True):
        match = re.fullmatch(r'Type of ".*__init__" is "\(self: \w+(?:, )?(.*)\) -> None"', text)
        assert match, text
        known = parameters(match[1], importlib.import_module(cls.__module__))
        python = [
            (parameter.name, parameter.kind, parameter.default)
            for parameter in inspect.signature(cls).parameters.values()
        ]
        assert [row[:2] for row in known] == [row[:2] for row in python], cls
        for (name, _, default), (_, _, own) in zip(known, python, strict=True):
            assert same(default, own), f"{cls.__name__}.{name}: {default!r} is not {own!r}"
        assert [row[0] for row in python] == [field.name for field in fields(cls)]


def test_the_wheel_says_that_it_is_typed():
    files = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert "localfields/py.typed" in files


def test_ignored_types_have_a_reason():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    ignored = re.findall(r"# (?:type|pyright): ignore.*", text)
    assert len(ignored) <= 20
    assert all(re.match(r"# pyright: ignore\[\w+\]  # \w", line) for line in ignored), ignored
