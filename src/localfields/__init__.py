"""localfields: when does a neuron's receptive field become localized, where, and why?

Its parts (`lattice`, `marginals`, `stimuli`, …) are imported when first used, so that `import
localfields` starts no backend and changes no setting.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import analysis as analysis
    from . import baselines as baselines
    from . import data as data
    from . import experiments as experiments
    from . import lattice as lattice
    from . import marginals as marginals
    from . import networks as networks
    from . import plots as plots
    from . import stimuli as stimuli
    from . import theory as theory
    from ._spec import from_json as from_json
    from .analysis.compare import Comparison as Comparison
    from .analysis.compare import compare as compare
    from .analysis.metrics import measure as measure
    from .analysis.populations import populations as populations
    from .errors import InputError as InputError
    from .experiments import Experiment as Experiment
    from .experiments import Fit as Fit
    from .experiments import Solution as Solution
    from .experiments import Sweep as Sweep
    from .experiments import Training as Training
    from .experiments import run_or_load as run_or_load
    from .store import Store as Store
    from .tasks import Discrimination as Discrimination
    from .theory._solve import solve as solve
    from .theory.predict import Prediction as Prediction
    from .theory.predict import predict as predict
    from .training.engine import Record as Record
    from .training.train import train as train
    from .trajectory import Trajectory as Trajectory

__version__ = "0.1.0"

_rooms = (
    "analysis",
    "baselines",
    "data",
    "experiments",
    "lattice",
    "marginals",
    "networks",
    "plots",
    "stimuli",
    "theory",
)
_names = {
    "Comparison": "analysis",
    "Discrimination": "tasks",
    "Experiment": "experiments",
    "Fit": "experiments",
    "InputError": "errors",
    "Prediction": "theory",
    "Record": "training",
    "Solution": "experiments",
    "Store": "store",
    "Sweep": "experiments",
    "Training": "experiments",
    "Trajectory": "trajectory",
    "compare": "analysis",
    "from_json": "_spec",
    "measure": "analysis",
    "populations": "analysis",
    "predict": "theory",
    "run_or_load": "experiments",
    "solve": "theory",
    "train": "training",
}

__all__ = ["__version__", *_names, *_rooms]  # pyright: ignore[reportUnsupportedDunderAll]  # made from two tables


if not TYPE_CHECKING:  # checkers see the imports above, and so a misspelled name

    def __getattr__(name: str) -> Any:
        if name in _rooms:
            return importlib.import_module(f".{name}", __name__)
        if name in _names:
            return getattr(importlib.import_module(f".{_names[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
