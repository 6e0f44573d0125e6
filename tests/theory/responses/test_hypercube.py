"""±1 data: enumeration, the bump, and the iteration that finds it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.errors import InputError
from localfields.lattice import matrix
from localfields.stimuli._ring import enumerate_states, ising_weights, meet_in_the_middle_response
from localfields.theory import Response
from localfields.theory.responses.hypercube import (
    bump,
    enumerated_response,
    fixed_point_iteration,
    hypercube_bump,
    ising_bump,
)
from localfields.theory.responses.ising import ExactIsing
from localfields.trajectory import inverse_participation_ratio

from ..sheet import agree, fits
from .ising_rings import ising, task_of

PAIRS = [(0.3, 0.7), (0.5, 0.7), (0.3, 0.5), (0.0, 0.7), (0.3, 1.0), (0.3, 1.2), (0.7, 0.3)]
NEURON = lf.networks.SingleNeuron()


class Summed(Response):
    """f by a sum over all states, in JAX."""

    states: jax.Array
    weights: jax.Array

    def __call__(self, w):
        return 0.5 * (self.weights * jnp.sign(self.states @ w)) @ self.states


def summed_flow(task):
    """The flow of a task of small Ising rings, with responses summed over states."""
    states = enumerate_states(task.size).astype(float)
    flow = ExactIsing().flow(task, NEURON)
    exact = tuple(
        Summed(jnp.asarray(states), jnp.asarray(ising_weights(states, float(r.coupling))))
        for r in flow.responses
    )
    return eqx.tree_at(lambda flow: flow.responses, flow, exact)


def started(num, n=40, seed=0):
    """Initial fields as the paper has them: variance 0.001 · 2/(N + 1)."""
    return np.random.default_rng(seed).normal(size=(num, n)) * np.sqrt(0.001 * 2 / (n + 1))


@jax.jit
def flowed(flow, fields, steps, rate=0.2):
    """Euler steps: rests do not depend on their size."""

    def end(w):
        return jax.lax.fori_loop(
            0, steps, lambda _, w: w - rate * flow({"weights": w[None, :]})[1]["weights"][0], w
        )

    return jax.lax.map(end, fields)


def centered(fields):
    """Fields moved and turned so that the largest entry is positive and first."""
    return np.stack(
        [
            np.roll(w * np.sign(w[np.abs(w).argmax()]), -np.abs(w).argmax())
            for w in np.asarray(fields)
        ]
    )


def ipr(fields):
    return inverse_participation_ratio(np.asarray(fields), 1)


# -- enumeration -----------------------------------------------------------------------------------


def test_states_and_weights():
    states = enumerate_states(9)
    assert len(np.unique(states, axis=0)) == 2**9 and set(states.ravel()) == {-1, 1}
    for j in (-1.2, 0.0, 0.7, 19.0):
        weights = ising_weights(states, j)
        covariance = (states * weights[:, None]).T @ states
        assert np.abs(covariance - matrix(ising(9, j).covariance())).max() < 1e-13


@pytest.mark.parametrize("j", [-0.7, 0.0, 0.7, 1.2])
@pytest.mark.parametrize("n", [2, 3, 5, 14])
def test_meeting_in_the_middle_is_enumeration(n, j):
    w = np.random.default_rng(n).normal(size=n)
    assert (
        np.abs(meet_in_the_middle_response(w, j) - enumerated_response(w, ising(n, j))).max()
        < 1e-13
    )


def test_ties_are_halved():
    """Sums that rounding keeps from zero are zero: 0.1 + 0.2 against 0.3."""
    w = np.array([0.1, 0.2, -0.3, 0.0, 0.0, 0.7, -0.7, 0.0])
    whole = np.array([1, 2, -3, 0, 0, 7, -7, 0])
    expected = enumerated_response(whole, ising(8, 0.7))
    assert np.abs(enumerated_response(w, ising(8, 0.7)) - expected).max() < 1e-15
    assert np.abs(meet_in_the_middle_response(w, 0.7) - expected).max() < 1e-15
    states, weights = enumerate_states(8), ising_weights(enumerate_states(8), 0.7)
    gated = ((states @ whole >= 0) * weights) @ states  # the other convention
    assert np.abs(gated - expected).max() < 1e-15


def test_laws_as_functions_and_atoms():
    w = np.random.default_rng(0).normal(size=8)
    expected = enumerated_response(w, ising(8, 0.7))
    states = enumerate_states(8)
    energy = 0.7 * (states * np.roll(states, 1, axis=1)).sum(1)
    assert np.abs(enumerated_response(w, lambda x: np.exp(energy)) - expected).max() < 1e-14
    assert np.abs(enumerated_response(w, (states, 5 * np.exp(energy))) - expected).max() < 1e-14
    for wrong in ((states, np.ones(3)), (states[:, :5], np.ones(256))):
        with pytest.raises(InputError, match="The states must have shape"):
            enumerated_response(w, wrong)
    with pytest.raises(InputError, match="States can be listed for 1 to 20 sites, got 21"):
        enumerated_response(np.ones(21), ising(21, 0.7))
    with pytest.raises(InputError, match="A ring of 2 to 44 sites"):
        meet_in_the_middle_response(np.ones(45), 0.7)


@pytest.mark.parametrize("labels", [(0.0, 1.0), (0.0, 1.0, 2.0), (-1.0, 1.0)])
def test_loss_of_any_labels_is_the_mean_square(labels):
    """L and ∇L against E[(y − ReLU⟨w, X⟩)²] summed over states, and its finite differences."""
    couplings = (0.3, 0.7, 1.1)[: len(labels)]
    flow = summed_flow(task_of(couplings, n=9, labels=labels))
    states = enumerate_states(9).astype(float)
    w = np.random.default_rng(0).normal(size=9)

    def direct(w):
        losses = [
            ising_weights(states, j) @ (y - np.maximum(states @ w, 0)) ** 2
            for j, y in zip(couplings, labels, strict=True)
        ]
        return np.mean(losses)

    loss, gradient = flow({"weights": jnp.asarray(w)[None, :]})
    assert float(loss) == pytest.approx(direct(w), abs=1e-13)
    step = 1e-6
    slopes = [(direct(w + step * e) - direct(w - step * e)) / (2 * step) for e in np.eye(9)]
    assert np.abs(np.asarray(gradient["weights"])[0] - slopes).max() < 5e-9


@pytest.mark.parametrize("j", [-0.7, 0.3, 0.7, 1.2])
def test_signs_have_linear_conditional_moments(j):
    """A1 and A2 are exact on {±1}^N: E[X|X_i] = X_i Σ_i and Cov[X|X_i] = Σ − Σ_i Σ_iᵀ, summed
    over states.
    """
    states = enumerate_states(11).astype(float)
    weights, covariance = ising_weights(states, j), matrix(ising(11, j).covariance())
    for site, sign in ((0, 1), (3, -1), (7, 1)):
        given = np.where(states[:, site] == sign, weights, 0)
        given = given / given.sum()
        mean = given @ states
        second = (states * given[:, None]).T @ states - np.outer(mean, mean)
        column = covariance[:, site]
        np.testing.assert_allclose(mean, sign * column, rtol=0, atol=6e-14)
        np.testing.assert_allclose(
            second, covariance - np.outer(column, column), rtol=0, atol=6e-14
        )


# -- the bump --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair, dominance, spread",
    [
        ((0.3, 0.7), ".674", ".8537"),
        ((0.5, 0.7), ".339", ".966"),
        ((0.3, 0.5), ".294", ".962"),
        ((0.0, 0.7), "1.014", ".651"),
        ((0.3, 1.0), "1.451", ".616"),
        ((0.3, 1.2), "2.149", ".460"),
        ((0.7, 0.3), ".473", ".923"),
    ],
)
def test_bumps_of_ising_pairs(pair, dominance, spread):
    """The table is of an infinite ring: on 40 sites the ratio at (.3, 1.2) is 2.151."""
    result = hypercube_bump(task_of(pair, n=400))
    assert round(result.dominance, 3) == float(dominance)
    assert round(result.ipr, len(spread) - 1) == float(spread)
    assert result.holds == (float(dominance) < 1)
    small = hypercube_bump(task_of(pair))
    assert small.dominance == pytest.approx(result.dominance, rel=2e-3) and round(
        small.ipr, 3
    ) == round(result.ipr, 3)


@pytest.mark.parametrize(
    "j0, j1", [*PAIRS, (0.1, 0.2), (0.4, 0.9), (0.6, 0.65), (1.0, 0.2), (-0.2, 0.5)]
)
def test_bump_of_an_infinite_ring(j0, j1):
    n = 600
    closed = ising_bump(j0, j1, lf.lattice.distance(n))
    assert np.abs(hypercube_bump(task_of((j0, j1), n=n)).field - closed).max() < 4e-16


def test_bump_is_the_rest_of_its_chamber():
    """w* = (Σ₀ + Σ₁)⁻¹Σ₁e_i solves f(w) = ½(Σ₀ + Σ₁)w with f summed over states, and has the
    loss told.
    """
    task = task_of((0.3, 0.7), n=12)
    result, flow = hypercube_bump(task, site=5), summed_flow(task)
    mean = matrix(task.stimuli[0].covariance() + task.stimuli[1].covariance())
    direct = np.linalg.solve(mean, matrix(task.stimuli[1].covariance())[:, 5])
    np.testing.assert_allclose(result.field, direct, rtol=0, atol=1e-14)
    loss, gradient = flow({"weights": jnp.asarray(result.field)[None, :]})
    assert (
        np.abs(np.asarray(gradient["weights"])).max() < 1e-12
    )  # rounding of a sum over 4096 states
    assert float(loss) == pytest.approx(result.loss, abs=1e-12)
    assert round(hypercube_bump(task_of((0.3, 0.7))).loss, 6) == 0.365626
    eigenvalues = [lf.lattice.spectrum(s.covariance()) for s in task.stimuli]
    assert result.loss == pytest.approx(
        0.5 - 0.25 * np.mean(eigenvalues[1] ** 2 / sum(eigenvalues)), abs=1e-14
    )


@pytest.mark.parametrize(
    "options",
    [{"proportions": (0.3, 0.7)}, {"labels": (-0.05, 1)}, {"l2": 0.05}, {"labels": (0, 3)}],
)
def test_bump_of_other_tasks(options):
    """Labels, proportions and the L2 penalty enter as they do in the flow."""
    task = task_of((0.3, 0.7), n=12, **options)
    result, flow = hypercube_bump(task), summed_flow(task)
    assert result.holds
    loss, gradient = flow({"weights": jnp.asarray(result.field)[None, :]})
    assert (
        np.abs(np.asarray(gradient["weights"])).max() < 1e-12
    )  # rounding of a sum over 4096 states
    assert float(loss) == pytest.approx(result.loss, abs=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_bump_where_no_class_varies_in_some_direction(l2):
    """Spins that add up to zero in every state: the shortest solution, at whose loss the gate of
    its site leaves it.
    """
    states = enumerate_states(8).astype(float)
    states = states[states.sum(axis=1) == 0]
    laws = [ising_weights(states, j) for j in (0.2, 0.5)]
    first, second = ((states * law[:, None]).T @ states for law in laws)
    result = bump([first[0], second[0]], l2=l2)
    stiffness = 0.5 * (first + second) + 2 * l2 * np.eye(8)
    np.testing.assert_allclose(
        result.field, np.linalg.pinv(stiffness) @ second[0] / 2, rtol=0, atol=1e-14
    )
    assert abs(result.field.sum()) < 1e-14 and result.dominance > 1 - 1e-12 and not result.holds
    gated = (states[:, 0] > 0) * (states @ result.field)
    errors = [law @ (y - gated) ** 2 for law, y in zip(laws, (0.0, 1.0), strict=True)]
    assert result.loss == pytest.approx(np.mean(errors) + l2 * np.sum(result.field**2), abs=1e-14)


def test_a_negative_peak_does_not_hold():
    """Labels 0.1 and −1: the closed form has w_i < 0, which is the rest of no chamber."""
    result = hypercube_bump(task_of((0.3, 0.7), labels=(0.1, -1)))
    assert result.field[0] < 0 and result.dominance < 1 and not result.holds


@pytest.mark.parametrize("xis, peak, spread, dominance", [
    ((0.3, 0.7), ".498", ".993", ".087"), ((1.0, 2.0), ".419", ".824", ".60"), ((1.0, 3.0), None, None, "1.12"),
])  # fmt: skip
def test_bumps_of_the_arcsine_covariance(xis, peak, spread, dominance):
    law = lf.marginals.TwoPoint()
    result = hypercube_bump(
        lf.Discrimination(*(lf.stimuli.Copula(40, xi=xi, marginal_law=law) for xi in xis))
    )
    assert round(result.dominance, len(dominance.partition(".")[2])) == float(dominance)
    assert result.holds == (float(dominance) < 1)
    if peak:
        assert round(result.field.max(), 3) == float(peak) and round(result.ipr, 3) == float(spread)
    nearly = lf.Discrimination(*(lf.stimuli.NLGP(40, xi=xi, gain=100) for xi in xis))
    with pytest.raises(InputError, match="±1 at each site"):
        hypercube_bump(nearly)
    assert np.abs(hypercube_bump(nearly, approximate=True).field - result.field).max() < 0.01


def test_bump_on_a_torus():
    law = lf.marginals.TwoPoint()
    task = lf.Discrimination(
        *(lf.stimuli.Copula((8, 9), xi=xi, marginal_law=law) for xi in (0.3, 0.7))
    )
    result = hypercube_bump(task, site=(2, 3))
    mean = sum(matrix(s.covariance()) for s in task.stimuli)
    column = matrix(task.stimuli[1].covariance())[:, 2 * 9 + 3]
    np.testing.assert_allclose(
        result.field.ravel(), np.linalg.solve(mean, column), rtol=0, atol=1e-13
    )
    assert result.field.shape == (8, 9) and result.holds
    np.testing.assert_array_equal(hypercube_bump(task, site=2 * 9 + 3).field, result.field)


def test_refusals_of_a_bump():
    with pytest.raises(InputError, match="`l1` must be 0 for hypercube_bump"):
        hypercube_bump(task_of((0.3, 0.7), l1=0.1))
    with pytest.raises(InputError, match="mean squared error with one number per class"):
        hypercube_bump(task_of((0.3, 0.7), loss="absolute"))
    with pytest.raises(InputError, match="one number"):
        hypercube_bump(lf.Discrimination(ising(40, 0.3), ising(40, np.array([0.7, 0.8]))))
    with pytest.raises(InputError, match="`l2` must be one number for hypercube_bump"):
        hypercube_bump(task_of((0.3, 0.7), l2=[0.1, 0.2]))
    assert bump([ising(12, 0.3).covariance()] * 2, (0, 0)).holds is False


# -- how it is reached -----------------------------------------------------------------------------


def test_iteration_finds_the_bump():
    """From random fields, with a loss that never rises, in 12 to 16 steps from the starts of the
    sheet.
    """
    flow, result = (
        ExactIsing().flow(task_of((0.3, 0.7)), NEURON),
        hypercube_bump(task_of((0.3, 0.7))),
    )
    runs = [fixed_point_iteration(flow, w) for w in started(12)]
    assert all(run.converged for run in runs)
    steps = [run.iterations for run in runs]
    assert 12 <= np.median(steps) <= 16 and fits("12", steps) and fits("16", steps)
    assert max(np.diff(run.losses).max() for run in runs) < 1e-14
    assert np.abs(centered([run.fields[-1] for run in runs]) - result.field).max() < 1e-9
    assert [run.losses[-1] for run in runs] == pytest.approx([result.loss] * 12, abs=1e-9)


def test_iteration_where_no_bump_holds():
    """33 to 75 steps at these two pairs; the window's smoothing is all that may raise the loss."""
    steps = []
    for pair in ((0.3, 1.2), (0.0, 0.7)):
        flow = ExactIsing().flow(task_of(pair), NEURON)
        runs = [fixed_point_iteration(flow, w) for w in started(6)]
        assert all(run.converged for run in runs)
        assert max(np.diff(run.losses).max() for run in runs) < 1e-6
        steps += [run.iterations for run in runs]
    assert 33 <= np.median(steps) <= 75 and fits("33", steps) and fits("75", steps)


