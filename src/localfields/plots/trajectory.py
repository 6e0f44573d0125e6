"""Pictures of a trajectory: fields over time, IPR and loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..trajectory import Trajectory
from .stimulus import BLUE, GRAY


def draw_fields(ax: Any, run: Trajectory, member: int = 0, neuron: int = 0, curves: int = 40) -> None:
    """A field over flow time: early is pale, late is dark. On a torus, the last field as a picture."""
    from matplotlib import colormaps

    fields = run.weights[member, :, neuron] if "weights" in run.series else run.final[None, member, neuron]
    if len(run.shape) > 1:
        picture = fields[-1].reshape(run.shape[0], run.shape[1], -1)[:, :, 0]
        limit = float(np.abs(picture).max()) or 1.0
        ax.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        ax.set_xticks([])
        ax.set_yticks([])
        return
    chosen = np.unique(np.linspace(0, len(fields) - 1, curves).astype(int))
    shades = colormaps["viridis_r"](np.linspace(0.05, 1, len(chosen)))
    ax.axhline(0, color=GRAY, lw=0.5)
    for index, shade in zip(chosen, shades, strict=True):
        ax.plot(fields[index], color=shade, lw=0.9)
    ax.set_xlabel("site")


def draw_series(ax: Any, times: np.ndarray, values: np.ndarray, color: str = BLUE) -> None:
    """One curve a member over flow time, and their mean."""
    every = np.broadcast_to(times, values.shape)
    for time, value in zip(every, values, strict=True):
        ax.plot(time, value, color=color, lw=0.7, alpha=max(0.15, 1 / len(values)))
    if times.ndim == 1:
        ax.plot(times, values.mean(axis=0), color=color, lw=1.8)
    ax.set_xlabel("flow time")


def save_overview(run: Trajectory, path: Path) -> None:
    """Fields of the first members (or neurons), IPR and loss."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places = [(m, k) for m in range(run.num_members) for k in range(run.initial.shape[1])][:4]
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 3)
    for place, (member, neuron) in enumerate(places):
        ax = figure.add_subplot(grid[place // 2, place % 2])
        draw_fields(ax, run, member, neuron)
        ax.set_title(f"member {member}, neuron {neuron}", fontsize=9)
    ax = figure.add_subplot(grid[0, 2])
    if {"weights", "ipr"} & set(run.series):
        draw_series(ax, run.times, run.ipr.mean(axis=2))
    ax.set_ylim(0, 1.02)
    ax.set_title("inverse participation ratio", fontsize=9)
    ax = figure.add_subplot(grid[1, 2])
    if "loss" in run.series:
        draw_series(ax, run.times, run.loss)
    ax.set_title("held-out loss", fontsize=9)
    figure.savefig(path, dpi=150)
