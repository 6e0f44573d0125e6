"""The arithmetic of the GPU kernel, without the kernel: both call the same functions.

That the kernel gives the same gradients is asserted where there is a GPU, by `benchmarks/gpu.py`.
"""

from __future__ import annotations

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import localfields as lf
from localfields._prng import make_key, threefry
from localfields.training import estimators, fused
from localfields.training.train import choose_estimate

RING = (20,)  # padded to 24 sites and 32 columns


@pytest.fixture(autouse=True)
def single_precision():
    with jax.enable_x64(False):
        yield


def task(kind: str = "nlgp", **more) -> lf.Discrimination:
    if kind == "nlgp":
        return lf.Discrimination(
            *(lf.stimuli.NLGP(RING, xi=xi, gain=3.0) for xi in (1.0, 2.0)), **more
        )
    if kind == "kur":
        return lf.Discrimination(*(lf.stimuli.Kur(RING, xi=xi, k=4.5) for xi in (1.0, 2.0)), **more)
    return lf.Discrimination(*(lf.stimuli.Gaussian(RING, xi=xi) for xi in (1.0, 2.0)), **more)


def test_erf_to_float32():
    x = np.concatenate([np.linspace(-6, 6, 20001), np.geomspace(1e-20, 1, 2001)]).astype(np.float32)
    exact = scipy.special.erf(x.astype(np.float64))
    found = np.asarray(jax.jit(fused.erf)(x), np.float64)
    assert np.abs(found - exact).max() < 3e-7
    small = np.abs(x) < 0.25
    assert (
        np.abs(
            found[small] / np.where(exact[small] == 0, 1, exact[small]) - (exact[small] != 0)
        ).max()
        < 5e-7
    )


def test_tanh_to_float32():
    x = np.concatenate([np.linspace(-20, 20, 20001), np.geomspace(1e-20, 1, 2001)])
    x = x[x != 0].astype(np.float32)
    more = np.array([0.0, -1e30, 1e30], np.float32)
    found = np.asarray(jax.jit(fused.tanh)(np.concatenate([x, more])), np.float64)
    assert np.abs(found[:-3] / np.tanh(x.astype(np.float64)) - 1).max() < 1e-6
    assert found[-3:].tolist() == [0, -1, 1]


algebraic, normals = jax.jit(fused.algebraic), jax.jit(fused.normals)


@pytest.mark.parametrize("k", [2.5, 4.1, 10.0, 50.0])
def test_the_algebraic_law_to_float32(k):
    z = np.concatenate([np.linspace(-5.7, 5.7, 20001), np.geomspace(1e-20, 1, 2001)]).astype(
        np.float32
    )
    z = z[z != 0]
    law = lf.marginals.Algebraic(k)
    exact = law.from_normal(z.astype(np.float64)) * law.deviation()
    more = np.array([0.0, 8.0, 1e10], np.float32)
    found = np.asarray(algebraic(np.float32(k), np.concatenate([z, more])), np.float64)
    assert np.abs(found[:-3] / exact - 1).max() < 5e-6
    assert found[-3] == 0 and np.isfinite(found[-2:]).all()


def test_normals_are_the_transform_they_claim_and_never_infinite():
    words = np.array([0, 1, 255, 256, 2**31 - 1, 2**31, 2**32 - 256, 2**32 - 1], np.uint32)
    first, second = (grid.ravel() for grid in np.meshgrid(words, words))
    z = np.stack(normals(first, second))
    assert np.isfinite(z).all() and np.abs(z).max() < 6
    bits = np.asarray(jax.random.bits(make_key(0), (2, 100_000)))
    u = ((bits[0] >> 8).astype(np.float64) + 0.5) * 2.0**-24
    angle = np.pi * (((bits[1] >> 9).astype(np.float64) + 0.5) * 2.0**-23 - 0.5)
    radius = np.sqrt(-2 * np.log(u)) * np.where(bits[1] & 1, -1, 1)
    found = np.stack(normals(*bits)).astype(np.float64)
    # One rounding of u near 1 moves a radius near 0 by √(2⁻²³); elsewhere float32 accuracy.
    limit = np.where(u > 0.999, 4e-4, 1e-5)
    assert (np.abs(found - [radius * np.cos(angle), radius * np.sin(angle)]) < limit).all()


@functools.partial(jax.jit, static_argnums=(1, 2))
def white_by_hand(data, rows, columns):
    counter = jnp.arange(rows * columns, dtype=jnp.uint32).reshape(rows, columns)
    bits = threefry(data[0], data[1], counter, jnp.zeros_like(counter), fused.ROUNDS)
    return fused.normals(*bits)


def drawn_by_hand(stimulus, key, count: int) -> np.ndarray:
    """The draws of the kernel, rebuilt with numpy from the same counters."""
    size, columns = stimulus.size, fused.padded(stimulus.size, 8)
    rows = -(-count // 2)
    halves = white_by_hand(jax.random.key_data(key), rows, columns)
    white = np.stack(
        [np.asarray(half).astype(np.float16).astype(np.float64) for half in halves], axis=1
    )
    root = lf.lattice.matrix(lf.lattice.root(stimulus.latent_correlation()))
    z = white.reshape(2 * rows, columns)[:count, :size] @ root
    return stimulus.marginal().from_normal(z)


CASES = [("nlgp", "tanh", "absolute"), ("kur", "relu", "mse"), ("gaussian", "sigmoid", "mse")]
MORE_CASES = [
    ("nlgp", "relu", "mse"),
    ("gaussian", "relu", "mse"),
    ("nlgp", "identity", "absolute"),
]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_CASES]


