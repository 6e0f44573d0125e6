"""`compare`: theory and simulation, or any two trajectories."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..trajectory import Trajectory, inverse_participation_ratio, localized_from, peak_position
from .metrics import require_trajectory

# Flow times that differ by less than this fraction are the same: steps × learning rate rounds.
SLACK = 1e-9


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """How two trajectories agree, over flow time and at the end. `compare` makes it.

    What is undefined is nan, such as the distance from a field of zeros.

    Args:
        names: What the two are, in words.
        shape: The lattice.
        records: Indices of the first's records that are compared, (time,).
        times: Their flow times, (time,), or (member, time) where the first's are.
        inside: Whether the second's records span that time, (member, time).
        distance: Relative ℓ2 distance ‖w₁ − w₂‖/‖w₁‖, (member, time, neuron).
        cosine: ⟨w₁, w₂⟩/(‖w₁‖‖w₂‖), the same axes.
        interpolation: Estimate of how much of `distance` may come from interpolating the second
            between its records, the same axes: 0 at its records, nan where it has fewer than three.
        ipr_first: Inverse participation ratio of the first, the same axes.
        ipr_second: That of the second.
        onset_first: Flow time from which the first stays localized, (member,), nan where it does
            not; all its records count, not only the common ones.
        onset_second: That of the second.
        peak_first: Site of the largest |w| in the final fields of the first, (member, neuron), with
            a last axis of coordinates on a torus.
        peak_second: That of the second.
        peak_distance: Sites between the two around the ring, (member, neuron); on a torus the
            largest over its axes.
        ends: Flow times of the final fields of the two; the latest over members.
        ok: Whether a member ended well in both, (member,). Only such members are summarized.
    """

    names: tuple[str, str]
    shape: tuple[int, ...]
    records: np.ndarray
    times: np.ndarray
    inside: np.ndarray
    distance: np.ndarray
    cosine: np.ndarray
    interpolation: np.ndarray
    ipr_first: np.ndarray
    ipr_second: np.ndarray
    onset_first: np.ndarray
    onset_second: np.ndarray
    peak_first: np.ndarray
    peak_second: np.ndarray
    peak_distance: np.ndarray
    ends: tuple[float, float]
    ok: np.ndarray

    @property
    def exact(self) -> float:
        """Fraction of final fields whose peaks lie on the same site."""
        return _over(np.mean, _indicator(self.peak_distance[self.ok], 0))

    @property
    def within_one(self) -> float:
        """Fraction of final fields whose peaks are at most one site apart along every axis."""
        return _over(np.mean, _indicator(self.peak_distance[self.ok], 1))

    @property
    def by_chance(self) -> tuple[float, float]:
        """`exact` and `within_one` of independent peaks."""
        size = math.prod(self.shape)
        return 1 / size, math.prod(min(3, n) for n in self.shape) / size

    def at_start(self, values: np.ndarray) -> np.ndarray:
        """Values (member, time, neuron) at the first common record, (member, neuron)."""
        return values[np.arange(len(values)), self.inside.argmax(axis=1)]

    def at_end(self, values: np.ndarray) -> np.ndarray:
        """Values (member, time, neuron) at the last common record, (member, neuron)."""
        return values[
            np.arange(len(values)), self.inside.shape[1] - 1 - self.inside[:, ::-1].argmax(axis=1)
        ]

    def per_member(self) -> dict[str, np.ndarray]:
        """Means over neurons at the last common record and of the final peaks, each (member,)."""
        fields = {
            name: self.at_end(getattr(self, name))
            for name in ("distance", "cosine", "ipr_first", "ipr_second")
        }
        for most, name in enumerate(("exact", "within_one")):
            fields[name] = _indicator(self.peak_distance, most)
        means = {
            name: np.array([_over(np.mean, row) for row in values])
            for name, values in fields.items()
        }
        onsets = {"onset_first": self.onset_first, "onset_second": self.onset_second}
        return {"ok": self.ok, **means, **onsets}

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values for JSON, over the members that ended well.

        What is undefined is None. Distances, cosines and IPRs are medians over members and neurons,
        because a field that ends at another site is far away; `distance_largest` and
        `cosine_smallest` are medians of the worst over time. Onsets are medians over the members
        that have one, their difference (second − first) over those localized in both, with its
        10 % and 90 % quantiles.
        """
        ok, late = self.ok, self.onset_second - self.onset_first
        both = np.isfinite(late) & ok
        spread = np.where(self.inside, self.times, np.nan)[ok]
        distance, cosine, interpolation = (
            _worst(x[ok]) for x in (self.distance, -self.cosine, self.interpolation)
        )
        summary = {
            "members": int(ok.sum()),
            "left_out": int((~ok).sum()),
            "neurons": int(self.distance.shape[2]),
            "records": len(self.records),
            "time_start": _over(np.min, spread),
            "time_end": _over(np.max, spread),
            "distance_start": _over(np.median, self.at_start(self.distance)[ok]),
            "distance_end": _over(np.median, self.at_end(self.distance)[ok]),
            "distance_largest": _over(np.median, distance),
            "interpolation_largest": _over(np.median, interpolation),
            "cosine_start": _over(np.median, self.at_start(self.cosine)[ok]),
            "cosine_end": _over(np.median, self.at_end(self.cosine)[ok]),
            "cosine_smallest": -_over(np.median, cosine),
            "ipr_first": _over(np.median, self.at_end(self.ipr_first)[ok]),
            "ipr_second": _over(np.median, self.at_end(self.ipr_second)[ok]),
            "localized_first": int(np.isfinite(self.onset_first[ok]).sum()),
            "localized_second": int(np.isfinite(self.onset_second[ok]).sum()),
            "localized_both": int(both.sum()),
            "onset_first": _over(np.median, self.onset_first[ok]),
            "onset_second": _over(np.median, self.onset_second[ok]),
            "onset_difference": _over(np.median, late[both]),
            "onset_difference_low": _over(lambda x: np.quantile(x, 0.1), late[both]),
            "onset_difference_high": _over(lambda x: np.quantile(x, 0.9), late[both]),
            "peaks": int(np.isfinite(self.peak_distance[ok]).sum()),
            "peaks_exact": self.exact,
            "peaks_within_one": self.within_one,
        }
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in summary.items()
        }

    def __repr__(self) -> str:
        """The summary, in a few lines."""
        s = {name: math.nan if value is None else value for name, value in self.to_dict().items()}
        first, second = self.names
        same, near = (
            int(np.nansum(_indicator(self.peak_distance[self.ok], most))) for most in (0, 1)
        )
        chance = [s["peaks"] * fraction for fraction in self.by_chance]
        lines = [
            f"Comparison: {first} and {second}, {s['members']} members × {s['neurons']} neurons on "
            f"{self.shape}, {s['records']} records, flow time {s['time_start']:g} … "
            f"{s['time_end']:g}",
            f"  {'medians':10}{'at the start':>14}{'at the end':>14}{'worst':>14}",
            f"  {'distance':10}{s['distance_start']:14.3g}{s['distance_end']:14.3g}"
            f"{s['distance_largest']:14.3g}",
            f"  {'cosine':10}{s['cosine_start']:14.4f}{s['cosine_end']:14.4f}"
            f"{s['cosine_smallest']:14.4f}",
            f"  IPR at the end {s['ipr_first']:.4f} and {s['ipr_second']:.4f}",
            f"  onset {s['onset_first']:.4g} and {s['onset_second']:.4g}, difference "
            f"{s['onset_difference']:.3g} ({s['onset_difference_low']:.3g} … "
            f"{s['onset_difference_high']:.3g}); localized {s['localized_first']} and "
            f"{s['localized_second']}, both {s['localized_both']}",
            f"  final peaks (time {self.ends[0]:g} and {self.ends[1]:g}): {same} of {s['peaks']} "
            f"on the same site, {near} within ±1 (by chance {chance[0]:.2g} and {chance[1]:.2g})",
        ]
        if s["left_out"]:
            lines.append(f"  left out: {s['left_out']} members that did not end well")
        if s["interpolation_largest"] > 1e-6:
            lines.append(
                f"  up to about {s['interpolation_largest']:.2g} of the distance may come from "
                "interpolation"
            )
        return "\n".join(lines)


