"""Notes 1 and 3: committees of sigmoidal neurons split into two populations by their biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import plots
from ..analysis import Populations, populations, position
from ..experiments import Experiment, Training
from ..lattice import spectrum
from ..networks import Committee
from ..plots._populations import NEGATIVE, POSITIVE
from ..plots._style import GRAY, SMALL, finish, new_figure
from ..stimuli import NLGP, Gaussian, Stimulus
from ..tasks import Discrimination
from ..trajectory import Trajectory
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread

SITES, HIDDEN, GAIN, SEEDS = 40, 100, 3.0, 5
XI = (1.0, 2.0)
GAINS = (0.01, 0.3, 1.0, 10.0, 100.0)  # beside GAIN
ERF, SIGMOID, GAUSSIAN = "erf", "sigmoid", "erf, Gaussian data"
# Learning rates in units of the number of neurons, as every neuron has a vote of 1/K. The logistic
# function is half as high as erf(h/√2) and more than three times less steep.
RATES = {"erf": 1.0, "sigmoid": 10.0}
LABELS = {"erf": "signs", "sigmoid": "zero-one"}


def task_of(
    stimulus: Any, activation: str = "erf", labels: Any = None, **numbers: Any
) -> Discrimination:
    """Two lengthscales told apart, with the labels that the notes give to each activation."""
    short, long = (stimulus((SITES,), xi=xi, **numbers) for xi in XI)
    return Discrimination(short, long, labels=labels or LABELS[activation])


def hidden(scale: FigureScale) -> int:
    """Number of neurons."""
    return at(scale, paper=HIDDEN, quick=HIDDEN, tiny=8)


def network_of(scale: FigureScale, activation: str = "erf") -> Committee:
    """A committee with trained biases."""
    return Committee(hidden(scale), activation=activation, bias="trained", init_scale=1.0)


def training(scale: FigureScale, activation: str = "erf", **more: Any) -> Training:
    """Long enough for populations to be told apart and fields to have their shape."""
    return Training(
        learning_rate=RATES[activation] * hidden(scale),
        steps=at(scale, paper=2000, quick=400, tiny=6),
        **{
            "batch": at(scale, paper=20, quick=10, tiny=2),
            "estimator": "orbit",
            "every": at(scale, paper=100, quick=40, tiny=3),
            "quantities": ("weights", "biases", "loss", "accuracy"),
            **more,
        },
    )


def seeds(scale: FigureScale) -> tuple[int, ...]:
    """One per member."""
    return tuple(range(at(scale, paper=SEEDS, quick=2, tiny=2)))


def gains(scale: FigureScale) -> np.ndarray:
    """The gain of each member of the first experiment: seeds at one, then one seed at others."""
    others = at(scale, paper=GAINS, quick=GAINS[::2], tiny=GAINS[-1:])
    return np.array([GAIN] * len(seeds(scale)) + list(others))


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Two activations, several gains, and the limit of Gaussian data without any noise."""
    first, swept = seeds(scale), gains(scale)
    all_seeds = first + (0,) * (len(swept) - len(first))
    exact = training(scale, estimator="exact", batch=2)
    return {
        ERF: Experiment(
            task_of(NLGP, gain=swept), network_of(scale), training(scale, seed=all_seeds)
        ),
        SIGMOID: Experiment(
            task_of(NLGP, SIGMOID, gain=np.full(len(first), GAIN)),
            network_of(scale, SIGMOID),
            training(scale, SIGMOID, seed=first),
        ),
        GAUSSIAN: Experiment(task_of(Gaussian), network_of(scale), exact),
    }


def at_gain(run: Trajectory, gain: float, scale: FigureScale) -> Trajectory:
    """The members of the first experiment that have a gain; they are neighbors."""
    places = np.flatnonzero(gains(scale) == gain)
    return run.members(slice(places[0], places[-1] + 1))


def main_runs(results: Results) -> dict[str, Trajectory]:
    """Several seeds of both activations at one gain."""
    return {ERF: at_gain(results[ERF], GAIN, results.scale), SIGMOID: results[SIGMOID]}


def advantage(fields: np.ndarray, stimuli: Sequence[Stimulus]) -> np.ndarray:
    """Variance of preactivations under the second class less that under the first: wᵀ(Σ₁ − Σ₀)w."""
    first, second = (spectrum(np.asarray(stimulus.covariance(), float)) for stimulus in stimuli)
    power = np.abs(np.fft.fft(fields.astype(float), axis=-1)) ** 2 / fields.shape[-1]
    return (power * (second - first)).sum(axis=-1)


