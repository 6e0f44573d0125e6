"""What all pages have in common: header, links between them, colors, light and dark."""

from __future__ import annotations

import html
from typing import Any

import panel as pn

PAGES = {
    "explore": ("/", "Explore"),
    "phase": ("/phase", "Phase diagram"),
    "runs": ("/runs", "Report and runs"),
}

STYLE = """
:root { --edge: rgba(128, 128, 128, 0.35); }
#header { background: #003f5c !important; }
.nav-pages a { color: #fff; margin-right: 1.2em; text-decoration: none; opacity: 0.85; }
.nav-pages a.here { opacity: 1; border-bottom: 2px solid #E69F00; }
.nav-pages a:focus-visible { outline: 2px solid #E69F00; }
#content { max-width: 1500px; }
@media (max-width: 700px) {  /* on a phone pictures first, controls below, all of them as wide as the page */
  #content { display: flex; flex-direction: column; flex-wrap: nowrap; overflow: auto !important; margin: 0; }
  #main { order: 1; flex: none; width: 100%; height: auto; overflow: visible; padding: 0 8px; }
  #sidebar { order: 2; flex: none; height: auto; overflow: visible; border: 0; }
  :root { --sidebar-width: 100vw !important; }
  #header .app-header, #header .pn-busy-container { display: none; }
  #header-items { margin-left: 0; }
  .nav-pages a { margin-right: 0.7em; font-size: 0.85em; }
}
"""
INNER = """
h3 { font-size: 1rem; margin: 0.4em 0 0.1em; border-bottom: 1px solid rgba(128, 128, 128, 0.35); }
.note { border-left: 5px solid #999; padding: 0.35em 0.7em; border-radius: 3px; background: rgba(128, 128, 128, 0.12); }
.note.localized { border-color: #D55E00; }
.note.oscillatory { border-color: #0072B2; }
.note.undecided { border-color: #999; }
.note.mistake { border-color: #CC79A7; background: rgba(204, 121, 167, 0.16); }
.note b { margin-right: 0.5em; }
.key { font-size: 0.8em; margin: 0.5em 0 0; }
.limits { font-size: 0.8em; opacity: 0.75; }
"""
GRID = """
:host { display: grid !important; grid-template-columns: repeat(auto-fit, minmax(min(280px, 100%), 1fr)); }
"""

# The same address with the other theme; the page is made anew.
TURN = """
const address = new URL(window.location.href);
address.searchParams.set("theme", address.searchParams.get("theme") === "dark" ? "default" : "dark");
window.location.href = address.href;
"""


# Bokeh writes the style of everything it draws at every drawing, three of four times as it was, and asks for computed
# styles in between, for which a browser then goes through all of them: unchanged ones are not written.
STEADY = """
const {get, set} = Object.getOwnPropertyDescriptor(Node.prototype, "textContent");
const steady = function(text) { if (get.call(this) !== text) set.call(this, text); };
Object.defineProperty(HTMLStyleElement.prototype, "textContent", {get, set: steady, configurable: true});
"""


def note(kind: str, lead: str, more: str = "") -> str:
    """A sentence with a colored edge, for screen readers too; all words are escaped."""
    lead, more = html.escape(lead), html.escape(more)
    return f"<div class='note {html.escape(kind)}' role='status'><b>{lead}</b> {more}</div>"


def grid(view: Any) -> Any:
    """The figures of a view side by side, as many as there is room for, under what their colors mean."""
    cells = [pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=2) for plot in view.plots]
    rows = pn.Column(*cells, sizing_mode="stretch_width", stylesheets=[GRID], margin=0)
    return pn.Column(
        text_pane(f"<p class='key'>{view.key}</p>"), rows, sizing_mode="stretch_width", margin=0
    )


def text_pane(text: str = "", **more: Any) -> pn.pane.HTML:
    """HTML in the style of the pages."""
    return pn.pane.HTML(
        text, sizing_mode="stretch_width", margin=(0, 8), stylesheets=[INNER], **more
    )


def frame(here: str, sidebar: Any, main: Any) -> Any:
    """A page of the explorer."""
    dark = is_dark()
    theme = "?theme=dark" if dark else ""
    links = "".join(
        f"<a href='{address}{theme}'{' class=here aria-current=page' if name == here else ''}>{words}</a>"
        for name, (address, words) in PAGES.items()
    )
    turn = pn.widgets.Button(label="Light" if dark else "Dark", margin=(4, 16))
    turn.js_on_click(code=TURN)
    nav = pn.pane.HTML(
        f"<nav class='nav-pages'>{links}</nav><script>{{{STEADY}}}</script>",
        stylesheets=[STYLE],
        margin=(8, 16),
    )
    template = pn.template.BootstrapTemplate(
        title="localfields",
        header=[pn.Row(nav, turn)],
        sidebar=[sidebar],
        main=[main],
        sidebar_width=300,
        theme="dark" if dark else "default",
        meta_viewport="width=device-width, initial-scale=1",
    )
    template.config.raw_css.append(STYLE)
    return template


def is_dark() -> bool:
    """Whether the address asks for a dark page."""
    return (pn.state.session_args or {}).get("theme") == [b"dark"]
