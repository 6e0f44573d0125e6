"""What the pages of predictions share: the sheet, its panels, and words in them."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from typing import Any

import numpy as np

from ..theory.predict import Prediction
from ..trajectory import Trajectory
from .fields import SMALL
from .trajectory import draw_fields


def new_page(width: float, height: float) -> Any:
    """An empty matplotlib figure, in inches, that can be drawn without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08)
    figure = Figure(figsize=(width, height), layout=engine)
    FigureCanvasAgg(figure)
    return figure


def add_panel(figure: Any, place: Any, title: str) -> Any:
    """Axes at a place of a grid."""
    ax = figure.add_subplot(place)
    ax.set_title(title, fontsize=9)
    ax.tick_params(labelsize=SMALL)
    ax.xaxis.label.set_fontsize(SMALL)
    return ax


def say(ax: Any, words: str) -> None:
    """Words in place of a picture."""
    ax.text(
        0.5, 0.5, words, ha="center", va="center", color="black", fontsize=9, transform=ax.transAxes
    )
    ax.set_axis_off()


def add_legend(ax: Any, columns: int = 2) -> None:
    """A legend above everything that is drawn, for which room is made."""
    names = ax.get_legend_handles_labels()[1]
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + (high - low) * 0.09 * -(-len(names) // columns))
    ax.legend(frameon=False, fontsize=SMALL, loc="upper right", ncols=columns)


def draw_first_start(figure: Any, place: Any, flow: Trajectory) -> None:
    """The field of the first start over flow time; on a torus at its end, with a scale beside it."""
    how = "time from light to dark" if len(flow.shape) == 1 else f"flow time {flow.times[-1]:.4g}"
    ax = add_panel(figure, place, f"predicted field of the first start, {how}")
    # Evenly spread in the logarithm of time: most happens early.
    chosen = np.unique(np.geomspace(1, len(flow.times), 40).astype(int)) - 1
    fewer = {
        "steps": flow.steps[chosen],
        "times": flow.times[chosen],
        "series": {"weights": flow.weights[:, chosen]},
    }
    draw_fields(ax, dataclasses.replace(flow, **fewer))
    if ax.images:
        scale = figure.colorbar(ax.images[0], cax=ax.inset_axes((1.05, 0, 0.05, 1)))
        scale.ax.tick_params(labelsize=SMALL)


def ipr_title(flow: Trajectory) -> str:
    """Above the ratios of all starts."""
    return f"inverse participation ratio, {f'{flow.num_members} starts' if flow.num_members > 1 else 'one start'}"


def verdict_of(prediction: Prediction) -> str:
    """The verdict, and where the rows lean if that is not the same."""
    return ", leaning to ".join(
        row.text for row in prediction.rows() if row.kind == "verdict" and row.text
    )


def add_heading(figure: Any, prediction: Prediction, most: int) -> None:
    """Verdict, theory and reason above the panels, in lines of at most about so many characters."""
    text = {row.key: row.text for row in prediction.rows()}
    reason = with_minus(text["reason"])
    if len(reason) > most >= max(map(len, reason.split("; "))):
        reason = reason.replace("; ", ";\n")
    else:
        lines = -(-len(reason) // most)
        reason = textwrap.fill(reason, -(-len(reason) // lines) + 8, break_on_hyphens=False)
    verdict = verdict_of(prediction).replace(prediction.verdict, prediction.verdict.upper(), 1)
    figure.suptitle(f"{verdict} ({text['theory']})\n{reason}", fontsize=10)


def with_minus(text: str) -> str:
    """Numbers with the minus sign of the axes in place of a hyphen."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)