def compare(run: Trajectory, sol: Trajectory) -> Comparison:
    """Compare two trajectories: a simulation with its theory, or any other two.

    Fields are compared as they are. Signs are not aligned, as w and −w are different fields of a
    ReLU neuron; nor are positions, as the place of a field is part of the prediction. The first's
    records within the span of the second are compared. Where the second has no record it is
    interpolated linearly in flow time; `solve(…, times=run.times)` needs no interpolation.

    Args:
        run: The first trajectory, with recorded weights, such as `train` returns.
        sol: The second, of the same lattice, neurons and members, such as `solve` returns from
            `initial=run.initial`.

    Raises:
        InputError: If the two differ in shape, share no time, or have no recorded weights.

    Example:
        >>> import localfields as lf
        >>> from localfields.analysis import compare
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> first = lf.solve(task, lf.theory.ExactIsing(), members=3)
        >>> second = lf.solve(task, lf.theory.ExactIsing(), times=first.times, members=3)
        >>> comparison = compare(first, second)
        >>> comparison.exact, bool(comparison.distance.max() < 1e-6)
        (1.0, True)
    """
    _check(run, sol)
    records, inside = _common(run, sol)
    times, axes = run.times[..., records], len(run.shape)
    lead = (run.num_members, len(records), run.initial.shape[1])
    measures = {
        name: np.full(lead, np.nan)
        for name in ("distance", "cosine", "interpolation", "ipr_first", "ipr_second")
    }
    for member, (flow, common) in enumerate(
        zip(np.broadcast_to(times, lead[:2]), inside, strict=True)
    ):
        first = run.weights[member, records[common]].astype(np.float64)
        second, error = fields_at(sol, member, flow[common])
        with np.errstate(invalid="ignore"):  # members that ended badly are marked by `ok`
            for name, values in _measures(first, second, error, axes).items():
                measures[name][member, common] = values
    peaks = [peak_position(trajectory.final, axes) for trajectory in (run, sol)]
    have_peaks = _has_peak(run) & _has_peak(sol)
    return Comparison(
        names=_names(run, sol),
        shape=run.shape,
        records=records,
        times=times,
        inside=inside,
        **measures,
        onset_first=onset_times(run),
        onset_second=onset_times(sol),
        peak_first=peaks[0],
        peak_second=peaks[1],
        peak_distance=np.where(have_peaks, _apart(peaks[0], peaks[1], run.shape), np.nan),
        ends=(float(run.times[..., -1].max()), float(sol.times[..., -1].max())),
        ok=np.array(
            [a.kind == b.kind == "ok" for a, b in zip(run.outcome, sol.outcome, strict=True)]
        ),
    )


