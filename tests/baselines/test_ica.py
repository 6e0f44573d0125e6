"""FastICA finds sources that were mixed by hand, and fits go through experiments and the store
like everything else.
"""

import concurrent.futures
import json

import jax
import numpy as np
import pytest

import localfields as lf
from localfields._spec import registered
from localfields.errors import InputError
from localfields.experiments.fit import draw_mixture

FastICA = lf.baselines.FastICA


def sources(kind, num, count, seed=0):
    """Independent unit-variance sources: heavy tails (Laplace) or light ones (uniform)."""
    generator = np.random.default_rng(seed)
    if kind == "heavy":
        return generator.laplace(scale=np.sqrt(0.5), size=(num, count))
    return generator.uniform(-np.sqrt(3), np.sqrt(3), size=(num, count))


@pytest.mark.parametrize("kind", ["heavy", "light"])
def test_unmixes_sources_of_either_kurtosis(kind):
    mixing = np.random.default_rng(3).normal(size=(5, 5))
    s = sources(kind, 20_000, 5)
    result = FastICA(5).fit(s @ mixing.T, seed=1)
    assert result.converged and 0 < result.iterations <= 200
    # The fields act on samples: times the mixing they pick one source each, with unit variance, up
    # to order and sign.
    picked = np.abs(result.fields @ mixing)
    assert sorted(picked.argmax(axis=1)) == list(range(5))
    # Errors of ICA are of order 1/√num = 0.007 an entry; the columns of the mixing matrix would not
    # come near.
    np.testing.assert_allclose(np.sort(picked, axis=1)[:, -1], 1, atol=0.05)
    assert np.sort(picked, axis=1)[:, :-1].max() < 0.1
    assert (
        np.sort(np.abs(result.fields.T @ mixing), axis=1)[:, :-1].max() > 0.3
    )  # power: transposed it is no solution


def test_classes_of_a_mixture_are_drawn_independently():
    """Two classes of one law, in equal parts: drawn with one key, they would be the same
    samples.
    """
    task = lf.Discrimination(*[lf.stimuli.Gaussian((12,), xi=1.0)] * 2, labels="none")
    first, second = np.split(draw_mixture(task, jax.random.key(0), 4000), 2)
    products = (first * second).mean(axis=1)
    assert abs(products.mean()) < 5 * products.std() / np.sqrt(len(products))
    assert (first**2).mean() > 10 * products.std() / np.sqrt(len(products))  # of equal samples


def test_two_lengthscales_are_heavy_tails_to_it():
    """A mixture of two normal laws has no independent sources, but outputs of two variances, which
    ICA takes for some.

    Half of the samples with variance a and half with b have the excess kurtosis 3 ((a − b)/(a +
    b))², at most 3.
    """
    classes = [lf.stimuli.Gaussian((12,), xi=xi) for xi in (0.3, 2.0)]
    x = draw_mixture(lf.Discrimination(*classes), jax.random.key(0), 20_000).astype(np.float64)

    def kurtosis(y):
        return (y**4).mean(axis=0) / (y**2).mean(axis=0) ** 2 - 3

    y = x @ FastICA(12).fit(x).fields.T
    a, b = y[:10_000], y[10_000:]
    two_variances = 3 * ((a.var(axis=0) - b.var(axis=0)) / (a.var(axis=0) + b.var(axis=0))) ** 2
    # The kurtosis of 10 000 normal numbers is known to √(24/10 000), and counts twice where the
    # others are small.
    error = 5 * np.sqrt(24 / 10_000)
    np.testing.assert_allclose(kurtosis(y), two_variances, atol=2 * error)
    assert (
        np.abs(kurtosis(a)).max() < error and np.abs(kurtosis(b)).max() < error
    )  # within a class all is normal
    assert (
        np.sort(kurtosis(y))[-4:].min() > 2
    )  # a third of the outputs, and nothing but two variances
    alone = np.asarray(classes[1].sample(0, 20_000), np.float64)
    assert (
        np.abs(kurtosis(alone @ FastICA(12).fit(alone).fields.T)).max() < error
    )  # one class has nothing of it


def test_outputs_are_white():
    x = np.asarray(lf.stimuli.Kur((12,), xi=2, k=3).sample(0, 5000))
    fields = FastICA(6).fit(x).fields
    outputs = (x - x.mean(axis=0)) @ fields.T
    np.testing.assert_allclose(np.cov(outputs.T), np.eye(6), atol=1e-3)


