"""The gated mean f of ±1 data: closed forms of few sites, symmetries, chambers, separation."""

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.errors import InputError
from localfields.lattice import matrix
from localfields.stimuli._ring import enumerate_states, ising_weights
from localfields.theory.notes.separation import active_entries, polygon_bound, separation
from localfields.theory.responses.hypercube import (
    bump_response,
    enumerated_response,
    hypercube_bump,
    ising_fourth,
)

from ..sheet import rounds_to
from .ising_rings import ising, task_of

N, J = 12, 0.7
C = matrix(lf.stimuli.Ising(N, coupling=J).covariance())


@functools.cache
def f(*w):
    return enumerated_response(np.array(w), ising(N, J))


def spikes(sites, heights):
    return sum(h * np.eye(N)[s] for s, h in zip(sites, heights, strict=True))


@pytest.mark.parametrize("sites, heights", [
    ([4], [1.0]), ([4], [-2.0]), ([0, 5], [1.0, 1.0]), ([0, 5], [1.0, -1.0]), ([3, 2], [1.7, 1.0]),
    ([3, 2], [1.0, -1.7]), ([0, 4, 7], [3.0, 1.5, 1.0]), ([0, 4, 7], [2.0, 1.5, 1.0]), ([7, 4, 0], [1.0, -1.5, 2.0]),
    ([0, 4, 7], [2.5, -1.5, -1.0]), ([0, 1, 2], [1.0, 1.0, 1.0]), ([0, 1, 2], [1.0, 1.0, -0.5]),
])  # fmt: skip
def test_bumps_of_up_to_three_sites(sites, heights):
    fourth = ising_fourth(N, J, sites) if len(sites) == 3 else None
    result = bump_response(C, sites, heights, fourth)
    assert np.abs(result - f(*spikes(sites, heights))).max() < 2e-14


def test_printed_responses_are_wrong():
    """The notes miss ½, ¼, ½, ½, and take a majority vote for the largest bump alone."""
    cases = [
        ([0], [1.0], C[0]),
        ([0, 5], [1.0, 1.0], C[0] + C[5]),
        ([0, 5], [1.7, 1.0], C[0]),
        ([0, 4, 7], [3.0, 1.5, 1.0], C[0]),
    ]
    for (sites, heights, printed), factor in zip(cases, (0.5, 0.25, 0.5, 0.5), strict=True):
        exact = f(*spikes(sites, heights))
        assert (
            np.abs(exact - factor * printed).max() < 2e-14 and np.abs(exact - printed).max() > 0.4
        )
    # A majority vote: 0.31 off for bumps at the sites 0, 3 and 4, and up to 0.35 for others.
    trios = [(0, *two) for two in itertools.permutations(range(1, N), 2)]
    off = {sites: np.abs(f(*spikes(sites, [2.0, 1.5, 1.0])) - 0.5 * C[0]).max() for sites in trios}
    assert rounds_to(off[0, 3, 4], "0.31") and rounds_to(max(off.values()), "0.35")


def test_refusals_of_bumps():
    with pytest.raises(InputError, match="fourth"):
        bump_response(C, [0, 1, 2], [1.0, 1.0, 1.0])
    for sites, heights in (([0, 0], [1.0, 2.0]), ([0, 1, 2, 3], [1.0] * 4), ([0], [1.0, 2.0])):
        with pytest.raises(InputError, match="one to three different sites"):
            bump_response(C, sites, heights)


def test_fourth_moments():
    states = enumerate_states(N).astype(float)
    for j in (-0.7, 0.3, 1.2):
        exact = (ising_weights(states, j) * states[:, [1, 4, 9]].prod(1)) @ states
        assert np.abs(ising_fourth(N, j, [9, 1, 4]) - exact).max() < 1e-13


def test_symmetries():
    """Scale, sign, shift and mirror; ⟨w, f⟩ = E ReLU."""
    w = np.random.default_rng(0).normal(size=N)
    base = f(*w)
    assert np.abs(f(*(3.7 * w)) - base).max() < 1e-14
    assert np.abs(f(*-w) + base).max() < 1e-14
    assert np.abs(f(*np.roll(w, 5)) - np.roll(base, 5)).max() < 1e-14
    assert np.abs(f(*w[::-1]) - base[::-1]).max() < 1e-14
    states = enumerate_states(N).astype(float)
    assert w @ base == pytest.approx(
        ising_weights(states, J) @ np.maximum(states @ w, 0), abs=1e-14
    )


