"""Measured assumptions: the estimators against closed forms and quadrature, the effective error
against tables.
"""

import dataclasses
import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

import localfields as lf
from localfields.stimuli import (
    NLGP,
    BlockPulse,
    Copula,
    EllipticalShell,
    Gaussian,
    Ising,
    Kur,
    SinglePulse,
    StudentT,
)
from localfields.theory.checks import assumptions, sampling, validity
from localfields.theory.checks.assumptions import check_stimulus
from localfields.theory.checks.sampling import BINS, GROUPS
from localfields.theory.checks.validity import CELLS, check_trajectory
from localfields.theory.responses.linear import LinearResponse
from localfields.trajectory import Outcome, Trajectory

from ..sheet import fits

SIGMAS = 5.0
BY_COVARIANCE = LinearResponse(slope="gaussian")


def along(fields, times=None):
    """A trajectory through given fields, (record, *shape)."""
    weights = np.asarray(fields, float)[None, :, None]
    steps = np.arange(weights.shape[1])
    times = 1.0 * steps if times is None else np.asarray(times, float)
    ends = weights[:, 0], weights[:, -1]
    return Trajectory(steps, times, *ends, {"weights": weights}, (Outcome("ok", -1),), {}, {})


def bump(size, width):
    d = np.arange(size)
    return np.exp(-np.minimum(d, size - d) / width)


def random_fields(size, count=10):
    return np.random.default_rng(size).normal(size=(count, size))


def apart(measured, expected):
    return (measured.value - expected) / measured.error


def binned(quantile, function, fine=4000):
    """Mean of a function of X in each of the equally likely bins."""
    u = (np.arange(BINS * fine) + 0.5) / (BINS * fine)
    return function(quantile(u)).reshape(BINS, fine).mean(axis=1)


# -- the estimators --------------------------------------------------------------------------------


def test_square_is_unbiased_and_its_error_right():
    """Noise of variance 1/4 about a mean: the plain square would be 10 × 1/4/GROUPS too large."""
    mean = np.linspace(0, 0.3, 10)
    draws = np.random.default_rng(0).normal(scale=0.5, size=(2000, GROUPS, 10)) + mean
    result = [sampling.mean_square(parts, (0,)) for parts in draws]
    squares, errors = (
        np.array([f[0] for f in result]),
        np.array([sampling.jackknife(f[1]) for f in result]),
    )
    spread = squares.std()
    assert abs(squares.mean() - mean @ mean) < SIGMAS * spread / math.sqrt(2000)
    plain = (draws.mean(axis=1) ** 2).sum(axis=1)
    assert plain.mean() - mean @ mean > 0.9 * 10 * 0.25 / GROUPS
    # The jackknife of a square errs to the safe side, by at most √2 where the mean is zero.
    assert 0.95 < math.sqrt(np.mean(errors**2)) / spread < 1.5


HOLDING = [
    (Gaussian(40, xi=2), "S1 S2 S3 A1 A2"),
    (Ising(40), "S1 S2 S3 A1 A2"),
    (SinglePulse(20), "S2 S3 A1 A2"),
    (BlockPulse(20), "S3 A1 A2"),
    (StudentT(20, xi=2, nu=5), "S2 S3 A1"),
    (NLGP(40, xi=2, gain=1), "S1 S2 S3"),
]
MORE_HOLDING = [
    (Gaussian(12, xi=1.5, scale=3.0), "S2 S3 A1 A2"),
    (Ising(12, coupling=-0.7), "S2 S3 A1 A2"),
    (EllipticalShell(20, xi=2), "S2 S3 A1"),
    (Kur(40, xi=2, k=3), "S1 S2 S3"),
    (Gaussian((6, 5), xi=1), "S2 S3 A1 A2"),
]
HOLDING += [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_HOLDING]


@pytest.mark.parametrize(
    "stimulus, holds", HOLDING, ids=lambda value: repr(value) if not isinstance(value, str) else ""
)
def test_what_holds_is_found_to_hold(stimulus, holds):
    check = check_stimulus(stimulus, num=40_000)
    measured = {
        "S1": check.far_dependence,
        "S2": check.shift,
        "S3": check.sign,
        "A1": check.conditional_mean,
        "A2": check.conditional_covariance,
    }
    for name in holds.split():
        assert measured[name].p > 1e-6, name  # about 5 standard errors
    assert check.contradicted == ()
    assert check.num == 40_000


