"""Committees on Gaussian data: gradients by differences and draws, symmetries, errata."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import localfields as lf
from localfields.errors import InputError
from localfields.theory import best_for
from localfields.theory.networks.pairs import erf_crossed, erf_slope, relu_pair

from .committees import GAUSSIANS, SIGMAS, N, covariance, gated

# The series behind a sigmoid takes ten times as long to compile as the closed form of erf.
SERIES_TOO = ("relu", "erf", pytest.param("sigmoid", marks=pytest.mark.slow))


def committee(activation="relu", hidden=3, bias=None, **more):
    bias = bias or ("none" if activation == "relu" else "trained")
    return lf.networks.Committee(hidden, activation, bias, **more)


def theory_of(activation, **more):
    return lf.theory.GaussianCommittee() if activation == "relu" else lf.theory.ErfCommittee(**more)


def params_of(network, rng, scale=0.5):
    params = {"weights": jnp.asarray(rng.normal(size=(network.hidden, N)) * scale)}
    if getattr(network, "bias", "none") == "trained":
        params["biases"] = jnp.asarray(rng.normal(size=network.hidden))
    return params


# A flow is passed, not closed over: tasks of one shape then share a program.
evaluate = jax.jit(lambda flow, params: flow(params))


# -- loss and gradient -----------------------------------------------------------------------------

TASKS = {
    "zero-one": lf.Discrimination(*GAUSSIANS[:2]),
    "signs": lf.Discrimination(*GAUSSIANS[:2], labels="signs"),
    "three": lf.Discrimination(
        *GAUSSIANS, labels=(0.5, -1.0, 2.0), proportions=(0.5, 0.2, 0.3), l2=0.07
    ),
    "dense": lf.Discrimination(
        GAUSSIANS[0], lf.stimuli.DenseGaussian((N,), np.diag(np.linspace(0.5, 2, N)))
    ),
}
CASES = [("relu", "three"), ("relu", "dense"), ("erf", "three"), ("erf", "zero-one")]
CASES += [("sigmoid", "three"), ("tanh", "three")]
MORE_CASES = [("relu", "zero-one"), ("relu", "signs"), ("erf", "signs"), ("erf", "dense")]
MORE_CASES += [("erf-unscaled", "three"), ("identity", "three")]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_CASES]


def logistic_slope(h):
    return scipy.special.expit(h) * scipy.special.expit(-h)


# Activations and their slopes, in numpy.
BY_HAND = {
    "relu": (lambda h: np.maximum(h, 0), lambda h: 1.0 * (h > 0)),
    "erf": (
        lambda h: scipy.special.erf(h / math.sqrt(2)),
        lambda h: math.sqrt(2 / math.pi) * np.exp(-(h**2) / 2),
    ),
    "erf-unscaled": (scipy.special.erf, lambda h: 2 / math.sqrt(math.pi) * np.exp(-(h**2))),
    "sigmoid": (scipy.special.expit, logistic_slope),
    "tanh": (np.tanh, lambda h: 4 * logistic_slope(2 * h)),
    "identity": (np.asarray, np.ones_like),
}


def drawn(task, network, params, key, num=100_000):
    """Loss and gradient by draws: mean and error of each, concatenated."""
    total, variance = 0.0, 0.0
    weights = np.asarray(params["weights"])
    act, slope = BY_HAND[network.activation]
    for index, (stimulus, p, (y,)) in enumerate(
        zip(task.stimuli, task.priors, task.targets(), strict=True)
    ):
        x = np.asarray(stimulus.sample(jax.random.fold_in(key, index), num), np.float64)
        h = x @ weights.T + np.asarray(params.get("biases", np.zeros(network.hidden)))
        error = act(h).mean(axis=1) - y
        back = 2 * error[:, None] * slope(h) / network.hidden
        each = np.concatenate(
            [error[:, None] ** 2, back, (back[:, :, None] * x[:, None, :]).reshape(num, -1)], axis=1
        )
        total, variance = total + p * each.mean(axis=0), variance + p**2 * each.var(axis=0) / num
    ridge = [task.l2 * np.sum(weights**2)], np.zeros(network.hidden), 2 * task.l2 * weights.ravel()
    return total + np.concatenate(ridge), np.sqrt(variance)


def flat(network, loss, gradient):
    return np.concatenate(
        [
            [float(loss)],
            gradient.get("biases", np.full(network.hidden, np.nan)),
            np.ravel(gradient["weights"]),
        ]
    )


@pytest.mark.parametrize("activation, name", CASES)
def test_loss_and_gradient(activation, name, key):
    task, network = TASKS[name], committee(activation)
    flow = theory_of(activation).flow(task, network)
    params = params_of(network, np.random.default_rng(2))
    loss, gradient = evaluate(flow, params)
    # By central differences of the loss.
    for part, values in params.items():
        result = np.asarray(gradient[part])
        for index in np.ndindex(values.shape):
            ends = [
                float(evaluate(flow, params | {part: values.at[index].add(step)})[0])
                for step in (1e-5, -1e-5)
            ]
            assert abs((ends[0] - ends[1]) / 2e-5 - result[index]) < 1e-9, (part, index)
    # By draws.
    mean, error = drawn(task, network, params, key)

    def sigmas(value):
        return np.nanmax(np.abs((value - mean) / np.maximum(error, 1e-15)))

    result = flat(network, loss, gradient)
    assert sigmas(result) < SIGMAS
    assert (
        sigmas(np.where(np.arange(len(result)) == 0, result, network.hidden * result)) > SIGMAS
    )  # no 1/K: notes (4), (5)
    assert sigmas(0.5 * result) > SIGMAS and sigmas(-result) > SIGMAS


def test_loss_is_the_formula_of_the_sheet():
    """§4.2 as printed there, with its ½: half of ours."""
    network, rng = committee(hidden=2), np.random.default_rng(9)
    params = params_of(network, rng)
    loss, gradient = evaluate(
        lf.theory.GaussianCommittee().flow(TASKS["zero-one"], network), params
    )
    w = np.asarray(params["weights"])
    zero, one = map(covariance, GAUSSIANS[:2])
    pairs = sum(
        float(relu_pair(*(jnp.asarray(float(x)) for x in (a @ s @ a, b @ s @ b, a @ s @ b))))
        for s in (zero, one)
        for a in w
        for b in w
    )
    means = sum(math.sqrt(a @ one @ a / (2 * math.pi)) for a in w)
    assert abs(0.5 * (0.5 - means / 2 + pairs / 8) - 0.5 * float(loss)) < 1e-14
    for a, actual in zip(w, np.asarray(gradient["weights"]), strict=True):
        expected = -one @ a / (4 * math.sqrt(2 * math.pi) * math.sqrt(a @ one @ a))
        expected = expected + sum(gated(a, b, s) for b in w for s in (zero, one)) / 8
        np.testing.assert_allclose(0.5 * actual, expected, rtol=0, atol=1e-14)


# -- biases, and the notes' error functions --------------------------------------------------------


def bias_flow(task, network, params):
    """−∂L/∂b, with the ½ of the notes."""
    return -0.5 * np.asarray(
        evaluate(theory_of(network.activation).flow(task, network), params)[1]["biases"]
    )


@pytest.mark.parametrize("b", [0.0, 0.7, -1.2])
def test_notes_bias_flow_is_of_erf_without_the_root(b):
    network, w = committee("erf-unscaled", 1), np.random.default_rng(1).normal(size=N) * 0.4
    params = {"weights": jnp.asarray(w[None]), "biases": jnp.asarray([b])}
    s0, s1 = (2 * float(w @ covariance(stimulus) @ w) for stimulus in GAUSSIANS[:2])  # 2σ²
    slope = 2 / math.sqrt(math.pi * (s1 + 1)) * math.exp(b**2 / s1 * (1 / (s1 + 1) - 1))  # (39)

    def crossed(s):  # (41)
        part = s / (s + 1) - 1
        return (
            -2
            / math.sqrt(math.pi * (s + 1))
            * math.exp(part * b**2)
            * math.erf(part / math.sqrt(2 + part) * b)
        )

    q, two = jnp.asarray(s1), jnp.asarray(b * math.sqrt(2))
    assert abs(math.sqrt(2) * float(erf_slope(q, two)) - slope) < 1e-10
    assert abs(math.sqrt(2) * float(erf_crossed(q, q, q, two, two)[0]) - crossed(s1)) < 1e-10
    result = float(bias_flow(TASKS["zero-one"], network, params)[0])
    assert abs(0.5 * slope - 0.5 * (crossed(s0) + crossed(s1)) - result) < 1e-10  # (42)
    if b == 0:
        assert abs(1 / math.sqrt(math.pi * (s1 + 1)) - result) < 1e-10  # (43)
    # It is not that of erf(x/√2), which the notes say it is.
    other = float(bias_flow(TASKS["zero-one"], committee("erf", 1), params)[0])
    assert abs(result - other) > 1e-2


def many_neurons(w, b, right):
    """The notes' bias flow of the first of K neurons, labels ±1; as printed, or with the sheet's
    three corrections.
    """
    count, total = len(w), 0.0
    root = math.sqrt(2 / math.pi)
    for stimulus, label in zip(GAUSSIANS[:2], (-1, 1), strict=True):
        q = w @ covariance(stimulus) @ w.T
        e = math.exp(-(b[0] ** 2) / (2 * (q[0, 0] + 1))) / math.sqrt(q[0, 0] + 1)
        total += (0.5 if right else 1.0) * root * label * e
        part = q[0, 0] / (q[0, 0] + 1)
        own = e * math.erf((1 - part) * b[0] / math.sqrt(2 * (1 + part)))
        total -= (root if right else 1.0) * own / (2 * count)
        for k in range(1, count):
            shift = q[0, k] * b[0] / (1 + q[0, 0]) * (1.0 if right else 1 / q[0, 0])
            rest = q[k, k] - q[0, k] ** 2 / q[0, 0]
            # Read with the product that makes the denominator right: 1 + q_kk − q₁k²/(1 + q₁₁).
            left = (1 + rest) * (
                1 + q[0, k] ** 2 / (q[0, 0] + q[0, 0] * q[k, k] - q[0, k] ** 2) / (q[0, 0] + 1)
            )
            total -= root * e * math.erf((b[k] - shift) / math.sqrt(2 * left)) / (2 * count)
    return total / count


def test_bias_flow_of_many_neurons():
    network = committee("erf", 3)
    flow = lf.theory.ErfCommittee().flow(TASKS["signs"], network)
    errors = []
    for seed in range(20):
        params = params_of(network, np.random.default_rng(seed))
        w, b = (np.asarray(params[name]) for name in ("weights", "biases"))
        result = -0.5 * float(evaluate(flow, params)[1]["biases"][0])
        assert abs(many_neurons(w, b, right=True) - result) < 1e-14
        errors.append(abs(many_neurons(w, b, right=False) - result) / abs(result))
    assert min(errors) > 1e-6 and np.median(errors) > 0.17  # the sheet's: −0.0841 against −0.0697


# -- symmetries and limits -------------------------------------------------------------------------


@pytest.mark.parametrize("activation", SERIES_TOO)
def test_symmetries(activation):
    task, network = TASKS["three"], committee(activation)
    flow = theory_of(activation).flow(task, network)
    params = params_of(network, np.random.default_rng(6))
    loss, gradient = evaluate(flow, params)
    moves = {
        "order of neurons": lambda name, values: values[jnp.asarray([2, 0, 1])],
        "shift": lambda name, values: jnp.roll(values, 2, axis=1) if name == "weights" else values,
        "mirror": lambda name, values: values[:, ::-1] if name == "weights" else values,
        "sign": lambda name, values: -values if name == "weights" else values,
    }
    for what, move in moves.items():
        moved = evaluate(flow, {name: move(name, values) for name, values in params.items()})
        np.testing.assert_allclose(moved[0], loss, rtol=0, atol=1e-14, err_msg=what)
        for name, values in gradient.items():
            np.testing.assert_allclose(
                moved[1][name], move(name, values), rtol=0, atol=1e-14, err_msg=what
            )
    # Neurons alike stay alike, and act as one.
    alike = evaluate(flow, {name: jnp.stack([values[0]] * 3) for name, values in params.items()})
    alone = evaluate(
        theory_of(activation).flow(task, committee(activation, 1)),
        {k: v[:1] for k, v in params.items()},
    )
    ridge = 2 * task.l2 * float(jnp.sum(params["weights"][0] ** 2))
    accuracy = 1e-13 if activation != "sigmoid" else 1e-9
    assert abs(float(alike[0]) - float(alone[0]) - ridge) < accuracy
    for name, values in alike[1].items():
        np.testing.assert_allclose(values, jnp.stack([values[0]] * 3), rtol=0, atol=1e-15)
        part = np.asarray(alone[1][name][0]) / 3
        extra = 2 * task.l2 * np.asarray(params["weights"][0]) * 2 / 3 if name == "weights" else 0
        np.testing.assert_allclose(values[0], part + extra, rtol=0, atol=accuracy)


@pytest.mark.parametrize("activation", SERIES_TOO)
def test_fields_of_zeros_and_neurons_alike_have_derivatives_of_every_order(activation):
    network = committee(activation)
    flow = theory_of(activation).flow(TASKS["zero-one"], network)
    params = params_of(network, np.random.default_rng(6))
    ways = jax.jit(
        lambda params, step: (flow(params), jax.jvp(lambda at: flow(at)[1], (params,), (step,))[1])
    )
    step = jax.tree.map(jnp.ones_like, params)
    for scale in ([0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, -2.0]):
        at = params | {"weights": jnp.asarray(scale)[:, None] * params["weights"][:1]}
        (loss, gradient), turned = ways(at, step)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((loss, gradient, turned)))
        silent = np.asarray(scale) == 0
        # A field of zeros has no direction to grow along: f(0) = 0, and with ReLU its gate is shut.
        if activation == "relu":
            assert (np.asarray(gradient["weights"])[silent] == 0).all()
    assert float(ways({k: 0 * v for k, v in params.items()}, step)[0][0]) == pytest.approx(
        {"relu": 0.5, "erf": 0.5, "sigmoid": 0.25}[activation], abs=1e-15
    )


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    "network", [lf.networks.SingleNeuron(), committee(hidden=1)], ids=["neuron", "committee"]
)
def test_one_neuron_is_that_of_the_linear_response(name, network):
    params = params_of(network, np.random.default_rng(8))
    actual = evaluate(lf.theory.GaussianCommittee().flow(TASKS[name], network), params)
    expected = evaluate(
        lf.theory.LinearResponse().flow(TASKS[name], lf.networks.SingleNeuron()), params
    )
    np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(actual[1]["weights"], expected[1]["weights"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["fixed", "halves"])
def test_biases_that_are_not_trained(kind):
    trained, given = committee("erf", 4), committee("erf", 4, kind, bias_value=0.7)
    params = params_of(trained, np.random.default_rng(6))
    signs = [1, 1, -1, -1] if kind == "halves" else [1] * 4
    params["biases"] = 0.7 * jnp.asarray(signs, float)
    expected = evaluate(lf.theory.ErfCommittee().flow(TASKS["signs"], trained), params)
    flow = lf.theory.ErfCommittee().flow(TASKS["signs"], given)
    actual = evaluate(flow, {"weights": params["weights"]})
    assert set(actual[1]) == {"weights"}
    np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(actual[1]["weights"], expected[1]["weights"], rtol=0, atol=1e-14)


# -- what is refused -------------------------------------------------------------------------------

NLGP = lf.Discrimination(GAUSSIANS[0], lf.stimuli.NLGP((N,), xi=1.1, gain=3.0))
PULSES = lf.Discrimination(
    *(lf.stimuli.SinglePulse((N,), 1, longest, coding="zero-one") for longest in (2, 3))
)
REFUSED = {
    "law": (
        NLGP,
        committee(),
        lf.theory.GaussianCommittee(),
        "GaussianCommittee needs Gaussian stimuli",
    ),
    "mean": (PULSES, committee(), lf.theory.GaussianCommittee("gaussian"), "sign-symmetric"),
    "activation": (TASKS["signs"], committee("erf"), lf.theory.GaussianCommittee(), "relu"),
    "other activation": (TASKS["signs"], committee(), lf.theory.ErfCommittee(), "erf-unscaled"),
    "biases": (
        TASKS["signs"],
        committee(bias="fixed"),
        lf.theory.GaussianCommittee(),
        "ErfCommittee covers biases",
    ),
    "two layers": (
        TASKS["signs"],
        lf.networks.TwoLayer(2),
        lf.theory.GaussianCommittee(),
        "covers Committee",
    ),
    "loss": (
        lf.Discrimination(*GAUSSIANS[:2], loss="absolute"),
        committee("erf"),
        lf.theory.ErfCommittee(),
        "mean squared error",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_refused(name):
    task, network, theory, words = REFUSED[name]
    with pytest.raises(InputError) as error:
        theory.flow(task, network)
    text = str(error.value)
    assert words in text and (" got " in text or " is not." in text)


def test_any_law_by_its_covariance():
    network, params = committee(), params_of(committee(), np.random.default_rng(6))
    actual = evaluate(lf.theory.GaussianCommittee("gaussian").flow(NLGP, network), params)
    clones = lf.Discrimination(*(stimulus.gaussian_clone() for stimulus in NLGP.stimuli))
    expected = evaluate(lf.theory.GaussianCommittee().flow(clones, network), params)
    np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=1e-14)
    assert best_for(NLGP, network) is None
    assert best_for(clones, network) == lf.theory.GaussianCommittee()


# -- against training ------------------------------------------------------------------------------

KINDS = [("relu", "zero-one")]
KINDS += [
    pytest.param(*kind, marks=pytest.mark.slow)
    for kind in (("erf", "signs"), ("sigmoid", "zero-one"))
]
SERIES = ("weights", "biases", "loss")


def start_of(network, seed=0, scale=0.3):
    return scale * np.random.default_rng(seed).normal(size=(network.hidden, N))


def trained(task, network, rate, steps, every, **more):
    what = [name for name in SERIES if name != "biases" or network.bias == "trained"]
    settings = {
        "learning_rate": rate,
        "steps": steps,
        "record": lf.Record(every=every, quantities=tuple(what)),
    }
    return lf.train(task, network, **settings | more)


@pytest.mark.parametrize("activation, name", KINDS)
def test_exact_training_follows_the_flow(activation, name):
    """Steps of half the size are off by half as much, for weights, biases and loss; their
    extrapolation is not off.
    """
    more = {} if activation == "relu" else {"bias_value": 0.3}
    task, network = TASKS[name], committee(activation, **more)
    start = start_of(network)
    rates = np.array([0.1, 0.05])
    run = trained(task, network, rates, steps=240, every=30, estimator="exact", initial=start)
    times = run.times[0, :5]
    np.testing.assert_allclose(run.times[1, ::2], times)
    flow = lf.solve(task, theory_of(activation), network=network, initial=start, times=times)
    assert np.abs(flow.weights[0, -1] - flow.weights[0, 0]).max() > 0.05
    for part, values in run.series.items():
        once, twice, expected = values[0, :5], values[1, ::2], flow.series[part][0]
        errors = [np.abs(actual - expected)[1:].max() for actual in (once, twice)]
        assert errors[0] < 0.05 and 1.8 < errors[0] / errors[1] < 2.2, part
        assert np.abs(2 * twice - once - expected).max() < 0.1 * errors[1], part


LARGE = [("erf", 2)]
LARGE += [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in (("relu", 2), ("relu", 1), ("relu", 12), ("erf", 1), ("erf", 12))
]


@pytest.mark.parametrize("activation, hidden", LARGE)
def test_training_on_large_batches_follows_the_closed_form(activation, hidden):
    """The whole run: the mean over members that differ in their draws alone, within its error."""
    task = TASKS["zero-one" if activation == "relu" else "signs"]
    more = {} if activation == "relu" else {"bias_value": 0.3}
    network = committee(activation, hidden, **more)
    # A neuron of K learns at 1/K of the speed.
    settings = {"rate": 0.1 * hidden, "steps": 120, "every": 20, "initial": start_of(network)}
    exact = trained(task, network, estimator="exact", members=1, **settings)
    drawn = trained(task, network, estimator="independent", members=32, batch=2000, **settings)
    assert np.ptp(drawn.initial, axis=0).max() == 0
    limit = scipy.stats.t.ppf(scipy.stats.norm.cdf(SIGMAS), 31)
    for part in ("weights", "biases"):
        if part not in exact.series:
            continue
        values, expected = drawn.series[part], exact.series[part][0]
        error = values.std(axis=0, ddof=1)[1:] / math.sqrt(32)
        assert (np.abs(values.mean(axis=0) - expected)[1:] / error).max() < limit, part
        # How much of the way each member has gone, all neurons together: 1, and a tenth more or
        # less would be seen.
        way = (expected - expected[0])[1:].reshape(6, -1)
        gone = ((values - expected[0])[:, 1:].reshape(32, 6, -1) * way).sum(axis=2) / (way**2).sum(
            axis=1
        )
        spread = gone.std(axis=0, ddof=1) / math.sqrt(32)
        assert (np.abs(gone.mean(axis=0) - 1) < limit * spread).all(), part
        assert (limit * spread).max() < 0.1, part
