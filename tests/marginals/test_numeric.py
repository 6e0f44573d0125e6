"""Laws given by a function, a table or samples; laws through a Gaussian copula."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

import localfields as lf
from localfields.marginals import (
    Algebraic,
    Empirical,
    ErfNormal,
    Laplace,
    Logistic,
    Marginal,
    Normal,
    NormalMixture,
    SphereProjection,
    StudentT,
    Tabulated,
    Triangular,
    TwoPoint,
    Uniform,
)

from .examples import ALL, OTHERS, SAMPLED, UNKNOWN, exponential, named, panels

# -- laws given by a function, a table or samples --------------------------------------------------


def test_a_tabulated_law_is_the_function():
    law = Tabulated.of(exponential)
    # Linear interpolation of Q(Φ(z)) in steps h = 1/256 is off by at most h²/8 max|Q''| ≈ 2e-6
    # here.
    assert law.mean == pytest.approx(1, abs=4e-6)
    assert law.variance == pytest.approx(1, abs=1e-5)
    assert law.kurtosis == pytest.approx(9, abs=1e-3)
    assert law.mean_abs == pytest.approx(2 / math.e, abs=1e-5)
    assert not law.symmetric
    u = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(law.quantile(u), exponential(u), atol=4e-6)
    np.testing.assert_allclose(law.cdf(exponential(u)), u, atol=4e-6)


def test_a_tabulated_law_is_exact_for_its_table():
    """Moments of the piecewise linear map by independent quadrature, panel by panel."""
    law = Tabulated.of(lambda u: u**3)
    grid = np.arange(-2048, 2049) / 256
    z, w = panels(-8, 8, 1 / 256)
    p = w * scipy.stats.norm.pdf(z)
    x = np.interp(z, grid, law.table)
    mean = np.sum(p * x) / np.sum(p)
    assert law.mean == pytest.approx(mean, rel=1e-12)
    assert law.variance == pytest.approx(np.sum(p * (x - mean) ** 2) / np.sum(p), rel=1e-11)
    np.testing.assert_array_equal(law.from_normal(grid), law.table)


def test_standardized_tables_and_samples():
    for law in (Tabulated.of(exponential), Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1])):
        unit = law.standardized()
        assert abs(unit.mean) < 1e-12 and unit.sd == pytest.approx(1, rel=1e-12)
        assert unit.kurtosis == pytest.approx(law.kurtosis, rel=1e-10)
        assert unit.symmetric == law.symmetric
        u = np.array([0.05, 0.5, 0.95])
        np.testing.assert_allclose(
            unit.quantile(u), (law.quantile(u) - law.mean) / law.sd, rtol=1e-9, atol=1e-12
        )


def test_symmetry_of_tables_and_samples():
    assert Tabulated.of(lambda u: np.log(u / (1 - u))).symmetric
    assert Tabulated.of(lambda u: 5 + np.log(u / (1 - u))).standardized().symmetric
    assert not Tabulated.of(lambda u: u**1.01).symmetric
    assert Empirical([-2.0, 0.0, 2.0], [1.0, 5.0, 1.0]).symmetric
    assert not Empirical([-2.0, 0.0, 2.0], [1.0, 5.0, 2.0]).symmetric
    assert not Empirical([-2.0, 0.0, 2.5]).symmetric


def test_condensed_nodes_keep_three_moments():
    law = Tabulated.of(exponential)
    values, p = law.condensed()
    assert len(values) == 256
    x, q = law.panels()
    for order in range(4):
        assert np.sum(p * values**order) == pytest.approx(np.sum(q * x**order), rel=1e-11)
    assert np.sum(p * values**4) == pytest.approx(np.sum(q * x**4), rel=1e-6)


def test_hermite_coefficients_of_samples():
    """The closed form against direct integration over each step."""
    law = Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1])
    result = law.hermite(30)
    ends = np.concatenate([[-12.0], scipy.special.ndtri([0.4, 0.7, 0.8]), [12.0]])
    unit = (np.array([-1.0, 0.0, 0.5, 3.0]) - law.mean) / law.sd
    for n in range(31):
        wanted = 0.0
        for low, high, x in zip(ends[:-1], ends[1:], unit, strict=True):
            z, w = panels(low, high)
            polynomial = scipy.special.eval_hermitenorm(n, z) / math.sqrt(math.factorial(n))
            wanted += x * np.sum(w * polynomial * scipy.stats.norm.pdf(z))
        assert result[n] == pytest.approx(wanted, abs=1e-13)


@pytest.mark.parametrize(
    "law", [law for law in SAMPLED if not isinstance(law, Empirical)], ids=named
)
def test_hermite_coefficients(law):
    """Against quadrature with the polynomials themselves, to what float32 samples can show; and
    Bessel's inequality.
    """
    result = law.hermite(401)
    z, w = panels(-16, 16, 1 / 256 if isinstance(law, Tabulated) else 1 / 16)
    unit = (law.from_normal(z) - law.mean) / law.sd
    for n in range(12):
        polynomial = scipy.special.eval_hermitenorm(n, z) / math.sqrt(math.factorial(n))
        wanted = np.sum(w * unit * polynomial * scipy.stats.norm.pdf(z))
        assert result[n] == pytest.approx(wanted, abs=6e-8)
    if law.symmetric:
        np.testing.assert_allclose(result[::2], 0, rtol=0, atol=1e-12)
    assert np.sum(result**2) < 1 + 6e-8


# -- through a Gaussian copula ---------------------------------------------------------------------


def algebraic_map(z, k):
    """Q(Φ(z)) of the unnormalized algebraic law, in logarithms (formula sheet §1.4)."""
    size = np.abs(z)
    log_tail = math.log(2) + scipy.special.log_ndtr(-size)
    log_v = np.where(
        size < 1, np.log(scipy.special.erf(size / math.sqrt(2))), np.log1p(-np.exp(log_tail))
    )
    rest = np.where(
        log_tail < -30, math.log(k) + log_tail, np.log(-np.expm1(k * np.minimum(log_v, -1e-300)))
    )
    return np.sign(z) * np.exp(log_v - rest / k)


def plane(function, r, width=0.5):
    """E[f(Z₁) f(Z₂)] at latent correlation r, by panels in both variables, with an edge at zero."""
    z, w = panels(-20, 20, width)
    weighted = w * function(z)
    exponent = -(z[:, None] ** 2 - 2 * r * z[:, None] * z[None, :] + z[None, :] ** 2) / (
        2 * (1 - r * r)
    )
    return weighted @ np.exp(exponent) @ weighted / (2 * math.pi * math.sqrt(1 - r * r))


@pytest.mark.parametrize("r", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("k", [2.5, 3.0, 4.0, 5.0, 10.0])
def test_correlation_against_quadrature_in_the_plane(k, r):
    law = Algebraic(k)
    wanted = plane(lambda z: algebraic_map(z, k), r) / (scipy.special.beta(3 / k, 1 - 2 / k) / k)
    result = float(law.correlation(r))
    assert result == pytest.approx(wanted, abs=1e-9)
    assert abs(result - wanted) <= law.correlation_error(r) + 1e-11
    assert float(law.correlation(-r)) == pytest.approx(-result, abs=1e-15)
    if (k, r) == (3.0, 0.7):
        assert round(result, 10) == 0.6471285017


@pytest.mark.parametrize(
    "law", [Laplace(), Logistic(), Triangular(), StudentT(5.0), NormalMixture(0.9)], ids=repr
)
@pytest.mark.parametrize("r", [-0.8, 0.5])
def test_correlation_of_the_other_laws(law, r):
    assert float(law.correlation(r)) == pytest.approx(plane(law.from_normal, r, 0.25), abs=1e-9)


def test_correlation_of_a_skewed_law():
    """−1 cannot be reached: the least correlation of two exponentials is 1 − π²/6."""
    law = Tabulated.of(exponential)
    assert float(law.correlation(-1.0)) == pytest.approx(1 - math.pi**2 / 6, abs=1e-4)
    assert float(law.correlation(1.0)) == 1
    unit = law.standardized()
    assert float(law.correlation(0.5)) == pytest.approx(
        plane(unit.from_normal, 0.5, 0.25), abs=1e-6
    )


@pytest.mark.parametrize("r", [-0.9, -0.2, 0.0, 0.3, 0.7, 0.95])
def test_arcsine_laws(r):
    for gain in (1.0, 3.0):
        rho = 2 * gain**2 / (1 + 2 * gain**2)
        law = ErfNormal(gain)
        assert float(law.correlation(r)) == pytest.approx(
            math.asin(rho * r) / math.asin(rho), abs=1e-15
        )
        series = float(Marginal.correlation(law, r))  # the Hermite series that other laws use
        assert series == pytest.approx(
            math.asin(rho * r) / math.asin(rho), abs=1e-14 if abs(r) < 0.9 else 1e-10
        )
    assert float(TwoPoint().correlation(r)) == pytest.approx(2 / math.pi * math.asin(r), abs=1e-15)
    assert float(Uniform().correlation(r)) == pytest.approx(
        6 / math.pi * math.asin(r / 2), abs=1e-15
    )
    assert float(Marginal.correlation(Uniform(), r)) == pytest.approx(
        6 / math.pi * math.asin(r / 2), abs=1e-14
    )
    assert float(Normal().correlation(r)) == r


@pytest.mark.parametrize(
    "law", [*[Algebraic(k) for k in (2.2, 3.0, 5.0, 10.0)], Laplace(), StudentT(2.5)], ids=repr
)
@pytest.mark.parametrize("r", [0.2, 0.7, 0.95])
def test_what_a_shorter_series_leaves_out_is_bounded(law, r):
    """All a_n² ≥ 0, so that after order M at most (1 − Σ a_n²) |r|^(M+2) is left for an odd map."""
    full = float(law.correlation(r))
    for order in (1, 5, 21):
        squares = law.hermite(order) ** 2
        partial = np.polynomial.polynomial.polyval(r, squares)
        left = full - partial
        assert -1e-14 <= left <= (1 - squares.sum()) * r ** (order + 2) + 1e-14
    assert 0 <= law.correlation_error([r, 0.1, 1.0]) < 1e-7


def test_correlation_error_is_zero_for_closed_forms():
    assert all(
        law.correlation_error([0.5, 0.99]) == 0
        for law in (Normal(), TwoPoint(), Uniform(), ErfNormal(100.0))
    )


@pytest.mark.parametrize(
    "law",
    [
        Normal(),
        TwoPoint(),
        Uniform(),
        ErfNormal(0.3),
        ErfNormal(100.0),
        Laplace(),
        Algebraic(2.5),
        Algebraic(10.0),
    ]
    + [OTHERS[3], *UNKNOWN],
    ids=named,
)
def test_latent_correlation_inverts_correlation(law):
    latent = (
        np.array([[-0.95, -0.4, -1e-3, 0.0], [0.2, 0.7, 0.99, 1.0]])
        if law.symmetric
        else np.array([-0.2, 0.6])
    )
    result = law.latent_correlation(law.correlation(latent))
    np.testing.assert_allclose(result, latent, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "law", [law for law in ALL if not isinstance(law, SphereProjection)], ids=named
)
def test_correlations_beyond_one_are_refused(law):
    with pytest.raises(lf.InputError, match="correlation"):
        law.latent_correlation([0.2, 1.1])
    with pytest.raises(lf.InputError, match="correlation"):
        law.latent_correlation(-1.1)


def test_correlations_a_skewed_law_cannot_reach_are_refused():
    with pytest.raises(lf.InputError, match="-0.9.*-0.64|between -0.64.*-0.9"):
        Tabulated.of(exponential).latent_correlation(-0.9)
