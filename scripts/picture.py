"""The picture of the README: one neuron, the same lengthscales, two laws of a site. `python scripts/picture.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import localfields as lf
from localfields.plots.prediction import draw_law
from localfields.plots.stimulus import BLUE, ORANGE, draw_sample
from localfields.plots.trajectory import draw_fields

TARGET = Path(__file__).parents[1] / "docs" / "assets" / "born.png"
LAWS = {
    "two values: a bump is born": (lf.stimuli.NLGP((40,), xi=3, gain=100), ORANGE),
    "normal: the field stays broad": (lf.stimuli.Gaussian((40,), xi=3), BLUE),
}


def draw(target: Path, steps: int = 600) -> None:
    """Train a neuron on either law, and draw what it saw and what became of it."""
    import jax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, 3, width_ratios=[1.3, 1, 1.9])
    for row, (title, (long, color)) in zip(grid, LAWS.items(), strict=True):
        task = lf.Discrimination(long.replace(xi=1), long)
        record = lf.Record(every=max(steps // 100, 1))
        run = lf.train(
            task,
            lf.networks.SingleNeuron(),
            steps=steps,
            batch=100,
            seed=1,
            estimator="orbit",
            record=record,
        )
        draw_sample(row[0], np.asarray(long.sample(jax.random.key(0), 1)[0]), long.shape, color)
        draw_law(row[1], long.marginal(), color)
        draw_fields(row[2], run)
        row[2].set_title(title, fontsize=10)
        for ax in row:
            ax.tick_params(labelsize=7)
            ax.set_ylabel("")
        if row[1].get_legend() is not None:
            row[1].get_legend().remove()
    for ax, title in zip(grid[0], ("what it sees", "law of one site", None), strict=True):
        if title:
            ax.set_title(title, fontsize=10)
    for ax in grid[0]:
        ax.set_xlabel("")
    figure.savefig(target, dpi=160)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
