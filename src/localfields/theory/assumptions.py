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
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from .._check import Said, refuse
from .._spec import Count, Number, Row, num_members
from .._spec import member as member_of
from ..lattice import distance, product
from ..marginals import TwoPoint
from ..stimuli import BlockPulse, Ising, SinglePulse, Stimulus
from ..stimuli.base import as_key
from ..tasks import Discrimination
from ..trajectory import Trajectory, inverse_participation_ratio
from .base import NeuronTheory, Response
from .effective import EffectiveFlow
from .ising import ExactIsing, adaptive_response
from .linear import LinearResponse
from .pulse import num_atoms, pulse_response

GROUPS = 20  # independent parts of the draws; their spread is the uncertainty
NUMBERS = 4_000_000  # drawn by default: a second or two
LARGEST_PIECE = 400_000  # numbers held at a time
BINS = 16  # of the site conditioned on, equally likely (fewer where it has fewer values)
SITES = 4  # conditioned on, one after the other
NEAREST = 64  # of the other sites, that the conditional mean and covariance are taken of
CELLS = 1024  # of the distance from normal, which is resolved to 1/CELLS
RECORDS = 50  # of a trajectory that are looked at by default
FAILS = 5.0  # standard errors from which an assumption counts as contradicted


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
    def contradicted(self) -> tuple[str, ...]:
        """Properties that the stimulus declares and the draws contradict.

        S1 counts as contradicted when the farthest sites of this lattice have a correlation above ¼, or a dependence
        above 0.05 beside it.
        """
        far = [(self.far_correlation, 0.25), (self.far_dependence, 0.05)]
        found = {
            "S1": self.stimulus.weakly_dependent and any(abs(m.value) > most and abs(m.z) > FAILS for m, most in far),
            "S2": self.stimulus.translation_invariant and self.shift.p < 1e-6,
            "S3": self.stimulus.sign_symmetric and self.sign.p < 1e-6,
        }
        return tuple(name for name, wrong in found.items() if wrong)

    def __repr__(self) -> str:
        """The table."""
        said, far = self.stimulus, f"distance {self.distances[-1]:g}"
        normal, signs = said.elliptical and said.weakly_dependent, isinstance(said.marginal(), TwoPoint)
        rows = [
            ("S1", f"dependence of sizes at {far}", self.far_dependence, _yes(said.weakly_dependent)),
            ("", f"correlation at {far}", self.far_correlation, ""),
            ("S2", f"a site apart, largest of {self.shift.tries}", self.shift, _yes(said.translation_invariant)),
            ("S3", f"odd average, largest of {self.sign.tries}", self.sign, _yes(said.sign_symmetric)),
            ("A1", "E[X|X_i] off linear, relative", self.conditional_mean, "exact" * (said.elliptical or signs)),
            ("A2", "Cov[X|X_i] off constant, relative", self.conditional_covariance, "exact" * (normal or signs)),
        ]
        lines = [f"{said!r}, {self.num} draws", f"    {'':38s}{'measured':>18s}{'z':>9s}  declared"]
        lines += [f"{name:4s}{what:38s}{m!s:>18s}{m.z:9.3g}  {declared}" for name, what, m, declared in rows]
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
    covariance = _Covariances(stimulus)
    scales = np.sqrt(covariance.variances())
    shifts, signs, condition = _Largest(), _Largest(), None
    distances = np.unique(_distances(stimulus.shape))
    profiles = np.zeros((GROUPS, 2, len(distances)))  # of the correlation and of the dependence
    directions = np.random.default_rng(0).normal(size=(stimulus.size, 8))
    for group, x in _draws(stimulus, num, seed):
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


