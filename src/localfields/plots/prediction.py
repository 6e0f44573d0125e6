"""The page of a prediction: what the task is made of, what the law does to it, and where the flow goes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..marginals import Marginal
from ..stimuli import Stimulus
from ..tasks import Discrimination
from ..theory.predict import Prediction
from ..theory.responses.amplifier import SLOPE, Amplifier
from ..trajectory import Trajectory, localized_from
from ._pages import (
    add_heading,
    add_legend,
    add_panel,
    draw_first_start,
    ipr_title,
    new_page,
    say,
    with_minus,
)
from .fields import SMALL
from .stimulus import BLUE, GRAY, GREEN, ORANGE

# Of the classes in turn: Okabe and Ito's colors, and dashes for those who print in gray.
STYLES = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    ("#CC79A7", ":"),
    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1))),
)
MOST_ATOMS = 12


def draw_covariances(ax: Any, task: Discrimination) -> None:
    """Covariance against distance (along the first axis) for each class; without invariance, with the middle site."""
    invariant = all(stimulus.covariance().shape == task.shape for stimulus in task.stimuli)
    ax.axhline(0, color=GRAY, lw=0.5)
    for c, (stimulus, label) in enumerate(zip(task.stimuli, _labels(task), strict=True)):
        color, dashes = STYLES[c % len(STYLES)]
        ax.plot(*_covariance_line(stimulus, invariant), color=color, ls=dashes, lw=1.4, label=label)
    ax.set_xlabel("distance" if invariant else f"site; covariance with site {task.shape[0] // 2}")
    ax.locator_params(axis="x", integer=True)
    add_legend(ax)


def _labels(task: Discrimination) -> list[str]:
    targets = task.targets()
    if targets.shape[1] > 1:
        return [f"class {c}" for c in range(len(targets))]
    return [f"class {c}, y = {target:g}" for c, target in enumerate(targets[:, 0])]


def _covariance_line(stimulus: Stimulus, invariant: bool) -> tuple[np.ndarray, np.ndarray]:
    values, n = stimulus.covariance(), stimulus.shape[0]
    if invariant:
        half = np.arange(n // 2 + 1)
        return half, values.reshape(n, -1)[half, 0]
    if values.shape == stimulus.shape:  # beside a class that is not invariant
        return np.arange(n), np.roll(values.reshape(n, -1)[:, 0], n // 2)
    rest = stimulus.size // n
    return np.arange(n), values.reshape(n, rest, n, rest)[:, 0, n // 2, 0]


def draw_law(ax: Any, law: Marginal, color: str = BLUE, bins: int = 240) -> None:
    """Density of a law as the exact probability of each bin, or its atoms, and the normal law of the same variance."""
    spread = law.quantile(np.linspace(0.001, 0.999, 999))
    atoms = np.unique(spread)
    ax.set_xlabel("value")
    if len(atoms) <= MOST_ATOMS:
        mass = law.cdf(atoms) - law.cdf(np.nextafter(atoms, -np.inf))
        ax.vlines(atoms, 0, mass, color=color, lw=2)
        ax.plot(atoms, mass, "o", color=color, ms=5)
        margin = 0.4 * float(np.ptp(atoms)) or 1.0
        ax.set_xlim(atoms[0] - margin, atoms[-1] + margin)
        ax.set_ylim(0, 1.15 * float(mass.max()))
        ax.set_ylabel("probability", fontsize=SMALL)
        return
    edges = np.linspace(*_ends(spread), bins + 1)
    density = np.diff(law.cdf(edges)) / (edges[1] - edges[0])
    z = (np.linspace(edges[0], edges[-1], 300) - law.mean) / law.sd
    normal = np.exp(-(z**2) / 2) / (law.sd * math.sqrt(2 * math.pi))
    ax.stairs(density, edges, fill=True, color=color, alpha=0.35, lw=0)
    ax.plot((edges[1:] + edges[:-1]) / 2, density, color=color, lw=1.2, label="law")
    ax.plot(law.mean + law.sd * z, normal, color="black", ls=":", lw=1, label="normal")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(bottom=0)
    ax.set_ylabel("density", fontsize=SMALL)
    add_legend(ax)


def _ends(spread: np.ndarray) -> tuple[float, float]:
    margin = 0.05 * (spread[-1] - spread[0])
    return float(spread[0] - margin), float(spread[-1] + margin)


def draw_amplifier(ax: Any, law: Marginal) -> None:
    """φ(a) against the straight line of normal data, √(2/π) a; shaded where the law amplifies more, or less."""
    a = np.linspace(0, 1, 401)
    value, line = Amplifier(law)(a), SLOPE * a
    for part, color, name in (
        (value > line, ORANGE, "super-linear"),
        (value < line, BLUE, "sub-linear"),
    ):
        if np.abs(value - line)[part].max(initial=0.0) > 1e-6:
            ax.fill_between(
                a,
                line,
                value,
                where=part,
                interpolate=True,
                color=color,
                alpha=0.4,
                lw=0,
                label=name,
            )
    ax.plot(a, value, color="black", lw=1.4, label="φ(a)")
    ax.plot(a, line, color="black", lw=1, ls=":", label="normal: √(2/π) a")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.05 * max(SLOPE, float(value.max())))
    ax.set_xlabel("correlation a of a site with the preactivation")
    ax.legend(frameon=False, fontsize=SMALL, loc="upper left")


def draw_ipr(ax: Any, flow: Trajectory, onset: float = math.nan) -> None:
    """IPR of every start over flow time, the ratio from which a field counts as localized, and the median onset.

    Time is logarithmic from the second record on, as fields may settle early and wait long for a last change.
    """
    threshold = localized_from(math.prod(flow.shape))
    values = flow.ipr[:, :, 0]
    for local, color, name in ((True, ORANGE, "ends localized"), (False, BLUE, "ends otherwise")):
        for place, value in enumerate(values[(values[:, -1] > threshold) == local]):
            ax.plot(
                flow.times,
                value,
                color=color,
                lw=0.9,
                alpha=0.7,
                label=name if place == 0 else None,
            )
    ax.axhline(threshold, color="black", ls="--", lw=1, label="localized from here")
    ax.set_ylim(0, ax.get_ylim()[1])
    if math.isfinite(onset):
        ax.plot(
            [onset] * 2,
            ax.get_ylim(),
            color=GREEN,
            ls="-.",
            lw=1.2,
            label=f"onset, median {onset:.3g}",
        )
    first, last = float(flow.times[1]), float(flow.times[-1])
    ax.set_xscale("symlog", linthresh=first, linscale=0.5)
    ax.set_xticks(
        [0, *10.0 ** np.arange(math.ceil(math.log10(first)), math.floor(math.log10(last)) + 1)]
    )
    ax.minorticks_off()
    ax.set_xlim(0, last)
    ax.set_xlabel("flow time")
    add_legend(ax)


def prediction_figure(prediction: Prediction) -> Any:
    """The page as a matplotlib figure: covariances, law, amplifier; fields and IPR over flow time; the verdict above.

    Args:
        prediction: From `predict`.
    """
    task, text = prediction.task, {row.key: with_minus(row.text) for row in prediction.rows()}
    flow = prediction.flow
    if flow is not None and not np.isfinite(flow.ipr).all():
        flow = None
    rows = 1 if flow is None else 2
    figure = new_page(10.5, 0.7 + 3 * rows)
    grid = figure.add_gridspec(rows, 6)
    draw_covariances(add_panel(figure, grid[0, :2], "covariance"), task)
    law = _strongest(task).marginal()
    if law is None:
        say(add_panel(figure, grid[0, 2:4], "law of one site"), "not known in closed form")
        say(add_panel(figure, grid[0, 4:], "amplifier"), "needs the law of one site")
    else:
        draw_law(
            add_panel(figure, grid[0, 2:4], f"one site: excess kurtosis {text['excess_kurtosis']}"),
            law,
        )
        note = (
            "idle: elliptical data" if prediction.elliptical else f"index {text['amplifier_index']}"
        )
        draw_amplifier(add_panel(figure, grid[0, 4:], f"amplifier, {note}"), law)
    if flow is not None:
        draw_first_start(figure, grid[1, :3], flow)
        draw_ipr(add_panel(figure, grid[1, 3:], ipr_title(flow)), flow, prediction.onset)
    add_heading(figure, prediction, 120)
    return figure


def _strongest(task: Discrimination) -> Stimulus:
    """The class that pulls most, of which the report tells the kurtosis."""
    return task.stimuli[int(np.argmax(np.abs(task.targets()[:, 0]) * np.asarray(task.priors)))]
