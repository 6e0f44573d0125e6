"""Methods to compare with that learn fields without labels. A new file in this folder is found by itself."""

from typing import Any

from .._spec import discover as _discover
from .._spec import registered as _registered
from .base import Baseline as Baseline
from .base import Fitted as Fitted
from .ica import FastICA as FastICA

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    # A baseline in a new file, or a plugin's, needs no entry above.
    for cls in _registered("baseline").values():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
