"""Figure 7: two layers, all weights trained; claim M2, and what decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..experiments import Experiment, Training
from ..networks import TwoLayer
from ..plots._fields import draw_many
from ..plots._style import BLUE, GREEN, ORANGE, SMALL, add_time_bar, new_figure
from ..stimuli import Kur
from ..tasks import Discrimination
from ..trajectory import Trajectory, inverse_participation_ratio, localized_from
from .base import Claim, FigureScale, PaperFigure, Results, at, spread, verdict

SITES, HIDDEN, SHOWN, MEMBERS = 40, 10, 4, 20
SEEDS = 10
# The published rate is the last. We show the second, about the largest at which this trains.
RATES = (0.2, 0.4, 0.8, 80.0)
TRAINS = 0.4
FAST = 5.0  # cycles on the ring: waves shorter than eight sites


def task(k: float) -> Discrimination:
    """Kur(k) at two lengthscales, told apart."""
    return Discrimination(*(Kur((SITES,), xi=xi, k=k) for xi in (1.0, 3.0)))


def sigmoid(scale: FigureScale) -> Experiment:
    """The upper row at several learning rates, each from the same starts."""
    seeds = at(scale, paper=SEEDS, quick=3, tiny=1)
    method = Training(
        learning_rate=np.repeat(RATES, seeds),
        steps=at(scale, paper=5000, quick=4000, tiny=20),
        batch=at(scale, paper=1000, quick=300, tiny=20),
        seed=tuple(range(seeds)) * len(RATES),
        estimator="shared",
        every=at(scale, paper=100, quick=100, tiny=10),
        quantities=("weights", "readout", "loss"),
    )
    return Experiment(task(4.0), TwoLayer(HIDDEN, activation="sigmoid", init_scale=0.001), method)


def relu(scale: FigureScale, k: float, bias: str) -> Experiment:
    """The lower row, or one that differs from it in the data or the output's bias."""
    method = Training(
        learning_rate=0.5,
        steps=at(scale, paper=2000, quick=1500, tiny=20),
        batch=at(scale, paper=5000, quick=300, tiny=20),
        members=at(scale, paper=MEMBERS, quick=6, tiny=2),
        estimator="shared",
        every=at(scale, paper=40, quick=50, tiny=10),
        quantities=("weights", "readout", "loss"),
    )
    return Experiment(
        task(k), TwoLayer(HIDDEN, activation="relu", bias=bias, init_scale=0.001), method
    )


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Both rows as published, and two experiments of ours."""
    return {
        "Kur(4), sigmoid": sigmoid(scale),
        "Kur(30), ReLU": relu(scale, 30.0, "trained"),
        "Kur(30), no output bias": relu(scale, 30.0, "hidden"),
        "Kur(4), no output bias": relu(scale, 4.0, "hidden"),
    }


def at_rate(run: Trajectory, rate: float) -> Trajectory:
    """The members trained at a rate; their flow times are alike."""
    per_rate = run.num_members // len(RATES)
    place = RATES.index(rate) * per_rate
    return run.members(slice(place, place + per_rate))


def counts(run: Trajectory) -> np.ndarray:
    """Localized fields of each member at the end."""
    return _local(run.weights[:, -1])


def _local(fields: np.ndarray) -> np.ndarray:
    return (inverse_participation_ratio(fields, axes=1) > localized_from(SITES)).sum(axis=1)


def frequencies(run: Trajectory) -> np.ndarray:
    """Mean frequency of each last field by power, in cycles on the ring, (member, neuron)."""
    power = np.abs(np.fft.rfft(run.weights[:, -1].astype(float), axis=-1)) ** 2
    return (power * np.arange(power.shape[-1])).sum(axis=-1) / power.sum(axis=-1)


def one_signed(run: Trajectory) -> np.ndarray:
    """Whether all of a member's second layer is positive at the end."""
    return np.asarray((run.readout[:, -1, 0] > 0).all(axis=1))


def chosen(run: Trajectory, member: int) -> np.ndarray:
    """The neurons shown, from the most concentrated to the least, evenly spaced."""
    order = np.argsort(-run.ipr[member, -1])
    return order[np.linspace(0, len(order) - 1, SHOWN).round().astype(int)]


