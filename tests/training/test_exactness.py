"""The trainer against what is known exactly: a quadratic loss, Gaussian data, and enumerated
spins.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields._prng import make_key, member_keys
from localfields.training.estimators import class_counts, sampled

from .helpers import (
    SIGMAS,
    gaussians,
    gradients_on_the_spot,
    ising,
    run,
    second_moments,
    worst,
    z_scores,
)

# -- a quadratic loss: mean and variance over members at every time --------------------------------
#
# With the identity as activation the output is φ·θ, linear in the parameters, with features φ of
# the input. Draws are fresh at each step and independent of θ, so that E θ follows plain gradient
# descent on the population loss exactly, and for Gaussian data the covariance of θ obeys a
# recursion of its own.

RATE, STEPS, BATCH, MEMBERS = 0.05, 20, 10, 2000


def linear_task(**changes):
    stimuli = (
        lf.stimuli.Gaussian((8,), xi=0.6, offset=0.6),
        lf.stimuli.Gaussian((8,), xi=1.0, offset=-0.3, scale=1.2),
    )
    return lf.Discrimination(
        *stimuli, **({"labels": (-0.5, 1.0), "proportions": (0.3, 0.7), "l2": 0.5} | changes)
    )


def features(task, network):
    """The matrix P of φ = P (x, 1), and which parameters are penalized."""
    inputs, hidden = np.eye(task.size + 1), network.hidden
    rows = np.tile(inputs[:-1], (hidden, 1)) / hidden
    biases = (
        np.tile(inputs[-1:], (hidden, 1)) / hidden
        if getattr(network, "bias", "none") == "trained"
        else inputs[:0]
    )
    return np.concatenate([rows, biases]), np.arange(len(rows) + len(biases)) < len(rows)


def closed_form(task, network, start, rate=RATE, batch=BATCH, factor=2.0):
    """Mean and variance of θ after every step, each (time, parameter). A factor of 1 would be
    the loss with a ½.
    """
    p, penalized = features(task, network)
    decay, push, classes = factor * task.l2 * np.diag(penalized.astype(float)), 0.0, []
    for c, stimulus in enumerate(task.stimuli):
        mean, second = second_moments(stimulus)
        m = p @ np.append(mean, 1)
        s = p @ np.block([[second, mean[:, None]], [mean[None, :], np.ones((1, 1))]]) @ p.T
        prior, y, num = task.priors[c], task.targets()[c, 0], class_counts(task, batch)[c]
        decay, push = decay + factor * prior * s, push + factor * prior * y * m
        classes.append((m, s, y, (factor * prior) ** 2 / num))
    mean, covariance = start, np.zeros((len(start), len(start)))
    means, variances = [mean], [np.diag(covariance)]
    for _ in range(STEPS):
        square, noise = covariance + np.outer(mean, mean), 0.0
        for m, s, y, weight in classes:
            noise = noise + weight * gradient_covariance(m, s, y, mean, square)
        step = np.eye(len(start)) - rate * decay
        mean, covariance = step @ mean + rate * push, step @ covariance @ step.T + rate**2 * noise
        means.append(mean)
        variances.append(np.diag(covariance))
    return np.array(means), np.array(variances)


def gradient_covariance(m, s, y, mean, square):
    """E_θ Cov(φ u) with u = φ·θ − y and φ Gaussian with mean m and E φφᵀ = s, given E θ and E θθᵀ.

    For jointly Gaussian a, b, u with means: E abuu = E ab E uu + 2 E au E bu − 2 E a E b (E u)².
    """
    u_square = np.trace(s @ square) - 2 * y * m @ mean + y**2
    u_mean_square = m @ square @ m - 2 * y * m @ mean + y**2
    cross = np.outer(s @ mean, m)
    product = s @ square @ s - y * (cross + cross.T) + y**2 * np.outer(m, m)  # E[φu] E[φu]ᵀ
    return s * u_square + product - 2 * np.outer(m, m) * u_mean_square


def misfit(theta, means, variances):
    """Worst z scores of mean and variance over members (first axis), at any time but the first."""
    off = theta[:, 1:] - means[1:]
    return worst(off, 0.0), worst(off**2, variances[1:])


NETWORKS = {
    "neuron": lf.networks.SingleNeuron("identity"),
    "committee": lf.networks.Committee(2, "identity", bias="trained", bias_value=0.4),
}


def start_of(network):
    weights = np.cos(np.arange(8 * network.hidden)).reshape(network.hidden, 8)
    return weights, np.append(weights.ravel(), [0.4] * (2 if network.hidden == 2 else 0))


def trained(network, seed, **changes):
    weights, _ = start_of(network)
    settings = {
        "steps": STEPS,
        "batch": BATCH,
        "members": MEMBERS,
        "learning_rate": RATE,
        "every": 1,
    }
    found = run(
        linear_task(),
        network,
        **(settings | {"quantities": ("weights", "biases")} | changes),
        seed=seed,
        initial=weights,
    )
    parts = [
        found.series[name].reshape(MEMBERS, STEPS + 1, -1)
        for name in ("weights", "biases")
        if name in found.series
    ]
    return np.concatenate(parts, axis=-1)


@pytest.mark.parametrize("name", NETWORKS)
def test_quadratic_has_the_exact_mean_and_variance(name, seed):
    network, start = NETWORKS[name], start_of(NETWORKS[name])[1]
    theta = trained(network, seed)
    assert max(misfit(theta, *closed_form(linear_task(), network, start))) < SIGMAS
    wrong = {
        "labels swapped": closed_form(linear_task(labels=(1.0, -0.5)), network, start),
        "factor 2 dropped": closed_form(linear_task(), network, start, factor=1.0),
        "proportions swapped": closed_form(linear_task(proportions=(0.7, 0.3)), network, start),
        "proportions dropped": closed_form(linear_task(proportions=()), network, start),
        "factor 2 of the penalty dropped": closed_form(linear_task(l2=0.25), network, start),
        "rate 5 % off": closed_form(linear_task(), network, start, rate=1.05 * RATE),
        "start 5 % off": closed_form(linear_task(), network, 1.05 * start),
    }
    assert {
        name for name, expected in wrong.items() if misfit(theta, *expected)[0] > SIGMAS
    } == set(wrong)
    twice = closed_form(linear_task(), network, start, batch=2 * BATCH)
    assert misfit(theta, *twice)[0] < SIGMAS < misfit(theta, *twice)[1]


@pytest.mark.parametrize("reuse", (False, True), ids=("fresh", "reused"))
def test_a_trainer_that_reuses_its_batch_is_caught(reuse, key):
    task, network = linear_task(), NETWORKS["neuron"]
    start, counts = start_of(network)[1], class_counts(task, BATCH)
    theta, found = np.tile(start, (MEMBERS, 1)), []
    for step in range(STEPS):
        found.append(theta)
        gradient = 2 * task.l2 * theta
        for c, stimulus in enumerate(task.stimuli):
            drawn = jax.random.fold_in(key, 2 * (0 if reuse else step) + c)
            x = np.asarray(stimulus.sample(drawn, MEMBERS * counts[c])).reshape(
                MEMBERS, counts[c], 8
            )
            off = np.einsum("mni,mi->mn", x, theta) - task.targets()[c, 0]
            gradient = gradient + 2 * task.priors[c] * np.einsum("mn,mni->mi", off, x) / counts[c]
        theta = theta - RATE * gradient
    scores = misfit(np.stack([*found, theta], axis=1), *closed_form(task, network, start))
    assert max(scores) > SIGMAS if reuse else max(scores) < SIGMAS


# -- one ReLU neuron: the mean gradient on Gaussian data and on spins, by every estimator ----------

ESTIMATORS = ("independent", "shared", "orbit")


def series(task, network, estimator, seed, initial, **changes):
    """Gradients at one point, (sample, N), in time order for each member, and the run."""
    members = {"independent": 16, "shared": 2, "orbit": 8}[estimator]
    steps = {"independent": 100, "shared": 800, "orbit": 100}[estimator]
    settings = {
        "estimator": estimator,
        "members": members,
        "steps": steps,
        "seed": seed,
        "initial": initial,
    }
    found, standing = gradients_on_the_spot(task, network, **(settings | changes))
    gradients = found["weights"][:, :, 0]
    return (gradients[:1] if estimator == "shared" else gradients), standing


def relu_gradient(task, of_class, w):
    """∇L = Σ_c p_c (Σ_c w − 2 y_c f_c(w)), by sign symmetry alone."""
    found = 0.0
    for c, stimulus in enumerate(task.stimuli):
        found = found + task.priors[c] * (
            second_moments(stimulus)[1] @ w - 2 * task.targets()[c, 0] * of_class(stimulus, w)
        )
    return found


def gaussian_f(stimulus, w):
    """f(w) = E[1(S ≥ 0) X] = Σw/(√(2π) s)."""
    second = second_moments(stimulus)[1]
    return second @ w / np.sqrt(2 * np.pi * w @ second @ w)


def wrong_gradients(task, of_class, w):
    """What the gradient would be with a mistake in it."""
    right = relu_gradient(task, of_class, w)
    swapped = lf.Discrimination(*reversed(task.stimuli))
    return {
        "labels swapped": relu_gradient(swapped, of_class, w),
        "sign flipped": -right,
        "factor 2 dropped": right / 2,
        "factor 2 of the label term dropped": right + task.priors[1] * of_class(task.stimuli[1], w),
    }


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_mean_gradient_on_gaussian_data(estimator, seed):
    task, w = gaussians(), 0.5 * np.cos(np.arange(8.0))
    found, _ = series(
        task,
        lf.networks.SingleNeuron(),
        estimator,
        seed,
        w[None],
        batch=20,
        quantities=("weights",),
    )
    found = found.reshape(-1, 8)
    assert worst(found, relu_gradient(task, gaussian_f, w)) < SIGMAS
    wrong = wrong_gradients(task, gaussian_f, w)
    assert {name for name, value in wrong.items() if worst(found, value) > SIGMAS} == set(wrong)


STATES = np.array(list(itertools.product((-1.0, 1.0), repeat=9)))


def probabilities(stimulus):
    """Of all 512 states of a ring of nine spins."""
    weight = np.exp(stimulus.coupling * (STATES * np.roll(STATES, 1, axis=1)).sum(axis=1))
    return weight / weight.sum()


def ising_f(stimulus, w):
    """½ E[sgn(S) X], by enumeration."""
    return 0.5 * probabilities(stimulus) @ (np.sign(STATES @ w)[:, None] * STATES)


def ising_task(**values):
    return ising((9,), **values)


W9 = 0.5 * np.cos(np.arange(9.0))


def test_formula_is_the_enumerated_gradient():
    for values in (
        {},
        {"labels": "signs"},
        {"couplings": (0.3, 0.7, 1.0)},
        {"proportions": (0.2, 0.8)},
    ):
        task, direct = ising_task(**values), 0.0
        for c, stimulus in enumerate(task.stimuli):
            s = STATES @ W9
            off = 2 * (np.maximum(s, 0) - task.targets()[c, 0]) * (s > 0)
            direct = direct + task.priors[c] * probabilities(stimulus) @ (off[:, None] * STATES)
        np.testing.assert_allclose(relu_gradient(task, ising_f, W9), direct, atol=1e-13)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradient_loss_and_accuracy_on_spins(estimator, seed):
    task = ising_task()
    quantities = ("weights", "loss", "accuracy") if estimator == "independent" else ("weights",)
    settings = {"batch": 20, "quantities": quantities, "evaluate": 200}
    found, standing = series(
        task, lf.networks.SingleNeuron(), estimator, seed, W9[None], **settings
    )
    expected = relu_gradient(task, ising_f, W9)
    assert worst(found.reshape(-1, 9), expected) < SIGMAS
    wrong = wrong_gradients(task, ising_f, W9)
    assert {
        name for name, value in wrong.items() if worst(found.reshape(-1, 9), value) > SIGMAS
    } == set(wrong)

    check_freshness(found - expected)
    if estimator == "independent":
        check_held_out(task, standing)


def check_held_out(task, standing):
    """Loss and accuracy of the records against enumeration; every record has draws of its own,
    seen by all members.
    """
    zero, one = task.stimuli
    both = second_moments(zero)[1] + second_moments(one)[1]
    loss = 0.5 - W9 @ ising_f(one, W9) + W9 @ both @ W9 / 4
    response = np.maximum(STATES @ W9, 0)
    by_states = sum(probabilities(s) @ (response - y) ** 2 / 2 for y, s in enumerate(task.stimuli))
    assert loss == pytest.approx(by_states, abs=1e-13)
    accuracy = (probabilities(zero) @ (response < 0.5) + probabilities(one) @ (response > 0.5)) / 2
    np.testing.assert_allclose(
        standing.loss, np.broadcast_to(standing.loss[:1], standing.loss.shape), rtol=1e-6
    )
    assert (
        abs(z_scores(standing.loss[0], loss)) < SIGMAS < abs(z_scores(standing.loss[0], 2 * loss))
    )
    assert (
        abs(z_scores(standing.accuracy[0], accuracy))
        < SIGMAS
        < abs(z_scores(standing.accuracy[0], 1 - accuracy))
    )


@pytest.mark.parametrize("estimator", ("independent", "shared"))
def test_what_is_held_out_was_not_trained_on(estimator, seed):
    # As many held-out draws as a batch has: if they were a batch, its loss would go with its
    # gradient along w.
    task, network, w = gaussians(), lf.networks.SingleNeuron(), 0.5 * np.cos(np.arange(8.0))
    settings = {
        "members": 3,
        "steps": 300,
        "batch": 10,
        "evaluate": 10,
        "quantities": ("weights", "loss"),
        "initial": w[None],
    }
    found, standing = gradients_on_the_spot(
        task, network, estimator=estimator, seed=seed, **settings
    )
    noise = found["weights"][:, :, 0] - found["weights"][:, :, 0].mean(axis=1, keepdims=True)

    def relation(losses, along):
        return abs(z_scores((losses - losses.mean()) * along, 0.0))

    for along in noise @ w:
        assert (
            max(relation(standing.loss[0, shift : shift + 300], along) for shift in (0, 1)) < SIGMAS
        )
    stream = {
        "independent": member_keys(seed, 1, 0)[0],
        "shared": jax.random.fold_in(make_key(seed), 2**31),
    }
    params = {"weights": jnp.asarray(w[None])}
    batch = jax.jit(
        lambda key: sampled(task, network, None, params, key, class_counts(task, 10))[0]
    )
    trained_on = np.array(
        [batch(jax.random.fold_in(stream[estimator], step)) for step in range(300)]
    )
    assert relation(trained_on, noise[0] @ w) > SIGMAS


def check_freshness(noise):
    """Noise of gradients, (member, step, N), is uncorrelated in time and between members."""
    assert freshness(noise) < SIGMAS
    assert freshness(np.repeat(noise[:, ::2], 2, axis=1)) > SIGMAS  # each batch used twice
    if len(noise) > 1:
        assert freshness(np.repeat(noise[::2], 2, axis=0)) > SIGMAS  # by two members


def freshness(noise):
    found = []
    for lag in range(1, 6):
        products = (noise[:, lag:] * noise[:, :-lag]).sum(axis=-1)
        found.append(abs(z_scores(products.ravel(), 0.0)))
    for member in range(1, len(noise)):
        found.append(abs(z_scores((noise[member] * noise[member - 1]).sum(axis=-1), 0.0)))
    return max(found)


# -- another loss, labels and network on spins -----------------------------------------------------


def population_loss(task, network, priors, params):
    """The loss, by enumeration."""
    outputs = jax.vmap(lambda x: network.apply(params, x, task.outputs))(jnp.asarray(STATES))
    total = task.penalty(params["weights"])
    for c, stimulus in enumerate(task.stimuli):
        target = jnp.asarray(task.targets()[c])
        losses = jax.vmap(lambda output, target=target: task.sample_loss(output, target))(outputs)
        total += priors[c] * jnp.asarray(probabilities(stimulus)) @ losses
    return total


def test_mean_gradient_is_the_gradient_of_the_enumerated_loss(seed):
    settings = {
        "labels": "one-hot",
        "loss": "cross-entropy",
        "proportions": (0.35, 0.65),
        "l1": 0.1,
    }
    network, task = lf.networks.TwoLayer(2, "tanh", init_scale=2.0), ising_task(**settings)
    # A batch of odd size: the counts (2, 5) are not in the proportions of the classes.
    quantities = ("weights", "biases", "readout", "readout_bias")
    found, standing = gradients_on_the_spot(
        task, network, members=20, steps=80, batch=7, quantities=quantities, seed=seed
    )
    params = {part: jnp.asarray(standing.series[part][:, 0]) for part in found}
    exact = jax.jit(
        jax.vmap(jax.grad(lambda p, q: population_loss(task, network, q, p)), (0, None))
    )

    def misfit(priors):
        gradient = exact(params, jnp.asarray(priors))
        each = [
            (found[part] - np.asarray(mean)[:, None], mean.shape[1:])
            for part, mean in gradient.items()
        ]
        return max(worst(noise.reshape(-1, *shape), 0.0) for noise, shape in each)

    assert misfit(task.priors) < SIGMAS
    assert misfit((0.5, 0.5)) > SIGMAS
    assert misfit(np.array(class_counts(task, 7)) / 7) > SIGMAS  # a plain mean over the batch
