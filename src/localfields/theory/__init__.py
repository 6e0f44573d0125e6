"""Theory: the amplifier, effective and exact flows, steady states, predictions. A new file here is found by itself."""

from .base import Covariance as Covariance
from .base import Flow as Flow
from .base import NeuronFlow as NeuronFlow
from .base import NeuronTheory as NeuronTheory
from .base import Response as Response
from .base import Theory as Theory
