"""A diagram of many runs: final IPR over two numbers of a stimulus, and what theory says of every cell."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._spec import Count, Number, fields, find
from ..errors import InputError, show, unknown_name
from ..experiments import Experiment
from ..experiments.texts import default_texts, names_of
from ..store import Store
from ..trajectory import localized_from
from .limits import Limits, check_kinds
from .scale import scale_of
from .state import read

# One cell: a quick run, on the ring of 40 that is the default.
CELL = {
    "members": "4",
    "learning_rate": "0.2",
    "steps": "1000",
    "batch": "60",
    "every": "50",
    "estimator": "orbit",
}
OWN = (
    "stimulus",
    "across",
    "up",
    "x",
    "y",
    "rule",
    "other",
)  # what else an address of the page may say
RULES = {"share": "a share of it", "fixed": "a fixed value"}
MOST_SIDE, MOST_CELLS = 16, 100

# Where the interesting part lies, for the numbers of the paper; others are shown around their defaults.
EXTENTS = {
    "gain": (0.1, 100),
    "xi": (1, 6),
    "k": (4.1, 50),
    "nu": (4.1, 50),
    "coupling": (0.1, 1.1),
}
EXTENTS |= {"shortest": (2, 6), "longest": (7, 12)}
LISTED = {"length": "2;4;5;8;10"}  # a length divides the ring
AROUND = 5  # times the default, and that part of it


def cell_limits(limits: Limits) -> Limits:
    """What a cell may be: much less than a visitor's own run, as there are many of them."""
    return dataclasses.replace(
        limits,
        sites=min(limits.sites, 400),
        members=min(limits.members, 20),
        steps=min(limits.steps, 5000),
        draws=min(limits.draws, 2_000_000),
        record_bytes=min(limits.record_bytes, 4_000_000),
    )


def limit_words(limits: Limits) -> str:
    """The limits of a cell as sentences for the page."""
    return (
        f"A diagram has at most {MOST_CELLS} cells and {MOST_SIDE} a side; a cell at most "
        f"{limits.sites} sites, "
        f"{limits.members} members and {limits.steps} steps, with steps × draws × members × "
        "neurons at most "
        f"{limits.draws:,}. Two cells of a page are computed or wait at a time, and visitors' own "
        "runs come first."
    )


def numbers_of(stimulus: str) -> dict[str, Any]:
    """The numbers of a stimulus that can be an axis, each with its declaration and default.

    Raises:
        InputError: For a stimulus that is unknown, or not for visitors.
    """
    cls = find("stimulus", stimulus)
    check_kinds(cls)
    names, defaults = names_of(cls), default_texts(cls)
    return {
        field.name: (field, float(defaults[field.name]))
        for field in fields(cls)
        if field.name in names and isinstance(field.kind, (Number, Count))
    }


def title_of(name: str, stimulus: str) -> str:
    """A number with its symbol.

    Example:
        >>> title_of("gain", "nlgp")
        'gain g'
    """
    symbol = numbers_of(stimulus)[name][0].symbol
    return f"{name.replace('_', ' ')} {symbol}" if symbol not in ("", name) else name


@dataclasses.dataclass(frozen=True)
class Axis:
    """Values of a number, written as they are typed.

    Example:
        >>> Axis.of("gain", "0.1,100,4", "nlgp").values
        ('0.1', '1', '10', '100')
    """

    name: str
    text: str
    values: tuple[str, ...]

    @classmethod
    def of(cls, name: str, text: str, stimulus: str) -> Axis:
        """From `from,to,cells`, or from the values themselves, joined by semicolons.

        Raises:
            InputError: When that is no range of this number.
        """
        kind, default = numbers_of(stimulus)[name][0].kind, numbers_of(stimulus)[name][1]
        if ";" in text:
            return cls(name, text, _listed(name, text, kind))
        parts = text.split(",")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
            if len(parts) != 3 or not low < high or not math.isfinite(high - low):
                raise ValueError
        except (ValueError, IndexError):
            raise InputError(
                f"The range of `{name}` must be from,to,cells, for example "
                f"{usual(name, stimulus, 6)}, "
                f"got {show(text)}."
            ) from None
        _check_side(name, count)
        if isinstance(kind, Count):
            low, high = math.ceil(low), math.floor(high)
        for end in (low, high):
            kind.check(name, end)
        even = np.geomspace if low > 0 and scale_of(kind, default).log else np.linspace
        digits = [float(f"{value:.3g}") for value in even(low, high, count)]
        if isinstance(kind, Count):
            return cls(
                name, text, tuple(str(one) for one in sorted({round(value) for value in digits}))
            )
        inside = [
            min(max(value, low), high) for value in digits
        ]  # rounding must not lead out of the legal range
        return cls(name, text, tuple(kind.text(one) for one in inside))


