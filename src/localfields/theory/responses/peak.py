"""The cluster expansion given the site of the largest weight.

With z = Z_p of the peak p given, the other sites are again a Gaussian copula, whose maps depend on
z; the single-site expansion is applied to that one. All tables are made once, for a peak at the
origin, and the field is moved there.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...lattice import matrix
from ...marginals import Marginal
from ..base import Response
from .quadrature import site_map, site_rule

MOST_SITES = 400
PEAK_NODES = 16  # per panel of z
SITE_NODES = 28  # of a site given the peak, on either side of the zero of its map
SITE_END = 6.5
ORDERS = 40  # of the Hermite series of a conditional covariance
FLOOR = 1e-9


class PeakResponse(Response):
    """f = ∇U of the cluster expansion given the peak; axes are (node of z, site, node of ε).

    Given z, X_j = T(L_j z + √v_j ε_j) has the mean M_j and the covariance K. Given ε_i of one more
    site, the preactivation has the mean m + δ_i(ε), δ_i = ε Σ_j ρ_ij τ_j w_j + w_i r_i(ε), where
    τ_j is the slope of X_j in ε_j, and r_i what X_i is beside M_i + τ_i ε.
    """

    covariance: jax.Array  # Σ, (site, site)
    sd: jax.Array
    weights: jax.Array  # of the nodes of z, (z,)
    mean: jax.Array  # M, (z, site)
    conditional: jax.Array  # K, (z, site, site)
    correlation: jax.Array  # ρ, of the ε; zero at the peak, (site, site)
    slope: jax.Array  # τ, (z, site)
    residual_variance: jax.Array  # Var r, (z, site)
    epsilon: jax.Array  # nodes, (z, site, ε)
    site_weights: jax.Array  # their weights
    residual: jax.Array  # r at the nodes
    shape: tuple[int, ...] = eqx.field(static=True)

    def potential(self, w: jax.Array) -> jax.Array:
        """U(w) ≈ ½E|⟨w, X⟩|."""
        return self._at_origin(self._move(w, -1, w))

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,); zero at w = 0."""
        any_field = jnp.any(w != 0)
        w = jnp.where(any_field, w, 1)
        response = self._move(jax.grad(self._at_origin)(self._move(w, -1, w)), 1, w)
        return jnp.where(any_field, response, 0)

    def _move(self, values: jax.Array, sign: int, w: jax.Array) -> jax.Array:
        """Values moved by the place of the peak of w, or back."""
        place = jnp.unravel_index(jnp.argmax(jnp.abs(w)), self.shape)
        by = jnp.stack([sign * along for along in place])
        moved = jnp.roll(values.reshape(self.shape), by, tuple(range(len(self.shape))))
        return moved.reshape(w.shape)

    def _at_origin(self, w: jax.Array) -> jax.Array:
        floor = FLOOR * w @ self.covariance @ w
        mean = self.mean @ w
        variance = jnp.maximum(jnp.einsum("i,zij,j->z", w, self.conditional, w), floor)
        linear = (self.slope * w[None]) @ self.correlation
        rest = variance[:, None] - linear**2 - w[None] ** 2 * self.residual_variance
        rest = jnp.maximum(rest, floor)[..., None]
        moved = linear[..., None] * self.epsilon + w[None, :, None] * self.residual
        moved = mean[:, None, None] + moved
        without = _mean_abs(mean, variance)
        each = jnp.sum(self.site_weights * _mean_abs(moved, rest), axis=2) - without[:, None]
        # The first site is the peak, which is given.
        return 0.5 * self.sd * self.weights @ (without + jnp.sum(each[:, 1:], axis=1))


def _mean_abs(mean: jax.Array, variance: jax.Array) -> jax.Array:
    """E|N(mean, variance)|."""
    ratio = mean / jnp.sqrt(2 * variance)
    return mean * jax.lax.erf(ratio) + jnp.sqrt(2 / math.pi * variance) * jnp.exp(-(ratio**2))


def peak_response(law: Marginal, row: np.ndarray, latent: np.ndarray, sd: float) -> PeakResponse:
    """Make the tables for a symmetric marginal, correlations of X and those of Z."""
    size, rule = row.size, site_rule(law, PEAK_NODES)
    covariance, full = matrix(row), matrix(latent)
    to_peak = full[0]  # L
    variance = 1 - to_peak**2  # of ε before it is scaled, v
    variance[0] = 1.0  # the peak has no ε: its entries are not used
    root = np.sqrt(np.maximum(variance, 1e-12))
    correlation = (full - np.outer(to_peak, to_peak)) / np.outer(root, root)
    np.fill_diagonal(correlation, 1.0)
    correlation[0], correlation[:, 0] = 0, 0

    # Two panels in ε that meet where the map is zero: the only kink or step of a smooth marginal.
    split = np.clip(-np.outer(rule.z, to_peak / root), -SITE_END, SITE_END)
    ends = np.stack(np.broadcast_arrays(-SITE_END, split, SITE_END), axis=-1)
    points, weights = np.polynomial.legendre.leggauss(SITE_NODES)
    half = np.diff(ends)[..., None] / 2
    epsilon = (ends[..., :-1, None] + half * (1 + points)).reshape(*split.shape, -1)
    density = np.exp(-0.5 * epsilon**2) / math.sqrt(2 * math.pi)
    weights = (half * weights).reshape(epsilon.shape) * density
    values = site_map(law, rule.z[:, None, None] * to_peak[:, None] + root[:, None] * epsilon)
    mean = np.sum(weights * values, axis=2)
    spread = np.sum(weights * values**2, axis=2) - mean**2

    # τ_n = E[X He_n(ε)]/√n!, and K_ij = Σ_n ρ_ijⁿ τ_ni τ_nj (Mehler).
    previous, hermite = np.ones_like(epsilon), epsilon
    power, conditional, slope = correlation, np.zeros((len(rule.z), size, size)), None
    for n in range(1, ORDERS + 1):
        tau = np.sum(weights * values * hermite, axis=2)
        slope = tau if slope is None else slope
        conditional += power * tau[:, :, None] * tau[:, None, :]
        power = power * correlation
        following = (epsilon * hermite - math.sqrt(n) * previous) / math.sqrt(n + 1)
        previous, hermite = hermite, following
    assert slope is not None
    conditional[:, np.arange(size), np.arange(size)] = spread
    mean[:, 0], conditional[:, 0], conditional[:, :, 0] = rule.values, 0, 0
    # What the series leaves out is added as a constant, so that second moments are exact.
    found = np.tensordot(rule.weights, conditional + mean[:, :, None] * mean[:, None, :], 1)
    conditional[:, 1:, 1:] += (covariance - found)[1:, 1:]
    residual = values - mean[..., None] - slope[..., None] * epsilon
    return PeakResponse(
        *map(
            jnp.asarray,
            (
                covariance,
                sd,
                rule.weights,
                mean,
                conditional,
                correlation,
                slope,
                spread - slope**2,
                epsilon,
                weights,
                residual,
            ),
        ),
        shape=row.shape,
    )
