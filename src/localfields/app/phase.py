"""The second page: where fields localize, as a diagram of many quick runs over two numbers of the data."""

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

from .._spec import registered
from ..errors import InputError
from ..experiments.texts import command_of
from .diagram import (
    CELL,
    RULES,
    Cell,
    Diagram,
    axes_texts,
    cell_limits,
    limit_words,
    numbers_of,
    predictions,
    stored,
    survey,
    title_of,
    usual_texts,
)
from .frame import frame, text_pane
from .heatmap import HeatMap, table
from .limits import is_plain
from .messages import Done, Failed, Lost, Queued, Records, Request, Started
from .page import Page
from .state import read, texts_in, to_query
from .threads import later

FIRST = "nlgp"
AT_ONCE = 2  # cells of a page that are computed or wait: visitors' own runs come first
DRAW, TABLE = 0.2, 5.0  # seconds between drawings, and between new tables while cells arrive
POLL = 3000  # milliseconds between looks into the store
GOLDEN = (math.sqrt(5) - 1) / 2
CELLS_STYLE = """
.scroll { overflow-x: auto; }
table.cells { border-collapse: collapse; font-size: 0.85em; font-variant-numeric: tabular-nums; }
table.cells caption { caption-side: top; text-align: left; opacity: 0.8; padding: 0.3em 0; }
table.cells th, table.cells td { padding: 0.15em 0.5em; text-align: right; white-space: nowrap; }
table.cells tr { border-bottom: 1px solid rgba(128, 128, 128, 0.3); }
table.cells a { color: inherit; }
"""
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (4, 8, 0, 8)}


