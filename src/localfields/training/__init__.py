"""Simulation: ensembles trained as one compiled program."""

from .loop import Checkpointer as Checkpointer
from .loop import Progress as Progress
from .record import Record as Record
from .train import train as train