def _measures(
    first: np.ndarray, second: np.ndarray, error: np.ndarray, axes: int
) -> dict[str, np.ndarray]:
    length, other, apart = (_norm(field, axes) for field in (first, second, first - second))
    overlap = (first * second).reshape(*length.shape, -1).sum(axis=-1)
    unit = np.where(length > 0, length, np.nan)
    return {
        "distance": apart / unit,
        "cosine": np.clip(overlap / np.where(length * other > 0, length * other, np.nan), -1, 1),
        "interpolation": error / unit,
        "ipr_first": inverse_participation_ratio(first, axes),
        "ipr_second": inverse_participation_ratio(second, axes),
    }


def onset_times(trajectory: Trajectory) -> np.ndarray:
    """Flow time from which a member stays localized, (member,); nan if it does not end localized.

    A member is localized when the IPR of one of its neurons is above `localized_from`. `solve`
    knows the time from its integration; otherwise the IPR is interpolated linearly between records.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> onset_times(lf.solve(task, lf.theory.ExactIsing(), times=[0.0, 0.01], members=2))
        array([nan, nan])
    """
    if "onset" in trajectory.events:
        return trajectory.events["onset"]
    with np.errstate(invalid="ignore"):  # of a member that ended badly
        start = inverse_participation_ratio(trajectory.initial, len(trajectory.shape))[:, None]
        # Records may begin later than the flow.
        ipr = np.concatenate([start, trajectory.ipr], axis=1)
    ipr = np.where(np.isfinite(ipr), ipr, 0).max(axis=2)  # a field of zeros is not localized
    times = np.broadcast_to(trajectory.times, (len(ipr), ipr.shape[1] - 1))
    times = np.pad(times, ((0, 0), (1, 0)))
    threshold = localized_from(math.prod(trajectory.shape))
    localized = ipr > threshold
    rows, last = np.arange(len(ipr)), ipr.shape[1] - 1
    # The last record that is not localized; the start where all are, with no part of the way to go.
    before = np.where(localized.all(axis=1), 0, last - (~localized[:, ::-1]).argmax(axis=1))
    after = np.minimum(before + 1, last)
    low, high = ipr[rows, before], ipr[rows, after]
    part = np.clip((threshold - low) / np.where(high > low, high - low, 1), 0, 1)
    when = times[rows, before] + part * (times[rows, after] - times[rows, before])
    return np.where(localized[:, -1], when, np.nan)


