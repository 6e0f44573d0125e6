"""The random keys: the cipher is Threefry, the keys are keys, and the numbers are random."""

import functools
import itertools

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import localfields as lf
from localfields import _prng, _registry
from localfields._prng import make_key, threefry
from localfields._types import working_dtype
from localfields.stimuli import _check
from localfields.training.estimators import draw_classes

SIGMAS = 5.0
WORDS = 2**20
FEWER = 2**18

# Salmon et al. (2011), file kat_vectors of Random123, threefry2x32 with 20 rounds: counter, key,
# result.
KNOWN_ANSWERS = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
)


@pytest.fixture
def ours(key):
    """A key of our kind, the test's own."""
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_prng.KEYS)


def words(*values):
    return tuple(jnp.asarray(value, jnp.uint32) for value in values)


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_cipher_gives_the_known_answers(counter, key, result):
    assert tuple(int(word) for word in threefry(*words(*key, *counter))) == result


def test_cipher_is_jax_s_own(key):
    inputs = jax.random.bits(key, (4, 1000), jnp.uint32)
    np.testing.assert_array_equal(threefry(*inputs), jax.extend.random.threefry2x32_p.bind(*inputs))


def test_seed_has_two_words():
    # Without x64, too, where `jax.random.key` would drop the upper word.
    for x64 in (True, False):
        with jax.enable_x64(x64):
            found = [
                tuple(jax.random.key_data(make_key(seed)).tolist())
                for seed in (0, 1, 2**32 + 1, 2**63 - 1)
            ]
        assert found == [(0, 0), (0, 1), (1, 1), (2**31 - 1, 2**32 - 1)]


def test_seed_of_jax_random_key_is_ours():
    for seed in (0, 1, 2**32 + 1, 2**63 - 1):
        assert jax.random.key(seed, impl=_prng.KEYS) == make_key(seed)


USES = {
    "normal": lambda key: jax.random.normal(key, (5, 3)),
    "normal float32": lambda key: jax.random.normal(key, (7,), jnp.float32),
    "uniform": lambda key: jax.random.uniform(key, (11,)),
    "bits 8": lambda key: jax.random.bits(key, (9,), jnp.uint8),
    "bits 16": lambda key: jax.random.bits(key, (9,), jnp.uint16),
    "bits 32": lambda key: jax.random.bits(key, (9,), jnp.uint32),
    "bits 64": lambda key: jax.random.bits(key, (9,), jnp.uint64),
    "one bit": lambda key: jax.random.bits(key, (), jnp.uint32),
    "no bits": lambda key: jax.random.bits(key, (0, 3), jnp.uint32),
    "randint": lambda key: jax.random.randint(key, (13,), -3, 1000),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 2))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 7)),
    "rademacher": lambda key: jax.random.rademacher(key, (15,)),
    "gamma": lambda key: jax.random.gamma(key, 2.5, (6,)),
    "permutation": lambda key: jax.random.permutation(key, 10),
}


def drawn_both_ways(use, ours, key):
    """By two keys of ours at once, and by the default key of the same words as the first; in one
    program.
    """
    draw = USES[use]
    both, default = jax.jit(lambda a, b: (jax.vmap(draw)(a), draw(b)))(
        jax.random.split(ours), jax.random.split(key)[0]
    )
    return np.asarray(both), np.asarray(default)


@pytest.mark.parametrize("use", USES)
def test_keys_serve_jax_random_as_the_default_ones_do(use, key, ours):
    """Bit for bit: what is known of the default generator holds here."""
    both, default = drawn_both_ways(use, ours, key)
    # The same bits; what arithmetic makes of them in a loop may be fused, and rounded, differently.
    exact, close = (
        np.testing.assert_array_equal,
        functools.partial(np.testing.assert_allclose, rtol=1e-5),
    )
    (close if use == "gamma" else exact)(both[0], default)
    assert default.size <= 1 or not np.array_equal(both[0], both[1])
    assert np.isfinite(both.astype(np.float64)).all()


def test_keys_are_the_default_ones_without_x64(key, ours):
    with jax.enable_x64(False):
        for use in ("bits 32", "normal float32"):
            both, default = drawn_both_ways(use, ours, key)
            np.testing.assert_array_equal(both[0], default)


@pytest.mark.parametrize("width", (32, 64))
def test_any_shape_has_its_own_words(width, ours):
    for shape in ((1,), (3, 5)):
        bits = np.asarray(jax.random.bits(ours, shape, f"uint{width}"))
        assert bits.shape == shape and bits.dtype == f"uint{width}"
        assert len(np.unique(bits)) == bits.size


