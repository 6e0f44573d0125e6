"""Gates along a run: how often a ReLU neuron's gate stays the same during learning (note 1).

Where gates hardly change, a network of fixed gates describes the run. Also the excess kurtosis of
the preactivations, which says how far from Gaussian the data look to the neuron.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Count, Number, Row, num_members
from .._spec import member as member_of
from ..errors import InputError, show, unknown_name
from ..stimuli import Stimulus
from ..stimuli.base import as_key
from ..tasks import Discrimination
from ..trajectory import Trajectory
from .metrics import require_trajectory

REFERENCES = ("next", "first", "final")
MOST_ATOMS = 2**14  # patterns up to which a class is summed and not sampled
LARGEST_PIECE = 4_000_000  # preactivations held at a time
SUMS = ("agreement", "next", "uniform", "fourth", "eighth")  # what `_tally` returns


@dataclasses.dataclass(frozen=True, eq=False)
class GateHistory:
    """How the gates 1(⟨w, x⟩ + b ≥ 0) of a run agree between records. `gates_along` makes it.

    Probabilities are over the task's stimuli, each class as often as it is shown. Errors are
    standard errors of the draws, zero where nothing is drawn; fields that are not finite have nan.

    Attributes:
        times: Flow times of `agreement`, (record,), or (member, record) where the learning rate was
            swept.
        agreement: p(t), the probability that the gate is as at the reference: (member, record,
            neuron).
        agreement_error: Its standard error.
        gaussian: What covariances alone say, 1 − arccos(wᵀΣw′/(‖w‖_Σ ‖w′‖_Σ))/π averaged over the
            classes; exact for elliptical classes. nan for neurons with biases.
        uniform: Probability that the gate is the same at all records from `since` on, (member,
            neuron).
        uniform_error: Its standard error.
        bound: The union bound below it, 1 − Σ_t (1 − p(t)) over consecutive records; 0 where that
            says nothing.
        kurtosis: Excess kurtosis of ⟨w, X⟩ under each class, (member, time, neuron, class), at all
            times.
        kurtosis_error: Its standard error.
        variances: wᵀΣw under each class, the same axes.
        priors: Probability of each class.
        reference: What `agreement` compares with.
    """

    times: np.ndarray
    agreement: np.ndarray
    agreement_error: np.ndarray
    gaussian: np.ndarray
    uniform: np.ndarray
    uniform_error: np.ndarray
    bound: np.ndarray
    kurtosis: np.ndarray
    kurtosis_error: np.ndarray
    variances: np.ndarray
    priors: tuple[float, ...]
    reference: str

    @property
    def mixed_kurtosis(self) -> np.ndarray:
        """Excess kurtosis of ⟨w, X⟩ over all classes, each about its mean, (member, time, neuron).

        Not zero for Gaussian classes: a mixture of normals of different widths has heavy tails.
        """
        priors = np.asarray(self.priors)
        with np.errstate(invalid="ignore", divide="ignore"):
            return ((self.kurtosis + 3) * self.variances**2) @ priors / (
                self.variances @ priors
            ) ** 2 - 3


def gates_along(
    trajectory: Trajectory,
    task: Discrimination,
    *,
    reference: str = "next",
    since: float = 0.0,
    biases: Any = None,
    num: int = 20_000,
    seed: int = 0,
) -> GateHistory:
    """Follow the gates of every neuron and member along a run.

    Args:
        trajectory: From `train` or `solve`, with weights recorded; recorded biases count.
        task: What it was trained on.
        reference: `next` compares each record with the one after it, as the note does; `first` and
            `final` with the first and the last record.
        since: Flow time from which `uniform` and `bound` count.
        biases: Fixed biases, (neuron,), where the network has such.
        num: Samples of each class, for what has no closed form; 0 leaves that out.
        seed: Seed for the samples.

    Returns:
        Agreement over time, uniform agreement, and kurtosis. Classes with few patterns (pulses,
        Ising rings up to 14 sites) are summed; agreement of elliptical classes, and the kurtosis of
        those and of Ising rings, is exact.

    Raises:
        InputError: If task and trajectory do not match, or there is only one record.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> run = lf.solve(task, lf.theory.ExactIsing(), times=[0, 1, 3, 10, 20, 40], members=2)
        >>> gates = gates_along(run, task)
        >>> gates.agreement.shape, bool(gates.agreement[:, -1].min() > 0.99)  # a bump has formed
        ((2, 5, 1), True)
        >>> bool((gates.bound <= gates.uniform).all()), gates.kurtosis[0, -1, 0].round(1).tolist()
        (True, [-1.7, -1.8])
    """
    require_trajectory(trajectory)
    if reference not in REFERENCES:
        raise unknown_name("reference", reference, REFERENCES)
    num, seed = Count(0, 10**9).check("num", num), Count(0, 2**63 - 1).check("seed", seed)
    if trajectory.shape != task.shape:
        raise InputError(
            f"The task is on {task.shape} and the fields are on {trajectory.shape}. "
            "Give the task that the trajectory was computed for."
        )
    fields, bias = _fields(trajectory, biases)
    members, records, neurons = bias.shape
    if records < 2:
        raise InputError(
            f"The trajectory has {records} record, and at least two are needed. Record more often."
        )
    flow = np.broadcast_to(trajectory.times, (members, records))
    counted = flow >= float(Number(low=0, closed=True).check("since", since)) * (1 - 1e-9)
    if (counted.sum(axis=1) < 2).any():
        raise InputError(
            f"`since` must be before the last record but one ({flow[:, -2].min():g}), got "
            f"{show(since)}."
        )
    swept = num_members(task)
    if swept is not None and swept != members:
        raise InputError(
            f"The task sweeps {swept} values and the trajectory has {members} members. "
            "Give the task that the trajectory was computed for."
        )
    # Members of a sweep have tasks of their own; otherwise all members share one.
    parts = []
    for rows in [slice(None)] if swept is None else [slice(m, m + 1) for m in range(members)]:
        own = task if swept is None else member_of(task, rows.start)
        parts.append(_one_task(own, fields[rows], bias[rows], counted[rows], reference, num, seed))
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    finite = np.isfinite(fields).all(axis=-1) & np.isfinite(bias)
    times = trajectory.times[..., :-1] if reference == "next" else trajectory.times
    arrays = _mask_undefined(arrays, finite, counted, reference)
    return GateHistory(times=times, priors=tuple(task.priors), reference=reference, **arrays)


def _fields(trajectory: Trajectory, biases: Any) -> tuple[np.ndarray, np.ndarray]:
    """Fields of unit length, (member, time, neuron, size), and biases in the same units."""
    weights = trajectory.weights
    fields = weights.reshape(*weights.shape[:3], -1).astype(np.float64)
    bias = np.asarray(trajectory.series.get("biases", np.zeros(fields.shape[:3])), np.float64)
    if biases is not None:
        fixed = Row(hint="Give one number per neuron.").check("biases", biases)
        if fixed.shape != (fields.shape[2],):
            raise InputError(
                f"`biases` has {fixed.size} numbers for {fields.shape[2]} neurons. Give one per "
                "neuron."
            )
        bias = bias + fixed
    with np.errstate(invalid="ignore"):  # of a member that diverged
        length = np.linalg.norm(fields, axis=-1)
        length = np.where(length > 0, length, 1.0)
        return fields / length[..., None], bias / length


def _one_task(
    task: Discrimination,
    fields: np.ndarray,
    bias: np.ndarray,
    counted: np.ndarray,
    reference: str,
    num: int,
    seed: int,
) -> dict[str, np.ndarray]:
    """Everything for members that share one task."""
    rows = np.swapaxes(fields, 1, 2)  # (member, neuron, time, size)
    lead, size = rows.shape[:3], rows.shape[3]
    flat, offsets = rows.reshape(-1, lead[2], size), np.swapaxes(bias, 1, 2).reshape(-1, lead[2])
    mask = np.repeat(counted, lead[1], axis=0)
    classes = [
        _one_class(stimulus, flat, offsets, mask, reference, num, (seed, index))
        for index, stimulus in enumerate(task.stimuli)
    ]
    priors = np.asarray(task.priors)

    def mean(name: str) -> np.ndarray:
        return np.tensordot(priors, np.stack([values[name] for values in classes]), 1)

    def error(name: str) -> np.ndarray:
        squares = np.stack([values[name] ** 2 for values in classes])
        return np.sqrt(np.tensordot(priors**2, squares, 1))

    def back(values: np.ndarray) -> np.ndarray:
        """From (member × neuron, time) to (member, time, neuron)."""
        return np.swapaxes(values.reshape(*lead[:2], *values.shape[1:]), 1, 2)

    def by_class(name: str) -> np.ndarray:
        return np.stack([back(values[name]) for values in classes], axis=-1)

    flips = np.where(mask[:, :-1], 1 - mean("next"), 0.0).sum(axis=1)
    return {
        "agreement": back(mean("agreement")),
        "agreement_error": back(error("agreement_error")),
        "gaussian": back(mean("gaussian")),
        "uniform": mean("uniform").reshape(lead[:2]),
        "uniform_error": error("uniform_error").reshape(lead[:2]),
        "bound": np.maximum(1 - flips, 0.0).reshape(lead[:2]),
        **{name: by_class(name) for name in ("kurtosis", "kurtosis_error", "variances")},
    }


def _one_class(
    stimulus: Stimulus,
    fields: np.ndarray,
    bias: np.ndarray,
    mask: np.ndarray,
    reference: str,
    num: int,
    seed: tuple[int, int],
) -> dict[str, np.ndarray]:
    """Everything under one class, for fields (field, time, size)."""
    stimulus.require_one("for gates along a run")
    images = stimulus.covariance_product(fields.reshape(-1, fields.shape[2])).reshape(fields.shape)
    variances = np.einsum("fti,fti->ft", fields, images)
    gaussian = _by_covariance(fields, images, bias, reference)
    result: dict[str, Any] = {"variances": variances, "gaussian": gaussian}
    given = {
        "fields": fields,
        "bias": bias,
        "mask": mask,
        "variances": variances,
        "shift": stimulus.mean() * fields.sum(axis=2),
        "reference": reference,
    }
    if stimulus.has_atoms and (stimulus.num_atoms or 0) <= MOST_ATOMS:
        patterns, weights = stimulus.atoms()
        with jax.enable_x64(True):
            result |= _probabilities(_tally(**given, x=patterns, weights=weights), np.inf)
    elif num:
        piece = min(num, max(16, LARGEST_PIECE // bias.size))
        pieces = -(-num // piece)
        total: dict[str, Any] = dict.fromkeys(SUMS, 0.0)
        with jax.enable_x64(False):
            key = jax.random.fold_in(as_key(seed[0]), seed[1])
            weights = np.full(piece, 1 / (piece * pieces))
            for own in jax.random.split(key, pieces):
                sums = _tally(**given, x=stimulus.sample(own, piece), weights=weights)
                total = {name: total[name] + np.asarray(sums[name], np.float64) for name in SUMS}
        result |= _probabilities(total, num)
    else:
        every = np.full(fields.shape[:2], np.nan)
        missing = {
            "agreement": every[:, 1:] if reference == "next" else every,
            "next": every[:, 1:],
            "uniform": every[:, 0],
            "kurtosis": every,
        }
        for name, values in missing.items():
            result |= {name: values, f"{name}_error": values}
    # Closed forms take the place of what was estimated.
    if stimulus.elliptical and stimulus.sign_symmetric and not bias.any():
        result |= {"agreement": gaussian, "agreement_error": np.zeros_like(gaussian)}
        result["next"] = _by_covariance(fields, images, bias, "next")
    if (exact := stimulus.projection_kurtosis(fields)) is not None:
        result |= {"kurtosis": exact, "kurtosis_error": np.zeros_like(exact)}
    return result


def _by_covariance(
    fields: np.ndarray, images: np.ndarray, bias: np.ndarray, reference: str
) -> np.ndarray:
    """1 − arccos(correlation)/π, exact for elliptical data, from w and Σw; nan with biases."""
    if reference == "next":
        others, other_images = fields[:, 1:], images[:, 1:]
        fields, images = fields[:, :-1], images[:, :-1]
    else:
        at = slice(0, 1) if reference == "first" else slice(-1, None)
        others, other_images = fields[:, at], images[:, at]
    # From |u − v| and |u + v| of vectors of unit length: arccos loses half of the digits near one.
    length, other = (
        np.sqrt(np.maximum((a * b).sum(axis=2), 0))[..., None]
        for a, b in ((fields, images), (others, other_images))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        u, v, su, sv = fields / length, others / other, images / length, other_images / other
        apart = np.sqrt(np.maximum(((u - v) * (su - sv)).sum(axis=2), 0))
        together = np.sqrt(np.maximum(((u + v) * (su + sv)).sum(axis=2), 0))
        agreement = 1 - 2 / np.pi * np.arctan2(apart, together)
    return np.where(bias.any(), np.nan, agreement)


@functools.partial(jax.jit, static_argnames="reference")
def _tally(
    fields: Any,
    bias: Any,
    mask: Any,
    variances: Any,
    shift: Any,
    x: Any,
    weights: Any,
    *,
    reference: str,
) -> dict[str, jax.Array]:
    """Weighted sums over inputs x, (input, size), for fields (field, time, size)."""
    s = jnp.einsum("fti,pi->ftp", fields, x, precision=jax.lax.Precision.HIGHEST)
    gate = s + bias[..., None] >= 0
    following = gate[:, :-1] == gate[:, 1:]
    if reference == "next":
        same = following
    else:
        same = gate == (gate[:, :1] if reference == "first" else gate[:, -1:])
    # Same at all counted records: no change between two of them.
    steady = jnp.all(following | ~mask[:, :-1, None], axis=1)
    square = (s - shift[..., None]) ** 2 / jnp.where(variances > 0, variances, 1.0)[..., None]
    quantities = (same, following, steady, square**2, square**4)
    return {name: values @ weights for name, values in zip(SUMS, quantities, strict=True)}


def _probabilities(sums: Any, num: float) -> dict[str, np.ndarray]:
    """Probabilities and kurtosis with standard errors, from means over `num` samples."""
    sampled = not math.isinf(num)
    result = {}
    for name in ("agreement", "next", "uniform"):
        p = np.clip(np.asarray(sums[name], np.float64), 0, 1)
        # With one more of each, so that the error is not zero where all samples agree.
        error = np.sqrt((p * num + 1) * ((1 - p) * num + 1) / (num + 2) ** 3) if sampled else 0.0
        result |= {name: p, f"{name}_error": np.broadcast_to(error, p.shape)}
    fourth, eighth = (np.asarray(sums[name], np.float64) for name in ("fourth", "eighth"))
    error = np.sqrt(np.maximum(eighth - fourth**2, 0) / num) if sampled else 0.0
    return result | {
        "kurtosis": fourth - 3,
        "kurtosis_error": np.broadcast_to(error, fourth.shape),
    }


def _mask_undefined(
    arrays: dict[str, np.ndarray], finite: np.ndarray, counted: np.ndarray, reference: str
) -> dict[str, np.ndarray]:
    """Put nan where a field that takes part is not finite, and no kurtosis where it is zero."""
    if reference == "next":
        pair = finite[:, :-1] & finite[:, 1:]
    else:
        pair = finite & (finite[:, :1] if reference == "first" else finite[:, -1:])
    throughout = (finite | ~counted[:, :, None]).all(axis=1)
    varies = (finite & (arrays["variances"] > 0).all(axis=-1))[..., None]
    defined = {
        "agreement": pair,
        "gaussian": pair,
        "uniform": throughout,
        "bound": throughout,
        "kurtosis": varies,
    }
    masked = dict(arrays)
    for name, where in defined.items():
        for key in (name, f"{name}_error"):
            if key in masked:
                masked[key] = np.where(where, masked[key], np.nan)
    return masked
