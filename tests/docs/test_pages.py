"""Every block of code in the documentation runs.

`python` blocks run in order, in one namespace and one empty folder a page: those with prompts as
doctests. In `console` blocks each `$ localfields …` is carried out, and what it prints is held
against what the page shows. In `sh` blocks each command of ours is carried out up to where it would
begin to compute, so that options, values, files and names of figures are those that exist.

Pages whose blocks take more than three seconds are slow; of those, a short test reads every block
as it does `sh`.
"""

import ast
import contextlib
import doctest
import importlib
import io
import operator
import re
import shlex
import sys
import warnings

import jax
import matplotlib.image
import numpy as np
import pytest

import localfields as lf
from docs.pages import ROOT, blocks, pages
from localfields import _registry, _start, cli

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMPUTE = ("baseline", "predict", "reproduce", "run", "sample", "sweep", "train")
KNOWN = ("python", "console", "sh", "toml", "json", "text", "")
WITH_CODE = [
    path
    for path in pages()
    if any(block.language in ("python", "console", "sh") for block in blocks(path))
]
LONG = [
    ROOT / "docs" / name
    for name in (
        "baselines.md",
        "choose.md",
        "data.md",
        "index.md",
        "tour.md",
        "tutorials/cluster.md",
        "tutorials/theory-against-training.md",
        "tutorials/your-own-data.md",
        "tutorials/your-own-stimulus.md",
    )
]
assert set(LONG) <= set(WITH_CODE), "a long page has moved: name it anew"


class Ready(BaseException):
    """A command has read its options and would now compute."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the files that pages speak of as the reader's own; what a page
    changes is put back.
    """
    rng = np.random.default_rng(0)
    for name in ("recordings", "short", "long", "quiet", "loud", "mydata", "x"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(64, 16)).astype(np.float32))
    np.save(tmp_path / "labels.npy", np.arange(64) % 2)
    np.savetxt(tmp_path / "labels.csv", np.arange(64) % 2)
    (tmp_path / "photographs").mkdir()
    matplotlib.image.imsave(
        tmp_path / "photographs" / "one.png", rng.uniform(size=(64, 64)), cmap="gray"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("LOCALFIELDS_STORE", raising=False)
    for module in lf._MODULES:  # all classes are known before those of a page join them
        importlib.import_module(f"localfields.{module}")
    monkeypatch.setattr(
        _registry, "CLASSES", {family: dict(known) for family, known in _registry.CLASSES.items()}
    )
    monkeypatch.setattr(_start, "PLUGINS", [])
    monkeypatch.setattr(_start, "MODULES", [])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@contextlib.contextmanager
def as_a_reader():
    """JAX as it is without the settings of our tests, and no windows of pictures."""
    ranks = jax.config.jax_numpy_rank_promotion
    jax.config.update("jax_numpy_rank_promotion", "allow")
    try:
        with (
            jax.enable_x64(False),
            warnings.catch_warnings(),
            matplotlib.rc_context({"backend": "agg"}),
        ):
            yield
    finally:
        jax.config.update("jax_numpy_rank_promotion", ranks)


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "path",
    [pytest.param(one, marks=pytest.mark.slow) if one in LONG else one for one in WITH_CODE],
    ids=name_of,
)
def test_its_blocks_run(path, folder, monkeypatch):
    names = {"__name__": "__main__"}
    with as_a_reader():
        for block in blocks(path):
            place = f"{path.relative_to(ROOT)}, line {block.line}"
            assert block.language in KNOWN, (
                f"{place}: say which language this is, or add it to those known"
            )
            if block.word == "file":
                (folder / block.value).write_text(block.text, encoding="utf-8")
            elif block.word == "not run":
                assert len(block.value) > 10, f"{place}: say why it cannot run"
            elif block.language == "python" and ">>>" in block.text:
                run_doctest(block, place, names)
            elif block.language == "python":
                exec(compile("\n" * block.line + block.text, str(path), "exec"), names)
            elif block.language == "console":
                for line, shown in commands_and_output(block.text):
                    run_command(line, shown, place)
            elif block.language == "sh":
                for line in commands(block.text):
                    read_command(line, place, monkeypatch)