def _check_side(name: str, count: int) -> None:
    if not 2 <= count <= MOST_SIDE:
        raise InputError(f"`{name}` must have 2 to {MOST_SIDE} cells, got {count}.")


def _listed(name: str, text: str, kind: Any) -> tuple[str, ...]:
    """Values that are given one by one, in ascending order."""
    parts = text.split(";")
    _check_side(name, len(parts))
    values = sorted({kind.check(name, kind.parse(name, one)) for one in parts})
    _check_side(name, len(values))
    return tuple(str(one) if isinstance(kind, Count) else kind.text(one) for one in values)


def usual(name: str, stimulus: str, count: int) -> str:
    """A range of a number to begin with, as it is typed."""
    field, default = numbers_of(stimulus)[name]
    if name in LISTED:
        return LISTED[name]
    if name in EXTENTS:
        low, high = EXTENTS[name]
    elif default > 0 and field.kind.low >= 0:
        low, high = (
            max(default / AROUND, field.kind.low + default / 100),
            min(default * AROUND, field.kind.high),
        )
    else:
        scale = scale_of(field.kind, default)
        low, high = scale.low, scale.high
    if isinstance(field.kind, Count):
        low, high = max(math.ceil(low), field.kind.low), math.floor(high)
    return f"{low:.3g},{high:.3g},{count}"


def usual_texts(stimulus: str) -> dict[str, str]:
    """The diagram of a stimulus to begin with.

    Example:
        >>> usual_texts("nlgp")
        {'stimulus': 'nlgp', 'across': 'gain', 'up': 'xi', 'x': '0.1,100,8', 'y': '1,6,6', ...}
    """
    names = list(numbers_of(stimulus))
    if not names:
        raise InputError(f"`{stimulus}` has no number to vary. Choose another stimulus.")
    up = names[0]
    return axes_texts(stimulus, names[1] if len(names) > 1 else up, up)


def axes_texts(stimulus: str, across: str, up: str) -> dict[str, str]:
    """The usual ranges for two numbers: if they are one, that of label 0 is across."""
    # A share of a whole number is none, and of a negative number it is larger.
    field, default = numbers_of(stimulus)[up]
    share = isinstance(field.kind, Number) and field.kind.low >= 0
    other = "0.333" if share else f"{default:g}"
    texts = {"stimulus": stimulus, "across": across, "up": up, "x": usual(across, stimulus, 8)}
    return texts | {
        "y": usual(up, stimulus, 6),
        "rule": "share" if share else "fixed",
        "other": other,
    }


