"""One entry of the store: what is known of a result without reading its arrays."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..trajectory import Trajectory, inverse_participation_ratio
from .disk import Damaged, Newer, read_bytes, sha256
from .document import LARGEST, parse, unseal, without_nan

SCHEMA = 1  # of an entry's files; raised when an older version could not read them


@dataclasses.dataclass(frozen=True)
class Entry:
    """A stored run without its arrays.

    Args:
        digest: SHA-256 of the specification, its name in the store.
        spec: The specification, canonical JSON.
        meta: Checksums, manifest and metrics.
    """

    digest: str
    spec: str
    meta: dict[str, Any]

    @functools.cached_property
    def specification(self) -> dict[str, Any]:
        """The specification as plain values."""
        return json.loads(self.spec)

    @property
    def metrics(self) -> dict[str, Any]:
        """Final IPR and loss, outcomes, counts and bytes; null where a number is not finite."""
        return self.meta["metrics"]

    @property
    def manifest(self) -> dict[str, Any]:
        """Versions, commit, device, precision, seeds, seconds, outcome."""
        return self.meta["manifest"]

    @property
    def created(self) -> str:
        """When it was stored, in UTC."""
        return self.meta["created"]


def describe(trajectory: Trajectory, seeds: Any) -> dict[str, Any]:
    """What is written beside the arrays: when, by what, and how it ended."""
    made = dict(trajectory.manifest)
    timed = [
        made[name]
        for name in ("compile_seconds", "run_seconds")
        if isinstance(made.get(name), (int, float))
    ]
    manifest = {
        "localfields": __version__,
        "commit": commit(),
        "jax": None,
        "device": None,
        "precision": str(trajectory.final.dtype),
        **made,
        "seeds": trajectory.specification.get("seed") if seeds is None else seeds,
        "seconds": sum(timed) if timed else None,
        "outcome": trajectory.stopped,
    }
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")  # noqa: UP017
    return {
        "schema": SCHEMA,
        "created": now,
        "manifest": without_nan(manifest),
        "metrics": without_nan(measure(trajectory)),
    }


def measure(trajectory: Trajectory) -> dict[str, Any]:
    """Numbers that a list of runs shows and filters by."""
    final = np.asarray(trajectory.final)
    with np.errstate(all="ignore"):
        ipr = inverse_participation_ratio(final, final.ndim - 2) if final.size else np.empty(0)
    loss = np.asarray(trajectory.series.get("loss", np.empty((0, 0))))
    last = loss[:, -1].astype(np.float64) if loss.ndim == 2 and loss.size else np.empty(0)
    ipr, last = ipr[np.isfinite(ipr)], last[np.isfinite(last)]
    return {
        "ipr": float(ipr.mean()) if ipr.size else None,
        "ipr_min": float(ipr.min()) if ipr.size else None,
        "ipr_max": float(ipr.max()) if ipr.size else None,
        "loss": float(last.mean()) if last.size else None,
        "outcomes": dict(sorted(Counter(one.kind for one in trajectory.outcome).items())),
        "members": trajectory.num_members,
        "neurons": int(final.shape[1]),
        "records": len(trajectory.steps),
    }


@functools.cache
def commit() -> str | None:
    """The commit of the package's source, with `-dirty` when it was changed; None where it is no checkout."""
    here = Path(__file__).resolve().parents[1]
    settings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # look, touch nothing

    def git(*words: str) -> str | None:
        try:
            command = ["git", "-C", str(here), *words]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=10, check=False, env=settings
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None  # installed into a folder of somebody else's repository
    return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


# -- reading -----------------------------------------------------------------------------------------------------


def check_schema(found: dict[str, Any]) -> None:
    """Refuse what was written by a newer version.

    Raises:
        Damaged: Or `Newer`.
    """
    schema = found.get("schema")
    if isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA:
        raise Newer(str(schema))
    if schema != SCHEMA or isinstance(schema, bool):
        raise Damaged("no schema")


def read_head(digest: str, handle: int) -> tuple[str, dict[str, Any]]:
    """An entry's specification and what is known of its arrays, checked against the digest and the checksums.

    Args:
        digest: Its name.
        handle: Of its open folder.

    Raises:
        Damaged: When anything of it is not as written.
    """
    found = read_bytes("meta.json", LARGEST, handle)
    meta = parse(found, "a meta.json")
    check_schema(meta)  # first: a newer version may seal in another way
    unseal(found, meta, "a meta.json")
    spec = read_bytes("spec.json", LARGEST, handle)
    if sha256(spec) != digest:
        raise Damaged("a spec.json that is not the one of its name")
    parts = {"digest": str, "created": str, "manifest": dict, "metrics": dict, "checksums": dict}
    if (
        not all(isinstance(meta.get(name), kind) for name, kind in parts.items())
        or meta["digest"] != digest
    ):
        raise Damaged("the meta.json of another run")
    checksums = meta["checksums"]
    if checksums.get("spec.json") != digest or not isinstance(checksums.get("arrays.npz"), str):
        raise Damaged("a meta.json without its checksums")
    parse(spec, "a spec.json")
    return spec.decode(), meta
