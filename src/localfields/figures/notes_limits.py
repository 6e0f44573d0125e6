"""Note 1, Figs. 4 and 5: what a neuron with a fixed gate learns, from its gate's covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..experiments import Experiment, Training
from ..networks import SingleNeuron
from ..networks.gates import Bump, Directions, MexicanHat
from ..plots._style import BLUE, GRAY, ORANGE, SMALL, finish, new_figure
from ..stimuli import NLGP
from ..tasks import Discrimination
from ..theory import GatedSolution, gated_solution
from ..trajectory import inverse_participation_ratio, localized_from
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread

SITES, CENTER, XI = 40, 20, (1.0, 2.0)
GAINS = (0.1, 0.5, 1.0, 3.0, 100.0)  # of Fig. 4
GAIN = 100.0  # of Fig. 5, and of the neurons that are trained
TRAINED = "trained"
GATES = {"small bump": Bump(site=CENTER), "Mexican hat": MexicanHat(site=CENTER, width=1.5)}


def task(gain: float) -> Discrimination:
    """Two lengthscales at one gain."""
    return Discrimination(*(NLGP((SITES,), xi=xi, gain=gain) for xi in XI))


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """One ReLU neuron, whose own gate is then taken as fixed."""
    method = Training(
        learning_rate=0.1,
        steps=at(scale, paper=2000, quick=1000, tiny=20),
        batch=at(scale, paper=100, quick=50, tiny=2),
        members=at(scale, paper=6, quick=3, tiny=2),
        estimator="orbit",
        every=at(scale, paper=200, quick=100, tiny=10),
        quantities=("weights",),
    )
    return {TRAINED: Experiment(task(GAIN), SingleNeuron(), method)}


def num_samples(scale: FigureScale) -> int:
    """Of each class, where there is no closed form."""
    return at(scale, paper=200_000, quick=50_000, tiny=2000)


def solved(results: Results, name: str) -> GatedSolution:
    """The limit of one of the note's gates."""
    return results.once(
        name,
        lambda: gated_solution(task(GAIN), GATES[name], num_samples=num_samples(results.scale)),
    )


def pull(gain: float) -> np.ndarray:
    """Σ^{yx} of the gate 1(x₂₀ > 0): in closed form at every gain."""
    return gated_solution(task(gain), GATES["small bump"], num_samples=None).first


def half_width(curve: np.ndarray) -> float:
    """Sites over which a bump is above half of its largest value, interpolated."""
    right = np.roll(curve, -CENTER)[: SITES // 2] / curve[CENTER]
    below = int(np.argmax(right < 0.5))
    return 2 * (below - 1 + (right[below - 1] - 0.5) / (right[below - 1] - right[below]))


def own_limits(results: Results) -> np.ndarray:
    """Limits of trained fields under their own gates and their peaks', (2, member, site)."""
    fields = results[TRAINED].final[:, 0].astype(float)
    peaks = np.abs(fields).argmax(axis=1)
    single = np.take_along_axis(np.sign(fields), peaks[:, None], axis=1) * np.eye(SITES)[peaks]

    def limit(gate: np.ndarray) -> np.ndarray:
        return gated_solution(
            task(GAIN), Directions(gate[None]), num_samples=num_samples(results.scale)
        ).limit()[0]

    return results.once(
        "own", lambda: np.array([[limit(gate) for gate in gates] for gates in (fields, single)])
    )


def draw(results: Results) -> Any:
    """Fig. 4; the five panels of Fig. 5 for both gates; the trained field beside its own limit."""
    from matplotlib import colormaps

    figure: Any = new_figure(11, 8)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1, 2))
    left, right = top.subplots(1, 2)
    for place, gain in enumerate(GAINS):
        color = colormaps["viridis"](0.9 * place / (len(GAINS) - 1))
        left.plot(pull(gain), "-", color=color, lw=1.2, label=f"gain {gain:g}")
    title = "input–output covariance of the gate 1(x₂₀ > 0)"
    finish(left, title, legend={}, xlabel="site", xlim=(CENTER - 8, CENTER + 8))
    field = results[TRAINED].final[0, 0].astype(float)
    limit = own_limits(results)[0, 0]
    right.plot(field, "o", color=ORANGE, ms=4, mew=0, label="trained ReLU neuron")
    right.plot(limit, color=BLUE, lw=1.1, label="limit under its final gate")
    title = f"ours: a trained field and its own limit, gain {GAIN:g}"
    finish(right, title, legend={}, xlabel="site")
    grid = bottom.subplots(2, 5)
    for row, name in zip(grid, GATES, strict=True):
        solution = solved(results, name)
        middle = slice(CENTER - 6, CENTER + 7)
        matrices = (solution.second, np.linalg.inv(solution.second))
        for ax, matrix in zip(row[:2], matrices, strict=True):
            bound = np.abs(matrix).max()
            style = {"cmap": "RdBu_r", "vmin": -bound, "vmax": bound}
            ax.imshow(matrix[middle, middle], extent=(13.5, 26.5, 26.5, 13.5), **style)
            ax.tick_params(labelsize=SMALL)
        gate = np.asarray(GATES[name].directions((SITES,)))[0]
        for ax, curve in zip(row[2:], (gate, solution.first, solution.limit()[0]), strict=True):
            ax.axhline(0, color=GRAY, lw=0.5)
            ax.plot(curve, color=ORANGE, lw=1.2)
            finish(ax, xlim=(CENTER - 10, CENTER + 10))
        row[0].set_ylabel(name, fontsize=9)
    pull_name = "$\\Sigma^{yx}$"
    titles = ("input–input covariance A", "its inverse", "the gate's field", pull_name)
    for ax, title in zip(grid[0], (*titles, f"what is learned: A⁻¹{pull_name}"), strict=True):
        ax.set_title(title, fontsize=9)
    return figure


