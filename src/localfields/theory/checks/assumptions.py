"""What the effective flow assumes of a stimulus and of a field, as measured numbers with their uncertainties.

The paper asks of the stimulus: distant sites nearly independent (S1), every shift alike (S2), X and −X alike (S3), a
linear conditional mean (A1) and a conditional covariance that does not depend on what it is conditioned on (A2); of
the field that no weight dominates, so that ⟨w, X⟩ given X_i is normal (A3). All are measured from draws, in independent
groups: what two groups agree on is signal, so that squares of deviations are unbiased, and the groups' spread is the
uncertainty.
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

from ...errors import refuse
from ...lattice import distance
from ...marginals import TwoPoint
from ...stimuli import Stimulus
from ...stimuli.samples import Rows
from .draws import BINS, GROUPS, Covariances, draws, jackknife, mean_square, signed_root

SITES = 4  # conditioned on, one after the other
NEAREST = 64  # of the other sites, that the conditional mean and covariance are taken of
SIGNIFICANT = 1e-6  # chance below which an assumption counts as contradicted
FAR_CORRELATION, FAR_DEPENDENCE, FAR_Z = 0.25, 0.05, 5.0  # of the farthest sites (S1)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A number with its standard error.

    Args:
        value: The number; zero where the assumption holds.
        error: Its standard error (of a distance that is zero within noise: how large it could be).
        z: By how many standard errors it is not zero.
        tries: How many numbers were looked at, of which this is the one with the largest z.
    """

    value: float
    error: float
    z: float
    tries: int = 1

    @property
    def p(self) -> float:
        """At most the chance that the largest z of so many is noise."""
        return min(1.0, self.tries * float(scipy.special.erfc(abs(self.z) / math.sqrt(2))))

    def __str__(self) -> str:
        """As value ± error."""
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclasses.dataclass(frozen=True, repr=False)
class StimulusCheck:
    """Assumptions on a stimulus, measured; printed, it is a table.

    Args:
        stimulus: What was looked at.
        num: Number of draws.
        distances: Distances on the lattice, (distance,).
        correlation: Correlation of two sites at each distance, averaged over pairs.
        dependence: The same of their sizes X²/(σ² + X²): what is left of dependence when correlation is gone (S1).
        dependence_error: Standard errors of `dependence`.
        far_correlation: `correlation` at the largest distance.
        far_dependence: `dependence` at the largest distance.
        shift: Largest deviation of a site from the average site (S2), in a mean, a spread or a product of neighbors.
        sign: Largest average of an odd function (S3). Both are of bounded functions X/√(σ² + X²).
        conditional_mean: Distance of E[X|X_i] from X_i Σ_i/σ², relative to the latter (A1).
        mean_by_site: √E(E[X_j|X_i] − X_i Σ_ij/σ²)²/σ at each displacement j − i, of the lattice's shape; nan beyond the
            sites that were looked at.
        mean_by_site_error: Its standard errors.
        conditional_covariance: Distance of Cov[X|X_i] from Σ − Σ_i Σ_iᵀ/σ², relative to the latter (A2).
    """

    stimulus: Stimulus
    num: int
    distances: np.ndarray
    correlation: np.ndarray
    dependence: np.ndarray
    dependence_error: np.ndarray
    far_correlation: Measured
    far_dependence: Measured
    shift: Measured
    sign: Measured
    conditional_mean: Measured
    mean_by_site: np.ndarray
    mean_by_site_error: np.ndarray
    conditional_covariance: Measured

    @property
    def far_sites_depend(self) -> bool:
        """Whether S1 fails: the farthest sites have a correlation above ¼, or their sizes one above 0.05."""
        far = ((self.far_correlation, FAR_CORRELATION), (self.far_dependence, FAR_DEPENDENCE))
        return any(bool(abs(one.value) > most and abs(one.z) > FAR_Z) for one, most in far)

    @property
    def contradicted(self) -> tuple[str, ...]:
        """Properties that the stimulus declares and the draws contradict."""
        found = {
            "S1": self.stimulus.weakly_dependent and self.far_sites_depend,
            "S2": self.stimulus.translation_invariant and self.shift.p < SIGNIFICANT,
            "S3": self.stimulus.sign_symmetric and self.sign.p < SIGNIFICANT,
        }
        return tuple(name for name, wrong in found.items() if wrong)

    def __repr__(self) -> str:
        """The table."""
        said, far = self.stimulus, f"distance {self.distances[-1]:g}"
        normal, signs = (
            said.elliptical and said.weakly_dependent,
            isinstance(said.marginal(), TwoPoint),
        )
        rows = [
            (
                "S1",
                f"dependence of sizes at {far}",
                self.far_dependence,
                _yes(said.weakly_dependent),
            ),
            ("", f"correlation at {far}", self.far_correlation, ""),
            (
                "S2",
                f"a site apart, largest of {self.shift.tries}",
                self.shift,
                _yes(said.translation_invariant),
            ),
            (
                "S3",
                f"odd average, largest of {self.sign.tries}",
                self.sign,
                _yes(said.sign_symmetric),
            ),
            (
                "A1",
                "E[X|X_i] off linear, relative",
                self.conditional_mean,
                "exact" * (said.elliptical or signs),
            ),
            (
                "A2",
                "Cov[X|X_i] off constant, relative",
                self.conditional_covariance,
                "exact" * (normal or signs),
            ),
        ]
        lines = [f"{said!r}, {self.num} draws", f"    {'':38s}{'measured':>18s}{'z':>9s}  declared"]
        lines += [
            f"{name:4s}{what:38s}{m!s:>18s}{m.z:9.3g}  {declared}"
            for name, what, m, declared in rows
        ]
        if self.contradicted:
            lines.append(f"The draws contradict what is declared: {', '.join(self.contradicted)}.")
        return "\n".join(lines)


