"""Experiments: plain values that say what is computed, and what runs them."""

from .experiment import Experiment as Experiment
from .experiment import Method as Method
from .experiment import Solution as Solution
from .experiment import Training as Training
from .experiment import experiment_from as experiment_from
from .run import run_or_load as run_or_load
