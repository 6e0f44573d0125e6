"""Colors, fonts, figures and small drawing helpers that all plots share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure

    AxesLike = Axes | type[Figure] | None
else:  # importing localfields does not import matplotlib
    Axes = AxesLike = Any

# Okabe and Ito's palette, which people with any kind of color vision can tell apart.
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#999999"
PURPLE, SKY_BLUE, AMBER = "#CC79A7", "#56B4E9", "#E69F00"
LOCALIZED, EXTENDED = ORANGE, BLUE  # fields
# One color and dash pattern per class; the dashes are for those who print in gray.
CLASS_STYLES = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    (PURPLE, ":"),
    (SKY_BLUE, (0, (3, 1, 1, 1, 1, 1))),
)
EARLY_TO_LATE = ("#08519C", "#3F6FC4", "#9467A8", "#D6604D", "#B2182B")
SMALL = 8  # points, of ticks and small labels


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches, laid out by itself and unknown to pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def new_axes(ax: Any, size: tuple[float, float] = (5.2, 3.4)) -> Any:
    """The axes to draw on: `ax`, or those of a new figure of this size where it is None."""
    return new_panels(ax, [["only"]], size)[0]


def new_panels(
    ax: Any, layout: Sequence[Sequence[str]], size: tuple[float, float], **ratios: Any
) -> np.ndarray:
    """The axes of several panels, in the alphabetical order of their names.

    Args:
        ax: Axes to draw on; or None for a new pyplot figure; or matplotlib's `Figure` for one that
            pyplot does not know, by which programs draw into files from any thread.
        layout: Names of panels as in `Figure.subplot_mosaic`, "." where there is none.
        size: Width and height of a new figure in inches.
        **ratios: `width_ratios` and `height_ratios`.

    Raises:
        InputError: If `ax` has another number of axes than panels are to be drawn.
    """
    names = sorted({name for line in layout for name in line} - {"."})
    if ax is not None and not callable(ax):
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != len(names):
            raise InputError(
                f"This plot needs {len(names)} axes, got {len(axes)}. Pass as many, or leave `ax` "
                "out for a new figure."
            )
        return axes
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure
    figure: Any = ax(figsize=size, layout="constrained")
    panels = figure.subplot_mosaic([list(line) for line in layout], **ratios)
    return np.array([panels[name] for name in names], dtype=object)


def save_picture(target: Any, plot: Callable[..., Any], *args: Any) -> None:
    """Write what a plot function draws to a path or an open file, PNG unless the name says else."""
    from matplotlib.figure import Figure

    axes = np.ravel(np.asarray(plot(*args, ax=Figure), dtype=object))
    axes[0].figure.savefig(target, dpi=150)


def make_small(axes: Iterable[Any]) -> None:
    """Style panels among many: small ticks and labels, no frame at the top and the right."""
    for ax in axes:
        ax.tick_params(labelsize=SMALL)
        ax.xaxis.label.set_fontsize(SMALL)
        ax.yaxis.label.set_fontsize(SMALL)
        ax.spines[["top", "right"]].set_visible(False)


def add_legend(ax: Any, columns: int = 2) -> None:
    """Add a legend above everything that is drawn, and make room for it."""
    rows = -(-len(ax.get_legend_handles_labels()[1]) // columns)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + (high - low) * 0.09 * rows)
    ax.legend(frameon=False, fontsize=SMALL, loc="upper right", ncols=columns)


def show_text(ax: Any, text: str) -> None:
    """Write a text in place of a picture."""
    ax.text(0.5, 0.5, text, ha="center", va="center", fontsize=9, transform=ax.transAxes)
    ax.set_axis_off()


def time_colors() -> Any:
    """The colormap of flow time, blue to red, dark enough to be seen on white all along."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("flow time", EARLY_TO_LATE)


def add_time_bar(figure: Any, axes: Any, until: float, label: str = "flow time") -> Any:
    """Add a slim color bar beside axes that tells flow time from color, and return it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colors = ScalarMappable(Normalize(0, until if until > 0 else 1), time_colors())
    bar = figure.colorbar(colors, ax=axes, fraction=0.03, pad=0.015, aspect=40)
    bar.set_label(label, fontsize=SMALL + 1)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    return bar


def with_minus(text: str) -> str:
    """Numbers with the minus sign of the axes in place of a hyphen."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)


def finish(
    ax: Any, title: str = "", *, legend: dict[str, Any] | None = None, **settings: Any
) -> None:
    """Finish a panel of a figure: title, labels and limits in small print, and a legend.

    Args:
        ax: The axes.
        title: A title that begins with "ours" is green: the panel is not the paper's.
        legend: Options of the legend, {} for one wherever there is room; None for none.
        **settings: Of `Axes.set`: `xlabel`, `ylim`, `xscale`, ….
    """
    ax.set(**settings)
    if title:
        ax.set_title(title, fontsize=9, color=GREEN if title.startswith("ours") else "black")
    make_small([ax])
    if legend is not None:
        ax.legend(**{"frameon": False, "fontsize": SMALL, **legend})
