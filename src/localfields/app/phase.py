"""The second page: where fields localize, as a diagram of many quick runs over two numbers."""

from __future__ import annotations

import collections
import functools
import html
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
from bokeh import models
from bokeh.palettes import Viridis256

from ..errors import InputError
from ..experiments.texts import command_of
from ..plots._style import GRAY, ORANGE
from .controls import safe_names
from .diagram import (
    CELL_TEXTS,
    RULES,
    Cell,
    Diagram,
    axes_texts,
    border_lines,
    cell_limits,
    diverged_note,
    kurtosis_and_critical,
    limit_sentences,
    load_cells,
    numbers_of,
    stored_results,
    title_of,
    usual_texts,
)
from .messages import Done, Failed, Lost, Queued, Records, Request, Started
from .page import TABLE_STYLE, WIDE, Page, template, text_pane
from .state import page_link, read, texts_in, to_query
from .views import page_figure

FIRST_STIMULUS = "nlgp"
MAX_JOBS = 2  # cells of a page that are computed or wait: visitors' own runs come first
CELL_INTERVAL, TABLE_INTERVAL = 0.2, 5.0  # seconds between drawings, and between new tables
STORE_POLL_MS = 3000  # milliseconds between looks into the store
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
EDGE_COLORS = {"waiting": GRAY, "running": ORANGE, "failed": "#CC79A7"}
OPEN_CELL = """
const place = source.selected.indices[0];
if (place !== undefined && source.data.link[place]) {
  window.location.href = source.data.link[place];
}
"""
PHASE_ABOUT = (
    "<p>Every cell is a run of its own; its color is the IPR at the end, 1 for a field on one site "
    "and about 0 for a wave. The dashed line is theory's: where the distribution of the labelled "
    "class has an excess kurtosis below the critical one, a flat field is unstable; close to the "
    "line what it becomes is still broad.</p>"
)
SELECT, TEXT = pn.widgets.Select, pn.widgets.TextInput
ACROSS_HELP = "a number of both classes; if it is that of `up`, its value for label 0"
RANGE_HELP = "from,to,cells; or values joined by semicolons"
CONTROLS: Any = (  # name, kind, label, help
    ("stimulus", SELECT, "stimulus", "the distribution of the data"),
    ("across", SELECT, "across", ACROSS_HELP),
    ("x", TEXT, "across: from,to,cells", RANGE_HELP),
    ("up", SELECT, "up", "the number in which the classes differ"),
    ("y", TEXT, "up: from,to,cells", RANGE_HELP),
    ("rule", SELECT, "label 0 has", "the value of `up` for the class with label 0"),
    ("other", TEXT, "that is", "the share, or the value"),
    ("steps", TEXT, "steps", "gradient steps of a cell"),
    ("members", TEXT, "members", "fields of a cell, of which the mean is shown"),
)


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


