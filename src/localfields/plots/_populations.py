"""The neurons of a committee at a glance: their fields, biases and tuning."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis.populations import Populations
from ..analysis.populations import populations as find_populations
from ..analysis.tuning import Tuning
from ..analysis.tuning import tuning as find_tuning
from ..errors import InputError
from ..trajectory import Trajectory, inverse_participation_ratio, localized_from
from ._style import BLUE, GRAY, ORANGE, SMALL, make_small, new_panels

NEGATIVE, POSITIVE = ORANGE, BLUE  # of biases
ORIENTED = 0.2  # selectivity from which an orientation means something


def neuron_order(result: Populations, member: int = 0) -> np.ndarray:
    """Order of drawing: negative biases by position of their fields, then others by frequency."""
    bias = result.bias[member]
    key = np.where(bias < 0, result.position[member], result.frequency[member])
    return np.lexsort((key, bias >= 0))


def populations(
    run: Trajectory, member: int = 0, *, result: Populations | None = None, ax: Any = None
) -> np.ndarray:
    """Draw the final fields of a committee on a ring, one row per neuron, and its biases as bars.

    Rows are scaled to 1 at the largest weight. Neurons with negative biases come first, by the
    position of their fields, then the others by frequency.

    Args:
        run: Committees with recorded biases.
        member: Index of the member.
        result: The result of `lf.populations(run)`, if you have it already.
        ax: Two axes; a new figure by default.

    Returns:
        The axes of the fields and of the biases.

    Example:
        >>> import localfields as lf
        >>> stimuli = [lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)]
        >>> task = lf.Discrimination(*stimuli, labels="signs")
        >>> network = lf.networks.Committee(4, activation="erf", bias="trained")
        >>> run = lf.train(task, network, steps=3, estimator="exact")
        >>> fields, biases = lf.plots.populations(run)
        >>> fields.images[0].get_array().shape, biases.get_xlabel()
        ((4, 16), 'bias')
    """
    if len(run.shape) > 1:
        raise InputError(f"This plot is for fields on a ring, got fields on {run.shape}.")
    result = find_populations(run) if result is None else result
    picture, bars = axes = new_panels(ax, ["ab"], (5.2, 3.6), width_ratios=(2.2, 1))
    order = neuron_order(result, member)
    rows = np.asarray(run.final[member], float)[order]
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    scaled = rows / np.where(largest == 0, 1, largest)
    picture.imshow(scaled, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    picture.set_xlabel("site", fontsize=SMALL)
    picture.set_ylabel("neuron", fontsize=SMALL)
    bias = result.bias[member][order]
    colors = np.where(bias < 0, NEGATIVE, POSITIVE).tolist()
    bars.barh(np.arange(len(bias)), bias, height=1.0, color=colors, lw=0)
    bars.set_ylim(len(bias) - 0.5, -0.5)
    bars.set_yticks([])
    bars.axvline(0, color=GRAY, lw=0.6)
    bars.set_xlabel("bias", fontsize=SMALL)
    bars.spines[["top", "right", "left"]].set_visible(False)
    for panel in axes:
        panel.tick_params(labelsize=SMALL)
        panel.axhline(int((bias < 0).sum()) - 0.5, color="black", lw=0.8, ls="--")
    return axes


def tuning(
    run: Trajectory, *, result: Tuning | None = None, color: str = BLUE, ax: Any = None
) -> np.ndarray:
    """Draw how the final fields on a torus respond to gratings, one dot per field.

    The panels are: orientation selectivity against the IPR, with the IPR from which a field counts
    as localized; and preferred phase against preferred orientation, of fields that have one.

    Args:
        run: What `train`, `solve` or a baseline's `fit` returned.
        result: The result of `lf.analysis.tuning` for all fields, if you have it already.
        color: Color of the dots.
        ax: Two axes; a new figure by default.

    Returns:
        The two axes.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.NLGP((6, 6), xi=xi, gain=9) for xi in (0.5, 1)))
        >>> fit = lf.Fit(lf.baselines.PCA(5), samples=200)
        >>> axes = lf.plots.tuning(lf.Experiment(task, method=fit).run())
        >>> len(axes[0].collections[0].get_offsets())
        5
    """
    if len(run.shape) != 2:
        raise InputError(f"This plot is for fields on a torus of two axes, got {run.shape}.")
    fields = run.final.reshape(-1, *run.shape)
    if result is None:
        # A field of zeros stands as a constant, which responds to no grating.
        result = find_tuning(np.where(fields.any(axis=(1, 2), keepdims=True), fields, 1.0))
    selectivity, phases = axes = new_panels(ax, ["ab"], (7.2, 3.2))
    size = fields[0].size
    ratios = np.nan_to_num(inverse_participation_ratio(fields, 2))
    dots = {"s": 10, "color": color, "alpha": 0.6, "lw": 0}
    selectivity.scatter(np.maximum(ratios, 1 / size), result.selectivity, **dots)
    if not selectivity.lines:  # several runs may be drawn on the same axes
        selectivity.axvline(localized_from(size), color="black", ls="--", lw=0.8)
    selectivity.set(xscale="log", xlim=(0.8 / size, 1.3), ylim=(-0.03, 1))
    selectivity.set_xticks((0.01, 0.1, 1), ("0.01", "0.1", "1"))
    selectivity.minorticks_off()
    selectivity.set(xlabel="inverse participation ratio", ylabel="orientation selectivity")
    oriented = result.selectivity > ORIENTED
    # Phases of either sign and of ψ and π − ψ are one: from even (0°) to odd (90°).
    folded = np.degrees(np.arcsin(np.sqrt(result.oddness[oriented])))
    phases.scatter(np.degrees(result.orientation[oriented]), folded, **dots)
    phases.set(xlim=(-6, 186), ylim=(-4, 94), xticks=(0, 45, 90, 135, 180))
    phases.set_yticks((0, 45, 90), ("even", "", "odd"))
    phases.set(xlabel="preferred orientation, degrees", ylabel="preferred phase")
    make_small(axes)
    return axes
