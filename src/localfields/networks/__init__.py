"""Architectures: receptive fields and a readout. A new file in this folder is found by itself."""

from typing import Any

from .._spec import attribute as _attribute
from .._spec import discover as _discover
from . import gates as gates
from .base import Network as Network
from .committee import Committee as Committee
from .gated import GatedLinear as GatedLinear
from .single_neuron import SingleNeuron as SingleNeuron
from .two_layer import TwoLayer as TwoLayer

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    return _attribute(__name__, "network", name)
