"""What gates are: how far each neuron of a gated linear network is open for an input.

Gates are fixed. They see an input through its projections on some directions, which the engine
computes beside the preactivations, for one input or for all its shifts at once.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ..._spec import Count, Declaration, Spec
from ..._types import Field, working_dtype

MOST_COPIES = 100_000


class Gates(Spec):
    """How far each of K gates is open for an input: 0 is shut, 1 is open.

    Gates of your own are a subclass with `num_gates` and `open`; they see the input itself, site by
    site, unless `directions` says otherwise. What theory needs of them is measured on draws.

    Example:
        >>> class Loud(Gates):
        ...     num_gates = 1
        ...
        ...     def open(self, h):
        ...         return (jnp.mean(h**2) > 1)[None]
        >>> Loud().open(jnp.array([2.0, 0.0])).tolist()
        [True]
    """

    family: ClassVar[str] = "gates"

    @property
    @abc.abstractmethod
    def num_gates(self) -> int:
        """Number of gates, K."""

    @property
    def num_directions(self) -> int | None:
        """Number of directions; None for one per site."""
        return None

    def directions(self, shape: tuple[int, ...]) -> jax.Array:
        """What the gates see of an input, (directions, size)."""
        return jnp.eye(math.prod(shape), dtype=working_dtype())

    @abc.abstractmethod
    def open(self, h: jax.Array) -> jax.Array:
        """How far each gate is open, (K,), from the projections of one input, (directions,)."""

    def half_spaces(self, shape: tuple[int, ...]) -> jax.Array | None:
        """One direction a gate, (K, size), if all are gates of half-spaces; else None."""
        return None


GatesField = Field[Gates, Gates | str | Mapping[str, Any]]

COPIES = Declaration(Count(high=MOST_COPIES), help="number of gates, evenly spaced", symbol="K")
