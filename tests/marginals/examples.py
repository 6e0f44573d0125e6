"""One law of every kind, and panels to integrate them on."""

import math

import numpy as np

from localfields._spec import registered
from localfields.marginals import (
    Algebraic,
    Empirical,
    ErfNormal,
    Laplace,
    Logistic,
    Normal,
    NormalMixture,
    SphereProjection,
    StudentT,
    Tabulated,
    Triangular,
    TwoPoint,
    Uniform,
)


def exponential(u):
    return -np.log1p(-u)


GAINS = (0.01, 0.3, 1.0, 3.0, 10.0, 100.0)
TAILS = (2.2, 2.5, 3.0, 5.0, 10.0, 100.0)
DENSE = [  # laws with a density, symmetric, at unit variance
    Normal(),
    Uniform(),
    Laplace(),
    Logistic(),
    Triangular(),
    *[ErfNormal(g) for g in GAINS],
    *[Algebraic(k) for k in TAILS],
    StudentT(2.5),
    StudentT(5.0),
    NormalMixture(0.5),
    NormalMixture(0.9),
]
OTHERS = [
    TwoPoint(),
    SphereProjection(40),
    SphereProjection(5, [1.0, 3.0], [0.7, 0.3]),
    Tabulated.of(exponential),
    Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1]),
]
# A new class needs no entry above: it is taken at its defaults.
UNKNOWN = [
    cls()
    for cls in registered("marginal").values()
    if cls not in {type(law) for law in DENSE + OTHERS}
]
ALL = DENSE + OTHERS + UNKNOWN


def named(law):
    return type(law).__name__ if isinstance(law, Tabulated) else repr(law)


def panels(low, high, width=0.05, points=16):
    """Composite Gauss–Legendre nodes and weights."""
    edges = np.linspace(low, high, math.ceil((high - low) / width) + 1)
    x, w = np.polynomial.legendre.leggauss(points)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()


SAMPLED = [law for law in ALL if not isinstance(law, SphereProjection)]
