"""Gates and the gated linear network: what they are by hand, on tori and in JSON."""

import itertools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields._spec import registered
from localfields.networks import GatedLinear, gates
from localfields.networks.gates import (
    Bump,
    Directions,
    Exclusive,
    Flat,
    Open,
    Redundant,
    Several,
    Wave,
)
from localfields.training.estimators import orbit, sampled

X = np.array([1.0, 2.0, -1.0, -0.5])


def opened(gate, x=X, shape=None):
    shape = shape or x.shape
    return np.asarray(gate.open(gate.directions(shape) @ jnp.asarray(x)), float).tolist()


HALF = math.sqrt(0.5)
BY_HAND = [
    (Flat(), [1.0]),
    (Bump(site=1), [1.0]),
    (Bump(site=2), [0.0]),
    (Bump(site=3, copies=2), [0.0, 1.0]),  # sites 3 and 1
    (
        Bump(site=2, width=1.0),
        [1.0],
    ),  # e^(−½)(2 − ½) and less at two sites, against −1: −1 + 0.91 + 0.14
    (gates.Block(length=2, site=2), [0.0]),
    (gates.MexicanHat(site=3, width=1.0), [0.0]),
    (Wave(cycles=2), [0.0]),  # 1 − 2 − 1 + ½
    (Directions([[1, 0, 1, 0], [0, -1, 0, -1]]), [HALF, 0.0]),
    (Open(2), [1.0, 1.0]),
    (Redundant(Bump(site=1, copies=2), 2), [1.0, 0.0, 1.0, 0.0]),
    (Exclusive(Directions([[1, 0, 0, 0], [0, 0, 1, 0]])), [0.0, 1.0, 0.0, 0.0]),
    (Exclusive(Directions([[1, 0, 1, 0]])), [0.0, 0.0]),  # a tie
    (Several(Flat(), Open(), Bump(site=2)), [1.0, 1.0, 0.0]),
]


@pytest.mark.parametrize(
    "gate, expected",
    BY_HAND,
    ids=lambda value: repr(value) if isinstance(value, lf.networks.gates.Gates) else "",
)
def test_gates_by_hand(gate, expected):
    assert opened(gate) == expected
    assert gate.num_gates == len(expected)
    rows = gate.half_spaces(X.shape)
    if rows is not None:
        np.testing.assert_array_equal((np.asarray(rows) @ X > 1e-9) * 1.0, np.floor(expected))


def test_profiles():
    d = np.minimum(np.arange(12), 12 - np.arange(12))
    profiles = {
        Bump(width=2.0): np.exp(-(d**2) / 8),
        gates.MexicanHat(width=2.0): (1 - d**2 / 4) * np.exp(-(d**2) / 8),
        Wave(cycles=3): np.cos(np.pi / 2 * np.arange(12)),
        gates.Block(length=5): np.arange(12) < 5,
    }
    for gate, profile in profiles.items():
        expected = profile / np.abs(profile).sum()
        np.testing.assert_allclose(gate.directions((12,))[0], expected, rtol=0, atol=1e-15)
        np.testing.assert_allclose(
            gate.replace(site=4).directions((12,))[0], np.roll(expected, 4), rtol=0, atol=1e-15
        )


def test_gates_on_a_torus():
    shape = (4, 6)
    bump = np.asarray(Bump(site=8, width=1.0).directions(shape)).reshape(shape)
    expected = np.exp(-(lf.lattice.distance(shape) ** 2) / 2)
    np.testing.assert_allclose(
        bump, np.roll(expected / expected.sum(), (1, 2), (0, 1)), rtol=0, atol=1e-15
    )
    block = np.asarray(gates.Block(length=2).directions(shape)).reshape(shape)
    assert (block > 0).sum() == 4 and (block[:2, :2] == 0.25).all()
    wave = np.asarray(Wave(cycles=1).directions(shape)).reshape(shape)
    assert np.ptp(wave, axis=1).max() == 0 and wave[0, 0] > 0 > wave[2, 0]
    network = GatedLinear(Wave(cycles=1))
    x = wave.ravel() + 0.3
    params = {"weights": jnp.ones((1, 24))}
    assert network.apply(params, jnp.asarray(x), shape=shape).item() == pytest.approx(x.sum())
    assert network.apply(params, jnp.asarray(-x), shape=shape).item() == 0


def test_random_directions_are_the_same_at_any_precision():
    gate = gates.RandomDirections(2, seed=3)
    with jax.enable_x64(False):
        short = np.asarray(gate.directions((40,)))
    assert short.dtype == np.float32
    np.testing.assert_allclose(short, gate.directions((40,)), rtol=1e-6)
    assert np.abs(np.asarray(gate.replace(seed=4).directions((40,))) - short).max() > 0.01


@pytest.mark.parametrize("single", [False, True])
def test_ties_survive_rounding(single):
    """Sums of ±1 behind weights that are no binary fractions: ties are ties, and near ones are
    not.
    """
    with jax.enable_x64(not single):
        gate = Directions([[0.1] * 6 + [0.3] * 2, [0.1] * 6 + [0.3, 0.3001]])
        states = np.array(list(itertools.product((1.0, -1.0), repeat=8)))
        result = jax.vmap(gate.open)(jnp.asarray(states) @ gate.directions((8,)).T)
        whole = np.rint(10 * states @ np.array([0.1] * 6 + [0.3] * 2))
        np.testing.assert_allclose(
            result[:, 0], np.where(whole == 0, HALF, whole > 0), rtol=0, atol=1e-7
        )
        assert set(np.asarray(result[:, 1]).tolist()) == {0.0, 1.0}


