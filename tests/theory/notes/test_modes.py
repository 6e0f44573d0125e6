"""Waves of one neuron's field over time: against the flow in space, closed forms, and the rates
of steady states.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import localfields as lf
from localfields.lattice import matrix
from localfields.stimuli import EllipticalShell, Gaussian, StudentT
from localfields.theory.notes.modes import follow_modes
from localfields.theory.responses.linear import LinearResponse, sinusoids, winning_mode

from ..sheet import rounds_to


def gaussians(xis=(1, 2), shape=(12,), **values):
    return lf.Discrimination(*(Gaussian(shape, xi=xi, kernel="periodized") for xi in xis), **values)


TASKS = {
    "labels 0 and 1": gaussians(),
    "odd ring": gaussians(shape=(11,)),
    "torus": gaussians((0.7, 1.1), shape=(4, 3)),
    "signs": gaussians(labels="signs"),
    "two pulls": gaussians(labels=(1, 2), proportions=(0.3, 0.7)),
    "three": gaussians((0.5, 1, 1.5), labels=(-0.5, 0, 2)),
    "penalty": gaussians(labels="signs", l2=0.05),
    "unlike laws": lf.Discrimination(
        StudentT(12, xi=1, nu=3), EllipticalShell(12, xi=2), labels="signs"
    ),
}
TIMES = np.array([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])


def in_space(task, start):
    """The flow of the field itself, with dense covariances and another integrator."""
    dense = [matrix(stimulus.covariance()) for stimulus in task.stimuli]
    slopes = [
        stimulus.marginal().mean_abs / (2 * stimulus.marginal().sd) for stimulus in task.stimuli
    ]

    def velocity(t, w):
        total = -2 * task.l2 * w
        for p, y, m, sigma in zip(task.priors, task.targets()[:, 0], slopes, dense, strict=True):
            total = total + p * (2 * y * m * sigma @ w / np.sqrt(w @ sigma @ w) - sigma @ w)
        return total

    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13, "t_eval": TIMES}
    return scipy.integrate.solve_ivp(
        velocity, (0, TIMES[-1]), start.ravel(), **options
    ).y.T.reshape(-1, *task.shape)


@pytest.mark.parametrize("name", TASKS)
def test_waves_are_the_flow_in_space(name):
    task = TASKS[name]
    start = 0.3 * np.random.default_rng(1).normal(size=task.shape)
    actual, expected = follow_modes(task, start, TIMES), in_space(task, start)
    assert np.abs(actual.fields - expected).max() < 1e-8
    np.testing.assert_allclose(
        (actual.amplitudes**2).sum(axis=1), (actual.fields.reshape(7, -1) ** 2).sum(axis=1)
    )
    np.testing.assert_allclose(actual.shares.sum(axis=1), 1)
    # A gain of a class that is 5 % off would show.
    flow = LinearResponse().flow(task, lf.networks.SingleNeuron())
    step = 1e-5
    near = follow_modes(task, start, [0.0, step]).fields
    forward = -np.asarray(
        flow({"weights": jnp.asarray(start.reshape(1, -1))})[1]["weights"]
    ).reshape(task.shape)
    assert np.abs((near[1] - near[0]) / step - forward).max() < 1e-3 * np.abs(forward).max()


def test_a_single_wave_relaxes_exponentially():
    """The response does not depend on the size of a field: |u| = u* + (u(0) − u*) exp(relaxation
    t).
    """
    for task in (TASKS["labels 0 and 1"], TASKS["signs"]):
        for wave in sinusoids(task)[:3]:
            modes = follow_modes(task, 0.1 * wave.field(phase=0.3), TIMES)
            lengths = wave.norm * (1 - 0.9 * np.exp(wave.relaxation * TIMES))
            own = modes.frequencies.index(wave.frequency)
            np.testing.assert_allclose(modes.amplitudes[:3, own], lengths[:3], rtol=1e-8)
            assert modes.leader[:3] == (wave.frequency,) * 3


def test_phases_do_not_change():
    start = np.random.default_rng(2).normal(size=12)
    before, after = (
        np.fft.rfft(start),
        np.fft.rfft(follow_modes(gaussians(), start, [0.0, 2.0]).fields[-1]),
    )
    np.testing.assert_allclose(np.angle(after / before), 0, atol=1e-9)


@pytest.mark.parametrize("labels, length", [("zero-one", ".28251"), ("signs", "")])
def test_which_wave_wins_and_how_fast(labels, length):
    """Lengthscales one and two: flat, at the rates that the steady state predicts."""
    task = lf.Discrimination(*(Gaussian(40, xi=xi) for xi in (1, 2)), labels=labels)
    best = winning_mode(task)
    start = 0.007 * np.random.default_rng(0).normal(size=40)
    late = np.array([0.0, 12.0, 14.0]) / -best.rate(1)
    modes = follow_modes(task, start, late)
    assert modes.leader[-1] == best.frequency == (0,)
    assert modes.amplitudes[-1, 0] == pytest.approx(best.norm, rel=1e-8)
    if length:
        assert rounds_to(modes.amplitudes[-1, 0], length)
    for k in (1, 2):
        fall = np.log(modes.amplitudes[2, k] / modes.amplitudes[1, k]) / (late[2] - late[1])
        assert fall == pytest.approx(best.rate(k), rel=1e-6)
        assert fall != pytest.approx(best.rate(k) / 2, rel=0.1)


def test_takeover():
    task = lf.Discrimination(*(Gaussian(40, xi=xi) for xi in (1, 2)))
    start = 0.01 * np.cos(2 * np.pi * 3 * np.arange(40) / 40) + 1e-4
    times = np.linspace(0, 200, 2001)
    modes = follow_modes(task, start, times)
    when = modes.takeover(0)
    held = modes.shares[:, 0]
    assert held[times < when].max() < 0.5 < held[times > when].min()
    assert modes.takeover(0, share=0.9) > when
    assert modes.takeover((3,), share=0.0) == 0.0
    assert np.isnan(modes.takeover(3))
    with pytest.raises(lf.InputError, match="frequency"):
        modes.takeover(21)


def test_a_field_may_die_out():
    """Labels −3 and 1: every wave is pushed harder than pulled, and the field is gone in finite
    time.
    """
    task = gaussians(labels=(-3, 1))
    modes = follow_modes(task, np.ones(12), np.linspace(0, 20, 41))
    gone = np.isnan(modes.amplitudes[:, 0])
    assert not gone[0] and gone[-1] and (np.diff(gone.astype(int)) >= 0).all()
    # Flat from the start: |u| = u* + (u(0) − u*) e^{−λt} with u* < 0 ends where it crosses zero.
    lambdas = [np.sum(stimulus.covariance()) for stimulus in task.stimuli]
    rest = (np.sqrt(lambdas[1]) - 3 * np.sqrt(lambdas[0])) * np.sqrt(2 / np.pi) / sum(lambdas)
    end = np.log(1 - np.sqrt(12) / rest) / (0.5 * sum(lambdas))
    assert modes.times[gone][0] - 0.5 <= end <= modes.times[gone][0]


def test_nothing_to_follow():
    silent = follow_modes(gaussians(), np.zeros(12), [0.0, 1.0])
    assert not silent.amplitudes.any()
    free = follow_modes(gaussians(labels=(0, 1e-12)), np.ones(12), [0.0, 1.0])
    decay = np.mean([np.sum(stimulus.covariance()) for stimulus in gaussians().stimuli])
    assert free.amplitudes[1, 0] == pytest.approx(np.sqrt(12) * np.exp(-decay))


@pytest.mark.parametrize(
    "task, initial, times, message",
    [
        (gaussians(l1=0.1), np.ones(12), [0, 1], "l1"),
        (gaussians(l2=[0.1, 0.2]), np.ones(12), [0, 1], "sweep"),
        (gaussians(), np.ones(11), [0, 1], "initial"),
        (gaussians(), np.ones(12), [1, 0], "times"),
        (
            lf.Discrimination(*(lf.stimuli.Ising(12, j) for j in (0.3, 0.7))),
            np.ones(12),
            [0, 1],
            "elliptical",
        ),
        (gaussians(loss="absolute"), np.ones(12), [0, 1], "mean squared error"),
    ],
)
def test_what_is_refused(task, initial, times, message):
    with pytest.raises(lf.InputError, match=message):
        follow_modes(task, initial, times)


def test_covariance_alone():
    task = lf.Discrimination(*(lf.stimuli.Ising(12, j) for j in (0.3, 0.7)))
    clone = lf.Discrimination(*(stimulus.gaussian_clone() for stimulus in task.stimuli))
    start = np.random.default_rng(3).normal(size=12)
    modes = follow_modes(task, start, TIMES, LinearResponse(slope="gaussian"))
    np.testing.assert_allclose(modes.fields, follow_modes(clone, start, TIMES).fields, atol=1e-12)
