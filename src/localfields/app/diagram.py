"""A phase diagram: final IPR over two numbers of a stimulus, and what theory says of every cell."""

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
from .controls import SliderScale
from .limits import Limits, check_safe
from .state import read

# A cell is a quick run, by default on a ring of 40.
CELL_TEXTS = {
    "members": "4",
    "learning_rate": "0.2",
    "steps": "1000",
    "batch": "60",
    "every": "50",
    "estimator": "orbit",
}
# What a link says of the diagram itself; other names are fields of every cell.
DIAGRAM_NAMES = ("stimulus", "across", "up", "x", "y", "rule", "other")
RULES = {"share": "a share of it", "fixed": "a fixed value"}
MAX_SIDE, MAX_CELLS = 16, 100

# The interesting ranges of the paper's numbers; others are shown around their defaults.
RANGES = {
    "gain": (0.1, 100),
    "xi": (1, 6),
    "k": (4.1, 50),
    "nu": (4.1, 50),
    "coupling": (0.1, 1.1),
    "shortest": (2, 6),
    "longest": (7, 12),
}
LISTED_RANGES = {"length": "2;4;5;8;10"}  # a length divides the ring
AROUND = 5  # a range reaches from the default divided by this to the default times this


def cell_limits(limits: Limits) -> Limits:
    """The limits of a cell: well below those of a visitor's own run, as there are many cells."""
    return dataclasses.replace(
        limits,
        sites=min(limits.sites, 400),
        members=min(limits.members, 20),
        steps=min(limits.steps, 5000),
        run_samples=min(limits.run_samples, 2_000_000),
        record_bytes=min(limits.record_bytes, 4_000_000),
    )


def limit_sentences(limits: Limits) -> str:
    """The limits of a cell as sentences for the page."""
    return (
        f"A diagram has at most {MAX_CELLS} cells and {MAX_SIDE} per side; a cell at most "
        f"{limits.sites} sites, {limits.members} members and {limits.steps} steps, with steps × "
        f"batch × members × neurons at most {limits.run_samples:,}. Two cells of a page are "
        "computed or wait at a time, and visitors' own runs come first."
    )


