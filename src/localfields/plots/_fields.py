"""Receptive fields: one over flow time, and many beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..trajectory import Trajectory, inverse_participation_ratio, localized_from
from ._style import (
    BLUE,
    EARLY_TO_LATE,
    EXTENDED,
    GRAY,
    LOCALIZED,
    SMALL,
    Axes,
    AxesLike,
    add_time_bar,
    make_small,
    new_axes,
    new_panels,
    time_colors,
)

LARGEST_SHEET = 40  # fields that `final_fields` draws


def fields(
    run: Trajectory,
    member: int = 0,
    neuron: int = 0,
    *,
    until: float | None = None,
    curves: int = 100,
    ax: AxesLike = None,
) -> Axes:
    """Draw a receptive field over flow time, from blue (early) to red (late).

    A new figure has a color bar that tells the time. A field on a torus is drawn as a picture at
    its last record.

    Args:
        run: What `train` or `solve` returned.
        member: Index of the member.
        neuron: Index of the neuron.
        until: Flow time that is all red; the last record by default.
        curves: Draw at most this many records, evenly spaced.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> flow = lf.solve(task, lf.theory.ExactIsing(), members=2)
        >>> ax = lf.plots.fields(flow, member=1)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('site', 'weight')
    """
    own = ax is None or callable(ax)
    axes = new_axes(ax)
    # A run may have recorded other quantities only: then its last fields are all there is.
    shown = run.weights[member, :, neuron] if "weights" in run.series else None
    last = run.final[member, neuron] if shown is None else shown[-1]
    if len(run.shape) > 1:
        return sample(last, run.shape, ax=axes)
    times = run.times if run.times.ndim == 1 else run.times[member]
    if shown is None:
        shown, times = last[None], times[-1:]
    draw_over_time(axes, shown, times, until=until, curves=curves)
    axes.set_xlabel("site")
    axes.set_ylabel("weight")
    make_small([axes])
    if own:
        add_time_bar(axes.figure, axes, float(times[-1]) if until is None else until)
    return axes


def sample(
    values: Any, shape: tuple[int, ...] | None = None, *, color: str = BLUE, ax: AxesLike = None
) -> Axes:
    """Draw one sample, or any values on a lattice: a curve on a ring, a picture on a torus.

    Args:
        values: One value per site; of a lattice with three axes the first slice is drawn.
        shape: Shape of the lattice; that of the values by default.
        color: Color of the curve.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> stimulus = lf.stimuli.Ising((12,), coupling=0.7)
        >>> ax = lf.plots.sample(stimulus.sample(0, 1)[0])
        >>> len(ax.lines[-1].get_ydata())
        12
    """
    axes = new_axes(ax)
    values = np.asarray(values)
    sides: tuple[int, ...] = values.shape if shape is None else shape
    if len(sides) == 1:
        axes.axhline(0, color=GRAY, lw=0.5)
        style = "steps-mid" if sides[0] <= 200 else "default"
        axes.plot(np.arange(sides[0]), values, color=color, lw=1.2, drawstyle=style)
        axes.set_xlim(-0.5, sides[0] - 0.5)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("site")
        make_small([axes])
        return axes
    picture = values.reshape(*sides[:2], -1)[:, :, 0]
    limit = float(np.abs(picture).max()) or 1.0
    axes.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def draw_over_time(
    ax: Any,
    fields: np.ndarray,
    times: np.ndarray,
    *,
    until: float | None = None,
    curves: int = 100,
    lw: float = 0.7,
) -> None:
    """Draw fields (time, site) of a ring, the color of each curve telling its flow time.

    At most `curves` records are drawn, the first and the last among them; the last twice as wide.
    """
    from matplotlib.collections import LineCollection

    fields, times = np.asarray(fields, float), np.asarray(times, float)
    records = np.unique(
        np.linspace(0, len(fields) - 1, min(curves, len(fields))).round().astype(int)
    )
    sites = np.arange(fields.shape[1])
    widths = np.full(len(records), lw)
    widths[-1] = 2 * lw
    until = float(times[-1]) if until is None else until
    lines = LineCollection(
        [np.column_stack([sites, field]) for field in fields[records]],
        cmap=time_colors(),
        linewidths=widths,
        capstyle="round",
    )
    lines.set_array(times[records])
    lines.set_clim(0, until if until > 0 else 1)
    ax.axhline(0, color=GRAY, lw=0.5, zorder=0)
    ax.add_collection(lines)
    ax.set_xlim(-0.5, len(sites) - 0.5)
    ax.locator_params(axis="x", integer=True, nbins=6)
    ax.autoscale_view(scalex=False)
    ax.tick_params(labelsize=SMALL)


def draw_many(axes: Any, fields: np.ndarray, times: np.ndarray) -> None:
    """Draw fields (time, neuron, site) of several neurons over time, one axes each, on one scale.

    A field far beyond the others has a scale of its own, in red numbers. Axes left over are hidden.
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
        own_scale = largest[neuron] > limit
        bound = 1.15 * float(largest[neuron]) if own_scale else limit
        ax.set_ylim(-bound, bound)
        ax.locator_params(axis="y", nbins=4)
        ax.tick_params(axis="y", labelcolor=EARLY_TO_LATE[-1] if own_scale else "black")
        ax.spines[["top", "right"]].set_visible(False)