@dataclasses.dataclass(frozen=True)
class Diagram:
    """What is on a page: two axes, the rule for the other class, and the setting that all cells share.

    Args:
        stimulus: Of both classes.
        x: Of a number both classes share; if it is that of `y`, its value for label 0.
        y: Of the number in which they differ, for label 1.
        rule: Whether label 0 has a `share` of that, or a `fixed` value.
        other: The share, or the value.
        more: Further fields of the experiment, in place of those of `CELL`.
    """

    stimulus: str
    x: Axis
    y: Axis
    rule: str
    other: str
    more: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Diagram:
        """From the texts of an address or of the controls; what is left out is as usual.

        Raises:
            InputError: When they spell no diagram.
        """
        stimulus = texts.get("stimulus", "nlgp")
        known, given = numbers_of(stimulus), usual_texts(stimulus)
        across, up = texts.get("across", given["across"]), texts.get("up", given["up"])
        for name in (across, up):
            if name not in known:
                raise unknown_name(f"number of `{stimulus}`", name, known)
        given = axes_texts(stimulus, across, up) | dict(texts)
        if given["rule"] not in RULES:
            raise unknown_name("rule for label 0", given["rule"], RULES)
        _check_other(given["rule"], given["other"], up, known[up][0].kind)
        x, y = (Axis.of(name, given[key], stimulus) for name, key in ((across, "x"), (up, "y")))
        if len(x.values) * len(y.values) > MOST_CELLS:
            raise InputError(
                f"The diagram has {len(x.values) * len(y.values)} cells; at most {MOST_CELLS} are "
                "possible here. "
                "Choose fewer along one of the axes."
            )
        more = {
            name: text for name, text in texts.items() if name not in OWN and CELL.get(name) != text
        }
        for name in (across, up):
            if name in more:
                raise InputError(
                    f"`{name}` is an axis of the diagram, so it cannot have a value, got "
                    f"{show(more[name])}."
                )
        return cls(stimulus, x, y, given["rule"], given["other"], tuple(more.items()))

    @property
    def texts(self) -> dict[str, str]:
        """What `of` reads."""
        own = (
            self.stimulus,
            self.x.name,
            self.y.name,
            self.x.text,
            self.y.text,
            self.rule,
            self.other,
        )
        return dict(zip(OWN, own, strict=True)) | dict(self.more)

    @property
    def one_number(self) -> bool:
        """Whether the axes are the same number of the two classes."""
        return self.x.name == self.y.name

    def cell(self, column: int, row: int) -> dict[str, str]:
        """The texts of the run of one cell."""
        x, y = self.x.values[column], self.y.values[row]
        found = {"stimulus": self.stimulus} | CELL | dict(self.more)
        if self.one_number:
            return found | {self.y.name: f"{x},{y}"}
        other = self.other if self.rule == "fixed" else f"{float(self.other) * float(y):.3g}"
        return found | {self.x.name: x, self.y.name: f"{other},{y}"}

    def words(self) -> str:
        """What label 0 has, in words."""
        if self.one_number:
            return f"Across: {self.x.name} of label 0; up: {self.y.name} of label 1."
        other = f"{self.other} times that" if self.rule == "share" else self.other
        return f"Across: {self.x.name} of both classes; up: {self.y.name} of label 1, label 0 has {other}."


def _check_other(rule: str, other: str, name: str, kind: Any) -> None:
    """Refuse a value, or a share, of label 0 that is none."""
    if rule == "fixed":
        kind.check(name, kind.parse(name, other))
        return
    if isinstance(kind, Count):
        raise InputError(
            f"The rule {show(rule)} for label 0 needs a real number, and this one is whole. Give "
            "label 0 a fixed value."
        )
    share = Number(0, 100)
    share.check("other", share.parse("other", other))


@dataclasses.dataclass
class Cell:
    """One cell: its run, what theory says, and what has become of it.

    Attributes:
        state: `empty`, `waiting`, `running`, `known`, or `failed`, with a `note` why.
        ipr: Mean over members and neurons at the last record so far.
        border: IPR from which a field counts as localized.
        kurtosis: Excess kurtosis of the labelled class's law.
        critical: That below which a flat field falls apart.
    """

    column: int
    row: int
    texts: dict[str, str]
    experiment: str = ""
    digest: str = ""
    border: float = math.nan
    kurtosis: float = math.nan
    critical: float = math.nan
    ipr: float = math.nan
    state: str = "empty"
    note: str = ""

    @property
    def predicted(self) -> str:
        """`localized` where the law's kurtosis is below the critical one; empty where that cannot be told."""
        gap = self.kurtosis - self.critical
        return "" if math.isnan(gap) else "localized" if gap < 0 else "not localized"

    @property
    def found(self) -> str:
        """The same word for what training gave."""
        if self.state != "known" or math.isnan(self.ipr):
            return ""
        return "localized" if self.ipr > self.border else "not localized"


