"""Ctrl-C at any moment, closed and full streams, errors of the system: one line each."""

import gc
import signal
import subprocess
import sys
import time

import pytest

from localfields.cli import main

from .conftest import SCRIPT, shell

INTERRUPTED = (130, "localfields: interrupted.\n")


def outcome(line, capsys):
    """The exit code and what is on stderr; nothing is on stdout."""
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    out, err = capsys.readouterr()
    assert out == ""
    return stop.value.code, err


# -- Ctrl-C ----------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch):
    """Sets the function that `sample nlgp` calls to draw."""
    return lambda function: monkeypatch.setattr("localfields.stimuli.NLGP.draw", function)


def test_ctrl_c_in_a_callback_of_the_garbage_collector(command, capsys):
    """Python drops what is raised there, and JAX has such a callback."""

    def callback(*_):
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGINT)

    def draw(*_):
        gc.callbacks.append(callback)
        gc.collect()
        time.sleep(20)

    command(draw)
    assert outcome("sample nlgp --num 7", capsys) == INTERRUPTED


def test_ctrl_c_in_an_import_waits_for_its_end(folder, command, capsys):
    command(lambda *_: time.sleep(20))
    (folder / "interrupted.py").write_text(
        "import signal, pathlib\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "pathlib.Path('imported').touch()\n"
    )
    try:
        assert outcome("--plugin interrupted.py sample nlgp --num 7", capsys) == INTERRUPTED
    finally:
        sys.modules.pop("interrupted", None)
    assert (folder / "imported").exists()


def test_ctrl_c_in_an_import_that_does_not_end(folder, monkeypatch, capsys):
    monkeypatch.setattr("localfields.cli._process.PATIENCE", 0.1)
    (folder / "endless.py").write_text(
        "import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(20)\n"
    )
    assert outcome("--plugin endless.py sample nlgp", capsys) == INTERRUPTED


def test_an_error_after_ctrl_c_is_an_interruption(command, capsys):
    def draw(*_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("Encountered an error while initializing the extension.") from None

    command(draw)
    assert outcome("sample nlgp --num 7", capsys) == INTERRUPTED


def test_handlers_are_restored(capsys):
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    main(["--version"])
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before


@pytest.mark.slow
def test_ctrl_c_at_any_moment(folder):
    """From the first line of ours on until the samples are drawn."""
    program = "print(flush=True); from localfields.cli import main; main()"
    command = [sys.executable, "-c", program, "sample", "nlgp", "--num", "300000"]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    span = time.perf_counter() - began
    interrupted = 0
    for place in range(24):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            process.stdout.readline()
            # The package itself takes a few milliseconds to import.
            time.sleep(0.05 + 0.9 * span * place / 24)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        # While Python exits, and where the exception left code compiled at run time, Python ends
        # by the signal, which shells call 130, too.
        if out:
            assert err == "" and process.returncode in (0, -signal.SIGINT), (place, err)
        else:
            assert err == INTERRUPTED[1], place
            assert process.returncode in (130, -signal.SIGINT), place
            interrupted += 1
    assert interrupted > 12


def test_little_is_imported_before_ctrl_c_is_handled():
    """Before, Python prints a traceback of its own."""
    program = (
        "import sys, localfields.cli; heavy = {'typing', 're', 'numpy', 'jax'} & set(sys.modules); "
        "print(', '.join(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("\n", "")


# -- standard streams ------------------------------------------------------------------------------


def in_shell(line, **settings):
    """A command line with redirections, in which {} is the program."""
    return subprocess.run(
        ["sh", "-c", line.replace("{}", str(SCRIPT))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **settings,
    )


@pytest.mark.parametrize("words", ["--version", "--help", "runs --help"])
def test_a_full_output_is_told(words):
    done = in_shell(f"{{}} {words} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "localfields: Cannot write the output: No space left on device.\n"


@pytest.mark.parametrize(
    ("line", "code", "err"),
    [
        ("{} --version >&-", 0, ""),
        ("{} runs list >&-", 0, ""),
        ("{} nothing 2>&-", 2, ""),
        ("{} nothing <&-", 2, "Unknown command 'nothing'"),
        ("{} nothing >&- 2>&- <&-", 2, ""),
    ],
)
def test_closed_streams(line, code, err, folder):
    done = in_shell(line)
    assert done.returncode == code and done.stdout == ""
    assert err in done.stderr and "Traceback" not in done.stderr


# -- errors of the system --------------------------------------------------------------------------


def test_a_folder_that_is_gone(folder, monkeypatch, capsys):
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    for line in ("runs list", "reproduce fig1", "run ising --coupling 0.3,0.7"):
        code, err = outcome(line, capsys)
        assert code == 2 and err.count("\n") == 1
        assert err.startswith("localfields: The current folder no longer exists. Change to another")


def test_a_backend_that_does_not_exist(command, monkeypatch, capsys):
    def draw(*_):
        raise RuntimeError("Unable to initialize backend 'nosuch': it is not in the list of …")

    monkeypatch.setenv("JAX_PLATFORMS", "nosuch")
    command(draw)
    code, err = outcome("sample nlgp --num 7", capsys)
    assert code == 2 and "JAX cannot start on this machine: JAX_PLATFORMS is 'nosuch'." in err


@pytest.mark.slow
def test_a_backend_that_does_not_exist_in_a_shell():
    done = shell("sample", "nlgp", env={"JAX_PLATFORMS": "nosuch"})
    assert done.returncode == 2 and "Set JAX_PLATFORMS=cpu" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "Not enough memory."),
        (OSError(28, "No space left on device"), "Cannot write the output: No space left"),
        (PermissionError(13, "Permission denied", "/a/b"), "Cannot open '/a/b': Permission denied"),
    ],
)
def test_errors_of_the_system(error, message, command, capsys):
    def draw(*_):
        raise error

    command(draw)
    code, err = outcome("sample nlgp --num 7", capsys)
    assert code == 2 and err.startswith(f"localfields: {message}") and len(err.splitlines()) == 1


def test_our_own_bugs_keep_their_traceback(command):
    def draw(*_):
        raise TypeError("a bug")

    command(draw)
    with pytest.raises(TypeError, match="a bug"):
        main(["sample", "nlgp", "--num", "7"])


# -- plugins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["json.py", "numpy.py", "json", "numpy", "localfields.py"])
def test_a_plugin_with_the_name_of_a_module(name, folder, capsys):
    (folder / f"{name.removesuffix('.py')}.py").write_text("")
    code, err = outcome(f"--plugin {name} sample nlgp", capsys)
    assert code == 2 and "has the name of another module" in err and "Rename it." in err


def test_a_plugin_that_ends_the_program(folder, capsys):
    (folder / "quits.py").write_text("raise SystemExit(0)")
    code, err = outcome("--plugin quits.py sample nlgp", capsys)
    assert code == 2 and "'quits.py' cannot be imported (SystemExit: 0)" in err