@pytest.mark.parametrize(("kind", "activation", "loss"), CASES)
def test_gradient_equals_the_one_of_the_same_draws(kind, activation, loss, request):
    one = task(kind, loss=loss)
    network = lf.networks.SingleNeuron(activation=activation)
    counts, key = (
        (129, 301),
        make_key(len(request.node.name)),
    )  # one draw alone in its block, and part of one
    weights = jax.random.normal(jax.random.fold_in(key, 1), (1, 20)) * 0.3
    found_loss, found = fused.sampled(
        one, network, None, {"weights": weights}, key, counts, kernel=False
    )
    keys = jax.random.split(key, 2)
    draws = [
        jnp.asarray(drawn_by_hand(s, k, n), jnp.float32)
        for s, k, n in zip(one.stimuli, keys, counts, strict=True)
    ]

    def expected(w):
        total = 0.0
        for c, x in enumerate(draws):
            outputs = jax.vmap(lambda row: network.apply({"weights": w}, row))(x)
            total += 0.5 * jnp.mean(
                jax.vmap(one.sample_loss, (0, None))(outputs, jnp.asarray(one.targets()[c]))
            )
        return total

    wanted_loss, wanted = jax.jit(jax.value_and_grad(expected))(weights)
    scale = float(jnp.abs(wanted).max())
    # White normals that round to another float16 move a gradient by 1e-5; a root of 11 bits, not
    # 22, by 1e-4.
    assert abs(float(found_loss - wanted_loss)) < 3e-5
    assert float(jnp.abs(found["weights"] - wanted).max()) < 3e-5 * scale
    for factor in (0.5, 0.999, 1.001, 2.0):
        assert float(jnp.abs(factor * found["weights"] - wanted).max()) > 3e-5 * scale


def test_penalties_are_added():
    network, key = lf.networks.SingleNeuron(), make_key(1)
    weights = jnp.linspace(-1, 1, 20)[None, :]
    plain, penalized = (
        fused.sampled(task(l2=l2), network, None, {"weights": weights}, key, (10, 10), kernel=False)
        for l2 in (0.0, 0.5)
    )
    np.testing.assert_allclose(penalized[1]["weights"] - plain[1]["weights"], weights, atol=1e-5)


def test_where_it_applies():
    neuron = lf.networks.SingleNeuron
    assert fused.applies(task(), neuron()) and fused.applies(
        task("gaussian"), neuron(activation="tanh")
    )
    assert not fused.applies(task(), neuron(activation="erf"))
    assert not fused.applies(task(), lf.networks.Committee(2))
    assert not fused.applies(task(loss="cross-entropy"), neuron())
    rings = [lf.stimuli.Ising(RING, coupling=coupling) for coupling in (0.3, 0.7)]
    tori = [lf.stimuli.NLGP((4, 6), xi=xi) for xi in (0.5, 0.6)]
    moved = [lf.stimuli.Gaussian(RING, xi=xi, offset=0.1) for xi in (0.5, 0.6)]
    for others in (rings, tori, moved):
        assert not fused.applies(lf.Discrimination(*others), neuron())


def test_only_these_classes_are_served():
    class Neuron(lf.networks.SingleNeuron):
        """A readout of its own."""

    class Task(lf.Discrimination):
        """A loss of its own."""

    assert not fused.applies(task(), Neuron())
    assert not fused.applies(Task(*task().stimuli), lf.networks.SingleNeuron())


@pytest.mark.parametrize(
    ("backend", "capability", "version", "wanted"),
    [
        ("gpu", "9.0", (0, 11, 2), True),
        ("gpu", "10.0", (0, 11, 2), False),
        ("gpu", "9.0", (0, 10, 2), False),
        ("cpu", "9.0", (0, 11, 2), False),
    ],
)
def test_it_is_available_on_hopper_alone(monkeypatch, backend, capability, version, wanted):
    device = types.SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "devices", lambda: [device])
    monkeypatch.setattr(jax, "__version_info__", version)
    assert fused.available() is wanted


@pytest.mark.parametrize(("available", "precision"), [(True, False), (False, False), (True, True)])
def test_training_takes_it_where_it_can(monkeypatch, available, precision):
    monkeypatch.setattr(fused, "available", lambda: available)
    with jax.enable_x64(precision):
        for estimator in ("independent", "shared"):
            for members in (1, 65_535, 65_536):  # what fits into the second axis of a grid
                found, *_ = choose_estimate(task(), lf.networks.SingleNeuron(), estimator, members)
                taken = available and not precision and estimator == "independent"
                taken = taken and members < 65_536
                assert found is (fused.sampled if taken else estimators.sampled)
