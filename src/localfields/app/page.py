"""What the pages of a visitor have in common: they hear from other threads, draw now and then, and have buttons."""

from __future__ import annotations

import abc
import collections
import time
from collections.abc import Callable
from typing import Any

import panel as pn
from bokeh.models import Tooltip

from .frame import is_dark, note, text_pane


class Page(abc.ABC):
    """One visitor's page.

    Args:
        service: What all pages share.
        document: Of the page; None until it is made.
    """

    def __init__(self, service: Any, document: Any = None):
        self.service = service
        self.document: Any = document
        self.dark = is_dark()
        self.inbox: collections.deque[tuple[Any, Any]] = collections.deque()
        self.scheduled = self.dirty = False
        self.drawn = 0.0
        self.message = text_pane()

    def button(
        self, name: str, kind: Any, call: Callable[[], None], help: str
    ) -> pn.widgets.Button:
        """A button that says what it does."""
        tip = Tooltip(content=help, position="bottom")  # beside, it would hide the next button
        button = pn.widgets.Button(
            label=name, color=kind, description=tip, margin=(4, 4), min_width=76
        )
        button.on_click(lambda event: self.soon(call))
        return button

    def soon(self, call: Callable[[], None]) -> None:
        """Call it in a tick of its own: Panel may tell of a click without holding the lock that figures need."""
        if self.document is None:
            call()
        else:
            self.document.add_next_tick_callback(call)

    def heard(self, about: Any, message: Any) -> None:
        """From a thread of the pool: keep the message, and have the page's own thread look."""
        self.inbox.append((about, message))
        if self.document is not None and not self.scheduled:
            self.scheduled = True
            self.document.add_next_tick_callback(self.look)

    def look(self) -> None:
        """Take everything that was heard, and draw what became of it."""
        self.scheduled = False
        while self.inbox:
            self.take_news(*self.inbox.popleft())
        if self.dirty:
            wait = self.pause_between() - (time.monotonic() - self.drawn)
            if wait <= 0:
                self.draw()
            elif not self.scheduled:
                self.scheduled = True
                self.document.add_timeout_callback(self.look, int(1000 * wait) + 1)

    @abc.abstractmethod
    def take_news(self, about: Any, message: Any) -> None:
        """What `heard` was told; sets `dirty` where there is something to draw."""

    @abc.abstractmethod
    def pause_between(self) -> float:
        """Seconds from one drawing to the next."""

    @abc.abstractmethod
    def draw(self) -> None:
        """Show how things are."""

    def say(self, words: str) -> None:
        """What the visitor should know or mend; empty: nothing any more."""
        self.message.object = note("mistake", words) if words else ""
