"""What the rows of data say of the law behind them, in groups of rows, so that every number has an uncertainty.

A group is a run of neighboring rows: where rows follow each other in time, and neighbors are alike, the spread between
groups knows. All statistics are sums over groups, so that a resample of the groups is a choice of weights.
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
from ..checks.draws import jackknife

GROUPS = 40
LEAST = 2 * GROUPS  # rows, below which nothing is measured
BINS = 1500  # of the values of all sites; more where these are fewer
MOST_VALUES = 2**19  # looked at for the edges of the bins and for the tail
SITES = 64  # looked at one by one
RANDOM = 16  # directions
WAVES = 6  # frequencies in a third of them
SMALLEST = 1e-8  # of the variance of a site: below it a direction may be rounding
TAIL = 1e-3  # part of the values that the tail index is fitted to
LARGEST_MATRIX = 400  # sites, of a covariance matrix for every group
LAGS = 12  # compared with the Ising ring


class Measurements:
    """Sums over the rows of one class, one a group; `weights` of groups then give any statistic.

    Args:
        stimulus: The rows, as a network sees them.
    """

    def __init__(self, stimulus: Rows):
        rows = stimulus.rows
        self.num, self.shape, self.size = len(rows), stimulus.shape, stimulus.size
        self.bounds = np.linspace(0, self.num, GROUPS + 1).astype(int)
        self.counts = np.diff(self.bounds).astype(float)
        centered = 0.0 if stimulus.sign_symmetric else stimulus.site_means().reshape(1, self.size)
        self._group = lambda g: (
            np.asarray(rows[self.bounds[g] : self.bounds[g + 1]], np.float64) - centered
        )
        self.kinds, directions, self.which = _directions(self.shape)
        values = _some(rows)
        self.edges, self.discrete = _edges(values)
        self.tail_index, self.tail_error = hill(values - values.mean())
        axes = tuple(range(1, len(self.shape) + 1))
        parts = []
        for g in range(GROUPS):
            x = self._group(g)
            there = np.fft.fftn(x.reshape(-1, *self.shape), axes=axes)
            power = (there.real**2 + there.imag**2).sum(axis=0) / self.size
            along = np.abs(x @ directions)
            moments = np.stack(
                [np.sqrt(along).sum(axis=0), along.sum(axis=0), (along**2).sum(axis=0)]
            )
            raw = np.asarray(rows[self.bounds[g] : self.bounds[g + 1]], np.float64).ravel()
            place = np.searchsorted(self.edges, raw, side="right")
            binned = [np.bincount(place, raw**p, minlength=len(self.edges) + 1) for p in range(3)]
            quartic = np.array([(x**2).sum(), (x**4).sum()]) / self.size
            parts.append((power, moments, np.stack(binned), quartic))
        self.power, self.moments, self.binned, self.quartic = (
            np.stack(part) for part in zip(*parts, strict=True)
        )

    # -- statistics of weighted groups --------------------------------------------------------------------------

    def row(self, weights: np.ndarray) -> np.ndarray:
        """Covariance at every displacement, averaged over all pairs of sites."""
        power = np.tensordot(weights, self.power, 1) / (weights @ self.counts)
        return np.fft.ifftn(power).real

    @functools.cached_property
    def _products(self) -> np.ndarray:
        return np.stack([x.T @ x for x in map(self._group, range(GROUPS))])

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """Covariance of all pairs of sites, (*shape, *shape)."""
        whole = np.tensordot(weights, self._products, 1) / (weights @ self.counts)
        return whole.reshape(self.shape * 2)

    def kurtosis(self, weights: np.ndarray) -> Any:
        """Excess kurtosis of a site, averaged over sites; for weights (group,) or (…, group)."""
        second, fourth = np.moveaxis(weights @ self.quartic, -1, 0) / (weights @ self.counts)
        return fourth / second**2 - 3

    def law(self, weights: np.ndarray) -> Empirical:
        """Law of a site: a bin is its mean twice, a deviation apart, or one value where there are few.

        Weights change how much a bin counts, not where it is.
        """
        count, whole = weights @ self.binned[:, 0], self.binned.sum(axis=0)
        full = (whole[0] > 0) & (count > 0)
        count, whole = count[full], whole[:, full]
        mean = whole[1] / whole[0]
        if self.discrete:
            return Empirical(mean, count)
        sd = np.sqrt(np.maximum(whole[2] / whole[0] - mean**2, 0))
        return Empirical(np.concatenate([mean - sd, mean + sd]), np.concatenate([count, count]))

    def flatness(self, weights: np.ndarray, heavy: bool) -> np.ndarray:
        """Of the law of ⟨w, X⟩ in every kind of direction, with its scale divided out: the same for elliptical data.

        The logarithm of E|S|/√E[S²]; with `heavy` tails, of E|S|/(E√|S|)², which needs fewer moments.
        """
        half, one, two = np.tensordot(weights, self.moments, 1) / (weights @ self.counts)
        half, one, two = (np.log(np.where(self._seen, part, 1)) for part in (half, one, two))
        value = one - (2 * half if heavy else 0.5 * two)
        return np.array([value[(self.which == k) & self._seen].mean() for k in self.present])

    @functools.cached_property
    def _seen(self) -> np.ndarray:
        """Which directions vary by more than rounding."""
        return self.moments[:, 2].sum(axis=0) > SMALLEST * self.quartic[:, 0].sum()

    @property
    def present(self) -> list[int]:
        """The kinds of such directions."""
        return [k for k in range(len(self.kinds)) if ((self.which == k) & self._seen).any()]

    @property
    def ones(self) -> np.ndarray:
        """Every group once."""
        return np.ones(GROUPS)

    @property
    def two_valued(self) -> bool:
        """Whether every site is one of two opposite numbers."""
        values = self.edges
        few = self.discrete and len(values) == 2
        return bool(few and abs(values[0] + values[1]) < 1e-6 * (values[1] - values[0]))


def leave_one_out() -> np.ndarray:
    """Weights that leave out each group in turn, (group, group)."""
    return 1.0 - np.eye(GROUPS)


def resamples(num: int, seed: int = 0) -> np.ndarray:
    """Weights of bootstrap resamples of the groups, (num, group)."""
    return (
        np.random.default_rng(seed)
        .multinomial(GROUPS, np.full(GROUPS, 1 / GROUPS), num)
        .astype(float)
    )


# -- is it elliptical, is it an Ising ring ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Flatness:
    """E|S|/√E[S²] of projections S on directions of several kinds, relative to the average kind.

    Args:
        kinds: What the directions are.
        values: Logarithms, less their mean.
        errors: Their standard errors.
        p: Chance of deviations like these if the law is elliptical.
        power: Standard errors by which one site and a random direction would differ if distant sites were independent.
    """

    kinds: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray
    p: float
    power: float


def flatness(found: Measurements, heavy: bool) -> Flatness:
    """Compare the kinds of directions by Hotelling's test on what is left when a group is left out."""
    value = found.flatness(found.ones, heavy)
    left = np.stack([found.flatness(one, heavy) for one in leave_one_out()])
    kinds = tuple(found.kinds[k] for k in found.present)
    relative = left - left.mean(axis=1, keepdims=True)
    # Of a normal Z, E|Z|/(E√|Z|)² and E|Z|/√E[Z²].
    normal = (
        math.log(math.sqrt(math.pi) / math.gamma(0.75) ** 2)
        if heavy
        else 0.5 * math.log(2 / math.pi)
    )
    contrast = left[:, kinds.index("site")] - left[:, kinds.index("random")]
    error = float(jackknife(contrast))
    power = abs(value[kinds.index("site")] - normal) / error if error > 0 else math.inf
    p = hotelling(value[1:] - value[:1], left[:, 1:] - left[:, :1])
    return Flatness(kinds, value - value.mean(), jackknife(relative), p, power)


