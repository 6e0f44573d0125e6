"""Estimators of the population gradient: the same expectation, different variance, and refusals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields._spec import fields, registered
from localfields.training import estimators
from localfields.training.estimators import all_shifts, class_counts, exact_estimator, orbit, sampled

from .helpers import SIGMAS, gaussians, ising, run, worst, z_scores

# -- all shifts of a draw ---------------------------------------------------------------------------------------


def brute_force(weights, x, shape):
    """⟨w_k, x moved by −s⟩ for every shift s, in C order: (num, shift, K)."""
    fields_, draws = weights.reshape(-1, *shape), x.reshape(-1, *shape)
    axes, letters = tuple(range(1, len(shape) + 1)), "abc"[: len(shape)]
    moves = np.ndindex(*shape)
    found = [np.einsum(f"n{letters},k{letters}->nk", np.roll(draws, [-m for m in by], axes), fields_) for by in moves]
    return np.stack(found, axis=1)


@pytest.mark.parametrize("limit", (0, 256), ids=("fourier", "dense"))
@pytest.mark.parametrize("shape", ((9,), (4, 6), (2, 3, 4)), ids=str)
def test_all_shifts(shape, limit, key, monkeypatch):
    monkeypatch.setattr(estimators, "LARGEST_DENSE_ORBIT", limit)
    size = int(np.prod(shape))
    weights, x = (
        np.asarray(jax.random.normal(k, (n, size))) for k, n in zip(jax.random.split(key), (3, 5), strict=True)
    )
    found = all_shifts(jnp.asarray(weights), jnp.asarray(x), shape)
    assert found.shape == (5, size, 3)
    np.testing.assert_allclose(found, brute_force(weights, x, shape), rtol=0, atol=1e-13 * size)


def test_a_large_lattice_takes_the_fourier_path(key):
    # 272 sites: beyond the limit, without anything patched.
    assert 16 * 17 > estimators.LARGEST_DENSE_ORBIT
    weights, x = (np.asarray(jax.random.normal(k, (2, 272))) for k in jax.random.split(key))
    found = all_shifts(jnp.asarray(weights), jnp.asarray(x), (16, 17))
    np.testing.assert_allclose(found, brute_force(weights, x, (16, 17)), rtol=0, atol=1e-11)


# -- one expectation for every symmetric stimulus ---------------------------------------------------------------

LATTICES = ((12,), (4, 6))
DRAWS, SAMPLES = 4, 1500  # draws of each class in a gradient; gradients


def symmetric_stimuli():
    """Two of every registered stimulus that has the symmetries, on a ring and on a torus."""
    for name, cls in registered("stimulus").items():
        known = {field.name for field, _ in fields(cls)}
        for shape in LATTICES:
            values = [{}, {}]
            if "xi" in known:
                values = [{"xi": xi, "kernel": "periodized"} for xi in (0.6, 1.2)]
            if cls is lf.stimuli.SinglePulse:
                values = [{"shortest": length, "longest": length + 1} for length in (1, 2)]
            if cls is lf.stimuli.Ising:
                values = [{"coupling": coupling} for coupling in (0.3, 0.7)]
            if cls is lf.stimuli.StudentT:
                values = [value | {"nu": 20.0} for value in values]  # so that gradients have a standard error
            try:
                pair = [cls(shape, **value) for value in values]
            except lf.InputError:
                continue
            if all(one.translation_invariant and one.sign_symmetric for one in pair):
                yield pytest.param(pair, id=f"{name}-{'x'.join(map(str, shape))}")


NETWORKS = {
    "neuron": lf.networks.SingleNeuron(init_scale=2.0),
    "committee": lf.networks.Committee(3, "sigmoid", bias="trained", bias_value=0.3, init_scale=4.0),
    "two-layer": lf.networks.TwoLayer(3, "relu", init_scale=2.0),
}


@functools.cache
def compiled(network, shape):
    """Gradients of one network by both estimators, for draws given in place of a key: one program for all stimuli."""
    task = lf.Discrimination(*[lf.stimuli.Gaussian(shape, xi=0.5)] * 2, l2=0.1)

    @jax.jit
    def both(params, draws):
        return tuple(
            jax.vmap(lambda x, e=e: e(task, network, params, x, (DRAWS, DRAWS))[1])(draws) for e in (sampled, orbit)
        )

    return both


@pytest.fixture
def draws_are_keys(monkeypatch):
    monkeypatch.setattr(estimators, "draw_classes", lambda task, key, counts: list(key))


@pytest.mark.parametrize("stimuli", list(symmetric_stimuli()))
def test_orbit_has_the_same_mean_and_less_variance(stimuli, key, draws_are_keys):
    for_params, *for_draws = jax.random.split(key, 3)
    shape = stimuli[0].shape
    draws = tuple(
        one.sample(k, SAMPLES * DRAWS).reshape(SAMPLES, DRAWS, one.size)
        for one, k in zip(stimuli, for_draws, strict=True)
    )
    for network in NETWORKS.values() if len(shape) == 1 else [NETWORKS["two-layer"]]:
        params = network.initial(for_params, shape)
        plain, turned = compiled(network, shape)(params, draws)
        assert plain.keys() == turned.keys() == params.keys()
        for part in params:
            one, other = np.asarray(plain[part]), np.asarray(turned[part])
            # Both see the same draws: their difference has a smaller error than either.
            assert worst(one - other, 0.0) < SIGMAS, part
        one, other = np.asarray(plain["weights"]), np.asarray(turned["weights"])
        spread = [((g - g.mean(axis=0)) ** 2).sum(axis=(1, 2)) for g in (one, other)]
        assert z_scores(spread[0] - spread[1], 0.0) > SIGMAS, "the orbit does not reduce the variance"


def test_orbit_of_stimuli_without_symmetry_would_be_caught(key, draws_are_keys):
    # The power of the test above: a Gaussian with a mean, a pulse that is on or off, blocks with fixed borders.
    asymmetric = {
        "mean": [lf.stimuli.Gaussian((12,), xi=xi, offset=0.3) for xi in (0.6, 1.2)],
        "pulse": [lf.stimuli.SinglePulse((12,), n, n, coding="zero-one") for n in (2, 4)],
        "block": [lf.stimuli.BlockPulse((12,), n) for n in (2, 4)],
    }
    for name, stimuli in asymmetric.items():
        draws = tuple(one.sample(key, SAMPLES * DRAWS).reshape(SAMPLES, DRAWS, 12) for one in stimuli)
        network = NETWORKS["neuron"]
        plain, turned = compiled(network, (12,))(network.initial(key, (12,)), draws)
        assert worst(np.asarray(plain["weights"]) - np.asarray(turned["weights"]), 0.0) > SIGMAS, name
        with pytest.raises(
            lf.InputError, match="stimulus for the estimator `orbit` must be .* symmetric|invariant, got"
        ):
            run(lf.Discrimination(*stimuli), estimator="orbit")


@pytest.mark.parametrize(
    ("stimulus", "words"),
    [
        (lambda: lf.stimuli.Gaussian((12,), xi=0.6, offset=0.3), "sign symmetric"),
        (lambda: lf.stimuli.Gaussian((12,), xi=0.6, offset=[0.0, 0.3]), "sign symmetric"),
        (lambda: lf.stimuli.SinglePulse((12,), coding="zero-one"), "sign symmetric"),
        (lambda: lf.stimuli.Copula((12,), xi=0.6, marginal_law=lambda u: -np.log1p(-u)), "sign symmetric"),
        (lambda: lf.stimuli.BlockPulse((12,)), "translation invariant"),
        (lambda: lf.stimuli.DenseGaussian((2,)), "translation invariant"),
    ],
)
def test_orbit_is_refused_without_symmetry(stimulus, words):
    bad = stimulus()
    good = lf.stimuli.Gaussian(bad.shape, xi=0.25)
    told = f"Every stimulus for the estimator `orbit` must be {words}, got .*, which is not {words}. Use estimator="
    for pair in ((bad, good), (good, bad)):
        with pytest.raises(lf.InputError, match=told):
            lf.train(lf.Discrimination(*pair), lf.networks.SingleNeuron(), estimator="orbit")


def test_shared_and_independent_are_one_estimator():
    # They differ in who sees which draws. Through `train`, all three are held against exact gradients elsewhere.
    assert estimators.ESTIMATORS == {"independent": sampled, "shared": sampled, "orbit": orbit}


# -- who sees which draws ---------------------------------------------------------------------------------------


def test_shared_members_see_the_same_draws(seed):
    start = np.cos(np.arange(8.0))[None]
    together = run(estimator="shared", seed=seed, initial=start)
    np.testing.assert_array_equal(together.weights, np.broadcast_to(together.weights[:1], together.weights.shape))
    apart = run(estimator="independent", seed=seed, initial=start)
    assert not any(np.array_equal(apart.final[0], other) for other in apart.final[1:])


def test_shared_members_differ_by_what_is_swept(seed):
    start = np.cos(np.arange(8.0))[None]
    swept = run(estimator="shared", seed=seed, initial=start, learning_rate=[0.05, 0.1, 0.05])
    np.testing.assert_array_equal(swept.final[0], swept.final[2])
    assert not np.array_equal(swept.final[0], swept.final[1])


# -- counts -----------------------------------------------------------------------------------------------------


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
            assert sum(counts) == batch and np.abs(np.array(counts) - np.array(task.priors) * batch).max() < 1


def test_a_class_without_a_draw_is_refused():
    with pytest.raises(
        lf.InputError, match="`batch` must be large enough to hold a draw of every class, got 4. The rar"
    ):
        class_counts(ising(proportions=(0.01, 0.99)), 4)
    with pytest.raises(lf.InputError, match="`evaluate` must be large enough to hold a draw of every class, got 20"):
        run(ising(proportions=(0.01, 0.99)), batch=100)


def test_a_batch_is_drawn_without_waste(monkeypatch):
    asked = []
    draw = lf.stimuli.Ising.draw
    monkeypatch.setattr(lf.stimuli.Ising, "draw", lambda self, key, num: asked.append(num) or draw(self, key, num))
    task, network = ising(proportions=(0.3, 0.7)), lf.networks.SingleNeuron()
    for estimator in (sampled, orbit):
        asked.clear()
        params = {"weights": jnp.ones((1, 8))}
        jax.eval_shape(lambda e=estimator, p=params: e(task, network, p, jax.random.key(0), class_counts(task, 7)))
        assert asked == [2, 5]


# -- the exact population gradient ------------------------------------------------------------------------------

CENTER = np.cos(np.arange(8.0))
RATES = np.linspace(0.5, 2.0, 8)


def toy_gradient(task, network, params):
    """A bowl, whose sides depend on a number of the task."""
    off = params["weights"] - CENTER[None]
    return jnp.sum(RATES[None] * off**2), {"weights": 2 * RATES[None] * off + 2 * task.l2 * params["weights"]}


def test_exact_estimator_is_plain_gradient_descent(offer, seed):
    offer(toy_gradient)
    found = run(gaussians(l2=[0.0, 0.1, 0.2]), estimator="exact", seed=seed, every=1, learning_rate=0.05)
    w = found.initial[:, 0]
    for step in range(51):
        np.testing.assert_allclose(found.weights[:, step, 0], w, rtol=0, atol=1e-12)
        w = w - 0.05 * (2 * RATES * (w - CENTER) + 2 * np.array([[0.0], [0.1], [0.2]]) * w)
    assert np.abs(found.final[0, 0] - CENTER).max() < 0.1 < np.abs(found.initial[0, 0] - CENTER).max()


def test_the_first_theory_that_applies_is_asked(offer):
    network, task = lf.networks.SingleNeuron(), gaussians()
    with pytest.raises(
        lf.InputError, match="`exact` must be asked for where a theory knows the gradient, got SingleNeuron on"
    ):
        exact_estimator(task, network)
    offer(None)
    offer(toy_gradient, lambda task, network: isinstance(network, lf.networks.SingleNeuron))
    offer(lambda *_: 1 / 0)
    estimate = exact_estimator(task, network)
    assert estimate.gradient is toy_gradient
    assert estimate == exact_estimator(task, network) and hash(estimate) == hash(exact_estimator(task, network))
    assert exact_estimator(task, lf.networks.Committee()).gradient is not toy_gradient


def test_exact_is_refused_where_no_theory_applies(offer):
    offer(toy_gradient, lambda task, network: isinstance(network, lf.networks.SingleNeuron))
    with pytest.raises(lf.InputError, match='got Committee on Gaussian, Gaussian. Use "orbit" or "independent"'):
        run(network=lf.networks.Committee(2), estimator="exact")
