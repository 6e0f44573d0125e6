"""Distributions whose quantiles and moments are closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from .._spec import declare, number
from .._types import Real, namespace
from .base import SCALE, STATISTICS, Marginal, SymmetricMarginal, normal_rule


class TwoPoint(SymmetricMarginal):
    """±1 with equal probability: the limit of infinite gain. Kurtosis 1, the least possible.

    Example:
        >>> TwoPoint().excess_kurtosis
        -2.0
    """

    scale: Real = declare(SCALE, default=1.0)

    def size(self, v: Any, delta: Any) -> Any:
        """|X| is 1."""
        xp, _ = namespace(v)
        return xp.ones_like(v)

    def size_cdf(self, x: Any) -> Any:
        """A step at 1."""
        xp, _ = namespace(x)
        return xp.where(x >= 1, 1.0, 0.0)

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x): steps of ½ at ±1, taken at the step itself."""
        xp, _ = namespace(x)
        x = xp.asarray(x)
        return 0.5 * (xp.where(x >= -self.scale, 1.0, 0.0) + xp.where(x >= self.scale, 1.0, 0.0))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """One node."""
        return np.array([self.scale]), np.array([1.0])

    def correlation(self, latent: Any) -> np.ndarray:
        """The arcsine law, (2/π) arcsin r."""
        return np.asarray(2 / np.pi * np.arcsin(np.clip(latent, -1, 1)))

    def _latent(self, wanted: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(np.pi / 2 * wanted))

    def _unit_moment(self, order: float) -> float:
        return 1.0


class Normal(Marginal):
    """The standard normal.

    Example:
        >>> round(Normal().kurtosis, 12)
        3.0
    """

    scale: Real = declare(SCALE, default=1.0)

    def cdf(self, x: Any) -> Any:
        """Φ(x/σ)."""
        _, special = namespace(x)
        return special.ndtr(x / self.scale)

    def from_normal(self, z: Any) -> Any:
        """σz."""
        return self.scale * z

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Double-exponential nodes on the half line."""
        self.require_one(STATISTICS)
        z, p = normal_rule()
        return self.scale * z, p

    def correlation(self, latent: Any) -> np.ndarray:
        """The latent correlation itself."""
        return np.asarray(latent, dtype=np.float64)

    def _latent(self, wanted: np.ndarray) -> np.ndarray:
        return wanted.copy()

    def _unit_moment(self, order: float) -> float:
        return float(2 ** (order / 2) * scipy.special.gamma((order + 1) / 2) / math.sqrt(np.pi))


class ErfNormal(Marginal):
    """erf(gZ)/𝒵(g): the marginal of NLGP, from normal (g → 0) to two-point (g → ∞).

    The paper's convention, erf(gz). The predecessor's erf(gz/√2) is this distribution at gain g/√2.

    Example:
        >>> round(ErfNormal(gain=100.0).excess_kurtosis, 6)
        -1.995515
        >>> round(ErfNormal(gain=0.5**0.5).kurtosis, 12)  # the uniform distribution
        1.8
    """

    gain: Real = number(
        default=3.0,
        low=0,
        symbol="g",
        help="gain of the error function; large gains give ±1 data",
        hint="For the Gaussian limit, gain 0, use `Normal`.",
        limit="For infinite gain use `TwoPoint`.",
    )
    scale: Real = declare(SCALE, default=1.0)

    @property
    def _gain(self) -> Any:
        # Beyond these ends the distribution is normal, or two-point, to the last bit; their squares
        # are finite in float32.
        xp, _ = namespace(self.gain)
        return xp.clip(self.gain, 1e-15, 1e15)

    def _arcsine(self) -> Any:
        # arcsin ρ with ρ = 2g²/(1 + 2g²), written so that large gains keep their digits: cos = √(1
        # − ρ²).
        xp, _ = namespace(self.gain)
        twice = 2 * self._gain**2
        return xp.arctan2(twice, xp.sqrt(1 + 2 * twice))

    def cdf(self, x: Any) -> Any:
        """Φ(erf⁻¹(𝒵x)/g)."""
        xp, special = namespace(x)
        top = xp.clip(xp.asarray(x) * (self.deviation() / self.scale), -1, 1)
        return special.ndtr(special.erfinv(top) / self._gain)

    def deviation(self) -> Any:
        """𝒵(g), the standard deviation of erf(gZ): 𝒵² = (2/π) arcsin ρ."""
        xp, _ = namespace(self.gain)
        return xp.sqrt(2 / np.pi * self._arcsine())

    def from_normal(self, z: Any) -> Any:
        """erf(gz)/𝒵."""
        _, special = namespace(z)
        return special.erf(self._gain * z) * (self.scale / self.deviation())

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Double-exponential nodes of the latent normal."""
        self.require_one(STATISTICS)
        z, p = normal_rule()
        return np.asarray(self.from_normal(z)), p

    def correlation(self, latent: Any) -> np.ndarray:
        """The arcsine law, arcsin(ρr)/arcsin ρ."""
        self.require_one(STATISTICS)
        twice = 2 * self._gain**2
        rho = twice / (1 + twice)
        return np.asarray(np.arcsin(np.clip(latent, -1, 1) * rho) / self._arcsine())

    def _latent(self, wanted: np.ndarray) -> np.ndarray:
        # Inverse of the arcsine law: sin(C arcsin ρ)/ρ.
        twice = 2 * self._gain**2
        return np.asarray(np.sin(wanted * self._arcsine()) * ((1 + twice) / twice))

    def _unit_moment(self, order: float) -> float:
        if order == 2:
            return 1.0
        if order == 4:
            # E erf(gZ)⁴ = (24/π²) ∫₀^{arcsin ρ} arcsin(sin θ/(1 + 2 sin θ)) dθ (Plackett); 𝒵⁴ =
            # (4/π²) arcsin²ρ.
            self.require_one(STATISTICS)
            points, weights = np.polynomial.legendre.leggauss(24)
            end = self._arcsine()
            sine = np.sin(end * (1 + points) / 2)
            integral = end / 2 * np.sum(weights * np.arcsin(sine / (1 + 2 * sine)))
            return float(6 * integral / end**2)
        return super()._unit_moment(order)


