"""When does the effective flow stop being valid? Assumption A3, measured along a trajectory."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ..._spec import Count, Number, Row, num_members
from ..._spec import member as member_of
from ...errors import InputError, show
from ...stimuli import Stimulus
from ...tasks import Discrimination
from ...trajectory import Trajectory, inverse_participation_ratio
from ..base import NeuronTheory, Response, site_variances
from ..responses.effective import EffectiveFlow
from ..responses.ising import ExactIsing
from ..responses.linear import LinearResponse
from .sampling import BINS, GROUPS, NUMBERS, jackknife, mean_square, sample_groups, signed_root

CELLS = 1024  # the distance from normal is resolved to 1/CELLS
RECORDS = 50  # of a trajectory that are measured by default


@dataclasses.dataclass(frozen=True, repr=False)
class TrajectoryCheck:
    """Assumption A3 and the error of the effective response along a trajectory, as a table."""

    stimulus: Stimulus  # the class whose response was measured
    num: int  # number of samples
    times: np.ndarray  # flow times, (record,)
    ipr: np.ndarray  # inverse participation ratio
    largest: np.ndarray  # largest |w_i|/‖w‖: no weight dominates while it is small
    # Distance of ⟨w, X⟩ given X_i from normal, at the site i of the largest weight: the Kolmogorov
    # distance sup|F − Φ| of T = (⟨w, X⟩ − X_i a)/√(s² − a²σ²), a = (Σw)_i/σ², times the sign of
    # X_i, averaged over 16 equally likely bins of |X_i|. It is 0 under A1, A2 and A3, and ½ for a
    # single site, where nothing is left of the sum
    normality: np.ndarray
    normality_noise: float  # what a normal T gives with so many samples
    excess_kurtosis: np.ndarray  # of ⟨w, X⟩; ∞ if the fourth moment of X is
    error: np.ndarray  # relative distance ‖f̃ − f‖/‖f‖ of the theory's response f̃ from the true f
    # Standard error of `error`; 0 if f is known exactly (Ising rings, pulses, elliptical data)
    uncertainty: np.ndarray
    tolerance: float  # error up to which the theory counts as valid

    @property
    def valid_until(self) -> float:
        """Flow time of the first record whose error exceeds the tolerance; ∞ if none does."""
        over = np.flatnonzero(self.error > self.tolerance)
        return float(self.times[over[0]]) if over.size else math.inf

    def __repr__(self) -> str:
        """A table of at most a dozen records, and the verdict."""
        lines = [
            f"{self.stimulus!r}, {self.num} samples",
            "     time     IPR  |w|/‖w‖  normal    kurt         error",
        ]
        for r in np.unique(np.linspace(0, len(self.times) - 1, 12).astype(int)):
            lines.append(
                f"{self.times[r]:9.4g}{self.ipr[r]:8.3f}{self.largest[r]:9.3f}"
                f"{self.normality[r]:8.3f}{self.excess_kurtosis[r]:8.2f}"
                f"{self.error[r]:8.3f} ± {self.uncertainty[r]:.3f}"
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
    """Measure A3 and the error of the effective response along a trajectory.

    Args:
        trajectory: From `train` or `solve`, with weights recorded.
        task: The task, of which the dominant class is used (largest prior · |label|, the last of
            equals); or one stimulus.
        theory: Whose response is compared; by default `EffectiveFlow`, its amplifier from the
            marginal or, if that is not known, from samples.
        times: Flow times, of which the nearest records are measured. By default at most 50 records,
            evenly spread.
        member: Of the ensemble.
        neuron: Of the network.
        tolerance: Relative error up to which the theory counts as valid.
        num: Number of samples; by default 100 000, fewer on large lattices.
        seed: Seed of the samples.

    Returns:
        One number per record; `valid_until` is the first flow time at which the error exceeds the
        tolerance.

    Raises:
        InputError: If the stimulus does not fit the trajectory or the theory, or is not sign
            symmetric.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> flow = lf.solve(task, lf.theory.ExactIsing(), members=1, until=20)
        >>> check = check_trajectory(flow, task, num=20_000)
        >>> check.valid_until < 5  # a bump grows, and A3 fails
        True
    """
    stimulus = _checked_stimulus(task, member)
    fields, when = _records(trajectory, stimulus, times, member, neuron)
    tolerance = float(Number(low=0).check("tolerance", tolerance))
    if theory is None:
        theory = EffectiveFlow(amplifier="samples" if stimulus.marginal() is None else "exact")
    peaks = np.abs(fields).max(axis=1)
    good = np.isfinite(peaks) & (peaks > 0)
    units = np.where(good[:, None], fields, 1.0) / np.where(good, peaks, 1.0)[:, None]
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    with jax.enable_x64(True):
        predicted = _responses(theory.response(stimulus), units)
    sums = _ProjectionSums(stimulus, units)
    for group, x in sample_groups(stimulus, num, seed):
        sums.add(group, x)
    known = _known_response(stimulus)
    gated = sums.gated * (GROUPS / sums.num) if known is None else known(units)[None]
    error, uncertainty = _relative_error(gated, predicted)
    measured = {
        "ipr": inverse_participation_ratio(units, axes=1),
        "largest": np.abs(units).max(axis=1),
        "normality": sums.normality(),
        "excess_kurtosis": sums.excess_kurtosis(),
        "error": error,
        "uncertainty": uncertainty,
    }
    # A field of zeros has none of these.
    measured = {name: np.where(good, values, np.nan) for name, values in measured.items()}
    noise = math.sqrt(math.pi / 2) * math.log(2) * math.sqrt(sums.used_bins / sums.num)
    return TrajectoryCheck(
        stimulus, sums.num, when, normality_noise=noise, tolerance=tolerance, **measured
    )


def _checked_stimulus(task: Discrimination | Stimulus, index: int) -> Stimulus:
    if isinstance(task, Discrimination):
        single: Discrimination = task if num_members(task) is None else member_of(task, index)
        stimulus = single.stimuli[single.dominant_class(last=True)]
    else:
        stimulus = task
    if not isinstance(stimulus, Stimulus):
        raise InputError(
            f"`task` must be a task or a stimulus, got {show(stimulus)}. "
            "Give the task that the trajectory was computed from."
        )
    stimulus.require_one("to check")
    if not stimulus.sign_symmetric:
        raise InputError(
            f"check_trajectory needs a sign-symmetric stimulus, but {show(stimulus)} is not. "
            "Use coding='signs'."
        )
    return stimulus


def _records(
    trajectory: Trajectory, stimulus: Stimulus, times: Any, index: int, neuron: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fields at the chosen records, (record, size), and their flow times."""
    if trajectory.shape != stimulus.shape:
        raise InputError(
            f"The stimulus is on {stimulus.shape}, but the fields are on {trajectory.shape}. "
            "Give the task that the trajectory was computed from."
        )
    weights = trajectory.weights
    index = Count(low=0, high=len(weights) - 1).check("member", index)
    neuron = Count(low=0, high=weights.shape[2] - 1).check("neuron", neuron)
    flow = trajectory.times[index] if trajectory.times.ndim == 2 else trajectory.times
    if times is None:
        chosen = np.unique(np.linspace(0, len(flow) - 1, RECORDS).astype(int))
    else:
        hint = "Give flow times, such as [0, 1, 10]."
        wanted = np.atleast_1d(Row(axes=None, hint=hint).check("times", times)).ravel()
        chosen = np.unique(np.abs(flow[None, :] - wanted[:, None]).argmin(axis=1))
    fields = weights[index, chosen, neuron].reshape(len(chosen), -1).astype(np.float64)
    return fields, np.asarray(flow[chosen])


