"""`tuning`: what a neuron with a field on a torus answers to gratings, as physiologists ask it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import InputError
from ._fields import read_fields, wrapped
from .metrics import metric
from .shape import position

ANGLES = 72  # directions looked at; the tuning curve of a field on twenty sites has no finer detail
NUM_FREQUENCIES = 48  # frequencies looked at, before the best is refined
HALVINGS = 12  # of the step, to refine the best
CHUNK_FIELDS = 256  # fields at a time
SUBFIELD = 0.25  # of the largest weight: what is weaker belongs to no subfield


@dataclasses.dataclass(frozen=True, eq=False)
class Tuning:
    """Responses of fields to gratings cos(2πf·x + ψ). `tuning` makes it.

    A rectified linear neuron answers a drifting grating by a half-wave of height |ŵ(f)|, so that
    the Fourier transform of the field is all that is needed, and the modulation F1/F0 is π/2 for
    every field: a simple cell. What differs between fields is which phase they like.

    Args:
        frequency: Of the grating with the largest answer, in cycles a site: from one cycle along
            the shortest axis to one half. Uniform light is no grating: a bump is asked at the
            lowest frequency.
        orientation: Direction in which that grating goes, from 0 (the first axis of the lattice) to
            π; its bars lie across. Without meaning where `selectivity` is near 0.
        selectivity: Of orientation, |Σ R exp(2iθ)|/Σ R over directions θ at that frequency: 0 for a
            round field, 1 for one that answers a single direction. One less the circular variance.
        phase: Of that grating at the center of energy, from −π to π: 0 an even field that is
            positive there, ±π one that is negative, ±π/2 an odd one. As in `fit_gabor`.
        bandwidth: Frequencies in that direction with at least half of the answer, in octaves;
            infinite where the answer is still more than that at the lowest or the highest
            frequency.
    """

    frequency: np.ndarray
    orientation: np.ndarray
    selectivity: np.ndarray
    phase: np.ndarray
    bandwidth: np.ndarray

    @property
    def oddness(self) -> np.ndarray:
        """sin² of the phase: from 0 (even, of either sign) to 1 (odd)."""
        return np.sin(self.phase) ** 2


def tuning(fields: Any, axes: int = 2) -> Tuning:
    """Preferred grating of every field, over all directions, frequencies and phases.

    A field is taken as a patch around its center of energy, cut where it wraps: gratings need not
    fit the torus.

    Args:
        fields: Fields (…, height, width).
        axes: 2: on a ring there is one direction.

    Returns:
        A `Tuning`.

    Raises:
        InputError: For fields that are not finite, or zero everywhere, or of fewer than four sites
            per axis.

    Example:
        >>> import numpy as np
        >>> from localfields.analysis import tuning
        >>> x, y = np.meshgrid(np.arange(16) - 8, np.arange(16) - 8, indexing="ij")
        >>> envelope = np.exp(-(x**2 + y**2) / 2 / 2.0**2)
        >>> fits = tuning([envelope, envelope * np.sin(2 * np.pi * 0.25 * y)])
        >>> fits.selectivity.round(2), round(fits.orientation[1] / np.pi, 2)
        (array([0.  , 0.81]), np.float64(0.5))
        >>> round(fits.oddness[1], 2)
        np.float64(1.0)
    """
    if axes != 2:
        raise InputError(
            f"`axes` must be 2, got {axes}: gratings have an orientation only on a torus. "
            "On a ring, `spectral_peak` gives the frequency."
        )
    batch = read_fields(fields, axes, least=4)
    parts = [
        _tuned(batch.values[start : start + CHUNK_FIELDS])
        for start in range(0, len(batch.values), CHUNK_FIELDS)
    ]
    return Tuning(*(batch.back(np.concatenate(column)) for column in zip(*parts, strict=True)))


def _tuned(values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Frequency, direction, selectivity, phase and bandwidth of fields (field, height, width)."""
    flat, places, off = _centered(values)
    low, high = 1 / min(values.shape[1:]), 0.5
    radii, angles = np.linspace(low, high, NUM_FREQUENCIES), np.pi * np.arange(ANGLES) / ANGLES
    all_radii, all_angles = (x.ravel() for x in np.meshgrid(radii, angles, indexing="ij"))
    # Transforms at wave vectors that are the same for all fields: two products of matrices.
    turn = places.T @ (2 * np.pi * all_radii * np.stack([np.cos(all_angles), np.sin(all_angles)]))
    grid = flat @ np.cos(turn) - 1j * (flat @ np.sin(turn))
    best = np.abs(grid).argmax(axis=1)
    radius, angle = radii[best // ANGLES], angles[best % ANGLES]
    radius, angle = _refined(
        flat, places, radius, angle, (low, high), (radii[1] - radii[0], np.pi / ANGLES)
    )
    curve = np.abs(_transform(flat, places, radius[:, None], angles[None]))
    # Orientations repeat after half a turn, hence the 2: the circular mean of the doubled angle.
    mean = (curve * np.exp(2j * angles)).sum(axis=1)
    peak = _transform(flat, places, radius[:, None], angle[:, None])[:, 0]
    along = 2 * np.pi * radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    phase = wrapped(np.angle(peak) + (along * off).sum(axis=1))
    turned = angle % np.pi  # half a turn further the same grating has the opposite phase
    phase = np.where(np.cos(turned - angle) < 0, -phase, phase)
    octaves = _octaves(flat, places, radius, angle, (low, high))
    return radius, turned, np.abs(mean) / curve.sum(axis=1), phase, octaves


def _centered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fields rolled to the middle, sites from there, and the remaining offset of the center."""
    shape = np.array(values.shape[1:])
    center = position(values, 2)
    nearest = np.floor(center).astype(int)
    rows, columns = (np.arange(n)[None] + (nearest[:, [a]] - n // 2) for a, n in enumerate(shape))
    index = np.arange(len(values))[:, None, None]
    rolled = values[index, rows[:, :, None] % shape[0], columns[:, None] % shape[1]]
    places = np.indices(values.shape[1:]).reshape(2, -1) - shape[:, None] // 2
    return rolled.reshape(len(values), -1), places, center - nearest


def _transform(
    flat: np.ndarray, places: np.ndarray, radius: np.ndarray, angle: np.ndarray
) -> np.ndarray:
    """Fourier transforms at wave vectors of each field's own, (field, wave)."""
    radius, angle = np.broadcast_arrays(radius, angle)
    waves = 2 * np.pi * np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.einsum("fs,fws->fw", flat, np.exp(-1j * (waves @ places)))


def _refined(
    flat: Any, places: Any, radius: Any, angle: Any, ends: tuple[float, float], steps: Any
) -> Any:
    """The largest response near the best of the grid, by halving the grid's steps."""
    around = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])
    for halving in range(1, HALVINGS + 1):
        r = np.clip(radius[:, None] + around[:, 0] * steps[0] / 2**halving, *ends)
        t = angle[:, None] + around[:, 1] * steps[1] / 2**halving
        best = np.abs(_transform(flat, places, r, t)).argmax(axis=1)[:, None]
        radius, angle = (np.take_along_axis(x, best, axis=1)[:, 0] for x in (r, t))
    return radius, angle


