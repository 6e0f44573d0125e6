"""A sweep is a value: an experiment, the fields that vary, and seeds.

Its points run together where one program can.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .._spec import Choice, Count, Kind, Nested, Number, Seeds, declare, fields, number_values
from .._types import Field, Whole
from ..errors import InputError, show
from .classes import check_classes
from .experiment import Digested, Experiment, read_plain
from .paths import Path, Target, placed, resolve
from .plan import SweepPlan, plan_sweep
from .values import value_list

DEFAULT_CHUNK = 256  # members of an ensemble, at most
MAX_POINTS = 10**7
SEEDS: Path = ("method", "seed")
RATE: Path = ("method", "learning_rate")  # the one number of a method that members may differ in


# Values of fields by name: a list, an array, a range, or a text such as "logspace:0.1:10:5".
AxesLike = Mapping[str, Any] | Sequence[tuple[str, Any] | list[Any]]


@dataclasses.dataclass(frozen=True)
class Axes(Kind):
    """Fields and their values, in order: the axes of a sweep."""

    typed: ClassVar[bool] = False
    metavar = "NAME=VALUES"

    def check(self, name: str, value: Any) -> tuple[tuple[Any, tuple[Any, ...]], ...]:
        """Return pairs of a name and its values."""
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        lists = isinstance(pairs, (list, tuple))
        if not lists or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
            raise InputError(
                f"`{name}` must be fields with lists of values, such as {{'gain': [1, 10, 100]}}, "
                f"got {show(value)}."
            )
        axes = []
        for field, values in pairs:
            values = value_list(values) if isinstance(values, str) else values
            values = values.tolist() if isinstance(values, np.ndarray) else values
            if not isinstance(values, (list, tuple, range)) or not len(values):
                raise InputError(
                    f"`{field}` needs a list of at least one value, such as [1, 10, 100], got "
                    f"{show(values)}."
                )
            axes.append((field, tuple(values)))
        return tuple(axes)

    def encode(self, value: tuple[tuple[str, tuple[Any, ...]], ...]) -> list[Any]:
        """The JSON form: pairs, whose order is that of the axes."""
        return [[name, list(values)] for name, values in value]


class Sweep(Digested):
    """An experiment repeated over values of its fields, and over seeds.

    A name such as `gain` is that field of every class; `xi[1]` is that of class 1 alone. So the
    axes of “IPR over gain × ξ₁” are `{"gain": [1, 10, 100], "xi[1]": [2, 3, 4]}`, and a value that
    sets all classes at once is a list, `{"xi": [[1, 3], [2, 6]]}`. Values that leave two classes
    equal are refused. `print(sweep.plan())` says what will be computed.

    Points that differ in numbers alone (gains, lengthscales, learning rates, …) and in seeds run
    together, as ensembles of at most `chunk` members; what changes the program (batch, shape,
    estimator, …) runs apart. With independent samples a point is what the same experiment alone
    would be. With `shared` samples the seeds of one ensemble see one stream, that of its first
    seed, and differ in where they start. Points of a theory are what they are alone to the
    tolerance of its integrator.

    Example:
        >>> import localfields as lf
        >>> sweep = lf.Sweep(lf.Experiment(), {"gain": [1, 10, 100], "batch": [100, 200]}, seeds=5)
        >>> len(sweep), sweep.shape, [len(part.points) for part in sweep.ensembles()]
        (30, (3, 2, 5), [15, 15])
    """

    family: ClassVar[str] = "sweep"

    base: Field[Experiment, Experiment | Mapping[str, Any]] = declare(
        Nested("experiment"), default=Experiment(), help="what every point has in common"
    )
    axes: Field[tuple[tuple[str, tuple[Any, ...]], ...], AxesLike] = declare(
        Axes(), default=(), help="fields and the values each takes"
    )
    seeds: Field[tuple[int, ...], int | np.integer | Sequence[int] | np.ndarray] = declare(
        Seeds(), default=1, help="how many, from that of the experiment on; or a list of them"
    )
    together: str = declare(
        Choice(("grid", "list")),
        default="grid",
        help="every combination of values, or one after another",
    )
    chunk: Whole = declare(
        Count(high=10**6), default=DEFAULT_CHUNK, help="members of an ensemble, at most"
    )

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Bring values into the form of their fields, and a number of seeds into the seeds."""
        base: Any = Nested("experiment").check("base", given["base"])
        _check_base(base)
        axes = []
        for name, values in Axes().check("axes", given["axes"]):
            target = resolve(base, name)
            axes.append((name, tuple(target.plain(value) for value in values)))
        seeds = given["seeds"]
        if isinstance(seeds, (int, np.integer, float)) and not isinstance(seeds, bool):
            first, count = base.method.seed, Count(high=MAX_POINTS).check("seeds", seeds)
            _check_size(given["together"], axes, count)
            seeds = range(first, first + count)
        seeds = tuple(seeds) if isinstance(seeds, range) else seeds
        return {**given, "base": base, "axes": axes, "seeds": seeds}

    def __check_init__(self):
        """Check that the axes fit together."""
        paths = [path for target in self.targets for path in target.paths]
        for place, path in enumerate(paths):
            if path in (SEEDS, ("method", "members")):
                raise InputError(
                    f"A sweep cannot vary `{path[-1]}` as an axis. Give the sweep `seeds`."
                )
            others = paths[:place] + paths[place + 1 :]
            if any(other[: len(path)] == path for other in others):
                raise InputError(f"`{path[-1]}` is swept twice. Give each field once.")
        for name, values in (*self.axes, ("seeds", self.seeds)) if self.together == "grid" else ():
            if len({json.dumps(value, sort_keys=True) for value in values}) < len(values):
                raise InputError(
                    f"The values of `{name}` must be all different, got {show(list(values))}."
                )
        lengths = {len(values) for _, values in self.axes}
        if self.together == "list" and len(lengths) > 1:
            raise InputError(
                "The lists of this sweep are not of one length: "
                f"{', '.join(f'{name} has {len(values)}' for name, values in self.axes)}. Give "
                "each field as many values."
            )
        _check_size(self.together, self.axes, len(self.seeds))
        check_classes(self)

    @property
    def targets(self) -> list[Target]:
        """What the axes change."""
        return [resolve(self.base, name) for name, _ in self.axes]

    @property
    def labels(self) -> tuple[str, ...]:
        """Short names of the fields that vary; in full where two end alike."""
        short = [target.label for target in self.targets]
        pairs = zip(short, self.axes, strict=True)
        return tuple(name if short.count(label) > 1 else label for label, (name, _) in pairs)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes of a result: the labels (or `point`, for lists), then `seed`."""
        return (*(self.labels if self.together == "grid" else ("point",)), "seed")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each of `dims`."""
        counts = [len(values) for _, values in self.axes]
        counts = counts if self.together == "grid" else counts[:1] or [1]
        return (*counts, len(self.seeds))

    def __len__(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    def chosen(self, points: Any) -> list[np.ndarray]:
        """Places of points in each axis, then in the seeds, which vary fastest."""
        *places, seed = np.unravel_index(np.atleast_1d(points), self.shape)
        return [*(places if self.together == "grid" else [places[0]] * len(self.axes)), seed]

    def point(self, index: int) -> Experiment:
        """The experiment of one point.

        Raises:
            InputError: If its values do not fit together.
        """
        return self.together_as((index,))

    def together_as(self, points: tuple[int, ...]) -> Experiment:
        """One experiment whose members are these points; for one point, that point's own.

        Raises:
            InputError: If values do not fit together.
        """
        *places, seed = self.chosen(points)
        alone = len(points) == 1
        changes: dict[Path, Any] = {}
        for target, (_, values), place in zip(self.targets, self.axes, places, strict=True):
            if alone or not self._varies(target):
                changes |= target.spread(values[place[0]])
            else:
                each = [target.spread(values[index]) for index in place]
                changes |= {path: np.array([v[path] for v in each]) for path in target.paths}
        seeds = tuple(self.seeds[index] for index in seed)
        if alone:
            changes[SEEDS] = seeds[0]
        else:
            changes |= {SEEDS: seeds, ("method", "members"): len(points)}
        return placed(self.base, changes)

    def _varies(self, target: Target) -> bool:
        """Whether the members of one ensemble may differ in this."""
        if not isinstance(target.kind, Number) or not self._takes_seeds:
            return False
        shared = getattr(self.base.method, "estimator", "") == "shared"
        if shared and target.paths[0][:2] == ("task", "stimuli"):
            return False  # members that differ in what they see have nothing to share
        return {path[0] for path in target.paths} <= {"task", "network"} or target.paths == (RATE,)

    @property
    def _takes_seeds(self) -> bool:
        """Whether members of the method can have a seed each."""
        return any(isinstance(field.kind, Seeds) for field in fields(type(self.base.method)))

    def ensembles(self) -> list[Ensemble]:
        """The points, divided into those that run together; nothing is validated yet."""
        points = np.arange(len(self))
        *places, seed = self.chosen(points)
        targets = zip(self.targets, places, strict=True)
        apart = [place for target, place in targets if not self._varies(target)]
        apart = apart if self._takes_seeds else [*apart, seed]
        group = points * 0
        if apart:
            _, group = np.unique(np.stack(apart, axis=1), axis=0, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        ensembles = []
        for members in np.split(order, starts[1:]):
            # Even sizes: few sizes are few programs.
            size = math.ceil(len(members) / math.ceil(len(members) / self.chunk))
            for start in range(0, len(members), size):
                ensembles.append(Ensemble(self, tuple(members[start : start + size].tolist())))
        return ensembles

    def plan(self) -> SweepPlan:
        r"""What the sweep is going to do: what varies, what differs between classes, how long.

        Example:
            >>> import localfields as lf
            >>> plan = lf.Sweep(lf.Experiment(), {"gain": [1, 100], "xi[1]": [2, 3, 4]}).plan()
            >>> print(*(f"{label:<19} {text}" for label, text in plan.rows()[:4]), sep="\n")
            varies over points  gain: 1, 100
                                xi[1]: 2, 3, 4
            differs by class    xi: 1 in class 0; 2, 3, 4 in class 1
            points              6 in 1 run
        """
        return plan_sweep(self)

    def values(self, points: Any) -> list[dict[str, Any]]:
        """What sets points apart: the value of every field that varies, and the seed."""
        *places, seed = self.chosen(points)
        columns = {
            label: [values[index] for index in place]
            for label, (_, values), place in zip(self.labels, self.axes, places, strict=True)
        }
        columns["seed"] = [self.seeds[index] for index in seed]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _check_size(together: Any, axes: Any, seeds: int) -> None:
    lengths = [len(values) for _, values in axes]
    size = seeds * (math.prod(lengths) if together == "grid" else max(lengths, default=1))
    if size > MAX_POINTS:
        raise InputError(
            f"This sweep has {size} points; at most {MAX_POINTS} are possible. "
            "Divide it into several."
        )


def _check_base(base: Experiment) -> None:
    method: Any = base.method
    if getattr(method, "members", 1) != 1 or not isinstance(method.seed, int):
        raise InputError(
            "A sweep varies a single run, and this experiment is an ensemble. "
            "Give the sweep `axes` and `seeds` instead."
        )
    if base.initial.ndim > 1 + len(base.task.shape):
        raise InputError(
            "`initial` of a sweep must have shape (neuron, *shape), one start for all, got "
            f"{base.initial.shape}."
        )
    swept = [name for name, value in number_values(base) if np.ndim(value)]
    if swept:
        raise InputError(
            f"A sweep varies a single run, and this experiment has several values of `{swept[0]}`. "
            "Give the sweep `axes` and `seeds` instead."
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
    """Some points of a sweep that run as one experiment."""

    sweep: Sweep
    points: tuple[int, ...]

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The experiment whose members they are."""
        return self.sweep.together_as(self.points)

    @functools.cached_property
    def text(self) -> str:
        """Its canonical form."""
        return self.experiment.canonical()

    @functools.cached_property
    def digest(self) -> str:
        """Its name in the store."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def halves(self) -> list[Ensemble]:
        """Two of half the size, to find out which member fails."""
        middle = len(self.points) // 2
        return [Ensemble(self.sweep, part) for part in (self.points[:middle], self.points[middle:])]


def sweep_from(plain: Any) -> Sweep:
    """Build a sweep from plain values, as JSON or TOML give them.

    Raises:
        InputError: If a name is unknown, a value illegal, or the schema newer.
    """
    return read_plain(Sweep, plain, "`base`, `axes` and `seeds`", "See `localfields sweep --help`.")
