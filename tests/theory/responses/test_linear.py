"""Elliptical data: the response and its flow against draws."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.stimuli import Elliptical, EllipticalExtreme, EllipticalShell, Gaussian, StudentT
from localfields.theory.responses.linear import (
    GAUSSIAN_SLOPE,
    LinearResponse,
    response_jacobian,
    sinusoids,
)

from ..sheet import rounds_to
from .linear_tasks import NEURON, gaussians, uneven, velocity

SIGMAS = 5.0


def drawn(stimulus, key, num=200_000):
    with jax.enable_x64(False):
        return np.asarray(stimulus.sample(key, num), np.float64)


def standard_errors(samples, expected):
    return (samples.mean(axis=0) - expected) / (samples.std(axis=0) / math.sqrt(len(samples)))


LAWS = {
    "gaussian": Gaussian(12, xi=1.7),
    "scaled": Gaussian(12, xi=1.7, scale=2.5),
    "torus": Gaussian((4, 3), xi=1),
    "dense": uneven(),
    "t3": StudentT(12, xi=1.7, nu=3),
    "t5": StudentT(12, xi=1.7, nu=5),
    "shell": EllipticalShell(12, xi=1.7),
    "extreme": EllipticalExtreme(40, xi=3),
    "disk": Elliptical(12, xi=1.7, radial=np.sqrt),
}


# -- the response ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_response_is_the_gated_mean_of_draws(name, key):
    stimulus = LAWS[name]
    w = np.random.default_rng(1).normal(size=stimulus.size)
    x = drawn(stimulus, key)
    gated = (x @ w >= 0)[:, None] * x
    f = np.asarray(LinearResponse().response(stimulus)(jnp.asarray(w)))
    assert np.abs(standard_errors(gated, f)).max() < SIGMAS
    # ⟨w, f⟩ = E ReLU = s m₁: one number, in which a wrong slope shows most.
    s = math.sqrt(w @ stimulus.covariance_matrix() @ w)
    sized = np.maximum(x @ w, 0) / s
    assert abs(standard_errors(sized, w @ f / s)) < SIGMAS
    assert w @ f / s == pytest.approx(LinearResponse().slope_of(stimulus), rel=1e-12)
    for wrong in (2 * f, -f, 1.05 * f):
        assert abs(standard_errors(sized, w @ wrong / s)) > SIGMAS


@pytest.mark.parametrize("name", ["t3", "t5", "shell", "extreme", "disk"])
def test_the_gaussian_slope_fails_for_other_radii(name, key):
    """The power of the test above: the slope of the Gaussian is refused."""
    w = np.random.default_rng(1).normal(size=LAWS[name].size)
    sized = np.maximum(drawn(LAWS[name], key) @ w, 0) / math.sqrt(
        w @ LAWS[name].covariance_matrix() @ w
    )
    assert abs(standard_errors(sized, GAUSSIAN_SLOPE)) > SIGMAS


@pytest.mark.parametrize(
    "stimulus, printed",
    [
        (Gaussian(40), "0.398942"),
        (Gaussian(40, scale=3), "0.398942"),
        (EllipticalShell(40), "0.401443"),
        (EllipticalExtreme(40), "0.392300"),
        (StudentT(40, nu=5), "0.36755"),
        (StudentT(40, nu=3), "0.318310"),
    ],
)
def test_slopes(stimulus, printed):
    assert rounds_to(LinearResponse().slope_of(stimulus), printed)


def test_any_degrees_of_freedom_have_a_slope():
    """√(ν−2)/((ν−1) B(ν/2, ½)), also where the kurtosis is infinite."""
    for nu in (2.1, 2.5, 3.5, 30.0):
        beta = math.gamma(nu / 2) * math.gamma(0.5) / math.gamma((nu + 1) / 2)
        closed = math.sqrt(nu - 2) / ((nu - 1) * beta)
        assert LinearResponse().slope_of(StudentT(40, nu=nu)) == pytest.approx(closed, rel=1e-12)


def test_zero_field_is_silent_and_has_a_derivative():
    response = LinearResponse().response(LAWS["gaussian"])
    zero = jnp.zeros(12)
    np.testing.assert_array_equal(response(zero), 0)
    assert np.isfinite(jax.jacobian(response)(zero)).all()
    assert np.isfinite(jax.grad(lambda w: jnp.sum(response(w)))(zero)).all()


@pytest.mark.parametrize("name", ["gaussian", "scaled", "dense", "shell"])
def test_jacobian(name):
    stimulus = LAWS[name]
    w = np.random.default_rng(2).normal(size=stimulus.size)
    response, slope = LinearResponse().response(stimulus), LinearResponse().slope_of(stimulus)
    result = response_jacobian(slope, stimulus.covariance_matrix(), w)
    step, moves = 1e-3, jnp.asarray(1e-3 * np.eye(stimulus.size))
    near, far = (
        jax.vmap(lambda d, n=n: response(w + n * d) - response(w - n * d), out_axes=1)(moves)
        for n in (1, 2)
    )
    np.testing.assert_allclose(result, (8 * near - far) / (12 * step), atol=1e-10)
    np.testing.assert_allclose(result, jax.jacobian(response)(jnp.asarray(w)), atol=1e-13)
    np.testing.assert_allclose(result, result.T, atol=1e-15)
    np.testing.assert_allclose(result @ w, 0, atol=1e-13)


def test_covariance_alone():
    """`slope="gaussian"` is the exact theory of the Gaussian clone, for laws that are not
    elliptical too.
    """
    w = jnp.asarray(np.random.default_rng(3).normal(size=12))
    for stimulus in (
        lf.stimuli.Ising(12),
        lf.stimuli.NLGP(12, xi=1.7),
        lf.stimuli.BlockPulse(12),
        LAWS["t3"],
    ):
        result = LinearResponse(slope="gaussian").response(stimulus)(w)
        np.testing.assert_allclose(
            result, LinearResponse().response(stimulus.gaussian_clone())(w), atol=1e-14
        )
    assert lf.from_json(LinearResponse(slope="gaussian").to_json()).slope == "gaussian"


@pytest.mark.parametrize(
    "stimulus, message",
    [
        (lf.stimuli.NLGP(40, gain=1e-3), "gaussian_clone"),
        (lf.stimuli.Ising(40), "EffectiveFlow"),
        (Gaussian(40, offset=0.5), "sign-symmetric"),
        (Gaussian(40, xi=[1, 2]), "one number"),
    ],
)
def test_what_is_refused(stimulus, message):
    with pytest.raises(lf.InputError, match=message):
        LinearResponse().response(stimulus)
    with pytest.raises(lf.InputError, match=message):
        LinearResponse().flow(lf.Discrimination(Gaussian(40, xi=3.5), stimulus), NEURON)


# -- the flow --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Gaussian, EllipticalShell, functools.partial(StudentT, nu=5)])
def test_loss_and_gradient_against_draws(make, key):
    """Two classes of unlike lengthscale, labels and proportions; the loss of `SingleNeuron` on
    draws.
    """
    classes = [make(12, xi=xi) for xi in (0.8, 1.7)]
    task = lf.Discrimination(*classes, labels=(0.5, 2), proportions=(0.3, 0.7))
    w = 0.3 * np.random.default_rng(4).normal(size=12)
    flow = LinearResponse().flow(task, NEURON)
    loss, gradient = flow({"weights": jnp.asarray(w)[None, :]})
    actual, spread = np.zeros(13), np.zeros(13)
    for stimulus, each, label, prior in zip(
        classes, jax.random.split(key), (0.5, 2), (0.3, 0.7), strict=True
    ):
        x = drawn(stimulus, each)
        off = np.maximum(x @ w, 0) - label
        values = np.column_stack([off**2, 2 * (off * (x @ w >= 0))[:, None] * x])
        actual += prior * values.mean(axis=0)
        spread += prior**2 * values.var(axis=0) / len(x)
    expected = np.append(float(loss), gradient["weights"][0])
    assert np.abs((actual - expected) / np.sqrt(spread)).max() < SIGMAS
    assert np.abs((actual - expected * 0.97) / np.sqrt(spread)).max() > SIGMAS
    by_jax = jax.grad(lambda w: flow({"weights": w[None, :]})[0])(jnp.asarray(w))
    np.testing.assert_allclose(by_jax, gradient["weights"][0], atol=1e-14)


def test_conventions():
    """(A) is the paper's eq. 5; half of it is the notes' 001 (20), −¼(Σ₀ + (1 − √(2/π)/s₁)Σ₁)w."""
    task = gaussians((1, 2))
    w = 0.1 * np.random.default_rng(5).normal(size=40)
    sigma0, sigma1 = (stimulus.covariance_matrix() for stimulus in task.stimuli)
    s1 = math.sqrt(w @ sigma1 @ w)
    paper = sigma1 @ w / (math.sqrt(2 * math.pi) * s1) - 0.5 * (sigma0 + sigma1) @ w
    notes = -0.25 * (sigma0 + (1 - math.sqrt(2 / math.pi) / s1) * sigma1) @ w
    result = np.asarray(velocity(task)(jnp.asarray(w)))
    np.testing.assert_allclose(result, paper, atol=1e-14)
    np.testing.assert_allclose(result / 2, notes, atol=1e-14)
    # The paper's C.1 prints +2E[Y 1 X]; notes 002 (4) have ½f − ½(Σ₀ + Σ₁)w, which is neither
    # convention; notes 004 (145)–(147) have −2√(2/π) Σ₁w/s₁, which would shrink to nothing.
    f = sigma1 @ w / (math.sqrt(2 * math.pi) * s1)
    for wrong, right in (
        (-f - 0.5 * (sigma0 + sigma1) @ w, paper),
        (0.5 * f - 0.5 * (sigma0 + sigma1) @ w, paper),
        (0.5 * f - 0.5 * (sigma0 + sigma1) @ w, notes),
        (-4 * f, notes),
    ):
        assert np.linalg.norm(wrong - right) > 0.05 * np.linalg.norm(right)
    # 004 (138) as printed has 1/s in place of √(2/π)/s, and 1/s₀ before Σ₀.
    s0 = math.sqrt(w @ sigma0 @ w)
    printed = -0.25 * ((1 / s1 - 1) * sigma1 + sigma0 / s0) @ w
    assert np.linalg.norm(printed - notes) > 0.3 * np.linalg.norm(notes)


def test_the_paper_lacks_a_half():
    """Paper (11): C Σ₁w/s₁ with C = ∫g̃ = 2m₁ = √(2/π) for the Gaussian; the response is half of
    it.

    The ratio after (11) is C(uᵀΛ₁u)^(−½) − 1, not 2C(…)^(−½) − 1.
    """
    constant = math.sqrt(2 / math.pi)
    assert LinearResponse().slope_of(Gaussian(40)) == pytest.approx(constant / 2, rel=1e-15)
    wave = sinusoids(gaussians((1, 2)))[3]
    w = wave.field().ravel()
    size = math.sqrt(w @ Gaussian(40, xi=2).covariance_matrix() @ w)
    assert constant / size - 1 == pytest.approx(wave.ratio, rel=1e-12)
    assert abs(2 * constant / size - 1 - wave.ratio) > 1


def test_flows_stack_over_members():
    flows = [LinearResponse().flow(gaussians((1, xi)), NEURON) for xi in (2, 3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *flows)
    w = jnp.asarray(np.random.default_rng(6).normal(size=(2, 1, 40)))
    losses, gradients = jax.jit(jax.vmap(lambda flow, w: flow({"weights": w})))(stacked, w)
    for m, flow in enumerate(flows):
        loss, gradient = flow({"weights": w[m]})
        np.testing.assert_allclose(losses[m], loss, rtol=1e-13)
        np.testing.assert_allclose(gradients["weights"][m], gradient["weights"], atol=1e-13)
