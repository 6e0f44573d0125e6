"""What a draw costs, against the random numbers it is made of."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import interleaved, ratio, seconds

import localfields as lf
from localfields._prng import make_key

NUM, SITES = 10_000, 40


def compiled(stimulus, num):
    draw = jax.jit(lambda stimulus, key: stimulus.draw(key, num))
    return lambda: draw(stimulus, jax.random.key(0))


def normals(num, sites):
    draw = jax.jit(lambda key: jax.random.normal(key, (num, sites)))
    return lambda: draw(jax.random.key(0))


LIMITS = [
    (lf.stimuli.NLGP((SITES,), xi=3.0, gain=100.0), 1.6),
    (lf.stimuli.Kur((SITES,), xi=3.0, k=5.0), 2.5),
    (lf.stimuli.Ising((SITES,), coupling=0.7), 1.0),
    (lf.stimuli.Gaussian((SITES,), xi=3.0), None),
    (lf.stimuli.Copula((SITES,), xi=3.0), None),
    (lf.stimuli.StudentT((SITES,), xi=3.0), None),
    (lf.stimuli.EllipticalShell((SITES,), xi=3.0), None),
    (lf.stimuli.SinglePulse((SITES,)), None),
]


@pytest.mark.parametrize(("stimulus", "limit"), LIMITS, ids=lambda value: type(value).__name__)
def test_draw_against_plain_normals(stimulus, limit, report):
    times = interleaved(
        {"draw": compiled(stimulus, NUM), "normals": normals(NUM, SITES)}, rounds=61
    )
    report(
        f"{stimulus!r}: {NUM} draws / as many plain normals",
        ratio(times, "draw", "normals"),
        limit=limit,
    )


def test_cost_grows_like_n_log_n(report):
    """Seconds a site on tori up to 256×256, against N log N; the largest may cost at most twice
    the rate.
    """
    rates = {}
    for n in (32, 64, 128, 256):
        num = 2**22 // n**2
        times = interleaved(
            {"draw": compiled(lf.stimuli.NLGP((n, n), xi=3.0, gain=100.0), num)}, rounds=7
        )
        rates[n] = min(times["draw"]) / (num * n**2 * np.log2(n**2))
    worst = max(rates[n] / rates[32] for n in (64, 128, 256))
    shown = {f"{n}x{n}": rate * 1e9 for n, rate in rates.items()}
    report(
        "NLGP on tori: time / (N log N), worst of 64², 128², 256² against 32²",
        worst,
        limit=2.0,
        nanoseconds=shown,
    )


def test_memory_of_a_large_torus(report):
    # Not `ru_maxrss`: a process begins with that of the one that started it.
    code = (
        "import re, localfields as lf\n"
        "import jax; jax.random.normal(jax.random.key(0), (8,)).block_until_ready()\n"
        "peak = lambda: re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
        "before = peak()\n"
        "lf.stimuli.NLGP((128, 128), xi=3.0, gain=100.0).sample(0, 1000).block_until_ready()\n"
        "print(peak(), before)\n"
    )
    peak, before = (
        int(one) / 1e6
        for one in subprocess.check_output([sys.executable, "-c", code], text=True).split()
    )
    report(
        "1000 draws of a 128×128 torus: peak memory of the process",
        peak,
        "GB",
        limit=1.0,
        before=before,
    )


def test_ising_against_metropolis(report):
    """An exact draw against 2000 single-flip Metropolis steps from a random start, both
    compiled, 1000 chains.
    """
    chains, steps, coupling = 1000, 2000, 0.7

    @jax.jit
    def metropolis(key):
        start_key, run_key = jax.random.split(key)
        start = jax.random.rademacher(start_key, (chains, SITES), jnp.float32)
        rows = jnp.arange(chains)

        def step(x, key):
            site_key, flip_key = jax.random.split(key)
            site = jax.random.randint(site_key, (chains,), 0, SITES)
            here, left, right = (
                x[rows, site],
                x[rows, (site - 1) % SITES],
                x[rows, (site + 1) % SITES],
            )
            accept = jax.random.uniform(flip_key, (chains,)) < jnp.exp(
                -2 * coupling * here * (left + right)
            )
            return x.at[rows, site].set(jnp.where(accept, -here, here)), None

        return jax.lax.scan(step, start, jax.random.split(run_key, steps))[0]

    stimulus = lf.stimuli.Ising((SITES,), coupling=coupling)
    exact = compiled(stimulus, chains)
    x = np.asarray(exact())
    neighbors = (x * np.roll(x, 1, axis=1)).mean(
        axis=1
    )  # what was timed is also right, at five standard errors
    error = neighbors.std(ddof=1) / np.sqrt(chains)
    assert abs(neighbors.mean() - stimulus.covariance()[1]) < 5 * error < 0.1
    times = interleaved(
        {"exact": exact, "metropolis": lambda: metropolis(jax.random.key(1))}, rounds=5
    )
    report(f"Ising: {steps} Metropolis steps / one exact draw", ratio(times, "metropolis", "exact"))


def test_floor_of_the_generator(report):
    """How much of plain normals is the generator itself: the floor under every draw."""
    bits = jax.jit(lambda key: jax.random.bits(key, (NUM, SITES)))
    times = interleaved(
        {"bits": lambda: bits(jax.random.key(0)), "normals": normals(NUM, SITES)}, rounds=31
    )
    report("random bits alone / plain normals", ratio(times, "bits", "normals"))
    ours = jax.jit(lambda key: jax.random.normal(key, (NUM, SITES)))
    assert np.array_equal(ours(make_key(0)), ours(jax.random.key(0)))
    pair = interleaved(
        {"ours": lambda: ours(make_key(0)), "default": normals(NUM, SITES)}, rounds=31
    )
    report("plain normals from our keys / from JAX's default keys", ratio(pair, "ours", "default"))
    report("plain normals", 1e9 * float(np.median(times["normals"])) / (NUM * SITES), "ns each")


def test_first_answer(report):
    """What a newcomer waits for, apart from compilation: the command line's help."""
    script = [sys.executable, "-m", "localfields.cli", "--help"]
    report(
        "localfields --help",
        min(
            seconds(lambda: subprocess.run(script, capture_output=True, check=True))
            for _ in range(5)
        ),
        "s",
        0.5,
    )
