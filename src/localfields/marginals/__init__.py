"""One-dimensional distributions with exact moments, quantiles and one quadrature rule."""

from .._spec import discover as _discover
from .base import Marginal as Marginal
from .closed import Algebraic as Algebraic
from .closed import ErfNormal as ErfNormal
from .closed import Laplace as Laplace
from .closed import Logistic as Logistic
from .closed import Normal as Normal
from .closed import Triangular as Triangular
from .closed import TwoPoint as TwoPoint
from .closed import Uniform as Uniform
from .numeric import Empirical as Empirical
from .numeric import NormalMixture as NormalMixture
from .numeric import SphereProjection as SphereProjection
from .numeric import StudentT as StudentT
from .numeric import Tabulated as Tabulated

_modules = tuple(_discover(__name__, __path__))
