"""Beyond the paper: fields learned from photographs and dead leaves, and what a filter changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import plots
from ..analysis import Tuning, subfields, tuning
from ..analysis.metrics import over_sound
from ..baselines import FastICA, SparseCoding
from ..data import blurs, zooms
from ..experiments import Experiment, Fit, Solution, Training
from ..networks import Committee, SingleNeuron
from ..plots._fields import draw_sheet
from ..plots._populations import ORIENTED
from ..plots._style import BLUE, EXTENDED, GRAY, GREEN, LOCALIZED, ORANGE, SMALL, new_figure
from ..stimuli import DeadLeaves, ImagePatches
from ..stimuli.preprocess import (
    Center,
    DifferenceOfGaussians,
    Preprocess,
    Saturate,
    Scale,
    SpectralFilter,
    Whiten,
    Wrap,
)
from ..tasks import Discrimination
from ..theory import EffectiveFlow
from .base import FigureScale, PaperFigure, Question, Results, at, printed
from .baselines import fields_of, kurtosis_of, label_row, most, ratios, share

ZOOM, BLURS = 2, (0.0, 2.0)
NEURON, MANY, ICA, SPARSE, THEORY = (
    "one neuron",
    "16 neurons",
    "ICA",
    "sparse coding",
    "effective flow",
)
METHODS = (NEURON, MANY, ICA, SPARSE)
PLAIN, CENTERED, WHITE, SATURATED = (
    "gray levels",
    "center–surround",
    "whitened",
    "center–surround and saturated",
)
LIGHT, HEAVY = "dead leaves of two grays", "dead leaves of Laplace grays"
PHOTOGRAPHS, LEAVES = (PLAIN, CENTERED, WHITE, SATURATED), (LIGHT, HEAVY)
WORLDS = PHOTOGRAPHS + LEAVES
# A fifth of what the largest eigenvalue of the mean covariance allows: heavy tails shake the field.
RATES = {PLAIN: 0.003, CENTERED: 0.05, WHITE: 0.2, SATURATED: 0.04, LIGHT: 0.035, HEAVY: 0.035}
RETINA = DifferenceOfGaussians(0.5, 1.5)
STEPS: dict[str, tuple[Preprocess, ...]] = {
    PLAIN: (),
    CENTERED: (RETINA,),
    WHITE: (Whiten(cutoff=1e-5),),
    SATURATED: (RETINA, Saturate(10.0)),
}


def task_of(world: str, scale: FigureScale) -> Discrimination:
    """Photographs sharp and blurred, through a column's steps; or dead leaves at two distances."""
    side = at(scale, paper=12, quick=10, tiny=6)
    if world in LEAVES:
        gray = {LIGHT: "two-point", HEAVY: "laplace"}[world]
        leaves = at(scale, paper=60, quick=40, tiny=5)
        return zooms(
            DeadLeaves((side, side), smallest=1.0, ratio=4.0, leaves=leaves, gray=gray), (2, 1)
        )
    steps = (Wrap(), *STEPS[world], Center(), Scale(each="all"))
    return blurs(
        ImagePatches(
            shape=(side, side),
            patches=samples(scale),
            zoom=ZOOM,
            preprocess=steps,
            symmetry="shifts-and-signs",
        ),
        BLURS,
    )


