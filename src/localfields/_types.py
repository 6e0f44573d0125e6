"""Types of fields and arguments, and the choice between numpy and jax by what is given.

Exact statistics are computed in numpy at float64; the same formulas run in compiled simulation code
on traced arrays. Code that serves both asks `namespace` which one it is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import scipy.special

Value = TypeVar("Value", covariant=True)
Accepted = TypeVar("Accepted", contravariant=True)


class Field(Generic[Value, Accepted]):
    """Annotates a declared field whose constructor argument is of a wider type than its value.

    `shape: Field[tuple[int, ...], int | Sequence[int]]` holds a tuple, and `Ising(40)` is legal.
    Type checkers take the type of a dataclass argument from `__set__` and that of the attribute
    from `__get__`; nothing of it runs.
    """

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: Any = None) -> Value: ...

        def __set__(self, instance: Any, value: Accepted) -> None: ...


# Accepted for a number that can be swept, a whole number (1e4, too), a lattice, and an array.
RealLike = float | np.number | np.ndarray | jax.Array | Sequence[float]
WholeLike = int | float | np.integer
LatticeLike = int | np.integer | Sequence[int] | np.ndarray
ArrayLike = (
    np.ndarray
    | jax.Array
    | Sequence[float]
    | Sequence[Sequence[float]]
    | Sequence[Sequence[Sequence[float]]]
    | Sequence[np.ndarray]
)

Real = Field[float, RealLike]
Scalar = Field[float, "float | np.number"]  # one number that all members share
Whole = Field[int, WholeLike]
Lattice = Field[tuple[int, ...], LatticeLike]
Array = Field[np.ndarray, ArrayLike]
Seed = Field["int | tuple[int, ...]", "int | np.integer | Sequence[int] | np.ndarray"]


def namespace(*values: Any) -> tuple[Any, Any]:
    """Return (`jax.numpy`, `jax.scipy.special`) if any value is a jax array, else numpy's pair."""
    if any(isinstance(value, jax.Array) for value in values):
        return jnp, jax.scipy.special
    return np, scipy.special


def working_dtype() -> Any:
    """Return float32, or float64 when the user has switched x64 on."""
    return jnp.zeros(()).dtype
