"""A prediction as one page of HTML that needs no other file."""

from __future__ import annotations

import base64
import html
import io

from ..theory.predict import Prediction
from ._prediction import prediction as draw_prediction
from ._prediction import verdict_of
from ._style import save_picture, with_minus

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>localfields: {verdict}</title>
<style>
:root {{ color-scheme: light; --page: #fff; --ink: #1b1d21; --soft: #50555e; --line: #d9dce1; }}
@media (prefers-color-scheme: dark) {{
  :root {{ color-scheme: dark; --page: #15171b; --ink: #e9ebee; --soft: #abb1bb; --line: #33373e; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1.2rem;
  background: var(--page); color: var(--ink); }}
h1 {{ font-size: 1.5rem; line-height: 1.25; }} h1 strong {{ display: block; font-size: 1.9rem; }}
h1 strong::first-letter {{ text-transform: uppercase; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; margin-top: 1rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .35rem .7rem;
  border-bottom: 1px solid var(--line); }}
th {{ font-weight: 500; color: var(--soft); width: 11rem; }} td {{ overflow-wrap: anywhere; }}
tr.head th, tr.head td {{ font-weight: 600; color: var(--ink); padding-top: 1rem; }}
.scroll {{ overflow-x: auto; border-radius: 4px; background: #fff; }}
img {{ display: block; width: 100%; min-width: 44rem; height: auto; }}
.small {{ font-size: .9rem; color: var(--soft); overflow-wrap: anywhere; }}
@media (max-width: 40rem) {{ th {{ width: 6rem; }} th, td {{ padding: .35rem .4rem; }} }}
</style></head><body>
<h1>{question} <strong>{verdict}</strong></h1>
<p>{reason}</p>
{advice}
<div class="scroll"><img alt="{alt}" src="data:image/png;base64,{picture}"></div>
<table><tbody>
{rows}
</tbody></table>
<p class="small">localfields {version}. {stimuli}</p>
</body></html>
"""
ALT = (
    "Correlation against distance, marginal, amplifier, projections, predicted field, and its "
    "localization"
)


def prediction_page(prediction: Prediction) -> str:
    """A page with verdict, reason, pictures, and all that was measured."""
    from .. import __version__

    table, advice = [], ""
    for row in prediction.rows():
        if row.kind == "advice" and row.text:
            advice = f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in row.value)}</ul>"
        elif row.kind in ("fact", "class") and row.text:
            head = ' class="head"' if row.kind == "class" else ""
            text = html.escape(with_minus(row.text))
            table.append(f"<tr{head}><th>{html.escape(row.label)}</th><td>{text}</td></tr>")
    picture = io.BytesIO()
    save_picture(picture, draw_prediction, prediction)
    stimuli = "; ".join(map(repr, prediction.task.stimuli))
    return PAGE.format(
        question="Would a neuron that learns this become localized?",
        verdict=html.escape(verdict_of(prediction)),
        reason=html.escape(with_minus(prediction.reason)),
        advice=advice,
        alt=ALT,
        picture=base64.b64encode(picture.getvalue()).decode(),
        rows="\n".join(table),
        version=__version__,
        stimuli=html.escape(f"Classes: {stimuli}."),
    )
