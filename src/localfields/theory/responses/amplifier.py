"""The paper's amplifier: how a law of one coordinate bends the response of a ReLU neuron away from a linear one.

φ(a) = E[X erf(X alg⁻¹(a)/√2)] for X at unit variance, alg⁻¹(a) = a/√(1 − a²). It turns the correlation
a = (Σw)ᵢ/(σ s) of a coordinate with the neuron's input into the coordinate's mean behind the gate,
fᵢ ≈ (σ/2) φ(a): a straight line for normal data, bent upwards (localization) or downwards by the law's shape.
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
from ...errors import Said, refuse
from ...marginals import Empirical, Marginal, Normal, Uniform

SLOPE = math.sqrt(2 / math.pi)  # φ'(0) of every law; φ(a)/a of the normal one
LARGEST_RATIO = (
    1e100  # in place of ∞: |a| = 1 to the last bit, and its product with a zero is a zero
)
ROUNDING = 1e-12  # a computed correlation may exceed 1 by this much
BLOCK = 2**20  # numbers held at a time: 8 MB
MOST_NODES = 2048  # beyond, nodes are condensed

# erf(β x/√2) as a function of ln β or of ln x is analytic and bounded in the strip |Im| < π/4, whatever the law. So one
# piecewise polynomial grid with panels in proportion to β serves all of them (8 an octave, of degree 9: error 2e-15),
# and any number of samples can be moved to 28 Chebyshev points for each unit of ln x without a trace.
LOWEST, HIGHEST, BITS = (
    -41,
    44,
    3,
)  # ends in log₂ β, 2^BITS panels an octave; beyond φ is a line, or constant, to 1e-12
TERMS = 10
POINTS = 28


class AmplifierTable(eqx.Module):
    """An amplifier for compiled code: φ as a function of β = a/√(1 − a²), to 1e-14 in float64 for every law.

    φ/a is a piecewise polynomial in |β|. All tables have the same shape, so that those of several laws stack.
    """

    coefficients: (
        jax.Array
    )  # (term, panel): powers of the place within the panel, which runs from −1 to 1

    def __call__(self, beta: jax.Array) -> jax.Array:
        """φ at ratios of any shape, infinite ones included; float32 in, with a float32 table, is float32 out."""
        info = jnp.finfo(beta.dtype)
        size = jnp.clip(jnp.abs(beta), 2.0**LOWEST, 2.0**HIGHEST * (1 - float(info.epsneg)))
        # The first bits of a number are its panel: the exponent is the octave, the mantissa begins with the place in
        # it. A logarithm would take longer than all else here.
        word = jnp.int64 if info.bits == 64 else jnp.int32
        bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(size), word)
        panel, octave = (bits >> jnp.asarray(info.nmant - kept, word) for kept in (BITS, 0))
        one = 1 - int(info.minexp)  # the exponent of 1
        scale = jax.lax.bitcast_convert_type(
            (2 * one - octave) << jnp.asarray(info.nmant, word), beta.dtype
        )
        left = ((panel & (2**BITS - 1)) + 2**BITS).astype(beta.dtype)
        part = 2 * (2**BITS * (size * scale) - left) - 1
        index = panel - ((LOWEST + one) << BITS)
        bend = self.coefficients[-1][index]
        for row in self.coefficients[-2::-1]:
            bend = bend * part + row[index]
        beta = jnp.clip(beta, -(2.0**HIGHEST), 2.0**HIGHEST)
        return beta / jnp.sqrt(1 + beta**2) * bend


@dataclasses.dataclass(frozen=True, eq=False)
class Amplifier:
    """The amplifier of a law, standardized: its mean is taken off and its standard deviation, `sd`, divided out.

    For data with standard deviation σ the response is f_i ≈ (σ/2) φ(a_i) with the correlation a_i = (Σw)_i/(σ s). (The
    paper prints the form for σ = 1; used as printed at another σ its argument leaves [−1, 1].)
    φ is even in X, so a law that is not symmetric needs no more than |X − mean|.

    Args:
        marginal: Any law, with no swept numbers.

    Example:
        >>> from localfields.marginals import Algebraic, TwoPoint
        >>> float(Amplifier(TwoPoint())(0.5).round(6))  # erf(0.5/√1.5)
        0.436297
        >>> heavy = Amplifier(Algebraic(k=5.0))  # below the line for small a, above it for large a
        >>> heavy.crossings().round(4)
        array([0.6695])

    Raises:
        InputError: For what is no law, or for several laws at once.
    """

    marginal: Marginal

    def __post_init__(self):
        if not isinstance(self.marginal, Marginal):
            refuse(
                "The law of an Amplifier",
                self.marginal,
                "a marginal",
                "Try Amplifier(marginals.Uniform()).",
            )
        for name, value in number_values(self.marginal):
            if np.ndim(value):
                advice = "Make one amplifier a law; their tables stack."
                refuse(
                    f"`{name}` of the law", Said(f"{np.size(value)} values"), "one number", advice
                )

    @classmethod
    def of_samples(cls, samples: Any) -> Amplifier:
        """The amplifier of observed values, of any shape; `error` tells how far chance may have moved it."""
        return cls(Empirical(np.ravel(_numbers("`samples`", samples))))

    # -- the function -------------------------------------------------------------------------------------------

    def __call__(self, a: Any) -> np.ndarray:
        """φ(a), to 1e-12 for every a in [−1, 1], the ends included.

        Args:
            a: Correlations, of any shape.

        Raises:
            InputError: For a beyond ±1.
        """
        return self._of_ratio(_ratio(_correlations(a)))

    def of_ratio(self, beta: Any) -> np.ndarray:
        """φ as a function of β = a/√(1 − a²), which keeps the digits that 1 − a² loses once a is rounded.

        Args:
            beta: Ratios (Σw)_i/√(σ²s² − (Σw)_i²), of any shape; ±∞ is a = ±1.
        """
        return self._of_ratio(_numbers("A ratio", beta))

    def _of_ratio(self, beta: np.ndarray) -> np.ndarray:
        if isinstance(self.marginal, Normal):
            return np.asarray(SLOPE * _correlation(beta))
        values = self._mean(lambda x, b: scipy.special.erf(x * b * math.sqrt(0.5)), beta)
        return _uniform(beta, values) if isinstance(self.marginal, Uniform) else values

    def derivative(self, a: Any, order: int = 1) -> np.ndarray:
        """The first, second or third derivative of φ with respect to a.

        With u = 1/(1 − a²) and S_n = E[Xⁿ exp(−X²β²/2)]: φ' = √(2/π) u^(3/2) S₂, φ'' = √(2/π) β u² (3S₂ − uS₄),
        φ''' = √(2/π) u^(5/2) [(u + 4β²)(3S₂ − uS₄) + β²u(uS₆ − 5S₄)]; at 0 the third is −√(2/π) times the excess
        kurtosis: −∞ where the tail index is at most 4. The second does not exist there (nan) for an index of at
        most 3. Near |a| = 1 the second and third lose digits, as their terms cancel there.

        Args:
            a: Correlations strictly between −1 and 1, of any shape.
            order: 1, 2 or 3.
        """
        order = Count(low=1, high=3, hint="Differentiate `table()` with jax for more.").check(
            "order", order
        )
        a = _correlations(a)
        if np.any(np.abs(a) >= 1):
            advice = (
                "Go near the end instead: there the derivative depends on the density at the mean."
            )
            refuse("A correlation to differentiate at", 1.0, "strictly between −1 and 1", advice)
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
        """The polynomial in a that agrees with φ at 0 up to an odd order; at order 3, √(2/π) (a − κ_ex a³/6).

        The coefficient of a^(2n+1) is √(2/π) Σ_j (−1)^j E[X^(2j+2)]/(2^j j! (2j+1)) · (j+½)_(n−j)/(n−j)!, j ≤ n.

        Raises:
            InputError: Where the moment of order + 1 is infinite, so that φ has no such expansion.
        """
        order = Count(low=1, high=101, hint="Order 3 is the paper's.").check("order", order)
        if order % 2 == 0:
            refuse(
                "The order of the expansion",
                order,
                "odd",
                "φ is odd: the even powers are absent. Use 3.",
            )
        if 1 < order >= self.marginal.tail_index - 1:
            got = Said(f"{self.marginal!r} with tail index {self.marginal.tail_index:g}")
            advice = f"Use the amplifier itself: it is finite, while the moment of order {order + 1} is not."
            expected = f"one with a tail index above {order + 1}"
            refuse(f"The law for an expansion to order {order}", got, expected, advice)
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

    # -- its shape ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def sd(self) -> float:
        """Standard deviation of the law before it is standardized, σ."""
        return float(self.marginal.sd)

    @functools.cached_property
    def limit(self) -> float:
        """φ(1) = E|X − mean|/σ."""
        return self.marginal.mean_abs / self.sd

    def excess(self, a: Any) -> np.ndarray:
        """φ(a) − √(2/π) a: for a > 0, positive where the law amplifies more than a normal one (super-linear)."""
        a = _correlations(a)
        return np.asarray(self._of_ratio(_ratio(a)) - SLOPE * a)

    @functools.cached_property
    def index(self) -> float:
        """2∫₀¹ (φ(a)/√(2/π) − a) da: 0 for normal data, positive for a law that is super-linear on the whole.

        The integral is a closed form in each node: √(2π) E[|X| (1 − erfcx(|X|/√2))] − 1.
        """
        x, mass = self.nodes
        return (
            math.sqrt(2 * math.pi)
            * float(np.sum(mass * (1 - scipy.special.erfcx(x * math.sqrt(0.5)))))
            - 1
        )

    def elasticity(self, a: Any) -> np.ndarray:
        """Percent of response for a percent of correlation, a φ'(a)/φ(a); 1 for a line, and for every law at 0."""
        a = _correlations(a)
        slope, value = self.derivative(a), self._of_ratio(_ratio(a))
        return np.where(a == 0, 1.0, a * slope / np.where(a == 0, 1.0, value))

    def crossings(self) -> np.ndarray:
        """The correlations in (0, 1) where `excess` changes sign, in rising order, to 1e-8."""
        from scipy.optimize import brentq

        logs = np.arange(-14.0, 14.0, 1 / 16)
        bend = self._bend(np.exp(logs))
        logs, bend = (
            logs[np.abs(bend) > 1e-11],
            bend[np.abs(bend) > 1e-11],
        )  # the rest may be rounding
        turns = np.flatnonzero(np.sign(bend[1:]) != np.sign(bend[:-1]))
        found = [
            brentq(
                lambda s: float(self._bend(np.asarray(math.exp(s)))),
                logs[i],
                logs[i + 1],
                xtol=1e-13,
            )
            for i in turns
        ]
        return _correlation(np.exp(np.array(found, dtype=np.float64)))

    def _bend(self, beta: np.ndarray) -> np.ndarray:
        return np.asarray(self._of_ratio(beta) / _correlation(beta) - SLOPE)

    def error(self, a: Any) -> np.ndarray:
        """Standard error of φ(a) when the law is a sample of independent values, mean and deviation estimated too.

        The standard deviation of the influence h(X) − φ − (φ + β dφ/dβ)(X² − 1)/2 − E[h'(X)] X of one value, with
        h(x) = x erf(xβ/√2), over √n. Without its last two terms it would be that of a law of known variance and
        mean, which is mostly larger. Weighted samples count as n = 1/Σp².

        Raises:
            InputError: When the law is not `Empirical`.
        """
        law = self.marginal
        if not isinstance(law, Empirical):
            refuse(
                "The law for a standard error",
                law,
                "an Empirical one",
                "Other laws are exact: there is no error.",
            )
        ratio = np.clip(_ratio(_correlations(a)), -LARGEST_RATIO, LARGEST_RATIO)
        x, p = (law.values - law.mean) / self.sd, np.diff(law.mass, prepend=0.0)
        result = np.empty(ratio.shape)
        for place, beta in np.ndenumerate(ratio):
            gate = scipy.special.erf(x * beta * math.sqrt(0.5))
            steep = SLOPE * beta * x * np.exp(-0.5 * (x * beta) ** 2)
            value = np.sum(p * x * gate)
            scale = value + np.sum(p * x * steep)
            influence = x * gate - value - scale * (x**2 - 1) / 2 - np.sum(p * (gate + steep)) * x
            result[place] = math.sqrt(np.sum(p * influence**2) * np.sum(p**2))
        return result

    # -- numbers ------------------------------------------------------------------------------------------------

    @functools.cached_property
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """|X − mean|/σ and its share of E|X − mean|/σ, for sums φ = Σ mass · erf(xβ/√2); at most a few thousand."""
        x, p = self.marginal.nodes()
        x = x / self.sd
        return (x, p * x) if x.size <= MOST_NODES else _condensed(x, p * x)

    def _mean(self, function: Any, beta: np.ndarray) -> np.ndarray:
        x, mass = self.nodes
        flat = np.clip(beta.ravel(), -LARGEST_RATIO, LARGEST_RATIO)
        result = np.empty(flat.shape)
        step = max(1, BLOCK // x.size)
        for start in range(0, flat.size, step):
            result[start : start + step] = function(x, flat[start : start + step, None]) @ mass
        return result.reshape(beta.shape)

    def _slope(self, beta: np.ndarray, power: int = 2) -> np.ndarray:
        # √(2/π) S_power; that of power 2 is dφ/dβ.
        return self._mean(lambda x, b: SLOPE * x ** (power - 1) * np.exp(-0.5 * (x * b) ** 2), beta)

    def table(self) -> AmplifierTable:
        """The amplifier for compiled code, in float64; made in some 50 ms."""
        part = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
        octave, place = np.divmod(np.arange(LOWEST << BITS, HIGHEST << BITS), 2**BITS)
        beta = 2.0**octave * (1 + (place + (1 + part[:, None]) / 2) / 2**BITS)
        bend = self._of_ratio(beta) / _correlation(beta)
        with jax.enable_x64(True):
            return AmplifierTable(
                jnp.asarray(np.linalg.solve(np.vander(part, increasing=True), bend))
            )


def _condensed(x: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fewer nodes, with masses of either sign, that have the same amplifier to 1e-14.

    On each unit of ln x a function of x is its interpolant at Chebyshev points, so a node's mass can be shared among
    the points in proportion to its cardinal polynomials.
    """
    kept = x > 1e-15  # the rest adds less than that
    logs, mass = np.log(x[kept]), mass[kept]
    unit = np.floor(logs).astype(np.int64)
    first = int(unit.min())
    unit -= first
    angle = np.pi * (np.arange(POINTS) + 0.5) / POINTS
    part = 2 * (logs - first - unit) - 1
    now, after = mass, part * mass  # mass times Chebyshev polynomials, by their recurrence
    shares = np.bincount(unit, now)[:, None] / POINTS
    for n in range(1, POINTS):
        shares = shares + np.bincount(unit, after)[:, None] * np.cos(n * angle) * (2 / POINTS)
        now, after = after, 2 * part * after - now
    points = np.exp(first + np.arange(shares.shape[0])[:, None] + (1 + np.cos(angle)) / 2)
    full = np.abs(shares).max(axis=1) > 0
    return points[full].ravel(), shares[full].ravel()


def _uniform(beta: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The closed form of the uniform law where it does not cancel; the given values elsewhere."""
    q = np.sqrt(1.5) * np.clip(np.abs(beta), 0.1, LARGEST_RATIO)  # √3 β/√2
    error = scipy.special.erf(q)
    closed = (
        math.sqrt(3) / 2 * (error - error / (2 * q**2) + np.exp(-(q**2)) / (q * math.sqrt(math.pi)))
    )
    return np.where(np.abs(beta) < 0.1, values, np.copysign(closed, beta))


def _numbers(
    what: str, given: Any, advice: str = "Give a number or an array of numbers."
) -> np.ndarray:
    try:
        values = np.asarray(given)
        if values.size and values.dtype.kind not in "iuf":
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        refuse(what, given, "a number", advice)
    if np.isnan(values).any():
        refuse(what, math.nan, "a number", advice)
    return values


def _correlations(given: Any) -> np.ndarray:
    advice = "The argument is a correlation, (Σw)_i/(σ s): divide by the standard deviation σ and by s = √(wᵀΣw)."
    a = _numbers("A correlation", given, advice)
    beyond = a[np.abs(a) > 1 + ROUNDING]
    if beyond.size:
        refuse("A correlation", float(beyond.flat[0]), "between −1 and 1", advice)
    return np.asarray(np.clip(a, -1, 1))


def _ratio(a: np.ndarray) -> np.ndarray:
    """β = a/√(1 − a²), from factors that rounding leaves exact."""
    with np.errstate(divide="ignore"):
        return np.asarray(a / np.sqrt((1 - a) * (1 + a)))


def _correlation(beta: Any) -> np.ndarray:
    """The correlation a = β/√(1 + β²) of a ratio."""
    beta = np.clip(beta, -LARGEST_RATIO, LARGEST_RATIO)
    return np.asarray(beta / np.hypot(1, beta))
