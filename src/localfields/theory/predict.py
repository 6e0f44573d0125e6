"""`predict`: will a neuron on this task become localized, where, when, and why?

It follows the best known flow from many random starts and looks at the final fields. Kurtosis alone
would be wrong for elliptical data (their response is linear whatever the distribution of one site)
and near the border (a flat field is unstable only if the amplifier bends by more than the gap
between the classes' spectra).
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from .._memory import flow_memory
from .._spec import Count, num_members
from .._types import ArrayLike
from ..errors import InputError, show
from ..lattice import spectrum
from ..networks import SingleNeuron
from ..stimuli.samples import Rows
from ..tasks import Discrimination
from ..trajectory import Trajectory, localized_from
from .base import class_covariances, labelled_stimuli
from .choose import BestKnown, best_for
from .responses.amplifier import SLOPE, Amplifier
from .responses.hypercube import hypercube_bump, no_bump
from .solve import TYPICAL_RECORDS, solve

PREDICT_STARTS = 16
UNTIL, STOP_TOL, TOLERANCE = 2000.0, 1e-4, 1e-6  # see `solve`
AGREEMENT = 0.9  # fraction of the starts that must end alike for a verdict
LABEL_WIDTH = 18  # of the first column of a report


@dataclasses.dataclass(frozen=True)
class PredictionRow:
    """One line of a `Prediction`: a value, its name, and its text in a report.

    Args:
        key: Name in JSON; unique within its group.
        value: A string, number, array or dataclass; nan if the task has no such number.
        label: Name in the report.
        text: The value in words; empty if the report leaves it out.
        kind: `verdict`, `reason`, `fact`, `class` (heading of a class) or `advice`.
        group: Number of the class that it belongs to; None for the whole prediction.
    """

    key: str
    value: Any
    label: str = ""
    text: str = ""
    kind: str = "fact"
    group: int | None = None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What theory predicts for a task. Printed, it is a report; `rows` has the same line by line.

    Args:
        verdict: `localized`, `oscillatory` or `undecided`.
        reason: Why, in a sentence.
        theory: Name of the theory that was followed.
        exact: Whether that theory is exact for this task.
        excess_kurtosis: Of one site of the labelled class; ∞ if its fourth moment is.
        tail_index: Moments of this order and above are infinite.
        amplifier_index: Super- (> 0) or sub-linearity (< 0) of the amplifier, on average.
        crossings: Correlations at which the amplifier turns from sub- to super-linear, or back.
        critical_kurtosis: Excess kurtosis below which a flat field is unstable, or nan.
        elliptical: Whether every labelled class is elliptical: then no marginal localizes a field.
        dominance: Of the closed-form bump on ±1 data, a steady state if below 1; nan for other
            data.
        largest_rate: Learning rate beyond which gradient descent does not follow the flow: 2/λ of
            the fastest mode.
        field: Predicted final field of the first start, of the lattice's shape.
        ipr: Median over the starts of the final inverse participation ratio.
        peak: Site of the largest weight, for each start.
        onset: Median flow time at which fields become localized; nan if they do not.
        localized_starts: Fraction of the starts that end in a bump.
        flow: The trajectories of all starts.
        task: The task.
    """

    verdict: str
    reason: str
    theory: str
    exact: bool
    excess_kurtosis: float
    tail_index: float
    amplifier_index: float
    crossings: tuple[float, ...]
    critical_kurtosis: float
    elliptical: bool
    dominance: float
    largest_rate: float
    field: np.ndarray | None = None
    ipr: float = math.nan
    peak: np.ndarray | None = None
    onset: float = math.nan
    localized_starts: float = math.nan
    flow: Trajectory | None = dataclasses.field(default=None, repr=False)
    task: Discrimination = dataclasses.field(kw_only=True, repr=False)

    def rows(self) -> list[PredictionRow]:
        """The prediction line by line; its report, page, JSON and picture are made from these.

        Example:
            >>> import localfields as lf
            >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((12,), xi=xi) for xi in (0.5, 1)))
            >>> rows = lf.predict(task, starts=2).rows()
            >>> [(row.key, row.text) for row in rows if row.kind == "verdict"]
            [('verdict', 'oscillatory')]
        """
        end = (
            f"{_number(self.ipr)}; {100 * self.localized_starts:.0f} % of the starts end localized"
        )
        labels_and_texts = {
            "theory": ("theory", self._theory()),
            "excess_kurtosis": ("excess kurtosis", "{}"),
            "critical_kurtosis": (
                "critical kurtosis",
                "{} (below it noise drives fields away from flat)",
            ),
            "tail_index": ("tail index", "{}"),
            "amplifier_index": ("amplifier index", "{}"),
            "elliptical": ("elliptical", "yes" if self.elliptical else "no"),
            "dominance": (
                "dominance ratio",
                "{} (of the closed-form bump; below 1 it is a steady state)",
            ),
            "largest_rate": (
                "learning rate",
                "below {}; beyond, training oscillates and is not described",
            ),
            "ipr": ("predicted IPR", end),
            "onset": ("onset", "flow time {}"),
        }
        rows = [
            PredictionRow("verdict", self.verdict, "verdict", self.verdict, "verdict"),
            PredictionRow("reason", self.reason, "because", self.reason, "reason"),
        ]
        for key, (label, text) in labels_and_texts.items():
            value = getattr(self, key)
            if isinstance(value, float):
                text = "" if math.isnan(value) else text.format(_number(value))
            rows.append(PredictionRow(key, value, label, text))
        for key in ("exact", "crossings", "localized_starts", "field", "peak", "task"):
            rows.append(PredictionRow(key, getattr(self, key)))
        return rows

    def _theory(self) -> str:
        if self.theory == "none":
            return "none that covers the task"
        accuracy = "exact for this task" if self.exact else "right while no weight dominates"
        return f"{self.theory}, {accuracy}"

    def report(self, width: int | None = None) -> str:
        """The rows as lines of text, wrapped under their second column if a width is given."""
        lines = []
        for row in self.rows():
            label = row.label if row.group is None or row.kind == "class" else f"  {row.label}"
            for line in row.text.splitlines():
                line = f"{label:<{LABEL_WIDTH}} {line}"
                if width is not None:
                    indent = " " * (LABEL_WIDTH + 1)
                    line = textwrap.fill(
                        line, width, subsequent_indent=indent, break_on_hyphens=False
                    )
                lines.append(line)
        return "\n".join(lines)

    def __str__(self) -> str:
        """The report."""
        return self.report()

    def to_json(self) -> dict[str, Any]:
        """The values of all rows by key, those of each class in `evidence`.

        nan becomes null, and infinity "inf".
        """
        values: dict[str, Any] = {}
        classes: dict[int, dict[str, Any]] = {}
        for row in self.rows():
            group = values if row.group is None else classes.setdefault(row.group, {})
            group[row.key] = _json_value(row.value)
        return {**values, "evidence": list(classes.values())} if classes else values


