"""`fit_gabor`: a wave under a Gaussian envelope, on a ring or a torus."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from ..errors import InputError
from ..trajectory import inverse_participation_ratio, peak_position
from ._fields import FieldBatch, leading_sign, read_fields, sites, wrapped
from ._project import Model, fit
from .metrics import metric
from .shape import position, spectral_peak

NARROWEST = 0.2  # sites; the envelope is then below 1e-5 on the next site
IMAGES = {1: 3, 2: 1}  # how often the field goes around each axis, to either side
WIDEST = {1: 1 / 2, 2: 1 / 5}  # of an axis; what further images would add is below 1e-10
# Where to start from the spectral peak, in half radians per width.
BESIDE = {1: (-2, -1, 0.1, 1, 2), 2: (0.1, 1)}
SLOW = 0.01  # cycles a width; the Gabor is then a Gaussian within 1e-6 of itself
MOVED = 1e-3  # widths by which a Gaussian may be moved in place of a sine, with the same accuracy
ALONE = 1 / 14  # of an axis; an envelope narrower than this needs no images


@dataclasses.dataclass(frozen=True, eq=False)
class GaborFit:
    """Gabors fitted to fields. `fit_gabor` makes it.

    w(x) ≈ Σ_m g(d + m∘N) over all ways around the lattice, with d = x − position and
    g(d) = amplitude · exp(−½ dᵀ covariance⁻¹ d) · cos(2π f·d/N + phase).

    Args:
        shape: The lattice.
        position: Center of the envelope in sites, from 0 to N; one per axis (last axis) on a torus.
        covariance: Of the envelope in sites², (…, axis, axis).
        frequency: Cycles around the ring, not whole in general; one per axis (last axis) on a
            torus, where the first that is not zero is positive.
        phase: At the center, from −π to π: 0 an even field, ±π one that is negative at its center,
            ±π/2 an odd one.
        amplitude: Of the wave at the center, not negative.
        error: ‖w − fit‖/‖w‖, from 0 to 1.
    """

    shape: tuple[int, ...]
    position: np.ndarray
    covariance: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray
    amplitude: np.ndarray
    error: np.ndarray

    @property
    def width(self) -> np.ndarray:
        """Standard width of the envelope in sites; on a torus (…, 2), the long one first."""
        widths = np.sqrt(np.linalg.eigvalsh(self.covariance))[..., ::-1]
        return widths[..., 0] if len(self.shape) == 1 else widths

    @property
    def aspect(self) -> np.ndarray:
        """Long width of the envelope over the short one, on a torus."""
        self._require_plane("The aspect ratio")
        return np.asarray(self.width[..., 0] / self.width[..., 1])

    @property
    def elongation(self) -> np.ndarray:
        """Direction of the envelope's long axis, from 0 (the first lattice axis) to π."""
        self._require_plane("The direction of elongation")
        along = np.linalg.eigh(self.covariance)[1][..., -1]
        return np.asarray(np.arctan2(along[..., 1], along[..., 0]) % np.pi)

    @property
    def orientation(self) -> np.ndarray:
        """Direction in which the wave goes, from 0 (the first lattice axis) to π, on a torus.

        Its bars lie across. Without meaning where the frequency is nearly 0.
        """
        self._require_plane("The orientation")
        along = self.frequency / np.array(self.shape)
        return np.asarray(np.arctan2(along[..., 1], along[..., 0]) % np.pi)

    @property
    def cycles(self) -> np.ndarray:
        """Cycles of the wave within one width of the envelope: 0 for a bump, 1 for a wavelet."""
        frequency = self.frequency if len(self.shape) > 1 else self.frequency[..., None]
        along = frequency / np.array(self.shape)
        return np.asarray(np.sqrt(np.einsum("...a,...ab,...b->...", along, self.covariance, along)))

    def curve(self) -> np.ndarray:
        """The Gabors at all sites, (…, *shape)."""
        axes = len(self.shape)
        lead = self.error.shape
        place, frequency = (x.reshape(-1, axes) for x in (self.position, self.frequency))
        factor = np.linalg.cholesky(np.linalg.inv(self.covariance.reshape(-1, axes, axes)))
        parameters = np.concatenate([place, _packed(factor), frequency], axis=1)
        phase, amplitude = self.phase.reshape(-1), self.amplitude.reshape(-1)
        columns = _gabors(self.shape).columns(parameters)
        values = amplitude[:, None] * (
            np.cos(phase)[:, None] * columns[..., 0] - np.sin(phase)[:, None] * columns[..., 1]
        )
        return values.reshape(*lead, *self.shape)

    def _require_plane(self, quantity: str) -> None:
        if len(self.shape) != 2:
            raise InputError(
                f"{quantity} is defined for fields on a torus, got fields on {self.shape}."
            )


