"""How many entries of a field matter on ±1 data: the cut-off δ_k of working note 2.

On {±1}^N the gate sees only the sign of Σ w_i x_i. If the k largest entries never sum to less than
δ_k in size, and all others together weigh less than that, the others change no gate and no
response.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...stimuli._ring import MOST_IN_HALVES, TIE_TOLERANCE, as_field


def separation(w: Any, k: int) -> float:
    """δ_k, the smallest |Σ_{i≤k} w_i x_i| over signs of the k largest entries.

    Example:
        >>> separation([3.0, 1.0, 1.0], 3)
        1.0
    """
    w = as_field(w)
    if not 1 <= k <= min(w.size, MOST_IN_HALVES):
        raise InputError(f"`k` must be from 1 to {min(w.size, MOST_IN_HALVES)}, got {k}.")
    kept = w[np.argsort(-np.abs(w), kind="stable")][:k]
    # Meet in the middle: the sums of either half, one list sorted, and the nearest pairs.
    cut = (k + 1) // 2
    left = kept[0] + _sums(kept[1:cut])  # |S| does not change if all signs do
    right = np.sort(_sums(kept[cut:]))
    after = np.searchsorted(right, -left)
    nearest = [
        np.abs(left + right[np.clip(after + side, 0, len(right) - 1)]).min() for side in (-1, 0)
    ]
    smallest = float(min(nearest))
    return smallest if smallest > TIE_TOLERANCE * np.abs(kept).sum() else 0.0


def _sums(w: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for value in w:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def active_entries(w: Any) -> int:
    """The smallest k such that on ±1 data only the k largest entries matter: Σ_{i>k}|w_i| < δ_k.

    All entries if no k up to 44 is enough. One for a bump; nearly all for a generic field.

    Example:
        >>> active_entries([5.0, 1.0, -1.0]), active_entries([1.0, 1.0, 1.0, 0.1])
        (1, 3)
    """
    w = as_field(w)
    sizes = np.sort(np.abs(w))[::-1]
    for k in range(1, min(w.size, MOST_IN_HALVES) + 1):
        rest = sizes[k:].sum()
        # δ_k never exceeds the largest entry, as signs can be chosen against the running sum.
        if rest < sizes[0] and rest < separation(w, k):
            return k
    return w.size


def polygon_bound(w: Any) -> float:
    """The least |Σ w_i v_i| over unit vectors v_i: max(0, 2 max|w_i| − ‖w‖₁).

    The notes relax δ to this semidefinite program. It is zero unless one entry outweighs all
    others.
    """
    sizes = np.abs(as_field(w))
    return float(max(0.0, 2 * sizes.max() - sizes.sum()))
