"""Draw the picture of the README, one neuron on two marginals: `python scripts/picture.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import localfields as lf

TARGET = Path(__file__).parents[1] / "docs" / "assets" / "born.png"
BLUE, ORANGE = "#0072B2", "#D55E00"
STIMULI = {
    "two values: a bump is born": (lf.stimuli.NLGP((40,), xi=3, gain=100), ORANGE),
    "normal: the field stays broad": (lf.stimuli.Gaussian((40,), xi=3), BLUE),
}


def draw(target: Path, steps: int = 600) -> None:
    """Train a neuron on either stimulus, and draw what it saw and what became of it."""
    import jax
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    grid = figure.subplots(2, 3, width_ratios=[1.3, 1, 1.9])
    for row, (title, (long, color)) in zip(grid, STIMULI.items(), strict=True):
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
        lf.plots.sample(long.sample(jax.random.key(0), 1)[0], color=color, ax=row[0])
        lf.plots.density(long.marginal(), color=color, ax=row[1])
        lf.plots.fields(run, ax=row[2])
        row[2].set_title(title, fontsize=10)
        for ax in row:
            ax.tick_params(labelsize=7)
            ax.set_ylabel("")
        if row[1].get_legend() is not None:
            row[1].get_legend().remove()
    grid[0, 0].set_title("what it sees", fontsize=10)
    grid[0, 1].set_title("marginal of one site", fontsize=10)
    for ax in grid[0]:
        ax.set_xlabel("")
    figure.savefig(target, dpi=160)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
