"""`tiling`: how evenly fields cover a lattice, compared with random positions."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import InputError
from ._fields import read_fields

DRAWS = 999  # random arrangements for `chance`, which is then known to a thousandth at best


@dataclasses.dataclass(frozen=True, eq=False)
class Tiling:
    """How a set of fields covers its lattice; arrays with one entry a set. `tiling` makes it.

    The footprint of a field are the sites on which |w| is at least half of its largest. By chance
    means: the same footprints, each moved to a place of its own, all places alike.

    Args:
        num: Number of fields.
        covered: Fraction of sites in at least one footprint; nan without fields, as everything that
            follows.
        covered_by_chance: Its expectation by chance, exact.
        overlap: Sites that two fields share, summed over all pairs; nan for fewer than two fields.
        overlap_by_chance: Its expectation by chance, exact.
        evenness: By how many standard deviations (exact) the overlap is smaller than by chance:
            positive where fields keep out of each other's way, negative where they crowd.
        chance: Probability to find as little overlap by chance, from random arrangements; not below
            1/1000.
    """

    num: np.ndarray
    covered: np.ndarray
    covered_by_chance: np.ndarray
    overlap: np.ndarray
    overlap_by_chance: np.ndarray
    evenness: np.ndarray
    chance: np.ndarray


def tiling(fields: Any, axes: int = 1, which: Any = None) -> Tiling:
    """Describe how sets of fields cover their lattice.

    Args:
        fields: Fields (…, neuron, *shape).
        axes: How many trailing axes are the lattice: 1 on a ring, 2 on a torus.
        which: Which fields belong to the set, (…, neuron); all where it is left out.

    Returns:
        A `Tiling` with arrays of shape (…).

    Raises:
        InputError: For fields that are not finite or zero everywhere, or a `which` of another
            shape.

    Example:
        >>> import numpy as np
        >>> from localfields.analysis import tiling
        >>> blocks = np.kron(np.eye(8), np.ones(5))  # eight fields of five sites each
        >>> tiles = tiling(blocks)
        >>> tiles.covered.item(), round(tiles.covered_by_chance.item(), 3), tiles.overlap.item()
        (1.0, 0.656, 0.0)
        >>> round(tiles.evenness.item(), 2), tiles.chance.item()
        (2.51, 0.001)
    """
    values = np.asarray(fields)
    if values.ndim < axes + 1:
        raise InputError(
            f"`fields` must have an axis of neurons, (…, neuron, *shape), got shape {values.shape}."
        )
    lead = values.shape[: values.ndim - axes]
    chosen = np.ones(lead, bool) if which is None else np.asarray(which)
    if chosen.shape != lead or chosen.dtype != bool:
        raise InputError(
            f"`which` must be booleans of shape {lead}, got {chosen.dtype} of shape "
            f"{chosen.shape}. Leave it out to use all fields."
        )
    shape = values.shape[values.ndim - axes :]
    prints = np.zeros((*lead, int(np.prod(shape))), bool)
    if chosen.any():
        sound = np.abs(read_fields(values[chosen], axes).flat)
        # The footprint of a field: the sites with at least half of its largest weight.
        prints[chosen] = sound >= sound.max(axis=1, keepdims=True) / 2
    sets = int(np.prod(lead[:-1]))
    prints = prints.reshape(sets, lead[-1], prints.shape[-1])
    chosen = chosen.reshape(sets, lead[-1])
    rows = [
        _describe(own[use].reshape(-1, *shape)) for own, use in zip(prints, chosen, strict=True)
    ]
    columns = np.array(rows, dtype=np.float64).reshape(sets, len(dataclasses.fields(Tiling)))
    num, *others = (column.reshape(lead[:-1]) for column in columns.T)
    return Tiling(num.astype(int), *others)


def _describe(prints: np.ndarray) -> list[float]:
    """The numbers of a `Tiling`, in its order, of footprints (field, *shape)."""
    num = len(prints)
    if not num:
        return [0] + [np.nan] * 6
    sites, size = tuple(range(1, prints.ndim)), float(prints[0].size)
    areas = prints.sum(axis=sites)
    first = [num, prints.any(axis=0).mean(), 1 - np.prod(1 - areas / size)]
    if num < 2:
        return first + [np.nan] * 4
    overlap = _overlap(prints.sum(axis=0).ravel(), areas)
    mean = (areas.sum() ** 2 - (areas**2).sum()) / 2 / size
    # Under independent uniform shifts the overlaps of any two pairs are independent, also of pairs
    # that share a field, so that variances add; by Parseval's theorem each is a sum over
    # frequencies other than 0.
    power = np.abs(np.fft.fftn(prints, axes=sites).reshape(num, -1)[:, 1:]) ** 2
    variance = (power.sum(axis=0) ** 2 - (power**2).sum(axis=0)).sum() / 2 / size**2
    if variance < 1e-9:  # footprints that overlap alike wherever they lie
        return [*first, overlap, mean, 0.0, 1.0]
    # Counting the arrangement itself, so that the p-value is never zero.
    as_little = (1 + (_by_chance(prints, areas) <= overlap).sum()) / (1 + DRAWS)
    return [*first, overlap, mean, (mean - overlap) / np.sqrt(variance), as_little]


def _overlap(counts: np.ndarray, areas: np.ndarray) -> Any:
    """Sites shared by pairs, from how many fields lie on every site (last axis)."""
    return ((counts.astype(np.int64) ** 2).sum(axis=-1) - areas.sum()) / 2


def _by_chance(prints: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """Overlaps of random arrangements; the same in every call, as a result should be."""
    rng = np.random.default_rng(0)
    shape = prints.shape[1:]
    counts = np.zeros((DRAWS, int(np.prod(shape))), np.int32)
    sites = np.indices(shape).reshape(len(shape), 1, -1)
    for footprint in prints:
        shifts = np.stack([rng.integers(n, size=DRAWS) for n in shape])[..., None]
        moved = (sites - shifts) % np.array(shape)[:, None, None]
        counts += footprint[tuple(moved)]
    return _overlap(counts, areas)
