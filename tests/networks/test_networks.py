"""Networks: outputs by hand, gradients by finite differences, and the laws they start from."""

import contextlib
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import localfields as lf
from localfields._prng import KEYS
from localfields._spec import Choice, fields, registered
from localfields.networks.base import ACTIVATIONS, INITS, initial_fields
from localfields.tasks import LABELS, LOSSES
from localfields.training.estimators import orbit, sampled

SIGMAS = 5.0
SHAPE = (6,)

# -- outputs ---------------------------------------------------------------------------------------

NUMPY = {
    "relu": lambda h: np.maximum(h, 0),
    "erf": lambda h: scipy.special.erf(h / np.sqrt(2)),
    "erf-unscaled": scipy.special.erf,
    "sigmoid": scipy.special.expit,
    "tanh": np.tanh,
    "identity": np.asarray,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_is_what_it_is_called(name):
    points = np.array([-1.5, 0.0, 2.0])
    np.testing.assert_allclose(
        ACTIVATIONS[name](jnp.asarray(points)), NUMPY[name](points), rtol=1e-14
    )


X = jnp.array([1.0, 2.0, -1.0])
ROWS = jnp.array(
    [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 2.0, 1.0], [-1.0, 0.0, 0.0]]
)  # ⟨w_k, x⟩ = 0, 2, 3, −1


def test_single_neuron_by_hand():
    params = {"weights": ROWS[1:2]}
    assert lf.networks.SingleNeuron().apply(params, X).tolist() == [2.0]
    assert lf.networks.SingleNeuron().apply({"weights": -ROWS[1:2]}, X).tolist() == [0.0]
    assert lf.networks.SingleNeuron("identity").apply({"weights": -ROWS[1:2]}, X).tolist() == [-2.0]


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        ("none", (0 + 2 + 3 + 0) / 4),
        ("fixed", (0.5 + 2.5 + 3.5 + 0) / 4),
        ("halves", (0.5 + 2.5 + 2.5 + 0) / 4),
        ("trained", (0 + 3 + 1 + 2) / 4),
    ],
)
def test_committee_by_hand(bias, expected):
    network = lf.networks.Committee(4, bias=bias, bias_value=0.5)
    params = {"weights": ROWS, "biases": jnp.array([-1.0, 1.0, -2.0, 3.0])}
    assert network.apply(params, X).tolist() == [expected]


def test_odd_committee_has_the_larger_half_up():
    network = lf.networks.Committee(3, "identity", bias="halves", bias_value=6.0)
    assert network.apply({"weights": ROWS[:3]}, X).tolist() == pytest.approx([(6 + 8 - 3) / 3])


def test_committee_with_outputs_has_a_committee_each():
    network = lf.networks.Committee(4)
    assert network.apply({"weights": ROWS}, X, 2).tolist() == [(0 + 2) / 2, (3 + 0) / 2]
    assert network.apply({"weights": ROWS}, X, 4).tolist() == [0, 2, 3, 0]


def test_two_layers_by_hand():
    params = {
        "weights": ROWS,
        "biases": jnp.array([1.0, 0.0, -1.0, 2.0]),  # responses 1, 2, 2, 1
        "readout": jnp.array([[1.0, 2.0, 3.0, 4.0], [0.0, -1.0, 0.0, 1.0]]),
        "readout_bias": jnp.array([10.0, 20.0]),
    }
    assert lf.networks.TwoLayer(4).apply(params, X, 2).tolist() == [10 + 1 + 4 + 6 + 4, 20 - 2 + 1]
    without = {name: values for name, values in params.items() if name != "readout_bias"}
    assert lf.networks.TwoLayer(4, bias="hidden").apply(without, X, 2).tolist() == [
        1 + 4 + 6 + 4,
        -2 + 1,
    ]
    bare = {name: params[name] for name in ("weights", "readout")}
    assert lf.networks.TwoLayer(4, bias="none").apply(bare, X, 2).tolist() == [2 * 2 + 3 * 3, -2]


def test_receptive_fields_lie_on_the_lattice():
    network = lf.networks.Committee(2)
    params = {"weights": jnp.arange(12.0).reshape(2, 6)}
    np.testing.assert_array_equal(
        network.receptive_fields(params, (2, 3)), np.arange(12.0).reshape(2, 2, 3)
    )


