"""What `predict` says of data beside its verdict: measured assumptions, and what to try where they fail."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..checks.assumptions import SIGNIFICANT, Measured, StimulusCheck
from ..predict import Prediction
from .rows import Flatness

SMALL = 0.02  # deviation of a bounded function, below which a contradiction does not matter


@dataclasses.dataclass(frozen=True)
class Interval:
    """A number with the interval that a share of bootstrap resamples falls into.

    Args:
        value: Of all rows.
        low: Lower end.
        high: Upper end.
        confidence: The share.
    """

    value: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, value: Any, resampled: np.ndarray, confidence: float) -> Interval:
        """From the values that resamples have."""
        low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
        return cls(float(value), float(low), float(high), confidence)

    def __str__(self) -> str:
        """With its interval."""
        return (
            f"{self.value:.3g} ({100 * self.confidence:.0f} %: {self.low:.3g} to {self.high:.3g})"
        )


@dataclasses.dataclass(frozen=True)
class ClassEvidence:
    """What the rows of one class say.

    Args:
        number: Which class.
        label: Its target.
        num: Rows looked at.
        effective: As many independent rows know as much: fewer where a row resembles the next one.
        check: Assumptions S1, S2, S3, A1 and A2, measured on the rows as they are.
        declared: Symmetries that are drawn in any case.
        mean: Largest mean of a site, in standard deviations.
        kurtosis: Excess kurtosis of a site, averaged over sites.
        tail_index: Hill's estimate from the thousandth of largest values.
        tail_error: Its standard error.
        heavy: Whether the tail index may be below 5: then the kurtosis is that of the largest few values.
        flatness: Whether the law is the same in all directions, up to scale, as for elliptical data.
        kind: `elliptical`, `sites` (each site's own law counts), `either` (the rows cannot tell) or `ising`.
        correlations: Arguments of the amplifier.
        amplifier: φ of the law of a site.
        amplifier_error: Its standard error, over resamples.
        row: Covariance at every displacement, averaged over pairs of sites.
    """

    number: int
    label: tuple[float, ...]
    num: int
    effective: float
    check: StimulusCheck
    declared: str
    mean: float
    kurtosis: Interval
    tail_index: float
    tail_error: float
    heavy: bool
    flatness: Flatness
    kind: str
    correlations: np.ndarray
    amplifier: np.ndarray
    amplifier_error: np.ndarray
    row: np.ndarray

    def _contradicted(self, measured: Measured) -> bool:
        # Rows that resemble each other are fewer than they seem.
        z = measured.z * math.sqrt(self.effective / self.num)
        return bool(measured.value > SMALL and dataclasses.replace(measured, z=z).p < SIGNIFICANT)

    @property
    def shifts_differ(self) -> bool:
        """Whether S2 fails, and is not brought about by drawing shifts."""
        return "shifts" not in self.declared and self._contradicted(self.check.shift)

    @property
    def signs_differ(self) -> bool:
        """Whether S3 fails, and is not brought about by drawing signs."""
        return "signs" not in self.declared and self._contradicted(self.check.sign)

    def doubts(self, kind: str) -> tuple[list[str], list[str]]:
        """What speaks against a description of this kind, and what to try; `rest` for a class that does not pull."""
        doubts, advice = [], []
        name = f"class {self.number}"
        if self.signs_differ and kind != "finite":
            doubts.append(f"S3 fails in {name}: X and −X differ, {self.check.sign} on a scale of 1")
            step = (
                'preprocess="center"'
                if self.mean > 0.05
                else 'symmetry="signs", which draws either sign of a row'
            )
            advice.append(f"signs differ: try {step}")
        if self.shifts_differ and kind not in ("finite", "elliptical"):
            doubts.append(
                f"S2 fails in {name}: a site differs from the average site by {self.check.shift}"
            )
            steps = 'preprocess="scale" where variances differ, "wrap" or "window" for patches with borders'
            advice.append(
                f'shifts differ: try {steps}, or symmetry="shifts", which draws every shift of a row'
            )
        if self.check.far_sites_depend and kind == "sites":
            by = self.check.far_dependence
            doubts.append(
                f"S1 fails in {name}: the farthest sites depend on each other ({by}, of their sizes)"
            )
            what = '"contrast-normalize" where the contrast of whole samples varies, "whiten" or'
            advice.append(
                f'far sites depend on each other: try preprocess {what} "difference-of-gaussians"'
            )
        if self.heavy:
            advice.append(
                f"heavy tails in {name}, index {self.tail_index:.2g} ± {self.tail_error:.1g}: the kurtosis may not "
                "exist; trust the amplifier, not the kurtosis"
            )
        if self.effective < self.num:
            advice.append(
                f"rows of {name} resemble the next one: {self.num} count as {self.effective:.0f}"
            )
        return doubts, advice

    def lines(self) -> Iterator[tuple[str, str]]:
        """Rows of the report."""
        far = f"at distance {self.check.distances[-1]:.3g}"
        held = "fails" if self.check.far_sites_depend else "holds"
        by = f"dependence {self.check.far_dependence}, correlation {self.check.far_correlation} {far}"
        yield "S1, far sites", f"{held}: {by}"
        for name, measured, wrong, drawn in (
            ("S2, shifts", self.check.shift, self.shifts_differ, "shifts"),
            ("S3, signs", self.check.sign, self.signs_differ, "signs"),
        ):
            held = "drawn" if drawn in self.declared else "fails" if wrong else "holds"
            yield name, f"{held}: largest deviation {measured} of {measured.tries}"
        warning = "; heavy tails, it may not exist" if self.heavy else ""
        yield "excess kurtosis", f"{self.kurtosis}{warning}"
        yield (
            "tail index",
            f"{self.tail_index:.3g} ± {self.tail_error:.2g}"
            if self.tail_index < 30
            else "none seen",
        )
        words = {
            "elliptical": "yes: E|⟨w, X⟩| over its scale is the same in every direction",
            "sites": "no: E|⟨w, X⟩| over its scale depends on the direction",
            "either": "cannot tell: it would look the same",
            "ising": "no: ±1, with the covariance of an Ising ring",
        }
        yield "elliptical", f"{words[self.kind]} (p = {self.flatness.p:.2g})"


@dataclasses.dataclass(frozen=True)
class DataPrediction(Prediction):
    """A `Prediction` from data: with what was measured, what is doubtful, and what to try.

    Args:
        leaning: The verdict if nothing were doubtful.
        evidence: What the rows of each class say.
        doubts: Why the leaning is no verdict; empty if it is.
        advice: What to try, and warnings.
        needed: About how many samples a class would decide; 0 where more would not help, or none are needed.
    """

    leaning: str = "undecided"
    evidence: tuple[ClassEvidence, ...] = dataclasses.field(default=(), repr=False)
    doubts: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    needed: int = 0

    def _theory(self) -> str:
        if self.theory == "LinearResponse" and not self.exact:
            return (
                "LinearResponse, exact for elliptical data, from which these cannot be told apart"
            )
        if self.exact and self.doubts:
            return f"{self.theory}, exact if the law is what these rows look like"
        return super()._theory()

    def __str__(self) -> str:
        """The report."""
        rows: list[tuple[str, str]] = []
        for one in self.evidence:
            rows.append(
                (
                    f"class {one.number}",
                    f"label {one.label[0]:g}, {one.num} samples of {one.row.size} sites",
                )
            )
            rows += [(f"  {name}", text) for name, text in one.lines()]
        if self.needed:
            rows.append(("more data", f"about {_round(self.needed)} samples a class would decide"))
        rows += [("to know", text) for text in self.advice]
        first = super().__str__().splitlines()
        kept = [
            line
            for line in first
            if not line.startswith(("elliptical", "tail index", "excess kurtosis"))
        ]
        if self.verdict == "undecided" and self.leaning != "undecided":
            kept.insert(1, f"{'leaning':<18} {self.leaning}")
        return "\n".join([*kept, *(f"{name:<18} {text}" for name, text in rows)])


def _round(number: int) -> int:
    """Two digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return math.ceil(number / step) * step
