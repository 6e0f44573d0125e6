"""Beyond the paper: fields learned from photographs and dead leaves, and what a filter before them changes."""

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
from ..plots._style import BLUE, EXTENDED, GRAY, GREEN, LOCALIZED, ORANGE, SMALL, new_figure
from ..stimuli import DeadLeaves, ImagePatches
from ..stimuli.preprocess import (
    Center,
    DifferenceOfGaussians,
    Preprocess,
    Saturate,
    SpectralFilter,
    Whiten,
    Wrap,
)
from ..stimuli.preprocess import Scale as ScaleStep
from ..tasks import Discrimination
from ..theory import EffectiveFlow
from ..trajectory import localized_from
from .base import PaperFigure, Question, Results, Scale, at, printed
from .baselines import fields_of, kurtosis_of, most, ratios, share

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
ORIENTED = 0.2  # selectivity from which an orientation is spoken of: 1.5 times as long as wide, or a wavelet
# A fifth of what the largest eigenvalue of the mean covariance allows, so that heavy tails do not shake the field.
RATES = {PLAIN: 0.003, CENTERED: 0.05, WHITE: 0.2, SATURATED: 0.04, LIGHT: 0.035, HEAVY: 0.035}
RETINA = DifferenceOfGaussians(0.5, 1.5)
STEPS: dict[str, tuple[Preprocess, ...]] = {
    PLAIN: (),
    CENTERED: (RETINA,),
    WHITE: (Whiten(cutoff=1e-5),),
    SATURATED: (RETINA, Saturate(10.0)),
}


def task_of(world: str, scale: Scale) -> Discrimination:
    """Photographs sharp and blurred, through the steps of a column; or dead leaves from two distances."""
    side = at(scale, paper=12, quick=10, tiny=6)
    if world in LEAVES:
        gray = {LIGHT: "two-point", HEAVY: "laplace"}[world]
        leaves = at(scale, paper=60, quick=40, tiny=5)
        return zooms(
            DeadLeaves((side, side), smallest=1.0, ratio=4.0, leaves=leaves, gray=gray), (2, 1)
        )
    steps = (Wrap(), *STEPS[world], Center(), ScaleStep(each="all"))
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


def samples(scale: Scale) -> int:
    """Patches that are cut, and samples that methods without labels see."""
    return at(scale, paper=20_000, quick=3000, tiny=200)


def experiments(scale: Scale) -> Mapping[str, Experiment]:
    """Every method on every world, named by both, and the flow that the theory expects."""
    hidden, some = at(scale, paper=16, quick=16, tiny=2), at(scale, paper=40, quick=24, tiny=4)
    one, many = SingleNeuron(init_scale=1e-4), Committee(hidden)
    sparse = SparseCoding(some, steps=at(scale, paper=200, quick=40, tiny=1))
    methods = {ICA: FastICA(some), SPARSE: sparse}
    common: dict[str, Any] = {"estimator": "orbit", "quantities": ("weights",)}
    found = {}
    for world in WORLDS:
        task = task_of(world, scale)
        common["steps"] = at(scale, paper=2000, quick=600, tiny=4)
        common["every"] = common["steps"] // 2
        common["batch"] = at(scale, paper=20 if world in LEAVES else 60, quick=16, tiny=2)
        starts = at(scale, paper=6, quick=3, tiny=2)
        rate = RATES[world] * at(scale, paper=1, quick=3, tiny=1)
        found[f"{NEURON}, {world}"] = Experiment(
            task, one, Training(learning_rate=rate, members=starts, **common)
        )
        common["batch"] = at(scale, paper=20, quick=10, tiny=2)
        adam = {"optimizer": "adam", "learning_rate": 0.003 * at(scale, paper=1, quick=2, tiny=1)}
        found[f"{MANY}, {world}"] = Experiment(task, many, Training(**adam, **common))
        for name, method in methods.items():
            found[f"{name}, {world}"] = Experiment(task, method=Fit(method, samples=samples(scale)))
        found[f"{THEORY}, {world}"] = Experiment(
            task,
            one,
            Solution(
                EffectiveFlow(),
                members=starts,
                until=at(scale, paper=1000.0, quick=300.0, tiny=1.0),
            ),
        )
    return found


def tuned(results: Results, method: str, world: str) -> Tuning:
    """Answers of all fields of a method to gratings; one of zeros stands as a constant, which answers to none."""

    def compute() -> Tuning:
        fields = fields_of(results, method, world)
        return tuning(np.where(fields.any(axis=(1, 2), keepdims=True), fields, 1.0))

    return results.once((method, world), compute)


