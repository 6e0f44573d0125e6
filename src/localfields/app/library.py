"""The third page: the report of the reproduction, and the stored runs."""

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

from ..errors import InputError, shorten
from ..experiments.texts import texts_of
from .limits import Limits
from .page import TABLE_STYLE, Page, template, text_pane
from .state import page_link, read, to_query

MAX_RUNS = 200  # in the table
MAX_NAME = 80  # characters of a name
ALL_STIMULI = "all stimuli"
REPORT_PATH = "/report"
NO_REPORT = (
    "<h2>Report</h2><p>There is none yet. Make it with <code>localfields reproduce --scale quick"
    "</code> (minutes), or without <code>--scale quick</code> at the paper's settings; then open "
    "this page again.</p>"
)
# A run is described by these columns; the first one links to it.
RUN_COLUMNS = {"": "", "run": "", "stimulus": "", "setting": "", "network": ""}
RUN_COLUMNS |= {"steps": "number", "members": "number", "IPR": "number", "stored (UTC)": ""}

_safe = functools.partial(html.escape, quote=True)


def _table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; columns of numbers are aligned on the right."""
    kinds = {name: RUN_COLUMNS.get(name) or "text" for name in columns}
    head = "".join(f"<th scope='col' class='{kind}'>{name}</th>" for name, kind in kinds.items())
    body = ""
    for row in rows:
        cells = zip(kinds.values(), row, strict=True)
        body += (
            "<tr>" + "".join(f"<td class='{kind}'>{cell}</td>" for kind, cell in cells) + "</tr>"
        )
    return (
        f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        "</div>"
    )


def _details(summary: str, text: str, kind: str) -> str:
    """A short text that can be unfolded."""
    return (
        f"<details><summary class='{kind}'>{_safe(summary)}</summary>"
        f"<span class='small'>{_safe(text)}</span></details>"
    )


# -- the report ----------------------------------------------------------------------------------


def report_html(folder: Path | None) -> str:
    """The report in a folder as part of the page; how to make one where there is none."""
    from ..figures.make import read_records
    from ..figures.report import ledger, questions_of, summary

    figures = {} if folder is None else read_records(folder)
    has_page = folder is not None and (folder / "report.html").is_file()
    if not figures and not has_page:
        return NO_REPORT
    claims, questions = ledger(figures.values()), questions_of(figures.values())
    parts = ["<h2>Report</h2>"]
    if figures:
        parts.append(f"<p>{_safe(summary(claims, questions))}</p>")
    if has_page:
        link = f"<a href='{REPORT_PATH}' target='_blank'>Open the report, with all figures</a>"
        parts.append(f"<p>{link}</p>")
    if claims:
        rows = [
            (
                *map(_safe, (claim.id, claim.statement, claim.published, claim.measured)),
                _details(claim.verdict, claim.reason, _safe(claim.verdict.replace(" ", "-"))),
            )
            for claim in claims
        ]
        parts.append(_table(("", "claim", "published", "here", "verdict"), rows))
    if questions:
        rows = [tuple(map(_safe, (q.id, q.question, q.answer, q.measured))) for q in questions]
        head = f"<summary>{len(rows)} questions of the notes, and beyond the paper</summary>"
        table = _table(("", "question", "answer", "measured"), rows)
        parts.append(f"<details>{head}{table}</details>")
    return "".join(parts)


class ReportFile(RequestHandler):
    """The page of the report: this one file, whatever is asked."""

    def initialize(self, folder: Path | None) -> None:
        """Remember the folder."""
        self.folder = folder

    async def get(self) -> None:
        """Send it."""
        try:
            if self.folder is None:
                raise FileNotFoundError
            path = self.folder / "report.html"
            content = await asyncio.get_running_loop().run_in_executor(None, path.read_bytes)
        except OSError:
            raise HTTPError(404, reason="There is no report") from None
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(content)


def patterns(service: Any) -> list[tuple[str, Any, dict[str, Any]]]:
    """The paths that are answered here, for the server."""
    return [(REPORT_PATH, ReportFile, {"folder": service.report})]


# -- stored runs ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StoredRuns:
    """Stored runs as the page shows them."""

    entries: tuple[Any, ...] = ()  # of the store, newest first
    total: int = 0  # how many pass the filter
    stimuli: tuple[tuple[str, int], ...] = ()  # how many runs there are of each stimulus
    damaged: int = 0  # how many cannot be read
    problem: str = ""  # why there are none


def read_runs(path: Path | None, stimulus: str = ALL_STIMULI) -> StoredRuns:
    """The runs of a store; it takes a while, so do it in a thread."""
    from ..store import Store

    if path is None:
        return StoredRuns(problem="Runs are not kept: the explorer was started without a store.")
    store = Store(path)
    try:
        digests, entries = store.digests(), store.list()
    except (InputError, OSError) as error:
        return StoredRuns(problem=str(error))
    kinds = [_stimulus_name(entry.experiment) for entry in entries]
    chosen = [
        entry for entry, kind in zip(entries, kinds, strict=True) if stimulus in (ALL_STIMULI, kind)
    ]
    newest = tuple(reversed(chosen[-MAX_RUNS:]))
    damaged = max(len(digests) - len(entries), 0)
    return StoredRuns(newest, len(chosen), tuple(sorted(Counter(kinds).items())), damaged)


# A stored experiment may be of another version, so nothing is assumed about its shape.


def _part(plain: Any, name: str) -> dict[str, Any]:
    part = plain.get(name) if isinstance(plain, dict) else None
    return part if isinstance(part, dict) else {"type": part} if isinstance(part, str) else {}


def _type_name(plain: Any) -> str:
    """`nlgp` for a value of type `stimulus/nlgp`."""
    kind = plain.get("type", "?") if isinstance(plain, dict) else plain
    return shorten(str(kind).rpartition("/")[2], MAX_NAME)


def _stimulus_name(plain: dict[str, Any]) -> str:
    stimuli = _part(plain, "task").get("stimuli")
    names = map(_type_name, stimuli[:MAX_NAME] if isinstance(stimuli, list) else [])
    return shorten(" and ".join(dict.fromkeys(names)), MAX_NAME) or "?"


@functools.lru_cache(5000)  # an entry never changes
def link_query(spec: str, limits: Limits) -> tuple[str, str, str]:
    """The setting of a stored run as text, its query on the first page, and why it has none."""
    try:
        texts = texts_of(limits.read(spec))  # rejects what reads files before it is built
        read(texts, limits)
    except InputError as error:
        return "", "", str(error)
    # Of a version with other fields, or made up.
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        return "", "", f"It cannot be read: {shorten(error)}"
    setting = [
        f"{name}={text}" for name, text in texts.items() if name not in RUN_COLUMNS
    ]  # the others have columns of their own
    return " ".join(setting), to_query(texts), ""


def _run_row(entry: Any, limits: Limits, dark: bool) -> tuple[str, ...]:
    """The cells of a run in the order of `RUN_COLUMNS`."""
    plain, metrics = entry.experiment, entry.metrics
    method, digest = _part(plain, "method"), _safe(entry.digest[:12])
    setting, query, problem = link_query(entry.spec, limits)
    link = f"<a href='{_safe(page_link('/', query, dark))}' aria-label='open run {digest}'>open</a>"
    kind, ipr = _type_name(method), metrics.get("ipr")
    if kind == "solution":
        setting = f"theory: {_type_name(_part(method, 'theory'))}"
    numbers = (
        shorten(method.get("steps", ""), MAX_NAME) if kind == "training" else "–",
        str(metrics.get("members", "")),
        f"{ipr:.3f}" if isinstance(ipr, (int, float)) else "–",
    )
    return (
        link if query else _details("not here", problem, "small"),
        f"<code>{digest}</code>",
        _safe(_stimulus_name(plain)),
        f"<span class='small'>{_safe(setting)}</span>",
        _safe(_type_name(_part(plain, "network"))),
        *map(_safe, numbers),
        f"<time>{_safe(str(entry.created)[:16].replace('T', ' '))}</time>",
    )


def runs_html(runs: StoredRuns, limits: Limits, dark: bool) -> str:
    """The runs as a table; all text is escaped."""
    if runs.problem:
        return f"<p>{_safe(runs.problem)}</p>"
    if not runs.total and not runs.damaged:
        return "<p>There are no such runs yet: start one on the first page.</p>"
    text = f"{runs.total} run{'' if runs.total == 1 else 's'}"
    if runs.total > len(runs.entries):
        text = f"The newest {len(runs.entries)} of {text}"
    if runs.damaged:
        text += (
            f"; {runs.damaged} more cannot be read, <code>localfields runs verify</code> names them"
        )
    rows = [_run_row(entry, limits, dark) for entry in runs.entries]
    return f"<p role='status'>{text}.</p>{_table(RUN_COLUMNS, rows)}"


# -- the page ------------------------------------------------------------------------------------


class Library(Page):
    """One visitor's page."""

    def __init__(self, service: Any, query: str, document: Any):
        super().__init__(service, document)
        self.number = 0  # of the last reading of the store: results of older ones are dropped
        wide: Any = {"sizing_mode": "stretch_width", "margin": (4, 8)}
        self.filter = pn.widgets.Select(
            label="stimulus",
            options=[ALL_STIMULI],
            value=ALL_STIMULI,
            description="show the runs of one stimulus only",
            **wide,
        )
        self.filter.param.watch(lambda event: self.load_runs(), "value")
        self.refresh = pn.widgets.Button(
            label="Look again", description="read the store and the report again", **wide
        )
        self.refresh.on_click(lambda event: self.load())
        self.report, self.runs = text_pane(style=TABLE_STYLE), text_pane(style=TABLE_STYLE)
        self.load()

    def load(self) -> None:
        """Read report and store, in a thread."""
        self.report.object = "<h2>Report</h2><p>Reading …</p>"
        work = functools.partial(report_html, self.service.report)
        self.later(work, functools.partial(setattr, self.report, "object"))
        self.load_runs()

    def load_runs(self) -> None:
        """Read the store, in a thread."""
        self.number += 1
        self.runs.object = "<h2>Stored runs</h2><p>Reading …</p>"
        number, stimulus = self.number, self.filter.value

        def work() -> tuple[StoredRuns, str]:
            runs = read_runs(self.service.store, stimulus)
            return runs, runs_html(runs, self.service.limits, self.dark)

        self.later(work, functools.partial(self._runs_loaded, number))

    def _runs_loaded(self, number: int, result: tuple[StoredRuns, str]) -> None:
        if number != self.number:
            return
        runs, text = result
        names = {ALL_STIMULI: ALL_STIMULI}
        names |= {f"{name} ({count})": name for name, count in runs.stimuli}
        if self.filter.options != names:
            self.filter.options = names
        self.runs.object = f"<h2>Stored runs</h2>{text}"

    def layout(self) -> Any:
        """The whole page as a template."""
        about = "<p>Runs that were stored by the explorer, the command line and Python.</p>"
        limit = f"At most {MAX_RUNS} runs are shown; `localfields runs list` shows them all."
        main = (self.report, self.runs, text_pane(f"<p class='limits'>{limit}</p>"))
        return template("/runs", (text_pane(about), self.filter, self.refresh), main)
