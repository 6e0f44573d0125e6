"""Elliptical stimuli X = R Λ U: a radius times a colored uniform direction. None localizes.

All are scaled so that the covariance is the kernel's correlation; with a bare radius it would be
E[R²]/D of it.
"""

from __future__ import annotations

import abc
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Nested, declare, number
from .._types import Field, Lattice, Real, working_dtype
from ..errors import InputError, show
from ..lattice import KernelField, SquaredExponential, colored, normalize_kernel
from ..marginals import Marginal, SphereProjection, Tabulated
from ..marginals import StudentT as StudentTMarginal
from ..marginals.base import STANDARD_TOL, MarginalLike, uniform_rule
from ..marginals.numeric import as_marginal
from .base import KERNEL, LATTICE, LENGTHSCALE, Colored


class EllipticalStimulus(Colored):
    """What elliptical stimuli share; a subclass says how far out a draw lies."""

    @property
    def elliptical(self) -> bool:
        """Yes."""
        return True

    @property
    def weakly_dependent(self) -> bool:
        """No: the common radius ties all sites together."""
        return False

    @abc.abstractmethod
    def stretch(self, key: Any, length: jax.Array) -> jax.Array:
        """Factor for white normals of this length, such that E (factor × length)² = D."""

    def draw(self, key: Any, num: int) -> jax.Array:
        """Color white noise and stretch each draw to its radius."""
        for_direction, for_radius = jax.random.split(key)
        white = jax.random.normal(for_direction, (num, *self.shape), working_dtype())
        length = jnp.sqrt(jnp.sum(white.reshape(num, -1) ** 2, axis=1))
        factor = self.stretch(for_radius, length)
        z = colored(white, self.kernel, self.shape, self.xi)
        return z.reshape(num, self.size) * factor[:, None]

    def covariance(self) -> np.ndarray:
        """The kernel's correlation."""
        self.require_one("to take the covariance of")
        return self.kernel.correlation(self.shape, self.xi)


class StudentT(EllipticalStimulus):
    """Multivariate t: a Gaussian over a common random scale. Kurtosis 3 + 6/(ν − 4), ∞ for ν ≤ 4.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.StudentT((40,), xi=3, nu=3).marginal().kurtosis
        inf
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    nu: Real = number(
        default=5.0,
        low=2,
        symbol="ν",
        help="degrees of freedom: small ν gives heavy tails",
        hint="At ν ≤ 2 the variance is infinite.",
    )
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    def stretch(self, key: Any, length: jax.Array) -> jax.Array:
        """√((ν − 2)/χ²_ν)."""
        nu = jnp.asarray(self.nu, length.dtype)
        return jnp.sqrt((nu - 2) / 2 / _gamma(key, nu / 2, length))  # χ²/2

    def marginal(self) -> Marginal:
        """Student's t at unit variance."""
        return StudentTMarginal(self.nu)


def _gamma(key: Any, order: jax.Array, like: jax.Array) -> jax.Array:
    """Gamma variables of an order above 1, one for each entry of `like` (Marsaglia and Tsang 2000).

    JAX's own go one by one on a CPU, each with keys of its own, and would take eight times as long
    as all normals of the same draws. Here all are proposed at once, and those refused (one in
    twenty at most) once more.
    """
    d = order - 1 / 3

    def propose(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        turn, value, settled = state
        for_normal, for_uniform = jax.random.split(jax.random.fold_in(key, turn))
        z = jax.random.normal(for_normal, like.shape, like.dtype)
        cube = (1 + z / jnp.sqrt(9 * d)) ** 3
        bound = 0.5 * z**2 + d * (1 - cube + jnp.log(jnp.maximum(cube, jnp.finfo(like.dtype).tiny)))
        accepted = (cube > 0) & (
            -jax.random.exponential(for_uniform, like.shape, like.dtype) < bound
        )
        return turn + 1, jnp.where(accepted & ~settled, d * cube, value), settled | accepted

    start = jnp.zeros((), jnp.int32), jnp.ones_like(like), jnp.zeros(like.shape, bool)
    return jax.lax.while_loop(lambda state: ~jnp.all(state[2]), propose, start)[1]


class EllipticalShell(EllipticalStimulus):
    """Points on an ellipsoid, R = √D: excess kurtosis −6/(D + 2), and still no localization.

    Example:
        >>> import localfields as lf
        >>> round(lf.stimuli.EllipticalShell((40,)).marginal().kurtosis, 3)
        2.857
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    def stretch(self, key: Any, length: jax.Array) -> jax.Array:
        """√D over the length."""
        return math.sqrt(self.size) / length

    def marginal(self) -> Marginal:
        """One coordinate of a sphere."""
        return SphereProjection(self.size)


class EllipticalExtreme(EllipticalStimulus):
    """Radius with density sech²(r − 2) on r ≥ 2 (paper §4.3), far from any Gaussian.

    Example:
        >>> import localfields as lf
        >>> round(lf.stimuli.EllipticalExtreme((40,)).marginal().kurtosis, 3)
        3.545
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    def stretch(self, key: Any, length: jax.Array) -> jax.Array:
        """R = 2 + artanh(u), with E R² = 4 + 4 ln 2 + π²/12."""
        u = jax.random.uniform(key, length.shape, length.dtype)
        second = 4 + 4 * math.log(2) + math.pi**2 / 12
        return (2 + jnp.arctanh(u)) * (math.sqrt(self.size / second) / length)

    def marginal(self) -> Marginal:
        """A sphere's coordinate, averaged over the radius."""
        v, delta, weights = uniform_rule()
        return SphereProjection(self.size, 2 + 0.5 * np.log1p(2 * v / delta), weights)


def _flat_radius() -> Tabulated:
    return Tabulated.of(lambda u: u)


class Elliptical(EllipticalStimulus):
    """Any radius, given by its quantile function, in any unit: Cov is the kernel's correlation.

    Example:
        >>> import numpy as np, localfields as lf
        >>> disk = lf.stimuli.Elliptical((40,), xi=3, radial=lambda u: np.sqrt(u))
        >>> round(disk.marginal().kurtosis, 4)  # 3D/(D + 2) · E R⁴/(E R²)²
        3.8095
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    radial: Field[Tabulated, MarginalLike] = declare(
        Nested("marginal", as_marginal),
        default=_flat_radius(),
        symbol="R",
        help="distribution of the radius: its quantile function",
    )
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Evaluate functions; put the radius at E R² = 1."""
        radial = Nested("marginal", as_marginal).check("radial", given["radial"])
        if not isinstance(radial, Tabulated):
            raise InputError(
                "`radial` must be a quantile function u ↦ r, or a `Tabulated` marginal, got "
                f"{show(radial)}."
            )
        if radial.table[0] < 0:
            raise InputError(
                f"`radial` gives a radius of {radial.table[0]:g}. A radius cannot be negative."
            )
        length = math.hypot(radial.mean, radial.sd)
        if abs(length - 1) > STANDARD_TOL:  # otherwise a copy would differ in its last bits
            radial = Tabulated(radial.table / length)
        return normalize_kernel(given) | {"radial": radial}

    def stretch(self, key: Any, length: jax.Array) -> jax.Array:
        """R at a random normal score, over the length."""
        z = jax.random.normal(key, length.shape, length.dtype)
        return self.radial.from_normal(z) * (math.sqrt(self.size) / length)

    def marginal(self) -> Marginal:
        """A sphere's coordinate, averaged over the radius."""
        radii, weights = self.radial.condensed()
        return SphereProjection(self.size, radii, weights)
