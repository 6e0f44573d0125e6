"""`populations`: which neurons end localized, which oscillatory, and how they tile."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..trajectory import Trajectory, inverse_participation_ratio, localized_from
from .metrics import over_sound, require_trajectory
from .shape import oscillatory_from, position, spectral_participation, spectral_peak
from .tiling import Tiling, tiling


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Populations:
    """Final fields by kind, arrays of (member, neuron). `populations` makes it.

    Args:
        shape: The lattice.
        localized: Whether a field's inverse participation ratio is above `localized_from`.
        oscillatory: Whether it is not, but its spectral participation is above `oscillatory_from`:
            few waves, of which a flat field is wave 0. Fields that are neither look like noise.
        ipr: Inverse participation ratio; nan for fields that are zero everywhere or not finite.
        spectral_participation: Inverse participation ratio of the spectrum.
        frequency: Frequency of the strongest wave, with a last axis of coordinates on a torus.
        position: Circular mean of the energy, likewise.
        bias: Final biases; nan where there are none or they were not recorded.
        tiling: How the localized fields of each member cover the lattice.
        ok: Whether a member ended well, (member,). Others count in no population.
    """

    shape: tuple[int, ...]
    localized: np.ndarray
    oscillatory: np.ndarray
    ipr: np.ndarray
    spectral_participation: np.ndarray
    frequency: np.ndarray
    position: np.ndarray
    bias: np.ndarray
    tiling: Tiling
    ok: np.ndarray

    @property
    def neither(self) -> np.ndarray:
        """Fields of members that ended well, in no population."""
        return ~(self.localized | self.oscillatory) & self.ok[:, None]

    def to_dict(self) -> dict[str, Any]:
        """Counts, biases and tiling, pooled over members, for JSON; None where undefined.

        Of the tilings, medians over the members that have one.
        """
        summary: dict[str, Any] = {
            "members": int(self.ok.sum()),
            "neurons": int(self.ipr.shape[1]),
        }
        for name in ("localized", "oscillatory", "neither"):
            which = getattr(self, name)
            bias = self.bias[which & np.isfinite(self.bias)]
            summary |= {
                name: int(which.sum()),
                f"bias_{name}": float(np.median(bias)) if bias.size else None,
                f"bias_{name}_negative": int((bias < 0).sum()) if bias.size else None,
                f"bias_{name}_positive": int((bias > 0).sum()) if bias.size else None,
            }
        for name in ("covered", "covered_by_chance", "evenness"):
            values = getattr(self.tiling, name)
            values = values[np.isfinite(values)]
            summary[name] = float(np.median(values)) if values.size else None
        return summary

    def __repr__(self) -> str:
        """The summary, in a few lines."""
        s = self.to_dict()
        lines = [f"Populations: {s['members']} members × {s['neurons']} neurons on {self.shape}"]
        for name in ("localized", "oscillatory", "neither"):
            line = f"  {name:12}{s[name]:6}"
            if s[f"bias_{name}"] is not None:
                line += f"   bias {s[f'bias_{name}']:+.3g} (negative {s[f'bias_{name}_negative']}, "
                line += f"positive {s[f'bias_{name}_positive']})"
            lines.append(line)
        if s["covered"] is not None:
            chance = f"{s['covered_by_chance']:.0%} by chance"
            line = f"  localized fields cover {s['covered']:.0%} of the sites ({chance})"
            if s["evenness"] is not None:
                much = "more even than" if s["evenness"] > 0 else "less even than"
                line += f", {abs(s['evenness']):.1f}σ {much} by chance"
            lines.append(line)
        return "\n".join(lines)


def populations(trajectory: Trajectory) -> Populations:
    """Sort the final fields of a trajectory into localized and oscillatory ones.

    Args:
        trajectory: What `train` or `solve` gave. Biases are looked up where they were recorded.

    Returns:
        A `Populations`, which prints as a table.

    Raises:
        InputError: For anything but a trajectory.

    Example:
        >>> import localfields as lf
        >>> from localfields.analysis import populations
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> populations(lf.solve(task, lf.theory.ExactIsing(), members=3)).to_dict()["localized"]
        3
    """
    require_trajectory(trajectory)
    fields, axes = trajectory.final.astype(np.float64), len(trajectory.shape)
    ok = np.array([outcome.kind == "ok" for outcome in trajectory.outcome], dtype=bool)
    ipr, waves = (
        over_sound(f, fields, axes) for f in (inverse_participation_ratio, spectral_participation)
    )
    localized = ok[:, None] & (ipr > localized_from(math.prod(trajectory.shape)))  # False for nan
    biases = trajectory.series.get("biases")
    return Populations(
        shape=trajectory.shape,
        localized=localized,
        oscillatory=ok[:, None] & ~localized & (waves > oscillatory_from(trajectory.shape)),
        ipr=ipr,
        spectral_participation=waves,
        frequency=over_sound(spectral_peak, fields, axes),
        position=over_sound(position, fields, axes),
        bias=np.full(ipr.shape, np.nan) if biases is None else biases[:, -1].astype(np.float64),
        tiling=tiling(fields, axes, which=localized),
        ok=ok,
    )
