"""The laws that samples of a stimulus are compared with.

A law takes a stimulus and samples of it, (num, size), and returns z scores: how many standard
errors the statistics lie from what the stimulus declares, under the null hypothesis that the
samples follow it. A law is broken when one of them exceeds five.
"""

import zlib

import jax
import numpy as np
import scipy.stats

import localfields as lf

SIGMAS = 5.0
CHUNK = 50_000

# Samples are float32. Where a statistic has no spread (the square of a sign) this is its standard
# error.
ROUNDING = 1e-6

LEVELS = np.concatenate([[0.001, 0.01, 0.05], np.arange(1, 10) / 10, [0.95, 0.99, 0.999]])


def seed_of(*names):
    """A seed for what the names say, the same in every run."""
    return zlib.crc32(" ".join(names).encode())


def drawn(stimulus, *names, chunks):
    """Samples in float32, as a user draws them; in pieces, each with the seed of its names and
    number.
    """
    with jax.enable_x64(False):
        pieces = [stimulus.sample(seed_of(*names, str(chunk)), CHUNK) for chunk in range(chunks)]
    return np.concatenate([np.asarray(piece) for piece in pieces])


def broken(laws, stimulus, samples):
    """Worst z score of each law that the samples break."""
    worst = {name: np.abs(law(stimulus, samples)).max() for name, law in laws.items()}
    return {name: z for name, z in worst.items() if not z <= SIGMAS}


def score(values, expected):
    """Standard errors between the mean over samples and what is expected; the error is measured."""
    values = values.astype(np.float64)
    actual = values.mean(axis=0)
    variance = np.einsum("n...,n...->...", values, values) / len(values) - actual**2
    return _score(actual, np.sqrt(np.maximum(variance, 0) / len(values)), expected)


def _score(found, error, expected):
    return (found - expected) / np.hypot(error, ROUNDING * np.maximum(1, np.abs(expected)))


def covariance_matrix(stimulus):
    """The declared covariance of all pairs of sites, (size, size)."""
    result = stimulus.covariance()
    if result.shape == stimulus.shape:
        return lf.lattice.matrix(result)
    return result.reshape(stimulus.size, stimulus.size)


def tail_index(stimulus):
    return np.inf if stimulus.marginal() is None else stimulus.marginal().tail_index


# -- declared statistics ---------------------------------------------------------------------------


def mean(stimulus, x):
    """E X_i, at each site."""
    return score(x, stimulus.mean())


def covariance(stimulus, x):
    """E (X_i − μ)(X_j − μ), for each pair of sites."""
    x = x.astype(np.float64) - stimulus.mean()
    result, square = x.T @ x / len(x), (x**2).T @ x**2 / len(x)
    error = np.sqrt(np.maximum(square - result**2, 0) / len(x))
    return _score(result, error, covariance_matrix(stimulus))


def fourth_moment(stimulus, x):
    """E (X_i − μ)⁴, at each site."""
    law = stimulus.marginal()
    fourth = np.square(np.square(x.astype(np.float64) - stimulus.mean()))
    expected = law.kurtosis * law.variance**2
    # The larger of the measured and the exact error: without an outlier the first is too small,
    # with one the second.
    exact = np.sqrt(max(law.abs_moment(8) - expected**2, 0))
    error = np.maximum(fourth.std(axis=0), exact) / np.sqrt(len(x))
    return _score(fourth.mean(axis=0), error, expected)


def marginal(stimulus, x):
    """Law of X_i: Pearson's χ² at each site, and one for the frequencies pooled over sites, as
    normal scores.
    """
    law = stimulus.marginal()
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


def _bins(law, num):
    """Edges at quantiles and midway between them, and the probabilities between the edges.

    An edge is given up where moving it by float32 rounding moves mass (at an atom, in a saturated
    tail); the points close beside it serve instead.
    """

    def steady(edges):
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


def _wald(fractions, expected):
    """P value of a mean vector against what is expected, with its measured covariance, which may
    be singular.
    """
    off = fractions.mean(axis=0) - expected
    centered = fractions - fractions.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(fractions))
    free = values > 1e-10
    # Where nothing was seen to vary, an event may be too rare to have been: e^(−np) must not be
    # below 5.7e-7.
    if np.abs(vectors[:, ~free].T @ off).max() > 14.4 / len(fractions):
        return 0.0
    statistic = len(fractions) * np.sum((vectors[:, free].T @ off) ** 2 / values[free])
    return scipy.stats.chi2.sf(statistic, free.sum()) if free.any() else 1.0


def sign_correlation(stimulus, x):
    """E sgn X_i sgn X_j = (2/π) arcsin r_ij, r the latent correlation: it needs no moments."""
    if stimulus.elliptical:
        r = covariance_matrix(stimulus)
        r = r / np.sqrt(np.outer(np.diag(r), np.diag(r)))
    else:
        r = lf.lattice.matrix(stimulus.latent_correlation())
    expected = 2 / np.pi * np.arcsin(np.clip(r, -1, 1))
    signs = np.where(x < 0, -1.0, 1.0)  # float32 draws an exact zero now and then; the law has none
    error = np.sqrt(np.maximum(1 - expected**2, 0) / len(x))
    return _score(signs.T @ signs / len(x), error, expected)


def independence(stimulus, x):
    """E (X_i − μ)(X'_i − μ) = 0 for one sample and the next, the mean over sites."""
    x = x - np.float32(stimulus.mean())
    return np.atleast_1d(score((x[1:] * x[:-1]).mean(axis=1), 0.0))


def declared(stimulus):
    """The laws of declared statistics that samples can be compared with.

    A standard error needs twice the moments that its statistic does.
    """
    laws = {"mean": mean, "independence": independence}
    if tail_index(stimulus) > 4:
        laws["covariance"] = covariance
    if stimulus.marginal() is not None:
        laws["marginal"] = marginal
        if tail_index(stimulus) > 8:
            laws["fourth moment"] = fourth_moment
    copula = stimulus.latent_correlation() is not None
    if stimulus.sign_symmetric and (stimulus.elliptical or copula):
        laws["sign correlation"] = sign_correlation
    return laws


# -- symmetries ------------------------------------------------------------------------------------


def _products(stimulus, x, count):
    """Products of tanh X over 1 … count sites in a row, along each axis in turn, at every site."""
    bounded = np.tanh(x).reshape(-1, *stimulus.shape)
    for axis in range(1, bounded.ndim):
        product = bounded
        for step in range(1, count + 1):
            yield step, product.reshape(len(x), -1)
            product = product * np.roll(bounded, -step, axis)


def shift_invariance(stimulus, x):
    """What is measured around one site is what is measured around any: |X_i|, and products of
    neighbors.
    """
    local = [np.abs(x)] + [product for step, product in _products(stimulus, x, 4) if step > 1]
    return np.concatenate([score(each - each.mean(axis=1, keepdims=True), 0.0) for each in local])


def sign_invariance(stimulus, x):
    """Odd products of tanh X vanish."""
    odd = [product for step, product in _products(stimulus, x, 3) if step != 2]
    return np.concatenate([score(each, 0.0) for each in odd])
