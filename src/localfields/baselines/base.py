"""What every baseline is: samples in, fields out."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import threading
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from .._spec import Count, Row, Spec, required
from .._types import Whole
from ..errors import InputError


@dataclasses.dataclass(frozen=True)
class Fitted:
    """What a baseline has learned.

    Args:
        fields: Receptive fields, (component, size): the response of component k to x is ⟨field_k,
            x⟩, less a constant.
        converged: Whether the method met its own tolerance; true where it has none and takes a
            fixed number of steps.
        iterations: How many it took, in whatever the method counts.
        notes: What else is worth keeping, as plain values.
    """

    fields: np.ndarray
    converged: bool
    iterations: int
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)


class Baseline(Spec):
    """A method that learns receptive fields from samples alone, without labels.

    A new one is one file: a subclass that declares its fields and defines `fit`. Libraries it needs
    are imported inside `fit`.
    """

    family: ClassVar[str] = "baseline"

    components = required(Whole)

    @abc.abstractmethod
    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields.

        Args:
            samples: (num, size).
            seed: Seed for all random numbers.

        Returns:
            Fields on the sites of the samples, and how the fit ended.
        """

    def check_samples(self, samples: Any, *, overcomplete: bool = False) -> np.ndarray:
        """Samples as a float array, (num, size).

        Single precision stays so: it takes half the time and the memory.

        Args:
            samples: Of any kind of number.
            overcomplete: Whether more components than sites make sense.

        Raises:
            InputError: If they are not finite numbers on two axes, are all the same, or are fewer
                than the components.
        """
        x = np.asarray(samples)
        if x.dtype != np.float32 or x.ndim != 2 or not np.isfinite(x).all():
            x = Row(axes=2, hint="Give one sample per row.").check("samples", samples)
        rows, sites = x.shape
        most = rows if overcomplete else min(rows, sites)
        if most < self.components:
            advice = "Take fewer components, or more samples." if rows == most else ""
            raise InputError(
                f"{self.components} components cannot be fitted to samples of shape {x.shape}; "
                f"at most {most} can. {advice or 'Take fewer components.'}"
            )
        if (x == x[:1]).all():
            raise InputError("All samples are the same, so there is nothing to learn from them.")
        return x

    def check_rank(self, x: np.ndarray) -> None:
        """Refuse more components than the samples have directions: others would be rounding."""
        variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(x, rowvar=False, dtype=x.dtype)))
        rounding = max(variances[-1], 0) * len(variances) * np.finfo(x.dtype).eps
        rank = int((variances > rounding).sum())
        if rank < self.components:
            raise InputError(
                f"{self.components} components cannot be fitted to samples of {rank} independent "
                f"directions. Use at most {rank}."
            )


def check_seed(seed: int) -> int:
    """A seed that libraries accept."""
    return Count(low=0, high=2**32 - 1).check("seed", seed)


_ALONE = threading.Lock()


@contextlib.contextmanager
def without_warnings(category: type[Warning]) -> Iterator[None]:
    """Silence one kind of warning; one fit at a time, as filters belong to all threads."""
    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
