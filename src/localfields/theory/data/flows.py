"""Flows of tasks on data: of all rows and of resamples of them, followed in one ensemble."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Count
from ..._types import working_dtype
from ...networks import SingleNeuron
from ...stimuli.samples import Rows
from ...tasks import Discrimination
from ...trajectory import Trajectory, experiment_json
from ..base import Flow, Response, covariance_of, neuron_flow
from ..predict import STOP_TOL, TOLERANCE, UNTIL
from ..responses.amplifier import Amplifier
from ..responses.effective import EffectiveResponse
from ..responses.ising import COARSE_FREQUENCIES, MOST_SUMMED, IsingResponse, SummedResponse
from ..responses.linear import LinearNeuron
from ..responses.pulse import summed_flow
from ..solve import follow_flow, initial_state
from . import rows as _rows
from .rows import ROW_GROUPS, Measurements

RESAMPLES, RESAMPLE_STARTS = 8, 4
MAX_PATTERN_NUMBERS = 500_000  # in the table of distinct rows
Patterns = list[tuple[np.ndarray, np.ndarray]]


def finite_patterns(stimuli: Sequence[Rows]) -> Patterns | None:
    """Distinct rows of every class and their counts per group, (group, row); None if too many."""
    if any(stimulus.symmetry != "none" for stimulus in stimuli):
        return None
    tables = [_rows.distinct(stimulus.rows) for stimulus in stimuli]
    result: Patterns = []
    for table in tables:
        if table is None:
            return None
        patterns, which = table
        bounds = np.linspace(0, len(which), ROW_GROUPS + 1).astype(int)
        counts = [
            np.bincount(which[a:b], minlength=len(patterns)) for a, b in itertools.pairwise(bounds)
        ]
        result.append((patterns, np.stack(counts).astype(float)))
    total = sum(patterns.size for patterns, _ in result)
    return result if total <= MAX_PATTERN_NUMBERS else None


def flows_of(
    task: Discrimination,
    measurements: list[Measurements],
    patterns: Patterns | None,
    kinds: dict[int, str],
    shifts_differ: bool,
) -> list[Flow]:
    """The flow of all rows, and those of resamples of them, if the classes are of these kinds."""
    resamples = np.concatenate([np.ones((1, ROW_GROUPS)), _rows.resamples(RESAMPLES, seed=1)])
    if patterns is not None:
        flows = []
        for weights in resamples:
            counts = [(rows, weights @ counts) for rows, counts in patterns]
            shares = [(rows, count / count.sum()) for rows, count in counts]
            flows.append(summed_flow(task, SingleNeuron(), shares))
        return flows
    # Only a linear response can use sites that differ; the others assume one marginal for all.
    use_matrix = shifts_differ and set(kinds.values()) == {"elliptical"}
    use_matrix = use_matrix and task.size <= _rows.MAX_MATRIX_SITES
    return [_flow(task, measurements, kinds, weights, use_matrix) for weights in resamples]


def _flow(
    task: Discrimination,
    measurements: list[Measurements],
    kinds: dict[int, str],
    weights: np.ndarray,
    use_matrix: bool,
) -> Flow:
    covariances = [
        measured.matrix(weights) if use_matrix else measured.row(weights)
        for measured in measurements
    ]

    def response(c: int) -> Response:
        measured = measurements[c]
        if kinds[c] == "ising":
            coupling = jnp.asarray(_rows.ising_coupling(measured.row(weights)))
            if measured.size <= MOST_SUMMED:
                return SummedResponse(coupling)
            return IsingResponse(coupling, COARSE_FREQUENCIES)
        product = covariance_of(covariances[c], measured.shape)
        amplifier = Amplifier(measured.marginal(weights))
        if kinds[c] == "elliptical":
            # m₁ = E|X|/(2σ), and φ(1) = E|X|/σ.
            return LinearNeuron(product, jnp.asarray(amplifier.limit / 2))
        sd = jnp.asarray(math.sqrt(measured.row(weights).flat[0]))
        return EffectiveResponse(product, sd, amplifier.table())

    return neuron_flow(task, covariances, response)


@dataclasses.dataclass(frozen=True)
class HypothesisFlow:
    """Where one hypothesis leads."""

    flow: Trajectory  # all rows, from every start
    resampled: np.ndarray  # final IPR of resamples of the rows, (resample, start)


def follow(
    task: Discrimination, flows: list[Flow], initial: Any, members: int | None, seed: int
) -> HypothesisFlow:
    """Follow all rows from every start, and each resample from some of them, in one ensemble."""
    clock = time.perf_counter()
    seed = Count(0, 2**63 - 1).check("seed", seed)
    start, count = initial_state(task, SingleNeuron(), initial, members, seed)
    resample_starts = min(count, RESAMPLE_STARTS)
    # Flow 0 is that of all rows, and has every start; the others are resamples.
    which = np.concatenate(
        [np.zeros(count, int), np.repeat(np.arange(1, len(flows)), resample_starts)]
    )
    begins = np.concatenate([np.arange(count), np.tile(np.arange(resample_starts), len(flows) - 1)])
    params = {name: np.asarray(values)[begins] for name, values in start.items()}
    stacked = jax.tree.map(
        lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves])[which], *flows
    )
    settings = {
        "theory": {"type": "theory/from-data"},  # measured here, not a theory that `solve` takes
        "times": [],
        "until": UNTIL,
        "stop_tol": STOP_TOL,
        "members": count,
        "seed": seed,
        "tolerance": TOLERANCE,
        "solver": "auto",
    }
    experiment = experiment_json(
        task, SingleNeuron(), "solution", settings, initial=initial, precision=working_dtype()
    )
    axes = (1, *task.shape)
    flow = follow_flow(stacked, True, params, axes, None, experiment, clock, find_rest=False)
    ends = flow.ipr[count:, -1, 0].reshape(len(flows) - 1, resample_starts)
    return HypothesisFlow(flow.members(slice(0, count)), ends)
