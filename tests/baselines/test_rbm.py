"""A Boltzmann machine learns patterns that are there, and becomes likelier to have made what it
saw.
"""

import itertools

import numpy as np
import pytest

import localfields as lf
from localfields.baselines.rbm import free_energy, pseudo_likelihood
from localfields.errors import InputError

RBM = lf.baselines.RBM


def patterns(num, seed=0):
    """±1 on ten sites: the first five agree, and so do the others, whatever the first do; one
    site in 20 is wrong.
    """
    generator = np.random.default_rng(seed)
    signs = generator.choice((-1.0, 1.0), (num, 2)).repeat(5, axis=1)
    return signs * generator.choice((1.0, -1.0), (num, 10), p=(0.95, 0.05))


def test_hidden_units_find_the_two_blocks():
    result = RBM(2, steps=4000, batch=20).fit(patterns(2000), seed=1)
    share = np.stack(
        [np.abs(result.fields[:, half]).sum(axis=1) for half in (slice(5), slice(5, 10))], axis=1
    )
    share /= share.sum(axis=1, keepdims=True)
    assert (
        sorted(share.argmax(axis=1)) == [0, 1] and share.max(axis=1).min() > 0.8
    )  # one block each
    for row, half in zip(result.fields, share.argmax(axis=1), strict=True):
        own = row[5 * half : 5 * half + 5]
        assert np.abs(np.sign(own).sum()) == 5  # all sites of the block by one sign


def test_it_becomes_likelier():
    x = patterns(1000)
    values = [
        RBM(4, steps=steps, batch=20).fit(x, seed=1).notes["pseudo_likelihood"]
        for steps in (50, 500, 2000)
    ]
    assert values[0] < values[1] < values[2] < 0
    # A machine that knows nothing gives ten sites log ½ each; knowing the block, log 0.95 or so.
    assert values[0] < 9 * np.log(0.5) and values[2] > 10 * np.log(0.5) / 2


def test_signs_become_zero_and_one_and_tails_are_clipped():
    x = patterns(500)
    method = RBM(3, steps=15)
    low, high = method.limits(x)
    assert set(np.clip((x - low) / (high - low), 0, 1).ravel()) == {0.0, 1.0}
    notes = method.fit(x).notes
    assert (notes["low"], notes["high"]) == (low, high)
    # The line is drawn before learning: 0/1, ±1 and other two values are one problem, and fields go
    # with 1/width.
    np.testing.assert_allclose(method.fit(10 * x + 3).fields, method.fit(x).fields / 10, atol=1e-12)
    tails = np.random.default_rng(0).standard_t(3, (500, 4))
    assert RBM(clip=2).limits(tails) == pytest.approx(
        (tails.mean() - 2 * tails.std(), tails.mean() + 2 * tails.std())
    )
    flat = np.linspace(0, 1, 100)[:, None]
    assert RBM(clip=9).limits(flat) == (0.0, 1.0)  # nothing to cut


def test_free_energy_is_that_of_all_states_summed():
    generator = np.random.default_rng(0)
    weights, visible, hidden = (
        generator.normal(size=(3, 4)),
        generator.normal(size=4),
        generator.normal(size=3),
    )
    states = np.array(list(itertools.product((0, 1), repeat=4)), float)
    units = np.array(list(itertools.product((0, 1), repeat=3)), float)
    weight = np.exp(
        states @ visible[:, None] + states @ weights.T @ units.T + (units @ hidden)[None]
    ).sum(axis=1)
    np.testing.assert_allclose(
        free_energy(weights, visible, hidden, states), -np.log(weight), rtol=1e-12
    )
    chance = weight / weight.sum()
    wanted = 0.0  # of the last state: each site given the others, by enumeration
    for site in range(4):
        flipped = states[-1].copy()
        flipped[site] = 1 - flipped[site]
        other = chance[(states == flipped).all(axis=1)][0]
        wanted += np.log(chance[-1] / (chance[-1] + other))
    assert pseudo_likelihood(weights, visible, hidden, states[-1:]) == pytest.approx(
        wanted, rel=1e-12
    )


def test_seeds():
    x, method = patterns(300), RBM(3, steps=6)
    np.testing.assert_array_equal(method.fit(x, seed=5).fields, method.fit(x, seed=5).fields)
    assert np.abs(method.fit(x, seed=5).fields - method.fit(x, seed=6).fields).max() > 1e-4


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
        RBM(5).fit(samples)
