"""What every baseline is: samples in, fields out."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from .._check import Said, refuse
from .._spec import Row, Spec


@dataclasses.dataclass(frozen=True)
class Fitted:
    """What a baseline has learned.

    Args:
        fields: Receptive fields, (component, size): the response of component k to x is ⟨field_k, x⟩, less a constant.
        converged: Whether the method met its own tolerance.
        iterations: How many it took.
        notes: What else is worth keeping, as plain values.
    """

    fields: np.ndarray
    converged: bool
    iterations: int
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)


class Baseline(Spec):
    """A method that learns receptive fields from samples alone, without labels.

    A new one is one file: a subclass that declares its fields and defines `fit`. Libraries it needs are imported
    inside `fit`.
    """

    family: ClassVar[str] = "baseline"

    components: eqx.AbstractVar[int]

    @abc.abstractmethod
    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields.

        Args:
            samples: (num, size).
            seed: Of whatever the method draws.

        Returns:
            Fields on the sites of the samples, and how the fit ended.
        """

    def check_samples(self, samples: Any) -> np.ndarray:
        """Samples as a float array, (num, size), or refuse those that cannot be fitted.

        What is single precision stays so: it takes half the time and the memory.

        Raises:
            InputError: When they are not finite numbers on two axes, or fewer than the components.
        """
        found = np.asarray(samples)
        if found.dtype != np.float32 or found.ndim != 2 or not np.isfinite(found).all():
            found = Row(axes=2, hint="Give one sample a row.").check("samples", samples)
        least = min(found.shape)
        if least < self.components:
            advice = "Take fewer components, or more samples." if found.shape[0] == least else "Take fewer components."
            got = Said(f"{self.components} with samples of shape {found.shape}")
            refuse("`components`", got, f"at most {least}", advice)
        return found
