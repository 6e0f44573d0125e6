"""Pictures of a trajectory: fields over time, IPR and loss."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..trajectory import Trajectory, localized_from
from .stimulus import BLUE, GRAY, draw_sample


def draw_fields(
    ax: Any, run: Trajectory, member: int = 0, neuron: int = 0, curves: int = 40
) -> None:
    """A field over flow time: early is pale, late is dark. On a torus, the last field as a picture."""
    from matplotlib import colormaps

    fields = (
        run.weights[member, :, neuron]
        if "weights" in run.series
        else run.final[None, member, neuron]
    )
    if len(run.shape) > 1:
        draw_sample(ax, fields[-1], run.shape)
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
    """Fields of the first members (or neurons), IPR and loss; on a torus also from where on a field is localized."""
    from matplotlib.figure import Figure

    torus = len(run.shape) > 1
    rows, columns = (3, 4) if torus else (2, 2)
    places = [(m, k) for m in range(run.num_members) for k in range(run.initial.shape[1])][
        : rows * columns
    ]
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    fields = grid[:, :2].subgridspec(rows, columns)
    for place, (member, neuron) in enumerate(places):
        ax = figure.add_subplot(fields[place // columns, place % columns])
        draw_fields(ax, run, member, neuron)
        ax.set_title(f"member {member}, neuron {neuron}", fontsize=7 if torus else 9)
    ax = figure.add_subplot(grid[0, 2])
    top = 1.02
    if {"weights", "ipr"} & set(run.series):
        ratios = run.ipr.mean(axis=2)
        draw_series(ax, run.times, ratios)
        if torus:  # of many sites even a small part is a small ratio: 1 would be a single one
            border = localized_from(math.prod(run.shape))
            top = min(1.02, max(1.15 * float(np.nanmax(ratios, initial=0.0)), 1.5 * border))
            ax.axhline(border, color=GRAY, lw=0.8, ls="--")
            ax.text(
                run.times.max(), border, "localized above ", fontsize=7, ha="right", va="bottom"
            )
    ax.set_ylim(0, top)
    ax.set_title("inverse participation ratio", fontsize=9)
    ax = figure.add_subplot(grid[1, 2])
    if "loss" in run.series:
        draw_series(ax, run.times, run.loss)
    ax.set_title("held-out loss", fontsize=9)
    figure.savefig(path, dpi=150)
