"""The reduced model of working note 3: which field is most often larger in size for one class than for the other.

For Gaussian data that probability is a closed form and its optimum a wave: nothing in it localizes.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from ..._spec import Count, Number, Row
from ...errors import Said, refuse
from ...lattice import spectrum
from ...stimuli import Stimulus
from ...tasks import Discrimination
from ..checks.draws import Covariances, draws
from ..responses.linear import SMALLEST_MODE, plane_wave, plane_waves
from .tiled import limits, tiled_output


class Estimate(NamedTuple):
    """A number and its standard error, zero where it is exact."""

    value: Any
    error: Any


def classes_of(name: str, task: Discrimination) -> tuple[Stimulus, Stimulus]:
    """The classes with the larger and the smaller label of a task with two."""
    labels = task.targets()[:, 0] if task.outputs == 1 else np.zeros(1)
    if len(labels) != 2 or labels[0] == labels[1]:
        got = Said(f"{len(task.stimuli)} with labels {task.labels!r}")
        refuse(f"The classes for {name}", got, "two with different labels", "Give two stimuli.")
    for stimulus in task.stimuli:
        stimulus.require_one(f"for {name}")
        if not stimulus.sign_symmetric:
            got = Said(f"{stimulus!r}, which is not")
            refuse(f"Every stimulus for {name}", got, "sign symmetric", "Use the coding by signs.")
    one, other = task.stimuli if labels[0] > labels[1] else task.stimuli[::-1]
    return one, other


def _flat(fields: Any, task: Discrimination) -> tuple[np.ndarray, tuple[int, ...]]:
    """Fields (…, *shape) as rows, and what led."""
    values = Row(axes=None, hint="Give one number a site.").check("fields", fields)
    axes = len(task.shape)
    if values.shape[values.ndim - axes :] != task.shape or values.ndim < axes:
        refuse(
            "`fields`",
            Said(f"shape {values.shape}"),
            f"(…, *{task.shape})",
            "Give one number a site.",
        )
    return values.reshape(-1, task.size), values.shape[: values.ndim - axes]


def _variances(fields: np.ndarray, stimulus: Stimulus) -> np.ndarray:
    return np.einsum("fi,fi->f", fields, Covariances(stimulus).times(fields))


def dominance(fields: Any, task: Discrimination) -> np.ndarray:
    """P(|⟨w, X₁⟩| > |⟨w, X₀⟩|) for independent Gaussian classes: (2/π) arctan(s₁/s₀), s² = wᵀΣw.

    It completes the integral that note 3 leaves open. Of other laws it is what their covariances predict; see
    `sampled_dominance`.

    Args:
        fields: (…, *shape).
        task: Two classes; class 1 is the one with the larger label.

    Returns:
        (…,); nan for a field of zeros.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=3))
        >>> dominance([np.ones(40), np.eye(40)[0]], task).round(4)  # flat; a single site cannot tell
        array([0.6667, 0.5   ])
    """
    long, short = classes_of("dominance", task)
    rows, lead = _flat(fields, task)
    one, other = _variances(rows, long), _variances(rows, short)
    found = 2 / np.pi * np.arctan2(np.sqrt(np.maximum(one, 0)), np.sqrt(np.maximum(other, 0)))
    return np.where((one > 0) | (other > 0), found, np.nan).reshape(lead)


@dataclasses.dataclass(frozen=True, eq=False)
class DominantMode:
    """A wave as a detector: its frequency, the ratio λ₁/λ₀, its dominance, and λ₁ − λ₀."""

    shape: tuple[int, ...]
    frequency: tuple[int, ...]
    ratio: float
    gap: float

    @property
    def probability(self) -> float:
        """(2/π) arctan √(λ₁/λ₀)."""
        return 2 / math.pi * math.atan(math.sqrt(self.ratio))

    def field(self, phase: float = 0.0) -> np.ndarray:
        """A wave of amplitude 1, of the lattice's shape; a real one (flat, alternating) has no phase."""
        return plane_wave(self.frequency, self.shape, phase)


def dominant_modes(task: Discrimination) -> list[DominantMode]:
    """Every wave, from the most to the least dominant: the first is the best of all fields, the last the worst.

    Among all fields, (2/π) arctan(s₁/s₀) is largest at the top generalized eigenvector of (Σ₁, Σ₀), which is the wave
    of largest λ₁/λ₀, the one that wins in `winning_mode` too. The note's population with positive biases wants the
    opposite, the last. The difference of means E⟨w, X₁⟩² − E⟨w, X₀⟩² at unit length is largest where `gap` is, which
    need not be the same wave.

    Args:
        task: Two translation-invariant classes.

    Returns:
        Waves at which either class has power.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=3))
        >>> found = dominant_modes(task)
        >>> found[0].frequency, round(found[0].probability, 4), min(found, key=lambda mode: mode.gap).frequency
        ((0,), 0.6667, (8,))
    """
    long, short = classes_of("dominant_modes", task)
    for stimulus in (long, short):
        if not stimulus.translation_invariant:
            got = Said(f"{stimulus!r}, which is not")
            advice = "Take the generalized eigenvectors of its covariances."
            refuse("Every stimulus for dominant_modes", got, "translation invariant", advice)
    one, other = (
        np.maximum(spectrum(stimulus.covariance()), 0).ravel() for stimulus in (long, short)
    )
    least = SMALLEST_MODE * max(one.max(), other.max())
    found = []
    for frequency, rows in plane_waves(task.shape).items():
        a, b = float(one[rows[0]]), float(other[rows[0]])
        if max(a, b) > least:
            found.append(DominantMode(task.shape, frequency, a / b if b > 0 else math.inf, a - b))
    return sorted(found, key=lambda mode: (-mode.ratio, sum(k * k for k in mode.frequency)))


