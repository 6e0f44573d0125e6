"""A newcomer's stimulus: one short file outside the package, and everything else follows from
it.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from laws import statistics
from laws.statistics import broken, declared, drawn

import localfields as lf
from localfields import _registry, _spec
from localfields.cli import main

ROOT = Path(__file__).parents[1]
SCRIPT = Path(sys.executable).with_name("localfields")

# X_i = A√2 cos(2πm Σ_a i_a/n_a + φ) with φ uniform. Cov(X_0, X_d) = A² cos(2πm Σ_a d_a/n_a); one
# coordinate follows the arcsine law, P(|X| < Ax) = (2/π) arcsin(x/√2), of excess kurtosis −3/2.
PLUGIN = '''"""Plane waves of random phase."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from localfields._types import namespace, working_dtype
from localfields.fields import LATTICE, Count, Lattice, Real, Whole, declare, number
from localfields.marginals.base import SCALE, SymmetricMarginal
from localfields.stimuli.base import Stimulus


class Arcsine(SymmetricMarginal):
    """The law of a cosine of random phase."""

    scale: Real = declare(SCALE, default=1.0)

    def size(self, v: Any, delta: Any) -> Any:
        xp, _ = namespace(v)
        return math.sqrt(2) * xp.sin(math.pi / 2 * v)

    def size_cdf(self, x: Any) -> Any:
        xp, _ = namespace(x)
        return 2 / math.pi * xp.arcsin(xp.minimum(x / math.sqrt(2), 1))


class RandomPhase(Stimulus):
    """A plane wave whose phase alone is random."""

    shape: Lattice = declare(LATTICE, default=(40,))
    amplitude: Real = number(
        default=1.0, low=0, symbol="A", help="standard deviation", hint="A wave of no size is no wave."
    )
    cycles: Whole = declare(Count(), default=1, symbol="m", help="cycles around each axis")

    def _phases(self) -> np.ndarray:
        return sum(2 * np.pi * self.cycles * s / n for s, n in zip(np.indices(self.shape), self.shape, strict=True))

    def draw(self, key: Any, num: int) -> jax.Array:
        start = jax.random.uniform(key, (num, 1), working_dtype(), maxval=2 * math.pi)
        return self.amplitude * math.sqrt(2) * jnp.cos(start + self._phases().reshape(1, -1).astype(start.dtype))

    def covariance(self) -> np.ndarray:
        return self.amplitude**2 * np.cos(self._phases())

    def marginal(self) -> Arcsine:
        return Arcsine(self.amplitude)
