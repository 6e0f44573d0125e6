"""The Ising ring, drawn exactly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import number
from .._types import working_dtype
from ..marginals import Marginal, TwoPoint
from .base import Stimulus, lattice_field


class Ising(Stimulus):
    """Spins on a ring, p(x) ∝ exp(+J Σ x_i x_{i+1}): ±1 data with correlation length −1/ln tanh J.

    The paper prints exp(−J Σ …), which for J > 0 would be antiferromagnetic; its experiments use the sign here.
    Drawn without a Markov chain in time, in O(N), from one random number a site.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.Ising((40,), coupling=0.7).covariance()[:3].round(4)
        array([1.    , 0.6044, 0.3653])
    """

    shape: tuple[int, ...] = lattice_field(most_axes=1)
    coupling: float = number(
        0.7,
        low=-20,
        high=20,
        symbol="J",
        help="coupling of neighbors; positive aligns them",
        hint="Beyond 20 the whole ring is one domain in every draw anybody will make.",
    )

    def draw(self, key: Any, num: int) -> jax.Array:
        """Forward filtering along the ring, as a composition of maps.

        Write s_i = x_i x_0. Given s_i, the chain steps to s_{i+1} = +1 with the filtered probability p(s_i), which
        looks ahead to the closing bond. One uniform u decides for both values of s_i at once: below both
        probabilities the result is +1, above both −1, between them the spin before is copied (J > 0) or flipped
        (J < 0). So s_i is set by the last site that did not copy: a running maximum, no loop over sites.
        """
        n, dtype = self.size, working_dtype()
        coupling = jnp.asarray(self.coupling, dtype)
        flips = jax.nn.sigmoid(-2 * jnp.abs(coupling))  # of a bond by itself: (1 − t)/2, with all its digits
        log_t = jnp.log1p(-2 * flips)
        # Turning every second spin makes J < 0 into J > 0; on an odd ring the closing bond then prefers −1.
        closing = jnp.where((coupling < 0) & (n % 2 == 1), -1.0, 1.0).astype(dtype)
        bonds = jnp.arange(n - 1, 0, -1, dtype=dtype)  # left to the closing one after the step
        ahead, here = bonds * log_t, (bonds + 1) * log_t
        keep = (1 - flips) * _one_plus(ahead, closing) / _one_plus(here, closing)  # P(s' = +1 | s = +1)
        turn = flips * _one_plus(ahead, closing) / _one_plus(here, -closing)  # P(s' = +1 | s = −1)
        random = jax.random.uniform(key, (num, n), dtype)
        u = random[:, 1:]
        # The running maximum of 2i + (chose +1) over the sites that chose: its last bit is the spin.
        chose = jnp.where(u < turn[None, :], 1, jnp.where(u < keep[None, :], -1, 0))
        sites = 2 * jnp.arange(1, n)[None, :]
        last = jax.lax.cummax(jnp.where(chose < 0, 1, sites + chose), axis=1)
        first = jnp.where(random[:, :1] < 0.5, 1, -1)
        x = jnp.concatenate([first, first * (2 * (last & 1) - 1)], axis=1).astype(dtype)
        turned = jnp.where(coupling < 0, 1 - 2 * (jnp.arange(n) % 2), 1).astype(dtype)
        return x * turned[None, :]

    def covariance(self) -> np.ndarray:
        """(t^d + t^(N−d))/(1 + t^N) with t = tanh J."""
        t, n = np.tanh(self.coupling), self.size
        d = np.arange(n)
        return (t**d + t ** (n - d)) / (1 + t**n)

    def marginal(self) -> Marginal:
        """±1 with equal probability."""
        return TwoPoint()


def _one_plus(log: jax.Array, sign: jax.Array) -> jax.Array:
    """1 ± e^log, without the loss of digits that 1 − t^m would suffer for t near 1."""
    return jnp.where(sign > 0, 1 + jnp.exp(log), -jnp.expm1(log))
