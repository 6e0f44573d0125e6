"""The report: one self-contained page, and the same as Markdown and JSON."""

from __future__ import annotations

import base64
import html
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .. import __version__
from .._files import publish
from .base import Claim, printed, verdict
from .make import Made, write_made

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
td.id {{ color: var(--soft); }} td.statement {{ width: 20%; }}
td.number {{ width: 17%; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }}
.reproduced {{ color: var(--ok); font-weight: 600; }} .differs {{ color: var(--off); font-weight: 600; }}
figure {{ margin: 0; }} .scroll {{ overflow-x: auto; border-radius: 4px; background: #fff; }}
img {{ display: block; width: 100%; height: auto; }}
figcaption {{ margin-top: .6rem; }} figcaption, .small {{ font-size: .9rem; color: var(--soft); }}
@media (max-width: 40rem) {{
  thead {{ display: none; }} tr {{ display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }}
  td, td.number, td.statement {{ display: block; width: auto; border: 0; padding: .1rem 0; }}
  td.id, td.statement {{ display: inline; font-weight: 600; }} td.id {{ padding-right: .4em; }}
  td[data-name]::before {{ content: attr(data-name) ": "; color: var(--soft); font-weight: 400; }}
  img {{ width: 44rem; }}
}}
</style></head><body>
<h1>Published against measured</h1>
<p>{summary}</p>
<p class="small">{contents}</p>
<table><thead><tr>{heads}</tr></thead><tbody>
{rows}
</tbody></table>
{figures}
<h2 id="made">How this was made</h2>
<table><thead><tr>{timed}</tr></thead><tbody>
{times}
</tbody></table>
<p class="small">{made}</p>
</body></html>
"""

TIMES = ("figure", "scale", "runs", "computed in", "drawn in", "this time")
HEADS = {"id": "", "statement": "claim", "published": "published", "measured": "here", "verdict": "verdict"}


def write_report(folder: Path, made: Mapping[str, Made]) -> list[Claim]:
    """Write claims.json, report.md and report.html, each whole or not at all.

    Returns:
        The whole ledger.
    """
    claims = ledger(made.values())
    write_made(folder, made)
    publish(folder / "report.md", lambda path: path.write_text(_markdown(made, claims), encoding="utf-8"))
    publish(folder / "report.html", lambda path: path.write_text(_page(folder, made, claims), encoding="utf-8"))
    return claims


def ledger(made: Iterable[Made]) -> list[Claim]:
    """All claims, and that on time, which is of all figures together."""
    made = list(made)
    return [claim for one in made for claim in one.claims] + _speed(made)


def _speed(made: Sequence[Made]) -> list[Claim]:
    """T1: what a single run takes, from the seconds that stored runs took."""
    timed = [one for one in made if one.slowest[1]]
    if not timed:
        return []
    slowest = max(timed, key=lambda one: one.slowest[0])
    seconds, members = slowest.slowest
    total = sum(one.elapsed for one in made)
    faster = "Faster: " if seconds < 600 else ""
    together = "a single run" if members == 1 else f"{members} runs together"
    reason = (
        f"{faster}{slowest.name} takes {printed(seconds, 0)} s on {_cores()}, compiling included, and all figures "
        f"together took {printed(total / 60, 1)} minutes this time. Machines differ, and so may the estimator of the "
        "gradient, which each caption names."
    )
    whole = all(one.scale == "paper" for one in timed)
    return [
        Claim(
            "T1",
            "What any single run takes on a CPU",
            "10–60 minutes",
            f"at most {printed(seconds / 60, 1)} minutes, of {together}",
            verdict(600 <= seconds <= 3600) if whole else "not comparable",
            reason if whole else "Some runs are smaller than the paper's.",
            "seconds in the manifests of the stored runs",
        )
    ]


def summary(claims: Sequence[Claim]) -> str:
    """How many claims are reproduced, in a sentence; rows of our own do not count."""
    published = [claim for claim in claims if not claim.published.startswith("not published")]
    good = sum(claim.verdict == "reproduced" for claim in published)
    return f"{good} of {len(published)} published claims are reproduced; the reason is given for each of the others."


def _cores() -> str:
    count = os.cpu_count() or 1
    return f"{count} core{'s' if count > 1 else ''}"


def _made() -> str:
    import jax

    machine = f"{platform.system()} {platform.machine()} with {_cores()}, Python {platform.python_version()}"
    how = "Runs share the cores: seconds of computing are summed over runs, and more than those that went by."
    return f"localfields {__version__}, jax {jax.__version__}, {jax.default_backend()}, {machine}. {how}"


def _page(folder: Path, made: Mapping[str, Made], claims: Sequence[Claim]) -> str:
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

    def block(one: Made) -> str:
        data = base64.b64encode((folder / f"{one.name}.png").read_bytes()).decode()
        caption = f"{html.escape(one.caption)} <br><b>Setting.</b> {html.escape(_setting(one))}"
        title = html.escape(one.title)
        image = f'<img alt="{title}" src="data:image/png;base64,{data}">'
        # On a phone the picture keeps a size at which it can be read, and is moved inside its frame.
        frame = f'<div class="scroll" tabindex="0">{image}</div>'
        return f'<h2 id="{one.name}">{title}</h2><figure>{frame}<figcaption>{caption}</figcaption></figure>'

    def times(one: Made) -> str:
        seconds = (f"{value:.1f} s" for value in (one.computed, one.drawn, one.elapsed))
        values = one.name, one.scale, str(len(one.runs)), *seconds
        cells = (f'<td data-name="{name}">{value}</td>' for name, value in zip(TIMES, values, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    return PAGE.format(
        summary=html.escape(summary(claims)),
        contents=" · ".join(f'<a href="#{one.name}">{html.escape(one.title)}</a>' for one in made.values()),
        heads="".join(f"<th>{head}</th>" for head in HEADS.values()),
        rows="\n".join(map(row, claims)),
        figures="\n".join(map(block, made.values())),
        timed="".join(f"<th>{head}</th>" for head in TIMES),
        times="\n".join(map(times, made.values())),
        made=html.escape(_made()),
    )


def _setting(one: Made) -> str:
    return one.setting if one.scale == "paper" else f"{one.setting} Smaller than the paper's: scale {one.scale}."


def _markdown(made: Mapping[str, Made], claims: Sequence[Claim]) -> str:
    lines = ["# Published against measured", "", summary(claims), ""]
    lines += ["| | claim | published | here | verdict | why |", "|---|---|---|---|---|---|"]
    for claim in claims:
        cells = (claim.id, claim.statement, claim.published, claim.measured, claim.verdict, claim.reason)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for one in made.values():
        lines += ["", f"## {one.title}", "", f"![{one.title}]({one.name}.png)", "", one.caption]
        lines += ["", f"Setting: {_setting(one)}"]
    lines += [
        "",
        "## How this was made",
        "",
        "| figure | scale | runs | computed in | drawn in |",
        "|---|---|---|---|---|",
    ]
    for one in made.values():
        seconds = " | ".join(f"{value:.1f} s" for value in (one.computed, one.drawn, one.elapsed))
        lines.append(f"| {one.name} | {one.scale} | {len(one.runs)} | {seconds} |")
    return "\n".join([*lines, "", _made(), ""])