def _octaves(
    flat: Any, places: Any, radius: np.ndarray, angle: np.ndarray, ends: tuple[float, float]
) -> np.ndarray:
    """Width at half height along the preferred direction."""
    share = np.linspace(0, 1, 4 * NUM_FREQUENCIES + 1)
    crossings = []
    for end in ends:
        path = radius[:, None] + (end - radius[:, None]) * share
        answer = np.abs(_transform(flat, places, path, angle[:, None]))
        below = answer < answer[:, :1] / 2
        first = np.where(below.any(axis=1), below.argmax(axis=1), 1)
        rows = np.arange(len(flat))
        high, low = answer[rows, first - 1], answer[rows, first]
        falls = high > low
        part = np.where(falls, (high - answer[:, 0] / 2) / np.where(falls, high - low, 1), 0)
        crossing = path[rows, first - 1] + part * (path[rows, first] - path[rows, first - 1])
        crossings.append(np.where(below.any(axis=1), crossing, np.nan))
    octaves = np.log2(crossings[1] / crossings[0])
    return np.where(np.isnan(octaves), np.inf, octaves)


@metric(slow=True)
def orientation_selectivity(fields: Any, axes: int = 2) -> np.ndarray:
    """Selectivity for the orientation of gratings, from 0 (a round field) to 1; on a torus."""
    return tuning(fields, axes).selectivity


@metric(slow=True)
def preferred_orientation(fields: Any, axes: int = 2) -> np.ndarray:
    """Direction of the preferred grating, from 0 to π; on a torus."""
    return tuning(fields, axes).orientation


@metric(slow=True)
def oddness(fields: Any, axes: int = 2) -> np.ndarray:
    """Oddness of the preferred grating's phase, from 0 (even) to 1 (odd); on a torus."""
    return tuning(fields, axes).oddness


@metric
def subfields(fields: Any, axes: int = 1) -> np.ndarray:
    """Number of lobes: connected sites of one sign with at least a quarter of the largest weight.

    Sites are connected to their neighbors along an axis, around the lattice as well.

    Example:
        >>> x = np.arange(40) - 20
        >>> bump = np.exp(-(x**2) / 18)
        >>> subfields([bump, bump * np.cos(2 * np.pi * x / 8)]).tolist()
        [1.0, 3.0]
    """
    batch = read_fields(fields, axes)
    largest = np.abs(batch.flat).max(axis=1)
    counts = [
        sum(_count_parts(sign * field >= SUBFIELD * top) for sign in (1, -1))
        for field, top in zip(batch.values, largest, strict=True)
    ]
    return batch.back(np.array(counts, float))


def _count_parts(mask: np.ndarray) -> int:
    """Connected parts of a set of sites, around the lattice."""
    from scipy.ndimage import label
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    labeled: Any = label(mask)
    parts, count = labeled
    pairs = [np.zeros((2, 0), int)]
    for axis in range(mask.ndim):
        ends = np.stack([np.take(parts, i, axis).ravel() for i in (0, -1)])
        pairs.append(ends[:, (ends > 0).all(axis=0)] - 1)
    first, second = np.concatenate(pairs, axis=1)
    if not first.size:
        return int(count)
    graph = coo_matrix((np.ones(first.size), (first, second)), (count, count))
    return int(connected_components(graph)[0])
