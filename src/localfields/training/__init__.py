"""Simulation: ensembles trained as one compiled program."""

from .record import Record as Record
from .train import Progress as Progress
from .train import train as train
