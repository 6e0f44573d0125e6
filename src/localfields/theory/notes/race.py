"""The race of gates: which fixed gates end with the smallest loss, and which get there first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import InputError
from ...networks import gates as _gates
from ...networks.gates import Gates
from ...tasks import Discrimination
from ..networks.gated import NUM_MOMENT_SAMPLES, gated_solution

# One gate of each kind: what `race` compares by default.
COMMON: dict[str, Gates] = {
    "bump": _gates.Bump(),
    "majority of three": _gates.Block(length=3),
    "two alike": _gates.Block(length=2),
    "Mexican hat": _gates.MexicanHat(),
    "flat": _gates.Flat(),
    "wave": _gates.Wave(),
    "random": _gates.RandomDirections(),
    "always open": _gates.Open(),
}


@dataclasses.dataclass(frozen=True)
class RaceEntry:
    """One gating structure in a race; times and fields are from initial fields of zeros."""

    name: str
    gates: Gates
    loss: float  # limiting loss
    error: float  # its standard error; zero if exact
    half_time: float  # flow time after half of the fall of the loss
    most_time: float  # flow time after 99 % of it
    fastest: float  # largest rate of a mode, 2λ/K²
    slowest: float  # smallest rate of a mode that moves
    fields: np.ndarray  # final receptive fields, (K, *shape)


@dataclasses.dataclass(frozen=True)
class Race:
    """The result of a race; it prints as a table, smallest loss first."""

    by_loss: tuple[RaceEntry, ...]

    @property
    def by_speed(self) -> tuple[RaceEntry, ...]:
        """The entries by half time, fastest first."""
        return tuple(sorted(self.by_loss, key=lambda entry: entry.half_time))

    def __getitem__(self, name: str) -> RaceEntry:
        """The entry of that name."""
        for entry in self.by_loss:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def __repr__(self) -> str:
        """The table."""
        width = max(len("gates"), *(len(entry.name) for entry in self.by_loss))
        speed = [entry.name for entry in self.by_speed]
        lines = [f"{'gates':<{width}}  limiting loss       half time  99 % time  by speed  rates"]
        for entry in self.by_loss:
            error = f" ± {entry.error:.5f}" if entry.error else ""
            rates = f"{entry.slowest:.2g} … {entry.fastest:.3g}"
            place = speed.index(entry.name) + 1
            times = f"{entry.half_time:>9.3g}  {entry.most_time:>9.3g}  {place:>8}"
            lines.append(f"{entry.name:<{width}}  {entry.loss:.5f}{error:<10}  {times}  {rates}")
        return "\n".join(lines)


def race(
    task: Discrimination,
    gates: Mapping[str, Gates] | Sequence[Gates] | None = None,
    *,
    num_samples: int | None = NUM_MOMENT_SAMPLES,
    seed: int = 0,
) -> Race:
    """Rank gating structures by the loss they end with, and by how fast they get there.

    A single half-space gate on sign-symmetric data has A = ½Σ̄ whatever its direction, so that such
    gates have the same rates; they differ in how much of b lies in fast modes, hence in half time.

    Args:
        task: Mean squared error with one number per class.
        gates: Structures by name, or a list of them; by default one gate of each kind (`COMMON`).
        num_samples: Samples of each class if moments must be measured, the same for all structures.
        seed: Seed of those samples.

    Example:
        >>> import localfields as lf
        >>> from localfields.networks.gates import Bump, Flat
        >>> spins = [lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)]
        >>> race(lf.Discrimination(*spins), [Bump(), Flat()]).by_loss[0].name
        'Bump(site=0, width=0.0, copies=1)'
        >>> clones = [stimulus.gaussian_clone() for stimulus in spins]
        >>> race(lf.Discrimination(*clones), [Bump(), Flat()]).by_loss[0].name
        'Flat()'
    """
    structures = COMMON if gates is None else gates
    if not isinstance(structures, Mapping):
        structures = {repr(gates): gates for gates in structures}
    if not structures:
        raise InputError("`gates` is empty. Give some, for example [lf.networks.gates.Flat()].")
    entries = []
    for name, structure in structures.items():
        solution = gated_solution(task, structure, num_samples=num_samples, seed=seed)
        rates = solution.rates
        entry = RaceEntry(
            name=name,
            gates=structure,
            loss=solution.limiting_loss,
            error=solution.limiting_error,
            half_time=solution.time_to(0.5),
            most_time=solution.time_to(0.99),
            fastest=float(rates[0]),
            slowest=float(min(rates[rates > 0], default=0.0)),  # 0 if the gates never open
            fields=solution.limit(),
        )
        entries.append(entry)
    return Race(tuple(sorted(entries, key=lambda entry: entry.loss)))
