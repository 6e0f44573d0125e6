"""Elliptical data: the response against draws, every steady state and every rate of it against the flow itself."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.lattice import fourier_basis, fourier_frequencies, matrix, spectrum
from localfields.stimuli import DenseGaussian, Elliptical, EllipticalExtreme, EllipticalShell, Gaussian, StudentT
from localfields.theory.linear import GAUSSIAN_SLOPE, LinearResponse, response_jacobian, sinusoids, winning_mode

SIGMAS = 5.0
NEURON = lf.networks.SingleNeuron()


def rounds_to(value, text):
    """Whether a value has the digits printed."""
    return round(value, len(text.partition(".")[2])) == float(text)


def pair(make, xis, **values):
    return lf.Discrimination(*(make(xi=xi) for xi in xis), **values)


def gaussians(xis, shape=(40,), **values):
    """On small lattices with the periodized kernel, which is positive there."""
    kernel = "squared-exponential" if shape == (40,) else "periodized"
    return pair(functools.partial(Gaussian, shape, kernel=kernel), xis, **values)


def velocity(task, theory=None):
    """−∇L as a function of a field, (size,) to (size,)."""
    flow = (theory or LinearResponse()).flow(task, NEURON)
    return lambda w: -flow({"weights": w[None, :]})[1]["weights"][0]


def loss_at(task, w, theory=None):
    return float((theory or LinearResponse()).flow(task, NEURON)({"weights": jnp.asarray(w).reshape(1, -1)})[0])


def drawn(stimulus, key, num=200_000):
    with jax.enable_x64(False):
        return np.asarray(stimulus.sample(key, num), np.float64)


def whole(stimulus):
    found = stimulus.covariance()
    return matrix(found) if found.shape == stimulus.shape else found.reshape(stimulus.size, -1)


def standard_errors(samples, expected):
    return (samples.mean(axis=0) - expected) / (samples.std(axis=0) / math.sqrt(len(samples)))


def uneven():
    root = np.random.default_rng(0).normal(size=(8, 8))
    return DenseGaussian((8,), root @ root.T / 4)


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


# -- the response -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_response_is_the_gated_mean_of_draws(name, key):
    stimulus = LAWS[name]
    w = np.random.default_rng(1).normal(size=stimulus.size)
    x = drawn(stimulus, key)
    gated = (x @ w >= 0)[:, None] * x
    f = np.asarray(LinearResponse().response(stimulus)(jnp.asarray(w)))
    assert np.abs(standard_errors(gated, f)).max() < SIGMAS
    # ⟨w, f⟩ = E ReLU = s m₁: one number, in which a wrong slope shows most.
    s = math.sqrt(w @ whole(stimulus) @ w)
    sized = np.maximum(x @ w, 0) / s
    assert abs(standard_errors(sized, w @ f / s)) < SIGMAS
    assert w @ f / s == pytest.approx(LinearResponse().slope_of(stimulus), rel=1e-12)
    for wrong in (2 * f, -f, 1.05 * f):
        assert abs(standard_errors(sized, w @ wrong / s)) > SIGMAS


@pytest.mark.parametrize("name", ["t3", "t5", "shell", "extreme", "disk"])
def test_the_gaussian_slope_fails_for_other_radii(name, key):
    """The power of the test above: the slope of the Gaussian is refused."""
    w = np.random.default_rng(1).normal(size=LAWS[name].size)
    sized = np.maximum(drawn(LAWS[name], key) @ w, 0) / math.sqrt(w @ whole(LAWS[name]) @ w)
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
    found = response_jacobian(slope, whole(stimulus), w)
    step, moves = 1e-3, jnp.asarray(1e-3 * np.eye(stimulus.size))
    near, far = (jax.vmap(lambda d, n=n: response(w + n * d) - response(w - n * d), out_axes=1)(moves) for n in (1, 2))
    np.testing.assert_allclose(found, (8 * near - far) / (12 * step), atol=1e-10)
    np.testing.assert_allclose(found, jax.jacobian(response)(jnp.asarray(w)), atol=1e-13)
    np.testing.assert_allclose(found, found.T, atol=1e-15)
    np.testing.assert_allclose(found @ w, 0, atol=1e-13)


def test_covariance_alone():
    """`slope="gaussian"` is the exact theory of the Gaussian clone, for laws that are not elliptical too."""
    w = jnp.asarray(np.random.default_rng(3).normal(size=12))
    for stimulus in (lf.stimuli.Ising(12), lf.stimuli.NLGP(12, xi=1.7), lf.stimuli.BlockPulse(12), LAWS["t3"]):
        found = LinearResponse(slope="gaussian").response(stimulus)(w)
        np.testing.assert_allclose(found, LinearResponse().response(stimulus.gaussian_clone())(w), atol=1e-14)
    assert lf.from_json(LinearResponse(slope="gaussian").to_json()).slope == "gaussian"


@pytest.mark.parametrize(
    "stimulus, told",
    [
        (lf.stimuli.NLGP(40, gain=1e-3), "gaussian_clone"),
        (lf.stimuli.Ising(40), "EffectiveFlow"),
        (Gaussian(40, offset=0.5), "sign symmetric"),
        (Gaussian(40, xi=[1, 2]), "one number"),
    ],
)
def test_what_is_refused(stimulus, told):
    with pytest.raises(lf.InputError, match=told):
        LinearResponse().response(stimulus)
    with pytest.raises(lf.InputError, match=told):
        LinearResponse().flow(lf.Discrimination(stimulus, stimulus), NEURON)


# -- the flow ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Gaussian, EllipticalShell, functools.partial(StudentT, nu=5)])
def test_loss_and_gradient_against_draws(make, key):
    """Two classes of unlike lengthscale, labels and proportions; the loss of `SingleNeuron` on draws."""
    classes = [make(12, xi=xi) for xi in (0.8, 1.7)]
    task = lf.Discrimination(*classes, labels=(0.5, 2), proportions=(0.3, 0.7))
    w = 0.3 * np.random.default_rng(4).normal(size=12)
    flow = LinearResponse().flow(task, NEURON)
    loss, gradient = flow({"weights": jnp.asarray(w)[None, :]})
    found, spread = np.zeros(13), np.zeros(13)
    for stimulus, each, label, prior in zip(classes, jax.random.split(key), (0.5, 2), (0.3, 0.7), strict=True):
        x = drawn(stimulus, each)
        off = np.maximum(x @ w, 0) - label
        values = np.column_stack([off**2, 2 * (off * (x @ w >= 0))[:, None] * x])
        found += prior * values.mean(axis=0)
        spread += prior**2 * values.var(axis=0) / len(x)
    expected = np.append(float(loss), gradient["weights"][0])
    assert np.abs((found - expected) / np.sqrt(spread)).max() < SIGMAS
    assert np.abs((found - expected * 0.97) / np.sqrt(spread)).max() > SIGMAS
    by_jax = jax.grad(lambda w: flow({"weights": w[None, :]})[0])(jnp.asarray(w))
    np.testing.assert_allclose(by_jax, gradient["weights"][0], atol=1e-14)


def test_conventions():
    """(A) is the paper's eq. 5; half of it is the notes' 001 (20), −¼(Σ₀ + (1 − √(2/π)/s₁)Σ₁)w."""
    task = gaussians((1, 2))
    w = 0.1 * np.random.default_rng(5).normal(size=40)
    sigma0, sigma1 = (whole(stimulus) for stimulus in task.stimuli)
    s1 = math.sqrt(w @ sigma1 @ w)
    paper = sigma1 @ w / (math.sqrt(2 * math.pi) * s1) - 0.5 * (sigma0 + sigma1) @ w
    notes = -0.25 * (sigma0 + (1 - math.sqrt(2 / math.pi) / s1) * sigma1) @ w
    found = np.asarray(velocity(task)(jnp.asarray(w)))
    np.testing.assert_allclose(found, paper, atol=1e-14)
    np.testing.assert_allclose(found / 2, notes, atol=1e-14)
    # The paper's C.1 prints +2E[Y 1 X]; notes 002 (4) have ½f − ½(Σ₀ + Σ₁)w, which is neither convention; notes 004
    # (145)–(147) have −2√(2/π) Σ₁w/s₁, which would shrink to nothing.
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
    """Paper (11): C Σ₁w/s₁ with C = ∫g̃ = 2m₁ = √(2/π) for the Gaussian; the response is half of it.

    The ratio after (11) is C(uᵀΛ₁u)^(−½) − 1, not 2C(…)^(−½) − 1.
    """
    constant = math.sqrt(2 / math.pi)
    assert LinearResponse().slope_of(Gaussian(40)) == pytest.approx(constant / 2, rel=1e-15)
    wave = sinusoids(gaussians((1, 2)))[3]
    w = wave.field().ravel()
    size = math.sqrt(w @ whole(Gaussian(40, xi=2)) @ w)
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


# -- steady states ----------------------------------------------------------------------------------------------


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
    "signs of unlike laws": lf.Discrimination(StudentT(12, xi=1, nu=3), EllipticalShell(12, xi=2), labels="signs"),
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
        # The response does not depend on the size of w, so that any other size returns at the rate of relaxation.
        np.testing.assert_allclose(flow(jnp.asarray(1.1 * w)), 0.1 * wave.relaxation * w, atol=rounding)
        assert loss_at(task, w) == pytest.approx(wave.loss, abs=1e-14)
        assert np.linalg.norm(w) == pytest.approx(wave.norm, rel=1e-12)
    assert waves[0].stable and waves[0].loss == min(wave.loss for wave in waves)


def modes_of(task):
    """Unit plane waves cos and sin of every frequency, as columns, and their frequencies."""
    columns, frequencies = [], []
    for index in np.ndindex(task.shape):
        turns = sum(k * x / n for k, x, n in zip(index, np.indices(task.shape), task.shape, strict=True))
        for wave in (np.cos, np.sin):
            column = wave(2 * np.pi * turns).ravel()
            if np.linalg.norm(column) > 1e-9:
                columns.append(column / np.linalg.norm(column))
                frequencies.append(index)
    return np.stack(columns, axis=1), frequencies


@pytest.mark.parametrize("name", TASKS)
def test_rates_are_the_jacobians(name):
    """By differences of the flow, at several steady states: all transverse rates, the phase, the size."""
    task = TASKS[name]
    columns, frequencies = modes_of(task)
    flow = velocity(task)
    slopes = jax.jit(lambda w, d: jax.vmap(lambda d: (flow(w + d) - flow(w - d)) / 2, out_axes=1)(d))
    waves = sinusoids(task)
    labelled = [whole(one) for one, label in zip(task.stimuli, task.targets()[:, 0], strict=True) if label]
    for wave in (waves[0], waves[1], waves[len(waves) // 2], waves[-1]):
        w = wave.field(phase=0.0).ravel()
        # Small beside √(wᵀΣ₁w), so that the curvature does not show: on a saddle of little power that is short.
        step = 1e-5 * math.sqrt(min(w @ one @ w / np.linalg.eigvalsh(one).max() for one in labelled))
        differences = np.asarray(slopes(jnp.asarray(w), jnp.asarray(step * np.eye(task.size)))) / step
        along, near = w / np.linalg.norm(w), 1e-9 * max(1, np.abs(wave.growth_rates).max())
        assert along @ differences @ along == pytest.approx(wave.relaxation, abs=near)
        for column, frequency in zip(columns.T, frequencies, strict=True):
            if abs(column @ along) < 1e-9:
                assert column @ differences @ column == pytest.approx(wave.rate(frequency), abs=near)
        growing = np.linalg.eigvalsh((differences + differences.T) / 2).max()
        assert wave.stable == (growing < 1e-7)
        if not wave.stable:
            assert growing == pytest.approx(wave.growth_rates.max(), abs=near)


def test_a_push_that_outweighs_every_pull_leaves_nothing():
    """With labels (−η, 1) a wave exists where √λ₁ > η√λ₀; beyond the largest such η the field dies out."""
    ratios = [wave.ratio for wave in sinusoids(gaussians((1, 2)))]
    for eta in (0.5, 1.0, 1.3):
        found = sinusoids(gaussians((1, 2), labels=(-eta, 1)))
        assert [wave.ratio for wave in found] == pytest.approx([r for r in ratios if r < eta**-2], rel=1e-12)
    most = ratios[0] ** -0.5
    assert len(sinusoids(gaussians((1, 2), labels=(-0.999 * most, 1)))) == 1
    with pytest.raises(lf.InputError, match="pulled more than pushed"):
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
    start = np.random.default_rng(7).normal(size=(500, 1, 12)) * np.geomspace(0.01, 1, 500)[:, None, None]
    losses = jax.vmap(lambda w: flow({"weights": w})[0])(jnp.asarray(start))
    assert losses.min() > winning_mode(task).loss


# -- the numbers ------------------------------------------------------------------------------------------------


def test_numbers_at_lengthscales_one_and_two():
    waves = {wave.frequency: wave for wave in sinusoids(gaussians((1, 2)))}
    flat, first = waves[(0,)], waves[(1,)]
    assert rounds_to(flat.norm, "0.28251")
    assert rounds_to(flat.ratio, "0.5001") and rounds_to(first.ratio, "0.5094")
    assert rounds_to(first.rate(0), "0.0165661")
    lambda0, lambda1 = (spectrum(Gaussian(40, xi=xi).covariance()) for xi in (1, 2))
    assert flat.norm**2 == pytest.approx(2 / math.pi * lambda1[0] / (lambda0[0] + lambda1[0]) ** 2, rel=1e-13)
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
    """u² = √(2/π)/(λ₀ + λ₁) leaves −0.139 under the notes' loss at k = 1; u² = (2/π) λ₁/(λ₀ + λ₁)² leaves nothing."""
    task = gaussians((1, 2))
    lambda0, lambda1 = (spectrum(stimulus.covariance())[1] for stimulus in task.stimuli)
    unit = fourier_basis((40,))[:, 1]
    assert fourier_frequencies((40,))[1] == 1
    for square, left in (
        (math.sqrt(2 / math.pi) / (lambda0 + lambda1), -0.139),
        (2 / math.pi * lambda1 / (lambda0 + lambda1) ** 2, 0.0),
    ):
        found = unit @ np.asarray(velocity(task)(jnp.asarray(math.sqrt(square) * unit))) / 2
        assert found == pytest.approx(left, abs=5e-4 if left else 1e-15)
    # (26)–(31) mean the length, not its square: ‖u‖_Λ₁ = √(2/π)/(1 + r).
    wave = sinusoids(task)[1]
    assert wave.norm * math.sqrt(lambda1) == pytest.approx(math.sqrt(2 / math.pi) / (1 + wave.ratio), rel=1e-13)


