"""Pictures of a comparison: fields side by side, distance over time, localization and final peaks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.compare import Comparison, compare, fields_at
from ..trajectory import Trajectory, localized_from
from .fields import SMALL
from .stimulus import BLUE, GRAY, GREEN, ORANGE

DASHED = (0, (2.5, 1.2))


def draw_comparison(
    figure: Any, run: Trajectory, sol: Trajectory, member: int | None = None, neuron: int = 0
) -> Any:
    """Four panels on a matplotlib figure: fields, distance and cosine, IPR with onsets, final peaks.

    Args:
        figure: An empty figure.
        run: The first trajectory, drawn solid.
        sol: The second, drawn dashed.
        member: Whose fields are shown; the first that ended well by default.
        neuron: Which of its fields.

    Returns:
        The four axes, in an array of two rows.
    """
    found = compare(run, sol)
    member = int(found.ok.argmax()) if member is None else member
    axes = figure.subplots(2, 2, width_ratios=(1.25, 1))
    draw_pair(axes[0, 0], run, sol, found, member, neuron)
    draw_agreement(axes[0, 1], found)
    draw_localization(axes[1, 0], found)
    draw_peaks(axes[1, 1], found)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        ax.set_title(f"{letter}   {ax.get_title('left')}", loc="left", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    return axes


def save_comparison(
    run: Trajectory, sol: Trajectory, path: Path, member: int | None = None, neuron: int = 0
) -> None:
    """The four panels as a file, of the kind its name ends in."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    draw_comparison(figure, run, sol, member, neuron)
    figure.savefig(path, dpi=150)


def draw_pair(
    ax: Any,
    run: Trajectory,
    sol: Trajectory,
    found: Comparison,
    member: int = 0,
    neuron: int = 0,
    curves: int = 4,
) -> None:
    """A field of both at a few times, the first solid and the second dashed; on a torus, both at the end."""
    here = found.inside[member]
    times = np.broadcast_to(found.times, found.inside.shape)[member, here]
    first = run.weights[member, found.records[here], neuron].astype(np.float64)
    second = fields_at(sol, member, times)[0][:, neuron]
    which = f"member {member}" + (f", neuron {neuron}" if run.initial.shape[1] > 1 else "")
    ax.set_title(which, loc="left", fontsize=9)
    if first.ndim > 2:
        _draw_pictures(ax, first[-1], second[-1], found.names, times[-1])
        return
    from matplotlib import colormaps

    ax.axhline(0, color=GRAY, lw=0.5)
    chosen = _milestones(first, curves)
    for index, shade in zip(
        chosen, colormaps["viridis_r"](np.linspace(0.2, 1, len(chosen))), strict=True
    ):
        ax.plot(first[index], color=shade, lw=1.6, label=f"time {times[index]:.3g}")
        ax.plot(second[index], color=shade, lw=1.6, ls=DASHED)
    ax.set_xlim(-0.5, run.shape[0] - 0.5)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("site")
    ax.set_ylabel("weight")
    styles = [ax.plot([], [], color="k", lw=1.2, ls=style)[0] for style in ("-", DASHED)]
    ax.add_artist(_legend_above(ax, styles, found.names))
    ax.legend(frameon=False, fontsize=SMALL)


def _legend_above(ax: Any, lines: Any, labels: Any) -> Any:
    """A legend on the line of the title, where no curve can be."""
    place = dict(loc="lower right", bbox_to_anchor=(1.0, 0.985), borderpad=0.1, borderaxespad=0.1)
    return ax.legend(
        lines, labels, frameon=False, fontsize=SMALL, ncols=len(labels), columnspacing=1.2, **place
    )


def _milestones(fields: np.ndarray, curves: int) -> np.ndarray:
    """Records at which a field has gone even parts of its way; its time is mostly spent at rest."""
    way = np.sqrt(((fields - fields[0]) ** 2).reshape(len(fields), -1).sum(axis=1))
    goals = way.max() * np.linspace(0, 1, curves)[1:-1]
    return np.unique([0, *(int((way >= goal).argmax()) for goal in goals), len(fields) - 1])


