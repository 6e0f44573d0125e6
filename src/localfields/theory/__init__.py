"""Theory: effective and exact flows, steady states, predictions.

Start with `base` (what a theory is), `solve` (follow its flow), `choose` (which theory covers a
task) and `predict`. `responses/` has theories of one ReLU neuron, `networks/` those of several
neurons, `checks/` measures their assumptions, `data/` predicts from samples, and `notes/` has
tools that only the figures of the working notes use. A new file is found by itself.
"""

from typing import Any

from .._spec import attribute as _attribute
from .._spec import discover as _discover
from .base import Coverage as Coverage
from .base import Flow as Flow
from .base import NeuronFlow as NeuronFlow
from .base import NeuronTheory as NeuronTheory
from .base import Response as Response
from .base import Theory as Theory
from .checks.assumptions import check_stimulus as check_stimulus
from .checks.validity import check_trajectory as check_trajectory
from .choose import BestKnown as BestKnown
from .choose import PerClass as PerClass
from .choose import best_for as best_for
from .data.evidence import DataPrediction as DataPrediction
from .landscape import Landscape as Landscape
from .landscape import SteadyState as SteadyState
from .landscape import landscape as landscape
from .networks.committee import AbsoluteCommittee as AbsoluteCommittee
from .networks.committee import ErfCommittee as ErfCommittee
from .networks.committee import GaussianCommittee as GaussianCommittee
from .networks.gated import GatedFlow as GatedFlow
from .networks.gated import GatedSolution as GatedSolution
from .networks.gated import gated_solution as gated_solution
from .notes.initial import mean_initial_loss as mean_initial_loss
from .notes.modes import ModeFlow as ModeFlow
from .notes.modes import follow_modes as follow_modes
from .notes.race import Race as Race
from .notes.race import race as race
from .notes.reduced import dominance as dominance
from .notes.reduced import dominant_modes as dominant_modes
from .notes.separation import active_entries as active_entries
from .notes.separation import separation as separation
from .notes.symmetry import check_symmetries as check_symmetries
from .notes.symmetry import jacobian as jacobian
from .notes.tiled import tiled_output as tiled_output
from .predict import Prediction as Prediction
from .predict import PredictionRow as PredictionRow
from .predict import critical_kurtosis as critical_kurtosis
from .predict import predict as predict
from .responses.amplifier import Amplifier as Amplifier
from .responses.cluster import ClusterFlow as ClusterFlow
from .responses.effective import EffectiveFlow as EffectiveFlow
from .responses.hypercube import fixed_point_iteration as fixed_point_iteration
from .responses.hypercube import hypercube_bump as hypercube_bump
from .responses.hypercube import ising_bump as ising_bump
from .responses.ising import ExactIsing as ExactIsing
from .responses.linear import LinearResponse as LinearResponse
from .responses.linear import sinusoids as sinusoids
from .responses.linear import winning_mode as winning_mode
from .responses.pulse import ExactPulse as ExactPulse
from .solve import solve as solve

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    return _attribute(__name__, "theory", name)
