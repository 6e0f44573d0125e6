"""The figures of the first page: Bokeh figures that are made once and given new data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Label, LinearColorMapper, Node, Range1d, Span
from bokeh.models.glyphs import Image, Line, MultiLine, Segment, VArea
from bokeh.palettes import RdBu11, Viridis256
from bokeh.plotting import figure

from ..plots._style import BLUE, GRAY, GREEN, ORANGE
from .live_run import LiveRun
from .messages import TaskSummary, TheoryCurves

MAX_CURVES = 40  # of one field over time
MAX_TILES = 64  # fields shown at once
MAX_LINES = 30  # members shown in a time series
CLASS_COLORS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", "#000000", GRAY)
DIVERGING = list(RdBu11)  # from blue to red: red is positive, as in all figures
CAPTION_COLOR = "#808080"  # legible on white and on black
NO_PICTURE = np.full((1, 1), np.nan)


def page_figure(title: str, x_label: str, height: int = 220, **more: Any) -> Any:
    """A figure in the style of the pages, without data."""
    # Ranges are set with the data: axes that stand still are easier to watch, and cost less.
    ranges = {"x_range": Range1d(start=0, end=1), "y_range": Range1d(start=0, end=1), **more}
    options: Any = {"sizing_mode": "stretch_width", "toolbar_location": None, "tools": ""}
    plot: Any = figure(title=title, height=height, **options, **ranges)
    plot.min_border_left = plot.min_border_right = 8
    plot.title.text_font_size = "13px"
    for axis in plot.xaxis:
        axis.axis_label = x_label
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
    plot.center = []  # no grid: every renderer costs a browser style and layout at every drawing
    plot.outline_line_alpha = 0.2
    return plot


def _set_range(axis: Any, start: float, end: float) -> None:
    """Set a range, and the one that a browser resets to when it first draws the figure."""
    axis.update(start=start, end=end, reset_start=start, reset_end=end)


def _set_round_range(axis: Any, low: float, high: float) -> None:
    """Set a range to round numbers: while a run grows it stands still, and costs no new layout."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-12)))
    step *= next(part for part in (0.1, 0.2, 0.5, 1.0) if (high - low) / (part * step) <= 10)
    _set_range(axis, step * math.floor(low / step), step * math.ceil(high / step))


def _caption(plot: Any) -> Label:
    """Text in a figure's corner; unlike a title, it can change without a new page layout."""
    corner: Any = {
        "x": Node(target="frame", symbol="left", offset=6),
        "y": Node(target="frame", symbol="top", offset=4),
    }
    style: Any = {"text_baseline": "top", "text_font_size": "12px", "text_color": CAPTION_COLOR}
    label = Label(**corner, text="", **style)
    plot.add_layout(label)
    return label


def _source(plot: Any, *columns: str, name: str = "", glyphs: Any = ()) -> Any:
    """A data source with these columns, drawn by these glyphs.

    Not by `plot.line(…)`, which adds copies for selected data: models are what a page costs.
    """
    source = ColumnDataSource({column: [] for column in columns}, name=name or None)
    for glyph in glyphs:
        plot.add_glyph(source, glyph)
    return source


def _set(source: Any, *values: Any) -> None:
    """Give a source new data, column by column; without values it is emptied.

    Once per drawing: every change is sent to the browser by itself.
    """
    columns = list(source.data)
    source.data = dict(zip(columns, values or [[] for _ in columns], strict=True))


def _line(color: str, width: float, dash: str = "solid", y: str = "y") -> Line:
    return Line(x="x", y=y, line_color=color, line_width=width, line_dash=dash)


def _key(*entries: tuple[str, str, str]) -> str:
    """The key to the colors of a view, from `(color, kind of line, text)`."""
    mark = (
        "display:inline-block;width:1.8em;vertical-align:middle;margin-right:0.35em;border-top:3px"
    )
    return " &ensp; ".join(
        f"<span style='white-space:nowrap'><span style='{mark} {line} {color}'></span>{text}</span>"
        for color, line, text in entries
    )


