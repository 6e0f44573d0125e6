"""Distributions with numerical quantiles: Student t, mixture, tables, samples, spheres.

Their maps from a normal are tabulated once, when the value is made, on a grid of normal scores;
compiled code interpolates. The grid ends at z = ±8, beyond which a draw falls once in 10¹⁵.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.special
from jax.core import Tracer

from .._spec import Count, Row, declare, derived, number, number_values, required
from .._types import Array, Real, Whole, namespace
from ..errors import InputError, shorten, show
from .base import SCALE, STANDARD_TOL, STATISTICS, Marginal, SymmetricMarginal, uniform_rule

GRID_END, GRID_STEP = 8.0, 1 / 256
GRID = np.arange(-2048, 2049) * GRID_STEP


def interpolate(table: Any, z: Any) -> Any:
    """Value at z of a function tabulated on `GRID`; constant beyond its ends."""
    xp, _ = namespace(z, table)
    place = xp.clip((z + GRID_END) / GRID_STEP, 0, len(GRID) - 1)
    left = xp.minimum(xp.floor(place).astype(xp.int32), len(GRID) - 2)
    part = place - left
    table = xp.asarray(table)
    low, high = table[left], table[left + 1]
    return (low + (high - low) * part).astype(z.dtype)


class TabulatedMarginal(SymmetricMarginal):
    """A symmetric distribution with a numerical quantile, tabulated for compiled code."""

    table = required(np.ndarray)

    def tabulate(self) -> np.ndarray:
        """The map from a standard normal on `GRID`, at unit variance; one row per member."""
        for name, value in number_values(self):
            if isinstance(value, Tracer):
                raise InputError(
                    f"`{name}` of {type(self).__name__} must be known before compilation, got a "
                    "traced value. Create the marginal outside jit and pass it in."
                )
        above = GRID[len(GRID) // 2 + 1 :]
        z = above * math.sqrt(0.5)
        half = np.asarray(self.size(scipy.special.erf(z), scipy.special.erfc(z)))
        return np.concatenate([-half[::-1], [0.0], half])

    def from_normal(self, z: Any) -> Any:
        """Q(Φ(z)): exact in numpy, from the table in compiled code."""
        if isinstance(z, jax.Array):
            return self.scale * interpolate(self.table, z)
        return super().from_normal(z)


class StudentT(TabulatedMarginal):
    """Student's t with ν > 2, at unit variance. Excess kurtosis 6/(ν − 4), ∞ for ν ≤ 4.

    Example:
        >>> StudentT(nu=3.0).kurtosis, round(StudentT(nu=3.0).mean_abs, 6)
        (inf, 0.63662)
    """

    nu: Real = number(
        default=5.0,
        low=2,
        symbol="ν",
        help="degrees of freedom: moments of order ν and above are infinite",
        hint="At ν ≤ 2 the variance is infinite.",
    )
    scale: Real = declare(SCALE, default=1.0)
    table: np.ndarray = derived(lambda marginal: marginal.tabulate())

    @property
    def tail_index(self) -> float:
        """The degrees of freedom, ν."""
        self.require_one(STATISTICS)
        return float(self.nu)

    def size(self, v: Any, delta: Any) -> Any:
        """By the inverse incomplete beta function, from the side that keeps its digits."""
        # |T| = √(ν(1 − y)/y) with P(|T| > x) = I_y(ν/2, ½).
        tail = scipy.special.betaincinv(self.nu / 2, 0.5, np.minimum(delta, 0.5))
        center = scipy.special.betaincinv(0.5, self.nu / 2, np.minimum(v, 0.5))
        square = np.where(v < 0.5, center / (1 - center), (1 - tail) / np.maximum(tail, 1e-300))
        return np.sqrt((self.nu - 2) * square)

    def size_cdf(self, x: Any) -> Any:
        """1 − I_y(ν/2, ½) at y = ν/(ν + t²)."""
        square = np.asarray(x, dtype=np.float64) ** 2 / (self.nu - 2)
        return scipy.special.betainc(0.5, self.nu / 2, square / (1 + square))

    def _unit_moment(self, order: float) -> float:
        log = scipy.special.gammaln((order + 1) / 2) + scipy.special.gammaln((self.nu - order) / 2)
        log -= scipy.special.gammaln(self.nu / 2) + 0.5 * math.log(math.pi)
        return float((self.nu - 2) ** (order / 2) * math.exp(log))


class NormalMixture(TabulatedMarginal):
    """Two normals at ±m, equal weights, total variance 1: from normal towards two-point.

    Excess kurtosis −2m⁴ exactly.

    Example:
        >>> round(NormalMixture(separation=0.9).excess_kurtosis, 12)
        -1.3122
    """

    separation: Real = number(
        default=0.8,
        low=0,
        high=0.9,
        closed=True,
        symbol="m",
        help="distance of each center from zero, in standard deviations of the whole",
        hint="Closer to two points use `ErfNormal` at a high gain, or `TwoPoint`. "
        "At 0 it is `Normal`.",
    )
    scale: Real = declare(SCALE, default=1.0)
    table: np.ndarray = derived(lambda marginal: marginal.tabulate())

    @property
    def width(self) -> float:
        """Standard deviation of each normal, √(1 − m²)."""
        self.require_one(STATISTICS)
        return math.sqrt((1 - self.separation) * (1 + self.separation))

    def _exceeds(self, x: Any) -> Any:
        return scipy.special.ndtr((self.separation - x) / self.width) + scipy.special.ndtr(
            -(self.separation + x) / self.width
        )

    def size_cdf(self, x: Any) -> Any:
        """Φ((x − m)/s) − Φ((−x − m)/s)."""
        return 1 - self._exceeds(np.asarray(x, dtype=np.float64))

    def size(self, v: Any, delta: Any) -> Any:
        """By bisection on the tail probability; near zero from the density, which is flat there."""
        v, delta = np.asarray(v, dtype=np.float64), np.asarray(delta, dtype=np.float64)
        m, s = self.separation, self.width
        low, high = np.zeros(v.shape), np.full(v.shape, m + 40.0 * s)
        for _ in range(80):
            middle = (low + high) / 2
            over = self._exceeds(middle) > delta
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        at_zero = math.exp(-0.5 * (m / s) ** 2) / (s * math.sqrt(2 * math.pi))
        first = v / (2 * at_zero) if at_zero > 1e-250 else np.full(v.shape, np.inf)
        # f(x) = f(0)(1 + c x² + …), so P(|X| < x) = 2f(0)(x + c x³/3): inverted to third order
        # where x is small.
        curve = ((m / s) ** 2 - 1) / (2 * s**2)
        near = first < 1e-4 * s
        first = np.where(near, first, 0.0)
        return np.where(near, first * (1 - curve * first**2 / 3), (low + high) / 2)

    def _unit_moment(self, order: float) -> float:
        m, s = self.separation, self.width
        if order == 1:
            folded = s * math.sqrt(2 / math.pi) * math.exp(-0.5 * (m / s) ** 2)
            return folded + m * math.erf(m / (s * math.sqrt(2)))
        if order == 2:
            return 1.0
        if order == 4:
            return 3.0 - 2.0 * m**4
        return super()._unit_moment(order)


class Tabulated(Marginal):
    """Any distribution, from its quantiles at 4097 equally spaced normal scores between −8 and 8.

    Use `Tabulated.of(quantile)` to make one from a function. Between the scores the quantile is
    linear, and every statistic here is exact for that distribution: the one that is sampled.
    """

    table: Array = declare(
        Row(), default=tuple(GRID), symbol="Q", help="increasing quantiles at the normal scores"
    )

    def __check_init__(self):
        """Refuse a table that is no quantile function."""
        if isinstance(self.table, Tracer):
            return
        if self.table.shape != GRID.shape:
            raise InputError(
                f"`table` must have {len(GRID)} quantiles, got shape {self.table.shape}. "
                "Use `Tabulated.of(quantile_function)`."
            )
        if np.any(np.diff(self.table) < 0) or self.table[0] == self.table[-1]:
            raise InputError(
                "`table` must increase: quantiles rise with u, and these fall or are constant."
            )

    @classmethod
    def of(cls, quantile: Callable[[np.ndarray], Any]) -> Tabulated:
        """Tabulate a quantile function u ↦ x, called once with an array of 0 < u < 1.

        Example:
            >>> marginal = Tabulated.of(lambda u: np.log(u / (1 - u)))  # logistic
            >>> round(marginal.kurtosis, 3)
            4.2
        """
        u = scipy.special.ndtr(GRID)
        try:
            values = np.asarray(quantile(u), dtype=np.float64)
        except Exception as error:
            raise InputError(
                f"The quantile function failed: {shorten(error)}. "
                "It is called once with an array of numbers between 0 and 1."
            ) from None
        if values.shape != u.shape or not np.isfinite(values).all():
            wrong_shape = values.shape != u.shape
            problem = f"shape {values.shape}" if wrong_shape else "nan or infinite values"
            raise InputError(
                f"The quantile function returned {problem}. It must return one finite number for "
                "each u; check it near 0 and 1."
            )
        return cls(np.maximum.accumulate(values) if _nearly_rising(values) else values)

    def panels(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and weights of X: four points per panel, exact for a piecewise linear quantile."""
        points, weights = np.polynomial.legendre.leggauss(4)
        z = (GRID[:-1, None] + GRID_STEP * (1 + points)[None, :] / 2).ravel()
        widths = np.tile(GRID_STEP / 2 * weights, len(GRID) - 1)
        p = widths * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        return interpolate(self.table, z), p / p.sum()

    def condensed(self, groups: int = 128) -> tuple[np.ndarray, np.ndarray]:
        """Fewer values and weights: two per group of scores, with its first four moments."""
        x, p = (part.reshape(groups, -1) for part in self.panels())
        mass = p.sum(axis=1)
        p = p / mass[:, None]
        middle = np.sum(p * x, axis=1)
        off = x - middle[:, None]
        spread = np.sqrt(np.sum(p * off**2, axis=1))
        safe = np.where(spread > 0, spread, 1.0)
        skew = np.sum(p * off**3, axis=1) / safe**3
        half = np.sqrt(1 + skew**2 / 4)
        share = 0.5 * (1 - skew / (2 * half))  # of the upper point, at skew/2 + half
        values = np.concatenate(
            [middle + spread * (skew / 2 + half), middle + spread * (skew / 2 - half)]
        )
        return values, np.concatenate([mass * share, mass * (1 - share)])

    @property
    def mean(self) -> float:
        """Mean."""
        x, p = self.panels()
        return float(np.sum(p * x))

    @property
    def sd(self) -> float:
        """Standard deviation."""
        x, p = self.panels()
        return math.sqrt(float(np.sum(p * (x - np.sum(p * x)) ** 2)))

    @property
    def symmetric(self) -> bool:
        """Whether the table is odd about its middle."""
        # Beyond |z| = 5 (once in 10⁶ draws) u itself has too few digits near 1 to tell.
        inner = self.table[2048 - 1280 : 2048 + 1281] - self.table[2048]
        odd, size = inner + inner[::-1], np.abs(inner) + np.abs(inner[::-1])
        return bool(np.all(np.abs(odd) <= 1e-6 * size + 1e-12 * size.max()))

    def cdf(self, x: Any) -> Any:
        """Φ of the interpolated score."""
        x = np.asarray(x, dtype=np.float64)
        inside = scipy.special.ndtr(np.interp(x, self.table, GRID))
        return np.where(x < self.table[0], 0.0, np.where(x >= self.table[-1], 1.0, inside))

    def from_normal(self, z: Any) -> Any:
        """Interpolated at z."""
        return interpolate(self.table, z)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of |X − mean|: four a panel of the table."""
        x, p = self.panels()
        return np.abs(x - np.sum(p * x)), p

    def standardized(self) -> Tabulated:
        """The same distribution at mean zero and unit variance."""
        return self if _is_standard(self) else Tabulated((self.table - self.mean) / self.sd)


def as_marginal(name: str, value: Any) -> Any:
    """A quantile function of a user's own as a distribution; anything else as it is given."""
    return Tabulated.of(value) if callable(value) else value


