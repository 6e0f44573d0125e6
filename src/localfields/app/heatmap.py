"""The picture of a diagram: a colored cell a run, and the line at which theory puts the border."""

from __future__ import annotations

import functools
import html
import math
from typing import Any

from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    HoverTool,
    LinearColorMapper,
    Range1d,
    TapTool,
)
from bokeh.palettes import Viridis256
from bokeh.plotting import figure

from ..plots.stimulus import GRAY, ORANGE
from .diagram import Cell, Diagram, border_lines, title_of
from .state import to_query

EDGES = {"waiting": GRAY, "running": ORANGE, "failed": "#CC79A7"}
GO = """
const place = source.selected.indices[0];
if (place !== undefined && source.data.link[place]) { window.location.href = source.data.link[place]; }
"""
COLUMNS = ("x", "y", "across", "up", "ipr", "shown", "theory", "note", "link", "edge", "width")


def link_of(cell: Cell, dark: bool) -> str:
    """The address at which the run of a cell is opened; empty for a cell that cannot be run."""
    return f"/?{to_query(cell.texts)}{'&theme=dark' if dark else ''}" if cell.experiment else ""


class HeatMap:
    """A figure that is made once and given new cells."""

    def __init__(self, dark: bool):
        self.dark = dark
        self.source: Any = ColumnDataSource({name: [] for name in COLUMNS})
        self.lines: Any = ColumnDataSource({"xs": [], "ys": []})
        self.plot: Any = figure(
            height=420,
            sizing_mode="stretch_width",
            toolbar_location=None,
            tools="",
            x_range=Range1d(start=-0.5, end=0.5),
            y_range=Range1d(start=-0.5, end=0.5),
            title="final IPR; click a cell to open its run",
        )
        colors = LinearColorMapper(
            palette=Viridis256, low=0, high=1, nan_color="rgba(128,128,128,0.2)"
        )
        cells = self.plot.rect(
            "x",
            "y",
            0.96,
            0.94,
            source=self.source,
            fill_color={"field": "ipr", "transform": colors},
            line_color="edge",
            line_width="width",
            nonselection_fill_alpha=1,
            nonselection_line_alpha=1,
        )
        # Dark below light: to be seen on every color and on either page.
        self.plot.multi_line("xs", "ys", source=self.lines, color="black", line_width=4)
        self.plot.multi_line(
            "xs", "ys", source=self.lines, color="white", line_width=2, line_dash=[8, 5]
        )
        self.plot.add_layout(ColorBar(color_mapper=colors, width=12, padding=4), "right")
        self.hover = HoverTool(renderers=[cells])
        self.plot.add_tools(self.hover, TapTool(renderers=[cells]))
        self.source.selected.js_on_change(
            "indices", CustomJS(args={"source": self.source}, code=GO)
        )
        self.plot.grid.visible = False
        self.plot.outline_line_alpha = 0.2
        self.plot.title.text_font_size = "13px"
        self.plot.axis.axis_label_text_font_style = "normal"

    def frame(self, diagram: Diagram) -> None:
        """Take the axes of a diagram, without cells yet."""
        names = [title_of(axis.name, diagram.stimulus) for axis in (diagram.x, diagram.y)]
        plot = self.plot
        if diagram.one_number:
            names = [f"{names[0]} of label 0", f"{names[1]} of label 1"]
        else:
            names[1] += " of label 1"
        for axis, span, values, name in (
            (plot.xaxis[0], plot.x_range, diagram.x.values, names[0]),
            (plot.yaxis[0], plot.y_range, diagram.y.values, names[1]),
        ):
            span.update(start=-0.5, end=len(values) - 0.5)
            axis.update(
                ticker=FixedTicker(ticks=list(range(len(values)))),
                major_label_overrides=dict(enumerate(values)),
                axis_label=name,
            )
        self.hover.tooltips = [
            (names[0], "@across"),
            (names[1], "@up"),
            ("IPR", "@shown"),
            ("theory", "@theory"),
            ("", "@note"),
        ]
        self.source.data = {name: [] for name in COLUMNS}
        self.lines.data = {"xs": [], "ys": []}

    def show(self, diagram: Diagram, cells: list[Cell]) -> None:
        """Color the cells."""
        self.source.data = {
            "x": [one.column for one in cells],
            "y": [one.row for one in cells],
            "across": [diagram.x.values[one.column] for one in cells],
            "up": [diagram.y.values[one.row] for one in cells],
            "ipr": [one.ipr for one in cells],
            "shown": [written(one) for one in cells],
            "theory": [theory_words(one) for one in cells],
            "note": [one.note for one in cells],
            "link": [link_of(one, self.dark) for one in cells],
            "edge": [EDGES.get(one.state, "rgba(0,0,0,0)") for one in cells],
            "width": [3 if one.state in EDGES else 0 for one in cells],
        }

    def show_border(self, diagram: Diagram, cells: list[Cell]) -> None:
        """Draw the line at which the law's kurtosis is the critical one."""
        lines = border_lines(cells, len(diagram.x.values))
        self.lines.data = {"xs": [one[:, 0] for one in lines], "ys": [one[:, 1] for one in lines]}


def written(cell: Cell) -> str:
    """The IPR of a cell, or what it is instead."""
    if not math.isnan(cell.ipr):
        return f"{cell.ipr:.2f}"
    return {"empty": "not computed yet", "known": "no number"}.get(cell.state, cell.state)


def theory_words(cell: Cell) -> str:
    """What theory says of a cell, for the eye."""
    if not cell.predicted:
        return "no border here"
    return f"{cell.predicted}: kurtosis {cell.kurtosis:.2f}, critical {cell.critical:.2f}"


def table(diagram: Diagram, cells: list[Cell], dark: bool) -> str:
    """The same as a table of links, for keyboards and for those who do not see colors."""
    across, up = (html.escape(axis.name.replace("_", " ")) for axis in (diagram.x, diagram.y))
    head = "".join(f"<th scope='col'>{html.escape(value)}</th>" for value in diagram.x.values)
    by_place = {(one.column, one.row): one for one in cells}
    rows = []
    for row in reversed(range(len(diagram.y.values))):
        line = [
            _cell(
                by_place[column, row],
                f"{diagram.x.name} {x}, {diagram.y.name} {diagram.y.values[row]}",
                dark,
            )
            for column, x in enumerate(diagram.x.values)
        ]
        rows.append(
            f"<tr><th scope='row'>{html.escape(diagram.y.values[row])}</th>{''.join(line)}</tr>"
        )
    caption = f"IPR, {up} down the side and {across} along the top. A star: theory says localized. Links open the run."
    return (
        f"<div class='scroll'><table class='cells'><caption>{caption}</caption>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: Cell, where: str, dark: bool) -> str:
    words = "open" if cell.state == "empty" else written(cell)
    star = " *" if cell.predicted == "localized" else ""
    link, safe = link_of(cell, dark), functools.partial(html.escape, quote=True)
    hint = safe("; ".join(one for one in (theory_words(cell), cell.note) if one))
    label = safe(f"{where}: {written(cell)}")
    inner = (
        f"<a href='{safe(link)}' aria-label='{label}'>{safe(words)}</a>" if link else safe(words)
    )
    return f"<td title='{hint}'>{inner}{star}</td>"