def test_too_large_a_draw_is_refused(ours):
    with pytest.raises(ValueError, match="split the key"):
        jax.jit(lambda key: jax.random.bits(key, (2**16, 2**16), jnp.uint32)).lower(ours)


# -- quality ---------------------------------------------------------------------------------------


def normal_score(p):
    return scipy.stats.norm.isf(np.maximum(p, 1e-300) / 2)


def chi_square(counts):
    """Normal scores of Pearson's χ² against equal frequencies, over the last axis; too even is
    as bad as too uneven.
    """
    expected = counts.sum(axis=-1, keepdims=True) / counts.shape[-1]
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(axis=-1), counts.shape[-1] - 1
    return normal_score(
        2
        * np.minimum(
            scipy.stats.chi2.sf(statistic, freedom), scipy.stats.chi2.cdf(statistic, freedom)
        )
    )


def quality(bits):
    """Normal scores of the words under the null that they are independent and uniform, by test."""
    u = bits / 2.0**32 - 0.5
    parts = [(bits >> shift) & 0xFF for shift in (0, 8, 16, 24)]
    ones = [np.mean((bits >> shift) & 1) for shift in range(32)]
    changed = [np.mean(((bits[1:] ^ bits[:-1]) >> shift) & 1) for shift in range(32)]
    return {
        "bits": (np.array(ones) - 0.5) * 2 * np.sqrt(len(bits)),
        "change of bits": (np.array(changed) - 0.5) * 2 * np.sqrt(len(bits) - 1),
        "serial correlation": np.array(
            [
                12 * np.mean(u[lag:] * u[:-lag]) * np.sqrt(len(u) - lag)
                for lag in (1, 2, 3, 4, 8, len(u) // 2)
            ]
        ),
        "bytes": chi_square(np.array([np.bincount(part, minlength=256) for part in parts])),
        "pairs": chi_square(
            np.array(
                [np.bincount(256 * a[:-1] + b[1:], minlength=2**16) for a in parts for b in parts]
            )
        ),
    }


def faults(bits):
    worst = {name: np.abs(z).max() for name, z in quality(np.asarray(bits, np.int64)).items()}
    return {name: z for name, z in worst.items() if not z <= SIGMAS}


def test_words_are_uniform_and_independent(ours):
    assert not faults(jax.random.bits(ours, (WORDS,), jnp.uint32))


def test_words_of_thirteen_rounds_are_uniform_and_independent(ours):
    """The form the GPU kernel uses: both words of a block, thirteen rounds; three rounds are
    caught.
    """
    data, count = jax.random.key_data(ours), jnp.arange(WORDS // 2, dtype=jnp.uint32)
    for rounds, good in ((13, True), (3, False)):
        pair = threefry(data[0], data[1], count, jnp.zeros_like(count), rounds)
        assert (
            good
            == (not faults(jnp.concatenate(pair)))
            == (not faults(jnp.stack(pair, axis=1).ravel()))
        )


def test_words_across_keys_are_uniform_and_independent(ours):
    keys = jax.random.split(ours, FEWER // 16)
    assert not faults(jax.vmap(lambda key: jax.random.bits(key, (16,), jnp.uint32))(keys).ravel())
    folded = jax.vmap(lambda n: jax.random.bits(jax.random.fold_in(ours, n), (2,), jnp.uint32))
    assert not faults(folded(jnp.arange(FEWER // 2)).ravel())


def test_bad_generators_are_caught(ours):
    good = np.asarray(jax.random.bits(ours, (FEWER,), jnp.uint32))
    count = np.arange(FEWER, dtype=np.uint32)
    steps = itertools.accumulate(
        range(FEWER - 1), lambda word, _: (69069 * word + 1) % 2**32, initial=1
    )
    congruential = np.fromiter(steps, np.uint32, FEWER)
    assert "bits" in faults(
        np.where(count % 64 == 0, good | 1, good)
    )  # one bit is set once in 64 times more
    assert "serial correlation" in faults(
        np.where(count % 50 == 0, np.roll(good, 1), good)
    )  # one word in 50 repeats
    assert "change of bits" in faults(congruential)  # its lowest bit alternates
    assert "bytes" in faults(good - good % 2**24 // 2**16 % 2 * 2**16)  # one bit is always clear
    assert "pairs" in faults(
        np.where(count % 32 == 0, np.roll(good, 1) & 0xFF | good & 0xFFFFFF00, good)
    )
    assert faults(count) and faults(congruential)


def stream_scores(keys, num=4096):
    """Correlation of each pair of streams of normals, in standard errors, and of their neighbors
    in time.
    """
    streams = np.asarray(jax.vmap(lambda key: jax.random.normal(key, (num,)))(keys))
    off = ~np.eye(len(streams), dtype=bool)
    at_once = (streams @ streams.T)[off] / np.sqrt(num)
    next_to = (streams[:, 1:] @ streams[:, :-1].T).ravel() / np.sqrt(num - 1)
    return np.abs(np.concatenate([at_once, next_to])).max()


def test_streams_of_neighboring_keys_are_uncorrelated(ours):
    seeds = jax.vmap(lambda seed: jax.random.key(seed, impl=_prng.KEYS))(jnp.arange(48))
    folded = jax.vmap(lambda n: jax.random.fold_in(ours, n))(jnp.arange(48))
    split = jax.random.split(ours, 48)
    # As in JAX, the n-th key of a split is the key folded with n: one or the other is used of a
    # key, never both.
    family = jnp.concatenate([ours[None], folded[:4], jax.random.split(folded[0], 4)])
    for keys in (seeds, folded, split, family):
        assert stream_scores(keys) < SIGMAS
    assert stream_scores(jnp.concatenate([split, split[:1]])) > SIGMAS  # one stream twice


def test_one_bit_of_a_key_changes_half_of_what_follows(ours):
    data = np.asarray(jax.random.key_data(ours))
    flipped = np.stack(
        [data ^ np.array(pair, np.uint32) for n in range(32) for pair in ((1 << n, 0), (0, 1 << n))]
    )
    draw = jax.vmap(
        lambda key: jax.random.bits(
            jax.random.wrap_key_data(key, impl=_prng.KEYS), (4096,), jnp.uint32
        )
    )
    change = np.asarray(draw(flipped)) ^ np.asarray(draw(data[None]))
    fractions = np.bitwise_count(change).mean(axis=1) / 32
    assert np.abs(fractions - 0.5).max() * 2 * np.sqrt(32 * 4096) < SIGMAS


LAWS = {
    "normal float64": (lambda key: jax.random.normal(key, (WORDS,)), "norm", ()),
    "normal float32": (lambda key: jax.random.normal(key, (WORDS,), jnp.float32), "norm", ()),
    "uniform float64": (lambda key: jax.random.uniform(key, (WORDS,)), "uniform", ()),
    "uniform float32": (lambda key: jax.random.uniform(key, (WORDS,), jnp.float32), "uniform", ()),
    "gamma": (lambda key: jax.random.gamma(key, 2.5, (2**14,)), "gamma", (2.5,)),
}


@pytest.mark.parametrize("name", LAWS)
def test_numbers_follow_their_law(name, ours):
    draw, law, parameters = LAWS[name]
    drawn = np.asarray(draw(ours), np.float64)
    assert normal_score(scipy.stats.kstest(drawn, law, parameters).pvalue) < SIGMAS
    # Power: 5 % too wide.
    assert normal_score(scipy.stats.kstest(1.05 * drawn, law, parameters).pvalue) > SIGMAS


# -- all of jax.random in a stimulus ---------------------------------------------------------------

NUM, SITES = 3, 8
SHAPE = (NUM, SITES)
RANDOM = {
    "ball": lambda key: jax.random.ball(key, SITES, shape=(NUM,)),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, SHAPE),
    "beta": lambda key: jax.random.beta(key, 1.0, 2.0, SHAPE),
    "binomial": lambda key: jax.random.binomial(key, 10, 0.3, SHAPE),
    "bits": lambda key: jax.random.bits(key, SHAPE),
    "categorical": lambda key: jax.random.categorical(key, jnp.zeros(4), shape=SHAPE),
    "cauchy": lambda key: jax.random.cauchy(key, SHAPE),
    "chisquare": lambda key: jax.random.chisquare(key, 3.0, shape=SHAPE),
    "choice": lambda key: jax.random.choice(key, 10, SHAPE),
    "clone": lambda key: jax.random.normal(jax.random.clone(key), SHAPE),
    "dirichlet": lambda key: jax.random.dirichlet(key, jnp.ones(SITES), (NUM,)),
    "double_sided_maxwell": lambda key: jax.random.double_sided_maxwell(key, 0.0, 1.0, SHAPE),
    "exponential": lambda key: jax.random.exponential(key, SHAPE),
    "f": lambda key: jax.random.f(key, 3.0, 4.0, SHAPE),
    "fold_in": lambda key: jax.random.normal(jax.random.fold_in(key, 1), SHAPE),
    "gamma": lambda key: jax.random.gamma(key, 2.0, SHAPE),
    "generalized_normal": lambda key: jax.random.generalized_normal(key, 2.0, SHAPE),
    "geometric": lambda key: jax.random.geometric(key, 0.5, SHAPE),
    "gumbel": lambda key: jax.random.gumbel(key, SHAPE),
    "key_data": lambda key: jnp.full(SHAPE, jax.random.key_data(key)[1]),
    "key_impl": lambda key: jax.random.normal(
        jax.random.wrap_key_data(jax.random.key_data(key), impl=jax.random.key_impl(key)), SHAPE
    ),
    "laplace": lambda key: jax.random.laplace(key, SHAPE),
    "loggamma": lambda key: jax.random.loggamma(key, 2.0, SHAPE),
    "logistic": lambda key: jax.random.logistic(key, SHAPE),
    "lognormal": lambda key: jax.random.lognormal(key, 1.0, SHAPE),
    "maxwell": lambda key: jax.random.maxwell(key, SHAPE),
    "multinomial": lambda key: jax.random.multinomial(
        key, 5, jnp.full(SITES, 1 / SITES), shape=SHAPE
    ),
    "multivariate_normal": lambda key: jax.random.multivariate_normal(
        key, jnp.zeros(SITES), jnp.eye(SITES), (NUM,)
    ),
    "normal": lambda key: jax.random.normal(key, SHAPE),
    "orthogonal": lambda key: jax.random.orthogonal(key, SITES)[:NUM],
    "pareto": lambda key: jax.random.pareto(key, 2.0, SHAPE),
    "permutation": lambda key: jax.random.permutation(key, jnp.ones(SHAPE), axis=1),
    "poisson": lambda key: jax.random.poisson(key, 3.0, SHAPE),
    "rademacher": lambda key: jax.random.rademacher(key, SHAPE),
    "randint": lambda key: jax.random.randint(key, SHAPE, 0, 9),
    "rayleigh": lambda key: jax.random.rayleigh(key, 1.0, SHAPE),
    "split": lambda key: jax.random.normal(jax.random.split(key)[0], SHAPE),
    "t": lambda key: jax.random.t(key, 3.0, SHAPE),
    "triangular": lambda key: jax.random.triangular(key, 0.0, 0.5, 1.0, SHAPE),
    "truncated_normal": lambda key: jax.random.truncated_normal(key, -1.0, 1.0, SHAPE),
    "uniform": lambda key: jax.random.uniform(key, SHAPE),
    "wald": lambda key: jax.random.wald(key, 1.0, SHAPE),
    "weibull_min": lambda key: jax.random.weibull_min(key, 1.0, 2.0, SHAPE),
    "wrap_key_data": lambda key: jax.random.normal(
        jax.random.wrap_key_data(jax.random.key_data(key)), SHAPE
    ),
}
TAKE_NO_KEY = {"PRNGKey", "key", "key_dtype", "random_gamma_p"}


@pytest.fixture
def stimulus_of(monkeypatch):
    """Makes a stimulus whose samples are what a function of a key returns."""
    classes = {family: dict(known) for family, known in _registry.CLASSES.items()}
    monkeypatch.setattr(_registry, "CLASSES", classes)

    class Given(lf.stimuli.Gaussian):
        def draw(self, key, num):
            return self.drawn(key).astype(working_dtype())

    # What is drawn is not what the class declares, which is not the question here.
    monkeypatch.setattr(_check, "_FIT", {(Given, (SITES,))})

    def make(function):
        monkeypatch.setattr(Given, "drawn", lambda self, key: function(key), raising=False)
        return Given(SITES, xi=0.5)

    return make


def test_the_table_has_all_of_jax_random():
    public = {name for name in dir(jax.random) if callable(getattr(jax.random, name))}
    assert {name for name in public if not name.startswith("_")} - TAKE_NO_KEY <= set(RANDOM)


@pytest.mark.parametrize("name", RANDOM)
def test_every_function_of_jax_random_works_in_draw(name, stimulus_of):
    stimulus = stimulus_of(RANDOM[name])
    assert jax.eval_shape(lambda key: stimulus.sample(key, NUM), make_key(0)).shape == SHAPE
    task = lf.Discrimination(stimulus, lf.stimuli.Gaussian(SITES, xi=0.5, scale=2.0))
    jax.eval_shape(lambda key: draw_classes(task, key, (NUM, NUM)), make_key(0))


def test_poisson_draws_what_it_draws_from_jax_s_own_key(stimulus_of):
    stimulus = stimulus_of(RANDOM["poisson"])
    expected = np.asarray(jax.random.poisson(jax.random.key(5), 3.0, SHAPE))
    np.testing.assert_array_equal(stimulus.sample(5, NUM), expected)


def test_not_implemented_in_draw_is_told_as_such(stimulus_of):
    def draw(key):
        raise NotImplementedError("later")

    with pytest.raises(NotImplementedError, match="later"):
        stimulus_of(draw).sample(0, NUM)
