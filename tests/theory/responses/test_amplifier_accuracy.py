"""How exact amplifiers are: adaptive quadrature, tables, samples, Monte Carlo."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from localfields.errors import InputError
from localfields.marginals import (
    Algebraic,
    Empirical,
    ErfNormal,
    Normal,
    TwoPoint,
    Uniform,
)
from localfields.theory.responses.amplifier import SLOPE, Amplifier, AmplifierTable

from .amplified import ATOMS, EIGHT, GAINS, LAWS, TAILS, A, direct, named, ratio

# -- §2.4: accuracy --------------------------------------------------------------------------------


def adaptive(law, a):
    """φ by adaptive quadrature of the law's density (or latent normal's) in ln x, for all a at
    once.
    """
    match law:
        case Normal() | ErfNormal():
            gain = getattr(law, "gain", None)

            def split(z):
                return (z if gain is None else scipy.special.erf(gain * z)), math.sqrt(
                    2 / math.pi
                ) * np.exp(-(z**2) / 2)

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
    value, _ = scipy.integrate.quad_vec(
        integrand, *ends, epsabs=1e-14, epsrel=1e-14, norm="max", points=breaks
    )
    return value


CHECKED = {
    named(law): law for law in (Normal(), Uniform(), *map(ErfNormal, GAINS), *map(Algebraic, TAILS))
}


@functools.cache
def reference(name):
    return adaptive(CHECKED[name], A)


@pytest.mark.parametrize("law", CHECKED.values(), ids=CHECKED)
def test_accuracy_against_adaptive_quadrature(law):
    np.testing.assert_allclose(Amplifier(law)(A), reference(named(law)), rtol=0, atol=1e-12)


# -- the table -------------------------------------------------------------------------------------

BETA = np.concatenate(
    [np.exp(np.linspace(-40, 40, 1601)), 1e3 ** np.random.default_rng(2).uniform(-1, 1, 400)]
)


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


# -- samples ---------------------------------------------------------------------------------------


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
    """The scatter of φ over 1500 samples of 1000 against `error`; without its terms for σ and
    the mean it fails.
    """
    # At smaller a the error is that of the sample kurtosis, whose law is far from normal at this
    # size.
    rng, a, repeats, num = np.random.default_rng(3), np.array([0.3, 0.6, 0.95, 1.0]), 1500, 1000
    draws = getattr(rng, name)(size=(repeats, num))
    x = scipy.stats.zscore(draws, axis=1)
    ratios = np.append(ratio(a[:-1]), 1e6)
    values = np.stack(
        [np.mean(x * scipy.special.erf(x * b / math.sqrt(2)), axis=1) for b in ratios], axis=1
    )
    np.testing.assert_allclose(values[0], Amplifier.of_samples(draws[0])(a), rtol=1e-6)
    scatter = values.std(axis=0)
    stated = Amplifier.of_samples(getattr(rng, name)(size=300 * num)).error(a) * math.sqrt(300)
    margin = 5 * np.sqrt((scipy.stats.kurtosis(values, fisher=False) - 1) / (4 * repeats))
    assert np.all(np.abs(scatter / stated - 1) < margin)

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
    np.testing.assert_allclose(
        once.error([0.3, 1.0]), math.sqrt(2) * twice.error([0.3, 1.0]), rtol=1e-10
    )
    np.testing.assert_allclose(once.error([0.3, 1.0]), ignored.error([0.3, 1.0]), rtol=1e-10)
    assert once.error(np.zeros((2, 3))).shape == (2, 3)


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Amplifier("uniform"), "must be a marginal, got 'uniform'. For"),
        (
            lambda: Amplifier(Algebraic([3.0, 4.0])),
            "`k` of the marginal must be one number, got 2 values",
        ),
        (
            lambda: Amplifier(Uniform())(1.01),
            "A correlation must be between −1 and 1, got 1.01. It is",
        ),
        (lambda: Amplifier(Uniform())([0.1, -3]), "got -3.0"),
        (lambda: Amplifier(Uniform())(math.nan), "must be a number, got nan"),
        (lambda: Amplifier(Uniform())("0.5"), "must be a number, got '0.5'"),
        (lambda: Amplifier(Uniform())([[0.1], [0.2, 0.3]]), "must be a number"),
        (lambda: Amplifier(Uniform()).of_ratio(1j), "A ratio must be a number"),
        (
            lambda: Amplifier(Uniform()).derivative(1.0),
            "strictly between −1 and 1 only, got a correlation of ±1. Go near",
        ),
        (
            lambda: Amplifier(Uniform()).derivative(0.5, 4),
            "`order` must be at most 3, got 4",
        ),
        (lambda: Amplifier(Uniform()).taylor(2), "must be odd, got 2"),
        (lambda: Amplifier(Uniform()).taylor(0), "`order` must be at least 1, got 0"),
        (
            lambda: Amplifier(Uniform()).error(0.5),
            "Only an Empirical marginal has a standard error, got Uniform",
        ),
        (lambda: Amplifier.of_samples([[1.0], [1.0, 2.0]]), "`samples` must be a number"),
        (lambda: Amplifier.of_samples([]), "`samples` must be a non-empty array"),
        (lambda: Amplifier.of_samples([1.0, 1.0]), "only one value"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(InputError) as info:
        call()
    assert message in str(info.value)


def test_a_rounded_correlation_is_taken_as_one():
    assert Amplifier(TwoPoint())(1 + 4e-16) == 1