class Phase(Page):
    """One visitor's diagram."""

    def __init__(self, service: Any, query: str, document: Any):
        super().__init__(service, document)
        self.limits = cell_limits(service.limits)
        self.quiet = self.polling = False
        self.tabled = 0.0
        self.number = 0  # of the diagram: what threads bring of an older one is dropped
        self.sweeping, self.watching = False, True
        self.cells: list[Cell] = []
        self.jobs: dict[int, tuple[object, Any]] = {}
        self.started: set[int] = set()
        self.heat = HeatMap(self.dark)
        self.diagram, said = self._read_address(query)
        self._make_widgets()
        self._begin()
        self.say(said)

    def _read_address(self, query: str) -> tuple[Diagram, str]:
        usual = Diagram.of(usual_texts(FIRST))
        try:
            diagram = Diagram.of(texts_in(query, self.limits))
            read(diagram.cell(0, 0), self.limits)
        except InputError as error:
            return usual, f"The link could not be read. {error} Shown instead: {FIRST}."
        return diagram, ""

    def _make_widgets(self) -> None:
        stimuli = [
            name
            for name, cls in registered("stimulus").items()
            if is_plain(cls) and numbers_of(name)
        ]
        self.stimulus = pn.widgets.Select(
            label="stimulus", options=stimuli, description="the law of the data", **WIDE
        )
        self.across = pn.widgets.Select(
            label="across",
            description="a number of both classes; if it is that of `up`, its value for label 0",
            **WIDE,
        )
        self.up = pn.widgets.Select(
            label="up", description="the number in which the classes differ", **WIDE
        )
        ranges = "from,to,cells; or values joined by semicolons"
        self.x = pn.widgets.TextInput(label="across: from,to,cells", description=ranges, **WIDE)
        self.y = pn.widgets.TextInput(label="up: from,to,cells", description=ranges, **WIDE)
        rules = {words: name for name, words in RULES.items()}
        self.rule = pn.widgets.Select(
            label="label 0 has",
            options=rules,
            description="the value of `up` for the class with label 0",
            **WIDE,
        )
        self.other = pn.widgets.TextInput(
            label="that is", description="the share, or the value", **WIDE
        )
        self.steps = pn.widgets.TextInput(
            label="steps", description="gradient steps of a cell", **WIDE
        )
        self.members = pn.widgets.TextInput(
            label="members", description="fields of a cell, of which the mean is shown", **WIDE
        )
        self._fill_widgets()
        self.stimulus.param.watch(lambda event: self.soon(self._other_stimulus), "value")
        for one in (self.across, self.up):
            one.param.watch(lambda event: self.soon(self._other_axes), "value")
        for one in (self.x, self.y, self.rule, self.other, self.steps, self.members):
            one.param.watch(lambda event: self.soon(self._changed), "value")
        self.start = self.button(
            "Start", "primary", self._start, "compute the cells that are not known yet"
        )
        self.pause = self.button(
            "Pause", "default", self._pause, "compute no more cells; Start goes on"
        )
        self.reset = self.button(
            "Reset", "default", self._reset, "clear the picture; what is stored stays stored"
        )
        self.bar = pn.indicators.Progress(value=0, max=100, height=10, **WIDE)
        self.status, self.words = text_pane(), text_pane()
        self.numbers = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=(0, 8), stylesheets=[CELLS_STYLE]
        )

    def soon(self, call: Callable[[], None]) -> None:
        """Not while the page itself sets its controls."""
        if not self.quiet:
            super().soon(call)

    def _fill_widgets(self) -> None:
        """Set every control to the diagram; nothing is told of it."""
        texts, self.quiet = self.diagram.texts, True
        names = {
            title_of(name, self.diagram.stimulus): name
            for name in numbers_of(self.diagram.stimulus)
        }
        self.stimulus.value = texts["stimulus"]
        self.across.param.update(options=names, value=texts["across"])
        self.up.param.update(options=names, value=texts["up"])
        for name in ("x", "y", "rule", "other"):
            getattr(self, name).value = texts[name]
        self.steps.value, self.members.value = (
            texts.get(name, CELL[name]) for name in ("steps", "members")
        )
        self.rule.disabled = self.other.disabled = self.diagram.one_number
        self.quiet = False

    # What a visitor does.

    def _other_stimulus(self) -> None:
        self._take(
            usual_texts(self.stimulus.value)
            | {"steps": self.steps.value, "members": self.members.value}
        )

    def _other_axes(self) -> None:
        axes = axes_texts(self.stimulus.value, self.across.value, self.up.value)
        more = {
            name: text
            for name, text in self._sizes().items()
            if name not in (axes["across"], axes["up"])
        }
        self._take(axes | more)

    def _changed(self) -> None:
        texts = {
            name: str(getattr(self, name).value).strip() for name in ("x", "y", "rule", "other")
        }
        now = {name: text for name, text in self.diagram.texts.items() if name not in CELL}
        self._take(now | texts | self._sizes())

    def _sizes(self) -> dict[str, str]:
        """What the controls and the address say of every cell."""
        more = dict(self.diagram.more)
        return more | {"steps": self.steps.value.strip(), "members": self.members.value.strip()}

    def _take(self, texts: dict[str, str]) -> None:
        """Show another diagram, if the texts spell one."""
        try:
            diagram = Diagram.of(texts)
            read(diagram.cell(0, 0), self.limits)
        except InputError as error:
            self.say(str(error))
            return
        self.diagram = diagram
        self._fill_widgets()
        self._begin()
        self.say("")

    def _start(self) -> None:
        for one in self.cells:
            if one.state == "failed" and one.experiment:
                one.state, one.note = "empty", ""
        self.sweeping = self.watching = True
        self.say("")
        self._feed()
        self.draw()

    def _pause(self) -> None:
        self._stop()
        self.draw()

    def _reset(self) -> None:
        self._stop()
        self.watching = False
        for one in self.cells:
            if one.experiment:
                one.state, one.ipr, one.note = "empty", math.nan, ""
        self.draw()

    def _stop(self) -> None:
        """End the cells that are under way."""
        self.sweeping = False
        jobs, self.jobs = self.jobs, {}
        for place, (_, job) in jobs.items():
            job.cancel()
            self.cells[place].state, self.cells[place].ipr = "empty", math.nan

    # The diagram, the store and the theory.

    def _begin(self) -> None:
        """Another diagram: axes at once, cells and theory when they are there."""
        self._stop()
        self.number += 1
        self.watching = True
        self.cells = []
        self.heat.frame(self.diagram)
        self.numbers.object = ""
        self.status.object = "Looking into the store …"
        command = html.escape(command_of(self.diagram.cell(0, 0)))
        self.words.object = (
            f"<p>{html.escape(self.diagram.words())} The first cell is <code>{command}</code>.</p>"
        )
        self._buttons()
        self._spell()
        work = functools.partial(survey, self.diagram, self.limits, self.service.store)
        later(self.document, work, functools.partial(self._surveyed, self.number))

    def _surveyed(self, number: int, cells: list[Cell]) -> None:
        if number != self.number:
            return
        self.cells = cells
        self.draw()
        later(
            self.document,
            functools.partial(predictions, cells),
            functools.partial(self._predicted, number),
        )

    def _predicted(self, number: int, found: list[tuple[float, float]]) -> None:
        if number != self.number:
            return
        for one, (kurtosis, critical) in zip(self.cells, found, strict=True):
            one.kurtosis, one.critical = kurtosis, critical
        self.heat.show_border(self.diagram, self.cells)
        self.draw()

    def poll(self) -> None:
        """Look for cells that others have stored in the meantime."""
        missing = [
            one.digest for one in self.cells if one.state in ("empty", "failed") and one.digest
        ]
        if self.service.store is None or not missing or self.polling or not self.watching:
            return
        self.polling = True
        work = functools.partial(stored, self.service.store, missing)
        later(self.document, work, functools.partial(self._polled, self.number))

    def _polled(self, number: int, found: dict[str, tuple[float, str]]) -> None:
        self.polling = False
        if number != self.number or not self.watching:
            return
        for one in self.cells:
            if one.digest in found and one.state in ("empty", "failed"):
                one.state, (one.ipr, one.note) = "known", found[one.digest]
                self.dirty = True
        if self.dirty:
            self.draw()

    # The sweep.

    def _feed(self) -> None:
        """Ask for the next cells, spread over the diagram so that its shape is seen early."""
        empty = [
            place
            for place, one in enumerate(self.cells)
            if one.state == "empty" and place not in self.jobs
        ]
        empty.sort(key=lambda place: place * GOLDEN % 1)
        while self.sweeping and empty and len(self.jobs) < AT_ONCE:
            place, token = empty.pop(0), object()
            self.started.discard(place)
            self.cells[place].state = "waiting"
            listener = functools.partial(self.heard, (place, token))
            request = Request("run", self.cells[place].experiment)
            self.jobs[place] = (token, None)  # it may be heard of before `submit` returns
            self.jobs[place] = (token, self.service.pool.submit(request, listener, background=True))
        if not self.jobs:
            self.sweeping = False

    def take_news(self, about: tuple[int, object], message: Any) -> None:
        """A message about a cell; one that is not waited for any more is dropped."""
        place, token = about
        if place in self.jobs and self.jobs[place][0] is token:
            self._take_cell(place, message)
            self.dirty = True
        self._feed()

    def pause_between(self) -> float:
        """None when the last cell is there."""
        return DRAW if self.jobs else 0.0

    def _take_cell(self, place: int, message: Any) -> None:
        one = self.cells[place]
        if isinstance(message, Queued):
            one.state = "waiting"
        elif isinstance(message, Started):
            one.state = "running"
            self.started.add(place)
        elif isinstance(message, Records) and "ipr" in message.series:
            last = np.asarray(message.series["ipr"])[:, -1]
            one.ipr = float(last[np.isfinite(last)].mean()) if np.isfinite(last).any() else math.nan
        elif isinstance(message, Done):
            del self.jobs[place]
            bad = sum(kind != "ok" for kind in message.outcomes)
            one.state, one.note = "known", f"{bad} members diverged" if bad else ""
            if message.stopped == "cancelled":  # not by this page, which would not listen any more
                one.state, one.note = "failed", message.note or "It was stopped."
        elif isinstance(message, (Failed, Lost)):
            del self.jobs[place]
            refused = isinstance(message, Failed) and place not in self.started
            one.state, one.note, one.ipr = (
                "empty" if refused else "failed",
                message.message,
                math.nan,
            )
            if refused:  # the queue is full: nothing is wrong with the cell
                one.note = ""
                self._stop()
                self.say(message.message)

    # What is shown.

    def draw(self) -> None:
        """The cells as they are known."""
        self.dirty, self.drawn = False, time.monotonic()
        self.heat.show(self.diagram, self.cells)
        if (
            not self.sweeping or self.drawn - self.tabled > TABLE
        ):  # a new table takes the focus from a link in it
            self.tabled = self.drawn
            self.numbers.object = table(self.diagram, self.cells, self.dark) if self.cells else ""
        self.status.object = f"<span role='status'>{html.escape(self._state())}</span>"
        known = sum(one.state == "known" for one in self.cells)
        self.bar.value = round(100 * known / max(len(self.cells), 1))
        self._buttons()

    def _state(self) -> str:
        states = collections.Counter(one.state for one in self.cells)
        words = f"{states['known']} of {len(self.cells)} cells are known."
        if self.jobs:
            words += f" {states['running']} computed now, {states['waiting']} in the queue."
        if states["failed"]:
            first = next(one.note for one in self.cells if one.state == "failed")
            words += f" {states['failed']} cannot be computed: {first}"
        judged = [one for one in self.cells if one.predicted and one.found]
        if judged:
            agree = sum(one.predicted == one.found for one in judged)
            where = f"localized: IPR above {judged[0].border:.2g}"
            words += (
                f" Training and theory's border agree in {agree} of {len(judged)} cells ({where})."
            )
        return words

    def _buttons(self) -> None:
        todo = any(one.state in ("empty", "failed") and one.experiment for one in self.cells)
        self.start.disabled = self.sweeping or not todo
        self.pause.disabled = not self.sweeping
        self.reset.disabled = all(one.state == "empty" for one in self.cells)

    def _spell(self) -> None:
        location = pn.state.location
        if location is not None:
            location.search = f"?{to_query(self.diagram.texts)}" + (
                "&theme=dark" if self.dark else ""
            )

    def layout(self) -> Any:
        """The whole page as a template."""
        about = (
            "<p>Every cell is a run of its own; its color is the IPR at the end, 1 for a field on one site and about "
            "0 for a wave. The dashed line is theory's: where the law of the labelled class has an excess kurtosis "
            "below the critical one, a flat field falls apart; close to the line what it becomes is still broad.</p>"
        )
        main = [
            self.message,
            text_pane(about),
            pn.FlexBox(self.start, self.pause, self.reset, margin=(0, 4)),
            self.status,
            self.bar,
            pn.pane.Bokeh(self.heat.plot, sizing_mode="stretch_width", margin=2),
            self.words,
            self.numbers,
            text_pane(f"<p class='limits'>{html.escape(limit_words(self.limits))}</p>"),
        ]
        every = (
            self.stimulus,
            self.across,
            self.x,
            self.up,
            self.y,
            self.rule,
            self.other,
            self.steps,
            self.members,
        )
        sidebar = pn.Column(*every, sizing_mode="stretch_width", margin=0)
        return frame("phase", sidebar, pn.Column(*main, sizing_mode="stretch_width", margin=0))


def page(service: Any) -> Any:
    """A new visitor's page."""
    location, document = pn.state.location, pn.state.curdoc
    phase = Phase(
        service, (location.search or "").removeprefix("?") if location is not None else "", document
    )
    template = phase.layout()
    if document is not None:
        document.add_periodic_callback(phase.poll, POLL)
    pn.state.on_session_destroyed(lambda context: leave(phase))
    return template


def leave(phase: Phase) -> None:
    """A visitor has gone: nothing more is computed for them."""
    phase.document = None
    for _, job in phase.jobs.values():
        job.cancel()
    phase.jobs = {}
