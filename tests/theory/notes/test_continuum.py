"""The continuum limit: one function on more and more points, its equation, and steady states
that converge.
"""

import functools
import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import localfields as lf
from localfields.lattice import Periodized, matrix
from localfields.stimuli import NLGP, Gaussian
from localfields.theory.notes.continuum import residual, steady_state
from localfields.theory.responses.linear import LinearResponse, winning_mode

periodic = functools.partial(Gaussian, kernel="periodized")


def gaussian(a):
    """φ of the Gaussian."""
    return math.sqrt(2 / math.pi) * a


def signs(a):
    """φ of ±1 data."""
    with np.errstate(divide="ignore"):
        return scipy.special.erf(a / np.sqrt(2 * (1 - a**2)))


def kernels(num, xis=(0.05, 0.1)):
    return tuple(Periodized().correlation((num,), xi * num) for xi in xis)


def smooth(num):
    """Some function of x on the ring, not symmetric, at num points."""
    x = 2 * np.pi * np.arange(num) / num
    return 3 * np.exp(np.cos(x - 0.4)) * (1 + 0.5 * np.sin(2 * x))


def refined(task, factor):
    """The same problem of the continuum on a lattice with `factor` times the sites per axis."""
    finer = tuple(
        stimulus.replace(shape=tuple(factor * n for n in stimulus.shape), xi=factor * stimulus.xi)
        for stimulus in task.stimuli
    )
    return task.replace(stimuli=finer, l2=task.l2 * factor ** len(task.shape))


