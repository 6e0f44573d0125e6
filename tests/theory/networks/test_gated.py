"""Gated linear networks: moments by enumeration and draws, w(t) against its own equation,
errata.
"""

import inspect
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.stats

import localfields as lf
from localfields.errors import InputError
from localfields.networks.gates import (
    Block,
    Bump,
    Directions,
    Exclusive,
    Flat,
    Gates,
    MexicanHat,
    Open,
    Redundant,
    Several,
    Wave,
)
from localfields.theory import GatedFlow, gated_solution, race
from localfields.theory.networks.moments import quadrant_moment
from localfields.theory.responses.hypercube import hypercube_bump

from .. import sheet
from .gate_sums import PRIOR, SPINS, STATES, TASK, N, half, loss_of, regression

SIGMAS = 5.0


# -- moments ---------------------------------------------------------------------------------------

x = np.arange(N)
ONE_GATE = {
    "bump": (Bump(site=2), x == 2),
    "two alike": (Block(length=2, site=1), (x == 1) | (x == 2)),
    "majority": (Block(length=3), x < 3),
    "flat": (Flat(), x >= 0),
    "wave": (Wave(cycles=1), np.cos(2 * np.pi * x / N)),
    "hat": (
        MexicanHat(width=1.5),
        (1 - np.minimum(x, N - x) ** 2 / 2.25) * np.exp(-(np.minimum(x, N - x) ** 2) / 4.5),
    ),
    "given": (Directions([0.3 * x - 1]), 0.3 * x - 1),
}


@pytest.mark.parametrize("labels", ["zero-one", "signs"])
@pytest.mark.parametrize("name", ONE_GATE)
def test_one_half_space_in_closed_form(name, labels):
    """A = ½Σ̄ and b = Σ p y f(v), with ties and without, against a sum over states."""
    gates, direction = ONE_GATE[name]
    solution = gated_solution(TASK.replace(labels=labels), gates, num_samples=None)
    second, first, constant = regression(
        half(direction), (-1.0, 1.0) if labels == "signs" else (0.0, 1.0)
    )
    np.testing.assert_allclose(solution.second, second, rtol=0, atol=1e-14)
    np.testing.assert_allclose(solution.first, first, rtol=0, atol=1e-9)
    covariances = [lf.lattice.matrix(s.covariance()) for s in SPINS]
    np.testing.assert_allclose(second, 0.25 * sum(covariances), rtol=0, atol=1e-14)
    assert solution.exact and solution.constant == constant
    # With the gate open on ties, or shut, or half open, the second moment would be another.
    if name in ("two alike", "flat"):
        for tie in (0.0, 0.5, 1.0):
            opened = np.where(half(direction) % 1, tie, half(direction))
            assert np.abs(regression(opened)[0] - solution.second).max() > 0.02


class Crowd(Gates):
    """Gates of a user's own: open where few, or many, spins are up."""

    num_gates = 2

    def open(self, h):
        return jnp.stack([jnp.sum(h) < -1, jnp.sum(h) > 3])


