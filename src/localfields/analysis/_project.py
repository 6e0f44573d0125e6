"""Separable least squares, many fields at once: what is linear is solved for, the rest is searched.

A model w ≈ Σ_l c_l φ_l(p) is linear in c. For every p the best c is a projection, so that only p is
searched, by Levenberg–Marquardt with Kaufman's derivative (variable projection). Every field has a
damping of its own, and leaves the batch when it is done.
"""

# Why not `optimistix.LevenbergMarquardt` under `vmap`: a batch then runs as long as its slowest
# field, through derivatives by autodiff. 600 Gabors on 40 sites (benchmarks/test_analysis.py), from
# the same starts, take it 3.3 times as long as this file (and 16 s to compile), and 41 end in a
# worse fit, 9 in a better one: it has no bounds, and clipped parameters have no derivative.

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

CHUNK_NUMBERS = (
    2**21
)  # numbers in the largest array of a batch: 16 MB, which stays near the processor
# A column that is this much shorter without the others is none: a sine at the highest frequency.
RANK = 1e-6
NUM_STARTS = 4  # starts that are followed at all: those nearest to the field
FIRST_STEPS = 4  # from each of them, before the best one goes on alone
MOST_STEPS = 200  # that it then takes
# A step that lowers the cost by less than this part of it is the last: a millionth of its error.
COST_TOL = 1e-12


@dataclasses.dataclass(frozen=True)
class Model:
    """Columns and their derivative.

    Args:
        columns: From parameters (field, parameter) to columns (field, site, column).
        tangent: From parameters and coefficients (field, column) to the derivative of the fit by
            the parameters, (field, site, parameter).
    """

    columns: Callable[[np.ndarray], np.ndarray]
    tangent: Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class LeastSquaresFit:
    """Parameters (field, parameter), coefficients (field, column), residual norm (field,)."""

    parameters: np.ndarray
    coefficients: np.ndarray
    residual: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class _Point:
    """Parameters, their best coefficients, residual and its square, and the span of the columns."""

    parameters: np.ndarray
    coefficients: np.ndarray
    residual: np.ndarray
    cost: np.ndarray
    span: np.ndarray

    def put(self, where: np.ndarray, other: _Point) -> None:
        """Replace some fields by others, in place."""
        for field in dataclasses.fields(self):
            getattr(self, field.name)[where] = getattr(other, field.name)

    def take(self, where: np.ndarray) -> _Point:
        """Some of the fields."""
        return _Point(*(getattr(self, field.name)[where] for field in dataclasses.fields(self)))


def _project(model: Model, target: np.ndarray, parameters: np.ndarray) -> _Point:
    columns = model.columns(parameters)
    q, r = np.linalg.qr(columns)
    longest = np.sqrt((columns**2).sum(axis=1)).max(axis=1, keepdims=True)
    lost = np.abs(np.diagonal(r, axis1=1, axis2=2)) <= RANK * longest
    q = np.where(lost[:, None, :], 0, q)
    onto = np.einsum("fsc,fs->fc", q, target)
    coefficients = np.zeros(lost.shape)
    for column in reversed(range(lost.shape[1])):  # back substitution around columns that were lost
        substituted = np.einsum("fc,fc->f", r[:, column], coefficients)
        pivot = np.where(lost[:, column], 1, r[:, column, column])
        coefficients[:, column] = np.where(
            lost[:, column], 0, (onto[:, column] - substituted) / pivot
        )
    residual = target - np.einsum("fsc,fc->fs", columns, coefficients)
    return _Point(parameters, coefficients, residual, (residual**2).sum(axis=1), q)