class Algebraic(SymmetricMarginal):
    """Cdf ½(1 + x(1 + |x|^k)^(−1/k)), scaled to unit variance: algebraic tails of index k.

    Excess kurtosis runs from ∞ (k ≤ 4) through zero at k = 5.8901 to −1.2 (k → ∞, uniform). The
    paper quotes sample kurtoses for k = 3, 4 and 5; the exact ones are ∞, ∞ and 4.2853.

    Example:
        >>> round(Algebraic(k=10.0).excess_kurtosis, 4), Algebraic(k=4.0).kurtosis
        (-0.9299, inf)
    """

    k: Real = number(
        default=10.0,
        low=2,
        symbol="k",
        help="tail index: moments of order k and above are infinite",
        hint="At k ≤ 2 the variance is infinite.",
    )
    scale: Real = declare(SCALE, default=1.0)

    @property
    def tail_index(self) -> float:
        """The exponent of the tail, k."""
        self.require_one(STATISTICS)
        return float(self.k)

    def deviation(self) -> Any:
        """Standard deviation before normalization, √(B(3/k, 1 − 2/k)/k)."""
        xp, special = namespace(self.k)
        return xp.sqrt(xp.exp(special.betaln(3 / self.k, 1 - 2 / self.k)) / self.k)

    def size(self, v: Any, delta: Any) -> Any:
        """v(1 − v^k)^(−1/k), with 1 − v^k from δ so that the tail keeps its digits."""
        xp, _ = namespace(v)
        with np.errstate(divide="ignore"):  # at v = 0 the logarithm is −∞ and the rest is 1
            rest = -xp.expm1(self.k * xp.log1p(-delta))
        return v * xp.exp(xp.log(rest) * (-1 / self.k)) * (1 / self.deviation())

    def size_cdf(self, x: Any) -> Any:
        """x(1 + x^k)^(−1/k), from x⁻ᵏ where x^k is large."""
        xp, _ = namespace(x)
        x = x * self.deviation()
        small, large = xp.minimum(x, 1), xp.maximum(x, 1)
        inside = small * (1 + small**self.k) ** (-1 / self.k)
        return xp.where(x < 1, inside, (1 + large**-self.k) ** (-1 / self.k))

    def _unit_moment(self, order: float) -> float:
        moment = scipy.special.beta((order + 1) / self.k, 1 - order / self.k) / self.k
        return float(moment / self.deviation() ** order)


