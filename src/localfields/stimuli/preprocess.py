"""What is done to data before a network sees them: small values that compose.

Each step is fitted to samples once and returns what it then does to any sample, with its inverse
where it has one. Filters wrap around the lattice, as everything here does.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from .._spec import Choice, Kind, Nested, Spec, declare, number
from .._types import Field, Real
from ..errors import InputError
from ..lattice import along, distance

CHUNK = 4096  # rows taken to float64 at a time


@dataclasses.dataclass(frozen=True)
class Applied:
    """A fitted step: a function of rows, (num, size), and its inverse, if it has one."""

    forward: Callable[[np.ndarray], np.ndarray]
    backward: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, rows: Any) -> np.ndarray:
        """Do it to rows, in float64."""
        return self.forward(np.asarray(rows, np.float64))

    def inverse(self, rows: Any) -> np.ndarray:
        """Undo it: exact where nothing was lost, else the least that maps there.

        Raises:
            InputError: For a step that cannot be undone.
        """
        if self.backward is None:
            raise InputError(
                "This step has no inverse: it drops part of every sample, such as its contrast."
            )
        return self.backward(np.asarray(rows, np.float64))


class Preprocess(Spec):
    """One step. A new one is a subclass that declares its fields and defines `fit`."""

    family: ClassVar[str] = "preprocess"

    @abc.abstractmethod
    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """Fit the step to samples, (num, size), on a lattice of this shape."""


def fit_all(
    steps: tuple[Preprocess, ...], samples: np.ndarray, shape: tuple[int, ...]
) -> list[Applied]:
    """Fit steps one after another, each to what the ones before it leave."""
    fitted = []
    for place, step in enumerate(steps):
        fitted.append(step.fit(samples, shape))
        if place < len(steps) - 1:
            samples = apply_all(fitted[-1:], samples, np.float64)
    return fitted


def apply_all(fitted: list[Applied], samples: Any, dtype: Any) -> np.ndarray:
    """Do all steps to rows, a chunk at a time, so that float64 copies stay small."""
    result = np.empty(samples.shape, dtype)
    for index, rows in enumerate(_chunks(samples)):
        for step in fitted:
            rows = step(rows)
        result[index * CHUNK : (index + 1) * CHUNK] = rows
    return result


def _chunks(samples: Any) -> Iterator[np.ndarray]:
    """All rows in float64, a chunk at a time."""
    for start in range(0, len(samples), CHUNK):
        yield np.asarray(samples[start : start + CHUNK], np.float64)


def moments(samples: Any, matrix: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Mean of every site, and the covariance of all pairs or the variances, in float64."""
    mean = np.zeros(samples.shape[1])
    for rows in _chunks(samples):
        mean += rows.sum(axis=0)
    mean /= len(samples)
    second = np.zeros((samples.shape[1],) * 2 if matrix else samples.shape[1])
    for rows in _chunks(samples):
        rows = rows - mean
        second += rows.T @ rows if matrix else np.einsum("ns,ns->s", rows, rows)
    return mean, second / len(samples)


class Center(Preprocess):
    """Subtract the mean of every site."""

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """Means over the samples."""
        mean, _ = moments(samples, matrix=False)
        return Applied(lambda rows: rows - mean, lambda rows: rows + mean)


class Scale(Preprocess):
    """Divide by the standard deviation, so that the variance is one."""

    each: str = declare(
        Choice(("site", "all")),
        default="site",
        help="every site by its own deviation, or all by one",
    )

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """Deviations over the samples; a site that never varies is left alone."""
        mean, variance = moments(samples, matrix=False)
        if self.each == "all":
            variance = np.full_like(variance, np.mean(variance) + np.var(mean))
        sd = np.where(variance > 0, np.sqrt(variance), 1.0)
        return Applied(lambda rows: rows / sd, lambda rows: rows * sd)