def _is_standard(marginal: Marginal) -> bool:
    return abs(marginal.mean) <= STANDARD_TOL and abs(marginal.sd - 1) <= STANDARD_TOL


def _nearly_rising(values: np.ndarray) -> bool:
    # Rounding of u near 1 may make a rising function dip by a few ulps.
    return bool(np.diff(values).min() >= -1e-6 * (np.abs(values).max() + 1e-300))


class Empirical(Marginal):
    """The distribution of samples, each value with its weight; a single weight means equal ones.

    Example:
        >>> round(Empirical([0.0, 1.0], weights=[0.75, 0.25]).variance, 12)
        0.1875
    """

    samples: Array = declare(Row(), default=(-1.0, 1.0), symbol="x", help="observed values")
    weights: Array = declare(
        Row(), default=(1.0,), symbol="p", help="their weights; one number: equal"
    )
    values: np.ndarray = derived(lambda marginal: np.sort(marginal.samples))
    mass: np.ndarray = derived(lambda marginal: marginal._mass())

    def __check_init__(self):
        """Refuse data that do not vary."""
        if isinstance(self.samples, Tracer) or isinstance(self.weights, Tracer):
            return
        if np.ptp(self.values[self._probabilities() > 0]) == 0:
            raise InputError("`samples` has only one value. Give at least two different ones.")

    def _mass(self) -> np.ndarray:
        wrong_size = self.weights.size not in (1, self.samples.size)
        if wrong_size or self.weights.min() < 0 or self.weights.sum() <= 0:
            raise InputError(
                f"`weights` must be one number or {self.samples.size} numbers, none negative, "
                f"got {show(self.weights)}. Leave it out for equal weights."
            )
        order = np.argsort(self.samples, kind="stable")
        weights = np.broadcast_to(self.weights, self.samples.shape)[order]
        return np.cumsum(weights) / np.sum(weights)

    def _probabilities(self) -> np.ndarray:
        return np.diff(self.mass, prepend=0.0)

    @property
    def mean(self) -> float:
        """Mean."""
        return float(np.sum(self._probabilities() * self.values))

    @property
    def sd(self) -> float:
        """Standard deviation, with the weights as probabilities (no small-sample correction)."""
        return math.sqrt(float(np.sum(self._probabilities() * (self.values - self.mean) ** 2)))

    @property
    def symmetric(self) -> bool:
        """Whether values and weights mirror about zero, exactly."""
        rounding = 1e-12 * np.abs(self.values).max()
        same = np.allclose(self.values, -self.values[::-1], rtol=0, atol=rounding)
        return bool(
            same
            and np.allclose(self._probabilities(), self._probabilities()[::-1], rtol=0, atol=1e-12)
        )

    def cdf(self, x: Any) -> Any:
        """Mass at or below x."""
        place = np.searchsorted(self.values, x, side="right")
        return np.concatenate([[0.0], self.mass])[place]

    def quantile(self, u: Any) -> Any:
        """The smallest value whose cumulated mass reaches u."""
        xp, _ = namespace(u)
        place = xp.searchsorted(xp.asarray(self.mass), u, side="left")
        return xp.asarray(self.values)[xp.minimum(place, len(self.values) - 1)]

    def from_normal(self, z: Any) -> Any:
        """The quantile at Φ(z)."""
        _, special = namespace(z)
        return self.quantile(special.ndtr(z)).astype(z.dtype)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples themselves."""
        return np.abs(self.values - self.mean), self._probabilities()

    def standardized(self) -> Empirical:
        """The same samples at mean zero and unit variance."""
        if _is_standard(self):
            return self
        return Empirical((self.samples - self.mean) / self.sd, self.weights)

    def hermite(self, order: int = 401) -> np.ndarray:
        """Closed form of a step function: each step at z adds Δx He_{n−1}(z)φ(z)/√n!."""
        z = scipy.special.ndtri(self.mass[:-1])
        steps = np.diff(self.values) / self.sd
        keep = (steps > 0) & np.isfinite(z)
        z, steps = z[keep], steps[keep]
        base = np.exp(-(z**2) / 4) / (2 * np.pi) ** 0.25
        psi, previous = base, np.zeros_like(base)
        coefficients = np.zeros(order + 1)
        for n in range(1, order + 1):
            coefficients[n] = np.sum(steps * psi * base) / math.sqrt(n)
            psi, previous = (z * psi - math.sqrt(n - 1) * previous) / math.sqrt(n), psi
        return coefficients


class SphereProjection(SymmetricMarginal):
    """One coordinate of R·U, U uniform on a sphere in D dimensions: an elliptical marginal.

    The radius is given by nodes and weights; it is rescaled so that E R² = D, hence unit variance.

    Example:
        >>> round(SphereProjection(dimension=40).kurtosis, 6)  # 3D/(D + 2)
        2.857143
    """

    dimension: Whole = declare(
        Count(low=2), default=40, symbol="D", help="dimension of the sphere's space"
    )
    radii: Array = declare(Row(), default=(1.0,), symbol="R", help="radii, in any unit")
    weights: Array = declare(Row(), default=(1.0,), symbol="p", help="their probabilities")
    scale: Real = declare(SCALE, default=1.0)

    def __check_init__(self):
        """Check that radii and weights are a distribution."""
        if isinstance(self.radii, Tracer) or isinstance(self.weights, Tracer):
            return
        if self.weights.shape != self.radii.shape or self.weights.min() < 0:
            raise InputError(
                f"`weights` must be {self.radii.size} numbers, one per radius, none negative, "
                f"got {show(self.weights)}."
            )
        if self.radii.min() < -1e-9 * self.radii.max() or np.sum(self.weights * self.radii**2) <= 0:
            raise InputError(f"`radii` must not be negative, nor all zero, got {show(self.radii)}.")

    def _radii(self) -> tuple[np.ndarray, np.ndarray]:
        weights = self.weights / self.weights.sum()
        return self.radii * math.sqrt(self.dimension / np.sum(weights * self.radii**2)), weights

    def size_cdf(self, x: Any) -> Any:
        """Mean over the radius of I_{(x/R)²}(½, (D − 1)/2)."""
        radii, weights = self._radii()
        x = np.asarray(x, dtype=np.float64)
        square = np.minimum((x[..., None] / radii) ** 2, 1.0)
        inside = scipy.special.betainc(0.5, (self.dimension - 1) / 2, square)
        return np.sum(weights * inside, axis=-1)

    def size(self, v: Any, delta: Any) -> Any:
        """Inverse incomplete beta function for one radius, bisection for several."""
        radii, _ = self._radii()
        v = np.asarray(v, dtype=np.float64)
        if len(radii) == 1:
            return radii[0] * np.sqrt(scipy.special.betaincinv(0.5, (self.dimension - 1) / 2, v))
        low, high = np.zeros(v.shape), np.full(v.shape, radii.max())
        for _ in range(60):
            middle = (low + high) / 2
            under = self.size_cdf(middle) < v
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return (low + high) / 2

    def from_normal(self, z: Any) -> Any:
        """Q(Φ(z)), in numpy alone."""
        if isinstance(z, jax.Array):
            raise InputError(
                "A copula cannot sample the projection of a sphere. Use the elliptical stimulus "
                "itself."
            )
        return super().from_normal(z)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Product of the radius's nodes with those of |U|."""
        self.require_one(STATISTICS)
        radii, weights = self._radii()
        v, delta, p = uniform_rule()
        b = (self.dimension - 1) / 2
        square = np.where(
            v < 0.5,
            scipy.special.betaincinv(0.5, b, np.minimum(v, 0.5)),
            1 - scipy.special.betaincinv(b, 0.5, np.minimum(delta, 0.5)),
        )
        x = self.scale * radii[:, None] * np.sqrt(square)[None, :]
        return x.ravel(), (weights[:, None] * p[None, :]).ravel()

    def _unit_moment(self, order: float) -> float:
        radii, weights = self._radii()
        b = (self.dimension - 1) / 2
        log = scipy.special.betaln((order + 1) / 2, b) - scipy.special.betaln(0.5, b)
        return float(np.sum(weights * radii**order)) * math.exp(log)