def samples(scale: FigureScale) -> int:
    """Patches that are cut, and samples that methods without labels see."""
    return at(scale, paper=20_000, quick=3000, tiny=200)


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Every method on every world, named by both, and the flow that the theory expects."""
    hidden, components = (
        at(scale, paper=16, quick=16, tiny=2),
        at(scale, paper=40, quick=24, tiny=4),
    )
    neuron, many = SingleNeuron(init_scale=1e-4), Committee(hidden)
    sparse = SparseCoding(components, steps=at(scale, paper=200, quick=40, tiny=1))
    methods = {ICA: FastICA(components), SPARSE: sparse}
    common: dict[str, Any] = {"estimator": "orbit", "quantities": ("weights",)}
    runs = {}
    for world in WORLDS:
        task = task_of(world, scale)
        common["steps"] = at(scale, paper=2000, quick=600, tiny=4)
        common["every"] = common["steps"] // 2
        common["batch"] = at(scale, paper=20 if world in LEAVES else 60, quick=16, tiny=2)
        starts = at(scale, paper=6, quick=3, tiny=2)
        rate = RATES[world] * at(scale, paper=1, quick=3, tiny=1)
        runs[f"{NEURON}, {world}"] = Experiment(
            task, neuron, Training(learning_rate=rate, members=starts, **common)
        )
        common["batch"] = at(scale, paper=20, quick=10, tiny=2)
        adam = {"optimizer": "adam", "learning_rate": 0.003 * at(scale, paper=1, quick=2, tiny=1)}
        runs[f"{MANY}, {world}"] = Experiment(task, many, Training(**adam, **common))
        for name, method in methods.items():
            runs[f"{name}, {world}"] = Experiment(task, method=Fit(method, samples=samples(scale)))
        runs[f"{THEORY}, {world}"] = Experiment(
            task,
            neuron,
            Solution(
                EffectiveFlow(),
                members=starts,
                until=at(scale, paper=1000.0, quick=300.0, tiny=1.0),
            ),
        )
    return runs


def tuned(results: Results, method: str, world: str) -> Tuning:
    """Responses of a method's fields to gratings; zeros stand as a constant, which has none."""

    def compute() -> Tuning:
        fields = fields_of(results, method, world)
        return tuning(np.where(fields.any(axis=(1, 2), keepdims=True), fields, 1.0))

    return results.once((method, world), compute)


def lobes(results: Results, method: str, world: str) -> np.ndarray:
    """Subfields of every field, on its input and on the pixels before a filter."""
    fields = fields_of(results, method, world)
    filters = [step for step in STEPS.get(world, ()) if isinstance(step, SpectralFilter)]
    filtered = fields.reshape(len(fields), -1)
    for step in filters:  # symmetric, so that ⟨w, Fx⟩ = ⟨Fw, x⟩
        filtered = step.fit(filtered, fields.shape[1:])(filtered)
    # A filter that has no response to a constant leaves rounding errors of one.
    filtered = np.where(np.abs(filtered) < 1e-6 * np.abs(fields).max(), 0.0, filtered).reshape(
        fields.shape
    )
    return np.stack(
        [np.nan_to_num(over_sound(subfields, stage, 2)) for stage in (fields, filtered)]
    )


def oriented(results: Results, method: str, world: str) -> np.ndarray:
    """Which fields have an orientation to speak of."""
    return tuned(results, method, world).selectivity > ORIENTED


COLORS = (ORANGE, BLUE, GREEN, GRAY)  # of the methods


def draw(results: Results) -> Any:
    """What is seen and its marginal, fields of every method, and responses of all to gratings."""
    figure: Any = new_figure(12, 13.4)
    heights = [0.75, 0.8] + [1.0] * len(METHODS) + [1.2, 1.2]
    grid = figure.subplots(len(heights), len(WORLDS), height_ratios=heights)
    for column, world in enumerate(WORLDS):
        task = task_of(world, results.scale)
        _draw_world(grid[0, column], grid[1, column], task, world)
        for row, method in enumerate(METHODS, start=2):
            ax, part = grid[row, column], share(results, method, world)
            draw_sheet(ax, fields_of(results, method, world))
            selectivity = np.median(tuned(results, method, world).selectivity)
            title = f"{100 * part:.0f} % localized\norientation {selectivity:.2f}"
            ax.set_title(title, fontsize=SMALL, color=LOCALIZED if part > 0.5 else EXTENDED)
        for method, color in zip(METHODS, COLORS, strict=True):
            run, responses = results[f"{method}, {world}"], tuned(results, method, world)
            plots.tuning(run, result=responses, color=color, ax=grid[-2:, column])
        for ax in grid[-2:, column]:
            ax.yaxis.label.set_fontsize(9)
            if column:
                ax.set_ylabel("")
                ax.set_yticklabels([])
    for row, name in enumerate(("classes", "marginal", *METHODS)):
        label_row(grid[row, 0], name, -0.2)
    handles = [
        grid[-2, 0].plot([], [], "o", ms=4, color=color, label=method)[0]
        for method, color in zip(METHODS, COLORS, strict=True)
    ]
    style = {"ncols": len(handles), "fontsize": 9, "frameon": False}
    figure.legend(handles=handles, loc="outside lower center", **style)
    return figure


