"""Estimators of the population gradient: the same expectation, different variance, and refusals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields import _registry
from localfields._ensemble import TRACES
from localfields.training import estimators
from localfields.training.estimators import (
    all_shifts,
    class_counts,
    exact_extra,
    orbit,
    orbit_extra,
    sampled,
)

from .helpers import SIGMAS, gaussians, ising, run, worst, z_scores

# -- all shifts of a draw --------------------------------------------------------------------------


def brute_force(weights, x, shape):
    """⟨w_k, x moved by −s⟩ for every shift s, in C order: (num, shift, K)."""
    fields_, draws = weights.reshape(-1, *shape), x.reshape(-1, *shape)
    axes, letters = tuple(range(1, len(shape) + 1)), "abc"[: len(shape)]
    moved = [
        np.einsum(f"n{letters},k{letters}->nk", np.roll(draws, [-m for m in by], axes), fields_)
        for by in np.ndindex(*shape)
    ]
    return np.stack(moved, axis=1)


@pytest.mark.parametrize("limit", (0, 256), ids=("fourier", "dense"))
@pytest.mark.parametrize("shape", ((9,), (4, 6), (2, 3, 4)), ids=str)
def test_all_shifts(shape, limit, rng, monkeypatch):
    monkeypatch.setattr(estimators, "LARGEST_DENSE_ORBIT", limit)
    size = int(np.prod(shape))
    weights, x = rng.normal(size=(3, size)), rng.normal(size=(5, size))
    shifted = jax.jit(lambda w, x: all_shifts(w, x, shape))(weights, x)
    assert shifted.shape == (5, size, 3)
    np.testing.assert_allclose(shifted, brute_force(weights, x, shape), rtol=0, atol=1e-13 * size)


def test_a_large_lattice_takes_the_fourier_path(rng):
    # 272 sites: beyond the limit, without anything patched.
    assert 16 * 17 > estimators.LARGEST_DENSE_ORBIT
    weights, x = rng.normal(size=(2, 2, 272))
    transform = jax.jit(lambda w, x: all_shifts(w, x, (16, 17)))
    assert "fft" in transform.lower(weights, x).as_text()
    np.testing.assert_allclose(
        transform(weights, x), brute_force(weights, x, (16, 17)), rtol=0, atol=1e-11
    )


# -- the same expectation with less variance -------------------------------------------------------

# That `orbit` averages over all shifts and signs of its draws is tested exactly, for every network,
# in tests/networks; that stimuli have the symmetries they declare, for every stimulus, in
# tests/laws. Together they give the expectation. Two pairs of stimuli are left to show it at work,
# and the variance.
SYMMETRIC = {
    "ring": [lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)],
    "torus": [lf.stimuli.Kur((4, 6), xi=xi, k=10.0, kernel="periodized") for xi in (0.6, 1.2)],
}
DRAWS, SAMPLES = 4, 1500  # draws of each class in a gradient; gradients

NETWORKS = {
    "neuron": lf.networks.SingleNeuron(init_scale=2.0),
    "committee": lf.networks.Committee(
        3, "sigmoid", bias="trained", bias_value=0.3, init_scale=4.0
    ),
    "two-layer": lf.networks.TwoLayer(3, "relu", init_scale=2.0),
}


@functools.cache
def compiled(network, shape):
    """Gradients of one network by both estimators, for draws given in place of a key: one
    program for all stimuli.
    """
    task = lf.Discrimination(*(lf.stimuli.Gaussian(shape, xi=xi) for xi in (0.5, 0.6)), l2=0.1)

    @jax.jit
    def both(params, draws):
        return tuple(
            jax.vmap(lambda x, e=e: e(task, network, None, params, x, (DRAWS, DRAWS))[1])(draws)
            for e in (sampled, orbit)
        )

    return both


@pytest.fixture
def draws_are_keys(monkeypatch):
    monkeypatch.setattr(estimators, "draw_classes", lambda task, key, counts: list(key))


def drawn(stimuli, key, num):
    """`num` batches of `DRAWS` of each class, (num, DRAWS, size)."""
    return tuple(
        stimulus.sample(k, num * DRAWS).reshape(num, DRAWS, stimulus.size)
        for stimulus, k in zip(stimuli, jax.random.split(key, len(stimuli)), strict=True)
    )


@pytest.mark.parametrize(
    ("lattice", "name"), [("ring", "neuron"), ("ring", "committee"), ("torus", "two-layer")]
)
def test_orbit_has_the_same_mean_and_less_variance(lattice, name, key, draws_are_keys):
    for_params, for_draws = jax.random.split(key)
    stimuli, network = SYMMETRIC[lattice], NETWORKS[name]
    shape = stimuli[0].shape
    params = network.initial(for_params, shape)
    plain, turned = compiled(network, shape)(params, drawn(stimuli, for_draws, SAMPLES))
    assert plain.keys() == turned.keys() == params.keys()
    for part in params:
        # Both see the same draws: their difference has a smaller error than either.
        assert worst(np.asarray(plain[part]) - np.asarray(turned[part]), 0.0) < SIGMAS, part
    spread = [
        ((g - g.mean(axis=0)) ** 2).sum(axis=(1, 2))
        for g in (np.asarray(plain["weights"]), np.asarray(turned["weights"]))
    ]
    assert z_scores(spread[0] - spread[1], 0.0) > SIGMAS


def test_orbit_of_stimuli_without_symmetry_would_be_caught(key, draws_are_keys):
    # The power of the test above: a Gaussian with a mean, a pulse that is on or off, blocks with
    # fixed borders.
    asymmetric = {
        "mean": [lf.stimuli.Gaussian((12,), xi=xi, offset=0.3) for xi in (0.6, 1.2)],
        "pulse": [lf.stimuli.SinglePulse((12,), n, n, coding="zero-one") for n in (2, 4)],
        "block": [lf.stimuli.BlockPulse((12,), n) for n in (2, 4)],
    }
    network = NETWORKS["neuron"]
    for name, stimuli in asymmetric.items():
        params, draws = network.initial(key, (12,)), drawn(stimuli, key, SAMPLES)
        plain, turned = compiled(network, (12,))(params, draws)
        off = np.asarray(plain["weights"]) - np.asarray(turned["weights"])
        assert worst(off, 0.0) > SIGMAS, name


@pytest.mark.parametrize(
    ("stimulus", "words"),
    [
        (lambda: lf.stimuli.Gaussian((12,), xi=0.6, offset=0.3), "sign symmetric"),
        (lambda: lf.stimuli.Gaussian((12,), xi=0.6, offset=[0.0, 0.3]), "sign symmetric"),
        (lambda: lf.stimuli.SinglePulse((12,), coding="zero-one"), "sign symmetric"),
        (
            lambda: lf.stimuli.Copula((12,), xi=0.6, marginal_law=lambda u: -np.log1p(-u)),
            "sign symmetric",
        ),
        (lambda: lf.stimuli.BlockPulse((12,)), "translation invariant"),
        (lambda: lf.stimuli.DenseGaussian((2,)), "translation invariant"),
    ],
)
def test_orbit_is_refused_without_symmetry(stimulus, words):
    bad = stimulus()
    good = lf.stimuli.Gaussian(bad.shape, xi=0.25)
    told = f"The estimator 'orbit' averages over .*, and .* is not {words}. Use estimator="
    for pair in ((bad, good), (good, bad)):
        with pytest.raises(lf.InputError, match=told):
            lf.train(lf.Discrimination(*pair), lf.networks.SingleNeuron(), estimator="orbit")


def test_shared_and_independent_are_one_estimator():
    # They differ in who sees which draws. Through `train`, all are compared with exact gradients
    # elsewhere.
    known = {"independent": sampled, "shared": sampled, "orbit": orbit, "exact": estimators.exact}
    assert known == {name: one for name, one in estimators.ESTIMATORS.items() if name != "epochs"}


# -- what is known beforehand of one neuron --------------------------------------------------------

NEURON = NETWORKS["neuron"]


def shift_average(x, shape):
    """Mean over draws and sites of x_i x_{i+d}: the covariance row that a set of draws has on
    its orbit.
    """
    transform = np.fft.fftn(x.reshape(-1, *shape), axes=range(1, len(shape) + 1))
    return np.fft.ifftn((np.abs(transform) ** 2).mean(axis=0)).real / np.prod(shape)


@functools.cache
def three_classes(shape):
    """`orbit` of a task of three classes, compiled: with and without what is known, two
    programs.
    """
    stimuli = [lf.stimuli.Gaussian(shape, xi=xi, kernel="periodized") for xi in (0.5, 0.8, 1.2)]
    task = lf.Discrimination(
        *stimuli, labels=(-1.5, 0.0, 0.7), proportions=(0.2, 0.3, 0.5), l1=0.1, l2=0.2
    )
    return jax.jit(
        lambda extra, params, draws: orbit(task, NEURON, extra, params, draws, (5, 5, 5))
    )


@pytest.mark.parametrize("trust", (0.0, 0.4, 1.0))
@pytest.mark.parametrize("shape", ((12,), (4, 6), (16, 17)), ids=str)
def test_knowing_what_the_draws_say_changes_nothing(shape, trust, rng, draws_are_keys):
    # Where the covariance is the one that the draws happen to have, both ways are one sum in
    # another order.
    estimate = three_classes(shape)
    draws = list(rng.normal(size=(3, 5, np.prod(shape))))
    params = {"weights": rng.normal(size=(1, np.prod(shape)))}

    def loss_and_gradient(factor):
        extra = [(jnp.asarray(factor * shift_average(x, shape)), jnp.asarray(trust)) for x in draws]
        loss, gradient = estimate(extra if factor else None, params, draws)
        return np.append(gradient["weights"], loss)

    expected = loss_and_gradient(0.0)
    np.testing.assert_allclose(
        loss_and_gradient(1.0), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )
    # A factor in its place, such as a ½ that is lost, is far beyond that.
    assert all(
        np.abs(loss_and_gradient(factor) - expected).min() > 1e-6 for factor in (0.5, 1.05, 2.0)
    )


@functools.cache
def neuron_gradients(shape):
    """Gradients of one neuron by `orbit`, with or without what is known: two programs for all
    stimuli.
    """
    task = lf.Discrimination(
        *(lf.stimuli.Gaussian(shape, xi=xi) for xi in (0.5, 0.6)), labels=(-0.5, 1.0)
    )

    @jax.jit
    def gradients(weights, extra, draws):
        counts = (draws[0].shape[1],) * 2
        return jax.vmap(
            lambda x: orbit(task, NEURON, extra, {"weights": weights}, x, counts)[1]["weights"][0]
        )(draws)

    return lambda *given: np.asarray(gradients(*given))


def knowledge(stimuli, factor=1.0):
    extra = orbit_extra(lf.Discrimination(*stimuli), NEURON)
    return [(jnp.asarray(factor * row), jnp.asarray(trust)) for row, trust in extra]


@pytest.mark.parametrize("lattice", SYMMETRIC)
def test_what_is_known_changes_no_mean(lattice, key, draws_are_keys):
    # With the covariance that the draws have, nothing changes at all (above); that stimuli have the
    # covariance they declare is tested in tests/laws. What is left: what is taken off must not
    # depend on the draws.
    stimuli = SYMMETRIC[lattice]
    for_params, for_draws = jax.random.split(key)
    shape, draws = stimuli[0].shape, drawn(stimuli, for_draws, 4 * SAMPLES)
    weights, gradients = NEURON.initial(for_params, shape)["weights"], neuron_gradients(shape)
    unknown = gradients(weights, None, draws)

    def furthest(factor):
        difference = gradients(weights, knowledge(stimuli, factor), draws) - unknown
        return max(worst(difference, 0.0), worst(difference @ np.asarray(weights[0]), 0.0))

    assert furthest(1.0) < SIGMAS
    # A covariance that is a little off, or has lost a ½, would be seen.
    assert min(furthest(factor) for factor in (0.5, 1.05)) > SIGMAS


RING = np.arange(20)
FIELDS = {
    "random": lambda: 0.2 * np.random.default_rng(0).normal(size=20),
    "localized": lambda: 0.5 * np.exp(-np.minimum(RING, 20 - RING)),
    "flat": lambda: np.full(20, 0.1),
    "wave": lambda: 0.2 * np.cos(2 * np.pi * 2 * RING / 20),
}


@pytest.mark.parametrize(
    "stimulus",
    [
        lf.stimuli.Gaussian,
        functools.partial(lf.stimuli.NLGP, gain=100.0),
        functools.partial(lf.stimuli.Kur, k=3.0),
        functools.partial(lf.stimuli.StudentT, nu=5.0),
    ],
    ids=("gaussian", "nlgp", "kur", "student-t"),
)
def test_what_is_known_lowers_the_variance(stimulus, key, draws_are_keys):
    stimuli = [stimulus((20,), xi=xi) for xi in (1.0, 2.0)]
    draws = tuple(
        one.sample(k, 2000)[:, None] for one, k in zip(stimuli, jax.random.split(key), strict=True)
    )
    extra = knowledge(stimuli)
    untrusting = [(row, jnp.zeros(())) for row, _ in extra]
    for name, field in FIELDS.items():
        known, uncontrolled, unknown = (
            neuron_gradients((20,))(jnp.asarray(field()[None]), given, draws).var(axis=0).sum()
            for given in (extra, untrusting, None)
        )
        assert known < unknown, name
        if stimulus is lf.stimuli.Gaussian:
            # What is left where h is Gaussian: 1 − 2/π = 0.36 across Σw, less along it.
            assert known < 0.4 * uncontrolled, name


def test_tails_decide_how_far_the_control_variate_is_trusted():
    # The normal law, lighter tails, κ = 9, no kurtosis.
    laws = (
        lf.stimuli.Gaussian,
        lf.stimuli.NLGP,
        lf.stimuli.StudentT,
        functools.partial(lf.stimuli.Kur, k=3.0),
    )
    task = lf.Discrimination(*[law((12,), xi=0.6) for law in laws])
    extra = orbit_extra(task, NEURON)
    np.testing.assert_allclose([trust for _, trust in extra], [1.0, 1.0, 0.5, 0.0], rtol=1e-6)
    for (row, _), stimulus in zip(extra, task.stimuli, strict=True):
        np.testing.assert_array_equal(row, stimulus.covariance())


@pytest.fixture
def doubled():
    """A neuron derived from the one whose loss is known, with another."""

    class Doubled(lf.networks.SingleNeuron):
        """Twice its response."""

        def readout(self, params, h, outputs=1):
            return 2 * super().readout(params, h, outputs)

    yield Doubled
    del _registry.CLASSES["network"]["doubled"]


def test_only_what_is_known_is_used(doubled):
    known = gaussians(labels="signs")
    assert orbit_extra(known, NEURON) is not None
    for task in (
        gaussians(loss="cross-entropy"),
        gaussians(loss="absolute"),
        gaussians(labels="one-hot"),
    ):
        assert orbit_extra(task, NEURON) is None
    others = (
        doubled(),
        lf.networks.SingleNeuron("tanh"),
        lf.networks.Committee(1),
        lf.networks.TwoLayer(2),
    )
    assert all(orbit_extra(known, network) is None for network in others)


@pytest.mark.parametrize("dtype", (jnp.float32, jnp.float64))
def test_weights_without_response_have_a_finite_gradient(dtype, key, draws_are_keys):
    # Zero, so small that squares underflow, and a wave that a smooth stimulus does not contain.
    stimuli = [lf.stimuli.Gaussian((20,), xi=xi, kernel="periodized") for xi in (3.0, 4.0)]
    draws = tuple(one.sample(key, 5)[None].astype(dtype) for one in stimuli)
    extra = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), knowledge(stimuli))
    for field in (np.zeros(20), np.full(20, 1e-25), 0.1 * (-1.0) ** RING):
        found = neuron_gradients((20,))(jnp.asarray(field[None], dtype), extra, draws)
        assert found.dtype == dtype and np.isfinite(found).all() and np.abs(found).max() < 1.5


def test_every_member_has_its_own_covariance(seed):
    def of(xi, **more):
        task = lf.Discrimination(lf.stimuli.NLGP((8,), xi=0.5), lf.stimuli.NLGP((8,), xi=xi))
        return run(task, estimator="orbit", seed=seed, **more)

    values = (0.6, 0.9, 1.2)
    together = of(np.array(values))
    for m, xi in enumerate(values):
        np.testing.assert_allclose(together.weights[m], of(xi).weights[m], rtol=0, atol=1e-12)
    before = dict(TRACES)
    again = of(np.array(values[::-1]))
    assert before == TRACES
    np.testing.assert_array_equal(again.weights[1], together.weights[1])
    assert np.abs(again.weights[0] - together.weights[0]).max() > 1e-3


# -- who sees which draws --------------------------------------------------------------------------


def test_shared_members_see_the_same_draws(seed):
    start = np.cos(np.arange(8.0))[None]
    together = run(estimator="shared", seed=seed, initial=start)
    np.testing.assert_array_equal(
        together.weights, np.broadcast_to(together.weights[:1], together.weights.shape)
    )
    apart = run(estimator="independent", seed=seed, initial=start)
    assert not any(np.array_equal(apart.final[0], other) for other in apart.final[1:])


def test_shared_members_differ_by_what_is_swept(seed):
    start = np.cos(np.arange(8.0))[None]
    swept = run(estimator="shared", seed=seed, initial=start, learning_rate=[0.05, 0.1, 0.05])
    np.testing.assert_array_equal(swept.final[0], swept.final[2])
    assert not np.array_equal(swept.final[0], swept.final[1])


# -- counts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("proportions", "batch", "counts"),
    [
        ((), 10, (5, 5)),
        ((), 2, (1, 1)),
        ((0.3, 0.7), 10, (3, 7)),
        ((0.3, 0.7), 7, (2, 5)),
        ((0.1, 0.9), 1000, (100, 900)),
        ((1, 1, 1), 10, (4, 3, 3)),
        ((1, 1, 1), 3, (1, 1, 1)),
        ((0.1, 0.2, 0.7), 10, (1, 2, 7)),
        ((0.7, 0.2, 0.1), 11, (8, 2, 1)),
    ],
)
def test_counts_are_the_proportions(proportions, batch, counts):
    task = ising(couplings=(0.1, 0.2, 0.3)[: len(counts)], proportions=proportions)
    assert class_counts(task, batch) == counts


def test_counts_add_up_and_are_near(key):
    for drawn in np.asarray(jax.random.uniform(key, (100, 3), minval=0.1)):
        task = ising(couplings=(0.1, 0.2, 0.3), proportions=tuple(drawn))
        for batch in (30, 31, 32, 100, 999):
            counts = class_counts(task, batch)
            assert (
                sum(counts) == batch
                and np.abs(np.array(counts) - np.array(task.priors) * batch).max() < 1
            )


def test_a_class_without_a_draw_is_refused():
    with pytest.raises(
        lf.InputError,
        match="`batch` is 4, which leaves no sample for the rarest class; its probability is 0.01",
    ):
        class_counts(ising(proportions=(0.01, 0.99)), 4)
    with pytest.raises(
        lf.InputError,
        match="`evaluate` is 20, which leaves no sample for the rarest class",
    ):
        run(ising(proportions=(0.01, 0.99)), batch=100)


def test_a_batch_is_drawn_without_waste(monkeypatch):
    asked = []
    draw = lf.stimuli.Ising.draw
    monkeypatch.setattr(
        lf.stimuli.Ising, "draw", lambda self, key, num: asked.append(num) or draw(self, key, num)
    )
    task, network = ising(proportions=(0.3, 0.7)), lf.networks.SingleNeuron()
    for estimator in (sampled, orbit):
        asked.clear()
        params = {"weights": jnp.ones((1, 8))}
        counts = class_counts(task, 7)
        jax.eval_shape(
            lambda e=estimator, p=params, n=counts: e(task, network, None, p, jax.random.key(0), n)
        )
        assert asked == [2, 5]


# -- the exact population gradient -----------------------------------------------------------------

CENTER = np.cos(np.arange(8.0))
RATES = np.linspace(0.5, 2.0, 8)


def toy_gradient(task, network, params):
    """A bowl, whose sides depend on a number of the task."""
    off = params["weights"] - CENTER[None]
    return jnp.sum(RATES[None] * off**2), {
        "weights": 2 * RATES[None] * off + 2 * task.l2 * params["weights"]
    }


def test_exact_is_plain_gradient_descent(offer, seed):
    offer(toy_gradient)
    found = run(
        gaussians(l2=[0.0, 0.1, 0.2]), estimator="exact", seed=seed, every=1, learning_rate=0.05
    )
    w = found.initial[:, 0]
    for step in range(51):
        np.testing.assert_allclose(found.weights[:, step, 0], w, rtol=0, atol=1e-12)
        w = w - 0.05 * (2 * RATES * (w - CENTER) + 2 * np.array([[0.0], [0.1], [0.2]]) * w)
    assert (
        np.abs(found.final[0, 0] - CENTER).max() < 0.1 < np.abs(found.initial[0, 0] - CENTER).max()
    )


def test_of_theories_that_apply_the_one_of_highest_priority_is_asked(offer):
    network, task = lf.networks.SingleNeuron(), gaussians()
    with pytest.raises(
        lf.InputError, match="No exact gradient is known for SingleNeuron on Gaussian"
    ):
        exact_extra(task, network)
    offer(lambda *_: 1 / 0, lambda *_: False, priority=2)
    offer(
        toy_gradient,
        lambda task, network: isinstance(network, lf.networks.SingleNeuron),
        priority=1,
    )
    offer(lambda *_: 1 / 0)
    assert exact_extra(task, network).gradient is toy_gradient
    assert exact_extra(task, lf.networks.Committee()).gradient is not toy_gradient


def test_exact_is_refused_where_no_theory_applies(offer):
    offer(toy_gradient, lambda task, network: isinstance(network, lf.networks.SingleNeuron))
    with pytest.raises(
        lf.InputError, match="Committee on Gaussian, Gaussian. Use the estimator 'orbit' or"
    ):
        run(network=lf.networks.Committee(2), estimator="exact")
