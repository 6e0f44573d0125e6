"""What an erratum is: the printed formula, the right one, and a measurement in which only the
second holds.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy.integrate


@dataclasses.dataclass(frozen=True)
class Measured:
    """Errors of the printed and of the right version against a reference that is neither.

    Attributes:
        what: What was compared with what.
        printed: Error of the printed version; None where the source stops before a result.
        right: Error of the right version.
        within: How exact the reference is, or five standard errors of one that is drawn: the right
            error stays below it, the printed one is beyond it, ten times at least where nothing is
            drawn.
        unit: What errors are measured in: the size of the reference, 1, or standard errors.
    """

    what: str
    printed: float | None
    right: float
    within: float = 1e-12
    unit: Literal["relative", "absolute", "σ"] = "relative"

    @property
    def fails(self) -> bool:
        """Whether the printed version is wrong beyond doubt."""
        return self.printed is not None and self.printed > self.within * (
            1 if self.unit == "σ" else 10
        )

    @property
    def holds(self) -> bool:
        """Whether the right version is right as far as the reference can tell."""
        return self.right <= self.within


@dataclasses.dataclass(frozen=True)
class Erratum:
    """One row: LaTeX of both versions, and how they were told apart. `measure` is None for what
    one sees by reading.
    """

    equation: str
    printed: str
    right: str
    measure: Callable[[], Measured] | None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Confirmed:
    """Equations that are right as printed, with the error of the printed form."""

    equations: str
    measure: Callable[[], Measured]


@dataclasses.dataclass(frozen=True)
class Source:
    """A text, what it is about, and its rows in the order in which it prints them."""

    name: str
    about: str
    errata: list[Erratum] = dataclasses.field(default_factory=list)
    confirmed: list[Confirmed] = dataclasses.field(default_factory=list)

    def erratum(self, equation: str, printed: str, right: str, note: str = ""):
        """Make a row of a function that measures it."""

        def add(measure):
            self.errata.append(Erratum(equation, printed, right, measure, note))
            return measure

        return add

    def by_reading(self, equation: str, printed: str, right: str, note: str):
        """Add a row that needs no measurement."""
        self.errata.append(Erratum(equation, printed, right, None, note))

    def confirm(self, equations: str):
        """Make a row of a function that measures the error of what is printed."""

        def add(measure):
            self.confirmed.append(Confirmed(equations, measure))
            return measure

        return add


# -- references ------------------------------------------------------------------------------------


def off(found, reference) -> float:
    """Distance in units of the reference's length."""
    found, reference = np.asarray(found, float), np.asarray(reference, float)
    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))


def slopes(function, x, step: float = 1e-4) -> np.ndarray:
    """Gradient of a function of an array by central differences of fourth order."""
    x = np.asarray(x, float)
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        move = np.zeros_like(x)
        move[index] = step
        near, far = (function(x + n * move) - function(x - n * move) for n in (1, 2))
        result[index] = (8 * near - far) / (12 * step)
    return result


def integral(function, low: float, high: float) -> float:
    """One-dimensional integral to about 1e-13."""
    return scipy.integrate.quad(function, low, high, epsabs=1e-13, epsrel=1e-13, limit=400)[0]


def normal_mean(function, low: float = -math.inf) -> float:
    """E[function(Z); Z > low] of a standard normal Z."""
    density = 1 / math.sqrt(2 * math.pi)
    return integral(lambda z: density * math.exp(-z * z / 2) * function(z), max(low, -12.0), 12.0)


def quadrant(q11: float, q22: float, q12: float, one: int, two: int) -> float:
    """E[S^one T^two; S > 0, T > 0] of jointly normal S and T, in polar coordinates."""
    alpha = math.acos(max(-1.0, min(1.0, q12 / math.sqrt(q11 * q22))))
    order = one + two
    radial = 2 ** (order / 2) * math.gamma(order / 2 + 1)
    angular = integral(
        lambda x: math.cos(x) ** one * math.cos(x - alpha) ** two, alpha - math.pi / 2, math.pi / 2
    )
    return q11 ** (one / 2) * q22 ** (two / 2) * radial * angular / (2 * math.pi)


def products(w, v, sigma) -> tuple[float, float, float]:
    """ρ₁₁, ρ_kk and ρ₁k of two fields."""
    return float(w @ sigma @ w), float(v @ sigma @ v), float(w @ sigma @ v)


def gated_product(w, v, sigma) -> np.ndarray:
    """E[1(S > 0) ReLU(T) X] by conditioning X on (S, T), moments of the quadrant by quadrature."""
    if w is v:
        return 0.5 * sigma @ w
    fields = np.stack([w, v])
    seen = sigma @ fields.T
    q = products(w, v, sigma)
    return seen @ np.linalg.solve(fields @ seen, [quadrant(*q, 1, 1), quadrant(*q, 0, 2)])