class Whiten(Preprocess):
    """Make all variances one and all correlations zero, in the directions that vary enough.

    ZCA stays as close to the samples as can be, so that sites remain sites (Bell & Sejnowski 1997).
    PCA turns to the principal components, largest variance first: the lattice then has no meaning.
    Directions whose variance is below `cutoff` of the largest become zero, as they would be noise
    made loud.

    Example:
        >>> import numpy as np
        >>> mixing = np.array([[2.0, 1, 0], [0, 1, 0], [0, 0, 3]])
        >>> x = np.random.default_rng(0).normal(size=(50, 3)) @ mixing
        >>> y = Whiten().fit(x, (3,))(x)
        >>> bool(np.allclose(y.T @ y / 50, np.eye(3)))
        True
    """

    method: str = declare(
        Choice(("zca", "pca")),
        default="zca",
        help="keep the sites, or turn to principal components",
    )
    cutoff: Real = number(
        default=1e-6,
        low=0,
        high=1,
        symbol="c",
        help="directions below this part of the largest variance are dropped",
    )

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """From the eigenvectors of the covariance over the samples."""
        mean, covariance = moments(samples)
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > self.cutoff * values[0]
        root = np.sqrt(np.where(kept, values, 1.0))
        turned = vectors if self.method == "zca" else np.eye(len(values))
        forward = (vectors * (kept / root)) @ turned.T
        backward = (turned * (kept * root)) @ vectors.T
        return Applied(lambda rows: (rows - mean) @ forward, lambda rows: rows @ backward + mean)


class SpectralFilter(Preprocess):
    """A filter that acts on every sample in the same way, as a product with a spectrum."""

    @abc.abstractmethod
    def response(self, shape: tuple[int, ...]) -> np.ndarray:
        """Factor of every frequency, of the lattice's shape."""

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """The filter and, where no frequency is lost, its inverse."""
        factor = self.response(shape)
        lost = np.abs(factor) <= 1e-12 * np.abs(factor).max()
        back = np.where(lost, 0.0, 1 / np.where(lost, 1.0, factor))
        return Applied(lambda rows: _filtered(rows, factor), lambda rows: _filtered(rows, back))


def _filtered(rows: np.ndarray, factor: np.ndarray) -> np.ndarray:
    axes = tuple(range(1, factor.ndim + 1))
    transform = np.fft.fftn(rows.reshape(-1, *factor.shape), axes=axes) * factor
    return np.fft.ifftn(transform, axes=axes).real.reshape(rows.shape)


def gaussian_response(shape: tuple[int, ...], sigma: float) -> np.ndarray:
    """exp(−σ²k²/2) at every frequency k of the lattice: a periodic Gaussian blur."""
    square = np.zeros(shape)
    for axis, n in enumerate(shape):
        k = 2 * np.pi * np.fft.fftfreq(n)
        square = square + along(k**2, axis, len(shape))
    return np.exp(-(sigma**2) * square / 2)


class LowPass(SpectralFilter):
    """A Gaussian blur around the lattice. Constants pass unchanged."""

    sigma: Real = number(default=1.0, low=0, symbol="σ", help="width of the blur, in sites")

    def response(self, shape: tuple[int, ...]) -> np.ndarray:
        """exp(−σ²k²/2)."""
        return gaussian_response(shape, self.sigma)


class DifferenceOfGaussians(SpectralFilter):
    """Center minus surround, as retinal ganglion cells see: no response to a constant."""

    center: Real = number(
        default=0.5, low=0, closed=True, symbol="σ_c", help="width of the center, in sites"
    )
    surround: Real = number(
        default=1.5, low=0, symbol="σ_s", help="width of the surround, in sites"
    )

    def __check_init__(self):
        """Refuse a surround inside the center."""
        if np.any(np.asarray(self.surround) <= np.asarray(self.center)):
            raise InputError(
                f"`surround` must be wider than the center, got {self.surround} around "
                f"{self.center}. Common ratios are 1.6 to 3."
            )

    def response(self, shape: tuple[int, ...]) -> np.ndarray:
        """exp(−σ_c²k²/2) − exp(−σ_s²k²/2)."""
        return gaussian_response(shape, self.center) - gaussian_response(shape, self.surround)


class ContrastNormalize(Preprocess):
    """Give every sample mean zero and the same contrast: what is left is its form.

    A sample's contrast is √(variance + floor² · mean variance), so that faint ones are not made as
    loud as others.
    """

    floor: Real = number(
        default=0.1,
        low=0,
        closed=True,
        help="contrast at which amplification ends, of the usual one",
    )

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """The usual contrast, over the samples."""
        total = sum(rows.var(axis=1).sum() for rows in _chunks(samples))
        least = self.floor**2 * total / len(samples)

        def normalized(rows: np.ndarray) -> np.ndarray:
            mean = rows.mean(axis=1, keepdims=True)
            rows = rows - mean
            contrast = np.sqrt((rows**2).mean(axis=1, keepdims=True) + least)
            seen = contrast > 1e-12 * np.abs(mean)  # the rest is rounding
            return np.where(seen, rows / np.where(seen, contrast, 1.0), 0.0)

        return Applied(normalized)


