"""`fit_sinusoid`: how well a receptive field is described by one wave."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.ndimage import minimum_filter
from scipy.special import diric

from ._fields import leading_sign, read_fields, sites, wrapped
from ._project import Model, fit
from .metrics import metric

# Cycles. With fewer, wave and offset together are a parabola, which has no frequency.
SLOWEST = 0.5
FLAT = 1e-12  # variation, relative to the field, below which there is no wave
STARTS = 2  # lowest valleys of the error that are followed to their bottom
FINENESS = {1: 16, 2: 4, 3: 2}  # frequencies per cycle that are tried first, by number of axes


@dataclasses.dataclass(frozen=True, eq=False)
class SinusoidFit:
    """Fitted waves, w(x) ≈ offset + amplitude · cos(2π f·x/N + phase). `fit_sinusoid` makes it.

    Args:
        shape: The lattice.
        frequency: Cycles around the ring, between 1/2 and N/2, not whole in general; one a
            direction in a last axis on a torus, where the first that is not zero is positive. 0 for
            a constant field.
        amplitude: Half of the height of the wave, not negative.
        phase: At site 0, from −π to π.
        offset: The level that it swings about.
        error: ‖w − fit‖/‖w‖, from 0 to 1.
    """

    shape: tuple[int, ...]
    frequency: np.ndarray
    amplitude: np.ndarray
    phase: np.ndarray
    offset: np.ndarray
    error: np.ndarray

    def curve(self, positions: Any = None) -> np.ndarray:
        """The waves at positions in sites, which need not be whole.

        Args:
            positions: (place,) on a ring, (place, axis) on a torus; all sites where it is left out.

        Returns:
            Values (…, place), or (…, *shape) at all sites.
        """
        axes = len(self.shape)
        given = sites(self.shape) if positions is None else positions
        places = np.asarray(given, dtype=np.float64).reshape(-1, axes)
        frequency = self.frequency if axes > 1 else self.frequency[..., None]
        angle = 2 * np.pi * np.einsum("...a,pa->...p", frequency / np.array(self.shape), places)
        wave = self.offset[..., None] + self.amplitude[..., None] * np.cos(
            angle + self.phase[..., None]
        )
        return wave.reshape(*self.error.shape, *self.shape) if positions is None else wave


def fit_sinusoid(fields: Any, axes: int = 1) -> SinusoidFit:
    """Fit one wave to every field, with free frequency, amplitude, phase and offset.

    For a given frequency the other three follow from a projection, in closed form. Its error is
    computed at many frequencies by one transform, and its lowest valleys are followed to their
    bottom by least squares, so that the fit does not depend on a guess.

    Args:
        fields: Fields (…, *shape).
        axes: How many trailing axes are the lattice: 1 on a ring, 2 on a torus.

    Returns:
        A `SinusoidFit`, whose arrays have the leading axes of the fields.

    Raises:
        InputError: For fields that are not finite, or zero everywhere, or of fewer than five sites
            an axis.

    Example:
        >>> import numpy as np
        >>> from localfields.analysis import fit_sinusoid
        >>> x = np.arange(40)
        >>> wave = 0.1 + 2 * np.cos(2 * np.pi * 3.3 * x / 40 + 1)
        >>> fits = fit_sinusoid([wave, np.exp(-((x - 20) ** 2) / 8)])
        >>> np.round([fits.frequency[0], fits.amplitude[0], fits.phase[0], fits.offset[0]], 6)
        array([3.3, 2. , 1. , 0.1])
        >>> np.round(fits.error, 2)  # a bump is no wave
        array([0.  , 0.59])
    """
    batch = read_fields(fields, axes, least=5)
    target, shape = batch.flat, batch.shape
    norm = np.sqrt((target**2).sum(axis=1))
    mean = target.mean(axis=1)
    varied = np.sqrt(((target - mean[:, None]) ** 2).sum(axis=1))
    flat = varied <= FLAT * norm
    values = np.where(flat[:, None], np.cos(np.arange(target.shape[1])), target)  # replaced below
    starts, reach = _valleys(values.reshape(-1, *shape), FINENESS[axes])
    low, high = starts - reach, np.minimum(starts + reach, np.array(shape) / 2)
    low = np.maximum(low, SLOWEST) if axes == 1 else low
    solution = fit(_waves(shape), values, starts, low, high)
    cosine, sine, offset = solution.coefficients.T
    frequency = np.where(flat[:, None], 0, solution.parameters)
    # Turns from the middle of the lattice, where phases are fitted, to site 0.
    turns = (frequency / np.array(shape) * (np.array(shape) - 1) / 2).sum(axis=1)
    phase = np.where(flat, 0, wrapped(np.arctan2(-sine, cosine) - 2 * np.pi * turns))
    sign = leading_sign(frequency)
    return SinusoidFit(
        shape=shape,
        frequency=batch.per_axis(frequency * sign),
        amplitude=batch.back(np.where(flat, 0, np.hypot(cosine, sine))),
        phase=batch.back(phase * sign[:, 0]),
        offset=batch.back(np.where(flat, mean, offset)),
        error=batch.back(np.where(flat, varied, solution.residual) / norm),
    )


@metric(slow=True)
def sinusoid_error(fields: Any, axes: int = 1) -> np.ndarray:
    """Relative error ‖w − fit‖/‖w‖ of the best sinusoid plus a constant."""
    return fit_sinusoid(fields, axes).error


def _waves(shape: tuple[int, ...]) -> Model:
    """Cosine, sine and constant, about the middle of the lattice, where they hardly overlap."""
    places = 2 * np.pi * (sites(shape) - (np.array(shape) - 1) / 2) / np.array(shape)

    def columns(frequency: np.ndarray) -> np.ndarray:
        angle = frequency @ places.T
        return np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)], axis=2)

    def tangent(frequency: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        angle = frequency @ places.T
        slope = coefficients[:, 1:2] * np.cos(angle) - coefficients[:, :1] * np.sin(angle)
        return slope[..., None] * places[None]

    return Model(columns, tangent)


def _valleys(fields: np.ndarray, fineness: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies (start, field, axis) near which the error is lowest, and their spacing.

    Seen from the middle of the lattice the cosine and the constant are even and the sine is odd, so
    that the projection needs no more than the transform of the field and sums of waves, which are
    Dirichlet kernels.
    """
    shape = fields.shape[1:]
    axes = tuple(range(1, fields.ndim))
    sizes = np.array(shape)
    padded = tuple(int(n) * fineness for n in shape)
    # Padding with zeros samples the transform between whole frequencies.
    centered = fields - fields.mean(axis=axes, keepdims=True)
    spectrum = np.fft.rfftn(centered, s=padded, axes=axes)
    along = [np.fft.fftfreq(n, 1 / n) / fineness for n in padded[:-1]]
    along.append(np.arange(spectrum.shape[-1]) / fineness)
    frequency = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
    angle = 2 * np.pi * frequency / sizes
    # Phases as seen from the middle: real is the cosine's part, imaginary the sine's.
    spectrum = spectrum * np.exp(1j * (angle * (sizes - 1) / 2).sum(axis=-1))
    size = float(np.prod(sizes))
    mean_cosine, mean_double = (
        np.prod([diric(k * angle[..., a], n) for a, n in enumerate(shape)], axis=0) for k in (1, 2)
    )
    # Squared lengths of cosine (less its mean) and sine on the lattice, from means of cos θ and
    # cos 2θ.
    even, odd = size * ((1 + mean_double) / 2 - mean_cosine**2), size * (1 - mean_double) / 2
    explained = np.where(odd > 1e-9 * size, spectrum.imag**2 / np.where(odd > 0, odd, 1), 0)
    explained += np.where(even > 1e-9 * size, spectrum.real**2 / np.where(even > 0, even, 1), 0)
    explained = np.where(np.abs(frequency).max(axis=-1) >= SLOWEST, explained, 0)
    # Local minima of the error: the best points of the grid would all lie in one valley.
    lowest = -explained == minimum_filter(-explained, size=3, axes=axes, mode="nearest")
    ranked = np.where(lowest, explained, -1).reshape(len(fields), -1)
    best = np.argsort(-ranked, axis=1, kind="stable")[:, :STARTS]
    return frequency.reshape(-1, len(shape))[best.T], np.full(len(shape), 1 / fineness)