def mean_gap(fields: Any, task: Discrimination) -> np.ndarray:
    """E⟨w, X₁⟩² − E⟨w, X₀⟩² = wᵀ(Σ₁ − Σ₀)w for any two laws: note 3's difference of means.

    Args:
        fields: (…, *shape).
        task: Two classes; class 1 is the one with the larger label.

    Returns:
        (…,).
    """
    long, short = classes_of("mean_gap", task)
    rows, lead = _flat(fields, task)
    return (_variances(rows, long) - _variances(rows, short)).reshape(lead)


def most_negative_frequency(sites: int, shorter: float, longer: float) -> float:
    """Frequency at which λ₁ − λ₀ of squared exponentials is least: (N/π) √(3 ln(ξ₁/ξ₀)/(ξ₁² − ξ₀²)).

    From λ(k) = ξ√π exp(−(πξk/N)²), whose maximum over k of λ₁ − λ₀ is the constant field.

    Args:
        sites: N.
        shorter: ξ₀.
        longer: ξ₁.

    Example:
        >>> round(most_negative_frequency(40, 1, 3), 2)
        8.17
    """
    sites = Count(2).check("sites", sites)
    shorter = float(Number(low=0).check("shorter", shorter))
    longer = float(Number(low=0).check("longer", longer))
    if longer <= shorter:
        refuse(
            "`longer`", longer, f"above the shorter lengthscale {shorter:g}", "Exchange the two."
        )
    return sites / math.pi * math.sqrt(3 * math.log(longer / shorter) / (longer**2 - shorter**2))


def sampled_dominance(
    fields: Any,
    task: Discrimination,
    *,
    bias: float | None = None,
    activation: str = "erf",
    num: int | None = None,
    seed: int = 0,
) -> Estimate:
    """P(|⟨w, X₁⟩| > |⟨w, X₀⟩|) of any two laws, from independent draws; with a bias, note 3's eq. 6 instead.

    Eq. 6 compares ∫σ(|w ⋆ X| + b), summed over all shifts *before* comparing. The note replaces it by a comparison at
    random shifts (eq. 7), which leads to eq. 9, the probability without a bias here. The two are different objectives:
    eq. 6 averages over the lattice first, which favors fields that see little of it.

    Args:
        fields: (…, *shape), all held against the same draws.
        task: Two classes; class 1 is the one with the larger label.
        bias: b of eq. 6; without it, eq. 9.
        activation: erf, erf-unscaled, tanh or sigmoid.
        num: Draws of each class; by default up to 100 000.
        seed: Of the draws.

    Returns:
        The probability, ties counted half, and its standard error, (…,) each.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=3))
        >>> found = sampled_dominance(np.ones(40), task, num=20_000)
        >>> bool(abs(found.value - dominance(np.ones(40), task)) < 5 * found.error)
        True
    """
    long, short = classes_of("sampled_dominance", task)
    rows, lead = _flat(fields, task)
    limits(activation)
    parts = []
    seeds = np.random.SeedSequence(Count(0, 2**63 - 1).check("seed", seed)).generate_state(
        2, np.uint32
    )
    for stimulus, own in zip((long, short), seeds.tolist(), strict=True):
        sizes = [
            _sizes(x, rows, bias, activation, task.shape) for _, x in draws(stimulus, num, own)
        ]
        parts.append(np.concatenate(sizes))
    wins = 0.5 * (1 + np.sign(parts[0] - parts[1]))
    value, count = wins.mean(axis=0).reshape(lead), len(wins)
    # With one more win and one more loss, so that an error is stated also where all draws agree.
    return Estimate(
        value, np.sqrt((value * count + 1) * ((1 - value) * count + 1) / (count + 2) ** 3)
    )


def _sizes(
    x: np.ndarray, rows: np.ndarray, bias: float | None, activation: str, shape: tuple[int, ...]
) -> np.ndarray:
    """What is compared, of stimuli (draw, size) and fields (field, size): (draw, field)."""
    if bias is None:
        return np.abs(x @ rows.T)
    pictures = x.reshape(-1, *shape)
    populations = [[(w.reshape(shape), float(bias))] for w in rows]
    return np.stack(
        [tiled_output(pictures, one, activation, "printed") for one in populations], axis=1
    )
