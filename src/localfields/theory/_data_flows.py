"""Flows of tasks on data: of all rows and of resamples of them, followed in one ensemble."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..networks import SingleNeuron
from ..stimuli.samples import Rows
from ..tasks import Discrimination
from ..trajectory import Trajectory, localized_from, made_with
from . import _rows
from ._rows import GROUPS, Measurements
from .amplifier import Amplifier
from .base import Flow, NeuronFlow, Response, covariance_of
from .effective import EffectiveResponse
from .ising import MOST_SUMMED, IsingResponse, SummedResponse
from .linear import LinearNeuron
from .predict import FREQUENCIES, REST, TOLERANCE, UNTIL
from .pulse import PulseFlow

RESAMPLES, RESAMPLE_STARTS = 8, 4
LARGEST_TABLE = 500_000  # numbers in the table of different rows


def finite_patterns(task: Discrimination, stimuli: list[Rows]) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Of every class its different rows and how often each group has them, (group, row); None where they are many."""
    found = [_rows.distinct(one.rows) for one in stimuli]
    if any(one is None for one in found) or any(one.symmetry != "none" for one in stimuli):
        return None
    if sum(one[0].size for one in found if one is not None) > LARGEST_TABLE:
        return None
    result = []
    for patterns, which in (one for one in found if one is not None):
        bounds = np.linspace(0, len(which), GROUPS + 1).astype(int)
        parts = [which[a:b] for a, b in itertools.pairwise(bounds)]
        result.append(
            (patterns, np.stack([np.bincount(part, minlength=len(patterns)) for part in parts]).astype(float))
        )
    return result


def flows_of(plain: Discrimination, found: Any, finite: Any, kinds: dict[int, str], evidence: Any) -> list[Flow]:
    """The flow of all rows, and those of resamples of them."""
    weights = np.concatenate([np.ones((1, GROUPS)), _rows.resamples(RESAMPLES, seed=1)])
    if finite is not None:
        return [_summed(plain, finite, one) for one in weights]
    whole = any(evidence[c].shifts_differ for c in range(len(found))) and set(kinds.values()) == {"elliptical"}
    whole = whole and plain.size <= _rows.LARGEST_MATRIX
    return [_flow(plain, found, kinds, one, whole, evidence) for one in weights]


def _summed(plain: Discrimination, finite: Any, weights: np.ndarray) -> Flow:
    counts = [weights @ counts for _, counts in finite]
    shares = [prior * count / count.sum() for prior, count in zip(plain.priors, counts, strict=True)]
    with jax.enable_x64(True):
        leaf = lambda value: jnp.asarray(value, jnp.float64)  # noqa: E731
        return PulseFlow(
            x=leaf(np.concatenate([patterns for patterns, _ in finite])),
            p=leaf(np.concatenate(shares)),
            targets=leaf(np.repeat(plain.targets(), [len(patterns) for patterns, _ in finite], axis=0)),
            network=jax.tree.map(leaf, SingleNeuron()),  # pyright: ignore[reportCallIssue]
            task=jax.tree.map(leaf, plain),
        )


def _flow(
    plain: Discrimination, found: Any, kinds: dict[int, str], weights: np.ndarray, whole: bool, evidence: Any
) -> Flow:
    labels, priors = plain.targets()[:, 0], plain.priors
    covariances = [one.matrix(weights) if whole else one.row(weights) for one in found]
    mean = sum(p * one for p, one in zip(priors, covariances, strict=True))
    with jax.enable_x64(True):
        return NeuronFlow(
            responses=tuple(_response(kinds[c], found[c], covariances[c], weights, evidence[c]) for c in kinds),
            pull=tuple(jnp.asarray(2 * priors[c] * labels[c]) for c in kinds),
            covariance=covariance_of(np.asarray(mean), plain.shape),
            constant=jnp.asarray(float(np.dot(priors, labels**2))),
            l1=jnp.asarray(float(plain.l1)),
            l2=jnp.asarray(float(plain.l2)),
        )


def _response(kind: str, found: Measurements, covariance: np.ndarray, weights: np.ndarray, said: Any) -> Response:
    """The response of a class that is of this kind."""
    law = found.law(weights)
    if kind == "ising":
        coupling = jnp.asarray(_rows.ising_coupling(found.row(weights)))
        return SummedResponse(coupling) if found.size <= MOST_SUMMED else IsingResponse(coupling, FREQUENCIES)
    if kind == "elliptical":
        slope = Amplifier(law).limit / 2
        return LinearNeuron(covariance_of(covariance, found.shape), jnp.asarray(slope))
    sd = jnp.asarray(math.sqrt(found.row(weights).flat[0]))
    return EffectiveResponse(covariance_of(covariance, found.shape), sd, Amplifier(law).table())


def follow(plain: Discrimination, flows: list[Flow], initial: Any, members: int | None, seed: int) -> Look:
    """Follow all rows from every start, and each resample from some, in one ensemble."""
    from ._integrate import STAGE, Followed, is_stiff
    from ._solve import _check, _outcome, _start
    from .best import BestKnown

    network = SingleNeuron()  # pyright: ignore[reportCallIssue]
    _check(plain, BestKnown(), network, UNTIL, REST, TOLERANCE, "auto")
    start, count = _start(plain, network, initial, members, seed)
    some = min(count, RESAMPLE_STARTS)
    which = np.concatenate([np.zeros(count, int), np.repeat(np.arange(1, len(flows)), some)])
    begins = np.concatenate([np.arange(count), np.tile(np.arange(some), len(flows) - 1)])
    with jax.enable_x64(True):
        params = {name: jnp.asarray(np.asarray(values)[begins], jnp.float64) for name, values in start.items()}
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves])[which], *flows)
        go = Followed(stacked, True, is_stiff(stacked, True, params, UNTIL), params, TOLERANCE, STAGE)
        times, result = go.to_rest(UNTIL, REST)
        onset = go.since(result, times, localized=localized_from(plain.size))
    weights = np.asarray(result.series["weights"]).reshape(len(which), -1, 1, *plain.shape)
    flow = Trajectory(
        steps=np.arange(len(times)),
        times=np.asarray(times),
        initial=np.asarray(params["weights"]).reshape(-1, 1, *plain.shape),
        final=weights[:, -1],
        series={"weights": weights, "loss": np.asarray(result.loss)},
        outcome=tuple(_outcome(*one) for one in zip(np.asarray(result.good), weights, strict=True)),
        specification={"members": count, "seed": seed, "until": UNTIL, "rest": REST, "tolerance": TOLERANCE},
        manifest={**made_with(np.float64), "run_seconds": 0.0},
        events={"onset": onset},
    )
    return Look(flow.members(slice(0, count)), flow.ipr[count:, -1, 0].reshape(len(flows) - 1, some))


@dataclasses.dataclass(frozen=True)
class Look:
    """Where one hypothesis leads: all rows from every start, and the last IPR of each resample, (resample, start)."""

    flow: Trajectory
    resampled: np.ndarray
