"""A trajectory as named arrays, and back, exactly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import InputError, show
from ..trajectory import Outcome, Trajectory
from .disk import Damaged
from .document import pack, parse, unpack
from .entry import is_word

PARTS = ("steps", "times", "initial", "final")


def to_arrays(trajectory: Trajectory) -> dict[str, np.ndarray]:
    """All of a trajectory but its experiment, by name; manifest and outcome as the bytes of JSON.

    Raises:
        InputError: If its parts do not fit together, or are not plain values.
    """
    plain = {name: pack(getattr(trajectory, name), name) for name in ("manifest", "stopped")}
    about = json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()
    try:
        parse(about, "a description")
    except Damaged as error:
        raise InputError(
            f"The manifest of this trajectory is too large to store ({error}). "
            "Keep large values elsewhere."
        ) from None
    if not is_word(trajectory.stopped):
        raise InputError(
            f"A trajectory cannot have stopped for {show(trajectory.stopped)}. Give a short text."
        )
    arrays = {name: np.asarray(getattr(trajectory, name)) for name in PARTS}
    arrays |= {f"series.{name}": np.asarray(values) for name, values in trajectory.series.items()}
    arrays |= {f"events.{name}": np.asarray(values) for name, values in trajectory.events.items()}
    arrays["outcome.kind"] = np.array([end.kind for end in trajectory.outcome], dtype=np.str_)
    arrays["outcome.step"] = np.array([end.step for end in trajectory.outcome], dtype=np.int64)
    arrays["about"] = np.frombuffer(about, np.uint8)
    if problem := _misfit(arrays):
        raise InputError(
            f"The parts of this trajectory do not fit together: {problem}. "
            "See `Trajectory` for the shapes."
        )
    return arrays


def from_arrays(arrays: dict[str, np.ndarray], experiment: dict[str, Any]) -> Trajectory:
    """The trajectory that `to_arrays` took apart.

    Raises:
        Damaged: If the parts do not make one.
    """
    names = {*PARTS, "outcome.kind", "outcome.step", "about"}
    recognized = all(name in names or name.startswith(("series.", "events.")) for name in arrays)
    if not recognized or names - arrays.keys():
        raise Damaged("arrays that are not those of a trajectory")
    if problem := _misfit(arrays):
        raise Damaged(problem)
    about = unpack(parse(arrays["about"].tobytes(), "a description"))
    manifest, stopped = about.get("manifest"), about.get("stopped")
    if len(about) != 2 or not isinstance(manifest, dict) or not isinstance(stopped, str):
        raise Damaged("a description that is not one of a trajectory")
    if not is_word(stopped):
        raise Damaged(f"it stopped for {show(stopped)}, which no run does")
    ends = zip(arrays["outcome.kind"].tolist(), arrays["outcome.step"].tolist(), strict=True)

    def group(prefix: str) -> dict[str, np.ndarray]:
        named = {name: array for name, array in arrays.items() if name.startswith(prefix)}
        return {name.removeprefix(prefix): array for name, array in named.items()}

    return Trajectory(
        **{name: arrays[name] for name in PARTS},
        series=group("series."),
        outcome=tuple(Outcome(kind, step) for kind, step in ends),
        experiment=experiment,
        manifest=manifest,
        stopped=stopped,
        events=group("events."),
    )


def _misfit(arrays: dict[str, np.ndarray]) -> str | None:
    """What does not fit together, in words."""
    steps, times, initial, final = (arrays[name] for name in PARTS)
    kind, step, about = arrays["outcome.kind"], arrays["outcome.step"], arrays["about"]
    if steps.ndim != 1 or times.ndim not in (1, 2) or times.shape[-1] != len(steps):
        return f"{steps.shape} steps at {times.shape} times"
    if initial.ndim < 2 or final.shape != initial.shape:
        return f"first fields of shape {initial.shape} and last ones of {final.shape}"
    if kind.shape != (len(initial),) or step.shape != kind.shape:
        return f"outcomes of {kind.size} members of {len(initial)}"
    described = about.ndim == 1 and about.dtype == np.uint8
    if not described or kind.dtype.kind != "U" or step.dtype.kind != "i":
        return "outcomes or a description of another type"
    if odd := next((word for word in kind.tolist() if not is_word(word)), None):
        return f"the outcome {show(odd)}, which is not a short text"
    for name, array in arrays.items():
        shown = show(name)
        if name.startswith("series.") and array.shape[:2] != (len(initial), len(steps)):
            sizes = f"{len(initial)} members and {len(steps)} records"
            return f"{shown} of shape {array.shape} for {sizes}"
        if name.startswith("events.") and array.shape != (len(initial),):
            return f"{shown} of shape {array.shape} for {len(initial)} members"
        if name in PARTS and array.dtype.kind not in "biuf":
            return f"{shown} that are not numbers"
    return None
