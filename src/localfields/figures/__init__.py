"""The figures of the paper and its working notes: one file each, with its settings, its drawing and its claims."""

from __future__ import annotations

from .._spec import discover
from .base import GROUPS
from .base import Claim as Claim
from .base import PaperFigure as PaperFigure
from .base import Question as Question


def all_figures() -> dict[str, PaperFigure]:
    """Every figure of this folder, by name, in order: the paper's, then the notes', then those of our own."""
    import sys

    found = {}
    for name in discover(__name__, __path__):
        figure = getattr(sys.modules[f"{__name__}.{name}"], "FIGURE", None)
        if figure is not None:
            found[figure.name] = figure
    return dict(sorted(found.items(), key=lambda item: (GROUPS.index(item[1].group), item[0])))