class Saturate(Preprocess):
    """Compress every site: erf(g x/σ), with σ the root mean square over all sites.

    Small values keep their order and large ones end at ±1, so that heavy tails become light: the
    marginal's excess kurtosis falls toward −2 as the gain grows. On normal data this is the paper's
    nonlinear Gaussian process (`NLGP`).

    Example:
        >>> import numpy as np
        >>> Saturate(gain=100).fit(np.eye(2), (2,))(np.array([[-3.0, 0.5]])).tolist()
        [[-1.0, 1.0]]
    """

    gain: Real = number(
        default=1.0, low=0, symbol="g", help="steepness at zero, in units of one standard deviation"
    )

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """The root mean square over the samples."""
        from scipy.special import erf, erfinv

        mean, variance = moments(samples, matrix=False)
        slope = self.gain / (np.sqrt(np.mean(variance + mean**2)) or 1.0)
        # What has become ±1 comes back as the least that does.
        below_one = 1 - np.finfo(np.float64).epsneg
        return Applied(
            lambda rows: erf(slope * rows),
            lambda rows: erfinv(np.clip(rows, -below_one, below_one)) / slope,
        )


class Window(Preprocess):
    """Fade samples out toward the edge of a patch, whose borders meet on the torus."""

    width: Real = number(
        default=0.35,
        low=0,
        symbol="s",
        help="deviation of the Gaussian window, of the shortest axis",
    )

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """A Gaussian window around the middle of the patch."""
        middle = np.roll(distance(shape), [n // 2 for n in shape], axis=tuple(range(len(shape))))
        taper = np.exp(-0.5 * (middle / (self.width * min(shape))) ** 2).ravel()
        return Applied(lambda rows: rows * taper, lambda rows: rows / taper)


class Wrap(Preprocess):
    """Make a patch periodic: subtract the smooth part that holds the jumps between borders.

    The periodic component of Moisan (2011): the patch less the field that is harmonic inside and
    has the jumps across the borders. Linear; a patch that wraps already is left unchanged.
    """

    def fit(self, samples: Any, shape: tuple[int, ...]) -> Applied:
        """Nothing is looked at."""
        axes = tuple(range(1, len(shape) + 1))
        laplace = np.zeros(shape)
        for axis, n in enumerate(shape):
            turn = 2 * np.cos(2 * np.pi * np.arange(n) / n) - 2
            laplace = laplace + along(turn, axis, len(shape))
        laplace.flat[0] = 1.0  # the constant mode, set to zero below: anything but 0 will do

        def wrapped(rows: np.ndarray) -> np.ndarray:
            patch = rows.reshape(-1, *shape)
            jumps = np.zeros_like(patch)
            for axis in axes:
                first, last = np.take(patch, 0, axis), np.take(patch, -1, axis)
                index: list[Any] = [slice(None)] * patch.ndim
                for place, jump in ((0, last - first), (-1, first - last)):
                    index[axis] = place
                    jumps[tuple(index)] += jump
            # Poisson's equation with the jumps as sources, on the periodic lattice.
            smooth = np.fft.fftn(jumps, axes=axes) / laplace
            smooth[(slice(None), *(0,) * len(shape))] = 0
            return (patch - np.fft.ifftn(smooth, axes=axes).real).reshape(rows.shape)

        return Applied(wrapped)


@dataclasses.dataclass(frozen=True)
class Steps(Kind):
    """A field that holds steps, in their order."""

    static: ClassVar[bool] = False
    metavar = "STEP+STEP+…"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """Return a tuple of steps."""
        if isinstance(value, str):
            return self.parse(name, value)
        steps = value if isinstance(value, (tuple, list)) else (value,)
        return tuple(Nested("preprocess").check(name, step) for step in steps)

    def parse(self, name: str, text: str) -> tuple[Any, ...]:
        """Read `center+whiten:cutoff=0.01`; `none` for no step."""
        return () if text in ("", "none") else self.check(name, text.split("+"))

    def encode(self, value: tuple[Preprocess, ...]) -> list[Any]:
        """The JSON form."""
        return [step.to_json() for step in value]

    def text(self, value: tuple[Preprocess, ...]) -> str:
        """As it is typed: `center+whiten:cutoff=0.01`."""
        return "+".join(map(Nested("preprocess").text, value)) or "none"


PreprocessField = Field[
    tuple[Preprocess, ...], str | Preprocess | Sequence[str | Preprocess | dict[str, Any]]
]
