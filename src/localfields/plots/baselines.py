"""Pictures of fields that have no history: what a baseline has learned, and many methods beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..trajectory import Trajectory, inverse_participation_ratio, localized_from
from .fields import SMALL, draw_pictures
from .stimulus import BLUE, GRAY, ORANGE

LOCALIZED, SPREAD_OUT = ORANGE, BLUE
MOST = 40  # fields on one sheet


def is_localized(fields: np.ndarray, axes: int) -> np.ndarray:
    """Which fields are; one of zeros is not."""
    size = int(np.prod(fields.shape[fields.ndim - axes :]))
    return np.nan_to_num(inverse_participation_ratio(fields, axes)) > localized_from(size)


def draw_stack(ax: Any, fields: np.ndarray, shown: int = 5) -> None:
    """A few fields on a ring, one above the other, evenly spaced in IPR; orange where localized, each on its own scale.

    Args:
        ax: Matplotlib axes.
        fields: (field, site).
        shown: How many.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> draw_stack(ax, np.eye(8), shown=3)
        >>> len(ax.lines)
        6
    """
    fields = np.asarray(fields, float)
    for place, field in enumerate(fields[chosen(fields, 1, shown)]):
        largest = field[np.abs(field).argmax()] or 1.0
        color = LOCALIZED if is_localized(field[None], 1)[0] else SPREAD_OUT
        ax.axhline(-2.2 * place, color=GRAY, lw=0.4)
        ax.plot(np.arange(len(field)), field / largest - 2.2 * place, color=color, lw=1.1)
    ax.set_xlim(-0.5, fields.shape[1] - 0.5)
    ax.set_ylim(-2.2 * (min(shown, len(fields)) - 1) - 1.15, 1.15)
    ax.set_axis_off()


def draw_sheet(ax: Any, fields: np.ndarray, columns: int = 3, rows: int = 2) -> None:
    """A few fields on a torus as pictures, evenly spaced in IPR.

    Args:
        ax: Matplotlib axes.
        fields: (field, row, column).
        columns: Pictures side by side.
        rows: Of them.
    """
    draw_pictures(ax, fields[chosen(fields, 2, columns * rows)], columns)


def chosen(fields: np.ndarray, axes: int, count: int) -> np.ndarray:
    """Places of a few fields, from the most to the least localized, evenly spaced in that order."""
    order = np.argsort(-np.nan_to_num(inverse_participation_ratio(fields, axes)), kind="stable")
    return order[
        np.unique(np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int))
    ]


def save_fields(run: Trajectory, path: Path) -> None:
    """All fields of the first member (at most 40), each on its own scale with its IPR; orange where localized."""
    from matplotlib.figure import Figure

    fields = run.final[0][:MOST]
    axes = len(run.shape)
    columns = min(8, len(fields))
    rows = -(-len(fields) // columns)
    figure = Figure(figsize=(1.35 * columns + 0.4, 1.1 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    values, local = inverse_participation_ratio(fields, axes), is_localized(fields, axes)
    for place, ax in enumerate(grid.ravel()):
        ax.set_axis_off()
        if place >= len(fields):
            continue
        color = LOCALIZED if local[place] else SPREAD_OUT
        if axes == 1:
            ax.axhline(0, color=GRAY, lw=0.4)
            ax.plot(fields[place], color=color, lw=1.1)
        else:
            flat = fields[place].reshape(run.shape[0], run.shape[1], -1)[None, :, :, 0]
            draw_pictures(ax, flat, columns=1)
        ax.set_title(f"{place}: {values[place]:.3f}", fontsize=SMALL, color=color)
    more = "" if len(run.final[0]) <= MOST else f", the first {MOST} of {len(run.final[0])}"
    figure.suptitle(
        f"fields and their inverse participation ratios{more}; orange: localized", fontsize=9
    )
    figure.savefig(path, dpi=150)
