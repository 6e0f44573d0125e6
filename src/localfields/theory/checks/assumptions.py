"""What the effective flow assumes of a stimulus, measured with uncertainties.

The paper assumes of the stimulus: distant sites are nearly independent (S1), the distribution does
not change under shifts (S2) or signs (S3), the conditional mean is linear (A1) and the conditional
covariance does not depend on the value that is conditioned on (A2); of the field, that no weight
dominates, so that ⟨w, X⟩ given X_i is normal (A3, see `validity`). All are measured from samples in
independent groups: what two groups agree on is signal, so that squares of deviations are unbiased,
and the spread of the groups is the uncertainty.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ...errors import InputError, show
from ...lattice import distance
from ...marginals import TwoPoint
from ...stimuli import Stimulus
from ...stimuli.samples import Rows
from ..base import site_variances
from .sampling import BINS, GROUPS, jackknife, mean_square, sample_groups, signed_root

NUM_CONDITIONED = 4  # conditioned on, one after the other
NEAREST = 64  # sites whose conditional mean and covariance are measured
SIGNIFICANT = 1e-6  # p-value below which an assumption counts as contradicted
FAR_CORRELATION, FAR_DEPENDENCE, FAR_Z = 0.25, 0.05, 5.0  # of the farthest sites (S1)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A number with its standard error."""

    value: float  # the number; zero where the assumption holds
    # Its standard error (of a distance that is zero within noise: how large it could be)
    error: float
    z: float  # number of standard errors from zero
    tries: int = 1  # how many numbers were measured, of which this one has the largest z

    @property
    def p(self) -> float:
        """p-value of the largest z of so many, with Bonferroni's correction."""
        return min(1.0, self.tries * float(scipy.special.erfc(abs(self.z) / math.sqrt(2))))

    def __str__(self) -> str:
        """As value ± error."""
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclasses.dataclass(frozen=True, repr=False)
class StimulusCheck:
    """Assumptions on a stimulus, measured; printed, it is a table."""

    stimulus: Stimulus  # the stimulus
    num: int  # number of samples
    distances: np.ndarray  # distances on the lattice, (distance,)
    correlation: np.ndarray  # correlation of two sites at each distance, averaged over pairs
    # The same of their sizes X²/(σ² + X²): dependence beyond correlation (S1)
    dependence: np.ndarray
    dependence_error: np.ndarray  # standard errors of `dependence`
    far_correlation: Measured  # `correlation` at the largest distance
    far_dependence: Measured  # `dependence` at the largest distance
    # Largest deviation of a site from the average site (S2), in a mean, a spread or a product of
    # neighbors of the bounded X/√(σ² + X²)
    shift: Measured
    sign: Measured  # largest average of an odd function of the same (S3)
    conditional_mean: Measured  # distance of E[X|X_i] from X_i Σ_i/σ², relative to the latter (A1)
    # √E(E[X_j|X_i] − X_i Σ_ij/σ²)²/σ at each displacement j − i, of the lattice's shape; nan beyond
    # the sites that were measured
    mean_by_site: np.ndarray
    mean_by_site_error: np.ndarray  # its standard errors
    # Distance of Cov[X|X_i] from Σ − Σ_i Σ_iᵀ/σ², relative to the latter (A2)
    conditional_covariance: Measured

    @property
    def far_sites_depend(self) -> bool:
        """Whether S1 fails: the farthest sites have a correlation above ¼, or sizes above 0.05."""
        far = ((self.far_correlation, FAR_CORRELATION), (self.far_dependence, FAR_DEPENDENCE))
        return any(bool(abs(m.value) > limit and abs(m.z) > FAR_Z) for m, limit in far)

    @property
    def contradicted(self) -> tuple[str, ...]:
        """Properties that the stimulus declares and the samples contradict."""
        wrong = {
            "S1": self.stimulus.weakly_dependent and self.far_sites_depend,
            "S2": self.stimulus.translation_invariant and self.shift.p < SIGNIFICANT,
            "S3": self.stimulus.sign_symmetric and self.sign.p < SIGNIFICANT,
        }
        return tuple(name for name, contradicted in wrong.items() if contradicted)

    def __repr__(self) -> str:
        """The table."""
        stimulus, far = self.stimulus, f"distance {self.distances[-1]:g}"

        def declared(holds: bool) -> str:
            return "holds" if holds else "does not hold"

        normal = stimulus.elliptical and stimulus.weakly_dependent
        signs = isinstance(stimulus.marginal(), TwoPoint)
        weakly, shifts = stimulus.weakly_dependent, stimulus.translation_invariant
        a1, a2 = "exact" * (stimulus.elliptical or signs), "exact" * (normal or signs)
        shift, sign = f"largest of {self.shift.tries}", f"largest of {self.sign.tries}"
        table = [
            ("S1", f"dependence of sizes at {far}", self.far_dependence, declared(weakly)),
            ("", f"correlation at {far}", self.far_correlation, ""),
            ("S2", f"a site apart, {shift}", self.shift, declared(shifts)),
            ("S3", f"odd average, {sign}", self.sign, declared(stimulus.sign_symmetric)),
            ("A1", "E[X|X_i] off linear, relative", self.conditional_mean, a1),
            ("A2", "Cov[X|X_i] off constant, relative", self.conditional_covariance, a2),
        ]
        lines = [
            f"{stimulus!r}, {self.num} samples",
            f"    {'':38s}{'measured':>18s}{'z':>9s}  declared",
            *(
                f"{name:4s}{text:38s}{m!s:>18s}{m.z:9.3g}  {statement}"
                for name, text, m, statement in table
            ),
        ]
        if self.contradicted:
            wrong = ", ".join(self.contradicted)
            lines.append(f"The samples contradict what is declared: {wrong}.")
        return "\n".join(lines)


