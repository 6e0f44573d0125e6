"""A file with a stimulus is checked from the command line, and what is wrong is said in words."""

import sys
from pathlib import Path

import pytest

from localfields import _registry, _start
from localfields.cli import main

SKELETON = Path(__file__).parents[2] / "skeletons" / "stimulus.py"
COINS = """
import jax
import numpy as np
from localfields.fields import RING, Lattice, Real, declare, number
from localfields.marginals import TwoPoint
from localfields.stimuli.base import Stimulus


class Coins(Stimulus):
    '''Independent signs.'''

    shape: Lattice = declare(RING, default=(8,))
    size_of_sign: Real = number(default=1.0, low=0, help="the size of a sign")

    def draw(self, key, num):
        return self.size_of_sign * jax.random.rademacher(key, (num, self.size), float)

    def covariance(self):
        return np.eye(self.size)[0]

    def marginal(self):
        return TwoPoint()
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Plugins are forgotten after a test."""
    classes = {family: dict(known) for family, known in _registry.CLASSES.items()}
    monkeypatch.setattr(_registry, "CLASSES", classes)
    for name in ("PLUGINS", "MODULES"):
        monkeypatch.setattr(_start, name, list(getattr(_start, name)))
    yield
    for module in ("coins_to_check", "mine"):
        sys.modules.pop(module, None)


def check(*words):
    main(["check", *words, *([] if "--num" in words else ["--num", "5000"])])


def test_a_right_one_agrees_and_a_wrong_one_does_not(folder, capsys):
    (folder / "coins_to_check.py").write_text(COINS)
    check("coins_to_check.py", "--shape", "6")
    out = capsys.readouterr().out
    assert out.startswith("Coins(shape=(6,), size_of_sign=1.0), 5,000 samples")
    assert "agrees: mean, independence, covariance, marginal" in out and "DISAGREES" not in out
    with pytest.raises(SystemExit) as stop:
        check("coins_to_check.py", "--size-of-sign", "1.2")
    out = capsys.readouterr().out
    assert stop.value.code == 1
    assert "DISAGREES: covariance (variance) of site" in out
    assert "the samples have 1.44, `covariance` says 1 (" in out


def test_a_stimulus_of_the_package_is_checked_by_name(capsys):
    check("ising", "--shape", "8")
    assert (
        "Ising(shape=(8,), coupling=0.7), 5,000 samples\n  agrees: mean" in capsys.readouterr().out
    )


TWINS = COINS + COINS[COINS.index("class") :].replace("Coins", "MoreCoins")
MISTAKES = {
    "unfilled": (SKELETON.read_text(), [], "MyStimulus.covariance must return an array of shape"),
    "no stimulus": ("x = 1\n", [], "mine.py defines no stimulus"),
    "broken": ("def f(:\n", [], "cannot be imported"),
    "several": (TWINS, [], "several stimuli, Coins, MoreCoins, so that options are ambiguous"),
    "unknown option": (COINS, ["--strenght", "2"], "Unknown option"),
    "few samples": (COINS, ["--num", "10"], "`num` must be"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(name, folder, capsys):
    text, words, says = MISTAKES[name]
    (folder / "mine.py").write_text(text)
    with pytest.raises(SystemExit) as stop:
        check("mine.py", *words)
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert says in err and len(err.splitlines()) == 1


def test_an_unfilled_skeleton_is_told_by_every_command(folder, capsys):
    (folder / "mine.py").write_text(SKELETON.read_text())
    for command in (
        ["sample", "my-stimulus"],
        ["train", "my-stimulus", "--strength", "0.2,0.5"],
        ["predict", "my-stimulus", "--strength", "0.2,0.5"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(["--plugin", "mine.py", *command])
        assert stop.value.code == 2
        err = capsys.readouterr().err
        assert err.startswith("localfields: MyStimulus.covariance must return an array of shape")
        assert len(err.splitlines()) == 1
