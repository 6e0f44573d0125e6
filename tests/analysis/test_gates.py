"""Gates along a run: closed forms, enumeration and draws against each other."""

import math

import jax
import numpy as np
import pytest

import localfields as lf
from localfields.analysis import gates_along
from localfields.stimuli import (
    NLGP,
    DenseGaussian,
    EllipticalShell,
    Gaussian,
    Ising,
    SinglePulse,
    StudentT,
)
from localfields.stimuli._ring import enumerate_states, ising_weights
from localfields.trajectory import Outcome, Trajectory

SIGMAS = 5.0
REFERENCES = ("next", "first", "final")


def run_of(weights, biases=None, times=None):
    """A trajectory of given fields, (member, time, neuron, *shape)."""
    weights = np.asarray(weights, float)
    members, records = weights.shape[:2]
    times = np.arange(records) / 2 if times is None else np.asarray(times)
    series = (
        {"weights": weights}
        if biases is None
        else {"weights": weights, "biases": np.asarray(biases, float)}
    )
    ok = (Outcome("ok", records),) * members
    return Trajectory(np.arange(records), times, weights[:, 0], weights[:, -1], series, ok, {}, {})


def fields(members=2, records=4, neurons=3, shape=(10,), seed=0):
    """A random walk, so that neighbors are more alike than the ends."""
    steps = np.random.default_rng(seed).normal(size=(members, records, neurons, *shape))
    steps[:, 1:] *= 0.5
    return np.cumsum(steps, axis=1)


def by_hand(gate, weights, reference):
    """Agreement (member, time, neuron) and uniform agreement from gates (member, time, neuron,
    pattern).
    """
    other = {"next": gate[:, 1:], "first": gate[:, :1], "final": gate[:, -1:]}[reference]
    mine = gate[:, :-1] if reference == "next" else gate
    return (mine == other) @ weights, (gate == gate[:, :1]).all(axis=1) @ weights


# -- agreement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", REFERENCES)
def test_small_rings_are_summed(reference):
    task = lf.Discrimination(
        Ising(10, coupling=0.3), Ising(10, coupling=0.9), proportions=(0.3, 0.7)
    )
    walk = fields()
    gates = gates_along(run_of(walk), task, reference=reference)
    states = enumerate_states(10).astype(float)
    weights = 0.3 * ising_weights(states, 0.3) + 0.7 * ising_weights(states, 0.9)
    agreement, uniform = by_hand(walk @ states.T >= 0, weights, reference)
    np.testing.assert_allclose(gates.agreement, agreement, atol=1e-12)
    np.testing.assert_allclose(gates.uniform, uniform, atol=1e-12)
    assert not gates.agreement_error.any() and not gates.uniform_error.any()
    assert (gates.bound <= gates.uniform + 1e-12).all()
    assert len(gates.times) == gates.agreement.shape[1] == (3 if reference == "next" else 4)
    if reference == "next":
        np.testing.assert_allclose(
            gates.bound, np.maximum(1 - (1 - agreement).sum(axis=1), 0), atol=1e-12
        )


def test_draws_agree_with_sums():
    """A ring just too large to be summed, which is summed here: deviations in units of the
    stated errors.
    """
    task = lf.Discrimination(Ising(15, coupling=0.3), Ising(15, coupling=0.9))
    walk = fields(members=3, shape=(15,))
    states = enumerate_states(15).astype(float)
    weights = 0.5 * (ising_weights(states, 0.3) + ising_weights(states, 0.9))
    gates = gates_along(run_of(walk), task, num=4000, seed=2)
    agreement, uniform = by_hand(walk @ states.T >= 0, weights, "next")
    for value, error, exact in (
        (gates.agreement, gates.agreement_error, agreement),
        (gates.uniform, gates.uniform_error, uniform),
    ):
        z = (value - exact) / error
        assert np.abs(z).max() < SIGMAS and 0.3 < np.sqrt(np.mean(z**2)) < 2
    # One class alone is told from both.
    alone, _ = by_hand(walk @ states.T >= 0, ising_weights(states, 0.9), "next")
    assert np.abs((gates.agreement - alone) / gates.agreement_error).max() > SIGMAS


