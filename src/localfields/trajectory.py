"""The one result type: what `train` and `solve` return, and everything else takes."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import __version__
from .errors import InputError


def inverse_participation_ratio(weights: Any, axes: int) -> Any:
    """Σw⁴/(Σw²)² over the trailing lattice axes.

    It is 1 for a single site, 1.5/N for a sinusoid and 1/N for a constant; nan for a field of zeros
    and for one that is not finite.

    Args:
        weights: Fields, (…, *shape): a NumPy array, or a JAX array inside compiled code.
        axes: Number of lattice axes.

    Example:
        >>> fields = np.array([[0.0, 2.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
        >>> inverse_participation_ratio(fields, axes=1)
        array([1.  , 0.25])
    """
    xp = weights.__array_namespace__()
    flat = weights.reshape(*weights.shape[: weights.ndim - axes], -1)
    if xp is np:  # compiled code keeps its own precision
        flat = flat.astype(np.float64)
    largest = xp.abs(flat).max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        # In units of the largest weight, so that powers of tiny or huge weights stay in range.
        square = (flat / xp.where(largest > 0, largest, 1)) ** 2
        return (square**2).sum(axis=-1) / square.sum(axis=-1) ** 2


def localized_from(size: int) -> float:
    """IPR from which a field counts as localized: a third above that of Gaussian noise, 3/(N + 2).

    Such a field lives on fewer than a quarter of the sites; a wave has 1.5/N, and never more than
    2/N.

    Example:
        >>> round(localized_from(40), 3)
        0.095
    """
    return 4 / (size + 2)


def peak_position(weights: np.ndarray, axes: int) -> np.ndarray:
    """Site of the largest |w|: an index on a ring, one per axis (in the last axis) on a torus."""
    lead, shape = weights.shape[: weights.ndim - axes], weights.shape[weights.ndim - axes :]
    flat = np.abs(weights).reshape(*lead, -1).argmax(axis=-1)
    return flat if axes == 1 else np.stack(np.unravel_index(flat, shape), axis=-1)


def made_with(precision: Any) -> dict[str, Any]:
    """What a result was made with: the head of its manifest."""
    import jax

    return {
        "localfields": __version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": str(jax.devices()[0].device_kind),
        "precision": str(np.dtype(precision)),
    }


def experiment_json(
    task: Any,
    network: Any,
    method: str,
    settings: Mapping[str, Any],
    *,
    initial: Any = None,
    precision: Any,
) -> dict[str, Any]:
    """The experiment that a result is of, as plain values.

    This is the form that `Experiment.to_json` writes; `lf.experiments.experiment_from` turns it
    back into the value. Functions, such as a schedule of learning rates, stand in it by their names
    alone, and cannot be turned back.

    Args:
        task: The task.
        network: The network.
        method: `training`, `solution`, `fit`, or another name of the family `method`.
        settings: Every field of that method, as plain values.
        initial: Fields to start from; None where they are drawn.
        precision: The type of the numbers that are drawn.
    """
    return {
        "type": "experiment/experiment",
        "task": task.to_json(),
        "network": network.to_json(),
        "method": {"type": f"method/{method}", **settings},
        "initial": [] if initial is None else np.asarray(initial, np.float64).tolist(),
        "precision": str(np.dtype(precision)),
    }


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a member ended: `ok`, `diverged` (too large) or `non-finite`, and at which step.

    The step is -1 for a member that did not fail.
    """

    kind: str
    step: int = -1

    def __str__(self) -> str:
        return self.kind if self.kind == "ok" else f"{self.kind} at step {self.step}"


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """Receptive fields over flow time, for every member of an ensemble.

    Args:
        steps: Step numbers of the records, (time,).
        times: Flow time = steps × learning rate; (time,), or (member, time) if the learning rate
            was swept.
        initial: Fields at the start, (member, neuron, *shape).
        final: Fields at the end, the same.
        series: What was recorded, each (member, time, …): `weights`, `biases`, `readout`, `loss`,
            `accuracy`, `ipr`, ….
        outcome: One per member.
        experiment: The experiment that made it, as `Experiment.to_json` writes it; empty for a
            trajectory of other origin.
        manifest: Versions, device, precision, seconds.
        stopped: Why it ended: `finished`, `at rest` or `cancelled`.
        events: Flow times of what happened, (member,), nan where it did not.
    """

    steps: np.ndarray
    times: np.ndarray
    initial: np.ndarray
    final: np.ndarray
    series: dict[str, np.ndarray]
    outcome: tuple[Outcome, ...]
    experiment: dict[str, Any]
    manifest: dict[str, Any]
    stopped: str = "finished"
    events: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lattice."""
        return self.initial.shape[2:]

    @property
    def method(self) -> str:
        """How it was made: `training`, `solution`, `fit`; empty where the experiment is unknown."""
        method = self.experiment.get("method")
        kind = method.get("type", "") if isinstance(method, dict) else ""
        return str(kind).rpartition("/")[2]

    @property
    def num_members(self) -> int:
        """Number of members."""
        return self.initial.shape[0]

    @property
    def weights(self) -> np.ndarray:
        """Receptive fields, (member, time, neuron, *shape)."""
        return self._get("weights")

    @property
    def biases(self) -> np.ndarray:
        """Biases, (member, time, neuron)."""
        return self._get("biases")

    @property
    def readout(self) -> np.ndarray:
        """Second layer, (member, time, output, neuron)."""
        return self._get("readout")

    @property
    def loss(self) -> np.ndarray:
        """Loss on a held-out stream, (member, time)."""
        return self._get("loss")

    @property
    def accuracy(self) -> np.ndarray:
        """Fraction of a held-out stream told right, (member, time)."""
        return self._get("accuracy")

    @property
    def ipr(self) -> np.ndarray:
        """Inverse participation ratio of every field, (member, time, neuron)."""
        if "ipr" in self.series:
            return self.series["ipr"]
        return inverse_participation_ratio(self.weights, len(self.shape))

    @property
    def peak(self) -> np.ndarray:
        """Site of the largest weight, (member, time, neuron); on a torus (…, coordinate)."""
        if "peak" in self.series:
            return self.series["peak"]
        return peak_position(self.weights, len(self.shape))

    def _get(self, name: str) -> np.ndarray:
        if name not in self.series:
            raise InputError(
                f"`{name}` was not recorded. Record it with `Record(quantities=(…, '{name}'))`, "
                "if the network has it."
            )
        return self.series[name]

    def members(self, which: slice) -> Trajectory:
        """Some of the members, as a trajectory of their own; the experiment remains that of all."""
        return dataclasses.replace(
            self,
            times=self.times if self.times.ndim == 1 else self.times[which],
            initial=self.initial[which],
            final=self.final[which],
            series={name: values[which] for name, values in self.series.items()},
            outcome=self.outcome[which],
            events={name: values[which] for name, values in self.events.items()},
        )

    def to_xarray(self) -> Any:
        """The recorded series as an `xarray.Dataset` with named axes."""
        import xarray as xr

        space = [f"x{axis}" for axis in range(len(self.shape))] if len(self.shape) > 1 else ["x"]
        axes = {
            "weights": ["member", "time", "neuron", *space],
            "biases": ["member", "time", "neuron"],
            "readout": ["member", "time", "output", "neuron"],
            "readout_bias": ["member", "time", "output"],
            "loss": ["member", "time"],
            "accuracy": ["member", "time"],
            "ipr": ["member", "time", "neuron"],
            "norm": ["member", "time", "neuron"],
            "peak": ["member", "time", "neuron", *(["coordinate"] if len(self.shape) > 1 else [])],
        }
        for name, values in self.series.items():  # of a theory's or a user's own
            more = [f"{name}_{axis}" for axis in range(values.ndim - 2)]
            axes.setdefault(name, ["member", "time", *more])
        data = {name: (axes[name], values) for name, values in self.series.items()}
        data["initial"] = (["member", "neuron", *space], self.initial)
        data["final"] = (["member", "neuron", *space], self.final)
        data["outcome"] = (["member"], np.array([str(outcome) for outcome in self.outcome]))
        data |= {f"{name}_time": (["member"], times) for name, times in self.events.items()}
        swept = self.times.ndim == 2
        coordinates = {
            "time": ("time", self.steps if swept else self.times),
            "step": ("time", self.steps),
            "member": np.arange(self.num_members),
        }
        if swept:
            coordinates["flow_time"] = (["member", "time"], self.times)
        notes = {
            "experiment": json.dumps(self.experiment),
            "manifest": json.dumps(self.manifest),
        }
        return xr.Dataset(data, coords=coordinates, attrs={**notes, "stopped": self.stopped})

    def __repr__(self) -> str:
        bad = [f"member {m} {end}" for m, end in enumerate(self.outcome) if end.kind != "ok"]
        state = f"; {len(bad)} not ok: {bad[0]}, …" if bad else ", all members ok"
        last = inverse_participation_ratio(self.final, len(self.shape))
        last = last[np.isfinite(last)]  # a field of zeros has none
        ipr = "undefined"
        if last.size:
            ipr = f"{last.mean():.3f} (from {last.min():.3f} to {last.max():.3f})"
        until = float(np.max(self.times[..., -1])) if self.times.size else 0.0
        recorded = ", ".join(f"{name} {values.shape}" for name, values in self.series.items())
        return (
            f"Trajectory: {self.num_members} members × {len(self.steps)} records × "
            f"{self.initial.shape[1]} neurons on {self.shape}, flow time 0 … {until:g}\n"
            f"  final IPR {ipr}; {self.stopped}{state}\n"
            f"  recorded: {recorded}"
        )
