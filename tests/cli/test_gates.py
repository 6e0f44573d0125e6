"""Gates at the command line."""

import jax
import numpy as np
import pytest

import localfields as lf
from localfields.cli import main

TRAIN = [
    "train",
    "ising",
    "--shape",
    "8",
    "--coupling",
    "0.3,0.7",
    "--network",
    "gated-linear",
    "--steps",
    "20",
]


def test_gates_are_an_option_of_the_network(capsys):
    main([*TRAIN, "--gates", "bump:site=3,copies=2", "--estimator", "exact", "--out", "run.npz"])
    assert "2 neurons on (8,)" in capsys.readouterr().out
    task = lf.Discrimination(
        *(lf.stimuli.Ising((8,), coupling=coupling) for coupling in (0.3, 0.7))
    )
    network = lf.networks.GatedLinear(lf.networks.gates.Bump(site=3, copies=2))
    with jax.enable_x64(False):
        run = lf.train(task, network, steps=20, estimator="exact")
    with np.load("run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["weights"], run.weights)


@pytest.mark.parametrize(
    "gates, words",
    [("bumb", "Did you mean 'bump'?"), ("bump:wide=3", "Unknown parameter of Bump 'wide'")],
)
def test_mistakes_are_one_line(gates, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*TRAIN, "--gates", gates])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and told.count("\n") == 1 and words in told
