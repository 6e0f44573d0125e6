"""The figures of the paper and its working notes: one file each, with settings, drawing, claims."""

from __future__ import annotations

from .. import _start
from .._spec import discover
from ..errors import InputError
from .base import GROUPS
from .base import Claim as Claim
from .base import PaperFigure as PaperFigure
from .base import Question as Question


def all_figures() -> dict[str, PaperFigure]:
    """Every `FIGURE` of this folder and of plugins by name: the paper's, the notes', our own."""
    import sys

    modules = [sys.modules[f"{__name__}.{name}"] for name in discover(__name__, __path__)]
    figures: dict[str, PaperFigure] = {}
    for module in (*modules, *_start.MODULES):
        figure = getattr(module, "FIGURE", None)
        if isinstance(figure, PaperFigure):
            if figure.name in figures:
                raise InputError(
                    f"There are two figures called `{figure.name}`, the second in "
                    f"{module.__name__}. Rename one."
                )
            figures[figure.name] = figure
    return dict(sorted(figures.items(), key=lambda item: (GROUPS.index(item[1].group), item[0])))