PARAMETERS = {
    "single-neuron": {"weights": (1, 6)},
    "committee none": {"weights": (4, 6)},
    "committee fixed": {"weights": (4, 6)},
    "committee halves": {"weights": (4, 6)},
    "committee trained": {"weights": (4, 6), "biases": (4,)},
    "two-layer trained": {
        "weights": (4, 6),
        "biases": (4,),
        "readout": (1, 4),
        "readout_bias": (1,),
    },
    "two-layer none": {"weights": (4, 6), "readout": (1, 4)},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_trained_parameters(name, key):
    kind, _, bias = name.partition(" ")
    network = registered("network")[kind](**({"hidden": 4, "bias": bias} if bias else {}))
    result = network.initial(key, (2, 3))
    assert {name: leaf.shape for name, leaf in result.items()} == PARAMETERS[name]
    assert all(leaf.dtype == jnp.float64 for leaf in result.values())
    with jax.enable_x64(False):
        assert all(
            leaf.dtype == jnp.float32
            for leaf in network.initial(jax.random.key(0), (2, 3)).values()
        )


def test_wrong_number_of_outputs_is_refused(key):
    with pytest.raises(
        lf.InputError,
        match="SingleNeuron has one output, and this task needs 2. Use `Two",
    ):
        lf.networks.SingleNeuron().initial(key, SHAPE, 2)
    with pytest.raises(
        lf.InputError,
        match="4 neurons cannot be divided evenly among 3 outputs",
    ):
        lf.networks.Committee(4).initial(key, SHAPE, 3)
    assert lf.networks.Committee(6).initial(key, SHAPE, 3)["weights"].shape == (6, 6)
    assert lf.networks.TwoLayer(4).initial(key, SHAPE, 3)["readout"].shape == (3, 4)


# -- gradients -------------------------------------------------------------------------------------

STEP = np.finfo(float).eps ** (
    1 / 3
)  # where truncation (h²) and rounding (ε/h) of a central difference meet
COUNT = 2  # draws a class


def variants(cls):
    """The network at its defaults, then with each other activation, then with each other choice
    that it has.
    """
    kinds = {field.name: field.kind for field in fields(cls)}
    base = {name: value for name, value in (("hidden", 6), ("bias_value", 0.3)) if name in kinds}
    result = [cls(**base)]
    for name, kind in kinds.items():
        if isinstance(kind, Choice) and name != "init":
            result += [
                result[0].replace(**{name: value})
                for value in kind.names
                if value != getattr(result[0], name)
            ]
    return result


def tasks():
    """One of every loss × labels that is a task."""
    for loss, labels in itertools.product(LOSSES, LABELS):
        stimuli = [lf.stimuli.Gaussian(SHAPE, xi=xi) for xi in (0.5, 0.6)]
        with contextlib.suppress(lf.InputError):
            yield lf.Discrimination(
                *stimuli, labels=labels, proportions=(0.3, 0.7), loss=loss, l1=0.1, l2=0.2
            )


def combinations():
    """Every network with each of its choices at one loss, and as it is by default at every loss ×
    labels.

    Orbits differ in what the loss is averaged over: every network at one loss, one network at every
    loss × labels.
    """
    for cls in registered("network").values():
        usual = variants(cls)[0]
        for network, task in itertools.product(variants(cls), tasks()):
            plain = (task.loss, task.labels) == ("mse", "zero-one")
            try:
                network.check_outputs(task.outputs)
            except lf.InputError:
                continue
            name, default = f"{network!r}-{task.loss}-{task.labels}", repr(network) == repr(usual)
            if plain or default:
                yield pytest.param(network, task, sampled, id=name)
            if default and (plain or cls is lf.networks.Committee):
                yield pytest.param(network, task, orbit, id=f"{name}-orbit")


def numpy_loss(task, outputs, c):
    """Mean loss of a class, from outputs (…, num, outputs), written without the package."""
    target = task.targets()[c]
    if task.loss == "mse":
        losses = ((outputs - target) ** 2).sum(axis=-1)
    elif task.loss == "absolute":
        losses = np.abs(outputs - target).sum(axis=-1)
    elif len(target) == 1:
        losses = -scipy.special.log_expit((2 * target[0] - 1) * outputs[..., 0])
    else:
        losses = -scipy.special.log_softmax(outputs, axis=-1)[..., np.argmax(target)]
    return losses.mean(axis=-1)


def preactivations(network, params, x):
    """⟨w_k, x⟩ + b_k, (many, num, K)."""
    h = np.einsum("nx,mkx->mnk", x, params["weights"])
    bias = getattr(network, "bias", "none")
    if bias in ("trained", "hidden"):
        return h + params["biases"][:, None, :]
    half = np.arange(network.hidden) < network.hidden / 2
    return h + {"none": 0.0, "fixed": 0.3, "halves": np.where(half, 0.3, -0.3)}[bias]


def outputs_of(network, params, x, outputs):
    """Outputs at many parameters, (many, num, outputs), in numpy for the networks known here."""
    if isinstance(
        network, lf.networks.GatedLinear
    ):  # as it is by default: one gate, open where the sum is positive
        return preactivations(network, params, x) * (x.sum(axis=1) > 0)[None, :, None]
    active = NUMPY[network.activation](preactivations(network, params, x))
    if isinstance(network, lf.networks.SingleNeuron):
        return active
    if isinstance(network, lf.networks.Committee):
        return active.reshape(*active.shape[:2], outputs, -1).mean(axis=-1)
    if isinstance(network, lf.networks.TwoLayer):
        return (
            np.einsum("mok,mnk->mno", params["readout"], active)
            + params.get("readout_bias", np.zeros((1, 1)))[:, None, :]
        )
    of_all = jax.vmap(jax.vmap(lambda p, x: network.apply(p, x, outputs), (None, 0)), (0, None))
    return np.asarray(of_all(params, x))


def reference_loss(task, network, params, draws):
    """The loss of a batch at many parameters, (many, …), and how near the batch comes to a kink.

    An output that equals its target is a neuron that is silent altogether: no kink.
    """
    weights = params["weights"]
    total = task.l1 * np.abs(weights).sum(axis=(1, 2)) + task.l2 * (weights**2).sum(axis=(1, 2))
    kinks = [np.abs(weights)]
    for c, x in enumerate(draws):
        outputs = outputs_of(network, params, x, task.outputs)
        total += task.priors[c] * numpy_loss(task, outputs, c)
        kinks += (
            [np.abs(preactivations(network, params, x))]
            if getattr(network, "activation", "") == "relu"
            else []
        )
        off = np.abs(outputs - task.targets()[c])
        kinks += [off[off > 0]] if task.loss == "absolute" else []
    return total, min(kink.min(initial=np.inf) for kink in kinks)


def whole_orbit(x):
    moved = np.concatenate([np.roll(x, by, axis=1) for by in range(x.shape[1])])
    return np.concatenate([moved, -moved])


def by_differences(task, network, rng, turned):
    """A random point at which the loss is smooth, and there the draws, the loss and its central
    differences.
    """
    shapes = jax.eval_shape(lambda: network.initial(jax.random.key(0), SHAPE, task.outputs))
    while True:
        draws = [rng.normal(size=(COUNT, *SHAPE)) for _ in task.stimuli]
        params = {name: rng.normal(size=shape.shape) for name, shape in sorted(shapes.items())}
        size = sum(value.size for value in params.values())
        moves, begin, moved = (
            STEP * np.concatenate([np.eye(size), -np.eye(size), np.zeros((1, size))]),
            0,
            {},
        )
        for name, value in params.items():
            moved[name] = value + moves[:, begin : begin + value.size].reshape(-1, *value.shape)
            begin += value.size
        losses, margin = reference_loss(task, network, moved, [turned(x) for x in draws])
        if margin > 10 * STEP:
            up, down = np.split(losses[:-1], 2)
            return (
                draws,
                {name: jnp.asarray(value) for name, value in params.items()},
                losses[-1],
                (up - down) / (2 * STEP),
            )


@pytest.mark.parametrize(("network", "task", "estimator"), list(combinations()))
def test_gradient_is_that_of_the_loss(network, task, estimator, key, monkeypatch):
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    turned = whole_orbit if estimator is orbit else np.asarray
    draws, params, expected, differences = by_differences(task, network, rng, turned)
    monkeypatch.setattr(
        "localfields.training.estimators.draw_classes", lambda *_: list(map(jnp.asarray, draws))
    )
    # Not compiled as a whole: operations are shared by all cases, and take half the time of a
    # program for each.
    loss, gradient = estimator(task, network, None, params, key, (COUNT,) * len(draws))
    assert loss == pytest.approx(expected, rel=1e-12)
    actual = np.concatenate([np.ravel(gradient[name]) for name in sorted(gradient)])
    # Truncation h²·L‴/6 and rounding ε·L/h, with derivatives of the order of L or of the gradient.
    scale = max(1.0, abs(expected), np.abs(actual).max())
    tolerance = 30 * scale * (STEP**2 + np.finfo(float).eps / STEP)
    np.testing.assert_allclose(actual, differences, rtol=0, atol=tolerance)
    assert np.abs(1.0001 * actual - differences).max() > tolerance


# -- how they start --------------------------------------------------------------------------------

MANY = 4000
RING = (12,)


def drawn(network, key, shape=RING, outputs=1, many=MANY):
    keys = jax.random.split(jax.random.wrap_key_data(jax.random.key_data(key), impl=KEYS), many)
    return {
        name: np.asarray(leaf)
        for name, leaf in jax.jit(jax.vmap(lambda k: network.initial(k, shape, outputs)))(
            keys
        ).items()
    }


def z_score(values, expected):
    return (values.mean() - expected) / (values.std(ddof=1) / np.sqrt(values.size))


@pytest.mark.parametrize("init", ("glorot", "glorot-truncated"))
@pytest.mark.parametrize("hidden", (1, 4))
def test_glorot_variance(init, hidden, key):
    scale = 0.3
    network = lf.networks.Committee(hidden, init=init, init_scale=scale)
    weights = drawn(network, key)["weights"]
    variance = scale * 2 / (12 + hidden)
    assert abs(z_score(weights, 0.0)) < SIGMAS
    assert abs(z_score(weights**2, variance)) < SIGMAS
    for wrong in (1.05, 0.95, (12 + hidden) / 12):
        assert abs(z_score(weights**2, wrong * variance)) > SIGMAS
    if init == "glorot":
        assert scipy.stats.kstest(weights.ravel() / np.sqrt(variance), "norm").pvalue > 6e-7
    else:
        # A normal cut at two standard deviations keeps this much of its standard deviation.
        cut = scipy.stats.truncnorm(-2, 2).std()
        assert np.abs(weights).max() <= 2 * np.sqrt(variance) / cut * (1 + 1e-12)
        assert (
            scipy.stats.kstest(
                weights.ravel() * cut / np.sqrt(variance), scipy.stats.truncnorm(-2, 2).cdf
            ).pvalue
            > 6e-7
        )


def test_positive_start(key):
    network = lf.networks.Committee(3, init="positive", init_scale=0.3)
    weights, variance = drawn(network, key)["weights"], 0.3 * 2 / 15
    assert abs(z_score(weights**2, variance)) < SIGMAS
    assert abs(z_score(weights, np.sqrt(variance / 2))) < SIGMAS
    assert abs(z_score((weights > 0).astype(float), scipy.stats.norm.cdf(1))) < SIGMAS
    assert abs(z_score(weights**2, 1.05 * variance)) > SIGMAS
    assert abs(z_score(weights, 1.05 * np.sqrt(variance / 2))) > SIGMAS


@pytest.mark.parametrize("init", ("bump", "basis"))
@pytest.mark.parametrize("shape", (RING, (4, 6)), ids=str)
def test_start_at_a_random_site(init, shape, key):
    network = lf.networks.Committee(2, init=init, init_scale=0.3)
    weights = drawn(network, key, shape)["weights"]
    size = math.prod(shape)
    fields_ = weights.reshape(-1, *shape)
    place = np.abs(fields_).reshape(len(fields_), -1).argmax(axis=1)
    axes = tuple(range(len(shape)))
    back = [
        np.roll(field, [-n for n in np.unravel_index(at, shape)], axes)
        for field, at in zip(fields_, place, strict=True)
    ]
    d = np.stack(
        np.meshgrid(*[np.minimum(np.arange(n), n - np.arange(n)) for n in shape], indexing="ij")
    )
    profile = (
        (d.sum(axis=0) == 0).astype(float) if init == "basis" else np.exp(-(d**2).sum(axis=0) / 8)
    )
    profile *= np.sqrt(0.3 * 2 / (size + 2) / np.mean(profile**2))
    np.testing.assert_allclose(
        back, np.broadcast_to(profile, fields_.shape), rtol=1e-12, atol=1e-15
    )
    assert scipy.stats.chisquare(np.bincount(place, minlength=size)).pvalue > 6e-7
    # The two neurons of a committee have places of their own.
    pairs = np.bincount(place[::2] * size + place[1::2], minlength=size**2)
    assert scipy.stats.chisquare(pairs).pvalue > 6e-7


@pytest.mark.parametrize("outputs", (1, 3))
def test_second_layer_starts_like_the_first(outputs, key):
    many = 4 * MANY
    result = drawn(lf.networks.TwoLayer(4, init_scale=0.3), key, outputs=outputs, many=many)
    variance = 0.3 * 2 / (4 + outputs)
    assert abs(z_score(result["readout"] ** 2, variance)) < SIGMAS
    assert abs(z_score(result["readout"] ** 2, 1.05 * variance)) > SIGMAS
    assert abs(z_score(result["weights"] ** 2, 0.3 * 2 / 16)) < SIGMAS
    cross = result["readout"][:, 0, :, None] * result["weights"]
    assert np.abs(cross.mean(axis=0) / cross.std(axis=0) * np.sqrt(many)).max() < SIGMAS
    assert not result["biases"].any() and not result["readout_bias"].any()


def test_trained_biases_start_at_their_value(key):
    result = lf.networks.Committee(4, bias="trained", bias_value=-0.7).initial(key, RING)["biases"]
    assert result.tolist() == [-0.7] * 4


@pytest.mark.parametrize("init", INITS)
def test_init_scale_is_a_factor_alone(init, key):
    one, four = (np.asarray(initial_fields(key, init, scale, 3, RING)) for scale in (1.0, 4.0))
    np.testing.assert_allclose(four, 2 * one, rtol=1e-14)
    assert np.mean(one**2) < 3 * 2 / 15 * 2
