"""The third page: the report of the reproduction, and the runs that are stored."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import panel as pn
from tornado.web import HTTPError, RequestHandler

from ..errors import InputError
from ..experiments.texts import texts_of
from .frame import frame, is_dark, text_pane
from .limits import Limits
from .state import read, to_query
from .threads import later

MOST = 200  # runs shown
ALL = "all stimuli"
REPORT = "/report"  # the one address of the report
COMMAND = "localfields reproduce --scale quick"

STYLE = """
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.88em; }
th, td { text-align: left; vertical-align: top; padding: 0.25em 0.7em 0.25em 0; }
tr { border-bottom: 1px solid rgba(128, 128, 128, 0.3); }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
a { color: inherit; }
h2 { font-size: 1.15rem; margin: 0.8em 0 0.2em; }
.small { opacity: 0.75; font-size: 0.92em; }
.reproduced, .differs { font-weight: 600; }
td code { white-space: nowrap; color: inherit; }
time { white-space: nowrap; }
summary { white-space: nowrap; }
"""


# -- the report -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Ledger:
    """What a folder holds of the report.

    Attributes:
        page: Whether there is one to open.
        summary: In a sentence or two; empty where there is no ledger.
        claims: id, statement, published, measured, verdict, reason.
        questions: id, question, answer, measured.
    """

    page: bool = False
    summary: str = ""
    claims: tuple[tuple[str, ...], ...] = ()
    questions: tuple[tuple[str, ...], ...] = ()


def read_ledger(folder: Path | None) -> Ledger:
    """The ledger of a report; an empty one where there is none that can be read."""
    if folder is None:
        return Ledger()
    from ..figures.make import read_made
    from ..figures.report import ledger, questions_of, summary

    made = read_made(folder)
    claims, questions = ledger(made.values()), questions_of(made.values())
    there = (folder / "report.html").is_file()
    if not made:
        return Ledger(there)
    return Ledger(
        there,
        summary(claims, questions),
        tuple(
            (one.id, one.statement, one.published, one.measured, one.verdict, one.reason)
            for one in claims
        ),
        tuple((one.id, one.question, one.answer, one.measured) for one in questions),
    )


def report_html(found: Ledger) -> str:
    """The report as a part of the page."""
    if not found.page and not found.summary:
        words = f"There is none yet. Make it with <code>{COMMAND}</code> (minutes), or without <code>--scale quick</code>"
        return f"<h2>Report</h2><p>{words} at the paper's settings; then open this page again.</p>"
    parts = ["<h2>Report</h2>", f"<p>{html.escape(found.summary)}</p>" if found.summary else ""]
    if found.page:
        parts.append(
            f"<p><a href='{REPORT}' target='_blank'>Open the report, with all figures</a></p>"
        )
    if found.claims:
        rows = [
            (*(html.escape(cell) for cell in one[:4]), _judged(one[4], one[5]))
            for one in found.claims
        ]
        parts.append(_table(("", "claim", "published", "here", "verdict"), rows))
    if found.questions:
        rows = [tuple(html.escape(cell) for cell in one) for one in found.questions]
        head = f"<summary>{len(rows)} questions of the notes, and beyond the paper</summary>"
        parts.append(
            f"<details>{head}{_table(('', 'question', 'answer', 'measured'), rows)}</details>"
        )
    return "".join(parts)


def _judged(verdict: str, reason: str) -> str:
    """A verdict; its reason is told when asked for."""
    kind = html.escape(verdict.replace(" ", "-"), quote=True)
    return (
        f"<details><summary class='{kind}'>{html.escape(verdict)}</summary>"
        f"<span class='small'>{html.escape(reason)}</span></details>"
    )


class ReportFile(RequestHandler):
    """The page of the report: this one file, whatever is asked."""

    def initialize(self, folder: Path | None) -> None:
        """Remember where it is."""
        self.folder = folder

    async def get(self) -> None:
        """Send it."""
        if self.folder is None:
            raise HTTPError(404, reason="There is no report")
        path = self.folder / "report.html"
        try:
            content = await asyncio.get_running_loop().run_in_executor(None, path.read_bytes)
        except OSError:
            raise HTTPError(404, reason="There is no report") from None
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(content)


def patterns(service: Any) -> list[tuple[str, Any, dict[str, Any]]]:
    """For the server: which addresses are answered here."""
    return [(REPORT, ReportFile, {"folder": service.report})]


# -- stored runs ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """One stored run, for a table."""

    digest: str
    stimulus: str
    network: str
    steps: str
    members: str
    ipr: str
    date: str
    setting: str = ""
    query: str = ""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Shelf:
    """Stored runs as the page shows them.

    Attributes:
        rows: Newest first.
        total: How many pass the filter.
        stimuli: How many runs there are of each stimulus.
        damaged: How many cannot be read.
        problem: Why there is nothing; empty when there is.
    """

    rows: tuple[Row, ...] = ()
    total: int = 0
    stimuli: tuple[tuple[str, int], ...] = ()
    damaged: int = 0
    problem: str = ""


def read_shelf(path: Path | None, limits: Limits, stimulus: str = ALL) -> Shelf:
    """The runs of a store; it takes a while, so do it in a thread."""
    from ..store import Store

    if path is None:
        return Shelf(problem="Runs are not kept: the explorer was started without a store.")
    store = Store(path)
    try:
        digests, found = store.digests(), store.list()
    except (InputError, OSError) as error:
        return Shelf(problem=str(error))
    kinds = [_stimulus(one.specification) for one in found]
    chosen = [one for one, kind in zip(found, kinds, strict=True) if stimulus in (ALL, kind)]
    rows = tuple(_row(one, limits) for one in reversed(chosen[-MOST:]))
    counted = tuple(sorted(Counter(kinds).items()))
    return Shelf(rows, len(chosen), counted, max(len(digests) - len(found), 0))


def _row(entry: Any, limits: Limits) -> Row:
    plain, metrics = entry.specification, entry.metrics
    method, network = _inner(plain, "method"), _inner(plain, "network")
    kind = _name(method)
    steps = str(method.get("steps", "")) if kind == "training" else "–"
    ipr = metrics.get("ipr")
    setting, query, why = typed(entry.spec, limits)
    if kind == "solution":
        setting = f"theory: {_name(_inner(method, 'theory'))}"
    return Row(
        entry.digest,
        _stimulus(plain),
        _name(network),
        steps,
        str(metrics.get("members", "")),
        f"{ipr:.3f}" if isinstance(ipr, (int, float)) else "–",
        str(entry.created)[:16].replace("T", " "),
        setting,
        query,
        why,
    )


def _inner(plain: Any, name: str) -> dict[str, Any]:
    found = plain.get(name) if isinstance(plain, dict) else None
    return found if isinstance(found, dict) else {"type": found} if isinstance(found, str) else {}


def _name(plain: dict[str, Any]) -> str:
    """`nlgp` of a value of type `stimulus/nlgp`."""
    return str(plain.get("type", "?")).rpartition("/")[2]


def _stimulus(plain: dict[str, Any]) -> str:
    stimuli = _inner(plain, "task").get("stimuli")
    names = (
        [_name(one) if isinstance(one, dict) else str(one) for one in stimuli]
        if isinstance(stimuli, list)
        else []
    )
    return " and ".join(dict.fromkeys(names)) or "?"


@functools.lru_cache(5000)  # an entry never changes
def typed(spec: str, limits: Limits) -> tuple[str, str, str]:
    """The setting of a stored run in words, its address on the first page, and why it has none."""
    try:
        texts = texts_of(
            limits.read(spec)
        )  # refuses what reads files before anything is made of it
        read(texts, limits)
    except InputError as error:
        return "", "", str(error)
    except (ValueError, TypeError, KeyError) as error:  # of a version that knew other fields
        return "", "", f"It cannot be read: {error}"
    own = ("stimulus", "network", "steps", "members")  # they have columns of their own
    return (
        " ".join(f"{name}={text}" for name, text in texts.items() if name not in own),
        to_query(texts),
        "",
    )


def shelf_html(found: Shelf, dark: bool) -> str:
    """The runs as a table; all words are escaped."""
    if found.problem:
        return f"<p>{html.escape(found.problem)}</p>"
    if not found.total:
        return "<p>There are no such runs yet: start one on the first page.</p>"
    words = f"{found.total} run{'s' if found.total > 1 else ''}"
    if found.total > len(found.rows):
        words = f"The newest {len(found.rows)} of {words}"
    if found.damaged:
        words += f"; {found.damaged} more cannot be read, <code>localfields runs verify</code> names them"
    heads = ("", "run", "stimulus", "setting", "network", "steps", "members", "IPR", "stored (UTC)")
    rows = [_cells(one, dark) for one in found.rows]
    return f"<p role='status'>{words}.</p>{_table(heads, rows, (5, 6, 7))}"


def _cells(row: Row, dark: bool) -> tuple[str, ...]:
    safe = functools.partial(html.escape, quote=True)
    address = safe(f"/?{row.query}{'&theme=dark' if dark else ''}")
    link = f"<a href='{address}' aria-label='open run {safe(row.digest[:12])}'>open</a>"
    if not row.query:
        link = f"<details><summary class='small'>not here</summary><span class='small'>{safe(row.note)}</span></details>"
    rest = (row.network, row.steps, row.members, row.ipr)
    names = (
        f"<code>{safe(row.digest[:12])}</code>",
        safe(row.stimulus),
        f"<span class='small'>{safe(row.setting)}</span>",
    )
    return link, *names, *map(safe, rest), f"<time>{safe(row.date)}</time>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """HTML of cells that are HTML already."""
    kinds = ["number" if place in numbers else "text" for place in range(len(heads))]
    top = "".join(
        f"<th scope='col' class='{kind}'>{head}</th>"
        for kind, head in zip(kinds, heads, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td class='{kind}'>{cell}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


# -- the page ---------------------------------------------------------------------------------------------------


class Library:
    """One visitor's page."""

    def __init__(self, service: Any, document: Any):
        self.service, self.document = service, document
        self.dark = is_dark()
        self.number = 0  # of the question to the store: answers to older ones are dropped
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (4, 8)}
        self.filter = pn.widgets.Select(
            label="stimulus",
            options=[ALL],
            value=ALL,
            description="show the runs of one stimulus alone",
            **wide,
        )
        self.filter.param.watch(lambda event: self.ask(), "value")
        self.again = pn.widgets.Button(
            label="Look again", description="read the store and the report anew", **wide
        )
        self.again.on_click(lambda event: self.ask_all())
        self.report = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=(0, 8), stylesheets=[STYLE]
        )
        self.runs = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=(0, 8), stylesheets=[STYLE]
        )
        self.ask_all()

    def ask_all(self) -> None:
        """Read report and store, in a thread."""
        self.report.object = "<h2>Report</h2><p>Reading …</p>"
        later(self.document, functools.partial(read_ledger, self.service.report), self._take_ledger)
        self.ask()

    def ask(self) -> None:
        """Read the store, in a thread."""
        self.number += 1
        self.runs.object = "<h2>Stored runs</h2><p>Reading …</p>"
        work = functools.partial(
            read_shelf, self.service.store, self.service.limits, self.filter.value
        )
        later(self.document, work, functools.partial(self._take_shelf, self.number))

    def _take_ledger(self, found: Ledger) -> None:
        self.report.object = report_html(found)

    def _take_shelf(self, number: int, found: Shelf) -> None:
        if number != self.number:
            return
        names = {ALL: ALL} | {f"{name} ({count})": name for name, count in found.stimuli}
        if self.filter.options != names:
            self.filter.options = names
        self.runs.object = "<h2>Stored runs</h2>" + shelf_html(found, self.dark)

    def layout(self) -> Any:
        """The whole page as a template."""
        sidebar = pn.Column(
            text_pane("<p>Runs that were stored by the explorer, the command line and Python.</p>"),
            self.filter,
            self.again,
            sizing_mode="stretch_width",
            margin=0,
        )
        limits = html.escape(
            f"At most {MOST} runs are shown; `localfields runs list` shows them all."
        )
        main = [self.report, self.runs, text_pane(f"<p class='limits'>{limits}</p>")]
        return frame("runs", sidebar, pn.Column(*main, sizing_mode="stretch_width", margin=0))


def page(service: Any) -> Any:
    """A new visitor's page."""
    return Library(service, pn.state.curdoc).layout()