def test_linear_symmetries_of_the_law():
    """If AX has the law of X then f(Aᵀw) = A⁻¹f(w). The notes' f(Aw) = A⁻ᵀf(w) fails unless A is
    orthogonal.
    """
    rng = np.random.default_rng(0)
    a = rng.normal(size=(5, 5))
    covariance = a @ a.T
    root = np.linalg.cholesky(covariance)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    law = root @ turn @ np.linalg.inv(root)
    assert np.abs(law @ covariance @ law.T - covariance).max() < 1e-12

    response = lf.theory.LinearResponse().response(lf.stimuli.DenseGaussian((5,), covariance))

    def gaussian(w):
        return np.asarray(response(jnp.asarray(w)))

    w = rng.normal(size=5)
    assert np.abs(gaussian(law.T @ w) - np.linalg.solve(law, gaussian(w))).max() < 1e-12
    assert np.abs(gaussian(law @ w) - np.linalg.solve(law.T, gaussian(w))).max() > 0.1


def test_response_is_constant_in_a_chamber():
    """Within δ of w nothing changes, so f' = 0; further out f jumps."""
    rng = np.random.default_rng(0)
    w, move = rng.normal(size=N), rng.normal(size=N)
    move /= np.abs(move).sum()
    delta = separation(w, N)
    assert 0 < delta
    assert np.abs(f(*(w + 0.999 * delta * move)) - f(*w)).max() < 1e-15
    assert np.abs(f(*(w + 3 * np.abs(w).sum() * move)) - f(*w)).max() > 1e-3


@pytest.mark.parametrize("k", [1, 2, 3, 8, 11])
def test_separation(k):
    w = np.random.default_rng(k).normal(size=11)
    kept = w[np.argsort(-np.abs(w))][:k]
    brute = np.abs(enumerate_states(k) @ kept)
    assert separation(w, k) == pytest.approx(brute.min(), abs=1e-15)
    # δ_INT = max xᵀ(−wwᵀ)x is −δ²; the notes print −√δ.
    integer = (-(brute**2)).max()
    assert integer == pytest.approx(-(separation(w, k) ** 2), abs=1e-15)
    if k > 1:
        assert abs(integer + np.sqrt(separation(w, k))) > 1e-3
    with pytest.raises(InputError, match="`k`"):
        separation(w, 12)


def test_separation_at_a_tie_and_of_many_entries():
    assert separation([0.1, 0.2, -0.3], 3) == 0.0
    assert separation(np.arange(1.0, 39.0), 38) == 1.0  # the sum of 1…38 is odd
    assert separation(np.arange(1.0, 40.0), 39) == 0.0


def test_active_entries():
    """Entries beyond the cut-off change nothing; with one fewer kept they do."""
    w = np.array([1.0, 0.8, 0.55, 0.1, -0.05, 0.04, 0.02, 0.01, 0.0, 0.01, 0.005, 0.001])
    assert active_entries(w) == 3
    cut = np.where(np.arange(N) < 3, w, 0)
    assert np.abs(f(*w) - f(*cut)).max() < 1e-15
    assert np.abs(f(*w) - f(*np.where(np.arange(N) < 2, w, 0))).max() > 0.01
    assert active_entries([1.0, 1.0]) == 2
    assert active_entries(hypercube_bump(task_of((0.3, 0.7))).field) == 1
    assert active_entries(np.random.default_rng(0).normal(size=100)) == 100


@pytest.mark.parametrize(
    "w, least", [([3.0, 2.0, 2.0, 1.0], 0.0), ([5.0, 1.0, 1.0, 0.5], 2.5), ([2.1, 1.0, 1.0], 0.1)]
)
def test_semidefinite_bound_is_the_polygon_inequality(w, least):
    """min |Σ w_i v_i| over unit vectors by coordinate descent: zero unless one entry outweighs
    all others.
    """
    assert polygon_bound(w) == pytest.approx(least, abs=1e-12)
    v = np.random.default_rng(0).normal(size=(len(w), 6))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for _ in range(4000):
        for i in range(len(w)):
            others = w @ v - w[i] * v[i]
            v[i] = -others / np.linalg.norm(others)
    assert np.linalg.norm(w @ v) == pytest.approx(least, abs=1e-5)
    assert polygon_bound(w) <= separation(w, len(w)) + 1e-12
