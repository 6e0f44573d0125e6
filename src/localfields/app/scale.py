"""Where a slider's positions lie on a number's range; the range comes from the number's own declaration."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .._spec import Count, Number

POSITIONS = 200
SPAN = 30  # a number without an upper bound can be moved to this many times its default


@dataclasses.dataclass(frozen=True)
class Scale:
    """A range of numbers, even in their logarithms or in themselves; `whole` for counts.

    Example:
        >>> scale = Scale(0.1, 1000, log=True)
        >>> [scale.value(position) for position in (0, 100, 200)]
        [0.1, 10.0, 1000.0]
        >>> scale.position(10)
        100
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def value(self, position: int) -> float:
        """The number at a position, with three digits."""
        share = position / POSITIONS
        if self.log:
            found = self.low * (self.high / self.low) ** share
        else:
            found = self.low + share * (self.high - self.low)
        found = float(f"{found:.3g}")
        return float(round(found)) if self.whole else min(max(found, self.low), self.high)

    def position(self, value: float) -> int:
        """The position nearest to a number."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(share * POSITIONS)

    def holding(self, value: float) -> Scale:
        """This range, widened where a value that is legal lies outside."""
        return dataclasses.replace(self, low=min(self.low, value), high=max(self.high, value))


def scale_of(kind: Any, default: float, most: float = math.inf) -> Scale:
    """A range for a number: its bounds where it has some, otherwise around its default.

    Args:
        kind: How the field was declared.
        default: Its default.
        most: The largest value allowed here.
    """
    low, high = float(kind.low), min(float(kind.high), most)
    if isinstance(kind, Count):
        high = min(high, max(default * 100, 100)) if math.isinf(most) else high
        low = max(low, 1.0) if high > 50 else low
        return Scale(low, high, log=low > 0 and high / low > 50, whole=True)
    assert isinstance(kind, Number)
    nudge = 0.0 if kind.closed else 0.02  # survives rounding to three digits
    if default == 0:
        return Scale(max(low, -2.0), min(high, 2.0 if low < 0 else 1.0))
    if low < 0:
        return Scale(max(low, -3 * abs(default)), min(high, 3 * abs(default)))
    bottom = low + nudge * max(low, 1.0) if low > 0 else default / SPAN
    top = min(high * (1 - nudge) if math.isfinite(high) else high, default * SPAN)
    return Scale(float(f"{bottom:.3g}"), float(f"{top:.3g}"), log=True)
