"""Training on the population gradient: steps by hand, losses in closed form, and the flow as the
limit.
"""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields import _ensemble
from localfields.errors import InputError
from localfields.theory import BestKnown, PerClass
from localfields.theory.responses.hypercube import enumerated_response

N = 8


def pair(cls, *values, **common):
    return lf.Discrimination(*[cls((N,), **value, **common) for value in values])


TASKS = {
    "gaussian": pair(lf.stimuli.Gaussian, {"xi": 0.6}, {"xi": 1.1}),
    "student": pair(lf.stimuli.StudentT, {"xi": 0.6}, {"xi": 1.1}, nu=4.0),
    "ising": pair(lf.stimuli.Ising, {"coupling": 0.3}, {"coupling": 0.7}),
    "pulse": pair(
        lf.stimuli.SinglePulse, {"shortest": 1, "longest": 2}, {"shortest": 3, "longest": 4}
    ),
    "pulse 0/1": pair(
        lf.stimuli.SinglePulse,
        {"shortest": 1, "longest": 2},
        {"shortest": 3, "longest": 4},
        coding="zero-one",
    ),
}
NEURON = lf.networks.SingleNeuron(init_scale=0.1)
COMMITTEE = lf.networks.Committee(2, bias="trained", init_scale=0.1)
CASES = {name: (task, NEURON) for name, task in TASKS.items()} | {
    "committee": (TASKS["pulse 0/1"], COMMITTEE)
}


def train(task, network=NEURON, **changes):
    settings = {"steps": 30, "members": 3, "learning_rate": 0.1, "estimator": "exact"}
    settings["record"] = lf.Record(every=changes.pop("every", 10), quantities=("weights", "loss"))
    return lf.train(task, network, **settings | changes)


def by_hand(flow, params, rate, steps):
    """Fields and losses before every step of w ← w − η∇L, one member."""
    result, step = [], jax.jit(lambda params: flow(params))
    for _ in range(steps + 1):
        loss, gradient = step(params)
        result.append((params["weights"], loss))
        params = jax.tree.map(lambda p, g: p - rate * g, params, gradient)
    weights, losses = zip(*result, strict=True)
    return np.stack(weights), np.stack(losses)


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_the_flow_by_hand(name):
    task, network = CASES[name]
    run = train(task, network)
    assert run.weights.shape == (3, 4, network.hidden, N) and run.loss.shape == (3, 4)
    flow = BestKnown().flow(task, network)
    start = _ensemble.initial_params(task, network, 0, 3)
    for m in range(3):
        params = jax.tree.map(lambda leaf, m=m: leaf[m], start)
        weights, loss = by_hand(flow, params, 0.1, 30)
        np.testing.assert_allclose(run.weights[m], weights[::10], rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.loss[m], loss[::10], rtol=0, atol=1e-12)
    # The draws play no part: members that start alike stay alike, and the batch does not matter.
    together = train(task, network, initial=run.initial[0], batch=7)
    if network is NEURON:
        np.testing.assert_array_equal(together.weights[1], together.weights[0])
        np.testing.assert_allclose(together.weights[0], run.weights[0], rtol=0, atol=1e-14)


def losses(task, w):
    """The population loss in closed form, by another road than the flow's."""
    one = task.stimuli[1]
    if isinstance(one, lf.stimuli.SinglePulse):
        each = [np.maximum(x @ w, 0) for x, _ in (stimulus.atoms() for stimulus in task.stimuli)]
        return 0.5 * np.mean(each[0] ** 2) + 0.5 * np.mean((each[1] - 1) ** 2)
    matrices = [lf.lattice.matrix(s.covariance()) for s in task.stimuli]
    back = w @ (matrices[0] + matrices[1]) @ w / 4
    if isinstance(one, lf.stimuli.Ising):
        return 0.5 - w @ enumerated_response(w, one) + back
    spread = np.sqrt(w @ matrices[1] @ w)
    # E|X| of a Gaussian is √(2/π); of Student's t with ν = 4 at unit variance 1/√2.
    mean_abs = np.sqrt(2 / np.pi) if isinstance(one, lf.stimuli.Gaussian) else 1 / np.sqrt(2)
    return 0.5 - mean_abs / 2 * spread + back


@pytest.mark.parametrize("name", TASKS)
def test_recorded_loss_is_the_population_loss(name):
    # A field whose strongest site outweighs the others: there the Fourier sums of Ising rings are
    # exact.
    start = 0.3 * np.eye(1, N) + 0.02 * np.cos(np.arange(N))
    run = train(TASKS[name], initial=start)
    expected = [losses(TASKS[name], w) for w in run.weights[0, :, 0]]
    np.testing.assert_allclose(run.loss[0], expected, rtol=0, atol=1e-8)
    assert (np.diff(run.loss) < 0).all()
    # The power: half of the response would be seen at once.
    assert abs(2 * run.loss[0, -1] - 0.5 - expected[-1]) > 1e-2


# On pulses the flow has kinks, where gates turn; a step may pass one by any part of itself: the
# constant jitters.
@pytest.mark.parametrize("name, slack", [("gaussian", 0.1), ("pulse 0/1", 0.25)])
def test_error_against_the_flow_is_of_first_order_in_the_rate(name, slack):
    task = TASKS[name]
    theory = lf.theory.ExactPulse() if name.startswith("pulse") else lf.theory.LinearResponse()
    rates = 0.1 / 2.0 ** np.array([0, 1, 3, 5])  # each has a program of its own
    runs = [
        train(task, learning_rate=rate, steps=round(3 / rate), every=round(1 / rate))
        for rate in rates
    ]
    flow = lf.solve(task, theory, network=NEURON, members=3, times=runs[0].times)
    np.testing.assert_array_equal(flow.initial, runs[0].initial)
    errors = np.array(
        [np.sqrt(((run.weights - flow.weights) ** 2).sum(axis=(0, 2, 3)))[1:] for run in runs]
    )
    for time in range(3):
        assert abs(np.polyfit(np.log(rates), np.log(errors[:, time]), 1)[0] - 1) < slack
    assert errors[-1].max() < 0.02


