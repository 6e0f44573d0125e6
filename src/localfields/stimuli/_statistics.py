"""Samples of a stimulus compared with the statistics that it declares.

Each test takes a stimulus and samples of it, (num, size), and returns z scores: how many standard
errors the statistics lie from what the stimulus declares, under the null hypothesis that the
samples follow it. A test fails when one of them exceeds five.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.stats

from ..lattice import matrix
from ..marginals import Marginal
from .base import Stimulus

Test = Callable[[Stimulus, np.ndarray], np.ndarray]

SIGMAS = 5.0

# Samples are float32. Where a statistic has no spread (the square of a sign) this is its standard
# error.
ROUNDING = 1e-6

LEVELS = np.concatenate([[0.001, 0.01, 0.05], np.arange(1, 10) / 10, [0.95, 0.99, 0.999]])


def score(values: np.ndarray, expected: Any) -> Any:
    """Standard errors between the mean over samples and what is expected; the error is measured."""
    values = values.astype(np.float64)
    measured = values.mean(axis=0)
    variance = np.einsum("n...,n...->...", values, values) / len(values) - measured**2
    return _score(measured, np.sqrt(np.maximum(variance, 0) / len(values)), expected)


def _score(measured: Any, error: Any, expected: Any) -> Any:
    return (measured - expected) / np.hypot(error, ROUNDING * np.maximum(1, np.abs(expected)))


def _tail_index(stimulus: Stimulus) -> float:
    law = stimulus.marginal()
    return np.inf if law is None else law.tail_index


def _known(law: Marginal | None) -> Marginal:
    assert law is not None, "tests of a marginal are for stimuli that know it"
    return law


# -- declared statistics ---------------------------------------------------------------------------


def mean(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """E X_i, at each site."""
    return score(x, stimulus.mean())


def covariance(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """E (X_i − μ)(X_j − μ), for each pair of sites."""
    x = x.astype(np.float64) - stimulus.mean()
    measured, square = x.T @ x / len(x), (x**2).T @ x**2 / len(x)
    error = np.sqrt(np.maximum(square - measured**2, 0) / len(x))
    return _score(measured, error, stimulus.covariance_matrix())


def fourth_moment(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """E (X_i − μ)⁴, at each site."""
    law = _known(stimulus.marginal())
    fourth = np.square(np.square(x.astype(np.float64) - stimulus.mean()))
    expected = law.kurtosis * law.variance**2
    # The larger of the measured and the exact error: without an outlier the first is too small,
    # with one the second.
    exact = np.sqrt(max(law.abs_moment(8) - expected**2, 0))
    error = np.maximum(fourth.std(axis=0), exact) / np.sqrt(len(x))
    return _score(fourth.mean(axis=0), error, expected)


def marginal(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """Distribution of X_i, as normal scores.

    Pearson's χ² at each site, and one for the frequencies pooled over sites.
    """
    law = _known(stimulus.marginal())
    edges, expected = _bins(law, len(x))
    shift = stimulus.mean() - law.mean
    place = np.searchsorted((edges + shift).astype(np.float32), x)
    at_site, in_sample = (
        np.bincount(
            (place + len(expected) * np.arange(n).reshape(along)).ravel(),
            minlength=n * len(expected),
        ).reshape(n, len(expected))
        for n, along in ((stimulus.size, (1, -1)), (len(x), (-1, 1)))
    )
    wanted = len(x) * expected
    each = scipy.stats.chi2.sf(((at_site - wanted) ** 2 / wanted).sum(axis=1), len(expected) - 1)
    pooled = _wald(in_sample / stimulus.size, expected)
    return scipy.stats.norm.isf(np.append(each, pooled) / 2)


def _bins(law: Marginal, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges at quantiles and midway between them, and the probabilities between the edges.

    An edge is given up where moving it by float32 rounding moves mass (at an atom, in a saturated
    tail); the points close beside it serve instead.
    """

    def steady(edges: np.ndarray) -> np.ndarray:
        slack = ROUNDING * np.maximum(np.abs(edges), law.sd)
        return law.cdf(edges + slack) - law.cdf(edges - slack) < 1e-4

    edges = np.unique(law.quantile(LEVELS))
    edges = np.concatenate([edges, (edges[1:] + edges[:-1]) / 2])
    given_up = edges[~steady(edges)]
    beside = 10 * ROUNDING * np.maximum(np.abs(given_up), law.sd)
    edges = np.unique(np.concatenate([edges, given_up - beside, given_up + beside]))
    edges = edges[steady(edges)]
    kept, last = [], 0.0
    for edge, level in zip(edges, law.cdf(edges), strict=True):
        if num * (level - last) >= 10 and num * (1 - level) >= 10:
            kept.append(edge)
            last = level
    return np.array(kept), np.diff(law.cdf(np.array(kept)), prepend=0.0, append=1.0)