@pytest.mark.parametrize("reference", REFERENCES)
def test_gaussian_closed_form_against_draws(reference, key):
    """1 − arccos(…)/π averaged over the classes."""
    stimuli = Gaussian(12, xi=0.7), Gaussian(12, xi=2, kernel="periodized")
    walk = fields(members=1, neurons=2, shape=(12,))
    gates = gates_along(run_of(walk), lf.Discrimination(*stimuli), reference=reference, num=0)
    assert not gates.agreement_error.any() and np.isnan(gates.uniform).all()
    parts = []
    for part, stimulus in enumerate(stimuli):
        with jax.enable_x64(False):
            x = np.asarray(stimulus.sample(jax.random.fold_in(key, part), 40_000), np.float64)
        parts.append(by_hand(walk @ x.T >= 0, np.full(len(x), 1 / len(x)), reference)[0])
    error = np.sqrt(0.5 * 0.25 / 40_000)
    assert np.abs((parts[0] + parts[1]) / 2 - gates.agreement).max() < SIGMAS * error
    assert np.abs(parts[0] - gates.agreement).max() > SIGMAS * error  # one class is not both
    np.testing.assert_array_equal(gates.agreement, gates.gaussian)


@pytest.mark.parametrize("make", [EllipticalShell, lambda *a, **k: StudentT(*a, nu=3, **k)])
def test_elliptical_laws_agree_as_the_gaussian(make, key):
    stimuli = [make(12, xi=xi, kernel="periodized") for xi in (0.7, 2)]
    walk = fields(members=1, neurons=2, shape=(12,))
    run = run_of(walk)
    exact = gates_along(run, lf.Discrimination(*stimuli), num=0)
    normal = gates_along(
        run, lf.Discrimination(*(stimulus.gaussian_clone() for stimulus in stimuli)), num=0
    )
    np.testing.assert_allclose(exact.agreement, normal.agreement, atol=1e-12)
    parts = []
    for part, stimulus in enumerate(stimuli):
        with jax.enable_x64(False):
            x = np.asarray(stimulus.sample(jax.random.fold_in(key, part), 40_000), np.float64)
        parts.append(by_hand(walk @ x.T >= 0, np.full(len(x), 1 / len(x)), "next")[0])
    assert np.abs((parts[0] + parts[1]) / 2 - exact.agreement).max() < SIGMAS * np.sqrt(
        0.5 * 0.25 / 40_000
    )


def test_a_field_that_turns_one_way():
    """Gates then change at most once: uniform agreement is 1 − angle/π, and the union bound is
    an equality.
    """
    angles = np.linspace(0, 1.2, 7)
    walk = np.zeros((1, 7, 1, 6))
    walk[0, :, 0, 0], walk[0, :, 0, 1] = np.cos(angles), np.sin(angles)
    white = lf.Discrimination(*(DenseGaussian((6,), c * np.eye(6)) for c in (1.0, 2.0)))
    gates = gates_along(run_of(walk), white, num=40_000)
    exact = 1 - 1.2 / np.pi
    assert gates.bound[0, 0] == pytest.approx(exact, abs=1e-12)
    assert abs(gates.uniform[0, 0] - exact) < SIGMAS * gates.uniform_error[0, 0] < 0.02
    np.testing.assert_allclose(gates.agreement[0, :, 0], 1 - 0.2 / np.pi, atol=1e-12)
    # From flow time 1 on (the third record) four steps are left.
    later = gates_along(run_of(walk), white, num=40_000, since=1.0)
    assert later.bound[0, 0] == pytest.approx(1 - 0.8 / np.pi, abs=1e-12)
    assert abs(later.uniform[0, 0] - (1 - 0.8 / np.pi)) < SIGMAS * later.uniform_error[0, 0]
    assert later.uniform[0, 0] - exact > SIGMAS * later.uniform_error[0, 0]


def test_there_and_back():
    """A gate that flips and returns agrees at the ends and not throughout; the bound counts both
    flips.
    """
    walk = np.zeros((1, 3, 1, 6))
    walk[0, :, 0, 0], walk[0, :, 0, 1] = np.cos([0, 1, 0]), np.sin([0, 1, 0])
    white = lf.Discrimination(*(DenseGaussian((6,), c * np.eye(6)) for c in (1.0, 2.0)))
    gates = gates_along(run_of(walk), white, reference="final", num=40_000)
    np.testing.assert_allclose(gates.agreement[0, :, 0], [1, 1 - 1 / np.pi, 1], atol=1e-12)
    assert abs(gates.uniform[0, 0] - (1 - 1 / np.pi)) < SIGMAS * gates.uniform_error[0, 0]
    assert gates.bound[0, 0] == pytest.approx(1 - 2 / np.pi)