def check_stimulus(stimulus: Stimulus, *, num: int | None = None, seed: int = 0) -> StimulusCheck:
    """Measure what the effective flow assumes of a stimulus: S1, S2, S3, A1 and A2.

    A1 and A2 are exact for Gaussian and for ±1 data. They are measured over 16 equally likely bins
    of X_i (its two values for ±1 data), at four sites i, for the 64 sites nearest to each. A2 needs
    fourth moments: if those are infinite, its standard error cannot be trusted.

    Args:
        stimulus: Any stimulus.
        num: Number of samples; by default 100 000, fewer on large lattices.
        seed: Seed of the samples.

    Returns:
        The measured numbers; print them for a table.

    Raises:
        InputError: If `stimulus` is not a single stimulus.

    Example:
        >>> import localfields as lf
        >>> check = check_stimulus(lf.stimuli.StudentT((40,), xi=2, nu=8))
        >>> # A common radius makes far sites dependent, but not correlated.
        >>> check.far_dependence.value > 0.05, check.far_correlation.value < 0.05
        (True, True)
    """
    if not isinstance(stimulus, Stimulus):
        raise InputError(
            f"`stimulus` must be a stimulus, got {show(stimulus)}. "
            "For example `lf.stimuli.Ising(40)`."
        )
    stimulus.require_one("to check")
    scales = np.sqrt(site_variances(stimulus))
    if isinstance(stimulus, Rows):
        # One scale for all sites: their own would hide differences, or be noise of the tails.
        scales = np.full_like(scales, math.sqrt(np.mean(scales**2)))
    shifts, signs, condition = _LargestMean(), _LargestMean(), None
    distances = np.unique(_distances(stimulus.shape))
    profiles = np.zeros((GROUPS, 2, len(distances)))  # of the correlation and of the dependence
    directions = np.random.default_rng(0).normal(size=(stimulus.size, 8))
    for group, x in sample_groups(stimulus, num, seed):
        centered = x - stimulus.mean()
        unit = centered / scales
        size = unit**2 / (1 + unit**2)
        profiles[group] += [_by_distance(unit, stimulus.shape), _by_distance(size, stimulus.shape)]
        shifts.add(_site_averages(unit, stimulus.shape))
        signs.add(_odd_averages(x / scales, directions, stimulus.shape))
        condition = condition or _ConditionalMoments(stimulus, centered)
        condition.add(group, centered)
    assert condition is not None
    # Sizes that do not vary, as those of ±1 data, carry no dependence.
    profiles = profiles / np.where(profiles[..., :1] > 1e-9, profiles[..., :1], np.inf)
    profile, errors = profiles.mean(axis=0), profiles.std(axis=0, ddof=1) / math.sqrt(GROUPS)
    far = [
        Measured(float(value), float(error), float(value / error) if error > 0 else 0.0)
        for value, error in zip(profile[:, -1], errors[:, -1], strict=True)
    ]
    return StimulusCheck(
        stimulus=stimulus,
        num=shifts.num,
        distances=distances,
        correlation=profile[0],
        dependence=profile[1],
        dependence_error=errors[1],
        far_correlation=far[0],
        far_dependence=far[1],
        shift=shifts.measured(),
        sign=signs.measured(),
        **condition.measured(),
    )


