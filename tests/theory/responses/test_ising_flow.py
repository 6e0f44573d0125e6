"""The Ising ring of the paper's third figure: the exact end, polished, and training that comes
to it.
"""

import numpy as np
import pytest

import localfields as lf
from localfields.stimuli._ring import meet_in_the_middle_response

from ..sheet import fits

N, COUPLINGS = 40, (0.3, 0.7)
TASK = lf.Discrimination(*(lf.stimuli.Ising((N,), coupling=coupling) for coupling in COUPLINGS))


def step(w):
    """One step of the fixed-point iteration with a response that is exact for any field."""
    total = sum(np.fft.fft(stimulus.covariance()).real for stimulus in TASK.stimuli)
    return np.fft.ifft(2 * np.fft.fft(meet_in_the_middle_response(w, COUPLINGS[1])) / total).real


def test_two_exact_steps_polish_the_end_of_a_flow():
    bump = lf.theory.hypercube_bump(TASK).field
    # What a flow with a smoothed sgn leaves: of the size 1e-9, and of no particular shape.
    once = step(bump + 1e-9 * np.random.default_rng(0).normal(size=N))
    # Sums over 2²⁰ states of each half are right to about 1e-12.
    np.testing.assert_allclose(once, bump, rtol=0, atol=1e-11)
    np.testing.assert_allclose(step(once), once, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_training_on_large_batches_comes_to_the_exact_bump():
    """At the flow time 30, from the same starts. Noise moves a peak to another site now and then,
    rarely by two.

    Printed of 2 × 40 other starts: 79 of 80 peaks are within one site of the exact flow's; IPR
    0.853 ± 0.002.
    """
    settings = {
        "learning_rate": 0.05,
        "steps": 600,
        "members": 4,
        "record": lf.Record(every=50, quantities=("weights",)),
    }
    network = lf.networks.SingleNeuron(init_scale=0.001)
    run = lf.train(TASK, network, batch=20_000, **settings)
    exact = lf.train(TASK, network, batch=2, estimator="exact", **settings)
    np.testing.assert_array_equal(run.initial, exact.initial)
    gap = np.abs(run.peak - exact.peak)[:, -1, 0]
    gap = np.minimum(gap, N - gap)
    # At 79 of 80, two of four are further off once in 1000. A random site is that near once in 13.
    assert (gap <= 1).sum() >= 3
    np.testing.assert_allclose(exact.ipr[:, -1, 0], 0.8537, atol=1e-3)
    # In the last sixth it is at rest, and noise moves it about.
    result = run.ipr[:, -3:, 0].ravel()
    assert fits("0.853", result) and np.abs(result - 0.853).max() < 3 * 0.002