def lobes(results: Results, method: str, world: str) -> np.ndarray:
    """Subfields of every field, as it stands on its input and as it acts on the pixels before a filter."""
    fields = fields_of(results, method, world)
    filters = [step for step in STEPS.get(world, ()) if isinstance(step, SpectralFilter)]
    seen = fields.reshape(len(fields), -1)
    for step in filters:  # symmetric, so that ⟨w, Fx⟩ = ⟨Fw, x⟩
        seen = step.fit(seen, fields.shape[1:])(seen)
    # A filter that has no response to a constant leaves rounding errors of one.
    seen = np.where(np.abs(seen) < 1e-6 * np.abs(fields).max(), 0.0, seen).reshape(fields.shape)
    return np.stack([np.nan_to_num(over_sound(subfields, one, 2)) for one in (fields, seen)])


def oriented(results: Results, method: str, world: str) -> np.ndarray:
    """Which fields have an orientation to speak of."""
    return tuned(results, method, world).selectivity > ORIENTED


def draw(results: Results) -> Any:
    """What is seen and its law, a few fields of every method, and answers of all fields to gratings."""
    figure: Any = new_figure(12, 13.4)
    heights = [0.75, 0.8] + [1.0] * len(METHODS) + [1.2, 1.2]
    grid = figure.subplots(len(heights), len(WORLDS), height_ratios=heights)
    for column, world in enumerate(WORLDS):
        _draw_seen(grid[0, column], results.scale, world)
        _draw_law(grid[1, column], results.scale, world)
        for row, method in enumerate(METHODS, start=2):
            ax, part = grid[row, column], share(results, method, world)
            draw_sheet(ax, fields_of(results, method, world))
            selectivity = np.median(tuned(results, method, world).selectivity)
            words = f"{100 * part:.0f} % localized\norientation {selectivity:.2f}"
            ax.set_title(words, fontsize=SMALL, color=LOCALIZED if part > 0.5 else EXTENDED)
        _draw_tuning(grid[-2, column], results, world, first=column == 0)
        _draw_phases(grid[-1, column], results, world, first=column == 0)
    named = ["classes", "law of a site", *METHODS]
    for row, name in enumerate(named):
        place = grid[row, 0].transAxes
        grid[row, 0].text(
            -0.2, 0.5, name, transform=place, fontsize=9, rotation=90, ha="center", va="center"
        )
    handles = [
        grid[-2, 0].plot([], [], "o", ms=4, color=color, label=method)[0]
        for method, color in zip(METHODS, _colors(), strict=True)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9, frameon=False
    )
    return figure


def _colors() -> tuple[str, ...]:

    return ORANGE, BLUE, GREEN, GRAY


def _draw_seen(ax: Any, scale: Scale, world: str) -> None:
    """Three samples of either class."""
    stimuli = task_of(world, scale).stimuli
    samples = np.concatenate(
        [np.asarray(one.sample(0, 3)).reshape(3, *one.shape) for one in stimuli]
    )
    plots.pictures(samples, columns=3, ax=ax)
    ax.set_title(
        f"photographs,\n{world}" if world in PHOTOGRAPHS else world.replace(" of ", "\nof "),
        fontsize=9,
    )


def _draw_law(ax: Any, scale: Scale, world: str) -> None:

    law = task_of(world, scale).stimuli[1].marginal()
    assert law is not None
    plots.density(law, bins=80, ax=ax)
    if ax.get_legend() is not None:
        ax.get_legend().remove()
    ax.set_title(f"excess kurtosis {kurtosis_of(task_of(world, scale))}", fontsize=SMALL)
    ax.set(xlabel="", ylabel="", yticks=())
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_tuning(ax: Any, results: Results, world: str, first: bool) -> None:
    """IPR and orientation selectivity of every field."""
    shape = results[f"{NEURON}, {world}"].shape
    size = int(np.prod(shape))
    for method, color in zip(METHODS, _colors(), strict=True):
        values = np.maximum(ratios(results, method, world), 1 / size)
        ax.scatter(
            values, tuned(results, method, world).selectivity, s=10, color=color, alpha=0.6, lw=0
        )
    ax.axvline(localized_from(size), color="black", ls="--", lw=0.8)
    ax.set(xscale="log", xlim=(0.8 / size, 1.3), ylim=(-0.03, 1))
    ax.set_xticks((0.01, 0.1, 1), ("0.01", "0.1", "1"))
    ax.minorticks_off()
    ax.set_xlabel("inverse participation ratio", fontsize=SMALL)
    _finish(ax, "orientation selectivity", first)