def test_size_does_not_matter_and_signs_do():
    walk = fields(members=1, neurons=1)
    task = lf.Discrimination(Ising(10, coupling=0.3), Ising(10, coupling=0.9))
    scaled = walk * np.array([1e-12, 1.0, 1e12, 3.0])[None, :, None, None]
    np.testing.assert_allclose(
        gates_along(run_of(scaled), task).agreement,
        gates_along(run_of(walk), task).agreement,
        atol=1e-12,
    )
    turned = np.concatenate([walk[:, :1], -walk[:, :1]], axis=1)
    assert gates_along(run_of(turned), task).agreement.max() < 1e-12
    still = np.concatenate([walk[:, :1], 2 * walk[:, :1]], axis=1)
    smooth = lf.Discrimination(*(Gaussian(10, xi=xi) for xi in (0.5, 1)))
    gates = gates_along(run_of(still), smooth, num=1000)
    assert gates.agreement[0, 0, 0] == pytest.approx(1, abs=1e-15) and gates.bound[
        0, 0
    ] == pytest.approx(1, abs=1e-15)
    assert (
        gates.uniform[0, 0] == 1 and 0 < gates.uniform_error[0, 0] < 0.01
    )  # never a certainty from draws


def test_pulses_are_summed_and_biases_count():
    """0/1 patterns: a bias shifts the gate, and the kurtosis is about the mean."""
    stimuli = [SinglePulse((8,), *lengths, coding="zero-one") for lengths in ((1, 2), (3, 4))]
    walk = fields(members=1, neurons=2, shape=(8,))
    bias = np.random.default_rng(3).normal(size=(1, 4, 2))
    gates = gates_along(run_of(walk, bias), lf.Discrimination(*stimuli), biases=[0.5, -0.5])
    total = np.zeros((1, 3, 2))
    for place, stimulus in enumerate(stimuli):
        patterns, weights = stimulus.atoms()
        s = walk @ patterns.reshape(len(weights), -1).T
        gate = s + (bias + np.array([0.5, -0.5]))[..., None] >= 0
        total += 0.5 * by_hand(gate, weights, "next")[0]
        away = s - (s @ weights)[..., None]
        kurtosis = (away**4 @ weights) / (away**2 @ weights) ** 2 - 3
        np.testing.assert_allclose(gates.kurtosis[..., place], kurtosis, rtol=1e-9)
    np.testing.assert_allclose(gates.agreement, total, atol=1e-12)
    assert np.isnan(gates.gaussian).all()
    unbiased = gates_along(run_of(walk), lf.Discrimination(*stimuli))
    assert np.abs(unbiased.agreement - gates.agreement).max() > 0.01


# -- kurtosis --------------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", [-0.7, 0.0, 0.7])
def test_kurtosis_on_ising_rings(coupling):
    walk = fields(members=1, neurons=2, shape=(16,))
    task = lf.Discrimination(Ising(16, coupling=coupling), Ising(16, coupling=0.3))
    gates = gates_along(run_of(walk), task, num=0)
    states = enumerate_states(16).astype(float)
    weights, s = ising_weights(states, coupling), walk @ states.T
    exact = (s**4 @ weights) / (s**2 @ weights) ** 2 - 3
    np.testing.assert_allclose(gates.kurtosis[..., 0], exact, atol=1e-11)
    assert not gates.kurtosis_error.any()
    if coupling == 0:
        np.testing.assert_allclose(
            exact, -2 * (walk**4).sum(-1) / (walk**2).sum(-1) ** 2, atol=1e-11
        )


def test_kurtosis_of_elliptical_laws_and_of_their_mixture(key):
    walk = fields(members=1, neurons=1, shape=(12,))
    shells = [EllipticalShell(12, xi=xi) for xi in (0.7, 1.5)]
    gates = gates_along(run_of(walk), lf.Discrimination(*shells), num=0)
    np.testing.assert_allclose(gates.kurtosis, -6 / 14, atol=1e-12)
    heavy = gates_along(
        run_of(walk), lf.Discrimination(*(StudentT(12, xi=xi, nu=3) for xi in (0.7, 1))), num=0
    )
    assert np.isposinf(heavy.kurtosis).all()
    # Two normals of variances a and b: 3(a² + b²)/2 / ((a + b)/2)² − 3, which is positive.
    normals = [Gaussian(12, xi=xi) for xi in (0.7, 1.5)]
    mixed = gates_along(run_of(walk), lf.Discrimination(*normals), num=0)
    a, b = mixed.variances[..., 0], mixed.variances[..., 1]
    np.testing.assert_allclose(
        mixed.mixed_kurtosis, 6 * (a**2 + b**2) / (a + b) ** 2 - 3, atol=1e-12
    )
    assert not mixed.kurtosis.any() and (mixed.mixed_kurtosis >= -1e-12).all()