def questions(results: Results) -> Sequence[Question]:
    """What note 1, §5.2, says of limits, and asks of their structure."""
    scale = results.scale
    widths = [half_width(pull(gain)) for gain in GAINS]
    solution = solved(results, "small bump")
    row = np.roll(np.linalg.inv(solution.second)[CENTER], -CENTER)
    learned = solution.limit()[0]
    run = results[TRAINED]
    fields = run.final[:, 0].astype(float)
    own, bump = np.linalg.norm(own_limits(results) - fields, axis=2) / np.linalg.norm(
        fields, axis=1
    )
    local = run.ipr[:, -1, 0] > localized_from(SITES)
    shapes = {name: solved(results, name).limit()[0] for name in GATES}
    ratios = ", ".join(
        f"{name} {inverse_participation_ratio(w, 1):.2f}" for name, w in shapes.items()
    )
    explained = own.max() < 0.1
    return [
        Question(
            "LIM1",
            "note 1, Fig. 4",
            "Is the input–output covariance of the gate 1(x₂₀ > 0) a bump, and how does it "
            "depend on the gain?",
            "Yes, and a gain above one makes it pointed and narrower.",
            "width at half of its height in sites: "
            + ", ".join(
                f"gain {gain:g}: {printed(width)}"
                for gain, width in zip(GAINS, widths, strict=True)
            ),
            "closed form, arcsin(r√(2g²/(1 + 2g²)))/(2πZ)",
        ),
        Question(
            "LIM2",
            "note 1, §5.2 (to do)",
            "What does the input–input covariance do? Does it take differences between adjacent "
            "points?",
            "Yes: a row of its inverse is large at its site and negative beside it, so that the "
            "broad bump of Σ^{yx} is sharpened to a narrow one.",
            "row of A⁻¹ relative to its center: "
            f"{', '.join(printed(entry / row[0]) for entry in row[1:4])} at one to three sites; "
            f"width at half height {printed(half_width(solution.first))} sites before and "
            f"{printed(half_width(learned))} after; IPR of what is learned: {ratios}",
            f"gain {GAIN:g}; small bump in closed form, Mexican hat with {num_samples(scale):,} "
            "samples per class",
        ),
        Question(
            "LIM3",
            "note 1, §5.2",
            "If we know the gate a ReLU neuron ends with, does the linear limit give its final "
            "field?",
            (
                "Yes: where training is at rest, a field is the limit under its own gate."
                if explained
                else "Nearly."
            )
            + (
                " The gate of its largest site alone does as well: the field is so narrow."
                if bump.max() < 0.1
                else ""
            ),
            f"distance from the limit under its own gate {spread(100 * own, 1)} %, under that of "
            f"its largest site {spread(100 * bump, 1)} %; {int(local.sum())} of {local.size} "
            "localized",
            f"{local.size} seeds at gain {GAIN:g}",
        ),
    ]


def setting(scale: FigureScale) -> str:
    """In words."""
    method: Any = experiments(scale)[TRAINED].method
    return (
        f"N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g}), gates at site {CENTER}; the note does not give "
        f"its gain, ours is {GAIN:g} for all but the first panel. Trained: one ReLU neuron, "
        f"initial variance 0.001·2/(N + 1), learning rate {method.learning_rate:g}, "
        f"{method.steps:,} steps, estimator orbit with {method.batch} samples per step, "
        f"{method.members} seeds."
    )


FIGURE = PaperFigure(
    name="notes/limits",
    title="Note 1, Figs. 4 and 5: what fixed gates learn",
    caption=(
        "Top: the covariance of input and label behind the gate 1(x₂₀ > 0), a bump that grows "
        "pointed with the gain. Below, for that gate and for a Mexican hat: covariance of the "
        "inputs behind the gate and its inverse (sites 14 to 26), the field that makes the gate, "
        "the covariance with the label, and what is learned from both. Ours, top right: a "
        "trained ReLU neuron's field is the limit under its own final gate."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