def _distances(shape: tuple[int, ...]) -> np.ndarray:
    return distance(shape).round(9).ravel()


def _by_distance(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Covariance of two sites at each distance, averaged over samples and pairs."""
    fields = (values - values.mean(axis=0)).reshape(-1, *shape)
    axes = tuple(range(1, fields.ndim))
    power = (np.abs(np.fft.fftn(fields, axes=axes)) ** 2).mean(axis=0)
    row = np.fft.ifftn(power).real.ravel() / values.shape[1]
    _, which, count = np.unique(_distances(shape), return_inverse=True, return_counts=True)
    return np.bincount(which, row) / count


def _site_averages(unit: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Bounded functions whose mean must not depend on the site, minus their average over sites."""
    bounded = (unit / np.sqrt(1 + unit**2)).reshape(-1, *shape)
    products = [bounded * np.roll(bounded, 1, axis + 1) for axis in range(len(shape))]
    flat = [values.reshape(len(unit), -1) for values in (bounded, bounded**2, *products)]
    return np.concatenate([values - values.mean(axis=1, keepdims=True) for values in flat], axis=1)


def _odd_averages(unit: np.ndarray, directions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Bounded odd functions of single sites, of neighbors and of sums, whose mean must be zero."""
    bounded = (unit / np.sqrt(1 + unit**2)).reshape(-1, *shape)
    along = np.column_stack([unit.sum(axis=1), unit @ directions])
    along = along / np.sqrt(np.mean(along**2, axis=0))
    odd = [bounded, bounded**3]
    for axis in range(1, bounded.ndim):
        odd += [bounded**2 * np.roll(bounded, 1, axis)]
        odd += [bounded * np.roll(bounded, 1, axis) * np.roll(bounded, -1, axis)]
    averages = [values.reshape(len(unit), -1).mean(axis=1) for values in odd]
    return np.column_stack(
        [bounded.reshape(len(unit), -1), along / np.sqrt(1 + along**2), *averages]
    )


class _LargestMean:
    """Running means of many numbers, and the one that is most standard errors from zero."""

    num: int = 0
    total: Any = 0.0
    square: Any = 0.0

    def add(self, values: np.ndarray) -> None:
        self.num += len(values)
        self.total = self.total + values.sum(axis=0)
        self.square = self.square + (values**2).sum(axis=0)

    def measured(self) -> Measured:
        mean = self.total / self.num
        # A number that does not vary is zero up to rounding: its spread is that of float32.
        spread = np.sqrt(np.maximum(self.square / self.num - mean**2, 1e-12))
        errors = spread / math.sqrt(self.num)
        worst = int(np.abs(mean / errors).argmax())
        return Measured(
            abs(mean[worst]), errors[worst], abs(mean[worst] / errors[worst]), tries=mean.size
        )


class _ConditionalMoments:
    """Deviations of mean and covariance given one site from their forms, in bins of that site."""

    def __init__(self, stimulus: Stimulus, pilot: np.ndarray):
        self.shape, size = stimulus.shape, stimulus.size
        sites = np.random.default_rng(0).permutation(size)
        # On a site that never varies, such as a dead pixel, nothing can be conditioned.
        varying = sites[np.ptp(pilot, axis=0)[sites] > 0]
        self.sites = (varying if varying.size else sites)[:NUM_CONDITIONED]
        # Displacements, the origin first.
        self.steps = np.argsort(_distances(self.shape), kind="stable")[:NEAREST]
        moves = np.unravel_index(self.steps, self.shape)
        near = []
        for site in self.sites:
            origin = np.unravel_index(site, self.shape)
            moved = ((a + b) % n for a, b, n in zip(origin, moves, self.shape, strict=True))
            near.append(np.ravel_multi_index(tuple(moved), self.shape))
        self.near = np.array(near)
        inner = np.arange(1, BINS) / BINS
        self.edges = [
            np.unique(np.quantile(pilot[:, site], inner, method="lower")) for site in self.sites
        ]
        covariances = [_covariance_among(stimulus, sites) for sites in self.near]
        self.columns = np.array([covariance[0] for covariance in covariances])
        self.forms = np.array(
            [
                covariance - np.outer(column, column) / column[0]
                for covariance, column in zip(covariances, self.columns, strict=True)
            ]
        )
        self.bins = max(len(edges) for edges in self.edges) + 1
        self.sums: list[Any] = [None] * GROUPS

    def add(self, group: int, centered: np.ndarray) -> None:
        """Add samples of one group."""
        given = centered[:, self.sites]
        slopes = self.columns / self.columns[:, :1]
        # Under A1 and A2, X without its linear part has mean zero and the expected covariance in
        # every bin, however wide.
        rest = centered[:, self.near] - given[:, :, None] * slopes
        which = [
            np.searchsorted(edges, x, side="right")
            for edges, x in zip(self.edges, given.T, strict=True)
        ]
        moments = _binned_moments(np.float32(rest.transpose(1, 0, 2)), np.array(which), self.bins)
        sums = [np.asarray(moment, np.float64) for moment in moments]
        last = self.sums[group]
        self.sums[group] = (
            sums if last is None else [a + b for a, b in zip(last, sums, strict=True)]
        )

    def measured(self) -> dict[str, Any]:
        """The fields of a `StimulusCheck`."""
        # (group, site, bin, …)
        counts, means, seconds = (np.array(part) for part in zip(*self.sums, strict=True))
        weights = counts.sum(axis=0) * (counts.min(axis=0) > 1)
        # Over sites and bins together; nan if no bin has enough samples.
        weights = (
            np.sqrt(weights / weights.sum()) if weights.any() else np.full(weights.shape, np.nan)
        )
        counts = np.maximum(counts, 2)[..., None]
        means = means / counts
        spreads = seconds - counts[..., None] * means[..., None, :] * means[..., :, None]
        spreads = spreads / (counts[..., None] - 1) - self.forms[:, None]
        means, spreads = means * weights[..., None], spreads * weights[..., None, None]
        columns = self.columns
        linear = np.mean(np.sum(columns**2, axis=1) / columns[:, 0])
        square, left_out = mean_square(means, (0, 1))
        rows = np.full((2, math.prod(self.shape)), np.nan)
        rows[:, self.steps] = signed_root(square, jackknife(left_out)) / math.sqrt(
            columns[:, 0].mean()
        )
        constant = np.mean(np.sum(self.forms**2, axis=(1, 2)))
        square2, left_out2 = mean_square(spreads, (0, 1, 2, 3))
        return {
            "conditional_mean": _distance(square.sum() / linear, left_out.sum(axis=1) / linear),
            "mean_by_site": rows[0].reshape(self.shape),
            "mean_by_site_error": rows[1].reshape(self.shape),
            "conditional_covariance": _distance(square2 / constant, left_out2 / constant),
        }


def _covariance_among(stimulus: Stimulus, sites: np.ndarray) -> np.ndarray:
    """Cov(X_a, X_b) for sites in C order, without building the matrix of all sites."""
    values, shape = np.asarray(stimulus.covariance(), np.float64), stimulus.shape
    if values.shape != shape:
        return values.reshape(stimulus.size, -1)[np.ix_(sites, sites)]
    places = zip(np.unravel_index(sites, shape), shape, strict=True)
    return values[tuple((x[None, :] - x[:, None]) % n for x, n in places)]


@functools.partial(jax.jit, static_argnames="bins")
def _binned_moments(
    rest: jax.Array, which: jax.Array, bins: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Count, sum and sum of products in each bin, of (site, sample, near site)."""

    def of_site(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        values, bin_of = given
        chosen = jax.nn.one_hot(bin_of, bins, dtype=values.dtype)
        split = chosen[:, :, None] * values[:, None, :]
        exact = jax.lax.Precision.HIGHEST
        products = jnp.einsum("mbk,ml->bkl", split, values, precision=exact)
        return chosen.sum(axis=0), split.sum(axis=0), products

    return jax.lax.map(of_site, (rest, which))


def _distance(square: Any, left_out: np.ndarray) -> Measured:
    spread = float(jackknife(left_out))
    value, error = signed_root(float(square), spread).tolist()
    return Measured(value, error, float(square) / spread if spread > 0 else 0.0)
