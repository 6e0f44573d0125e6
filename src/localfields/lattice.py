"""Rings and tori: distance, circulant operators by FFT, kernels, the real Fourier basis.

Everything translation invariant on a lattice is a *row*: the array of values at each displacement
from the origin, of the lattice's own shape. A row stands for the circulant matrix it generates,
which is never built. Functions act on the trailing axes, in numpy or in jax according to what they
are given.
"""

from __future__ import annotations

import abc
import functools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
import numpy as np
from jax.core import Tracer

from ._spec import Number, Row, Shape, Spec, declare
from ._types import Array, ArrayLike, Field, namespace
from .errors import InputError, shorten, show

# A dense root is one small matrix product per axis: measured faster than two FFTs up to this many
# sites per axis.
LARGEST_DENSE_AXIS = 160

# A change of a correlation worth a warning, per axis. At ξ/N = 0.15 exp(−d²/ξ²) changes by 4.31e-6
# for large N.
NOTICEABLE = 4.4e-6


def distance(shape: int | Sequence[int]) -> np.ndarray:
    """Distance of every site from the origin: Euclidean over the axes' ring distances.

    Example:
        >>> distance((6,))
        array([0., 1., 2., 3., 2., 1.])
    """
    shape = Shape().check("shape", shape)
    squares = np.zeros(shape)
    for axis, n in enumerate(shape):
        squares = squares + along(_ring(n) ** 2, axis, len(shape))
    return np.sqrt(squares)


def _ring(n: int) -> np.ndarray:
    sites = np.arange(n)
    return np.minimum(sites, n - sites).astype(float)


def along(values: Any, axis: int, axes: int) -> Any:
    """Values along one axis of a lattice, (…, n), with ones for the other axes: (…, 1, n, 1)."""
    ones = [1] * (axes - 1)
    return values.reshape(*values.shape[:-1], *ones[:axis], values.shape[-1], *ones[axis:])


def _axes(row: Any) -> tuple[int, ...]:
    return tuple(range(-row.ndim, 0))


def spectrum(row: Any) -> Any:
    """Eigenvalues of the circulant matrix of a symmetric row, at each frequency.

    Example:
        >>> spectrum(np.array([2.0, 1.0, 0.0, 1.0]))
        array([4., 2., 0., 2.])
    """
    xp, _ = namespace(row)
    return xp.fft.fftn(row).real


def row_of(eigenvalues: Any) -> Any:
    """The row whose circulant matrix has these eigenvalues (inverse of `spectrum`)."""
    xp, _ = namespace(eigenvalues)
    return xp.fft.ifftn(eigenvalues).real


