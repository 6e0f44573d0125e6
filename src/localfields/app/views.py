"""The pictures of the explorer: Bokeh figures that are made once and given new data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Label, LinearColorMapper, Node, Range1d, Span
from bokeh.models.glyphs import Image, Line, MultiLine, Segment, VArea
from bokeh.palettes import RdBu11, Viridis256
from bokeh.plotting import figure

from ..plots.stimulus import BLUE, GRAY, GREEN, ORANGE
from .messages import Answer, Theory
from .watched import Watched

CURVES = 40  # of one field, over time
TILES = 64  # fields shown at once
CLASS_COLORS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", "#000000", GRAY)
DIVERGING = list(RdBu11)  # Bokeh's goes from blue to red: red is positive, as in all figures
WORDS = "#808080"  # can be read on white and on black


def _figure(title: str, x: str, height: int = 220, **more: Any) -> Any:
    # Ranges are set with the data: axes that stand still are easier to watch, and cost less.
    ranges = {"x_range": Range1d(start=0, end=1), "y_range": Range1d(start=0, end=1), **more}
    plot: Any = figure(
        title=title,
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        **ranges,
    )
    plot.min_border_left = plot.min_border_right = 8
    plot.title.text_font_size = "13px"
    for axis in plot.xaxis:
        axis.update(axis_label=x, axis_label_text_font_style="normal")
    plot.center = []  # no grid: every renderer costs a browser style and layout, at every drawing
    plot.outline_line_alpha = 0.2
    return plot


def _reach(axis: Any, start: float, end: float) -> None:
    """Set a range, also the one that a figure goes back to when a browser draws it for the first time."""
    axis.update(start=start, end=end, reset_start=start, reset_end=end)


def _hold(axis: Any, low: float, high: float) -> None:
    """Set a range to round numbers around these: it stands still while a run grows, and browsers lay out less."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-12)))
    step *= next(part for part in (0.1, 0.2, 0.5, 1.0) if (high - low) / (part * step) <= 10)
    _reach(axis, step * math.floor(low / step), step * math.ceil(high / step))


def _caption(plot: Any) -> Label:
    """Words in a figure's corner; unlike a title, they can change without the page being laid out anew."""
    corner: Any = {
        "x": Node(target="frame", symbol="left", offset=6),
        "y": Node(target="frame", symbol="top", offset=4),
    }
    label = Label(**corner, text="", text_baseline="top", text_font_size="12px", text_color=WORDS)
    plot.add_layout(label)
    return label


def _glyph(plot: Any, source: Any, glyph: Any) -> Any:
    """Draw data. Not by `plot.line(…)`, which makes copies for what is selected: models are what a page costs."""
    return plot.add_glyph(source, glyph)


def _line(color: str, width: float, dash: str = "solid", y: str = "y") -> Line:
    return Line(x="x", y=y, line_color=color, line_width=width, line_dash=dash)


def _source(*names: str, name: str = "") -> Any:
    return ColumnDataSource({one: [] for one in names}, name=name or None)


def _key(*entries: tuple[str, str, str]) -> str:
    """What colors mean, for all figures of a view at once: `(color, kind of line, words)`."""
    mark = (
        "display:inline-block;width:1.8em;vertical-align:middle;margin-right:0.35em;border-top:3px"
    )
    return " &ensp; ".join(
        f"<span style='white-space:nowrap'><span style='{mark} {line} {color}'></span>{words}</span>"
        for color, line, words in entries
    )


