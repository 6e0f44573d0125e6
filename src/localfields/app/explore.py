"""The first page: change the gain and watch a receptive field develop."""

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
from .live_run import LiveRun
from .messages import Done, Failed, Lost, Queued, Request, Started, TaskSummary, TheoryVerdict
from .page import WIDE, Page, note, plot_grid, template, text_pane
from .presets import OUR_PRESETS, presets
from .state import from_query, read, to_python, to_query
from .views import DataView, RunView

DRAW_INTERVAL = 0.12  # seconds: about eight drawings per second,
DRAW_SHARE = 3  # and, with several runs going on, at most a third of the server's time for them all
ACTIVE_PAGES: weakref.WeakSet[Any] = weakref.WeakSet()  # pages whose runs are going on
FIRST_PRESET = next(iter(OUR_PRESETS))
# Browsers let pages write to the clipboard on this machine and over https; elsewhere the text can
# be selected.
COPY = "if (navigator.clipboard) { navigator.clipboard.writeText(area.value); }"
VERDICTS = {
    "localized": "Predicted: localized. The field will contract to a bump.",
    "oscillatory": "Predicted: oscillatory. The field will be a wave or a constant, not a bump.",
    "undecided": "Undecided: theory does not tell.",
}
PLAYER_BUTTONS = ["first", "previous", "pause", "play", "next", "last"]


