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

from ..errors import InputError
from ..experiments.texts import command_of
from .controls import safe_names
from .diagram import (
    CELL_TEXTS,
    RULES,
    Cell,
    Diagram,
    axes_texts,
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
from .heatmap import HeatMap, cell_table
from .messages import Done, Failed, Lost, Queued, Records, Request, Started
from .page import TABLE_STYLE, WIDE, Page, template, text_pane
from .state import read, texts_in, to_query

FIRST_STIMULUS = "nlgp"
MAX_JOBS = 2  # cells of a page that are computed or wait: visitors' own runs come first
CELL_INTERVAL, TABLE_INTERVAL = 0.2, 5.0  # seconds between drawings, and between new tables
STORE_POLL_MS = 3000  # milliseconds between looks into the store
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
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
        # Where both axes are one number, classes are equal on the diagonal, and not a task.
        read(diagram.cell(0, -1 if diagram.one_number else 0), self.limits)
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
            # Not by this page, which would have stopped listening.
            if message.stopped == "cancelled":
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
