"""The amplifier against closed forms, adaptive quadrature, automatic differentiation and Monte Carlo."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats

from localfields._check import InputError
from localfields._spec import registered
from localfields.marginals import (
    Algebraic,
    Empirical,
    ErfNormal,
    Laplace,
    Logistic,
    Normal,
    NormalMixture,
    SphereProjection,
    StudentT,
    Tabulated,
    Triangular,
    TwoPoint,
    Uniform,
)
from localfields.theory.amplifier import SLOPE, Amplifier, AmplifierTable

from .sheet import rounds_to

A = np.array([1e-6, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12])
GAINS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
TAILS = (2.2, 2.5, 3.0, 4.0, 5.0, 6.0, 10.0, 30.0, 100.0)
ATOMS = np.random.default_rng(0).standard_normal(10)
LAWS = [
    Normal(),
    TwoPoint(),
    Uniform(),
    Laplace(),
    Logistic(),
    Triangular(),
    *[ErfNormal(g) for g in GAINS],
    *[Algebraic(k) for k in (2.05, *TAILS)],
    *[StudentT(nu) for nu in (2.5, 3.0, 5.0, 50.0)],
    NormalMixture(0.5),
    NormalMixture(0.9),
    SphereProjection(2),
    SphereProjection(40),
    SphereProjection(5, [1.0, 3.0], [0.7, 0.3]),
    Tabulated.of(lambda u: -np.log1p(-u)),
    Empirical([0.0, 1.0], [0.9, 0.1]),
    Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1]),
    Empirical([1e4, -1e4, 1e-6, 2e-6], [1e-9, 1e-9, 0.5, 0.5]),
    Empirical(ATOMS),
    Empirical(np.random.default_rng(1).standard_t(3, 10_000)),
]
LAWS += [cls() for cls in registered("marginal").values() if cls not in {type(law) for law in LAWS}]
EIGHT = [  # the marginals of the derivative checks
    Normal(),
    Uniform(),
    Laplace(),
    ErfNormal(1.0),
    ErfNormal(3.0),
    Algebraic(5.0),
    Algebraic(10.0),
    NormalMixture(0.8),
]


def named(law):
    return repr(law)[:60]


def ratio(a):
    return a / np.sqrt((1 - a) * (1 + a))


def direct(law, beta):
    """Σ p x erf(xβ/√2) over the law's own nodes, one β at a time."""
    x, p = law.nodes()
    x = x / law.sd
    return np.array([np.sum(p * x * scipy.special.erf(x * b / math.sqrt(2))) for b in np.ravel(beta)])


# -- §2.1: general variance -------------------------------------------------------------------------------------


def test_general_variance_and_the_printed_form():
    """Gaussian data at σ = 2: f = Σw/(s√(2π)) exactly; as printed the argument leaves [−1, 1] and f is wrong."""
    size, sd = 12, 2.0
    gap = np.minimum(np.arange(size), size - np.arange(size))
    covariance = sd**2 * scipy.linalg.circulant(0.5**gap)
    rng = np.random.default_rng(0)
    w = rng.standard_normal(size)
    s = math.sqrt(w @ covariance @ w)
    exact = covariance @ w / (s * math.sqrt(2 * math.pi))
    amplifier = Amplifier(Normal(scale=sd))
    assert amplifier.sd == sd
    np.testing.assert_allclose(sd / 2 * amplifier(covariance @ w / (sd * s)), exact, atol=1e-15)
    draws = rng.multivariate_normal(np.zeros(size), covariance, 400_000)
    gated = draws * (draws @ w >= 0)[:, None]
    assert np.all(np.abs(gated.mean(0) - exact) < 5 * gated.std(0) / math.sqrt(len(draws)))

    printed = covariance @ w / s
    assert np.abs(printed).max() > 1
    with pytest.raises(InputError, match="divide by the standard deviation"):
        amplifier(printed)
    inside = np.abs(printed) < 1
    x, p = Normal(scale=sd).nodes()
    wrong = 0.5 * np.sum(p * x * scipy.special.erf(x * ratio(printed[inside, None]) / math.sqrt(2)), axis=1)
    assert inside.sum() > 3
    # For a Gaussian the printed form is 4a/√(2π(1 + 3a²)) at σ = 2, a = √(2π) f: it takes an f of 0.187 for 0.580.
    a = math.sqrt(2 * math.pi) * exact[inside]
    np.testing.assert_allclose(wrong, 4 * a / np.sqrt(2 * math.pi * (1 + 3 * a**2)), rtol=0, atol=1e-13)
    a = math.sqrt(2 * math.pi) * np.linspace(0.1865, 0.1875, 11)
    assert any(rounds_to(value, "0.580") for value in 4 * a / np.sqrt(2 * math.pi * (1 + 3 * a**2)))


