"""Simulation: ensembles trained as one compiled program."""

from .engine import Record as Record
from .loop import Checkpointer as Checkpointer
from .loop import Progress as Progress
from .train import train as train
