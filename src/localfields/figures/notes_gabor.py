"""Note 1: are receptive fields Gabors, and how do their parameters depend on the gain?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis import GaborFit, fit_gabor, fit_sinusoid, power_spectrum, uncertainty
from ..experiments import Experiment, Training
from ..networks import Committee
from ..plots._style import BLUE, GRAY, ORANGE, SMALL, finish, new_figure
from ..stimuli import NLGP
from ..tasks import Discrimination
from .base import FigureScale, PaperFigure, Question, Results, at, printed
from .notes_populations import ERF as SPLIT
from .notes_populations import SITES, XI
from .notes_populations import experiments as population_experiments
from .notes_populations import gains as split_gains

HIDDEN = 12
RELU, ERF = "ReLU", "erf"
GAINS = (0.01, 0.1, 0.3, 0.6, 1.0, 3.0, 10.0, 100.0)
SLOWEST = 4  # cycles; below are the waves that a Gaussian committee learns
MONOTONE = 0.95  # share of records after which the uncertainty did not grow, to be called monotone
CLOSE = 0.25  # relative error of a fit that is called one


def gains(scale: FigureScale) -> tuple[float, ...]:
    """The gains of the ReLU committees."""
    return at(scale, paper=GAINS, quick=GAINS[::3] + GAINS[-1:], tiny=GAINS[::7])


def seeds(scale: FigureScale) -> int:
    """How many a gain."""
    return at(scale, paper=3, quick=1, tiny=1)


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """ReLU committees of note 1's size at many gains, and the erf ones of notes/populations."""
    swept, num = gains(scale), seeds(scale)
    short, long = (NLGP((SITES,), xi=xi, gain=np.repeat(swept, num)) for xi in XI)
    method = Training(
        learning_rate=1.0,
        steps=at(scale, paper=3000, quick=2000, tiny=6),
        batch=at(scale, paper=50, quick=20, tiny=2),
        estimator="orbit",
        every=at(scale, paper=100, quick=50, tiny=3),
        quantities=("weights",),
        seed=tuple(range(num)) * len(swept),
    )
    relu = Experiment(Discrimination(short, long), Committee(HIDDEN, init_scale=1.0), method)
    return {RELU: relu, ERF: population_experiments(scale)[SPLIT]}


def fitted(results: Results, name: str, gain: float) -> GaborFit:
    """The best Gabors of one group of fields."""
    fields = fields_by_gain(results)[name][gain].astype(float)
    return results.once((name, gain), lambda: fit_gabor(fields))


def fields_by_gain(results: Results) -> dict[str, dict[float, np.ndarray]]:
    """Final fields, (field, site), of each gain: ReLU, and the two populations of erf."""
    scale, run, split = results.scale, results[RELU], results[ERF]
    relu = run.final.reshape(len(gains(scale)), -1, SITES)
    groups: dict[str, dict[float, np.ndarray]] = {RELU: dict(zip(gains(scale), relu, strict=True))}
    of, negative = split_gains(scale), split.biases[:, -1] < 0
    for name, mask in (("erf, negative biases", negative), ("erf, positive biases", ~negative)):
        groups[name] = {}
        for gain in np.unique(of):
            first = int(np.flatnonzero(of == gain)[0])
            if mask[first].any():
                groups[name][float(gain)] = split.final[first][mask[first]]
    return groups