def _draw_phases(ax: Any, results: Results, world: str, first: bool) -> None:
    """Preferred orientation and phase of those that have an orientation."""
    for method, color in zip(METHODS, _colors(), strict=True):
        found, which = tuned(results, method, world), oriented(results, method, world)
        folded = np.degrees(np.arcsin(np.sqrt(found.oddness[which])))
        ax.scatter(np.degrees(found.orientation[which]), folded, s=10, color=color, alpha=0.6, lw=0)
    ax.set(xlim=(-6, 186), ylim=(-4, 94), xticks=(0, 45, 90, 135, 180))
    ax.set_yticks((0, 45, 90), ("even", "", "odd"))
    ax.set_xlabel("preferred orientation, degrees", fontsize=SMALL)
    _finish(ax, "preferred phase", first)


def _finish(ax: Any, name: str, first: bool) -> None:

    ax.set_ylabel(name if first else "", fontsize=9 if first else SMALL)
    if not first:
        ax.set_yticklabels([])
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _of(results: Results, method: str, world: str) -> str:
    """Numbers of one method on one world."""
    found, which = tuned(results, method, world), oriented(results, method, world)
    octaves = found.bandwidth[np.isfinite(found.bandwidth) & which]
    counts = lobes(results, method, world)
    text = f"{world} IPR {printed(np.median(ratios(results, method, world)), 3)}, "
    text += f"{100 * share(results, method, world):.0f} % localized, selectivity "
    text += f"{printed(np.median(found.selectivity))}, {100 * which.mean():.0f} % oriented, "
    if which.any():
        text += f"oddness {printed(found.oddness[which].mean())}, "
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
        "IPR: median of all fields; localized: above 4/(N + 2); selectivity: one less the circular variance of "
        f"answers to gratings, median; oriented: above {ORIENTED}; oddness of the preferred phase (0 even, 1 odd) and "
        f"bandwidth of the oriented; subfields: lobes of one sign above a quarter of the largest weight, mean"
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
            "A single neuron on photographs: where does it become localized, and does the law of a site tell?",
            f"Localized on: {_listed(local)}. The effective flow expects it on: {_listed(expected)}.",
            f"Excess kurtosis of both classes: {kurtosis}. IPR of the neuron (of the flow): {ends}",
            f"{how}; flow: where the effective flow with the measured law and covariance ends, from the same starts",
        ),
        Question(
            "IMG2",
            "ours",
            "On photographs, which fields of a network, ICA and sparse coding are oriented, and of which phase?",
            "More than half are oriented: "
            + "; ".join(
                f"{method} on {_listed([w for w in PHOTOGRAPHS if oriented(results, method, w).mean() > 0.5])}"
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
            "Orientation, phase, subfields: what does a center–surround filter before the network do?",
            f"{MANY}: selectivity for orientation {chosen[1]} in place of {chosen[0]}, gratings of {liked[1]} cycles a "
            f"site in place of {liked[0]}, {counted[1]} subfields on the pixels in place of {counted[0]} "
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


def setting(scale: Scale) -> str:
    """In words."""
    found = experiments(scale)
    one, many = (found[f"{method}, {CENTERED}"] for method in (NEURON, MANY))
    training: Any = one.method
    crowd: Any = many.method
    fit: Any = found[f"{ICA}, {CENTERED}"].method
    leaves: Any = found[f"{NEURON}, {LIGHT}"].task.stimuli[1]
    return (
        f"Patches of {one.task.shape} from the two photographs of scikit-learn, {ZOOM} pixels averaged into one an "
        f"axis, sharp (label 0) and blurred by {BLURS[1]:g} pixels (label 1), wrapped onto a torus; all shifts and "
        f"signs are alike. Filters: {RETINA!r}; {STEPS[WHITE][0]!r}, each class by itself; {STEPS[SATURATED][1]!r}. "
        f"Dead leaves: {leaves!r}, from two distances and one. One neuron: ReLU without bias, {training.members} "
        f"starts, {training.steps:,} steps, batch {training.batch}, estimator {training.estimator}, learning rates "
        f"{', '.join(f'{rate:g}' for rate in dict.fromkeys(RATES.values()))}. Many: {many.network!r}, adam at "
        f"{crowd.learning_rate:g}, batch {crowd.batch}. The others: {fit.samples:,} samples of both classes, "
        f"without labels."
    )


FIGURE = PaperFigure(
    name="images",
    title="Fields learned from photographs and dead leaves",
    caption=(
        "On photographs a neuron becomes localized only where what it sees has light tails. From above: samples of "
        "both classes (label 0, then 1); the law of a site, dotted the normal one; fields of every method, chosen "
        "evenly from the most to the least localized, each on its own scale, red positive; selectivity for the "
        "orientation of gratings against the inverse participation ratio, localized right of the dashed "
        "line; preferred orientation and phase of all fields that have an orientation."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
    extra=True,
)