@pytest.mark.parametrize("path", LONG, ids=name_of)
def test_its_blocks_can_be_read(path, folder, monkeypatch):
    """Python compiles and names what the package has; commands have the options that the page
    gives them.
    """
    with as_a_reader():
        for block in blocks(path):
            place = f"{name_of(path)}, line {block.line}"
            if block.word == "file":
                (folder / block.value).write_text(block.text, encoding="utf-8")
                if block.value.endswith(".py"):  # what it defines is named after it
                    _start.load_plugins([str(folder / block.value)])
            elif block.language == "python":
                read_python(block.text, place)
            elif block.language == "console":
                for line, _ in commands_and_output(block.text):
                    read_command(line, place, monkeypatch)


def read_python(text, place):
    """Fails where the code is none, or names after `lf.` what the package does not have."""
    if ">>>" in text:
        text = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    for node in ast.walk(ast.parse(text)):
        name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if re.fullmatch(r"lf(\.\w+)+", name):
            try:
                operator.attrgetter(name.removeprefix("lf."))(lf)
            except AttributeError as error:
                pytest.fail(f"{place}: {name}: {error}")


def run_doctest(block, place, names):
    test = doctest.DocTestParser().get_doctest(block.text, {}, place, place, block.line)
    test.globs = names
    problems = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=problems.append, clear_globs=False)
    assert not runner.failures, "".join(problems)


def commands(text):
    """Lines of a shell, with those that go on joined."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def commands_and_output(text):
    """What follows each `$`, and what is printed below it."""
    first, *parts = re.split(r"^\$ ", re.sub(r"\\\n\s*", " ", text), flags=re.MULTILINE)
    assert not first.strip() and parts, "a block of `console` begins with `$`"
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def run_command(line, shown, place):
    words = shlex.split(line, comments=True)
    assert words[0] == "localfields", (
        f"{place}: only our own command is carried out, not {words[0]}"
    )
    printed = call(words[1:], place)
    if shown.strip():
        problem = f"{place}: {line}\nprints\n{printed}\nand not\n{shown}"
        assert doctest.OutputChecker().check_output(shown, printed, FLAGS), problem


def read_command(line, place, monkeypatch):
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert all(word in targets for word in words[1:] if "=" not in word), (
            f"{place}: no such target: {line}"
        )
    elif words[0] in ("python", "pytest"):
        named = [word.partition("::")[0] for word in words[1:] if "/" in word]
        assert named and all((ROOT / word).exists() for word in named), (
            f"{place}: no such file: {line}"
        )
    else:
        assert words[0] == "localfields", f"{place}: not a command that a test can read: {line}"
        with monkeypatch.context() as patch:
            for name in COMPUTE:
                patch.setattr(
                    importlib.import_module(f"localfields.cli.{name}"),
                    "use_compilation_cache",
                    stop,
                )
            patch.setattr("localfields.app.server.serve", stop)
            with contextlib.suppress(Ready):
                call(words[1:], place)


def stop(*_, **__):
    raise Ready


def call(words, place):
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(words)
    except SystemExit as end:
        pytest.fail(
            f"{place}: localfields {shlex.join(words)} ends with {end.code}: {err.getvalue() or out.getvalue()}"
        )
    return out.getvalue()


# -- the tests of the tests ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "localfields sample nlgp --gane 100",
        "localfields train ising --coupling 0.3,x",
        "localfields reproduce fig99",
        "localfields predict nowhere.npy other.npy",
        "localfields app --prt 5006",
        "make everything",
        "pytest benchmarks/test_nothing.py -q",
        "rm -rf runs",
    ],
)
def test_a_command_that_does_not_exist_is_seen(line, folder, monkeypatch):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        read_command(line, "here", monkeypatch)


@pytest.mark.parametrize("text", [">>> lf.trian(1)\n", "lf.theory.Amplifer", "for in lf.train:"])
def test_wrong_python_is_seen(text):
    with pytest.raises((SyntaxError, pytest.fail.Exception)):
        read_python(text, "here")


def test_another_output_is_seen(folder):
    run_command("localfields --version", "localfields 0.1.0\n", "here")
    with pytest.raises(AssertionError):
        run_command("localfields --version", "localfields 9.9.9\n", "here")
