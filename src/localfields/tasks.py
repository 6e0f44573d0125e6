"""Tasks: stimuli, labels and loss as one value."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ._spec import (
    Choice,
    Kind,
    Many,
    Number,
    Spec,
    declare,
    fields,
    num_members,
    number,
    number_values,
)
from ._types import Field, Real, RealLike
from .errors import InputError, shorten, show, unknown_name
from .stimuli import NLGP, Stimulus
from .stimuli._check import check_once

LOSSES = ("mse", "cross-entropy", "absolute")
ROUNDING = 1e-9  # relative difference of numbers that count as equal
LABELS = ("zero-one", "signs", "one-hot", "none")


@dataclasses.dataclass(frozen=True)
class Labels(Kind):
    """How classes are coded: by a name, or by one number per class."""

    metavar = " | ".join(LABELS)

    def check(self, name: str, value: Any) -> str | tuple[float, ...]:
        """Return the name or the numbers."""
        if isinstance(value, str):
            if value not in LABELS:
                raise unknown_name(name, value, LABELS)
            return value
        return _numbers(name, value, "Give one number per class, such as (0, 1).")

    def parse(self, name: str, text: str) -> str | tuple[float, ...]:
        """Read a name, or numbers joined by commas."""
        return self.check(name, _split_numbers(text) or text)


@dataclasses.dataclass(frozen=True)
class Proportions(Kind):
    """How often each class is shown; empty for equally often."""

    metavar = "P,Q,…"

    def check(self, name: str, value: Any) -> tuple[float, ...]:
        """Return positive numbers that sum to one."""
        shares = _numbers(name, value, "Give one positive number per class, such as (0.5, 0.5).")
        if any(share <= 0 for share in shares):
            raise InputError(
                f"`{name}` must be positive, got {show(shares)}. "
                "Leave out a class that is never shown."
            )
        total = math.fsum(shares)
        if abs(total - 1) < 1e-12:
            return shares  # divided once more, a copy would differ in its last bits
        return tuple(share / total for share in shares)

    def parse(self, name: str, text: str) -> tuple[float, ...]:
        """Read numbers joined by commas."""
        return self.check(name, _split_numbers(text) or text)


def _numbers(name: str, value: Any, advice: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(number) for number in value)
    except (TypeError, ValueError):
        raise InputError(
            f"`{name}` must be a sequence of numbers, got {show(value)}. {advice}"
        ) from None
    if not all(map(math.isfinite, numbers)):
        raise InputError(f"`{name}` must be finite, got {show(value)}. {advice}")
    return numbers


def _split_numbers(text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return None


def _are_equal(first: Any, second: Any) -> Any:
    """Whether two specifications are equal; an array, if numbers are swept, with one per member.

    Data are equal if their numbers are, whatever the names of their files. Numbers that differ by
    rounding alone, as 0.3 and the middle of 0.1 and 0.5, are equal.
    """
    if type(first) is not type(second):
        return False
    equal: Any = True
    for field in fields(type(first)):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(field.kind, Number):
            equal = equal & np.isclose(one, other, rtol=ROUNDING, atol=0)
        elif isinstance(one, Spec):
            equal = equal & _are_equal(one, other)
        elif isinstance(one, np.ndarray):
            equal = equal & np.array_equal(one, other)
        elif hasattr(one, "sha256") and hasattr(other, "sha256"):
            equal = equal & (one.sha256 == other.sha256)
        else:
            equal = equal & (field.kind.encode(one) == field.kind.encode(other))
    return equal


class Discrimination(Spec):
    """Tell stimuli apart: each stimulus is a class, and the network learns its label.

    The first stimulus has label 0, the second label 1; in the paper the longer lengthscale comes
    second. The loss is the paper's mean of (ŷ − y)², without the ½ that the notes put before it.

    Classes must differ, and so must their labels; several classes may share one, as in (0, 0, 1).
    Baselines need no labels: with `labels="none"` a task is a mixture of its stimuli, which may be
    equal, and nothing can be trained on it.

    Example:
        >>> import localfields as lf
        >>> short, long = (lf.stimuli.NLGP((40,), xi=xi, gain=100) for xi in (1, 3))
        >>> lf.Discrimination(short, long).targets().ravel()
        array([0., 1.])
    """

    family: ClassVar[str] = "task"
    variadic: ClassVar[str] = "stimuli"

    stimuli: tuple[Stimulus, ...] = declare(
        Many("stimulus"),
        default=(NLGP((40,), xi=1.0), NLGP((40,), xi=3.0)),
        help="the classes, in the order of their labels",
    )
    labels: Field[str | tuple[float, ...], str | Sequence[float] | np.ndarray] = declare(
        Labels(),
        default="zero-one",
        symbol="y",
        help="0, 1, …; signs −1 … 1; one-hot; one number per class; or none, for baselines",
    )
    proportions: Field[tuple[float, ...], Sequence[float] | np.ndarray] = declare(
        Proportions(),
        default=(),
        symbol="p",
        help="how often each class is shown; equally if empty",
    )
    loss: str = declare(
        Choice(LOSSES),
        default="mse",
        symbol="L",
        help="mean of (ŷ − y)², cross-entropy, or mean of |ŷ − y|",
    )
    l1: Real = number(
        default=0.0, low=0, closed=True, symbol="λ₁", help="penalty on Σ|w| of the receptive fields"
    )
    l2: Real = number(
        default=0.0, low=0, closed=True, symbol="λ₂", help="penalty on Σw² of the receptive fields"
    )

    if TYPE_CHECKING:  # a dataclass field cannot say that the stimuli are given by position

        def __init__(
            self,
            *stimuli: Stimulus,
            labels: str | Sequence[float] | np.ndarray = "zero-one",
            proportions: Sequence[float] | np.ndarray = (),
            loss: str = "mse",
            l1: RealLike = 0.0,
            l2: RealLike = 0.0,
        ) -> None: ...

    def __check_init__(self):
        """Check that the classes fit together."""
        if len(self.stimuli) < 2:
            raise InputError(
                f"A task needs at least two stimuli, one per class, got {len(self.stimuli)}."
            )
        shapes = {stimulus.shape for stimulus in self.stimuli}
        if len(shapes) > 1:
            different = ", ".join(str(stimulus.shape) for stimulus in self.stimuli)
            raise InputError(
                f"The stimuli have different shapes: {different}. Give every class the same shape."
            )
        for stimulus in self.stimuli:
            check_once(stimulus)
        for name, value in (("labels", self.labels), ("proportions", self.proportions)):
            any_count = isinstance(value, str) or (name == "proportions" and not value)
            if not any_count and len(value) != len(self.stimuli):
                raise InputError(
                    f"`{name}` must be one number for each of the {len(self.stimuli)} classes, "
                    f"got {show(value)}."
                )
        num_members(self)  # refuses sweeps of different lengths
        if self.labels == "none":
            return
        for first, second in itertools.combinations(range(len(self.stimuli)), 2):
            self._check_different(first, second)
        binary = self.outputs > 1 or sorted(self.targets().ravel()) == [0.0, 1.0]
        if self.loss == "cross-entropy" and not binary:
            raise InputError(
                "The cross-entropy needs labels 0 and 1 for two classes, or labels='one-hot', "
                f"got {show(self.labels)}."
            )
        targets = self.targets()
        if (targets == targets[0]).all():
            raise InputError(
                f"All classes have the label {targets[0, 0]:g}, so that there is nothing to learn. "
                "Give at least two different labels, such as (0, 1)."
            )

    def _check_different(self, first: int, second: int) -> None:
        stimulus = self.stimuli[first]
        equal = np.atleast_1d(_are_equal(stimulus, self.stimuli[second]))
        if not equal.any():
            return
        members = "" if len(equal) == 1 else f" for member {int(equal.argmax())}"
        example = next((name for name, _ in number_values(stimulus)), "")
        advice = (
            f"Let them differ, for example in `{example}`." if example else "Give each its own."
        )
        raise InputError(
            f"Classes {first} and {second} are identical{members}: {shorten(stimulus)}. {advice}"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The lattice."""
        return self.stimuli[0].shape

    @property
    def size(self) -> int:
        """Number of sites, N."""
        return self.stimuli[0].size

    @property
    def outputs(self) -> int:
        """Number of outputs a network needs.

        Raises:
            InputError: If the task has no labels.
        """
        if self.labels == "none":
            raise InputError(
                "The task has no labels (labels='none'), so that only baselines can use it. "
                "Give labels, such as 'zero-one'."
            )
        return len(self.stimuli) if self.labels == "one-hot" else 1

    @property
    def priors(self) -> tuple[float, ...]:
        """Probability of each class."""
        return self.proportions or (1 / len(self.stimuli),) * len(self.stimuli)

    def targets(self) -> np.ndarray:
        """Target of each class, (classes, outputs).

        Raises:
            InputError: If the task has no labels.
        """
        count = len(self.stimuli)
        if self.outputs > 1:
            return np.eye(count)
        if self.labels == "zero-one":
            return np.arange(count, dtype=float)[:, None]
        if self.labels == "signs":
            return np.linspace(-1, 1, count)[:, None]
        return np.asarray(self.labels, dtype=float)[:, None]

    def dominant_class(self, last: bool = False) -> int:
        """Number of the class that contributes most to the gradient: the largest prior · |label|.

        Args:
            last: Whether the last of equal classes is meant, not the first.
        """
        pulls = np.asarray(self.priors) * np.abs(self.targets()).max(axis=1)
        return len(pulls) - 1 - int(pulls[::-1].argmax()) if last else int(pulls.argmax())

    def penalty(self, weights: jax.Array) -> jax.Array:
        """L1 and L2 penalties of the receptive fields."""
        return self.l1 * jnp.sum(jnp.abs(weights)) + self.l2 * jnp.sum(weights**2)

    def sample_loss(self, output: jax.Array, target: jax.Array) -> jax.Array:
        """Loss of one output against one target, both (outputs,)."""
        if self.loss == "mse":
            return jnp.sum((output - target) ** 2)
        if self.loss == "absolute":
            return jnp.sum(jnp.abs(output - target))
        if self.outputs == 1:
            return jnp.sum(jax.nn.softplus(output) - target * output)
        return -jnp.sum(target * jax.nn.log_softmax(output))

    def choose(self, output: jax.Array) -> jax.Array:
        """The class an output stands for: the largest output, or the nearest target."""
        if self.outputs > 1:
            return jnp.argmax(output)
        if self.loss == "cross-entropy":
            output = (output > 0).astype(output.dtype)
        return jnp.argmin(jnp.abs(output - jnp.asarray(self.targets()[:, 0], output.dtype)))
