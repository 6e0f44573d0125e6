"""Means and products of activations of jointly normal preactivations, with exact derivatives.

With (S, T) normal of covariance q and biases b, c, the loss needs E[σ(S + b)] and
E[σ(S + b) σ(T + c)]. Stein's lemma gives the derivatives: ∂/∂b = E[σ′σ], ∂/∂q₁₂ = E[σ′σ′],
∂/∂q₁₁ = ½E[σ″σ]. They are coded as such, so that a gradient is exact also where the value has kinks
(two equal ReLU neurons) or needs a quadrature.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...networks.base import ACTIVATIONS

# Nodes of the quadrature of a bivariate normal probability: 1e-15 up to q = 10, 5e-8 at 1000.
QUADRATURE_NODES = 32

# Nodes of the trapezoidal rule for means over a standard normal Z. For an activation with poles at
# distance d from the real line (π for the logistic, π/2 for tanh) its error is about
# exp(−2πd/(h√q)), h the spacing: 1e-13 at q = 16.
HERMITE_REACH, HERMITE_POINTS = 9.6, 121


def _root(q: jax.Array) -> jax.Array:
    """√q; for a field of zeros 1, without a slope, so that it can be divided by."""
    return jnp.sqrt(jnp.where(q > 0, q, 1.0))


@jax.custom_jvp
def _sine(g: jax.Array) -> jax.Array:
    return jnp.sqrt((1 - g) * (1 + g))


@jax.custom_jvp
def _arcsin(g: jax.Array) -> jax.Array:
    return jnp.arcsin(g)


# Their slopes are infinite if two neurons are equal, but enter with a change of g that vanishes
# there. They are cut off, so that second derivatives, which stiff integrators need, are finite.
def _cut(g: jax.Array) -> jax.Array:
    return jnp.maximum(_sine(g), math.sqrt(float(jnp.finfo(g.dtype).eps)))


_sine.defjvps(lambda step, out, g: -g / _cut(g) * step)
_arcsin.defjvps(lambda step, out, g: step / _cut(g))


def relu_mean(q: jax.Array) -> jax.Array:
    """E[ReLU(S)] = √(q/2π)."""
    return jnp.where(q > 0, _root(q), 0.0) / math.sqrt(2 * math.pi)


@jax.custom_jvp
def relu_pair(q11: jax.Array, q22: jax.Array, q12: jax.Array) -> jax.Array:
    """E[ReLU(S) ReLU(T)], the arc-cosine kernel."""
    size = _root(q11) * _root(q22)
    g = jnp.clip(q12 / size, -1.0, 1.0)
    value = size / (2 * math.pi) * (_sine(g) + g * (math.pi / 2 + _arcsin(g)))
    return jnp.where((q11 > 0) & (q22 > 0), value, 0.0)


@relu_pair.defjvp
def _relu_pair_jvp(at: Any, along: Any) -> Any:
    q11, q22, q12 = at
    root1, root2 = _root(q11), _root(q22)
    g = jnp.clip(q12 / (root1 * root2), -1.0, 1.0)
    # The gate of a field of zeros is shut, as ReLU′(0) = 0.
    nonzero = (q11 > 0) & (q22 > 0)
    edge = jnp.where(nonzero, _sine(g) / (4 * math.pi), 0.0)  # ½E[δ(S) ReLU(T)] = edge √(q₂₂/q₁₁)
    both = jnp.where(nonzero, 0.25 + _arcsin(g) / (2 * math.pi), 0.0)  # P(S > 0, T > 0)
    slope1, slope2 = edge * root2 / root1, edge * root1 / root2
    return relu_pair(*at), slope1 * along[0] + slope2 * along[1] + both * along[2]


def erf_mean(q: jax.Array, b: jax.Array) -> jax.Array:
    """E[erf((S + b)/√2)]."""
    return jax.scipy.special.erf(b / jnp.sqrt(2 * (1 + q)))


def erf_slope(q: jax.Array, b: jax.Array) -> jax.Array:
    """E[σ′(S + b)]."""
    return math.sqrt(2 / math.pi) * jnp.exp(-(b**2) / (2 * (1 + q))) / jnp.sqrt(1 + q)


@jax.custom_jvp
def erf_pair(
    q11: jax.Array, q22: jax.Array, q12: jax.Array, b: jax.Array, c: jax.Array
) -> jax.Array:
    """E[erf((S + b)/√2) erf((T + c)/√2)] = 4Φ₂ − 2Φ − 2Φ + 1, with Φ₂ by quadrature."""
    h, k = b / jnp.sqrt(1 + q11), c / jnp.sqrt(1 + q22)
    angle = jnp.arcsin(q12 / jnp.sqrt((1 + q11) * (1 + q22)))
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    total = jnp.zeros_like(angle * h * k)
    for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
        r = jnp.sin(0.5 * (1 + node) * angle)
        # Plackett: the derivative of Φ₂ along the correlation is the density at (h, k).
        density = jnp.exp(-(h**2 + k**2 - 2 * h * k * r) / (2 * (1 - r) * (1 + r)))
        total = total + weight * density
    erf, half = jax.scipy.special.erf, math.sqrt(0.5)
    return total * angle / math.pi + erf(half * h) * erf(half * k)


def erf_crossed(q11: Any, q22: Any, q12: Any, b: Any, c: Any) -> tuple[jax.Array, jax.Array]:
    """E[σ′(S + b) σ(T + c)] and E[σ′(S + b) σ′(T + c)]."""
    slack = 1 + q22 - q12**2 / (1 + q11)
    first = erf_slope(q11, b) * jax.scipy.special.erf(
        (c - b * q12 / (1 + q11)) / jnp.sqrt(2 * slack)
    )
    volume = (1 + q11) * (1 + q22) - q12**2
    square = ((1 + q22) * b**2 + (1 + q11) * c**2 - 2 * q12 * b * c) / volume
    return first, 2 / math.pi * jnp.exp(-square / 2) / jnp.sqrt(volume)


@erf_pair.defjvp
def _erf_pair_jvp(at: Any, along: Any) -> Any:
    q11, q22, q12, b, c = at
    by_b, both = erf_crossed(q11, q22, q12, b, c)
    by_c, _ = erf_crossed(q22, q11, q12, c, b)
    by_q11 = -0.5 * (b * by_b + q12 * both) / (1 + q11)  # ½E[σ″(S + b) σ(T + c)]
    by_q22 = -0.5 * (c * by_c + q12 * both) / (1 + q22)
    slopes = by_q11, by_q22, both, by_b, by_c
    return erf_pair(*at), sum(slope * step for slope, step in zip(slopes, along, strict=True))


# Other smooth activations: a Hermite series.


@functools.cache
def _hermite(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, and normalized Hermite polynomials there times the weights, (terms, nodes)."""
    nodes = np.linspace(-HERMITE_REACH, HERMITE_REACH, HERMITE_POINTS)
    weights = np.exp(-(nodes**2) / 2)
    rows = [np.ones_like(nodes), nodes]
    for n in range(1, terms - 1):  # normalized, so that they stay in range
        rows.append((nodes * rows[n] - math.sqrt(n) * rows[n - 1]) / math.sqrt(n + 1))
    return nodes, np.stack(rows[:terms]) * (weights / weights.sum())