def _wald(fractions: np.ndarray, expected: np.ndarray) -> float:
    """P value of a mean vector, with its measured covariance, which may be singular."""
    off = fractions.mean(axis=0) - expected
    centered = fractions - fractions.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(fractions))
    free = values > 1e-10
    # Where nothing was seen to vary, an event may be too rare to have been: e^(−np) must not be
    # below 5.7e-7.
    if np.abs(vectors[:, ~free].T @ off).max() > 14.4 / len(fractions):
        return 0.0
    statistic = len(fractions) * np.sum((vectors[:, free].T @ off) ** 2 / values[free])
    return float(scipy.stats.chi2.sf(statistic, free.sum())) if free.any() else 1.0


def sign_correlation(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """E sgn X_i sgn X_j = (2/π) arcsin r_ij, r the latent correlation: it needs no moments."""
    if stimulus.elliptical:
        r = stimulus.covariance_matrix()
        r = r / np.sqrt(np.outer(np.diag(r), np.diag(r)))
    else:
        r = matrix(stimulus.latent_correlation())
    expected = 2 / np.pi * np.arcsin(np.clip(r, -1, 1))
    signs = np.where(x < 0, -1.0, 1.0)  # float32 draws an exact zero now and then
    error = np.sqrt(np.maximum(1 - expected**2, 0) / len(x))
    return _score(signs.T @ signs / len(x), error, expected)


def independence(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """E (X_i − μ)(X'_i − μ) = 0 for one sample and the next, the mean over sites."""
    x = x - np.float32(stimulus.mean())
    return np.atleast_1d(score((x[1:] * x[:-1]).mean(axis=1), 0.0))


def declared(stimulus: Stimulus) -> dict[str, Test]:
    """The tests of declared statistics that samples allow, by name.

    A standard error needs twice the moments that its statistic does.
    """
    tests = {"mean": mean, "independence": independence}
    if _tail_index(stimulus) > 4:
        tests["covariance"] = covariance
    if stimulus.marginal() is not None:
        tests["marginal"] = marginal
        if _tail_index(stimulus) > 8:
            tests["fourth moment"] = fourth_moment
    known = stimulus.elliptical or stimulus.latent_correlation() is not None
    if stimulus.sign_symmetric and known:
        tests["sign correlation"] = sign_correlation
    return tests


# -- symmetries ------------------------------------------------------------------------------------


def _products(stimulus: Stimulus, x: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Products of tanh X over 1 … count sites in a row, along each axis in turn, at every site."""
    bounded = np.tanh(x).reshape(-1, *stimulus.shape)
    for axis in range(1, bounded.ndim):
        product = bounded
        for step in range(1, count + 1):
            yield step, product.reshape(len(x), -1)
            product = product * np.roll(bounded, -step, axis)


def shift_invariance(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """|X_i| and products of neighbors have the same mean around every site."""
    local = [np.abs(x)] + [product for step, product in _products(stimulus, x, 4) if step > 1]
    return np.concatenate([score(each - each.mean(axis=1, keepdims=True), 0.0) for each in local])


def sign_invariance(stimulus: Stimulus, x: np.ndarray) -> np.ndarray:
    """Odd products of tanh X vanish."""
    odd = [product for step, product in _products(stimulus, x, 3) if step != 2]
    return np.concatenate([score(each, 0.0) for each in odd])