def _yes(declared: bool) -> str:
    return "holds" if declared else "does not hold"


def check_stimulus(stimulus: Stimulus, *, num: int | None = None, seed: int = 0) -> StimulusCheck:
    """Measure what the effective flow assumes of a stimulus: S1, S2, S3, A1 and A2.

    A1 and A2 are exact for Gaussian and for ±1 data. They are measured over 16 equally likely bins of X_i (its two
    values for ±1 data), at four sites i, for the 64 sites nearest to each. A2 needs fourth moments: where those are
    infinite, its standard error cannot be trusted.

    Args:
        stimulus: Any stimulus.
        num: Number of draws; by default 100 000, fewer on large lattices.
        seed: Of the draws.

    Returns:
        The measured numbers; print them for a table.

    Raises:
        InputError: When the stimulus is swept, or is none.

    Example:
        >>> import localfields as lf
        >>> check = check_stimulus(lf.stimuli.StudentT((40,), xi=2, nu=8))
        >>> check.far_dependence.value > 0.05, check.far_correlation.value < 0.05  # a common radius ties far sites
        (True, True)
    """
    if not isinstance(stimulus, Stimulus):
        refuse("`stimulus`", stimulus, "a stimulus", "For example `lf.stimuli.Ising(40)`.")
    stimulus.require_one("to check")
    covariance = Covariances(stimulus)
    scales = np.sqrt(covariance.variances())
    if isinstance(
        stimulus, Rows
    ):  # one for all: their own would hide what sites differ by, or be noise of the tails
        scales = np.full_like(scales, math.sqrt(np.mean(scales**2)))
    shifts, signs, condition = _Largest(), _Largest(), None
    distances = np.unique(_distances(stimulus.shape))
    profiles = np.zeros((GROUPS, 2, len(distances)))  # of the correlation and of the dependence
    directions = np.random.default_rng(0).normal(size=(stimulus.size, 8))
    for group, x in draws(stimulus, num, seed):
        centered = x - stimulus.mean()
        unit = centered / scales
        size = unit**2 / (1 + unit**2)
        profiles[group] += [_by_distance(unit, stimulus.shape), _by_distance(size, stimulus.shape)]
        shifts.add(_site_averages(unit, stimulus.shape))
        signs.add(_odd_averages(x / scales, directions, stimulus.shape))
        condition = condition or _Conditional(stimulus, covariance, centered)
        condition.add(group, centered)
    assert condition is not None
    # Sizes that do not vary, as those of ±1 data, carry no dependence.
    profiles = profiles / np.where(profiles[..., :1] > 1e-9, profiles[..., :1], np.inf)
    profile, errors = profiles.mean(axis=0), profiles.std(axis=0, ddof=1) / math.sqrt(GROUPS)
    far = [_measured(v, e) for v, e in zip(profile[:, -1], errors[:, -1], strict=True)]
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
    """Covariance of two sites at each distance, averaged over draws and over all pairs at that distance."""
    fields = (values - values.mean(axis=0)).reshape(-1, *shape)
    axes = tuple(range(1, fields.ndim))
    power = (np.abs(np.fft.fftn(fields, axes=axes)) ** 2).mean(axis=0)
    row = np.fft.ifftn(power).real.ravel() / values.shape[1]
    _, which, count = np.unique(_distances(shape), return_inverse=True, return_counts=True)
    return np.bincount(which, row) / count


