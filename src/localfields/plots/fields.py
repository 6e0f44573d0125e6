"""Receptive fields over flow time in the paper's colors: blue for early, red for late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .stimulus import GRAY

EARLY_TO_LATE = ("#08519C", "#3F6FC4", "#9467A8", "#D6604D", "#B2182B")
SMALL = 8  # points, of ticks and small labels


def time_colors() -> Any:
    """The matplotlib colormap of flow time, from blue to red, dark enough to be seen on white all along."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("flow time", EARLY_TO_LATE)


def draw_over_time(
    ax: Any,
    fields: np.ndarray,
    times: np.ndarray,
    *,
    until: float | None = None,
    curves: int = 100,
    lw: float = 0.7,
) -> None:
    """A receptive field on a ring at many flow times, the color of each curve telling when.

    Args:
        ax: Matplotlib axes.
        fields: One field a record, (time, site).
        times: Flow time of each record, (time,).
        until: Flow time that is all red; the last record by default. Give the same to panels that share a color bar.
        curves: At most so many records are drawn, evenly spaced, the first and the last among them.
        lw: Width of a curve; the last one is drawn twice as wide.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> draw_over_time(ax, np.eye(3), np.arange(3.0))
        >>> len(ax.collections[0].get_segments())
        3
    """
    from matplotlib.collections import LineCollection

    fields, times = np.asarray(fields, float), np.asarray(times, float)
    chosen = np.unique(
        np.linspace(0, len(fields) - 1, min(curves, len(fields))).round().astype(int)
    )
    sites = np.arange(fields.shape[1])
    lines = [np.column_stack([sites, field]) for field in fields[chosen]]
    widths = np.full(len(lines), lw)
    widths[-1] = 2 * lw
    until = float(times[-1]) if until is None else until
    shown = LineCollection(lines, cmap=time_colors(), linewidths=widths, capstyle="round")
    shown.set_array(times[chosen])
    shown.set_clim(0, until if until > 0 else 1)
    ax.axhline(0, color=GRAY, lw=0.5, zorder=0)
    ax.add_collection(shown)
    ax.set_xlim(-0.5, len(sites) - 0.5)
    ax.locator_params(axis="x", integer=True, nbins=6)
    ax.autoscale_view(scalex=False)
    ax.tick_params(labelsize=SMALL)


def make_small(axes: Iterable[Any]) -> None:
    """Panels among many: small ticks and labels, no frame above and on the right."""
    for ax in axes:
        ax.tick_params(labelsize=SMALL)
        ax.xaxis.label.set_fontsize(SMALL)
        ax.yaxis.label.set_fontsize(SMALL)
        ax.spines[["top", "right"]].set_visible(False)


def add_time_bar(figure: Any, axes: Any, until: float, label: str = "flow time") -> Any:
    """A slim color bar beside axes that tells flow time from color.

    Args:
        figure: Matplotlib figure.
        axes: The axes it belongs to, one or an array of them.
        until: Flow time that is all red.
        label: Beside it.

    Returns:
        The color bar.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colors = ScalarMappable(Normalize(0, until if until > 0 else 1), time_colors())
    bar = figure.colorbar(colors, ax=axes, fraction=0.03, pad=0.015, aspect=40)
    bar.set_label(label, fontsize=SMALL + 1)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    return bar


def draw_pictures(ax: Any, fields: np.ndarray, columns: int, gap: int = 1) -> None:
    """Receptive fields on a torus as a sheet of pictures, each on its own scale: red positive, blue negative.

    Args:
        ax: Matplotlib axes.
        fields: (field, row, column).
        columns: How many pictures side by side.
        gap: Width of the white lines between them, in sites.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> draw_pictures(ax, np.ones((5, 4, 4)), columns=3)
        >>> ax.images[0].get_array().shape
        (9, 14)
    """
    fields = np.asarray(fields, float)
    count, height, width = fields.shape
    rows = -(-count // columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for place, field in enumerate(fields):
        top, left = place // columns * (height + gap), place % columns * (width + gap)
        sheet[top : top + height, left : left + width] = field / (np.abs(field).max() or 1.0)
    ax.imshow(np.ma.masked_invalid(sheet), cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_axis_off()


def draw_many(axes: Any, fields: np.ndarray, times: np.ndarray) -> None:
    """Fields of several neurons over time, on one scale; a field far beyond the others has its own, in red numbers.

    Args:
        axes: Matplotlib axes, one a neuron; those left over are hidden.
        fields: (time, neuron, site).
        times: Flow time of each record, (time,).
    """
    largest = np.abs(fields).max(axis=(0, 2))
    limit = 1.15 * float(np.max(largest[largest <= 2.5 * np.median(largest)], initial=0.0)) or 1.0
    for neuron, ax in enumerate(axes):
        if neuron >= fields.shape[1]:
            ax.set_axis_off()
            continue
        draw_over_time(ax, fields[:, neuron], times, curves=60, lw=0.6)
        if len(fields) == 1:  # no time to tell
            ax.collections[0].set(array=None, color="black")
        own = largest[neuron] > limit
        bound = 1.15 * float(largest[neuron]) if own else limit
        ax.set_ylim(-bound, bound)
        ax.locator_params(axis="y", nbins=4)
        ax.tick_params(axis="y", labelcolor=EARLY_TO_LATE[-1] if own else "black")
        ax.spines[["top", "right"]].set_visible(False)
