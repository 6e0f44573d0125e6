"""The first page: turn the gain and watch a receptive field being born."""

from __future__ import annotations

import functools
import html
import time
import weakref
from typing import Any

import panel as pn

from ..errors import InputError
from ..experiments.texts import command_of
from .controls import Controls
from .frame import frame, grid, note, text_pane
from .messages import Answer, Done, Failed, Lost, Queued, Request, Started, Verdict
from .page import Page
from .presets import OURS, presets
from .state import from_query, read, to_python, to_query
from .views import DataView, RunView
from .watched import Watched

DRAW = 0.12  # seconds between drawings: about eight a second,
SHARE = 3  # and, with several runs under way, at most a third of the server's time for all of them
RUNNING: weakref.WeakSet[Any] = weakref.WeakSet()  # pages whose runs are under way
FIRST = next(iter(OURS))
# Browsers let pages write to the clipboard on this machine and over https; elsewhere the text is there to be selected.
COPY = "if (navigator.clipboard) { navigator.clipboard.writeText(area.value); }"
WORDS = {
    "localized": "Predicted: localized. The field will contract to a bump.",
    "oscillatory": "Predicted: oscillatory. The field will become a wave or a constant, not a bump.",
    "undecided": "Undecided: theory does not tell.",
}


class Explorer(Page):
    """Controls, what is known of the setting, and the run."""

    def __init__(self, service: Any, query: str):
        super().__init__(service)
        self.took = 0.0  # seconds of the last drawing
        self.drawing = False
        self.follow = True
        self.answer_job: Any = None
        self.run_job: Any = None
        self.beside_job: Any = None
        self.verdict: Verdict | None = None
        self.run: Watched | None = None
        self.beside: Watched | None = None
        texts, beside, said = self._read_address(query)
        self.controls = Controls(service.limits, texts, self.changed)
        self.data, self.view = DataView(), RunView("this run")
        self.other: RunView | None = (
            None  # made when it is needed: figures are what takes time in making a page
        )
        self._make_widgets()
        self.changed()
        if said:
            self.say(said)
        if beside is not None:
            self._run_beside(beside)

    def _read_address(self, query: str) -> tuple[dict[str, str], dict[str, str] | None, str]:
        first = dict(presets()[FIRST])
        try:
            texts, beside = from_query(query, self.service.limits)
        except InputError as error:
            return first, None, f"The link could not be read. {error} Shown instead: {FIRST}."
        return texts or first, beside, ""

    def _make_widgets(self) -> None:
        self.preset = pn.widgets.Select(
            label="preset",
            options=["", *presets()],
            value="",
            description="settings of the paper's figures, and ours",
            sizing_mode="stretch_width",
            margin=(4, 8, 0, 8),
        )
        self.preset.param.watch(self._take_preset, "value")
        self.start = self.button(
            "Start", "primary", self._start, "train the network, or go on where it was paused"
        )
        self.pause = self.button("Pause", "default", self._pause, "stop here; Start goes on")
        self.step = self.button(
            "Step", "default", self._step, "go on to the next record, and pause"
        )
        self.cancel = self.button(
            "Cancel", "default", self._cancel, "stop for good; what was recorded stays"
        )
        self.reset = self.button("Reset", "default", self._reset, "clear the run")
        self.keep = self.button(
            "Keep beside", "default", self._keep, "hold this run against the next one"
        )
        self.banner = text_pane(css_classes=["banner"])
        self.status = text_pane(css_classes=["status"])
        self.player = pn.widgets.Player(
            label="flow time",
            start=0,
            end=1,
            value=0,
            interval=80,
            show_loop_controls=False,
            visible_buttons=["first", "previous", "pause", "play", "next", "last"],
            sizing_mode="stretch_width",
            disabled=True,
        )
        self.player.param.watch(self._scrubbed, "value")
        self.chosen = pn.widgets.IntSlider(
            label="field shown", start=1, end=2, value=1, width=180, disabled=True
        )
        self.chosen.param.watch(lambda event: self.soon(self.draw), "value")
        self.copies = pn.widgets.RadioButtonGroup(
            options=["Link", "Command", "Python"], value="Link", margin=(4, 8)
        )
        self.copies.param.watch(lambda event: self._spell(), "value")
        self.copied = pn.widgets.TextAreaInput(
            label="to copy",
            rows=2,
            auto_grow=True,
            max_rows=12,
            sizing_mode="stretch_width",
            max_length=10**6,
        )
        self.copy = pn.widgets.Button(label="Copy", margin=(4, 4))
        self.copy.js_on_click(args={"area": self.copied}, code=COPY)
        self.downloads = pn.pane.HTML("", margin=(0, 8))

    # What a visitor does.

    def changed(self) -> None:
        """The setting is another one: ask what is known of it, and meanwhile tell the rest of the page."""
        try:
            experiment = read(self.controls.texts, self.service.limits)
        except InputError as error:
            self._spell()
            self.start.disabled = self.step.disabled = True
            self.say(str(error))
            return
        if self.answer_job is not None:
            self.answer_job.cancel()
        self.verdict = None
        self.answer_job = self._submit(Request("answer", experiment.canonical()))
        self._spell()
        self.say("")
        self._buttons()
        self.banner.object = note("", "Asking theory …")

    def _take_preset(self, event: Any) -> None:
        if event.new:
            self.controls.show(presets()[event.new])
            self.changed()

    def _start(self) -> None:
        self._go(False)

    def _step(self) -> None:
        self._go(True)

    def _go(self, one_record: bool) -> None:
        """Begin the run of this setting, or go on with it."""
        try:
            experiment = read(self.controls.texts, self.service.limits)
        except InputError as error:
            self.say(str(error))
            return
        run, checkpoint = self.run, None
        same = run is not None and run.experiment.digest == experiment.digest and not run.dropped
        if run is not None and same and run.checkpoint is not None:
            checkpoint = run.checkpoint
            run.done = None
        else:
            run = self.run = Watched(self.controls.texts, experiment, self.verdict)
            self.view.clear()
        self.follow = True
        self.run_job = self._submit(Request("run", experiment.canonical(), checkpoint, one_record))
        RUNNING.add(self)
        self._buttons()

    def _pause(self) -> None:
        if self.run_job is not None:
            self.run_job.pause()

    def _cancel(self) -> None:
        if self.run_job is not None:
            self.run_job.cancel()
        if self.run is not None and self.run.done is None:
            self.run.dropped, self.run.checkpoint = True, None
            self._ended("Cancelled.")

    def _reset(self) -> None:
        self._cancel()
        self.run = None
        self.service.downloads.withdraw(self)
        self.view.clear()
        self.player.param.update(end=1, value=0, disabled=True)
        self._tell("")
        self.downloads.object = ""
        self._buttons()

    def _keep(self) -> None:
        if self.beside is not None:
            self.beside = None
        elif self.run is not None and self.run.started:
            self.beside = self.run
        self._show_beside()
        self._spell()

    def _run_beside(self, texts: dict[str, str]) -> None:
        """A link may name two settings: the second one is run at once."""
        experiment = read(texts, self.service.limits)
        self.beside = Watched(texts, experiment)
        self.beside_job = self._submit(Request("run", experiment.canonical()), self.beside)

    def _scrubbed(self, event: Any) -> None:
        self.follow = self.run is None or event.new >= len(self.run.steps) - 1
        if not self.drawing:
            self.soon(self.draw)

    # What the workers tell.

    def _submit(self, request: Request, run: Watched | None = None) -> Any:
        owner = run or (self.run if request.kind == "run" else None)
        return self.service.pool.submit(request, functools.partial(self.heard, owner))

    def take_news(self, about: Watched | None, message: Any) -> None:
        """A message about the setting, or about a run."""
        if about is None:
            self._take_answer(message)
        elif about is self.run or about is self.beside:
            about.take(message)
            self.dirty = True
            if about is self.run:
                self._take_progress(message)

    def pause_between(self) -> float:
        """Longer where many runs are drawn at a time."""
        return max(DRAW, SHARE * self.took * len(RUNNING)) if len(RUNNING) > 1 else DRAW

    def _take_answer(self, message: Any) -> None:
        if isinstance(message, Answer):
            self.data.show(message)
            if message.notes:
                self.say(" ".join(message.notes))
        elif isinstance(message, Verdict):
            self.verdict = message
            if (
                self.run is not None
                and self.run.predicted is None
                and self.run.texts == self.controls.texts
            ):
                self.run.predicted = message
            lead = WORDS.get(message.verdict, message.verdict)
            self.banner.object = note(message.verdict, lead, message.reason)
        elif isinstance(message, (Failed, Lost)):
            self.banner.object = note("undecided", "No prediction.", message.message)

    def _take_progress(self, message: Any) -> None:
        run = self.run
        assert run is not None
        if isinstance(message, Queued):
            self._tell(f"In the queue: number {message.position}.")
        elif isinstance(message, Started):
            self._tell("Starting …")
        elif isinstance(message, (Failed, Lost)):
            self._ended(message.message)
        elif isinstance(message, Done):
            self._ended("")

    def _ended(self, words: str) -> None:
        self.run_job = None
        RUNNING.discard(self)
        self.dirty = True
        run = self.run
        if run is not None and run.started and not words:
            assert run.done is not None
            lead = (
                "Cancelled. "
                if run.dropped
                else "Paused. "
                if run.done.stopped == "cancelled"
                else ""
            )
            words = f"{lead}{run.judgment()} {run.done.note}"
        self._tell(words)
        if run is not None and run.started:
            self.service.downloads.publish(self, run)
            self.downloads.object = self.service.downloads.links(self)
        self._buttons()

    # What is shown.

    def now_shown(self) -> int:
        """The record that is drawn."""
        return min(self.player.value, len(self.run.steps) - 1) if self.run is not None else 0

    def draw(self) -> None:
        """The run at the record that is chosen, and the one beside it."""
        self.dirty, self.drawn, self.drawing = False, time.monotonic(), True
        run = self.run
        if run is not None and run.started:
            last = len(run.steps) - 1
            fields = run.ipr.shape[0] * run.ipr.shape[2]
            self.chosen.param.update(
                end=max(fields, 2), disabled=fields < 2, value=min(self.chosen.value, fields)
            )
            # A run under way has its whole length before it: what moves is the place in it.
            end = run.last_record if self.run_job is not None else last
            value = last if self.follow else self.player.value
            self.player.param.update(end=max(end, 1), value=value, disabled=False)
            self.view.show(run, self.now_shown(), self.chosen.value - 1)
            if self.run_job is not None:
                steps: Any = run.experiment.method
                where = f"Step {run.steps[-1]} of {steps.steps}, flow time {run.times[-1]:.4g}"
                self._tell(f"{where}, mean IPR {run.ipr[:, -1].mean():.3f}.")
        if self.other is not None and self.beside is not None and self.beside.started:
            self.other.show(
                self.beside,
                min(self.player.value, len(self.beside.steps) - 1),
                self.chosen.value - 1,
            )
        self.drawing, self.took = False, time.monotonic() - self.drawn

    def _show_beside(self) -> None:
        if self.beside is not None and self.other is None:
            self.other = RunView("kept run")
            self.draw()  # before it is sent: what changes right after may reach the browser before the figures do
            self.beside_box.append(grid(self.other))
        self.beside_box.visible = self.beside is not None
        self.keep.label = "Remove kept" if self.beside is not None else "Keep beside"
        if self.beside is not None:
            self.beside_title.object = (
                f"<b>Kept run</b>: <code>{html.escape(command_of(self.beside.texts))}</code>"
            )
        self.draw()

    def _buttons(self) -> None:
        running = self.run_job is not None
        run = self.run
        paused = not running and run is not None and run.checkpoint is not None
        self.start.param.update(disabled=running, label="Go on" if paused else "Start")
        self.step.disabled = running
        self.pause.disabled = self.cancel.disabled = not running
        self.reset.disabled = run is None
        self.keep.disabled = (run is None or not run.started) and self.beside is None

    def _spell(self) -> None:
        texts = self.controls.texts
        beside = None if self.beside is None else self.beside.texts
        query = to_query(texts, beside)
        location = pn.state.location
        if location is not None and self.document is not None:
            location.search = f"?{query}" + ("&theme=dark" if self.dark else "")
        if self.copies.value == "Link":
            origin = (
                location.href.partition("?")[0] if location is not None and location.href else "/"
            )
            self.copied.value = f"{origin}?{query}"
        elif self.copies.value == "Command":
            self.copied.value = command_of(texts)
        else:
            try:
                self.copied.value = to_python(read(texts, self.service.limits))
            except InputError as error:
                self.copied.value = f"# {error}"

    def _tell(self, words: str) -> None:
        self.status.object = note("status", words) if words else ""

    # The page.

    def layout(self) -> Any:
        """The whole page as a template."""
        every = (self.start, self.pause, self.step, self.cancel, self.reset, self.keep)
        buttons = pn.FlexBox(*every, margin=(0, 4), css_classes=["buttons"])
        self.beside_title = text_pane()
        self.beside_box = pn.Column(self.beside_title, sizing_mode="stretch_width", visible=False)
        self._show_beside()
        limits = " ".join(html.escape(one) for one in self.service.limits.words())
        main = [
            self.message,
            self.banner,
            grid(self.data),
            self.status,
            buttons,
            pn.Row(self.player, self.chosen, sizing_mode="stretch_width"),
            grid(self.view),
            self.beside_box,
            pn.Column(
                pn.FlexBox(self.copies, self.copy, self.downloads, sizing_mode="stretch_width"),
                self.copied,
                sizing_mode="stretch_width",
            ),
            text_pane(f"<p class='limits'>{limits}</p>"),
        ]
        sidebar = pn.Column(self.preset, self.controls.panel, sizing_mode="stretch_width", margin=0)
        return frame("explore", sidebar, pn.Column(*main, sizing_mode="stretch_width", margin=0))


def page(service: Any) -> Any:
    """A new visitor's page."""
    location = pn.state.location
    explorer = Explorer(
        service, (location.search or "").removeprefix("?") if location is not None else ""
    )
    template = explorer.layout()
    explorer.document = pn.state.curdoc
    pn.state.on_session_destroyed(lambda context: leave(explorer))
    if explorer.inbox:
        explorer.scheduled = True
        explorer.document.add_next_tick_callback(explorer.look)
    return template


def leave(explorer: Explorer) -> None:
    """A visitor has gone: nothing more is computed for them."""
    explorer.document = None
    RUNNING.discard(explorer)
    for job in (explorer.answer_job, explorer.run_job, explorer.beside_job):
        if job is not None:
            job.cancel()
    explorer.service.downloads.withdraw(explorer)