def _known_response(stimulus: Stimulus) -> Callable[[np.ndarray], np.ndarray] | None:
    """The exact response as a function of unit fields (record, size), if it is known; else None."""
    # A short list of patterns is summed. Otherwise a theory that is exact for the class may know.
    num = stimulus.num_atoms
    if num is not None and stimulus.has_atoms and num * stimulus.size < NUMBERS:
        return lambda fields: np.array([stimulus.gated_mean(w) for w in fields])
    for theory in (ExactIsing(frequencies=1024), LinearResponse()):  # to 3e-5 on 40 sites
        if theory.covers_class(stimulus).exact:
            return functools.partial(_responses, theory.response(stimulus))
    return None


def _responses(response: Response, fields: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(_compiled_responses(response, jnp.asarray(fields)))


@jax.jit
def _compiled_responses(response: Response, fields: jax.Array) -> jax.Array:
    return jax.lax.map(response, fields)


def _relative_error(gated: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """‖f̃ − f‖/‖f‖ at each record and its standard error, from f, (group, record, size)."""
    if len(gated) == 1:  # known exactly
        error = np.linalg.norm(predicted - gated[0], axis=1) / np.linalg.norm(gated[0], axis=1)
        return error, np.zeros_like(error)
    off, without = mean_square(gated - predicted, (1,))
    length, shorter = mean_square(gated, (1,))
    error, uncertainty = signed_root(off / length, jackknife(without / shorter))
    return error, uncertainty


class _ProjectionSums:
    """Statistics of the projections ⟨w, X⟩ on several unit fields w, (record, size)."""

    def __init__(self, stimulus: Stimulus, units: np.ndarray):
        product = stimulus.covariance_product(units)
        self.units, self.num = units, 0
        self.peaks = np.abs(units).argmax(axis=1)
        self.variance = np.einsum("ri,ri->r", units, product)
        peak_variance = site_variances(stimulus)[self.peaks]
        self.slope = product[np.arange(len(units)), self.peaks] / peak_variance
        rest = self.variance - self.slope**2 * peak_variance
        self.alone = rest <= 1e-10 * self.variance  # the site is the sum
        self.spread = np.sqrt(np.where(self.alone, 1.0, rest))
        self.gated = np.zeros((GROUPS, *units.shape))
        self.fourth = np.zeros(len(units))
        self.edges: np.ndarray | None = None
        self.counts = np.zeros((len(units), BINS, CELLS))
        marginal = stimulus.marginal()
        self.infinite = marginal is not None and math.isinf(marginal.kurtosis)

    def add(self, group: int, x: np.ndarray) -> None:
        """Add samples of one group."""
        s = x @ self.units.T
        self.num += len(x)
        # By sign symmetry E[1(S ≥ 0) X] is half of E[sgn(S) X].
        self.gated[group] += 0.5 * np.sign(s).T @ x
        self.fourth += np.sum((s**2 / self.variance) ** 2, axis=0)
        given = x[:, self.peaks]
        sizes = np.abs(given)
        if self.edges is None:  # the first samples fix the bins
            inner = np.arange(1, BINS) / BINS
            self.edges = np.quantile(sizes, inner, axis=0, method="lower")
        t = np.sign(given) * (s - given * self.slope) / self.spread
        cells = np.minimum(scipy.special.ndtr(t) * CELLS, CELLS - 1).astype(int)
        for r in range(len(self.units)):
            which = np.searchsorted(np.unique(self.edges[:, r]), sizes[:, r], side="right")
            flat = np.bincount(which * CELLS + cells[:, r], minlength=BINS * CELLS)
            self.counts[r] += flat.reshape(BINS, CELLS)

    @property
    def used_bins(self) -> int:
        """How many bins of |X_i| have samples."""
        return int((self.counts.sum(axis=2) > 0).sum(axis=1).max())

    def normality(self) -> np.ndarray:
        """Kolmogorov distance from normal, averaged over the bins."""
        below = np.cumsum(self.counts, axis=2)
        count = below[..., -1]
        uniform = np.arange(1, CELLS + 1) / CELLS
        distance = np.abs(below / np.maximum(count, 1)[..., None] - uniform).max(axis=2)
        return np.where(self.alone, 0.5, (distance * count).sum(axis=1) / self.num)

    def excess_kurtosis(self) -> np.ndarray:
        """E S⁴/s⁴ − 3."""
        excess = self.fourth / self.num - 3
        return np.full_like(excess, np.inf) if self.infinite else excess
