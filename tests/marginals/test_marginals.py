"""Every marginal against independent quadrature, scipy's laws and float32's edges."""

import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import localfields as lf
from localfields._spec import member, registered
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

from .examples import ALL, DENSE, SAMPLED, TAILS, named, panels

DISCRETE = (TwoPoint, Empirical)


# -- an independent reference ----------------------------------------------------------------------


def half_line(end=math.inf, points=16):
    """Nodes and weights on (0, end) by panels in log x: every scale from e⁻⁴⁵ to e²⁰⁰ is
    resolved.
    """
    s, w = panels(-45.0, min(200.0, math.log(end)), points=points)
    return np.exp(s), w * np.exp(s)


def reference(law, points=16):
    """|X| and probability weights, from the density where `law.nodes` uses the quantile."""
    return _reference(repr(law), points)


@functools.cache
def _reference(name, points):
    [law] = [law for law in [*DENSE, SphereProjection(40)] if repr(law) == name]
    end, unit = math.inf, None
    match law:
        case Normal():
            density = scipy.stats.norm.pdf
        case Uniform():
            end = math.sqrt(3)
            density = scipy.stats.uniform(-end, 2 * end).pdf
        case Laplace():
            density = scipy.stats.laplace(scale=math.sqrt(0.5)).pdf
        case Logistic():
            density = scipy.stats.logistic(scale=math.sqrt(3) / math.pi).pdf
        case Triangular():
            end = math.sqrt(6)
            density = scipy.stats.triang(0.5, -end, 2 * end).pdf
        case StudentT():
            density = scipy.stats.t(law.nu, scale=math.sqrt((law.nu - 2) / law.nu)).pdf
        case NormalMixture():
            width = math.sqrt(1 - law.separation**2)

            def density(x):
                return (
                    scipy.stats.norm.pdf(x, law.separation, width) / 2
                    + scipy.stats.norm.pdf(x, -law.separation, width) / 2
                )
        case SphereProjection():
            end, d = math.sqrt(law.dimension), law.dimension
            constant = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(
                math.pi * d
            )

            def density(x):
                return constant * (1 - x**2 / d) ** ((d - 3) / 2)
        case ErfNormal():  # the latent normal is integrated; the deviation is found, not taken from the law
            density, unit = scipy.stats.norm.pdf, lambda z: scipy.special.erf(law.gain * z)
        case Algebraic():

            def density(x):
                return 0.5 * np.exp(-(1 + 1 / law.k) * np.logaddexp(0, law.k * np.log(x)))

            unit = np.asarray
    x, w = half_line(end, points)
    p = 2 * w * density(x)
    if unit is not None:
        x = unit(x)
        x = x / math.sqrt(np.sum(p * x**2))
    return x, p


def expectation(law, function, points=16):
    x, p = reference(law, points)
    keep = p > 0
    return float(np.sum(p[keep] * function(x[keep])))


def amplifier(x, p, a):
    beta = a / math.sqrt((1 - a) * (1 + a))
    return np.sum(p * x * scipy.special.erf(x * beta / math.sqrt(2)))


A = (1e-6, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12)


@pytest.mark.parametrize("law", DENSE, ids=named)
def test_the_reference_itself_has_converged(law):
    for order in (0, 1, 2):
        coarse, fine = (expectation(law, lambda x, n=order: x**n, points) for points in (16, 24))
        assert coarse == pytest.approx(fine, rel=2e-13)
        assert coarse == pytest.approx([1, coarse, 1][order], rel=1e-12)
    for a in A[::2]:
        assert abs(amplifier(*reference(law, 16), a) - amplifier(*reference(law, 24), a)) < 1e-13


# -- exact moments ---------------------------------------------------------------------------------


def test_every_class_is_here():
    assert {type(law) for law in ALL} == set(registered("marginal").values())


@pytest.mark.parametrize("law", [*DENSE, SphereProjection(40)], ids=named)
def test_moments_against_quadrature(law):
    assert law.mean == 0 and law.symmetric
    assert law.variance == 1
    assert law.abs_moment(2) == pytest.approx(1, rel=1e-10)
    assert law.mean_abs == pytest.approx(expectation(law, np.abs), rel=1e-10)
    assert law.abs_moment(1.5) == pytest.approx(expectation(law, lambda x: x**1.5), rel=1e-10)
    if law.tail_index > 4.5:  # else the integral itself has not converged by x = e²⁰⁰
        assert law.kurtosis == pytest.approx(expectation(law, lambda x: x**4), rel=1e-10)
        assert law.excess_kurtosis == law.kurtosis - 3
        assert law.abs_moment(3) == pytest.approx(expectation(law, lambda x: x**3), rel=1e-10)