def test_swept_couplings_have_each_their_own_flow_in_one_program():
    start = train(TASKS["ising"]).initial

    def swept(*couplings):
        return train(
            pair(lf.stimuli.Ising, {"coupling": 0.3}, {"coupling": np.array(couplings)}),
            initial=start,
        )

    result = swept(0.5, 0.7, 0.9)
    np.testing.assert_allclose(
        result.weights[1], train(TASKS["ising"]).weights[1], rtol=0, atol=1e-12
    )
    for m, coupling in ((0, 0.5), (2, 0.9)):
        one = pair(lf.stimuli.Ising, {"coupling": 0.3}, {"coupling": coupling})
        np.testing.assert_allclose(
            result.weights[m], train(one, initial=start).weights[m], rtol=0, atol=1e-12
        )
        assert np.abs(result.weights[m] - train(TASKS["ising"]).weights[m]).max() > 1e-3
    before = sum(_ensemble.TRACES.values())
    swept(0.4, 0.6, 0.8)
    train(TASKS["ising"], learning_rate=[0.1, 0.2, 0.3])
    train(pair(lf.stimuli.Ising, {"coupling": 0.2}, {"coupling": 0.6}))
    assert sum(_ensemble.TRACES.values()) == before


def test_two_layers_on_pulses_have_the_axes_of_the_flow():
    task = lf.Discrimination(*TASKS["pulse"].stimuli, labels="one-hot", loss="cross-entropy")
    network = lf.networks.TwoLayer(2, bias="trained", init_scale=0.5)
    record = lf.Record(every=10, quantities=("weights", "biases", "readout", "loss"))
    run = lf.train(
        task, network, estimator="exact", steps=20, members=2, learning_rate=0.005, record=record
    )
    flow = lf.solve(task, lf.theory.ExactPulse(), network=network, members=2, times=run.times)
    assert set(flow.series) >= set(run.series)
    for name, values in run.series.items():
        assert flow.series[name].shape == values.shape, name
        np.testing.assert_allclose(flow.series[name], values, rtol=0, atol=1e-3)
        np.testing.assert_allclose(flow.series[name][:, 0], values[:, 0], rtol=0, atol=1e-12)
    assert (np.diff(flow.loss) < 0).all()


def test_what_is_exact_and_what_is_not():
    nlgp = lf.stimuli.NLGP((N,), xi=1.1, gain=3.0)
    gaussian = TASKS["gaussian"].stimuli[0]

    def is_exact(task):
        coverage = BestKnown().covers(task, NEURON)
        assert coverage and not coverage.reason
        return coverage.exact

    assert all(map(is_exact, TASKS.values()))
    # A class with label 0 needs its covariance alone, whatever its law.
    assert is_exact(lf.Discrimination(nlgp, gaussian))
    assert not is_exact(lf.Discrimination(gaussian, nlgp))
    names = {
        type(PerClass().response_theory(s)).__name__
        for s in (nlgp, gaussian, TASKS["ising"].stimuli[0])
    }
    assert names == {"EffectiveFlow", "LinearResponse", "ExactIsing"}


@pytest.mark.parametrize(
    "task, network",
    [
        (pair(lf.stimuli.NLGP, {"xi": 0.6}, {"xi": 1.1}, gain=3.0), NEURON),
        (TASKS["gaussian"], lf.networks.Committee(2, bias="trained")),
        (lf.Discrimination(*TASKS["ising"].stimuli, loss="absolute"), NEURON),
    ],
    ids=["law", "network", "loss"],
)
def test_what_no_theory_knows_is_refused(task, network):
    with pytest.raises(InputError) as error:
        train(task, network)
    text = str(error.value)
    assert type(task.stimuli[0]).__name__ in text and type(network).__name__ in text
    assert "No exact gradient" in text and "'orbit'" in text and "'independent'" in text


@pytest.mark.parametrize(
    "line", ["from localfields import train", "from localfields.training import train"]
)
def test_a_fresh_process_needs_no_more_than_train(line):
    code = (
        f"{line}\nimport localfields as lf"
        + """
task = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
network = lf.networks.SingleNeuron(init_scale=0.1)
run = train(task, network, estimator="exact", steps=30, members=3, learning_rate=0.1)
print(run.final.dtype, *run.final[:, 0].ravel().tolist())
"""
    )
    environment = os.environ | {"JAX_ENABLE_X64": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    dtype, *words = done.stdout.split()
    assert dtype == "float32"
    # The same in single precision, from the same float32 start, to its rounding.
    with jax.enable_x64(False):
        start = _ensemble.initial_params(TASKS["ising"], NEURON, 0, 3)["weights"]
    flow = BestKnown().flow(TASKS["ising"], NEURON)
    expected = [
        by_hand(flow, {"weights": jnp.asarray(np.asarray(w), jnp.float64)}, 0.1, 30)[0][-1]
        for w in start
    ]
    np.testing.assert_allclose(
        np.array([float(word) for word in words]), np.ravel(expected), rtol=0, atol=1e-4
    )
