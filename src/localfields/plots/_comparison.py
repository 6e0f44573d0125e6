"""Two trajectories beside each other: fields, distance over time, localization and final peaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..analysis.compare import Comparison, compare, fields_at
from ..trajectory import Trajectory, localized_from
from ._style import BLUE, GRAY, GREEN, ORANGE, SMALL, new_panels, time_colors

DASHED = (0, (2.5, 1.2))
NUM_CURVES = 4  # times at which the fields are drawn


def comparison(
    run: Trajectory, flow: Trajectory, member: int | None = None, neuron: int = 0, *, ax: Any = None
) -> np.ndarray:
    """Draw two trajectories beside each other, such as training and theory.

    The panels are: a field of both at a few times, relative distance and cosine over flow time,
    the IPR with the onsets of localization, and the final peaks.

    Args:
        run: The first trajectory, drawn solid.
        flow: The second, drawn dashed.
        member: Member whose field is shown; the first that ended well by default.
        neuron: Neuron whose field is shown.
        ax: Four axes; a new figure by default.

    Returns:
        The four axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> exact = lf.solve(task, lf.theory.ExactIsing(), members=2)
        >>> times = exact.times
        >>> effective = lf.solve(task, lf.theory.EffectiveFlow(), members=2, times=times)
        >>> axes = lf.plots.comparison(exact, effective)
        >>> [panel.get_title("left")[4:] for panel in axes[:3]]
        ['member 0', 'agreement', 'IPR']
    """
    compared = compare(run, flow)
    member = int(compared.ok.argmax()) if member is None else member
    axes = new_panels(ax, ["ab", "cd"], (9.6, 6.4), width_ratios=(1.25, 1))
    _draw_fields(axes[0], run, flow, compared, member, neuron)
    _draw_agreement(axes[1], compared)
    _draw_localization(axes[2], compared)
    _draw_peaks(axes[3], compared)
    for panel, letter in zip(axes, "abcd", strict=True):
        panel.set_title(f"{letter}   {panel.get_title('left')}", loc="left", fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
    return axes


def _draw_fields(
    ax: Any, run: Trajectory, flow: Trajectory, compared: Comparison, member: int, neuron: int
) -> None:
    """Draw a field of both at a few times; on a torus, at the end."""
    inside = compared.inside[member]
    times = np.broadcast_to(compared.times, compared.inside.shape)[member, inside]
    first = run.weights[member, compared.records[inside], neuron].astype(np.float64)
    second = fields_at(flow, member, times)[0][:, neuron]
    title = f"member {member}" + (f", neuron {neuron}" if run.initial.shape[1] > 1 else "")
    ax.set_title(title, loc="left", fontsize=9)
    if first.ndim > 2:
        _draw_pictures(ax, first[-1], second[-1], compared.names, times[-1])
        return
    # Records at which the first field has gone even parts of its way: it mostly rests.
    way = np.sqrt(((first - first[0]) ** 2).reshape(len(first), -1).sum(axis=1))
    goals = way.max() * np.linspace(0, 1, NUM_CURVES)[1:-1]
    records = np.unique([0, *(int((way >= goal).argmax()) for goal in goals), len(first) - 1])
    ax.axhline(0, color=GRAY, lw=0.5)
    for record, color in zip(records, time_colors()(np.linspace(0, 1, len(records))), strict=True):
        ax.plot(first[record], color=color, lw=1.6, label=f"time {times[record]:.3g}")
        ax.plot(second[record], color=color, lw=1.6, ls=DASHED)
    ax.set_xlim(-0.5, run.shape[0] - 0.5)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("site")
    ax.set_ylabel("weight")
    styles = [ax.plot([], [], color="k", lw=1.2, ls=style)[0] for style in ("-", DASHED)]
    ax.add_artist(_legend_above(ax, styles, compared.names))
    ax.legend(frameon=False, fontsize=SMALL)


def _legend_above(ax: Any, lines: Any, labels: Any) -> Any:
    """Put a legend on the line of the title, where no curve can be."""
    place = dict(loc="lower right", bbox_to_anchor=(1.0, 0.985), borderpad=0.1, borderaxespad=0.1)
    style = dict(frameon=False, fontsize=SMALL, ncols=len(labels), columnspacing=1.2)
    return ax.legend(lines, labels, **place, **style)


def _draw_pictures(
    ax: Any, first: np.ndarray, second: np.ndarray, names: tuple[str, str], time: float
) -> None:
    left, right = (field.reshape(*field.shape[:2], -1)[:, :, 0] for field in (first, second))
    rows, width = left.shape
    gap = max(1, width // 8)
    both = np.concatenate([left, np.full((rows, gap), np.nan), right], axis=1)
    limit = float(np.nanmax(np.abs(both), initial=0)) or 1.0
    ax.imshow(both, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set_xticks([(width - 1) / 2, width + gap + (width - 1) / 2], names, fontsize=9)
    ax.tick_params(length=0)
    ax.set_yticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel(f"time {time:.3g}")


def _draw_agreement(ax: Any, compared: Comparison) -> None:
    """Draw relative distance and cosine over flow time."""
    lines = [
        _draw_quantiles(ax, compared, compared.distance, ORANGE),
        _draw_quantiles(ax, compared, compared.cosine, GREEN),
    ]
    low = _quantile(compared, compared.cosine, 0.02, 0.0)
    high = _quantile(compared, compared.distance, 0.98, 1.0)
    ax.set_ylim(1.05 * min(0.0, low), 1.05 * max(1.0, high))
    ax.set_title("agreement", loc="left", fontsize=9)
    _legend_above(ax, lines, ("relative ℓ2 distance", "cosine"))
    _label_time(ax)


def _quantile(compared: Comparison, values: np.ndarray, quantile: float, default: float) -> float:
    """How far nearly all values go: one field that runs away should not flatten the others."""
    values = values[compared.ok]
    values = values[np.isfinite(values)]
    return float(np.quantile(values, quantile)) if values.size else default


def _draw_localization(ax: Any, compared: Comparison) -> None:
    """Draw the IPR of both; ticks on the threshold are onsets, triangles their medians."""
    threshold = localized_from(math.prod(compared.shape))
    ax.axhline(threshold, color=GRAY, lw=0.7, ls=":")
    both = (
        (compared.ipr_first, compared.onset_first),
        (compared.ipr_second, compared.onset_second),
    )
    highest = max(_quantile(compared, ratios, 1.0, 1.0) for ratios, _ in both)
    top = min(1.02, 1.15 * max(3 * threshold, highest))
    styles = ((BLUE, "-", 2, "v", 0.06), (ORANGE, DASHED, 3, "^", -0.06))
    lines, labels = [], []
    for (ratios, onset), name, (color, dashes, tick, triangle, shift) in zip(
        both, compared.names, styles, strict=True
    ):
        lines.append(_draw_quantiles(ax, compared, ratios, color, dashes))
        onset = onset[compared.ok & np.isfinite(onset)]
        median = float(np.median(onset)) if len(onset) else math.nan
        marks = {"color": color, "ls": "", "ms": 6, "clip_on": False}
        ax.plot(onset, np.full(len(onset), threshold), marker=tick, alpha=0.6, **marks)
        ax.plot([median], [threshold + shift * top], marker=triangle, zorder=4, **marks)
        labels.append(f"{name}, onset {median:.3g}" if len(onset) else f"{name}, no onset")
    ax.set_ylim(0, top)
    ax.set_title("IPR", loc="left", fontsize=9)
    ax.set_ylabel("inverse participation ratio")
    _legend_above(ax, lines, labels)
    _label_time(ax)


def _label_time(ax: Any) -> None:
    ax.margins(x=0.02)
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel("flow time")


def _draw_quantiles(
    ax: Any, compared: Comparison, values: np.ndarray, color: str, dashes: Any = "-"
) -> Any:
    """Draw median and middle 80 % of all fields, and return a line for the legend.

    Members that have flow times of their own are drawn one by one.
    """
    values = values[compared.ok]
    style = {"color": color, "ls": dashes}
    if compared.times.ndim == 2:
        opacity = max(0.25, values.shape[0] ** -0.5)
        for time, member in zip(compared.times[compared.ok], values, strict=True):
            ax.plot(time, member, lw=0.9, alpha=opacity, **style)
        return ax.plot([], [], lw=1.6, **style)[0]
    columns = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    finite = np.isfinite(columns).any(axis=1)
    if not finite.any():
        return ax.plot([], [], lw=1.6, **style)[0]
    low, median, high = (np.nanquantile(columns[finite], q, axis=1) for q in (0.1, 0.5, 0.9))
    if columns.shape[1] > 1:
        ax.fill_between(compared.times[finite], low, high, color=color, alpha=0.15, lw=0)
    return ax.plot(compared.times[finite], median, lw=1.6, **style)[0]


def _draw_peaks(ax: Any, compared: Comparison) -> None:
    """Draw one final peak against the other on a ring, how far apart they are on a torus.

    Gray is within ±1 site.
    """
    finite = np.isfinite(compared.peak_distance) & compared.ok[:, None]
    first, second = compared.peak_first[finite], compared.peak_second[finite]
    if len(compared.shape) == 1:
        sites = compared.shape[0]
        points = np.stack([first, second], axis=1)
        ends = np.array([-0.5, sites - 0.5])
        for shift in (-sites, 0, sites):  # the band goes on around the corners of the ring
            band = ends + shift
            ax.fill_between(ends, band - 1.5, band + 1.5, color=GRAY, alpha=0.25, lw=0)
            ax.plot(ends, band, color=GRAY, lw=0.6)
        ax.set_xlim(*ends)
        ax.set_ylim(*ends)
        labels = tuple(f"site, {name}" for name in compared.names)
    else:
        sides = np.array(compared.shape)
        points = ((second - first + sides // 2) % sides - sides // 2)[:, [1, 0]]
        ax.fill_between([-1.5, 1.5], -1.5, 1.5, color=GRAY, alpha=0.25, lw=0)
        reach = np.array([sides[1], sides[0]]) / 2 + 0.5
        ax.set_xlim(-reach[0], reach[0])
        ax.set_ylim(reach[1], -reach[1])
        labels = ("sites apart, across", "sites apart, down")
    places, times = np.unique(points, axis=0, return_counts=True)
    style = {"color": BLUE, "alpha": 0.75, "lw": 0, "zorder": 3, "clip_on": False}
    ax.scatter(places[:, 0], places[:, 1], s=14 * times, **style)
    ax.set_aspect("equal")
    ax.locator_params(integer=True, nbins=6)
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    distance = compared.peak_distance[finite]
    same, near = int((distance == 0).sum()), int((distance <= 1).sum())
    title = f"final peaks: {same} of {distance.size} exact, {near} within ±1"
    ax.set_title(title, loc="left", fontsize=9)