def test_moments_of_discrete_laws():
    law = TwoPoint()
    assert (law.kurtosis, law.mean_abs, law.variance, law.abs_moment(3)) == (1, 1, 1, 1)
    law = Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1])
    x, p = np.array([3.0, -1.0, 0.0, 0.5]), np.array([0.2, 0.4, 0.3, 0.1])
    mean = np.sum(p * x)
    assert law.mean == pytest.approx(mean, rel=1e-14)
    assert law.variance == pytest.approx(np.sum(p * (x - mean) ** 2), rel=1e-14)
    assert law.mean_abs == pytest.approx(np.sum(p * np.abs(x - mean)), rel=1e-14)
    assert law.kurtosis == pytest.approx(np.sum(p * (x - mean) ** 4) / law.variance**2, rel=1e-13)
    assert Empirical([1.0, 2.0, 3.0, 6.0]).mean == 3
    assert Empirical([1.0, 2.0, 3.0, 6.0]).variance == pytest.approx(3.5, rel=1e-14)


@pytest.mark.parametrize("law", [law for law in ALL if hasattr(law, "scale")], ids=named)
def test_scale_is_the_standard_deviation(law):
    wide = law.replace(scale=2.5)
    assert wide.sd == 2.5 and wide.variance == 6.25
    assert wide.mean_abs == pytest.approx(2.5 * law.mean_abs, rel=1e-13)
    assert wide.abs_moment(1.5) == pytest.approx(2.5**1.5 * law.abs_moment(1.5), rel=1e-13)
    if law.tail_index > 4:
        assert wide.kurtosis == pytest.approx(law.kurtosis, rel=1e-13)
    u, z = np.array([0.01, 0.3, 0.8]), np.array([-2.0, 0.1, 3.0])
    np.testing.assert_allclose(wide.quantile(u), 2.5 * law.quantile(u), rtol=1e-13)
    np.testing.assert_allclose(wide.from_normal(z), 2.5 * law.from_normal(z), rtol=1e-13)
    np.testing.assert_allclose(wide.cdf(2.5 * z), law.cdf(z), rtol=1e-12)
    (x, p), (far, same) = law.nodes(), wide.nodes()
    np.testing.assert_allclose(far, 2.5 * x, rtol=1e-13)
    np.testing.assert_array_equal(p, same)
    np.testing.assert_allclose(wide.correlation(0.4), law.correlation(0.4), rtol=1e-12)
    assert repr(wide.standardized()) == repr(law)


@pytest.mark.parametrize(
    "law, index",
    [(Algebraic(3.0), 3), (Algebraic(4.0), 4), (StudentT(3.0), 3), (StudentT(4.0), 4)],
    ids=repr,
)
def test_infinite_moments_are_said_to_be_infinite(law, index):
    assert law.tail_index == index
    assert law.kurtosis == law.excess_kurtosis == math.inf
    assert law.abs_moment(index) == law.abs_moment(4) == law.abs_moment(7.5) == math.inf
    assert 1 < law.abs_moment(index - 0.01) < math.inf
    assert 0 < law.mean_abs < 1
    assert law.variance == 1


def test_light_tails_have_every_moment():
    assert all(
        law.tail_index == math.inf for law in ALL if not isinstance(law, (Algebraic, StudentT))
    )
    assert Laplace().abs_moment(20) == pytest.approx(math.factorial(20) / 2**10, rel=1e-12)
    assert Normal().abs_moment(8) == pytest.approx(105, rel=1e-13)


