"""The report: one self-contained page, and the same as Markdown and JSON."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import platform
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from .._files import publish
from .base import Claim, PaperFigure

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>localfields: published against measured</title>
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
th, td {{ text-align: left; vertical-align: top; padding: .5rem .7rem; border-bottom: 1px solid var(--line); }}
th {{ font-weight: 500; color: var(--soft); }}
td.id {{ color: var(--soft); }} td.statement {{ width: 25%; }}
td.number {{ white-space: nowrap; font-variant-numeric: tabular-nums; }}
.reproduced {{ color: var(--ok); font-weight: 600; }} .differs {{ color: var(--off); font-weight: 600; }}
figure {{ margin: 0; }} .scroll {{ overflow-x: auto; border-radius: 4px; background: #fff; }}
img {{ display: block; width: 100%; height: auto; }}
figcaption {{ margin-top: .6rem; }} figcaption, .small {{ font-size: .9rem; color: var(--soft); }}
@media (max-width: 40rem) {{
  thead {{ display: none; }} tr {{ display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }}
  td {{ display: block; border: 0; padding: .1rem 0; }}
  td.id, td.statement {{ display: inline; font-weight: 600; }} td.id {{ padding-right: .4em; }}
  td[data-name]::before {{ content: attr(data-name) ": "; color: var(--soft); font-weight: 400; }}
  img {{ width: 44rem; }}
}}
</style></head><body>
<h1>Published against measured</h1>
<p>{summary}</p>
<table><thead><tr>{heads}</tr></thead><tbody>
{rows}
</tbody></table>
{figures}
<h2>How this was made</h2>
<p class="small">{made}</p>
</body></html>
"""

HEADS = {"id": "", "statement": "claim", "published": "published", "measured": "here", "verdict": "verdict"}


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure after drawing: its files and its time."""

    figure: PaperFigure
    png: Path
    seconds: float


def write_report(folder: Path, drawn: Sequence[Drawn], claims: Sequence[Claim]) -> None:
    """Write claims.json, report.md and report.html, each whole or not at all."""
    ledger = json.dumps([dataclasses.asdict(claim) for claim in claims], indent=2, ensure_ascii=False) + "\n"
    publish(folder / "claims.json", lambda path: path.write_text(ledger, encoding="utf-8"))
    publish(folder / "report.md", lambda path: path.write_text(_markdown(drawn, claims), encoding="utf-8"))
    publish(folder / "report.html", lambda path: path.write_text(_page(drawn, claims), encoding="utf-8"))


def summary(claims: Sequence[Claim]) -> str:
    """How many claims are reproduced, in a sentence."""
    good = sum(claim.verdict == "reproduced" for claim in claims)
    return f"{good} of {len(claims)} published claims are reproduced; the reason is given for each of the others."


def _made(drawn: Sequence[Drawn]) -> str:
    import jax

    seconds = ", ".join(f"{one.figure.name} {one.seconds:.1f} s" for one in drawn)
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"localfields {__version__}, jax {jax.__version__}, {jax.default_backend()}, {machine}. Drawn in: {seconds}."


def _page(drawn: Sequence[Drawn], claims: Sequence[Claim]) -> str:
    def row(claim: Claim) -> str:
        cells = []
        for name, head in HEADS.items():
            text = html.escape(getattr(claim, name))
            if name == "verdict":
                reason = f'<br><span class="small">{html.escape(claim.reason)}</span>'
                text = f'<span class="{claim.verdict.replace(" ", "-")}">{text}</span>{reason}'
            label = f' data-name="{head}"' if head and name != "statement" else ""
            kind = "number" if name in ("published", "measured") else name
            cells.append(f'<td class="{kind}"{label}>{text}</td>')
        return f'<tr id="{claim.id}">{"".join(cells)}</tr>'

    def block(one: Drawn) -> str:
        data = base64.b64encode(one.png.read_bytes()).decode()
        caption = f"{html.escape(one.figure.caption)} <br><b>Setting.</b> {html.escape(one.figure.setting)}"
        title = html.escape(one.figure.title)
        image = f'<img alt="{title}" src="data:image/png;base64,{data}">'
        # On a phone the picture keeps a size at which it can be read, and is moved inside its frame.
        frame = f'<div class="scroll" tabindex="0">{image}</div>'
        return f"<h2>{title}</h2><figure>{frame}<figcaption>{caption}</figcaption></figure>"

    return PAGE.format(
        summary=html.escape(summary(claims)),
        heads="".join(f"<th>{head}</th>" for head in HEADS.values()),
        rows="\n".join(map(row, claims)),
        figures="\n".join(map(block, drawn)),
        made=html.escape(_made(drawn)),
    )


def _markdown(drawn: Sequence[Drawn], claims: Sequence[Claim]) -> str:
    lines = ["# Published against measured", "", summary(claims), ""]
    lines += ["| | claim | published | here | verdict | why |", "|---|---|---|---|---|---|"]
    for claim in claims:
        cells = (claim.id, claim.statement, claim.published, claim.measured, claim.verdict, claim.reason)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for one in drawn:
        lines += ["", f"## {one.figure.title}", "", f"![{one.figure.title}]({one.png.name})", "", one.figure.caption]
        lines += ["", f"Setting: {one.figure.setting}"]
    return "\n".join([*lines, "", _made(drawn), ""])