def filtered(eigenvalues: Any, x: Any) -> Any:
    """Multiply the trailing axes of `x` by the circulant matrix with these eigenvalues."""
    xp, _ = namespace(x, eigenvalues)
    axes = _axes(eigenvalues)
    # x is real and the eigenvalues are even in k: half of the last axis is enough.
    half = eigenvalues[..., : eigenvalues.shape[-1] // 2 + 1]
    half = half.reshape((1,) * (x.ndim - eigenvalues.ndim) + half.shape)
    return xp.fft.irfftn(xp.fft.rfftn(x, axes=axes) * half, s=eigenvalues.shape, axes=axes)


def product(row: Any, x: Any) -> Any:
    """Circulant matrix times vector: Σ x for the covariance row of Σ.

    Example:
        >>> product(np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 3.0])).round(12)
        array([3., 1., 2.])
    """
    xp, _ = namespace(row, x)
    axes = _axes(row)
    # The row need not be symmetric here: the full complex transform is kept.
    transform = xp.fft.fftn(row).reshape((1,) * (x.ndim - row.ndim) + row.shape)
    return xp.fft.ifftn(xp.fft.fftn(x, axes=axes) * transform, axes=axes).real


def root(row: Any) -> Any:
    """Row of the symmetric square root of a covariance; negative eigenvalues count as zero."""
    xp, _ = namespace(row)
    return row_of(xp.sqrt(xp.maximum(spectrum(row), 0)))


def inverse(row: Any) -> Any:
    """Row of the inverse of a circulant covariance.

    Raises:
        InputError: When an eigenvalue is zero to rounding, so that there is no inverse.
    """
    values = spectrum(row)
    if isinstance(values, np.ndarray) and np.abs(values).min() <= 1e-14 * np.abs(values).max():
        raise InputError(
            f"This row cannot be inverted: its smallest eigenvalue is {np.abs(values).min():.2g}, "
            f"its largest {np.abs(values).max():.2g}. Shorten the lengthscale, or solve a sum of "
            "rows."
        )
    return row_of(1 / values)


def matrix(row: Any) -> Any:
    """The dense circulant matrix of a row, (size, size), sites in C order."""
    xp, _ = namespace(row)
    sites = np.indices(row.shape).reshape(row.ndim, -1)
    wrapped = [(s[None, :] - s[:, None]) % n for s, n in zip(sites, row.shape, strict=True)]
    return xp.asarray(row)[tuple(wrapped)]


def shifted(x: Any, by: int | Sequence[int], axes: int = 1) -> Any:
    """Move the pattern on the trailing `axes` lattice axes by this many sites.

    Example:
        >>> shifted(np.array([1, 2, 3, 4]), 1)
        array([4, 1, 2, 3])
    """
    xp, _ = namespace(x)
    by = (by,) * axes if isinstance(by, int) else tuple(by)
    return xp.roll(x, by, axis=tuple(range(-axes, 0)))


def fourier_basis(shape: int | Sequence[int]) -> np.ndarray:
    """The orthonormal real Fourier basis, one function per column, sorted by frequency.

    On a ring: the constant, then cos and sin of each frequency (with the factor √(2/N) that makes
    them unit vectors), then the alternating function if N is even. On a torus: products, sorted by
    the length of the frequency vector.

    Returns:
        (size, size), sites in C order; `fourier_frequencies` gives the frequency of each column.

    Example:
        >>> basis = fourier_basis((5,))
        >>> bool(np.allclose(basis.T @ basis, np.eye(5)))
        True
    """
    shape = Shape().check("shape", shape)
    basis = np.ones((1, 1))
    for n in shape:
        basis = np.kron(basis, _ring_basis(n))
    return basis[:, _frequency_order(shape)]


def fourier_frequencies(shape: int | Sequence[int]) -> np.ndarray:
    """Frequency (cycles around each axis) of each column of `fourier_basis`, (size, axes)."""
    shape = Shape().check("shape", shape)
    return _tensor_frequencies(shape)[_frequency_order(shape)]


def _ring_basis(n: int) -> np.ndarray:
    x = np.arange(n)
    columns = [np.full(n, 1 / math.sqrt(n))]
    for k in range(1, (n + 1) // 2):
        phase = 2 * np.pi * ((k * x) % n) / n  # of small angles: cos and sin keep their digits
        columns += [math.sqrt(2 / n) * np.cos(phase), math.sqrt(2 / n) * np.sin(phase)]
    if n % 2 == 0:
        columns.append((-1.0) ** x / math.sqrt(n))
    return np.stack(columns, axis=1)


def _tensor_frequencies(shape: Sequence[int]) -> np.ndarray:
    per_axis = [(np.arange(n) + 1) // 2 for n in shape]
    return np.stack([grid.ravel() for grid in np.meshgrid(*per_axis, indexing="ij")], axis=1)


def _frequency_order(shape: Sequence[int]) -> np.ndarray:
    return np.argsort((_tensor_frequencies(shape) ** 2).sum(axis=1), kind="stable")


class Kernel(Spec):
    """A positive correlation as a function of displacement, with lengthscale ξ."""

    family: ClassVar[str] = "kernel"

    @abc.abstractmethod
    def spectra(self, shape: tuple[int, ...], xi: Any) -> list[Any]:
        """Eigenvalues: one array per axis if the kernel is separable, else one of full shape."""

    def correlation(self, shape: tuple[int, ...], xi: Any) -> np.ndarray:
        """The exact correlation row, of the lattice's shape."""
        spectra = self.spectra(shape, xi)
        if len(spectra) == 1:
            return row_of(spectra[0]).reshape(shape)
        row = np.ones(shape)
        for axis, values in enumerate(spectra):
            row = row * along(row_of(values), axis, len(shape))
        return row

    def distortion(self, shape: tuple[int, ...], xi: Any) -> float:
        """Largest change that making the kernel positive makes to a correlation."""
        return 0.0


class SquaredExponential(Kernel):
    """exp(−d²/ξ²) in the ring distance d, without its negative eigenvalues, at unit variance.

    Wrapping gives the kernel a kink at d = N/2, which makes it indefinite from ξ/N ≈ 0.1 on. The
    original code cuts without restoring the variance, which inflates it by up to 6 %.
    """

    def spectra(self, shape: tuple[int, ...], xi: Any) -> list[Any]:
        """Eigenvalues along each axis."""
        return [positive_part(spectrum(_gaussian_row(n, xi))) for n in shape]

    def distortion(self, shape: tuple[int, ...], xi: Any) -> float:
        """Largest change of a correlation by that, over the lattice and the values of ξ."""
        values = np.atleast_1d(np.asarray(xi, dtype=float))
        rows = [
            (functools.reduce(np.multiply.outer, [_gaussian_row(n, x) for n in shape]), x)
            for x in values
        ]
        return max(float(np.abs(self.correlation(shape, x) - row).max()) for row, x in rows)


class Periodized(Kernel):
    """Σ_m exp(−(d + mN)²/ξ²), normalized: smooth around the ring and positive for every ξ."""

    def spectra(self, shape: tuple[int, ...], xi: Any) -> list[Any]:
        """Eigenvalues along each axis, by Poisson summation: each is positive by itself."""
        xp, _ = namespace(xi)
        spectra = []
        for n in shape:
            # exp(−(πξj/N)²) summed over the aliases j = k + mN. The aliases that matter have |j| <
            # 9N/(πξ), and ξ may be traced, so that enough are taken for ξ = 0.05, below which the
            # lattice is white.
            alias = np.arange(-60, 61)[:, None] * n + np.arange(n)[None, :]
            values = xp.exp(-((np.pi * xi * alias / n) ** 2)).sum(axis=0)
            spectra.append(values * (n / values.sum()))
        return spectra


class Given(Kernel):
    """A kernel given by its row: the correlation at each displacement, of the lattice's shape."""

    row: Array = declare(
        Row(axes=None), default=(1.0, 0.0), symbol="C", help="correlation at each displacement"
    )

    def spectra(self, shape: tuple[int, ...], xi: Any) -> list[Any]:
        """Eigenvalues on the whole lattice, made positive like any others."""
        return [positive_part(spectrum(self.row))]

    def distortion(self, shape: tuple[int, ...], xi: Any) -> float:
        """Largest change of an entry of the row."""
        return float(np.abs(self.correlation(shape, xi) - self.row).max())


KernelLike = Kernel | str | Mapping[str, Any] | Callable[[np.ndarray], Any] | ArrayLike
KernelField = Field[Kernel, KernelLike]  # a kernel, its name, a function of d/ξ, or a row


def _gaussian_row(n: int, xi: Any) -> Any:
    xp, _ = namespace(xi)
    # Far beyond a tiny ξ the exponent is −∞ and the correlation 0, as it should be.
    with np.errstate(over="ignore"):
        return xp.exp(-((_ring(n) / xi) ** 2))


def positive_part(eigenvalues: Any) -> Any:
    """Cut eigenvalues at zero and rescale so that the variance is exactly one."""
    xp, _ = namespace(eigenvalues)
    nonnegative = xp.maximum(eigenvalues, 0)
    return nonnegative / nonnegative.mean()  # the variance of a site is the mean eigenvalue


def normalize_kernel(given: dict[str, Any]) -> dict[str, Any]:
    """Turn a function of distance, or an array, given as `kernel` into a `Given` row."""
    kernel = given["kernel"]
    if isinstance(kernel, (Spec, str, dict, type)):
        return given
    if callable(kernel):
        distances = distance(given["shape"])
        xi = Number(low=0).check("xi", given["xi"])
        _require_one_lengthscale(xi)
        try:
            row = np.asarray(kernel(distances / xi), dtype=np.float64)
        except Exception as error:
            raise InputError(
                f"The kernel function failed: {shorten(error)}. "
                "It is called once with an array of distances in units of ξ."
            ) from None
        kernel = row
    return given | {"kernel": Given(Row(axes=None).check("kernel", kernel))}


def check_kernel(kernel: Kernel, shape: tuple[int, ...], xi: Any) -> None:
    """Check a given row; warn when making the kernel positive changes it noticeably."""
    if isinstance(kernel, Given):
        check_row("kernel", kernel.row, shape)
        _require_one_lengthscale(xi)
    if isinstance(xi, Tracer):
        return  # inside compiled code; the value was checked where it was made
    change = kernel.distortion(shape, xi)
    if change > NOTICEABLE * len(shape):
        warnings.warn(
            f"The kernel is not positive on a lattice of shape {shape} with ξ = {show(xi)}: "
            "negative eigenvalues were cut and the variance restored, which changes correlations "
            f"by up to {change:.2g}. "
            "`kernel='periodized'` is positive for every ξ.",
            UserWarning,
            stacklevel=4,  # past __check_init__ and the module class, to the caller
        )


def _require_one_lengthscale(xi: Any) -> None:
    if np.ndim(xi):
        raise InputError(
            f"`xi` has {np.size(xi)} values, but a kernel given as a row has a fixed lengthscale. "
            "Name a kernel to sweep `xi`."
        )


def check_row(name: str, row: np.ndarray, shape: tuple[int, ...]) -> None:
    """Check that a row is a correlation: shape, symmetry, 1 at zero, within ±1."""
    if row.shape != shape:
        raise InputError(
            f"`{name}` has shape {row.shape}, and the lattice has {shape}. "
            "Give one value per displacement, starting at zero."
        )
    mirrored = row
    for axis in range(row.ndim):
        mirrored = np.roll(np.flip(mirrored, axis), 1, axis)
    if np.abs(row - mirrored).max() > 1e-9:
        raise InputError(
            f"`{name}` differs from its mirror image by {np.abs(row - mirrored).max():.2g}. "
            "Correlations satisfy C(d) = C(−d): symmetrize the row."
        )
    if abs(row.flat[0] - 1) > 1e-9:
        raise InputError(
            f"`{name}` must be 1 at displacement zero, got {float(row.flat[0]):g}. "
            "Divide the row by its first entry."
        )
    if np.abs(row).max() > 1 + 1e-9:
        worst = float(row.flat[np.abs(row).argmax()])
        raise InputError(
            f"`{name}` must lie between −1 and 1, got {worst:g}. Give correlations, not "
            "covariances."
        )


def colored(white: Any, kernel: Kernel, shape: tuple[int, ...], xi: Any) -> Any:
    """Turn independent unit normals (num, *shape) into normals with the kernel's correlation.

    Small separable lattices take one dense root per axis, the others two FFTs: O(N log N) per
    sample, and nothing of size N² on a torus.
    """
    xp, _ = namespace(white)
    spectra = kernel.spectra(shape, xp.asarray(xi, dtype=white.dtype))
    separable = len(spectra) == len(shape)
    if separable and max(shape) <= LARGEST_DENSE_AXIS:
        for axis, values in enumerate(spectra):
            white = xp.moveaxis(_dense(white, axis + 1, values), -1, axis + 1)
        return white
    if separable:
        values = spectra[0]
        for along_axis in spectra[1:]:  # an outer product, one axis after another
            ones = (1,) * values.ndim
            values = values[..., None] * along_axis.reshape(ones + along_axis.shape)
        spectra = [values]
    return filtered(xp.sqrt(spectra[0]), white).astype(white.dtype)


def _dense(x: Any, axis: int, eigenvalues: Any) -> Any:
    xp, _ = namespace(x)
    square = matrix(row_of(xp.sqrt(eigenvalues))).astype(x.dtype)
    # Full float32 products: the default on a GPU is TF32, whose error of 1e-3 would show in the
    # covariance.
    return jax.numpy.matmul(xp.moveaxis(x, axis, -1), square, precision=jax.lax.Precision.HIGHEST)
