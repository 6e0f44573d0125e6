"""The paper's amplifier: how the marginal of one site bends a ReLU neuron's response.

φ(a) = E[X erf(X alg⁻¹(a)/√2)] for X of unit variance, alg⁻¹(a) = a/√(1 − a²). It turns the
correlation a = (Σw)ᵢ/(σ s) of a site with the neuron's input into the site's mean behind the gate,
fᵢ ≈ (σ/2) φ(a): a straight line for normal data, bent upwards (localization) or downwards by the
shape of the marginal.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ..._spec import Count, number_values
from ...errors import InputError, show
from ...marginals import Empirical, Marginal, Normal, Uniform

SLOPE = math.sqrt(2 / math.pi)  # φ'(0) of every marginal; φ(a)/a of the normal one
MAX_BETA = 1e100  # in place of ∞: |a| = 1 to the last bit, and its product with zero is zero
CORRELATION_ROUNDING = 1e-12  # a computed correlation may exceed 1 by this much
BLOCK_NUMBERS = 2**20  # numbers held at a time: 8 MB
MAX_NODES = 2048  # beyond, nodes are condensed

# erf(β x/√2) as a function of ln β or of ln x is analytic and bounded in the strip |Im| < π/4. So
# one piecewise polynomial grid with panels in proportion to β serves all marginals (8 panels per
# octave of degree 9: error 2e-15), and any number of samples can be moved to 28 Chebyshev points
# for each unit of ln x without loss.
LOWEST, HIGHEST = -41, 44  # ends in log₂ β; beyond, φ is a line or constant to 1e-12
BITS = 3  # 2^BITS panels per octave
TERMS = 10
CHEBYSHEV_POINTS = 28


class AmplifierTable(eqx.Module):
    """An amplifier for compiled code: φ as a function of β = a/√(1 − a²), to 1e-14 in float64.

    φ/a is a piecewise polynomial in |β|. All tables have the same shape, so that they stack.
    """

    # (term, panel): coefficients of powers of the place within a panel, which runs from −1 to 1
    coefficients: jax.Array

    def __call__(self, beta: jax.Array) -> jax.Array:
        """φ at ratios of any shape, infinite ones included, in their precision."""
        info = jnp.finfo(beta.dtype)
        size = jnp.clip(jnp.abs(beta), 2.0**LOWEST, 2.0**HIGHEST * (1 - float(info.epsneg)))
        # The first bits of a number are its panel: the exponent is the octave, and the mantissa
        # begins with the place in it. A logarithm would take longer than all else here.
        integer = jnp.int64 if info.bits == 64 else jnp.int32
        bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(size), integer)
        octave = bits >> jnp.asarray(info.nmant, integer)
        panel = bits >> jnp.asarray(info.nmant - BITS, integer)
        bias = 1 - int(info.minexp)  # the exponent of 1
        # 1/2^octave, made from its bits, so that `size * scale` lies in [1, 2) exactly.
        scale = jax.lax.bitcast_convert_type(
            (2 * bias - octave) << jnp.asarray(info.nmant, integer), beta.dtype
        )
        left = ((panel & (2**BITS - 1)) + 2**BITS).astype(beta.dtype)
        part = 2 * (2**BITS * (size * scale) - left) - 1
        index = panel - ((LOWEST + bias) << BITS)
        bend = self.coefficients[-1][index]
        for row in self.coefficients[-2::-1]:
            bend = bend * part + row[index]
        # Not `size`: near zero φ must keep the sign and the derivative of β.
        beta = jnp.clip(beta, -(2.0**HIGHEST), 2.0**HIGHEST)
        return beta / jnp.sqrt(1 + beta**2) * bend


@dataclasses.dataclass(frozen=True, eq=False)
class Amplifier:
    """The amplifier of a marginal, standardized to mean 0 and variance 1.

    For data with standard deviation σ the response is f_i ≈ (σ/2) φ(a_i) with the correlation
    a_i = (Σw)_i/(σ s). (The paper prints the form for σ = 1; used as printed at another σ its
    argument leaves [−1, 1].) φ depends on X only through |X − mean|.

    Args:
        marginal: Any marginal without swept numbers.

    Example:
        >>> from localfields.marginals import Algebraic, TwoPoint
        >>> float(Amplifier(TwoPoint())(0.5).round(6))  # erf(0.5/√1.5)
        0.436297
        >>> heavy = Amplifier(Algebraic(k=5.0))  # below the line for small a, above it for large a
        >>> heavy.crossings().round(4)
        array([0.6695])

    Raises:
        InputError: If `marginal` is not a single marginal.
    """

    marginal: Marginal

    def __post_init__(self):
        if not isinstance(self.marginal, Marginal):
            raise InputError(
                f"`marginal` must be a marginal, got {show(self.marginal)}. "
                "For example Amplifier(marginals.Uniform())."
            )
        for name, value in number_values(self.marginal):
            if np.ndim(value):
                raise InputError(
                    f"`{name}` of the marginal must be one number, got {np.size(value)} values. "
                    "Make one amplifier per marginal; their tables stack."
                )

    @classmethod
    def of_samples(cls, samples: Any) -> Amplifier:
        """The amplifier of observed values, of any shape; see `error` for its standard error."""
        return cls(Empirical(np.ravel(_numbers("`samples`", samples))))

    def __call__(self, a: Any) -> np.ndarray:
        """φ(a), to 1e-12 for every a in [−1, 1], the ends included.

        Args:
            a: Correlations, of any shape.

        Raises:
            InputError: For a beyond ±1.
        """
        return self.of_ratio(_ratio(_correlations(a)))

    def of_ratio(self, beta: Any) -> np.ndarray:
        """φ as a function of β = a/√(1 − a²), which keeps the digits that 1 − a² loses.

        Args:
            beta: Ratios (Σw)_i/√(σ²s² − (Σw)_i²), of any shape; ±∞ is a = ±1.
        """
        beta = _numbers("A ratio", beta)
        if isinstance(self.marginal, Normal):
            return np.asarray(SLOPE * _correlation(beta))
        values = self._mean(lambda x, b: scipy.special.erf(x * b * math.sqrt(0.5)), beta)
        return _uniform(beta, values) if isinstance(self.marginal, Uniform) else values

    def derivative(self, a: Any, order: int = 1) -> np.ndarray:
        """The first, second or third derivative of φ with respect to a.

        With u = 1/(1 − a²) and S_n = E[Xⁿ exp(−X²β²/2)]: φ' = √(2/π) u^(3/2) S₂, φ'' = √(2/π) β u²
        (3S₂ − uS₄), φ''' = √(2/π) u^(5/2) [(u + 4β²)(3S₂ − uS₄) + β²u(uS₆ − 5S₄)]. At 0 the third
        is −√(2/π) times the excess kurtosis, −∞ if the tail index is at most 4; the second does not
        exist there (nan) if the index is at most 3. Near |a| = 1 the second and third lose digits,
        as their terms cancel.

        Args:
            a: Correlations strictly between −1 and 1, of any shape.
            order: 1, 2 or 3.
        """
        order = Count(low=1, high=3, hint="Differentiate `table()` with jax for more.").check(
            "order", order
        )
        a = _correlations(a)
        if np.any(np.abs(a) >= 1):
            raise InputError(
                "Derivatives exist strictly between −1 and 1 only, got a correlation of ±1. "
                "Go near the end instead."
            )
        beta = _ratio(a)
        u = 1 + beta**2
        if order == 1:
            return np.where(a == 0, SLOPE, u**1.5 * self._slope(beta))
        s2, s4, s6 = self._slope(beta), self._slope(beta, 4), self._slope(beta, 6)
        bent = 3 * s2 - u * s4
        if order == 2:
            at_zero = 0.0 if self.marginal.tail_index > 3 else math.nan
            return np.where(a == 0, at_zero, beta * u**2 * bent)
        values = u**2.5 * ((u + 4 * beta**2) * bent + beta**2 * u * (u * s6 - 5 * s4))
        return np.where(a == 0, -SLOPE * self.marginal.excess_kurtosis, values)

    def taylor(self, order: int = 3) -> np.polynomial.Polynomial:
        """The Taylor polynomial of φ at 0 to an odd order; at order 3, √(2/π) (a − κ_ex a³/6).

        The coefficient of a^(2n+1) is
        √(2/π) Σ_{j≤n} (−1)^j E[X^(2j+2)]/(2^j j! (2j+1)) · (j+½)_(n−j)/(n−j)!.

        Raises:
            InputError: If the moment of order + 1 is infinite, so that φ has no such expansion.
        """
        order = Count(low=1, high=101, hint="Order 3 is the paper's.").check("order", order)
        if order % 2 == 0:
            raise InputError(
                f"`order` must be odd, got {order}. φ is odd: the even powers are absent. Use 3."
            )
        if 1 < order >= self.marginal.tail_index - 1:
            raise InputError(
                f"An expansion to order {order} needs a finite moment of order {order + 1}, got "
                f"{show(self.marginal)} with tail index {self.marginal.tail_index:g}. "
                "Use the amplifier itself, which is finite."
            )
        half = order // 2 + 1
        moments = [1.0] + [
            self.marginal.abs_moment(2 * j + 2) / self.sd ** (2 * j + 2) for j in range(1, half)
        ]
        coefficients = np.zeros(order + 1)
        for n in range(half):
            for j in range(n + 1):
                inner = (-1) ** j * moments[j] / (2**j * math.factorial(j) * (2 * j + 1))
                rise = float(scipy.special.poch(j + 0.5, n - j)) / math.factorial(n - j)
                coefficients[2 * n + 1] += SLOPE * inner * rise
        return np.polynomial.Polynomial(coefficients, symbol="a")

    @functools.cached_property
    def sd(self) -> float:
        """Standard deviation σ of the marginal before it is standardized."""
        return float(self.marginal.sd)

    @functools.cached_property
    def limit(self) -> float:
        """φ(1) = E|X − mean|/σ."""
        return self.marginal.mean_abs / self.sd

    def excess(self, a: Any) -> np.ndarray:
        """φ(a) − √(2/π) a: for a > 0, positive where φ is super-linear."""
        a = _correlations(a)
        return np.asarray(self.of_ratio(_ratio(a)) - SLOPE * a)

    @functools.cached_property
    def index(self) -> float:
        """2∫₀¹ (φ(a)/√(2/π) − a) da: 0 for normal data, positive if super-linear on average."""
        # The integral has a closed form: √(2π) E[|X| (1 − erfcx(|X|/√2))] − 1.
        x, mass = self.nodes
        mean = float(np.sum(mass * (1 - scipy.special.erfcx(x * math.sqrt(0.5)))))
        return math.sqrt(2 * math.pi) * mean - 1

    def elasticity(self, a: Any) -> np.ndarray:
        """Percent of response per percent of correlation, aφ'(a)/φ(a); 1 for a line, and at 0."""
        a = _correlations(a)
        slope, value = self.derivative(a), self.of_ratio(_ratio(a))
        return np.where(a == 0, 1.0, a * slope / np.where(a == 0, 1.0, value))

    def crossings(self) -> np.ndarray:
        """The correlations in (0, 1) where `excess` changes sign, in rising order, to 1e-8."""
        from scipy.optimize import brentq

        # On a grid of ln β: beyond its ends φ is a line or constant, and crosses nothing.
        logs = np.arange(-14.0, 14.0, 1 / 16)
        bend = self._bend(np.exp(logs))
        significant = np.abs(bend) > 1e-11  # the rest may be rounding
        logs, bend = logs[significant], bend[significant]

        def bend_at(log: float) -> float:
            return float(self._bend(np.asarray(math.exp(log))))

        turns = np.flatnonzero(np.sign(bend[1:]) != np.sign(bend[:-1]))
        roots = [brentq(bend_at, logs[i], logs[i + 1], xtol=1e-13) for i in turns]
        return _correlation(np.exp(np.array(roots, dtype=np.float64)))

    def _bend(self, beta: np.ndarray) -> np.ndarray:
        return np.asarray(self.of_ratio(beta) / _correlation(beta) - SLOPE)

    def error(self, a: Any) -> np.ndarray:
        """Standard error of φ(a) for independent samples with estimated mean and variance.

        The standard deviation of the influence h(X) − φ − (φ + β dφ/dβ)(X² − 1)/2 − E[h'(X)] X of
        one value, with h(x) = x erf(xβ/√2), over √n. The last two terms stand for the estimated
        variance and mean. Weighted samples count as n = 1/Σp².

        Raises:
            InputError: If the marginal is not `Empirical`.
        """
        sampled = self.marginal
        if not isinstance(sampled, Empirical):
            raise InputError(
                f"Only an Empirical marginal has a standard error, got {show(sampled)}, whose "
                "amplifier is exact."
            )
        ratio = np.clip(_ratio(_correlations(a)), -MAX_BETA, MAX_BETA)
        x = (sampled.values - sampled.mean) / self.sd
        p = np.diff(sampled.mass, prepend=0.0)
        result = np.empty(ratio.shape)
        for place, beta in np.ndenumerate(ratio):
            gate = scipy.special.erf(x * beta * math.sqrt(0.5))
            steep = SLOPE * beta * x * np.exp(-0.5 * (x * beta) ** 2)
            value = np.sum(p * x * gate)
            scale = value + np.sum(p * x * steep)
            influence = x * gate - value - scale * (x**2 - 1) / 2 - np.sum(p * (gate + steep)) * x
            result[place] = math.sqrt(np.sum(p * influence**2) * np.sum(p**2))
        return result

    @functools.cached_property
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes x = |X − mean|/σ and their masses p x, for sums φ = Σ mass · erf(xβ/√2)."""
        x, p = self.marginal.nodes()
        x = x / self.sd
        return (x, p * x) if x.size <= MAX_NODES else _condensed(x, p * x)

    def _mean(self, function: Any, beta: np.ndarray) -> np.ndarray:
        x, mass = self.nodes
        flat = np.clip(beta.ravel(), -MAX_BETA, MAX_BETA)
        result = np.empty(flat.shape)
        step = max(1, BLOCK_NUMBERS // x.size)
        for start in range(0, flat.size, step):
            result[start : start + step] = function(x, flat[start : start + step, None]) @ mass
        return result.reshape(beta.shape)

    def _slope(self, beta: np.ndarray, power: int = 2) -> np.ndarray:
        # √(2/π) S_power; that of power 2 is dφ/dβ.
        return self._mean(lambda x, b: SLOPE * x ** (power - 1) * np.exp(-0.5 * (x * b) ** 2), beta)

    def table(self) -> AmplifierTable:
        """The amplifier for compiled code, in float64; takes about 50 ms."""
        part = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
        octave, place = np.divmod(np.arange(LOWEST << BITS, HIGHEST << BITS), 2**BITS)
        beta = 2.0**octave * (1 + (place + (1 + part[:, None]) / 2) / 2**BITS)
        bend = self.of_ratio(beta) / _correlation(beta)
        with jax.enable_x64(True):
            coefficients = np.linalg.solve(np.vander(part, increasing=True), bend)
            return AmplifierTable(jnp.asarray(coefficients))


def _condensed(x: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fewer nodes, with masses of either sign, that have the same amplifier to 1e-14.

    On each unit of ln x a function of x equals its interpolant at Chebyshev points, so that a
    node's mass can be distributed over those points by their cardinal polynomials.
    """
    sizable = x > 1e-15  # the rest adds less than that
    logs, mass = np.log(x[sizable]), mass[sizable]
    unit = np.floor(logs).astype(np.int64)
    first = int(unit.min())
    unit -= first
    angle = np.pi * (np.arange(CHEBYSHEV_POINTS) + 0.5) / CHEBYSHEV_POINTS
    part = 2 * (logs - first - unit) - 1
    # Mass times Chebyshev polynomials, by the recurrence T_{n+1} = 2x T_n − T_{n−1}.
    previous, current = mass, part * mass
    shares = np.bincount(unit, previous)[:, None] / CHEBYSHEV_POINTS
    for n in range(1, CHEBYSHEV_POINTS):
        shares = shares + np.bincount(unit, current)[:, None] * np.cos(n * angle) * (
            2 / CHEBYSHEV_POINTS
        )
        previous, current = current, 2 * part * current - previous
    points = np.exp(first + np.arange(shares.shape[0])[:, None] + (1 + np.cos(angle)) / 2)
    full = np.abs(shares).max(axis=1) > 0
    return points[full].ravel(), shares[full].ravel()


def _uniform(beta: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The closed form of a uniform marginal unless its terms cancel; else the given values."""
    q = np.sqrt(1.5) * np.clip(np.abs(beta), 0.1, MAX_BETA)  # √3 β/√2
    error = scipy.special.erf(q)
    closed = (
        math.sqrt(3) / 2 * (error - error / (2 * q**2) + np.exp(-(q**2)) / (q * math.sqrt(math.pi)))
    )
    return np.where(np.abs(beta) < 0.1, values, np.copysign(closed, beta))


def _numbers(
    name: str, given: Any, advice: str = "Give a number or an array of numbers."
) -> np.ndarray:
    try:
        values = np.asarray(given)
        if values.size and values.dtype.kind not in "iuf":
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {show(given)}. {advice}") from None
    if np.isnan(values).any():
        raise InputError(f"{name} must be a number, got nan. {advice}")
    return values


def _correlations(given: Any) -> np.ndarray:
    advice = "It is (Σw)_i/(σ s): divide by the standard deviation σ and by s = √(wᵀΣw)."
    a = _numbers("A correlation", given, advice)
    beyond = a[np.abs(a) > 1 + CORRELATION_ROUNDING]
    if beyond.size:
        raise InputError(
            f"A correlation must be between −1 and 1, got {float(beyond.flat[0])}. {advice}"
        )
    return np.asarray(np.clip(a, -1, 1))


def _ratio(a: np.ndarray) -> np.ndarray:
    """β = a/√(1 − a²), from factors that rounding leaves exact."""
    with np.errstate(divide="ignore"):
        return np.asarray(a / np.sqrt((1 - a) * (1 + a)))


def _correlation(beta: Any) -> np.ndarray:
    """The correlation a = β/√(1 + β²) of a ratio."""
    beta = np.clip(beta, -MAX_BETA, MAX_BETA)
    return np.asarray(beta / np.hypot(1, beta))
