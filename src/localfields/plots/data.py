"""The page of a prediction from data: what the rows say, with uncertainties, and where the flow goes from there."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np

from ..theory.data.evidence import ClassEvidence, DataPrediction
from ..theory.predict import Prediction
from ..theory.responses.amplifier import SLOPE
from ._pages import (
    add_heading,
    add_legend,
    add_panel,
    draw_first_start,
    ipr_title,
    new_page,
    say,
    verdict_of,
    with_minus,
)
from .prediction import STYLES, draw_ipr, draw_law
from .prediction import prediction_figure as plain_figure
from .stimulus import BLUE, GRAY, ORANGE

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
th, td {{ text-align: left; vertical-align: top; padding: .35rem .7rem; border-bottom: 1px solid var(--line); }}
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
LINE = 150  # characters of a title's line
ALT = "Correlation against distance, law of a site, amplifier, projections, predicted field, and its localization"


def draw_dependence(ax: Any, evidence: tuple[ClassEvidence, ...]) -> None:
    """Correlation of two sites against their distance, and below it the dependence of their sizes, with errors."""
    ax.axhline(0, color=GRAY, lw=0.5)
    for c, one in enumerate(evidence):
        color, dashes = STYLES[c % len(STYLES)]
        check = one.check
        ax.plot(
            check.distances,
            check.correlation,
            color=color,
            ls=dashes,
            lw=1.4,
            label=f"class {one.number}",
        )
        ax.errorbar(
            check.distances,
            check.dependence,
            2 * check.dependence_error,
            color=color,
            fmt=".",
            ms=3,
            lw=0.8,
            label="of sizes, ±2 s.e." if c == len(evidence) - 1 else None,
        )
    ax.set_xlabel("distance")
    ax.locator_params(axis="x", integer=True)
    add_legend(ax)


def draw_measured_amplifier(ax: Any, one: ClassEvidence) -> None:
    """φ(a) less the line of normal data, √(2/π) a, with a band of two standard errors."""
    a, excess, error = (
        one.correlations,
        one.amplifier - SLOPE * one.correlations,
        2 * one.amplifier_error,
    )
    ax.axhline(0, color="black", lw=1, ls=":")
    ax.fill_between(a, excess - error, excess + error, color=BLUE, alpha=0.3, lw=0, label="±2 s.e.")
    ax.plot(a, excess, color=BLUE, lw=1.4, label="φ(a) − √(2/π) a")
    ax.set_xlim(0, 1)
    ax.set_ylim(
        min(-0.005, 1.1 * float(np.min(excess - error))),
        max(0.005, 1.1 * float(np.max(excess + error))),
    )
    ax.set_xlabel("correlation a of a site with the preactivation")
    add_legend(ax)


def draw_flatness(ax: Any, one: ClassEvidence) -> None:
    """E|⟨w, X⟩| over its scale for kinds of directions, relative to their average: a vertical line if elliptical."""
    places = np.arange(len(one.flatness.kinds))[::-1]
    ax.axvline(0, color="black", lw=1, ls=":")
    ax.errorbar(
        100 * one.flatness.values,
        places,
        xerr=200 * one.flatness.errors,
        fmt="o",
        ms=4,
        color=ORANGE,
        lw=1.2,
    )
    ax.set_yticks(places, one.flatness.kinds)
    ax.set_ylim(-0.6, len(places) - 0.4)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, -0.5), max(high, 0.5))
    ax.set_xlabel("percent from the average kind of direction, ±2 s.e.")


def data_figure(prediction: DataPrediction) -> Any:
    """The page as a matplotlib figure."""
    task = prediction.task
    figure = new_page(13, 7.8)
    grid = figure.add_gridspec(2, 3)
    names = (
        "dependence of sites (S1)",
        "law of a site",
        "amplifier",
        "is it elliptical?",
        "predicted field",
        "IPR",
    )
    if not prediction.evidence:
        for place, name in enumerate(names):
            say(add_panel(figure, grid[place // 3, place % 3], name), "too few samples")
    else:
        pulls = np.abs(np.array([one.label[0] for one in prediction.evidence])) * np.asarray(
            task.priors
        )
        most = prediction.evidence[int(np.argmax(pulls))]
        title = "correlation of two sites, and of their sizes"
        draw_dependence(add_panel(figure, grid[0, 0], title), prediction.evidence)
        kurtosis, stimulus = most.kurtosis, task.stimuli[most.number]
        low, value, high = (
            f"{one:.3g}".replace("-", "−") for one in (kurtosis.low, kurtosis.value, kurtosis.high)
        )
        warn = "; heavy tails" if most.heavy else ""
        title = f"a site of class {most.number}: excess kurtosis {value}\n({low} to {high}{warn})"
        law = stimulus.marginal()
        assert law is not None
        draw_law(add_panel(figure, grid[0, 1], title), law, bins=120)
        draw_measured_amplifier(
            add_panel(figure, grid[0, 2], "amplifier less the line of normal data"), most
        )
        words = {"elliptical": "yes", "either": "cannot tell"}.get(most.kind, "no")
        draw_flatness(
            add_panel(figure, grid[1, 0], f"E|⟨w, X⟩|/s of directions: elliptical? {words}"), most
        )
        _draw_flow(figure, grid, prediction)
    add_heading(figure, prediction, LINE)
    return figure


def _draw_flow(figure: Any, grid: Any, prediction: DataPrediction) -> None:
    flow = prediction.flow
    if flow is None or not np.isfinite(flow.ipr).all():
        say(add_panel(figure, grid[1, 1], "predicted field"), "no theory applies")
        say(add_panel(figure, grid[1, 2], "inverse participation ratio"), "no theory applies")
        return
    draw_first_start(figure, grid[1, 1], flow)
    draw_ipr(add_panel(figure, grid[1, 2], ipr_title(flow)), flow)


def prediction_picture(prediction: Prediction) -> bytes:
    """The picture of any prediction, as PNG."""
    data = isinstance(prediction, DataPrediction)
    figure = data_figure(prediction) if data else plain_figure(prediction)
    png = io.BytesIO()
    figure.savefig(png, dpi=150, format="png")
    return png.getvalue()


def prediction_page(prediction: Prediction) -> str:
    """One page of HTML that needs no other file: verdict, reason, pictures, and all that was measured."""
    from .. import __version__

    table, advice = [], ""
    for row in prediction.rows():
        if row.kind == "advice" and row.text:
            advice = f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in row.value)}</ul>"
        elif row.kind in ("fact", "class") and row.text:
            head = ' class="head"' if row.kind == "class" else ""
            text = html.escape(with_minus(row.text))
            table.append(f"<tr{head}><th>{html.escape(row.label)}</th><td>{text}</td></tr>")
    stimuli = "; ".join(map(repr, prediction.task.stimuli))
    return PAGE.format(
        question="Would a neuron that learns this become localized?",
        verdict=html.escape(verdict_of(prediction)),
        reason=html.escape(with_minus(prediction.reason)),
        advice=advice,
        alt=ALT,
        picture=base64.b64encode(prediction_picture(prediction)).decode(),
        rows="\n".join(table),
        version=__version__,
        stimuli=html.escape(f"Classes: {stimuli}."),
    )