def numbers_of(stimulus: str) -> dict[str, tuple[Any, float]]:
    """The numbers of a stimulus that can be an axis, with their declarations and defaults.

    Raises:
        InputError: If the stimulus is unknown, or not for visitors.
    """
    cls = find("stimulus", stimulus)
    check_safe(cls)
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
            InputError: If the text is neither, or a value is illegal.
        """
        field, default = numbers_of(stimulus)[name]
        kind, whole = field.kind, isinstance(field.kind, Count)
        if ";" in text:
            parts = text.split(";")
            _check_side(name, len(parts))
            values = sorted({kind.check(name, kind.parse(name, part)) for part in parts})
            _check_side(name, len(values))
            return cls(name, text, tuple(str(v) if whole else kind.text(v) for v in values))
        parts = text.split(",")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
            if len(parts) != 3 or not low < high or not math.isfinite(high - low):
                raise ValueError
        except (ValueError, IndexError):
            example = usual_range(name, stimulus, 6)
            raise InputError(
                f"The range of `{name}` must be from,to,cells, for example {example}, got "
                f"{show(text)}."
            ) from None
        _check_side(name, count)
        if whole:
            low, high = math.ceil(low), math.floor(high)
        for end in (low, high):
            kind.check(name, end)
        log = low > 0 and SliderScale.of(kind, default).log
        spaced = (np.geomspace if log else np.linspace)(low, high, count)
        rounded = [float(f"{value:.3g}") for value in spaced]
        if whole:
            return cls(name, text, tuple(map(str, sorted({round(value) for value in rounded}))))
        # Rounding must not lead out of the legal range.
        return cls(name, text, tuple(kind.text(min(max(v, low), high)) for v in rounded))


def _check_side(name: str, count: int) -> None:
    if not 2 <= count <= MAX_SIDE:
        raise InputError(f"`{name}` must have 2 to {MAX_SIDE} cells, got {count}.")


def usual_range(name: str, stimulus: str, count: int) -> str:
    """A range of a number to start from, as it is typed."""
    field, default = numbers_of(stimulus)[name]
    kind = field.kind
    if name in LISTED_RANGES:
        return LISTED_RANGES[name]
    if name in RANGES:
        low, high = RANGES[name]
    elif default > 0 and kind.low >= 0:
        low = max(default / AROUND, kind.low + default / 100)
        high = min(default * AROUND, kind.high)
    else:
        scale = SliderScale.of(kind, default)
        low, high = scale.low, scale.high
    if isinstance(kind, Count):
        low, high = max(math.ceil(low), kind.low), math.floor(high)
    return f"{low:.3g},{high:.3g},{count}"


def usual_texts(stimulus: str) -> dict[str, str]:
    """The diagram of a stimulus to start from.

    Example:
        >>> usual_texts("nlgp")
        {'stimulus': 'nlgp', 'across': 'gain', 'up': 'xi', 'x': '0.1,100,8', 'y': '1,6,6', ...}
    """
    names = list(numbers_of(stimulus))
    if not names:
        raise InputError(f"`{stimulus}` has no number to vary. Choose another stimulus.")
    return axes_texts(stimulus, names[min(1, len(names) - 1)], names[0])


def axes_texts(stimulus: str, across: str, up: str) -> dict[str, str]:
    """The usual ranges of two numbers; if they are the same one, that of label 0 is across."""
    # A share of a whole number may not be whole, and a share of a negative number is larger.
    field, default = numbers_of(stimulus)[up]
    share = isinstance(field.kind, Number) and field.kind.low >= 0
    return {
        "stimulus": stimulus,
        "across": across,
        "up": up,
        "x": usual_range(across, stimulus, 8),
        "y": usual_range(up, stimulus, 6),
        "rule": "share" if share else "fixed",
        "other": "0.333" if share else f"{default:g}",
    }


@dataclasses.dataclass(frozen=True)
class Diagram:
    """Two axes, the rule for the other class, and the setting that all cells share."""

    stimulus: str  # of both classes
    x: Axis  # of a number that both classes share; if it is that of `y`, its value for label 0
    y: Axis  # of the number in which they differ, for label 1
    rule: str  # whether label 0 has a `share` of that, or a `fixed` value
    other: str  # the share, or the value
    more: tuple[tuple[str, str], ...] = ()  # fields of every cell besides `CELL_TEXTS`

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Diagram:
        """From the texts of a link or of the controls; what is left out is as usual.

        Raises:
            InputError: If they do not describe a diagram.
        """
        stimulus = texts.get("stimulus", "nlgp")
        known, usual = numbers_of(stimulus), usual_texts(stimulus)
        across, up = texts.get("across", usual["across"]), texts.get("up", usual["up"])
        for name in (across, up):
            if name not in known:
                raise unknown_name(f"number of `{stimulus}`", name, known)
        given = axes_texts(stimulus, across, up) | dict(texts)
        rule, other, kind = given["rule"], given["other"], known[up][0].kind
        if rule not in RULES:
            raise unknown_name("rule for label 0", rule, RULES)
        if rule == "fixed":
            kind.check(up, kind.parse(up, other))
        elif isinstance(kind, Count):
            raise InputError(
                f"The rule {show(rule)} for label 0 needs a real number, and this one is whole. "
                "Give label 0 a fixed value."
            )
        else:
            share = Number(0, 100)
            share.check("other", share.parse("other", other))
        x, y = Axis.of(across, given["x"], stimulus), Axis.of(up, given["y"], stimulus)
        cells = len(x.values) * len(y.values)
        if cells > MAX_CELLS:
            raise InputError(
                f"The diagram has {cells} cells; at most {MAX_CELLS} are possible here. Choose "
                "fewer along one of the axes."
            )
        more = {
            name: text
            for name, text in texts.items()
            if name not in DIAGRAM_NAMES and CELL_TEXTS.get(name) != text
        }
        for name in (across, up):
            if name in more:
                raise InputError(
                    f"`{name}` is an axis of the diagram, so it cannot have a value, got "
                    f"{show(more[name])}."
                )
        return cls(stimulus, x, y, rule, other, tuple(more.items()))

    @property
    def texts(self) -> dict[str, str]:
        """What `of` reads."""
        axes = (self.x.name, self.y.name, self.x.text, self.y.text)
        own = (self.stimulus, *axes, self.rule, self.other)
        return dict(zip(DIAGRAM_NAMES, own, strict=True)) | dict(self.more)

    @property
    def one_number(self) -> bool:
        """Whether the axes are the same number of the two classes."""
        return self.x.name == self.y.name

    def cell(self, column: int, row: int) -> dict[str, str]:
        """The texts of the run of one cell."""
        x, y = self.x.values[column], self.y.values[row]
        texts = {"stimulus": self.stimulus} | CELL_TEXTS | dict(self.more)
        if self.one_number:
            return texts | {self.y.name: f"{x},{y}"}
        other = self.other if self.rule == "fixed" else f"{float(self.other) * float(y):.3g}"
        return texts | {self.x.name: x, self.y.name: f"{other},{y}"}

    def describe(self) -> str:
        """The axes in a sentence."""
        if self.one_number:
            return f"Across: {self.x.name} of label 0; up: {self.y.name} of label 1."
        other = f"{self.other} times that" if self.rule == "share" else self.other
        return (
            f"Across: {self.x.name} of both classes; up: {self.y.name} of label 1, label 0 has "
            f"{other}."
        )


@dataclasses.dataclass
class Cell:
    """One cell: its run, what theory says, and its result."""

    column: int
    row: int
    texts: dict[str, str]
    experiment: str = ""  # JSON; empty if the texts describe none
    digest: str = ""
    threshold: float = math.nan  # IPR from which a field counts as localized
    kurtosis: float = math.nan  # excess kurtosis of one site of the labelled class
    critical: float = math.nan  # the kurtosis below which a flat field is unstable
    ipr: float = math.nan  # mean over members and neurons at the last record so far
    state: str = "empty"  # or `waiting`, `running`, `known`, `failed`
    note: str = ""  # why it failed

    @property
    def predicted(self) -> str:
        """`localized` where the kurtosis is below the critical one; empty if unknown."""
        gap = self.kurtosis - self.critical
        return "" if math.isnan(gap) else "localized" if gap < 0 else "not localized"

    @property
    def outcome(self) -> str:
        """The same for the result of training."""
        if self.state != "known" or math.isnan(self.ipr):
            return ""
        return "localized" if self.ipr > self.threshold else "not localized"


def load_cells(diagram: Diagram, limits: Limits, store: Path | None) -> list[Cell]:
    """All cells, row by row from below, with the results that are stored."""
    cells = [
        Cell(column, row, diagram.cell(column, row))
        for row in range(len(diagram.y.values))
        for column in range(len(diagram.x.values))
    ]
    for cell in cells:
        try:
            experiment = read(cell.texts, limits)
        except InputError as error:
            cell.state, cell.note = "failed", str(error)
            continue
        cell.experiment, cell.digest = experiment.canonical(), experiment.digest
        cell.threshold = localized_from(experiment.task.size)
    results = stored_results(store, [cell.digest for cell in cells if cell.digest])
    for cell in cells:
        if cell.digest in results:
            cell.state, (cell.ipr, cell.note) = "known", results[cell.digest]
    return cells


def stored_results(store: Path | None, digests: Iterable[str]) -> dict[str, tuple[float, str]]:
    """Final mean IPR and a note, for those digests that are in the store."""
    results: dict[str, tuple[float, str]] = {}
    if store is None:
        return results
    folder = Store(store)
    for digest in digests:
        try:
            metrics = folder.entry(digest).metrics if digest in folder else None
        except InputError:  # damaged: it is computed again
            continue
        if metrics is not None:
            ipr, outcomes = metrics.get("ipr"), metrics.get("outcomes", {})
            bad = sum(count for outcome, count in outcomes.items() if outcome != "ok")
            results[digest] = (math.nan if ipr is None else float(ipr), diverged_note(bad))
    return results


def diverged_note(count: int) -> str:
    """What is noted of a cell with members that diverged."""
    return f"{count} members diverged" if count else ""


@functools.lru_cache(5000)  # some take 50 ms, and visitors look at the same cells
def kurtosis_and_critical(experiment: str) -> tuple[float, float]:
    """Excess kurtosis of the labelled class and the critical one; nan where there is none.

    Args:
        experiment: JSON that was checked before; empty for none.
    """
    from ..theory import critical_kurtosis
    from .work import labelled_marginal

    if not experiment:
        return math.nan, math.nan
    task = Experiment.of(experiment).task
    try:
        marginal = labelled_marginal(task)
        kurtosis = math.nan if marginal is None else float(marginal.excess_kurtosis)
        return kurtosis, critical_kurtosis(task)
    except InputError:
        return math.nan, math.nan


def border_lines(cells: list[Cell], columns: int) -> list[np.ndarray]:
    """Where the kurtosis is the critical one, as lines (point, 2) in units of cells."""
    from contourpy import contour_generator
    from scipy.interpolate import PchipInterpolator

    kurtosis, critical = (
        np.clip([getattr(cell, name) for cell in cells], -9, 9).reshape(-1, columns)
        for name in ("kurtosis", "critical")
    )
    gap = kurtosis - critical
    if np.isnan(gap).all() or min(gap.shape) < 2:
        return []
    points = [np.arange(float(n)) for n in gap.shape]
    if not np.isnan(gap).any():
        # Each is smooth between cells by itself, also where their difference has a bend.
        fine = [np.linspace(0, n - 1, 10 * (n - 1) + 1) for n in gap.shape]
        for axis, (coarse, between) in enumerate(zip(points, fine, strict=True)):
            kurtosis = PchipInterpolator(coarse, kurtosis, axis=axis)(between)
            critical = PchipInterpolator(coarse, critical, axis=axis)(between)
        points, gap = fine, kurtosis - critical
    lines: Any = contour_generator(points[1], points[0], np.ma.masked_invalid(gap)).lines(0.0)
    return list(lines)
