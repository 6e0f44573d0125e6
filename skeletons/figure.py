"""A figure of your own: copy this file and complete the lines marked FILL IN.

    localfields --plugin my_figure.py reproduce my-figure --scale quick

Experiments are run once and stored; drawing and claims are functions of the stored runs and nothing
else, so that an altered run alters the verdict. Inside the package (`src/localfields/figures/`) it
is found by itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from localfields import Discrimination
from localfields.experiments import Experiment, Training
from localfields.figures.base import Claim, FigureScale, PaperFigure, Results, at, spread, verdict
from localfields.networks import SingleNeuron
from localfields.stimuli import NLGP


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """What is to be run, by name; `tiny` is the least that runs, for tests."""
    task = Discrimination(*(NLGP((40,), xi=xi, gain=100.0) for xi in (1.0, 3.0)))
    method = Training(
        learning_rate=0.05,
        steps=at(scale, paper=5000, quick=2000, tiny=20),
        batch=at(scale, paper=200, quick=100, tiny=10),
        members=at(scale, paper=10, quick=3, tiny=2),
        estimator="orbit",
        every=at(scale, paper=50, quick=50, tiny=10),
    )
    return {"training": Experiment(task, SingleNeuron(), method)}


def draw(results: Results) -> Any:
    """A matplotlib figure of the stored runs: `results["training"]` is a `Trajectory`."""
    from matplotlib.figure import (
        Figure,
    )  # here, so that importing the file loads no plotting library

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    ax = figure.subplots()
    run = results["training"]
    ax.plot(run.times, ...)  # FILL IN what is drawn, (time, lines)
    ax.set(xlabel="flow time", ylabel="what the axis shows")
    return figure


def claims(results: Results) -> Sequence[Claim]:
    """Rows of the ledger: what is claimed, printed and found."""
    found = ...  # FILL IN what is found, one number per member
    holds = ...  # FILL IN whether the claim holds
    return [
        Claim(
            id="X1",
            statement="What is claimed, in a sentence",
            published="as printed, with figure or page",
            measured=spread(found),
            verdict=verdict(holds),
            reason="Why it counts as reproduced or not, in a sentence.",
            how="how the number is obtained",
        )
    ]


FIGURE = PaperFigure(
    name="my-figure",
    title="Above the figure",
    caption="What is to be seen.",
    setting=lambda scale: "N = 40, ξ = (1, 3), gain 100, estimator orbit: the settings in words.",
    draw=draw,
    claims=claims,
    experiments=experiments,
    extra=True,  # made only when it is named
)
