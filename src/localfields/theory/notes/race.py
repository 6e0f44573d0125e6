"""The race of gating structures: which fixed gates end with the least loss, and which get there first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import refuse
from ...networks import gates as _gates
from ...networks.gates import Gates
from ...tasks import Discrimination
from ..networks.gated import DRAWS, GatedSolution, gated_solution

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
"""One gate of each kind: what `race` compares unless told otherwise."""


@dataclasses.dataclass(frozen=True)
class Runner:
    """One gating structure in a race.

    Attributes:
        name: What it is called.
        gates: The gates.
        loss: Limiting loss.
        error: Its standard error; zero where nothing was measured.
        half_time: Flow time at which the loss has fallen by half of what it will, from fields of zeros.
        most_time: The same for 99 % of it.
        fastest: Largest rate of a mode, 2λ/K².
        slowest: Smallest rate of a mode that moves.
        fields: Receptive fields at the end, (K, *shape), from fields of zeros.
    """

    name: str
    gates: Gates
    loss: float
    error: float
    half_time: float
    most_time: float
    fastest: float
    slowest: float
    fields: np.ndarray


@dataclasses.dataclass(frozen=True)
class Race:
    """What came of a race; it prints as a table, least loss first."""

    by_loss: tuple[Runner, ...]

    @property
    def by_speed(self) -> tuple[Runner, ...]:
        """The same, whose loss falls soonest first."""
        return tuple(sorted(self.by_loss, key=lambda one: one.half_time))

    def __getitem__(self, name: str) -> Runner:
        """The runner of that name."""
        for one in self.by_loss:
            if one.name == name:
                return one
        raise KeyError(name)

    def __repr__(self) -> str:
        """The table."""
        width = max(len("gates"), *(len(one.name) for one in self.by_loss))
        speed = [one.name for one in self.by_speed]
        lines = [f"{'gates':<{width}}  limiting loss       half time  99 % time  by speed  rates"]
        for one in self.by_loss:
            error = f" ± {one.error:.5f}" if one.error else ""
            rates = f"{one.slowest:.2g} … {one.fastest:.3g}"
            place = speed.index(one.name) + 1
            times = f"{one.half_time:>9.3g}  {one.most_time:>9.3g}  {place:>8}"
            lines.append(f"{one.name:<{width}}  {one.loss:.5f}{error:<10}  {times}  {rates}")
        return "\n".join(lines)


def race(
    task: Discrimination,
    gates: Mapping[str, Gates] | Sequence[Gates] | None = None,
    *,
    draws: int | None = DRAWS,
    seed: int = 0,
) -> Race:
    """Rank gating structures by the loss they end with, and by how fast they get there.

    For one gate of a half-space on sign-symmetric data A = ½Σ̄ whatever the direction, so that rates do not tell such
    gates apart: what does is how much of b lies in fast modes, which the half time says.

    Args:
        task: Mean squared error with one number a class.
        gates: Structures by name, or a list of them; by default one gate of each kind (`COMMON`).
        draws: Draws of each class where moments must be measured, the same for all structures.
        seed: Of those draws.

    Example:
        >>> import localfields as lf
        >>> from localfields.networks.gates import Bump, Flat
        >>> spins = [lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)]
        >>> race(lf.Discrimination(*spins), [Bump(), Flat()]).by_loss[0].name
        'Bump(site=0, width=0.0, copies=1)'
        >>> race(lf.Discrimination(*(s.gaussian_clone() for s in spins)), [Bump(), Flat()]).by_loss[0].name
        'Flat()'
    """
    entered = COMMON if gates is None else gates
    if not isinstance(entered, Mapping):
        entered = {repr(one): one for one in entered}
    if not entered:
        refuse(
            "`gates`", gates, "at least one structure", "For example [lf.networks.gates.Flat()]."
        )
    found = [
        _runner(name, one, gated_solution(task, one, draws=draws, seed=seed))
        for name, one in entered.items()
    ]
    return Race(tuple(sorted(found, key=lambda one: one.loss)))


def _runner(name: str, gates: Gates, solution: GatedSolution) -> Runner:
    rates = solution.rates
    return Runner(
        name=name,
        gates=gates,
        loss=solution.limiting_loss,
        error=solution.limiting_error,
        half_time=solution.time_to(0.5),
        most_time=solution.time_to(0.99),
        fastest=float(rates[0]),
        slowest=float(min(rates[rates > 0], default=0.0)),  # 0 where the gates never open
        fields=solution.limit(),
    )
