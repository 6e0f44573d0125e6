"""The command line as a shell: fast to start, one line for a mistake, exit code 2, nothing
written.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import localfields as lf
from localfields._spec import Row, fields, registered
from localfields.cli import COMMANDS, main
from localfields.cli._options import Command, Option, run_command

from .conftest import SCRIPT

MISTAKES = {
    "frobnicate": "Unknown command 'frobnicate'. Choose one of app,",
    "smaple nlgp": "Did you mean 'sample'?",
    "--frobnicate": "Unknown option '--frobnicate'. A command comes first",
    "--plugin": "--plugin needs a module, for example",
    "--plugin no_such_module sample nlgp": "--plugin: 'no_such_module' cannot be imported",
    "--plugin=no_such_file.py sample nlgp": "there is no file 'no_such_file.py'",
    "sample nlpg": "Did you mean 'nlgp'?",
    "sample nlgp --gian 3": "Did you mean '--gain'?",
    "sample nlgp --gai 3": "Did you mean '--gain'?",
    "sample nlgp --gain --plot": "--gain needs a value",
    "sample nlgp --gain -x": "`gain` must be a number, got '-x'",
    "sample nlgp --gain=-1e-3": "`gain` must be positive, got -0.001",
    "sample nlgp --gain -1e-3": "`gain` must be positive, got -0.001",
    "sample nlgp --plot=yes": "--plot takes no value, got 'yes'",
    "reproduce --scale large": "Unknown value of --scale 'large'. Choose one of paper, quick, tiny.",
    "app --port http": "--port must be a whole number, got 'http'",
    "sample nlgp --gain -1": "`gain` must be positive, got -1.0",
    "sample nlgp --gain abc": "`gain` must be a number, got 'abc'",
    "sample nlgp --gain nan": "`gain` must be a number, got nan",
    "sample nlgp --gain 1,2": "`gain` must be a number, got '1,2'",
    "sample nlgp --gain": "--gain needs a value. See `localfields sample nlgp",
    "sample nlgp --xi 1e-400": "`xi` must be positive, got 0.0",
    "sample nlgp surplus": "Unexpected argument 'surplus'",
    "sample nlgp -x": "Unknown option of `localfields sample nlgp` '-x'",
    "sample nlgp --plot perhaps": "Unexpected argument 'perhaps'",
    "sample nlgp --no-gain 3": "Unknown option of `localfields sample nlgp` '--no-gain'",
    "sample nlgp --shape 0": "`shape` must be a tuple of positive whole numbers, got (0,)",
    "sample nlgp --shape -5": "`shape` must be a tuple of positive whole numbers, got (-5,)",
    "sample nlgp --shape 4x4x4x4": "`shape` must be a lattice of 1 to 3 axes",
    "sample nlgp --shape forty": "`shape` must be whole numbers joined by x, got 'forty'",
    "sample nlgp --shape 1000000000": "`shape` must be a lattice of 2 to 16777216 sites",
    "sample nlgp --shape 99999999999999999999999": "`shape` must be",
    "sample nlgp --shape=": "`shape` must be whole numbers joined by x, got ''",
    "sample ising --shape 5x5": "`shape` must be a lattice of 1 axis, got (5, 5)",
    "sample ising --coupling 21": "`coupling` must be above -20 and below 20",
    "sample nlgp --num 0": "`num` must be at least 1, got 0.",
    "sample nlgp --num 1.5": "`num` must be a whole number, got 1.5",
    "sample nlgp --num many": "`num` must be a whole number, got 'many'",
    "sample nlgp --num inf": "`num` must be a whole number, got inf",
    "sample nlgp --num 1000000000": "1000000000 samples of 40 sites",
    "sample nlgp --seed -1": "`seed` must be at least 0, got -1.",
    "sample nlgp --seed x": "`seed` must be a whole number, got 'x'.",
    "sample nlgp --seed 1e300": "`seed` must be at most 4611686018427387904",
    "sample nlgp --out x.txt": "Cannot write x.txt: its name must end in .npz or .npy or .csv",
    "sample nlgp --out x": "Cannot write x: its name must end in .npz",
    "sample nlgp --out no/such/x.npz": "the folder no/such does not exist",
    "sample nlgp --out occupied/x.npz": "occupied is a file, not a folder",
    "sample nlgp --out folder.npz --overwrite": "that is a folder",
    "sample nlgp --kernel linear": "Unknown kernel 'linear'. Choose one of given, periodized",
    "sample nlgp --kernel periodized:xi=2": "Periodized has no parameters, got 'xi'",
    "sample copula --marginal-law gauss": "Unknown marginal 'gauss'",
    "sample copula --marginal-law student-t:nu=1": "`nu` must be above 2, got 1.0",
    "sample copula --marginal-law student-t:mu=3": "Did you mean 'nu'?",
    "sample elliptical --radial laplace": "`radial` must be a quantile function",
    "sample kur --k 2": "`k` must be above 2, got 2.0",
    "sample single-pulse --coding sign": "Did you mean 'signs'?",
    "sample single-pulse --shortest 9": "Pulses of length 9 to 8 do not fit",
    "sample block-pulse --length 7": "`length` 7 does not divide",
    "reproduce fig9": "Unknown figure 'fig9'",
    "reproduce --uot x": "Did you mean '--out'?",
    "reproduce --out": "--out needs a value",
    "reproduce --out occupied": "Cannot make the folder occupied: File exists.",
    "reproduce --out occupied/below": "Cannot make the folder occupied/below: Not a directory.",
}


@pytest.fixture
def inhabited(folder):
    """A folder with a file and a folder in it, and a way to see that nothing has changed."""
    (folder / "occupied").write_text("mine")
    (folder / "folder.npz").mkdir()
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    yield folder
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
    assert (folder / "occupied").read_text() == "mine"


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_one_line(line, inhabited, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    out, err = capsys.readouterr()
    assert stop.value.code == 2
    assert out == ""
    assert err.startswith("localfields: ") and err.endswith("\n") and len(err.splitlines()) == 1
    assert MISTAKES[line] in err
    assert "----" not in err and len(err) < 700


@pytest.mark.parametrize(
    "line", ["sample nlgp --gain -1", "sample nlgp --gian 3", "reproduce --out occupied", "smaple"]
)
def test_mistake_in_a_shell(line, inhabited, run):
    done = run(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("localfields: ")


def test_python_m_is_the_same_program(inhabited):
    done = subprocess.run(
        [sys.executable, "-m", "localfields.cli", "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.startswith("localfields: Unknown command")


def test_interrupt_is_one_line(folder, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("localfields.stimuli.NLGP.draw", interrupted)
    with pytest.raises(SystemExit) as stop:
        main("sample nlgp --num 7 --out x.npz".split())
    assert stop.value.code == 130
    assert capsys.readouterr().err == "localfields: interrupted.\n"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("line", ["--help", "sample --help"])
def test_a_reader_that_goes_away_is_no_error(line, folder):
    program = subprocess.Popen(
        [SCRIPT, *line.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    program.stdout.close()
    assert program.stderr.read() == ""
    program.stderr.close()
    assert program.wait(timeout=60) == 141


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["", "--help", "-h"])
def test_help_lists_the_commands(line, capsys):
    main(line.split())
    out = capsys.readouterr().out
    assert all(f"{name:<18}{meaning}" in out for name, meaning in COMMANDS.items())
    assert "--plugin" in out


def test_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"localfields {lf.__version__}\n"


@pytest.mark.parametrize("line", ["--help", "--version", "nonsense"])
def test_help_loads_no_library(line):
    program = f"""
