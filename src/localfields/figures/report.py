"""The report: one self-contained page, and the same as Markdown and JSON."""

from __future__ import annotations

import base64
import html
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from .._files import publish
from .base import GROUPS, Claim, Question, printed, verdict
from .make import FigureRecord, write_records

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>localfields: {head}</title>
<style>
:root {{ color-scheme: light; --page: #fff; --ink: #1b1d21; --soft: #50555e; --line: #d9dce1;
  --ok: #00704f; --off: #a84400; }}
@media (prefers-color-scheme: dark) {{
  :root {{ color-scheme: dark; --page: #15171b; --ink: #e9ebee; --soft: #abb1bb; --line: #33373e;
    --ok: #4fd1ab; --off: #ff9d5c; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1.2rem;
  background: var(--page); color: var(--ink); }}
h1 {{ font-size: 1.5rem; line-height: 1.25; }} h2 {{ font-size: 1.2rem; margin-top: 2.2rem; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .5rem .7rem;
  border-bottom: 1px solid var(--line); }}
th {{ font-weight: 500; color: var(--soft); }}
td.id {{ color: var(--soft); }} td.statement {{ width: 20%; }}
td.answer {{ width: 36%; }} td.long {{ overflow-wrap: anywhere; }}
td.number {{ width: 17%; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }}
.reproduced {{ color: var(--ok); font-weight: 600; }}
.differs {{ color: var(--off); font-weight: 600; }}
figure {{ margin: 0; }} .scroll {{ overflow-x: auto; border-radius: 4px; background: #fff; }}
img {{ display: block; width: 100%; height: auto; }}
figcaption {{ margin-top: .6rem; }} figcaption, .small {{ font-size: .9rem; color: var(--soft); }}
@media (max-width: 40rem) {{
  thead {{ display: none; }}
  tr {{ display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }}
  td, td.number, td.statement, td.answer {{ display: block; width: auto; border: 0;
    padding: .1rem 0; }}
  td.id, td.statement {{ display: inline; font-weight: 600; }} td.id {{ padding-right: .4em; }}
  td[data-name]::before {{ content: attr(data-name) ": "; color: var(--soft); font-weight: 400; }}
  img {{ width: 44rem; }}
}}
</style></head><body>
<h1>{head}</h1>
<p>{summary}</p>
<p class="small">{contents}</p>
{body}
<h2 id="made">How this was made</h2>
<table><thead><tr>{timed}</tr></thead><tbody>
{times}
</tbody></table>
<p class="small">{made}</p>
</body></html>
"""

TIMES = ("figure", "scale", "runs", "computed in", "drawn in", "this time")
HEADS = {
    "id": "",
    "statement": "claim",
    "published": "published",
    "measured": "here",
    "verdict": "verdict",
}
ASKED = {"id": "", "question": "question", "answer": "answer", "measured": "measured"}
PUBLISHED, NOTES, EXTRA = (
    "Published against measured",
    "Questions of the working notes",
    "Beyond the paper",
)


def write_report(folder: Path, records: Mapping[str, FigureRecord]) -> list[Claim]:
    """Write claims.json, report.md and report.html, each whole or not at all.

    Returns:
        The whole ledger.
    """
    claims = ledger(records.values())
    write_records(folder, records)
    publish(
        folder / "report.md",
        lambda path: path.write_text(_markdown(records, claims), encoding="utf-8"),
    )
    publish(
        folder / "report.html",
        lambda path: path.write_text(_page(folder, records, claims), encoding="utf-8"),
    )
    return claims


def questions_of(records: Iterable[FigureRecord]) -> list[Question]:
    """All questions, with answers."""
    return [question for record in records for question in record.questions]


def ledger(records: Iterable[FigureRecord]) -> list[Claim]:
    """All claims, and that on time, which is of all the paper's figures together."""
    records = [record for record in records if record.group == "paper"]
    return [claim for record in records for claim in record.claims] + _speed(records)


def _speed(records: Sequence[FigureRecord]) -> list[Claim]:
    """T1: what a single run takes, from the seconds that stored runs took."""
    timed = [record for record in records if record.slowest[1]]
    if not timed:
        return []
    slowest = max(timed, key=lambda record: record.slowest[0])
    seconds, members = slowest.slowest
    total = sum(record.elapsed for record in records)
    faster = "Faster: " if seconds < 600 else ""
    together = "a single run" if members == 1 else f"{members} runs together"
    reason = (
        f"{faster}{slowest.name} takes {printed(seconds, 0)} s on {_cores()}, compiling included, "
        f"and all figures together took {printed(total / 60, 1)} minutes this time. Machines "
        "differ, and so may the estimator of the gradient, which each caption names."
    )
    at_paper_scale = all(record.scale == "paper" for record in timed)
    return [
        Claim(
            "T1",
            "What any single run takes on a CPU",
            "10–60 minutes",
            f"at most {printed(seconds / 60, 1)} minutes, of {together}",
            verdict(600 <= seconds <= 3600) if at_paper_scale else "not comparable",
            reason if at_paper_scale else "Some runs are smaller than the paper's.",
            "seconds in the manifests of the stored runs",
        )
    ]


def summary(claims: Sequence[Claim], questions: Sequence[Question] = ()) -> str:
    """How many published claims are reproduced and questions answered, in words."""
    published = [claim for claim in claims if not claim.published.startswith("not published")]
    good = sum(claim.verdict == "reproduced" for claim in published)
    sentences = []
    if published or not questions:
        sentences.append(
            f"{good} of {len(published)} published claims are reproduced; the reason is given for "
            "the others."
        )
    noted = sum(question.source.startswith("note") for question in questions)
    if noted:
        are = (
            "questions and statements of the working notes are"
            if noted > 1
            else "question of the notes is"
        )
        sentences.append(f"{noted} {are} answered.")
    if own := len(questions) - noted:
        sentences.append(f"{own} beyond the paper {'are' if own > 1 else 'is'} answered.")
    return " ".join(sentences)


def _cores() -> str:
    count = os.cpu_count() or 1
    return f"{count} core{'s' if count > 1 else ''}"


def _versions() -> str:
    import jax

    return (
        f"localfields {__version__}, jax {jax.__version__}, {jax.default_backend()}, "
        f"{platform.system()} {platform.machine()} with {_cores()}, Python "
        f"{platform.python_version()}. Runs share the cores: seconds of computing are summed over "
        "runs, and more than those that went by."
    )


def _page(folder: Path, records: Mapping[str, FigureRecord], claims: Sequence[Claim]) -> str:
    def claim_cell(claim: Claim, name: str) -> str:
        text = html.escape(getattr(claim, name))
        if name != "verdict":
            return text
        reason = f'<br><span class="small">{html.escape(claim.reason)}</span>'
        return f'<span class="{claim.verdict.replace(" ", "-")}">{text}</span>{reason}'

    def question_cell(question: Question, name: str) -> str:
        small = {"question": question.source, "measured": question.how}.get(name)
        return html.escape(getattr(question, name)) + (
            f'<br><span class="small">{html.escape(small)}</span>' if small else ""
        )

    def row(entry: Any, heads: Mapping[str, str], cell: Callable[[Any, str], str]) -> str:
        cells = []
        for name, head in heads.items():
            title = name in ("statement", "question")
            label = f' data-name="{head}"' if head and not title else ""
            kind = "number" if name in ("published", "measured") else "statement" if title else name
            kind = "long" if heads is ASKED and kind == "number" else kind
            cells.append(f'<td class="{kind}"{label}>{cell(entry, name)}</td>')
        return f'<tr id="{entry.id}">{"".join(cells)}</tr>'

    def table(
        rows: Sequence[Any], heads: Mapping[str, str], cell: Callable[[Any, str], str]
    ) -> str:
        top = "".join(f"<th>{head}</th>" for head in heads.values())
        body = "\n".join(row(entry, heads, cell) for entry in rows)
        return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table>"

    def block(figure: FigureRecord) -> str:
        data = base64.b64encode((folder / f"{figure.stem}.png").read_bytes()).decode()
        caption = (
            f"{html.escape(figure.caption)} <br><b>Setting.</b> {html.escape(_setting(figure))}"
        )
        title = html.escape(figure.title)
        image = f'<img alt="{title}" src="data:image/png;base64,{data}">'
        # On a phone the picture keeps a size at which it can be read, and scrolls in its frame.
        frame = f'<div class="scroll" tabindex="0">{image}</div>'
        markup = f"<figure>{frame}<figcaption>{caption}</figcaption></figure>"
        return f'<h2 id="{figure.stem}">{title}</h2>{markup}'

    def times(figure: FigureRecord) -> str:
        values = figure.name, figure.scale, str(len(figure.runs)), *_seconds(figure)
        cells = (
            f'<td data-name="{name}">{value}</td>'
            for name, value in zip(TIMES, values, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    papers, asked = _sections(records)
    body = [table(claims, HEADS, claim_cell), *map(block, papers)] if papers else []
    for head, figures in asked.items():
        body += [f'<h2 id="{figures[0].group}">{head}</h2>'] * bool(body)
        body += [table(questions_of(figures), ASKED, question_cell), *map(block, figures)]
    return PAGE.format(
        head=_head(papers, asked),
        summary=html.escape(summary(claims, questions_of(records.values()))),
        contents=" · ".join(
            f'<a href="#{figure.stem}">{html.escape(figure.title)}</a>'
            for figure in records.values()
        ),
        body="\n".join(body),
        timed="".join(f"<th>{head}</th>" for head in TIMES),
        times="\n".join(map(times, records.values())),
        made=html.escape(_versions()),
    )


def _sections(
    records: Mapping[str, FigureRecord],
) -> tuple[list[FigureRecord], dict[str, list[FigureRecord]]]:
    """The paper's figures, and those with questions by their headings: the notes' and our own."""
    groups = {
        group: [record for record in records.values() if record.group == group] for group in GROUPS
    }
    asked = {NOTES: groups["notes"], EXTRA: groups["extra"]}
    return groups["paper"], {head: figures for head, figures in asked.items() if figures}


def _head(papers: Sequence[FigureRecord], asked: Mapping[str, Any]) -> str:
    return PUBLISHED if papers or not asked else next(iter(asked))


def _setting(record: FigureRecord) -> str:
    whose = {"paper": "the paper's", "notes": "the note's", "extra": "ours"}[record.group]
    return (
        record.setting
        if record.scale == "paper"
        else f"{record.setting} Smaller than {whose}: scale {record.scale}."
    )


def _markdown(records: Mapping[str, FigureRecord], claims: Sequence[Claim]) -> str:
    papers, asked = _sections(records)
    lines = [f"# {_head(papers, asked)}", "", summary(claims, questions_of(records.values()))]
    if papers:
        rows = (
            (row.id, row.statement, row.published, row.measured, row.verdict, row.reason)
            for row in claims
        )
        lines += [
            "",
            *_table(("", "claim", "published", "here", "verdict", "why"), rows),
            *_blocks(papers),
        ]
    for head, figures in asked.items():
        lines += ["", f"## {head}"] * (head != _head(papers, asked))
        questions = questions_of(figures)
        rows = (
            (row.id, row.question, row.source, row.answer, row.measured, row.how)
            for row in questions
        )
        lines += [
            "",
            *_table(("", "question", "where", "answer", "measured", "how"), rows),
            *_blocks(figures),
        ]
    rows = ((row.name, row.scale, str(len(row.runs)), *_seconds(row)) for row in records.values())
    lines += ["", "## How this was made", "", *_table(TIMES, rows)]
    return "\n".join([*lines, "", _versions(), ""])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return lines + [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    ]


def _blocks(records: Sequence[FigureRecord]) -> list[str]:
    lines = []
    for record in records:
        lines += [
            "",
            f"## {record.title}",
            "",
            f"![{record.title}]({record.stem}.png)",
            "",
            record.caption,
        ]
        lines += ["", f"Setting: {_setting(record)}"]
    return lines


def _seconds(record: FigureRecord) -> tuple[str, ...]:
    return tuple(f"{value:.1f} s" for value in (record.computed, record.drawn, record.elapsed))
