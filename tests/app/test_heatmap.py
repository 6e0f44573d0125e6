"""The picture of a diagram, and its table: cells at their places, with their numbers, links and
edges.
"""

import html
import math
import re

import numpy as np
import pytest
from bokeh.palettes import Viridis256

from localfields.app.diagram import Cell, Diagram, cell_limits
from localfields.app.heatmap import HeatMap, cell_link, cell_table, ipr_text, theory_text
from localfields.app.limits import Limits
from localfields.app.state import from_query
from localfields.plots._style import GRAY, ORANGE

DIAGRAM = Diagram.of({"stimulus": "nlgp", "x": "0.1;1;10", "y": "1;4"})


def canned_cells(diagram=DIAGRAM):
    """A cell of every state; its IPR tells its place: 0.1 × column + 0.05 × row."""
    cells = [
        Cell(column, row, diagram.cell(column, row), experiment="{}")
        for row in range(len(diagram.y.values))
        for column in range(len(diagram.x.values))
    ]
    for cell, state in zip(
        cells, ("known", "known", "empty", "running", "waiting", "failed"), strict=True
    ):
        cell.state = state
        if state in ("known", "running"):
            cell.ipr = 0.1 * cell.column + 0.05 * cell.row
        cell.kurtosis, cell.critical = -1.5 + cell.column, -0.5
    cells[5].note = "It is <b>gone</b>."
    cells[5].experiment = ""
    return cells


def test_axes_are_named_and_counted_in_cells():
    heat = HeatMap(dark=False)
    heat.show_axes(DIAGRAM)
    plot = heat.plot
    assert plot.xaxis[0].axis_label == "gain g" and plot.yaxis[0].axis_label == "xi ξ of label 1"
    assert plot.xaxis[0].major_label_overrides == {0: "0.1", 1: "1", 2: "10"}
    assert plot.yaxis[0].major_label_overrides == {0: "1", 1: "4"}
    assert (plot.x_range.start, plot.x_range.end) == (-0.5, 2.5)
    assert (plot.y_range.start, plot.y_range.end) == (-0.5, 1.5)
    assert [name for name, _ in heat.hover.tooltips[:2]] == ["gain g", "xi ξ of label 1"]
    heat.show_axes(Diagram.of({"stimulus": "ising", "x": "0.1,1,3", "y": "0.3,0.9,2"}))
    labels = [axis[0].axis_label for axis in (plot.xaxis, plot.yaxis)]
    assert labels == ["coupling J of label 0", "coupling J of label 1"]


def test_cells_lie_at_their_column_and_row():
    heat, cells = HeatMap(dark=False), canned_cells()
    heat.show_axes(DIAGRAM)
    heat.show(DIAGRAM, cells)
    data = heat.source.data
    assert list(zip(data["x"], data["y"], strict=True)) == [
        (column, row) for row in range(2) for column in range(3)
    ]
    assert data["across"] == ["0.1", "1", "10"] * 2 and data["up"] == ["1"] * 3 + ["4"] * 3
    np.testing.assert_allclose(data["ipr"], [0, 0.1, math.nan, 0.05, math.nan, math.nan])
    assert data["shown"] == ["0.00", "0.10", "not computed yet", "0.05", "waiting", "failed"]
    texts = [
        "localized: kurtosis -1.50, critical -0.50",
        "not localized: kurtosis -0.50, critical -0.50",
    ]
    assert data["theory"][:2] == texts and data["note"] == [""] * 5 + ["It is <b>gone</b>."]
    tips = dict(heat.hover.tooltips[2:])
    assert tips == {"IPR": "@shown", "theory": "@theory", "": "@note"}
    assert data["edge"][3:] == [ORANGE, GRAY, "#CC79A7"] and data["width"] == [0, 0, 0, 3, 3, 3]
    assert data["edge"][:3] == ["rgba(0,0,0,0)"] * 3
    rect = heat.plot.renderers[0].glyph
    assert (rect.x, rect.y, rect.fill_color.field) == ("x", "y", "ipr")
    colors = rect.fill_color.transform
    assert (colors.low, colors.high, list(colors.palette)) == (0, 1, list(Viridis256))


def test_theory_says_localized_below_the_critical_kurtosis():
    cells = canned_cells()
    assert [cell.predicted for cell in cells[:3]] == ["localized", "not localized", "not localized"]
    assert theory_text(cells[0]) == "localized: kurtosis -1.50, critical -0.50"
    cells[0].critical = math.nan
    assert theory_text(cells[0]) == "no border here" and cells[0].predicted == ""
    cells[0].threshold = 0.095
    assert [cell.outcome for cell in cells[:3]] == ["not localized", "not localized", ""]
    cells[0].ipr = 0.1
    assert cells[0].outcome == "localized"


def test_the_border_is_drawn_between_cells_of_either_side():
    heat, cells = HeatMap(dark=False), canned_cells()
    heat.show_border(
        DIAGRAM, cells
    )  # kurtosis −1.5, −0.5, 0.5 across, critical −0.5: on the middle column
    (xs,), (ys,) = heat.lines.data["xs"], heat.lines.data["ys"]
    np.testing.assert_allclose(xs, 1, atol=1e-9)
    assert (min(ys), max(ys)) == (0, 1)
    for cell in cells:  # along the other axis, a quarter of the way up
        cell.kurtosis, cell.critical = float(cell.row), 0.25
    heat.show_border(DIAGRAM, cells)
    (xs,), (ys,) = heat.lines.data["xs"], heat.lines.data["ys"]
    assert (min(xs), max(xs)) == (0, 2)
    np.testing.assert_allclose(ys, 0.25, atol=0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_links_open_the_run_of_a_cell_on_the_same_kind_of_page(dark):
    cell = canned_cells()[4]
    link = cell_link(cell, dark)
    assert link.endswith("&theme=dark") == dark
    texts, _ = from_query(
        link.removeprefix("/?").removesuffix("&theme=dark"), cell_limits(Limits())
    )
    assert texts == cell.texts
    assert cell_link(canned_cells()[5], dark) == ""  # what cannot be run


def test_the_table_says_the_same_with_the_highest_value_on_top():
    cells = canned_cells()
    text = cell_table(DIAGRAM, cells, dark=False)
    rows = re.findall("<tr>(.*?)</tr>", text)
    assert re.findall("<th scope='col'>(.*?)</th>", rows[0]) == ["0.1", "1", "10"]
    shown = {}
    for row in rows[1:]:
        (name,) = re.findall("<th scope='row'>(.*?)</th>", row)
        shown[name] = [
            html.unescape(re.sub("<.*?>", "", cell))
            for cell in re.findall("<td.*?>(.*?)</td>", row)
        ]
    assert list(shown) == ["4", "1"]  # as in the picture, upward
    assert shown == {"1": ["0.00 *", "0.10", "open"], "4": ["0.05 *", "waiting", "failed"]}
    assert "aria-label='gain 1, xi 4: waiting'" in text
    assert "<b>" not in text and "It is &lt;b&gt;gone&lt;/b&gt;." in text


def test_numbers_that_are_none_are_said():
    cells = canned_cells()
    cells[0].ipr = math.nan
    assert ipr_text(cells[0]) == "no number"
