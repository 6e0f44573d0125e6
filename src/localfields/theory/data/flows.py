"""Flows of tasks on data: of all rows and of resamples of them, followed in one ensemble."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Count
from ..._types import working_dtype
from ...networks import SingleNeuron
from ...stimuli.samples import Rows
from ...tasks import Discrimination
from ...trajectory import Trajectory, experiment_json, localized_from
from ..base import Flow, Response, covariance_of, neuron_flow, not_a_neuron, require
from ..predict import REST, TOLERANCE, UNTIL
from ..responses.amplifier import Amplifier
from ..responses.effective import EffectiveResponse
from ..responses.ising import COARSE_FREQUENCIES, MOST_SUMMED, IsingResponse, SummedResponse
from ..responses.linear import LinearNeuron
from ..responses.pulse import summed_flow
from . import rows as _rows
from .rows import GROUPS, Measurements

RESAMPLES, RESAMPLE_STARTS = 8, 4
LARGEST_TABLE = 500_000  # numbers in the table of different rows


def finite_patterns(stimuli: list[Rows]) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Of every class its different rows and how often each group has them, (group, row); None where they are many."""
    if any(one.symmetry != "none" for one in stimuli):
        return None
    found = [one for one in (_rows.distinct(one.rows) for one in stimuli) if one is not None]
    if len(found) < len(stimuli) or sum(patterns.size for patterns, _ in found) > LARGEST_TABLE:
        return None
    result = []
    for patterns, which in found:
        bounds = np.linspace(0, len(which), GROUPS + 1).astype(int)
        counts = [
            np.bincount(which[a:b], minlength=len(patterns)) for a, b in itertools.pairwise(bounds)
        ]
        result.append((patterns, np.stack(counts).astype(float)))
    return result


def flows_of(
    plain: Discrimination, found: Any, finite: Any, kinds: dict[int, str], evidence: Any
) -> list[Flow]:
    """The flow of all rows, and those of resamples of them."""
    weights = np.concatenate([np.ones((1, GROUPS)), _rows.resamples(RESAMPLES, seed=1)])
    if finite is not None:
        return [_summed(plain, finite, one) for one in weights]
    # Only a linear response is told of sites that differ; the others take one law for all of them.
    whole = any(one.shifts_differ for one in evidence) and set(kinds.values()) == {"elliptical"}
    whole = whole and plain.size <= _rows.LARGEST_MATRIX
    return [_flow(plain, found, kinds, one, whole) for one in weights]


def _summed(plain: Discrimination, finite: Any, weights: np.ndarray) -> Flow:
    counts = [(patterns, weights @ counts) for patterns, counts in finite]
    shares = [(patterns, count / count.sum()) for patterns, count in counts]
    return summed_flow(plain, SingleNeuron(), shares)


def _flow(
    plain: Discrimination, found: Any, kinds: dict[int, str], weights: np.ndarray, whole: bool
) -> Flow:
    covariances = [one.matrix(weights) if whole else one.row(weights) for one in found]
    return neuron_flow(
        plain, covariances, lambda c: _response(kinds[c], found[c], covariances[c], weights)
    )


def _response(
    kind: str, found: Measurements, covariance: np.ndarray, weights: np.ndarray
) -> Response:
    """The response of a class that is of this kind."""
    if kind == "ising":
        coupling = jnp.asarray(_rows.ising_coupling(found.row(weights)))
        return (
            SummedResponse(coupling)
            if found.size <= MOST_SUMMED
            else IsingResponse(coupling, COARSE_FREQUENCIES)
        )
    product, amplifier = covariance_of(covariance, found.shape), Amplifier(found.law(weights))
    if kind == "elliptical":
        return LinearNeuron(product, jnp.asarray(amplifier.limit / 2))
    return EffectiveResponse(
        product, jnp.asarray(math.sqrt(found.row(weights).flat[0])), amplifier.table()
    )


def check_followed(plain: Discrimination, finite: bool) -> None:
    """Refuse a task whose flow is not known, or cannot be followed."""
    from .._solve import _check
    from ..choose import BestKnown

    network = SingleNeuron()
    if not finite:
        require(not_a_neuron("predict", plain, network))
    _check(plain, BestKnown(), network, UNTIL, REST, TOLERANCE, "auto")


def follow(
    plain: Discrimination, flows: list[Flow], initial: Any, members: int | None, seed: int
) -> Look:
    """Follow all rows from every start, and each resample from some, in one ensemble."""
    from .._integrate import STAGE, Followed, is_stiff
    from .._solve import _start, _trajectory

    network, clock = SingleNeuron(), time.perf_counter()
    seed = Count(0, 2**63 - 1).check("seed", seed)
    start, count = _start(plain, network, initial, members, seed)
    some = min(count, RESAMPLE_STARTS)
    which = np.concatenate([np.zeros(count, int), np.repeat(np.arange(1, len(flows)), some)])
    begins = np.concatenate([np.arange(count), np.tile(np.arange(some), len(flows) - 1)])
    with jax.enable_x64(True):
        params = {
            name: jnp.asarray(np.asarray(values)[begins], jnp.float64)
            for name, values in start.items()
        }
        stacked = jax.tree.map(
            lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves])[which], *flows
        )
        stiff = is_stiff(stacked, True, params, UNTIL)
        go = Followed(stacked, True, stiff, params, TOLERANCE, STAGE)
        times, result = go.to_rest(UNTIL, REST)
        onset = go.since(result, times, localized=localized_from(plain.size))
    settings = {
        "theory": {"type": "theory/from-data"},  # measured here: no theory that `solve` could take
        "times": [],
        "until": UNTIL,
        "stop_tol": REST,
        "members": count,
        "seed": seed,
        "tolerance": TOLERANCE,
        "solver": "auto",
    }
    experiment = experiment_json(
        plain, network, "solution", settings, initial=initial, precision=working_dtype()
    )
    notes = {
        "solver": "stiff" if stiff else "explicit",
        "run_seconds": time.perf_counter() - clock,
    }
    axes = (len(which), 1, *plain.shape)
    flow = _trajectory(axes, times, params, result, experiment, {"onset": onset}, notes)
    return Look(
        flow.members(slice(0, count)), flow.ipr[count:, -1, 0].reshape(len(flows) - 1, some)
    )


@dataclasses.dataclass(frozen=True)
class Look:
    """Where one hypothesis leads: all rows from every start, and the last IPR of each resample, (resample, start)."""

    flow: Trajectory
    resampled: np.ndarray
