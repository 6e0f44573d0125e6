"""Statistics of the rows of data, in groups of rows, so that every number has an uncertainty.

A group is a block of neighboring rows: if rows follow each other in time and neighbors are
correlated, the spread between groups accounts for it. All statistics are sums over groups, so that
a resample of the groups is a vector of weights.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import scipy.special

from ...lattice import distance
from ...marginals import Empirical
from ...stimuli import Ising
from ...stimuli.samples import Rows
from ..checks.sampling import jackknife

ROW_GROUPS = 40
MIN_ROWS = 2 * ROW_GROUPS  # below, nothing is measured
VALUE_BINS = 1500  # of the values of all sites
MAX_SUBSAMPLE = 2**19  # used for the edges of the bins and for the tail
TESTED_SITES = 64  # tested one by one
RANDOM_DIRECTIONS = 16
WAVES = 6  # in each third of the frequencies
MIN_VARIANCE = 1e-8  # of a direction, relative to a site: below, it may be rounding
TAIL = 1e-3  # fraction of the values that the tail index is fitted to
MAX_MATRIX_SITES = 400  # of a covariance matrix for every group
LAGS = 12  # compared with the Ising ring


class Measurements:
    """Sums over the rows of one class, one per group; weights of the groups give any statistic.

    Args:
        stimulus: The rows, preprocessed.
    """

    def __init__(self, stimulus: Rows):
        rows = stimulus.rows
        self.num, self.shape, self.size = len(rows), stimulus.shape, stimulus.size
        self.bounds = np.linspace(0, self.num, ROW_GROUPS + 1).astype(int)
        self.counts = np.diff(self.bounds).astype(float)
        self._rows = rows
        self._mean = 0.0 if stimulus.sign_symmetric else stimulus.site_means().reshape(1, self.size)
        self.kinds, directions, self.which = _directions(self.shape)
        step = max(1, rows.size // MAX_SUBSAMPLE)
        values = np.asarray(rows[::step], np.float64).ravel()
        self.edges, self.discrete = _edges(values)
        self.tail_index, self.tail_error = hill(values - values.mean())
        axes = tuple(range(1, len(self.shape) + 1))
        # Sums over groups of rows: any resample of groups is then a weighted sum of these, and the
        # rows are read once.
        parts = []
        for g in range(ROW_GROUPS):
            raw = self._raw_group(g)
            x = raw - self._mean
            modes = np.fft.fftn(x.reshape(-1, *self.shape), axes=axes)
            power = (modes.real**2 + modes.imag**2).sum(axis=0) / self.size
            along = np.abs(x @ directions)
            moments = np.stack(
                [np.sqrt(along).sum(axis=0), along.sum(axis=0), (along**2).sum(axis=0)]
            )
            raw = raw.ravel()
            place = np.searchsorted(self.edges, raw, side="right")
            binned = [np.bincount(place, raw**p, minlength=len(self.edges) + 1) for p in range(3)]
            quartic = np.array([(x**2).sum(), (x**4).sum()]) / self.size
            parts.append((power, moments, np.stack(binned), quartic))
        self.power, self.moments, self.binned, self.quartic = (
            np.stack(part) for part in zip(*parts, strict=True)
        )

    def _raw_group(self, g: int) -> np.ndarray:
        return np.asarray(self._rows[self.bounds[g] : self.bounds[g + 1]], np.float64)

    def row(self, weights: np.ndarray) -> np.ndarray:
        """Covariance at every displacement, averaged over all pairs of sites."""
        power = np.tensordot(weights, self.power, 1) / (weights @ self.counts)
        return np.fft.ifftn(power).real

    @functools.cached_property
    def _products(self) -> np.ndarray:
        groups = (self._raw_group(g) - self._mean for g in range(ROW_GROUPS))
        return np.stack([x.T @ x for x in groups])

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """Covariance of all pairs of sites, (*shape, *shape)."""
        product = np.tensordot(weights, self._products, 1) / (weights @ self.counts)
        return product.reshape(self.shape * 2)

    def kurtosis(self, weights: np.ndarray) -> Any:
        """Excess kurtosis of a site, averaged over sites; for weights (group,) or (…, group)."""
        second, fourth = np.moveaxis(weights @ self.quartic, -1, 0) / (weights @ self.counts)
        return fourth / second**2 - 3

    def marginal(self, weights: np.ndarray) -> Empirical:
        """Distribution of a site. Weights change the mass of a bin, not its place."""
        count, total = weights @ self.binned[:, 0], self.binned.sum(axis=0)
        full = (total[0] > 0) & (count > 0)
        count, total = count[full], total[:, full]
        mean = total[1] / total[0]
        if self.discrete:
            return Empirical(mean, count)
        # Two points per bin, which keep its mean and variance.
        sd = np.sqrt(np.maximum(total[2] / total[0] - mean**2, 0))
        return Empirical(np.concatenate([mean - sd, mean + sd]), np.concatenate([count, count]))

    def flatness(self, weights: np.ndarray, heavy: bool) -> np.ndarray:
        """Shape of the distribution of S = ⟨w, X⟩ in every kind of direction w.

        It is the logarithm of E|S|/√E[S²]; with `heavy` tails, of E|S|/(E√|S|)², which needs fewer
        moments. For elliptical data it does not depend on the direction.
        """
        moments = np.tensordot(weights, self.moments, 1) / (weights @ self.counts)
        half, first, second = (np.log(np.where(self._varies, moment, 1)) for moment in moments)
        value = first - (2 * half if heavy else 0.5 * second)
        return np.array([value[(self.which == k) & self._varies].mean() for k in self.present])

    @functools.cached_property
    def _varies(self) -> np.ndarray:
        """Which directions vary by more than rounding."""
        return self.moments[:, 2].sum(axis=0) > MIN_VARIANCE * self.quartic[:, 0].sum()

    @property
    def present(self) -> list[int]:
        """The kinds of directions that vary."""
        return [k for k in range(len(self.kinds)) if ((self.which == k) & self._varies).any()]

    @property
    def ones(self) -> np.ndarray:
        """Weights that count every group once."""
        return np.ones(ROW_GROUPS)

    @property
    def two_valued(self) -> bool:
        """Whether every site takes one of two opposite values."""
        values = self.edges
        two = self.discrete and len(values) == 2
        return bool(two and abs(values[0] + values[1]) < 1e-6 * (values[1] - values[0]))


def leave_one_out() -> np.ndarray:
    """Weights that leave out each group in turn, (group, group)."""
    return 1.0 - np.eye(ROW_GROUPS)


def resamples(num: int, seed: int = 0) -> np.ndarray:
    """Weights of bootstrap resamples of the groups, (num, group)."""
    return (
        np.random.default_rng(seed)
        .multinomial(ROW_GROUPS, np.full(ROW_GROUPS, 1 / ROW_GROUPS), num)
        .astype(float)
    )


@dataclasses.dataclass(frozen=True)
class Flatness:
    """Test of whether E|S|/√E[S²] is the same for projections S on all kinds of directions."""

    kinds: tuple[str, ...]  # names of the kinds
    values: np.ndarray  # logarithms, minus their mean
    errors: np.ndarray  # their standard errors
    p: float  # p-value of the hypothesis that the data are elliptical
    # Standard errors by which one site and a random direction would differ if distant sites were
    # independent
    power: float


def flatness(measured: Measurements, heavy: bool) -> Flatness:
    """Compare the kinds of directions by Hotelling's test on leave-one-out values."""
    value = measured.flatness(measured.ones, heavy)
    left_out = np.stack([measured.flatness(weights, heavy) for weights in leave_one_out()])
    kinds = tuple(measured.kinds[k] for k in measured.present)
    relative = left_out - left_out.mean(axis=1, keepdims=True)
    # Of a normal Z, E|Z|/(E√|Z|)² and E|Z|/√E[Z²].
    normal = (
        math.log(math.sqrt(math.pi) / math.gamma(0.75) ** 2)
        if heavy
        else 0.5 * math.log(2 / math.pi)
    )
    contrast = left_out[:, kinds.index("site")] - left_out[:, kinds.index("random")]
    error = float(jackknife(contrast))
    power = abs(value[kinds.index("site")] - normal) / error if error > 0 else math.inf
    p = hotelling(value[1:] - value[:1], left_out[:, 1:] - left_out[:, :1])
    return Flatness(kinds, value - value.mean(), jackknife(relative), p, power)


