"""What all pages share: header and links, light and dark, buttons, and news from other threads."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import html
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import panel as pn
from bokeh.models import Tooltip
from panel.io.location import Location
from panel.util.parameters import edit_readonly

from .state import page_link

WorkResult = TypeVar("WorkResult")

NAVIGATION = {"/": "Explore", "/phase": "Phase diagram", "/runs": "Report and runs"}
WIDE: Any = {"sizing_mode": "stretch_width", "margin": (4, 8, 0, 8)}  # a control of the sidebar
TIGHT: Any = {"sizing_mode": "stretch_width", "margin": 0}
THREADS = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="page")  # for all pages


@functools.cache
def asset(name: str) -> str:
    """The text of a style sheet or script."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


PAGE_STYLE, TEXT_STYLE, GRID_STYLE, TABLE_STYLE = map(
    asset, ("page.css", "text.css", "grid.css", "tables.css")
)


def note(kind: str, lead: str, more: str = "") -> str:
    """A sentence with a colored edge, announced by screen readers; all text is escaped."""
    lead, more = html.escape(lead), html.escape(more)
    return f"<div class='note {html.escape(kind)}' role='status'><b>{lead}</b> {more}</div>"


def text_pane(text: str = "", style: str = TEXT_STYLE, **more: Any) -> pn.pane.HTML:
    """HTML in the style of the pages."""
    return pn.pane.HTML(
        text, sizing_mode="stretch_width", margin=(0, 8), stylesheets=[style], **more
    )


def plot_grid(view: Any) -> Any:
    """The figures of a view side by side as the width allows, below the key to their colors."""
    cells = [pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=2) for plot in view.plots]
    grid = pn.Column(*cells, stylesheets=[GRID_STYLE], **TIGHT)
    return pn.Column(text_pane(f"<p class='key'>{view.key}</p>"), grid, **TIGHT)


def template(path: str, sidebar: Sequence[Any], main: Sequence[Any]) -> Any:
    """A page of the explorer."""
    dark = is_dark()
    links = "".join(
        f"<a href='{address}{'?theme=dark' if dark else ''}'"
        f"{' class=here aria-current=page' if address == path else ''}>{label}</a>"
        for address, label in NAVIGATION.items()
    )
    switch = pn.widgets.Button(label="Light" if dark else "Dark", margin=(4, 16))
    switch.js_on_click(code=asset("switch_theme.js"))
    script = asset("skip_unchanged_styles.js")
    navigation = pn.pane.HTML(
        f"<nav class='nav-pages'>{links}</nav><script>{{{script}}}</script>",
        stylesheets=[PAGE_STYLE],
        margin=(8, 16),
    )
    page = pn.template.BootstrapTemplate(
        title="localfields",
        header=[pn.Row(navigation, switch)],
        sidebar=[pn.Column(*sidebar, **TIGHT)],
        main=[pn.Column(*main, **TIGHT)],
        sidebar_width=300,
        theme="dark" if dark else "default",
        meta_viewport="width=device-width, initial-scale=1",
    )
    page.config.raw_css.append(PAGE_STYLE)
    return page


def is_dark() -> bool:
    """Whether the address asks for a dark page."""
    return (pn.state.session_args or {}).get("theme") == [b"dark"]