class Uniform(SymmetricMarginal):
    """Uniform on [−√3, √3].

    The limit k → ∞ of the algebraic distribution, and erf-of-normal at gain 1/√2.

    Example:
        >>> round(Uniform().excess_kurtosis, 12)
        -1.2
    """

    scale: Real = declare(SCALE, default=1.0)

    def size(self, v: Any, delta: Any) -> Any:
        """√3 v."""
        return math.sqrt(3) * v

    def size_cdf(self, x: Any) -> Any:
        """x/√3."""
        xp, _ = namespace(x)
        return xp.minimum(x / math.sqrt(3), 1)

    def correlation(self, latent: Any) -> np.ndarray:
        """(6/π) arcsin(r/2)."""
        return np.asarray(6 / np.pi * np.arcsin(np.clip(latent, -1, 1) / 2))

    def _latent(self, wanted: np.ndarray) -> np.ndarray:
        return np.asarray(2 * np.sin(np.pi / 6 * wanted))

    def _unit_moment(self, order: float) -> float:
        return 3 ** (order / 2) / (order + 1)


class Laplace(SymmetricMarginal):
    """Two-sided exponential: the usual sparse prior. Excess kurtosis 3.

    Example:
        >>> round(Laplace().excess_kurtosis, 12)
        3.0
    """

    scale: Real = declare(SCALE, default=1.0)

    def size(self, v: Any, delta: Any) -> Any:
        """−log δ / √2."""
        xp, _ = namespace(v)
        center = -xp.log1p(-xp.minimum(v, 0.5))
        return math.sqrt(0.5) * xp.where(v < 0.5, center, -xp.log(delta))

    def size_cdf(self, x: Any) -> Any:
        """1 − exp(−√2 x)."""
        xp, _ = namespace(x)
        return -xp.expm1(-math.sqrt(2) * x)

    def _unit_moment(self, order: float) -> float:
        return float(0.5 ** (order / 2) * scipy.special.gamma(order + 1))


class Logistic(SymmetricMarginal):
    """The logistic distribution. Excess kurtosis 1.2.

    Example:
        >>> round(Logistic().excess_kurtosis, 12)
        1.2
    """

    scale: Real = declare(SCALE, default=1.0)

    def size(self, v: Any, delta: Any) -> Any:
        """(√3/π) log((1 + v)/δ)."""
        xp, _ = namespace(v)
        return math.sqrt(3) / math.pi * xp.log1p(2 * v / delta)

    def size_cdf(self, x: Any) -> Any:
        """tanh(πx/(2√3))."""
        xp, _ = namespace(x)
        return xp.tanh(x * (math.pi / (2 * math.sqrt(3))))

    def _unit_moment(self, order: float) -> float:
        if order < 1:
            return super()._unit_moment(order)
        eta = math.log(2)
        if order != 1:
            eta = float(scipy.special.zeta(order)) * (1 - 2 ** (1 - order))
        return float((math.sqrt(3) / math.pi) ** order * 2 * scipy.special.gamma(order + 1) * eta)


class Triangular(SymmetricMarginal):
    """The symmetric triangle on [−√6, √6]: the sum of two uniforms. Excess kurtosis −0.6.

    Example:
        >>> round(Triangular().excess_kurtosis, 12)
        -0.6
    """

    scale: Real = declare(SCALE, default=1.0)

    def size(self, v: Any, delta: Any) -> Any:
        """√6 (1 − √δ)."""
        xp, _ = namespace(v)
        return math.sqrt(6) * v / (1 + xp.sqrt(delta))

    def size_cdf(self, x: Any) -> Any:
        """1 − (1 − x/√6)²."""
        xp, _ = namespace(x)
        return 1 - (1 - xp.minimum(x / math.sqrt(6), 1)) ** 2

    def _unit_moment(self, order: float) -> float:
        return 2 * 6 ** (order / 2) / ((order + 1) * (order + 2))