@pytest.mark.parametrize("order", [0, -1, math.nan])
def test_orders_that_are_none_are_refused(order):
    with pytest.raises(lf.InputError, match="order"):
        Normal().abs_moment(order)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: Algebraic(2.0), "above 2"),
        (lambda: StudentT(2.0), "above 2"),
        (lambda: ErfNormal(0.0), "Gaussian limit"),
        (lambda: ErfNormal(math.inf), "must be finite, got inf"),
        (lambda: NormalMixture(1.0), "at most 0.9"),
        (lambda: Normal(scale=-1.0), "positive"),
        (lambda: Empirical([1.0, 1.0]), "only one value"),
        (lambda: Empirical([1.0, 2.0], [1.0, -1.0]), "none negative"),
        (lambda: Empirical([1.0, 2.0], [1.0, 1.0, 1.0]), "2 numbers"),
        (lambda: Tabulated([1.0, 2.0]), "4097 quantiles"),
        (lambda: Tabulated.of(lambda u: -u), "must increase"),
        (lambda: Tabulated.of(lambda u: 0 * u), "must increase"),
        (lambda: Tabulated.of(lambda u: u[:5]), "one finite number for each u"),
        (lambda: Tabulated.of(lambda u: u * math.nan), "finite"),
        (lambda: Tabulated.of(lambda u: 1 / 0), "function failed: division"),
    ],
)
def test_laws_that_are_none_are_refused(make, says):
    with pytest.raises(lf.InputError, match=says):
        make()


@pytest.mark.parametrize("law", ALL, ids=named)
def test_json_round_trip(law):
    again = lf.from_json(json.loads(json.dumps(law.to_json())))
    assert type(again) is type(law) and repr(again) == repr(law)
    for one, other in zip(jax.tree.leaves(law), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)


# -- cdf and quantile ------------------------------------------------------------------------------

LEVELS = np.concatenate(
    [10.0 ** -np.arange(12, 1, -1), np.arange(1, 20) / 20, 1 - 10.0 ** -np.arange(2, 13)]
)


@pytest.mark.parametrize("law", [law for law in ALL if not isinstance(law, DISCRETE)], ids=named)
def test_cdf_inverts_quantile(law):
    """To the last digits of x: u lies between the cdf a few units in the last place below and
    above the quantile.
    """
    x = law.quantile(LEVELS)
    assert (np.diff(x) >= 0).all()
    slack = 8 * np.finfo(float).eps * np.abs(x)
    assert (law.cdf(x - slack) - 1e-13 <= LEVELS).all()
    assert (law.cdf(x + slack) + 1e-13 >= LEVELS).all()