@pytest.mark.parametrize("law", EIGHT, ids=named)
def test_a_law_is_standardized(law):
    wide = Amplifier(law.replace(scale=2.0))
    assert wide.sd == 2
    np.testing.assert_allclose(wide(A), Amplifier(law)(A), rtol=0, atol=1e-14)
    assert wide.limit == pytest.approx(Amplifier(law).limit, rel=1e-13)


def test_a_law_that_is_neither_centered_nor_symmetric():
    """φ needs |X − mean| alone, as x erf(xβ/√2) is even: compared with the signed sum."""
    law = Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1])
    p = np.array([0.2, 0.4, 0.3, 0.1])
    x = law.samples - p @ law.samples
    x = x / math.sqrt(p @ x**2)
    signed = [np.sum(p * x * scipy.special.erf(x * ratio(a) / math.sqrt(2))) for a in A]
    np.testing.assert_allclose(Amplifier(law)(A), signed, rtol=0, atol=1e-15)
    exponential = Amplifier(Tabulated.of(lambda u: -np.log1p(-u)))
    for a in (0.1, 0.5, 0.9):
        beta = ratio(a)
        value, _ = scipy.integrate.quad(
            lambda x, b=beta: (x - 1) * math.erf((x - 1) * b / math.sqrt(2)) * math.exp(-x),
            0,
            60,
            points=[1],
            limit=200,
        )
        assert float(exponential(a)) == pytest.approx(value, abs=2e-6)  # the table's quantile is linear between scores
    assert exponential.limit == pytest.approx(2 / math.e, abs=1e-6)


# -- §2.2: closed forms and limits ------------------------------------------------------------------------------