# -- the network -----------------------------------------------------------------------------------


def test_network_by_hand():
    network = GatedLinear(Several(Bump(site=1), Bump(site=2), Open()))
    params = {"weights": jnp.asarray([[1.0, 0, 0, 0], [0, 5.0, 0, 0], [0, 0, 0, 2.0]])}
    assert network.hidden == 3
    assert network.apply(params, jnp.asarray(X)).item() == pytest.approx((1 + 0 - 1) / 3)


def test_network_with_its_own_field_for_a_gate_is_a_neuron():
    w = np.random.default_rng(0).normal(size=(1, 6))
    x = np.random.default_rng(1).normal(size=(50, 6))
    params = {"weights": jnp.asarray(w)}
    gated = jax.vmap(lambda one: GatedLinear(Directions(w)).apply(params, one))(jnp.asarray(x))
    np.testing.assert_allclose(gated[:, 0], np.maximum(x @ w[0], 0), rtol=1e-14)


class Noisy(gates.Gates):
    """A user's own: open for inputs of more than usual size."""

    num_gates = 1

    def open(self, h):
        return (jnp.mean(h**2) > 1)[None]


STRUCTURES = [
    Several(Flat(), Bump(copies=2)),
    Exclusive(Bump(copies=2)),
    Noisy(),
    Several(Noisy(), Bump(), Noisy()),
]


@pytest.mark.parametrize("estimator", [sampled, orbit])
@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
def test_gradient_is_a_regression(structure, estimator, key, monkeypatch):
    """On given draws: (2/K) Σ_c p_c E[(ŷ − y_c) g x], with everything written out in numpy."""
    task = lf.Discrimination(
        *(lf.stimuli.Gaussian((6,), xi=xi) for xi in (0.5, 0.6)), proportions=(0.3, 0.7), l2=0.1
    )
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=(5, 6)) for _ in range(2)]
    network = GatedLinear(structure)
    w = rng.normal(size=(network.hidden, 6))
    monkeypatch.setattr(
        "localfields.training.estimators.draw_classes", lambda *_: list(map(jnp.asarray, drawn))
    )
    loss, gradient = estimator(task, network, None, {"weights": jnp.asarray(w)}, key, (5, 5))
    total, slope = 0.1 * (w**2).sum(), 0.2 * w
    for prior, label, x in zip((0.3, 0.7), (0, 1), drawn, strict=True):
        if estimator is orbit:
            x = np.concatenate(
                [np.roll(sign * x, by, axis=1) for by in range(6) for sign in (1, -1)]
            )
        g = np.array([opened(structure, row) for row in x])
        off = (g * (x @ w.T)).mean(axis=1) - label
        total += prior * (off**2).mean()
        slope = slope + prior * 2 / network.hidden * np.einsum("n,nk,nx->kx", off, g, x) / len(x)
    assert loss == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(gradient["weights"], slope, rtol=0, atol=1e-12)


def test_members_may_differ_in_the_width_of_their_gates():
    task = lf.Discrimination(*(lf.stimuli.Gaussian((8,), xi=xi) for xi in (0.6, 1.1)))
    network = GatedLinear(gates.MexicanHat(width=[0.5, 1.5]))
    settings = {
        "learning_rate": 0.1,
        "steps": 20,
        "record": lf.Record(every=20, quantities=("weights",)),
    }
    run = lf.train(task, network, estimator="exact", initial=np.zeros((1, 8)), **settings)
    for m, width in enumerate((0.5, 1.5)):
        one = network.replace(gates=gates.MexicanHat(width=width))
        alone = lf.train(task, one, estimator="exact", initial=np.zeros((1, 8)), **settings)
        np.testing.assert_allclose(run.weights[m], alone.weights[0], rtol=0, atol=1e-12)
    assert np.abs(run.weights[0] - run.weights[1]).max() > 1e-3


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gate",
    [gate for gate, _ in BY_HAND] + [cls() for cls in registered("gates").values()],
    ids=repr,
)
def test_json_round_trip(gate):
    network = GatedLinear(gate, init="bump")
    again = lf.from_json(json.loads(json.dumps(network.to_json())))
    assert repr(again) == repr(network)


def test_an_experiment_of_gates_is_a_value():
    task = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
    for method in (
        lf.Training(steps=10, estimator="exact"),
        lf.Solution(lf.theory.GatedFlow(), times=[0.0, 1.0]),
    ):
        one = lf.Experiment(task, GatedLinear(Several(Flat(), Bump())), method)
        assert lf.Experiment.of(one.canonical()).digest == one.digest
        assert one.run().weights.shape[2:] == (2, 8)


REFUSED = {
    "a function": (lambda: GatedLinear(lambda x: x > 0), "`gates` must be gates, not a function"),
    "a class": (lambda: GatedLinear(Flat), "Call it: Flat()."),
    "a zero": (
        lambda: Directions([[0, 0], [1, 0]]),
        "A row of `values` is zero",
    ),
    "a length": (
        lambda: Directions([[1, 2]]).directions((3,)),
        "A direction has 2 numbers, and the lattice has 3 sites",
    ),
    "exclusive of what": (lambda: Exclusive(Open()), "`Exclusive` needs half-space gates"),
    "exclusive of many": (lambda: Exclusive(Bump(copies=13)), "at most 12 directions"),
    "outputs": (lambda: GatedLinear().check_outputs(2), "has one output"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(lf.InputError) as error:
        make()
    assert words in str(error.value)
