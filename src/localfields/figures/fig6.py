"""Figure 6: committees on light and heavy tails, and ICA; claims M1 and I1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..baselines import FastICA
from ..experiments import Experiment, Fit, Training
from ..marginals import Algebraic
from ..networks import Committee
from ..plots._fields import draw_many
from ..plots._style import BLUE, GREEN, ORANGE, add_time_bar, finish, new_figure
from ..trajectory import Trajectory, localized_from
from .base import Claim, FigureScale, PaperFigure, Results, at, printed, spread, verdict
from .fig7 import FAST, HIDDEN, SITES, counts, frequencies, task

SHOWN, MEMBERS = 10, 10
MODELS = {"committee, Kur(10)": 10.0, "committee, Kur(4)": 4.0}
ICA = "ICA, Kur(3)"
FITS = 5  # each of its own samples and from its own start


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Two committees and a fit."""
    method = Training(
        learning_rate=100.0,
        steps=at(scale, paper=5000, quick=1500, tiny=20),
        batch=at(scale, paper=1000, quick=400, tiny=20),
        members=at(scale, paper=MEMBERS, quick=3, tiny=2),
        estimator="shared",
        every=at(scale, paper=100, quick=50, tiny=10),
        quantities=("weights", "biases"),
    )
    network = Committee(HIDDEN, activation="sigmoid", bias="trained", init_scale=0.1)
    samples = at(scale, paper=100_000, quick=20_000, tiny=1000)
    fits = at(scale, paper=FITS, quick=1, tiny=1)
    fit = Fit(
        FastICA(at(scale, paper=SITES, quick=SITES, tiny=SHOWN)), samples=samples, members=fits
    )
    committees = {name: Experiment(task(k), network, method) for name, k in MODELS.items()}
    return {**committees, ICA: Experiment(task(3.0), method=fit)}


def draw(results: Results) -> Any:
    """Ten fields of each model as published; below, ours, the IPR of every field of every seed."""
    figure: Any = new_figure(11, 8)
    top, bottom = figure.subfigures(2, 1, height_ratios=(3.4, 1))
    groups = top.subfigures(1, 3, width_ratios=(1, 1.12, 0.95), wspace=0.02)
    for group, name in zip(groups, (*MODELS, ICA), strict=True):
        axes = group.subplots(5, 2, sharex=True)
        run = results[name]
        draw_many(axes.ravel(), run.weights[0][:, :SHOWN], run.times)
        group.suptitle(f"{name}, excess kurtosis {_kurtosis(name)}", fontsize=10)
        axes[2, 0].set_ylabel("weight", fontsize=8)
        for ax in axes[-1]:
            ax.set_xlabel("site", fontsize=8)
    add_time_bar(groups[1], groups[1].axes, float(results["committee, Kur(4)"].times[-1]))
    _draw_ratios(bottom, results)
    return figure


def _draw_ratios(figure: Any, results: Results) -> None:
    ax = figure.subplots()
    generator = np.random.default_rng(0)  # only spreads points that would cover each other
    for place, (name, color) in enumerate(zip((*MODELS, ICA), (ORANGE, BLUE, GREEN), strict=True)):
        values = last_ipr(results[name])
        for member, row in enumerate(values):
            height = -place + 0.7 * ((member + 0.5) / len(values) - 0.5)
            spread_out = height + generator.uniform(-0.02, 0.02, row.size)
            ax.plot(row, spread_out, "o", ms=3, mew=0, color=color, alpha=0.7)
    ax.axvline(localized_from(SITES), color="black", ls="--", lw=1, label="localization threshold")
    ax.set_yticks([0, -1, -2], (*MODELS, ICA))
    ax.set_xscale("log")
    ax.set_xlim(1 / SITES, 1)
    ticks = (0.03, 0.05, 0.1, 0.2, 0.5, 1)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    xlabel = "inverse participation ratio at the end"
    finish(ax, "ours: every field, one row a seed", legend={"loc": "upper right"}, xlabel=xlabel)