def medians(results: Results, name: str, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """Gains, and of each the quartiles of a number of the fits, (gain, 3)."""
    of = list(fields_by_gain(results)[name])
    rows = [
        np.quantile(getattr(fitted(results, name, gain), quantity), [0.25, 0.5, 0.75])
        for gain in of
    ]
    return np.array(of), np.array(rows)


def uncertainties(results: Results) -> np.ndarray:
    """Of the ReLU committees' fields over time, (gain, time, field)."""
    size = len(gains(results.scale))
    values = results.once("uncertainty", lambda: uncertainty(results[RELU].weights.astype(float)))
    return np.moveaxis(values.reshape(size, -1, *values.shape[1:]), 2, 1).reshape(
        size, values.shape[1], -1
    )


def draw(results: Results) -> Any:
    """Fields of growing gain with their Gabors, and the parameters of all fits."""
    figure: Any = new_figure(11, 5.8)
    grid = figure.subplots(2, 4)
    groups = fields_by_gain(results)
    shown = list(groups[RELU])
    shown = [shown[place] for place in np.linspace(0, len(shown) - 1, 4).round().astype(int)]
    for ax, gain in zip(grid[0], shown, strict=True):
        fields = groups[RELU][gain]
        fit = fitted(results, RELU, gain)
        typical = int(np.argsort(fit.error)[len(fit.error) // 2])
        ax.axhline(0, color=GRAY, lw=0.5)
        moved = SITES // 2 - int(np.abs(fields[typical]).argmax())
        ax.plot(np.roll(fields[typical], moved), color="black", lw=1.3, label="field")
        ax.plot(np.roll(fit.curve()[typical], moved), color=ORANGE, lw=1.2, ls="--", label="Gabor")
        title = f"ReLU, gain {gain:g}: error {100 * fit.error[typical]:.0f} %"
        finish(ax, title, legend=None if ax is not grid[0, 0] else {}, xlabel="site")
    for ax, (number, factor, label) in zip(
        grid[1],
        (
            ("error", 100, "error (%)"),
            ("width", 1, "width (sites)"),
            ("frequency", 1, "frequency (cycles)"),
        ),
        strict=False,
    ):
        for name, color in zip(groups, ("black", ORANGE, BLUE), strict=True):
            at_gain, quartiles = medians(results, name, number)
            low, middle, high = factor * quartiles.T
            ax.fill_between(at_gain, low, high, color=color, alpha=0.13, lw=0)
            ax.plot(at_gain, middle, "o-", color=color, ms=3.5, lw=1.1, label=name)
        title = "best Gabor, median and quartiles" if number == "error" else ""
        legend = {"fontsize": SMALL - 1} if number == "width" else None
        finish(ax, title, legend=legend, xscale="log", xlabel="gain", ylabel=label, ylim=(0, None))
    _draw_uncertainty(grid[1, 3], results)
    return figure


def _draw_uncertainty(ax: Any, results: Results) -> None:
    from matplotlib import colormaps

    values, times = np.median(uncertainties(results), axis=2), results[RELU].times
    for place, (gain, row) in enumerate(zip(gains(results.scale), values, strict=True)):
        color = colormaps["viridis"](0.9 * place / max(1, len(values) - 1))
        ends = f"gain {gain:g}" if place in (0, len(values) - 1) else None
        ax.plot(times[1:], row[1:], color=color, lw=1.1, label=ends)
    ax.axhline(0.5, color=GRAY, lw=1, ls="--", label="bound")
    labels = {"xscale": "log", "yscale": "log", "xlabel": "flow time", "ylabel": "uncertainty"}
    finish(ax, "ours: uncertainty along the run", legend={"fontsize": SMALL - 1}, **labels)


def slow_share(fields: np.ndarray) -> np.ndarray:
    """Share of the energy at up to four cycles, in percent."""
    return 100 * power_spectrum(fields.astype(float))[:, : SLOWEST + 1].sum(axis=1)


def questions(results: Results) -> Sequence[Question]:
    """What note 1 asks of Gabors and of uncertainty."""
    groups = fields_by_gain(results)
    relu = groups[RELU]
    low, high = min(relu), max(relu)
    errors = {name: medians(results, name, "error") for name in groups}
    parts = "; ".join(
        f"{name}: "
        + ", ".join(f"{gain:g}: {100 * row[1]:.0f}" for gain, row in zip(*pair, strict=True))
        for name, pair in errors.items()
    )
    at_low, at_high = (float(np.median(fitted(results, RELU, gain).error)) for gain in (low, high))
    waves = 100 * float(np.median(fit_sinusoid(relu[low].astype(float)).error))
    count = (
        f"{seeds(results.scale)} seeds of {HIDDEN} ReLU neurons a gain, one committee a gain for "
    )
    count += "erf; medians"
    return [
        Question(
            "GAB1",
            "note 1, uncertainty principle",
            "Are fields Gabors on Gaussian and non-Gaussian data alike, with other decay and "
            "frequency?",
            _verdict(at_low, at_high),
            f"error of the best Gabor in percent by gain; {parts}. At gain {low:g} a single wave "
            f"leaves {waves:.0f} %, and {float(np.median(slow_share(relu[low]))):.0f} % of the "
            f"energy is at {SLOWEST} cycles or fewer",
            count,
        ),
        _parameters(results, count),
        _shrinking(results),
    ]


def _verdict(at_low: float, at_high: float) -> str:
    if at_high < CLOSE < at_low:
        return (
            "At high gain nearly: a Gabor fits the typical field to within a quarter. On "
            "Gaussian data not: neurons share a few slow waves among them, and sums of these "
            "have no envelope."
        )
    if at_low < CLOSE:
        return "In both." if at_high < CLOSE else "On Gaussian data only."
    return "In neither."


def _parameters(results: Results, count: str) -> Question:
    parts = []
    for name in fields_by_gain(results):
        rows = [
            f"{gain:g}: {width[1]:.1f} sites, {cycles[1]:.1f} cycles"
            for gain, width, cycles in zip(
                *medians(results, name, "width"),
                medians(results, name, "frequency")[1],
                strict=True,
            )
        ]
        parts.append(f"{name}, " + ", ".join(rows))
    widths = medians(results, RELU, "width")[1][:, 1]
    narrower = widths[-1] < widths[0] / 2
    even = np.abs(np.cos(fitted(results, RELU, max(gains(results.scale))).phase))
    return Question(
        "GAB2",
        "note 1, uncertainty principle",
        "Do fields deform continuously from long oscillations to bumps as the gain grows, and "
        "how do decay and frequency change?",
        "Yes: the envelope narrows and the wavelength stays a few times wider than it, so that "
        "what remains is a bump with a shallow surround."
        if narrower
        else "Widths change little here.",
        f"{'; '.join(parts)}. At the highest gain |cos phase| of ReLU fields is "
        f"{printed(float(np.median(even)))} (1: even)",
        count,
    )


def _shrinking(results: Results) -> Question:
    values = uncertainties(results)
    with np.errstate(invalid="ignore"):
        falls = np.diff(np.median(values, axis=2), axis=1) <= 0
    share, last = falls[-1].mean(), values[-1, -1]
    ends = np.median(values[:, [0, -1]], axis=2)
    monotone = "and monotonically" if share >= MONOTONE else "but not monotonically"
    fell = (ends[:, 1] < ends[:, 0]).all()
    return Question(
        "GAB3",
        "note 1, uncertainty principle",
        "Does the uncertainty in position and frequency decrease during training to its minimum "
        "of ½?",
        f"It {'falls' if fell else 'does not fall'} at every gain, {monotone}, and ends above ½: a "
        "real field has waves of both signs of frequency, so that only a bump without surround "
        "comes near the bound.",
        "median at the start and the end by gain: "
        + ", ".join(
            f"{gain:g}: {first:.0f} and {end:.1f}"
            for gain, (first, end) in zip(gains(results.scale), ends, strict=True)
        )
        + f". At the highest gain it fell between {100 * share:.0f} % of records, and the least "
        f"of all fields is {printed(float(np.min(last)))}",
        "Breitenberger's uncertainty on the ring, with mean frequency 0, over all ReLU fields of "
        "a gain",
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    method: Any = experiments(scale)[RELU].method
    return (
        f"N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g}). ReLU: K = {HIDDEN}, no biases, initial "
        f"variance 2/(N + K), learning rate {method.learning_rate:g}, {method.steps:,} steps (to "
        f"flow time {method.steps * method.learning_rate:,.0f}; note 1 stops at 50, where fields "
        f"still move), estimator orbit with {method.batch} samples per step, {seeds(scale)} seeds "
        "a gain. erf: as notes/populations, with biases."
    )


FIGURE = PaperFigure(
    name="notes/gabor",
    title="Note 1: Gabors and the gain",
    caption=(
        "Fields of ReLU committees at growing gain, with the best Gabor: sums of slow waves turn "
        "into bumps with a surround. Below, error, width and frequency of the best Gabors "
        "against the gain, for ReLU neurons and for the two populations of sigmoidal ones. Ours, "
        "right: the uncertainty along the run, with the bound of ½."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
