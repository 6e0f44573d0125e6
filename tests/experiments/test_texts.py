"""Experiments as they are typed: the texts of the command line, the explorer and its addresses."""

import shlex
import warnings

import numpy as np
import pytest

import localfields as lf
from localfields._spec import registered
from localfields.cli import main
from localfields.experiments.texts import command_of, experiment_of, texts_of

# For each family, in what the classes differ; a stimulus of one's own is found by its first number.
DIFFER = {
    "ising": {"coupling": "0.3,0.7"},
    "dead-leaves": {"ratio": "4,8"},
    "image-patches": {"blur": "0.5,2"},
}
DIFFER |= {
    "block-pulse": {"length": "4,5"},
    "single-pulse": {"longest": "6,9"},
    "dense-gaussian": {"offset": "0,1"},
}


def typed(name):
    return {"stimulus": name, **DIFFER.get(name, {"xi": "1,3"})}


@pytest.mark.parametrize("name", sorted(set(registered("stimulus")) - {"samples"}))
def test_texts_come_back(name):
    texts = {
        **typed(name),
        "network": "committee",
        "hidden": "3",
        "steps": "20",
        "l2": "0.1",
        "seed": "3,4",
    }
    experiment = experiment_of(texts)
    assert len(experiment.task.stimuli) == 2 and repr(experiment.task.stimuli[0]) != repr(
        experiment.task.stimuli[1]
    )
    assert (experiment.network.hidden, experiment.method.steps, experiment.task.l2) == (3, 20, 0.1)
    again = texts_of(experiment)
    assert texts.items() <= again.items()
    assert experiment_of(again).digest == experiment.digest


def test_nested_values_come_back():
    texts = typed("copula") | {
        "marginal_law": "algebraic:k=7",
        "shape": "6x7",
        "kernel": "periodized",
    }
    assert texts_of(experiment_of(texts)) == texts
    texts = typed("image-patches") | {
        "shape": "6x6",
        "preprocess": "wrap+whiten:cutoff=0.01+scale:each=all",
    }
    assert texts.items() <= texts_of(experiment_of(texts)).items()


def test_files_come_back(tmp_path):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.eye(12) + (name == "b"))
    texts = {
        "stimulus": "samples",
        "data": f"{tmp_path}/a.npy,{tmp_path}/b.npy",
        "symmetry": "signs",
    }
    assert texts.items() <= texts_of(experiment_of(texts)).items()


def test_the_command_line_reads_the_same(tmp_path, monkeypatch, capsys):
    texts = typed("kur") | {
        "shape": "12",
        "steps": "3",
        "batch": "10",
        "learning_rate": "0.1",
        "evaluate": "10",
    }
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command_of(texts))
    assert words[0] == "localfields"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lengthscales are long for twelve sites
        main([*words[1:], "--store", "runs"])
        digest = experiment_of(texts).digest
    assert digest in lf.Store("runs") and digest[:12] in capsys.readouterr().out


def test_numbers_are_written_shortly_and_exactly():
    experiment = experiment_of(typed("nlgp") | {"gain": "0.1", "learning_rate": "1e-05"})
    assert (
        texts_of(experiment)["gain"] == "0.1" and texts_of(experiment)["learning_rate"] == "1e-05"
    )
    third = lf.stimuli.NLGP((40,), xi=1 / 3)
    experiment = lf.Experiment(lf.Discrimination(third, third.replace(xi=3)))
    assert experiment_of(texts_of(experiment)).task.stimuli[0].xi == 1 / 3


def swept():
    return lf.Discrimination(*(lf.stimuli.NLGP((12,), xi=xi, gain=[1.0, 2.0]) for xi in (0.5, 1)))


@pytest.mark.parametrize(
    "experiment",
    [
        lambda: lf.Experiment(swept()),
        lambda: lf.Experiment(method=lf.Solution()),
        lambda: lf.Experiment(initial=np.ones((1, 1, 40))),
        lambda: lf.Experiment(
            lf.Discrimination(lf.stimuli.Gaussian((12,), xi=1), lf.stimuli.Ising((12,)))
        ),
        lambda: lf.Experiment(
            lf.Discrimination(*(lf.stimuli.Samples(np.eye(12)[n:], shape=12) for n in (0, 3)))
        ),
    ],
    ids=["swept", "theory", "fields to start from", "two families", "data in memory"],
)
def test_what_cannot_be_typed_is_refused(experiment):
    with pytest.raises(lf.InputError, match="typed"):
        texts_of(experiment())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"gian": "3"}, "Did you mean 'gain'"),
        ({"stimulus": "nlpg"}, "nlgp"),
        ({"network": "singel-neuron"}, "Did you mean 'single-neuron'"),
        ({"gain": "-1"}, "gain"),
        ({"gain": "1,2,3"}, "number of classes"),
        ({"xi": "3"}, "The classes are identical"),
        ({"steps": "many"}, "steps"),
        ({"stimuli": "x"}, "stimuli"),
        ({"hidden": "4"}, "Unknown field of the network `single-neuron` .hidden"),
    ],
)
def test_wrong_texts_are_refused(wrong, says):
    with pytest.raises(lf.InputError, match=says):
        experiment_of(typed("nlgp") | wrong)
