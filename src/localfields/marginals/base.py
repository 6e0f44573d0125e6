"""One-dimensional distributions: exact moments, quantiles, quadrature, correlations in a copula.

The distributions are symmetric about zero (except tabulated and empirical ones, which are centered
where it matters) and have standard deviation `scale`. A distribution is defined by one function,
the size of X that is exceeded with a given probability; nodes, quantiles and sampling follow from
it.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.special

from .._spec import Declaration, Number, Spec, required
from .._types import Field, Real, namespace
from ..errors import InputError

STEP = 0.04  # of the double-exponential rules: errors below 1e-12 for every distribution here
STATISTICS = "to take statistics of"  # what a sweep of distributions is refused for
# A mean this near 0 and a deviation this near 1 are kept: standardizing twice changes nothing.
STANDARD_TOL = 1e-12


SCALE = Declaration(
    Number(low=0, hint="Use 1 for unit variance."), help="standard deviation", symbol="σ"
)


class Marginal(Spec):
    """The distribution of one coordinate of a stimulus."""

    family: ClassVar[str] = "marginal"

    @property
    def mean(self) -> float:
        """Mean; zero for every symmetric distribution."""
        return 0.0

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return self.scale  # pyright: ignore[reportAttributeAccessIssue]  # or `sd` is overridden

    @property
    def variance(self) -> float:
        """Variance."""
        return self.sd**2

    @property
    def symmetric(self) -> bool:
        """Whether X and −X have the same distribution."""
        return True

    @property
    def tail_index(self) -> float:
        """The largest order below which absolute moments are finite; ∞ for light tails."""
        return math.inf

    @property
    def kurtosis(self) -> float:
        """E(X − mean)⁴ / Var², ∞ where the fourth moment does not exist."""
        if self.tail_index <= 4:
            return math.inf
        return self.abs_moment(4) / self.abs_moment(2) ** 2

    @property
    def excess_kurtosis(self) -> float:
        """Kurtosis − 3: the sign that decides for localization in the paper's theory."""
        return self.kurtosis - 3

    @property
    def mean_abs(self) -> float:
        """E|X − mean|; the amplifier's value at 1. Finite whatever the kurtosis."""
        return self.abs_moment(1)

    def abs_moment(self, order: float) -> float:
        """E|X − mean|^order, ∞ where it does not exist.

        Args:
            order: Any positive number.
        """
        order = Number(low=0, hint="Moments of order 1, 2 and 4 are the usual ones.").check(
            "order", order
        )
        if order >= self.tail_index:
            return math.inf
        return self.sd**order * self._unit_moment(float(order))

    def _unit_moment(self, order: float) -> float:
        x, p = self.nodes()
        return float(np.sum(p * (x / self.sd) ** order))

    @abc.abstractmethod
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x)."""

    def quantile(self, u: Any) -> Any:
        """The x with P(X ≤ x) = u, for u in [0, 1]: the map from a normal at Φ⁻¹(u)."""
        _, special = namespace(u)
        return self.from_normal(special.ndtri(u))

    @abc.abstractmethod
    def from_normal(self, z: Any) -> Any:
        """Q(Φ(z)), the increasing map from a standard normal; finite in float32 for every z."""

    @abc.abstractmethod
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes x and weights p: E h(|X − mean|) ≈ Σ p h(x), to 1e-12 for the amplifier's h."""

    def standardized(self) -> Marginal:
        """The same distribution at mean zero and unit variance."""
        return self if isinstance(self.sd, float) and self.sd == 1.0 else self.replace(scale=1.0)

    # -- through a Gaussian copula -----------------------------------------------------------------

    def hermite(self, order: int = 401) -> np.ndarray:
        """Coefficients a_n = E[T(Z) He_n(Z)]/√n! of the standardized map T, n = 0 … order.

        Composite Gauss–Legendre with Hermite functions by their stable recurrence, which holds for
        every tail.
        """
        return _hermite(self.standardized(), order)

    def correlation(self, latent: Any) -> np.ndarray:
        """Correlation of two coordinates whose latent normals have correlation `latent`.

        C(r) = Σ a_n² rⁿ (Mehler). All terms are of one sign for r ≥ 0, so the remainder after order
        M is at most (1 − Σ a_n²) |r|^(M+1); `correlation_error` returns it.
        """
        return self._series(latent, self.hermite() ** 2)

    def _series(self, latent: Any, squares: np.ndarray) -> np.ndarray:
        r = np.asarray(latent, dtype=np.float64)
        squares[0] = 0.0
        total = np.polynomial.polynomial.polyval(np.clip(r, -1, 1), squares)
        total = np.where(r >= 1, 1.0, total)
        return np.where(r <= -1, -1.0, total) if self.symmetric else total

    def correlation_error(self, latent: Any) -> float:
        """Bound on the truncation error of `correlation` at these values; 0 for closed forms."""
        if type(self).correlation is not Marginal.correlation:
            return 0.0
        inner = np.abs(np.asarray(latent, dtype=np.float64))
        inner = inner[inner < 1]
        squares = self.hermite() ** 2
        rest = max(0.0, 1.0 - float(squares[1:].sum()))
        return rest * float(inner.max(initial=0.0)) ** len(squares)

    def latent_correlation(self, wanted: Any) -> np.ndarray:
        """The latent correlation that gives a wanted output correlation (inverse of `correlation`).

        Raises:
            InputError: When a wanted value cannot be reached by this distribution.
        """
        wanted = np.asarray(wanted, dtype=np.float64)
        least = float(self.correlation(-1.0))
        bad = wanted[~((wanted >= least - 1e-12) & (wanted <= 1 + 1e-12))]
        if bad.size:
            raise InputError(
                "No Gaussian copula with this marginal has a correlation of "
                f"{float(bad.flat[0]):g}. Ask for values between {least:.4g} and 1."
            )
        return self._latent(wanted)

    def _latent(self, wanted: np.ndarray) -> np.ndarray:
        low, high = np.full(wanted.shape, -1.0), np.full(wanted.shape, 1.0)
        squares = self.hermite() ** 2
        for _ in range(60):  # C is increasing: bisection to the last bit
            middle = (low + high) / 2
            below = self._series(middle, squares) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(wanted >= 1, 1.0, (low + high) / 2)


