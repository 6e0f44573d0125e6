"""`predict` on data: what a neuron would make of the distribution behind some samples.

One ReLU neuron under mean squared error sees of a class only its covariance and the function E|⟨w,
X⟩| of directions. So the rows are tested in turn. Are they a handful of patterns, which can be
summed over? Are they an Ising ring? Is E|⟨w, X⟩| over its scale the same in every direction, so
that the response is linear? Otherwise each site's own marginal drives the effective flow.
Hypotheses that the rows cannot tell apart are all followed, and again on resamples of the rows: a
verdict is what all of them agree on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..._spec import Count
from ...errors import InputError
from ...lattice import spectrum
from ...networks import SingleNeuron
from ...stimuli import Gaussian, Samples
from ...stimuli.samples import Rows
from ...tasks import Discrimination
from ..base import not_a_neuron, raise_if
from ..checks.assumptions import check_stimulus
from ..choose import BestKnown
from ..predict import (
    AGREEMENT,
    PREDICT_STARTS,
    STOP_TOL,
    TOLERANCE,
    UNTIL,
    Bend,
    bump_and_wave,
    critical_of_rows,
    final_state,
    judge,
)
from ..responses.amplifier import Amplifier
from ..responses.hypercube import bump
from ..solve import check_solvable
from . import rows as _rows
from .evidence import ClassEvidence, DataPrediction, Interval
from .flows import HypothesisFlow, finite_patterns, flows_of, follow
from .rows import Measurements, flatness

REJECTION_LEVEL = 1e-4  # p-value below which a hypothesis is rejected
POWER = 6.0  # standard errors that an alternative must be away to count as excluded
# With fewer rows per site the estimated pull on a weight is off by more than √(1/50) of its size.
ROWS_PER_SITE = 50
BOOTSTRAP = 1000  # resamples for an interval
CONFIDENCE = 0.99
SAME_IPR = 0.1  # difference of two logarithms
NO_KURTOSIS = 0.05  # tolerated below zero if no critical kurtosis is known
NUM_MODEL_SAMPLES = 50_000  # of a class that is a model, not data
# Theories by the kind of a class; see `ClassEvidence.kind`.
THEORIES = {
    "elliptical": "LinearResponse",
    "ising": "ExactIsing",
    "sites": "EffectiveFlow",
    "finite": "ExactPulse",
}


def predict_data(
    task: Discrimination,
    *,
    initial: Any = None,
    starts: int = PREDICT_STARTS,
    seed: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> DataPrediction:
    """Predict for a task with data; called by `predict`."""
    report = on_progress or (lambda text: None)
    original = task
    stimuli = [_as_rows(stimulus, task) for stimulus in task.stimuli]
    task = task.replace(stimuli=tuple(stimuli))
    fewest = min(len(stimulus.rows) for stimulus in stimuli)
    if fewest < _rows.MIN_ROWS:
        return _too_few(original, fewest)
    measurements = [Measurements(stimulus) for stimulus in stimuli]
    labels = task.targets()
    evidence: tuple[ClassEvidence, ...] = ()
    for c, (stimulus, measured) in enumerate(zip(stimuli, measurements, strict=True)):
        report(f"measuring {len(stimulus.rows):,} rows of class {c + 1} of {len(stimuli)}")
        evidence += (_evidence(c, stimulus, measured, labels[c]),)
    labelled = [c for c, label in enumerate(labels) if (label != 0).any()]
    patterns = finite_patterns(stimuli)
    # What each labelled class may be; two hypotheses if the rows cannot tell.
    kinds = {c: "finite" if patterns is not None else evidence[c].kind for c in labelled}
    unclear = [c for c in labelled if kinds[c] == "either"]
    hypotheses = (
        [{**kinds, **dict.fromkeys(unclear, kind)} for kind in ("elliptical", "sites")]
        if unclear
        else [kinds]
    )
    # Stands in for the data where only labels, priors and the lattice matter.
    stand_ins = (Gaussian(task.shape, xi=0.1 + 1e-6 * c) for c in range(len(stimuli)))
    plain = task.replace(stimuli=tuple(stand_ins))
    facts = {**_facts(task, stimuli, measurements, evidence, labelled), "task": original}
    try:
        if patterns is None:
            raise_if(not_a_neuron("predict", plain, SingleNeuron()))
        check_solvable(plain, BestKnown(), SingleNeuron(), UNTIL, STOP_TOL, TOLERANCE, "auto")
    except InputError as error:
        reason = f"No theory covers the task: {error}"
        return DataPrediction("undecided", reason, "none", False, **facts, evidence=evidence)
    members = Count(high=10**7).check("starts", starts) if initial is None else None
    shifts_differ = any(measured.shifts_differ for measured in evidence)
    followed = []
    for place, kinds in enumerate(hypotheses, 1):
        which = f", hypothesis {place} of {len(hypotheses)}" if len(hypotheses) > 1 else ""
        report(f"following fields on {task.size} sites, of the rows and of resamples{which}")
        flows = flows_of(plain, measurements, patterns, kinds, shifts_differ)
        followed.append(follow(plain, flows, initial, members, seed))
    bends = [
        Bend.of(
            c,
            labels[c],
            evidence[c].kurtosis.value,
            measured.marginal(measured.ones),
            evidence[c].bends_both_ways,
        )
        for c, measured in enumerate(measurements)
    ]
    return _conclude(task, evidence, hypotheses, labelled, facts, bends, followed)


def _as_rows(stimulus: Any, task: Discrimination) -> Rows:
    """The stimulus, or samples of one that is not data."""
    if isinstance(stimulus, Rows):
        return stimulus
    with jax.enable_x64(False):
        return Samples(
            data=np.asarray(stimulus.sample(0, NUM_MODEL_SAMPLES)).reshape(-1, *task.shape)
        )


def _evidence(c: int, stimulus: Rows, measured: Measurements, label: np.ndarray) -> ClassEvidence:
    """All that is measured of one class."""
    correlation = _rows.neighbor_correlation(stimulus.rows)
    effective = float(measured.num)
    if correlation > 5 / math.sqrt(measured.num):
        effective = measured.num * (1 - correlation) / (1 + correlation)
    check = check_stimulus(stimulus.replace(symmetry="none"))
    heavy = measured.tail_index - 2 * measured.tail_error < 5
    resampled = _rows.resamples(BOOTSTRAP)
    kurtosis = Interval.of(
        measured.kurtosis(measured.ones), measured.kurtosis(resampled), CONFIDENCE
    )
    flat = flatness(measured, heavy)
    a = np.linspace(0, 1, 41)
    curves = np.stack(
        [
            Amplifier(measured.marginal(weights))(a)
            for weights in np.concatenate([measured.ones[None], resampled[:30]])
        ]
    )
    if _rows.ising_p(measured) >= REJECTION_LEVEL:
        kind = "ising"
    elif flat.p < REJECTION_LEVEL:
        kind = "sites"
    else:
        kind = "elliptical" if flat.power >= POWER else "either"
    row = measured.row(measured.ones)
    return ClassEvidence(
        number=c,
        label=tuple(map(float, label)),
        num=measured.num,
        effective=effective,
        check=check,
        declared=stimulus.symmetry,
        mean=float(np.abs(stimulus.site_means()).max() / math.sqrt(row.flat[0])),
        kurtosis=kurtosis,
        tail_index=measured.tail_index,
        tail_error=measured.tail_error,
        heavy=heavy,
        flatness=flat,
        kind=kind,
        correlations=a,
        amplifier=curves[0],
        amplifier_error=curves[1:].std(axis=0, ddof=1),
        row=row,
    )


def _facts(
    task: Discrimination,
    stimuli: list[Rows],
    measurements: list[Measurements],
    evidence: tuple[ClassEvidence, ...],
    labelled: list[int],
) -> dict[str, Any]:
    """The fields of a `Prediction` that need no flow, of the dominant class."""
    rows = [measured.row(measured.ones) for measured in measurements]
    dominant = task.dominant_class()
    of_class, measured = evidence[dominant], measurements[dominant]
    amplifier = Amplifier(measured.marginal(measured.ones))
    signs = all(measured.two_valued for measured in measurements) and task.outputs == 1
    second = [
        row + stimulus.site_means().mean() ** 2 for row, stimulus in zip(rows, stimuli, strict=True)
    ]
    rates = sum(p * spectrum(row) for p, row in zip(task.priors, second, strict=True))
    return {
        "excess_kurtosis": of_class.kurtosis.value,
        "tail_index": of_class.tail_index if of_class.heavy else math.inf,
        "amplifier_index": float(amplifier.index),
        "crossings": tuple(map(float, amplifier.crossings())) if of_class.bends_both_ways else (),
        "critical_kurtosis": critical_of_rows(task, rows),
        "elliptical": all(evidence[c].kind == "elliptical" for c in labelled),
        "dominance": bump(rows, task.targets()[:, 0], task.priors).dominance if signs else math.nan,
        "largest_rate": 2 / float(np.max(rates)),
    }


def _too_few(task: Discrimination, fewest: int) -> DataPrediction:
    reason = (
        f"A class has {fewest} samples; at least {_rows.MIN_ROWS} are needed to measure anything."
    )
    names = (
        "excess_kurtosis",
        "tail_index",
        "amplifier_index",
        "critical_kurtosis",
        "dominance",
        "largest_rate",
    )
    facts: dict[str, Any] = {**dict.fromkeys(names, math.nan), "crossings": (), "elliptical": False}
    needed = ROWS_PER_SITE * task.size
    return DataPrediction("undecided", reason, "none", False, **facts, needed=needed, task=task)


def _conclude(
    task: Discrimination,
    evidence: tuple[ClassEvidence, ...],
    hypotheses: list[dict[int, str]],
    labelled: list[int],
    facts: dict[str, Any],
    bends: list[Bend],
    followed: list[HypothesisFlow],
) -> DataPrediction:
    """Combine the verdicts of all hypotheses and resamples, and the doubts about them."""
    by_sites = [evidence[c] for c in labelled if hypotheses[-1][c] == "sites"]
    if len(followed) == 2:
        medians = [float(np.median(end.flow.ipr[:, -1, 0])) for end in followed]
        if abs(math.log(medians[0] / medians[1])) < SAME_IPR:
            # Both end in the same field, so that the rows need not tell them apart.
            hypotheses, followed = hypotheses[:1], followed[:1]
    pairs = list(zip(hypotheses, followed, strict=True))
    judged = [_judge(task, kinds, facts, bends, end) for kinds, end in pairs]
    leaning, reason, localized, exact = judged[-1]
    doubts, advice, needed = [], [], 0
    if len({verdict for verdict, *_ in judged}) > 1:
        both = " or ".join(
            dict.fromkeys(
                f"{verdict} ({_theory_names(kinds)})"
                for (verdict, *_), kinds in zip(judged, hypotheses, strict=True)
            )
        )
        doubts.append(
            f"the samples cannot tell whether the response is linear, which decides: {both}"
        )
        first = evidence[labelled[0]]
        needed = int(first.num * (POWER / max(first.flatness.power, 1)) ** 2)
        leaning = "undecided"
    doubts += [
        text for kinds, end in pairs for text in _resamples_differ(task, kinds, end, leaning)
    ][:1]
    needed = max(needed, 4 * min(of_class.num for of_class in evidence) if doubts else 0)
    # Classes with label zero matter only through their covariance, unless all are described alike.
    shared = set(hypotheses[-1].values())
    unlabelled = shared.pop() if shared in ({"finite"}, {"elliptical"}) else "rest"
    for of_class in evidence:
        more, tries = of_class.doubts(hypotheses[-1].get(of_class.number, unlabelled))
        # "S1 fails" is said once.
        doubts += [text for text in more if not any(text[:8] == doubt[:8] for doubt in doubts)]
        advice += tries
    if by_sites:
        doubts += _kurtosis_doubts(leaning, facts, by_sites)
    effective = min(of_class.effective for of_class in evidence)
    if effective < ROWS_PER_SITE * task.size:
        ratio = min(of_class.num for of_class in evidence) / effective
        about = "" if ratio == 1 else ", after allowing for correlated neighbors,"
        doubts.insert(0, f"{effective:.0f} samples{about} are few for {task.size} weights")
        needed = max(needed, math.ceil(ROWS_PER_SITE * task.size * ratio))
    verdict = "undecided" if doubts else leaning
    if doubts:
        reason = f"{reason[:-1]}; but {'; and '.join(doubts)}."
    return DataPrediction(
        verdict,
        reason,
        _theory_names(hypotheses[-1]),
        exact,
        **facts,
        **final_state(followed[-1].flow, localized, leaning),
        leaning=leaning,
        evidence=evidence,
        doubts=tuple(doubts),
        advice=tuple(dict.fromkeys(advice)),
        needed=needed if verdict == "undecided" else 0,
    )


def _theory_names(kinds: dict[int, str]) -> str:
    return " and ".join(sorted({THEORIES[kind] for kind in kinds.values()}))


def _judge(
    task: Discrimination,
    kinds: dict[int, str],
    facts: dict[str, Any],
    bends: list[Bend],
    end: HypothesisFlow,
) -> tuple[str, str, float, bool]:
    """Verdict, reason, fraction of localized starts, and whether the theory is exact."""
    exact, cause = "sites" not in kinds.values(), ""
    elliptical = set(kinds.values()) == {"elliptical"}
    unproven = elliptical and not facts["elliptical"]
    if unproven:
        cause = "As far as the samples can tell the response is linear"
    elif "finite" in kinds.values():
        cause = "The samples are a few patterns, over which everything is summed"
    facts = {**facts, "elliptical": elliptical}
    return (*judge(task, end.flow, exact, facts, bends, cause), exact and not unproven)


def _resamples_differ(
    task: Discrimination, kinds: dict[int, str], end: HypothesisFlow, leaning: str
) -> list[str]:
    """Whether resamples of the rows would have led to another verdict."""
    bump_from, wave_to = bump_and_wave(task.size, "sites" not in kinds.values())
    agreeing = {"localized": end.resampled > bump_from, "oscillatory": end.resampled <= wave_to}
    agree = agreeing.get(leaning)
    if agree is None or (agree.mean() >= AGREEMENT and (agree.mean(axis=1) > 0.5).all()):
        return []
    share = f"{100 * (1 - agree.mean()):.0f} % of {agree.size} starts"
    return [f"resamples of the data end otherwise, {share}"]


def _kurtosis_doubts(
    leaning: str, facts: dict[str, Any], classes: list[ClassEvidence]
) -> list[str]:
    """Why a flat end of the effective flow is doubtful, given the kurtosis' uncertainty."""
    critical = facts["critical_kurtosis"]
    limit = -NO_KURTOSIS if math.isnan(critical) else critical / 3
    if leaning != "oscillatory" or min(of_class.kurtosis.low for of_class in classes) > limit:
        return []
    certain = max(of_class.kurtosis.high for of_class in classes) <= limit
    beyond = "" if math.isnan(critical) else f" beyond a third of the critical {critical:.3g}"
    return [
        f"the kurtosis {'is' if certain else 'may be'} negative{beyond}, "
        "which may have effects that the effective flow misses"
    ]