def fit_gabor(fields: Any, axes: int = 1) -> GaborFit:
    """Fit a Gabor, a wave under a Gaussian envelope, to every field.

    It starts from closed forms (moments of the energy, inverse participation ratio, spectral peak),
    several of them, and goes on by least squares, in which amplitude and phase are solved for. An
    envelope may be up to half as wide as a ring (a fifth of a torus); a field that wants a wider
    one is a wave: see `fit_sinusoid`. A field that is the derivative of a Gaussian has no best fit,
    as ever lower frequencies with ever larger amplitudes come ever nearer.

    Args:
        fields: Fields (…, *shape).
        axes: How many trailing axes are the lattice: 1 on a ring, 2 on a torus.

    Returns:
        A `GaborFit`, whose arrays have the leading axes of the fields.

    Raises:
        InputError: For fields that are not finite, or zero everywhere, or of fewer than eight sites
            an axis.

    Example:
        >>> import numpy as np
        >>> from localfields.analysis import fit_gabor
        >>> d = np.arange(40) - 17.5
        >>> gabor = fit_gabor(np.exp(-(d**2) / 2 / 3.0**2) * np.cos(2 * np.pi * 5.5 * d / 40 + 1))
        >>> np.round([gabor.position, gabor.width, gabor.frequency, gabor.phase], 4)
        array([17.5,  3. ,  5.5,  1. ])
    """
    batch = read_fields(fields, axes, least=8, most_axes=2)
    sizes = np.array(batch.shape)
    low, high = _ends(batch.shape)
    solution = fit(_gabors(batch.shape), batch.flat, _starts(batch), low, high)
    place, covariance, frequency, coefficients = _without_wave(
        solution.parameters, solution.coefficients, batch.shape
    )
    real, imaginary = coefficients.T
    around = np.round(frequency / sizes)  # frequencies that differ by N are one at the sites
    frequency = frequency - around * sizes
    sign = leading_sign(frequency)
    phase = np.arctan2(-imaginary, real) - 2 * np.pi * (around * place).sum(axis=1)
    return GaborFit(
        shape=batch.shape,
        position=batch.per_axis(place % sizes),
        covariance=batch.back(covariance),
        frequency=batch.per_axis(frequency * sign),
        phase=batch.back(wrapped(phase * sign[:, 0])),
        amplitude=batch.back(np.hypot(real, imaginary)),
        error=batch.back(solution.residual / np.sqrt((batch.flat**2).sum(axis=1))),
    )


@metric(slow=True)
def gabor_error(fields: Any, axes: int = 1) -> np.ndarray:
    """Relative error ‖w − fit‖/‖w‖ of the best Gabor."""
    return fit_gabor(fields, axes).error


def _without_wave(
    parameters: np.ndarray, coefficients: np.ndarray, shape: tuple[int, ...]
) -> tuple[np.ndarray, ...]:
    """Center, covariance, frequency and coefficients, with frequency 0 for very slow waves.

    To first order in k·d, exp(−½ dᵀPd) (c cos k·d + s sin k·d) is c times the same Gaussian moved
    by (s/c) P⁻¹k, and to second order its cosine turns P into P + kkᵀ.
    """
    place, factor, frequency = _unpacked(parameters, len(shape))
    precision = factor @ factor.swapaxes(1, 2)
    rate = 2 * np.pi * frequency / np.array(shape)
    even, odd = coefficients.T
    reach = np.einsum("fab,fb->fa", np.linalg.inv(precision), rate)
    length = np.sqrt((reach * rate).sum(axis=1))
    slow = (length < 2 * np.pi * SLOW) & (np.abs(odd) * length < MOVED * np.abs(even))
    ratio = np.where(slow, odd / np.where(slow, even, 1), 0)
    precision = precision + slow[:, None, None] * rate[:, :, None] * rate[:, None, :]
    coefficients = np.stack([even, np.where(slow, 0, odd)], axis=1)
    return (
        place + ratio[:, None] * reach,
        np.linalg.inv(precision),
        np.where(slow[:, None], 0, frequency),
        coefficients,
    )


# Parameters of one Gabor, in a row: center, logarithms of the diagonal of the factor L of
# covariance⁻¹ = L Lᵀ, what is below its diagonal, frequency. Unlike widths and an angle, the factor
# is smooth where the envelope is round.


def _packed(factor: np.ndarray) -> np.ndarray:
    diagonal = np.log(np.diagonal(factor, axis1=1, axis2=2))
    return np.concatenate([diagonal, factor[:, 1:, 0]], axis=1)


