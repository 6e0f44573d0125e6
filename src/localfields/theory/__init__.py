"""Theory: the amplifier, effective and exact flows, steady states, predictions. A new file here is found by itself."""

from typing import TYPE_CHECKING, Any

from .._spec import attribute as _attribute
from .._spec import discover as _discover
from .absolute import AbsoluteCommittee as AbsoluteCommittee
from .amplifier import Amplifier as Amplifier
from .assumptions import check_stimulus as check_stimulus
from .base import Flow as Flow
from .base import NeuronFlow as NeuronFlow
from .base import NeuronTheory as NeuronTheory
from .base import Response as Response
from .base import Theory as Theory
from .best import BestKnown as BestKnown
from .committee import ErfCommittee as ErfCommittee
from .committee import GaussianCommittee as GaussianCommittee
from .effective import EffectiveFlow as EffectiveFlow
from .evidence import DataPrediction as DataPrediction
from .gated import GatedFlow as GatedFlow
from .gated import GatedSolution as GatedSolution
from .gated import gated_solution as gated_solution
from .hypercube import fixed_point_iteration as fixed_point_iteration
from .hypercube import hypercube_bump as hypercube_bump
from .hypercube import ising_bump as ising_bump
from .initial import mean_initial_loss as mean_initial_loss
from .ising import ExactIsing as ExactIsing
from .linear import LinearResponse as LinearResponse
from .linear import sinusoids as sinusoids
from .linear import winning_mode as winning_mode
from .modes import ModeFlow as ModeFlow
from .modes import follow_modes as follow_modes
from .predict import Prediction as Prediction
from .predict import critical_kurtosis as critical_kurtosis
from .predict import predict as predict
from .pulse import ExactPulse as ExactPulse
from .race import Race as Race
from .race import race as race
from .reduced import dominance as dominance
from .reduced import dominant_modes as dominant_modes
from .separation import active_entries as active_entries
from .separation import separation as separation
from .symmetry import check_symmetries as check_symmetries
from .symmetry import jacobian as jacobian
from .tiled import tiled_output as tiled_output
from .validity import check_trajectory as check_trajectory

if TYPE_CHECKING:
    from ._solve import solve as solve

_modules = tuple(_discover(__name__, __path__))
_later = {"solve": "_solve"}  # loads the integrator


def __getattr__(name: str) -> Any:
    if name in _later:
        import importlib

        return getattr(importlib.import_module(f".{_later[name]}", __name__), name)
    return _attribute(__name__, "theory", name)