def tiled(fields: np.ndarray, gap: int = 1) -> np.ndarray:
    """Fields (field, *shape) as one picture, drawn upward: rings as rows, others as tiles."""
    count = len(fields)
    if fields.ndim == 2:
        return fields[::-1]
    if fields.ndim > 3:
        fields = fields.reshape(count, fields.shape[1], fields.shape[2], -1)[..., 0]
    columns = math.ceil(math.sqrt(count))
    rows = -(-count // columns)
    height, width = fields.shape[1] + gap, fields.shape[2] + gap
    picture = np.full((rows * height - gap, columns * width - gap), np.nan)
    for place, field in enumerate(fields):
        top, left = (place // columns) * height, (place % columns) * width
        picture[top : top + field.shape[0], left : left + field.shape[1]] = field
    return picture[::-1]


def _normalized(fields: np.ndarray) -> np.ndarray:
    """Each field divided by its largest weight, so that small ones are visible."""
    largest = np.abs(fields).reshape(len(fields), -1).max(axis=1)
    return fields / np.where(largest > 0, largest, 1).reshape(-1, *(1,) * (fields.ndim - 1))


class Picture:
    """A matrix as colors around zero."""

    def __init__(self, title: str, height: int = 220):
        self.plot = page_figure(title, "", height=height, x_axis_type=None, y_axis_type=None)
        self.plot.update(sizing_mode="scale_width", aspect_ratio=1)
        self.colors = LinearColorMapper(
            palette=DIVERGING, low=-1, high=1, nan_color="rgba(128,128,128,0.25)"
        )
        image = Image(image="image", x=0, y=0, dw=1, dh=1, color_mapper=self.colors)
        self.source = _source(self.plot, "image", name=title, glyphs=[image])
        _set(self.source, [NO_PICTURE])

    def show(self, picture: np.ndarray) -> None:
        """Draw it; the strongest color is the largest value."""
        limit = float(np.abs(picture[np.isfinite(picture)]).max(initial=0.0)) or 1.0
        self.colors.update(low=-limit, high=limit)
        _set(self.source, [np.asarray(picture, np.float32)])


class DataView:
    """Samples of the classes, the distribution of one site, and the amplifier."""

    key = _key(
        (BLUE, "solid", "label 0, distribution"),
        (ORANGE, "solid", "label 1, amplifier"),
        (GRAY, "dashed", "normal distribution"),
    )

    def __init__(self) -> None:
        self.lines = page_figure("samples, label 0 below", "site")
        self.lines.yaxis.visible = False
        curves = MultiLine(xs="xs", ys="ys", line_color="color", line_width=1.5)
        self.sample_source = _source(self.lines, "xs", "ys", "color", glyphs=[curves])
        self.picture = Picture("samples, label 0 below", height=260)
        self.picture.plot.visible = False

        plot = self.marginal = page_figure("distribution of one site", "value")
        area = VArea(x="x", y1=0, y2="y", fill_color=BLUE, fill_alpha=0.3)
        bars = Segment(x0="x", y0="zero", x1="x", y1="y", line_color=BLUE, line_width=4)
        self.density_source = _source(plot, "x", "y", name="density", glyphs=[area, _line(BLUE, 2)])
        self.normal_source = _source(plot, "x", "y", glyphs=[_line(GRAY, 1.5, "dashed")])
        self.atom_source = _source(plot, "x", "y", "zero", glyphs=[bars])
        self.marginal_caption = _caption(plot)

        plot = self.amplifier = page_figure("amplifier φ(a)", "correlation a with preactivation")
        gap = VArea(x="x", y1="line", y2="y", fill_color=ORANGE, fill_alpha=0.25)
        glyphs = [gap, _line(ORANGE, 2), _line(GRAY, 1.5, "dashed", y="line")]
        self.amplifier_source = _source(plot, "x", "y", "line", name="amplifier", glyphs=glyphs)
        self.amplifier_caption = _caption(plot)

    @property
    def plots(self) -> list[Any]:
        """The figures, in order."""
        return [self.lines, self.picture.plot, self.marginal, self.amplifier]

    def show(self, summary: TaskSummary) -> None:
        """Draw what is known of a task."""
        self._show_samples(summary.samples)
        density: tuple[Any, ...] = ()
        atoms, normal = density, density
        self.marginal_caption.text = "not known in closed form"
        if summary.density is not None:
            x, y = summary.density
            if summary.atoms:
                atoms = (x, y, 0 * y)
            else:
                grid = np.linspace(-3.5, 3.5, 121)
                density = (x, y)
                normal = (grid, np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi))
            reach = min(6.0, max(2.5, float(np.max(np.abs(x)))))
            _set_range(self.marginal.x_range, -reach, reach)
            _set_round_range(self.marginal.y_range, 0, 1.15 * float(np.max(y)))
            kurtosis = "infinite" if math.isinf(summary.kurtosis) else f"{summary.kurtosis:.2g}"
            self.marginal_caption.text = f"excess kurtosis {kurtosis}"
        _set(self.density_source, *density)
        _set(self.normal_source, *normal)
        _set(self.atom_source, *atoms)
        if summary.amplifier is None:
            _set(self.amplifier_source)
            self.amplifier_caption.text = "needs the distribution of one site"
        else:
            a, value = summary.amplifier
            _set(self.amplifier_source, a, value, summary.slope * a)
            self.amplifier_caption.text = ""
            _set_range(self.amplifier.y_range, 0, 1.05 * max(1.0, float(np.max(value))))

    def _show_samples(self, samples: tuple[np.ndarray, ...]) -> None:
        """Two samples per class, one above the other, label 0 at the bottom."""
        ring = samples[0].ndim == 2
        self.lines.visible, self.picture.plot.visible = ring, not ring
        pairs = [sample[:2] for sample in samples]
        if not ring:
            self.picture.show(tiled(np.concatenate(pairs[::-1])))
            return
        step = 1.1 * 2 * max(float(np.percentile(np.abs(pair), 99)) for pair in pairs)
        curves = np.concatenate(pairs)
        ys = [curve + step * place for place, curve in enumerate(curves)]
        colors = [CLASS_COLORS[c % len(CLASS_COLORS)] for c, pair in enumerate(pairs) for _ in pair]
        _set(self.sample_source, [np.arange(curves.shape[1])] * len(ys), ys, colors)
        _set_range(self.lines.y_range, -0.6 * step, step * (len(ys) - 0.4))
        _set_range(self.lines.x_range, 0, curves.shape[1] - 1)


class RunView:
    """The fields of a run, early pale and late dark, under those of theory; numbers over time."""

    key = _key(
        (Viridis256[230], "solid", "early"),
        (Viridis256[60], "solid", "late"),
        (BLUE, "solid", "now; training, and its mean"),
        (ORANGE, "dashed", "theory"),
        (GREEN, "dotted", "localized above"),
    )

    def __init__(self, title: str):
        self.title = title
        self.lines = page_figure(title, "site", height=300)
        self.lines.name = f"{title}: lines"
        curves = MultiLine(xs="xs", ys="ys", line_color="color", line_width=1.2, line_alpha=0.8)
        self.field_source = _source(self.lines, "xs", "ys", "color", glyphs=[curves])
        self.now_source = _source(
            self.lines, "x", "y", name=f"{title}: field", glyphs=[_line(BLUE, 3)]
        )
        dashed = _line(ORANGE, 2, "dashed")
        self.theory_source = _source(self.lines, "x", "y", glyphs=[dashed])
        self.time = _caption(self.lines)
        self.picture = Picture(f"{title}: all fields", height=300)
        self.theory_picture = Picture("theory: first fields", height=300)
        self.theory_picture.plot.visible = False
        self.series = {
            "ipr": TimeSeries("ipr", title, "IPR: inverse participation ratio"),
            "loss": TimeSeries("loss", title, "held-out loss"),
            "gates": TimeSeries("gates", title, "gates that are as at the end"),
        }

    @property
    def plots(self) -> list[Any]:
        """The figures, in order."""
        series = [series.plot for series in self.series.values()]
        return [self.lines, self.picture.plot, self.theory_picture.plot, *series]

    def show(self, run: LiveRun, record: int, chosen: int) -> None:
        """Draw a run at a record; `chosen` counts fields member by member, neuron by neuron."""
        weights, theory = run.series.get("weights"), run.theory
        time, end = float(run.times[record]), run.end_time
        if weights is not None:
            num_members, _, num_neurons, *shape = weights.shape
            ring = len(shape) == 1
            chosen = min(chosen, num_members * num_neurons - 1)
            if ring:
                self._show_curves(run, record, *divmod(chosen, num_neurons))
            self.lines.visible = ring
            fields = weights[:, record].reshape(-1, *shape)[:MAX_TILES]
            self.picture.show(tiled(_normalized(fields)))
            when = "" if ring else f", flow time {time:.4g}"  # that of a ring stands beside it
            self.picture.plot.title.text = f"{self.title}: {len(fields)} fields{when}"
            flow = None if theory is None or ring else _weights_at(theory, time)
            self.theory_picture.plot.visible = flow is not None
            if flow is not None:
                self.theory_picture.show(tiled(_normalized(flow.reshape(-1, *shape))))
        times, loss = run.times, run.series.get("loss")
        self.series["ipr"].show(times, run.ipr, time, end, theory, run.threshold)
        self.series["loss"].show(times, loss, time, end, theory)
        self.series["gates"].show(run.gate_times, run.gates, time, end, theory)

    def _show_curves(self, run: LiveRun, record: int, member: int, neuron: int) -> None:
        """One field over time, and that of theory at the time of the record."""
        fields = run.series["weights"][member, : record + 1, neuron]
        chosen = np.unique(np.linspace(0, record, MAX_CURVES).astype(int))
        shades = [Viridis256[255 - int(245 * (i + 1) / max(len(run.times), 1))] for i in chosen]
        site, time = np.arange(fields.shape[1]), float(run.times[record])
        _set(self.field_source, [site] * len(chosen), [fields[i] for i in chosen], shades)
        _set(self.now_source, site, fields[record])
        flow = None if run.theory is None else _weights_at(run.theory, time)
        theory = [] if flow is None or member >= len(flow) else [flow[member, neuron]]
        _set(self.theory_source, *([site] * len(theory)), *theory)
        seen = np.concatenate([np.ravel(fields), *theory])
        low, high = (seen.min(), seen.max()) if np.isfinite(seen).all() else (-1.0, 1.0)
        margin = 0.08 * (high - low or 1.0)
        _set_range(self.lines.x_range, 0, len(site) - 1)
        _set_round_range(
            self.lines.y_range, low - margin, high + 2 * margin
        )  # room for the caption
        single = run.experiment.network.hidden == 1
        which = f"member {member + 1}" if single else f"neuron {neuron + 1}"
        self.lines.title.text = f"{self.title}: {which}"
        self.time.text = f"flow time {time:.4g}"

    def clear(self) -> None:
        """Show nothing."""
        for source in (self.field_source, self.now_source, self.theory_source):
            _set(source)
        self.picture.show(NO_PICTURE)
        self.theory_picture.plot.visible = False
        for series in self.series.values():
            series.clear()


def _weights_at(theory: TheoryCurves, time: float) -> np.ndarray | None:
    """Weights of a theory at the time nearest to this one, (member, neuron, *shape)."""
    if theory.weights is None or theory.times is None:
        return None
    return theory.weights[:, int(np.argmin(np.abs(theory.times - time)))]


def _curves(values: np.ndarray) -> np.ndarray:
    """Values (member, time, …) as curves over time, (curve, time)."""
    return np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])


