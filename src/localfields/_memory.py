"""How much memory a computation needs, estimated from its sizes before anything is computed.

The factors count the copies that XLA and NumPy hold at once. They were measured (peak memory of a
process, CPU); the estimate is meant to be right within a factor of two beyond 100 MB, and a test
compares it with measured peaks.
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import TYPE_CHECKING

import jax
import numpy as np

from ._spec import num_members
from ._types import working_dtype
from .errors import InputError

if TYPE_CHECKING:  # sizes alone are asked of them
    from .networks import Network
    from .tasks import Discrimination

PARAMETER_COPIES = 6  # start, state, next state, gradient and change, and what is recorded
OPTIMIZER_COPIES = 3  # of each array of an optimizer's own
SAMPLE_COPIES = 4  # random bits, normals, waves, samples
PREACTIVATION_COPIES = 4
ORBIT_COPIES = 5  # preactivations at all shifts, with their Fourier transforms
RECORD_COPIES = 3
LATTICE_COPIES = 16  # spectra and covariances, in double precision
FLOW_COPIES = 2  # of the records of an integrator
LIMIT_VARIABLE = "LOCALFIELDS_MEMORY"


@dataclasses.dataclass(frozen=True)
class Memory:
    """An estimate in bytes, by what takes it.

    Args:
        parts: Bytes of each part.
        advice: What to lower, for each part.
    """

    parts: dict[str, int]
    advice: dict[str, str]

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        """Such as `about 1.2 GB, most of it for the batch`."""
        return f"about {size_text(self.total)}, most of it for the {self.largest}"

    @property
    def largest(self) -> str:
        """The part that takes most."""
        return max(self.parts, key=lambda part: self.parts[part])

    def check(self) -> Memory:
        """Return the estimate itself.

        Raises:
            InputError: If it is more than this machine has.
        """
        limit, source = memory_limit()
        if self.total > limit:
            raise InputError(
                f"This needs about {size_text(self.total)} of memory, most of it for the "
                f"{self.largest}; {source} {size_text(limit)}. {self.advice[self.largest]}"
            )
        return self


def size_text(size: float) -> str:
    """Such as 12 MB, 3.4 GB, 67 TB."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size / 1e6:.3g} MB"


def memory_limit() -> tuple[float, str]:
    """Bytes that a computation may take, and in words where the number is from.

    It is the memory of the GPU, or of the machine; `$LOCALFIELDS_MEMORY`, in GB, replaces it.

    Raises:
        InputError: If the variable is not a positive number.
    """
    if text := os.environ.get(LIMIT_VARIABLE):
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if not limit > 0:
            raise InputError(f"${LIMIT_VARIABLE} must be a number of GB, such as 16, got {text!r}.")
        return 1e9 * limit, f"${LIMIT_VARIABLE} allows"
    if jax.default_backend() != "cpu":
        statistics = jax.devices()[0].memory_stats() or {}
        if "bytes_limit" in statistics:
            return float(statistics["bytes_limit"]), "the device has"
    try:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return math.inf, "this machine has"
    return float(pages * page), "this machine has"


def training_memory(
    task: Discrimination,
    network: Network,
    *,
    members: int,
    batch: int,
    evaluate: int,
    estimator: str,
    optimizer_arrays: int,
    record_bytes: int,
) -> Memory:
    """Estimate of a training run.

    Args:
        task: The task; classes whose numbers are swept are sampled once per member.
        network: The network.
        members: Size of the ensemble.
        batch: Samples per step.
        evaluate: Held-out samples per record; 0 if none are needed.
        estimator: Its name.
        optimizer_arrays: How many arrays as large as the parameters the optimizer keeps.
        record_bytes: Size of all records.
    """
    itemsize = np.dtype(working_dtype()).itemsize
    sites, neurons = task.size, network.hidden
    # On a CPU members run one after another, on a GPU side by side. Shared samples are drawn once.
    shared = estimator in ("shared", "epochs")
    at_once = 1 if jax.default_backend() == "cpu" else members
    drawing = 1 if shared else at_once
    answering = members if shared else at_once
    samples = SAMPLE_COPIES * sites * drawing
    preactivations = PREACTIVATION_COPIES * neurons * answering
    if estimator == "orbit":
        preactivations += ORBIT_COPIES * neurons * sites * at_once
    step = 0 if estimator == "exact" else batch * (samples + preactivations)
    # Records are of all members side by side; those with the same stimuli see the same samples.
    swept = members if any(num_members(stimulus) for stimulus in task.stimuli) else 1
    record = evaluate * (
        SAMPLE_COPIES // 2 * sites * swept + PREACTIVATION_COPIES * neurons * members
    )
    parameters = members * neurons * (sites + 2) * itemsize
    copies = PARAMETER_COPIES + OPTIMIZER_COPIES * optimizer_arrays
    data = sum(leaf.nbytes for leaf in jax.tree.leaves(task) if hasattr(leaf, "nbytes"))
    return Memory(
        {
            "parameters": copies * parameters,
            "batch": itemsize * step,
            "evaluation": itemsize * record,
            "records": RECORD_COPIES * record_bytes,
            "lattice": LATTICE_COPIES * 8 * sites + 2 * data,
        },
        {
            "parameters": "Use fewer members, fewer neurons or a smaller lattice.",
            "batch": "Lower `batch`, or use a smaller lattice.",
            "evaluation": "Lower `evaluate`, `members` or the lattice, or record no loss.",
            "records": "Record less often, or only reductions such as ('ipr', 'loss').",
            "lattice": "Use a smaller lattice.",
        },
    )


def flow_memory(task: Discrimination, network: Network, members: int, num_records: int) -> Memory:
    """Estimate of the gradient flow of a theory from `members` starts."""
    parameters = members * network.hidden * (task.size + 2) * 8
    return Memory(
        {
            "members": (PARAMETER_COPIES + FLOW_COPIES * num_records) * parameters,
            "lattice": LATTICE_COPIES * 8 * task.size,
        },
        {
            "members": "Use fewer members (or starts), or a smaller lattice.",
            "lattice": "Use a smaller lattice.",
        },
    )


def sample_memory(num: int, sites: int, copies: float = SAMPLE_COPIES) -> Memory:
    """Estimate of `num` samples that are held at once."""
    size = int(copies * num * sites * np.dtype(working_dtype()).itemsize)
    return Memory({"samples": size}, {"samples": "Draw fewer samples, or use a smaller lattice."})
