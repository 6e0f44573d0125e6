"""Gates of half-spaces, 1(⟨v, x⟩ > 0): flat, bumps, votes, surrounds, waves, any direction."""

from __future__ import annotations

import abc
import math

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Count, Declaration, Row, declare, number, required
from ..._types import Array, Real, Whole, working_dtype
from ...errors import InputError
from ...lattice import along, distance
from .base import COPIES, Gates

TIE_ROUNDINGS = 64  # a projection below this many roundings of ‖v‖₁ is taken for zero


class HalfSpaces(Gates):
    """Gates 1(⟨v_k, x⟩ > 0), one direction v_k each.

    On data with ties, ⟨v, x⟩ = 0, a gate is open by √½ there. Its square then has the mean of a
    coin's, and by sign symmetry nothing else is felt: E[g² X Xᵀ] = ½Σ holds for every
    sign-symmetric distribution, ±1 data included.
    """

    @property
    def num_directions(self) -> int:
        """One per gate."""
        return self.num_gates

    @abc.abstractmethod
    def rows(self, shape: tuple[int, ...]) -> jax.Array:
        """The directions, (K, size), in any units."""

    def directions(self, shape: tuple[int, ...]) -> jax.Array:
        """The directions, (K, size), with Σ|v| = 1."""
        rows = self.rows(shape)
        return rows / jnp.sum(jnp.abs(rows), axis=1, keepdims=True)

    def open(self, h: jax.Array) -> jax.Array:
        """1, √½ or 0."""
        return jnp.heaviside(without_rounding(h), jnp.asarray(math.sqrt(0.5), h.dtype))

    def half_spaces(self, shape: tuple[int, ...]) -> jax.Array:
        """The directions."""
        return self.directions(shape)


def without_rounding(h: jax.Array) -> jax.Array:
    """Projections on unit directions, with zero for those that would be zero without rounding."""
    return jnp.where(jnp.abs(h) > TIE_ROUNDINGS * jnp.finfo(h.dtype).eps, h, jnp.zeros_like(h))


