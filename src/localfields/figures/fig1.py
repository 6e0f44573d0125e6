"""Figure 1 (right): receptive fields on a torus, of a committee and of ICA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import plots
from ..baselines import FastICA
from ..experiments import Experiment, Fit, Training
from ..networks import Committee
from ..plots._style import BLUE, ORANGE, finish, new_figure
from ..stimuli import NLGP
from ..tasks import Discrimination
from ..trajectory import Trajectory, localized_from
from .base import Claim, FigureScale, PaperFigure, Results, at, spread, verdict

GAIN, HIDDEN, COMPONENTS = 100.0, 20, 80

# Samples of `orbit` per step, both classes together; each stands for its 900 shifts and both signs.
# The variance of the gradient is 0.64 of that of 10 000 independent samples at the start, and 0.72
# at step 1000 (`benchmarks/test_figures.py`).
NUM_SAMPLES = 24
SEEDS = 2  # one is drawn


def task(shape: tuple[int, int], xi: tuple[float, float]) -> Discrimination:
    """Two lengthscales of nearly binary data, told apart."""
    return Discrimination(*(NLGP(shape, xi=lengthscale, gain=GAIN) for lengthscale in xi))


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """The committee, and the fit, with one experiment a seed: so they share the cores."""
    side = at(scale, paper=30, quick=20, tiny=16)
    side_ica = at(scale, paper=16, quick=10, tiny=6)
    components = at(scale, paper=COMPONENTS, quick=30, tiny=6)
    network = Committee(HIDDEN, activation="relu", bias="none", init_scale=0.01)
    baseline = FastICA(components, iterations=1000)
    runs = {}
    for seed in range(at(scale, paper=SEEDS, quick=1, tiny=1)):
        method = Training(
            learning_rate=at(scale, paper=3.0, quick=10.0, tiny=3.0),
            steps=at(scale, paper=10_000, quick=1500, tiny=10),
            batch=at(scale, paper=NUM_SAMPLES, quick=16, tiny=4),
            estimator="orbit",
            every=at(scale, paper=500, quick=50, tiny=5),
            quantities=("weights",),
            seed=seed,
        )
        fit = Fit(baseline, samples=at(scale, paper=100_000, quick=20_000, tiny=1000), seed=seed)
        which = f", seed {seed}" if seed else ""
        runs[f"committee{which}"] = Experiment(task((side, side), (1.0, 2.0)), network, method)
        runs[f"ICA{which}"] = Experiment(task((side_ica, side_ica), (0.7, 0.5)), method=fit)
    return runs


def draw(results: Results) -> Any:
    """Both sheets of fields as published; the ratio of every field below, which is ours."""
    committee, ica = results["committee"], results["ICA"]
    figure = new_figure(11, 6.4)
    axes = figure.subplots(2, 2, height_ratios=(3.2, 1), width_ratios=(1, 1))
    plots.pictures(ica.final[0], columns=10, ax=axes[0, 0])
    axes[0, 0].set_title(_title("ICA", ica, "components"), fontsize=10)
    plots.pictures(committee.final[0], columns=5, ax=axes[0, 1])
    axes[0, 1].set_title(_title("committee (SCM)", committee, "neurons"), fontsize=10)

    ax = axes[1, 0]
    ax.hist(ratio(ica), bins=30, color=ORANGE)
    ax.axvline(1, color="black", ls="--", lw=1, label="localization threshold")
    ax.set_xlim(left=0)
    ax.locator_params(axis="y", integer=True, nbins=5)
    xlabel = "inverse participation ratio, in units of the threshold"
    finish(ax, "ours: every component", legend={}, xlabel=xlabel, ylabel="components")

    ax = axes[1, 1]
    size = np.prod(committee.shape)
    ax.plot(committee.times, committee.ipr[0] / localized_from(int(size)), color=BLUE, lw=0.8)
    ax.axhline(1, color="black", ls="--", lw=1)
    ax.set_xlim(0, committee.times[-1])
    ax.set_ylim(bottom=0)
    title = "ours: every neuron in training"
    finish(ax, title, xlabel="flow time", ylabel="the same ratio")
    return figure


def _title(name: str, run: Trajectory, what: str) -> str:
    lattice = "×".join(map(str, run.shape))
    return f"{name}: {run.initial.shape[1]} {what} on a {lattice} torus"


def ratio(run: Trajectory) -> np.ndarray:
    """IPR of the last fields over that from which a field counts as localized."""
    return run.ipr[0, -1] / localized_from(int(np.prod(run.shape)))


def claims(results: Results) -> Sequence[Claim]:
    """F1a and F1b, rows of ours: how many of the fields are localized."""
    rows = []
    for id, name, what in (("F1a", "committee", "a committee"), ("F1b", "ICA", "ICA")):
        runs = [results[key] for key in results if key.startswith(name)]
        ratios = np.stack([run.ipr[0, -1] for run in runs])
        size = int(np.prod(runs[0].shape))
        local = ratios > localized_from(size)
        ended = [
            f" A run ended otherwise: {run.outcome[0]}."
            for run in runs
            if run.outcome[0].kind != "ok"
        ]
        rows.append(
            Claim(
                id,
                f"Fields of {what} localize in two dimensions",
                "figure 1",
                f"{spread(local.sum(axis=1), 1)} of {local.shape[1]} fields, IPR "
                f"{spread(ratios, 4)}",
                verdict(bool((local.mean(axis=1) > 0.5).all())),
                f"Noise has an IPR of {3 / (size + 2):.4f}, one is localized from "
                f"{localized_from(size):.4f} on; most must be.{''.join(ended)}",
                f"final fields of {len(runs)} seeds, mean ± standard deviation",
            )
        )
    return rows


def setting(scale: FigureScale) -> str:
    """In words."""
    runs = experiments(scale)
    committee, fit = runs["committee"], runs["ICA"]
    method: Any = committee.method
    ica: Any = fit.method
    lattice, other = ("×".join(map(str, experiment.task.shape)) for experiment in (committee, fit))
    return (
        f"Committee: {lattice}, K = {HIDDEN}, ReLU, no biases, NLGP(100), ξ = (1, 2), initial "
        f"variance 0.01·2/(N + K), learning rate {method.learning_rate:g}, {method.steps:,} "
        f"steps; estimator orbit with {method.batch} samples (the paper: 10,000 independent "
        f"samples). FastICA: {other}, NLGP(100), ξ = (0.7, 0.5), {ica.samples:,} samples, "
        f"{ica.baseline.components} components, parallel, whitened to unit variance."
    )


FIGURE = PaperFigure(
    name="fig1",
    title="Figure 1 (right): localized fields in two dimensions",
    caption=(
        "Each picture is one receptive field, on its own scale, red positive and blue negative. "
        "Those of ICA and those of the committee are small patches, at positions all over the "
        "torus. Ours, below: the inverse participation ratio of every field, over the value from "
        "which a field counts as localized."
    ),
    setting=setting,
    draw=draw,
    claims=claims,
    experiments=experiments,
)
