"""Results in a folder, found by the digest of their experiment and checked when read."""

from .checkpoint import Checkpoint as Checkpoint
from .entry import Entry as Entry
from .export import export as export
from .store import Problem as Problem
from .store import Store as Store