@pytest.mark.parametrize("xis", [(2, 3), (2, 4), (3, 2)])
def test_ratio_of_squared_exponentials(xis):
    """r_k ≈ (ξ₀/ξ₁) exp((πk/N)²(ξ₁² − ξ₀²)), up to the first alias of each spectrum."""
    n = 40
    waves = {wave.frequency[0]: wave for wave in sinusoids(gaussians(xis))}
    for k in range(8):
        closed = xis[0] / xis[1] * math.exp((math.pi * k / n) ** 2 * (xis[1] ** 2 - xis[0] ** 2))
        alias = sum(2 * math.exp(-((math.pi * xi / n) ** 2) * ((n - k) ** 2 - k**2)) for xi in xis)
        assert waves[k].ratio == pytest.approx(closed, rel=alias + 1e-9)


@pytest.mark.parametrize("xis, frequency", [((1, 2), 0), ((1, 3), 0), ((2, 1), 20), ((0.7, 0.3), 20)])
def test_flat_or_alternating(xis, frequency):
    assert winning_mode(gaussians(xis)).frequency == (frequency,)


# -- the flow ends there ----------------------------------------------------------------------------------------


def endpoint(task, key, time, step, members=3):
    """Euler from random starts; a steady state of the flow is one of the steps."""
    flow = LinearResponse().flow(task, NEURON)
    start = math.sqrt(0.001 * 2 / (task.size + 1)) * jax.random.normal(key, (members, 1, task.size))

    def run(flow, w):
        return jax.lax.fori_loop(0, round(time / step), lambda _, w: w - step * flow({"weights": w})[1]["weights"], w)

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
        np.testing.assert_allclose(np.sign(end[0]) * end, wave.field(), rtol=0, atol=1e-4 * wave.amplitude)


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


