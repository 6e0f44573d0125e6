"""The numbers of the formula sheet, §1, that the other files leave: each is recomputed from the
public objects.
"""

import itertools
import math

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats

import localfields as lf
from localfields.marginals import (
    Algebraic,
    Empirical,
    ErfNormal,
    Normal,
    StudentT,
    TwoPoint,
    Uniform,
)

SIGMAS = 5.0


def rounds_to(value, text):
    """Whether a value has the digits printed."""
    places = len(text.partition(".")[2])
    return round(value, places) == float(text.replace("−", "-"))


def drawn(stimulus, key, chunks=4, num=50_000):
    """Samples in float32, as a user draws them, in pieces."""
    with jax.enable_x64(False):
        return np.concatenate(
            [np.asarray(stimulus.sample(each, num)) for each in jax.random.split(key, chunks)]
        )


def near(samples, expected):
    """Whether the mean lies within five measured standard errors of what is expected."""
    samples = samples.astype(np.float64)
    return abs(samples.mean() - expected) <= SIGMAS * samples.std() / math.sqrt(len(samples))


# -- §1.3 NLGP -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gain, excess",
    [
        (0.01, "−0.000800"),
        (0.3, "−0.500087"),
        (1.0, "−1.440161"),
        (3.0, "−1.834011"),
        (100.0, "−1.995515"),
    ],
)
def test_kurtosis_of_the_nonlinear_gaussian_process(gain, excess):
    assert rounds_to(ErfNormal(gain).excess_kurtosis, excess)
    assert (
        lf.stimuli.NLGP((40,), gain=gain).marginal().excess_kurtosis
        == ErfNormal(gain).excess_kurtosis
    )


@pytest.mark.parametrize(
    "excess, gain", [(-0.5, "0.29996"), (-1.0, "0.55393"), (-1.5, "1.10977"), (-1.9, "4.79827")]
)
def test_gain_at_a_given_kurtosis(excess, gain):
    found = scipy.optimize.brentq(
        lambda g: ErfNormal(g).excess_kurtosis - excess, 0.01, 50, xtol=1e-12
    )
    assert rounds_to(found, gain)


def test_kurtosis_at_small_gain_and_in_the_limits():
    """κ_ex ≃ −8g² as g → 0; −1.2 at g = 1/√2, the uniform law; −2 as g → ∞."""
    for gain in (1e-2, 1e-3):
        # The next term is of relative order g², with a coefficient of a few.
        assert ErfNormal(gain).excess_kurtosis / (-8 * gain**2) == pytest.approx(
            1, abs=10 * gain**2
        )
    assert ErfNormal(math.sqrt(0.5)).excess_kurtosis == pytest.approx(-1.2, abs=1e-13)
    np.testing.assert_allclose(
        ErfNormal(math.sqrt(0.5)).cdf(np.linspace(-1.7, 1.7, 9)),
        Uniform().cdf(np.linspace(-1.7, 1.7, 9)),
        atol=1e-14,
    )
    assert ErfNormal(1e8).excess_kurtosis == pytest.approx(-2, abs=1e-7)


@pytest.mark.parametrize("gain", [0.3, 1.0, 3.0])
def test_deviation_of_an_error_function(gain):
    """𝒵² = (2/π) arcsin ρ is a variance; 𝒵 itself divides (the notes divide by √𝒵 and mean the
    same).
    """
    variance, _ = scipy.integrate.quad(
        lambda z: scipy.special.erf(gain * z) ** 2 * scipy.stats.norm.pdf(z),
        -12,
        12,
        epsabs=1e-13,
        limit=200,
    )
    rho = 2 * gain**2 / (1 + 2 * gain**2)
    assert 2 / math.pi * math.asin(rho) == pytest.approx(variance, abs=1e-12)
    top = float(ErfNormal(gain).from_normal(np.array(40.0)))
    assert top == pytest.approx(1 / math.sqrt(variance), abs=1e-11)


@pytest.mark.parametrize("gain", [0.5, 2.0])
def test_the_predecessors_convention(gain):
    """erf(gz/√2), ρ = g²/(1 + g²), is this law at gain g/√2."""
    law, rho = ErfNormal(gain / math.sqrt(2)), gain**2 / (1 + gain**2)
    r = np.array([-0.5, 0.2, 0.9])
    np.testing.assert_allclose(law.correlation(r), np.arcsin(rho * r) / math.asin(rho), rtol=1e-14)
    z = np.array([-1.0, 0.3, 2.0])
    raw = scipy.special.erf(gain * z / math.sqrt(2))
    np.testing.assert_allclose(
        law.from_normal(z), raw / math.sqrt(2 / math.pi * math.asin(rho)), rtol=1e-13
    )


