"""Tasks: stimuli, labels and loss as one value."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._prng import START, member_keys
from ._spec import (
    Choice,
    Count,
    Kind,
    Many,
    Row,
    Spec,
    declare,
    member,
    num_members,
    number,
    swept_leaves,
)
from ._types import Field, Real, RealLike, working_dtype
from .errors import InputError, show, unknown_name
from .networks import Network
from .networks.base import Params
from .stimuli import NLGP, Stimulus

LOSSES = ("mse", "cross-entropy", "absolute")
LABELS = ("zero-one", "signs", "one-hot")


@dataclasses.dataclass(frozen=True)
class Labels(Kind):
    """How classes are coded: by a name, or one number a class."""

    metavar = " | ".join(LABELS)

    def check(self, name: str, value: Any) -> str | tuple[float, ...]:
        """Return the name or the numbers, or refuse."""
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
        """Return positive numbers that sum to one, or refuse."""
        found = _numbers(name, value, "Give one positive number a class, such as (0.5, 0.5).")
        if any(p <= 0 for p in found):
            raise InputError(
                f"`{name}` must be positive, got {show(found)}. Leave out a class that is never shown."
            )
        total = math.fsum(found)
        if abs(total - 1) < 1e-12:
            return found  # divided once more, a copy would differ in its last bits
        return tuple(p / total for p in found)

    def parse(self, name: str, text: str) -> tuple[float, ...]:
        """Read numbers joined by commas."""
        return self.check(name, _split_numbers(text) or text)


def _numbers(name: str, value: Any, advice: str) -> tuple[float, ...]:
    try:
        found = tuple(float(one) for one in value)
    except (TypeError, ValueError):
        raise InputError(
            f"`{name}` must be a sequence of numbers, got {show(value)}. {advice}"
        ) from None
    if not all(map(math.isfinite, found)):
        raise InputError(f"`{name}` must be finite, got {show(value)}. {advice}")
    return found


def _split_numbers(text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return None


class Discrimination(Spec):
    """Tell stimuli apart: each stimulus is a class, with a label for it to be given.

    The first stimulus has label 0, the second label 1; in the paper the longer lengthscale comes second. The loss is
    the paper's mean of (ŷ − y)², without the ½ that the notes put before it.

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
        help="0, 1, …; signs −1 … 1; one-hot; or a number a class",
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

    if TYPE_CHECKING:  # the stimuli by position, which no dataclass field can say

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
        """Refuse classes that do not fit together."""
        if len(self.stimuli) < 2:
            raise InputError(
                f"A task needs at least two stimuli, one per class, got {len(self.stimuli)}."
            )
        shapes = {stimulus.shape for stimulus in self.stimuli}
        if len(shapes) > 1:
            raise InputError(
                f"The stimuli have different shapes: {', '.join(str(s.shape) for s in self.stimuli)}. "
                "Give every class the same shape."
            )
        for name, given in (("labels", self.labels), ("proportions", self.proportions)):
            everywhere = isinstance(given, str) or (name == "proportions" and not given)
            if not everywhere and len(given) != len(self.stimuli):
                raise InputError(
                    f"`{name}` must be one number for each of the {len(self.stimuli)} classes, got {show(given)}."
                )
        if (
            self.loss == "cross-entropy"
            and self.outputs == 1
            and sorted(self.targets().ravel()) != [0.0, 1.0]
        ):
            raise InputError(
                f"The cross-entropy needs labels 0 and 1 for two classes, or labels='one-hot', got {show(self.labels)}."
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
        """Number of outputs a network needs."""
        return len(self.stimuli) if self.labels == "one-hot" else 1

    @property
    def priors(self) -> tuple[float, ...]:
        """Probability of each class."""
        return self.proportions or (1 / len(self.stimuli),) * len(self.stimuli)

    def targets(self) -> np.ndarray:
        """Target of each class, (classes, outputs)."""
        count = len(self.stimuli)
        if self.labels == "one-hot":
            return np.eye(count)
        if self.labels == "zero-one":
            return np.arange(count, dtype=float)[:, None]
        if self.labels == "signs":
            return np.linspace(-1, 1, count)[:, None]
        return np.asarray(self.labels, dtype=float)[:, None]

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


def for_members(
    make: Callable[[Discrimination, Network], Any], task: Discrimination, network: Network
) -> Any:
    """What `make` returns for a task and a network; if their numbers are swept, stacked over the members.

    Returns:
        The tree, and whether its leaves have an axis of members.
    """
    count = num_members(task) or num_members(network)
    if count is None:
        return make(task, network), False
    made: dict[str, Any] = {}
    found = []
    for index in range(count):
        one = member(task, index), member(network, index)
        text = json.dumps([part.to_json() for part in one], sort_keys=True)
        if text not in made:  # a sweep often repeats a value over many starts
            made[text] = make(*one)
        found.append(made[text])
    return jax.tree.map(
        lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *found
    ), True


def count_members(
    task: Discrimination,
    network: Network,
    seed: int | tuple[int, ...],
    members: int | None,
    also: Mapping[str, int | None],
) -> int:
    """Members of an ensemble, 1 unless something says how many.

    Args:
        task: Says it by the length of what is swept.
        network: Likewise.
        seed: By the length of a list.
        members: What the user asks for.
        also: What else may say it, by name.

    Raises:
        InputError: When two of them say different numbers.
    """
    told = {
        "the task": num_members(task),
        "the network": num_members(network),
        **also,
        "`seed`": len(seed) if isinstance(seed, tuple) else None,
        "`members`": None if members is None else Count(high=10**7).check("members", members),
    }
    counts = {name: count for name, count in told.items() if count is not None}
    if len(set(counts.values())) > 1:
        raise InputError(
            f"The number of members is not the same everywhere: "
            f"{', '.join(f'{name} has {count}' for name, count in counts.items())}. Give one value per member."
        )
    return next(iter(counts.values()), 1)


def given_fields(
    initial: Any, hidden: int, shape: tuple[int, ...], members: int | None = None
) -> np.ndarray:
    """Fields to start from, (1 or members, neuron, size), from what a user gave.

    Args:
        initial: (neuron, *shape), or (member, neuron, *shape).
        hidden: Number of neurons.
        shape: The lattice.
        members: Of the ensemble; when left out, any number.

    Raises:
        InputError: When they have another shape, or are no numbers.
    """
    advice = "Give (neuron, *shape) or (member, neuron, *shape)."
    array, one = Row(axes=None, hint=advice).check("initial", initial), (hidden, *shape)
    count = len(array) if members is None and array.ndim else members
    if array.shape not in (one, (count, *one)):
        many = f"({members or 'member'}, {', '.join(map(str, one))})"
        raise InputError(f"`initial` must have shape {one} or {many}, got {array.shape}.")
    return array.reshape(-1, hidden, math.prod(shape))


TRACES: collections.Counter[str] = collections.Counter()
"""How often each compiled function was traced: a sweep that raises a count recompiles."""


def initial_params(
    task: Discrimination, network: Network, seed: int | tuple[int, ...], members: int
) -> Params:
    """Parameters that an ensemble starts from, (members, …): the same for `train` and `solve` at the same seed."""
    arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf, working_dtype()), network)
    swept, fixed = eqx.partition(arrays, swept_leaves(network))
    return _initial_params(
        swept, fixed, member_keys(seed, members, START), task.shape, task.outputs
    )


@functools.partial(jax.jit, static_argnames=("shape", "outputs"))
def _initial_params(
    swept: Any, fixed: Any, keys: jax.Array, shape: tuple[int, ...], outputs: int
) -> Params:
    TRACES["start"] += 1
    return jax.vmap(lambda part, key: eqx.combine(part, fixed).initial(key, shape, outputs))(
        swept, keys
    )
