"""`compare`: theory held against simulation, or any trajectory against another."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..trajectory import Trajectory, inverse_participation_ratio, localized_from, peak_position
from .metrics import check_trajectory

SLACK = 1e-9  # flow times that differ by less than this fraction are the same: steps × learning rate rounds


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """How two trajectories agree: field by field, over flow time and at the end. `compare` makes it.

    What is undefined is nan: the distance from a field of zeros, a member at times that the other does not have.

    Args:
        names: What the two are, in words.
        shape: The lattice.
        records: Numbers of the first's records that are compared, (time,).
        times: Their flow times, (time,), or (member, time) where the first's are.
        inside: Whether the second's records span that time, (member, time).
        distance: Relative ℓ2 distance ‖w₁ − w₂‖/‖w₁‖, (member, time, neuron).
        cosine: ⟨w₁, w₂⟩/(‖w₁‖‖w₂‖), the same axes.
        interpolation: About how much of `distance` may come from interpolating the second between its records, the
            same axes: 0 at its records, nan where it has too few to tell.
        ipr_first: Inverse participation ratio of the first, the same axes.
        ipr_second: That of the second.
        onset_first: Flow time from which the first stays localized, (member,), nan where it does not; all its records
            count, not only the common ones.
        onset_second: That of the second.
        peak_first: Site of the largest |w| in the final fields of the first, (member, neuron), with a last axis of
            coordinates on a torus.
        peak_second: That of the second.
        peak_distance: Sites between the two around the ring, (member, neuron); the largest over the axes of a torus.
        ends: Flow times of the final fields of the two (the latest, where they differ between members).
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
        """Fraction of final fields whose peaks are at most one site apart (along every axis of a torus)."""
        return _over(np.mean, _indicator(self.peak_distance[self.ok], 1))

    @property
    def by_chance(self) -> tuple[float, float]:
        """`exact` and `within_one` of peaks that know nothing of each other."""
        size = math.prod(self.shape)
        return 1 / size, math.prod(min(3, n) for n in self.shape) / size

    def at_start(self, values: np.ndarray) -> np.ndarray:
        """Values (member, time, neuron) at the first common record of each member, (member, neuron)."""
        return values[np.arange(len(values)), self.inside.argmax(axis=1)]

    def at_end(self, values: np.ndarray) -> np.ndarray:
        """Values (member, time, neuron) at the last common record of each member, (member, neuron)."""
        return values[
            np.arange(len(values)), self.inside.shape[1] - 1 - self.inside[:, ::-1].argmax(axis=1)
        ]

    def per_member(self) -> dict[str, np.ndarray]:
        """One number a member, each (member,): the last common record and the final peaks, mean over neurons."""
        fields = {
            name: self.at_end(getattr(self, name))
            for name in ("distance", "cosine", "ipr_first", "ipr_second")
        }
        fields["exact"], fields["within_one"] = (
            _indicator(self.peak_distance, most) for most in (0, 1)
        )
        means = {
            name: np.array([_over(np.mean, row) for row in values])
            for name, values in fields.items()
        }
        return {
            "ok": self.ok,
            **means,
            "onset_first": self.onset_first,
            "onset_second": self.onset_second,
        }

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values for JSON, over the members that ended well; None for what is undefined.

        Distances, cosines and IPRs are medians over members and neurons, because one field that comes to lie on
        another site is far away; `distance_largest` and `cosine_smallest` are medians of the worst over time. Onsets
        are medians over the members that have one, their difference (second − first) over those localized in both,
        with its 10 % and 90 % quantiles.
        """
        ok, late = self.ok, self.onset_second - self.onset_first
        both = np.isfinite(late) & ok
        spread = np.where(self.inside, self.times, np.nan)[ok]
        distance, cosine, interpolation = (
            _worst(x[ok]) for x in (self.distance, -self.cosine, self.interpolation)
        )
        found = {
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
            for name, value in found.items()
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
            f"Comparison: {first} and {second}, {s['members']} members × {s['neurons']} neurons on {self.shape}, "
            f"{s['records']} records, flow time {s['time_start']:g} … {s['time_end']:g}",
            f"  {'medians':10}{'at the start':>14}{'at the end':>14}{'worst':>14}",
            f"  {'distance':10}{s['distance_start']:14.3g}{s['distance_end']:14.3g}{s['distance_largest']:14.3g}",
            f"  {'cosine':10}{s['cosine_start']:14.4f}{s['cosine_end']:14.4f}{s['cosine_smallest']:14.4f}",
            f"  IPR at the end {s['ipr_first']:.4f} and {s['ipr_second']:.4f}",
            f"  onset {s['onset_first']:.4g} and {s['onset_second']:.4g}, difference {s['onset_difference']:.3g} "
            f"({s['onset_difference_low']:.3g} … {s['onset_difference_high']:.3g}); localized {s['localized_first']} "
            f"and {s['localized_second']}, both {s['localized_both']}",
            f"  final peaks (time {self.ends[0]:g} and {self.ends[1]:g}): {same} of {s['peaks']} on the same site, "
            f"{near} within ±1 (by chance {chance[0]:.2g} and {chance[1]:.2g})",
        ]
        if s["left_out"]:
            lines.append(f"  left out: {s['left_out']} members that did not end well")
        if s["interpolation_largest"] > 1e-6:
            lines.append(
                f"  up to about {s['interpolation_largest']:.2g} of the distance may come from interpolation"
            )
        return "\n".join(lines)


def compare(run: Trajectory, sol: Trajectory) -> Comparison:
    """Hold one trajectory against another: a simulation against its theory, or either against its like.

    Fields are compared as they are. Signs are not aligned, as w and −w are different fields of a ReLU neuron; nor are
    positions, as where a field comes to lie is part of the prediction. Distances are relative to the first, ‖w₁ −
    w₂‖/‖w₁‖, at the first's records within the span of the second, which is interpolated linearly in flow time
    where it has no record; `solve(…, times=run.times)` needs no interpolation.

    Args:
        run: The first trajectory, with recorded weights; such as `train` gives.
        sol: The second, of the same lattice, neurons and members; such as `solve` gives from `initial=run.initial`.

    Returns:
        A `Comparison`, which prints as a table.

    Raises:
        InputError: When the two are not of the same shape, share no time, or have no recorded weights.

    Example:
        >>> import localfields as lf
        >>> from localfields.analysis import compare
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> exact = lf.solve(task, lf.theory.ExactIsing(), members=3)
        >>> found = compare(exact, lf.solve(task, lf.theory.ExactIsing(), times=exact.times, members=3))
        >>> found.exact, bool(found.distance.max() < 1e-6)
        (1.0, True)
    """
    _check(run, sol)
    records, inside = _common(run, sol)
    times, axes = run.times[..., records], len(run.shape)
    lead = (run.num_members, len(records), run.initial.shape[1])
    found = {
        name: np.full(lead, np.nan)
        for name in ("distance", "cosine", "interpolation", "ipr_first", "ipr_second")
    }
    for member, (at, here) in enumerate(zip(np.broadcast_to(times, lead[:2]), inside, strict=True)):
        first = run.weights[member, records[here]].astype(np.float64)
        second, unsure = fields_at(sol, member, at[here])
        with np.errstate(invalid="ignore"):  # members that ended badly are told by `ok`
            for name, values in _measures(first, second, unsure, axes).items():
                found[name][member, here] = values
    peaks = [peak_position(one.final, axes) for one in (run, sol)]
    return Comparison(
        names=_names(run, sol),
        shape=run.shape,
        records=records,
        times=times,
        inside=inside,
        **found,
        onset_first=onset_times(run),
        onset_second=onset_times(sol),
        peak_first=peaks[0],
        peak_second=peaks[1],
        peak_distance=np.where(
            _has_peak(run) & _has_peak(sol), _apart(peaks[0], peaks[1], run.shape), np.nan
        ),
        ends=(float(run.times[..., -1].max()), float(sol.times[..., -1].max())),
        ok=np.array(
            [a.kind == b.kind == "ok" for a, b in zip(run.outcome, sol.outcome, strict=True)]
        ),
    )


def _measures(
    first: np.ndarray, second: np.ndarray, unsure: np.ndarray, axes: int
) -> dict[str, np.ndarray]:
    length, other, apart = (_norm(field, axes) for field in (first, second, first - second))
    overlap = (first * second).reshape(*length.shape, -1).sum(axis=-1)
    return {
        "distance": apart / np.where(length > 0, length, np.nan),
        "cosine": np.clip(overlap / np.where(length * other > 0, length * other, np.nan), -1, 1),
        "interpolation": unsure / np.where(length > 0, length, np.nan),
        "ipr_first": inverse_participation_ratio(first, axes),
        "ipr_second": inverse_participation_ratio(second, axes),
    }


def onset_times(trajectory: Trajectory) -> np.ndarray:
    """Flow time from which on a member is localized until its last record, (member,); nan where it is not in the end.

    A member is localized when the IPR of one of its neurons is above `localized_from`. `solve` knows the time from
    its integration; otherwise the IPR is interpolated linearly between records.

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
        ipr = np.concatenate(
            [start, trajectory.ipr], axis=1
        )  # records may begin later than the flow
    ipr = np.where(np.isfinite(ipr), ipr, 0).max(axis=2)  # a field of zeros is not localized
    times = np.broadcast_to(trajectory.times, (len(ipr), ipr.shape[1] - 1))
    times = np.pad(times, ((0, 0), (1, 0)))
    threshold = localized_from(math.prod(trajectory.shape))
    seen = ipr > threshold
    rows, last = np.arange(len(ipr)), ipr.shape[1] - 1
    # The last record that is not localized; the start where all are, with no part of the way to go.
    before = np.where(seen.all(axis=1), 0, last - (~seen[:, ::-1]).argmax(axis=1))
    after = np.minimum(before + 1, last)
    low, high = ipr[rows, before], ipr[rows, after]
    part = np.clip((threshold - low) / np.where(high > low, high - low, 1), 0, 1)
    when = times[rows, before] + part * (times[rows, after] - times[rows, before])
    return np.where(seen[:, -1], when, np.nan)