class Explorer(Page):
    """Controls, what is known of the setting, and the run."""

    def __init__(self, service: Any, query: str, document: Any = None):
        super().__init__(service)  # no document yet: messages wait until the page is laid out
        self.draw_seconds = 0.0  # that the last drawing took
        self.drawing = False
        self.following = True  # whether the newest record is shown
        self.summary_job: Any = None
        self.run_job: Any = None
        self.kept_job: Any = None
        self.verdict: TheoryVerdict | None = None
        self.run: LiveRun | None = None
        self.kept_run: LiveRun | None = None
        mistake, kept = "", None
        try:
            texts, kept = from_query(query, service.limits)
        except InputError as error:
            texts = {}
            mistake = f"The link could not be read. {error} Shown instead: {FIRST_PRESET}."
        texts = texts or dict(presets()[FIRST_PRESET])
        self.controls = Controls(service.limits, texts, self.setting_changed)
        self.data_view, self.run_view = DataView(), RunView("this run")
        self.kept_view: RunView | None = None  # made when needed: figures take time to make
        self._make_widgets()
        self.setting_changed()
        if mistake:
            self.show_mistake(mistake)
        if kept:  # a link may name two settings; a click starts a run, never a link
            self.kept_run = LiveRun(kept, read(kept, service.limits))

    def _make_widgets(self) -> None:
        self.preset = pn.widgets.Select(
            label="preset",
            options=["", *presets()],
            description="settings of the paper's figures, and ours",
            **WIDE,
        )
        self.start, self.pause, self.step, self.cancel, self.reset, self.keep = self.buttons = [
            self.button(name, "primary" if name == "Start" else "default", call, help)
            for name, call, help in (
                ("Start", self.start_run, "train the network, or continue a paused run"),
                ("Pause", self.pause_run, "stop here; Start continues"),
                ("Step", lambda: self.start_run(True), "continue to the next record, and pause"),
                ("Cancel", self.cancel_run, "stop for good; what was recorded stays"),
                ("Reset", self.reset_run, "clear the run"),
                ("Keep beside", self.keep_run, "compare this run with the next one"),
            )
        ]
        self.start_kept = self.button(
            "Run it", "default", self.start_kept_run, "train with the kept setting, too"
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
            visible_buttons=PLAYER_BUTTONS,
            sizing_mode="stretch_width",
            disabled=True,
        )
        self.field = pn.widgets.IntSlider(
            label="field shown", start=1, end=2, value=1, width=180, disabled=True
        )
        self.spelling = pn.widgets.RadioButtonGroup(
            options=["Link", "Command", "Python"], value="Link", margin=(4, 8)
        )
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
        self.preset.param.watch(self._preset_chosen, "value")
        self.player.param.watch(self._time_chosen, "value")
        self.field.param.watch(lambda event: self.soon(self.draw), "value")
        self.spelling.param.watch(lambda event: self._show_link(), "value")

    # What a visitor does.

    def setting_changed(self) -> None:
        """Ask for a summary of the new setting, and put it into the link."""
        self._show_link()
        try:
            experiment = read(self.controls.texts, self.service.limits)
        except InputError as error:
            self.start.disabled = self.step.disabled = True
            self.show_mistake(str(error))
            return
        if self.summary_job is not None:
            self.summary_job.cancel()
        self.verdict = None
        request = Request("summary", experiment.canonical())
        self.summary_job = self.service.pool.submit(request, functools.partial(self.post, None))
        self.show_mistake("")
        self._update_buttons()
        self.banner.object = note("", "Asking theory …")

    def _preset_chosen(self, event: Any) -> None:
        if event.new:
            self.controls.show(presets()[event.new])
            self.setting_changed()

    def start_run(self, one_record: bool = False) -> None:
        """Start the run of this setting, or continue it; possibly for one record only."""
        texts = self.controls.texts
        try:
            experiment = read(texts, self.service.limits)
        except InputError as error:
            self.show_mistake(str(error))
            return
        run = self.run
        same = run is not None and run.experiment.digest == experiment.digest
        if run is None or not same or run.cancelled or run.checkpoint is None:
            run = self.run = LiveRun(texts, experiment, self.verdict)
            self.run_view.clear()
        run.done = None
        self.following = True
        self.run_job = self._submit_run(run, one_record)
        ACTIVE_PAGES.add(self)
        self._update_buttons()

    def _submit_run(self, run: LiveRun, one_record: bool = False) -> Any:
        request = Request("run", run.experiment.canonical(), run.checkpoint, one_record)
        return self.service.pool.submit(request, functools.partial(self.post, run))

    def start_kept_run(self) -> None:
        """Start the second run that a link names."""
        if self.kept_run is not None and self.kept_job is None:
            self.kept_job = self._submit_run(self.kept_run)
            self._update_buttons()

    def pause_run(self) -> None:
        """Pause the run; it says `Done` when it has stopped."""
        if self.run_job is not None:
            self.run_job.pause()

    def cancel_run(self) -> None:
        """End the run for good; what was recorded stays."""
        if self.run_job is not None:
            self.run_job.cancel()
        if self.run is not None and self.run.done is None:
            self.run.cancelled, self.run.checkpoint = True, None
            self._run_ended("Cancelled.")

    def reset_run(self) -> None:
        """Clear the run."""
        self.cancel_run()
        self.run = None
        self.service.downloads.withdraw(self)
        self.run_view.clear()
        self.player.param.update(end=1, value=0, disabled=True)
        self._show_status("")
        self.downloads.object = ""
        self._update_buttons()

    def keep_run(self) -> None:
        """Keep the run for comparison, or remove the one that is kept."""
        if self.kept_run is not None:
            if self.kept_job is not None:
                self.kept_job.cancel()
            self.kept_run = self.kept_job = None
        elif self.run is not None and self.run.started:
            self.kept_run = self.run
        self._show_kept()
        self._show_link()
        self._update_buttons()

    def _time_chosen(self, event: Any) -> None:
        self.following = self.run is None or event.new >= len(self.run.steps) - 1
        if not self.drawing:
            self.soon(self.draw)

    def leave(self) -> None:
        """Cancel everything that was asked for."""
        super().leave()
        ACTIVE_PAGES.discard(self)
        for job in (self.summary_job, self.run_job, self.kept_job):
            if job is not None:
                job.cancel()
        self.service.downloads.withdraw(self)

    # What the workers send.

    def receive(self, topic: LiveRun | None, message: Any) -> None:
        """Handle a message about the setting, or about a run."""
        if topic is None:
            self._receive_summary(message)
        elif topic is self.run or topic is self.kept_run:
            topic.receive(message)
            self.dirty = True
            if topic is self.run:
                self._receive_progress(message)
            elif isinstance(message, (Failed, Lost)):
                self.kept_job = None
                self.show_mistake(f"The kept run ended. {message.message}")
                self._update_buttons()

    def _receive_summary(self, message: Any) -> None:
        if isinstance(message, TaskSummary):
            self.data_view.show(message)
            if message.warnings:
                self.show_mistake(" ".join(message.warnings))
        elif isinstance(message, TheoryVerdict):
            self.verdict, run = message, self.run
            if run is not None and run.verdict is None and run.texts == self.controls.texts:
                run.verdict = message  # it was started before theory had answered
            lead = VERDICTS.get(message.verdict, message.verdict)
            self.banner.object = note(message.verdict, lead, message.reason)
        elif isinstance(message, (Failed, Lost)):
            self.banner.object = note("undecided", "No prediction.", message.message)

    def _receive_progress(self, message: Any) -> None:
        if isinstance(message, Queued):
            self._show_status(f"In the queue: number {message.position}.")
        elif isinstance(message, Started):
            self._show_status("Starting …")
        elif isinstance(message, (Failed, Lost)):
            self._run_ended(message.message)
        elif isinstance(message, Done):
            self._run_ended("")

    def _run_ended(self, text: str) -> None:
        self.run_job = None
        ACTIVE_PAGES.discard(self)
        self.dirty = True
        run = self.run
        if run is not None and run.started:
            if not text:
                assert run.done is not None
                text = f"{run.judgment()} {run.done.note}"
                if run.cancelled or run.done.stopped == "cancelled":
                    text = f"{'Cancelled' if run.cancelled else 'Paused'}. {text}"
            self.service.downloads.publish(self, run)
            self.downloads.object = self.service.downloads.links(self)
        self._show_status(text)
        self._update_buttons()

    # What is shown.

    def draw_interval(self) -> float:
        """Longer while many runs are drawn."""
        pages = len(ACTIVE_PAGES)
        return max(DRAW_INTERVAL, DRAW_SHARE * self.draw_seconds * pages * (pages > 1))

    def draw(self) -> None:
        """Draw the run at the record that is chosen, and the kept one."""
        self.dirty, self.draw_time, self.drawing = False, time.monotonic(), True
        run, kept = self.run, self.kept_run
        if run is not None and run.started:
            last, num_fields = len(run.steps) - 1, run.ipr.shape[0] * run.ipr.shape[2]
            self.field.param.update(
                end=max(num_fields, 2),
                disabled=num_fields < 2,
                value=min(self.field.value, num_fields),
            )
            # While it goes on, the player has the length of the whole run, and its position moves.
            end = run.last_record if self.run_job is not None else last
            value = last if self.following else self.player.value
            self.player.param.update(end=max(end, 1), value=value, disabled=False)
            self.run_view.show(run, min(self.player.value, last), self.field.value - 1)
            if self.run_job is not None:
                method: Any = run.experiment.method
                self._show_status(
                    f"Step {run.steps[-1]} of {method.steps}, flow time {run.times[-1]:.4g}, "
                    f"mean IPR {run.ipr[:, -1].mean():.3f}."
                )
        if self.kept_view is not None and kept is not None and kept.started:
            record = min(self.player.value, len(kept.steps) - 1)
            self.kept_view.show(kept, record, self.field.value - 1)
        self.drawing, self.draw_seconds = False, time.monotonic() - self.draw_time

    def _show_kept(self) -> None:
        kept = self.kept_run
        self.kept_box.visible = kept is not None
        self.keep.label = "Remove kept" if kept is not None else "Keep beside"
        if kept is not None:
            command = html.escape(command_of(kept.texts))
            self.kept_title.object = f"<b>Kept run</b>: <code>{command}</code>"
        new = kept is not None and self.kept_view is None
        if new:
            self.kept_view = RunView("kept run")
        self.draw()
        if new:
            self.kept_box.append(plot_grid(self.kept_view))

    def _update_buttons(self) -> None:
        running, run = self.run_job is not None, self.run
        paused = not running and run is not None and run.checkpoint is not None
        self.start.param.update(disabled=running, label="Go on" if paused else "Start")
        self.step.disabled = running
        self.pause.disabled = self.cancel.disabled = not running
        self.reset.disabled = run is None
        self.keep.disabled = (run is None or not run.started) and self.kept_run is None
        kept = self.kept_run
        self.start_kept.visible = kept is not None and not kept.started and self.kept_job is None

    def _show_link(self) -> None:
        texts, location = self.controls.texts, pn.state.location
        query = to_query(texts, None if self.kept_run is None else self.kept_run.texts)
        self.set_address(query)
        if self.spelling.value == "Link":
            page = (location.href if location is not None else "") or "/"
            self.copied.value = f"{page.partition('?')[0]}?{query}"
        elif self.spelling.value == "Command":
            self.copied.value = command_of(texts)
        else:
            try:
                self.copied.value = to_python(read(texts, self.service.limits))
            except InputError as error:
                self.copied.value = f"# {error}"

    def _show_status(self, text: str) -> None:
        self.status.object = note("status", text) if text else ""

    def layout(self) -> Any:
        """The whole page as a template."""
        wide: Any = {"sizing_mode": "stretch_width"}
        self.kept_title = text_pane()
        self.kept_box = pn.Column(self.kept_title, self.start_kept, visible=False, **wide)
        self._show_kept()
        self._update_buttons()
        limits = html.escape(" ".join(self.service.limits.sentences()))
        main = (
            self.message,
            self.banner,
            plot_grid(self.data_view),
            self.status,
            pn.FlexBox(*self.buttons, margin=(0, 4), css_classes=["buttons"]),
            pn.Row(self.player, self.field, **wide),
            plot_grid(self.run_view),
            self.kept_box,
            pn.Column(
                pn.FlexBox(self.spelling, self.copy, self.downloads, **wide), self.copied, **wide
            ),
            text_pane(f"<p class='limits'>{limits}</p>"),
        )
        return template("/", (self.preset, self.controls.panel), main)
