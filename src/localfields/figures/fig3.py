"""Figure 3: one neuron on three data models, trained and predicted; claims L1 and L2."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import plots
from ..analysis.compare import compare
from ..experiments import Experiment, Solution, Training
from ..networks import SingleNeuron
from ..plots._style import GRAY, ORANGE, add_time_bar, finish, new_figure
from ..stimuli import NLGP, Ising, Kur, Stimulus
from ..tasks import Discrimination
from ..theory import Amplifier, EffectiveFlow, ExactIsing, Theory
from ..theory.responses.amplifier import SLOPE
from ..trajectory import Trajectory, localized_from
from .base import Claim, FigureScale, PaperFigure, Results, at, spread, verdict

SITES, MEMBERS, LEARNING_RATE, STEPS, EVERY = 40, 28, 0.05, 2000, 10
NETWORK = SingleNeuron(init_scale=0.001)
EXACT = ExactIsing(frequencies=64)  # as many as decide the site on 40; more change no peak


@dataclasses.dataclass(frozen=True)
class FigureRow:
    """A data model of the figure: both classes, how it is trained on, and the kurtosis printed."""

    classes: tuple[Stimulus, Stimulus]
    estimator: str
    batch: int
    members: int
    published_kurtosis: str

    @property
    def task(self) -> Discrimination:
        """The two told apart; the longer lengthscale has label 1."""
        return Discrimination(*self.classes)


# The noise of `orbit` is that of the Fourier modes which the field has. Measured along a run, 900
# samples per class have at most a quarter of the gradient variance of a batch of 10 000, and as
# much as it (5.9 · 150/900 at most, on Kur(5)) in the few modes of a wave
# (`benchmarks/test_figures.py`). The paper's own noise is kept for Ising data, where it can decide
# the position (§4.2).
ROWS: dict[str, FigureRow] = {
    "Ising": FigureRow(
        (Ising((SITES,), coupling=0.3), Ising((SITES,), coupling=0.7)),
        *("independent", 500, MEMBERS, "1.00"),
    ),
    "NLGP(0.01)": FigureRow(
        (NLGP((SITES,), xi=1.0, gain=0.01), NLGP((SITES,), xi=3.0, gain=0.01)),
        *("orbit", 1800, 10, "2.99"),
    ),
    "Kur(5)": FigureRow(
        (Kur((SITES,), xi=1.0, k=5.0), Kur((SITES,), xi=3.0, k=5.0)), *("orbit", 1800, 10, "3.86")
    ),
}


def trained(name: str, scale: FigureScale) -> Experiment:
    """Training of a row; §4.2 shares that on Ising data."""
    row = ROWS[name]
    method = Training(
        learning_rate=LEARNING_RATE,
        steps=at(scale, paper=STEPS, quick=600, tiny=40),
        batch=at(scale, paper=row.batch, quick=min(row.batch, 500), tiny=20),
        members=at(scale, paper=row.members, quick=10 if name == "Ising" else 2, tiny=2),
        estimator=row.estimator,
        every=EVERY,
        quantities=("weights",),
    )
    return Experiment(row.task, NETWORK, method)


def solved(
    name: str, theory: Theory, scale: FigureScale, task: Discrimination | None = None
) -> Experiment:
    """A flow from the first fields of training at its records, of another task if given."""
    experiment = trained(name, scale)
    method = experiment.method
    assert isinstance(method, Training)
    times = LEARNING_RATE * np.arange(0, method.steps + 1, EVERY)
    solution = Solution(theory, times=times, members=method.members, tolerance=1e-6)
    return Experiment(task or experiment.task, NETWORK, solution)


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """For each row its training and three flows."""
    runs = {}
    for name, row in ROWS.items():
        runs[f"{name}: training"] = trained(name, scale)
        runs[f"{name}: Taylor"] = solved(name, EffectiveFlow(amplifier="taylor"), scale)
        runs[f"{name}: exact φ"] = solved(name, EffectiveFlow(), scale)
        if name == "Ising":
            runs[f"{name}: best"] = solved(name, EXACT, scale)
        else:  # normal data of the same covariance, for which eq. (5) is exact
            clones = Discrimination(*(stimulus.gaussian_clone() for stimulus in row.classes))
            runs[f"{name}: best"] = solved(name, EffectiveFlow(), scale, clones)
    return runs


def draw(results: Results) -> Any:
    """Three rows: marginal, amplifier, training and Taylor flow as published, two flows of ours."""
    figure = new_figure(12, 6.4)
    axes = figure.subplots(3, 6, width_ratios=(0.8, 0.9, 1.1, 1.1, 1.1, 1.1))
    for number, (name, row) in enumerate(ROWS.items()):
        marginal = row.classes[1].marginal()
        assert marginal is not None
        ax = plots.density(marginal, ax=axes[number, 0])
        if legend := ax.get_legend():
            legend.remove()
        ax.set_ylabel(name, fontsize=10)
        ax.set_yticks([])
        if number:
            ax.set_xlim(-4.5, 4.5)
        _draw_amplifier(axes[number, 1], row, legend=number == 0)
        _draw_flows(axes[number, 2:], results, name)
    for ax in axes[:2].flat:
        ax.set_xlabel("")
    titles = ("marginal", "amplifier φ", "training", "eq. (5), Taylor φ")
    titles += ("ours: eq. (5), exact φ", "ours: exact flow")
    for ax, title in zip(axes[0], titles, strict=True):
        finish(ax, title)
    finish(axes[1, 5], "ours: normal data")
    # The filled curve is the marginal itself; only the line of normal data needs a name.
    lines, labels = axes[1, 0].get_legend_handles_labels()
    normal = labels.index("normal")
    style = {"frameon": False, "fontsize": 7, "borderaxespad": 0, "handlelength": 1}
    axes[1, 0].legend([lines[normal]], ["normal"], loc="upper left", **style)
    add_time_bar(figure, axes[:, 5], float(results["Ising: training"].times[-1]))
    return figure


def _draw_amplifier(ax: Any, row: FigureRow, legend: bool) -> None:
    """φ on [−1, 1] with the line of normal data and the third-order Taylor polynomial."""
    marginal = row.classes[1].marginal()
    assert marginal is not None
    amplifier, a = Amplifier(marginal), np.linspace(-1, 1, 401)
    ax.axhline(0, color=GRAY, lw=0.5)
    ax.axvline(0, color=GRAY, lw=0.5)
    ax.plot(a, SLOPE * a, color=GRAY, lw=1.2, ls="--", label="normal")
    ax.plot(a, amplifier(a), color="black", lw=1.6, label="exact")
    ax.plot(a, amplifier.taylor(3)(a), color=ORANGE, lw=1.1, label="Taylor")
    exact = (
        f"{marginal.kurtosis:.4f}"
        if row.published_kurtosis != "1.00"
        else f"{marginal.kurtosis:.2f}"
    )
    text = f"κ = {exact}\n(paper {row.published_kurtosis})"
    ax.text(0.98, 0.04, text, transform=ax.transAxes, ha="right", va="bottom", fontsize=7.5)
    style = {"fontsize": 7, "loc": "upper left", "handlelength": 1.2}
    style |= {"borderaxespad": 0.1, "labelspacing": 0.2}
    finish(ax, legend=style if legend else None, xlabel="a", ylim=(-1.15, 1.15))


def _draw_flows(axes: Any, results: Results, name: str) -> None:
    """Fields of the first member over flow time, with their last IPR; one scale for the row."""
    limits = []
    for ax, kind in zip(axes, ("training", "Taylor", "exact φ", "best"), strict=True):
        run = results[f"{name}: {kind}"]
        plots.fields(run, ax=ax).set_ylabel("")
        peak = f", peak at {run.peak[0, -1, 0]}" if name == "Ising" else ""
        text = f"IPR {_last_ipr(run)[0]:.2f}{peak}"
        ax.text(0.99, 0.98, text, transform=ax.transAxes, ha="right", va="top", fontsize=7.5)
        limits.append(ax.get_ylim())
    low, high = min(limit[0] for limit in limits), max(limit[1] for limit in limits)
    for ax in axes:
        ax.set_ylim(low, high + 0.12 * (high - low))
    for ax in axes[1:]:
        ax.set_yticklabels([])
    axes[0].set_ylabel("weight")


def _last_ipr(run: Trajectory) -> np.ndarray:
    """IPR at the last record, (member,)."""
    return run.ipr[:, -1, 0]


def claims(results: Results) -> Sequence[Claim]:
    """L1: where training localizes; L2: whether the flow of the Taylor φ ends as training does."""
    threshold = localized_from(SITES)
    ratios = {name: _last_ipr(results[f"{name}: training"]) for name in ROWS}
    places = {name: bool((ratio > threshold).all()) for name, ratio in ratios.items()}
    nowhere = not any((ratios[name] > threshold).any() for name in ("NLGP(0.01)", "Kur(5)"))
    near_one = bool((ratios["Ising"] > 0.5).all())
    exact = _last_ipr(results["Ising: best"])
    first = Claim(
        "L1",
        "Trained fields localize on Ising data, and do not on NLGP(0.01) and Kur(5)",
        "IPR near 1 / near 0 / near 0",
        " / ".join(spread(ratio, 3) for ratio in ratios.values()),
        verdict(places["Ising"] and near_one and nowhere),
        f"A field counts as localized above {threshold:.3f}, a third more than noise has: "
        + ", ".join(
            f"{name} {int((r > threshold).sum())} of {len(r)}" for name, r in ratios.items()
        )
        + f". The exact flow on Ising data ends at {spread(exact, 3)}.",
        "IPR of the last field, mean ± std over starts",
    )
    return [first, _agreement(results, threshold)]


def _agreement(results: Results, threshold: float) -> Claim:
    same, cosine = {}, {}
    for name in ROWS:
        run = results[f"{name}: training"]
        kinds = [
            _last_ipr(trajectory) > threshold for trajectory in (run, results[f"{name}: Taylor"])
        ]
        same[name] = int((kinds[0] == kinds[1]).sum())
        for kind in ("Taylor", "exact φ"):
            comparison = compare(run, results[f"{name}: {kind}"])
            cosine[name, kind] = float(np.nanmedian(comparison.at_end(comparison.cosine)))
    count = {name: results[f"{name}: training"].num_members for name in ROWS}
    ising = [
        spread(_last_ipr(results[f"Ising: {kind}"]), 3)
        for kind in ("training", "Taylor", "exact φ", "best")
    ]
    flat = [
        f"{_flatness(results[f'Kur(5): {kind}']):.2f}" for kind in ("training", "Taylor", "exact φ")
    ]
    return Claim(
        "L2",
        "Eq. (5) with the Taylor φ gives fields of the same kind as training: localized on Ising "
        "data, not on others",
        "yes, in all three",
        ", ".join(f"{name} {number} of {count[name]}" for name, number in same.items()),
        verdict(same == count),
        "Median cosine of the last fields: "
        + "; ".join(
            f"{name} {cosine[name, 'Taylor']:.2f} (exact φ {cosine[name, 'exact φ']:.2f})"
            for name in ROWS
        )
        + f". On Ising data the bump of eq. (5) is broader, IPR {ising[1]} (exact φ {ising[2]}) "
        f"beside {ising[0]} in training and {ising[3]} under the exact flow, as its central limit "
        f"fails for a field on few sites. On Kur(5) the share of the flat mode is {flat[0]} in "
        f"training, {flat[1]} under the Taylor φ, which bends further below the line of normal "
        f"data than the exact φ ({flat[2]}).",
        f"localized or not (IPR above {threshold:.3f}) at the last record, training against flow",
    )


def _flatness(run: Trajectory) -> float:
    """Median cosine of the last fields with a constant one, whatever its sign."""
    fields = run.final[:, 0].astype(float)
    return float(
        np.median(np.abs(fields.mean(axis=1)) * np.sqrt(SITES) / np.linalg.norm(fields, axis=1))
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    methods = [trained(name, scale).method for name in ("Ising", "Kur(5)")]
    ising, other = (method for method in methods if isinstance(method, Training))
    share = ", of whose gradient variance it has at most a quarter, and about as much in the few "
    share = f"{share}modes of a wave" if scale == "paper" else ""
    return (
        f"N = {SITES}, one ReLU neuron, init_scale 0.001, learning rate {LEARNING_RATE}, "
        f"{ising.steps} steps, one common initial field. Ising J = (0.3, 0.7), estimator "
        f"independent, batch {ising.batch}, {ising.members} starts behind the claims; NLGP(0.01) "
        f"and Kur(5) ξ = (1, 3), estimator orbit with {other.batch // 2} samples per class, "
        f"{other.members} starts (the paper: batch 10 000{share})."
    )


FIGURE = PaperFigure(
    name="fig3",
    title="Figure 3: one neuron on three data models",
    caption=(
        "Only data with two values per site (Ising, top) lets the field of a neuron shrink to one "
        "place; on nearly normal and on heavy-tailed data it becomes a smooth wave and in the "
        "end nearly flat, as eq. (5) predicts. From the left: the marginal; the amplifier φ with "
        "its third-order Taylor polynomial and the line of normal data; a field in training; and "
        "under eq. (5) with the Taylor φ, from the same start. The kurtosis κ is exact; the "
        "printed 3.86 of Kur(5) is a value of samples, which mostly miss the tail. Ours, with "
        "green titles: eq. (5) with the exact φ; the exact flow on Ising data; and for the "
        "others the flow of normal data with the same covariance. The first start of all is "
        "shown; how often eq. (5) tells the site of the peak is the matter of §4.2."
    ),
    setting=setting,
    draw=draw,
    claims=claims,
    experiments=experiments,
)
