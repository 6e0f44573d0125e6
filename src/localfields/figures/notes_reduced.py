"""Note 3: its Figure 1, the loss before learning, and which field its reduced model prefers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import plots
from ..lattice import distance, product
from ..marginals import ErfNormal
from ..networks import Committee
from ..plots._style import BLUE, GRAY, GREEN, ORANGE, finish, new_figure
from ..stimuli import NLGP
from ..tasks import Discrimination
from ..theory.notes.initial import mean_initial_loss
from ..theory.notes.reduced import dominant_modes, most_negative_frequency, sampled_dominance
from .base import FigureScale, PaperFigure, Question, Results, at, printed

LONG_RING, SAMPLE_XI = 400, (10.0, 20.0)  # of the note's Figure 1
SAMPLE_GAINS = (0.01, 1.0, 100.0)
SITES, XI = 40, (1.0, 3.0)
RELU, ERF = "ReLU", "erf"
LABELS = {RELU: "zero-one", ERF: "signs"}
BIAS = -2.0  # of eq. 6, with fields whose preactivation has twice unit size


def gains(scale: FigureScale) -> np.ndarray:
    """Of the loss before learning."""
    return np.geomspace(0.01, 100, at(scale, paper=17, quick=9, tiny=3))


def widths(scale: FigureScale) -> np.ndarray:
    """Widths of the bumps that are compared with a flat field, in sites."""
    return np.geomspace(0.4, 12, at(scale, paper=15, quick=8, tiny=3))


def num_samples(scale: FigureScale) -> int:
    """Samples of each class behind every point."""
    return at(scale, paper=40_000, quick=10_000, tiny=400)


def task_at(gain: float, labels: str = "zero-one") -> Discrimination:
    """The note's task at one gain."""
    stimuli: Any = [NLGP((SITES,), xi=xi, gain=gain) for xi in XI]
    return Discrimination(*stimuli, labels=labels)


def clones_of(task: Discrimination) -> Discrimination:
    """The Gaussian task of the same covariances."""
    stimuli: Any = [stimulus.gaussian_clone() for stimulus in task.stimuli]
    return Discrimination(*stimuli, labels=task.labels)