@pytest.mark.parametrize("pair", [(0.3, 0.7), (0.3, 1.2)])
def test_iteration_on_exact_responses_is_finite_and_monotone(pair):
    flow = summed_flow(task_of(pair, n=12))
    for w in started(6, n=12):
        run = fixed_point_iteration(flow, w, tol=1e-14)
        assert run.converged and np.diff(run.losses).max() < 1e-14
        assert run.fields.shape == (run.iterations + 1, 12)
        assert (
            np.abs(np.asarray(flow({"weights": jnp.asarray(run.fields[-1:])})[1]["weights"])).max()
            < 1e-13
        )


def test_iteration_by_fft_and_its_refusal():
    """Past 256 sites the covariance is kept as its spectrum."""
    result = hypercube_bump(task_of((0.3, 0.7), n=300))
    near = result.field + 0.2 * np.eye(300)[0]
    run = fixed_point_iteration(ExactIsing(64).flow(task_of((0.3, 0.7), n=300), NEURON), near)
    assert run.iterations == 2 and np.abs(run.fields[-1] - result.field).max() < 1e-9
    with pytest.raises(InputError, match="l1"):
        fixed_point_iteration(ExactIsing().flow(task_of((0.3, 0.7), l1=0.1), NEURON), np.ones(40))


@pytest.mark.parametrize("n", [16, 304])
def test_iteration_where_no_class_varies_in_some_direction(n):
    """Pulses that fit the ring: frequencies without power, of a matrix or a spectrum, stay out
    of every solution.
    """
    task = lf.Discrimination(
        *(lf.stimuli.SinglePulse(n, length, length) for length in (n // 8, n // 4))
    )
    silent = sum(lf.lattice.spectrum(stimulus.covariance()) for stimulus in task.stimuli) < 1e-9
    flow = lf.theory.LinearResponse(slope="gaussian").flow(task, NEURON)
    run = fixed_point_iteration(flow, started(1, n)[0])
    assert run.converged and silent.any() and np.diff(run.losses).max() < 1e-14
    assert np.abs(np.fft.fft(run.fields[1:])[:, silent]).max() < 1e-12
    assert (
        np.abs(np.asarray(flow({"weights": jnp.asarray(run.fields[-1:])})[1]["weights"])).max()
        < 1e-8
    )


def test_flow_ends_at_the_bump():
    """All twelve starts end within 1e-9 of the closed form, printed 2.4e-11; IPR 0.8537."""
    result = hypercube_bump(task_of((0.3, 0.7)))
    ends = flowed(ExactIsing().flow(task_of((0.3, 0.7)), NEURON), jnp.asarray(started(12)), 350)
    assert np.abs(centered(ends) - result.field).max() < 1e-10
    assert (ipr(ends).round(4) == 0.8537).all()


@pytest.mark.slow
def test_few_frequencies_reach_the_same_peaks():
    """Peaks do not depend on the number of frequencies or the rate: all of 40 in the sheet,
    where one may be close.
    """
    starts = jnp.asarray(started(40, seed=1))
    flows = {num: ExactIsing(num).flow(task_of((0.3, 0.7)), NEURON) for num in (64, 128, 256)}
    reached = flowed(flows[64], starts, 240, 0.05)  # peaks are decided long before rest is reached
    peaks = np.abs(reached).argmax(1)
    for num, steps, rate in ((64, 480, 0.025), (128, 240, 0.05), (256, 240, 0.05)):
        apart = np.abs(np.abs(flowed(flows[num], starts, steps, rate)).argmax(1) - peaks)
        assert agree(40, 40, apart == 0) and (np.minimum(apart, 40 - apart) <= 1).all()
    ends = flowed(flows[64], reached, 300)
    np.testing.assert_array_equal(np.abs(ends).argmax(1), peaks)
    assert np.abs(centered(ends) - hypercube_bump(task_of((0.3, 0.7))).field).max() < 3e-9


@pytest.mark.parametrize("pair, end", [((0.0, 0.7), ".444"), ((0.3, 1.2), ".259")])
def test_flow_where_no_bump_holds(pair, end):
    """It ends in a chamber broader than the closed form. At (0, .7) several lie close: 64
    frequencies end at .471.
    """
    ends = flowed(ExactIsing().flow(task_of(pair), NEURON), jnp.asarray(started(3)), 400)
    assert (ipr(ends).round(3) == float(end)).all()
    assert (ipr(ends) < hypercube_bump(task_of(pair)).ipr - 0.1).all()


def test_flow_to_a_negative_surround():
    """Short-range class as target: most starts end at the bump, the others are still near the
    fastest wave.
    """
    result = hypercube_bump(task_of((0.7, 0.3)))
    assert (result.field[1:] < 0).all() and round(result.ipr, 3) == 0.923
    ends = centered(
        flowed(ExactIsing(64).flow(task_of((0.7, 0.3)), NEURON), jnp.asarray(started(24)), 400)
    )
    at_bump = np.abs(ends - result.field).max(1) < 1e-3
    # At 5 of 6, as printed, fewer than half of 24 are there once in 30 000.
    assert at_bump.sum() >= 12
    assert (
        np.abs(np.fft.rfft(ends[~at_bump])).argmax(1) > 10
    ).all()  # more than half of the fastest