def fields_at(
    trajectory: Trajectory, member: int, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fields of a member at flow times within its records, by linear interpolation, and about how wrong they are.

    Between records at t₀ and t₁ the error is ½(t − t₀)(t₁ − t)‖w″‖, with w″ from the nearest three records.

    Returns:
        Fields (time, neuron, *shape) in float64, and the ℓ2 norm of their error, (time, neuron); nan for fewer than
        three records.
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
    size, bend = (part * (1 - part) * span**2 / 2)[:, None], _bend(own, fields)
    with np.errstate(invalid="ignore"):  # of a member that ended badly
        found = np.where(
            weight == 0, fields[left], (1 - weight) * fields[left] + weight * fields[left + 1]
        )
        return found, np.where(size > 0, size * np.fmax(bend[left], bend[left + 1]), 0)


def _bend(times: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """‖w″‖ at each record from its neighbors, (time, neuron); nan at the first and the last."""
    norm = np.full(fields.shape[:2], np.nan)
    if len(times) > 2:
        gap = np.diff(times).reshape(-1, *[1] * (fields.ndim - 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            turn = np.diff(np.diff(fields, axis=0) / gap, axis=0)
            norm[1:-1] = 2 * _norm(turn, fields.ndim - 2) / (times[2:] - times[:-2])[:, None]
    return norm


def _check(run: Any, sol: Any) -> None:
    for name, value in (("run", run), ("sol", sol)):
        check_trajectory(value, name)
    for what, first, second, advice in (
        ("lattice", run.shape, sol.shape, "Train and solve the same task."),
        (
            "the number of neurons",
            run.initial.shape[1],
            sol.initial.shape[1],
            "Give `solve` the same `network`.",
        ),
        (
            "the number of members",
            run.num_members,
            sol.num_members,
            "Start `solve` from `initial=run.initial`.",
        ),
    ):
        if first != second:
            raise InputError(
                f"The two trajectories differ in {what}: {first} and {second}. {advice}"
            )
    for name, one in (("run", run), ("sol", sol)):
        if "weights" not in one.series:
            advice = "Record them: `Record(quantities=('weights', …))`."
            raise InputError(
                f"`{name}` has no recorded fields. Record them: `Record(quantities=('weights', …))`."
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
            f"The two trajectories have no flow times in common: member {m} has {times[m, 0]:g} … {times[m, -1]:g} "
            f"and {others[m, 0]:g} … {others[m, -1]:g}. Solve with `times=run.times`."
        )
    records = np.flatnonzero(inside.any(axis=0))
    return records, inside[:, records]


def _names(run: Trajectory, sol: Trajectory) -> tuple[str, str]:
    names = []
    for one, place in ((run, "first"), (sol, "second")):
        theory = one.specification.get("theory")
        if isinstance(theory, dict):
            names.append(f"{str(theory.get('type')).rpartition('/')[2]} theory")
        else:
            names.append("training" if "learning_rate" in one.specification else place)
    return (
        (names[0], names[1])
        if names[0] != names[1]
        else (f"{names[0]} (first)", f"{names[1]} (second)")
    )


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
