"""How to declare the fields of a stimulus, network or law of your own.

Example:
    >>> from localfields.fields import number
    >>> from localfields.stimuli.base import Stimulus, lattice_field
"""

from ._spec import Choice as Choice
from ._spec import Count as Count
from ._spec import Nested as Nested
from ._spec import Number as Number
from ._spec import Row as Row
from ._spec import Shape as Shape
from ._spec import declare as declare
from ._spec import derived as derived
from ._spec import number as number
