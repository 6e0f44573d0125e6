"""What a run does over flow time: localization, loss, spectrum; and a page of all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..analysis.shape import power_spectrum
from ..trajectory import Trajectory, localized_from
from ._fields import draw_over_time, fields
from ._style import (
    BLUE,
    EXTENDED,
    GREEN,
    LOCALIZED,
    Axes,
    AxesLike,
    add_legend,
    add_time_bar,
    make_small,
    new_axes,
    new_panels,
    show_text,
)


def ipr(
    run: Trajectory, *, onset: float = math.nan, log_time: bool = False, ax: AxesLike = None
) -> Axes:
    """Draw the inverse participation ratio (IPR) of every field over flow time.

    Curves are orange where the field ends localized and blue otherwise; the dashed line is the
    ratio from which a field counts as localized, 4/(N + 2).

    Args:
        run: What `train` or `solve` returned.
        onset: A flow time to mark, such as the median onset of a prediction.
        log_time: Whether time is logarithmic from the second record on. Fields of a theory may
            settle early and wait long for a last change.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> ax = lf.plots.ipr(lf.solve(task, lf.theory.ExactIsing(), members=2))
        >>> [line.get_label() for line in ax.lines][0]
        'ends localized'
    """
    axes = new_axes(ax)
    threshold = localized_from(math.prod(run.shape))
    ratios = np.moveaxis(run.ipr, 1, 2)  # (member, neuron, time)
    times = np.broadcast_to(run.times, (run.num_members, ratios.shape[2]))
    ends_localized = ratios[:, :, -1] > threshold
    # Many curves lie over each other: the more there are, the more transparent is each.
    opacity = max(0.15, min(0.7, 20 / ends_localized.size))
    for localized, color, label in (
        (True, LOCALIZED, "ends localized"),
        (False, EXTENDED, "ends otherwise"),
    ):
        for place, (member, neuron) in enumerate(np.argwhere(ends_localized == localized)):
            axes.plot(
                times[member],
                ratios[member, neuron],
                color=color,
                lw=0.9,
                alpha=opacity,
                label=None if place else label,
            )
    axes.axhline(threshold, color="black", ls="--", lw=1, label="localization threshold")
    axes.set_ylim(0, min(1.02, 1.1 * max(float(np.nanmax(ratios, initial=0.0)), 2 * threshold)))
    if math.isfinite(onset):
        label = f"onset, median {onset:.3g}"
        axes.plot([onset] * 2, axes.get_ylim(), color=GREEN, ls="-.", lw=1.2, label=label)
    if log_time:
        first, last = float(times[0, 1]), float(times[0, -1])
        axes.set_xscale("symlog", linthresh=first, linscale=0.5)
        powers = np.arange(math.ceil(math.log10(first)), math.floor(math.log10(last)) + 1)
        axes.set_xticks([0, *10.0**powers])
        axes.minorticks_off()
    axes.set_xlim(0, float(times.max()) or 1.0)
    axes.set_xlabel("flow time")
    axes.set_ylabel("inverse participation ratio")
    make_small([axes])
    add_legend(axes)
    return axes


def loss(run: Trajectory, *, ax: AxesLike = None) -> Axes:
    """Draw the held-out loss of every member over flow time, and their mean as a thick curve.

    Args:
        run: What `train` returned, with `loss` among the recorded quantities.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)))
        >>> record = lf.Record(every=1, quantities=("loss",))
        >>> run = lf.train(task, lf.networks.SingleNeuron(), steps=3, record=record)
        >>> lf.plots.loss(run).get_ylabel()
        'held-out loss'
    """
    axes = new_axes(ax)
    values = run.loss
    opacity = max(0.15, 1 / len(values))
    for time, value in zip(np.broadcast_to(run.times, values.shape), values, strict=True):
        axes.plot(time, value, color=BLUE, lw=0.7, alpha=opacity)
    if run.times.ndim == 1:  # members with learning rates of their own have no common times
        axes.plot(run.times, values.mean(axis=0), color=BLUE, lw=1.8)
    axes.set_xlim(0, float(run.times.max()) or 1.0)
    axes.set_xlabel("flow time")
    axes.set_ylabel("held-out loss")
    make_small([axes])
    return axes


def spectrum(run: Trajectory, member: int = 0, neuron: int = 0, *, ax: AxesLike = None) -> Axes:
    """Draw the power spectrum of a field over flow time, from blue (early) to red (late).

    The spectrum of a field on a torus is drawn as a picture at the last record, with the flat wave
    in the center.

    Args:
        run: What `train` or `solve` returned.
        member: Index of the member.
        neuron: Index of the neuron.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> lf.plots.spectrum(lf.solve(task, lf.theory.ExactIsing(), members=1)).get_xlabel()
        'cycles on the ring'
    """
    own = ax is None or callable(ax)
    axes = new_axes(ax)
    weights = run.weights[member, :, neuron]
    if len(run.shape) > 1:
        power = np.abs(np.fft.fftn(weights[-1])) ** 2
        power = np.fft.fftshift(power.reshape(*run.shape[:2], -1).sum(axis=2) / power.sum())
        rows, columns = run.shape[:2]
        corners = (-(columns // 2) - 0.5, (columns + 1) // 2 - 0.5)
        sides = (-(rows // 2) - 0.5, (rows + 1) // 2 - 0.5)
        axes.imshow(power, cmap="gray_r", vmin=0, extent=(*corners, *sides), origin="lower")
        axes.set_xlabel("cycles across")
        axes.set_ylabel("cycles down")
        return axes
    # A first field of zeros has no spectrum.
    nonzero = weights.any(axis=1)
    times = (run.times if run.times.ndim == 1 else run.times[member])[nonzero]
    draw_over_time(axes, power_spectrum(weights[nonzero]), times)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("cycles on the ring")
    axes.set_ylabel("share of the power")
    make_small([axes])
    if own:
        add_time_bar(axes.figure, axes, float(times[-1]))
    return axes


def overview(run: Trajectory, *, ax: Any = None) -> np.ndarray:
    """Draw the fields of the first members or neurons, the IPR of all fields, and the loss.

    Args:
        run: What `train` or `solve` returned.
        ax: One axes per field (at most 4 on a ring, 12 on a torus), one for the IPR and one for the
            loss; a new figure by default.

    Returns:
        The axes, those of the fields first.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> axes = lf.plots.overview(lf.solve(task, lf.theory.ExactIsing(), members=2))
        >>> [panel.get_title() for panel in axes][:2]
        ['member 0, neuron 0', 'member 1, neuron 0']
    """
    torus = len(run.shape) > 1
    rows, columns = (3, 4) if torus else (2, 2)
    places = [(m, k) for m in range(run.num_members) for k in range(run.initial.shape[1])]
    places = places[: rows * columns]

    def name(line: int, column: int) -> str:
        place = line * rows // 6 * columns + column * columns // 4
        return f"field {place:02}" if place < len(places) else "."

    # Six lines divide into two or three rows of fields and into two panels at the right.
    layout = [
        [*(name(line, column) for column in range(4)), *["ipr" if line < 3 else "loss"] * 2]
        for line in range(6)
    ]
    axes = new_panels(ax, layout, (11, 4.8))
    for panel, (member, neuron) in zip(axes, places, strict=False):
        fields(run, member, neuron, ax=panel)
        panel.set_ylabel("")
        panel.set_title(f"member {member}, neuron {neuron}", fontsize=7 if torus else 9)
    *_, ratios, losses = axes
    if {"weights", "ipr"} & set(run.series):
        ipr(run, ax=ratios)
        ratios.set_ylabel("")
    else:
        show_text(ratios, "not recorded")
    ratios.set_title("inverse participation ratio", fontsize=9)
    if "loss" in run.series:
        loss(run, ax=losses)
        losses.set_ylabel("")
    else:
        show_text(losses, "not recorded")
    losses.set_title("held-out loss", fontsize=9)
    return axes
