"""Ensembles: how many members there are, where they start, and what is made for each of them."""

from __future__ import annotations

import collections
import functools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._prng import START, member_keys
from ._spec import Count, Row, member, num_members, swept_leaves
from ._types import working_dtype
from .errors import InputError
from .networks import Network
from .networks.base import Params
from .tasks import Discrimination

TRACES: collections.Counter[str] = collections.Counter()
"""How often each compiled function was traced: a sweep that raises a count recompiles."""


def for_members(
    make: Callable[[Discrimination, Network], Any], task: Discrimination, network: Network
) -> Any:
    """What `make` returns for a task and a network, stacked over the members of a sweep.

    Returns:
        The tree, and whether its leaves have an axis of members.
    """
    count = num_members(task) or num_members(network)
    if count is None:
        return make(task, network), False
    trees: dict[str, Any] = {}
    keys = []
    for index in range(count):
        parts = member(task, index), member(network, index)
        key = json.dumps([part.to_json() for part in parts], sort_keys=True)
        if key not in trees:  # a sweep often repeats a value over many starts
            trees[key] = make(*parts)
        keys.append(key)
    stacked = jax.tree.map(
        lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]),
        *(trees[key] for key in keys),
    )
    return stacked, True


def count_members(
    task: Discrimination,
    network: Network,
    seed: int | tuple[int, ...],
    members: int | None,
    also: Mapping[str, int | None],
) -> int:
    """Members of an ensemble: the length of what is swept, of the seeds, or `members`, else 1.

    Args:
        task: Its numbers may be swept.
        network: Likewise.
        seed: One seed, or one per member.
        members: What the user asks for.
        also: What else determines the number, by name.

    Raises:
        InputError: If two of them differ.
    """
    sources = {
        "the task": num_members(task),
        "the network": num_members(network),
        **also,
        "`seed`": len(seed) if isinstance(seed, tuple) else None,
        "`members`": None if members is None else Count(high=10**7).check("members", members),
    }
    counts = {name: count for name, count in sources.items() if count is not None}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise InputError(
            f"The number of members is not the same everywhere: {listed}. "
            "Give one value per member."
        )
    return next(iter(counts.values()), 1)


def given_fields(
    initial: Any, hidden: int, shape: tuple[int, ...], members: int | None = None
) -> np.ndarray:
    """Initial fields that a user gave, as (1 or members, neuron, size).

    Args:
        initial: (neuron, *shape), or (member, neuron, *shape).
        hidden: Number of neurons.
        shape: The lattice.
        members: Size of the ensemble; any if left out.

    Raises:
        InputError: If they have another shape, or are no numbers.
    """
    advice = "Give (neuron, *shape) or (member, neuron, *shape)."
    array, single = Row(axes=None, hint=advice).check("initial", initial), (hidden, *shape)
    count = len(array) if members is None and array.ndim else members
    if array.shape not in (single, (count, *single)):
        many = f"({members or 'member'}, {', '.join(map(str, single))})"
        raise InputError(f"`initial` must have shape {single} or {many}, got {array.shape}.")
    return array.reshape(-1, hidden, math.prod(shape))


def initial_params(
    task: Discrimination, network: Network, seed: int | tuple[int, ...], members: int
) -> Params:
    """Initial parameters, (members, …): the same for `train` and `solve` at the same seed."""
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