def _draw_pictures(
    ax: Any, first: np.ndarray, second: np.ndarray, names: tuple[str, str], time: float
) -> None:
    pictures = [field.reshape(*field.shape[:2], -1)[:, :, 0] for field in (first, second)]
    rows, width = pictures[0].shape
    gap = max(1, width // 8)
    both = np.concatenate([pictures[0], np.full((rows, gap), np.nan), pictures[1]], axis=1)
    limit = float(np.nanmax(np.abs(both), initial=0)) or 1.0
    ax.imshow(both, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set_xticks([(width - 1) / 2, width + gap + (width - 1) / 2], names, fontsize=9)
    ax.tick_params(length=0)
    ax.set_yticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel(f"time {time:.3g}")


def draw_agreement(ax: Any, found: Comparison) -> None:
    """Relative distance and cosine over flow time: median and middle 80 % of the fields."""
    lines = [
        _draw_middle(ax, found, found.distance, ORANGE),
        _draw_middle(ax, found, found.cosine, GREEN),
    ]
    low, high = _reach(found, found.cosine, 0.02, 0.0), _reach(found, found.distance, 0.98, 1.0)
    ax.set_ylim(1.05 * min(0.0, low), 1.05 * max(1.0, high))
    ax.set_title("agreement", loc="left", fontsize=9)
    _legend_above(ax, lines, ("relative ℓ2 distance", "cosine"))
    _label_time(ax)


def _reach(found: Comparison, values: np.ndarray, quantile: float, least: float) -> float:
    """How far all but the most extreme values go: one field that runs away should not flatten the others."""
    values = values[found.ok]
    values = values[np.isfinite(values)]
    return float(np.quantile(values, quantile)) if values.size else least


def draw_localization(ax: Any, found: Comparison) -> None:
    """IPR of both over flow time; ticks on the threshold are onsets of members, triangles their medians."""
    threshold = localized_from(math.prod(found.shape))
    ax.axhline(threshold, color=GRAY, lw=0.7, ls=":")
    highest = max(_reach(found, ipr, 1.0, 1.0) for ipr in (found.ipr_first, found.ipr_second))
    top = min(1.02, 1.15 * max(3 * threshold, highest))
    lines, labels = [], []
    both = ((found.ipr_first, found.onset_first), (found.ipr_second, found.onset_second))
    looks = ((BLUE, "-", 2, "v", 0.06), (ORANGE, DASHED, 3, "^", -0.06))
    for (ipr, onset), name, (color, style, tick, triangle, away) in zip(
        both, found.names, looks, strict=True
    ):
        lines.append(_draw_middle(ax, found, ipr, color, style))
        onset = onset[found.ok & np.isfinite(onset)]
        ax.plot(
            onset,
            np.full(len(onset), threshold),
            color=color,
            ls="",
            marker=tick,
            ms=6,
            alpha=0.6,
            clip_on=False,
        )
        middle = float(np.median(onset)) if len(onset) else math.nan
        ax.plot(
            [middle],
            [threshold + away * top],
            color=color,
            ls="",
            marker=triangle,
            ms=6,
            clip_on=False,
            zorder=4,
        )
        labels.append(f"{name}, onset {middle:.3g}" if len(onset) else f"{name}, no onset")
    ax.set_ylim(0, top)
    ax.set_title("IPR", loc="left", fontsize=9)
    ax.set_ylabel("inverse participation ratio")
    _legend_above(ax, lines, labels)
    _label_time(ax)


def _label_time(ax: Any) -> None:
    ax.margins(x=0.02)
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel("flow time")


def _draw_middle(
    ax: Any, found: Comparison, values: np.ndarray, color: str, style: Any = "-"
) -> Any:
    """Median over members and neurons with the middle 80 %; one curve a field where members have their own times."""
    values = values[found.ok]
    if found.times.ndim == 2:
        for time, fields in zip(found.times[found.ok], values, strict=True):
            ax.plot(
                time,
                fields,
                color=color,
                lw=0.9,
                ls=style,
                alpha=max(0.25, values.shape[0] ** -0.5),
            )
        return ax.plot([], [], color=color, lw=1.6, ls=style)[0]
    columns = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    some = np.isfinite(columns).any(axis=1)
    if not some.any():
        return ax.plot([], [], color=color, lw=1.6, ls=style)[0]
    low, middle, high = (np.nanquantile(columns[some], q, axis=1) for q in (0.1, 0.5, 0.9))
    if columns.shape[1] > 1:
        ax.fill_between(found.times[some], low, high, color=color, alpha=0.15, lw=0)
    return ax.plot(found.times[some], middle, color=color, lw=1.6, ls=style)[0]


def draw_peaks(ax: Any, found: Comparison) -> None:
    """Where the final peaks lie: one site against the other on a ring, how far apart on a torus; gray is within ±1."""
    known = np.isfinite(found.peak_distance) & found.ok[:, None]
    first, second = found.peak_first[known], found.peak_second[known]
    count = int(known.sum())
    if len(found.shape) == 1:
        points, sides = np.stack([first, second], axis=1), found.shape * 2
        _draw_band(ax, found.shape[0])
        ax.set_xlim(-0.5, sides[0] - 0.5)
        ax.set_ylim(-0.5, sides[1] - 0.5)
        labels = tuple(f"site, {name}" for name in found.names)
    else:
        sides = np.array(found.shape)
        points = ((second - first + sides // 2) % sides - sides // 2)[:, [1, 0]]
        ax.fill_between([-1.5, 1.5], -1.5, 1.5, color=GRAY, alpha=0.25, lw=0)
        reach = np.array([sides[1], sides[0]]) / 2 + 0.5
        ax.set_xlim(-reach[0], reach[0])
        ax.set_ylim(reach[1], -reach[1])
        labels = ("sites apart, across", "sites apart, down")
    places, times = np.unique(points, axis=0, return_counts=True)
    ax.scatter(
        places[:, 0],
        places[:, 1],
        s=14 * times,
        color=BLUE,
        alpha=0.75,
        lw=0,
        zorder=3,
        clip_on=False,
    )
    ax.set_aspect("equal")
    ax.locator_params(integer=True, nbins=6)
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    same = int((found.peak_distance[known] == 0).sum())
    near = int((found.peak_distance[known] <= 1).sum())
    ax.set_title(f"final peaks: {same} of {count} exact, {near} within ±1", loc="left", fontsize=9)


def _draw_band(ax: Any, sites: int) -> None:
    """The diagonal with its neighbors, around the corners of the ring too."""
    line = np.array([-0.5, sites - 0.5])
    for shift in (-sites, 0, sites):
        ax.fill_between(line, line + shift - 1.5, line + shift + 1.5, color=GRAY, alpha=0.25, lw=0)
        ax.plot(line, line + shift, color=GRAY, lw=0.6)