def _kurtosis(name: str) -> str:
    value = Algebraic({**MODELS, ICA: 3.0}[name]).excess_kurtosis
    return "∞" if np.isinf(value) else printed(value)


def last_ipr(run: Trajectory) -> np.ndarray:
    """IPR of every field at the end, (member, neuron)."""
    return run.ipr[:, -1]


def claims(results: Results) -> Sequence[Claim]:
    """M1 and I1."""
    light, heavy, ica = (results[name] for name in (*MODELS, ICA))
    of_light, of_heavy, of_ica = counts(light), counts(heavy), counts(ica)
    bad = [
        f"{name}, seed {seed}: {outcome}"
        for name in results
        for seed, outcome in enumerate(results[name].outcome)
        if outcome.kind != "ok"
    ]
    note = f" Not all ended well: {'; '.join(bad)}." if bad else ""
    size = ica.initial.shape[1]
    others = frequencies(light)[last_ipr(light) <= localized_from(SITES)]
    tails = (
        f"excess kurtosis {_kurtosis('committee, Kur(10)')} and {_kurtosis('committee, Kur(4)')}"
    )
    return [
        Claim(
            "M1",
            "A committee on Kur(10) localizes, on Kur(4) it does not",
            "figure 6",
            f"{spread(of_light, 1)} and {spread(of_heavy, 1)} of {HIDDEN} fields; "
            f"IPR {spread(last_ipr(light), 3)} and {spread(last_ipr(heavy), 3)}",
            verdict(bool(of_light.mean() > HIDDEN / 2 and of_heavy.mean() < HIDDEN / 10)),
            "Most fields must be localized on the first and fewer than one in ten on the second "
            f"({tails}); a field counts as localized from an IPR of {localized_from(SITES):.3f} "
            f"on. Of the {others.size} others on Kur(10) {(others > FAST).sum()} are fast "
            f"oscillations (mean frequency above {FAST:g} cycles).{note}",
            f"counts over {len(of_light)} seeds, IPR over all their fields",
        ),
        Claim(
            "I1",
            "FastICA on Kur(3) localizes although its kurtosis is positive",
            "figure 6",
            f"{spread(of_ica, 1)} of {size} fields, IPR {spread(last_ipr(ica), 2)}",
            verdict(bool(of_ica.mean() > size / 2)),
            "ICA looks for what is far from Gaussian, of either sign; the excess kurtosis here is "
            f"{_kurtosis(ICA)} (published as 7.66, see K5).{note}",
            f"unmixing rows; counts over {len(of_ica)} seeds, IPR over all their rows",
        ),
    ]


def setting(scale: FigureScale) -> str:
    """In words."""
    runs = experiments(scale)
    method: Any = runs["committee, Kur(10)"].method
    fit: Any = runs[ICA].method
    return (
        f"N = {SITES}, ξ = (1, 3). Committees: K = {HIDDEN}, sigmoid, trained biases, initial "
        f"variance 0.1·2/(N + K), learning rate {method.learning_rate:g}, {method.steps:,} steps; "
        f"batch {method.batch:,}, estimator shared: {method.members} seeds see the same fresh "
        f"samples. FastICA: {fit.samples:,} samples, {fit.baseline.components} components, the "
        f"first {SHOWN} shown; {fit.members} seeds."
    )


FIGURE = PaperFigure(
    name="fig6",
    title="Figure 6: many neurons, and ICA",
    caption=(
        "Fields of a committee from early (blue) to late (red): bumps on light tails (left), "
        "slow oscillations on heavy ones (center), and now and then a fast one, which has an "
        "axis of its own (red numbers). ICA (right) finds fields of a few sites, although the "
        "tails are heavy. Ours, below: the inverse participation ratio of every field of every "
        "seed."
    ),
    setting=setting,
    draw=draw,
    claims=claims,
    experiments=experiments,
)
