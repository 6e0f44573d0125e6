"""What `predict` reports on data besides its verdict: measured assumptions, and what to try."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..checks.assumptions import SIGNIFICANT, Measured, StimulusCheck
from ..predict import Prediction, PredictionRow
from ..responses.amplifier import SLOPE
from .rows import Flatness

NEGLIGIBLE = 0.02  # deviation of a bounded function, below which a contradiction does not matter


@dataclasses.dataclass(frozen=True)
class Interval:
    """A number and its bootstrap confidence interval."""

    value: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, value: Any, resampled: np.ndarray, confidence: float) -> Interval:
        """From the values of resamples."""
        low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
        return cls(float(value), float(low), float(high), confidence)

    def __str__(self) -> str:
        """As value (confidence: low to high)."""
        return (
            f"{self.value:.3g} ({100 * self.confidence:.0f} %: {self.low:.3g} to {self.high:.3g})"
        )


@dataclasses.dataclass(frozen=True)
class ClassEvidence:
    """What was measured on the rows of one class."""

    number: int  # number of the class
    label: tuple[float, ...]  # its target
    num: int  # number of rows
    effective: float  # number of independent rows; smaller if neighboring rows are correlated
    check: StimulusCheck  # assumptions S1, S2, S3, A1 and A2, measured on the rows as they are
    declared: str  # symmetries that sampling adds
    mean: float  # largest mean of a site, in standard deviations
    kurtosis: Interval  # excess kurtosis of a site, averaged over sites
    tail_index: float  # Hill's estimate from the thousandth of largest values
    tail_error: float  # its standard error
    heavy: bool  # whether the tail index may be below 5; then a few values determine the kurtosis
    flatness: Flatness  # test of whether the data look the same in all directions, up to scale
    # `elliptical`, `sites` (each site's own marginal counts), `either` (the rows cannot tell) or
    # `ising`
    kind: str
    correlations: np.ndarray  # arguments of the amplifier
    amplifier: np.ndarray  # φ of the marginal of a site
    amplifier_error: np.ndarray  # its standard error, over resamples
    row: np.ndarray  # covariance at every displacement, averaged over pairs of sites

    def _contradicted(self, measured: Measured) -> bool:
        # Correlated rows count as fewer.
        z = measured.z * math.sqrt(self.effective / self.num)
        return bool(
            measured.value > NEGLIGIBLE and dataclasses.replace(measured, z=z).p < SIGNIFICANT
        )

    @property
    def shifts_differ(self) -> bool:
        """Whether S2 fails and sampling does not add shifts."""
        return "shifts" not in self.declared and self._contradicted(self.check.shift)

    @property
    def signs_differ(self) -> bool:
        """Whether S3 fails and sampling does not add signs."""
        return "signs" not in self.declared and self._contradicted(self.check.sign)

    @property
    def bends_both_ways(self) -> bool:
        """Whether the amplifier is certainly super-linear somewhere and sub-linear elsewhere."""
        excess = self.amplifier - SLOPE * self.correlations
        certain = excess[np.abs(excess) > 4 * self.amplifier_error + 1e-9]
        return bool(self.kind == "sites" and (certain > 0).any() and (certain < 0).any())

    def doubts(self, kind: str) -> tuple[list[str], list[str]]:
        """What speaks against a description of this kind (`rest`: label zero), and what to try."""
        doubts, advice = [], []
        name = f"class {self.number}"
        if self.signs_differ and kind != "finite":
            doubts.append(f"S3 fails in {name}: X and −X differ, {self.check.sign} on a scale of 1")
            step = (
                'preprocess="center"'
                if self.mean > 0.05
                else 'symmetry="signs", which samples both signs of every row'
            )
            advice.append(f"signs differ: try {step}")
        if self.shifts_differ and kind not in ("finite", "elliptical"):
            doubts.append(
                f"S2 fails in {name}: a site differs from the average site by {self.check.shift}"
            )
            advice.append(
                'shifts differ: try preprocess="scale" if variances differ, "wrap" or "window" for '
                'patches with borders, or symmetry="shifts", which samples all shifts of every row'
            )
        if self.check.far_sites_depend and kind == "sites":
            by = self.check.far_dependence
            doubts.append(
                f"S1 fails in {name}: the farthest sites depend on each other (sizes: {by})"
            )
            advice.append(
                'far sites depend on each other: try preprocess "contrast-normalize" if the '
                'contrast varies between samples, "whiten" or "difference-of-gaussians"'
            )
        if self.heavy:
            advice.append(
                f"heavy tails in {name}, index {self.tail_index:.2g} ± {self.tail_error:.1g}: the "
                "kurtosis may not exist; trust the amplifier, not the kurtosis"
            )
        if self.effective < self.num:
            advice.append(
                f"neighboring samples of {name} are correlated: {self.num} count as "
                f"{self.effective:.0f}"
            )
        return doubts, advice

    def rows(self) -> list[PredictionRow]:
        """The class line by line: first what the report shows, then every other number."""
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
            outcome = "by sampling" if drawn in self.declared else "fails" if differ else "holds"
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
    """A `Prediction` from data: with measurements, doubts, and what to try.

    Args:
        leaning: The verdict if nothing were doubtful.
        evidence: What was measured on each class.
        doubts: Why the leaning is not the verdict; empty if it is.
        advice: What to try, and warnings.
        needed: About how many samples per class would decide; 0 if more would not help.
    """

    leaning: str = "undecided"
    evidence: tuple[ClassEvidence, ...] = dataclasses.field(default=(), repr=False)
    doubts: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    needed: int = 0

    def _theory(self) -> str:
        if self.theory == "LinearResponse" and not self.exact:
            return "LinearResponse, exact for elliptical data, as these may be"
        if self.exact and self.doubts:
            return f"{self.theory}, exact if the data are what they look like"
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
        more = (
            f"about {_round_up(self.needed)} samples per class would decide" if self.needed else ""
        )
        return [
            *rows,
            PredictionRow("doubts", self.doubts),
            PredictionRow("needed", self.needed, "more data", more),
            PredictionRow("advice", self.advice, "to know", "\n".join(self.advice), "advice"),
        ]


def _round_up(number: int) -> int:
    """To two digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return math.ceil(number / step) * step