def fields_at(
    trajectory: Trajectory, member: int, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fields of a member at flow times within its records, by linear interpolation.

    Between records at t₀ and t₁ the error is ½(t − t₀)(t₁ − t)‖w″‖, with w″ from the nearest three
    records.

    Returns:
        Fields (time, neuron, *shape) in float64, and an estimate of the ℓ2 norm of their error,
        (time, neuron); nan for fewer than three records.
    """
    fields = trajectory.weights[member].astype(np.float64)
    own = np.broadcast_to(trajectory.times, (trajectory.num_members, len(fields)))[member]
    if len(own) == 1:
        return np.repeat(fields, len(times), axis=0), np.zeros((len(times), fields.shape[1]))
    left = np.clip(np.searchsorted(own, times, side="right") - 1, 0, len(own) - 2)
    begin, span = own[left], own[left + 1] - own[left]
    # Records at the same time (a learning rate that fell to zero): the later one counts.
    part = np.clip(np.where(span > 0, (times - begin) / np.where(span > 0, span, 1), 1), 0, 1)
    weight = part.reshape(-1, *[1] * (fields.ndim - 1))
    # ‖w″‖ at each record from its neighbors; unknown at the first and the last.
    curvature = np.full(fields.shape[:2], np.nan)
    if len(own) > 2:
        gap = np.diff(own).reshape(-1, *[1] * (fields.ndim - 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            turn = np.diff(np.diff(fields, axis=0) / gap, axis=0)
            curvature[1:-1] = 2 * _norm(turn, fields.ndim - 2) / (own[2:] - own[:-2])[:, None]
    size = (part * (1 - part) * span**2 / 2)[:, None]
    with np.errstate(invalid="ignore"):  # of a member that ended badly
        between = (1 - weight) * fields[left] + weight * fields[left + 1]
        error = size * np.fmax(curvature[left], curvature[left + 1])
        return np.where(weight == 0, fields[left], between), np.where(size > 0, error, 0)


def _check(run: Any, sol: Any) -> None:
    for name, value in (("run", run), ("sol", sol)):
        require_trajectory(value, name)
    neurons, members = run.initial.shape[1], run.num_members
    for quantity, first, second, advice in (
        ("lattice", run.shape, sol.shape, "Train and solve the same task."),
        (
            "the number of neurons",
            neurons,
            sol.initial.shape[1],
            "Give `solve` the same `network`.",
        ),
        (
            "the number of members",
            members,
            sol.num_members,
            "Start `solve` from `initial=run.initial`.",
        ),
    ):
        if first != second:
            raise InputError(
                f"The two trajectories differ in {quantity}: {first} and {second}. {advice}"
            )
    for name, trajectory in (("run", run), ("sol", sol)):
        if "weights" not in trajectory.series:
            raise InputError(
                f"`{name}` has no recorded fields. Record them: `Record(quantities=('weights', "
                "…))`."
            )


def _common(run: Trajectory, sol: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Records of the first that the second spans for some member, and for which, (member, time)."""
    times, others = (
        np.broadcast_to(x.times, (x.num_members, x.times.shape[-1])) for x in (run, sol)
    )
    low, high = others[:, :1], others[:, -1:]
    slack = SLACK * np.maximum(high, times[:, -1:])
    inside = (times >= low - slack) & (times <= high + slack)
    if not inside.any(axis=1).all():
        m = int((~inside.any(axis=1)).argmax())
        raise InputError(
            f"The two trajectories have no flow times in common: member {m} has {times[m, 0]:g} … "
            f"{times[m, -1]:g} and {others[m, 0]:g} … {others[m, -1]:g}. Solve with "
            "`times=run.times`."
        )
    records = np.flatnonzero(inside.any(axis=0))
    return records, inside[:, records]


def _names(run: Trajectory, sol: Trajectory) -> tuple[str, str]:
    names = []
    for trajectory, place in ((run, "first"), (sol, "second")):
        if trajectory.method == "solution":
            theory = trajectory.experiment["method"]["theory"]["type"].rpartition("/")[2]
            names.append(f"{theory} theory")
        else:
            names.append("training" if trajectory.method == "training" else place)
    if names[0] == names[1]:
        return f"{names[0]} (first)", f"{names[1]} (second)"
    return names[0], names[1]


def _apart(first: np.ndarray, second: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sites between two places: around the ring, the largest over the axes of a torus."""
    straight = np.abs(first - second)
    if len(shape) == 1:
        return np.minimum(straight, shape[0] - straight)
    return np.minimum(straight, np.array(shape) - straight).max(axis=-1)


def _has_peak(trajectory: Trajectory) -> np.ndarray:
    flat = trajectory.final.reshape(*trajectory.final.shape[:2], -1)
    return np.isfinite(flat).all(axis=-1) & (flat != 0).any(axis=-1)


def _norm(fields: np.ndarray, axes: int) -> np.ndarray:
    return np.sqrt((fields.reshape(*fields.shape[: fields.ndim - axes], -1) ** 2).sum(axis=-1))


def _indicator(apart: np.ndarray, most: int) -> np.ndarray:
    return np.where(np.isnan(apart), np.nan, apart <= most)


def _over(function: Callable[..., Any], values: np.ndarray) -> float:
    """A function of the finite ones among the values; nan where there are none."""
    values = values[np.isfinite(values)]
    return float(function(values)) if values.size else math.nan


def _worst(values: np.ndarray) -> np.ndarray:
    """The largest over time, (member, neuron), nan where nothing is defined."""
    largest = np.where(np.isnan(values), -np.inf, values).max(axis=1)
    return np.where(np.isinf(largest), np.nan, largest)
