"""Dead leaves: covariance against enumeration, scale invariance. Samples against it are in
laws/.
"""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf


def coverage_by_hand(stimulus):
    """Chance that a leaf covers both of two sites, from a fine grid of radii and every center."""
    axes = len(stimulus.shape)
    low, high = stimulus.smallest**-axes, stimulus.largest**-axes
    u = (np.arange(4000) + 0.5) / 4000
    radii = (high + (low - high) * u) ** (-1 / axes)
    far = lf.lattice.distance(stimulus.shape)
    total = np.zeros(stimulus.shape)
    for center in itertools.product(*map(range, stimulus.shape)):
        from_center = np.roll(far, center, tuple(range(axes)))
        origin = from_center.flat[0]
        total += (
            (radii[:, None] >= np.maximum(from_center.ravel(), origin))
            .mean(axis=0)
            .reshape(stimulus.shape)
        )
    return total / stimulus.size


@pytest.mark.parametrize("shape", [(12,), (5, 6)], ids=str)
def test_coverage_against_enumeration(shape):
    stimulus = lf.stimuli.DeadLeaves(shape, smallest=0.7, ratio=3.3)
    np.testing.assert_allclose(stimulus.coverage(), coverage_by_hand(stimulus), atol=1e-3)


def test_few_leaves_against_enumeration():
    """Two leaves on six sites, radius 1: all centers and both orders, counted."""
    stimulus = lf.stimuli.DeadLeaves(6, smallest=1.0, ratio=1.5, leaves=2)
    far = lf.lattice.distance((6,))
    alike = np.zeros(6)
    for first, second in itertools.product(range(6), repeat=2):
        front, behind = (np.roll(far, at) <= 1 for at in (first, second))
        scene = np.where(front, 0, np.where(behind, 1, 2))
        alike += scene == scene[0]
    np.testing.assert_allclose(stimulus.covariance(), alike / 36, atol=1e-12)


def test_without_end_of_leaves_likeness_is_the_ratio_of_chances():
    stimulus = lf.stimuli.DeadLeaves((16, 16), leaves=100_000)
    both = stimulus.coverage()
    np.testing.assert_allclose(stimulus.covariance(), both / (2 * both[0, 0] - both), atol=1e-9)


def slope(stimulus):
    """Of the power spectrum along an axis of 128 sites, at waves of 8 to 43 sites."""
    power = lf.lattice.spectrum(stimulus.covariance())[0]
    k = np.arange(3, 17)
    return np.polyfit(np.log(k), np.log(power[k]), 1)[0]


def test_scenes_have_no_scale_of_their_own():
    """Twice as far away: half the radii at half the distance give the same likeness, away from
    both bounds.
    """
    near = lf.stimuli.DeadLeaves((128, 128), smallest=2, ratio=12, leaves=100_000).covariance()
    far = lf.stimuli.DeadLeaves((64, 64), smallest=1, ratio=12, leaves=100_000).covariance()
    d = np.arange(3, 12)
    assert np.abs(near[0, 2 * d] - far[0, d]).max() < 0.02
    # The spectrum falls about as that of scenes, by −2 within a half; that of leaves of one size as
    # edges do, by −3.
    found = slope(lf.stimuli.DeadLeaves((128, 128), smallest=1, ratio=24, leaves=100_000))
    assert -2.5 < found < -1.5
    assert (
        slope(lf.stimuli.DeadLeaves((128, 128), smallest=23, ratio=24 / 23, leaves=100_000)) < -2.6
    )


def test_theory_knows_dead_leaves():
    """An exact covariance and marginal are all that the effective flow needs."""
    pair = [
        lf.stimuli.DeadLeaves((8, 8), smallest=r, ratio=2, gray="two-point") for r in (0.6, 1.2)
    ]
    flow = lf.theory.EffectiveFlow().flow(lf.Discrimination(*pair), lf.networks.SingleNeuron())
    w = jnp.asarray(np.random.default_rng(0).normal(size=(1, 64)))
    loss, gradient = flow({"weights": w})
    ahead, _ = flow({"weights": w - 1e-4 * gradient["weights"]})
    assert 0 < float(ahead) < float(loss)
