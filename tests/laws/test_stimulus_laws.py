"""Every registered stimulus, on an even ring, an odd ring and a torus, against what it declares
of itself.
"""

import json
import zlib

import jax
import numpy as np
import pytest

import localfields as lf
from laws import statistics
from laws.statistics import broken, covariance_matrix, declared, drawn, seed_of
from localfields import stimuli
from localfields._spec import Nested, Number, fields, registered

SHAPES = ((12,), (9,), (4, 6))


def random_covariance(size):
    factor = np.random.default_rng(zlib.crc32(b"covariance")).normal(size=(size, 2 * size))
    return factor @ factor.T / (2 * size)


def rows_of_one_law(size):
    """Few samples whose sites have one law, exponential, but no symmetry: ranks of a Gaussian of
    any covariance.
    """
    generator = np.random.default_rng(zlib.crc32(b"rows"))
    latent = generator.multivariate_normal(np.zeros(size), random_covariance(size), 400)
    ranks = latent.argsort(axis=0).argsort(axis=0)
    return -np.log1p(-(ranks + 0.5) / 400)


def examples(cls, shape):
    """The arguments beside the shape, for each example of a class, by name.

    A new class needs no entry here: it is taken at its defaults, with a short lengthscale if it has
    one.
    """
    size, first = int(np.prod(shape)), shape == SHAPES[0]
    if cls is stimuli.Samples:
        both = {"data": rows_of_one_law(size) + 0.1, "symmetry": "shifts-and-signs"}
        return {"plain": {"data": rows_of_one_law(size)}, "symmetric": both}
    if cls is stimuli.ImagePatches:
        return {"shifted": {"patches": 300, "blur": 1.0, "symmetry": "shifts"}}
    if cls is stimuli.DeadLeaves:
        return {
            "plain": {"smallest": 0.8, "ratio": 1.4, "leaves": 20},
            "binary": {"smallest": 0.8, "ratio": 3.75, "leaves": 9, "gray": "two-point"},
        }
    if cls is stimuli.SinglePulse:
        return {
            coding: {"shortest": 2, "longest": 3, "coding": coding}
            for coding in ("signs", "zero-one")
        }
    if cls is stimuli.BlockPulse:
        length = 3 if shape == (9,) else 2
        return {coding: {"length": length, "coding": coding} for coding in ("signs", "zero-one")}
    if cls is stimuli.DenseGaussian:
        matrix = random_covariance(size)
        spread = np.sqrt(np.diag(matrix))
        return {"plain": {"matrix": matrix}, "unit": {"matrix": matrix / np.outer(spread, spread)}}
    more = {
        stimuli.Gaussian: {"moved": {"scale": 2.0, "offset": 1.0}},
        stimuli.NLGP: {"sharp": {"gain": 100.0}},
        stimuli.Kur: {"heavy": {"k": 3.0}},
        stimuli.StudentT: {"heavy": {"nu": 3.0}},
        stimuli.Copula: {
            "skewed": {"marginal_law": lambda u: -np.log1p(-u)},
            "mixture": {"marginal_law": lf.marginals.NormalMixture(0.8)},
            "samples": {"marginal_law": lf.marginals.Empirical([-1.0, 0.0, 3.0], [0.5, 0.3, 0.2])},
        },
    }
    short = {}
    if "xi" in {field.name for field in fields(cls)}:
        short = {"xi": 0.8} if len(shape) == 1 else {"xi": 0.8, "kernel": "periodized"}
    extra = more.get(cls, {}) if first else {}
    return {"plain": short} | {name: short | arguments for name, arguments in extra.items()}


CLASSES = tuple(registered("stimulus").values())
ALL, REFUSED = {}, []
for cls in CLASSES:
    for shape in SHAPES:
        for name, arguments in examples(cls, shape).items():
            try:
                ALL[f"{cls.__name__}-{name}-{'x'.join(map(str, shape))}"] = cls(
                    shape=shape, **arguments
                )
            except lf.InputError:
                REFUSED.append((cls, shape))


def perturbed(stimulus):
    """The stimulus with each of its numbers 5 % larger, a zero 0.05, by the number's name."""

    def larger(value):
        return 1.05 * value if value else 0.05

    for field in fields(type(stimulus)):
        value = getattr(stimulus, field.name)
        if isinstance(field.kind, Number):
            yield field.name, stimulus.replace(**{field.name: larger(value)})
        if isinstance(field.kind, Nested):
            for inner in fields(type(value)):
                if isinstance(inner.kind, Number):
                    changed = value.replace(**{inner.name: larger(getattr(value, inner.name))})
                    yield f"{field.name}.{inner.name}", stimulus.replace(**{field.name: changed})


# Where a number 5 % larger is no other law, or one that no test of this size can tell.
CANNOT_MATTER = {
    ("Copula-plain-12", "marginal_law.scale"): "a copula standardizes its marginal",
    ("Copula-mixture-12", "marginal_law.scale"): "the same",
    ("DeadLeaves-plain-12", "gray.scale"): "grays are standardized, too",
    ("DeadLeaves-binary-12", "gray.scale"): "the same",
    (
        "NLGP-sharp-12",
        "gain",
    ): "at g = 100 it moves one value in 5000: no more than the error at this size",
}
NUMBERS = {
    (name, field): other
    for name, stimulus in ALL.items()
    if stimulus.shape == SHAPES[0]
    for field, other in perturbed(stimulus)
}