MANY = {
    "bumps": (Bump(copies=2), half(x == 0, x == 4)),
    "several": (
        Several(Flat(), Block(length=2), Open()),
        np.hstack([half(x >= 0, x < 2), np.ones((2**N, 1))]),
    ),
    "exclusive": (
        Exclusive(Directions(np.eye(N)[[0, 3]])),
        np.stack(
            [(STATES[:, 0] == a) & (STATES[:, 3] == b) for a in (1, -1) for b in (1, -1)], axis=1
        )
        * 1.0,
    ),
    "redundant": (Redundant(Bump(site=1)), half(x == 1, x == 1)),
    "crowd": (Crowd(), np.stack([STATES.sum(axis=1) < -1, STATES.sum(axis=1) > 3], axis=1) * 1.0),
    "crowd and bump": (
        Several(Crowd(), Bump(site=1)),
        np.hstack(
            [
                np.stack([STATES.sum(axis=1) < -1, STATES.sum(axis=1) > 3], axis=1) * 1.0,
                half(x == 1),
            ]
        ),
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_any_gates_on_a_finite_law(name):
    gates, opened = MANY[name]
    solution = gated_solution(TASK, gates, num_samples=None)
    second, first, _ = regression(opened)
    np.testing.assert_allclose(solution.second, second, rtol=0, atol=1e-14)
    np.testing.assert_allclose(solution.first, first, rtol=0, atol=1e-9)
    assert solution.limiting_loss == pytest.approx(loss_of(opened, solution.limit()), abs=1e-8)


def cosines(covariance, v, u):
    a, b, c = v @ covariance @ v, u @ covariance @ u, v @ covariance @ u
    return a, b, c, c / math.sqrt(a * b)


def direction_pair(covariance, cosine, rng):
    """Two directions whose projections have a wanted correlation."""
    v, other = rng.normal(size=(2, len(covariance)))
    other = other - (v @ covariance @ other) / (v @ covariance @ v) * v
    unit = [d / math.sqrt(d @ covariance @ d) for d in (v, other)]
    return 1.3 * v, cosine * unit[0] + math.sqrt(1 - cosine**2) * unit[1]


@pytest.mark.parametrize("cosine", [-0.95, -0.4, 0.0, 0.7, 0.999])
def test_what_two_half_spaces_share(cosine):
    """Contracted with the two directions, against the moments of a quadrant; across them,
    against its probability.
    """
    rng = np.random.default_rng(0)
    covariance = lf.lattice.matrix(lf.stimuli.Gaussian((N,), xi=1.1).covariance())
    v, u = direction_pair(covariance, cosine, rng)
    actual = quadrant_moment(covariance, v, u)
    a, b, _, g = cosines(covariance, v, u)
    s, angle = math.sqrt(1 - g**2), math.pi / 2 + math.asin(g)
    np.testing.assert_allclose(actual, actual.T, rtol=0, atol=1e-15)
    assert v @ actual @ v == pytest.approx(a / (2 * math.pi) * (angle + g * s), rel=1e-11)
    assert u @ actual @ u == pytest.approx(b / (2 * math.pi) * (angle + g * s), rel=1e-11)
    assert v @ actual @ u == pytest.approx(
        math.sqrt(a * b) / (2 * math.pi) * (s + g * angle), rel=1e-11, abs=1e-13
    )
    basis = scipy.linalg.null_space(np.stack([v, u]) @ covariance)
    across = basis @ rng.normal(size=basis.shape[1])
    expected = (0.25 + math.asin(g) / (2 * math.pi)) * (across @ covariance @ across)
    assert across @ actual @ across == pytest.approx(expected, rel=1e-11)


def test_limits_of_what_two_half_spaces_share():
    covariance = lf.lattice.matrix(lf.stimuli.Gaussian((N,), xi=1.1).covariance())
    v, across = np.random.default_rng(1).normal(size=(2, N))
    for size in (1e-3, 1e-6, 1e-9):
        np.testing.assert_allclose(
            quadrant_moment(covariance, v, v + size * across), covariance / 2, atol=2 * size
        )
        np.testing.assert_allclose(
            quadrant_moment(covariance, v, -v + size * across), 0 * covariance, atol=2 * size
        )


class Sum(Gates):
    """The flat gate and one site's, as a function: nothing is known of it beforehand."""

    num_gates = 2

    def open(self, h):
        return jnp.stack([jnp.sum(h) > 0, h[0] > 0])


ELLIPTICAL = {
    "gaussian": [lf.stimuli.Gaussian((6,), xi=xi) for xi in (0.6, 1.1)],
    "student": [lf.stimuli.StudentT((6,), xi=xi, nu=7.0) for xi in (0.6, 1.1)],
}


@pytest.mark.parametrize("name", ELLIPTICAL)
def test_measured_gates_have_the_moments_of_the_closed_form(name):
    task = lf.Discrimination(*ELLIPTICAL[name])
    exact = gated_solution(task, Several(Flat(), Bump()), num_samples=None)
    solution = gated_solution(task, Sum(), num_samples=100_000)
    limit = scipy.stats.t.ppf(scipy.stats.norm.cdf(SIGMAS), 19)

    def sigmas(groups, expected):
        return np.abs(groups.mean(axis=0) - expected) / (
            groups.std(axis=0, ddof=1) / math.sqrt(len(groups))
        )

    assert exact.exact and not solution.exact
    assert sigmas(solution.groups[0], exact.second).max() < limit
    assert sigmas(solution.groups[1], exact.first).max() < limit
    assert (
        abs(solution.limiting_loss - exact.limiting_loss) < limit * solution.limiting_error < 0.01
    )
    # The power: without the part that is not proportional to Σ, and with a twentieth more of it
    # all.
    off = 0.5 * sum(lf.lattice.matrix(s.covariance()) for s in task.stimuli)
    g = [
        cosines(lf.lattice.matrix(s.covariance()), np.ones(6), np.eye(6)[0])[3]
        for s in task.stimuli
    ]
    crude = exact.second.copy()
    crude[:6, 6:] = np.mean([0.25 + math.asin(one) / (2 * math.pi) for one in g]) * off
    assert sigmas(solution.groups[0], crude).max() > 2 * limit
    assert sigmas(solution.groups[0], 1.05 * exact.second).max() > limit


def test_error_of_a_measured_loss_is_its_spread():
    """Over seeds: unbiased, although the plain estimate is not, and as uncertain as it says."""
    task = lf.Discrimination(*ELLIPTICAL["gaussian"])
    exact = gated_solution(task, Several(Flat(), Bump())).limiting_loss
    result = [gated_solution(task, Sum(), num_samples=1000, seed=10 * seed) for seed in range(30)]
    off = np.array([one.limiting_loss for one in result]) - exact
    stated = np.sqrt(np.mean([one.limiting_error**2 for one in result]))
    assert abs(off.mean()) < SIGMAS * off.std(ddof=1) / math.sqrt(30)
    ratio = (off.std(ddof=1) / stated) ** 2
    low, high = scipy.stats.chi2.ppf(scipy.stats.norm.cdf([-3.5, 3.5]), 29) / 29
    assert low < ratio < high
    plain = (
        np.array(
            [one.constant - one.first @ np.linalg.solve(one.second, one.first) for one in result]
        )
        - exact
    )
    assert plain.mean() < -2 * off.std(ddof=1) / math.sqrt(30)


# -- gates that look at one site of a Gaussian copula ----------------------------------------------


@pytest.mark.parametrize("gain, right, printed", [(0.5, ".2106", ".747"), (3.0, ".2394", ".849")])
def test_nlgp_behind_a_bump_gate(gain, right, printed):
    stimulus = lf.stimuli.NLGP((40,), xi=3.0, gain=gain)
    r = stimulus.latent_correlation()
    z = math.sqrt(2 / math.pi * math.asin(2 * gain**2 / (1 + 2 * gain**2)))
    arctangent = np.arctan(r / np.sqrt(1 / (2 * gain**2) + 1 - r**2)) / (math.pi * z)
    np.testing.assert_allclose(stimulus.site_gated_mean(), arctangent, rtol=1e-13)
    # P(Y = 1) = ½ is part of what the notes call the input-output covariance; at the gate's own
    # site r = 1.
    task = lf.Discrimination(stimulus.replace(xi=1.0), stimulus)
    solution = gated_solution(task, Bump(site=7), num_samples=None)
    assert sheet.rounds_to(solution.first[7], right)
    assert sheet.rounds_to(math.atan(math.sqrt(2) * gain) / (math.sqrt(math.pi) * z), printed)
    assert sheet.rounds_to(2 * math.sqrt(math.pi), "3.54")
    np.testing.assert_allclose(solution.first, np.roll(arctangent, 7) / 2, rtol=1e-13)


COPULAS = {
    "nlgp": lf.stimuli.NLGP((6,), xi=1.0, gain=3.0),
    "kur": lf.stimuli.Kur((6,), xi=1.0, k=5.0),
    "laplace": lf.stimuli.Copula((6,), xi=1.0, marginal_law=lf.marginals.Laplace()),
}


@pytest.mark.parametrize("name", COPULAS)
def test_copula_behind_a_bump_gate_against_draws(name, key):
    stimulus, num = COPULAS[name], 200_000
    drawn = np.asarray(stimulus.sample(key, num))
    products = 0.5 * np.sign(drawn[:, :1]) * drawn
    error = products.std(axis=0) / math.sqrt(num)
    expected = stimulus.site_gated_mean()
    assert (np.abs(products.mean(axis=0) - expected) < SIGMAS * error).all()
    assert (np.abs(products.mean(axis=0) - 1.1 * expected)[:2] > SIGMAS * error[:2]).all()
    flipped = -stimulus.gated_mean(-np.eye(6)[2])
    np.testing.assert_allclose(flipped, np.roll(expected, 2), rtol=1e-15)


def test_quadrature_of_a_copula_is_the_closed_form():
    law = lf.marginals.ErfNormal(gain=3.0)
    one = lf.stimuli.Copula((12,), xi=2.0, marginal_law=law).site_gated_mean()
    np.testing.assert_allclose(
        one, lf.stimuli.NLGP((12,), xi=2.0, gain=3.0).site_gated_mean(), rtol=0, atol=1e-12
    )
    normal = lf.stimuli.Gaussian((12,), xi=2.0)
    np.testing.assert_allclose(
        normal.site_gated_mean(), normal.covariance() / math.sqrt(2 * math.pi), rtol=0, atol=1e-12
    )


# -- learning over time ----------------------------------------------------------------------------


def start_of(gates, seed=0):
    return np.random.default_rng(seed).normal(size=(gates.num_gates, N))


@pytest.mark.parametrize("l2", [0.0, 0.03])
@pytest.mark.parametrize("name", ["several", "redundant", "crowd"])
def test_weights_over_time(name, l2):
    """They start where they should, obey their equation, and end at rest; `solve` says the same."""
    gates, opened = MANY[name]
    task = TASK.replace(l2=l2)
    solution, start, count = gated_solution(task, gates), start_of(gates), gates.num_gates
    times, step = np.array([0.0, 0.7, 5.0, 40.0]), 1e-4
    actual = solution.weights(times, start)
    np.testing.assert_allclose(actual[0], start, rtol=0, atol=1e-13)
    before, after = (solution.weights(times[1:] + side, start) for side in (-step, step))
    velocity = ((after - before) / (2 * step)).reshape(3, -1)
    second, first, _ = regression(opened)
    w = actual[1:].reshape(3, -1)
    expected = 2 / count * (first - w @ second / count) - 2 * l2 * w
    np.testing.assert_allclose(velocity, expected, rtol=0, atol=1e-6)
    # As printed, without the inner 1/K.
    assert np.abs(velocity - 2 / count * (first - w @ second)).max() > 0.05
    losses = [loss_of(opened, fields) + l2 * (fields**2).sum() for fields in actual]
    np.testing.assert_allclose(solution.loss(actual), losses, rtol=0, atol=1e-8)
    assert (np.diff(losses) < 0).all()
    end = solution.limit(start)
    np.testing.assert_allclose(solution.weights(1e6, start)[0], end, rtol=0, atol=1e-9)
    assert solution.loss(end) == pytest.approx(solution.limiting_loss, abs=1e-12)
    network = lf.networks.GatedLinear(gates)
    flow = lf.solve(task, GatedFlow(), network=network, initial=start, times=times)
    np.testing.assert_allclose(flow.weights[0], actual, rtol=0, atol=1e-6)
    np.testing.assert_allclose(flow.loss[0], losses, rtol=0, atol=1e-6)


def test_printed_solution_cannot_start_anywhere():
    """Λ⁻¹ exp(−tΛ/Kτ + C) 1 + Λ⁻¹c is above its limit in every mode at all times; starts at zero
    are not.
    """
    solution = gated_solution(TASK, Bump())
    _, vectors = np.linalg.eigh(solution.second)
    apart = vectors.T @ (solution.weights(0.0) - solution.limit()).ravel()
    assert (apart < -0.01).any() and (apart > 0.01).any()


def test_speed_grows_with_the_eigenvalue():
    solution = gated_solution(TASK, Bump(copies=2))
    values, vectors = np.linalg.eigh(solution.second)
    np.testing.assert_allclose(solution.rates, values[::-1] / 2, rtol=0, atol=1e-14)
    start = solution.limit() + (vectors @ np.ones(2 * N)).reshape(2, N)
    apart = (solution.weights(0.3, start)[0] - solution.limit()).ravel() @ vectors
    np.testing.assert_allclose(apart, np.exp(-0.3 * values / 2), rtol=0, atol=1e-9)


@pytest.mark.parametrize("labels", [(0.0, 1.0), (-1.0, 1.0)])
def test_limiting_loss_three_ways(labels):
    task = TASK.replace(labels=labels)
    gates = Bump(copies=2)
    solution, opened = gated_solution(task, gates), half(x == 0, x == 4)
    through = (opened[:, :, None] * STATES[:, None, :]).reshape(len(STATES), -1)
    means = [2 * p @ through for p in PRIOR]
    seconds = sum(through.T @ (2 * p[:, None] * through) for p in PRIOR)
    mean = means[1] + labels[0] * means[0]
    constant = 0.5 if labels[0] == 0 else 1.0
    expected = constant - 0.5 * mean @ np.linalg.solve(seconds, mean)
    assert solution.limiting_loss == pytest.approx(expected, abs=1e-10)
    assert loss_of(opened, solution.limit(), labels) == pytest.approx(expected, abs=1e-10)
    # Of the notes' own loss, with ½, their formula is twice as much.
    assert abs(0.5 * loss_of(opened, solution.limit(), labels) - expected) > 0.1


def test_exclusive_gates_are_regressions_of_their_own():
    gates, opened = MANY["exclusive"]
    solution = gated_solution(TASK, gates)
    blocks = solution.second.reshape(4, N, 4, N)
    assert max(np.abs(blocks[k, :, j]).max() for k in range(4) for j in range(4) if k != j) == 0
    for k, fields in enumerate(solution.limit()):
        weighted = [p * opened[:, k] for p in PRIOR]
        second = sum(STATES.T @ (p[:, None] * STATES) for p in weighted)
        # The two sites that the gate fixes are one and the same to a regression: any split of their
        # weights will do.
        np.testing.assert_allclose(second @ fields, 4 * weighted[1] @ STATES, rtol=0, atol=1e-12)
        assert np.linalg.matrix_rank(second, tol=1e-9) == N - 1


def test_redundant_gates():
    """The difference is kept; the sum goes at twice the speed that the notes print."""
    solution, start = (
        gated_solution(TASK, Redundant(Bump(site=1))),
        start_of(Redundant(Bump(site=1))),
    )
    result = solution.weights([0.5, 3.0, math.inf], start)
    np.testing.assert_allclose(
        result[:, 0] - result[:, 1], np.tile(start[0] - start[1], (3, 1)), rtol=0, atol=1e-12
    )
    second, first, _ = regression(half(x == 1))
    end = 2 * np.linalg.solve(second, first)
    for index, time in enumerate((0.5, 3.0)):
        # Under the loss without ½ the time constant τ of the notes is ½.
        decayed = {twice: scipy.linalg.expm(-twice * second * time / (4 * 0.5)) for twice in (2, 1)}
        total = {twice: end + decay @ (start.sum(axis=0) - end) for twice, decay in decayed.items()}
        np.testing.assert_allclose(result[index].sum(axis=0), total[2], rtol=0, atol=1e-9)
        assert np.abs(result[index].sum(axis=0) - total[1]).max() > 0.1
        apart = start[0] - start[1]
        np.testing.assert_allclose(
            result[index], [(total[2] + apart) / 2, (total[2] - apart) / 2], rtol=0, atol=1e-9
        )


def test_opposite_half_spaces_are_exclusive():
    task = lf.Discrimination(*ELLIPTICAL["gaussian"])
    v = np.random.default_rng(3).normal(size=6)
    solution = gated_solution(task, Directions([v, -v]), num_samples=None)
    assert np.abs(solution.second[:6, 6:]).max() < 1e-12
    fields = solution.limit()
    np.testing.assert_allclose(fields[0], -fields[1], rtol=0, atol=1e-12)
    one = gated_solution(task, Directions([v]), num_samples=None)
    np.testing.assert_allclose(fields[0], 2 * one.limit()[0], rtol=0, atol=1e-11)


def test_bump_gate_ends_where_a_neuron_does():
    """w(∞) = 2(Σ₀ + Σ₁)⁻¹f(v): the equation of a ReLU neuron at rest, and on ±1 data its bump."""
    task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
    bump = hypercube_bump(task, site=5)
    solution = gated_solution(task, Bump(site=5))
    np.testing.assert_allclose(solution.limit()[0], bump.field, rtol=0, atol=1e-9)
    assert solution.limiting_loss == pytest.approx(bump.loss, abs=1e-9)


# -- against training ------------------------------------------------------------------------------


def descended(solution, start, rate, steps, printed=False):
    """Gradient descent on the closed form, every step; as printed, without the inner 1/K."""
    w, result, count = start.ravel(), [], solution.neurons
    for _ in range(steps + 1):
        result.append(w.reshape(start.shape))
        w = w + rate * 2 / count * (
            solution.first - solution.second @ w / (1 if printed else count)
        )
    return np.array(result)


def test_exact_training_is_descent_on_the_closed_form():
    """Its error against the flow is of the first order in the rate."""
    gates, _ = MANY["several"]
    network, start, solution = (
        lf.networks.GatedLinear(gates),
        0.3 * start_of(gates),
        gated_solution(TASK, gates),
    )
    rates = np.array([0.2, 0.1])
    record = lf.Record(every=20, quantities=("weights", "loss"))
    settings = {
        "learning_rate": rates,
        "steps": 80,
        "record": record,
        "estimator": "exact",
        "initial": start,
    }
    run = lf.train(TASK, network, **settings)
    for m, rate in enumerate(rates):
        np.testing.assert_allclose(
            run.weights[m], descended(solution, start, rate, 80)[::20], rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(run.loss[m], solution.loss(run.weights[m]), rtol=0, atol=1e-10)
    flow = solution.weights(run.times[0, :3], start)
    errors = [np.abs(run.weights[0, :3] - flow).max(), np.abs(run.weights[1, ::2] - flow).max()]
    assert errors[0] < 0.05 and 1.8 < errors[0] / errors[1] < 2.2


@pytest.mark.parametrize(
    "estimator", [pytest.param("independent", marks=pytest.mark.slow), "orbit"]
)
def test_training_on_large_batches_follows_the_closed_form(estimator):
    """The mean of a linear recursion is the recursion of the mean: members differ from it by
    noise alone.
    """
    gates, _ = MANY["several"]  # ties included: the flat gate has many
    network, start, members = lf.networks.GatedLinear(gates), 0.3 * start_of(gates), 32
    settings = {
        "learning_rate": 0.3,
        "steps": 60,
        "record": lf.Record(every=20, quantities=("weights",)),
    }
    run = lf.train(
        TASK,
        network,
        members=members,
        batch=4000 if estimator == "independent" else 500,
        estimator=estimator,
        initial=start,
        **settings,
    )
    solution = gated_solution(TASK, gates)
    limit = scipy.stats.t.ppf(scipy.stats.norm.cdf(SIGMAS), members - 1)
    error = run.weights.std(axis=0, ddof=1)[1:] / math.sqrt(members)

    def sigmas(expected):
        return (np.abs(run.weights.mean(axis=0) - expected[::20])[1:] / error).max()

    assert sigmas(descended(solution, start, 0.3, 60)) < limit
    assert sigmas(descended(solution, start, 0.3, 60, printed=True)) > 5 * limit
    assert sigmas(descended(solution, start, 0.3 * 1.05, 60)) > limit
    # Gates shut on ties would be seen.
    opened = np.hstack([half(x >= 0, x < 2), np.ones((2**N, 1))])
    second, first, _ = regression(np.where(opened % 1, 0.0, opened))
    shut = gated_solution(TASK, gates)
    object.__setattr__(shut, "second", second)
    assert sigmas(descended(shut, start, 0.3, 60)) > limit


# -- refusals --------------------------------------------------------------------------------------

GAUSSIAN = lf.Discrimination(*(lf.stimuli.Gaussian((N,), xi=xi) for xi in (0.6, 1.1)))
REFUSED = {
    "a measurement that must not be": (
        lambda: gated_solution(GAUSSIAN, Crowd(), num_samples=None),
        "have no closed form",
    ),
    "no task": (
        lambda: inspect.unwrap(gated_solution)("spins", Flat()),
        "`task` must be a Discrimination",
    ),
    "no gates": (
        lambda: inspect.unwrap(gated_solution)(GAUSSIAN, "flat"),
        "`gates` must be a Gates",
    ),
    "a sweep": (
        lambda: gated_solution(GAUSSIAN.replace(l2=[0.1, 0.2]), Flat()),
        "`l2` must be one number for gated_solution",
    ),
    "an L1 penalty": (
        lambda: gated_solution(GAUSSIAN.replace(l1=0.1), Flat()),
        "`l1` must be 0 for gated_solution",
    ),
    "another loss": (
        lambda: gated_solution(GAUSSIAN.replace(loss="absolute"), Flat()),
        "mean squared error",
    ),
    "another network": (
        lambda: lf.solve(GAUSSIAN, GatedFlow()),
        "covers GatedLinear networks only",
    ),
    "too many gates": (
        lambda: gated_solution(GAUSSIAN, Bump(copies=1000)),
        "1000 neurons × 8 sites are too many: at most 4096",
    ),
    "too many to measure": (
        lambda: gated_solution(GAUSSIAN, Redundant(Crowd(), 100)),
        "200 neurons × 8 sites are too many to measure their moments: at most 1024",
    ),
    "a wrong start": (
        lambda: gated_solution(GAUSSIAN, Flat()).weights(1.0, np.zeros((2, N))),
        "must have shape (1, 8)",
    ),
    "a whole fraction": (lambda: gated_solution(GAUSSIAN, Flat()).time_to(1.0), "between 0 and 1"),
    "an empty race": (lambda: race(GAUSSIAN, []), "`gates` is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(InputError) as error:
        make()
    assert words in str(error.value)


def test_offsets_are_summed_or_measured():
    """Without sign symmetry no closed form applies: pulses in 0/1 coding are summed, Gaussians
    with a mean measured.
    """
    pulses = [lf.stimuli.SinglePulse((N,), a, a + 1, coding="zero-one") for a in (1, 3)]
    assert gated_solution(lf.Discrimination(*pulses), Bump(), num_samples=None).exact
    moved = lf.Discrimination(*(lf.stimuli.Gaussian((N,), xi=xi, offset=0.5) for xi in (0.6, 1.1)))
    assert not gated_solution(moved, Flat(), num_samples=1000).exact
    with jax.enable_x64(True):
        assert lf.theory.ExactPulse().flow(
            lf.Discrimination(*pulses), lf.networks.GatedLinear(Bump())
        )
