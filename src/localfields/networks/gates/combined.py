"""Gates made of others: copies, one per pattern of signs, several kinds; and no gate."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp

from ..._spec import Count, Declaration, Many, Nested, declare
from ..._types import Whole, working_dtype
from ...errors import InputError, show
from .base import COPIES, MOST_COPIES, Gates, GatesField
from .half_space import Flat, HalfSpaces, without_rounding

MOST_DIRECTIONS = 12  # of `Exclusive`: 4096 gates


class Open(Gates):
    """Gates that are always open: a linear network. On sign-symmetric data it learns nothing.

    Example:
        >>> Open(2).open(jnp.zeros(0)).tolist()
        [1.0, 1.0]
    """

    copies: Whole = declare(COPIES, default=1)

    @property
    def num_gates(self) -> int:
        """As many as asked for."""
        return self.copies

    @property
    def num_directions(self) -> int:
        """None to look at."""
        return 0

    def directions(self, shape: tuple[int, ...]) -> jax.Array:
        """None."""
        return jnp.zeros((0, math.prod(shape)), working_dtype())

    def open(self, h: jax.Array) -> jax.Array:
        """Ones."""
        return jnp.ones(self.copies, h.dtype)


GATES = Declaration(
    Nested("gates"), help="bump, block, mexican-hat, wave, flat, random-directions, …"
)


class Redundant(Gates):
    """Every gate several times: neurons that share a gate share what they learn.

    Example:
        >>> Redundant(Flat(), copies=2).num_gates
        2
    """

    gates: GatesField = declare(GATES, default=Flat())
    copies: Whole = declare(Count(high=MOST_COPIES), default=2, help="neurons behind each gate")

    @property
    def num_gates(self) -> int:
        """Copies of all."""
        return self.copies * self.gates.num_gates

    @property
    def num_directions(self) -> int | None:
        """Those of one copy."""
        return self.gates.num_directions

    def directions(self, shape: tuple[int, ...]) -> jax.Array:
        """Those of one copy."""
        return self.gates.directions(shape)

    def open(self, h: jax.Array) -> jax.Array:
        """All gates, then all of them again."""
        return jnp.tile(self.gates.open(h), self.copies)

    def half_spaces(self, shape: tuple[int, ...]) -> jax.Array | None:
        """Those of one copy, repeated."""
        rows = self.gates.half_spaces(shape)
        return None if rows is None else jnp.tile(rows, (self.copies, 1))


class Exclusive(Gates):
    """One gate per pattern of signs of others' projections: at most one is open, none on a tie.

    Example:
        >>> from localfields.networks.gates import Directions
        >>> Exclusive(Directions([[1, 0], [0, 1]])).open(jnp.array([0.3, -0.2])).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """

    gates: GatesField = declare(GATES, default=Flat())

    def __check_init__(self):
        """Refuse what has no directions, or too many."""
        if not isinstance(self.gates, HalfSpaces) or self.gates.num_gates > MOST_DIRECTIONS:
            raise InputError(
                f"`Exclusive` needs half-space gates with at most {MOST_DIRECTIONS} directions, "
                f"got {show(self.gates)}. Each direction doubles the number of gates."
            )

    @property
    def num_gates(self) -> int:
        """One gate per pattern."""
        return 2**self.gates.num_gates

    @property
    def num_directions(self) -> int | None:
        """Those of the half-spaces."""
        return self.gates.num_directions

    def directions(self, shape: tuple[int, ...]) -> jax.Array:
        """Those of the half-spaces."""
        return self.gates.directions(shape)

    def open(self, h: jax.Array) -> jax.Array:
        """A one at the pattern of the input, + before −, the first direction slowest."""
        patterns = jnp.asarray(list(itertools.product((1, -1), repeat=h.size)), h.dtype)
        return jnp.all(patterns * without_rounding(h)[None, :] > 0, axis=1).astype(h.dtype)


class Several(Gates):
    """Gates of several kinds side by side.

    Example:
        >>> from localfields.networks.gates import Bump
        >>> Several(Flat(), Bump(copies=3)).num_gates
        4
    """

    variadic: ClassVar[str] = "parts"

    parts: tuple[Gates, ...] = declare(
        Many("gates"), default=(Flat(),), help="gates, one kind after another"
    )

    if TYPE_CHECKING:  # the gates by position, which no dataclass field can say

        def __init__(self, *parts: Gates) -> None: ...

    @property
    def num_gates(self) -> int:
        """All together."""
        return sum(part.num_gates for part in self.parts)

    @property
    def num_directions(self) -> int | None:
        """All together, unless some part looks at every site."""
        counts = [part.num_directions for part in self.parts]
        return None if None in counts else sum(count or 0 for count in counts)

    def directions(self, shape: tuple[int, ...]) -> jax.Array:
        """Those of one part after another."""
        return jnp.concatenate([part.directions(shape) for part in self.parts])

    def open(self, h: jax.Array) -> jax.Array:
        """Those of one part after another."""
        counts = [part.num_directions for part in self.parts]
        # Parts that look at every site share evenly what the others leave.
        rest = (h.size - sum(count or 0 for count in counts)) // max(counts.count(None), 1)
        ends = list(itertools.accumulate(rest if count is None else count for count in counts))
        pieces = [h[start:end] for start, end in itertools.pairwise([0, *ends])]
        opened = [part.open(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return jnp.concatenate([gate.astype(h.dtype) for gate in opened])

    def half_spaces(self, shape: tuple[int, ...]) -> jax.Array | None:
        """Those of the parts, if all have them."""
        rows = [part.half_spaces(shape) for part in self.parts]
        directions = [row for row in rows if row is not None]
        return jnp.concatenate(directions) if len(directions) == len(rows) else None