def test_conditional_mean_shows_where_the_first_assumption_fails():
    """E[X_j | X_i = x]/(x Σ_ij) at g = 1, r = 0.7 runs from 0.75 to 1.45; it would be 1."""
    gain, r, law = 1.0, 0.7, ErfNormal(1.0)
    for z, printed in ((0.2, "0.75"), (3.0, "1.45")):
        mean, _ = scipy.integrate.quad(
            lambda y, z=z: (
                float(law.from_normal(np.array(r * z + math.sqrt(1 - r * r) * y)))
                * scipy.stats.norm.pdf(y)
            ),
            -10,
            10,
            epsabs=1e-12,
        )
        closed = scipy.special.erf(gain * r * z / math.sqrt(1 + 2 * gain**2 * (1 - r * r)))
        x = float(law.from_normal(np.array(z)))
        assert mean == pytest.approx(closed * x / scipy.special.erf(gain * z), abs=1e-10)
        assert rounds_to(mean / (x * float(law.correlation(r))), printed)


@pytest.mark.parametrize("coupling, least", [(0.3, "0.32"), (0.7, "0.039"), (1.2, "0.0019")])
def test_latent_of_a_sign_field_with_ising_correlations(coupling, least):
    wanted = lf.stimuli.Ising((40,), coupling).covariance()
    twin = lf.stimuli.Copula.with_correlation(wanted, marginal_law=TwoPoint())
    np.testing.assert_allclose(twin.covariance(), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        twin.latent_correlation(), np.sin(math.pi / 2 * wanted), rtol=0, atol=1e-12
    )
    assert rounds_to(lf.lattice.spectrum(twin.latent_correlation()).min(), least)
    # The gain need not be infinite.
    sharp = lf.stimuli.NLGP.with_correlation(wanted, gain=1e4)
    np.testing.assert_allclose(sharp.covariance(), wanted, rtol=0, atol=1e-12)
    assert lf.lattice.spectrum(sharp.latent_correlation()).min() == pytest.approx(
        float(least), rel=0.05
    )


def test_same_covariance_but_other_four_point_function(key):
    """At J = 0.7 on N = 40, sites 0 to 3: 0.3689 for signs of a Gaussian, 0.3653 for the Ising
    ring.
    """
    ising = lf.stimuli.Ising((40,), 0.7)
    twin = lf.stimuli.Copula.with_correlation(ising.covariance(), marginal_law=TwoPoint())
    found = {}
    for name, stimulus, printed in (("ising", ising, 0.3653), ("twin", twin, 0.3689)):
        x = drawn(stimulus, key, chunks=12)
        four = (x * np.roll(x, 1, 1) * np.roll(x, 2, 1) * np.roll(x, 3, 1)).mean(
            axis=1, dtype=np.float64
        )
        error = four.std() / math.sqrt(len(four))
        assert abs(four.mean() - printed) < SIGMAS * error + 5e-5
        found[name] = (four.mean(), error)
    difference = found["twin"][0] - found["ising"][0]
    assert difference > SIGMAS * math.hypot(found["twin"][1], found["ising"][1])


# -- §1.4 Kur --------------------------------------------------------------------------------------

TAILS = (2.5, 3.0, 4.0, 4.5, 5.0, 5.8, 5.9, 6.0, 8.0, 10.0, 30.0, 100.0)
EXCESS = "inf inf inf 4.054 1.2853 0.0713 −0.0074 −0.0780 −0.7297 −0.9299 −1.1737 −1.1976".split()
MEAN = "0.5670 0.6845 0.7740 0.7950 0.80935 0.82451 0.82595 0.82732 0.8445 0.85228 0.86447 0.86588".split()


@pytest.mark.parametrize("k, excess, mean", list(zip(TAILS, EXCESS, MEAN, strict=True)))
def test_table_of_the_algebraic_law(k, excess, mean):
    law = lf.stimuli.Kur((40,), k=k).marginal()
    assert (
        law.excess_kurtosis == math.inf
        if excess == "inf"
        else rounds_to(law.excess_kurtosis, excess)
    )
    assert rounds_to(law.mean_abs, mean)