def foretold(run: Trajectory, stimuli: Sequence[Stimulus]) -> np.ndarray:
    """Share of neurons, (member,), whose final bias is opposite to the first advantage."""
    return (np.sign(run.biases[:, -1]) == -np.sign(advantage(run.initial, stimuli))).mean(axis=1)


def alike(fields: np.ndarray) -> float:
    """Mean correlation of fields with their mean, all moved to one place and of one sign."""
    if len(fields) < 2:
        return float("nan")
    rows = centered(fields)
    mean = rows.mean(axis=0)
    return float((rows @ mean / (np.linalg.norm(rows, axis=1) * np.linalg.norm(mean))).mean())


def centered(fields: np.ndarray) -> np.ndarray:
    """Fields of norm one, positive at their largest weight, moved to site 0, between sites too."""
    rows = np.asarray(fields, float)
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    turns = np.exp(2j * np.pi * np.arange(SITES // 2 + 1) * position(rows)[:, None] / SITES)
    moved = np.fft.irfft(np.fft.rfft(rows * np.sign(largest), axis=1) * turns, SITES)
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def relative_spread(values: np.ndarray) -> float:
    """Standard deviation over mean size."""
    return float(np.std(values) / np.abs(np.mean(values))) if len(values) > 1 else float("nan")


def signs_kept(result: Populations) -> tuple[int, int, int, int]:
    """Localized fields with negative biases, all; oscillatory ones with positive biases, all."""
    negative = result.bias < 0
    return (
        int((result.localized & negative).sum()),
        int(result.localized.sum()),
        int((result.oscillatory & ~negative).sum()),
        int(result.oscillatory.sum()),
    )


def shares(result: Populations) -> tuple[float, float]:
    """Percent of localized fields among negative and among positive biases, or nan."""
    negative = result.bias < 0
    below, above = (
        100 * float(result.localized[which].mean()) if which.any() else np.nan
        for which in (negative, ~negative)
    )
    return below, above


def draw(results: Results) -> Any:
    """Three committees as pictures with biases; below, what fields of a population share."""
    figure: Any = new_figure(11, 8.6)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.35, 1))
    runs = {**main_runs(results), GAUSSIAN: results[GAUSSIAN]}
    for group, (name, run) in zip(top.subfigures(1, 3, wspace=0.02), runs.items(), strict=True):
        plots.populations(run, ax=group.subplots(1, 2, width_ratios=(2.2, 1)))
        group.suptitle(name if name == GAUSSIAN else f"{name}, gain {GAIN:g}", fontsize=10)
    _draw_below(bottom, results, runs)
    return figure