class Phase(Page):
    """One visitor's diagram."""

    def __init__(self, service: Any, query: str, document: Any):
        super().__init__(service, document)
        self.limits = cell_limits(service.limits)
        self.quiet = False  # whether the page itself sets its controls
        self.polling = False
        self.table_time = 0.0
        self.sweeping = False
        self.watching = True  # whether to look for results of others in the store
        self.cells: list[Cell] = []
        self.jobs: dict[int, tuple[object, Any]] = {}  # a token and the job, by cell
        self.started: set[int] = set()
        self.heat = HeatMap(self.dark)
        mistake = ""
        try:
            self.diagram = self._read(texts_in(query, self.limits))
        except InputError as error:
            self.diagram = Diagram.of(usual_texts(FIRST_STIMULUS))
            mistake = f"The link could not be read. {error} Shown instead: {FIRST_STIMULUS}."
        self._make_widgets()
        self._show_diagram()
        self.show_mistake(mistake)

    def _read(self, texts: dict[str, str]) -> Diagram:
        diagram = Diagram.of(texts)
        read(diagram.cell(0, 0), self.limits)
        return diagram

    def _make_widgets(self) -> None:
        self.controls: dict[str, Any] = {
            name: kind(label=label, description=help, **WIDE)
            for name, kind, label, help in CONTROLS
        }
        stimuli = [name for name in safe_names("stimulus") if numbers_of(name)]
        self.controls["stimulus"].options = stimuli
        self.controls["rule"].options = {text: name for name, text in RULES.items()}
        self._fill_controls()
        changed = {"stimulus": self._stimulus_changed}
        changed |= dict.fromkeys(("across", "up"), self._axes_changed)
        for name, control in self.controls.items():
            call = changed.get(name, self._range_changed)
            control.param.watch(lambda event, call=call: self.soon(call), "value")
        self.start, self.pause, self.reset = self.buttons = [
            self.button("Start", "primary", self.start_sweep, "compute the cells not known yet"),
            self.button("Pause", "default", self.pause_sweep, "stop; Start continues"),
            self.button(
                "Reset", "default", self.reset_cells, "clear the picture; results are kept"
            ),
        ]
        self.bar = pn.indicators.Progress(value=0, max=100, height=10, **WIDE)
        self.status, self.description = text_pane(), text_pane()
        self.table = text_pane(style=TABLE_STYLE)

    def soon(self, call: Callable[[], None]) -> None:
        """Not while the page itself sets its controls."""
        if not self.quiet:
            super().soon(call)

    def _fill_controls(self) -> None:
        """Set every control to the diagram."""
        diagram, controls = self.diagram, self.controls
        self.quiet = True
        numbers = {title_of(name, diagram.stimulus): name for name in numbers_of(diagram.stimulus)}
        for name in ("across", "up"):
            controls[name].options = numbers
        texts = CELL_TEXTS | diagram.texts
        for name, control in controls.items():
            control.value = texts[name]
        controls["rule"].disabled = controls["other"].disabled = diagram.one_number
        self.quiet = False

    # What a visitor does.

    def _values(self, *names: str) -> dict[str, str]:
        return {name: str(self.controls[name].value).strip() for name in names}

    def _stimulus_changed(self) -> None:
        stimulus = self.controls["stimulus"].value
        self._change(usual_texts(stimulus) | self._values("steps", "members"))

    def _axes_changed(self) -> None:
        axes = axes_texts(**self._values("stimulus", "across", "up"))
        more = dict(self.diagram.more) | self._values("steps", "members")
        for name in (axes["across"], axes["up"]):
            more.pop(name, None)
        self._change(axes | more)

    def _range_changed(self) -> None:
        edited = self._values("x", "y", "rule", "other", "steps", "members")
        self._change(self.diagram.texts | edited)

    def _change(self, texts: dict[str, str]) -> None:
        """Show another diagram, if the texts describe one."""
        try:
            self.diagram = self._read(texts)
        except InputError as error:
            self.show_mistake(str(error))
            return
        self._fill_controls()
        self._show_diagram()
        self.show_mistake("")

    def start_sweep(self) -> None:
        """Compute the cells that are not known yet; those that failed are tried again."""
        for cell in self.cells:
            if cell.state == "failed" and cell.experiment:
                cell.state, cell.note = "empty", ""
        self.sweeping = self.watching = True
        self.show_mistake("")
        self._submit_cells()
        self.draw()

    def pause_sweep(self) -> None:
        """Compute no more cells."""
        self._stop()
        self.draw()

    def reset_cells(self) -> None:
        """Clear the picture; what is stored stays stored."""
        self._stop()
        self.watching = False
        for cell in self.cells:
            if cell.experiment:
                cell.state, cell.ipr, cell.note = "empty", math.nan, ""
        self.draw()

    def _stop(self) -> None:
        """Cancel the cells that are being computed."""
        self.sweeping = False
        jobs, self.jobs = self.jobs, {}
        for place, (_, job) in jobs.items():
            job.cancel()
            self.cells[place].state, self.cells[place].ipr = "empty", math.nan

    def opened(self) -> None:
        """Look into the store from now on."""
        super().opened()
        self.document.add_periodic_callback(self.poll, STORE_POLL_MS)

    def leave(self) -> None:
        """Cancel the cells that are being computed."""
        super().leave()
        for _, job in self.jobs.values():
            job.cancel()
        self.jobs = {}

    # The diagram, the store and theory: read in threads, dropped if the diagram is another by then.

    def _show_diagram(self) -> None:
        """Show the axes at once; cells and theory follow."""
        self._stop()
        self.watching = True
        self.cells = []
        self.heat.show_axes(self.diagram)
        self.table.object = ""
        self.status.object = "Looking into the store …"
        command = html.escape(command_of(self.diagram.cell(0, 0)))
        description = html.escape(self.diagram.describe())
        self.description.object = f"<p>{description} The first cell is <code>{command}</code>.</p>"
        self._update_buttons()
        self.set_address(to_query(self.diagram.texts))
        diagram, limits, store = self.diagram, self.limits, self.service.store
        work = functools.partial(load_cells, diagram, limits, store)
        self.later(work, functools.partial(self._cells_loaded, diagram))

    def _cells_loaded(self, diagram: Diagram, cells: list[Cell]) -> None:
        if diagram is not self.diagram:
            return
        self.cells = cells
        self.draw()
        self.later(
            lambda: [kurtosis_and_critical(cell.experiment) for cell in cells],
            functools.partial(self._theory_loaded, cells),
        )

    def _theory_loaded(self, cells: list[Cell], values: list[tuple[float, float]]) -> None:
        if cells is not self.cells:
            return
        for cell, (kurtosis, critical) in zip(cells, values, strict=True):
            cell.kurtosis, cell.critical = kurtosis, critical
        self.heat.show_border(self.diagram, cells)
        self.draw()

    def poll(self) -> None:
        """Look for cells that others have stored in the meantime."""
        missing = [cell.digest for cell in self._unknown() if cell.digest]
        if self.service.store is None or not missing or self.polling or not self.watching:
            return
        self.polling = True
        work = functools.partial(stored_results, self.service.store, missing)
        self.later(work, functools.partial(self._polled, self.cells))

    def _polled(self, cells: list[Cell], results: dict[str, tuple[float, str]]) -> None:
        self.polling = False
        if cells is not self.cells or not self.watching:
            return
        for cell in self._unknown():
            if cell.digest in results:
                cell.state, (cell.ipr, cell.note) = "known", results[cell.digest]
                self.dirty = True
        if self.dirty:
            self.draw()

    def _unknown(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.state in ("empty", "failed")]

    # The sweep.

    def _submit_cells(self) -> None:
        """Ask for the next cells, spread over the diagram so that its shape shows early."""
        empty = [
            place
            for place, cell in enumerate(self.cells)
            if cell.state == "empty" and place not in self.jobs
        ]
        empty.sort(key=lambda place: place * GOLDEN_RATIO % 1)
        while self.sweeping and empty and len(self.jobs) < MAX_JOBS:
            place, token = empty.pop(0), object()
            self.started.discard(place)
            self.cells[place].state = "waiting"
            listener = functools.partial(self.post, (place, token))
            request = Request("run", self.cells[place].experiment)
            self.jobs[place] = (token, None)  # messages may come before `submit` returns
            self.jobs[place] = (token, self.service.pool.submit(request, listener, background=True))
        if not self.jobs:
            self.sweeping = False

    def receive(self, topic: tuple[int, object], message: Any) -> None:
        """Handle a message about a cell; one that is no longer waited for is dropped."""
        place, token = topic
        if place in self.jobs and self.jobs[place][0] is token:
            self._receive_cell(place, message)
            self.dirty = True
        self._submit_cells()

    def _receive_cell(self, place: int, message: Any) -> None:
        cell = self.cells[place]
        if isinstance(message, Queued):
            cell.state = "waiting"
        elif isinstance(message, Started):
            cell.state = "running"
            self.started.add(place)
        elif isinstance(message, Records) and "ipr" in message.series:
            last = np.asarray(message.series["ipr"])[:, -1]
            finite = last[np.isfinite(last)]
            cell.ipr = float(finite.mean()) if finite.size else math.nan
        elif isinstance(message, Done):
            del self.jobs[place]
            cell.state = "known"
            cell.note = diverged_note(sum(outcome != "ok" for outcome in message.outcomes))
            if (
                message.stopped == "cancelled"
            ):  # not by this page, which would have stopped listening
                cell.state, cell.note = "failed", message.note or "It was stopped."
        elif isinstance(message, (Failed, Lost)):
            del self.jobs[place]
            cell.ipr = math.nan
            if isinstance(message, Failed) and place not in self.started:
                # The queue is full: nothing is wrong with the cell.
                cell.state, cell.note = "empty", ""
                self._stop()
                self.show_mistake(message.message)
            else:
                cell.state, cell.note = "failed", message.message

    # What is shown.

    def draw_interval(self) -> float:
        """None once the last cell has arrived."""
        return CELL_INTERVAL if self.jobs else 0.0

    def draw(self) -> None:
        """Show the cells as far as they are known."""
        self.dirty, self.draw_time = False, time.monotonic()
        self.heat.show(self.diagram, self.cells)
        # A new table takes the focus from a link in it, so it does not come with every cell.
        if not self.sweeping or self.draw_time - self.table_time > TABLE_INTERVAL:
            self.table_time = self.draw_time
            self.table.object = (
                cell_table(self.diagram, self.cells, self.dark) if self.cells else ""
            )
        self.status.object = f"<span role='status'>{html.escape(self._state_text())}</span>"
        known = sum(cell.state == "known" for cell in self.cells)
        self.bar.value = round(100 * known / max(len(self.cells), 1))
        self._update_buttons()

    def _state_text(self) -> str:
        states = collections.Counter(cell.state for cell in self.cells)
        text = f"{states['known']} of {len(self.cells)} cells are known."
        if self.jobs:
            text += f" {states['running']} computed now, {states['waiting']} in the queue."
        if states["failed"]:
            first = next(cell.note for cell in self.cells if cell.state == "failed")
            text += f" {states['failed']} cannot be computed: {first}"
        judged = [cell for cell in self.cells if cell.predicted and cell.outcome]
        if judged:
            agree = sum(cell.predicted == cell.outcome for cell in judged)
            text += (
                f" Training and theory's border agree in {agree} of {len(judged)} cells "
                f"(localized: IPR above {judged[0].threshold:.2g})."
            )
        return text

    def _update_buttons(self) -> None:
        todo = any(cell.experiment for cell in self._unknown())
        self.start.disabled = self.sweeping or not todo
        self.pause.disabled = not self.sweeping
        self.reset.disabled = all(cell.state == "empty" for cell in self.cells)

    def layout(self) -> Any:
        """The whole page as a template."""
        limits = html.escape(limit_sentences(self.limits))
        main = (
            self.message,
            text_pane(PHASE_ABOUT),
            pn.FlexBox(*self.buttons, margin=(0, 4)),
            self.status,
            self.bar,
            pn.pane.Bokeh(self.heat.plot, sizing_mode="stretch_width", margin=2),
            self.description,
            self.table,
            text_pane(f"<p class='limits'>{limits}</p>"),
        )
        return template("/phase", list(self.controls.values()), main)
