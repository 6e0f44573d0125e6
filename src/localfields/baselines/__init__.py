"""Methods to compare with that learn fields without labels. A new file in this folder is found by itself."""

from typing import Any

from .._spec import attribute as _attribute
from .._spec import discover as _discover
from .base import Baseline as Baseline
from .base import Fitted as Fitted
from .ica import FastICA as FastICA

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    return _attribute(__name__, "baseline", name)
