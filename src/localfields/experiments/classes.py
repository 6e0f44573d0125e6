"""Classes at the points of a sweep: in what they differ, and that no two are equal."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._spec import to_json
from ..errors import InputError
from .paths import Path

if TYPE_CHECKING:
    from .sweep import Sweep

Changes = dict[Path, Any]  # values by their path inside a stimulus


def check_classes(sweep: Sweep) -> None:
    """Check that no two classes are equal at any point.

    Nothing is built: the JSON forms of two classes are changed as a point would change them.

    Raises:
        InputError: If two are, with the point.
    """
    stimuli = sweep.base.task.stimuli
    if sweep.base.task.labels == "none":
        return
    for pair in itertools.combinations(range(len(stimuli)), 2):
        plain = [to_json(stimuli[number]) for number in pair]
        axes = [_changes(sweep, axis, pair) for axis in range(len(sweep.axes))]
        for point in _points(sweep, axes):
            changes = [axes[axis][place] for axis, place in enumerate(point)]
            first, second = (
                functools.reduce(_changed, (change[side] for change in changes), plain[side])
                for side in (0, 1)
            )
            if _rounded(first) == _rounded(second):
                raise _error(sweep, pair, point, _set_alike(axes, plain))


def class_differences(sweep: Sweep) -> dict[str, list[Any]]:
    """Fields in which classes differ, with the value of each class.

    A value that varies over points is a tuple of its values.

    Example:
        >>> import localfields as lf
        >>> class_differences(lf.Sweep(lf.Experiment(), {"gain": [1, 9], "xi[1]": [2, 3]}))
        {'xi': [1.0, (2.0, 3.0)]}
    """
    leaves = [dict(_leaves(to_json(stimulus))) for stimulus in sweep.base.task.stimuli]
    for target, (_, values) in zip(sweep.targets, sweep.axes, strict=True):
        for path in target.paths:
            if path[:2] == ("task", "stimuli") and len(path) > 3:
                series = [target.spread(value)[path] for value in values]
                alike = all(value == series[0] for value in series)
                leaves[int(path[2])][path[3:]] = series[0] if alike else tuple(series)
    missing = "–"  # of a class that has no such field
    names = dict.fromkeys(path for of_class in leaves for path in of_class)
    rows = {path: [of_class.get(path, missing) for of_class in leaves] for path in names}
    return {
        ".".join(map(str, path)): values
        for path, values in rows.items()
        if any(value != values[0] for value in values)
    }


def _changes(sweep: Sweep, axis: int, pair: Sequence[int]) -> list[list[Changes]]:
    """What every value of an axis changes in each of two classes."""
    target, (_, values) = sweep.targets[axis], sweep.axes[axis]
    return [
        [
            {
                path[3:]: change
                for path, change in target.spread(value).items()
                if path[:3] == ("task", "stimuli", number)
            }
            for number in pair
        ]
        for value in values
    ]


def _points(sweep: Sweep, axes: list[list[list[Changes]]]) -> Iterator[tuple[int, ...]]:
    """Places in the axes of all points at which the two classes may be equal.

    An axis that changes both alike takes part with its first value alone: whether the classes are
    equal does not depend on it.
    """
    if sweep.together == "list":
        return zip(*(range(len(values)) for values in axes), strict=True)
    apart = (any(first != second for first, second in values) for values in axes)
    counts = (len(values) if differs else 1 for values, differs in zip(axes, apart, strict=True))
    return itertools.product(*map(range, counts))


def _changed(plain: Any, changes: Changes) -> Any:
    """A JSON form with the values at some paths changed."""
    for path, value in changes.items():
        name, *inside = path
        inner = _changed(plain[name], {tuple(inside): value}) if inside else value
        plain = {**plain, name: inner}
    return plain


def _rounded(plain: Any) -> Any:
    """A JSON form without the last digits of its numbers, as `Discrimination` compares them."""
    if isinstance(plain, dict):
        return {name: _rounded(value) for name, value in plain.items()}
    return float(f"{plain:.9g}") if isinstance(plain, float) else plain


def _set_alike(axes: list[list[list[Changes]]], plain: list[Any]) -> int | None:
    """The axis that gives one value to two classes which differ in it without."""
    for axis, ((first, second), *_) in enumerate(axes):
        if first == second and any(
            functools.reduce(operator.getitem, path, plain[0])
            != functools.reduce(operator.getitem, path, plain[1])
            for path in first
        ):
            return axis
    return None


def _error(
    sweep: Sweep, pair: Sequence[int], point: tuple[int, ...], axis: int | None
) -> InputError:
    pairs = zip(sweep.labels, sweep.axes, point, strict=True)
    where = ", ".join(f"{label} = {values[place]}" for label, (_, values), place in pairs)
    message = f"Classes {pair[0]} and {pair[1]} are identical at {where}."
    if axis is None:
        return InputError(f"{message} Leave that point out.")
    label = sweep.labels[axis]
    return InputError(
        f"{message} `{label}` is set for every class: vary it for one class with "
        f"`{label}[{pair[1]}]`, or give each value as a list with one number per class."
    )


def _leaves(plain: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value inside the JSON form of a stimulus, by its path."""
    for name, value in plain.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*at, name))
        else:
            yield (*at, name), value