def _draw_world(pictures: Any, histogram: Any, task: Discrimination, world: str) -> None:
    """Three samples of either class, and the marginal of the second."""
    samples = [np.asarray(stimulus.sample(0, 3)) for stimulus in task.stimuli]
    plots.pictures(np.concatenate(samples).reshape(-1, *task.shape), columns=3, ax=pictures)
    photograph = world in PHOTOGRAPHS
    title = f"photographs,\n{world}" if photograph else world.replace(" of ", "\nof ")
    pictures.set_title(title, fontsize=9)
    marginal = task.stimuli[1].marginal()
    assert marginal is not None
    plots.density(marginal, bins=80, ax=histogram)
    if histogram.get_legend() is not None:
        histogram.get_legend().remove()
    histogram.set_title(f"excess kurtosis {kurtosis_of(task)}", fontsize=SMALL)
    histogram.set(xlabel="", ylabel="", yticks=())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _of(results: Results, method: str, world: str) -> str:
    """Numbers of one method on one world."""
    answers, which = tuned(results, method, world), oriented(results, method, world)
    octaves = answers.bandwidth[np.isfinite(answers.bandwidth) & which]
    counts = lobes(results, method, world)
    text = f"{world} IPR {printed(np.median(ratios(results, method, world)), 3)}, "
    text += f"{100 * share(results, method, world):.0f} % localized, selectivity "
    text += f"{printed(np.median(answers.selectivity))}, {100 * which.mean():.0f} % oriented, "
    if which.any():
        text += f"oddness {printed(answers.oddness[which].mean())}, "
    if octaves.size:
        text += f"bandwidth {printed(np.median(octaves), 1)} octaves, "
    text += f"{printed(counts[0].mean(), 1)} subfields"
    return text + (
        f" ({printed(counts[1].mean(), 1)} on pixels)" if world in (CENTERED, SATURATED) else ""
    )


def _numbers(results: Results, method: str, worlds: Sequence[str]) -> str:
    return f"{method}: {'; '.join(_of(results, method, world) for world in worlds)}"


