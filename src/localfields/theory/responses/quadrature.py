"""Means over one site of a Gaussian copula: nodes in z > 0, with panels that fit the site map T.

Integrands are even in z and as smooth as T, so that Gauss–Legendre panels converge fast if they
end where T bends: at 2.5/g for erf(gz), at its steps for a table.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.special

from ...marginals import Empirical, Marginal, Tabulated

END = 7.0  # of the last panel: |Z| exceeds it with probability 3e-12
FORMULA_PANELS, TABLE_PANELS = 2, 8
CANDIDATES = np.geomspace(0.003, 5, 80)  # places where a panel may end
STEEPNESS = (1.0, 4.0, 16.0)  # ratios β at which a rule is tested, as of an amplifier


@dataclasses.dataclass(frozen=True)
class SiteRule:
    """Nodes of |Z|, their weights, the standardized site map there, and c₁ = E[Z T(Z)]."""

    z: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    slope: float


def site_rule(law: Marginal, num: int) -> SiteRule:
    """The rule of a symmetric marginal with `num` nodes per panel.

    A formula takes two panels whatever its parameters, so that the rules of a sweep stack; a table,
    which may have steps anywhere, takes eight. The ends of the panels are chosen one after another,
    such that the means of some test functions come out best.
    """
    edges = _refined(law)
    z, weights = panel_nodes(edges[None], 6)
    fine = (z[0], weights[0], site_map(law, z[0]))
    wanted = _test_means(*fine)
    steps = edges[1:][np.diff(edges) < 1e-9]
    candidates = np.concatenate([CANDIDATES, steps[steps < END][:: max(1, len(steps) // 40)]])
    ends = np.array([0.0, END])
    table = isinstance(law, (Tabulated, Empirical))
    for _ in range((TABLE_PANELS if table else FORMULA_PANELS) - 1):
        trials = np.sort(np.insert(np.tile(ends, (len(candidates), 1)), 1, candidates, axis=1))
        z, weights = panel_nodes(trials, num)
        error = np.abs(_test_means(z, weights, site_map(law, z)) - wanted).max(axis=-1)
        ends = trials[error.argmin()]
    z, weights = panel_nodes(ends, num)
    # Of a table with very many steps the fine rule misses some; its Hermite series does not.
    slope = law.hermite(1)[1] if isinstance(law, Empirical) else np.sum(np.prod(fine, axis=0))
    return SiteRule(z, weights, site_map(law, z), float(slope))


def site_map(law: Marginal, z: np.ndarray) -> np.ndarray:
    """T(z) at unit variance."""
    return np.asarray(law.from_normal(z)) / law.sd


def symmetric_law(law: Marginal) -> Marginal:
    """The distribution itself, or that of X − mean with a random sign."""
    if law.symmetric:
        return law
    x, p = law.nodes()
    return Empirical(np.concatenate([-x, x]), np.concatenate([p, p]))


def panel_nodes(ends: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes on panels between ends, (…, end), with weights for |Z| normal."""
    points, weights = np.polynomial.legendre.leggauss(num)
    half = np.diff(ends)[..., None] / 2
    z = ends[..., :-1, None] + half * (1 + points)
    density = math.sqrt(2 / math.pi) * np.exp(-0.5 * z**2)
    shape = (*ends.shape[:-1], -1)
    return z.reshape(shape), (half * weights * density).reshape(shape)


def _refined(law: Marginal) -> np.ndarray:
    """Ends of many panels on each of which T is nearly a line, or which are very short."""
    ends = np.linspace(0, END + 2, 69)
    for _ in range(40):
        left, right = ends[:-1], ends[1:]
        middle = (left + right) / 2
        low, at, high = (site_map(law, z) for z in (left + 1e-13, middle, right))
        bent = np.abs(at - (low + high) / 2) * np.exp(-0.5 * middle**2) > 1e-3
        bent &= right - left > 1e-10
        if not bent.any() or len(ends) > 4000:
            break
        ends = np.sort(np.concatenate([ends, middle[bent]]))
    return ends


def _test_means(z: np.ndarray, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Means like those that a response needs, at fields from broad to nearly one site."""
    means = [z**2, z * values, values]
    for beta in STEEPNESS:
        scaled = beta * math.sqrt(0.5) * values
        gate = scipy.special.erf(scaled)
        means += [z * gate, values * gate, beta / 3 * np.exp(-(scaled**2))]
    return np.stack([np.sum(weights * mean, axis=-1) for mean in means], axis=-1)