def test_special_tail_indices():
    assert Algebraic(5.890115444927).excess_kurtosis == pytest.approx(0, abs=1e-11)
    assert Algebraic(3.0).deviation() == pytest.approx(1, abs=1e-14)  # Var = 1 before normalization
    assert Algebraic(5.0).kurtosis * Algebraic(5.0).deviation() ** 4 == pytest.approx(
        1, abs=1e-13
    )  # E x⁴ = 1
    assert rounds_to(Algebraic(5.0).kurtosis, "4.2853")  # the paper's sample says 3.86
    assert Algebraic(1e6).excess_kurtosis == pytest.approx(-1.2, abs=1e-9)
    # E|X| falls below the normal's √(2/π) only for k < 4.5875.
    crossing = scipy.optimize.brentq(lambda k: Algebraic(k).mean_abs - Normal().mean_abs, 3, 6)
    assert rounds_to(crossing, "4.5875")


@pytest.mark.parametrize("k", [3.0, 5.0, 10.0])
def test_absolute_moments_of_the_algebraic_law(k):
    """E|x|^p = B((p + 1)/k, 1 − p/k)/k before normalization."""
    law = Algebraic(k)
    for p in (1, 2, 4):
        wanted = math.inf if p >= k else scipy.special.beta((p + 1) / k, 1 - p / k) / k
        assert law.abs_moment(p) * law.deviation() ** p == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("k", [2.5, 3.0, 5.0])
def test_tail_of_the_algebraic_law(k):
    """P(|x| > t) ~ t^(−k)/k; at this t the next term, and the rounding of the cdf, are below
    1e-6 of it.
    """
    law, t = Algebraic(k), 10 ** (8 / k)
    assert 2 * float(law.cdf(np.array(-t / law.deviation()))) * k * t**k == pytest.approx(
        1, rel=1e-6
    )


SERIES = [
    # k, a_1², R_101, R_401
    (2.2, "0.38699", 6e-9, 9e-13),
    (2.5, "0.67833", 8e-10, 3e-12),
    (3.0, "0.87388", 8e-10, 1e-12),
    (4.0, "0.97543", 6e-12, 0),
    (5.0, "0.99279", 5e-11, 1e-15),
    (10.0, "0.97982", 8e-12, 1e-16),
    (30.0, "0.96009", 1e-11, 0),
]


@pytest.mark.parametrize("k, first, after_101, after_401", SERIES)
def test_table_of_hermite_coefficients(k, first, after_101, after_401):
    """R_M = 1 − Σ_{n ≤ M} a_n². Printed to one digit; the sum of 400 squares rounds at 1e-14."""
    squares = Algebraic(k).hermite(401) ** 2
    assert rounds_to(squares[1], first)
    for order, printed in ((101, after_101), (401, after_401)):
        left = 1 - math.fsum(squares[: order + 1])
        assert abs(left - printed) <= 0.5 * printed + 1e-14


# -- §1.5 the Ising ring ---------------------------------------------------------------------------


def states(n):
    return np.array(list(itertools.product([1, -1], repeat=n)))


def probabilities(n, coupling):
    """By enumeration: every state's weight exp(+J Σ x_i x_{i+1}), and their sum Z."""
    x = states(n)
    weights = np.exp(coupling * np.sum(x * np.roll(x, 1, axis=1), axis=1))
    return weights / weights.sum(), weights.sum()


@pytest.mark.parametrize("coupling", [0.7, -0.7, 0.3, 1.2])
@pytest.mark.parametrize("n", [12, 9])
def test_ising_against_enumeration(n, coupling):
    x, (p, total), t = states(n), probabilities(n, coupling), math.tanh(coupling)
    stimulus = lf.stimuli.Ising((n,), coupling)
    pairs = np.array([np.sum(p * x[:, 0] * x[:, d]) for d in range(n)])
    np.testing.assert_allclose(stimulus.covariance(), pairs, rtol=0, atol=5e-14)
    k = np.arange(n)
    spectrum = (1 - t**n) / (1 + t**n) * (1 - t**2) / (1 - 2 * t * np.cos(2 * np.pi * k / n) + t**2)
    np.testing.assert_allclose(
        lf.lattice.spectrum(stimulus.covariance()), spectrum, rtol=0, atol=1e-13
    )
    assert (2 * math.cosh(coupling)) ** n + (2 * math.sinh(coupling)) ** n == pytest.approx(
        total, rel=1e-14
    )
    assert np.sum(p[:, None] * x, axis=0) == pytest.approx(0, abs=1e-14)


def four_point(sites, n, coupling):
    t = math.tanh(coupling)
    a, b, c, d = sorted(sites)
    apart = (b - a) + (d - c)
    return (t**apart + t ** (n - apart)) / (1 + t**n)