import sys
from localfields.cli import main
try:
    main([{line!r}])
except SystemExit:
    pass
print(*(name for name in ("jax", "numpy", "scipy", "matplotlib", "equinox", "rich") if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.splitlines()[-1] == ""


def test_sample_help_lists_every_stimulus(capsys):
    main(["sample", "--help"])
    out = capsys.readouterr().out
    names = list(registered("stimulus"))
    assert len(names) > 10
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == names


@pytest.mark.parametrize("name", vars(lf.stimuli) and registered("stimulus"))
def test_help_of_a_stimulus_tells_its_fields(name, capsys):
    main(["sample", name, "--help"])
    out = " ".join(capsys.readouterr().out.split())
    cls = registered("stimulus")[name]
    typed = [
        field for field in fields(cls) if not isinstance(field.kind, Row)
    ]  # arrays: from Python
    assert "shape" in (typed[0].name, typed[1].name)  # or the data, and then their shape
    for field in typed:
        symbol = f"{field.symbol}: " if field.symbol else ""
        assert f"--{field.name.replace('_', '-')} {field.kind.metavar} {symbol}{field.help}" in out
    assert cls.__doc__.split("\n")[0].split(":")[0] in out
    assert all(f"--{option}" in out for option in ("num", "seed", "out", "plot", "overwrite"))


# -- how options are read --------------------------------------------------------------------------


@pytest.fixture
def parsed():
    """What a command with one option of each kind is given."""
    values = {}
    options = {
        "labels": Option("labels", "Y"),
        "init_scale": Option("scale", "FLOAT", default="1"),
        "plot": Option("draw 100 %", default=False),
        "host": Option("names", "NAME", default=[], repeated=True),
        "files": Option("files", "FILE", positional="*"),
    }
    command = Command(values.update, {"options": options}, "Say what is read.")

    def read(line):
        values.clear()
        run_command(command, line.split(), "localfields test")
        return values

    return read


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("--labels -1,1", {"labels": "-1,1"}),
        ("--labels=-1,1", {"labels": "-1,1"}),
        ("--labels -.5 --init-scale -1e-3", {"labels": "-.5", "init_scale": "-1e-3"}),
        ("--init_scale=a_b=-c", {"init_scale": "a_b=-c"}),
        ("--labels=", {"labels": ""}),
        ("--plot", {"plot": True}),
        ("--plot --no-plot", {}),
        ("--host a --host=b", {"host": ["a", "b"]}),
        ("a --plot b --labels c d", {"files": ["a", "b", "d"], "plot": True, "labels": "c"}),
    ],
)
def test_options_are_read(parsed, line, expected):
    rest = {"init_scale": "1", "plot": False, "host": [], "files": []}
    assert parsed(line) == {**rest, **expected}


def test_help_of_a_command(parsed, capsys):
    assert parsed("a --help --unknown") == {}
    out = capsys.readouterr().out
    assert out.startswith("usage: localfields test [FILE …] [OPTIONS]\n\nSay what is read.\n")
    assert "--init-scale FLOAT  scale (default: 1)" in out
    assert "--plot              draw 100 %\n" in out and "--no-plot" not in out


def test_negative_labels_reach_the_task(folder):
    line = "train ising --coupling 0.3,0.7 --shape 8 --steps 2 --batch 4 --evaluate 2 --labels -1,2"
    main([*line.split(), "--out", "run.npz"])
    with np.load("run.npz", allow_pickle=False) as archive:
        experiment = json.loads(str(archive["experiment"]))
    assert lf.from_json(experiment["task"]).labels == (-1.0, 2.0)
