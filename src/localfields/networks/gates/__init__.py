"""Gates of a gated linear network. A new file in this folder is found by itself."""

from typing import Any

from ..._spec import attribute as _attribute
from ..._spec import discover as _discover
from .base import Gates as Gates
from .combined import Exclusive as Exclusive
from .combined import Open as Open
from .combined import Redundant as Redundant
from .combined import Several as Several
from .half_space import Block as Block
from .half_space import Bump as Bump
from .half_space import Directions as Directions
from .half_space import Flat as Flat
from .half_space import HalfSpaces as HalfSpaces
from .half_space import MexicanHat as MexicanHat
from .half_space import RandomDirections as RandomDirections
from .half_space import Wave as Wave

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    return _attribute(__name__, "gates", name)
