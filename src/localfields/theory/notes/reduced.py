"""The reduced model of working note 3: which field is larger more often for one class.

For Gaussian data that probability has a closed form and its optimum is a wave: nothing localizes.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from ..._spec import Count, Number, Row
from ...errors import InputError, show
from ...lattice import spectrum
from ...stimuli import Stimulus
from ...tasks import Discrimination
from ..checks.sampling import sample_groups
from ..responses.linear import MIN_POWER, plane_wave, plane_waves
from .tiled import limits, tiled_output


class SampledValue(NamedTuple):
    """A number and its standard error, zero if it is exact."""

    value: Any
    error: Any


def classes_of(name: str, task: Discrimination) -> tuple[Stimulus, Stimulus]:
    """The classes with the larger and the smaller label of a task with two."""
    labels = task.targets()[:, 0] if task.outputs == 1 else np.zeros(1)
    if len(labels) != 2 or labels[0] == labels[1]:
        raise InputError(
            f"{name} needs two classes with different labels, got {len(task.stimuli)} with labels "
            f"{task.labels!r}."
        )
    for stimulus in task.stimuli:
        stimulus.require_one(f"for {name}")
        if not stimulus.sign_symmetric:
            raise InputError(
                f"{name} needs sign symmetric stimuli, but {show(stimulus)} is not. "
                "Use coding='signs'."
            )
    larger, smaller = task.stimuli if labels[0] > labels[1] else task.stimuli[::-1]
    return larger, smaller


def _flat(fields: Any, task: Discrimination) -> tuple[np.ndarray, tuple[int, ...]]:
    """Fields (…, *shape) as rows, and their leading axes."""
    values = Row(axes=None, hint="Give one number per site.").check("fields", fields)
    axes = len(task.shape)
    if values.shape[values.ndim - axes :] != task.shape or values.ndim < axes:
        raise InputError(f"`fields` must have shape (…, *{task.shape}), got {values.shape}.")
    return values.reshape(-1, task.size), values.shape[: values.ndim - axes]


def _variances(fields: np.ndarray, stimulus: Stimulus) -> np.ndarray:
    return np.einsum("fi,fi->f", fields, stimulus.covariance_product(fields))


def dominance(fields: Any, task: Discrimination) -> np.ndarray:
    """P(|⟨w, X₁⟩| > |⟨w, X₀⟩|) for independent Gaussian classes: (2/π) arctan(s₁/s₀), s² = wᵀΣw.

    It completes the integral that note 3 leaves open. For other data it is what their covariances
    predict; see `sampled_dominance`.

    Args:
        fields: (…, *shape).
        task: Two classes; class 1 is the one with the larger label.

    Returns:
        (…,); nan for a field of zeros.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=3))
        >>> dominance([np.ones(40), np.eye(40)[0]], task).round(4)  # flat; a single site
        array([0.6667, 0.5   ])
    """
    long, short = classes_of("dominance", task)
    rows, lead = _flat(fields, task)
    q1, q0 = _variances(rows, long), _variances(rows, short)
    probability = 2 / np.pi * np.arctan2(np.sqrt(np.maximum(q1, 0)), np.sqrt(np.maximum(q0, 0)))
    return np.where((q1 > 0) | (q0 > 0), probability, np.nan).reshape(lead)


@dataclasses.dataclass(frozen=True, eq=False)
class DominantMode:
    """A plane wave as a detector of class 1."""

    shape: tuple[int, ...]
    frequency: tuple[int, ...]
    ratio: float  # λ₁/λ₀
    gap: float  # λ₁ − λ₀

    @property
    def probability(self) -> float:
        """(2/π) arctan √(λ₁/λ₀)."""
        return 2 / math.pi * math.atan(math.sqrt(self.ratio))

    def field(self, phase: float = 0.0) -> np.ndarray:
        """The wave with amplitude 1, of the lattice's shape."""
        return plane_wave(self.frequency, self.shape, phase)