def tiled(fields: np.ndarray, gap: int = 1) -> np.ndarray:
    """Fields (field, *shape) side by side as one picture, nan between them; rings are rows of one."""
    count = len(fields)
    if fields.ndim == 2:
        return fields[::-1]
    if fields.ndim > 3:
        fields = fields.reshape(count, fields.shape[1], fields.shape[2], -1)[..., 0]
    columns = math.ceil(math.sqrt(count))
    rows = -(-count // columns)
    high, wide = fields.shape[1] + gap, fields.shape[2] + gap
    whole = np.full((rows * high - gap, columns * wide - gap), np.nan)
    for place, one in enumerate(fields):
        top, left = (place // columns) * high, (place % columns) * wide
        whole[top : top + one.shape[0], left : left + one.shape[1]] = one
    return whole[::-1]


class Picture:
    """A matrix as colors around zero."""

    def __init__(self, title: str, height: int = 220):
        self.plot = _figure(title, "", height=height, x_axis_type=None, y_axis_type=None)
        self.plot.update(sizing_mode="scale_width", aspect_ratio=1)
        self.source: Any = ColumnDataSource({"image": [np.full((1, 1), np.nan)]})
        self.colors = LinearColorMapper(
            palette=DIVERGING, low=-1, high=1, nan_color="rgba(128,128,128,0.25)"
        )
        _glyph(
            self.plot,
            self.source,
            Image(image="image", x=0, y=0, dw=1, dh=1, color_mapper=self.colors),
        )

    def show(self, picture: np.ndarray) -> None:
        """Draw it; the strongest color is the largest value."""
        seen = np.abs(picture[np.isfinite(picture)])
        limit = float(seen.max(initial=0.0)) or 1.0
        self.colors.update(low=-limit, high=limit)
        self.source.data = {"image": [np.asarray(picture, np.float32)]}


class DataView:
    """Samples of the classes, the law of one site, and the amplifier."""

    key = _key(
        (BLUE, "solid", "label 0, law"),
        (ORANGE, "solid", "label 1, amplifier"),
        (GRAY, "dashed", "normal law"),
    )

    def __init__(self) -> None:
        self.lines = _figure("samples, label 0 below", "site")
        self.lines.yaxis.visible = False
        self.line_source = _source("xs", "ys", "color")
        _glyph(
            self.lines,
            self.line_source,
            MultiLine(xs="xs", ys="ys", line_color="color", line_width=1.5),
        )
        self.picture = Picture("samples, label 0 below", height=260)
        self.picture.plot.visible = False

        self.law = _figure("law of one site", "value")
        self.kurtosis = _caption(self.law)
        self.law_source = _source("x", "y", name="law")
        self.normal_source = _source("x", "y")
        self.atom_source = _source("x", "y", "zero")
        _glyph(
            self.law, self.law_source, VArea(x="x", y1=0, y2="y", fill_color=BLUE, fill_alpha=0.3)
        )
        _glyph(self.law, self.law_source, _line(BLUE, 2))
        _glyph(self.law, self.normal_source, _line(GRAY, 1.5, "dashed"))
        bars = Segment(x0="x", y0="zero", x1="x", y1="y", line_color=BLUE, line_width=4)
        _glyph(self.law, self.atom_source, bars)

        self.amplifier = _figure("amplifier φ(a)", "correlation a with the preactivation")
        self.law_needed = _caption(self.amplifier)
        self.amplifier_source = _source("x", "y", "line", name="amplifier")
        source = self.amplifier_source
        _glyph(
            self.amplifier,
            source,
            VArea(x="x", y1="line", y2="y", fill_color=ORANGE, fill_alpha=0.25),
        )
        _glyph(self.amplifier, source, _line(ORANGE, 2))
        _glyph(self.amplifier, source, _line(GRAY, 1.5, "dashed", y="line"))

    @property
    def plots(self) -> list[Any]:
        """The figures, in order."""
        return [self.lines, self.picture.plot, self.law, self.amplifier]

    def show(self, answer: Answer) -> None:
        """Draw what is known of a task."""
        self._show_samples(answer.samples)
        empty = {"x": [], "y": []}
        if answer.density is None:
            self.law_source.data, self.normal_source.data = empty, dict(empty)
            self.atom_source.data = {"x": [], "y": [], "zero": []}
            self.kurtosis.text = "not known in closed form"
        else:
            x, y = answer.density
            self.atom_source.data = (
                {"x": x, "y": y, "zero": 0 * y} if answer.atoms else {"x": [], "y": [], "zero": []}
            )
            self.law_source.data = empty if answer.atoms else {"x": x, "y": y}
            grid = np.linspace(-3.5, 3.5, 121)
            bell = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
            self.normal_source.data = dict(empty) if answer.atoms else {"x": grid, "y": bell}
            reach = min(6.0, max(2.5, float(np.max(np.abs(x)))))
            _reach(self.law.x_range, -reach, reach)
            _hold(self.law.y_range, 0, 1.15 * float(np.max(y)))
            kurtosis = "infinite" if math.isinf(answer.kurtosis) else f"{answer.kurtosis:.2g}"
            self.kurtosis.text = f"excess kurtosis {kurtosis}"
        if answer.amplifier is None:
            self.amplifier_source.data = {"x": [], "y": [], "line": []}
            self.law_needed.text = "needs the law of one site"
        else:
            a, value = answer.amplifier
            self.amplifier_source.data = {"x": a, "y": value, "line": answer.slope * a}
            self.law_needed.text = ""
            _reach(self.amplifier.y_range, 0, 1.05 * max(1.0, float(np.max(value))))

    def _show_samples(self, samples: tuple[np.ndarray, ...]) -> None:
        ring = samples[0].ndim == 2
        self.lines.visible, self.picture.plot.visible = ring, not ring
        if not ring:
            self.picture.show(tiled(np.concatenate([one[:2] for one in samples[::-1]])))
            return
        xs, ys, colors = [], [], []
        drawn = [one[:2] for one in samples]
        step = 1.1 * 2 * max(float(np.percentile(np.abs(one), 99)) for one in drawn)
        for c, one in enumerate(drawn):
            for place, sample in enumerate(one):
                xs.append(np.arange(len(sample)))
                ys.append(sample + step * (2 * c + place))
                colors.append(CLASS_COLORS[c % len(CLASS_COLORS)])
        self.line_source.data = {"xs": xs, "ys": ys, "color": colors}
        _reach(self.lines.y_range, -0.6 * step, step * (len(ys) - 0.4))
        _reach(self.lines.x_range, 0, len(xs[0]) - 1)


class RunView:
    """The fields of a run, early pale and late dark, under those of theory; and its numbers over flow time."""

    key = _key(
        (Viridis256[230], "solid", "early"),
        (Viridis256[60], "solid", "late"),
        (BLUE, "solid", "now; training, and its mean"),
        (ORANGE, "dashed", "theory"),
        (GREEN, "dotted", "localized above"),
    )

    def __init__(self, title: str):
        self.title = title
        self.lines = _figure(title, "site", height=300)
        self.lines.name = f"{title}: lines"
        self.time = _caption(self.lines)
        self.field_source = _source("xs", "ys", "color")
        self.now_source = _source("x", "y", name=f"{title}: field")
        self.theory_source = _source("x", "y")
        curves = MultiLine(xs="xs", ys="ys", line_color="color", line_width=1.2, line_alpha=0.8)
        _glyph(self.lines, self.field_source, curves)
        _glyph(self.lines, self.now_source, _line(BLUE, 3))
        _glyph(self.lines, self.theory_source, _line(ORANGE, 2, "dashed"))
        self.picture = Picture(f"{title}: all fields", height=300)
        self.theory_picture = Picture("theory: first fields", height=300)
        self.theory_picture.plot.visible = False
        self.series = {
            "ipr": Series("ipr", title, "IPR: inverse participation ratio"),
            "loss": Series("loss", title, "held-out loss"),
            "gates": Series("gates", title, "gates that are as at the end"),
        }

    @property
    def plots(self) -> list[Any]:
        """The figures, in order."""
        return [
            self.lines,
            self.picture.plot,
            self.theory_picture.plot,
            *(one.plot for one in self.series.values()),
        ]

    def show(self, run: Watched, record: int, chosen: int) -> None:
        """Draw a run at a record; `chosen` says which of its fields."""
        weights = run.series.get("weights")
        theory = run.theory
        if weights is not None:
            flat = weights.reshape(weights.shape[0], weights.shape[1], weights.shape[2], -1)
            member, neuron = divmod(
                min(chosen, weights.shape[0] * weights.shape[2] - 1), weights.shape[2]
            )
            if weights.ndim == 4:
                self._show_curves(flat[member, : record + 1, neuron], run, record, member, neuron)
            self.lines.visible = weights.ndim == 4
            every = weights[:, record].reshape(-1, *weights.shape[3:])[:TILES]
            self.picture.show(tiled(_evened(every)))
            when = (
                f", flow time {run.times[record]:.4g}" if weights.ndim > 4 else ""
            )  # else it stands beside
            self.picture.plot.title.text = f"{self.title}: {len(every)} fields{when}"
            torus = weights.ndim > 4 and theory is not None and theory.weights is not None
            self.theory_picture.plot.visible = torus
            if torus:
                assert (
                    theory is not None and theory.weights is not None and theory.times is not None
                )
                place = int(np.argmin(np.abs(theory.times - run.times[record])))
                self.theory_picture.show(
                    tiled(_evened(theory.weights[:, place].reshape(-1, *weights.shape[3:])))
                )
        times, now = run.times, float(run.times[record])
        whole = run.whole_time
        self.series["ipr"].show(times, run.ipr, now, whole, theory, run.border)
        self.series["loss"].show(times, run.series.get("loss"), now, whole, theory)
        self.series["gates"].show(run.gate_times, run.gates, now, whole, theory)

    def clear(self) -> None:
        """Show nothing."""
        self.field_source.data = {"xs": [], "ys": [], "color": []}
        self.now_source.data = {"x": [], "y": []}
        self.theory_source.data = {"x": [], "y": []}
        self.picture.show(np.full((1, 1), np.nan))
        self.theory_picture.plot.visible = False
        for one in self.series.values():
            one.clear()

    def _show_curves(
        self, fields: np.ndarray, run: Watched, record: int, member: int, neuron: int
    ) -> None:
        chosen = np.unique(np.linspace(0, len(fields) - 1, CURVES).astype(int))
        shades = [
            Viridis256[255 - int(245 * (index + 1) / max(len(run.times), 1))] for index in chosen
        ]
        site = np.arange(fields.shape[1])
        self.field_source.data = {
            "xs": [site] * len(chosen),
            "ys": [fields[index] for index in chosen],
            "color": shades,
        }
        self.now_source.data = {"x": site, "y": fields[record]}
        _reach(self.lines.x_range, 0, len(site) - 1)
        theory = run.theory
        curve: dict[str, Any] = {"x": [], "y": []}
        if theory is not None and theory.weights is not None and member < len(theory.weights):
            place = int(np.argmin(np.abs(np.asarray(theory.times) - run.times[record])))
            curve = {"x": site, "y": theory.weights[member, place, neuron].ravel()}
        self.theory_source.data = curve
        every = np.concatenate([np.ravel(fields), np.asarray(curve["y"], float)])
        low, high = (
            (float(every.min()), float(every.max())) if np.isfinite(every).all() else (-1.0, 1.0)
        )
        margin = 0.08 * (high - low or 1.0)
        _hold(self.lines.y_range, low - margin, high + 2 * margin)  # words stand above
        which = f"member {member + 1}" if run.neurons == 1 else f"neuron {neuron + 1}"
        self.lines.title.text = f"{self.title}: {which}"
        self.time.text = f"flow time {run.times[record]:.4g}"


def _evened(fields: np.ndarray) -> np.ndarray:
    """Each field to its own largest weight, so that small ones are seen."""
    largest = np.abs(fields).reshape(len(fields), -1).max(axis=1)
    return fields / np.where(largest > 0, largest, 1).reshape(-1, *(1,) * (fields.ndim - 1))


class Series:
    """A number of every member over flow time, their mean, theory, and where the run is."""

    def __init__(self, name: str, owner: str, title: str):
        self.name = name
        self.plot = _figure(title, "flow time", height=200)
        self.each = _source("xs", "ys")
        self.mean = _source("x", "y", name=f"{owner}: {name}")
        self.theory = _source("x", "y")
        _glyph(
            self.plot,
            self.each,
            MultiLine(xs="xs", ys="ys", line_color=BLUE, line_alpha=0.3, line_width=1),
        )
        _glyph(self.plot, self.mean, _line(BLUE, 2.5))
        _glyph(self.plot, self.theory, _line(ORANGE, 2, "dashed"))
        self.now = Span(
            location=0, dimension="height", line_color=GRAY, line_width=1, visible=False
        )
        self.border = Span(
            location=0, dimension="width", line_color=GREEN, line_dash="dotted", visible=False
        )
        self.plot.add_layout(self.now)
        self.plot.add_layout(self.border)

    def show(
        self,
        times: Any,
        values: np.ndarray | None,
        now: float,
        whole: float,
        theory: Theory | None,
        border: float | None = None,
    ) -> None:
        """Draw it over the `whole` flow time; `border` is a level to hold it against."""
        self.now.update(location=now, visible=True)
        _reach(self.plot.x_range, 0, whole)
        if border is not None:
            self.border.update(location=border, visible=True)
        if values is None or times is None:
            self.each.data, self.mean.data = {"xs": [], "ys": []}, {"x": [], "y": []}
        else:
            flat = np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
            with np.errstate(invalid="ignore"):
                self.each.data = {"xs": [times] * min(len(flat), 30), "ys": list(flat[:30])}
                self.mean.data = {"x": times, "y": flat.mean(axis=0)}
        curve: dict[str, Any] = {"x": [], "y": []}
        found = None if theory is None else getattr(theory, self.name)
        if theory is not None and found is not None and theory.times is not None:
            level = np.moveaxis(found, 1, -1).reshape(-1, found.shape[1]).mean(axis=0)
            curve = {"x": theory.times[: len(level)], "y": level}
        self.theory.data = curve
        seen = [
            np.asarray(one)
            for one in (*self.each.data["ys"], self.mean.data["y"], curve["y"])
            if len(one)
        ]
        if seen:
            finite = np.concatenate(seen)[np.isfinite(np.concatenate(seen))]
            low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
            bottom = 0.0 if self.name == "ipr" else low - 0.05 * (high - low or 1.0)
            _hold(
                self.plot.y_range,
                bottom,
                max(high + 0.1 * (high - bottom or 1.0), 2 * (border or 0.0)),
            )

    def clear(self) -> None:
        """Show nothing."""
        self.each.data, self.mean.data, self.theory.data = (
            {"xs": [], "ys": []},
            {"x": [], "y": []},
            {"x": [], "y": []},
        )
        self.now.visible = self.border.visible = False