class Page:
    """One visitor's page.

    Args:
        service: What all pages share.
        document: Of bokeh; None while nobody may be told of changes.
    """

    def __init__(self, service: Any, document: Any = None):
        self.service = service
        self.document: Any = document
        self.dark = is_dark()
        self.inbox: collections.deque[tuple[Any, Any]] = collections.deque()
        self.scheduled = self.dirty = False
        self.draw_time = 0.0
        self.message = text_pane()

    def layout(self) -> Any:
        """The whole page as a template."""
        raise NotImplementedError

    def opened(self) -> None:
        """Called when the page is built and has its document."""
        self.schedule()  # messages may have arrived before

    def leave(self) -> None:
        """Called when the visitor has gone: nothing more is computed for them."""
        self.document = None

    def receive(self, topic: Any, message: Any) -> None:
        """Handle what was passed to `post`; sets `dirty` where there is something to draw."""

    def draw_interval(self) -> float:
        """Seconds from one drawing to the next."""
        return 0.0

    def draw(self) -> None:
        """Show the current state."""

    def button(
        self, name: str, color: Any, call: Callable[[], None], help: str
    ) -> pn.widgets.Button:
        """A button with a tooltip."""
        tip = Tooltip(content=help, position="bottom")  # beside, it would hide the next button
        button = pn.widgets.Button(
            label=name, color=color, description=tip, margin=(4, 4), min_width=76
        )
        button.on_click(lambda event: self.soon(call))
        return button

    def soon(self, call: Callable[[], None]) -> None:
        """Call it in a tick of its own: Panel may report a click without the document's lock."""
        if self.document is None:
            call()
        else:
            self.document.add_next_tick_callback(functools.partial(at_once, call))

    def later(self, work: Callable[[], WorkResult], take: Callable[[WorkResult], None]) -> None:
        """Do `work`, which must not touch the page, in a thread; then `take` its result."""
        document = self.document

        def run() -> None:
            try:
                result = work()
            except Exception:  # nobody waits for a thread, so the server's log has to tell
                traceback.print_exc(file=sys.stderr)
                return
            document.add_next_tick_callback(functools.partial(at_once, take, result))

        THREADS.submit(run)

    def post(self, topic: Any, message: Any) -> None:
        """Called from the pool's thread: keep the message for the page's own thread."""
        self.inbox.append((topic, message))
        self.schedule()

    def schedule(self) -> None:
        """Have the page's own thread take the messages."""
        if self.document is not None and not self.scheduled:
            self.scheduled = True
            call = functools.partial(at_once, self.process_inbox)
            self.document.add_next_tick_callback(call)

    def process_inbox(self) -> None:
        """Take all messages, and draw if enough time has passed."""
        self.scheduled = False
        while self.inbox:
            self.receive(*self.inbox.popleft())
        if self.dirty:
            wait = self.draw_interval() - (time.monotonic() - self.draw_time)
            if wait <= 0:
                self.draw()
            elif not self.scheduled:
                self.scheduled = True
                call = functools.partial(at_once, self.process_inbox)
                self.document.add_timeout_callback(call, int(1000 * wait) + 1)

    def show_mistake(self, text: str) -> None:
        """Say what the visitor should correct; an empty text removes the message."""
        self.message.object = note("mistake", text) if text else ""

    def set_address(self, query: str) -> None:
        """Put a setting into the address of the page."""
        if pn.state.location is not None and self.document is not None:
            pn.state.location.search = page_link("", query, self.dark)


def at_once(call: Callable[..., None], *arguments: Any) -> None:
    """Call a function and send all that it changes in one message.

    Otherwise Panel and Bokeh send their changes on two ways, on which the data of a new figure may
    reach the browser before the figure does.
    """
    with pn.io.hold():
        call(*arguments)


class PlainLocation(Location):
    """The address of a page, whose query stays text.

    Panel's own turns parameters into Python values, by `ast.literal_eval` too, and fails on some.
    """

    @property
    def query_params(self) -> dict[str, Any]:
        """Nothing: `state.py` reads the query."""
        return {}


def set_location() -> None:
    """Give the page that is being built its address, before Panel makes one of its own."""
    document: Any = pn.state.curdoc
    request = document.session_context.request
    query = f"?{request.query}" if request.query else ""
    location = PlainLocation(pathname=request.path, search=query)
    with edit_readonly(location):
        location.href = f"{request.protocol}://{request.host}{request.path}{query}"
    pn.state._locations[document] = location


def open_page(kind: type[Any], service: Any) -> Any:
    """Build the page of a new visitor."""
    location, document = pn.state.location, pn.state.curdoc
    query = (location.search or "") if location is not None else ""
    page = kind(service, query.removeprefix("?"), document)
    pn.state.on_session_destroyed(lambda context: page.leave())
    layout = page.layout()
    page.document = document
    page.opened()
    return layout