def test_kurtosis_from_draws():
    """Independent sites: κ(S) = κ Σw⁴/(Σw²)²."""
    walk = fields(members=2, neurons=1, shape=(16,))
    white = [NLGP(16, xi=0.01, gain=gain) for gain in (1.0, 3.0)]
    gates = gates_along(run_of(walk), lf.Discrimination(*white), num=20_000)
    for place, one in enumerate(white):
        exact = one.marginal().excess_kurtosis * (walk**4).sum(-1) / (walk**2).sum(-1) ** 2
        z = (gates.kurtosis[..., place] - exact) / gates.kurtosis_error[..., place]
        assert np.abs(z).max() < SIGMAS
        assert np.abs(gates.kurtosis[..., place] / gates.kurtosis_error[..., place]).max() > SIGMAS


# -- runs, sweeps, and what is refused -------------------------------------------------------------


def test_a_trained_run_with_a_swept_gain():
    gains = [0.01, 100.0]
    task = lf.Discrimination(*(NLGP(12, xi=xi, gain=gains) for xi in (0.7, 1.5)))
    rates = [0.05, 0.1]
    run = lf.train(
        task,
        lf.networks.Committee(2),
        learning_rate=rates,
        steps=40,
        batch=100,
        record=lf.Record(every=10),
    )
    gates = gates_along(run, task, num=4000)
    assert gates.agreement.shape == (2, 4, 2) and gates.times.shape == (2, 4)
    alone = lf.Discrimination(*(NLGP(12, xi=xi, gain=100.0) for xi in (0.7, 1.5)))
    np.testing.assert_allclose(
        gates_along(run.members(slice(1, 2)), alone, num=4000).agreement[0], gates.agreement[1]
    )
    # At a gain of 0.01 the data are Gaussian but for their name.
    z = (gates.agreement[0] - gates.gaussian[0]) / gates.agreement_error[0]
    assert np.abs(z).max() < SIGMAS


def test_fields_that_are_zero_or_gone():
    walk = fields(members=3, neurons=1)
    walk[1, 2:] = np.nan
    walk[2, 1] = 0
    task = lf.Discrimination(Ising(10, coupling=0.3), Ising(10, coupling=0.9))
    gates = gates_along(run_of(walk), task)
    assert np.isfinite(gates.agreement[0]).all() and np.isfinite(gates.uniform[0]).all()
    np.testing.assert_array_equal(np.isnan(gates.agreement[1, :, 0]), [False, True, True])
    assert np.isnan(gates.uniform[1]).all() and np.isnan(gates.bound[1]).all()
    # The gate of a field of zeros is open for everything; its preactivation has no kurtosis.
    states = enumerate_states(10)
    weights = 0.5 * (ising_weights(states, 0.3) + ising_weights(states, 0.9))
    assert gates.agreement[2, 0, 0] == pytest.approx((walk[2, 0, 0] @ states.T >= 0) @ weights)
    assert np.isnan(gates.kurtosis[2, 1]).all() and np.isfinite(gates.kurtosis[2, 0]).all()


@pytest.mark.parametrize(
    "run, options, message",
    [
        (run_of(fields()), {"reference": "last"}, "reference"),
        (run_of(fields(shape=(12,))), {}, "fields are on"),
        (run_of(fields(records=1)), {}, "1 record,"),
        (run_of(fields()), {"since": 1.5}, "since"),
        (run_of(fields()), {"biases": [1.0]}, "biases"),
        (run_of(fields()), {"num": -1}, "num"),
    ],
)
def test_refusals(run, options, message):
    task = lf.Discrimination(Ising(10, coupling=0.3), Ising(10, coupling=0.9))
    with pytest.raises(lf.InputError, match=message):
        gates_along(run, task, **options)


def test_refusal_of_another_sweep():
    task = lf.Discrimination(Ising(10, coupling=[0.3, 0.4, 0.5]), Ising(10, coupling=0.9))
    with pytest.raises(lf.InputError, match="sweep"):
        gates_along(run_of(fields()), task)


def test_draws_are_those_of_the_seed():
    task = lf.Discrimination(*(NLGP(10, xi=xi) for xi in (0.5, 1)))
    run = run_of(fields(members=1, neurons=1))
    one, same, other = (
        gates_along(run, task, num=500, seed=seed).uniform[0, 0] for seed in (0, 0, 1)
    )
    assert one == same != other and math.isfinite(other)
