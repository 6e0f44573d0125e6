"""Figure 4: one neuron on elliptical data, with the sinusoid fitted to its last field; claim E1."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis.sinusoid import SinusoidFit, fit_sinusoid
from ..experiments import Experiment, Solution, Training
from ..networks import SingleNeuron
from ..plots._fields import draw_over_time
from ..plots._style import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    SMALL,
    add_time_bar,
    finish,
    new_figure,
    time_colors,
)
from ..stimuli import EllipticalExtreme, EllipticalShell, StudentT
from ..tasks import Discrimination
from ..theory import LinearResponse, winning_mode
from ..trajectory import Trajectory
from .base import Claim, FigureScale, PaperFigure, Results, at, printed, spread, verdict

SITES, XI = 40, (1.0, 3.0)
NETWORK = SingleNeuron(init_scale=0.001)
STARTS = 30  # of the predicted flow; training has the first of them
LATE = 0.2  # share of the records at the end over which a run's error is averaged


@dataclasses.dataclass(frozen=True)
class Panel:
    """One panel: a radial distribution, and how the paper trained on it.

    Args:
        title: Above the panel.
        model: Its class.
        more: Numbers of the distribution.
        rate: Learning rate.
        steps: Number of steps.
        batch: Independent samples per step.
        published: Error of the fit, in percent.
        seeds: Ours: how many runs at the paper's batch.
        quick: Rate, steps and batch for a first look.
    """

    title: str
    model: Any
    more: dict[str, float]
    rate: float
    steps: int
    batch: int
    published: float
    seeds: int
    quick: tuple[float, int, int]

    @property
    def task(self) -> Discrimination:
        """Short against long lengthscale."""
        return Discrimination(*(self.model((SITES,), xi=xi, **self.more) for xi in XI))


PANELS = {
    "t": Panel(
        "t₄₀(ν = 3)", StudentT, {"nu": 3.0}, 0.01, 10_000, 50_000, 9.77, 3, (0.025, 2000, 4000)
    ),
    "shell": Panel(
        "elliptical shell", EllipticalShell, {}, 0.05, 5000, 10_000, 3.75, 4, (0.1, 1500, 1000)
    ),
    "extreme": Panel(
        "elliptical extreme", EllipticalExtreme, {}, 0.05, 5000, 10_000, 4.14, 4, (0.1, 1500, 1000)
    ),
}
FEWER, SEEDS_OF_FEWER = 10, 4  # a tenth of the samples, in the runs that show what the batch does


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Training at the paper's batch and a tenth of it, and the flow from the same starts."""
    experiments_by_name = {}
    for name, panel in PANELS.items():
        published = (panel.rate, panel.steps, panel.batch)
        rate, steps, batch = at(
            scale, paper=published, quick=panel.quick, tiny=(panel.rate, 20, 20)
        )
        seeds = at(scale, paper=panel.seeds, quick=1, tiny=1)
        # One experiment per seed, not one of many members: the longest runs share the cores.
        runs = {f"{name}, seed {seed}" if seed else name: (batch, 1, seed) for seed in range(seeds)}
        part = at(scale, paper=FEWER, quick=FEWER, tiny=1)  # tiny: the same run, already compiled
        members = at(scale, paper=SEEDS_OF_FEWER, quick=1, tiny=1)
        runs[f"{name}, fewer samples"] = (batch // part, members, 0)
        for which, (batch, members, seed) in runs.items():
            method = Training(
                learning_rate=rate,
                steps=steps,
                batch=batch,
                members=members,
                estimator="independent",
                every=max(1, steps // 100),
                quantities=("weights",),
                seed=seed,
            )
            experiments_by_name[which] = Experiment(panel.task, NETWORK, method)
        times = np.linspace(0, rate * steps, 101)
        flow = Solution(
            LinearResponse(), times=times, members=at(scale, paper=STARTS, quick=STARTS, tiny=4)
        )
        experiments_by_name[f"{name}, predicted"] = Experiment(panel.task, NETWORK, flow)
    return experiments_by_name


def all_seeds(results: Results, name: str) -> Trajectory:
    """The runs at the paper's batch as one ensemble."""
    runs = [results[key] for key in results if key == name or key.startswith(f"{name}, seed ")]
    weights = np.concatenate([run.weights for run in runs])
    ends = {"initial": weights[:, 0], "final": weights[:, -1]}
    return dataclasses.replace(runs[0], series={"weights": weights}, events={}, **ends)


def errors(run: Trajectory, share: float = 1.0) -> np.ndarray:
    """Error of the fit in percent, (member, time), over a share of the records at the end."""
    fields = run.weights[:, 1:, 0]
    return 100 * fit_sinusoid(fields[:, -max(1, round(share * fields.shape[1])) :]).error


def draw(results: Results) -> Any:
    """The paper's three panels, and below them the error of the fit over time."""
    from matplotlib.lines import Line2D

    figure = new_figure(11, 6)
    upper, lower = figure.subplots(2, 3, height_ratios=(1.5, 1))
    sites = np.linspace(0, SITES - 1, 400)
    for ax, below, (name, panel) in zip(upper, lower, PANELS.items(), strict=True):
        run = all_seeds(results, name)
        fewer, flow = (results[f"{name}, {kind}"] for kind in ("fewer samples", "predicted"))
        draw_over_time(ax, run.weights[0, :, 0], run.times / run.times[-1])
        fit = fit_sinusoid(run.final[0, 0])
        ax.plot(sites, fit.curve(sites), color="red", ls="--", lw=2.2, zorder=4)
        ax.plot(flow.final[0, 0], color=GREEN, ls="-.", lw=1.8, zorder=5)
        error = f"error of the fit {100 * fit.error:.2f} % (paper {panel.published:.2f} %)"
        ax.set_title(f"{panel.title}\n{error}", fontsize=9)
        ax.set_xlabel("site i")
        for batch, runs, color in (
            ("paper's batch", run, BLUE),
            ("a tenth of it", fewer, ORANGE),
        ):
            for number, error in enumerate(errors(runs)):
                label = None if number else f"ours: {batch}"
                below.plot(runs.times[1:], error, color=color, lw=0.8, alpha=0.8, label=label)
        first = errors(flow.members(slice(1)))[0]
        style = {"color": GREEN, "ls": "-.", "lw": 1.4, "label": "ours: predicted flow"}
        below.plot(flow.times[1:], first, **style)
        below.axhline(panel.published, color="red", ls="--", lw=1, label="published", zorder=0)
        below.grid(axis="y", color=GRAY, lw=0.3, alpha=0.5)
        finish(below, yscale="log", ylim=(0.1, 130), xlabel="flow time")
    upper[0].set_ylabel("weight $w_i$")
    lower[0].set_ylabel("error of the fit, %")
    lower[2].legend(frameon=False, fontsize=SMALL, loc="lower right", labelspacing=0.3)
    shown = {
        "field over time (last: dark red)": Line2D([], [], color=time_colors()(0.999), lw=1.5),
        "sinusoid fitted to the end": Line2D([], [], color="red", ls="--", lw=2.2),
        "ours: predicted, no fit": Line2D([], [], color=GREEN, ls="-.", lw=1.8),
    }
    style = {"frameon": False, "fontsize": SMALL + 1, "ncols": 3}
    figure.legend(list(shown.values()), list(shown), loc="outside upper center", **style)
    add_time_bar(figure, upper, 1.0, "share of the time")
    return figure


def claims(results: Results) -> Sequence[Claim]:
    """E1: the error of the fit, and what the paper remarks on the fields."""
    return [_fit(results), _remarks(results)]


def _fit(results: Results) -> Claim:
    measured, reasons, good = [], [], []
    for name, panel in PANELS.items():
        late, fewer = (
            errors(run, LATE)
            for run in (all_seeds(results, name), results[f"{name}, fewer samples"])
        )
        flow = errors(results[f"{name}, predicted"], 0)
        low, high = late.min(), late.max()
        good.append(bool(low <= panel.published <= high))
        measured.append(f"{spread(late)} %")
        at_end = ", ".join(printed(run) for run in late[:, -1])
        ratio = printed(fewer.mean() / late.mean(), 1)
        reasons.append(
            f"{panel.title}: from {printed(low, 1)} to {printed(high, 1)} % over the last "
            f"{LATE:.0%} of training, {at_end} % at its end; {ratio} times as much with a tenth "
            f"of the samples; at most {flow.max():.1g} % in the predicted flow"
        )
    inside = "holds each published value" if all(good) else "does not hold every published value"
    return Claim(
        "E1",
        "Error ‖w − fit‖/‖w‖ of a sinusoid fitted to the last field: t(3), shell, extreme",
        ", ".join(f"{panel.published:.2f} %" for panel in PANELS.values()),
        ", ".join(measured),
        verdict(all(good)),
        "The predicted fields are sinusoids without any error; what is left is noise of the "
        f"finite batch, which never comes to rest, and whose range {inside}. {'. '.join(reasons)}.",
        "fit with free frequency, amplitude, phase and offset to runs at the paper's batch of "
        "independent samples; mean and standard deviation over seeds and late records",
    )


def _remarks(results: Results) -> Claim:
    """Whether the field on t(3) has one period and no intercept, that on the shell is 0.04."""
    t, shell = (all_seeds(results, name) for name in ("t", "shell"))
    wave = fit_sinusoid(t.final[:, 0])
    flow = results["t, predicted"]
    predicted = fit_sinusoid(flow.final[:, 0])
    level, end = np.abs(shell.final[:, 0].mean(axis=1)), winning_mode(PANELS["shell"].task)
    constant = bool(
        (shell.final[:, 0].std(axis=1) < 0.2 * level).all() and np.abs(level - 0.04).max() < 0.005
    )
    noisy = {
        name: centered(fit_sinusoid(results[f"{name}, fewer samples"].final[:, 0]))
        for name in ("t", "shell")
    }
    return Claim(
        "E1b",
        "The field on t(3) has one period and intercept zero; that on the shell is nearly "
        "constant at −0.04",
        "remarks in §4.3",
        f"t(3): {_range(wave.frequency)} periods, offset {_range(wave.offset, 3)}, amplitude "
        f"{_range(wave.amplitude, 3)}; shell: level ±{spread(level, 4)}",
        verdict(constant and bool(centered(wave).any())),
        f"On the shell the predicted end is constant at ±{end.amplitude:.4f}; its sign is a "
        "matter of the start. On t(3) a constant is the only stable end as well, onto which a "
        f"wave of one period decays at a rate of {-winning_mode(PANELS['t'].task).rate(1):.3f}. In "
        f"the predicted flow {int(centered(predicted).sum())} of {len(flow.final)} starts end "
        "with a wave larger than its offset, and that of the run shown ends with amplitude "
        f"{printed(predicted.amplitude[0], 3)} and offset {printed(predicted.offset[0], 3)}. A "
        "wave at the end of training is the work of rare huge samples of a distribution whose "
        "fourth moment, and with it the variance of the gradient, is infinite: in the second half, "
        f"from one of a hundred records to the next, the field moves by up to {jump(t):.0%} of its "
        f"length ({jump(shell):.0%} on the shell). With a tenth of the samples {_of(noisy['t'])} "
        f"fields on t(3) end as such waves, and {_of(noisy['shell'])} on the shell.",
        "fits to the stored runs; closed form of the steady states",
    )


def jump(run: Trajectory) -> float:
    """The largest relative move between records in the second half of training."""
    fields = run.weights[:, run.weights.shape[1] // 2 :, 0]
    moves = np.linalg.norm(np.diff(fields, axis=1), axis=2)
    return float((moves / np.linalg.norm(fields[:, :-1], axis=2)).max())


def _of(which: np.ndarray) -> str:
    return f"{int(which.sum())} of {len(which)}"


def centered(fit: SinusoidFit) -> np.ndarray:
    """Whether a wave of about one period is larger than the offset it swings about."""
    return (np.abs(fit.frequency - 1) < 0.5) & (np.abs(fit.offset) < fit.amplitude)


def _range(values: np.ndarray, digits: int = 2) -> str:
    low, high = printed(float(values.min()), digits), printed(float(values.max()), digits)
    return low if low == high else f"{low} to {high}"


def setting(scale: FigureScale) -> str:
    """In words."""
    parts, runs = [], experiments(scale)
    for name, panel in PANELS.items():
        method = runs[name].method
        assert isinstance(method, Training)
        seeds = at(scale, paper=panel.seeds, quick=1, tiny=1)
        parts.append(
            f"{panel.title}: lr {method.learning_rate:g}, {method.steps:,} steps, batch "
            f"{method.batch:,}, {seeds} seed{'s' if seeds > 1 else ''}"
        )
    return (
        f"N = {SITES}, one ReLU neuron, ξ = {XI}, init_scale 0.001. {'; '.join(parts)}. Estimator "
        "independent, as in the paper, because its noise is what is measured; a tenth of the "
        "samples for comparison."
    )


FIGURE = PaperFigure(
    name="fig4",
    title="Figure 4: no localization on elliptical data",
    caption=(
        "Whatever the radial distribution, the field becomes a sinusoid: one period on t(3), a "
        "constant on the others. Red dashes are fitted to the last field, as in the paper. Ours: "
        "the field that theory predicts from the same start at the same time, without any fit, "
        "which is a sinusoid to many digits (green); and below, the error of the fit over time, "
        "which stays at a level that the batch decides. On t(3) huge samples strike the field now "
        "and then."
    ),
    setting=setting,
    draw=draw,
    claims=claims,
    experiments=experiments,
)