def losses(results: Results) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Loss before learning (the notes', with its ½) by gain, standard error, and by covariances."""

    def compute() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        by_network = {}
        for name, labels in LABELS.items():
            network = Committee(1, activation=name.lower(), init_scale=1.0)
            rows = []
            for gain in gains(results.scale):
                task = task_at(float(gain), labels)
                clones = clones_of(task)
                loss = mean_initial_loss(task, network, num=num_samples(results.scale))
                rows.append(
                    (loss.value / 2, loss.error / 2, mean_initial_loss(clones, network).value / 2)
                )
            by_network[name] = tuple(np.array(rows).T)
        return by_network

    return results.once("losses", compute)


def detectors(scale: FigureScale) -> np.ndarray:
    """Bumps of growing width and the flat field, with preactivations of size 2, (field, site)."""
    d = distance((SITES,))
    fields = np.stack(
        [*(np.exp(-(d**2) / (2 * width**2)) for width in widths(scale)), np.ones(SITES)]
    )
    task = task_at(1.0)
    variances = [
        np.einsum("fi,fi->f", fields, product(stimulus.covariance(), fields))
        for stimulus in task.stimuli
    ]
    return 2 * fields / np.sqrt(np.mean(variances, axis=0))[:, None]


def preferences(results: Results) -> dict[float, dict[str, np.ndarray]]:
    """Of each gain the probabilities of eqs. 9 and 6 with their standard errors, (field,) each."""

    def compute() -> dict[float, dict[str, np.ndarray]]:
        fields, by_gain = detectors(results.scale), {}
        for gain in SAMPLE_GAINS:
            task, num = task_at(gain), num_samples(results.scale)
            nine = sampled_dominance(fields, task, num=num)
            six = sampled_dominance(fields, task, num=max(200, num // 5), bias=BIAS)
            by_gain[gain] = {"9": nine.value, "9 error": nine.error}
            by_gain[gain] |= {"6": six.value, "6 error": six.error}
        return by_gain

    return results.once("preferences", compute)


def draw(results: Results) -> Any:
    """Samples above; losses and detectors below."""
    figure: Any = new_figure(11, 6.6)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1, 1.15))
    _draw_samples(top)
    axes = bottom.subplots(1, 4)
    for ax, name in zip(axes[:2], LABELS, strict=True):
        _draw_loss(ax, results, name)
    _draw_preferences(axes[2], results, "9", "at random shifts (eq. 9)")
    _draw_preferences(axes[3], results, "6", "summed over shifts (eq. 6)")
    return figure


def _draw_samples(part: Any) -> None:
    grid = part.subplots(2, len(SAMPLE_GAINS), sharex=True)
    for column, gain in enumerate(SAMPLE_GAINS):
        for row, (xi, color) in enumerate(zip(SAMPLE_XI[::-1], (BLUE, GREEN), strict=True)):
            ax, model = grid[row, column], NLGP((LONG_RING,), xi=xi, gain=gain)
            # One latent sample for all gains, so that what changes is the gain.
            plots.sample(np.asarray(model.sample(row, 1))[0], color=color, ax=ax)
            title = "" if row else f"gain {gain:g}"
            ylabel = "" if column else f"ξ = {xi:g}"
            finish(ax, title, ylim=(-4.3, 4.3), xlabel="site" if row else "", ylabel=ylabel)


def _draw_loss(ax: Any, results: Results, name: str) -> None:
    loss, error, alone = losses(results)[name]
    swept = gains(results.scale)
    style = {"fmt": "o-", "color": BLUE, "ms": 3, "lw": 1.2, "label": "loss"}
    ax.errorbar(swept, loss, yerr=2 * error, **style)
    ax.plot(swept, alone, color=GRAY, lw=1.2, ls="--", label="covariances alone")
    ax.margins(y=0.2)  # room for the legend
    labels = {"zero-one": "0 and 1", "signs": "±1"}[LABELS[name]]
    ylabel, place = ("loss before learning", "lower") if name == RELU else ("", "upper")
    settings = {"xscale": "log", "xlabel": "gain", "ylabel": ylabel}
    finish(ax, f"{name}, labels {labels}", legend={"loc": f"{place} left"}, **settings)


def _draw_preferences(ax: Any, results: Results, equation: str, title: str) -> None:
    for (gain, probabilities), color in zip(
        preferences(results).items(), (BLUE, GREEN, ORANGE), strict=True
    ):
        values, error = probabilities[equation], probabilities[f"{equation} error"]
        style = {"fmt": "o-", "color": color, "ms": 3, "lw": 1.1, "label": f"gain {gain:g}"}
        ax.errorbar(widths(results.scale), values[:-1], yerr=2 * error[:-1], **style)
        ax.axhline(values[-1], color=color, lw=1, ls=":")
    ax.plot([], [], color="black", lw=1, ls=":", label="flat field")
    first = equation == "9"
    settings = {"xlabel": "width of the bump (sites)", "ylabel": "probability" if first else ""}
    finish(ax, title, legend={} if first else None, xscale="log", **settings)
    ax.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    ax.set_xticks([], minor=True)


def questions(results: Results) -> Sequence[Question]:
    """What note 3 asks of data, of its reduced model and of the loss."""
    drawn = f"{num_samples(results.scale):,} samples of each class"
    tails = {gain: ErfNormal(gain).excess_kurtosis for gain in SAMPLE_GAINS}
    modes = dominant_modes(clones_of(task_at(0.01)))
    least = min(modes, key=lambda mode: mode.gap)
    formula = most_negative_frequency(SITES, *XI)
    return [
        Question(
            "RED1",
            "note 3, footnote 2",
            "Does a larger gain mean heavier tails than the Gaussian's?",
            "The opposite: the error function cuts tails off, down to two points."
            if max(tails.values()) < 0
            else "Tails are heavier.",
            "excess kurtosis at gain "
            + ", ".join(f"{gain:g}: {printed(value, 3)}" for gain, value in tails.items()),
            "closed form of the marginal",
        ),
        Question(
            "RED2",
            "note 3, Gaussian data",
            "How often is |⟨w, X₁⟩| > |⟨w, X₀⟩|, and for which field most often?",
            "(2/π) arctan(s₁/s₀); most often for the wave with the largest ratio of the spectra, "
            "here the "
            + (
                "flat one."
                if modes[0].frequency == (0,)
                else f"one of {modes[0].frequency[0]} cycles."
            ),
            f"{modes[0].probability:.4f} for the best wave, {modes[-1].probability:.1e} for the "
            f"worst, of {modes[-1].frequency[0]} cycles",
            f"closed form, N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g})",
        ),
        _better(results, drawn),
        _shifts(results),
        Question(
            "RED5",
            "note 3, difference of means",
            "Which field has the largest and the most negative difference of E⟨w, X⟩²?",
            "The constant, as the note says; the most negative is a wave whose frequency follows "
            "from the lengthscales."
            if max(modes, key=lambda mode: mode.gap).frequency == (0,)
            else "Not the constant.",
            f"most negative at {least.frequency[0]} cycles; (N/π)√(3 ln(ξ₁/ξ₀)/(ξ₁² − ξ₀²)) = "
            f"{formula:.2f}",
            "eigenvalues of Σ₁ − Σ₀",
        ),
        _starting(results, drawn),
    ]


def _best_and_flat(gain: float, widths: np.ndarray, values: np.ndarray, error: np.ndarray) -> str:
    best = int(values[:-1].argmax())
    return (
        f"gain {gain:g}: {values[best]:.3f} for the best bump (width {widths[best]:.1f}), "
        f"{values[-1]:.3f} flat, ± {error[-1]:.3f}"
    )


def _better(results: Results, drawn: str) -> Question:
    rows, verdicts = [], []
    for gain, probabilities in preferences(results).items():
        best = int(probabilities["9"][:-1].argmax())
        margin = (probabilities["9"][best] - probabilities["9"][-1]) / np.hypot(
            probabilities["9 error"][best], probabilities["9 error"][-1]
        )
        verdicts.append(margin > 5)
        rows.append(
            _best_and_flat(
                gain, widths(results.scale), probabilities["9"], probabilities["9 error"]
            )
        )
    if verdicts[-1] and not verdicts[0]:
        answer = (
            "On Gaussian data not: flat fields are. At high gain yes: bumps no wider than the "
            "shorter lengthscale beat them, so that the reduced model prefers localized fields "
            "by itself."
        )
    else:
        answer = (
            "At every gain." if all(verdicts) else "Flat fields are never worse than bumps here."
        )
    return Question(
        "RED3",
        "note 3, difference of means",
        "The best difference of means is a constant field. Are localized fields better in "
        "probability (eq. 9)?",
        answer,
        "; ".join(rows),
        drawn,
    )


def _shifts(results: Results) -> Question:
    rows, apart = [], []
    for gain, probabilities in preferences(results).items():
        apart.append(np.abs(probabilities["6"] - probabilities["9"]).max())
        rows.append(
            _best_and_flat(
                gain, widths(results.scale), probabilities["6"], probabilities["6 error"]
            )
        )
    low = preferences(results)[SAMPLE_GAINS[0]]
    bumps = low["6"][:-1].max() - low["6"][-1] > 5 * low["6 error"][-1]
    return Question(
        "RED4",
        "note 3, eqs. 6 and 7",
        "May the comparison of sums over all shifts be replaced by one at random shifts?",
        "No: it is another objective."
        + (
            " Sums over shifts prefer bumps already on Gaussian data, where random shifts prefer "
            "flat fields."
            if bumps
            else ""
        ),
        "; ".join(rows) + f". The two differ by up to {max(apart):.2f}",
        f"eq. 6 with bias {printed(BIAS, 0)}, erf and fields whose preactivation has a mean "
        f"square of 4; {max(200, num_samples(results.scale) // 5):,} samples of each class",
    )


def _starting(results: Results, drawn: str) -> Question:
    by_network = losses(results)
    rows = [
        f"{name}: {loss[0]:.4f} to {loss[-1]:.4f} (± {2 * error.max():.0e}), covariances alone "
        f"{alone[0]:.4f} to {alone[-1]:.4f}"
        for name, (loss, error, alone) in by_network.items()
    ]
    down, up = (by_network[name][0][-1] - by_network[name][0][0] for name in (RELU, ERF))
    answer = (
        "Averaged over starts it depends only on the length |X| of the stimuli, E|X| for ReLU. "
        "At unit variance the length spreads less the larger the gain, so E|X| grows and the "
        "loss falls. That of erf does not stay fixed: it rises a little, for the same reason."
        if down < 0 < up
        else "It does not fall here."
    )
    return Question(
        "RED6",
        "note 3, §3",
        "Why does the starting loss of ReLU networks fall with the gain, while that of sigmoidal "
        "ones stays fixed?",
        answer,
        f"gain {gains(results.scale)[0]:g} to {gains(results.scale)[-1]:g}; " + "; ".join(rows),
        "mean over all starts with variance 2/(N + 1), the notes' loss with its ½; distribution of "
        f"|X| from {drawn}",
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    return (
        f"Samples: N = {LONG_RING}, ξ = ({SAMPLE_XI[0]:g}, {SAMPLE_XI[1]:g}), as in the note. "
        f"Below: N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g}), one neuron, initial variance 2/(N + 1), "
        f"{num_samples(scale):,} samples of each class; no training."
    )


FIGURE = PaperFigure(
    name="notes/reduced",
    title="Note 3: data, the loss before learning, and the reduced model",
    caption=(
        "Above, the note's Figure 1: samples of both classes at growing gain. Below, ours: the "
        "loss before learning against the gain, averaged over all starts, falls for ReLU and "
        "rises for erf; and how often a bump tells the classes apart by size, against its width, "
        "with the flat field dotted: at random shifts bumps win at high gain, and summed over "
        "shifts at any."
    ),
    setting=setting,
    draw=draw,
    questions=questions,
)