@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
def test_a_fit_that_does_not_converge_says_so(algorithm):
    x = sources("heavy", 500, 4)
    assert not FastICA(4, algorithm, iterations=1, tolerance=1e-12).fit(x).converged


def test_fits_beside_each_other_keep_their_warnings_apart(recwarn):
    x = sources("heavy", 500, 4)
    hasty, patient = FastICA(4, iterations=1, tolerance=1e-12), FastICA(4)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        result = list(pool.map(lambda method: method.fit(x).converged, [hasty, patient] * 10))
    assert result == [False, True] * 10 and not recwarn


def test_is_found_by_name_and_reads_back():
    assert registered("baseline")["fast-ica"] is FastICA
    one = FastICA(7, contrast="cube")
    assert repr(lf.from_json(json.loads(json.dumps(one.to_json())))) == repr(one)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros((3, 8)), "at most 3"),
        (np.zeros((50, 4)), "at most 4"),
        (np.full((50, 8), np.nan), "finite"),
        (np.zeros(8), "2 axes"),
        ([["a", "b"]], "array of numbers"),
        (np.ones((50, 8)), "All samples are the same"),
    ],
)
def test_refuses_samples_that_cannot_be_fitted(samples, words):
    with pytest.raises(InputError, match=words):
        FastICA(5).fit(samples)


# -- as a method of an experiment ------------------------------------------------------------------


def task(proportions=()):
    return lf.Discrimination(
        *(lf.stimuli.Kur((8,), xi=xi, k=3) for xi in (0.5, 1)), proportions=proportions
    )


def test_a_fit_is_an_experiment(tmp_path):
    one = lf.Experiment(task(), method=lf.Fit(FastICA(3), samples=500, members=2))
    run = lf.run_or_load(one, tmp_path)
    assert run.weights.shape == (2, 1, 3, 8) and run.times.tolist() == [0.0]
    np.testing.assert_array_equal(run.final, run.weights[:, -1])
    assert [str(end) for end in run.outcome] == ["ok", "ok"]
    assert run.manifest["run_seconds"] > 0 and run.manifest["scikit-learn"]
    again = lf.run_or_load(lf.Experiment.of(one.canonical()), tmp_path)  # from the store
    np.testing.assert_array_equal(again.weights, run.weights)
    assert again.manifest == run.manifest
    # Members have their own samples, and seeds give them: member 0 is what it would be alone.
    assert np.abs(run.weights[0] - run.weights[1]).max() > 1e-3
    alone = lf.Experiment(task(), method=lf.Fit(FastICA(3), samples=500)).run()
    np.testing.assert_array_equal(alone.weights[0], run.weights[0])


def test_a_fit_that_does_not_converge_is_told():
    method = lf.Fit(FastICA(3, iterations=1, tolerance=1e-12), samples=200)
    assert str(lf.Experiment(task(), method=method).run().outcome[0]) == "not converged at step 1"


def test_classes_are_mixed_by_their_proportions(key):
    # Neighbors correlate more in the second class, so that the mean product tells how much of it
    # there is.
    for proportions in ((0.5, 0.5), (0.9, 0.1)):
        one = task(proportions)
        x = draw_mixture(one, key, 40_000)
        assert x.shape == (40_000, 8)
        short = (x[:, 1:] * x[:, :-1]).mean(axis=1)
        exact = sum(p * s.covariance()[1] for p, s in zip(one.priors, one.stimuli, strict=True))
        assert abs(short.mean() - exact) < 5 * short.std() / 200
        assert (
            abs(short.mean() - one.stimuli[1].covariance()[1]) > 5 * short.std() / 200
        )  # power: all of one class


def test_swept_stimuli_give_one_fit_a_value():
    swept = lf.Discrimination(
        *(lf.stimuli.Kur((8,), xi=xi, k=np.array([3.0, 30.0])) for xi in (0.5, 1))
    )
    assert lf.Experiment(swept, method=lf.Fit(FastICA(3), samples=300)).run().num_members == 2
    with pytest.raises(InputError, match="number of members"):
        lf.Experiment(swept, method=lf.Fit(FastICA(3), samples=300, members=3)).run()


def test_initial_fields_are_refused():
    with pytest.raises(InputError, match="initial"):
        lf.Experiment(
            task(), method=lf.Fit(FastICA(1), samples=300), initial=np.zeros((1, 8))
        ).run()
