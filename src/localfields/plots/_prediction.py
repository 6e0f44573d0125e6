"""A prediction: what the task is made of, what follows from it, and where the flow goes."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..stimuli import Stimulus
from ..tasks import Discrimination
from ..theory.data.evidence import ClassEvidence, DataPrediction
from ..theory.predict import Prediction
from ..theory.responses.amplifier import SLOPE
from ..trajectory import Trajectory
from ._fields import fields
from ._runs import ipr
from ._stimuli import amplifier, density
from ._style import (
    BLUE,
    CLASS_STYLES,
    GRAY,
    ORANGE,
    SMALL,
    add_legend,
    make_small,
    new_panels,
    show_text,
    with_minus,
)


def prediction(prediction: Prediction, *, ax: Any = None) -> np.ndarray:
    """Draw what a prediction rests on and where the flow goes, the verdict above.

    The panels of a task are covariances, marginal and amplifier, and, where a theory applies, the
    predicted field and the IPR. Those of data are the dependence of sites, the marginal, the
    measured amplifier and projections, each with its uncertainty, field and IPR.

    Args:
        prediction: What `predict` returned.
        ax: Five axes, three without a flow, six for data; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> axes = lf.plots.prediction(lf.predict(task, starts=2))
        >>> len(axes), axes[0].get_title(), axes[0].figure.get_suptitle()[:9]
        (5, 'covariance', 'LOCALIZED')
    """
    flow = prediction.flow
    if flow is not None and not np.isfinite(flow.ipr).all():
        flow = None
    if isinstance(prediction, DataPrediction):
        axes, width = new_panels(ax, ["abc", "def"], (13, 7.8)), 150
        _draw_data_panels(axes, prediction)
    else:
        layout = ["aabbcc"] if flow is None else ["aabbcc", "dddeee"]
        axes, width = new_panels(ax, layout, (10.5, 0.7 + 3 * len(layout))), 120
        _draw_task_panels(axes, prediction)
    if len(axes) > 3:
        _draw_flow(axes[-2:], flow, prediction)
    make_small(axes)
    for panel in axes:
        panel.set_title(panel.get_title(), fontsize=9)
    if ax is None or callable(ax):
        axes[0].figure.suptitle(_heading(prediction, width), fontsize=10)
    return axes


def verdict_of(prediction: Prediction) -> str:
    """The verdict, and where the evidence leans if that is not the same."""
    texts = [row.text for row in prediction.rows() if row.kind == "verdict" and row.text]
    return ", leaning to ".join(texts)


def _heading(prediction: Prediction, width: int) -> str:
    """Verdict, theory and reason, in lines of at most about `width` characters."""
    text = {row.key: row.text for row in prediction.rows()}
    reason = with_minus(text["reason"])
    if len(reason) > width >= max(map(len, reason.split("; "))):
        reason = reason.replace("; ", ";\n")
    else:
        lines = -(-len(reason) // width)
        reason = textwrap.fill(reason, -(-len(reason) // lines) + 8, break_on_hyphens=False)
    verdict = verdict_of(prediction).replace(prediction.verdict, prediction.verdict.upper(), 1)
    return f"{verdict} ({text['theory']})\n{reason}"


def _draw_task_panels(axes: Any, prediction: Prediction) -> None:
    task, text = prediction.task, {row.key: with_minus(row.text) for row in prediction.rows()}
    _draw_covariances(axes[0], task)
    marginal = task.stimuli[task.dominant_class()].marginal()
    axes[0].set_title("covariance")
    if marginal is None:
        axes[1].set_title("marginal")
        axes[2].set_title("amplifier")
        show_text(axes[1], "not known in closed form")
        show_text(axes[2], "needs the marginal")
        return
    density(marginal, ax=axes[1]).set_title(f"marginal: excess kurtosis {text['excess_kurtosis']}")
    index = f"index {text['amplifier_index']}"
    note = "idle: elliptical data" if prediction.elliptical else index
    amplifier(marginal, ax=axes[2]).set_title(f"amplifier, {note}")
    axes[2].set_ylabel("")


def _draw_covariances(ax: Any, task: Discrimination) -> None:
    """Draw covariance against distance for each class; without symmetry, with the middle site."""
    invariant = all(stimulus.covariance().shape == task.shape for stimulus in task.stimuli)
    targets = task.targets()
    ax.axhline(0, color=GRAY, lw=0.5)
    for c, stimulus in enumerate(task.stimuli):
        color, dashes = CLASS_STYLES[c % len(CLASS_STYLES)]
        label = f"class {c}" + (f", y = {targets[c, 0]:g}" if targets.shape[1] == 1 else "")
        x, values = _covariance_line(stimulus, invariant)
        ax.plot(x, values, color=color, ls=dashes, lw=1.4, label=label)
    middle = task.shape[0] // 2
    ax.set_xlabel("distance (sites)" if invariant else f"site; covariance with site {middle}")
    ax.locator_params(axis="x", integer=True)
    add_legend(ax)


def _covariance_line(stimulus: Stimulus, invariant: bool) -> tuple[np.ndarray, np.ndarray]:
    values, n = stimulus.covariance(), stimulus.shape[0]
    if invariant:
        distances = np.arange(n // 2 + 1)
        return distances, values.reshape(n, -1)[distances, 0]
    if values.shape == stimulus.shape:  # beside a class that is not invariant
        return np.arange(n), np.roll(values.reshape(n, -1)[:, 0], n // 2)
    rest = stimulus.size // n
    return np.arange(n), values.reshape(n, rest, n, rest)[:, 0, n // 2, 0]


def _draw_flow(axes: Any, flow: Trajectory | None, prediction: Prediction) -> None:
    """Draw the field of the first start, and the IPR of all."""
    if flow is None:
        missing = (
            "no theory applies" if getattr(prediction, "evidence", True) else "too few samples"
        )
        for panel, title in zip(axes, ("predicted field", "IPR"), strict=True):
            show_text(panel, missing)
            panel.set_title(title)
        return
    # Evenly spread in the logarithm of time: most happens early.
    records = np.unique(np.geomspace(1, len(flow.times), 40).astype(int)) - 1
    fewer = dataclasses.replace(
        flow,
        steps=flow.steps[records],
        times=flow.times[records],
        series={"weights": flow.weights[:, records]},
    )
    fields(fewer, ax=axes[0])
    last = f"flow time {flow.times[-1]:.4g}"
    when = f"blue to red until {last}" if len(flow.shape) == 1 else last
    axes[0].set_title(f"predicted field of the first start, {when}")
    if axes[0].images:
        bar = axes[0].figure.colorbar(axes[0].images[0], cax=axes[0].inset_axes((1.05, 0, 0.05, 1)))
        bar.ax.tick_params(labelsize=SMALL)
    # The onset of data is that of one of several fits, and told in the report only.
    onset = np.nan if isinstance(prediction, DataPrediction) else prediction.onset
    ipr(flow, onset=onset, log_time=True, ax=axes[1]).set_ylabel("")
    starts = f"{flow.num_members} starts" if flow.num_members > 1 else "one start"
    axes[1].set_title(f"inverse participation ratio, {starts}")


def _draw_data_panels(axes: Any, prediction: DataPrediction) -> None:
    if not prediction.evidence:
        titles = ("dependence of sites (S1)", "marginal", "amplifier", "is it elliptical?")
        for panel, title in zip(axes, titles, strict=False):
            show_text(panel, "too few samples")
            panel.set_title(title)
        return
    most = prediction.evidence[prediction.task.dominant_class()]
    _draw_dependence(axes[0], prediction.evidence)
    axes[0].set_title("correlation of two sites, and of their sizes")
    marginal = prediction.task.stimuli[most.number].marginal()
    assert marginal is not None
    interval = (most.kurtosis.low, most.kurtosis.value, most.kurtosis.high)
    low, value, high = (f"{bound:.3g}".replace("-", "−") for bound in interval)
    warning = "; heavy tails" if most.heavy else ""
    density(marginal, bins=120, ax=axes[1]).set_title(
        f"a site of class {most.number}: excess kurtosis {value}\n({low} to {high}{warning})"
    )
    _draw_measured_amplifier(axes[2], most)
    axes[2].set_title("amplifier less the line of normal data")
    _draw_directions(axes[3], most)
    answer = {"elliptical": "yes", "either": "cannot tell"}.get(most.kind, "no")
    axes[3].set_title(f"E|⟨w, X⟩|/s of directions: elliptical? {answer}")


def _draw_dependence(ax: Any, evidence: Sequence[ClassEvidence]) -> None:
    """Draw the correlation of two sites against distance, and that of their sizes with errors."""
    ax.axhline(0, color=GRAY, lw=0.5)
    for c, of_class in enumerate(evidence):
        color, dashes = CLASS_STYLES[c % len(CLASS_STYLES)]
        check = of_class.check
        label = f"class {of_class.number}"
        ax.plot(check.distances, check.correlation, color=color, ls=dashes, lw=1.4, label=label)
        label = "of sizes, ±2 s.e." if c == len(evidence) - 1 else None
        style = {"color": color, "fmt": ".", "ms": 3, "lw": 0.8, "label": label}
        ax.errorbar(check.distances, check.dependence, 2 * check.dependence_error, **style)
    ax.set_xlabel("distance (sites)")
    ax.locator_params(axis="x", integer=True)
    add_legend(ax)


def _draw_measured_amplifier(ax: Any, evidence: ClassEvidence) -> None:
    """Draw φ(a) less the line of normal data, √(2/π) a, with a band of two standard errors."""
    a, error = evidence.correlations, 2 * evidence.amplifier_error
    excess = evidence.amplifier - SLOPE * a
    low, high = excess - error, excess + error
    ax.axhline(0, color="black", lw=1, ls=":")
    ax.fill_between(a, low, high, color=BLUE, alpha=0.3, lw=0, label="±2 s.e.")
    ax.plot(a, excess, color=BLUE, lw=1.4, label="φ(a) − √(2/π) a")
    ax.set_xlim(0, 1)
    ax.set_ylim(min(-0.005, 1.1 * float(low.min())), max(0.005, 1.1 * float(high.max())))
    ax.set_xlabel("correlation a of a site with the preactivation")
    add_legend(ax)


def _draw_directions(ax: Any, evidence: ClassEvidence) -> None:
    """Draw E|⟨w, X⟩| over its scale for kinds of directions: a vertical line if elliptical."""
    flatness = evidence.flatness
    places = np.arange(len(flatness.kinds))[::-1]
    ax.axvline(0, color="black", lw=1, ls=":")
    style = {"fmt": "o", "ms": 4, "color": ORANGE, "lw": 1.2}
    ax.errorbar(100 * flatness.values, places, xerr=200 * flatness.errors, **style)
    ax.set_yticks(places, flatness.kinds)
    ax.set_ylim(-0.6, len(places) - 0.4)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, -0.5), max(high, 0.5))
    ax.set_xlabel("percent from the average kind of direction, ±2 s.e.")