class SymmetricMarginal(Marginal):
    """A symmetric distribution, given by the quantiles of |X| in units of `scale`."""

    scale = required(Real)

    @abc.abstractmethod
    def size(self, v: Any, delta: Any) -> Any:
        """The x with P(|X| < x) = v, at unit variance; δ = 1 − v is given to full accuracy."""

    @abc.abstractmethod
    def size_cdf(self, x: Any) -> Any:
        """P(|X| < x) at unit variance, for x ≥ 0."""

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x)."""
        xp, _ = namespace(x)
        x = xp.asarray(x)
        return 0.5 * (1 + xp.sign(x) * self.size_cdf(xp.abs(x) / self.scale))

    def quantile(self, u: Any) -> Any:
        """The x with P(X ≤ x) = u, for u in [0, 1]."""
        xp, _ = namespace(u)
        u = xp.asarray(u)
        delta = 2 * xp.minimum(u, 1 - u)
        return xp.copysign(self.scale * self.size(1 - delta, delta), u - 0.5)

    def from_normal(self, z: Any) -> Any:
        """Q(Φ(z)), finite for every finite or infinite z."""
        xp, special = namespace(z)
        a = xp.abs(z) * math.sqrt(0.5)
        # P(|Z| > z) goes to zero beyond z = 13 in float32; held at the smallest normal number it
        # keeps Q finite.
        delta = xp.maximum(special.erfc(a), np.finfo(a.dtype).tiny)
        # copysign, not sign: a two-point distribution has no zero, and float32 normals draw one now
        # and then.
        return xp.copysign(self.scale * self.size(special.erf(a), delta), z)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Double-exponential nodes in v, which resolve small scales and tails."""
        self.require_one(STATISTICS)
        v, delta, p = uniform_rule()
        return self.scale * self.size(v, delta), p


# A marginal, its name or text, or the quantile function of one.
MarginalLike = Marginal | str | Mapping[str, Any] | Callable[[np.ndarray], Any]
MarginalField = Field[Marginal, MarginalLike]


@functools.cache
def uniform_rule() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes v, 1 − v and weights of the tanh-sinh rule on (0, 1)."""
    t = np.arange(-105, 106) * STEP
    u = 0.5 * np.pi * np.sinh(t)
    v, delta = scipy.special.expit(2 * u), scipy.special.expit(-2 * u)
    return v, delta, STEP * np.pi * np.cosh(t) * v * delta


@functools.cache
def normal_rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of |Z| for a standard normal Z."""
    t = np.arange(-3.8, 2.9 + STEP / 2, STEP)
    z = np.exp(t - np.exp(-t))
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * np.pi)
    return z, 2 * density * STEP * z * (1 + np.exp(-t))


def _hermite(marginal: Marginal, order: int) -> np.ndarray:
    marginal.require_one(STATISTICS)
    points, weights = np.polynomial.legendre.leggauss(16)
    end = 2 * math.sqrt(order) + 14
    edges = np.linspace(0, end, math.ceil(end / 0.25) + 1)
    half = (edges[1] - edges[0]) / 2
    z = (edges[:-1, None] + half * (1 + points)[None, :]).ravel()
    w = np.tile(half * weights, len(edges) - 1)
    up = marginal.from_normal(z)
    down = -up if marginal.symmetric else marginal.from_normal(-z)
    psi = np.exp(-(z**2) / 4) / (2 * np.pi) ** 0.25
    odd, even = w * psi * (up - down), w * psi * (up + down)
    coefficients = np.zeros(order + 1)
    previous = np.zeros_like(psi)
    for n in range(order + 1):
        coefficients[n] = np.sum((odd if n % 2 else even) * psi)
        psi, previous = (z * psi - math.sqrt(n) * previous) / math.sqrt(n + 1), psi
    return coefficients


def latent_row(marginal: Marginal, wanted: np.ndarray) -> np.ndarray:
    """Latent correlation row for a wanted output row, refused when it is not positive.

    Raises:
        InputError: When the latent row has an eigenvalue clearly below zero, so that no Gaussian
            has it.
    """
    wanted = np.asarray(wanted, dtype=np.float64)
    row = marginal.latent_correlation(wanted)
    row.flat[0] = 1.0
    smallest = float(np.fft.fftn(row).real.min())
    if smallest < -1e-9:
        raise InputError(
            "No Gaussian copula with this marginal has the wanted correlations: the latent row has "
            f"an eigenvalue of {smallest:.3g}. Ask for weaker or more slowly varying correlations, "
            "or use another marginal."
        )
    return row
