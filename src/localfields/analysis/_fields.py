"""Arrays of receptive fields as analyses take them: checked once, flat over whatever leads."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .._kinds import Count
from ..errors import InputError, show


@dataclasses.dataclass(frozen=True, eq=False)
class FieldBatch:
    """Receptive fields in float64, one row per field, and the axes to give results back."""

    values: np.ndarray  # (field, *shape)
    lead: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def flat(self) -> np.ndarray:
        """One row of sites a field."""
        return self.values.reshape(len(self.values), -1)

    @property
    def size(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)

    def back(self, values: np.ndarray) -> np.ndarray:
        """Put results of one entry per field back on the leading axes."""
        return values.reshape((*self.lead, *values.shape[1:]))

    def per_axis(self, values: np.ndarray) -> np.ndarray:
        """Results (field, axis) on the leading axes; on a ring without the last axis."""
        return self.back(values[:, 0] if len(self.shape) == 1 else values)


def read_fields(fields: Any, axes: int, *, least: int = 1, most_axes: int = 3) -> FieldBatch:
    """Check fields (…, *shape) with that many trailing lattice axes.

    Args:
        fields: The fields; anything numpy reads as real numbers.
        axes: How many trailing axes are the lattice: 1 for a ring, 2 for a torus.
        least: The fewest sites along an axis for which the analysis makes sense.
        most_axes: The most lattice axes it knows.

    Raises:
        InputError: For other arrays, and for fields that are not finite or zero everywhere, of
            which nothing can be said.
    """
    hint = "It is the number of trailing lattice axes: 1 on a ring, 2 on a torus."
    axes = Count(high=most_axes, hint=hint).check("axes", axes)
    try:
        values = np.asarray(fields)
        if values.dtype.kind not in "iuf":
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError, InputError):
        raise InputError(
            f"`fields` must be an array of real numbers, such as `run.final`, got {show(fields)}."
        ) from None
    if values.ndim < axes or values.size == 0 or min(values.shape[values.ndim - axes :]) < least:
        expected = (
            f"an array whose {f'last {axes} axes are' if axes > 1 else 'last axis is'} a lattice"
        )
        expected += (
            f" of at least {least} sites" + (" each" if axes > 1 else "") if least > 1 else ""
        )
        raise InputError(
            f"`fields` must be {expected}, got shape {values.shape}. "
            "Give (…, *shape), and `axes` for a torus."
        )
    cut = values.ndim - axes
    lead, shape = values.shape[:cut], values.shape[cut:]
    values = values.reshape(-1, *shape)
    flat = values.reshape(len(values), -1)
    for bad, problem in (
        (~np.isfinite(flat).all(axis=1), "nan or infinite"),
        (~flat.any(axis=1), "zero everywhere"),
    ):
        if bad.any():
            where = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), lead)) if lead else ()
            count = f"{int(bad.sum())} of {len(values)} {problem}" + (
                f", the first at {where}" if lead else ""
            )
            raise InputError(
                f"`fields` must be finite and not zero everywhere; {count}. Leave such fields out."
            )
    return FieldBatch(values, lead, shape)


def sites(shape: tuple[int, ...]) -> np.ndarray:
    """Coordinates of every site, (site, axis)."""
    return np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1)


def leading_sign(frequency: np.ndarray) -> np.ndarray:
    """Sign of the first nonzero number per row, (field, 1); a wave may be turned by it."""
    first = np.take_along_axis(frequency, (frequency != 0).argmax(axis=1)[:, None], axis=1)
    return np.where(first < 0, -1.0, 1.0)


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Angles from −π to π."""
    return np.pi - (np.pi - angle) % (2 * np.pi)