def _number(value: float) -> str:
    if abs(value) < 1e-9:  # a zero up to rounding
        value = 0.0
    return "∞" if value == math.inf else f"{value:.4g}"


def _json_value(value: Any) -> Any:
    """The value as strict JSON can hold it."""
    if hasattr(value, "tolist"):  # an array or a NumPy number
        value = value.tolist()
    if hasattr(value, "to_json"):
        value = value.to_json()
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def check_single_task(task: Any, function: str) -> None:
    """Check that `task` is one task, without swept numbers.

    Raises:
        InputError: If it is not, with the name of the function that was called.
    """
    if not isinstance(task, Discrimination):
        raise InputError(
            f"`task` must be a Discrimination, got {show(task)}. "
            "For example `lf.Discrimination(short, long)`."
        )
    if num_members(task) is not None:
        raise InputError(f"The task has swept parameters. Call {function} on each task separately.")


def predict(
    task: Discrimination,
    *,
    initial: ArrayLike | None = None,
    starts: int = PREDICT_STARTS,
    seed: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> Prediction:
    """Will a ReLU neuron on this task become localized?

    Args:
        task: Classes, labels and loss (mean squared error); no swept numbers.
        initial: Fields to start from, (start, 1, *shape); by default random ones, as in `train`.
        starts: Number of random starts.
        seed: Seed of the random starts.
        on_progress: Called with a few words before each part of a prediction from data, which may
            take minutes.

    Returns:
        A `Prediction`; printed, it is a report. For data (`Samples`, `ImagePatches`) it is a
        `DataPrediction`, with measured assumptions, uncertainties and what to try. The verdict is
        `undecided` if no theory covers the task, if the starts end differently, or if the field
        ends between a wave and a bump.

    Raises:
        InputError: If `task` is not a single Discrimination.

    Example:
        >>> import localfields as lf
        >>> shells = [lf.stimuli.EllipticalShell((40,), xi=xi) for xi in (1, 3)]
        >>> lf.predict(lf.Discrimination(*shells)).verdict
        'oscillatory'
    """
    check_single_task(task, "predict")
    if any(isinstance(stimulus, Rows) for stimulus in task.stimuli):
        from .data.prediction import predict_data

        return predict_data(
            task, initial=initial, starts=starts, seed=seed, on_progress=on_progress
        )
    network = SingleNeuron()
    members = Count(high=10**7).check("starts", starts) if initial is None else None
    flow_memory(task, network, members or 1, TYPICAL_RECORDS).check()
    facts = _facts(task)
    theory = best_for(task, network)
    coverage = (theory or BestKnown()).covers(task, network)
    if theory is None:
        reason = f"No theory covers the task: {coverage.reason}"
        return Prediction("undecided", reason, "none", False, **facts, task=task)
    flow = solve(
        task,
        theory.coarse(),
        initial=initial,
        members=members,
        seed=seed,
        until=UNTIL,
        stop_tol=STOP_TOL,
        tolerance=TOLERANCE,
    )
    verdict, reason, localized = judge(task, flow, coverage.exact, facts, bends_of(task))
    doubt = "" if coverage.exact or verdict == "undecided" else _doubt(task, verdict, facts)
    if doubt:
        verdict, reason = "undecided", f"{reason[:-1]}, but {doubt}."
    end = final_state(flow, localized, verdict)
    return Prediction(
        verdict, reason, theory.title(task), coverage.exact, **facts, **end, task=task
    )


def final_state(flow: Trajectory, localized: float, verdict: str) -> dict[str, Any]:
    """The fields of a `Prediction` that come from the flow."""
    onset = flow.events["onset"]
    localizes = np.isfinite(onset).any() and verdict != "oscillatory"
    return {
        "field": flow.final[0, 0],
        "ipr": float(np.median(flow.ipr[:, -1, 0])),
        "peak": flow.peak[:, -1, 0],
        "onset": float(np.nanmedian(onset)) if localizes else math.nan,
        "localized_starts": localized,
        "flow": flow,
    }


def bump_and_wave(size: int, exact: bool) -> tuple[float, float]:
    """IPR above which a final field counts as a bump, and up to which as a wave."""
    if exact:
        return localized_from(size), localized_from(size)
    # The effective flow errs to the broad side: if its field is more concentrated than noise
    # (IPR 3/(N + 2)), the real one is even more so.
    return 3 / (size + 2), 2.1 / size


def _doubt(task: Discrimination, verdict: str, facts: dict[str, Any]) -> str:
    """Why a verdict of the effective flow cannot be trusted; empty if it can.

    The amplifier explains about a third of what distinguishes the response to sub-Gaussian data
    from a Gaussian's (relative errors 0.06 without it and 0.04 with it, Ising, 40 sites), so that a
    kurtosis beyond a third of the critical one may be enough for the real flow to leave a flat
    field. That errs to one side only: a bump that it ends in is real.
    """
    if not all(stimulus.weakly_dependent for stimulus in labelled_stimuli(task)):
        return "distant sites are not nearly independent, which the effective flow assumes"
    kurtosis, critical = facts["excess_kurtosis"], facts["critical_kurtosis"]
    if verdict == "oscillatory" and kurtosis < 0 and not kurtosis > critical / 3:
        limit = (
            "" if math.isnan(critical) else f" beyond a third of the critical {_number(critical)}"
        )
        return f"a negative kurtosis{limit} may have effects that the effective flow misses"
    return ""


def _facts(task: Discrimination) -> dict[str, Any]:
    """The fields of a `Prediction` that need no flow, of the dominant class."""
    marginal = task.stimuli[task.dominant_class()].marginal()
    amplifier = None if marginal is None else Amplifier(marginal)
    # The fastest mode is that of the mean second moment of the classes.
    covariances = zip(task.priors, class_covariances(task), task.stimuli, strict=True)
    second = np.asarray(
        sum(p * (values + stimulus.mean() ** 2) for p, values, stimulus in covariances)
    )
    rates = spectrum(second) if second.shape == task.shape else np.linalg.eigvalsh(second)
    return {
        "excess_kurtosis": math.nan if marginal is None else float(marginal.excess_kurtosis),
        "tail_index": math.nan if marginal is None else float(marginal.tail_index),
        "amplifier_index": math.nan if amplifier is None else float(amplifier.index),
        "crossings": () if amplifier is None else tuple(float(a) for a in amplifier.crossings()),
        "critical_kurtosis": critical_kurtosis(task),
        "elliptical": all(stimulus.elliptical for stimulus in labelled_stimuli(task)),
        "dominance": math.nan if no_bump(task) else hypercube_bump(task).dominance,
        "largest_rate": 2 / float(np.max(rates)),
    }


@dataclasses.dataclass(frozen=True)
class Bend:
    """How the amplifier of one class bends: what decides whether fields localize."""

    number: int  # of the class
    labelled: bool  # whether its label is not 0; the others count only by their covariance
    kurtosis: float  # excess kurtosis of a site
    index: float  # > 0 for a super-linear amplifier
    crossings: tuple[float, ...]  # correlations at which that changes
    starts_super: bool  # whether it is super-linear at small correlations

    @classmethod
    def of(
        cls, number: int, target: np.ndarray, kurtosis: float, marginal: Any, bends: bool = True
    ) -> Bend:
        """From the marginal of a class; `bends` says whether to look for crossings."""
        amplifier = Amplifier(marginal)
        crossings = tuple(map(float, amplifier.crossings())) if bends else ()
        near = 0.5 * crossings[0] if crossings else 0.5
        starts_super = float(amplifier(near)) > SLOPE * near
        labelled, index = bool(target.any()), float(amplifier.index)
        return cls(number, labelled, kurtosis, index, crossings, starts_super)

    def describe(self, critical: float, name: str) -> str:
        """In words; `name` is empty or says which class."""
        if self.crossings:
            first, second = ("super", "sub") if self.starts_super else ("sub", "super")
            return (
                f"the amplifier{name} is {first}-linear up to a correlation of "
                f"{self.crossings[0]:.2g} and {second}-linear beyond "
                f"(excess kurtosis {_number(self.kurtosis)})"
            )
        bend = "super-linear" if self.index > 0 else "sub-linear"
        if (self.kurtosis < 0) != (self.index > 0):
            # The kurtosis is about small correlations, the index about all of them.
            return (
                f"the amplifier{name} is {bend} (index {self.index:.3g}), although the excess "
                f"kurtosis is {_number(self.kurtosis)}"
            )
        if critical < self.kurtosis < 0:
            bend += f", but less than flat fields withstand (to {_number(critical)})"
        return f"excess kurtosis {_number(self.kurtosis)}{name} makes the amplifier {bend}"

    def favors(self, critical: float) -> str:
        """The verdict that it speaks for; empty if it bends both ways."""
        if self.crossings or critical < self.kurtosis < 0:
            return ""
        return "localized" if self.index > 0 else "oscillatory"


def bends_of(task: Discrimination) -> list[Bend]:
    """The bends of all classes whose marginals are known."""
    marginals = [stimulus.marginal() for stimulus in task.stimuli]
    return [
        Bend.of(number, target, float(marginal.excess_kurtosis), marginal)
        for number, (marginal, target) in enumerate(zip(marginals, task.targets(), strict=True))
        if marginal is not None
    ]


def judge(
    task: Discrimination,
    flow: Trajectory,
    exact: bool,
    facts: dict[str, Any],
    bends: list[Bend],
    cause: str = "",
) -> tuple[str, str, float]:
    """Verdict, reason and fraction of localized starts from the final IPR of all starts.

    Args:
        task: The task.
        flow: The flow from all starts.
        exact: Whether it is that of an exact theory.
        facts: The fields of a `Prediction` that need no flow.
        bends: Of the classes.
        cause: Why the flow ends as it does, if it is not the bends.
    """
    ends = flow.ipr[:, -1, 0]
    bump_from, wave_to = bump_and_wave(task.size, exact)
    localized, oscillatory = float(np.mean(ends > bump_from)), float(np.mean(ends <= wave_to))
    favored = ""
    if not cause:
        cause, favored = _cause(facts, bends)
    middle = f"IPR {np.median(ends):.3g} on {task.size} sites"

    def reason(verdict: str, end: str) -> str:
        against = favored not in ("", verdict)  # the flow knows more than the bend alone
        return f"{cause}{', yet' if against else ';'} the flow ends {end}."

    if localized >= AGREEMENT:
        return "localized", reason("localized", f"in a bump of {middle}"), localized
    if oscillatory >= AGREEMENT:
        return "oscillatory", reason("oscillatory", f"in a wave or a constant, {middle}"), localized
    if localized + oscillatory >= AGREEMENT:
        count = round(localized * len(ends))
        mixed = f"It depends on the start: {count} of {len(ends)} starts end in a bump, the others "
        return "undecided", f"{mixed}in a wave or a constant.", localized
    return "undecided", reason("", f"between a wave and a bump, {middle}"), localized


def _cause(facts: dict[str, Any], bends: list[Bend]) -> tuple[str, str]:
    """What decides, for the classes that decide, and the verdict that it speaks for."""
    if facts["elliptical"]:
        text = "The data are elliptical, so that the response is linear whatever the kurtosis"
        return text, ""
    if not math.isnan(facts["dominance"]):
        ratio = facts["dominance"]
        outcome = "a single site can outvote" if ratio < 1 else "no single site outvotes"
        return f"Sites are ±1 and {outcome} all others (dominance ratio {ratio:.3g})", ""
    deciding = [bend for bend in bends if bend.labelled]
    if not deciding:
        return "The distribution of a site is not known", ""
    critical = facts["critical_kurtosis"]
    favored = {bend.favors(critical) for bend in deciding}
    if len({_number(bend.kurtosis) for bend in bends}) == 1 and len(favored) == 1:
        text = deciding[0].describe(critical, "")  # all classes are alike
    else:
        text = " and ".join(
            bend.describe(critical, f" of class {bend.number}") for bend in deciding
        )
        others = [bend for bend in bends if not bend.labelled]
        text += "".join(
            f" (class {bend.number}, of label 0, has {_number(bend.kurtosis)})" for bend in others
        )
    return text[0].upper() + text[1:], favored.pop() if len(favored) == 1 else ""


def critical_kurtosis(task: Discrimination) -> float:
    """Excess kurtosis below which a flat field is unstable in the effective flow.

    At a flat field every site has the correlation a, a² = λ₁₀/N, with the preactivation, and mode j
    grows at the rate λ₁ⱼ/2 · [E (1 + r₀) − (1 + rⱼ)], with rⱼ = λ₀ⱼ/λ₁ⱼ and the elasticity
    E = a φ′(a)/φ(a) ≈ 1 − κ a²/3. For a Gaussian (E = 1) the mode of smallest ratio is stable; the
    amplifier must bend by more than the gap between the ratios:
    κ < −3 N/λ₁₀ · min_j (rⱼ − r₀)/(1 + r₀). All other classes count as one.

    Returns:
        The kurtosis of the labelled class; −2 or below means that no marginal is enough. nan if a
        flat field is not the stable state of the Gaussian task (the smallest ratio is at another
        frequency), or for classes that are not translation invariant.

    Example:
        >>> import localfields as lf
        >>> classes = [lf.stimuli.Gaussian((40,), xi=xi) for xi in (1, 3)]
        >>> round(critical_kurtosis(lf.Discrimination(*classes)), 2)
        -0.29
    """
    return critical_of_rows(
        task, [np.asarray(stimulus.covariance(), np.float64) for stimulus in task.stimuli]
    )


def critical_of_rows(task: Discrimination, rows: list[np.ndarray]) -> float:
    """The critical kurtosis for these covariance rows, whatever the task's stimuli are."""
    labels, priors = task.targets()[:, 0], np.asarray(task.priors)
    if any(row.shape != task.shape for row in rows) or task.outputs > 1:
        return math.nan
    pulled = sum(p * y * spectrum(row) for p, y, row in zip(priors, labels, rows, strict=True))
    total = sum(p * spectrum(row) for p, row in zip(priors, rows, strict=True))
    single = [c for c, label in enumerate(labels) if label != 0]
    if len(single) != 1 or np.asarray(pulled).flat[0] <= 0:
        return math.nan
    power = spectrum(rows[single[0]])
    positive = power > 1e-9 * power.max()
    # p₁(1 + r_j) for two classes
    ratio = np.where(positive, total / np.where(positive, power, 1), np.inf).ravel()
    gap = ratio[1:].min() / ratio[0] - 1
    if gap <= 0:
        return math.nan
    return float(-3 * task.size / (power.flat[0] / rows[single[0]].flat[0]) * gap)
