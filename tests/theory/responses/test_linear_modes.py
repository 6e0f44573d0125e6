"""Elliptical data: every steady state and every rate of it against the flow itself."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.lattice import fourier_basis, fourier_frequencies, spectrum
from localfields.stimuli import EllipticalExtreme, EllipticalShell, Gaussian, StudentT
from localfields.theory.responses.linear import (
    GAUSSIAN_SLOPE,
    LinearResponse,
    sinusoids,
    winning_mode,
)

from ..sheet import rounds_to
from .linear_tasks import NEURON, gaussians, pair, uneven, velocity


def loss_at(task, w, theory=None):
    return float(
        (theory or LinearResponse()).flow(task, NEURON)({"weights": jnp.asarray(w).reshape(1, -1)})[
            0
        ]
    )


# -- steady states ---------------------------------------------------------------------------------

TASKS = {
    "ring": gaussians((1, 2)),
    "odd ring": gaussians((1, 2), shape=(15,)),
    "shells": pair(functools.partial(EllipticalShell, 20), (1, 3)),
    "torus": gaussians((0.7, 1.1), shape=(6, 5)),
    "square torus": gaussians((0.7, 1.1), shape=(4, 4)),
    "scaled": lf.Discrimination(Gaussian(12, xi=1, scale=2), Gaussian(12, xi=1.7, scale=0.5)),
    "labels": gaussians((1, 2), shape=(12,), labels=(0, 3), proportions=(0.2, 0.8)),
    "first class": gaussians((1, 2), shape=(12,), labels=(2, 0)),
    "three": gaussians((0.5, 1, 1.5), shape=(12,), labels=(0, 0, 1.5), proportions=(0.2, 0.3, 0.5)),
    "penalty": gaussians((1, 2), shape=(12,), l2=0.05),
    "signs": gaussians((1, 2), labels="signs"),
    "uneven signs": gaussians((1, 2), shape=(12,), labels=(3, -0.4), proportions=(0.3, 0.7)),
    "signs of unlike laws": lf.Discrimination(
        StudentT(12, xi=1, nu=3), EllipticalShell(12, xi=2), labels="signs"
    ),
    "signs on a torus": gaussians((0.7, 1.1), shape=(6, 5), labels="signs"),
}


@pytest.mark.parametrize("name", TASKS)
def test_every_sinusoid_is_at_rest(name):
    task = TASKS[name]
    flow = velocity(task)
    waves = sinusoids(task)
    assert len({wave.frequency for wave in waves}) == len(waves)
    for wave in waves:
        w = wave.field(phase=0.4).ravel()
        rounding = 1e-14 * max(1, np.abs(wave.growth_rates).max() * np.abs(w).max())
        np.testing.assert_allclose(flow(jnp.asarray(w)), 0, atol=rounding)
        # The response does not depend on the size of w, so that any other size returns at the rate
        # of relaxation.
        np.testing.assert_allclose(
            flow(jnp.asarray(1.1 * w)), 0.1 * wave.relaxation * w, atol=rounding
        )
        assert loss_at(task, w) == pytest.approx(wave.loss, abs=1e-14)
        assert np.linalg.norm(w) == pytest.approx(wave.norm, rel=1e-12)
    assert waves[0].stable and waves[0].loss == min(wave.loss for wave in waves)


def modes_of(task):
    """Unit plane waves cos and sin of every frequency, as columns, and their frequencies."""
    columns, frequencies = [], []
    for index in np.ndindex(task.shape):
        turns = sum(
            k * x / n for k, x, n in zip(index, np.indices(task.shape), task.shape, strict=True)
        )
        for wave in (np.cos, np.sin):
            column = wave(2 * np.pi * turns).ravel()
            if np.linalg.norm(column) > 1e-9:
                columns.append(column / np.linalg.norm(column))
                frequencies.append(index)
    return np.stack(columns, axis=1), frequencies


@pytest.mark.parametrize("name", TASKS)
def test_rates_are_the_jacobians(name):
    """By differences of the flow, at several steady states: all transverse rates, the phase, the
    size.
    """
    task = TASKS[name]
    columns, frequencies = modes_of(task)
    flow = velocity(task)
    slopes = jax.jit(
        lambda w, d: jax.vmap(lambda d: (flow(w + d) - flow(w - d)) / 2, out_axes=1)(d)
    )
    waves = sinusoids(task)
    labelled = [
        stimulus.covariance_matrix()
        for stimulus, label in zip(task.stimuli, task.targets()[:, 0], strict=True)
        if label
    ]
    for wave in (waves[0], waves[1], waves[len(waves) // 2], waves[-1]):
        w = wave.field(phase=0.0).ravel()
        # Small beside √(wᵀΣ₁w), so that the curvature does not show: on a saddle of little power
        # that is short.
        step = 1e-5 * math.sqrt(
            min(w @ matrix @ w / np.linalg.eigvalsh(matrix).max() for matrix in labelled)
        )
        differences = (
            np.asarray(slopes(jnp.asarray(w), jnp.asarray(step * np.eye(task.size)))) / step
        )
        along, near = w / np.linalg.norm(w), 1e-9 * max(1, np.abs(wave.growth_rates).max())
        assert along @ differences @ along == pytest.approx(wave.relaxation, abs=near)
        for column, frequency in zip(columns.T, frequencies, strict=True):
            if abs(column @ along) < 1e-9:
                assert column @ differences @ column == pytest.approx(
                    wave.rate(frequency), abs=near
                )
        growing = np.linalg.eigvalsh((differences + differences.T) / 2).max()
        assert wave.stable == (growing < 1e-7)
        if not wave.stable:
            assert growing == pytest.approx(wave.growth_rates.max(), abs=near)


def test_a_push_that_outweighs_every_pull_leaves_nothing():
    """With labels (−η, 1) a wave exists where √λ₁ > η√λ₀; beyond the largest such η the field
    dies out.
    """
    ratios = [wave.ratio for wave in sinusoids(gaussians((1, 2)))]
    for eta in (0.5, 1.0, 1.3):
        waves = sinusoids(gaussians((1, 2), labels=(-eta, 1)))
        assert [wave.ratio for wave in waves] == pytest.approx(
            [r for r in ratios if r < eta**-2], rel=1e-12
        )
    most = ratios[0] ** -0.5
    assert len(sinusoids(gaussians((1, 2), labels=(-0.999 * most, 1)))) == 1
    with pytest.raises(lf.InputError, match="No wave survives"):
        winning_mode(gaussians((1, 2), labels=(-1.001 * most, 1)))


def test_only_the_smallest_ratio_is_stable():
    waves = sinusoids(gaussians((1, 2)))
    assert [wave.stable for wave in waves] == [True] + [False] * (len(waves) - 1)
    assert [wave.ratio for wave in waves] == sorted(wave.ratio for wave in waves)
    best, lambda1 = waves[0], spectrum(Gaussian(40, xi=2).covariance())
    for wave in waves[1:]:
        expected = 0.5 * lambda1[0] * (wave.ratio - best.ratio)
        assert wave.rate(best.frequency) == pytest.approx(expected, rel=1e-9)
        assert wave.rate(best.frequency) > 0 > best.rate(wave.frequency)


def test_no_field_does_better():
    task = gaussians((1, 2), shape=(12,))
    flow = LinearResponse().flow(task, NEURON)
    start = (
        np.random.default_rng(7).normal(size=(500, 1, 12))
        * np.geomspace(0.01, 1, 500)[:, None, None]
    )
    losses = jax.vmap(lambda w: flow({"weights": w})[0])(jnp.asarray(start))
    assert losses.min() > winning_mode(task).loss


# -- the numbers -----------------------------------------------------------------------------------


def test_numbers_at_lengthscales_one_and_two():
    waves = {wave.frequency: wave for wave in sinusoids(gaussians((1, 2)))}
    flat, first = waves[(0,)], waves[(1,)]
    assert rounds_to(flat.norm, "0.28251")
    assert rounds_to(flat.ratio, "0.5001") and rounds_to(first.ratio, "0.5094")
    assert rounds_to(first.rate(0), "0.0165661")
    lambda0, lambda1 = (spectrum(Gaussian(40, xi=xi).covariance()) for xi in (1, 2))
    assert flat.norm**2 == pytest.approx(
        2 / math.pi * lambda1[0] / (lambda0[0] + lambda1[0]) ** 2, rel=1e-13
    )
    assert first.loss == pytest.approx(0.5 - 1 / (2 * math.pi) / (1 + first.ratio), rel=1e-14)
    w = first.field().ravel()
    jacobian = jax.jacobian(velocity(gaussians((1, 2))))(jnp.asarray(w))
    assert rounds_to(float(np.linalg.eigvalsh(np.asarray(jacobian)).max()), "0.0165661")


def test_ratios_at_short_lengthscales():
    waves = {wave.frequency: wave for wave in sinusoids(gaussians((0.3, 0.7)))}
    assert rounds_to(waves[(0,)].ratio, "0.7934") and rounds_to(waves[(1,)].ratio, "0.7954")


@pytest.mark.parametrize(
    "make, level",
    [
        (EllipticalShell, "0.0413"),
        (Gaussian, "0.0410"),
        (EllipticalExtreme, "0.0403"),
        (functools.partial(StudentT, nu=3), "0.0327"),
    ],
)
def test_flat_levels(make, level):
    wave = winning_mode(pair(functools.partial(make, 40), (1, 3)))
    assert wave.frequency == (0,) and rounds_to(wave.amplitude, level)
    np.testing.assert_allclose(wave.field(phase=1.0), wave.amplitude)


def test_notes_001_25_is_no_steady_state():
    """u² = √(2/π)/(λ₀ + λ₁) leaves −0.139 under the notes' loss at k = 1; u² = (2/π) λ₁/(λ₀ +
    λ₁)² leaves nothing.
    """
    task = gaussians((1, 2))
    lambda0, lambda1 = (spectrum(stimulus.covariance())[1] for stimulus in task.stimuli)
    unit = fourier_basis((40,))[:, 1]
    assert fourier_frequencies((40,))[1] == 1
    for square, left in (
        (math.sqrt(2 / math.pi) / (lambda0 + lambda1), -0.139),
        (2 / math.pi * lambda1 / (lambda0 + lambda1) ** 2, 0.0),
    ):
        result = unit @ np.asarray(velocity(task)(jnp.asarray(math.sqrt(square) * unit))) / 2
        assert result == pytest.approx(left, abs=5e-4 if left else 1e-15)
    # (26)–(31) mean the length, not its square: ‖u‖_Λ₁ = √(2/π)/(1 + r).
    wave = sinusoids(task)[1]
    assert wave.norm * math.sqrt(lambda1) == pytest.approx(
        math.sqrt(2 / math.pi) / (1 + wave.ratio), rel=1e-13
    )


@pytest.mark.parametrize("xis", [(2, 3), (2, 4), (3, 2)])
def test_ratio_of_squared_exponentials(xis):
    """r_k ≈ (ξ₀/ξ₁) exp((πk/N)²(ξ₁² − ξ₀²)), up to the first alias of each spectrum."""
    n = 40
    waves = {wave.frequency[0]: wave for wave in sinusoids(gaussians(xis))}
    for k in range(8):
        closed = xis[0] / xis[1] * math.exp((math.pi * k / n) ** 2 * (xis[1] ** 2 - xis[0] ** 2))
        alias = sum(2 * math.exp(-((math.pi * xi / n) ** 2) * ((n - k) ** 2 - k**2)) for xi in xis)
        assert waves[k].ratio == pytest.approx(closed, rel=alias + 1e-9)


@pytest.mark.parametrize(
    "xis, frequency", [((1, 2), 0), ((1, 3), 0), ((2, 1), 20), ((0.7, 0.3), 20)]
)
def test_flat_or_alternating(xis, frequency):
    assert winning_mode(gaussians(xis)).frequency == (frequency,)


# -- the flow ends there ---------------------------------------------------------------------------


def endpoint(task, key, time, step, members=3):
    """Euler from random starts; a steady state of the flow is one of the steps."""
    flow = LinearResponse().flow(task, NEURON)
    start = math.sqrt(0.001 * 2 / (task.size + 1)) * jax.random.normal(key, (members, 1, task.size))

    def run(flow, w):
        return jax.lax.fori_loop(
            0, round(time / step), lambda _, w: w - step * flow({"weights": w})[1]["weights"], w
        )

    return np.asarray(jax.jit(jax.vmap(run, (None, 0)))(flow, start))[:, 0]


def test_random_starts_end_flat(key):
    """Slowest is the first sinusoid, at 0.0166."""
    task = gaussians((1, 2))
    ends = endpoint(task, key, time=2500, step=0.5)
    modes = ends @ fourier_basis((40,))
    assert all(rounds_to(size, "0.282508") for size in np.abs(modes[:, 0]))
    np.testing.assert_allclose(modes[:, 1:], 0, atol=1e-14)


def test_the_fastest_wave_wins_with_the_classes_exchanged(key):
    """ξ = (2, 1), N = 40: slowest to leave is the wave next to it, at 1e-4."""
    task = gaussians((2, 1))
    wave = winning_mode(task)
    slowest = -np.delete(wave.growth_rates, 20).max()
    ends = endpoint(task, key, time=20 / slowest, step=0.7)
    assert wave.frequency == (20,) and 5e-5 < slowest < 2e-4
    for end in ends:
        np.testing.assert_allclose(
            np.sign(end[0]) * end, wave.field(), rtol=0, atol=1e-4 * wave.amplitude
        )


def test_random_starts_end_alternating(key):
    task = gaussians((1, 0.5), shape=(16,))
    wave = winning_mode(task)
    slowest = -np.delete(wave.growth_rates, 8).max()
    ends = endpoint(task, key, time=40 / slowest, step=0.4)
    assert wave.frequency == (8,)
    for end in ends:
        np.testing.assert_allclose(np.sign(end[0]) * end, wave.field(), atol=1e-12)


def test_random_starts_end_on_a_torus(key):
    task = pair(functools.partial(EllipticalShell, (6, 5)), (0.4, 0.7))
    wave = winning_mode(task)
    slowest = -np.delete(wave.growth_rates.ravel(), 0).max()
    for end in endpoint(task, key, time=40 / slowest, step=0.3):
        np.testing.assert_allclose(np.abs(end), wave.amplitude, atol=1e-12)


# -- equal ratios, refusals ------------------------------------------------------------------------


def test_equal_ratios_leave_a_mixture_free():
    """Covariances that differ by a factor: only Σ λ₁ u² is fixed, and every mode is alike."""
    stimulus = lf.stimuli.Gaussian((12,), xi=0.8)
    task = lf.Discrimination(stimulus, stimulus.replace(scale=1.5))
    waves = sinusoids(task)
    assert all(wave.stable and len(wave.alike) == len(waves) - 1 for wave in waves)
    assert not waves[0].growth_rates.any()
    u = np.random.default_rng(8).normal(size=12)
    frequencies = fourier_frequencies((12,))[:, 0]
    lambda1 = spectrum(task.stimuli[1].covariance())[frequencies]
    u *= 2 * GAUSSIAN_SLOPE / (1 + waves[0].ratio) / math.sqrt(np.sum(lambda1 * u**2))
    np.testing.assert_allclose(velocity(task)(jnp.asarray(fourier_basis((12,)) @ u)), 0, atol=1e-14)


def test_waves_of_a_square_torus_come_in_families():
    waves = {wave.frequency: wave for wave in sinusoids(gaussians((0.7, 1.1), shape=(8, 8)))}
    assert set(waves[(1, 2)].alike) | {(1, 2)} == {(1, 2), (2, 1), (1, -2), (2, -1)}
    assert waves[(0, 0)].alike == () and waves[(4, 4)].alike == ()
    assert len(waves) == (64 - 4) // 2 + 4


def test_no_mode_where_there_is_no_power():
    """Spectra fall below rounding at high frequencies; the ratio of two such numbers is no
    winner.
    """
    waves = sinusoids(
        lf.Discrimination(*(Gaussian(40, xi=xi, kernel="periodized") for xi in (4, 7)))
    )
    assert len(waves) < 21 and waves[0].frequency == (0,)
    assert all(math.isfinite(wave.norm) for wave in waves)


def test_a_kink_gives_high_frequencies_the_smallest_ratio():
    """The wrapped kernel at long lengthscales: the flat field is a saddle, but of rates far
    below any other.
    """
    waves = sinusoids(gaussians((3, 5)))
    flat = next(wave for wave in waves if wave.frequency == (0,))
    assert waves[0].frequency == (19,) and waves[0].stable and not flat.stable
    assert 0 < flat.growth_rates.max() < 1e-7 * -flat.relaxation
    assert winning_mode(gaussians((3, 5), shape=(41,))).frequency == (0,)


@pytest.mark.parametrize(
    "task, message",
    [
        (gaussians((1, 2), labels=(1, 2)), "labels"),
        (gaussians((1, 2), labels="signs", l2=0.1), "labels"),
        (gaussians((1, 2, 3)), "labels"),
        (gaussians((1, 2, 3), labels="signs"), "labels"),
        (gaussians((1, 2), labels=(-1, -2)), "labels"),
        (gaussians((1, 2), labels=(0, -1)), "positive"),
        (gaussians((1, 2), l1=0.1), "l1"),
        (gaussians((1, 2), l2=[0.1, 0.2]), "sweep"),
        (lf.Discrimination(uneven(), lf.stimuli.Gaussian((8,), xi=0.5)), "translation-invariant"),
        (lf.Discrimination(lf.stimuli.Ising(40, 0.3), lf.stimuli.Ising(40, 0.7)), "elliptical"),
        (gaussians((1, 2), loss="absolute"), "mean squared error"),
    ],
)
def test_tasks_without_sinusoids(task, message):
    with pytest.raises(lf.InputError, match=message):
        sinusoids(task)


def test_covariance_alone_has_sinusoids_for_any_law():
    task = lf.Discrimination(lf.stimuli.Ising(40, 0.3), lf.stimuli.Ising(40, 0.7))
    wave = winning_mode(task, LinearResponse(slope="gaussian"))
    clones = lf.Discrimination(*(stimulus.gaussian_clone() for stimulus in task.stimuli))
    assert wave.frequency == (0,)
    assert wave.amplitude == pytest.approx(winning_mode(clones).amplitude, rel=1e-12)
    with pytest.raises(lf.InputError, match="frequency"):
        wave.rate((1, 1))