# -- the equation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [gaussian, signs])
def test_scaling(phi):
    """w_i = w(x_i)/N: the residual at one point is the same number for every N, to the ten digits
    of the sheet.

    (Its 0.3799580970 is that of a function that it does not print.)
    """
    result = [
        residual(phi, kernels(num), smooth(num))[11 * num // 20] for num in (100, 200, 400, 800)
    ]
    np.testing.assert_allclose(result, result[0], rtol=0, atol=5e-11)
    assert abs(result[0]) > 0.01


@pytest.mark.parametrize("phi", [gaussian, signs])
@pytest.mark.parametrize("sd", [1.0, 2.0])
def test_it_is_the_velocity_of_the_weights(phi, sd):
    """(2/τ)ẇ = σφ(Σ₁w/(σs)) − (Σ₀ + Σ₁)w on the lattice, in matrices; the printed ½ before (σ₀ +
    σ₁) is wrong.
    """
    num = 60
    row0, row1 = kernels(num)
    row1 = sd**2 * row1
    sigma0, sigma1, w = matrix(row0), matrix(row1), smooth(num) / num
    s = math.sqrt(w @ sigma1 @ w)
    velocity = sd * phi(sigma1 @ w / (sd * s)) - (sigma0 + sigma1) @ w
    printed = sd * phi(sigma1 @ w / (sd * s)) - 0.5 * (sigma0 + sigma1) @ w
    result = residual(phi, (row0, row1), smooth(num))
    np.testing.assert_allclose(result, velocity, atol=1e-13)
    assert np.abs(result - printed).max() > 0.1


def test_it_is_the_flow_of_the_theory():
    """Twice −∇L of `LinearResponse`, penalty and label included: f = ½φ there."""
    num = 40
    task = lf.Discrimination(
        *(periodic(num, xi=xi * num) for xi in (0.05, 0.1)), labels=(0, 1.5), l2=0.3
    )
    w = smooth(num) / num
    flow = LinearResponse().flow(task, lf.networks.SingleNeuron())
    gradient = np.asarray(flow({"weights": jnp.asarray(w)[None, :]})[1]["weights"][0])
    result = residual(gaussian, kernels(num), smooth(num), ridge=4 * 0.3 / num, label=1.5)
    np.testing.assert_allclose(result, -2 * gradient, atol=1e-13)


def test_the_printed_half_moves_the_steady_state():
    """The flat solution: w = φ(√σ̂₁)/(σ̂₀ + σ̂₁) solves the equation; with the ½ it would be
    twice as large.
    """
    num = 80
    row0, row1 = kernels(num)
    flat = np.full(num, float(gaussian(math.sqrt(row1.mean()))) / (row0 + row1).mean())
    np.testing.assert_allclose(residual(gaussian, (row0, row1), flat), 0, atol=1e-14)
    assert np.abs(residual(gaussian, (row0, row1), 2 * flat)).min() > 0.1
    task = lf.Discrimination(*(periodic(num, xi=xi * num) for xi in (0.05, 0.1)))
    assert flat[0] / num == pytest.approx(winning_mode(task).amplitude, rel=1e-12)


# -- steady states ---------------------------------------------------------------------------------


def penalized(num=50):
    """Periodized kernels with ρ = 0.01 on the ring, whatever the number of points."""
    return lf.Discrimination(*(periodic(num, xi=xi * num) for xi in (0.05, 0.1)), l2=0.01 * num / 4)


def localization(w):
    """N times the inverse participation ratio: that of the function."""
    return float(np.mean(w**4) / np.mean(w**2) ** 2)


def test_steady_states_converge_to_a_function():
    """±1 data, smooth kernel, penalty: exponentially in N, to a localized function that is at
    rest on each lattice.
    """
    coarse = penalized()
    result = {
        factor: steady_state(signs, refined(coarse, factor), tolerance=1e-12)
        for factor in (1, 2, 4, 8)
    }
    off = [np.abs(result[2 * factor][::2] - result[factor]).max() for factor in (1, 2, 4)]
    assert off[0] < 0.01 and off[1] < 1e-6 and off[2] < 1e-9
    for factor, w in result.items():
        left = residual(signs, kernels(50 * factor), w, ridge=0.01)
        assert np.abs(left).max() <= 1e-11
        np.testing.assert_allclose(w, np.roll(w[::-1], 1), atol=1e-9)  # as symmetric as its start
    assert localization(result[8]) == pytest.approx(localization(result[4]), abs=1e-8)
    assert localization(result[8]) > 4 * 1.5  # a sinusoid has 1.5


def test_weights_shrink_as_the_lattice_grows():
    """w_i = w(x_i)/N, and the weights themselves solve the lattice's own equation."""
    task = refined(penalized(), 2)
    w = steady_state(signs, task) / 100
    sigma0, sigma1 = (matrix(stimulus.covariance()) for stimulus in task.stimuli)
    f = 0.5 * signs(sigma1 @ w / math.sqrt(w @ sigma1 @ w))
    np.testing.assert_allclose(f - 0.5 * (sigma0 + sigma1) @ w - 2 * task.l2 * w, 0, atol=1e-10)


def test_a_kernel_with_a_kink_needs_no_penalty():
    """exp(−|x|/ξ): second order in 1/N."""
    result = []
    for num in (200, 400, 800, 1600, 3200):
        task = lf.Discrimination(
            *(Gaussian(num, xi=xi * num, kernel=lambda d: np.exp(-d)) for xi in (0.05, 0.1))
        )
        result.append(steady_state(signs, task))
    off = np.array([np.sqrt(np.mean((b[::2] - a) ** 2)) for a, b in itertools.pairwise(result)])
    orders = np.log2(off[:-1] / off[1:])
    assert 1.8 < orders[-1] < 2.2


def test_a_smooth_kernel_without_penalty_has_no_limit():
    """w grows with every refinement at which the operator can still be inverted, and then it
    cannot.
    """
    result = []
    for num in (30, 40, 50):
        task = lf.Discrimination(*(periodic(num, xi=xi * num) for xi in (0.05, 0.1)))
        result.append(np.abs(steady_state(signs, task)).max())
    assert result[1] > 2 * result[0] and result[2] > 2 * result[1]
    with pytest.raises(lf.InputError, match="penalty"):
        steady_state(signs, lf.Discrimination(*(periodic(100, xi=xi) for xi in (5, 10))))


def test_gaussian_steady_state_is_the_winning_sinusoid():
    """From any start that overlaps it, though slowly: the ratios are close."""
    task = lf.Discrimination(*(periodic(24, xi=xi) for xi in (0.5, 1.5)))
    start = 1 + np.random.default_rng(0).normal(size=24)
    w = steady_state(gaussian, task, start, tolerance=1e-12)
    np.testing.assert_allclose(np.abs(w) / 24, winning_mode(task).amplitude, rtol=1e-8)


def test_on_a_torus():
    """Two axes, 16² to 64² points: a localized function, as symmetric as its start."""
    task = lf.Discrimination(
        *(periodic((16, 16), xi=xi * 16) for xi in (0.1, 0.2)), l2=0.002 * 256 / 4
    )
    result = [steady_state(signs, refined(task, factor)) for factor in (1, 2, 4)]
    off = [np.abs(fine[::2, ::2] - coarse).max() for coarse, fine in itertools.pairwise(result)]
    assert off[1] < 1e-2 * off[0] < 1e-3 * result[2].max()
    for w in result:
        np.testing.assert_allclose(w, np.roll(w[::-1], 1, axis=0), atol=1e-8)
        np.testing.assert_allclose(w, w.T, atol=1e-8)
        assert localization(w) > 4 * 1.5**2  # a product of two sinusoids has 1.5²


def test_refined_keeps_the_function():
    task = lf.Discrimination(
        *(NLGP(50, xi=xi, gain=2, kernel="periodized") for xi in (2, 5)), l2=0.1
    )
    finer = refined(task, 3)
    assert finer.shape == (150,) and finer.l2 == pytest.approx(0.3)
    for coarse, fine in zip(task.stimuli, finer.stimuli, strict=True):
        np.testing.assert_allclose(fine.covariance()[::3], coarse.covariance(), atol=1e-12)


# -- refusals --------------------------------------------------------------------------------------


def test_what_is_refused():
    rows, w = kernels(40), smooth(40)
    given = lf.Discrimination(*(Gaussian(40, xi=xi, kernel=lambda d: np.exp(-d)) for xi in (1, 2)))
    for act, message in (
        (lambda: residual(signs, rows, np.zeros(40)), "not zero"),
        (lambda: residual(signs, rows, w[:30]), "the same shape"),
        (lambda: steady_state(signs, given, np.ones(30)), "the lattice's shape"),
        (lambda: steady_state(signs, given, max_steps=2), "after 2 steps"),
        (lambda: steady_state(signs, given.replace(labels=(-1, 1))), "labels"),
    ):
        with pytest.raises(lf.InputError, match=message):
            act()
