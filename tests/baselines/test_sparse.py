"""Sparse coding finds a dictionary that samples were made of."""

import numpy as np
import pytest

import localfields as lf
from localfields.errors import InputError

SparseCoding = lf.baselines.SparseCoding
ATOMS, SITES = 6, 10


@pytest.fixture(scope="module")
def made():
    """Samples of two atoms each, of heights from 1 to 2 and either sign, and the atoms, which
    are orthonormal.
    """
    generator = np.random.default_rng(0)
    atoms = np.linalg.qr(generator.normal(size=(SITES, ATOMS)))[0].T
    num = 1500
    codes = np.zeros((num, ATOMS))
    for row in codes:
        row[generator.choice(ATOMS, 2, replace=False)] = generator.uniform(
            1, 2, 2
        ) * generator.choice((-1, 1), 2)
    return atoms, codes @ atoms


METHOD = SparseCoding(ATOMS, penalty=0.5, steps=300, batch=50, tolerance=1e-6)


def overlap(fields, atoms):
    """|cosine| of every field with every atom."""
    return np.abs(fields / np.linalg.norm(fields, axis=1, keepdims=True) @ atoms.T)


@pytest.mark.parametrize("seed", [0, 1])
def test_finds_the_atoms_samples_were_made_of(made, seed):
    atoms, x = made
    result = METHOD.fit(x, seed=seed)
    cosine = overlap(result.fields, atoms)  # up to order and sign
    assert sorted(cosine.argmax(axis=1)) == list(range(ATOMS)) and cosine.max(axis=1).min() > 0.98
    assert np.linalg.norm(result.fields, axis=1).max() < 1 + 1e-9
    assert result.notes["active"] == pytest.approx(2 / ATOMS, abs=0.1)
    # Power: principal components of the same samples are other directions.
    assert overlap(lf.baselines.PCA(ATOMS).fit(x).fields, atoms).max(axis=1).min() < 0.9


def test_scale_and_mean_of_the_samples_do_not_matter(made):
    _, x = made
    method = METHOD.replace(steps=30)
    first, other = method.fit(x, seed=1), method.fit(1000 * x + 7, seed=1)
    np.testing.assert_allclose(other.fields, first.fields, atol=1e-6)
    assert first.notes["active"] == pytest.approx(other.notes["active"], abs=1e-3)


def test_seeds_and_convergence(made):
    _, x = made
    method = METHOD.replace(steps=30)
    first = method.fit(x, seed=1)
    np.testing.assert_array_equal(method.fit(x, seed=1).fields, first.fields)
    assert np.abs(method.fit(x, seed=2).fields - first.fields).max() > 1e-3
    assert not METHOD.replace(steps=1, batch=1500).fit(x).converged  # one step
    assert (
        first.iterations == 30 and method.replace(steps=31).fit(x).iterations == 60
    )  # whole passes


def test_more_fields_than_sites_are_legal(made):
    _, x = made
    assert SparseCoding(SITES + 3, steps=1).fit(x[:200]).fields.shape == (SITES + 3, SITES)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros((3, 8)), "at most 3"),
        (np.ones((50, 8)), "All samples are the same"),
        ([[1.0, np.inf]] * 9, "finite"),
    ],
)
def test_refuses_samples_that_cannot_be_fitted(samples, words):
    with pytest.raises(InputError, match=words):
        SparseCoding(5).fit(samples)
