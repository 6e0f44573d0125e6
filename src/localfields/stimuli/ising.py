"""The Ising ring, drawn exactly."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import declare, number
from .._types import Lattice, Real, working_dtype
from ..marginals import Marginal, TwoPoint
from ._ring import (
    MOST_IN_HALVES,
    adaptive_response,
    enumerate_states,
    ising_kurtosis,
    ising_weights,
    meet_in_the_middle_response,
)
from .base import RING, Stimulus

WORST_FOURIER = 1e-6  # error of the Fourier sum from which a ring is cut in halves instead


class Ising(Stimulus):
    """Spins on a ring, p(x) ∝ exp(+J Σ x_i x_{i+1}): ±1 data with correlation length −1/ln tanh J.

    The paper prints exp(−J Σ …), which for J > 0 would be antiferromagnetic; its experiments use
    the sign here. Drawn exactly, in O(N), with no Markov chain to run in and nothing rejected.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.Ising((40,), coupling=0.7).covariance()[:3].round(4)
        array([1.    , 0.6044, 0.3653])
    """

    # 14 sites. Beyond, what is exact for a ring costs less than a sum over its states.
    most_atoms: ClassVar[int] = 2**14

    shape: Lattice = declare(RING, default=(40,))
    coupling: Real = number(
        default=0.7,
        low=-20,
        high=20,
        symbol="J",
        help="coupling of neighbors; positive aligns them",
        hint="Beyond 20 every sample is a single domain.",
    )

    def draw(self, key: Any, num: int) -> jax.Array:
        """Forward filtering around the ring.

        Write s_i = x_i x_0. The chain steps from s_i to s_{i+1} with a probability that looks ahead
        to the closing bond, so that it closes with the right weight and nothing is rejected. One
        uniform number decides for both values of s_i: below both probabilities of +1 the result is
        +1, above both −1, between them a copy of s_i.
        """
        n, dtype = self.size, working_dtype()
        coupling = jnp.asarray(self.coupling, dtype)
        flips = jax.nn.sigmoid(-2 * jnp.abs(coupling))  # of a single bond: (1 − t)/2, all digits
        log_t = jnp.log1p(-2 * flips)
        # Turning every second spin makes J < 0 into J > 0; on an odd ring the closing bond then
        # prefers −1.
        closing = jnp.where((coupling < 0) & (n % 2 == 1), -1.0, 1.0).astype(dtype)
        bonds = jnp.arange(n - 1, 0, -1, dtype=dtype)  # left to the closing one after the step
        after, before = bonds * log_t, (bonds + 1) * log_t
        # P(s' = +1 | s = +1) and P(s' = +1 | s = −1).
        keep = (1 - flips) * _one_plus(after, closing) / _one_plus(before, closing)
        turn = flips * _one_plus(after, closing) / _one_plus(before, -closing)
        # The generator is most of a sample's cost, so two sites share a word. The lower 16 bits of
        # a site's number, which matter once in 2¹⁶ comparisons, come from one further word per
        # sample, times an odd number for each site: two sites look at it together about once in 10⁶
        # samples, less than a float32 threshold's rounding.
        pairs = (n + 1) // 2
        words = jax.random.bits(key, (pairs + 1, num), jnp.uint32)
        upper = jnp.concatenate([words[:pairs] & jnp.uint32(0xFFFF0000), words[:pairs] << 16])[:n]
        odd = jnp.arange(n, dtype=jnp.uint32) * jnp.uint32(2 * 0x4F1BBCDC) + jnp.uint32(0x9E3779B9)
        first = upper[0] < jnp.uint32(2**31)

        def step(aligned: jax.Array, site: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
            bits, factor, kept, gained = site
            u = bits | ((words[pairs] * factor) >> 16)
            aligned = (u < gained) | ((u < kept) & aligned)
            return aligned, aligned == first

        sites = (upper[1:], odd[1:], _threshold(keep), _threshold(turn))
        _, up = jax.lax.scan(step, jnp.ones(num, bool), sites)
        up = jnp.concatenate([first[None], up]).T
        turned = jnp.where(coupling < 0, 1 - 2 * (jnp.arange(n) % 2), 1).astype(dtype)
        return jnp.where(up, turned[None, :], -turned[None, :])

    def covariance(self) -> np.ndarray:
        """(t^d + t^(N−d))/(1 + t^N) with t = tanh J."""
        self.require_one("to take the covariance of")
        t, n = np.tanh(self.coupling), self.size
        d = np.arange(n)
        return (t**d + t ** (n - d)) / (1 + t**n)

    def marginal(self) -> Marginal:
        """±1 with equal probability."""
        return TwoPoint()

    @property
    def num_atoms(self) -> int:
        """All states."""
        return 2**self.size

    def list_atoms(self) -> tuple[np.ndarray, np.ndarray]:
        """All states, the first site changing slowest."""
        states = enumerate_states(self.size)
        return states.astype(np.float64), ising_weights(states, self.coupling)

    def has_gated_mean(self, w: np.ndarray) -> bool:
        """In every direction."""
        return True

    def gated_mean(self, w: np.ndarray) -> np.ndarray:
        """By Fourier inversion, or up to 44 sites by a sum over two halves."""
        self.require_one("to take the gated mean of")
        response, error, _ = adaptive_response(w, self.coupling)
        if error > WORST_FOURIER and self.size <= MOST_IN_HALVES:
            return meet_in_the_middle_response(w, self.coupling)
        return response

    def projection_kurtosis(self, w: np.ndarray) -> np.ndarray:
        """From the fourth moments around the ring, by transfer matrices."""
        self.require_one("to take the kurtosis of")
        return ising_kurtosis(np.asarray(w, np.float64), float(self.coupling))


def _one_plus(log: jax.Array, sign: jax.Array) -> jax.Array:
    """1 ± e^log, without the loss of digits that 1 − t^m would suffer for t near 1."""
    return jnp.where(sign > 0, 1 + jnp.exp(log), -jnp.expm1(log))


def _threshold(probability: jax.Array) -> jax.Array:
    """A probability as a 32-bit threshold (the largest float32 below 2³² stands for one)."""
    return jnp.minimum(probability * 2.0**32, 4294967040.0).astype(jnp.uint32)