def hotelling(value: np.ndarray, left: np.ndarray) -> float:
    """Chance that numbers are all zero, from their values without each of the groups, (group, number)."""
    from scipy.stats import f  # late: it takes longer to import than the rest of the package

    groups, num = left.shape
    spread = (groups - 1) / groups * (left - left.mean(axis=0)).T @ (left - left.mean(axis=0))
    scale = np.sqrt(np.maximum(np.diag(spread), np.finfo(float).tiny))
    inverse = np.linalg.pinv(spread / np.outer(scale, scale), rcond=1e-9, hermitian=True)
    square = float((value / scale) @ inverse @ (value / scale))
    return float(f.sf(square * (groups - num) / (num * (groups - 1)), num, groups - num))


def ising_coupling(row: np.ndarray) -> float:
    """The coupling of the ring whose neighbors are as correlated."""
    from scipy.optimize import brentq

    size, wanted = len(row), row[1] / row[0]

    def off(t: float) -> float:
        return (t + t ** (size - 1)) / (1 + t**size) - wanted

    if not off(-0.999) < 0 < off(0.999):
        return math.nan
    root: Any = brentq(off, -0.999, 0.999, xtol=1e-14)
    return math.atanh(root)


def ising_p(found: Measurements) -> float:
    """Chance of the covariance of these ±1 rows on an Ising ring with their correlation of neighbors; 0 for none."""
    if len(found.shape) != 1 or not found.two_valued or found.size < 4:
        return 0.0
    lags = slice(2, min(found.size // 2, LAGS) + 1)

    def off(weights: np.ndarray) -> np.ndarray:
        row = found.row(weights)
        coupling = ising_coupling(row)
        return row[lags] / row[0] - Ising(found.shape, coupling=coupling).covariance()[lags]

    if math.isnan(ising_coupling(found.row(found.ones))):
        return 0.0
    left = np.stack([off(one) for one in leave_one_out()])
    return hotelling(off(found.ones), left) if np.isfinite(left).all() else 0.0


# -- values -----------------------------------------------------------------------------------------------------


def hill(values: np.ndarray) -> tuple[float, float]:
    """Hill's estimate of the tail index from the largest of many values, and its standard error."""
    size = np.sort(np.abs(values))[::-1]
    count = max(20, int(TAIL * size.size))
    if size.size <= count or size[count] <= 0:
        return math.inf, 0.0
    mean = float(np.mean(np.log(size[:count] / size[count])))
    return (math.inf, 0.0) if mean <= 0 else (1 / mean, 1 / mean / math.sqrt(count))


def likeness(rows: np.ndarray) -> float:
    """Correlation of a row with the next one, of values or of squares, whichever is larger; at least 0."""
    some = np.asarray(rows[:20_000], np.float64)
    best = 0.0
    for values in (some, some**2):
        values = values - values.mean(axis=0)
        total = float(np.sum(values**2))
        if total > 0:
            best = max(best, float(np.sum(values[1:] * values[:-1])) / total)
    return best


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The different rows and which of them each row is; None where there are more than one for twenty rows."""
    few = np.unique(np.asarray(rows[:200]))
    if few.size > 64:
        return None
    packed = (
        np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    )
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    return (
        None
        if 20 * len(first) > len(rows)
        else (np.asarray(rows[first], np.float64), which.ravel())
    )


def _some(rows: np.ndarray) -> np.ndarray:
    step = max(1, rows.size // MOST_VALUES)
    return np.asarray(rows[::step], np.float64).ravel()


def _edges(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Left edges of bins: the values themselves where they are few, else closer where they are dense and far out."""
    few = np.unique(values[:100_000])
    if len(few) <= BINS // 2 and len(few := np.unique(values)) <= BINS // 2:
        return few, True
    u = scipy.special.ndtr(np.linspace(-5.2, 5.2, BINS))
    return np.unique(np.quantile(values, u)), False


def _directions(shape: tuple[int, ...]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of kinds, directions (size, num), and the kind of each."""
    size, generator = math.prod(shape), np.random.default_rng(0)
    sites = np.unique(np.linspace(0, size - 1, min(size, SITES)).astype(int))
    single = np.eye(size)[sites]
    next_one = np.stack([np.roll(one.reshape(shape), 1, axis=0).ravel() for one in single])
    far = distance(shape)
    width = max(1.0, min(shape) / 16)
    bump = np.exp(-0.5 * (far / width) ** 2)
    at = [np.unravel_index(site, shape) for site in sites[:: max(1, len(sites) // 8)]]
    bumps = [np.roll(bump, place, tuple(range(len(shape)))).ravel() for place in at]
    kinds = {
        "site": single,
        "sum of neighbors": single + next_one,
        "difference": single - next_one,
        "bump": np.stack(bumps),
        **_waves(shape, generator),
        "constant": np.ones((1, size)),
        "random": generator.normal(size=(RANDOM, size)),
    }
    which = np.repeat(np.arange(len(kinds)), [len(one) for one in kinds.values()])
    whole = np.concatenate(list(kinds.values()))
    return list(kinds), (whole / np.linalg.norm(whole, axis=1, keepdims=True)).T, which


def _waves(shape: tuple[int, ...], generator: np.random.Generator) -> dict[str, np.ndarray]:
    frequencies = np.stack(
        np.meshgrid(*(np.fft.fftfreq(n) for n in shape), indexing="ij"), -1
    ).reshape(-1, len(shape))
    frequencies = frequencies[1:]
    frequencies = frequencies[np.argsort(np.linalg.norm(frequencies, axis=1), kind="stable")]
    place = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, len(shape))
    found = {}
    for name, part in zip(
        ("slow waves", "waves", "fast waves"), np.array_split(frequencies, 3), strict=True
    ):
        some = part[np.sort(generator.permutation(len(part))[:WAVES])]
        if len(some):
            phase = 2 * np.pi * generator.random((len(some), 1))
            found[name] = np.cos(2 * np.pi * some @ place.T + phase)
    return found
