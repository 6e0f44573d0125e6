"""Architectures: receptive fields and a readout. A new file in this folder is found by itself."""

from typing import Any

from .._spec import discover as _discover
from .._spec import registered as _registered
from .base import Network as Network
from .committee import Committee as Committee
from .single_neuron import SingleNeuron as SingleNeuron
from .two_layer import TwoLayer as TwoLayer

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    # A network in a new file, or a plugin's, needs no entry above.
    for cls in _registered("network").values():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
