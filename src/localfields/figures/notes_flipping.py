"""Note 1, Fig. 3: how often the gates of a ReLU committee change while it learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis.gates import GateHistory, gates_along
from ..experiments import Experiment, Training
from ..networks import Committee
from ..plots._style import BLUE, GRAY, GREEN, ORANGE, SMALL, finish, new_figure
from ..stimuli import NLGP
from ..tasks import Discrimination
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread

SITES, HIDDEN, XI = 40, 12, (1.0, 2.0)
NOTE, LONG = "the note's run", "ours, longer"
GAINS = {NOTE: 0.01, LONG: 3.0}


def task(gain: float) -> Discrimination:
    """Two lengthscales at one gain."""
    return Discrimination(*(NLGP((SITES,), xi=xi, gain=gain) for xi in XI))


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """The note's committee; one on data far from Gaussian, until its fields have their shape."""
    network = Committee(HIDDEN, init_scale=1.0)
    note = Training(
        learning_rate=0.01,
        steps=at(scale, paper=5000, quick=1000, tiny=40),
        batch=at(scale, paper=10_000, quick=1000, tiny=20),
        every=at(scale, paper=20, quick=20, tiny=10),
        quantities=("weights",),
    )
    longer = Training(
        learning_rate=1.0,
        steps=at(scale, paper=3000, quick=1500, tiny=40),
        batch=at(scale, paper=50, quick=20, tiny=2),
        estimator="orbit",
        every=at(scale, paper=20, quick=20, tiny=10),
        quantities=("weights",),
    )
    return {
        name: Experiment(task(GAINS[name]), network, how)
        for name, how in ((NOTE, note), (LONG, longer))
    }


def histories(results: Results, name: str) -> tuple[GateHistory, GateHistory]:
    """Against the next record, counted from half time on; against the last, from the start."""
    run, num = results[name], at(results.scale, paper=10_000, quick=1000, tiny=100)

    def compute() -> tuple[GateHistory, GateHistory]:
        about = task(GAINS[name])
        late = gates_along(run, about, reference="next", since=float(run.times[-1]) / 2, num=num)
        return late, gates_along(run, about, reference="final", num=num)

    return results.once(("gates", name), compute)