def _draw_below(figure: Any, results: Results, runs: Mapping[str, Trajectory]) -> None:
    bumps, fast, neurons, by = figure.subplots(1, 4, width_ratios=(1, 1, 1.1, 1.1))
    sorted_fields = {name: populations(runs[name]) for name in (ERF, SIGMOID)}
    fields, bias = runs[ERF].final[0].astype(float), sorted_fields[ERF].bias[0]
    local = sorted_fields[ERF].localized[0] & (bias < 0)
    if local.any():
        rows = np.roll(centered(fields[local]), SITES // 2, axis=1)
        bumps.plot(np.arange(SITES) - SITES // 2, rows.T, color=NEGATIVE, lw=0.5, alpha=0.5)
    finish(bumps, "localized, moved to one place", xlabel="site")
    for place, row in enumerate(fields[bias > 0][:4]):
        fast.plot(row / (np.abs(row).max() or 1) - 2.3 * place, color=POSITIVE, lw=0.9)
    finish(fast, "four with positive biases", xlabel="site", yticks=[])
    for (name, result), marker in zip(sorted_fields.items(), ("o", "^"), strict=True):
        colors = np.where(result.bias < 0, NEGATIVE, POSITIVE).ravel().tolist()
        dots = {"s": 9, "c": colors, "marker": marker, "lw": 0, "alpha": 0.5}
        neurons.scatter(result.bias.ravel(), result.ipr.ravel(), **dots)
        neurons.plot([], [], marker, color=GRAY, ms=4, label=name)
    labels = {"xlabel": "bias", "ylabel": "inverse participation ratio", "ylim": (0, None)}
    finish(neurons, "every neuron of all seeds", legend={}, **labels)
    swept, values = by_gain(results)
    for column, color, label, place in (
        (0, NEGATIVE, "negative\nbiases", 86),
        (1, POSITIVE, "positive\nbiases", 10),
    ):
        by.plot(swept, values[:, column], "o-", color=color, ms=4, lw=1.2)
        by.text(0.01, place, label, color=color, fontsize=SMALL)
    labels = {"xscale": "log", "ylim": (-4, 104), "xlabel": "gain", "ylabel": "localized (%)"}
    finish(by, "ours: both localize at high gain", **labels)


def by_gain(results: Results) -> tuple[np.ndarray, np.ndarray]:
    """Gains, and of each the shares of localized fields among negative and positive biases."""
    swept = np.unique(gains(results.scale))
    return swept, np.array(
        [shares(populations(at_gain(results[ERF], gain, results.scale))) for gain in swept]
    )


def questions(results: Results) -> Sequence[Question]:
    """What notes 1 and 3 say of the two populations."""
    runs = main_runs(results)
    sorted_by_name = {name: populations(run) for name, run in runs.items()}
    size = hidden(results.scale)
    stimuli = task_of(NLGP, gain=GAIN).stimuli
    negative = {name: (values.bias < 0).sum(axis=1) for name, values in sorted_by_name.items()}
    over = f"{len(seeds(results.scale))} seeds each, fields sorted by inverse participation ratio "
    over += "and spectrum"
    return [
        Question(
            "POP1",
            "note 3, §2",
            "With sigmoidal neurons two populations of roughly equal size appear",
            _sizes(negative, size),
            "; ".join(
                f"{name}: {spread(values, 1)} of {size} biases negative"
                for name, values in negative.items()
            ),
            over,
        ),
        _signs(results, sorted_by_name),
        _sharing(runs, sorted_by_name),
        _tiled(sorted_by_name),
        Question(
            "POP5",
            "note 1, §3",
            "What decides which population a neuron joins? Its first field, perhaps how positive "
            "that is",
            "Mostly its first field: while biases are small they move against wᵀ(Σ₁ − Σ₀)w, the "
            "variance that its preactivations have more under the longer lengthscale. A positive "
            "mean is one way for that to be large.",
            "; ".join(
                f"{name}: {spread(100 * foretold(run, stimuli), 0)} % of the final signs foretold"
                for name, run in runs.items()
            ),
            "sign of the final bias against that of the first field's variance difference; 50 % "
            "by chance",
        ),
    ]


def _sizes(negative: Mapping[str, np.ndarray], size: int) -> str:
    far = max(abs(counts.mean() / size - 0.5) for counts in negative.values())
    verdict = (
        "Yes, within a tenth of half each"
        if far < 0.1
        else "Two, of unequal size"
        if far < 0.5
        else "No, one"
    )
    return f"{verdict}; which sizes, and why half is best, is in notes/balance."


def _signs(results: Results, sorted_by_name: Mapping[str, Populations]) -> Question:
    counts = {name: signs_kept(values) for name, values in sorted_by_name.items()}
    unchanged = all(a == b and c == d for a, b, c, d in counts.values())
    most = all(a > 0.9 * b and c > 0.9 * d for a, b, c, d in counts.values())
    swept, values = by_gain(results)
    text = ", ".join(
        f"{gain:g}: {low:.0f} and {high:.0f} %"
        for gain, (low, high) in zip(swept, values, strict=True)
    )
    waves = populations(results[GAUSSIAN])
    slow, fast = (waves.frequency[which] for which in (waves.bias < 0, waves.bias > 0))
    ends = ", ".join(
        f"{np.median(values):.0f} ({values.min():.0f}–{values.max():.0f})"
        if values.size
        else "none"
        for values in (slow, fast)
    )
    first = "Yes" if unchanged else "Yes, with few exceptions" if most else "Not in general"
    split = slow.size and fast.size and slow.max() < fast.min()
    meaning = (
        "negative biases go with slow fields, positive ones with fast fields"
        if split
        else "no clear split yet"
    )
    ends_low, ends_high = values[0].max(initial=0), values[-1].min(initial=100)
    at_ends = (
        "almost no" if ends_low < 10 else "some",
        "many fast ones, too" if ends_high > 50 else "few fast ones",
    )
    return Question(
        "POP2",
        "notes 1, §3, and 3, §2",
        "Localized neurons have negative biases, oscillatory ones positive biases",
        f"{first}, at gain {GAIN:g}. What the sign of the bias tells at any gain is frequency: "
        f"{meaning}. Localized are {at_ends[0]} fields at gain {swept[0]:g}, and at gain "
        f"{swept[-1]:g} {at_ends[1]}.",
        "; ".join(
            f"{name}: {a} of {b} localized negative, {c} of {d} oscillatory positive"
            for name, (a, b, c, d) in counts.items()
        )
        + f". Localized among negative and positive biases by gain: {text}. Gaussian: median "
        f"cycles {ends}",
        "counts over all seeds; erf for the gains; Gaussian data by the exact gradient",
    )


def _sharing(runs: Mapping[str, Trajectory], sorted_by_name: Mapping[str, Populations]) -> Question:
    parts, numbers = [], []
    for name, run in runs.items():
        result = sorted_by_name[name]
        local = result.localized & (result.bias < 0)
        spreads = [
            np.array(
                [relative_spread(row[which]) for row, which in zip(result.bias, mask, strict=True)]
            )
            for mask in (local, result.bias > 0)
        ]
        same = np.array([alike(f[m].astype(float)) for f, m in zip(run.final, local, strict=True)])
        numbers += [100 * np.mean(spreads[0]), 100 * np.mean(spreads[1])]
        parts.append(
            f"{name}: biases spread by {spread(100 * spreads[0], 1)} % and "
            f"{spread(100 * spreads[1], 1)} %, localized fields correlate by {spread(same, 3)}"
        )
    good = all(value < 20 for value in numbers)
    return Question(
        "POP3",
        "note 3, §2",
        "Within a population biases are about the same and fields differ only in place and sign",
        "Yes for the localized ones. The fast fields share their band of frequencies and their "
        "bias, not their shape."
        if good
        else "Not yet here: biases of a population differ by a fifth or more.",
        "; ".join(parts),
        "standard deviation over mean of localized-negative and of positive biases; correlation "
        "with the mean field after moving centers to one place; mean ± deviation over seeds",
    )


def _tiled(sorted_by_name: Mapping[str, Populations]) -> Question:
    even = np.concatenate([result.tiling.evenness for result in sorted_by_name.values()])
    covered = np.concatenate([result.tiling.covered for result in sorted_by_name.values()])
    chance = np.concatenate([result.tiling.covered_by_chance for result in sorted_by_name.values()])
    clear = np.isfinite(even).all() and even.mean() > 3 / np.sqrt(
        len(even)
    )  # each has deviation 1 by chance
    return Question(
        "POP4",
        "note 3, §2",
        "The localized fields tile the lattice",
        "They cover it and keep out of each other's way more than fields put down at random would."
        if clear
        else "They cover it, but not more evenly than fields put down at random would.",
        f"{spread(100 * covered, 0)} % of the sites covered "
        f"({printed(100 * float(np.mean(chance)), 0)} % by chance); overlap {spread(even)} "
        "standard deviations below chance",
        f"footprints at half of the largest weight; {len(even)} committees",
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    method: Any = experiments(scale)[ERF].method
    return (
        f"N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g}), K = {hidden(scale)}, trained biases from 0, "
        "initial variance 2/(N + K). erf(h/√2) with labels ±1, learning rate "
        f"{method.learning_rate:g}; logistic with labels 0 and 1, "
        f"{RATES[SIGMOID] * hidden(scale):g}; {method.steps:,} steps, {len(seeds(scale))} seeds. "
        f"Estimator orbit, {method.batch} samples per step; Gaussian data: exact. The notes do not "
        "give their settings for sigmoidal neurons: these lengthscales are those of note 1."
    )


FIGURE = PaperFigure(
    name="notes/populations",
    title="Notes 1 and 3: two populations and tiling",
    caption=(
        "All fields of three committees, one row per neuron, each on its own scale, with its bias "
        "beside it: those with negative biases are bumps that tile the ring (long waves on "
        "Gaussian data), those with positive biases fast oscillations. Below: the bumps are one "
        "shape moved about; fast fields share their frequencies only; bias against localization. "
        "Ours, right: how many fields of either sign are localized as the gain grows."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
