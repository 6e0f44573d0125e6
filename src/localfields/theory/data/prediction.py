"""`predict` on data: what a neuron would make of the law behind some rows, and how sure the rows are of it.

One ReLU neuron under mean squared error sees of a class its covariance and the function E|⟨w, X⟩| of directions, no
more. So the rows are asked in turn: are they a handful of patterns, which can be summed over? Is E|⟨w, X⟩| over its
scale the same in every direction, so that the response is linear whatever the law of a site? Are they an Ising ring?
Else each site's own law drives the effective flow. What cannot be told apart is followed both ways, and everything is
followed again on resamples: a verdict is what all of them agree on.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from ..._spec import Count
from ...errors import InputError
from ...lattice import spectrum
from ...stimuli import Gaussian, Samples
from ...stimuli.samples import Rows
from ...tasks import Discrimination
from ..checks.assumptions import check_stimulus
from ..predict import AGREEMENT, STARTS, bump_and_wave, critical_of_rows, judge
from ..responses.amplifier import SLOPE, Amplifier
from ..responses.hypercube import bump
from . import rows as _rows
from .evidence import ClassEvidence, DataPrediction, Interval
from .flows import Look, check_followed, finite_patterns, flows_of, follow
from .rows import Measurements, flatness

LEVEL = 1e-4  # chance below which a hypothesis is given up
POWER = 6.0  # standard errors that an alternative must be away to have been seen
ROWS_A_SITE = 50  # below, what n rows push a weight by is off by more than √(1/50) of its size in every direction
BOOTSTRAP = 1000  # resamples for an interval
CONFIDENCE = 0.99
SAME = 0.1  # of the logarithm of an IPR
NO_KURTOSIS = 0.05  # from zero, where nothing says which kurtosis is critical
DRAWN = 50_000  # rows, of a class that is no data


def predict_data(
    task: Discrimination, *, initial: Any = None, starts: int = STARTS, seed: int = 0
) -> DataPrediction:
    """See `predict`, which comes here for tasks with data."""
    given = task
    stimuli = [_as_rows(one, task) for one in task.stimuli]
    task = task.replace(stimuli=tuple(stimuli))
    labels = task.targets()
    few = min(len(one.rows) for one in stimuli)
    if few < _rows.LEAST:
        return _nothing(given, few)
    found = [Measurements(one) for one in stimuli]
    evidence = tuple(
        _evidence(c, one, two, labels[c])
        for c, (one, two) in enumerate(zip(stimuli, found, strict=True))
    )
    pulls = [c for c, label in enumerate(labels) if (label != 0).any()]
    finite = finite_patterns(stimuli)
    kinds = ({c: "finite" for c in pulls},) if finite is not None else _hypotheses(evidence, pulls)
    plain = task.replace(stimuli=(Gaussian(task.shape, xi=0.1),) * len(stimuli))
    facts = {**_facts(task, found, evidence, pulls), "task": given}
    try:
        check_followed(plain, finite is not None)
    except InputError as error:
        reason = f"No theory here covers the task: {error}"
        return DataPrediction(
            "undecided", reason, "none", False, **facts, evidence=evidence, leaning="undecided"
        )
    members = Count(high=10**7).check("starts", starts) if initial is None else None
    looks = [
        follow(plain, flows_of(plain, found, finite, one, evidence), initial, members, seed)
        for one in kinds
    ]
    return _conclude(task, evidence, kinds, pulls, facts, looks)


def _as_rows(stimulus: Any, task: Discrimination) -> Rows:
    """The stimulus, or draws from one that is no data."""
    if isinstance(stimulus, Rows):
        return stimulus
    with jax.enable_x64(False):
        return Samples(data=np.asarray(stimulus.sample(0, DRAWN)).reshape(-1, *task.shape))


# -- what the rows say --------------------------------------------------------------------------------------------


def _evidence(c: int, stimulus: Rows, found: Measurements, label: np.ndarray) -> ClassEvidence:
    """All that is measured of one class."""
    alike = _rows.likeness(stimulus.rows)
    effective = (
        found.num * (1 - alike) / (1 + alike)
        if alike > 5 / math.sqrt(found.num)
        else float(found.num)
    )
    check = check_stimulus(stimulus.replace(symmetry="none"))
    heavy = found.tail_index - 2 * found.tail_error < 5
    resampled = _rows.resamples(BOOTSTRAP)
    kurtosis = Interval.of(found.kurtosis(found.ones), found.kurtosis(resampled), CONFIDENCE)
    flat = flatness(found, heavy)
    a = np.linspace(0, 1, 41)
    weights = np.concatenate([found.ones[None], resampled[:30]])
    curves = np.stack([Amplifier(found.law(one))(a) for one in weights])
    ising = _rows.ising_p(found)
    if ising >= LEVEL:
        kind = "ising"
    elif flat.p < LEVEL:
        kind = "sites"
    else:
        kind = "elliptical" if flat.power >= POWER else "either"
    return ClassEvidence(
        number=c,
        label=tuple(map(float, label)),
        num=found.num,
        effective=effective,
        check=check,
        declared=stimulus.symmetry,
        mean=float(np.abs(stimulus.site_means()).max() / math.sqrt(found.row(found.ones).flat[0])),
        kurtosis=kurtosis,
        tail_index=found.tail_index,
        tail_error=found.tail_error,
        heavy=heavy,
        flatness=flat,
        kind=kind,
        correlations=a,
        amplifier=curves[0],
        amplifier_error=curves[1:].std(axis=0, ddof=1),
        row=found.row(found.ones),
    )


def _hypotheses(
    evidence: tuple[ClassEvidence, ...], pulls: list[int]
) -> tuple[dict[int, str], ...]:
    """What each class that pulls may be; two where the rows cannot tell."""
    either = [c for c in pulls if evidence[c].kind == "either"]
    sure = {c: evidence[c].kind for c in pulls}
    return tuple(
        {**sure, **dict.fromkeys(either, kind)}
        for kind in (("elliptical", "sites") if either else ("",))
    )


def _facts(
    task: Discrimination, found: list[Measurements], evidence: Any, pulls: list[int]
) -> dict[str, Any]:
    """The fields of a `Prediction` that need no flow, of the class that pulls most."""
    rows = [one.row(one.ones) for one in found]
    most = int(np.argmax(np.abs(task.targets()[:, 0]) * np.asarray(task.priors)))
    said, amplifier = evidence[most], Amplifier(found[most].law(found[most].ones))
    excess = said.amplifier - SLOPE * said.correlations
    sure = np.abs(excess) > 4 * said.amplifier_error + 1e-9
    bends = (excess[sure] > 0).any() and (excess[sure] < 0).any()
    signs = all(one.two_valued for one in found) and task.outputs == 1
    means = [stimulus.site_means().mean() for stimulus in task.stimuli]  # pyright: ignore[reportAttributeAccessIssue]  # all are rows of data
    second = [row + mean**2 for row, mean in zip(rows, means, strict=True)]
    return {
        "excess_kurtosis": said.kurtosis.value,
        "tail_index": said.tail_index if said.heavy else math.inf,
        "amplifier_index": float(amplifier.index),
        "crossings": tuple(map(float, amplifier.crossings()))
        if bends and said.kind == "sites"
        else (),
        "critical_kurtosis": critical_of_rows(task, rows),
        "elliptical": all(evidence[c].kind == "elliptical" for c in pulls),
        "dominance": bump(rows, task.targets()[:, 0], task.priors).dominance if signs else math.nan,
        "largest_rate": 2
        / float(np.max(sum(p * spectrum(r) for p, r in zip(task.priors, second, strict=True)))),
    }


# -- the answer ---------------------------------------------------------------------------------------------------


def _nothing(task: Discrimination, few: int) -> DataPrediction:
    reason = f"A class has {few} samples; nothing can be measured from fewer than {_rows.LEAST}."
    names = (
        "excess_kurtosis",
        "tail_index",
        "amplifier_index",
        "critical_kurtosis",
        "dominance",
        "largest_rate",
    )
    facts: dict[str, Any] = {**dict.fromkeys(names, math.nan), "crossings": (), "elliptical": False}
    needed = ROWS_A_SITE * task.size
    return DataPrediction(
        "undecided", reason, "none", False, **facts, leaning="undecided", needed=needed, task=task
    )


NAMES = {
    "elliptical": "LinearResponse",
    "ising": "ExactIsing",
    "sites": "EffectiveFlow",
    "finite": "ExactPulse",
}


def _conclude(
    task: Discrimination,
    evidence: Any,
    kinds: Any,
    pulls: list[int],
    facts: dict[str, Any],
    looks: list[Look],
) -> DataPrediction:
    """Verdicts of all hypotheses and resamples, and what speaks against trusting them."""
    by_sites = [evidence[c] for c in pulls if kinds[-1][c] == "sites"]
    if len(looks) == 2 and _same_end(*looks):  # the rows need not tell them apart
        kinds, looks = kinds[:1], looks[:1]
    judged = [_judged(task, one, facts, look) for one, look in zip(kinds, looks, strict=True)]
    leaning, reason, localized, exact = judged[-1]
    doubts, advice, needed = [], [], 0
    if len({one[0] for one in judged}) > 1:
        both = " or ".join(
            dict.fromkeys(f"{one[0]} ({_named(k)})" for one, k in zip(judged, kinds, strict=True))
        )
        doubts.append(f"the rows cannot tell whether the response is linear, which decides: {both}")
        needed = int(
            evidence[pulls[0]].num * (POWER / max(evidence[pulls[0]].flatness.power, 1)) ** 2
        )
        leaning = "undecided"
    doubts += [
        text
        for one, look in zip(kinds, looks, strict=True)
        for text in _unsteady(task, one, look, leaning)
    ][:1]
    needed = max(needed, 4 * min(one.num for one in evidence) if doubts else 0)
    shared = set(kinds[-1].values())
    rest = (
        shared.pop() if shared in ({"finite"}, {"elliptical"}) else "rest"
    )  # of a class that does not pull
    for one in evidence:
        found, tries = one.doubts(kinds[-1].get(one.number, rest))
        doubts += [
            text for text in found if not any(said[:8] == text[:8] for said in doubts)
        ]  # "S1 fails" once
        advice += tries
    if by_sites:
        doubts += _by_kurtosis(leaning, facts, by_sites)
    effective = min(one.effective for one in evidence)
    if effective < ROWS_A_SITE * task.size:
        ratio = min(one.num for one in evidence) / effective
        about = "" if ratio == 1 else ", counting rows that resemble the next as one,"
        doubts.insert(0, f"{effective:.0f} samples{about} are few for {task.size} weights")
        needed = max(needed, math.ceil(ROWS_A_SITE * task.size * ratio))
    verdict = "undecided" if doubts else leaning
    if doubts:
        reason = f"{reason[:-1]}; but {'; and '.join(doubts)}."
    onset = looks[-1].flow.events["onset"]
    seen = np.isfinite(onset).any() and leaning != "oscillatory"
    return DataPrediction(
        verdict,
        reason,
        _named(kinds[-1]),
        exact,
        **facts,
        field=looks[-1].flow.final[0, 0],
        ipr=float(np.median(looks[-1].flow.ipr[:, -1, 0])),
        peak=looks[-1].flow.peak[:, -1, 0],
        onset=float(np.nanmedian(onset)) if seen else math.nan,
        localized_starts=localized,
        flow=looks[-1].flow,
        leaning=leaning,
        evidence=evidence,
        doubts=tuple(doubts),
        advice=tuple(dict.fromkeys(advice)),
        needed=needed if verdict == "undecided" else 0,
    )


def _same_end(one: Look, other: Look) -> bool:
    """Whether two descriptions end in fields of one IPR, so that one of them may stand for both."""
    medians = [float(np.median(look.flow.ipr[:, -1, 0])) for look in (one, other)]
    return abs(math.log(medians[0] / medians[1])) < SAME


def _named(kinds: dict[int, str]) -> str:
    return " and ".join(sorted({NAMES[one] for one in kinds.values()}))


def _exact(kinds: dict[int, str]) -> bool:
    return "sites" not in kinds.values()


def _judged(
    task: Discrimination, kinds: Any, facts: Any, look: Look
) -> tuple[str, str, float, bool]:
    exact, ends = _exact(kinds), look.flow.ipr[:, -1, 0]
    bump_from, wave_to = bump_and_wave(task.size, exact)
    localized, oscillatory = float(np.mean(ends > bump_from)), float(np.mean(ends <= wave_to))
    sure, elliptical, cause = facts["elliptical"], set(kinds.values()) == {"elliptical"}, None
    if elliptical and not sure:
        exact, cause = False, "As far as the rows can tell the response is linear"
    elif "finite" in kinds.values():
        cause = "The samples are a few patterns, over which everything is summed"
    facts = {**facts, "elliptical": elliptical}
    return (*judge(task, ends, localized, oscillatory, facts, cause), localized, exact)


def _unsteady(task: Discrimination, kinds: Any, look: Look, leaning: str) -> list[str]:
    """Whether resamples of the rows would have been told something else."""
    bump_from, wave_to = bump_and_wave(task.size, _exact(kinds))
    agree = {"localized": look.resampled > bump_from, "oscillatory": look.resampled <= wave_to}.get(
        leaning
    )
    if agree is None or (agree.mean() >= AGREEMENT and (agree.mean(axis=1) > 0.5).all()):
        return []
    return [
        f"resamples of the rows end otherwise, {100 * (1 - agree.mean()):.0f} % of {agree.size} starts"
    ]


def _by_kurtosis(leaning: str, facts: dict[str, Any], classes: list[ClassEvidence]) -> list[str]:
    """What `predict` holds against a flat end of the effective flow, with the uncertainty of the kurtosis."""
    critical = facts["critical_kurtosis"]
    limit = -NO_KURTOSIS if math.isnan(critical) else critical / 3
    low = min(one.kurtosis.low for one in classes)
    if leaning != "oscillatory" or low > limit:
        return []
    beyond = "is" if max(one.kurtosis.high for one in classes) <= limit else "may be"
    what = "" if math.isnan(critical) else f" beyond a third of the critical {critical:.3g}"
    return [f"the kurtosis {beyond} negative{what}, which may be more than this flow knows"]