def fit(
    model: Model, target: np.ndarray, starts: np.ndarray, low: np.ndarray, high: np.ndarray
) -> LeastSquaresFit:
    """Fit every field from every start, and keep the best.

    Args:
        model: The model.
        target: Fields, (field, site).
        starts: Parameters to start from, (start, field, parameter).
        low: Least parameters; broadcast against `starts`.
        high: Largest parameters.
    """
    # Fields of unit size, so that one tolerance suits all.
    scale = np.sqrt((target**2).mean(axis=1))
    target = target / scale[:, None]
    low, high = (np.broadcast_to(x, starts.shape) for x in (low, high))
    starts = np.clip(starts, low, high)
    if len(starts) > NUM_STARTS:
        cost = np.stack([_costs(model, target, start) for start in starts])
        best = np.argsort(cost, axis=0, kind="stable")[:NUM_STARTS, :, None]
        starts, low, high = (np.take_along_axis(x, best, axis=0) for x in (starts, low, high))
    count, num, width = starts.shape
    columns = model.columns(starts[0, :1]).shape[2]
    size = max(1, CHUNK_NUMBERS // (target.shape[1] * count * max(columns, width)))
    parts = []
    for i in range(0, num, size):
        rows = slice(i, i + size)
        # Row s · fields + f is start s of field f. A few steps from every start show which is best;
        # only that one is followed to the end.
        tiled = np.tile(target[rows], (count, 1))
        least, largest = (x[:, rows].reshape(-1, width) for x in (low, high))
        point = _project(model, tiled, starts[:, rows].reshape(-1, width))
        if count > 1:
            point = _descend(model, tiled, point, least, largest, FIRST_STEPS)
            fields = len(tiled) // count
            best = point.cost.reshape(count, fields).argmin(axis=0) * fields + np.arange(fields)
            point, least, largest = point.take(best), least[best], largest[best]
        parts.append(_descend(model, target[rows], point, least, largest, MOST_STEPS))
    parameters, coefficients, cost = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("parameters", "coefficients", "cost")
    )
    return LeastSquaresFit(parameters, coefficients * scale[:, None], np.sqrt(cost) * scale)


def _costs(model: Model, target: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    size = max(1, CHUNK_NUMBERS // (target.shape[1] * parameters.shape[1]))
    rows = (slice(i, i + size) for i in range(0, len(target), size))
    return np.concatenate([_project(model, target[r], parameters[r]).cost for r in rows])


def _descend(
    model: Model, target: np.ndarray, best: _Point, low: np.ndarray, high: np.ndarray, steps: int
) -> _Point:
    damping = np.full(len(target), 1e-3)
    active, now = np.arange(len(target)), best.take(np.arange(len(target)))
    for _ in range(steps):
        step, gain = _step(model, now, low[active], high[active], damping[active])
        proposed = _project(
            model, target[active], np.clip(now.parameters + step, low[active], high[active])
        )
        better = proposed.cost < now.cost
        # Levenberg–Marquardt: toward Gauss–Newton after a step that helped, shorter after one that
        # did not.
        damping[active] = np.where(
            better, np.maximum(damping[active] / 5, 1e-12), damping[active] * 4
        )
        # Beyond these there is only rounding: of what is left, of the field itself, of the step.
        done = (
            (gain <= COST_TOL * now.cost)
            | (proposed.cost <= 1e-27 * target.shape[1])
            | (damping[active] > 1e10)
        )
        now.put(better, proposed.take(better))
        best.put(active, now)
        active, now = active[~done], now.take(~done)
        if not active.size:
            break
    return best


def _step(
    model: Model, now: _Point, low: np.ndarray, high: np.ndarray, damping: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The damped step, and by how much it should lower the cost."""
    # Variable projection (Kaufman 1975): the part of the derivative inside the span of the columns
    # is taken up by the coefficients, which are refitted at every point.
    derivative = model.tangent(now.parameters, now.coefficients)
    derivative = derivative - now.span @ (now.span.swapaxes(1, 2) @ derivative)
    slope = np.einsum("fsp,fs->fp", derivative, now.residual)
    fixed = ((now.parameters <= low) & (slope < 0)) | ((now.parameters >= high) & (slope > 0))
    square = derivative.swapaxes(1, 2) @ derivative
    length = np.sqrt(np.diagonal(square, axis1=1, axis2=2))
    fixed |= length <= 1e-12 * length.max(axis=1, keepdims=True)  # nothing depends on it
    # Parameters in units of their own effect; those that are fixed become rows of the identity,
    # with a step of zero.
    scale = np.where(fixed, np.inf, length)
    matrix = square / scale[:, :, None] / scale[:, None, :]
    matrix = matrix + np.eye(slope.shape[1]) * np.where(fixed, 1, damping[:, None])[:, None, :]
    step = np.linalg.solve(matrix, (slope / scale)[..., None])[..., 0] / scale
    return step, (step * slope).sum(axis=1)