# An odd ring and a torus differ from an even ring in their transform. One class per way of sampling
# shows that in the fast tier; every class is tested on the even ring there.
SAMPLERS = {
    stimuli.Gaussian,
    stimuli.Ising,
    stimuli.SinglePulse,
    stimuli.BlockPulse,
    stimuli.Samples,
    stimuli.ImagePatches,
}


def slow_if_like_others(name):
    fast = ALL[name].shape == SHAPES[0] or type(ALL[name]) in SAMPLERS
    return name if fast else pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=[slow_if_like_others(name) for name in ALL])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def stimulus(name):
    return ALL[name]


@pytest.fixture(scope="module")
def samples(name, stimulus):
    return drawn(stimulus, name, chunks=4 if stimulus.shape == SHAPES[0] else 2)


@pytest.fixture(scope="module")
def clone_samples(name, stimulus):
    return drawn(stimulus.gaussian_clone(), name, "clone", chunks=1)


def test_every_class_has_examples_and_few_refuse_a_lattice():
    assert {type(stimulus) for stimulus in ALL.values()} == set(CLASSES)
    assert REFUSED == [
        (stimuli.ImagePatches, (12,)),
        (stimuli.ImagePatches, (9,)),
        (stimuli.Ising, (4, 6)),
    ]


def test_samples_follow_the_declared_statistics(name, stimulus, samples):
    assert broken(declared(stimulus), stimulus, samples) == {}, seed_of(name, "0")


def test_symmetries_hold_where_declared_and_only_there(name, stimulus, samples):
    samples = samples[:100_000]
    laws = {"shift": statistics.shift_invariance, "sign": statistics.sign_invariance}
    held = {"shift": stimulus.translation_invariant, "sign": stimulus.sign_symmetric}
    violated = broken(laws, stimulus, samples)
    assert {law: law not in violated for law in laws} == held, (violated, seed_of(name, "0"))


def test_wrong_samples_are_noticed(stimulus, samples):
    samples = samples[:100_000]  # each of these is far from any threshold

    if stimulus.translation_invariant:
        one_site = samples.copy()
        one_site[:, 3] *= 1.05
        assert broken({"shift": statistics.shift_invariance}, stimulus, one_site)
    if stimulus.sign_symmetric:
        leaning = samples + 0.05 * np.abs(samples)
        assert broken({"sign": statistics.sign_invariance}, stimulus, leaning)

    alternating = samples * (1 - 2 * (np.arange(stimulus.size) % 2)).astype(np.float32)
    laws = declared(stimulus)
    second_order = {name: laws[name] for name in ("covariance", "sign correlation") if name in laws}
    assert set(broken(second_order, stimulus, alternating)) == set(second_order) != set()

    twice = np.repeat(samples[::2], 2, axis=0)
    assert broken({"independence": statistics.independence}, stimulus, twice)


def test_exceptions_are_needed():
    assert set(CANNOT_MATTER) <= set(NUMBERS)


@pytest.mark.parametrize("which, field", sorted(set(NUMBERS) - set(CANNOT_MATTER)))
def test_a_number_five_percent_larger_is_noticed(which, field):
    stimulus, wrong = ALL[which], drawn(NUMBERS[which, field], which, field, chunks=4)
    assert any(broken({law: test}, stimulus, wrong) for law, test in declared(stimulus).items())


def test_clone_has_the_same_mean_and_covariance(name, stimulus, clone_samples):
    clone = stimulus.gaussian_clone()
    assert abs(clone.mean() - stimulus.mean()) < 1e-9
    assert np.abs(covariance_matrix(clone) - covariance_matrix(stimulus)).max() < 1e-9
    assert clone.elliptical
    laws = declared(clone)
    if stimulus.translation_invariant:
        laws["shift"] = statistics.shift_invariance
    if stimulus.mean() == 0:
        laws["sign"] = statistics.sign_invariance
    assert broken(laws, clone, clone_samples) == {}, seed_of(name, "clone", "0")


def test_clone_has_a_normal_marginal(stimulus, clone_samples):
    law = stimulus.marginal()
    if isinstance(law, lf.marginals.Normal):
        assert repr(stimulus.gaussian_clone().marginal().standardized()) == repr(law.standardized())
    elif law is not None:
        assert broken({"marginal": statistics.marginal}, stimulus, clone_samples)
    else:
        assert np.ptp(np.diag(covariance_matrix(stimulus))) > 1e-3


def test_json_round_trip(name, stimulus, samples):
    again = lf.from_json(json.loads(json.dumps(stimulus.to_json())))
    assert type(again) is type(stimulus)
    assert repr(again) == repr(stimulus)
    before, after = jax.tree.leaves(stimulus), jax.tree.leaves(again)
    assert jax.tree.structure(again) == jax.tree.structure(stimulus)
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    np.testing.assert_array_equal(drawn(again, name, chunks=1), samples[: statistics.CHUNK])


def test_shape_dtype_and_key(name, stimulus, samples):
    wide = jax.eval_shape(lambda key: stimulus.sample(key, 5), jax.random.key(0))
    assert (wide.shape, wide.dtype) == (
        (5, stimulus.size),
        np.float64,
    )  # x64 is on here; where it is off:
    assert samples.dtype == np.float32
    np.testing.assert_array_equal(drawn(stimulus, name, chunks=1), samples[: statistics.CHUNK])
    assert not np.array_equal(
        samples[: statistics.CHUNK], samples[statistics.CHUNK : 2 * statistics.CHUNK]
    )
    assert np.isfinite(samples).all()
