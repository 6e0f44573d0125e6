"""Chambers: how far a field may move, symmetries of any response, and Jacobians."""

import jax
import numpy as np
import pytest

import localfields as lf
from localfields.lattice import matrix
from localfields.stimuli import NLGP, DenseGaussian, Gaussian, Ising, Kur
from localfields.stimuli._ring import meet_in_the_middle_response
from localfields.theory.notes.separation import active_entries, separation
from localfields.theory.notes.symmetry import check_symmetries, jacobian
from localfields.theory.responses.hypercube import enumerated_response
from localfields.theory.responses.linear import response_jacobian

SPINS = Ising(12, coupling=0.7)


def field(n=12, seed=0):
    return np.random.default_rng(seed).normal(size=n)


def summed(w):
    return enumerated_response(w, SPINS)


# -- how many weights matter -----------------------------------------------------------------------


def test_entries_below_the_cut_off_change_nothing_at_thirty_sites():
    """By meeting in the middle, where no sum over all states can go."""
    w = np.concatenate([[1.0, 0.8, 0.55], 1e-3 * field(27)])
    k = active_entries(w)
    assert k == 3
    few = np.where(np.abs(w) >= np.sort(np.abs(w))[-k], w, 0.0)
    actual, expected = meet_in_the_middle_response(w, 0.7), meet_in_the_middle_response(few, 0.7)
    assert (
        np.abs(actual - expected).max() < 1e-12
    )  # rounding of cumulative sums over the states of a half
    fewer = np.where(np.abs(w) >= np.sort(np.abs(w))[-2], w, 0.0)
    assert np.abs(actual - meet_in_the_middle_response(fewer, 0.7)).max() > 0.01


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_off_is_sharp(seed):
    """What is left over may be anything in sum below δ_k; just above it some choice of it flips
    a gate.
    """
    w = np.random.default_rng(seed).uniform(0.9, 1.1, 8)  # so nearly equal that all eight matter
    delta = separation(w, 8)
    assert active_entries(w) == 8 and 0 < delta < w.min()
    for excess, same in ((0.999, True), (1.001, False)):
        longer = np.append(w, excess * delta)
        gates, kept = np.sign(_signs(9) @ longer), np.sign(_signs(9)[:, :8] @ w)
        assert bool((gates == kept).all()) is same
        assert active_entries(longer) == (8 if same else 9)


def _signs(n):
    return 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)[None, :]) & 1)


# -- symmetries ------------------------------------------------------------------------------------

RESPONSES = {
    "spins, summed": (summed, (12,)),
    "spins, inverted": (
        lf.theory.ExactIsing(frequencies=64).response(Ising(40, coupling=0.7)),
        (40,),
    ),
    "effective": (lf.theory.EffectiveFlow().response(Kur(12, xi=1, k=10)), (12,)),
    "torus": (lf.theory.LinearResponse().response(Gaussian((4, 3), xi=0.7)), (4, 3)),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_scale_sign_and_shift(name):
    response, shape = RESPONSES[name]
    result = check_symmetries(response, field(int(np.prod(shape))), shape)
    assert max(result.scale, result.sign, result.shift) < 1e-12 and np.isnan(result.linear)


@pytest.mark.parametrize("broken, which", [
    (lambda w: summed(w) * np.linalg.norm(w), "scale"), (lambda w: np.abs(summed(w)), "sign"),
    (lambda w: summed(w) * np.arange(12), "shift"), (lambda w: np.roll(summed(w), 1) + 0.1 * summed(w[::-1]), "shift"),
])  # fmt: skip
def test_what_lacks_a_symmetry_is_told(broken, which):
    assert getattr(check_symmetries(broken, field()), which) > 0.1


def test_linear_symmetry():
    """AX ~ X for A = L Q L⁻¹: f(Aᵀw) = A⁻¹f(w). As printed, with A and Aᵀ exchanged, it fails."""
    rng = np.random.default_rng(0)
    root, turn = (
        np.linalg.cholesky(matrix(Gaussian(6, xi=0.8).covariance())),
        np.linalg.qr(rng.normal(size=(6, 6)))[0],
    )
    a = root @ turn @ np.linalg.inv(root)
    response = lf.theory.LinearResponse().response(Gaussian(6, xi=0.8))
    assert check_symmetries(response, field(6), linear=a).linear < 1e-12
    assert check_symmetries(response, field(6), linear=a.T).linear > 0.1
    # Orthogonal symmetries pass both ways.
    mirror = np.eye(12)[::-1]
    assert check_symmetries(summed, field(), linear=mirror).linear < 1e-12


# -- Jacobians -------------------------------------------------------------------------------------


def differences(response, w, step):
    return np.stack(
        [(response(w + step * e) - response(w - step * e)) / (2 * step) for e in np.eye(w.size)],
        axis=1,
    )


def test_jacobian_of_elliptical_laws():
    w = field(8)
    root = np.random.default_rng(1).normal(size=(8, 8))
    for stimulus in (
        Gaussian(8, xi=0.9),
        lf.stimuli.StudentT(8, xi=0.9, nu=5),
        DenseGaussian((8,), root @ root.T),
    ):
        response = lf.theory.LinearResponse().response(stimulus)
        result = jacobian(stimulus, w)
        by_differences = differences(
            lambda v, of=response: np.asarray(of(jax.numpy.asarray(v))), w, 1e-5
        )
        np.testing.assert_allclose(result, by_differences, atol=1e-9)
        np.testing.assert_allclose(result, jacobian(response, w), atol=1e-13)
        np.testing.assert_allclose(result, result.T, atol=1e-13)
        assert np.abs(result @ w).max() < 1e-13
    half = response_jacobian(0.5, matrix(Gaussian(8, xi=0.9).covariance()), w)
    assert np.abs(half - jacobian(Gaussian(8, xi=0.9), w)).max() > 0.01


def test_jacobian_of_spins_is_zero_within_a_chamber():
    w = field()
    assert not jacobian(SPINS, w).any()
    assert not differences(summed, w, 0.4 * separation(w, 12)).any()
    with pytest.raises(lf.InputError, match="chamber"):
        jacobian(SPINS, np.ones(12))


def test_jacobian_of_an_approximation():
    """That of the effective response has Jw = 0 too, but is not symmetric: the effective flow
    has no loss.
    """
    response = lf.theory.EffectiveFlow().response(NLGP(12, xi=1, gain=3))
    result = jacobian(response, field())
    assert np.abs(result @ field()).max() < 1e-12
    assert np.abs(result - result.T).max() > 1e-3


def test_refusals():
    with pytest.raises(lf.InputError, match="elliptical"):
        jacobian(NLGP(12, xi=1), field())
    with pytest.raises(lf.InputError, match="`w`"):
        jacobian(SPINS, np.zeros(12))
    with pytest.raises(lf.InputError, match="shape"):
        check_symmetries(summed, field(), (5, 2))