def pictures(fields: Any, columns: int = 8, *, gap: int = 1, ax: AxesLike = None) -> Axes:
    """Draw fields on a torus as a sheet of pictures, each on its own scale.

    Red is positive and blue negative.

    Args:
        fields: Fields, (field, row, column).
        columns: Number of pictures side by side.
        gap: Width of the white lines between them, in sites.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import numpy as np, localfields as lf
        >>> ax = lf.plots.pictures(np.ones((5, 4, 4)), columns=3)
        >>> ax.images[0].get_array().shape
        (9, 14)
    """
    axes = new_axes(ax)
    fields = np.asarray(fields, float)
    count, height, width = fields.shape
    rows = -(-count // columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for place, field in enumerate(fields):
        top, left = place // columns * (height + gap), place % columns * (width + gap)
        sheet[top : top + height, left : left + width] = field / (np.abs(field).max() or 1.0)
    image = np.ma.masked_invalid(sheet)
    axes.imshow(image, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    return axes


def is_localized(fields: np.ndarray, axes: int) -> np.ndarray:
    """Which fields are localized; a field of zeros is not."""
    size = int(np.prod(fields.shape[fields.ndim - axes :]))
    return np.nan_to_num(inverse_participation_ratio(fields, axes)) > localized_from(size)


def select_fields(fields: np.ndarray, axes: int, count: int) -> np.ndarray:
    """Indices of a few fields, from the most to the least localized, evenly spaced in between."""
    order = np.argsort(-np.nan_to_num(inverse_participation_ratio(fields, axes)), kind="stable")
    ranks = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    return order[np.unique(ranks)]


def draw_stack(ax: Any, fields: np.ndarray, shown: int = 5) -> None:
    """Draw a few fields (field, site) of a ring above each other, evenly spaced in IPR.

    Each has its own scale; localized ones are orange.
    """
    fields = np.asarray(fields, float)
    for place, field in enumerate(fields[select_fields(fields, 1, shown)]):
        largest = field[np.abs(field).argmax()] or 1.0
        color = LOCALIZED if is_localized(field[None], 1)[0] else EXTENDED
        ax.axhline(-2.2 * place, color=GRAY, lw=0.4)
        ax.plot(np.arange(len(field)), field / largest - 2.2 * place, color=color, lw=1.1)
    ax.set_xlim(-0.5, fields.shape[1] - 0.5)
    ax.set_ylim(-2.2 * (min(shown, len(fields)) - 1) - 1.15, 1.15)
    ax.set_axis_off()


def draw_sheet(ax: Any, fields: np.ndarray, columns: int = 3, rows: int = 2) -> None:
    """Draw a few fields (field, row, column) of a torus as pictures, evenly spaced in IPR."""
    pictures(fields[select_fields(fields, 2, columns * rows)], columns, ax=ax)


def final_fields(run: Trajectory, member: int = 0, *, ax: Any = None) -> np.ndarray:
    """Draw the final fields of a member, at most 40, each on its own scale with its IPR.

    Localized fields are orange.

    Args:
        run: What `train`, `solve` or a baseline's `fit` returned.
        member: Index of the member.
        ax: One axes per field; a new figure by default.

    Returns:
        The axes, one per field.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Kur((40,), xi=xi, k=10) for xi in (1, 3)))
        >>> fit = lf.Fit(lf.baselines.PCA(6), samples=500)
        >>> axes = lf.plots.final_fields(lf.Experiment(task, method=fit).run())
        >>> len(axes), axes[0].get_title()[:3]
        (6, '0: ')
    """
    all_fields = run.final[member]
    shown = all_fields[:LARGEST_SHEET]
    dimensions = len(run.shape)
    columns = min(8, len(shown))
    rows = -(-len(shown) // columns)
    layout = [
        [
            f"{place:02}" if place < len(shown) else "."
            for place in range(row * columns, (row + 1) * columns)
        ]
        for row in range(rows)
    ]
    axes = new_panels(ax, layout, (1.35 * columns + 0.4, 1.1 * rows + 0.5))
    ratios, local = inverse_participation_ratio(shown, dimensions), is_localized(shown, dimensions)
    for place, (panel, field) in enumerate(zip(axes, shown, strict=True)):
        color = LOCALIZED if local[place] else EXTENDED
        if dimensions == 1:
            panel.axhline(0, color=GRAY, lw=0.4)
            panel.plot(field, color=color, lw=1.1)
        else:
            pictures(field.reshape(*run.shape[:2], -1)[None, :, :, 0], columns=1, ax=panel)
        panel.set_axis_off()
        panel.set_title(f"{place}: {ratios[place]:.3f}", fontsize=SMALL, color=color)
    if ax is None or callable(ax):
        more = (
            ""
            if len(shown) == len(all_fields)
            else f", the first {len(shown)} of {len(all_fields)}"
        )
        title = f"fields and their inverse participation ratios{more}; orange: localized"
        axes[0].figure.suptitle(title, fontsize=9)
    return axes