def hotelling(value: np.ndarray, left_out: np.ndarray) -> float:
    """p-value that numbers are all zero, from their leave-one-out values, (group, number)."""
    from scipy.stats import f  # late: it takes longer to import than the rest of the package

    groups, num = left_out.shape
    centered = left_out - left_out.mean(axis=0)
    spread = (groups - 1) / groups * centered.T @ centered
    scale = np.sqrt(np.maximum(np.diag(spread), np.finfo(float).tiny))
    inverse = np.linalg.pinv(spread / np.outer(scale, scale), rcond=1e-9, hermitian=True)
    square = float((value / scale) @ inverse @ (value / scale))
    return float(f.sf(square * (groups - num) / (num * (groups - 1)), num, groups - num))


def ising_coupling(row: np.ndarray) -> float:
    """The coupling of the Ising ring with this correlation of neighbors; nan if there is none."""
    from scipy.optimize import brentq

    size, correlation = len(row), row[1] / row[0]

    def excess(t: float) -> float:
        return (t + t ** (size - 1)) / (1 + t**size) - correlation

    if not excess(-0.999) < 0 < excess(0.999):
        return math.nan
    root: Any = brentq(excess, -0.999, 0.999, xtol=1e-14)
    return math.atanh(root)


def ising_p(measured: Measurements) -> float:
    """p-value that ±1 rows have the covariance of an Ising ring; 0 for other rows."""
    if len(measured.shape) != 1 or not measured.two_valued or measured.size < 4:
        return 0.0
    lags = slice(2, min(measured.size // 2, LAGS) + 1)

    def deviation(weights: np.ndarray) -> np.ndarray:
        row = measured.row(weights)
        coupling = ising_coupling(row)
        return row[lags] / row[0] - Ising(measured.shape, coupling=coupling).covariance()[lags]

    if math.isnan(ising_coupling(measured.row(measured.ones))):
        return 0.0
    left_out = np.stack([deviation(weights) for weights in leave_one_out()])
    return hotelling(deviation(measured.ones), left_out) if np.isfinite(left_out).all() else 0.0


def hill(values: np.ndarray) -> tuple[float, float]:
    """Hill's estimate of the tail index from the largest of many values, and its standard error."""
    sizes = np.sort(np.abs(values))[::-1]
    count = max(20, int(TAIL * sizes.size))
    if sizes.size <= count or sizes[count] <= 0:
        return math.inf, 0.0
    # Beyond a threshold, the logarithm of a power-law tail is exponential with mean 1/index.
    mean = float(np.mean(np.log(sizes[:count] / sizes[count])))
    return (math.inf, 0.0) if mean <= 0 else (1 / mean, 1 / mean / math.sqrt(count))


def neighbor_correlation(rows: np.ndarray) -> float:
    """Correlation of a row with the next, the larger of values and squares; at least 0."""
    first = np.asarray(rows[:20_000], np.float64)
    largest = 0.0
    for values in (first, first**2):
        values = values - values.mean(axis=0)
        total = float(np.sum(values**2))
        if total > 0:
            largest = max(largest, float(np.sum(values[1:] * values[:-1])) / total)
    return largest


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Distinct rows, and which of them each row is; None if more than one in twenty is distinct."""
    if np.unique(np.asarray(rows[:200])).size > 64:
        return None
    # One opaque item per row, which `unique` sorts much faster than rows of numbers.
    item = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    packed = np.ascontiguousarray(rows).view(item).ravel()
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    if 20 * len(first) > len(rows):
        return None
    return np.asarray(rows[first], np.float64), which.ravel()


def _edges(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Left edges of bins, and whether they are all the values there are."""
    distinct = np.unique(values[:100_000])
    if len(distinct) <= VALUE_BINS // 2 and len(distinct := np.unique(values)) <= VALUE_BINS // 2:
        return distinct, True
    # Quantiles spaced as those of a normal distribution: fine in the middle and in the tails.
    u = scipy.special.ndtr(np.linspace(-5.2, 5.2, VALUE_BINS))
    return np.unique(np.quantile(values, u)), False


def _directions(shape: tuple[int, ...]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of kinds, directions (size, num), and the kind of each."""
    size, generator = math.prod(shape), np.random.default_rng(0)
    sites = np.unique(np.linspace(0, size - 1, min(size, TESTED_SITES)).astype(int))
    single = np.eye(size)[sites]
    neighbor = np.stack([np.roll(unit.reshape(shape), 1, axis=0).ravel() for unit in single])
    width = max(1.0, min(shape) / 16)
    bump = np.exp(-0.5 * (distance(shape) / width) ** 2)
    at = [np.unravel_index(site, shape) for site in sites[:: max(1, len(sites) // 8)]]
    bumps = [np.roll(bump, place, tuple(range(len(shape)))).ravel() for place in at]
    kinds = {
        "site": single,
        "sum of neighbors": single + neighbor,
        "difference": single - neighbor,
        "bump": np.stack(bumps),
        **_waves(shape, generator),
        "constant": np.ones((1, size)),
        "random": generator.normal(size=(RANDOM_DIRECTIONS, size)),
    }
    which = np.repeat(np.arange(len(kinds)), [len(vectors) for vectors in kinds.values()])
    vectors = np.concatenate(list(kinds.values()))
    return list(kinds), (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T, which


def _waves(shape: tuple[int, ...], generator: np.random.Generator) -> dict[str, np.ndarray]:
    frequencies = np.stack(
        np.meshgrid(*(np.fft.fftfreq(n) for n in shape), indexing="ij"), -1
    ).reshape(-1, len(shape))
    frequencies = frequencies[1:]  # without the constant, a kind of its own
    frequencies = frequencies[np.argsort(np.linalg.norm(frequencies, axis=1), kind="stable")]
    place = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, len(shape))
    waves = {}
    names = ("slow waves", "waves", "fast waves")
    for name, part in zip(names, np.array_split(frequencies, 3), strict=True):
        chosen = part[np.sort(generator.permutation(len(part))[:WAVES])]
        if len(chosen):
            phase = 2 * np.pi * generator.random((len(chosen), 1))
            waves[name] = np.cos(2 * np.pi * chosen @ place.T + phase)
    return waves