def test_closed_forms():
    a = np.concatenate([A, -A, np.linspace(-1, 1, 41)])
    inner = a[np.abs(a) < 1]
    np.testing.assert_allclose(Amplifier(Normal())(a), SLOPE * a, rtol=0, atol=1e-15)
    two = Amplifier(TwoPoint())
    np.testing.assert_allclose(two(inner), scipy.special.erf(ratio(inner) / math.sqrt(2)), rtol=0, atol=1e-15)
    assert two(1.0) == 1 and two(-1.0) == -1
    big = inner[np.abs(inner) > 0.05]
    c, q = math.sqrt(3), ratio(big) / math.sqrt(2)
    bracket = 0.5 * scipy.special.erf(q * c) - q * c / math.sqrt(math.pi) * np.exp(-((q * c) ** 2))
    closed = (c**2 / 2 * scipy.special.erf(q * c) - bracket / (2 * q**2)) / c
    np.testing.assert_allclose(Amplifier(Uniform())(big), closed, rtol=0, atol=2e-13)
    np.testing.assert_allclose(Amplifier(Uniform()).of_ratio(ratio(A)), direct(Uniform(), ratio(A)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_odd_and_right_at_the_ends(law):
    amplifier = Amplifier(law)
    np.testing.assert_array_equal(amplifier(-A), -amplifier(A))
    ends = amplifier([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(ends, [-amplifier.limit, 0, amplifier.limit], rtol=1e-11)
    np.testing.assert_array_equal(amplifier.of_ratio([-np.inf, 0, np.inf]), ends)
    assert amplifier.limit == law.mean_abs / law.sd
    assert amplifier(np.zeros((2, 0, 3))).shape == (2, 0, 3) and amplifier(0.5).shape == ()


def test_limits():
    for law, limit in ((TwoPoint(), 1), (Uniform(), math.sqrt(3) / 2), (Normal(), math.sqrt(2 / math.pi))):
        assert float(Amplifier(law)(1.0)) == pytest.approx(limit, rel=1e-14)
    for k in TAILS:
        sd = math.sqrt(scipy.special.beta(3 / k, 1 - 2 / k) / k)
        closed = scipy.special.beta(2 / k, 1 - 1 / k) / (k * sd)
        assert float(Amplifier(Algebraic(k))(1.0)) == pytest.approx(closed, rel=1e-12)


def test_a_projection_of_a_sphere_is_not_a_line():
    """The exact response of an elliptical law is linear; the amplifier of its coordinate is an approximation of it."""
    assert np.abs(Amplifier(SphereProjection(5)).excess(np.linspace(0, 1, 11))).max() > 0.01
    assert np.abs(Amplifier(SphereProjection(4000)).excess(np.linspace(0, 1, 11))).max() < 1e-3


# -- §2.3: derivatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", EIGHT, ids=named)
@pytest.mark.parametrize("sd", [1.0, 2.0])
def test_derivatives_against_automatic_ones(law, sd):
    amplifier = Amplifier(law.replace(scale=sd))
    x, p = (jnp.asarray(part) for part in law.nodes())

    def phi(a):
        return jnp.sum(p * x * jax.scipy.special.erf(x * (a / jnp.sqrt(2 * (1 - a) * (1 + a)))))

    points, function = jnp.asarray([-0.7, 0.05, 0.2, 0.5, 0.8, 0.95]), phi
    for order in (1, 2, 3):
        function = jax.grad(function)
        wanted = np.asarray(jax.vmap(function)(points))
        np.testing.assert_allclose(amplifier.derivative(points, order), wanted, rtol=1e-8, atol=1e-8)
    third = -SLOPE * law.excess_kurtosis
    assert amplifier.derivative(0.0) == pytest.approx(SLOPE, rel=1e-14)
    assert amplifier.derivative(0.0, 2) == 0
    assert amplifier.derivative(0.0, 3) == pytest.approx(third, abs=1e-12)
    assert float(function(0.0)) == pytest.approx(third, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("law", EIGHT, ids=named)
def test_derivatives_against_differences(law):
    amplifier, a, step = Amplifier(law), np.linspace(-0.9, 0.9, 20), 1e-3
    values = [amplifier.derivative, lambda b: amplifier.derivative(b, 2)]
    for order, function in enumerate([amplifier, *values], start=1):
        # Fourth-order central differences of the derivative one below.
        near, far = (function(a + n * step) - function(a - n * step) for n in (1, 2))
        wanted = (8 * near - far) / (12 * step)
        np.testing.assert_allclose(amplifier.derivative(a, order), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("law", EIGHT, ids=named)
def test_the_third_derivative_as_printed(law):
    """At σ = 2 the literal E[X erf(Xβ/√2)] has φ'''(0) = −√(2/π)(κσ⁴ − 3σ²); the printed "κ4σ4" is not κ⁴σ⁴."""
    sd = 2.0
    x, p = (jnp.asarray(part) for part in law.replace(scale=sd).nodes())

    def phi(a):
        return jnp.sum(p * x * jax.scipy.special.erf(x * (a / jnp.sqrt(2 * (1 - a) * (1 + a)))))

    first, third = float(jax.grad(phi)(0.0)), float(jax.grad(jax.grad(jax.grad(phi)))(0.0))
    assert first == pytest.approx(SLOPE * sd**2, rel=1e-9)
    assert third == pytest.approx(-SLOPE * (law.kurtosis * sd**4 - 3 * sd**2), rel=1e-8)
    assert abs(third + SLOPE * (law.kurtosis**4 * sd**4 - 3 * sd**2)) > 1


def test_the_paper_s_third_derivative_in_full():
    """φ'''(a) = √(2/π)(1 − a²)^(−11/2) E[X²(…) e^(−X²β²/2)] with the polynomial gathered over one power."""
    for law in EIGHT:
        x, p = law.nodes()
        for a in (0.2, 0.5, 0.8):
            u = 1 - a**2
            weight = p * x**2 * np.exp(-0.5 * (x * ratio(a)) ** 2)
            inner = (1 + 4 * a**2) * (3 * u - x**2) * u + a**2 * (x**4 - 5 * x**2 * u)
            printed = SLOPE * u**-5.5 * np.sum(weight * inner)
            assert float(Amplifier(law).derivative(a, 3)) == pytest.approx(printed, rel=1e-10, abs=1e-10)


def test_the_sign_of_the_third_derivative():
    for law in LAWS:
        value = float(Amplifier(law).derivative(0.0, 3))
        if abs(law.excess_kurtosis) > 1e-12:
            assert np.sign(value) == -np.sign(law.excess_kurtosis)
    assert Amplifier(Algebraic(4.0)).derivative(0.0, 3) == -math.inf
    assert math.isnan(Amplifier(Algebraic(2.5)).derivative(0.0, 2))
    assert Amplifier(Algebraic(2.05)).derivative(0.0) == SLOPE


@pytest.mark.parametrize(("k", "digits"), [(2.2, 0.591), (2.5, 0.491), (3.0, 0.500), (3.5, 0.803)])
def test_below_a_tail_index_of_four_the_start_is_a_power(k, digits):
    """√(2/π)a − φ ≃ c_k a^(k−1), c_k = sd^(−k) √(2/π) 2^(1−k/2) Γ(2 − k/2)/((k − 1)(k − 2))."""
    sd = math.sqrt(scipy.special.beta(3 / k, 1 - 2 / k) / k)
    closed = sd**-k * SLOPE * 2 ** (1 - k / 2) * math.gamma(2 - k / 2) / ((k - 1) * (k - 2))
    assert closed == pytest.approx(digits, abs=5e-4)
    a = np.array([1e-3, 1e-4, 1e-5])
    measured = -Amplifier(Algebraic(k)).excess(a) / a ** (k - 1)
    # The next term is smaller by a^(4 − k): it is fitted from two points and taken off.
    extrapolated = measured[1] + (measured[1] - measured[0]) / (10 ** (4 - k) - 1)
    assert extrapolated == pytest.approx(closed, rel=2e-4)
    steepness = np.diff(np.log(-Amplifier(Algebraic(k)).excess(a))) / np.diff(np.log(a))
    assert steepness[-1] == pytest.approx(k - 1, abs=0.01)


def test_at_a_tail_index_of_four_the_start_has_a_logarithm():
    """(√(2/π)a − φ)/a³ = c ln(1/a) + const with c = √(2/π)/(6 sd⁴) = 0.3705; at a = 10⁻³ the ratio is still 0.34."""
    amplifier, a = Amplifier(Algebraic(4.0)), np.array([1e-2, 1e-3, 1e-4])
    scaled = -amplifier.excess(a) / a**3
    sd = math.sqrt(scipy.special.beta(0.75, 0.5) / 4)
    np.testing.assert_allclose(np.diff(scaled) / math.log(10), SLOPE / (6 * sd**4), rtol=5e-4)
    assert SLOPE / (6 * sd**4) == pytest.approx(0.3705, abs=5e-5)
    assert scaled[1] / math.log(1e3) == pytest.approx(0.34, abs=0.005)


# -- super- and sub-linearity -----------------------------------------------------------------------------------


def test_kur_5_is_below_the_line_first_and_above_it_later():
    amplifier, a = Amplifier(Algebraic(5.0)), np.linspace(0, 1, 401)
    excess = amplifier.excess(a)
    assert excess.min() == pytest.approx(-0.0031, abs=5e-5) and excess.max() == pytest.approx(0.0141, abs=5e-5)
    assert amplifier.limit == pytest.approx(0.8093, abs=5e-5) and amplifier.limit > SLOPE
    [crossing] = amplifier.crossings()
    assert amplifier.excess(crossing - 1e-8) < 0 < amplifier.excess(crossing + 1e-8)
    assert np.all(excess[(a > 0) & (a < crossing)] < 0) and np.all(excess[a > crossing] > 0)


@pytest.mark.parametrize("k", [5.8902, 5.95, 6.2, 6.5, 7.0, 6.0, 8.0, 10.0])
def test_above_zero_kurtosis_kur_is_above_the_line(k):
    amplifier = Amplifier(Algebraic(k))
    assert np.all(amplifier.excess(np.linspace(0, 1, 401)[1:]) > 0)
    assert amplifier.crossings().size == 0


def test_just_below_zero_kurtosis_a_crossing_remains():
    """At k = 5.89 (zero kurtosis is at 5.890115) φ dips below the line, at an a too small for a coarse grid."""
    [crossing] = Amplifier(Algebraic(5.89)).crossings()
    assert 0.001 < crossing < 0.004


def test_where_the_limit_of_kur_meets_the_line_s():
    k = scipy.optimize.brentq(lambda k: Amplifier(Algebraic(k)).limit - SLOPE, 3.0, 6.0)
    assert k == pytest.approx(4.5875, abs=5e-5)


@pytest.mark.parametrize("law", [law for law in LAWS if not isinstance(law, Normal)], ids=named)
def test_index_against_quadrature(law):
    amplifier = Amplifier(law)
    # a = sin θ makes β = tan θ; the ends need nothing special in tanh-sinh's variable.
    t = np.arange(-4.5, 4.5, 0.02)
    u = np.pi / 2 * np.sinh(t)
    theta, weight = np.pi / 2 * scipy.special.expit(2 * u), np.pi / 2 * np.pi * np.cosh(t) * 0.02
    weight = weight * scipy.special.expit(2 * u) * scipy.special.expit(-2 * u)
    rest = np.pi / 2 * scipy.special.expit(-2 * u)  # π/2 − θ with its digits
    beta = np.where(theta < 0.7, np.tan(theta), 1 / np.tan(rest))
    integral = np.sum(weight * np.sin(rest) * amplifier.of_ratio(beta))
    assert amplifier.index == pytest.approx(2 * integral / SLOPE - 1, abs=1e-9)


def test_index_of_known_laws():
    assert abs(Amplifier(Normal()).index) < 1e-13
    two, _ = scipy.integrate.quad(lambda a: math.erf(ratio(a) / math.sqrt(2)) / SLOPE - a, 0, 1, epsabs=1e-12)
    assert Amplifier(TwoPoint()).index == pytest.approx(2 * two, abs=1e-9)
    order = [
        Amplifier(law).index for law in (StudentT(3.0), Laplace(), Normal(), Uniform(), ErfNormal(3.0), TwoPoint())
    ]
    assert order == sorted(order)


def test_elasticity():
    a = np.linspace(-0.9, 0.9, 10)
    np.testing.assert_allclose(Amplifier(Normal()).elasticity(a), 1, rtol=1e-12)
    for law in LAWS:
        amplifier, step = Amplifier(law), 1e-5
        assert amplifier.elasticity(0.0) == 1
        up, down = (np.log(np.abs(amplifier(a * math.exp(sign * step)))) for sign in (1, -1))
        np.testing.assert_allclose(amplifier.elasticity(a), (up - down) / (2 * step), rtol=1e-6, atol=1e-9)
    assert Amplifier(TwoPoint()).elasticity(0.5) > 1 > Amplifier(Laplace()).elasticity(0.5)


# -- the expansion ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [Uniform(), TwoPoint(), Laplace(), Triangular(), ErfNormal(1.0), SphereProjection(7)])
def test_taylor(law):
    amplifier = Amplifier(law.replace(scale=2.0))
    third = amplifier.taylor()
    np.testing.assert_allclose(third.coef, [0, SLOPE, 0, -SLOPE * law.excess_kurtosis / 6], rtol=0, atol=1e-12)
    a = np.array([0.02, 0.04])
    for order in (1, 3, 5, 7):
        rest = np.abs(amplifier(a) - amplifier.taylor(order)(a))
        if rest.min() > 1e-13:  # the error falls with the next odd power
            assert math.log2(rest[1] / rest[0]) == pytest.approx(order + 2, abs=0.15)
    a = np.array([-0.1, 0.1])
    np.testing.assert_allclose(amplifier.taylor(21)(a), amplifier(a), rtol=0, atol=1e-9)


def test_taylor_of_a_normal_is_a_line():
    np.testing.assert_allclose(Amplifier(Normal()).taylor(15).coef, [0, SLOPE] + [0] * 14, rtol=0, atol=1e-9)


@pytest.mark.parametrize("law", [Algebraic(3.0), Algebraic(4.0), StudentT(4.0)], ids=named)
def test_taylor_needs_a_moment(law):
    assert Amplifier(law).taylor(1).coef == pytest.approx([0, SLOPE])
    with pytest.raises(InputError, match="tail index above 4, got .* Use the amplifier itself"):
        Amplifier(law).taylor()
    with pytest.raises(InputError, match="tail index above 6"):
        Amplifier(Algebraic(6.0)).taylor(5)


# -- §2.4: accuracy ---------------------------------------------------------------------------------------------


def adaptive(law, a):
    """φ by adaptive quadrature of the law's density (or latent normal's) in ln x, for all a at once."""
    match law:
        case Normal() | ErfNormal():
            gain = getattr(law, "gain", None)

            def split(z):
                return (z if gain is None else scipy.special.erf(gain * z)), math.sqrt(2 / math.pi) * np.exp(
                    -(z**2) / 2
                )

            ends = (-40.0, 3.7)
        case Uniform():

            def split(x):
                return x, 1 / math.sqrt(3)

            ends = (-40.0, math.log(math.sqrt(3)))
        case Algebraic():

            def split(x):
                return x, np.exp(-(1 + 1 / law.k) * np.logaddexp(0, law.k * np.log(x)))

            ends = (-40.0, 60.0 if law.k < 4 else 30.0)
    if isinstance(law, Algebraic):
        sd = math.sqrt(scipy.special.beta(3 / law.k, 1 - 2 / law.k) / law.k)
    elif isinstance(law, ErfNormal):
        sd = math.sqrt(2 / math.pi * math.asin(2 * law.gain**2 / (1 + 2 * law.gain**2)))
    else:
        sd = 1.0
    beta = ratio(a) / sd

    def integrand(s):
        x, density = split(math.exp(s))
        return x / sd * density * math.exp(s) * scipy.special.erf(x * beta / math.sqrt(2))

    breaks = np.arange(ends[0], ends[1], 4.0)[1:]
    value, _ = scipy.integrate.quad_vec(integrand, *ends, epsabs=1e-14, epsrel=1e-14, norm="max", points=breaks)
    return value


CHECKED = {named(law): law for law in (Normal(), Uniform(), *map(ErfNormal, GAINS), *map(Algebraic, TAILS))}


@functools.cache
def reference(name):
    return adaptive(CHECKED[name], A)


@pytest.mark.parametrize("law", CHECKED.values(), ids=CHECKED)
def test_accuracy_against_adaptive_quadrature(law):
    np.testing.assert_allclose(Amplifier(law)(A), reference(named(law)), rtol=0, atol=1e-12)


STEPS = (0.10, 0.07, 0.05, 0.035)
NODES = {"normal": (68, 97, 135, 192), "uniform": (73, 105, 145, 207), "algebraic": (85, 121, 169, 241)}
ERRORS = [  # the largest over A; a sign ≤ where one row is for several laws
    ([Normal()], "normal", "5e-11", "8e-13", "2e-14", "3e-15"),
    ([Uniform()], "uniform", "7e-10", "2e-11", "6e-13", "2e-15"),
    (list(map(ErfNormal, GAINS[:-1])), "normal", "≤2e-9", "≤5e-12", "≤2e-14", "4e-15"),
    ([ErfNormal(100.0)], "normal", "1e-8", "2e-11", "1e-12", "6e-15"),
    (list(map(Algebraic, TAILS[1:])), "algebraic", "≤7e-9", "≤7e-11", "≤7e-13", "1e-15"),
    ([Algebraic(2.2)], "algebraic", "1e-8", "2e-10", "8e-13", "1e-13"),  # printed 3e-10; it is 2.48e-10
]


def rule(kind, h):
    """The sheet's nodes: of a normal, z and weights; of v uniform on (0, 1), v, 1 − v and weights."""
    if kind == "normal":
        t = np.arange(-3.8, 2.9 + h / 2, h)
        z = np.exp(t - np.exp(-t))
        return z, 2 * scipy.stats.norm.pdf(z) * h * z * (1 + np.exp(-t))
    reach = math.ceil({"uniform": 3.6, "algebraic": 4.2}[kind] / h - 1e-9)
    t = h * np.arange(-reach, reach + 1)
    v, rest = (scipy.special.expit(sign * np.pi * np.sinh(t)) for sign in (1, -1))
    return v, rest, h * np.pi * np.cosh(t) * v * rest


@pytest.mark.parametrize("laws, kind, errors", [(row[0], row[1], row[2:]) for row in ERRORS], ids=lambda v: str(v)[:20])
def test_table_of_quadrature_errors(laws, kind, errors):
    """How fast the rule behind every marginal converges; what is used here has a step of 0.04 and reaches further."""
    for h, count, printed in zip(STEPS, NODES[kind], errors, strict=True):
        *values, p = rule(kind, h)
        assert len(p) == count
        found = []
        for law in laws:
            x = values[0] if kind == "normal" else law.size(*values)
            x = np.asarray(law.from_normal(x)) if isinstance(law, ErfNormal) else x
            sums = np.sum(p * x * scipy.special.erf(x * ratio(A)[:, None] / math.sqrt(2)), axis=1)
            found.append(np.abs(sums - reference(named(law))).max())
        if printed.endswith("e-15"):  # nothing but rounding is left, whose size is the machine's
            assert max(found) < 2e-14
        else:
            assert rounds_to(max(found), printed.removeprefix("≤"))


# -- the table --------------------------------------------------------------------------------------------------

BETA = np.concatenate([np.exp(np.linspace(-40, 40, 1601)), 1e3 ** np.random.default_rng(2).uniform(-1, 1, 400)])


@pytest.fixture(scope="module")
def tables():
    return [Amplifier(law).table() for law in LAWS]


@pytest.mark.parametrize("index", range(len(LAWS)), ids=[named(law) for law in LAWS])
def test_table_against_nodes(tables, index):
    law, table = LAWS[index], tables[index]
    exact = SLOPE * BETA / np.hypot(1, BETA) if isinstance(law, Normal) else direct(law, BETA)
    compiled = eqx.filter_jit(table)
    values = np.asarray(compiled(jnp.asarray(BETA)))
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12)
    np.testing.assert_allclose(Amplifier(law).of_ratio(BETA), exact, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(np.asarray(compiled(jnp.asarray(-BETA))), -values)
    ends = np.asarray(table(jnp.asarray([[-jnp.inf], [0.0], [jnp.inf]])))
    limit = Amplifier(law).limit
    np.testing.assert_allclose(ends, [[-limit], [0], [limit]], rtol=0, atol=1e-12)
    small = np.asarray(table(jnp.asarray([1e-20])))
    assert small == pytest.approx(SLOPE * 1e-20, rel=1e-3 if law.tail_index > 2.1 else 1)


def test_tables_stack(tables):
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tables)
    assert isinstance(stacked, AmplifierTable)
    beta = jnp.asarray(np.random.default_rng(0).standard_normal((len(tables), 7)))
    together = jax.jit(jax.vmap(lambda table, b: table(b)))(stacked, beta)
    apart = jnp.stack([table(b) for table, b in zip(tables, beta, strict=True)])
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-15)


def test_tables_in_single_precision(tables):
    low = jnp.asarray(BETA, jnp.float32)
    for law, table in zip(LAWS, tables, strict=True):
        single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), table)
        values = eqx.filter_jit(single)(low)
        assert values.dtype == jnp.float32
        exact = Amplifier(law).of_ratio(np.asarray(low, np.float64))
        np.testing.assert_allclose(values, exact, rtol=0, atol=5e-7)
        assert np.isfinite(single(jnp.asarray([jnp.inf, -jnp.inf, 0.0], jnp.float32))).all()


@pytest.mark.parametrize("law", [*EIGHT, TwoPoint(), Algebraic(2.5), Empirical(ATOMS)], ids=named)
def test_the_table_can_be_differentiated(law):
    amplifier, table = Amplifier(law), Amplifier(law).table()
    slope = jax.jit(jax.vmap(jax.grad(lambda b: table(b))))
    a = np.concatenate([-A[1:5], A[1:5], np.linspace(-0.95, 0.95, 200)])
    beta = ratio(a)
    wanted = amplifier.derivative(a) * (1 + beta**2) ** -1.5  # dφ/dβ
    np.testing.assert_allclose(slope(jnp.asarray(beta)), wanted, rtol=0, atol=1e-9)
    edges = 2.0 ** np.arange(-3, 4)[:, None] * (1 + np.arange(16) / 16)  # of the panels
    edges = edges.ravel()
    wanted = amplifier.derivative(edges / np.hypot(1, edges)) * (1 + edges**2) ** -1.5
    np.testing.assert_allclose(slope(jnp.asarray(edges)), wanted, rtol=0, atol=1e-9)
    ends = slope(jnp.asarray([0.0, 1e14, jnp.inf, -jnp.inf]))
    heavy = law.tail_index < 4
    np.testing.assert_allclose(ends, [SLOPE, 0, 0, 0], rtol=0, atol=1e-5 if heavy else 1e-12)


def test_a_sweep_of_tables_compiles_once(tables):
    count = 0

    @eqx.filter_jit
    def call(table, beta):
        nonlocal count
        count += 1
        return table(beta)

    for table in tables:
        call(table, jnp.ones(3))
    assert count == 1


# -- samples ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num", [3000, 100_000])
def test_many_samples_are_condensed_without_a_trace(num):
    samples = np.random.default_rng(0).laplace(2.0, 3.0, num)
    samples[:3] = 2.0, 1e4, samples.mean()
    amplifier = Amplifier.of_samples(samples.reshape(2, -1))
    assert amplifier.nodes[0].size < 1000
    beta = np.array([1e-9, 1e-5, 0.01, 0.3, 1.0, 4.0, 100.0, 1e5, 1e9])
    exact = direct(amplifier.marginal, beta)
    np.testing.assert_allclose(amplifier.of_ratio(beta), exact, rtol=0, atol=1e-13)
    np.testing.assert_allclose(amplifier.table()(jnp.asarray(beta)), exact, rtol=0, atol=1e-13)
    x, p = amplifier.marginal.nodes()
    x = x / amplifier.sd
    for a in (0.1, 0.5, 0.9):
        slope = SLOPE * (1 - a**2) ** -1.5 * np.sum(p * x**2 * np.exp(-0.5 * (x * ratio(a)) ** 2))
        assert float(amplifier.derivative(a)) == pytest.approx(slope, rel=1e-10)


@pytest.mark.parametrize("name", ["normal", "laplace", "exponential"])
def test_the_standard_error_is_calibrated(name):
    """The scatter of φ over 1500 samples of 1000 against `error`; without its terms for σ and the mean it fails."""
    # At smaller a the error is that of the sample kurtosis, whose law is far from normal at this size.
    rng, a, repeats, num = np.random.default_rng(3), np.array([0.3, 0.6, 0.95, 1.0]), 1500, 1000
    draws = getattr(rng, name)(size=(repeats, num))
    x = scipy.stats.zscore(draws, axis=1)
    ratios = np.append(ratio(a[:-1]), 1e6)
    values = np.stack([np.mean(x * scipy.special.erf(x * b / math.sqrt(2)), axis=1) for b in ratios], axis=1)
    np.testing.assert_allclose(values[0], Amplifier.of_samples(draws[0])(a), rtol=1e-6)
    scatter = values.std(axis=0)
    told = Amplifier.of_samples(getattr(rng, name)(size=300 * num)).error(a) * math.sqrt(300)
    margin = 5 * np.sqrt((scipy.stats.kurtosis(values, fisher=False) - 1) / (4 * repeats))
    assert np.all(np.abs(scatter / told - 1) < margin)

    x = scipy.stats.zscore(getattr(rng, name)(size=100_000))  # at a = 1, where erf is the sign
    size = np.mean(np.abs(x))
    known_scale = np.std(np.abs(x) - np.mean(np.sign(x)) * x) / math.sqrt(num)
    known_mean = np.std(np.abs(x) - size * (x**2 - 1) / 2) / math.sqrt(num)
    assert abs(scatter[-1] / known_scale - 1) > margin[-1]
    if name == "exponential":
        assert abs(scatter[-1] / known_mean - 1) > margin[-1]


def test_the_standard_error_of_weighted_samples():
    values = np.random.default_rng(0).standard_normal(500)
    once = Amplifier(Empirical(values))
    twice = Amplifier(Empirical(np.repeat(values, 2)))
    ignored = Amplifier(Empirical(np.append(values, 50.0), np.append(np.ones(500), 0.0)))
    np.testing.assert_allclose(once.error([0.3, 1.0]), math.sqrt(2) * twice.error([0.3, 1.0]), rtol=1e-10)
    np.testing.assert_allclose(once.error([0.3, 1.0]), ignored.error([0.3, 1.0]), rtol=1e-10)
    assert once.error(np.zeros((2, 3))).shape == (2, 3)


# -- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Amplifier("uniform"), "must be a marginal, got 'uniform'. Try"),
        (lambda: Amplifier(Algebraic([3.0, 4.0])), "`k` of the law must be one number, got 2 values"),
        (lambda: Amplifier(Uniform())(1.01), "A correlation must be between −1 and 1, got 1.01. The argument"),
        (lambda: Amplifier(Uniform())([0.1, -3]), "got -3.0"),
        (lambda: Amplifier(Uniform())(math.nan), "must be a number, got nan"),
        (lambda: Amplifier(Uniform())("0.5"), "must be a number, got '0.5'"),
        (lambda: Amplifier(Uniform())([[0.1], [0.2, 0.3]]), "must be a number"),
        (lambda: Amplifier(Uniform()).of_ratio(1j), "A ratio must be a number"),
        (lambda: Amplifier(Uniform()).derivative(1.0), "strictly between −1 and 1, got 1.0. Go near"),
        (lambda: Amplifier(Uniform()).derivative(0.5, 4), "`order` must be a whole number from 1 to 3, got 4"),
        (lambda: Amplifier(Uniform()).taylor(2), "must be odd, got 2"),
        (lambda: Amplifier(Uniform()).taylor(0), "`order` must be a whole number"),
        (lambda: Amplifier(Uniform()).error(0.5), "must be an Empirical one, got Uniform"),
        (lambda: Amplifier.of_samples([[1.0], [1.0, 2.0]]), "`samples` must be a number"),
        (lambda: Amplifier.of_samples([]), "`samples` must be a non-empty array"),
        (lambda: Amplifier.of_samples([1.0, 1.0]), "at least two different values"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(InputError) as info:
        call()
    assert message in str(info.value)


def test_a_rounded_correlation_is_taken_as_one():
    assert Amplifier(TwoPoint())(1 + 4e-16) == 1