def draw(results: Results) -> Any:
    """Both rows as published, two rows of ours, and the ratio of every field of every seed."""
    upper = at_rate(results["Kur(4), sigmoid"], TRAINS)
    rows = {
        f"Kur(4), sigmoid\n(learning rate {TRAINS:g})": (upper, False),
        "Kur(30), ReLU\n(M1 as it stands)": (results["Kur(30), ReLU"], False),
        "Kur(30), ReLU\n(no output bias)": (results["Kur(30), no output bias"], True),
        "Kur(4), ReLU\n(no output bias)": (results["Kur(4), no output bias"], True),
    }
    figure = new_figure(11, 7.6)
    axes = figure.subplots(4, SHOWN + 1, width_ratios=(*[1] * SHOWN, 1.35))
    for number, (name, (run, ours)) in enumerate(rows.items()):
        # Of ours, a start whose second layer stays positive, if there is one.
        member = int(np.argmax(one_signed(run))) if ours else 0
        picked = chosen(run, member)
        times = run.times if run.times.ndim == 1 else run.times[member]
        draw_many(axes[number, :SHOWN], run.weights[member][:, picked], times)
        axes[number, 0].set_ylabel(
            f"ours: {name}" if ours else name, fontsize=9, color=GREEN if ours else "black"
        )
        _draw_ratios(axes[number, SHOWN], run, legend=number == 0)
    for ax in axes[-1, :SHOWN]:
        ax.set_xlabel("site", fontsize=8)
    axes[-1, SHOWN].set_xlabel("inverse participation ratio", fontsize=8)
    axes[0, 0].set_title("four of ten neurons, the most concentrated first", fontsize=9, loc="left")
    axes[0, SHOWN].set_title("ours: every field, one row a seed", fontsize=9, color=GREEN)
    bar = add_time_bar(figure, axes[:, SHOWN], 1.0, "flow time, of the whole")
    bar.set_ticks([0, 0.5, 1])
    return figure


