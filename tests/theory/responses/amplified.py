"""Laws to amplify, and the amplifier as a plain sum."""

import math

import numpy as np
import scipy.special

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

A = np.array([1e-6, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12])
GAINS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
TAILS = (2.2, 2.5, 3.0, 4.0, 5.0, 6.0, 10.0, 30.0, 100.0)
ATOMS = np.random.default_rng(0).standard_normal(10)
LAWS = [
    Normal(),
    TwoPoint(),
    Uniform(),
    Laplace(),
    Logistic(),
    Triangular(),
    *[ErfNormal(g) for g in GAINS],
    *[Algebraic(k) for k in (2.05, *TAILS)],
    *[StudentT(nu) for nu in (2.5, 3.0, 5.0, 50.0)],
    NormalMixture(0.5),
    NormalMixture(0.9),
    SphereProjection(2),
    SphereProjection(40),
    SphereProjection(5, [1.0, 3.0], [0.7, 0.3]),
    Tabulated.of(lambda u: -np.log1p(-u)),
    Empirical([0.0, 1.0], [0.9, 0.1]),
    Empirical([3.0, -1.0, 0.0, 0.5], [0.2, 0.4, 0.3, 0.1]),
    Empirical([1e4, -1e4, 1e-6, 2e-6], [1e-9, 1e-9, 0.5, 0.5]),
    Empirical(ATOMS),
    Empirical(np.random.default_rng(1).standard_t(3, 10_000)),
]
LAWS += [cls() for cls in registered("marginal").values() if cls not in {type(law) for law in LAWS}]
EIGHT = [  # the marginals of the derivative checks
    Normal(),
    Uniform(),
    Laplace(),
    ErfNormal(1.0),
    ErfNormal(3.0),
    Algebraic(5.0),
    Algebraic(10.0),
    NormalMixture(0.8),
]


def named(law):
    return repr(law)[:60]


def ratio(a):
    return a / np.sqrt((1 - a) * (1 + a))


def direct(law, beta):
    """Σ p x erf(xβ/√2) over the law's own nodes, one β at a time."""
    x, p = law.nodes()
    x = x / law.sd
    return np.array(
        [np.sum(p * x * scipy.special.erf(x * b / math.sqrt(2))) for b in np.ravel(beta)]
    )
