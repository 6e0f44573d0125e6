"""What a worker computes, without processes: answers, verdicts, theories, gates, what is stored."""

import dataclasses
import math

import numpy as np
import pytest

import localfields as lf
from localfields.app import messages as msg
from localfields.app import work
from localfields.app.limits import Limits, is_safe
from localfields.store import Store

from .helpers import experiment, request


def carried_out(stage, wanted, store=None, limits=None, stop=lambda: "", **more):
    messages = []
    kind = "run" if stage in ("run", "theory") else "summary"
    work.carry_out(
        stage, request(kind, wanted, **more), limits or Limits(), store, messages.append, stop
    )
    return messages


def task_of(cls):
    """Two classes of a stimulus that differ in one number."""
    stimulus = cls()
    others = {"xi": 0.9, "coupling": 0.6, "smallest": 1.1, "length": 5, "longest": 9, "offset": 0.5}
    name = next(name for name in others if hasattr(stimulus, name))
    return lf.Discrimination(stimulus, stimulus.replace(**{name: others[name]}))


STIMULI = [cls for cls in lf._spec.registered("stimulus").values() if is_safe(cls)]


@pytest.mark.parametrize("cls", STIMULI, ids=lambda cls: cls.__name__)
def test_every_stimulus_has_an_answer(cls):
    task = task_of(cls)
    (answer,) = carried_out("summary", lf.Experiment(task))
    assert [samples.shape for samples in answer.samples] == [(4, *task.shape)] * 2
    law = task.stimuli[1].marginal()
    assert (answer.density is None) == (law is None) and (answer.amplifier is None) == (law is None)
    if answer.density is not None:
        x, p = answer.density
        assert math.isclose(p.sum() if answer.atoms else np.trapezoid(p, x), 1, abs_tol=0.02)
        assert np.isclose(answer.kurtosis, law.excess_kurtosis, equal_nan=True)
    if answer.amplifier is not None:
        a, phi = answer.amplifier
        assert math.isclose(phi[1] / a[1], answer.slope, rel_tol=0.05)


def test_samples_are_in_the_order_of_the_classes():
    wanted = experiment(seed=4)
    (answer,) = carried_out("summary", wanted)
    for samples, stimulus in zip(answer.samples, wanted.task.stimuli, strict=True):
        np.testing.assert_array_equal(samples, np.asarray(stimulus.sample(4, 4), np.float32))
    assert not np.array_equal(*answer.samples)


def test_densities_are_those_of_the_law():
    x, p, atoms = work.marginal_density(lf.marginals.Normal())
    assert not atoms and np.allclose(p, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), atol=1e-4)
    x, p, atoms = work.marginal_density(lf.marginals.TwoPoint(scale=2.0))
    assert atoms and x.tolist() == [-2, 2] and p.tolist() == [0.5, 0.5]
    x, p, atoms = work.marginal_density(lf.marginals.Empirical([1.0, 1.0, 3.0], [1.0]))
    assert atoms and x.tolist() == [1, 3] and np.allclose(p, [2 / 3, 1 / 3])


def test_warnings_become_notes():
    with pytest.warns(UserWarning, match="not positive"):
        task = lf.Discrimination(*(lf.stimuli.NLGP((12,), xi=xi) for xi in (1, 4)))
    text = lf.Experiment(task).canonical()
    (answer,) = carried_out("summary", text)
    assert len(answer.warnings) >= 1 and "kernel is not positive" in answer.warnings[0]


def test_verdict_is_that_of_predict():
    wanted = experiment()
    (verdict,) = carried_out("verdict", wanted)
    direct = lf.predict(wanted.task)
    assert (verdict.verdict, verdict.reason) == (direct.verdict, direct.reason)


def test_no_theory_says_why():
    wanted = lf.Experiment(experiment().task, lf.networks.TwoLayer(3), experiment().method)
    (theory,) = carried_out("theory", wanted)
    assert theory.weights is None and "SingleNeuron" in theory.missing


def test_theory_of_a_sweep_is_one_a_member():
    task = lf.Discrimination(
        *(lf.stimuli.Ising((12,), coupling=np.array([j, j + 0.2])) for j in (0.3, 0.7))
    )
    wanted = lf.Experiment(task, method=experiment().method)
    (theory,) = carried_out("theory", wanted)
    assert theory.weights.shape[0] == 2
    alone = lf.Experiment(experiment().task, method=experiment().method)
    (single,) = carried_out("theory", alone)
    assert np.allclose(theory.weights[0], single.weights[0], atol=1e-5)
    assert not np.allclose(theory.weights[1], single.weights[0], atol=1e-2)


def test_gates_are_those_of_the_analysis():
    wanted = experiment(members=6, steps=300, every=3)
    run = wanted.run()
    gates = work.gate_agreement(run, wanted)
    assert gates is not None and gates.agreement.shape == (4, 48, 1) and gates.times.shape == (48,)
    direct = lf.analysis.gates_along(
        run.members(slice(0, 4)), wanted.task, reference="final", num=2000
    )
    which = np.isin(run.times, gates.times)
    assert np.allclose(gates.agreement, direct.agreement[:, which])  # few patterns: both are exact


def test_a_store_that_is_full_keeps_nothing_more(tmp_path):
    store = Store(tmp_path)
    messages = carried_out("run", wanted := experiment(), store)
    assert messages[-1].stored and wanted.digest in store and work.stored_bytes(store) > 0
    full = dataclasses.replace(Limits(), store_bytes=0)
    messages = carried_out("run", other := experiment(seed=1), store, full)
    assert not messages[-1].stored and "full" in messages[-1].note and other.digest not in store
    messages = carried_out("run", wanted, store, full)  # what is there is shown
    assert messages[-1].stored and [type(message) for message in messages] == [
        msg.Records,
        msg.GateAgreement,
        msg.Done,
    ]


def test_a_member_that_diverges_is_told():
    messages = carried_out("run", experiment(learning_rate=1e6, steps=100))
    assert messages[-1].stopped == "finished" and messages[-1].outcomes[0].startswith(
        ("diverged", "non-finite")
    )


def test_a_cancelled_run_sends_no_checkpoint():
    messages = carried_out("run", experiment(steps=2000), stop=lambda: "cancel")
    assert not [
        message for message in messages if isinstance(message, (msg.RunCheckpoint, msg.Done))
    ]
