"""Pulses: the atoms against the declared statistics and a plain enumeration, the flow against
differences and draws.
"""

import itertools
import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.networks import Committee, SingleNeuron, TwoLayer
from localfields.stimuli import BlockPulse, SinglePulse
from localfields.theory.responses.linear import LinearResponse
from localfields.theory.responses.pulse import ExactPulse

SIGMAS = 5.0

PULSES = [
    SinglePulse(10, 2, 4),
    SinglePulse(10, 3, 3, coding="zero-one"),
    SinglePulse(9, 5, 9),
    SinglePulse((4, 3), 1, 3),
    SinglePulse((4, 5), 2, 4, coding="zero-one"),
    SinglePulse((2, 3, 3), 1, 2),
    BlockPulse(12, 3),
    BlockPulse(12, 4, coding="zero-one"),
    BlockPulse((4, 6), 2),
    BlockPulse((4, 4), 2, coding="zero-one"),
]


def by_hand(stimulus):
    """Every draw of a SinglePulse on a ring and its probability, in loops."""
    n, result = stimulus.shape[0], []
    lengths = range(stimulus.shortest, stimulus.longest + 1)
    for start, length in itertools.product(range(n), lengths):
        x = np.zeros(n)
        for step in range(length):
            x[(start + step) % n] = 1
        if stimulus.coding == "zero-one":
            result.append((x, 1 / (n * len(lengths))))
        else:
            result += [(sign * (2 * x - 1), 0.5 / (n * len(lengths))) for sign in (1, -1)]
    return result


# -- atoms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stimulus", PULSES, ids=repr)
def test_atoms_have_the_declared_statistics(stimulus):
    x, p = stimulus.atoms()
    assert x.shape == (stimulus.num_atoms, stimulus.size) == (len(p), stimulus.size)
    assert p.min() > 0 and p.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(p @ x, stimulus.mean(), atol=1e-12)
    centered = x - stimulus.mean()
    np.testing.assert_allclose(
        (p * centered.T) @ centered, stimulus.covariance_matrix(), atol=1e-12
    )
    assert set(np.unique(x)) == ({-1, 1} if stimulus.coding == "signs" else {0, 1})


@pytest.mark.parametrize("stimulus", PULSES[:3], ids=repr)
def test_atoms_are_those_of_a_loop(stimulus):
    def tally(pairs):
        total = {}
        for x, p in pairs:
            total[tuple(x)] = total.get(tuple(x), 0) + p
        return total

    actual, expected = tally(zip(*stimulus.atoms(), strict=True)), tally(by_hand(stimulus))
    assert actual.keys() == expected.keys()
    assert all(actual[x] == pytest.approx(expected[x], abs=1e-14) for x in expected)


@pytest.mark.parametrize("stimulus", PULSES, ids=repr)
def test_draws_are_atoms(stimulus, key):
    drawn = {tuple(x) for x in np.asarray(stimulus.sample(key, 200))}
    assert drawn <= {tuple(x) for x in stimulus.atoms()[0]}


def test_atoms_are_counted_before_they_are_listed():
    for stimulus, message in (
        (SinglePulse((60, 60), 1, 30), "6480000 patterns"),
        (SinglePulse((30, 30), 10, 17), "115200 patterns on 900 sites"),
        (lf.stimuli.Gaussian(10, xi=1), "does not have finitely many patterns"),
    ):
        with pytest.raises(lf.InputError, match=message):
            stimulus.atoms()
        assert not stimulus.has_atoms


# -- the response of one neuron --------------------------------------------------------------------


@pytest.mark.parametrize("stimulus", PULSES, ids=repr)
def test_response_against_draws(stimulus, key):
    w = np.random.default_rng(0).normal(size=stimulus.size)
    x = np.asarray(stimulus.sample(key, 100_000), np.float64)
    gated = (x @ w > 0)[:, None] * x
    f, error = stimulus.gated_mean(w), gated.std(axis=0) / math.sqrt(len(x)) + 1e-12
    assert np.abs((gated.mean(axis=0) - f) / error).max() < SIGMAS
    for wrong in (1.2 * f, -f, 2 * f):
        assert np.abs((gated.mean(axis=0) - wrong) / error).max() > SIGMAS


def test_ties_do_not_count_with_a_random_sign():
    """Many atoms tie at a field of equal weights; f = ½ E sgn(S) X whatever the gate does there."""
    stimulus = SinglePulse(8, 2, 6)
    w = np.ones(8)
    x, p = stimulus.atoms()
    s = x @ w
    assert p[s == 0].sum() == pytest.approx(0.2)
    for tie in (0.0, 0.5, 1.0):
        np.testing.assert_allclose(
            (p * np.heaviside(s, tie)) @ x, stimulus.gated_mean(w), atol=1e-15
        )
    np.testing.assert_allclose(0.5 * (p * np.sign(s)) @ x, stimulus.gated_mean(w), atol=1e-15)
    # Without the sign ties matter, and count one half.
    bare = stimulus.replace(coding="zero-one")
    w = np.array([1.0, -1, 1, -1, 1, -1, 1, -1])
    x, p = bare.atoms()
    halves = (p * np.heaviside(x @ w, 0.5)) @ x
    np.testing.assert_allclose(bare.gated_mean(w), halves, atol=1e-15)
    assert np.abs(halves - (p * (x @ w > 0)) @ x).max() > 0.1


