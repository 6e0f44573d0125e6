"""The exact response of an Ising ring: against enumeration, meeting in the middle, and more
frequencies.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import localfields as lf
from localfields.errors import InputError
from localfields.stimuli._ring import (
    adaptive_response,
    enumerate_states,
    ising_response,
    ising_weights,
    meet_in_the_middle_response,
    odd_moments,
    partition,
)
from localfields.stimuli._ring import compiled_response as compiled
from localfields.theory.responses.hypercube import enumerated_response
from localfields.theory.responses.ising import ExactIsing, IsingResponse

from ..sheet import fits

J = 0.7


def response(w, num, coupling=J):
    return np.asarray(compiled(jnp.asarray(w), coupling, num))


def field(kind, n, seed=None):
    """The fields of the table; the size of its noise is not printed, and here 1 % of the peak."""
    rng = np.random.default_rng(n if seed is None else [n, seed])
    if kind == "random":
        return rng.normal(size=n)
    if kind.startswith("exp"):
        return np.exp(-lf.lattice.distance(n) / float(kind[3:])) + 0.01 * rng.normal(size=n)
    return sum(
        height * np.eye(n)[site]
        for site, height in zip((0, 3, 7), map(float, kind.split("/")), strict=False)
    )


@functools.cache
def reference(kind, n):
    w = field(kind, n)
    return (
        enumerated_response(w, lf.stimuli.Ising(n, coupling=J))
        if n <= 20
        else meet_in_the_middle_response(w, J)
    )


# -- error against frequencies ---------------------------------------------------------------------

NUMBERS = (32, 64, 128, 256, 512, 1024, 4096)
TABLE = {
    ("random", 16): "6e-3 6e-3 4e-3 3e-3 1e-3 4e-4 5e-5",
    ("exp0.8", 16): "8e-5 2e-10 6e-11 1e-10 1e-10 6e-11 4e-12",
    ("exp1.5", 16): "1e-3 4e-4 3e-4 2e-4 1e-4 3e-5 4e-6",
    ("random", 40): "2.4e-4 1.4e-4 7.4e-5 5.1e-5 2.0e-5 3.4e-5 8.4e-6",
    ("exp1.5", 40): "6.5e-4 6.8e-5 1.3e-5 9.6e-6 7.5e-6 6.0e-6 1.4e-6",
    ("random", 100): "– 1.6e-5 8.3e-7 4.7e-8 2.8e-9 2.7e-10 1.1e-10",
    ("exp1.5", 100): "– 3.3e-5 2.1e-6 1.2e-7 7.4e-9 4.6e-10 2.0e-11",
}
DRAWS = {16: 20, 40: 12, 100: 8}


@functools.cache
def drawn(n):
    """Fields of every kind in the table on n sites, (kind × draw, site)."""
    return np.stack(
        [field(kind, n, seed) for kind, size in TABLE if size == n for seed in range(DRAWS[n])]
    )


@functools.partial(jax.jit, static_argnums=1)
def responses(fields, num):
    return jax.lax.map(lambda w: ising_response(w, J, num), fields)


@functools.cache
def exact(n):
    """By enumeration on 16 sites. Beyond, by more frequencies: 32768 are right to a few 1e-6 on
    40 sites.
    """
    if n == 16:
        return np.stack([enumerated_response(w, lf.stimuli.Ising(n, coupling=J)) for w in drawn(n)])
    result = np.asarray(responses(drawn(n), {40: 32768, 100: 16384}[n]))
    if n == 40:
        for row in (0, -1):
            assert np.abs(result[row] - meet_in_the_middle_response(drawn(n)[row], J)).max() < 8e-6
    return result


@pytest.mark.parametrize("n", DRAWS)
def test_error_against_frequencies(n):
    """The fields behind the table are not printed: each of its numbers must fit the errors of other
    such fields.

    Those are spread over a factor of two to ten, about evenly in the logarithm.
    """
    rows = {kind: row.split() for (kind, size), row in TABLE.items() if size == n}
    columns = [
        column for column in range(len(NUMBERS)) if all(row[column] != "–" for row in rows.values())
    ]
    shape = (len(columns), len(rows), DRAWS[n])
    result = np.stack(
        [np.asarray(responses(drawn(n), NUMBERS[column])) for column in columns]
    ) - exact(n)
    result = np.abs(result).max(axis=-1).reshape(shape)
    for k, (kind, row) in enumerate(rows.items()):
        wrong = []
        for errors, column in zip(result[:, k], columns, strict=True):
            assert fits(row[column], errors, log=True), (kind, NUMBERS[column], row[column], errors)
            wrong.append(fits(f"{100 * float(row[column]):e}", errors, log=True))
        assert not all(wrong)  # the power


@pytest.mark.parametrize("kind", ["1", "1/1", "2/1", "5/1.5/1", "1/1/1"])
def test_one_to_three_bumps_are_exact(kind):
    """Printed: 1e-9 at 32 frequencies, 7e-10 above; within twice that, as the bumps are others."""
    for n, num, printed in ((16, 32, 1e-9), (16, 64, 7e-10), (16, 256, 7e-10), (12, 64, 7e-10)):
        assert np.abs(response(field(kind, n), num) - reference(kind, n)).max() <= 2 * printed, (
            n,
            num,
        )


@pytest.mark.parametrize("num", [32, 64, 256])
@pytest.mark.parametrize("kind", ["random", "exp0.8", "exp1.5", "3/1.5/1", "2/1.5/1"])
def test_what_the_window_does_to_the_sign(kind, num):
    """The sum is the response with sgn(S) smoothed to erf(z/√2) + zφ(z), z = S/ε: its only
    error, at any number.
    """
    w = field(kind, 16)
    states = enumerate_states(16).astype(float)
    width = 6 * np.abs(w).sum() / (2 * np.pi * num - 39)
    z = states @ w / width
    smooth = scipy.special.erf(z / np.sqrt(2)) + z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    expected = 0.5 * (ising_weights(states, J) * smooth) @ states
    # What is left are states at |S| = ‖w‖₁, 6.5 widths from the wave's next jump, and the sum's
    # tail: 1e-9.
    assert np.abs(response(w, num) - expected).max() < 1.5e-9


moments = jax.jit(odd_moments)


def inverted(w, num, window, room):
    """The Fourier sum with another window, and steps of `room`/‖w‖₁."""
    n = np.arange(num) + 0.5
    angles = (w / np.abs(w).sum())[:, None] * (n * room)[None, :]
    return np.asarray(moments(jnp.asarray(angles), J)) @ (
        window(0.5 * (6 * n / num) ** 2) / (np.pi * n)
    )


def test_why_the_window_is_what_it_is():
    """A plain sum is best for generic fields, but fails on a bump by all of ½; a Gaussian window is
    biased.

    Printed for 40 sites: 4e-5 of a plain sum at 128 frequencies, 1e-3 of a Gaussian window at 64,
    which reaches 1e-12 where no state is near S = 0.
    """

    def gaussian(y):
        return np.exp(-y)

    bump, rows = field("1", 16), {16: [kind for kind, n in TABLE if n == 16].index("exp0.8"), 40: 0}
    assert np.abs(
        inverted(bump, 256, np.ones_like, 2 * np.pi) - reference("1", 16)
    ).max() == pytest.approx(0.5)

    def errors(n, num, window, room=2 * np.pi):
        chosen = slice(rows[n] * DRAWS[n], (rows[n] + 1) * DRAWS[n])
        result = [inverted(w, num, window, room) for w in drawn(n)[chosen]]
        return np.abs(np.stack(result) - exact(n)[chosen]).max(axis=1)

    plain, biased = errors(40, 128, np.ones_like), errors(40, 64, gaussian, 2 * np.pi - 39 / 64)
    assert fits("4e-5", plain, log=True) and fits("1e-3", biased, log=True)
    assert not fits("4e-4", plain, log=True) and not fits("1e-4", biased, log=True)
    ours = errors(40, 64, lambda y: np.exp(-y) * (1 + y), 2 * np.pi - 39 / 64)
    assert ours[0] == pytest.approx(
        np.abs(response(drawn(40)[0], 64) - exact(40)[0]).max(), abs=1e-13
    )
    assert (biased > 3 * ours).all()
    assert fits("1e-12", errors(16, 256, gaussian, 2 * np.pi - 39 / 256), log=True)


@pytest.mark.parametrize("coupling", [-1.3, -0.4, 0.0, 0.3, 1.2, 3.0])
@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_moments_at_any_angle(n, coupling):
    """Im E[X_i exp(iΣθX)] summed over states: any coupling, even and odd rings."""
    angles = np.random.default_rng(0).uniform(-4, 4, (n, 5))
    states = enumerate_states(n).astype(float)
    expected = (states * ising_weights(states, coupling)[:, None]).T @ np.sin(states @ angles)
    assert np.abs(np.asarray(odd_moments(jnp.asarray(angles), coupling)) - expected).max() < 2e-13


def test_partition_keeps_its_digits():
    assert float(partition(jnp.asarray(0.7), 40)) == pytest.approx(
        1 + np.tanh(0.7) ** 40, rel=1e-14
    )
    # −t^N of a frustrated ring is 1 − 2N e^(−2|J|) and so on: the first term is all there is at J =
    # −15.
    assert float(partition(jnp.asarray(-15.0), 9)) == pytest.approx(18 * np.exp(-30), rel=1e-9)
    assert float(partition(jnp.asarray(0.0), 9)) == 1.0


@pytest.mark.parametrize("coupling", [-2.0, -5.0])
def test_negative_couplings(coupling):
    """An even ring is the ferromagnet with every second spin turned; an odd one is frustrated."""
    w, turn = np.random.default_rng(1).normal(size=30), (-1.0) ** np.arange(30)
    assert (
        np.abs(response(w, 128, coupling) - turn * response(turn * w, 128, -coupling)).max() < 1e-14
    )
    bump = field("exp0.8", 21)
    assert (
        np.abs(response(bump, 256, coupling) - meet_in_the_middle_response(bump, coupling)).max()
        < 1e-9
    )


def test_strong_couplings():
    """One domain: every site follows the sign of the sum."""
    w = np.random.default_rng(2).normal(size=40) - 0.5
    assert np.abs(response(w, 256, 19.9) - 0.5 * np.sign(w.sum())).max() < 1e-9
    with pytest.raises(InputError, match="odd ring"):
        ExactIsing().response(lf.stimuli.Ising(41, coupling=-9))
    with pytest.raises(InputError, match="odd ring"):
        adaptive_response(np.ones(41), -9.0)


def test_size_of_the_field_does_not_matter():
    w = np.random.default_rng(3).normal(size=40)
    assert not response(np.zeros(40), 64).any()
    for factor in (1e-300, 1e-12, 1e12, 1e300):
        assert np.abs(response(factor * w, 64) - response(w, 64)).max() < 1e-13
    one_way = jax.jvp(lambda w: ising_response(w, J, 64), (jnp.asarray(w),), (jnp.asarray(w),))[1]
    assert np.abs(one_way).max() < 1e-12  # f'(w) w = 0


def test_vectorized_over_fields_and_couplings():
    w, couplings = np.random.default_rng(4).normal(size=(5, 20)), np.linspace(-1, 1, 5)
    stacked = IsingResponse(jnp.asarray(couplings), 64)
    together = jax.jit(jax.vmap(lambda one, w: one(w)))(stacked, jnp.asarray(w))
    alone = [response(w[k], 64, couplings[k]) for k in range(5)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-14)


def test_single_precision_follows_the_field():
    w = np.random.default_rng(5).normal(size=100)
    for x64 in (True, False):
        with jax.enable_x64(x64):
            short = compiled(jnp.asarray(w, jnp.float32), jnp.float32(J), 256)
            assert short.dtype == jnp.float32
            # Phases reach 2πM = 1600 and are off by a rounding of 6e-8 each, with weights 1/n.
            assert np.abs(np.asarray(short, np.float64) - response(w, 256)).max() < 2e-5
            assert not compiled(jnp.zeros(100, jnp.float32), jnp.float32(J), 256).any()


def test_a_thousand_sites():
    w = np.random.default_rng(6).normal(size=1000)
    coarse, fine = response(w, 256), response(w, 2048)
    assert np.isfinite(coarse).all() and np.abs(coarse).max() > 0.02
    # S is nearly normal, of which the window takes a fraction ⅜(ε/σ)⁴: it is of fourth order.
    row = lf.stimuli.Ising(1000, coupling=J).covariance()
    ratio = 6 * np.abs(w).sum() / (2 * np.pi * 256 - 39) / np.sqrt(w @ lf.lattice.product(row, w))
    assert np.linalg.norm(fine - coarse - 0.375 * ratio**4 * fine) < 0.1 * np.linalg.norm(
        fine - coarse
    )
    assert np.abs(coarse - fine).max() < 1e-5
    assert np.abs(response(np.eye(1000)[0], 256) - 0.5 * row).max() < 1e-9
    # Nearly normal: the linear response is right to a fraction of 1/N.
    linear = lf.lattice.product(row, w)
    linear = linear / np.sqrt(2 * np.pi * (w @ linear))
    assert np.linalg.norm(coarse - linear) < 0.01 * np.linalg.norm(linear)


def test_adaptive_response():
    w = field("random", 16)
    result, error, num = adaptive_response(w, J)
    assert (error, num) == (0.0, 0) and np.abs(result - reference("random", 16)).max() < 1e-13
    result, error, num = adaptive_response(field("exp0.8", 40), J)
    assert error < 1e-9 and num <= 512
    assert np.abs(result - meet_in_the_middle_response(field("exp0.8", 40), J)).max() < 2e-9
    result, error, num = adaptive_response(field("random", 100), J, tol=1e-6)
    assert error < 1e-6 and np.abs(result - response(field("random", 100), 4096)).max() < 1e-6
    # Forty sites and a generic field: single states are felt, and it says so.
    result, error, num = adaptive_response(field("random", 40), J, tol=1e-12)
    assert num == 16384 and error > 1e-12


def test_the_theory_is_a_value_and_refuses_other_stimuli():
    theory = ExactIsing(frequencies=64)
    assert lf.from_json(theory.to_json()) == theory
    with pytest.raises(InputError, match="covers Ising rings only"):
        theory.response(lf.stimuli.Gaussian(40))
    with pytest.raises(InputError, match="frequencies"):
        ExactIsing(frequencies=3)
    with pytest.raises(InputError, match="one number"):
        theory.response(lf.stimuli.Ising(40, coupling=np.array([0.1, 0.2])))


def test_flow_is_the_gradient_of_its_loss():
    """−∇L = f − ½(Σ₀ + Σ₁)w for labels 0 and 1; a dropped ½ would show."""
    task = lf.Discrimination(lf.stimuli.Ising(16, coupling=0.3), lf.stimuli.Ising(16, coupling=0.7))
    flow = ExactIsing().flow(task, lf.networks.SingleNeuron())
    w = field("exp0.8", 16)
    loss, gradient = flow({"weights": jnp.asarray(w)[None, :]})
    f = reference("exp0.8", 16)
    mean = 0.5 * lf.lattice.matrix(task.stimuli[0].covariance() + task.stimuli[1].covariance())
    assert np.abs(np.asarray(gradient["weights"])[0] - (mean @ w - f)).max() < 1e-9
    assert float(loss) == pytest.approx(0.5 - w @ f + 0.5 * w @ mean @ w, abs=1e-9)


@pytest.mark.parametrize("coupling", [0.7, -1.3, 0.0, 3.0])
@pytest.mark.parametrize("size", [3, 9, 12])
def test_small_rings_are_summed_state_by_state(size, coupling):
    # Generic fields on few sites are where a smoothed sgn is worst: 3e-3 on 16 sites.
    ring = lf.stimuli.Ising(size, coupling=coupling)
    w = np.random.default_rng(size).normal(size=size)
    result = ExactIsing().response(ring)(jnp.asarray(w))
    np.testing.assert_allclose(result, enumerated_response(w, ring), atol=1e-13)
    # A tie counts for nothing.
    np.testing.assert_allclose(ExactIsing().response(ring)(jnp.zeros(size)), 0, atol=1e-15)
