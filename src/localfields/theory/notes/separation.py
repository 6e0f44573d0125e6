"""How many entries of a field matter on ±1 data: the cut-off δ_k of working note 2, and where the response may change.

On {±1}^N the gate sees only the sign of Σ w_i x_i. If the largest k entries can never sum to less than δ_k in size, and
all others together weigh less than that, the others change no gate, and the response f(w) not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import refuse
from ...stimuli._ring import MOST_IN_HALVES, TIE, as_field


def separation(w: Any, k: int) -> float:
    """δ_k, the smallest |Σ_{i≤k} w_i x_i| over signs of the k largest entries, by meeting in the middle.

    Example:
        >>> separation([3.0, 1.0, 1.0], 3)
        1.0
    """
    w = as_field(w)
    if not 1 <= k <= min(w.size, MOST_IN_HALVES):
        refuse("`k`", k, f"from 1 to {min(w.size, MOST_IN_HALVES)}", "Give a number of entries.")
    kept = w[np.argsort(-np.abs(w), kind="stable")][:k]
    cut = (k + 1) // 2
    left = kept[0] + _sums(kept[1:cut])  # the first sign is free: |S| does not change when all do
    right = np.sort(_sums(kept[cut:]))
    after = np.searchsorted(right, -left)
    nearest = [
        np.abs(left + right[np.clip(after + side, 0, len(right) - 1)]).min() for side in (-1, 0)
    ]
    smallest = float(min(nearest))
    return smallest if smallest > TIE * np.abs(kept).sum() else 0.0


def _sums(w: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for value in w:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def active_entries(w: Any) -> int:
    """The least k such that on ±1 data only the k largest entries of a field matter: Σ_{i>k}|w_i| < δ_k.

    All of them when no k up to 44 is enough. One for a bump; for a generic field of many sites nearly all.

    Example:
        >>> active_entries([5.0, 1.0, -1.0]), active_entries([1.0, 1.0, 1.0, 0.1])
        (1, 3)
    """
    w = as_field(w)
    sizes = np.sort(np.abs(w))[::-1]
    for k in range(1, min(w.size, MOST_IN_HALVES) + 1):
        rest = sizes[k:].sum()
        # δ_k never exceeds the largest entry (signs chosen against the running sum keep it within), which saves work.
        if rest < sizes[0] and rest < separation(w, k):
            return k
    return w.size


def polygon_bound(w: Any) -> float:
    """The least |Σ w_i v_i| over unit vectors v_i: max(0, 2 max|w_i| − ‖w‖₁).

    The notes relax δ to this semidefinite program. It is zero unless one entry outweighs all others, so the relaxation
    says no more than that.

    Example:
        >>> polygon_bound([5.0, 1.0, -1.0]), polygon_bound([3.0, 2.0, 2.0])
        (3.0, 0.0)
    """
    sizes = np.abs(as_field(w))
    return float(max(0.0, 2 * sizes.max() - sizes.sum()))
