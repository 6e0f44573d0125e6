"""Theory: the amplifier, effective and exact flows, steady states, predictions. A new file here is found by itself."""

from typing import TYPE_CHECKING, Any

from .._spec import discover as _discover
from .._spec import registered as _registered
from .base import Flow as Flow
from .base import NeuronFlow as NeuronFlow
from .base import NeuronTheory as NeuronTheory
from .base import Response as Response
from .base import Theory as Theory
from .effective import EffectiveFlow as EffectiveFlow
from .predict import Prediction as Prediction
from .predict import predict as predict

if TYPE_CHECKING:
    from ._solve import solve as solve

_modules = tuple(_discover(__name__, __path__))
_later = {"solve": "_solve"}  # loads the integrator


def __getattr__(name: str) -> Any:
    if name in _later:
        import importlib

        return getattr(importlib.import_module(f".{_later[name]}", __name__), name)
    for cls in _registered("theory").values():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