def survey(diagram: Diagram, limits: Limits, store: Path | None) -> list[Cell]:
    """All cells, row by row from below: their runs, and what is stored of them."""
    cells = [
        Cell(column, row, diagram.cell(column, row))
        for row in range(len(diagram.y.values))
        for column in range(len(diagram.x.values))
    ]
    for one in cells:
        try:
            experiment = read(one.texts, limits)
        except InputError as error:
            one.state, one.note = "failed", str(error)
            continue
        one.experiment, one.digest = experiment.canonical(), experiment.digest
        one.border = localized_from(experiment.task.size)
    found = stored(store, [one.digest for one in cells if one.digest])
    for one in cells:
        if one.digest in found:
            one.state, (one.ipr, one.note) = "known", found[one.digest]
    return cells


def predictions(cells: list[Cell]) -> list[tuple[float, float]]:
    """Excess kurtosis of the labelled class and the critical one, cell by cell; nan where there is none."""
    return [theory_of(one.experiment) if one.experiment else (math.nan, math.nan) for one in cells]


@functools.lru_cache(
    5000
)  # of the law of some families a kurtosis takes 50 ms, and visitors look at the same cells
def theory_of(experiment: str) -> tuple[float, float]:
    """The same of one experiment, given as JSON that was read before."""
    from ..theory import critical_kurtosis

    task = Experiment.of(experiment).task
    weights = np.abs(task.targets()).max(axis=1) * np.asarray(task.priors)
    try:
        law = task.stimuli[int(np.argmax(weights))].marginal()
        return (math.nan if law is None else float(law.excess_kurtosis)), critical_kurtosis(task)
    except InputError:
        return math.nan, math.nan


def stored(store: Path | None, digests: Iterable[str]) -> dict[str, tuple[float, str]]:
    """Final mean IPR and a note, for those that are in the store."""
    if store is None:
        return {}
    place, found = Store(store), {}
    for digest in digests:
        if digest not in place:
            continue
        try:
            metrics = place.entry(digest).metrics
        except InputError:  # damaged: it is computed again by whoever can
            continue
        ipr, bad = (
            metrics.get("ipr"),
            sum(n for kind, n in metrics.get("outcomes", {}).items() if kind != "ok"),
        )
        found[digest] = (
            (math.nan if ipr is None else float(ipr)),
            f"{bad} members diverged" if bad else "",
        )
    return found


def border_lines(cells: list[Cell], columns: int) -> list[np.ndarray]:
    """Where the law's kurtosis is the critical one, as lines (place, 2) in units of cells."""
    from contourpy import contour_generator

    parts = (np.array([getattr(one, name) for one in cells]) for name in ("kurtosis", "critical"))
    kurtosis, critical = (np.clip(part, -9, 9).reshape(-1, columns) for part in parts)
    if np.isnan(kurtosis + critical).all() or min(kurtosis.shape) < 2:
        return []
    if np.isnan(kurtosis + critical).any():
        places, gap = [np.arange(float(n)) for n in kurtosis.shape], kurtosis - critical
    else:  # each by itself is smooth between cells, also where their difference has a bend
        places = [np.linspace(0, n - 1, 10 * (n - 1) + 1) for n in kurtosis.shape]
        gap = _between(kurtosis, places) - _between(critical, places)
    lines: Any = contour_generator(places[1], places[0], np.ma.masked_invalid(gap)).lines(0.0)
    return list(lines)


def _between(values: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """A table at places between its entries, without overshooting."""
    from scipy.interpolate import PchipInterpolator

    for axis, place in enumerate(places):
        values = PchipInterpolator(np.arange(values.shape[axis]), values, axis=axis)(place)
    return values