'''


@pytest.fixture
def folder(tmp_path):
    """A folder that holds the plugin."""
    (tmp_path / "random_phase.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def plugin(folder, monkeypatch):
    """The plugin's class, imported; forgotten after the test."""
    monkeypatch.setattr(
        _registry, "CLASSES", {family: dict(known) for family, known in _registry.CLASSES.items()}
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "random_phase", raising=False)
    yield importlib.import_module("random_phase").RandomPhase
    del sys.modules["random_phase"]


def shell(*words, cwd, **environment):
    settings = {**os.environ, **environment}
    words = [SCRIPT, *map(str, words)]
    return subprocess.run(
        words, capture_output=True, text=True, env=settings, cwd=cwd, timeout=120, check=False
    )


def test_the_plugin_is_short():
    assert len(PLUGIN.splitlines()) <= 50


def test_it_is_unknown_before_it_is_imported():
    with pytest.raises(lf.InputError, match="Unknown stimulus 'random-phase'"):
        lf.from_json({"type": "stimulus/random-phase"})
    with pytest.raises(AttributeError):
        _ = lf.stimuli.RandomPhase


def test_it_is_found_after_import(plugin):
    assert _spec.registered("stimulus")["random-phase"] is plugin is lf.stimuli.RandomPhase
    value = plugin((8,), 2, cycles=3)
    assert repr(value) == "RandomPhase(shape=(8,), amplitude=2.0, cycles=3)"
    plain = {"type": "stimulus/random-phase", "shape": [8], "amplitude": 2.0, "cycles": 3}
    assert value.to_json() == plain
    assert repr(lf.from_json(json.loads(json.dumps(plain)))) == repr(value)
    assert repr(value.replace(amplitude=1)) == "RandomPhase(shape=(8,), amplitude=1.0, cycles=3)"
    assert lf.stimuli.Copula(24, marginal_law="arcsine").marginal().kurtosis == pytest.approx(
        1.5, abs=1e-12
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"amplitude": -1},
            "`amplitude` must be positive, got -1.0. A wave of no size is no wave.",
        ),
        ({"cycles": 0.5}, "`cycles` must be a whole number, got 0.5."),
        ({"shape": "ring"}, "`shape` must be a tuple of positive whole numbers, got 'ring'."),
        (
            {"amplitde": 1},
            "Unknown parameter of RandomPhase 'amplitde'. Did you mean 'amplitude'?",
        ),
    ],
)
def test_its_mistakes_are_told(values, told, plugin):
    with pytest.raises(lf.InputError) as error:
        plugin(**values)
    assert told in str(error.value)


def test_another_amplitude_does_not_recompile(plugin, monkeypatch, key):
    traces = []
    plugin(8).sample(key, 3)  # the first use is checked
    draw = plugin.draw
    monkeypatch.setattr(
        plugin, "draw", lambda self, key, num: traces.append(num) or draw(self, key, num)
    )
    one, two = (np.asarray(plugin(8, amplitude=amplitude).sample(key, 4)) for amplitude in (1, 2))
    assert traces == [4]
    np.testing.assert_allclose(two, 2 * one, rtol=1e-12)


def test_its_samples_follow_the_laws(plugin):
    value = plugin(12, amplitude=2.0)
    laws = declared(value) | {
        "shift": statistics.shift_invariance,
        "sign": statistics.sign_invariance,
    }
    assert set(laws) >= {"mean", "covariance", "marginal", "fourth moment", "independence"}
    assert broken(laws, value, drawn(value, "plugin", "samples", chunks=1)) == {}
    # The same laws see an amplitude 5 % off, and a wave of another length.
    for wrong in (value.replace(amplitude=2.1), value.replace(cycles=2)):
        assert broken(laws, value, drawn(wrong, "plugin", "wrong", chunks=1)) != {}


def test_the_law_tests_pick_it_up(folder):
    words = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "random_phase",
        "-p",
        "no:cacheprovider",
        "-k",
        "RandomPhase-plain-12",
    ]
    settings = {**os.environ, "PYTHONPATH": search_path(folder)}
    tests = ROOT / "tests" / "laws" / "test_stimulus_laws.py"
    done = subprocess.run(
        [sys.executable, *words, str(tests)],
        capture_output=True,
        text=True,
        env=settings,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    last = done.stdout.splitlines()[-1].split()
    assert last[1] == "passed," and int(last[0]) >= 8


# -- the command line ------------------------------------------------------------------------------


def check_archive(path):
    with np.load(path) as archive:
        assert json.loads(str(archive["specification"])) == {
            "type": "stimulus/random-phase",
            "shape": [8],
            "amplitude": 2.0,
            "cycles": 1,
        }
        x = archive["x"]
    assert x.shape == (5, 8) and x.dtype == np.float32
    # A wave of one cycle: nothing else is in its spectrum.
    power = np.abs(np.fft.rfft(x)) ** 2
    np.testing.assert_allclose(power[:, 1], 2 * (8 / 2) ** 2 * 2.0**2, rtol=1e-5)
    assert np.delete(power, 1, axis=1).max() < 1e-6
    return x


SAMPLE = [
    "sample",
    "random-phase",
    "--shape",
    "8",
    "--amplitude",
    "2",
    "--num",
    "5",
    "--seed",
    "3",
    "--out",
    "x.npz",
]


def test_by_file_from_another_folder(folder, plugin):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    done = shell("--plugin", folder / "random_phase.py", *SAMPLE, cwd=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    x = check_archive(elsewhere / "x.npz")
    with jax.enable_x64(False):
        np.testing.assert_array_equal(x, plugin(8, amplitude=2.0).sample(3, 5))


@pytest.mark.slow
def test_it_can_be_checked(folder):
    """In a process of its own, as a file that is not imported yet."""
    done = shell("check", "random_phase.py", "--amplitude", "2", "--num", "5000", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == "RandomPhase(shape=(40,), amplitude=2.0, cycles=1), 5,000 samples"
    assert second.startswith("  agrees: mean, independence, covariance, marginal, fourth moment")


def test_by_module_from_its_folder(folder):
    done = shell(*SAMPLE, "--plugin", "random_phase", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    check_archive(folder / "x.npz")


def test_its_help_follows_from_its_fields(plugin, capsys):
    main(["sample", "random-phase", "--help"])
    told = capsys.readouterr().out
    assert "A plane wave whose phase alone is random." in told
    assert "--amplitude" in told and "A: standard deviation" in told and "--cycles" in told


def search_path(folder):
    """A folder before those in which this process looks for the package."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def distribution(folder, target):
    """An installed package, as far as Python can tell, that declares an entry point."""
    info = folder / "waves-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: waves\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[localfields]\nwaves = {target}\n")


def test_by_entry_point(folder):
    distribution(folder, "random_phase")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    done = shell(*SAMPLE, cwd=elsewhere, PYTHONPATH=search_path(folder))
    assert (done.returncode, done.stderr) == (0, "")
    check_archive(elsewhere / "x.npz")


def test_a_broken_entry_point_is_told(folder):
    distribution(folder, "no_such_module")
    done = shell(*SAMPLE, cwd=folder, PYTHONPATH=search_path(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "localfields: The plugin `waves` of waves cannot be imported (ModuleNotFoundError: "
        "No module named 'no_such_module'). Update or remove that package.\n"
    )
    assert shell("--help", cwd=folder, PYTHONPATH=search_path(folder)).returncode == 0


BAD = {
    "syntax": ("def f(:\n", "SyntaxError"),
    "imports": (
        "import no_such_library\n",
        "ModuleNotFoundError: No module named 'no_such_library'",
    ),
    "raises": ("1 / 0\n", "ZeroDivisionError: division by zero"),
    "mistake": (
        "import localfields as lf\nlf.stimuli.NLGP(40, gain=-1)\n",
        "`gain` must be positive, got -1.0",
    ),
    "reads": ("open('no-such-file')\n", "FileNotFoundError"),
    "twin": (
        PLUGIN.replace("RandomPhase", "Ising"),
        "There are two classes for the stimulus `ising`: Ising from",
    ),
    "long": ("raise RuntimeError('line\\n' * 1000)\n", "RuntimeError: line line line"),
}


@pytest.mark.parametrize("name", [*BAD, "missing"])
@pytest.mark.parametrize("form", ["file", "module"])
def test_a_bad_plugin_is_told_in_one_line(name, form, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(
        _registry, "CLASSES", {family: dict(known) for family, known in _registry.CLASSES.items()}
    )
    module = f"bad_plugin_{name}_{form}"  # not one that another test has imported
    text, told = BAD.get(name, ("", "there is no file" if form == "file" else "No module named"))
    if name != "missing":
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "--plugin",
                f"{module}.py" if form == "file" else module,
                "sample",
                "nlgp",
                "--out",
                "x.npz",
            ]
        )
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert (
        err.startswith("localfields: --plugin: ") and len(err.splitlines()) == 1 and len(err) < 500
    )
    assert told in err
    assert not (tmp_path / "x.npz").exists()


def test_a_class_may_be_defined_again_in_its_own_module(plugin, folder):
    again = importlib.reload(sys.modules["random_phase"]).RandomPhase
    assert again is not plugin and _spec.registered("stimulus")["random-phase"] is again