def dominant_modes(task: Discrimination) -> list[DominantMode]:
    """Every wave, from the most to the least dominant.

    Among all fields, (2/π) arctan(s₁/s₀) is largest at the top generalized eigenvector of (Σ₁, Σ₀),
    the wave of largest λ₁/λ₀, which also wins in `winning_mode`. The note's population with
    positive biases prefers the opposite, the last. The difference of means E⟨w, X₁⟩² − E⟨w, X₀⟩² of
    unit fields is largest at the largest `gap`, which may be another wave.

    Args:
        task: Two translation-invariant classes.

    Returns:
        Waves at which either class has power.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=3))
        >>> modes = dominant_modes(task)
        >>> modes[0].frequency, round(modes[0].probability, 4)
        ((0,), 0.6667)
    """
    long, short = classes_of("dominant_modes", task)
    for stimulus in (long, short):
        if not stimulus.translation_invariant:
            raise InputError(
                f"dominant_modes needs translation invariant stimuli, but {show(stimulus)} is not. "
                "Use the generalized eigenvectors of the covariances instead."
            )
    power1, power0 = (
        np.maximum(spectrum(stimulus.covariance()), 0).ravel() for stimulus in (long, short)
    )
    least = MIN_POWER * max(power1.max(), power0.max())
    modes = []
    for frequency, rows in plane_waves(task.shape).items():
        a, b = float(power1[rows[0]]), float(power0[rows[0]])
        if max(a, b) > least:
            modes.append(DominantMode(task.shape, frequency, a / b if b > 0 else math.inf, a - b))
    return sorted(modes, key=lambda mode: (-mode.ratio, sum(k * k for k in mode.frequency)))


def most_negative_frequency(sites: int, shorter: float, longer: float) -> float:
    """Frequency k of the most negative λ₁ − λ₀ of squared exponentials with ξ₀ < ξ₁ on N sites.

    It is (N/π) √(3 ln(ξ₁/ξ₀)/(ξ₁² − ξ₀²)), from λ(k) = ξ√π exp(−(πξk/N)²).
    """
    sites = Count(2).check("sites", sites)
    shorter = float(Number(low=0).check("shorter", shorter))
    longer = float(Number(low=0).check("longer", longer))
    if longer <= shorter:
        raise InputError(f"`longer` must be above `shorter` = {shorter:g}, got {longer:g}.")
    return sites / math.pi * math.sqrt(3 * math.log(longer / shorter) / (longer**2 - shorter**2))


def sampled_dominance(
    fields: Any,
    task: Discrimination,
    *,
    bias: float | None = None,
    activation: str = "erf",
    num: int | None = None,
    seed: int = 0,
) -> SampledValue:
    """P(|⟨w, X₁⟩| > |⟨w, X₀⟩|) from samples; with a bias, note 3's eq. 6 instead.

    Eq. 6 compares ∫σ(|w ⋆ X| + b), summed over all shifts *before* comparing. The note replaces it
    by a comparison at random shifts (eq. 7), which leads to eq. 9, the probability without a bias
    here. The two are different objectives: eq. 6 averages over the lattice first, which favors
    fields that see little of it.

    Args:
        fields: (…, *shape), all compared on the same samples.
        task: Two classes; class 1 is the one with the larger label.
        bias: b of eq. 6; without it, eq. 9.
        activation: erf, erf-unscaled, tanh or sigmoid.
        num: Samples of each class; by default up to 100 000.
        seed: Seed of the samples.

    Returns:
        The probability, ties counted half, and its standard error, (…,) each.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=3))
        >>> sampled = sampled_dominance(np.ones(40), task, num=20_000)
        >>> bool(abs(sampled.value - dominance(np.ones(40), task)) < 5 * sampled.error)
        True
    """
    long, short = classes_of("sampled_dominance", task)
    rows, lead = _flat(fields, task)
    limits(activation)
    seed = Count(0, 2**63 - 1).check("seed", seed)
    seeds = np.random.SeedSequence(seed).generate_state(2, np.uint32)

    def sizes(x: np.ndarray) -> np.ndarray:
        """What is compared, (sample, field)."""
        if bias is None:
            return np.abs(x @ rows.T)
        pictures = x.reshape(-1, *task.shape)
        populations = [[(w.reshape(task.shape), float(bias))] for w in rows]
        outputs = [tiled_output(pictures, pair, activation, "printed") for pair in populations]
        return np.stack(outputs, axis=1)

    first, second = (
        np.concatenate([sizes(x) for _, x in sample_groups(stimulus, num, class_seed)])
        for stimulus, class_seed in zip((long, short), seeds.tolist(), strict=True)
    )
    wins = 0.5 * (1 + np.sign(first - second))  # ties count half
    value, count = wins.mean(axis=0).reshape(lead), len(wins)
    # With one more win and one more loss, so that the error is not zero if all samples agree.
    return SampledValue(
        value, np.sqrt((value * count + 1) * ((1 - value) * count + 1) / (count + 2) ** 3)
    )
