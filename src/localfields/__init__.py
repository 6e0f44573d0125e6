"""localfields: when does a neuron's receptive field become localized, where, and why?

Its parts (`lattice`, `marginals`, `stimuli`, …) are imported when first used, so that `import
localfields` starts no backend and changes no setting.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # checkers know the name; importing `typing` takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

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
    from .errors import TrainingInterrupted as TrainingInterrupted
    from .experiments import Experiment as Experiment
    from .experiments import Fit as Fit
    from .experiments import Solution as Solution
    from .experiments import Sweep as Sweep
    from .experiments import Training as Training
    from .experiments import run_or_load as run_or_load
    from .store import Store as Store
    from .tasks import Discrimination as Discrimination
    from .theory.predict import Prediction as Prediction
    from .theory.predict import predict as predict
    from .theory.solve import solve as solve
    from .training.engine import Record as Record
    from .training.train import train as train
    from .trajectory import Trajectory as Trajectory

__version__ = "0.1.0"

# What `lf.name` imports when it is first used: a module, or a name in one.
_MODULES = ["analysis", "baselines", "data", "experiments", "lattice", "marginals", "networks"]
_MODULES += ["plots", "stimuli", "theory"]
_NAMES_IN = {
    "_spec": ("from_json",),
    "analysis": ("Comparison", "compare", "measure", "populations"),
    "errors": ("InputError", "TrainingInterrupted"),
    "experiments": ("Experiment", "Fit", "Solution", "Sweep", "Training", "run_or_load"),
    "store": ("Store",),
    "tasks": ("Discrimination",),
    "theory": ("Prediction", "predict", "solve"),
    "training": ("Record", "train"),
    "trajectory": ("Trajectory",),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF), *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]  # from tables


if not TYPE_CHECKING:  # checkers see the imports above, and so a misspelled name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in _MODULE_OF:
            return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
