"""Limits: the error falls with the learning rate, and the noise with the batch, at the predicted
order.
"""

import jax.numpy as jnp
import numpy as np
import scipy.integrate

from .helpers import gaussians, run, second_moments

ROOT = np.sqrt(2 * np.pi)


def matrices(task):
    return [second_moments(stimulus)[1] for stimulus in task.stimuli]


def relu_gradient(task, network, params):
    """The exact loss and gradient of one ReLU neuron on two Gaussians, f(w) = Σ₁w/(√(2π) s₁)."""
    zero, one = map(jnp.asarray, matrices(gaussians()))
    w = params["weights"][0]
    s = jnp.sqrt(w @ one @ w)
    loss = 0.5 - s / ROOT + w @ (zero + one) @ w / 4
    return loss, {"weights": (-one @ w / (ROOT * s) + (zero + one) @ w / 2)[None]}


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def test_error_falls_with_the_learning_rate(offer):
    offer(relu_gradient)
    zero, one = matrices(gaussians())
    start, until = 0.3 * np.cos(np.arange(8.0)), 4.0

    def flow(_, w):
        return one @ w / (ROOT * np.sqrt(w @ one @ w)) - (zero + one) @ w / 2

    exact = scipy.integrate.solve_ivp(
        flow, (0, until), start, rtol=1e-12, atol=1e-12, t_eval=(until / 2, until)
    ).y.T
    rates = 0.2 / 2.0 ** np.arange(4)
    found = [
        run(
            estimator="exact",
            learning_rate=rate,
            steps=round(until / rate),
            every=round(until / 2 / rate),
            initial=start[None],
        )
        for rate in rates
    ]
    for one_run in found:
        np.testing.assert_allclose(one_run.times, [0, until / 2, until], rtol=1e-12)
    weights = np.array(
        [one_run.weights[0, 1:, 0] for one_run in found]
    )  # (rate, time, N), at equal flow times
    for time in (0, 1):
        against_flow = np.linalg.norm(weights[:, time] - exact[time], axis=1)
        against_half = np.linalg.norm(np.diff(weights[:, time], axis=0), axis=1)
        assert abs(slope(rates, against_flow) - 1) < 0.1
        assert abs(slope(rates[:-1], against_half) - 1) < 0.1
    # The limit is this flow and no other: at half its speed, say, the error does not fall.
    elsewhere = np.linalg.norm(weights[:, 0] - exact[1], axis=1)
    assert abs(slope(rates, elsewhere) - 1) > 0.1


def test_steady_state_is_the_flat_field(offer):
    # For ξ₀ < ξ₁ the mode of smallest λ₀/λ₁, the constant, wins, with |u| = √(2/π) √λ₁/(λ₀ + λ₁).
    offer(relu_gradient)
    found = run(
        estimator="exact",
        learning_rate=0.5,
        steps=4000,
        every=4000,
        initial=np.ones((1, 8)) + 0.1 * np.eye(1, 8),
    )
    zero, one = (np.linalg.eigvalsh(matrix)[-1] for matrix in matrices(gaussians()))
    level = np.sqrt(2 / np.pi * one) / (zero + one) / np.sqrt(8)
    np.testing.assert_allclose(np.abs(found.final), level, rtol=1e-6)


def test_noise_falls_with_the_batch(seed):
    batches = np.array([4, 12, 36])
    start = 0.3 * np.cos(np.arange(8.0))[None]
    spread = []
    for batch in batches:
        found = run(
            gaussians(), batch=int(batch), members=300, steps=10, every=10, initial=start, seed=seed
        )
        spread.append(found.final.var(axis=0, ddof=1).mean())
    # 300 members × 8 sites: a variance is known to 3 %, the slope over a factor of 9 to 0.02.
    assert abs(slope(batches, spread) + 1) < 0.15


def test_noise_grows_with_the_learning_rate(seed):
    # At equal flow time the variance is of first order in the rate: steps of size ε², and 1/ε of
    # them.
    rates = np.array([0.01, 0.02, 0.04, 0.08])
    start = 0.3 * np.cos(np.arange(8.0))[None]
    spread = []
    for rate in rates:
        steps = round(0.32 / rate)
        found = run(
            gaussians(),
            batch=4,
            members=300,
            learning_rate=rate,
            steps=steps,
            every=steps,
            initial=start,
            seed=seed,
        )
        spread.append(found.final.var(axis=0, ddof=1).mean())
    assert abs(slope(rates, spread) - 1) < 0.2
