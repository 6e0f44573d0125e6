"""The amplifier against closed forms, quadrature and automatic differentiation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.special

from localfields.errors import InputError
from localfields.marginals import (
    Algebraic,
    Empirical,
    ErfNormal,
    Laplace,
    Normal,
    SphereProjection,
    StudentT,
    Tabulated,
    Triangular,
    TwoPoint,
    Uniform,
)
from localfields.theory.responses.amplifier import SLOPE, Amplifier

from ..sheet import rounds_to
from .amplified import EIGHT, LAWS, TAILS, A, direct, named, ratio

# -- §2.1: general variance ------------------------------------------------------------------------


def test_general_variance_and_the_printed_form():
    """Gaussian data at σ = 2: f = Σw/(s√(2π)) exactly; as printed the argument leaves [−1, 1]
    and f is wrong.
    """
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
    wrong = 0.5 * np.sum(
        p * x * scipy.special.erf(x * ratio(printed[inside, None]) / math.sqrt(2)), axis=1
    )
    assert inside.sum() > 3
    # For a Gaussian the printed form is 4a/√(2π(1 + 3a²)) at σ = 2, a = √(2π) f: it takes an f of
    # 0.187 for 0.580.
    a = math.sqrt(2 * math.pi) * exact[inside]
    np.testing.assert_allclose(
        wrong, 4 * a / np.sqrt(2 * math.pi * (1 + 3 * a**2)), rtol=0, atol=1e-13
    )
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
        assert float(exponential(a)) == pytest.approx(
            value, abs=2e-6
        )  # the table's quantile is linear between scores
    assert exponential.limit == pytest.approx(2 / math.e, abs=1e-6)


# -- §2.2: closed forms and limits -----------------------------------------------------------------


def test_closed_forms():
    a = np.concatenate([A, -A, np.linspace(-1, 1, 41)])
    inner = a[np.abs(a) < 1]
    np.testing.assert_allclose(Amplifier(Normal())(a), SLOPE * a, rtol=0, atol=1e-15)
    two = Amplifier(TwoPoint())
    np.testing.assert_allclose(
        two(inner), scipy.special.erf(ratio(inner) / math.sqrt(2)), rtol=0, atol=1e-15
    )
    assert two(1.0) == 1 and two(-1.0) == -1
    big = inner[np.abs(inner) > 0.05]
    c, q = math.sqrt(3), ratio(big) / math.sqrt(2)
    bracket = 0.5 * scipy.special.erf(q * c) - q * c / math.sqrt(math.pi) * np.exp(-((q * c) ** 2))
    closed = (c**2 / 2 * scipy.special.erf(q * c) - bracket / (2 * q**2)) / c
    np.testing.assert_allclose(Amplifier(Uniform())(big), closed, rtol=0, atol=2e-13)
    np.testing.assert_allclose(
        Amplifier(Uniform()).of_ratio(ratio(A)), direct(Uniform(), ratio(A)), rtol=0, atol=1e-13
    )


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
    for law, limit in (
        (TwoPoint(), 1),
        (Uniform(), math.sqrt(3) / 2),
        (Normal(), math.sqrt(2 / math.pi)),
    ):
        assert float(Amplifier(law)(1.0)) == pytest.approx(limit, rel=1e-14)
    for k in TAILS:
        sd = math.sqrt(scipy.special.beta(3 / k, 1 - 2 / k) / k)
        closed = scipy.special.beta(2 / k, 1 - 1 / k) / (k * sd)
        assert float(Amplifier(Algebraic(k))(1.0)) == pytest.approx(closed, rel=1e-12)


def test_a_projection_of_a_sphere_is_not_a_line():
    """The exact response of an elliptical law is linear; the amplifier of its coordinate is an
    approximation of it.
    """
    assert np.abs(Amplifier(SphereProjection(5)).excess(np.linspace(0, 1, 11))).max() > 0.01
    assert np.abs(Amplifier(SphereProjection(4000)).excess(np.linspace(0, 1, 11))).max() < 1e-3


# -- §2.3: derivatives -----------------------------------------------------------------------------


POINTS = np.array([-0.7, 0.05, 0.2, 0.5, 0.8, 0.95, 0.0])


@jax.jit
def automatic(x, p, points):
    """The first three derivatives of E[X erf(Xβ/√2)] at points, (order, point), for nodes x and
    masses p.
    """

    def phi(a):
        return jnp.sum(p * x * jax.scipy.special.erf(x * (a / jnp.sqrt(2 * (1 - a) * (1 + a)))))

    one = jax.grad(phi)
    two = jax.grad(one)
    return jnp.stack([jax.vmap(slope)(points) for slope in (one, two, jax.grad(two))])


@pytest.mark.parametrize("law", EIGHT, ids=named)
@pytest.mark.parametrize("sd", [1.0, 2.0])
def test_derivatives_against_automatic_ones(law, sd):
    amplifier, wanted = Amplifier(law.replace(scale=sd)), automatic(*law.nodes(), POINTS)
    for order in (1, 2, 3):
        result = amplifier.derivative(POINTS[:-1], order)
        np.testing.assert_allclose(result, wanted[order - 1, :-1], rtol=1e-8, atol=1e-8)
    third = -SLOPE * law.excess_kurtosis
    assert amplifier.derivative(0.0) == pytest.approx(SLOPE, rel=1e-14)
    assert amplifier.derivative(0.0, 2) == 0
    assert amplifier.derivative(0.0, 3) == pytest.approx(third, abs=1e-12)
    assert float(wanted[2, -1]) == pytest.approx(third, rel=1e-8, abs=1e-8)


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
    """At σ = 2 the literal E[X erf(Xβ/√2)] has φ'''(0) = −√(2/π)(κσ⁴ − 3σ²); the printed "κ4σ4"
    is not κ⁴σ⁴.
    """
    sd = 2.0
    first, _, third = automatic(*law.replace(scale=sd).nodes(), POINTS)[:, -1].tolist()
    assert first == pytest.approx(SLOPE * sd**2, rel=1e-9)
    assert third == pytest.approx(-SLOPE * (law.kurtosis * sd**4 - 3 * sd**2), rel=1e-8)
    assert abs(third + SLOPE * (law.kurtosis**4 * sd**4 - 3 * sd**2)) > 1


def test_the_paper_s_third_derivative_in_full():
    """φ'''(a) = √(2/π)(1 − a²)^(−11/2) E[X²(…) e^(−X²β²/2)] with the polynomial gathered over
    one power.
    """
    for law in EIGHT:
        x, p = law.nodes()
        for a in (0.2, 0.5, 0.8):
            u = 1 - a**2
            weight = p * x**2 * np.exp(-0.5 * (x * ratio(a)) ** 2)
            inner = (1 + 4 * a**2) * (3 * u - x**2) * u + a**2 * (x**4 - 5 * x**2 * u)
            printed = SLOPE * u**-5.5 * np.sum(weight * inner)
            assert float(Amplifier(law).derivative(a, 3)) == pytest.approx(
                printed, rel=1e-10, abs=1e-10
            )


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
    """(√(2/π)a − φ)/a³ = c ln(1/a) + const with c = √(2/π)/(6 sd⁴) = 0.3705; at a = 10⁻³ the
    ratio is still 0.34.
    """
    amplifier, a = Amplifier(Algebraic(4.0)), np.array([1e-2, 1e-3, 1e-4])
    scaled = -amplifier.excess(a) / a**3
    sd = math.sqrt(scipy.special.beta(0.75, 0.5) / 4)
    np.testing.assert_allclose(np.diff(scaled) / math.log(10), SLOPE / (6 * sd**4), rtol=5e-4)
    assert SLOPE / (6 * sd**4) == pytest.approx(0.3705, abs=5e-5)
    assert scaled[1] / math.log(1e3) == pytest.approx(0.34, abs=0.005)


# -- super- and sub-linearity ----------------------------------------------------------------------


def test_kur_5_is_below_the_line_first_and_above_it_later():
    amplifier, a = Amplifier(Algebraic(5.0)), np.linspace(0, 1, 401)
    excess = amplifier.excess(a)
    assert excess.min() == pytest.approx(-0.0031, abs=5e-5) and excess.max() == pytest.approx(
        0.0141, abs=5e-5
    )
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
    """At k = 5.89 (zero kurtosis is at 5.890115) φ dips below the line, at an a too small for a
    coarse grid.
    """
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
    two, _ = scipy.integrate.quad(
        lambda a: math.erf(ratio(a) / math.sqrt(2)) / SLOPE - a, 0, 1, epsabs=1e-12
    )
    assert Amplifier(TwoPoint()).index == pytest.approx(2 * two, abs=1e-9)
    order = [
        Amplifier(law).index
        for law in (StudentT(3.0), Laplace(), Normal(), Uniform(), ErfNormal(3.0), TwoPoint())
    ]
    assert order == sorted(order)


def test_elasticity():
    a = np.linspace(-0.9, 0.9, 10)
    np.testing.assert_allclose(Amplifier(Normal()).elasticity(a), 1, rtol=1e-12)
    for law in LAWS:
        amplifier, step = Amplifier(law), 1e-5
        assert amplifier.elasticity(0.0) == 1
        up, down = (np.log(np.abs(amplifier(a * math.exp(sign * step)))) for sign in (1, -1))
        np.testing.assert_allclose(
            amplifier.elasticity(a), (up - down) / (2 * step), rtol=1e-6, atol=1e-9
        )
    assert Amplifier(TwoPoint()).elasticity(0.5) > 1 > Amplifier(Laplace()).elasticity(0.5)


# -- the expansion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law", [Uniform(), TwoPoint(), Laplace(), Triangular(), ErfNormal(1.0), SphereProjection(7)]
)
def test_taylor(law):
    amplifier = Amplifier(law.replace(scale=2.0))
    third = amplifier.taylor()
    np.testing.assert_allclose(
        third.coef, [0, SLOPE, 0, -SLOPE * law.excess_kurtosis / 6], rtol=0, atol=1e-12
    )
    a = np.array([0.02, 0.04])
    for order in (1, 3, 5, 7):
        rest = np.abs(amplifier(a) - amplifier.taylor(order)(a))
        if rest.min() > 1e-13:  # the error falls with the next odd power
            assert math.log2(rest[1] / rest[0]) == pytest.approx(order + 2, abs=0.15)
    a = np.array([-0.1, 0.1])
    np.testing.assert_allclose(amplifier.taylor(21)(a), amplifier(a), rtol=0, atol=1e-9)


def test_taylor_of_a_normal_is_a_line():
    np.testing.assert_allclose(
        Amplifier(Normal()).taylor(15).coef, [0, SLOPE] + [0] * 14, rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("law", [Algebraic(3.0), Algebraic(4.0), StudentT(4.0)], ids=named)
def test_taylor_needs_a_moment(law):
    assert Amplifier(law).taylor(1).coef == pytest.approx([0, SLOPE])
    with pytest.raises(
        InputError, match="finite moment of order 4, got .* Use the amplifier itself"
    ):
        Amplifier(law).taylor()
    with pytest.raises(InputError, match="finite moment of order 6"):
        Amplifier(Algebraic(6.0)).taylor(5)