def draw(results: Results) -> Any:
    """As the note: gates that flip over time, kurtosis of preactivations, final fields; by gain."""
    figure: Any = new_figure(11, 5.8)
    grid = figure.subplots(2, 4)
    titles = (
        "between two records",
        "of preactivations",
        "final fields, two a line",
        "ours: over many records",
    )
    xlabels = ("flow time", "flow time", "site", "neuron")
    tiny = {"fontsize": SMALL - 1}
    for row, name in zip(grid, GAINS, strict=True):
        late, history = histories(results, name)
        run = results[name]
        flips, bent, fields, never = row
        flips.plot(late.times, 100 * (1 - late.agreement[0]), color=BLUE, lw=0.7, alpha=0.7)
        flips.plot([], [], color=BLUE, lw=0.7, label="drawn")
        by_covariance = 100 * (1 - late.gaussian[0].mean(axis=1))
        flips.plot(late.times, by_covariance, "k--", lw=1, label="by covariance, mean")
        flips.set(ylabel="gates that flip (%)", ylim=(0, None))
        flips.legend(frameon=False, **tiny)
        place = {"xycoords": "axes fraction", "rotation": 90, "va": "center"}
        flips.annotate(f"{name}: gain {GAINS[name]:g}", (-0.32, 0.5), fontsize=9, **place)
        kurtosis = history.kurtosis[0].mean(axis=2)
        bent.plot(run.times, kurtosis, color=GREEN, lw=0.7, alpha=0.8)
        bent.axhline(0, color=GRAY, lw=0.6)
        lowest = min(-0.3, 1.1 * np.nanmin(kurtosis))
        bent.set(ylabel="excess kurtosis of ⟨w, x⟩", ylim=(lowest, 0.3))
        largest = 1.1 * np.abs(run.final[0]).max()
        for number, field in enumerate(run.final[0]):
            style = {"color": ORANGE, "lw": 0.9, "alpha": 1 if number % 2 else 0.55}
            fields.plot(field / largest - 2 * (number // 2), **style)
        fields.set_yticks([])
        order = np.argsort(history.uniform[0])
        for values, color, marker, fill, label in (
            (late.uniform[0], BLUE, "o-", BLUE, "from half time on"),
            (history.uniform[0], ORANGE, "o-", ORANGE, "from the start"),
            (late.bound[0], BLUE, "v:", "none", "its union bound"),
        ):
            style = {"color": color, "mfc": fill, "ms": 3.5, "lw": 0.8}
            never.plot(100 * values[order], marker, label=label, **style)
        never.set(ylim=(0, 102), ylabel="gates that never flip (%)")
        never.locator_params(axis="x", integer=True)
    for ax, title in zip(grid[0], titles, strict=True):
        finish(ax, title)
    for ax, xlabel in zip(grid[1], xlabels, strict=True):
        finish(ax, xlabel=xlabel)
    grid[0, 3].legend(frameon=False, loc="lower right", **tiny)
    return figure


def questions(results: Results) -> Sequence[Question]:
    """What note 1, §4.1, and note 4 ask of gates along a run."""
    parts: dict[str, list[str]] = {"flips": [], "never": [], "kurtosis": []}
    falls, steady, bent_more = [], [], []
    for name in GAINS:
        late, history = histories(results, name)
        flips = 100 * (1 - late.agreement[0])
        tenth = max(1, len(flips) // 10)
        first, last = flips[:tenth].mean(axis=0), flips[-tenth:].mean(axis=0)
        falls.append(last.mean() < first.mean())
        steady.append(100 * float(history.uniform[0].mean()))
        parts["flips"].append(f"{name}: {spread(first)} % at first, {spread(last)} % at last")
        parts["never"].append(
            f"{name}: {spread(100 * history.uniform[0], 0)} % never flip, "
            f"{spread(100 * late.uniform[0], 0)} % not from half time on (at least "
            f"{spread(100 * late.bound[0], 0)} % by the union bound); "
            f"{spread(100 * history.agreement[0, 0], 0)} % of the first gates are as in the end"
        )
        bent = history.kurtosis[0].mean(axis=2)
        bent_more.append(bent[-1].mean() < bent[0].mean() - 0.1)
        parts["kurtosis"].append(
            f"{name}: {spread(bent[0])} at the start, {spread(bent[-1])} at the end"
        )
    over = f"mean ± deviation over {HIDDEN} neurons of one run"
    noise = float(np.nanmean(histories(results, LONG)[1].kurtosis_error))
    return [
        Question(
            "FLIP1",
            "note 1, §4.1, Fig. 3",
            "How many gates change between two records, and fewer as training goes on?",
            "Very few, and ever fewer." if all(falls) else "Few, but not fewer with time.",
            "; ".join(parts["flips"]),
            f"first and last tenth of the records; {over}",
        ),
        Question(
            "FLIP2",
            "notes 1, §4.1, and 4, eq. (79)",
            "May the gates be taken as fixed?",
            "For as long as the note trains nearly so, as fields hardly change their shape by "
            "then. Over the whole of learning not: about half of all stimuli meet another gate "
            "some time, most of them early."
            if steady[1] < 70 < 80 < steady[0]
            else "Not from the start."
            if max(steady) < 90
            else "Yes, nearly from the start.",
            "; ".join(parts["never"]),
            f"the same samples at all records; {over}",
        ),
        Question(
            "FLIP3",
            "note 1, Fig. 3",
            "How far from Gaussian are the preactivations, and does that change?",
            "They stay Gaussian on Gaussian data; else a field that gathers on few sites makes "
            "them less so."
            if bent_more == [False, True]
            else "They change little here.",
            "; ".join(parts["kurtosis"]),
            f"excess kurtosis of ⟨w, x⟩, mean of both classes; {over}; noise of the samples about "
            f"{printed(noise)}",
        ),
    ]


def setting(scale: FigureScale) -> str:
    """In words."""
    note, longer = (experiments(scale)[name].method for name in (NOTE, LONG))
    assert isinstance(note, Training) and isinstance(longer, Training)
    return (
        f"N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g}), K = {HIDDEN} ReLU neurons, initial variance "
        f"2/(N + K). The note's: gain {GAINS[NOTE]:g}, learning rate {note.learning_rate:g}, "
        f"batch {note.batch:,}, estimator independent, {note.steps:,} steps (our loss has no ½: "
        f"flow is twice as fast). Ours: gain {GAINS[LONG]:g}, learning rate "
        f"{longer.learning_rate:g}, estimator orbit with {longer.batch} samples per step, "
        f"{longer.steps:,} steps. Recorded every {note.every} steps."
    )


FIGURE = PaperFigure(
    name="notes/flipping",
    title="Note 1, Fig. 3: gates that flip",
    caption=(
        "Share of stimuli for which a neuron's gate changes between two records (one curve a "
        "neuron; dashed: what the covariance alone says), excess kurtosis of the preactivations, "
        "and final fields; above as in the note, where fields still look like their start, below "
        "much longer and at gain 3. Ours, right: how many gates never change over many records, "
        "with the union bound."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