def questions(results: Results) -> Sequence[Question]:
    """What the figure is made for."""
    kurtosis = "; ".join(
        f"{world} {kurtosis_of(task_of(world, results.scale))}" for world in WORLDS
    )
    local = [world for world in PHOTOGRAPHS if most(results, NEURON, world)]
    expected = [world for world in PHOTOGRAPHS if most(results, THEORY, world)]
    ends = "; ".join(
        f"{world} {printed(np.median(ratios(results, NEURON, world)), 3)} "
        f"({printed(np.median(ratios(results, THEORY, world)), 3)})"
        for world in WORLDS
    )
    signs = [world for world in LEAVES if most(results, NEURON, world)]
    how = (
        "IPR: median of all fields; localized: above 4/(N + 2); selectivity: one less the "
        f"circular variance of answers to gratings, median; oriented: above {ORIENTED}; oddness "
        "of the preferred phase (0 even, 1 odd) and bandwidth of the oriented; subfields: lobes "
        "of one sign above a quarter of the largest weight, mean"
    )
    both = [tuned(results, MANY, world) for world in (PLAIN, CENTERED)]
    chosen, liked = (
        [printed(float(np.median(x))) for x in y]
        for y in zip(*((t.selectivity, t.frequency) for t in both), strict=True)
    )
    counted = [printed(lobes(results, MANY, world)[1].mean(), 1) for world in (PLAIN, CENTERED)]
    return [
        Question(
            "IMG1",
            "ours",
            "A single neuron on photographs: where does it become localized, and does the "
            "distribution of a site tell?",
            f"Localized on: {_listed(local)}. The effective flow expects it on: "
            f"{_listed(expected)}.",
            f"Excess kurtosis of both classes: {kurtosis}. IPR of the neuron (of the flow): {ends}",
            f"{how}; flow: where the effective flow with the measured distribution and covariance "
            "ends, from the same starts",
        ),
        Question(
            "IMG2",
            "ours",
            "On photographs, which fields of a network, ICA and sparse coding are oriented, and "
            "of which phase?",
            "More than half are oriented: "
            + "; ".join(
                f"{method} on "
                f"{_listed([w for w in PHOTOGRAPHS if oriented(results, method, w).mean() > 0.5])}"
                for method in METHODS
            )
            + ". More than half are localized: "
            + "; ".join(
                f"{method} on {_listed([w for w in PHOTOGRAPHS if most(results, method, w)])}"
                for method in METHODS
            )
            + ".",
            ". ".join(_numbers(results, method, PHOTOGRAPHS) for method in METHODS),
            how,
        ),
        Question(
            "IMG3",
            "paper, §5, on what is left open",
            "Orientation, phase, subfields: what does a center–surround filter before the "
            "network do?",
            f"{MANY}: selectivity for orientation {chosen[1]} in place of {chosen[0]}, gratings "
            f"of {liked[1]} cycles a site in place of {liked[0]}, {counted[1]} subfields on the "
            f"pixels in place of {counted[0]} "
            f"({printed(lobes(results, MANY, SATURATED)[1].mean(), 1)} where saturation follows).",
            ". ".join(
                _numbers(results, method, (PLAIN, CENTERED, SATURATED)) for method in (NEURON, MANY)
            ),
            how,
        ),
        Question(
            "IMG4",
            "ours",
            "And on dead leaves, where the grays alone decide the sign of the kurtosis?",
            f"One neuron is localized on: {_listed(signs)}.",
            ". ".join(_numbers(results, method, LEAVES) for method in METHODS),
            how,
        ),
    ]


def setting(scale: FigureScale) -> str:
    """In words."""
    runs = experiments(scale)
    neuron, many = (runs[f"{method}, {CENTERED}"] for method in (NEURON, MANY))
    training: Any = neuron.method
    crowd: Any = many.method
    fit: Any = runs[f"{ICA}, {CENTERED}"].method
    leaves: Any = runs[f"{NEURON}, {LIGHT}"].task.stimuli[1]
    return (
        f"Patches of {neuron.task.shape} from the two photographs of scikit-learn, {ZOOM} pixels "
        f"averaged into one per axis, sharp (label 0) and blurred by {BLURS[1]:g} pixels (label "
        f"1), wrapped onto a torus; all shifts and signs are alike. Filters: {RETINA!r}; "
        f"{STEPS[WHITE][0]!r}, each class by itself; {STEPS[SATURATED][1]!r}. Dead leaves: "
        f"{leaves!r}, from two distances and one. One neuron: ReLU without bias, "
        f"{training.members} starts, {training.steps:,} steps, batch {training.batch}, estimator "
        f"{training.estimator}, learning rates "
        f"{', '.join(f'{rate:g}' for rate in dict.fromkeys(RATES.values()))}. Many: "
        f"{many.network!r}, adam at {crowd.learning_rate:g}, batch {crowd.batch}. The others: "
        f"{fit.samples:,} samples of both classes, without labels."
    )


FIGURE = PaperFigure(
    name="images",
    title="Fields learned from photographs and dead leaves",
    caption=(
        "On photographs a neuron becomes localized only where what it sees has light tails. From "
        "above: samples of both classes (label 0, then 1); the distribution of a site, dotted the "
        "normal one; fields of every method, chosen evenly from the most to the least localized, "
        "each on its own scale, red positive; selectivity for the orientation of gratings against "
        "the inverse participation ratio, localized right of the dashed line; preferred "
        "orientation and phase of all fields that have an orientation."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
    extra=True,
)