def test_response_on_the_hypercube():
    """f(e_i) = ½ Σe_i, f(e_i + e_j) = ¼ Σ(e_i + e_j); exact zeros of S among the latter."""
    stimulus = SinglePulse(10, 2, 4)
    sigma = stimulus.covariance_matrix()
    one, two = np.eye(10)[3], np.eye(10)[3] + np.eye(10)[5]
    np.testing.assert_allclose(stimulus.gated_mean(one), sigma @ one / 2, atol=1e-15)
    np.testing.assert_allclose(stimulus.gated_mean(two), sigma @ two / 4, atol=1e-15)


# -- the flow --------------------------------------------------------------------------------------


def blocks(coding):
    return BlockPulse(12, 3, coding=coding), BlockPulse(12, 4, coding=coding)


def singles(coding, shape=10):
    return SinglePulse(shape, 2, 3, coding=coding), SinglePulse(shape, 3, 4, coding=coding)


CASES = {
    "neuron": (lf.Discrimination(*singles("signs")), SingleNeuron()),
    "neuron, no sign": (lf.Discrimination(*singles("zero-one")), SingleNeuron()),
    "torus": (lf.Discrimination(*singles("zero-one", (4, 5))), SingleNeuron()),
    "blocks": (
        lf.Discrimination(*blocks("zero-one"), labels=(-0.5, 2), l1=0.1, l2=0.2),
        SingleNeuron(),
    ),
    "erf": (
        lf.Discrimination(*singles("signs"), proportions=(0.2, 0.8)),
        SingleNeuron(activation="erf"),
    ),
    "committee": (
        lf.Discrimination(*singles("zero-one"), l2=0.1),
        Committee(3, bias="halves", bias_value=0.3),
    ),
    "trained biases": (
        lf.Discrimination(*singles("signs"), loss="absolute"),
        Committee(4, bias="trained"),
    ),
    "two layers": (
        lf.Discrimination(*singles("signs"), loss="cross-entropy"),
        TwoLayer(4, activation="tanh"),
    ),
    "one-hot": (
        lf.Discrimination(
            *singles("signs"),
            lf.stimuli.SinglePulse((10,), shortest=2, longest=4),
            labels="one-hot",
            loss="cross-entropy",
        ),
        TwoLayer(5),
    ),
}


def some_params(task, network, seed=0):
    """Parameters of order one, everything trained included."""
    rng = np.random.default_rng(seed)
    like = network.initial(jax.random.key(0), task.shape, task.outputs)
    return {name: jnp.asarray(0.5 * rng.normal(size=value.shape)) for name, value in like.items()}


