"""Fields of a whole committee at a glance: one row a neuron, its bias beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis import Populations
from .fields import SMALL
from .stimulus import BLUE, GRAY, ORANGE

NEGATIVE, POSITIVE = ORANGE, BLUE  # of biases


def order_of(found: Populations, member: int = 0) -> np.ndarray:
    """Neurons in the order they are drawn: negative biases by where their fields lie, then positive ones by frequency.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((16,), xi=xi) for xi in (1, 2)), labels="signs")
        >>> network = lf.networks.Committee(4, activation="erf", bias="trained")
        >>> run = lf.train(task, network, steps=3, estimator="exact")
        >>> sorted(order_of(lf.analysis.populations(run)).tolist())
        [0, 1, 2, 3]
    """
    bias = found.bias[member]
    key = np.where(bias < 0, found.position[member], found.frequency[member])
    return np.lexsort((key, bias >= 0))


def draw_committee(
    ax: Any, beside: Any, fields: np.ndarray, found: Populations, member: int = 0
) -> None:
    """Final fields as rows of a picture, each on its own scale and positive at its largest, and biases as bars.

    Args:
        ax: Matplotlib axes of the picture.
        beside: Matplotlib axes of the bars.
        fields: (neuron, site).
        found: Their populations.
        member: Which member of those the fields are.
    """
    order = order_of(found, member)
    rows = np.asarray(fields, float)[order]
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    ax.imshow(
        rows / np.where(largest == 0, 1, largest), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto"
    )
    ax.set_xlabel("site", fontsize=SMALL)
    ax.set_ylabel("neuron", fontsize=SMALL)
    bias = found.bias[member][order]
    colors = np.where(bias < 0, NEGATIVE, POSITIVE)
    beside.barh(np.arange(len(bias)), bias, height=1.0, color=colors.tolist(), lw=0)
    beside.set_ylim(len(bias) - 0.5, -0.5)
    beside.set_yticks([])
    beside.axvline(0, color=GRAY, lw=0.6)
    beside.set_xlabel("bias", fontsize=SMALL)
    beside.spines[["top", "right", "left"]].set_visible(False)
    boundary = int((bias < 0).sum()) - 0.5
    for one in (ax, beside):
        one.tick_params(labelsize=SMALL)
        one.axhline(boundary, color="black", lw=0.8, ls="--")