class TimeSeries:
    """A number of every member over flow time, the mean, theory, and the time that is shown."""

    def __init__(self, name: str, owner: str, title: str):
        self.name = name
        self.plot = page_figure(title, "flow time", height=200)
        thin = MultiLine(xs="xs", ys="ys", line_color=BLUE, line_alpha=0.3, line_width=1)
        self.each = _source(self.plot, "xs", "ys", glyphs=[thin])
        self.mean = _source(self.plot, "x", "y", name=f"{owner}: {name}", glyphs=[_line(BLUE, 2.5)])
        self.theory = _source(self.plot, "x", "y", glyphs=[_line(ORANGE, 2, "dashed")])
        self.now = Span(dimension="height", line_color=GRAY, line_width=1, visible=False)
        self.threshold = Span(
            dimension="width", line_color=GREEN, line_dash="dotted", visible=False
        )
        self.plot.add_layout(self.now)
        self.plot.add_layout(self.threshold)

    def show(
        self,
        times: Any,
        values: np.ndarray | None,
        now: float,
        end: float,
        theory: TheoryCurves | None,
        threshold: float | None = None,
    ) -> None:
        """Draw values (member, time, …) over flow times from 0 to `end`."""
        self.now.update(location=now, visible=True)
        _set_range(self.plot.x_range, 0, end)
        if threshold is not None:
            self.threshold.update(location=threshold, visible=True)
        lines: tuple[Any, ...] = ()
        mean, predicted, drawn = lines, lines, [np.zeros(0)]
        if values is not None and times is not None:
            curves = _curves(values)
            shown = list(curves[:MAX_LINES])
            with np.errstate(invalid="ignore"):  # of members that diverged
                mean = (times, curves.mean(axis=0))
            lines = ([times] * len(shown), shown)
            drawn += [*shown, mean[1]]
        flow = None if theory is None else getattr(theory, self.name)
        if theory is not None and flow is not None and theory.times is not None:
            curve = _curves(flow).mean(axis=0)
            predicted = (theory.times[: len(curve)], curve)
            drawn.append(curve)
        _set(self.each, *lines)
        _set(self.mean, *mean)
        _set(self.theory, *predicted)
        seen = np.concatenate(drawn)
        if not len(seen):
            return
        seen = seen[np.isfinite(seen)]
        low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
        bottom = 0.0 if self.name == "ipr" else low - 0.05 * (high - low or 1.0)
        top = max(high + 0.1 * (high - bottom or 1.0), 2 * (threshold or 0.0))
        _set_round_range(self.plot.y_range, bottom, top)

    def clear(self) -> None:
        """Show nothing."""
        for source in (self.each, self.mean, self.theory):
            _set(source)
        self.now.visible = self.threshold.visible = False
