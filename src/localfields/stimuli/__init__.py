"""Data models with exact statistics. A new file in this folder is found automatically."""

from typing import Any

from .._spec import attribute as _attribute
from .._spec import discover as _discover
from ._check import CheckReport as CheckReport
from ._check import check as check
from .base import Stimulus as Stimulus
from .dead_leaves import DeadLeaves as DeadLeaves
from .elliptical import Elliptical as Elliptical
from .elliptical import EllipticalExtreme as EllipticalExtreme
from .elliptical import EllipticalShell as EllipticalShell
from .elliptical import StudentT as StudentT
from .gaussian import NLGP as NLGP
from .gaussian import Copula as Copula
from .gaussian import DenseGaussian as DenseGaussian
from .gaussian import Gaussian as Gaussian
from .gaussian import Kur as Kur
from .images import ImagePatches as ImagePatches
from .ising import Ising as Ising
from .pulse import BlockPulse as BlockPulse
from .pulse import SinglePulse as SinglePulse
from .samples import Samples as Samples

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    return _attribute(__name__, "stimulus", name)
