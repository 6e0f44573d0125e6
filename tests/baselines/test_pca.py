"""PCA: eigenvectors of a covariance that is known exactly."""

import json

import numpy as np
import pytest

import localfields as lf
from localfields._spec import registered
from localfields.errors import InputError

PCA = lf.baselines.PCA
SITES = 12


def with_covariance(covariance, num=400, mean=0.0):
    """Samples whose mean and covariance are exactly these, to rounding."""
    x = np.random.default_rng(0).normal(size=(num, len(covariance)))
    x -= x.mean(axis=0)
    white = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    return white @ np.linalg.cholesky(covariance).T + mean


@pytest.fixture(scope="module")
def circulant():
    row = lf.stimuli.Kur((SITES,), xi=1, k=3).covariance()
    return np.array([np.roll(row, shift) for shift in range(SITES)])


def test_fields_on_a_ring_are_sinusoids(circulant):
    result = PCA(SITES).fit(with_covariance(circulant))
    wanted = np.sort(np.fft.fft(circulant[0]).real)[::-1]
    np.testing.assert_allclose(result.notes["variance"], wanted, rtol=1e-9)
    np.testing.assert_allclose(result.notes["share"], wanted / wanted.sum(), rtol=1e-9)
    np.testing.assert_allclose(result.fields @ result.fields.T, np.eye(SITES), atol=1e-12)
    # One frequency each: the power of the k-th field lies at the frequency of the k-th eigenvalue,
    # and nowhere else.
    power = np.abs(np.fft.rfft(result.fields, axis=1)) ** 2
    power /= power.sum(axis=1, keepdims=True)
    assert np.all(power.max(axis=1) > 1 - 1e-9)
    assert power.argmax(axis=1).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]


def test_responses_have_the_variances_told(circulant):
    x = with_covariance(
        circulant, mean=1000.0
    )  # a large mean costs no digits, in single precision either
    for samples, digits in ((x, 1e-6), (x.astype(np.float32), 2e-2)):
        result = PCA(5).fit(samples)
        outputs = x @ result.fields.T
        np.testing.assert_allclose(
            np.cov(outputs.T), np.diag(result.notes["variance"]), atol=digits
        )
        assert result.converged


def test_power_other_directions_have_less_variance(circulant):
    fields = PCA(3).fit(with_covariance(circulant)).fields
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(SITES, 3)))[0].T
    assert np.trace(fields @ circulant @ fields.T) > 1.2 * np.trace(turned @ circulant @ turned.T)


def test_is_found_by_name_and_reads_back():
    assert registered("baseline")["pca"] is PCA
    one = PCA(7)
    assert repr(lf.from_json(json.loads(json.dumps(one.to_json())))) == repr(one)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros((3, 8)), "at most 3"),
        (np.ones((50, 8)), "All samples are the same"),
        (np.outer(np.arange(50.0), np.ones(8)), "1 independent directions"),
        (np.full((50, 8), np.nan), "finite"),
    ],
)
def test_refuses_samples_that_cannot_be_fitted(samples, words):
    with pytest.raises(InputError, match=words):
        PCA(5).fit(samples)


def test_is_an_experiment_whose_notes_are_kept(tmp_path):
    task = lf.Discrimination(*(lf.stimuli.Kur((8,), xi=xi, k=3) for xi in (0.5, 1)))
    one = lf.Experiment(task, method=lf.Fit(PCA(3), samples=500))
    run = lf.run_or_load(one, tmp_path)
    assert run.weights.shape == (1, 1, 3, 8)
    again = lf.run_or_load(one, tmp_path)
    assert again.manifest["notes"] == run.manifest["notes"]
    assert len(again.manifest["notes"][0]["variance"]) == 3
