"""What to keep of a run, and how much memory that takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import refuse, unknown
from ..networks.base import Params

# Functions of one member's parameters that are recorded in place of, or beside, the parameters themselves.
REDUCERS: dict[str, Callable[[Params, tuple[int, ...]], jax.Array]] = {
    "ipr": lambda params, shape: _ipr(params["weights"]),
    "norm": lambda params, shape: jnp.sqrt(jnp.sum(params["weights"] ** 2, axis=1)),
    "peak": lambda params, shape: _peak(params["weights"], shape),
}
PARAMETERS = ("weights", "biases", "readout", "readout_bias")
MEASURED = ("loss", "accuracy")
KNOWN = (*PARAMETERS, *MEASURED, *REDUCERS)
LARGEST = 4e9


def _ipr(weights: jax.Array) -> jax.Array:
    largest = jnp.max(jnp.abs(weights), axis=1, keepdims=True)
    unit = weights / jnp.where(largest > 0, largest, 1)
    return jnp.sum(unit**4, axis=1) / jnp.sum(unit**2, axis=1) ** 2  # nan for a field of zeros


def _peak(weights: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    place = jnp.argmax(jnp.abs(weights), axis=1)
    return place if len(shape) == 1 else jnp.stack(jnp.unravel_index(place, shape), axis=-1)


@dataclasses.dataclass(frozen=True)
class Record:
    """How often to record, and what.

    Args:
        every: Steps between records; the start and the end are always recorded.
        quantities: Parameters (`weights`, `biases`, `readout`, `readout_bias`), reductions of them
            (`ipr`, `norm`, `peak`), and `loss` and `accuracy` on a held-out stream. Parameters that
            a network does not have are left out.
        evaluate: Held-out samples per record, shared by the members.

    Example:
        >>> Record(every=100, quantities=("ipr", "loss")).every
        100
    """

    every: int = 10
    quantities: tuple[str, ...] = (
        "weights",
        "biases",
        "readout",
        "readout_bias",
        "loss",
        "accuracy",
    )
    evaluate: int = 2000

    def __post_init__(self):
        """Refuse what cannot be recorded."""
        for name in ("every", "evaluate"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                refuse(
                    f"`{name}`",
                    value,
                    "a whole number of at least 1",
                    "Give a number of steps, or of samples.",
                )
        if isinstance(self.quantities, str) or not isinstance(self.quantities, (tuple, list)):
            refuse(
                "`quantities`",
                self.quantities,
                "a tuple of names",
                "For example ('weights', 'loss').",
            )
        for name in self.quantities:
            if name not in KNOWN:
                unknown("A recorded quantity", name, KNOWN)
        object.__setattr__(self, "quantities", tuple(self.quantities))

    def at(self, steps: int) -> list[int]:
        """Step numbers of the records of a run."""
        return [*range(0, steps, self.every), steps]

    def nbytes(self, steps: int, one: dict[str, Any]) -> int:
        """Bytes that the records of a run will take, given one record of all members (arrays or their shapes)."""
        count = (
            len(range(0, steps, self.every)) + 1
        )  # of `at`, which may itself be too long to make
        return count * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"every": self.every, "quantities": list(self.quantities), "evaluate": self.evaluate}
