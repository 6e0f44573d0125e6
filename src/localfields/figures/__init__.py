"""The paper's figures: one file each, with its settings, its drawing and its claims."""

from __future__ import annotations

from .._spec import discover
from .base import Claim as Claim
from .base import PaperFigure as PaperFigure


def all_figures() -> dict[str, PaperFigure]:
    """Every figure of this folder, by name, in order."""
    import sys

    found = {}
    for name in discover(__name__, __path__):
        figure = getattr(sys.modules[f"{__name__}.{name}"], "FIGURE", None)
        if figure is not None:
            found[figure.name] = figure
    return dict(sorted(found.items()))
