"""Numbers that describe a receptive field: place, width, frequency, uncertainty.

All of them are blind to sign and scale, and all but the position to where the field lies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import entr

from ._fields import FieldBatch, read_fields
from .metrics import metric


@metric
def position(fields: Any, axes: int = 1) -> np.ndarray:
    """Circular mean of the energy w² in sites, from 0 to N: arg Σ_x exp(2πi x/N) w_x².

    Between sites, unlike the site of the largest weight; of a field that lies everywhere alike it
    says nothing.

    Args:
        fields: Fields (…, *shape).
        axes: How many trailing axes are the lattice.

    Returns:
        One number per field on a ring, one per axis (last axis) on a torus.

    Example:
        >>> position([0.0, 0.0, 1.0, -1.0, 0.0]).item()
        2.5
    """
    batch = read_fields(fields, axes)
    sizes = np.array(batch.shape)
    turn = np.angle(_resultants(batch)) / (2 * np.pi)
    return batch.per_axis(np.round(turn * sizes, 12) % sizes)


@metric
def width(fields: Any, axes: int = 1) -> np.ndarray:
    """Circular standard deviation of w² in sites: N/2π · √(−2 ln R), R the resultant length.

    A Gaussian bump exp(−x²/2s²) has s/√2, as the energy is narrower than the field; a single site
    has 0, and it grows without bound as the field spreads.

    Example:
        >>> x = np.arange(40)
        >>> width(np.exp(-((x - 20) ** 2) / 2 / 3.0**2)).round(6), round(3 / 2**0.5, 6)
        (np.float64(2.12132), 2.12132)
    """
    batch = read_fields(fields, axes)
    length = np.clip(np.abs(_resultants(batch)), np.finfo(float).tiny, 1)
    return batch.per_axis(np.array(batch.shape) / (2 * np.pi) * np.sqrt(-2 * np.log(length)))


def _resultants(batch: FieldBatch) -> np.ndarray:
    """Mean of exp(2πi x/N) along every axis under the energy, (field, axis)."""
    energy = _shares(batch)
    means = []
    for axis, n in enumerate(batch.shape):
        others = tuple(a + 1 for a in range(len(batch.shape)) if a != axis)
        means.append(energy.sum(axis=others) @ np.exp(2j * np.pi * np.arange(n) / n))
    return np.stack(means, axis=1)


def _shares(batch: FieldBatch) -> np.ndarray:
    """The energy of every site as a part of the whole."""
    sites = tuple(range(1, batch.values.ndim))
    square = (batch.values / np.abs(batch.values).max(axis=sites, keepdims=True)) ** 2
    return square / square.sum(axis=sites, keepdims=True)


def power_spectrum(fields: Any, axes: int = 1) -> np.ndarray:
    """Part of the energy Σw² at every frequency, (…, *half): waves of opposite frequencies are one.

    The last axis runs from 0 to N/2 as in `numpy.fft.rfft`, the ones before it as in
    `numpy.fft.fft`.

    Example:
        >>> power_spectrum(np.cos(2 * np.pi * 2 * np.arange(8) / 8)).round(6).tolist()
        [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    batch = read_fields(fields, axes)
    return batch.back(_folded(batch))


def _spectrum(batch: FieldBatch) -> np.ndarray:
    sites = tuple(range(1, batch.values.ndim))
    power = np.abs(np.fft.rfftn(_unit(batch), axes=sites)) ** 2 / batch.size
    last = np.full(power.shape[-1], 2.0)  # −k is left out of the transform
    last[0] = 1
    if batch.shape[-1] % 2 == 0:
        last[-1] = 1
    return power * last


def _unit(batch: FieldBatch) -> np.ndarray:
    """Fields of norm one."""
    sites = tuple(range(1, batch.values.ndim))
    values = batch.values / np.abs(batch.values).max(axis=sites, keepdims=True)
    return values / np.sqrt((values**2).sum(axis=sites, keepdims=True))


@metric
def spectral_peak(fields: Any, axes: int = 1) -> np.ndarray:
    """Frequency of the strongest wave in cycles around the ring, from 0 to N/2.

    On a torus one number per axis (last axis), of which the last is not negative.

    Example:
        >>> spectral_peak(np.cos(2 * np.pi * 3 * np.arange(40) / 40 + 1)).item()
        3
    """
    batch = read_fields(fields, axes)
    power = _folded(batch)
    shape = power.shape[1:]
    index = np.unravel_index(power.reshape(len(power), -1).argmax(axis=1), shape)
    signed = [np.where(k > n // 2, k - n, k) for k, n in zip(index[:-1], batch.shape, strict=False)]
    return batch.per_axis(np.stack([*signed, index[-1]], axis=1))


@metric
def spectral_concentration(fields: Any, axes: int = 1) -> np.ndarray:
    """Part of the energy in the strongest wave: 1 for a sinusoid, about 2 ln(N)/N for noise.

    Example:
        >>> x = np.arange(40)
        >>> spectral_concentration([np.cos(2 * np.pi * 3 * x / 40), np.eye(40)[7]]).round(3)
        array([1.  , 0.05])
    """
    batch = read_fields(fields, axes)
    return batch.back(_folded(batch).reshape(len(batch.values), -1).max(axis=1))


@metric
def spectral_participation(fields: Any, axes: int = 1) -> np.ndarray:
    """Inverse participation ratio of the spectrum: 1 for a wave, 1/m for m equal waves.

    Example:
        >>> x = np.arange(40)
        >>> wave, other = (np.cos(2 * np.pi * k * x / 40) for k in (3, 5))
        >>> spectral_participation([wave, wave + other]).round(6)
        array([1. , 0.5])
    """
    batch = read_fields(fields, axes)
    return batch.back((_folded(batch).reshape(len(batch.values), -1) ** 2).sum(axis=1))


def oscillatory_from(shape: tuple[int, ...]) -> float:
    """Spectral participation from which a field is oscillatory: twice that of noise, about 8/N.

    Such a field is made of fewer than a quarter of the waves, as one that counts as localized lives
    on fewer than a quarter of the sites. The energy of noise in a wave has two degrees of freedom
    of N, or one where the wave is its own mirror image; the mean square of d of N shares is d (d +
    2)/(N (N + 2)).

    Example:
        >>> round(oscillatory_from((40,)), 3)
        0.188
    """
    size, single = math.prod(shape), math.prod(1 + (n % 2 == 0) for n in shape)
    return 2 * (8 * (size - single) // 2 + 3 * single) / (size * (size + 2))


def _folded(batch: FieldBatch) -> np.ndarray:
    """The spectrum with k and −k merged also where the last frequency is 0 or N/2."""
    power = _spectrum(batch)
    if len(batch.shape) == 1:
        return power
    rest = tuple(range(1, power.ndim - 1))
    for last in {0, power.shape[-1] - 1} if batch.shape[-1] % 2 == 0 else {0}:
        plane = power[..., last]
        opposite = np.roll(np.flip(plane, rest), 1, rest)
        index = np.indices(plane.shape[1:])
        mirror = np.stack([(-i) % n for i, n in zip(index, plane.shape[1:], strict=True)])
        rank = np.ravel_multi_index(tuple(index), plane.shape[1:])
        other = np.ravel_multi_index(tuple(mirror), plane.shape[1:])
        power[..., last] = np.where(
            rank < other, plane + opposite, np.where(rank == other, plane, 0)
        )
    return power


@metric
def uncertainty(fields: Any, axes: int = 1) -> np.ndarray:
    """Product Δθ·Δk of the spreads in place and frequency: at least 1/2, infinite for a wave.

    Of the trigonometric polynomial through the sites, with Breitenberger's spreads on the circle:
    Δθ = √(1 − |τ|²)/|τ| with τ = ⟨exp(iθ)⟩, and Δk² = ⟨k²⟩, as a real field has no mean frequency.
    Without wrapping at the highest frequency, so that the bound holds; Σ_x exp(2πi x/N) w_x² in
    place of τ would give 0 for a single site.

    Returns:
        One number per field on a ring, one per axis (last axis) on a torus, each at least 1/2.

    Example:
        >>> x = np.arange(40)
        >>> uncertainty([np.exp(-((x - 20) ** 2) / 8), np.eye(40)[7]]).round(3)
        array([0.506, 1.832])
    """
    batch = read_fields(fields, axes)
    sites = tuple(range(1, batch.values.ndim))
    transform = np.fft.fftn(_unit(batch), axes=sites)
    for axis, n in enumerate(batch.shape, start=1):
        transform = np.fft.fftshift(transform, axes=axis)
        # N/2 and −N/2 are one on the lattice; half of each is the interpolation without bias.
        if n % 2 == 0:
            lowest = np.take(transform, [0], axis=axis) / 2
            inner = np.take(transform, range(1, n), axis=axis)
            transform = np.concatenate([lowest, inner, lowest], axis=axis)
    power = np.abs(transform) ** 2
    total = power.sum(axis=sites)
    products = []
    for axis, n in enumerate(batch.shape, start=1):
        k = np.arange(-(n // 2), n // 2 + 1)
        along = np.moveaxis(power, axis, -1).sum(axis=tuple(range(1, power.ndim - 1)))
        square = along @ k**2.0 / total
        last = transform.shape[axis] - 1
        upper, lower = (np.take(transform, range(i, last + i), axis=axis) for i in (1, 0))
        tau = np.abs((upper * lower.conj()).sum(axis=sites)) / total
        placed = tau > 1e-12  # a pure wave has τ = 0 up to rounding, and no place
        spread = np.sqrt(np.maximum(1 - tau**2, 0)) / np.where(placed, tau, 1)
        products.append(np.where(placed, spread * np.sqrt(square), np.inf))
    return batch.per_axis(np.stack(products, axis=1))


@metric
def entropic_excess(fields: Any, axes: int = 1) -> np.ndarray:
    """H(w²) + H(|ŵ|²) − ln N with the unitary transform: at least 0, as for a single site.

    1 − ln 2 ≈ 0.307 for each axis of a Gaussian bump that is neither narrow nor wide, 2.6 for noise
    on forty sites. Unlike `uncertainty` it does not mind fast oscillation: a Gabor has about ln 2
    on a ring, at any frequency that keeps its two lobes apart.

    Example:
        >>> x = np.arange(40)
        >>> entropic_excess([np.exp(-((x - 20) ** 2) / 8), np.eye(40)[7]]).round(3)
        array([0.307, 0.   ])
    """
    batch = read_fields(fields, axes)
    sites = tuple(range(1, batch.values.ndim))
    power = np.abs(np.fft.fftn(_unit(batch), axes=sites, norm="ortho")) ** 2
    return batch.back(_entropy(_shares(batch)) + _entropy(power) - np.log(batch.size))


def _entropy(shares: np.ndarray) -> np.ndarray:
    return entr(shares).reshape(len(shares), -1).sum(axis=1)