@pytest.mark.parametrize("coupling", [0.7, -0.7, 0.3, 1.2])
def test_four_point_function(coupling, key):
    """The formula against enumeration, and exact samples against the formula."""
    n, x, (p, _) = 12, states(12), probabilities(12, coupling)
    chosen = [(0, 1, 2, 3), (0, 2, 5, 6), (1, 4, 6, 11), (0, 3, 6, 9)]
    samples = drawn(lf.stimuli.Ising((n,), coupling), key, num=250_000)
    for sites in chosen:
        wanted = four_point(sites, n, coupling)
        assert np.sum(p * np.prod(x[:, sites], axis=1)) == pytest.approx(wanted, abs=1e-14)
        assert near(np.prod(samples[:, sites], axis=1), wanted)
    assert not near(np.prod(samples[:, :4], axis=1), four_point(range(4), n, 1.05 * coupling))


@pytest.mark.parametrize("coupling", [0.7, -0.7, 0.3, -1.2])
@pytest.mark.parametrize("n", [12, 9])
def test_ising_samples_are_exact(n, coupling, key):
    """χ² over all 2^N states at a million samples; rare states are pooled by ten expected."""
    x = drawn(lf.stimuli.Ising((n,), coupling), key, num=250_000)
    counts = np.bincount((x < 0) @ (1 << np.arange(n - 1, -1, -1)), minlength=2**n)
    p, _ = probabilities(n, coupling)
    assert chi_squared(counts, p) > 5.7e-7
    wrong, _ = probabilities(n, 1.05 * coupling)
    assert chi_squared(counts, wrong) < 5.7e-7  # the same samples tell a coupling 5 % larger
    flipped, _ = probabilities(n, -coupling)
    assert chi_squared(counts, flipped) < 5.7e-7


def chi_squared(counts, p):
    expected = counts.sum() * p
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    return scipy.stats.chi2.sf(
        np.sum((counts - expected)[kept] ** 2 / expected[kept]), kept.sum() - 1
    )


def test_the_printed_sign_is_antiferromagnetic():
    """The paper's eq. (2) has exp(−J Σ x_i x_{i+1}): at J = 0.7, N = 12 neighbors would be
    correlated by −0.607.
    """
    x = states(12)
    weights = np.exp(-0.7 * np.sum(x * np.roll(x, 1, axis=1), axis=1))
    printed = np.sum(weights * x[:, 0] * x[:, 1]) / weights.sum()
    assert rounds_to(printed, "−0.607")
    assert lf.stimuli.Ising((12,), -0.7).covariance()[1] == pytest.approx(printed, abs=1e-13)
    assert lf.stimuli.Ising((12,), 0.7).covariance()[1] == pytest.approx(-printed, abs=1e-13)
    assert rounds_to(lf.stimuli.Ising((40,), 0.7).covariance()[1], "0.604")


# -- §1.6 elliptical laws --------------------------------------------------------------------------

AT_40 = {"shape": (40,), "xi": 3.0}
ELLIPTICAL = [
    # stimulus, m_1 = E|S|/(2s), marginal kurtosis
    (lf.stimuli.Gaussian(**AT_40), "0.398942", "3.000"),
    (lf.stimuli.StudentT(**AT_40, nu=3.0), f"{1 / math.pi:.6f}", "inf"),
    (lf.stimuli.StudentT(**AT_40, nu=5.0), "0.36755", "9.000"),
    (lf.stimuli.EllipticalShell(**AT_40), "0.401443", "2.857"),
    (lf.stimuli.EllipticalExtreme(**AT_40), "0.392300", "3.545"),
]


@pytest.mark.parametrize(
    "stimulus, m1, kurtosis", ELLIPTICAL, ids=lambda value: type(value).__name__
)
def test_table_of_elliptical_laws(stimulus, m1, kurtosis, key):
    """m_1 exactly from the marginal, and from samples in a random direction: every direction has
    the same law.
    """
    law = stimulus.marginal()
    assert rounds_to(law.mean_abs / 2, m1)
    assert law.kurtosis == math.inf if kurtosis == "inf" else rounds_to(law.kurtosis, kurtosis)
    w = np.asarray(jax.random.normal(key, (40,)))
    s = math.sqrt(w @ lf.lattice.product(stimulus.covariance(), w))
    x = drawn(stimulus, key).astype(np.float64)
    assert near(np.abs(x @ w) / (2 * s), law.mean_abs / 2)
    assert not near(np.abs(x @ w) / (2 * s), 1.05 * law.mean_abs / 2)