class OneProfile(HalfSpaces):
    """Half-spaces whose directions are copies of one profile, evenly spaced over the sites."""

    site = required(Whole)
    copies = required(Whole)

    @abc.abstractmethod
    def profile(self, shape: tuple[int, ...]) -> jax.Array:
        """The direction at site 0, of the lattice's shape."""

    @property
    def num_gates(self) -> int:
        """As many as copies."""
        return self.copies

    def rows(self, shape: tuple[int, ...]) -> jax.Array:
        """The profile, moved."""
        profile, size = jnp.asarray(self.profile(shape), working_dtype()), math.prod(shape)
        sites = [(self.site + k * size // self.copies) % size for k in range(self.copies)]
        moves = [tuple(int(i) for i in np.unravel_index(site, shape)) for site in sites]
        return jnp.stack([jnp.roll(profile, by, tuple(range(len(shape)))).ravel() for by in moves])


SITE = Declaration(Count(low=0), help="site of the first copy, in C order", symbol="i")


class Bump(OneProfile):
    """A gate on one site (the notes' small bump, v = e_i), or on a Gaussian bump of sites.

    Example:
        >>> import localfields as lf
        >>> Bump(site=1).directions((4,)).tolist()
        [[0.0, 1.0, 0.0, 0.0]]
    """

    site: Whole = declare(SITE, default=0)
    width: Real = number(
        default=0.0, low=0, closed=True, symbol="s", help="v = exp(−d²/2s²); 0 for one site alone"
    )
    copies: Whole = declare(COPIES, default=1)

    def profile(self, shape: tuple[int, ...]) -> jax.Array:
        """The bump."""
        d = jnp.asarray(distance(shape), working_dtype())
        scaled = d / jnp.where(self.width > 0, self.width, 1)
        around = jnp.where(self.width > 0, jnp.exp(-(scaled**2) / 2), 0)
        return jnp.where(d == 0, 1, around).astype(d.dtype)


class Block(OneProfile):
    """A vote of neighboring sites on each axis: two alike, a majority of three, ….

    Example:
        >>> (3 * Block(length=3).directions((5,))[0]).round(3).tolist()
        [1.0, 1.0, 1.0, 0.0, 0.0]
    """

    length: Whole = declare(Count(), default=3, symbol="ℓ", help="sites along each axis")
    site: Whole = declare(SITE, default=0)
    copies: Whole = declare(COPIES, default=1)

    def profile(self, shape: tuple[int, ...]) -> jax.Array:
        """Ones on the block."""
        inside = np.meshgrid(*(np.arange(n) < self.length for n in shape), indexing="ij")
        return jnp.asarray(np.stack(inside).all(axis=0), working_dtype())


class MexicanHat(OneProfile):
    """A gate that looks at a center against its surround: v = (1 − d²/s²) exp(−d²/2s²).

    Example:
        >>> hat = MexicanHat(width=2.0).directions((40,))[0]
        >>> bool(hat[0] > 0), bool(hat[4] < 0)
        (True, True)
    """

    width: Real = number(
        default=2.0, low=0, symbol="s", help="distance at which center turns to surround"
    )
    site: Whole = declare(SITE, default=0)
    copies: Whole = declare(COPIES, default=1)

    def profile(self, shape: tuple[int, ...]) -> jax.Array:
        """The hat."""
        square = jnp.asarray(distance(shape) ** 2, working_dtype()) / self.width**2
        return (1 - square) * jnp.exp(-square / 2)


class Wave(OneProfile):
    """A gate that looks at a cosine along the first axis; of no cycles, at the sum of all sites.

    Example:
        >>> Wave(cycles=2).directions((4,)).tolist()
        [[0.25, -0.25, 0.25, -0.25]]
    """

    cycles: Whole = declare(Count(low=0), default=1, symbol="k", help="cycles along the first axis")
    site: Whole = declare(SITE, default=0)
    copies: Whole = declare(COPIES, default=1)

    def profile(self, shape: tuple[int, ...]) -> jax.Array:
        """The cosine."""
        wave = np.cos(2 * np.pi * ((self.cycles * np.arange(shape[0])) % shape[0]) / shape[0])
        return jnp.asarray(np.broadcast_to(along(wave, 0, len(shape)), shape), working_dtype())


class Flat(HalfSpaces):
    """A gate that looks at the sum of all sites.

    Example:
        >>> Flat().directions((4,)).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    @property
    def num_gates(self) -> int:
        """One."""
        return 1

    def rows(self, shape: tuple[int, ...]) -> jax.Array:
        """Ones."""
        return jnp.ones((1, math.prod(shape)), working_dtype())


class RandomDirections(HalfSpaces):
    """Gates that look along normal directions, the same at any precision.

    Example:
        >>> RandomDirections(3).directions((8,)).shape
        (3, 8)
    """

    copies: Whole = declare(COPIES, default=1)
    seed: Whole = declare(Count(low=0, high=2**63 - 1), default=0, help="of the directions")

    @property
    def num_gates(self) -> int:
        """As many as asked for."""
        return self.copies

    def rows(self, shape: tuple[int, ...]) -> jax.Array:
        """Normal numbers."""
        drawn = np.random.default_rng(self.seed).normal(size=(self.copies, math.prod(shape)))
        return jnp.asarray(drawn, working_dtype())


class Directions(HalfSpaces):
    """Gates along directions of your own, one a row; such as the fields of a trained network.

    Example:
        >>> Directions([[1, 1, 0], [0, 0, -2]]).directions((3,)).tolist()
        [[0.5, 0.5, 0.0], [0.0, 0.0, -1.0]]
    """

    values: Array = declare(
        Row(axes=2), default=((1.0, 1.0),), symbol="v", help="directions, (K, size)"
    )

    def __check_init__(self):
        """Refuse a direction without a side."""
        if isinstance(self.values, np.ndarray) and not self.values.any(axis=1).all():
            raise InputError(
                "A row of `values` is zero and so has no direction. Leave it out, or use `Open`."
            )

    @property
    def num_gates(self) -> int:
        """As many as rows."""
        return self.values.shape[0]

    def rows(self, shape: tuple[int, ...]) -> jax.Array:
        """The rows given."""
        if self.values.shape[1] != math.prod(shape):
            raise InputError(
                f"A direction has {self.values.shape[1]} numbers, and the lattice has "
                f"{math.prod(shape)} sites. Give one number per site, in C order."
            )
        return jnp.asarray(self.values, working_dtype())