def _unpacked(parameters: np.ndarray, axes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    factor = np.zeros((len(parameters), axes, axes))
    index = np.arange(axes)
    factor[:, index, index] = np.exp(parameters[:, axes : 2 * axes])
    if axes == 2:
        factor[:, 1, 0] = parameters[:, 4]
    return parameters[:, :axes], factor, parameters[:, -axes:]


def _ends(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    axes, sizes = len(shape), np.array(shape)
    narrow, wide = np.full(axes, 1 / NARROWEST), 1 / (sizes * WIDEST[axes])
    lean = [1 / NARROWEST] * (axes - 1)
    # Frequencies may cross 0 and N/2, where the search would stand still by symmetry; they are
    # folded afterwards.
    low = np.concatenate([-sizes, np.log(wide), [-x for x in lean], -2 * sizes])
    return low, np.concatenate([2 * sizes, np.log(narrow), lean, 2 * sizes])


def _starts(batch: FieldBatch) -> np.ndarray:
    """Parameters to start from, (start, field, parameter), in closed form."""
    axes, sizes, num = len(batch.shape), np.array(batch.shape), len(batch.values)
    largest = peak_position(batch.values, axes).reshape(num, axes).astype(float)
    middle = position(batch.values, axes).reshape(num, axes)
    # What a Gabor's ratio says of its width, as if the envelope was round: 1.5/((2π)^½ s) per axis.
    ratio = inverse_participation_ratio(batch.values, axes)
    compact = (1.5 / ratio) ** (1 / axes) / np.sqrt(2 * np.pi)
    peak = spectral_peak(batch.values, axes).reshape(num, axes).astype(float)
    along = np.where(peak.any(axis=1, keepdims=True), np.sign(peak), 1.0)
    starts = []
    for place, scale, beside in itertools.product((middle, largest), (0.5, 1.0, 2.0), BESIDE[axes]):
        spread = np.clip(compact[:, None] * scale, 2 * NARROWEST, sizes * WIDEST[axes] / 1.5)
        frequency = peak + along * beside * sizes / (4 * np.pi * spread)
        starts.append(
            np.concatenate([place, -np.log(spread), np.zeros((num, axes - 1)), frequency], axis=1)
        )
    return np.stack(starts)


def _gabors(shape: tuple[int, ...]) -> Model:
    """Both phases of a Gabor, cosine and sine, and the derivatives of their combination."""
    axes, sizes, places = len(shape), np.array(shape), sites(shape)

    def images(parameters: np.ndarray) -> Any:
        """Yield which fields and, for each image, displacements d, z = Lᵀd, and complex values.

        Of shapes (field, site, axis), the same, and (field, site).
        """
        place, factor, frequency = _unpacked(parameters, axes)
        shortest = (places[None] - place[:, None] + sizes / 2) % sizes - sizes / 2
        inverse = np.linalg.inv(factor)
        spread = np.sqrt((inverse**2).sum(axis=1))  # along each axis
        # A narrow envelope has fallen to nothing before it wraps; a wide one meets itself.
        wide = (spread > ALONE * sizes).any(axis=1)
        every = list(itertools.product(range(-IMAGES[axes], IMAGES[axes] + 1), repeat=axes))
        for which, around in ((~wide, [(0,) * axes]), (wide, every)):
            if which.any():
                turns = 2 * np.pi * frequency[which]
                carrier = np.exp(1j * np.einsum("fsa,fa->fs", shortest[which], turns / sizes))
                for image in around:
                    d = shortest[which] + sizes * np.array(image)
                    z = d @ factor[which]
                    image_phase = np.exp(1j * turns @ np.array(image))[:, None]
                    yield which, d, z, carrier * (image_phase * np.exp((z**2).sum(axis=2) / -2))

    def columns(parameters: np.ndarray) -> np.ndarray:
        total = np.zeros((len(parameters), len(places), 2))
        for which, _, _, values in images(parameters):
            total[which] += np.stack([values.real, values.imag], axis=2)
        return total

    def tangent(parameters: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        _, factor, frequency = _unpacked(parameters, axes)
        total = np.zeros((len(parameters), len(places), parameters.shape[1]))
        for which, d, z, values in images(parameters):
            values = values * (coefficients[which, :1] - 1j * coefficients[which, 1:])
            swing, lower = values.real[..., None], factor[which]
            turn = -values.imag[..., None]  # the derivative by the angle
            rate = 2 * np.pi / sizes
            diagonal = np.diagonal(lower, axis1=1, axis2=2)[:, None]
            # By place, logarithms of the diagonal of L, the rest of L, and frequency.
            parts = [
                swing * (z @ lower.swapaxes(1, 2)) - turn * (rate * frequency[which])[:, None],
                -swing * z * d * diagonal,
                -swing * z[..., :1] * d[..., 1:],
                turn * d * rate,
            ]
            total[which] += np.concatenate(parts, axis=2)
        return total

    return Model(columns, tangent)