def _slope(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


class _HermiteExpansion:
    """Coefficients aₙ = E[σ Heₙ(Z)]/√n!, (terms, K), of σ(√q Z + b) and its derivatives."""

    def __init__(self, activation: str, terms: int, q: jax.Array, b: jax.Array, derivatives: int):
        nodes, table = (jnp.asarray(part, q.dtype) for part in _hermite(terms))
        own = jnp.diagonal(q)
        root = _root(own)
        at = jnp.where(own > 0, root, 0.0)[None, :] * nodes[:, None] + b[None, :]
        functions = [ACTIVATIONS[activation]]
        for _ in range(derivatives):
            functions.append(_slope(functions[-1]))
        self.weights = table[0]
        self.values = [function(at) for function in functions]
        # Each derivative by itself: dividing the coefficients of σ by √q would lose digits.
        self.a = jnp.split(table @ jnp.concatenate(self.values, axis=1), derivatives + 1, axis=1)
        self.cosines = jnp.clip(q / (root[:, None] * root[None, :]), -1.0, 1.0)

    def remainder(self, i: int, j: int) -> jax.Array:
        """E[σ⁽ⁱ⁾σ⁽ʲ⁾] of each neuron minus its series, which converges slowest there, (K,)."""
        exact = self.weights @ (self.values[i] * self.values[j])
        return exact - jnp.sum(self.a[i] * self.a[j], axis=0)


def _summed(g: jax.Array, *pairs: tuple[jax.Array, jax.Array]) -> list[jax.Array]:
    """Σₙ aₙₖ bₙₗ γⁿ, (K, K), for each pair of coefficients (terms, K), by Horner's rule."""

    def add(totals: list[jax.Array], rows: Any) -> Any:
        return [
            total * g + a[:, None] * b[None, :] for total, (a, b) in zip(totals, rows, strict=True)
        ], None

    # Unrolled, so that partial sums stay in registers; more would only cost time to compile.
    zeros = [jnp.zeros_like(g)] * len(pairs)
    return jax.lax.scan(add, zeros, list(pairs), reverse=True, unroll=8)[0]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def series(activation: str, terms: int, q: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Means over neurons of E[σ_k] and over pairs of E[σ_k σ_l] = Σₙ aₙₖ aₙₗ γⁿ (Mehler).

    What the series leaves out of a pair is at most |γ|^terms times what it leaves out of E[σ²].

    Args:
        activation: Name of a smooth activation.
        terms: Terms of the series.
        q: Covariance of the preactivations, (K, K).
        b: Biases, (K,).
    """
    expansion = _HermiteExpansion(activation, terms, q, b, 0)
    (pairs,) = _summed(expansion.cosines, (expansion.a[0], expansion.a[0]))
    return jnp.mean(expansion.a[0][0]), (
        jnp.sum(pairs) + jnp.sum(expansion.remainder(0, 0))
    ) / b.size**2


@series.defjvp
def _series_jvp(activation: str, terms: int, at: Any, along: Any) -> Any:
    q, b = at
    dq, db = along
    half = 0.5 * jnp.diagonal(dq)
    expansion = _HermiteExpansion(activation, terms, q, b, 2)
    a, a1, a2 = expansion.a
    # E[σ′_k σ_l], E[σ″_k σ_l], E[σ′_k σ′_l]
    by_b, by_own, by_q = _summed(expansion.cosines, (a1, a), (a2, a), (a1, a1))
    to_b = jnp.sum(by_b, axis=1) + expansion.remainder(1, 0)
    to_own = jnp.sum(by_own, axis=1) + expansion.remainder(2, 0) + expansion.remainder(1, 1)
    mean = jnp.mean(a1[0] * db + a2[0] * half)
    square = 2 * jnp.sum(to_b * db + to_own * half) + jnp.sum(by_q * dq)
    return series(activation, terms, q, b), (mean, square / b.size**2)
