"""Draw every public plot into docs/assets/plots: `python scripts/plot_gallery.py`."""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import localfields as lf

FOLDER = Path(__file__).parents[1] / "docs" / "assets" / "plots"
LARGEST = 40_000  # bytes of a picture


def gallery() -> dict[str, Callable[[], Any]]:
    """One drawing per public plot, by its name."""
    plots = lf.plots
    binary = lf.stimuli.NLGP((40,), xi=3, gain=100)
    kur = lf.stimuli.Kur((40,), xi=3, k=5)
    task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
    record = lf.Record(every=20, quantities=("weights", "loss"))
    run = lf.train(
        task,
        lf.networks.SingleNeuron(init_scale=0.001),
        learning_rate=0.05,
        steps=2000,
        batch=500,
        members=12,
        record=record,
    )
    flow = lf.solve(task, lf.theory.ExactIsing(), initial=run.initial, times=run.times)
    split = lf.Discrimination(
        *(lf.stimuli.NLGP((40,), xi=xi, gain=3) for xi in (1, 2)), labels="signs"
    )
    committee = lf.networks.Committee(40, activation="erf", bias="trained")
    biases = lf.Record(every=1000, quantities=("weights", "biases"))
    many = lf.train(
        split, committee, learning_rate=20, steps=3000, batch=20, estimator="orbit", record=biases
    )
    photographs = lf.stimuli.ImagePatches(shape=(10, 10), patches=20_000)
    images = lf.Experiment(
        lf.data.blurs(photographs, (0, 1)), method=lf.Fit(lf.baselines.FastICA(40), samples=20_000)
    ).run()
    return {
        "amplifier": lambda: plots.amplifier(binary.marginal(), ax=Figure),
        "comparison": lambda: plots.comparison(run, flow, ax=Figure),
        "covariance": lambda: plots.covariance(kur, kur.sample(0, 100_000), ax=Figure),
        "density": lambda: plots.density(kur.marginal(), ax=Figure),
        "fields": lambda: plots.fields(run, ax=Figure),
        "final_fields": lambda: plots.final_fields(images, ax=Figure),
        "ipr": lambda: plots.ipr(run, ax=Figure),
        "loss": lambda: plots.loss(run, ax=Figure),
        "marginal": lambda: plots.marginal(kur, kur.sample(0, 100_000), ax=Figure),
        "overview": lambda: plots.overview(run, ax=Figure),
        "pictures": lambda: plots.pictures(images.final[0], columns=8, ax=Figure),
        "populations": lambda: plots.populations(many, ax=Figure),
        "prediction": lambda: plots.prediction(lf.predict(task), ax=Figure),
        "sample": lambda: plots.sample(binary.sample(0, 1)[0], ax=Figure),
        "spectrum": lambda: plots.spectrum(run, ax=Figure),
        "stimulus": lambda: plots.stimulus(kur, ax=Figure),
        "sweep": lambda: plots.sweep(_sweep(), ax=Figure),
        "tuning": lambda: plots.tuning(images, ax=Figure),
    }


def _sweep() -> Any:
    """A phase diagram: theory at several lengthscales and tails."""
    base = lf.Experiment(
        lf.Discrimination(*(lf.stimuli.Kur((40,), xi=xi, k=5) for xi in (0.5, 1))),
        method=lf.Solution(lf.theory.EffectiveFlow(), until=300.0),
    )
    axes = {"k": [4.1, 4.5, 5, 6, 8, 12, 20, 50], "stimuli.1.xi": [0.7, 1.0, 1.5, 2.0, 3.0]}
    with tempfile.TemporaryDirectory() as folder:
        return lf.experiments.run_sweep(lf.Sweep(base, axes), lf.Store(folder)).dataset()


def draw(folder: Path) -> None:
    """Draw all of them, each small enough for a page."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = gallery()
    public = {name for name, plot in vars(lf.plots).items() if inspect.isfunction(plot)}
    assert set(drawings) == public, set(drawings) ^ public
    for name, drawing in drawings.items():
        figure = np.ravel(np.asarray(drawing(), dtype=object))[0].figure
        path = folder / f"{name}.png"
        _save(figure, path)
        print(f"{name}: {path.stat().st_size} bytes")
        assert path.stat().st_size <= LARGEST, f"{name} is larger than {LARGEST} bytes"


def _save(figure: Any, path: Path) -> None:
    """Save with 200 colors: enough for plots, and half of the bytes."""
    from PIL import Image

    figure.savefig(path, dpi=80)
    with Image.open(path) as image:
        image.convert("RGB").quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
