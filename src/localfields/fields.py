"""How to declare the fields of a stimulus, network or marginal of your own.

    shape: Lattice = declare(LATTICE, default=(40,))
    strength: Real = number(default=0.5, low=0, high=1, symbol="q", help="what it does")

The annotation is the type of the field (`Real`, `Whole`, `Lattice`, `Array`, or a plain `str`), the
value says what is legal, and the default is always given by name, so that editors and type checkers
know it.
"""

from ._spec import Choice as Choice
from ._spec import Count as Count
from ._spec import Declaration as Declaration
from ._spec import Nested as Nested
from ._spec import Number as Number
from ._spec import Row as Row
from ._spec import Shape as Shape
from ._spec import declare as declare
from ._spec import derived as derived
from ._spec import number as number
from ._spec import required as required
from ._types import Array as Array
from ._types import Field as Field
from ._types import Lattice as Lattice
from ._types import Real as Real
from ._types import Whole as Whole

_HELP = "lattice: 40 sites on a ring, or 30x30 on a torus"

LATTICE = Declaration(Shape(), help=_HELP, symbol="N")
"""The lattice of a stimulus: `shape: Lattice = declare(LATTICE, default=(40,))`."""

RING = Declaration(
    Shape(1, "This stimulus lives on a ring: give (40,) for 40 sites."), help=_HELP, symbol="N"
)
"""The same, of a stimulus that exists on a ring only."""