def _site_averages(unit: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What must not depend on the site: bounded first and second order functions, less their average over sites."""
    bounded = (unit / np.sqrt(1 + unit**2)).reshape(-1, *shape)
    kinds = [bounded, bounded**2] + [
        bounded * np.roll(bounded, 1, axis + 1) for axis in range(len(shape))
    ]
    flat = [kind.reshape(len(unit), -1) for kind in kinds]
    return np.concatenate([kind - kind.mean(axis=1, keepdims=True) for kind in flat], axis=1)


def _odd_averages(unit: np.ndarray, directions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What must average to zero: bounded odd functions of single sites, of neighbors, of sums over many."""
    bounded = (unit / np.sqrt(1 + unit**2)).reshape(-1, *shape)
    along = np.column_stack([unit.sum(axis=1), unit @ directions])
    along = along / np.sqrt(np.mean(along**2, axis=0))
    whole = [bounded, bounded**3]
    for axis in range(1, bounded.ndim):
        whole += [bounded**2 * np.roll(bounded, 1, axis)]
        whole += [bounded * np.roll(bounded, 1, axis) * np.roll(bounded, -1, axis)]
    averages = [kind.reshape(len(unit), -1).mean(axis=1) for kind in whole]
    return np.column_stack(
        [bounded.reshape(len(unit), -1), along / np.sqrt(1 + along**2), *averages]
    )


class _Largest:
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
        # A number that does not vary is zero up to rounding; it gets the rounding of float32 as its spread.
        spread = np.sqrt(np.maximum(self.square / self.num - mean**2, 1e-12))
        errors = spread / math.sqrt(self.num)
        worst = int(np.abs(mean / errors).argmax())
        return Measured(
            abs(mean[worst]), errors[worst], abs(mean[worst] / errors[worst]), tries=mean.size
        )


class _Conditional:
    """Deviations of mean and covariance given one site from their forms, in bins of that site and groups of draws."""

    def __init__(self, stimulus: Stimulus, covariance: Covariances, pilot: np.ndarray):
        self.shape, size = stimulus.shape, stimulus.size
        self.sites = np.random.default_rng(0).permutation(size)[:SITES]
        self.steps = np.argsort(_distances(self.shape), kind="stable")[
            :NEAREST
        ]  # displacements, the origin first
        self.near = np.array([_shifted_sites(site, self.steps, self.shape) for site in self.sites])
        inner = np.arange(1, BINS) / BINS
        self.edges = [
            np.unique(np.quantile(pilot[:, site], inner, method="lower")) for site in self.sites
        ]
        self.columns = np.array([covariance(near[:1], near)[0] for near in self.near])
        form = [
            covariance(near, near) - np.outer(c, c) / c[0]
            for near, c in zip(self.near, self.columns, strict=True)
        ]
        self.forms = np.array(form)
        self.bins = max(len(edges) for edges in self.edges) + 1
        self.sums: list[Any] = [None] * GROUPS

    def add(self, group: int, centered: np.ndarray) -> None:
        """Some draws of one group."""
        given = centered[:, self.sites]
        slopes = self.columns / self.columns[:, :1]
        # Without its linear part X has a conditional mean of zero, and the covariance wanted, inside a whole bin.
        rest = centered[:, self.near] - given[:, :, None] * slopes
        which = [
            np.searchsorted(edges, x, side="right")
            for edges, x in zip(self.edges, given.T, strict=True)
        ]
        found = _moments(np.float32(rest.transpose(1, 0, 2)), np.array(which), self.bins)
        found = [np.asarray(part, np.float64) for part in found]
        last = self.sums[group]
        self.sums[group] = (
            found if last is None else [a + b for a, b in zip(last, found, strict=True)]
        )

    def measured(self) -> dict[str, Any]:
        """The fields of a `StimulusCheck`."""
        counts, means, seconds = (
            np.array(part) for part in zip(*self.sums, strict=True)
        )  # (group, site, bin, …)
        weights = counts.sum(axis=0) * (counts.min(axis=0) > 1)
        # Of sites and bins together; with too few draws for any bin nothing is known.
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
        square, left = mean_square(means, (0, 1))
        rows = np.full((2, math.prod(self.shape)), np.nan)
        rows[:, self.steps] = signed_root(square, jackknife(left)) / math.sqrt(columns[:, 0].mean())
        constant = np.mean(np.sum(self.forms**2, axis=(1, 2)))
        square2, left2 = mean_square(spreads, (0, 1, 2, 3))
        return {
            "conditional_mean": _distance(square.sum() / linear, left.sum(axis=1) / linear),
            "mean_by_site": rows[0].reshape(self.shape),
            "mean_by_site_error": rows[1].reshape(self.shape),
            "conditional_covariance": _distance(square2 / constant, left2 / constant),
        }


@functools.partial(jax.jit, static_argnames="bins")
def _moments(
    rest: jax.Array, which: jax.Array, bins: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Count, sum and sum of products in each bin, for (site, draw, near site) and the bin of each (site, draw)."""

    def one(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        values, bin_of = given
        chosen = jax.nn.one_hot(bin_of, bins, dtype=values.dtype)
        apart = chosen[:, :, None] * values[:, None, :]
        exact = jax.lax.Precision.HIGHEST
        return (
            chosen.sum(axis=0),
            apart.sum(axis=0),
            jnp.einsum("mbk,ml->bkl", apart, values, precision=exact),
        )

    return jax.lax.map(one, (rest, which))


def _shifted_sites(site: Any, steps: np.ndarray, shape: tuple[int, ...]) -> Any:
    origin, moves = np.unravel_index(site, shape), np.unravel_index(steps, shape)
    moved = tuple((a + b) % n for a, b, n in zip(origin, moves, shape, strict=True))
    return np.ravel_multi_index(moved, shape)


def _measured(value: float, error: float) -> Measured:
    return Measured(float(value), float(error), float(value / error) if error > 0 else 0.0)


def _distance(square: Any, left: np.ndarray) -> Measured:
    spread = float(jackknife(left))
    value, error = signed_root(float(square), spread).tolist()
    return Measured(value, error, float(square) / spread if spread > 0 else 0.0)
