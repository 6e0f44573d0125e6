"""The autoencoder: linear, it spans principal components; its gradient is that of its loss;
seeds tell all.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.baselines.autoencoder import ACTIVATIONS, Weights
from localfields.errors import InputError

Autoencoder = lf.baselines.Autoencoder


@pytest.fixture(scope="module")
def x():
    """Six sites with variances from 9 to ¼ along axes turned at random."""
    generator = np.random.default_rng(0)
    axes = np.linalg.qr(generator.normal(size=(6, 6)))[0]
    return generator.normal(size=(800, 6)) * np.array([3, 2.5, 2, 0.7, 0.6, 0.5]) @ axes + 5


def test_linear_it_spans_the_leading_principal_components(x):
    result = Autoencoder(3, activation="linear", steps=3000, batch=100, learning_rate=0.01).fit(
        x, seed=1
    )
    exact = lf.baselines.PCA(3).fit(x)
    scale = (x - x.mean(axis=0)).std()
    # Tied weights of the least error are an orthonormal basis of that space, turned in any way.
    own = result.fields * scale
    np.testing.assert_allclose(own @ own.T, np.eye(3), atol=0.02)
    inside = np.linalg.norm(own @ exact.fields.T, axis=1) / np.linalg.norm(own, axis=1)
    assert inside.min() > 0.999
    assert result.notes["residual"] == pytest.approx(1 - sum(exact.notes["share"]), rel=0.01)
    # Power: two components of the three, or the three that come next, leave more than that.
    assert 1 - sum(lf.baselines.PCA(2).fit(x).notes["share"]) > 1.5 * result.notes["residual"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradient_is_that_of_the_loss_by_hand(activation, x):
    by_hand = {
        "linear": lambda h: h,
        "relu": lambda h: np.maximum(h, 0),
        "sigmoid": lambda h: 1 / (1 + np.exp(-h)),
        "tanh": np.tanh,
    }[activation]
    method = Autoencoder(4, activation=activation, sparsity=0.3)
    generator = np.random.default_rng(1)
    sizes = [(4, 6), (4,), (6,)]
    parts = np.split(generator.normal(size=34), np.cumsum([np.prod(size) for size in sizes])[:-1])
    some = (x[:20] - 5) / 2

    def loss(flat):
        fields, biases, offset = (
            part.reshape(size)
            for part, size in zip(
                np.split(flat, np.cumsum([np.prod(s) for s in sizes])[:-1]), sizes, strict=True
            )
        )
        y = by_hand(some @ fields.T + biases)
        return np.mean(
            ((some - y @ fields - offset) ** 2).sum(axis=1) / 2 + 0.3 * np.abs(y).sum(axis=1)
        )

    flat = np.concatenate(parts)
    weights = Weights(
        *(jnp.asarray(part.reshape(size)) for part, size in zip(parts, sizes, strict=True))
    )
    value, gradient = jax.value_and_grad(method.loss)(weights, jnp.asarray(some))
    assert float(value) == pytest.approx(loss(flat), rel=1e-12)
    step = 1e-6
    wanted = [
        (loss(flat + step * axis) - loss(flat - step * axis)) / (2 * step)
        for axis in np.eye(len(flat))
    ]
    np.testing.assert_allclose(
        np.concatenate([np.ravel(part) for part in gradient]), wanted, rtol=1e-5, atol=1e-6
    )


def test_a_price_makes_activity_rare(x):
    free, priced = (Autoencoder(3, sparsity=price, steps=300).fit(x).notes for price in (0.0, 2.0))
    assert priced["residual"] > free["residual"] and priced["loss"] > free["loss"]


def test_seeds_scale_and_precision(x):
    method = Autoencoder(3, steps=300)
    first = method.fit(x, seed=1)
    np.testing.assert_array_equal(method.fit(x, seed=1).fields, first.fields)
    assert np.abs(method.fit(x, seed=2).fields - first.fields).max() > 1e-2
    np.testing.assert_allclose(method.fit(100 * x, seed=1).fields, first.fields / 100, rtol=1e-6)
    assert method.fit(x.astype(np.float32), seed=1).fields.dtype == np.float64


def test_more_fields_than_sites_are_legal(x):
    assert Autoencoder(9, steps=2).fit(x).fields.shape == (9, 6)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros((3, 8)), "at most 3"),
        (np.ones((50, 8)), "All samples are the same"),
        (np.zeros(8), "2 axes"),
    ],
)
def test_refuses_samples_that_cannot_be_fitted(samples, words):
    with pytest.raises(InputError, match=words):
        Autoencoder(5).fit(samples)