def test_what_fails_is_found_to_fail(monkeypatch):
    """Each with the opposite declared, so that the check must contradict it."""
    skewed = Copula(40, xi=2, marginal_law=lambda u: -np.log1p(-u))
    # Lattices and draws of the test above, where they can be: its programs serve again.
    for stimulus, declared, name in (
        (StudentT(20, xi=2, nu=5), "weakly_dependent", "S1"),
        (SinglePulse(40), "weakly_dependent", "S1"),
        (BlockPulse(20), "translation_invariant", "S2"),
        (skewed, "sign_symmetric", "S3"),
        (Gaussian(40, xi=2, offset=0.2), "sign_symmetric", "S3"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(type(stimulus), declared, property(lambda _: True))
            check = check_stimulus(stimulus, num=40_000)
            assert check.contradicted == (name,)
            assert f"contradict what is declared: {name}" in repr(check)


# -- S1: dependence against distance ---------------------------------------------------------------


def bounded(x):
    return x**2 / (1 + x**2)


@pytest.mark.parametrize(
    "stimulus", [Gaussian(20, xi=2), NLGP(20, xi=2, gain=1), Kur(20, xi=2, k=3)], ids=repr
)
def test_dependence_of_copulas(stimulus):
    """Two-dimensional quadrature over the latent Gaussian."""
    check = check_stimulus(stimulus)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    law, r = stimulus.marginal(), stimulus.latent_correlation()[:11]
    size = lambda z: bounded(np.asarray(law.from_normal(z)))  # noqa: E731
    mean, square = weights @ size(nodes), weights @ size(nodes) ** 2
    second = [np.sqrt(max(1 - c**2, 0)) * nodes[None, :] + c * nodes[:, None] for c in r]
    product = np.array([weights @ (size(nodes)[:, None] * size(z)) @ weights for z in second])
    expected = (product - mean**2) / (square - mean**2)
    z = (check.dependence[1:] - expected[1:]) / check.dependence_error[1:]
    assert np.abs(z).max() < SIGMAS
    assert (
        np.abs((check.dependence[1:] - 1.1 * expected[1:]) / check.dependence_error[1:]).max()
        > SIGMAS
    )
    np.testing.assert_allclose(check.distances, np.arange(11))
    assert check.dependence[0] == pytest.approx(1) and check.correlation[0] == pytest.approx(1)


@pytest.mark.parametrize("nu", [3.0, 8.0])
def test_far_dependence_of_a_scale_mixture(nu):
    """Given the common scale two uncorrelated sites are independent: the covariance is that of
    the conditional mean.
    """
    check = check_stimulus(StudentT(20, xi=1.5, nu=nu))
    chi = scipy.stats.chi2(nu).ppf((np.arange(20_000) + 0.5) / 20_000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    x = np.sqrt((nu - 2) / chi)[:, None] * nodes
    given = bounded(x) @ weights
    expected = given.var() / ((bounded(x) ** 2 @ weights).mean() - given.mean() ** 2)
    assert abs(apart(check.far_dependence, expected)) < SIGMAS
    assert abs(apart(check.far_dependence, expected / 2)) > SIGMAS
    assert abs(check.far_correlation.z) < SIGMAS


def test_far_dependence_of_a_shell():
    """Two orthogonal coordinates of a sphere: a radius ρ with ρ²/D ~ Beta(1, D/2 − 1), and an
    angle.
    """
    dimension = 20
    check = check_stimulus(EllipticalShell(dimension, xi=1))
    v = (np.arange(4000) + 0.5) / 4000
    radius = np.sqrt(dimension * (1 - v ** (2 / (dimension - 2))))[:, None]
    angle = (2 * np.pi * v[:720:1] * 4000 / 720)[None, :]
    one, two = bounded(radius * np.cos(angle)), bounded(radius * np.sin(angle))
    expected = ((one * two).mean() - one.mean() ** 2) / ((one**2).mean() - one.mean() ** 2)
    assert expected < 0
    assert abs(apart(check.far_dependence, expected)) < SIGMAS
    assert check.far_dependence.z < -SIGMAS


def test_pulses_are_tied_by_correlation():
    check = check_stimulus(SinglePulse(40), num=10_000)
    assert check.far_correlation.value == pytest.approx(
        SinglePulse(40).covariance()[20], abs=SIGMAS / math.sqrt(10_000)
    )
    assert check.far_dependence.value == 0  # sizes of signs say nothing


# -- A1 and A2 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [1.0, 3.0])
def test_conditional_mean_of_nlgp(gain):
    """E[erf(gZ_j)|Z_i = z] = erf(g r z/√(1 + 2g²(1 − r²))), less the linear form, averaged over
    each bin.
    """
    stimulus = NLGP(20, xi=2, gain=gain)
    check = check_stimulus(stimulus)
    r, row = stimulus.latent_correlation(), stimulus.covariance()
    rho = 2 * gain**2 / (1 + 2 * gain**2)
    norm = math.sqrt(2 / math.pi * math.asin(rho))
    off = []
    for c, correlation in zip(r, row, strict=True):
        inner = gain * c / math.sqrt(1 + 2 * gain**2 * (1 - c**2))

        def deviation(z, inner=inner, correlation=correlation):
            return (scipy.special.erf(inner * z) - correlation * scipy.special.erf(gain * z)) / norm

        off.append(binned(scipy.special.ndtri, deviation))
    by_site = np.sqrt(np.mean(np.square(off), axis=1))
    expected = math.sqrt(np.sum(by_site**2) / np.sum(row**2))
    assert abs(apart(check.conditional_mean, expected)) < SIGMAS
    assert abs(apart(check.conditional_mean, 1.1 * expected)) > SIGMAS
    seen = np.abs(by_site) > 0.01
    errors = check.mean_by_site_error[seen]
    assert seen.sum() >= 4
    assert np.abs((check.mean_by_site - by_site)[seen] / errors).max() < SIGMAS
    assert check.conditional_covariance.z > SIGMAS


@pytest.mark.parametrize("law", ["student", "shell"])
def test_conditional_covariance_of_elliptical_laws(law):
    """Cov[X|X_i = x] is the form times (ν − 2 + x²)/(ν − 1) for Student's t, times (D − x²)/(D −
    1) on a shell.
    """
    if law == "student":
        stimulus, scale = StudentT(20, xi=2, nu=8), 1 / 7
        quantile = lambda u: scipy.stats.t(8).ppf(u) * math.sqrt(6 / 8)  # noqa: E731
    else:
        stimulus, scale = EllipticalShell(20, xi=2), -1 / 19
        beta = scipy.stats.beta(0.5, 19 / 2)
        quantile = lambda u: np.sign(u - 0.5) * np.sqrt(20 * beta.ppf(np.abs(2 * u - 1)))  # noqa: E731
    check = check_stimulus(stimulus)
    factors = binned(quantile, lambda x: scale * (x**2 - 1))
    expected = math.sqrt(np.mean(factors**2))
    assert abs(apart(check.conditional_covariance, expected)) < SIGMAS
    assert abs(apart(check.conditional_covariance, 1.25 * expected)) > SIGMAS


def test_other_scales_and_lattices():
    """Nothing depends on the scale of the data: the forms divide by σ², which the paper's
    printed ones do not.
    """
    row = NLGP(20, xi=1.5, gain=1).covariance()
    plain, scaled = (
        check_stimulus(Gaussian(20, kernel=row, scale=s), num=20_000) for s in (1.0, 3.0)
    )
    for name in ("far_dependence", "shift", "sign", "conditional_mean", "conditional_covariance"):
        assert getattr(plain, name).z == pytest.approx(getattr(scaled, name).z, abs=0.01)
    torus = check_stimulus(NLGP((12, 10), xi=1, gain=3), num=10_000)
    assert torus.mean_by_site.shape == (12, 10)
    assert np.isfinite(torus.mean_by_site).sum() == assumptions.NEAREST
    assert torus.conditional_mean.z > SIGMAS
    assert torus.distances[-1] == pytest.approx(math.hypot(6, 5))


def test_a_site_that_never_varies_is_left_out():
    """As a dead pixel, or a silent neuron: without a warning of numpy, and finite."""
    rows = np.array(Gaussian(20, xi=1).sample(0, 4000))
    rows[:, 7] = 0
    check = check_stimulus(lf.stimuli.Samples(rows))
    for measured in (check.conditional_mean, check.conditional_covariance):
        assert np.isfinite([measured.value, measured.error, measured.z]).all()


def test_table():
    text = str(check_stimulus(Ising(20), num=4000))
    assert text.startswith("Ising(shape=(20,), coupling=0.7), 4000 samples")
    for name in ("S1", "S2", "S3", "A1", "A2", "declared", "holds", "exact", "±"):
        assert name in text


# -- the effective response ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size, effective, linear", [(40, "0.043", "0.059"), (100, "0.015", "0.023")]
)
def test_error_on_ising(size, effective, linear):
    """Random fields, J = 0.7: about 2/N, the Gaussian response's half as large again. Of bumps it
    is the same at any N.

    Other sizes are in `test_limits.py`; the sheet's random fields are others, so that its means
    must fit their spread.
    """
    fields = along([*(bump(size, width) for width in (0.5, 1, 2, 4)), *random_fields(size)])
    check = check_trajectory(fields, Ising(size, coupling=0.7), num=1000)
    by_covariance = check_trajectory(
        fields, Ising(size, coupling=0.7), num=1000, theory=BY_COVARIANCE
    )
    assert (check.uncertainty == 0).all()
    np.testing.assert_array_equal(check.error[:4].round(2), [0.04, 0.10, 0.13, 0.09])
    assert fits(effective, check.error[4:], of=4) and fits(linear, by_covariance.error[4:], of=4)
    assert check.error[4:].mean() < by_covariance.error[4:].mean()


# Random fields and a bump e^(−d/2), by draws with a noise of 0.004; nan where the table has none.
PRINTED = [(NLGP(40, xi=2, gain=3), 0.029, 0.13), (Kur(40, xi=2, k=3), 0.108, math.nan)]
MORE_PRINTED = [
    (NLGP(40, xi=2, gain=1), 0.026, 0.08),
    (NLGP(40, xi=2, gain=100), 0.031, 0.15),
    (Kur(40, xi=2, k=5), 0.007, math.nan),
    (Kur(40, xi=2, k=10), 0.017, math.nan),
]
PRINTED += [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_PRINTED]


@pytest.mark.parametrize("stimulus, scattered, localized", PRINTED, ids=lambda value: repr(value))
def test_error_on_copulas(stimulus, scattered, localized):
    fields = along([*random_fields(40), bump(40, 2)])
    check = check_trajectory(fields, stimulus, num=100_000)
    noise = SIGMAS * math.hypot(
        check.uncertainty[:-1].mean() / math.sqrt(10), check.error[:-1].std() / math.sqrt(10)
    )
    assert abs(check.error[:-1].mean() - scattered) < noise + 0.004
    if not math.isnan(localized):
        assert abs(check.error[-1] - localized) < SIGMAS * check.uncertainty[-1] + 0.008
    if stimulus.marginal().kurtosis == math.inf:  # the amplifier is no help with tails this heavy
        linear = check_trajectory(fields, stimulus, num=100_000, theory=BY_COVARIANCE)
        assert fits("0.065", linear.error[:-1], of=4)
        assert (linear.error < check.error)[:-1].all()
        assert np.isinf(check.excess_kurtosis).all()


def test_draws_agree_with_the_exact_response(monkeypatch):
    """The path by draws, where the answer is known; half or twice the response would be off by
    about one.
    """
    fields = along([*random_fields(40, 4), *(bump(40, width) for width in (0.5, 1, 2, 4))])
    exact = check_trajectory(fields, Ising(40), num=1000)
    monkeypatch.setattr(validity, "_known_response", lambda stimulus: None)
    drawn = check_trajectory(fields, Ising(40), num=200_000)
    assert (drawn.uncertainty > 0).all() and (drawn.uncertainty < 0.01).all()
    assert np.abs((drawn.error - exact.error) / drawn.uncertainty).max() < SIGMAS
    gaussian = check_trajectory(fields, Gaussian(40, xi=2, scale=2.0), num=100_000)
    assert (gaussian.error < SIGMAS * gaussian.uncertainty).all()
    groups = (
        np.random.default_rng(0).normal(scale=0.1, size=(GROUPS, 8, 40)) + exact.error[:, None] + 1
    )
    for wrong, expected in ((2.0, 1.0), (0.5, 0.5), (-1.0, 2.0)):
        error, uncertainty = validity._relative_error(
            groups, wrong * np.tile(exact.error[:, None] + 1, 40)
        )
        assert np.abs((error - expected) / uncertainty).max() < SIGMAS


def test_known_responses():
    """Elliptical laws respond linearly: the effective flow is right for the Gaussian alone."""
    fields = along(random_fields(20, 3))
    assert check_trajectory(fields, Gaussian(20, xi=2, scale=2.0), num=1000).error.max() < 1e-9
    assert check_trajectory(fields, EllipticalShell(20, xi=2), num=1000).error.min() > 1e-4
    assert (
        check_trajectory(
            fields, StudentT(20, xi=2, nu=5), num=1000, theory=LinearResponse()
        ).error.max()
        < 1e-9
    )
    pulses = check_trajectory(fields, SinglePulse(20), num=1000)
    assert (pulses.uncertainty == 0).all() and (pulses.error > 0.1).all()
    assert np.isfinite(check_trajectory(fields, BlockPulse(20), num=1000).error).all()


def test_marginal_from_samples(monkeypatch):
    exact = check_trajectory(along(random_fields(40, 3)), Ising(40), num=1000)
    monkeypatch.setattr(Ising, "marginal", lambda self: None)
    sampled = check_trajectory(along(random_fields(40, 3)), Ising(40), num=1000)
    np.testing.assert_allclose(sampled.error, exact.error, atol=1e-3)


# -- A3 --------------------------------------------------------------------------------------------


def binomial_distance(count):
    """sup|F − Φ| of a sum of independent signs, standardized."""
    at = np.arange(count + 1)
    normal = scipy.special.ndtr((2 * at - count) / math.sqrt(count))
    upper = scipy.stats.binom(count, 0.5).cdf(at)
    return max(np.abs(upper - normal).max(), np.abs(np.append(0, upper[:-1]) - normal).max())


@pytest.mark.parametrize("size", [5, pytest.param(12, marks=pytest.mark.slow), 41])
def test_distance_from_normal_of_independent_signs(size):
    """Equal weights: what is left of the sum given one site is binomial."""
    check = check_trajectory(
        along([np.ones(size), np.eye(size)[2] + np.eye(size)[3]]), Ising(size, coupling=0)
    )
    # F at a point has a standard error of at most ½/√num.
    assert (
        abs(check.normality[0] - binomial_distance(size - 1))
        < SIGMAS * 0.5 / math.sqrt(check.num) + 1 / CELLS
    )
    assert abs(check.normality[0] - binomial_distance(size + 1)) > 1e-4
    assert check.normality[1] == pytest.approx(binomial_distance(1), abs=0.01)
    assert check.largest[0] == pytest.approx(1 / math.sqrt(size))
    np.testing.assert_allclose(check.ipr, [1 / size, 0.5])
    # Of independent sites the excess kurtosis is the marginal's times the IPR; (1, 1) has S⁴/s⁴
    # either 0 or 4.
    assert abs(check.excess_kurtosis[1] + 1) < SIGMAS * 2 / math.sqrt(check.num)
    assert abs(check.excess_kurtosis[0] + 2 / size) < SIGMAS * math.sqrt(96 / check.num)


def test_normal_laws_are_at_the_noise():
    check = check_trajectory(
        along([*random_fields(40, 3), bump(40, 1)]), Gaussian(40, xi=2), num=100_000
    )
    # The average of 16 Kolmogorov distances: mean 0.87/√n, standard deviation 0.26/(4√n).
    spread = 0.26 * math.sqrt(BINS / 100_000) / math.sqrt(BINS)
    assert np.abs(check.normality - check.normality_noise).max() < SIGMAS * spread + 1 / CELLS
    assert np.abs(check.excess_kurtosis).max() < SIGMAS * math.sqrt(96 / 100_000)
    tied = check_trajectory(along(random_fields(40, 3)), StudentT(40, xi=2, nu=8), num=100_000)
    assert (
        tied.normality > 2 * check.normality_noise
    ).all()  # A2 fails: the spread depends on the site


def test_a_single_site_is_no_sum():
    check = check_trajectory(along(np.eye(12)[[4]]), Ising(12))
    assert check.normality[0] == 0.5 and check.largest[0] == 1


# -- trajectories ----------------------------------------------------------------------------------


TASK = lf.Discrimination(Ising(40, coupling=0.3), Ising(40, coupling=0.7))


def growing_bumps():
    """Two members that turn from a random field into the bump e^(−d/2), each at a place of its
    own.
    """
    share = np.linspace(0, 1, 21)[:, None]
    members = []
    for field, site in zip(random_fields(40, 2), (3, 17), strict=True):
        end = np.roll(bump(40, 2), site)
        members.append(
            (1 - share) * field / np.linalg.norm(field) + share * end / np.linalg.norm(end)
        )
    weights = np.stack(members)[:, :, None]
    ends, outcomes = (weights[:, 0], weights[:, -1]), (Outcome("ok", -1),) * 2
    return Trajectory(
        np.arange(21), np.linspace(0, 20, 21), *ends, {"weights": weights}, outcomes, {}, {}
    )


def test_when_the_effective_flow_stops_being_valid():
    flow = growing_bumps()
    check = check_trajectory(flow, TASK, member=1, num=5000)
    assert check.stimulus.coupling == 0.7  # the class with a label
    np.testing.assert_allclose(check.ipr, flow.ipr[1, :, 0], rtol=1e-12)
    first = np.flatnonzero(check.error > 0.1)[0]
    assert check.valid_until == check.times[first] > 0
    assert (check.error[:first] <= 0.1).all()
    assert check.ipr[first] < check.ipr[-1] and check.largest[0] < 0.5 < check.largest[-1]
    assert f"until flow time {check.valid_until:.4g}" in str(check)
    tolerant, strict = (dataclasses.replace(check, tolerance=t) for t in (1.0, 1e-6))
    assert tolerant.valid_until == math.inf and "at every record" in repr(tolerant)
    assert strict.valid_until == 0
    other = check_trajectory(flow, TASK, member=0, times=[0, 20.1], num=5000)
    np.testing.assert_array_equal(other.times, [0, 20])
    assert other.error[1] == pytest.approx(check.error[-1], abs=0.01)  # all bumps are one


def test_trained_and_swept():
    """A trajectory of `train`, with its own times a member and a coupling swept over the
    ensemble.
    """
    task = lf.Discrimination(Ising(12, coupling=0.3), Ising(12, coupling=[0.5, 0.9]))
    run = lf.train(
        task, lf.networks.SingleNeuron(), learning_rate=[0.1, 0.2], steps=20, batch=100, members=2
    )
    check = check_trajectory(run, task, member=1, num=1000)
    assert check.stimulus.coupling == 0.9
    np.testing.assert_allclose(check.times, run.times[1])
    with pytest.raises(lf.InputError, match="one number"):
        check_trajectory(run, task.stimuli[1])


def test_bad_records_are_nan():
    fields = [np.ones(12), np.zeros(12), np.full(12, np.nan), np.full(12, 1e200)]
    check = check_trajectory(along(fields), Ising(12), num=1000)
    for name in ("ipr", "largest", "normality", "excess_kurtosis", "error"):
        np.testing.assert_array_equal(np.isnan(getattr(check, name)), [False, True, True, False])
    assert check.error[3] == pytest.approx(check.error[0], rel=1e-9)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: check_stimulus(Ising(12, coupling=[0.1, 0.2])), "one number"),
        (lambda: check_stimulus(Ising(12), num=10), "`num`"),
        (lambda: check_stimulus(Ising(12), seed=-1), "`seed`"),
        (lambda: check_trajectory(along(np.ones((2, 12))), Ising(13)), "is on"),
        (
            lambda: check_trajectory(along(np.ones((2, 12))), SinglePulse(12, coding="zero-one")),
            "sign-symmetric",
        ),
        (lambda: check_trajectory(along(np.ones((2, 12))), Ising(12), member=1), "`member`"),
        (lambda: check_trajectory(along(np.ones((2, 12))), Ising(12), neuron=1), "`neuron`"),
        (lambda: check_trajectory(along(np.ones((2, 12))), Ising(12), times="late"), "`times`"),
        (lambda: check_trajectory(along(np.ones((2, 12))), Ising(12), tolerance=0), "`tolerance`"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(lf.InputError, match=message):
        call()


def test_same_seed_same_numbers():
    first, again, other = (
        check_stimulus(NLGP(12, xi=1), num=2000, seed=seed) for seed in (3, 3, 4)
    )
    assert first.sign == again.sign and first.sign != other.sign


def test_a_p_value_is_corrected_for_the_tries_and_at_most_one():
    measured = assumptions.Measured(value=0.02, error=0.01, z=2.0)
    assert measured.p == pytest.approx(2 * scipy.stats.norm.sf(2.0))
    assert dataclasses.replace(measured, tries=5).p == pytest.approx(5 * measured.p)
    assert dataclasses.replace(measured, tries=1000).p == 1
