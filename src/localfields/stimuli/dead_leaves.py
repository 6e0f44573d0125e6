"""Dead leaves: scenes of things that hide each other, at all scales."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Count, Nested, declare, number
from .._types import Lattice, Real, Whole, working_dtype
from ..lattice import along, distance
from ..marginals import Marginal, Uniform
from ..marginals.base import MarginalField
from .base import LATTICE, Stimulus


class DeadLeaves(Stimulus):
    """Disks of all sizes and grays that occlude each other: a scale-invariant model of images.

    Radii have the density r^−(d+1) on d axes between the smallest and the largest (r⁻³ on a torus):
    a scene looked at from twice the distance has the same distribution, within these bounds (Lee,
    Mumford & Huang 2001). Centers are uniform on the sites, and what no leaf covers shows one
    background, so that the distribution is exactly translation invariant. Two sites are alike
    if the first leaf that covers one of them covers both, and independent otherwise; this gives the
    covariance in closed form.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.DeadLeaves((16, 16), smallest=1, ratio=4).covariance()[0, :3].round(3)
        array([1.   , 0.472, 0.254])
    """

    shape: Lattice = declare(LATTICE, default=(16, 16))
    smallest: Real = number(default=1.0, low=0, symbol="r₋", help="smallest radius, in sites")
    ratio: Real = number(
        default=8.0, low=1, symbol="r₊/r₋", help="largest radius, in units of the smallest"
    )
    leaves: Whole = declare(
        Count(high=100_000),
        default=200,
        symbol="K",
        help="how many leaves; the background is behind them",
    )
    gray: MarginalField = declare(
        Nested("marginal"),
        default=Uniform(),
        symbol="F",
        help="distribution of a leaf's gray, such as uniform, two-point or laplace",
    )

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Put the grays at mean zero and unit variance."""
        return given | {"gray": Nested("marginal").check("gray", given["gray"]).standardized()}

    @property
    def sign_symmetric(self) -> bool:
        """As the distribution of the grays is."""
        return self.gray.symmetric

    @property
    def largest(self) -> Any:
        """Largest radius, in sites."""
        return self.smallest * self.ratio

    @property
    def weakly_dependent(self) -> bool:
        """Whether the largest leaves leave half of the shortest axis free of each other."""
        return bool(np.all(4 * np.asarray(self.largest) < min(self.shape)))

    def draw(self, key: Any, num: int) -> jax.Array:
        """Paint from the back to the front: the last leaf on a site is the first that is seen."""
        dtype, axes = working_dtype(), len(self.shape)
        for_gray, for_leaves = jax.random.split(key)
        gray = self.gray.from_normal(
            jax.random.normal(for_gray, (num, self.leaves + 1), dtype)
        ).astype(dtype)
        low, high = (
            jnp.asarray(radius, dtype) ** -axes for radius in (self.smallest, self.largest)
        )

        def paint(leaf: Any, x: jax.Array) -> jax.Array:
            for_radius, for_place = jax.random.split(jax.random.fold_in(for_leaves, leaf))
            # P(r > s) = (s^−d − r₊^−d)/(r₋^−d − r₊^−d); compared by squares, which are whole
            # numbers on the lattice.
            radius = (high + (low - high) * jax.random.uniform(for_radius, (num,), dtype)) ** (
                -1 / axes
            )
            place = jax.random.randint(
                for_place, (axes, num, 1), 0, jnp.asarray(self.shape).reshape(-1, 1, 1)
            )
            square = jnp.zeros((num,) + (1,) * axes, dtype)
            for axis, n in enumerate(self.shape):
                apart = jnp.abs(jnp.arange(n)[None, :] - place[axis])
                apart = jnp.minimum(apart, n - apart).astype(dtype) ** 2
                square = square + along(apart, axis, axes)
            column = (num,) + (1,) * axes
            return jnp.where(
                square <= (radius**2).reshape(column), gray[:, leaf].reshape(column), x
            )

        back = jnp.broadcast_to(
            gray[:, self.leaves].reshape((num,) + (1,) * axes), (num, *self.shape)
        )
        return jax.lax.fori_loop(0, self.leaves, paint, back).reshape(num, self.size)

    def covariance(self) -> np.ndarray:
        """σ² times the chance of one leaf at both sites, p∩ (1 − (1 − p∪)^K)/p∪ + (1 − p∪)^K."""
        self.require_one("to take the covariance of")
        both = self.coverage()
        either = 2 * both.flat[0] - both
        none = (1 - either) ** self.leaves
        return both * (1 - none) / either + none

    def coverage(self) -> np.ndarray:
        """Chance that one leaf covers both of two sites, exactly, at every displacement."""
        axes = len(self.shape)
        squares = np.rint(distance(self.shape) ** 2).astype(int)
        low, high = self.smallest**-axes, self.largest**-axes
        total = np.zeros(self.shape)
        steps = np.unique(squares)
        for square, after in zip(steps, [*steps[1:], np.inf], strict=True):
            # The disk is the sites within √square while the radius lies between this distance and
            # the next.
            ends = np.clip([np.sqrt(square), np.sqrt(after)], self.smallest, self.largest)
            chance = (ends[0] ** -axes - ends[1] ** -axes) / (low - high)
            if chance > 0:
                disk = np.fft.fftn(squares <= square)
                total += chance * np.fft.ifftn(np.abs(disk) ** 2).real
        return total / self.size

    def marginal(self) -> Marginal:
        """The distribution of the grays."""
        return self.gray