def flat(tree):
    return np.concatenate([np.ravel(tree[name]) for name in sorted(tree)])


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_the_slope_of_the_loss(name):
    task, network = CASES[name]
    flow, params = ExactPulse().flow(task, network), some_params(task, network)
    line, back = jax.flatten_util.ravel_pytree(params)
    loss, moves = jax.jit(jax.vmap(lambda line: flow.loss(back(line)))), 1e-6 * jnp.eye(line.size)
    differences = (loss(line[None, :] + moves) - loss(line[None, :] - moves)) / 2e-6
    np.testing.assert_allclose(flat(flow(params)[1]), differences, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_loss_is_the_sum_over_a_loop(name):
    """One input at a time through `network.apply`, with the penalties written out."""
    task, network = CASES[name]
    params = some_params(task, network)
    apply = jax.jit(lambda x: network.apply(params, x, task.outputs))
    total = 0.0
    for stimulus, prior, target in zip(task.stimuli, task.priors, task.targets(), strict=True):
        pairs = (
            by_hand(stimulus)
            if name in ("neuron", "erf", "two layers")
            else zip(*stimulus.atoms(), strict=True)
        )
        for x, p in pairs:
            total += prior * p * float(task.sample_loss(apply(jnp.asarray(x)), jnp.asarray(target)))
    weights = np.asarray(params["weights"])
    total += task.l1 * np.abs(weights).sum() + task.l2 * (weights**2).sum()
    assert float(ExactPulse().flow(task, network)(params)[0]) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_against_draws(name, key):
    task, network = CASES[name]
    params = some_params(task, network)

    def one(params, x, target):
        return task.sample_loss(network.apply(params, x, task.outputs), target)

    by_sample = jax.jit(jax.vmap(jax.value_and_grad(one), (None, 0, None)))
    actual, error = 0.0, 0.0
    keys = jax.random.split(key, len(task.stimuli))
    for stimulus, prior, target, each_key in zip(
        task.stimuli, task.priors, task.targets(), keys, strict=True
    ):
        x = jnp.asarray(stimulus.sample(each_key, 20_000), jnp.float64)
        losses, gradients = by_sample(params, x, jnp.asarray(target))
        values = np.column_stack(
            [losses] + [np.reshape(gradients[part], (len(x), -1)) for part in sorted(params)]
        )
        actual = actual + prior * values.mean(axis=0)
        error = error + prior**2 * values.var(axis=0) / len(x)
    loss, gradient = ExactPulse().flow(task, network)(params)
    free = task.replace(l1=0, l2=0)
    bare_loss, bare = ExactPulse().flow(free, network)(params)
    expected = np.append(float(bare_loss), flat(bare))
    assert np.abs((actual - expected) / np.sqrt(error + 1e-24)).max() < SIGMAS
    assert np.abs((actual - 1.2 * expected) / np.sqrt(error + 1e-24)).max() > SIGMAS
    w = np.asarray(params["weights"])
    assert float(loss - bare_loss) == pytest.approx(
        task.l1 * np.abs(w).sum() + task.l2 * (w**2).sum(), abs=1e-12
    )
    penalty = task.l1 * np.sign(w) + 2 * task.l2 * w
    np.testing.assert_allclose(gradient["weights"] - bare["weights"], penalty, atol=1e-13)


def test_neuron_flow_from_the_response():
    """With a random sign, L = Σ p y² − 2 Σ p y ⟨w, f⟩ + ½ wᵀΣ̄w: only f is needed beside
    covariances.
    """
    task, network = CASES["neuron"]
    w = np.random.default_rng(1).normal(size=10)
    f = task.stimuli[1].gated_mean(w)
    mean = (task.stimuli[0].covariance_matrix() + task.stimuli[1].covariance_matrix()) / 2
    loss, gradient = ExactPulse().flow(task, network)({"weights": jnp.asarray(w)[None, :]})
    assert float(loss) == pytest.approx(0.5 - w @ f + 0.5 * w @ mean @ w, abs=1e-13)
    np.testing.assert_allclose(gradient["weights"][0], mean @ w - f, atol=1e-13)
    # What the covariance alone predicts is something else.
    linear = LinearResponse(slope="gaussian").flow(task, network)(
        {"weights": jnp.asarray(w)[None, :]}
    )
    assert np.abs(linear[1]["weights"] - gradient["weights"]).max() > 0.01


def test_a_tie_counts_one_half():
    """At a field of small integers many preactivations are zero; ReLU's slope there is the mean
    of both sides.
    """
    task, network = CASES["neuron, no sign"]
    w = np.array([1.0, -1, 0, 0, 0, 2, -2, 0, 0, 0])
    expected = np.zeros(10)
    for stimulus, label in zip(task.stimuli, (0, 1), strict=True):
        x, p = stimulus.atoms()
        s = x @ w
        assert p[s == 0].sum() > 0.1
        expected += 0.5 * 2 * (p * (np.maximum(s, 0) - label) * np.heaviside(s, 0.5)) @ x
    flow = ExactPulse().flow(task, network)
    _, gradient = flow({"weights": jnp.asarray(w)[None, :]})
    np.testing.assert_allclose(gradient["weights"][0], expected, atol=1e-15)
    one_sided = jax.grad(flow.loss)({"weights": jnp.asarray(w)[None, :]})
    assert np.abs(one_sided["weights"][0] - expected).max() > 0.01
    # With a random sign both agree.
    signed = ExactPulse().flow(CASES["neuron"][0], network)
    one_sided = jax.grad(signed.loss)({"weights": jnp.asarray(w)[None, :]})
    both = signed({"weights": jnp.asarray(w)[None, :]})[1]
    np.testing.assert_allclose(one_sided["weights"], both["weights"], atol=1e-15)


def test_flows_stack_over_members():
    """A sweep of penalties: the flows are one tree each, stacked, and compiled once."""
    task, network = CASES["committee"]
    flows = [
        ExactPulse().flow(task.replace(l2=l2), network.replace(bias_value=b))
        for l2, b in ((0, 0.1), (0.3, 0.7))
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *flows)
    params = some_params(task, network)
    losses, gradients = jax.jit(jax.vmap(lambda flow, params: flow(params), (0, None)))(
        stacked, params
    )
    for m, flow in enumerate(flows):
        loss, gradient = flow(params)
        assert float(losses[m]) == pytest.approx(float(loss), abs=1e-14)
        np.testing.assert_allclose(gradients["weights"][m], gradient["weights"], atol=1e-14)


def test_leaves_are_arrays_in_float64():
    flow = ExactPulse().flow(*CASES["committee"])
    assert all(
        isinstance(leaf, jax.Array) and leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(flow)
    )


@pytest.mark.parametrize(
    "task, network, message",
    [
        (
            lf.Discrimination(SinglePulse(10, 2, 3), lf.stimuli.Ising(10)),
            SingleNeuron(),
            "SinglePulse",
        ),
        (CASES["one-hot"][0], SingleNeuron(), "one output"),
        (CASES["neuron"][0].replace(l2=[0.1, 0.2]), SingleNeuron(), "sweep"),
        (CASES["neuron"][0], SingleNeuron(init_scale=[0.1, 0.2]), "sweep"),
    ],
)
def test_what_is_refused(task, network, message):
    with pytest.raises(lf.InputError, match=message):
        ExactPulse().flow(task, network)