def _draw_ratios(ax: Any, run: Trajectory, legend: bool) -> None:
    signs = one_signed(run)
    for positive, color, name in (
        (True, ORANGE, "second layer all positive"),
        (False, BLUE, "second layer mixed"),
    ):
        members = np.flatnonzero(signs == positive)
        ratios = run.ipr[members, -1]
        rows = np.broadcast_to(members, ratios.T.shape)
        ax.plot(ratios.T, rows, "o", ms=2.5, mew=0, color=color, alpha=0.8)
        ax.plot([], [], "o", ms=3, mew=0, color=color, label=name)
    line, height = [localized_from(SITES)] * 2, [-1, run.num_members]
    ax.plot(line, height, color="black", ls="--", lw=1, label="localization threshold")
    ax.set_xlim(0, 0.25)
    ax.set_ylim(-1, (1.6 if legend else 1.0) * run.num_members)
    ax.set_yticks([])
    ax.tick_params(labelsize=SMALL)
    if legend:
        ax.legend(frameon=False, fontsize=SMALL - 1, loc="upper right", borderaxespad=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def claims(results: Results) -> Sequence[Claim]:
    """M2, and a row of ours that says what decides."""
    swept, printed_net = results["Kur(4), sigmoid"], results["Kur(30), ReLU"]
    bare, control = results["Kur(30), no output bias"], results["Kur(4), no output bias"]
    upper = at_rate(swept, TRAINS)
    light, heavy, fast = counts(printed_net), counts(upper), (frequencies(upper) > FAST).mean()
    lower_holds = bool(HIDDEN / 2 < light.mean() < HIDDEN)
    both = all(
        (counts(run)[one_signed(run)] > HIDDEN / 2).mean() > 0.5
        for run in (bare, control)
        if one_signed(run).any()
    )
    upper_holds = bool(heavy.mean() < HIDDEN / 5 and fast > 0.5)
    return [
        Claim(
            "M2",
            "Two layers: on Kur(30) most fields localized, not all; on Kur(4) none, but fast "
            "oscillations",
            "figure 7",
            f"Kur(30): {spread(light, 1)} of {HIDDEN} localized; Kur(4): {spread(heavy, 1)}, and "
            f"{fast:.0%} of the fields fast",
            verdict(lower_holds and upper_holds),
            f"{_lower(printed_net, bare)} {_upper(swept, upper_holds)}",
            f"final fields over {len(light)} seeds (Kur(30)) and {len(heavy)} (Kur(4), learning "
            f"rate {TRAINS:g}); fast: a mean frequency above {FAST:g} cycles on the ring; none: "
            "fewer than two in ten, as of the random fields at the start "
            f"{spread(_local(upper.initial), 1)} of {HIDDEN} count as localized",
        ),
        Claim(
            "F7",
            "With two trained layers of ReLU, kurtosis alone does not decide (ours)",
            "not published",
            f"second layer all positive: {_split(bare, True)} on Kur(30) and "
            f"{_split(control, True)} on Kur(4); both signs: {_split(bare, False)} and "
            f"{_split(control, False)}",
            "not comparable",
            "The network of the lower row without output bias, on light tails and on heavy ones: "
            f"where its second layer stays positive, {'most' if both else 'not most'} fields are "
            "broad bumps on both.",
            f"localized fields of {HIDDEN}, mean ± standard deviation over seeds",
        ),
    ]


def _split(run: Trajectory, positive: bool) -> str:
    localized = counts(run)[one_signed(run) == positive]
    return (
        f"{spread(localized, 1)} ({len(localized)} seed{'s' * (len(localized) > 1)})"
        if len(localized)
        else "no such seed"
    )


def _lower(printed_net: Trajectory, bare: Trajectory) -> str:
    mixed, positive = ~one_signed(bare), bare.readout[:, -1, 0] > 0
    speed = frequencies(bare)
    fast, others, alone = (
        speed[mixed][~positive[mixed]],
        speed[mixed][positive[mixed]],
        speed[~mixed],
    )
    why = ""
    if len(fast) and len(alone):
        why = (
            f" Fields of negative weight are fast, {fast.mean():.1f} cycles on the ring, and the "
            f"others of their network take it up: {others.mean():.1f}, against {alone.mean():.1f} "
            "where all are positive."
        )
    return (
        "Kur(30): what is published is seen without the bias of the output, where the second "
        f"layer stays positive: {_split(bare, True)} of {HIDDEN} localized, the others slow "
        f"waves; with some of it negative, {_split(bare, False)}. With that bias: "
        f"{_split(printed_net, True)} where it stays positive, {_split(printed_net, False)} where "
        f"not.{why}"
    )


def _upper(swept: Trajectory, holds: bool) -> str:
    by_rate = []
    for rate in RATES:
        run = at_rate(swept, rate)
        bad = [outcome for outcome in run.outcome if outcome.kind != "ok"]
        if len(bad) == run.num_members:
            by_rate.append(f"{rate:g}: all diverge, by step {max(outcome.step for outcome in bad)}")
        else:
            good = [outcome.kind == "ok" for outcome in run.outcome]
            more = f", {len(bad)} of {run.num_members} diverge" if bad else ""
            by_rate.append(f"{rate:g}: loss {spread(run.loss[good, -1])}{more}")
    return (
        f"Kur(4): {'this half holds' if holds else 'this half differs, too'}, at a learning rate "
        f"of {TRAINS:g}. At {RATES[-1]:g}, as in the authors' record, the error of the output's "
        f"bias alone is multiplied by 1 − 2·{RATES[-1]:g} a step. By learning rate: "
        f"{'; '.join(by_rate)}."
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    runs = experiments(scale)
    upper: Any = runs["Kur(4), sigmoid"].method
    lower: Any = runs["Kur(30), ReLU"].method
    return (
        f"N = {SITES}, K = {HIDDEN}, ξ = (1, 3), biases, initial variance 0.001·2/(fan in + fan "
        f"out) in both layers. Kur(4): sigmoid, batch {upper.batch:,}, {upper.steps:,} steps, at "
        f"learning rates {', '.join(f'{rate:g}' for rate in RATES)}, "
        f"{len(upper.seed) // len(RATES)} seeds each. Kur(30): ReLU, learning rate "
        f"{lower.learning_rate:g}, batch {lower.batch:,}, {lower.steps:,} steps, {lower.members} "
        "seeds. Estimator shared: all seeds see the same fresh samples."
    )


FIGURE = PaperFigure(
    name="fig7",
    title="Figure 7: two layers, all weights trained",
    caption=(
        "On heavy tails the sigmoid network learns fast oscillations (first row). On light tails "
        "the ReLU network mostly does so, too (second row); without the bias of its output "
        "(third row, ours), and where its second layer stays positive, it learns bumps and slow "
        "waves as published, and so it does on heavy tails (last row, ours). Early is blue, late "
        "is red. On the right the inverse participation ratio of every field of every seed; "
        "dashed, where localized begins."
    ),
    setting=setting,
    draw=draw,
    claims=claims,
    experiments=experiments,
)
