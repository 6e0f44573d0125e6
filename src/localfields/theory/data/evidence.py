"""What `predict` says of data beside its verdict: measured assumptions, and what to try where they fail."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..checks.assumptions import SIGNIFICANT, Measured, StimulusCheck
from ..predict import Prediction, PredictionRow
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

    def rows(self) -> list[PredictionRow]:
        """The class line by line: what the report shows first, then every other number."""
        check, sites = self.check, self.row.size
        far = f"at distance {check.distances[-1]:.3g}"
        depend = f"dependence {check.far_dependence}, correlation {check.far_correlation} {far}"
        rows = [
            (
                "number",
                self.number,
                f"class {self.number}",
                f"label {self.label[0]:g}, {self.num} samples of {sites} sites",
            ),
            (
                "far_sites_depend",
                check.far_sites_depend,
                "S1, far sites",
                f"{'fails' if check.far_sites_depend else 'holds'}: {depend}",
            ),
        ]
        for key, label, measured, drawn in (
            ("shifts_differ", "S2, shifts", check.shift, "shifts"),
            ("signs_differ", "S3, signs", check.sign, "signs"),
        ):
            differ = getattr(self, key)
            outcome = "drawn" if drawn in self.declared else "fails" if differ else "holds"
            text = f"{outcome}: largest deviation {measured} of {measured.tries}"
            rows.append((key, differ, label, text))
        warning = "; heavy tails, it may not exist" if self.heavy else ""
        tail = f"{self.tail_index:.3g} ± {self.tail_error:.2g}"
        elliptical = {
            "elliptical": "yes: E|⟨w, X⟩| over its scale is the same in every direction",
            "sites": "no: E|⟨w, X⟩| over its scale depends on the direction",
            "either": "cannot tell: it would look the same",
            "ising": "no: ±1, with the covariance of an Ising ring",
        }[self.kind]
        rows += [
            ("kurtosis", self.kurtosis, "excess kurtosis", f"{self.kurtosis}{warning}"),
            (
                "tail_index",
                self.tail_index,
                "tail index",
                tail if self.tail_index < 30 else "none seen",
            ),
            ("kind", self.kind, "elliptical", f"{elliptical} (p = {self.flatness.p:.2g})"),
        ]
        shown = {key for key, *_ in rows}
        names = [field.name for field in dataclasses.fields(self) if field.name not in shown]
        rows += [(name, getattr(self, name), "", "") for name in names]
        return [
            PredictionRow(*row, kind="class" if row[0] == "number" else "fact", group=self.number)
            for row in rows
        ]


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

    def rows(self) -> list[PredictionRow]:
        """The rows of a `Prediction`, those of every class, and what to try."""
        measured_per_class = ("elliptical", "tail_index", "excess_kurtosis")
        rows = [
            dataclasses.replace(row, text="") if row.key in measured_per_class else row
            for row in super().rows()
        ]
        leaning = self.leaning if self.leaning != self.verdict else ""
        rows.insert(1, PredictionRow("leaning", self.leaning, "leaning", leaning, "verdict"))
        rows += [row for evidence in self.evidence for row in evidence.rows()]
        more = f"about {_round(self.needed)} samples a class would decide" if self.needed else ""
        return [
            *rows,
            PredictionRow("doubts", self.doubts),
            PredictionRow("needed", self.needed, "more data", more),
            PredictionRow("advice", self.advice, "to know", "\n".join(self.advice), "advice"),
        ]


def _round(number: int) -> int:
    """Two digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return math.ceil(number / step) * step