# -- equal ratios, refusals -------------------------------------------------------------------------------------


def test_equal_ratios_leave_a_mixture_free():
    """Two classes of one covariance: only Σ λ₁ u² is fixed, and every mode is alike."""
    task = gaussians((2, 2), shape=(12,))
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
    """Spectra fall below rounding at high frequencies; the ratio of two such numbers is no winner."""
    waves = sinusoids(lf.Discrimination(*(Gaussian(40, xi=xi, kernel="periodized") for xi in (4, 7))))
    assert len(waves) < 21 and waves[0].frequency == (0,)
    assert all(math.isfinite(wave.norm) for wave in waves)


def test_a_kink_gives_high_frequencies_the_smallest_ratio():
    """The wrapped kernel at long lengthscales: the flat field is a saddle, but of rates far below any other."""
    waves = sinusoids(gaussians((3, 5)))
    flat = next(wave for wave in waves if wave.frequency == (0,))
    assert waves[0].frequency == (19,) and waves[0].stable and not flat.stable
    assert 0 < flat.growth_rates.max() < 1e-7 * -flat.relaxation
    assert winning_mode(gaussians((3, 5), shape=(41,))).frequency == (0,)


@pytest.mark.parametrize(
    "task, told",
    [
        (gaussians((1, 2), labels=(1, 2)), "labels"),
        (gaussians((1, 2), labels="signs", l2=0.1), "labels"),
        (gaussians((1, 2, 3)), "labels"),
        (gaussians((1, 2, 3), labels="signs"), "labels"),
        (gaussians((1, 2), labels=(-1, -2)), "labels"),
        (gaussians((1, 2), labels=(0, -1)), "positive"),
        (gaussians((1, 2), l1=0.1), "l1"),
        (gaussians((1, 2), l2=[0.1, 0.2]), "sweep"),
        (lf.Discrimination(uneven(), uneven()), "translation invariant"),
        (lf.Discrimination(lf.stimuli.Ising(40, 0.3), lf.stimuli.Ising(40, 0.7)), "elliptical"),
        (gaussians((1, 2), loss="absolute"), "mean squared error"),
    ],
)
def test_tasks_without_sinusoids(task, told):
    with pytest.raises(lf.InputError, match=told):
        sinusoids(task)


def test_covariance_alone_has_sinusoids_for_any_law():
    task = lf.Discrimination(lf.stimuli.Ising(40, 0.3), lf.stimuli.Ising(40, 0.7))
    wave = winning_mode(task, LinearResponse(slope="gaussian"))
    clones = lf.Discrimination(*(stimulus.gaussian_clone() for stimulus in task.stimuli))
    assert wave.frequency == (0,)
    assert wave.amplitude == pytest.approx(winning_mode(clones).amplitude, rel=1e-12)
    with pytest.raises(lf.InputError, match="frequency"):
        wave.rate((1, 1))
