"""The cells of a phase diagram as a figure and as a table."""

from __future__ import annotations

import collections
import functools
import html
import math
from typing import Any

from bokeh import models
from bokeh.palettes import Viridis256

from ..plots._style import GRAY, ORANGE
from .diagram import Cell, Diagram, border_lines, title_of
from .state import page_link, to_query
from .views import page_figure

EDGE_COLORS = {"waiting": GRAY, "running": ORANGE, "failed": "#CC79A7"}
OPEN_CELL = """
const place = source.selected.indices[0];
if (place !== undefined && source.data.link[place]) {
  window.location.href = source.data.link[place];
}
"""


class HeatMap:
    """The figure of a diagram: one colored cell per run, and the border that theory predicts."""

    def __init__(self, dark: bool):
        self.dark = dark
        self.source: Any = models.ColumnDataSource()
        self.lines: Any = models.ColumnDataSource({"xs": [], "ys": []})
        plot = page_figure("final IPR; click a cell to open its run", "", height=420)
        self.plot = plot
        colors = models.LinearColorMapper(
            palette=Viridis256, low=0, high=1, nan_color="rgba(128,128,128,0.2)"
        )
        self.show(None, [])
        cells = plot.rect(
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
        # White dashes on black: visible on every color, in both themes.
        plot.multi_line("xs", "ys", source=self.lines, color="black", line_width=4)
        plot.multi_line(
            "xs", "ys", source=self.lines, color="white", line_width=2, line_dash=[8, 5]
        )
        plot.add_layout(models.ColorBar(color_mapper=colors, width=12, padding=4), "right")
        self.hover = models.HoverTool(renderers=[cells])
        plot.add_tools(self.hover, models.TapTool(renderers=[cells]))
        open_cell = models.CustomJS(args={"source": self.source}, code=OPEN_CELL)
        self.source.selected.js_on_change("indices", open_cell)

    def show_axes(self, diagram: Diagram) -> None:
        """Take the axes of a diagram, without cells yet."""
        plot = self.plot
        x_name, y_name = (title_of(axis.name, diagram.stimulus) for axis in (diagram.x, diagram.y))
        names = (f"{x_name} of label 0" if diagram.one_number else x_name, f"{y_name} of label 1")
        for axis, span, values, name in (
            (plot.xaxis[0], plot.x_range, diagram.x.values, names[0]),
            (plot.yaxis[0], plot.y_range, diagram.y.values, names[1]),
        ):
            span.update(start=-0.5, end=len(values) - 0.5)
            axis.update(
                ticker=models.FixedTicker(ticks=list(range(len(values)))),
                major_label_overrides=dict(enumerate(values)),
                axis_label=name,
            )
        columns = ("@across", "@up", "@shown", "@theory", "@note")
        self.hover.tooltips = list(zip((*names, "IPR", "theory", ""), columns, strict=True))
        self.show(diagram, [])
        self.lines.data = {"xs": [], "ys": []}

    def show(self, diagram: Any, cells: list[Cell]) -> None:
        """Color the cells."""
        self.source.data = {
            "x": [cell.column for cell in cells],
            "y": [cell.row for cell in cells],
            "across": [diagram.x.values[cell.column] for cell in cells],
            "up": [diagram.y.values[cell.row] for cell in cells],
            "ipr": [cell.ipr for cell in cells],
            "shown": [ipr_text(cell) for cell in cells],
            "theory": [theory_text(cell) for cell in cells],
            "note": [cell.note for cell in cells],
            "link": [cell_link(cell, self.dark) for cell in cells],
            "edge": [EDGE_COLORS.get(cell.state, "rgba(0,0,0,0)") for cell in cells],
            "width": [3 if cell.state in EDGE_COLORS else 0 for cell in cells],
        }

    def show_border(self, diagram: Diagram, cells: list[Cell]) -> None:
        """Draw the line on which the kurtosis is the critical one."""
        lines = border_lines(cells, len(diagram.x.values))
        self.lines.data = {
            "xs": [line[:, 0] for line in lines],
            "ys": [line[:, 1] for line in lines],
        }


def cell_link(cell: Cell, dark: bool) -> str:
    """The link to the run of a cell; empty if it cannot be run."""
    return page_link("/", to_query(cell.texts), dark) if cell.experiment else ""


def ipr_text(cell: Cell) -> str:
    """The IPR of a cell, or its state if there is none."""
    if not math.isnan(cell.ipr):
        return f"{cell.ipr:.2f}"
    return {"empty": "not computed yet", "known": "no number"}.get(cell.state, cell.state)


def theory_text(cell: Cell) -> str:
    """What theory says of a cell."""
    if not cell.predicted:
        return "no border here"
    return f"{cell.predicted}: kurtosis {cell.kurtosis:.2f}, critical {cell.critical:.2f}"


def cell_table(diagram: Diagram, cells: list[Cell], dark: bool) -> str:
    """The diagram as a table of links, for keyboards and for those who cannot see colors."""
    safe = functools.partial(html.escape, quote=True)
    x, y = diagram.x, diagram.y
    rows: dict[int, str] = collections.defaultdict(str)
    for cell in sorted(cells, key=lambda cell: cell.column):
        where = f"{x.name} {x.values[cell.column]}, {y.name} {y.values[cell.row]}"
        content = safe("open" if cell.state == "empty" else ipr_text(cell))
        if link := cell_link(cell, dark):
            label = safe(f"{where}: {ipr_text(cell)}")
            content = f"<a href='{safe(link)}' aria-label='{label}'>{content}</a>"
        star = " *" if cell.predicted == "localized" else ""
        hint = safe("; ".join(filter(None, (theory_text(cell), cell.note))))
        rows[cell.row] += f"<td title='{hint}'>{content}{star}</td>"
    across, up = (safe(axis.name.replace("_", " ")) for axis in (x, y))
    caption = (
        f"IPR, {up} down the side and {across} along the top. A star: theory says localized. "
        "Links open the run."
    )
    head = "".join(f"<th scope='col'>{safe(value)}</th>" for value in x.values)
    body = "".join(
        f"<tr><th scope='row'>{safe(y.values[row])}</th>{rows[row]}</tr>"
        for row in sorted(rows, reverse=True)
    )
    return (
        f"<div class='scroll'><table class='cells'><caption>{caption}</caption>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
