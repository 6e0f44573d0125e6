"""Two steady states of a task: reference losses, which is lower, and which one learning finds."""

import dataclasses
import functools
import inspect
import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import localfields as lf
from localfields.errors import InputError
from localfields.theory import ClusterFlow, EffectiveFlow, fixed_point_iteration, landscape

from .sheet import rounds_to

N, XI = 40, (0.3, 0.7)


def outliers(size, beyond):
    """The quantiles of ±1 with rare values ±size where the normal score is beyond some number."""

    def quantile(u):
        z = scipy.special.ndtri(u)
        tall = 1 + (size - 1) * scipy.special.expit((np.abs(z) - beyond) / 0.02)
        return scipy.special.erf(8 * z) * tall

    return quantile


STIMULI = {
    "6, 2.576": functools.partial(lf.stimuli.Copula, marginal_law=outliers(6, 2.576)),
    "10, 3.29": functools.partial(lf.stimuli.Copula, marginal_law=outliers(10, 3.29)),
    "20, 3.29": functools.partial(lf.stimuli.Copula, marginal_law=outliers(20, 3.29)),
    "Kur(5.4)": functools.partial(lf.stimuli.Kur, k=5.4),
    "Kur(6.1)": functools.partial(lf.stimuli.Kur, k=6.1),
    "Kur(10)": functools.partial(lf.stimuli.Kur, k=10),
}


@functools.cache
def states_of(name):
    return landscape(lf.Discrimination(*(STIMULI[name]((N,), xi=xi) for xi in XI)), starts=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kurtosis", "mean_abs", "flat", "bump", "reached"),
    [
        ("10, 3.29", "6.53", ".946", ".4147", ".3876", "both"),
        ("6, 2.576", "5.06", ".886", ".4146", ".4012", "flat"),
        ("20, 3.29", "81.8", ".845", ".4221", ".4101", "flat"),
        ("Kur(5.4)", "0.50", ".818", ".4114", ".4114", "flat"),
        ("Kur(6.1)", "-0.14", ".829", ".4113", ".4111", "bump"),
    ],
)
def test_positive_kurtosis_can_localize_and_a_flat_field_can_be_a_trap(
    name, kurtosis, mean_abs, flat, bump, reached
):
    """Losses ½ − R/8 and where training from noise ends, as measured on samples.

    With rare outliers the kurtosis is positive and a bump is still the better field. Learning finds
    it in the first task only, from 54 of 64 starts in theory and from 14 of 16 in training.
    """
    states = states_of(name)
    law = states.task.stimuli[1].marginal()
    assert rounds_to(law.excess_kurtosis, kurtosis) and rounds_to(law.mean_abs, mean_abs)
    assert rounds_to(states.flat.loss, flat) and rounds_to(states.bump.loss, bump)
    assert states.reached == reached and (reached != "both" or states.localized_starts > 0.5)
    assert states.lower == ("equal" if name == "Kur(5.4)" else "bump")
    assert states.bump.localized == (name != "Kur(5.4)") and not states.flat.localized
    assert states.trapped == (name in ("6, 2.576", "20, 3.29"))
    assert ("a trap" in str(states)) == states.trapped


def test_the_loss_is_that_of_shape_and_spectrum():
    states = states_of("Kur(10)")
    for state in (states.flat, states.bump):
        ratio = state.shape_factor * state.spectral_factor
        assert state.converged and abs(state.loss - (0.5 - ratio / 8)) < 1e-9
    # The trade: a bump gains shape and loses spectrum.
    assert states.bump.shape_factor > states.flat.shape_factor > 2 / math.pi - 0.01
    assert states.bump.spectral_factor < states.flat.spectral_factor
    # That of the flat field is a ratio of the covariances' sums.
    rows = [stimulus.covariance() for stimulus in states.task.stimuli]
    assert states.flat.spectral_factor == pytest.approx(2 * rows[1].sum() / sum(rows).sum())
    assert np.ptp(states.flat.field) < 1e-9
    assert abs(states.bump.ipr - 0.8396) < 1e-4 and states.reached == states.lower == "bump"
    assert np.ptp(states.flow.ipr[:, -1, 0]) < 0.01 and states.localized_starts == 1


def test_steady_states_are_where_the_gradient_vanishes():
    states = states_of("Kur(10)")
    flow = ClusterFlow().flow(states.task, lf.networks.SingleNeuron())
    for state in (states.flat, states.bump):
        loss, gradient = flow({"weights": jnp.asarray(state.field)[None]})
        # In single precision, in which this is computed here.
        assert np.abs(gradient["weights"]).max() < 1e-6 and abs(float(loss) - state.loss) < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_an_iteration_never_raises_the_loss(seed):
    draw = np.random.default_rng(seed)
    stimuli = [lf.stimuli.NLGP((12,), xi, np.exp(draw.uniform(-1, 4))) for xi in (0.4, 0.9)]
    task = lf.Discrimination(*stimuli, l2=0.05)
    flow = ClusterFlow().flow(task, lf.networks.SingleNeuron())
    iteration = fixed_point_iteration(flow, draw.normal(size=12))
    assert np.diff(iteration.losses).max() < 1e-12 and iteration.losses[0] > iteration.losses[-1]


def test_an_exact_theory_is_preferred():
    task = lf.Discrimination(*(lf.stimuli.Ising((N,), coupling=j) for j in (0.3, 0.7)))
    states = landscape(task, starts=2)
    assert states.theory == "ExactIsing" and states.exact and states.reached == "bump"
    assert abs(states.bump.loss - lf.theory.hypercube_bump(task).loss) < 1e-9
    gaussian = lf.Discrimination(*(lf.stimuli.Gaussian((N,), xi=xi) for xi in XI))
    states = landscape(gaussian, starts=2)
    assert states.theory == "LinearResponse" and states.reached == "flat"
    assert states.lower in ("flat", "equal") and not states.trapped
    assert states.flat.shape_factor == pytest.approx(2 / math.pi)


def test_the_report_has_every_row():
    states = states_of("Kur(10)")
    text = str(states)
    assert all(row.label in text and row.text in text for row in states.rows())
    assert "lower loss         the bump" in text
    both = dataclasses.replace(states, reached="both", localized_starts=0.25)
    assert "either: 25 % of the starts end localized" in str(both) and not both.trapped


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inspect.unwrap(landscape)(3), "`task` must be a Discrimination, got 3"),
        (
            lambda: landscape(
                lf.Discrimination(*(lf.stimuli.NLGP((12,), xi, [1, 2]) for xi in XI))
            ),
            "swept parameters",
        ),
        (
            lambda: landscape(
                lf.Discrimination(*(lf.stimuli.DeadLeaves((8, 8), smallest=r) for r in (1, 2)))
            ),
            "needs a Gaussian copula",
        ),
        (
            lambda: landscape(
                lf.Discrimination(*(lf.stimuli.Kur((12,), xi) for xi in XI)), EffectiveFlow()
            ),
            "is not a gradient",
        ),
        (
            lambda: landscape(lf.Discrimination(*(lf.stimuli.Kur((12,), xi) for xi in XI), l1=0.1)),
            "`l1` must be 0",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