def test_closed_forms_of_elliptical_laws():
    for nu in (2.5, 3.0, 5.0, 9.0):
        law = StudentT(nu)
        assert law.mean_abs / 2 == pytest.approx(
            math.sqrt(nu - 2) / ((nu - 1) * scipy.special.beta(nu / 2, 0.5)), rel=1e-13
        )
        assert law.kurtosis == (pytest.approx(3 + 6 / (nu - 4), rel=1e-13) if nu > 4 else math.inf)
    direction = math.exp(math.lgamma(20) - math.lgamma(20.5)) / math.sqrt(math.pi)
    shell, extreme = (
        cls(**AT_40).marginal()
        for cls in (lf.stimuli.EllipticalShell, lf.stimuli.EllipticalExtreme)
    )
    assert shell.mean_abs / 2 == pytest.approx(math.sqrt(40) / 2 * direction, rel=1e-13)
    assert shell.kurtosis == pytest.approx(3 * 40 / 42, rel=1e-13)
    mean, second, fourth = radius_moments()
    assert extreme.mean_abs / 2 == pytest.approx(
        mean / (2 * math.sqrt(second / 40)) * direction, rel=1e-11
    )
    assert extreme.kurtosis == pytest.approx(3 * 40 / 42 * fourth / second**2, rel=1e-11)


def radius_moments():
    """E R^p, p = 1, 2, 4, of R = 2 + s with density sech²(s) on s ≥ 0, by quadrature."""
    return [
        scipy.integrate.quad(lambda s, p=p: (2 + s) ** p / math.cosh(s) ** 2, 0, 40, epsabs=1e-13)[
            0
        ]
        for p in (1, 2, 4)
    ]


def test_the_extreme_radius_is_sampled(key):
    """With ξ so small that sites are independent, |X|² = R² D/E R²: its law is known in closed
    form.
    """
    x = drawn(lf.stimuli.EllipticalExtreme((40,), xi=0.05), key).astype(np.float64)
    mean, second, fourth = radius_moments()
    radius = np.linalg.norm(x, axis=1) / math.sqrt(40 / second)
    assert radius.min() >= 2 - 1e-5
    for p, moment in ((1, mean), (2, second), (4, fourth)):
        assert near(radius**p, moment) and not near(radius**p, 1.05 * moment)
    assert scipy.stats.kstest(radius, lambda r: np.tanh(np.maximum(r - 2, 0))).pvalue > 5.7e-7


def test_a_radius_of_one_would_not_have_the_kernel_as_covariance(key):
    """Definition 1 with R ≡ 1 gives Σ/D. Here the covariance is Σ, and |X|² = D where sites are
    independent.
    """
    x = drawn(lf.stimuli.EllipticalShell((40,), xi=0.05), key).astype(np.float64)
    np.testing.assert_allclose(np.sum(x**2, axis=1), 40, rtol=1e-5)


# -- §1.7 the single pulse -------------------------------------------------------------------------


@pytest.mark.parametrize("shortest, longest", [(2, 4), (8, 10), (15, 35), (40, 40)])
def test_covariance_of_a_single_pulse(shortest, longest):
    """1 − (4/N) E min(ℓ, d, N − ℓ, N − d) in the coding by signs."""
    n, d, lengths = 40, np.arange(40)[:, None], np.arange(shortest, longest + 1)[None, :]
    wanted = 1 - 4 / n * np.minimum(np.minimum(lengths, d), np.minimum(n - lengths, n - d)).mean(
        axis=1
    )
    found = lf.stimuli.SinglePulse((n,), shortest, longest).covariance()
    assert np.abs(found - wanted).max() <= 3e-15


@pytest.mark.parametrize("shortest, longest", [(2, 4), (8, 10), (15, 35)])
def test_covariance_of_a_pulse_of_zeros_and_ones(shortest, longest):
    n, lengths = 40, np.arange(shortest, longest + 1)
    stimulus = lf.stimuli.SinglePulse((n,), shortest, longest, coding="zero-one")
    assert stimulus.mean() == pytest.approx(lengths.mean() / n, abs=1e-15)
    for d in range(1, n):
        both = (np.maximum(lengths - d, 0) + np.maximum(lengths - n + d, 0)).mean() / n
        assert stimulus.covariance()[d] == pytest.approx(
            both - (lengths.mean() / n) ** 2, abs=3e-15
        )
    assert isinstance(stimulus.marginal(), Empirical)