def _draws(stimulus: Stimulus, num: int | None, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    """The draws in pieces of one size, (draws, size) in float64, each with the number of the group it belongs to."""
    least = 2 * GROUPS
    num = max(5000, min(100_000, NUMBERS // stimulus.size)) if num is None else Count(least, 10**9).check("num", num)
    seed = Count(0, 2**63 - 1).check("seed", seed)
    pieces = -(-num * stimulus.size // (GROUPS * LARGEST_PIECE))  # a group
    with jax.enable_x64(False):  # drawn in float32, whatever the user computes in
        for index, key in enumerate(jax.random.split(as_key(seed), GROUPS * pieces)):
            yield index // pieces, np.asarray(stimulus.sample(key, -(-num // (GROUPS * pieces))), np.float64)


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
    kinds = [bounded, bounded**2] + [bounded * np.roll(bounded, 1, axis + 1) for axis in range(len(shape))]
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
    return np.column_stack([bounded.reshape(len(unit), -1), along / np.sqrt(1 + along**2), *averages])


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
        return Measured(abs(mean[worst]), errors[worst], abs(mean[worst] / errors[worst]), tries=mean.size)


class _Covariances:
    """Entries of the covariance matrix, without building it for a translation-invariant stimulus."""

    def __init__(self, stimulus: Stimulus):
        self.values = np.asarray(stimulus.covariance(), np.float64)
        self.shape = stimulus.shape

    def __call__(self, these: np.ndarray, those: np.ndarray) -> np.ndarray:
        """Cov(X_a, X_b) for sites a and b in C order, (a, b)."""
        if self.values.shape != self.shape:
            return self.values.reshape(math.prod(self.shape), -1)[np.ix_(these, those)]
        a, b = (np.unravel_index(sites, self.shape) for sites in (these, those))
        return self.values[tuple((q[None, :] - p[:, None]) % n for p, q, n in zip(a, b, self.shape, strict=True))]

    def variances(self) -> np.ndarray:
        """Of every site, (size,)."""
        size = math.prod(self.shape)
        if self.values.shape == self.shape:
            return np.full(size, self.values.flat[0])
        return np.diagonal(self.values.reshape(size, size))

    def times(self, fields: np.ndarray) -> np.ndarray:
        """Σw for several fields, (field, size)."""
        if self.values.shape != self.shape:
            return fields @ self.values.reshape(fields.shape[1], -1)
        return product(self.values, fields.reshape(-1, *self.shape)).reshape(fields.shape)


class _Conditional:
    """Deviations of mean and covariance given one site from their forms, in bins of that site and groups of draws."""

    def __init__(self, stimulus: Stimulus, covariance: _Covariances, pilot: np.ndarray):
        self.shape, size = stimulus.shape, stimulus.size
        self.sites = np.random.default_rng(0).permutation(size)[:SITES]
        self.steps = np.argsort(_distances(self.shape), kind="stable")[:NEAREST]  # displacements, the origin first
        self.near = np.array([_shifted_sites(site, self.steps, self.shape) for site in self.sites])
        inner = np.arange(1, BINS) / BINS
        self.edges = [np.unique(np.quantile(pilot[:, site], inner, method="lower")) for site in self.sites]
        self.columns = np.array([covariance(near[:1], near)[0] for near in self.near])
        form = [covariance(near, near) - np.outer(c, c) / c[0] for near, c in zip(self.near, self.columns, strict=True)]
        self.forms = np.array(form)
        self.bins = max(len(edges) for edges in self.edges) + 1
        self.sums: list[Any] = [None] * GROUPS

    def add(self, group: int, centered: np.ndarray) -> None:
        """Some draws of one group."""
        given = centered[:, self.sites]
        slopes = self.columns / self.columns[:, :1]
        # Without its linear part X has a conditional mean of zero, and the covariance wanted, inside a whole bin.
        rest = centered[:, self.near] - given[:, :, None] * slopes
        which = [np.searchsorted(edges, x, side="right") for edges, x in zip(self.edges, given.T, strict=True)]
        found = _moments(np.float32(rest.transpose(1, 0, 2)), np.array(which), self.bins)
        found = [np.asarray(part, np.float64) for part in found]
        last = self.sums[group]
        self.sums[group] = found if last is None else [a + b for a, b in zip(last, found, strict=True)]

    def measured(self) -> dict[str, Any]:
        """The fields of a `StimulusCheck`."""
        counts, means, seconds = (np.array(part) for part in zip(*self.sums, strict=True))  # (group, site, bin, …)
        weights = counts.sum(axis=0) * (counts.min(axis=0) > 1)
        weights = np.sqrt(weights / weights.sum())  # of sites and bins together
        counts = np.maximum(counts, 2)[..., None]
        means = means / counts
        spreads = seconds - counts[..., None] * means[..., None, :] * means[..., :, None]
        spreads = spreads / (counts[..., None] - 1) - self.forms[:, None]
        means, spreads = means * weights[..., None], spreads * weights[..., None, None]
        columns = self.columns
        linear = np.mean(np.sum(columns**2, axis=1) / columns[:, 0])
        square, left = _square(means, (0, 1))
        rows = np.full((2, math.prod(self.shape)), np.nan)
        rows[:, self.steps] = _root(square, _jackknife(left)) / math.sqrt(columns[:, 0].mean())
        constant = np.mean(np.sum(self.forms**2, axis=(1, 2)))
        square2, left2 = _square(spreads, (0, 1, 2, 3))
        return {
            "conditional_mean": _distance(square.sum() / linear, left.sum(axis=1) / linear),
            "mean_by_site": rows[0].reshape(self.shape),
            "mean_by_site_error": rows[1].reshape(self.shape),
            "conditional_covariance": _distance(square2 / constant, left2 / constant),
        }


@functools.partial(jax.jit, static_argnames="bins")
def _moments(rest: jax.Array, which: jax.Array, bins: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Count, sum and sum of products in each bin, for (site, draw, near site) and the bin of each (site, draw)."""

    def one(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        values, bin_of = given
        chosen = jax.nn.one_hot(bin_of, bins, dtype=values.dtype)
        apart = chosen[:, :, None] * values[:, None, :]
        exact = jax.lax.Precision.HIGHEST
        return chosen.sum(axis=0), apart.sum(axis=0), jnp.einsum("mbk,ml->bkl", apart, values, precision=exact)

    return jax.lax.map(one, (rest, which))


def _shifted_sites(site: Any, steps: np.ndarray, shape: tuple[int, ...]) -> Any:
    origin, moves = np.unravel_index(site, shape), np.unravel_index(steps, shape)
    moved = tuple((a + b) % n for a, b, n in zip(origin, moves, shape, strict=True))
    return np.ravel_multi_index(moved, shape)


def _square(parts: np.ndarray, axes: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """‖E part‖² without bias, from independent parts along the first axis: the average product of two unlike ones.

    Returns:
        The square, summed over `axes` (of one part), and the squares with one part left out each, for a jackknife.
    """
    groups = len(parts)
    total, own = parts.sum(axis=0, dtype=np.float64), (parts.astype(np.float64) ** 2).sum(axis=0)
    whole = (total**2 - own).sum(axis=axes) / (groups * (groups - 1))
    left = [((total - p) ** 2 - (own - p**2)).sum(axis=axes) / ((groups - 1) * (groups - 2)) for p in parts]
    return whole, np.array(left)


def _jackknife(left: np.ndarray) -> Any:
    """Standard error from what is found without each of the groups, (group, …)."""
    return np.sqrt((len(left) - 1) * left.var(axis=0))


def _measured(value: float, error: float) -> Measured:
    return Measured(float(value), float(error), float(value / error) if error > 0 else 0.0)


def _root(square: Any, error: Any) -> np.ndarray:
    """A distance and its standard error from those of its square, which may come out below zero by noise."""
    value = np.sqrt(np.maximum(square, 0))
    return np.array([value, np.sqrt(value**2 + error) - value])


def _distance(square: Any, left: np.ndarray) -> Measured:
    spread = float(_jackknife(left))
    value, error = _root(float(square), spread).tolist()
    return Measured(value, error, float(square) / spread if spread > 0 else 0.0)


@dataclasses.dataclass(frozen=True, repr=False)
class TrajectoryCheck:
    """Assumption A3 and the error of the effective response along a trajectory, one number a record; a table in print.

    Args:
        stimulus: The class whose response was looked at.
        num: Number of draws.
        times: Flow times, (record,).
        ipr: Inverse participation ratio.
        largest: Largest |w_i|/‖w‖: no weight dominates while it is small.
        normality: Distance of ⟨w, X⟩ given X_i from normal, at the site i of the largest weight: the Kolmogorov
            distance sup|F − Φ| of T = (⟨w, X⟩ − X_i a)/√(s² − a²σ²), a = (Σw)_i/σ², given X_i in one of 16 equally
            likely bins of |X_i| (T is taken times the sign of X_i), averaged over the bins. A1, A2 and A3 together
            say 0. A single site gives ½: nothing is left of the sum.
        normality_noise: What a normal T gives with so many draws.
        excess_kurtosis: Of ⟨w, X⟩; ∞ where the fourth moment of X is.
        error: Relative distance ‖f̃ − f‖/‖f‖ of the theory's response f̃ from f = E[1(⟨w, X⟩ ≥ 0) X].
        uncertainty: Standard error of `error`; 0 where f is known exactly (Ising rings, pulses, elliptical laws).
        tolerance: Error up to which the theory counts as valid.
    """

    stimulus: Stimulus
    num: int
    times: np.ndarray
    ipr: np.ndarray
    largest: np.ndarray
    normality: np.ndarray
    normality_noise: float
    excess_kurtosis: np.ndarray
    error: np.ndarray
    uncertainty: np.ndarray
    tolerance: float

    @property
    def valid_until(self) -> float:
        """Flow time of the first record whose response error exceeds the tolerance; ∞ if none does."""
        over = np.flatnonzero(self.error > self.tolerance)
        return float(self.times[over[0]]) if over.size else math.inf

    def __repr__(self) -> str:
        """The table, of at most a dozen records, and the verdict."""
        lines = [f"{self.stimulus!r}, {self.num} draws", "     time     IPR  |w|/‖w‖  normal    kurt         error"]
        for r in np.unique(np.linspace(0, len(self.times) - 1, 12).astype(int)):
            lines.append(
                f"{self.times[r]:9.4g}{self.ipr[r]:8.3f}{self.largest[r]:9.3f}{self.normality[r]:8.3f}"
                f"{self.excess_kurtosis[r]:8.2f}{self.error[r]:8.3f} ± {self.uncertainty[r]:.3f}"
            )
        until = self.valid_until
        state = "at every record" if math.isinf(until) else f"until flow time {until:.4g}"
        return "\n".join([*lines, f"The response is right to {self.tolerance:g} {state}."])


def check_trajectory(
    trajectory: Trajectory,
    task: Discrimination | Stimulus,
    *,
    theory: NeuronTheory | None = None,
    times: Any = None,
    member: int = 0,
    neuron: int = 0,
    tolerance: float = 0.1,
    num: int | None = None,
    seed: int = 0,
) -> TrajectoryCheck:
    """Measure A3, and the error of the effective response, along a trajectory: when does the theory stop being valid?

    Args:
        trajectory: From `train` or `solve`, with weights recorded.
        task: The task, of which the class that pulls hardest (largest p|y|, the last of equals) is looked at; or one
            stimulus.
        theory: Whose response is compared; by default `EffectiveFlow`, its amplifier from the marginal or, where
            that is not known, from samples.
        times: Flow times to look at: of each the nearest record. By default at most 50 records, evenly spread.
        member: Of the ensemble.
        neuron: Of the network.
        tolerance: Relative error up to which the theory counts as valid.
        num: Number of draws; by default 100 000, fewer on large lattices.
        seed: Of the draws.

    Returns:
        One number a record; `valid_until` is the first flow time at which the error exceeds the tolerance.

    Raises:
        InputError: When the stimulus does not fit the trajectory or the theory, or is not sign symmetric.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> flow = lf.solve(task, lf.theory.ExactIsing(), members=1, until=20)
        >>> check = check_trajectory(flow, task, num=20_000)
        >>> bool(check.largest[0] < 0.5 < check.largest[-1]), check.valid_until < 5  # a bump grows, and A3 fails
        (True, True)
    """
    stimulus = _pulling(task, member)
    fields, when = _records(trajectory, stimulus, times, member, neuron)
    tolerance = float(Number(low=0).check("tolerance", tolerance))
    if theory is None:
        theory = EffectiveFlow(amplifier="samples" if stimulus.marginal() is None else "exact")
    peaks = np.abs(fields).max(axis=1)
    good = np.isfinite(peaks) & (peaks > 0)
    units = np.where(good[:, None], fields, 1.0) / np.where(good, peaks, 1.0)[:, None]
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    with jax.enable_x64(True):
        predicted = _one_by_one(theory.response(stimulus), units)
    draws = _Sums(stimulus, units)
    for group, x in _draws(stimulus, num, seed):
        draws.add(group, x)
    known = _known_response(stimulus)
    gated = draws.gated * (GROUPS / draws.num) if known is None else known(units)[None]
    error, uncertainty = _relative_error(gated, predicted)
    found = {
        "ipr": inverse_participation_ratio(units, axes=1),
        "largest": np.abs(units).max(axis=1),
        "normality": draws.normality(),
        "excess_kurtosis": draws.excess_kurtosis(),
        "error": error,
        "uncertainty": uncertainty,
    }
    found = {name: np.where(good, values, np.nan) for name, values in found.items()}  # of no field there is nothing
    noise = math.sqrt(math.pi / 2) * math.log(2) * math.sqrt(draws.used_bins / draws.num)
    return TrajectoryCheck(stimulus, draws.num, when, normality_noise=noise, tolerance=tolerance, **found)


def _pulling(task: Discrimination | Stimulus, index: int) -> Stimulus:
    if isinstance(task, Discrimination):
        one: Discrimination = task if num_members(task) is None else member_of(task, index)
        pulls = np.asarray(one.priors) * np.abs(one.targets()).max(axis=1)
        stimulus = one.stimuli[len(pulls) - 1 - int(pulls[::-1].argmax())]
    else:
        stimulus = task
    if not isinstance(stimulus, Stimulus):
        refuse("`task`", stimulus, "a task or a stimulus", "Give what the trajectory was made from.")
    stimulus.require_one("to check")
    if not stimulus.sign_symmetric:
        got = Said(f"{stimulus!r}, which is not sign symmetric")
        refuse("A stimulus to check along a trajectory", got, "sign symmetric", "Use the coding by signs.")
    return stimulus


def _records(
    trajectory: Trajectory, stimulus: Stimulus, times: Any, index: int, neuron: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fields at the records wanted, (record, size), and their flow times."""
    if trajectory.shape != stimulus.shape:
        got = Said(f"a stimulus on {stimulus.shape} for fields on {trajectory.shape}")
        refuse("The lattice", got, "the same", "Give the task that the trajectory was made from.")
    weights = trajectory.weights
    index = Count(low=0, high=len(weights) - 1).check("member", index)
    neuron = Count(low=0, high=weights.shape[2] - 1).check("neuron", neuron)
    flow = trajectory.times[index] if trajectory.times.ndim == 2 else trajectory.times
    if times is None:
        chosen = np.unique(np.linspace(0, len(flow) - 1, RECORDS).astype(int))
    else:
        wanted = np.atleast_1d(Row(axes=None, hint="Give flow times, such as [0, 1, 10].").check("times", times))
        chosen = np.unique(np.abs(flow[None, :] - wanted.ravel()[:, None]).argmin(axis=1))
    return weights[index, chosen, neuron].reshape(len(chosen), -1).astype(np.float64), np.asarray(flow[chosen])


def _known_response(stimulus: Stimulus) -> Callable[[np.ndarray], np.ndarray] | None:
    """The response of a law for which it is known, as a function of unit fields (record, size); else None."""
    if isinstance(stimulus, Ising):
        if stimulus.size <= 20:
            return lambda fields: np.array([adaptive_response(w, stimulus.coupling)[0] for w in fields])
        with jax.enable_x64(True):
            response = ExactIsing(frequencies=1024).response(stimulus)  # to 3e-5 on 40 sites
        return functools.partial(_one_by_one, response)
    if isinstance(stimulus, (SinglePulse, BlockPulse)) and num_atoms(stimulus) * stimulus.size < NUMBERS:
        return lambda fields: np.array([pulse_response(w, stimulus) for w in fields])
    if stimulus.elliptical:
        with jax.enable_x64(True):
            response = LinearResponse().response(stimulus)
        return functools.partial(_one_by_one, response)
    return None


def _one_by_one(response: Response, fields: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(_compiled_responses(response, jnp.asarray(fields)))


@jax.jit
def _compiled_responses(response: Response, fields: jax.Array) -> jax.Array:
    return jax.lax.map(response, fields)


def _relative_error(gated: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """‖f̃ − f‖/‖f‖ at each record, and its standard error, from f in independent groups, (group, record, size)."""
    if len(gated) == 1:  # known, without noise
        error = np.linalg.norm(predicted - gated[0], axis=1) / np.linalg.norm(gated[0], axis=1)
        return error, np.zeros_like(error)
    off, without = _square(gated - predicted, (1,))
    length, shorter = _square(gated, (1,))
    error, uncertainty = _root(off / length, _jackknife(without / shorter))
    return error, uncertainty


class _Sums:
    """What the draws say of ⟨w, X⟩, for several unit fields w at once, (record, size)."""

    def __init__(self, stimulus: Stimulus, units: np.ndarray):
        covariance = _Covariances(stimulus)
        seen = covariance.times(units)
        self.units, self.num = units, 0
        self.peaks = np.abs(units).argmax(axis=1)
        self.variance = np.einsum("ri,ri->r", units, seen)
        at = covariance.variances()[self.peaks]
        self.slope = seen[np.arange(len(units)), self.peaks] / at
        rest = self.variance - self.slope**2 * at
        self.alone = rest <= 1e-10 * self.variance  # the site is the sum
        self.spread = np.sqrt(np.where(self.alone, 1.0, rest))
        self.gated = np.zeros((GROUPS, *units.shape))
        self.fourth = np.zeros(len(units))
        self.edges: np.ndarray | None = None
        self.counts = np.zeros((len(units), BINS, CELLS))
        law = stimulus.marginal()
        self.infinite = law is not None and math.isinf(law.kurtosis)

    def add(self, group: int, x: np.ndarray) -> None:
        """Some draws of one group."""
        s = x @ self.units.T
        self.num += len(x)
        self.gated[group] += 0.5 * np.sign(s).T @ x  # by sign symmetry E[1(S ≥ 0) X] is half E[sgn(S) X]
        self.fourth += np.sum((s**2 / self.variance) ** 2, axis=0)
        given = x[:, self.peaks]
        sizes = np.abs(given)
        if self.edges is None:
            inner = np.arange(1, BINS) / BINS
            self.edges = np.quantile(sizes, inner, axis=0, method="lower")
        turned = np.sign(given) * (s - given * self.slope) / self.spread
        cells = np.minimum(scipy.special.ndtr(turned) * CELLS, CELLS - 1).astype(int)
        for r in range(len(self.units)):
            which = np.searchsorted(np.unique(self.edges[:, r]), sizes[:, r], side="right")
            flat = np.bincount(which * CELLS + cells[:, r], minlength=BINS * CELLS)
            self.counts[r] += flat.reshape(BINS, CELLS)

    @property
    def used_bins(self) -> int:
        """How many bins of |X_i| have draws."""
        return int((self.counts.sum(axis=2) > 0).sum(axis=1).max())

    def normality(self) -> np.ndarray:
        """Kolmogorov distance from normal, averaged over the bins."""
        below = np.cumsum(self.counts, axis=2)
        held = below[..., -1]
        even = np.arange(1, CELLS + 1) / CELLS
        apart = np.abs(below / np.maximum(held, 1)[..., None] - even).max(axis=2)
        return np.where(self.alone, 0.5, (apart * held).sum(axis=1) / self.num)

    def excess_kurtosis(self) -> np.ndarray:
        """E S⁴/s⁴ − 3."""
        found = self.fourth / self.num - 3
        return np.full_like(found, np.inf) if self.infinite else found
