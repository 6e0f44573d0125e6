"""Experiments: plain values that say what is computed, and what runs them."""

from .experiment import Experiment as Experiment
from .experiment import Method as Method
from .experiment import Solution as Solution
from .experiment import Training as Training
from .experiment import experiment_from as experiment_from
from .fit import Fit as Fit
from .plan import SweepPlan as SweepPlan
from .results import SweepResult as SweepResult
from .run import run_or_load as run_or_load
from .runner import SweepProgress as SweepProgress
from .runner import run_sweep as run_sweep
from .runner import stored_points as stored_points
from .runner import stored_sweeps as stored_sweeps
from .sweep import Sweep as Sweep
from .sweep import sweep_from as sweep_from