@pytest.mark.parametrize("law", [law for law in ALL if law.symmetric], ids=named)
def test_symmetric_laws_are_odd(law):
    z = np.array([0.0, 1e-9, 0.2, 1.0, 3.0, 7.0, 40.0])
    np.testing.assert_array_equal(law.from_normal(-z), -law.from_normal(z))
    x = law.quantile(np.array([0.6, 0.75, 0.99, 1 - 1e-6]))
    np.testing.assert_allclose(law.cdf(-0.9 * x), 1 - law.cdf(0.9 * x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("law", [law for law in ALL if isinstance(law, DISCRETE)], ids=named)
def test_quantile_inverts_cdf_at_the_atoms(law):
    """The quantile is the smallest x with F(x) ≥ u."""
    atoms = np.unique(law.quantile(np.linspace(0.0005, 0.9995, 1000)))
    assert law.quantile(np.array(0.5)) in atoms
    levels = law.cdf(atoms)
    assert levels[-1] == pytest.approx(1, abs=1e-15)
    np.testing.assert_array_equal(law.cdf(atoms - 1e-9), np.concatenate([[0.0], levels[:-1]]))
    np.testing.assert_array_equal(law.quantile(levels - 1e-9), atoms)
    np.testing.assert_array_equal(law.quantile(levels[:-1] + 1e-9), atoms[1:])


@pytest.mark.parametrize(
    "law, scipys",
    [
        (Normal(), scipy.stats.norm),
        (Uniform(), scipy.stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
        (Laplace(), scipy.stats.laplace(scale=math.sqrt(0.5))),
        (Logistic(), scipy.stats.logistic(scale=math.sqrt(3) / math.pi)),
        (Triangular(), scipy.stats.triang(0.5, -math.sqrt(6), 2 * math.sqrt(6))),
        (StudentT(2.5), scipy.stats.t(2.5, scale=math.sqrt(0.2))),
        (StudentT(5.0), scipy.stats.t(5.0, scale=math.sqrt(0.6))),
        (ErfNormal(math.sqrt(0.5)), scipy.stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
    ],
    ids=lambda value: repr(value) if isinstance(value, Marginal) else "",
)
def test_cdf_against_scipy(law, scipys):
    x = np.concatenate([np.linspace(-6, 6, 241), [-50.0, 50.0, 1e-12, -1e-12]])
    np.testing.assert_allclose(law.cdf(x), scipys.cdf(x), rtol=0, atol=1e-13)
    u = np.linspace(0.001, 0.999, 333)
    np.testing.assert_allclose(law.quantile(u), scipys.ppf(u), rtol=1e-10, atol=1e-13)


def test_cdf_of_the_other_laws():
    x = np.linspace(-4, 4, 81)
    for k in TAILS:
        raw = x * math.sqrt(scipy.special.beta(3 / k, 1 - 2 / k) / k)
        wanted = 0.5 * (1 + raw * (1 + np.abs(raw) ** k) ** (-1 / k))
        np.testing.assert_allclose(Algebraic(k).cdf(x), wanted, rtol=0, atol=1e-14)
    for m in (0.0, 0.5, 0.9):
        s = math.sqrt(1 - m * m)
        wanted = (scipy.stats.norm.cdf(x, m, s) + scipy.stats.norm.cdf(x, -m, s)) / 2
        np.testing.assert_allclose(NormalMixture(m).cdf(x), wanted, rtol=0, atol=1e-14)
    for d in (3, 40):
        beta = scipy.stats.beta(
            (d - 1) / 2, (d - 1) / 2
        )  # (1 + U)/2 for a coordinate U of the unit sphere
        np.testing.assert_allclose(
            SphereProjection(d).cdf(x), beta.cdf((1 + x / math.sqrt(d)) / 2), atol=1e-14
        )


@pytest.mark.parametrize("law", DENSE, ids=named)
def test_from_normal_is_the_quantile_of_the_normal_cdf(law):
    z = np.linspace(-4, 4, 161)
    np.testing.assert_allclose(
        law.from_normal(z), law.quantile(scipy.special.ndtr(z)), rtol=1e-9, atol=1e-14
    )


# -- sweeps ----------------------------------------------------------------------------------------

SWEPT = {
    "algebraic": Algebraic([5.0, 6.0]),
    "erf-normal": ErfNormal([1.0, 2.0]),
    "normal-mixture": NormalMixture([0.3, 0.8]),
    "student-t": StudentT([5.0, 6.0]),
}
STATISTICS = {
    "kurtosis": lambda law: law.kurtosis,
    "mean_abs": lambda law: law.mean_abs,
    "abs_moment": lambda law: law.abs_moment(3),
    "nodes": lambda law: law.nodes()[0],
    "hermite": lambda law: law.hermite(),
    "correlation": lambda law: law.correlation([0.3, 0.5, 0.7]),
    "latent_correlation": lambda law: law.latent_correlation([0.3, 0.5, 0.7]),
}


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_has_no_statistics(name, statistic):
    message = r"^`(k|gain|separation|nu)` must be one number to take statistics of, got 2 values\. An array sweeps"
    with pytest.raises(lf.InputError, match=message):
        STATISTICS[statistic](SWEPT[name])
    assert np.isfinite(STATISTICS[statistic](member(SWEPT[name], 1))).all()


# -- the quadrature rule ---------------------------------------------------------------------------


@pytest.mark.parametrize("law", ALL, ids=named)
def test_node_weights_are_probabilities(law):
    x, p = law.nodes()
    assert x.shape == p.shape and x.ndim == 1
    assert (x >= 0).all() and (p >= 0).all()
    assert np.isfinite(x).all()
    assert np.sum(p) == pytest.approx(1, abs=1e-12)
    assert np.sum(p * x) == pytest.approx(law.mean_abs, rel=1e-10)


@pytest.mark.parametrize("a", A)
@pytest.mark.parametrize("law", DENSE, ids=named)
def test_nodes_give_the_amplifier(law, a):
    """φ(a) = E[X erf(X β/√2)], β = a/√(1 − a²), to 1e-12 at every a (formula sheet §2.4)."""
    assert abs(amplifier(*law.nodes(), a) - amplifier(*reference(law), a)) < 1e-12


def test_the_amplifier_of_a_normal_is_linear():
    for a in A:
        assert abs(amplifier(*Normal().nodes(), a) - math.sqrt(2 / math.pi) * a) < 1e-13


# -- float32 ---------------------------------------------------------------------------------------


def all_kinds_of_float32():
    """Every exponent with 512 mantissas, both signs, zeros, subnormals, infinities; in
    increasing order.
    """
    exponents = np.arange(255, dtype=np.uint32) << 23
    mantissas = np.unique(np.concatenate([np.arange(0, 2**23, 2**14), [1, 2, 2**23 - 1]])).astype(
        np.uint32
    )
    bits = (exponents[:, None] | mantissas[None, :]).ravel()
    positive = np.append(bits.view(np.float32), np.float32(np.inf))
    return np.concatenate([-positive[::-1], positive])


def mapped(law, z):
    """Compiled, in float32, with the law's numbers traced: as in a draw."""
    with jax.enable_x64(False):
        return np.asarray(
            jax.jit(lambda law, z: law.from_normal(z))(law, jnp.asarray(z, jnp.float32))
        )


@pytest.mark.parametrize("law", [*SAMPLED, Algebraic(2.05), StudentT(2.05)], ids=named)
def test_from_normal_is_finite_and_increasing_in_float32(law):
    z = all_kinds_of_float32()
    x = mapped(law, z)
    assert x.dtype == np.float32
    finite = (
        np.isfinite(z) if isinstance(law, Normal) else np.full(z.shape, True)
    )  # a normal's map is z itself
    assert np.isfinite(x[finite]).all()
    # Rising, up to rounding: exp(log(…)/k) rounds |log| ≤ 88 by half a unit and divides by k > 2;
    # other steps add few.
    assert (np.diff(x[finite].astype(np.float64)) >= -64 * 2.0**-24 * np.abs(x[finite][1:])).all()
    np.testing.assert_allclose(x[z == 0], law.from_normal(np.array([-0.0, 0.0])), rtol=0, atol=1e-6)


@pytest.mark.parametrize("law", SAMPLED, ids=named)
def test_float32_agrees_with_float64(law):
    """In value, or at least in probability: no test with fewer than 10⁹ samples could tell the
    two laws apart.
    """
    z = np.linspace(-6, 6, 4001).astype(np.float32)
    x, exact = mapped(law, z), law.from_normal(z.astype(np.float64))
    near = np.isclose(x, exact, rtol=1e-4, atol=1e-6)
    probability = scipy.special.ndtr(z.astype(np.float64))
    likely = (law.cdf(x - 1e-6) - 1e-5 < probability) & (probability < law.cdf(x + 1e-6) + 1e-5)
    assert (near | likely).all()


@pytest.mark.parametrize("k", [3.0, 2.05])
def test_no_float32_latent_overflows(k):
    """Every float32 from 4 to 16, one by one; below the map is smaller, beyond erfc has ended
    and it is constant.
    """
    law = Algebraic(k)
    every = np.arange(
        np.float32(4).view(np.uint32), np.float32(16).view(np.uint32) + 1, dtype=np.uint32
    )
    x = mapped(law, every.view(np.float32))
    assert np.isfinite(x).all()
    largest = x.max()
    assert largest < 1e20
    beyond = all_kinds_of_float32()
    beyond = beyond[beyond >= 16]
    assert (mapped(law, beyond) == x[-1]).all()
    below = mapped(law, np.linspace(0, 4, 100_001))
    assert (np.abs(below) <= x[0]).all()
    np.testing.assert_array_equal(mapped(law, -every[:1000].view(np.float32)), -x[:1000])


@pytest.mark.parametrize("k", [3.0, 2.05])
def test_the_naive_map_overflows_in_float32(k):
    """Q(Φ(z)) as it is written down: 2Φ − 1 rounds to 1 near z = 5.2, which a batch of 2·10⁶
    normals reaches.
    """

    def naive(z):
        with jax.enable_x64(False):
            v = jax.scipy.special.erf(jnp.asarray(z, jnp.float32) / math.sqrt(2))  # 2Φ(z) − 1
            return np.asarray(v * (1 - jnp.abs(v) ** k) ** (-1 / k))

    assert np.isfinite(naive(np.linspace(-5, 5, 10_001))).all()
    beyond = np.linspace(5.6, 12, 1001)
    assert np.isinf(naive(beyond)).all()
    first = np.linspace(5, 5.6, 60_001)
    assert 5.1 < first[np.isinf(naive(first))].min() < 5.3
    assert np.isfinite(mapped(Algebraic(k), beyond)).all()
