"""One entry of the store: what is known of a result without reading its arrays."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import subprocess
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import show
from ..trajectory import Trajectory, inverse_participation_ratio
from .disk import Damaged, OtherVersion, read_bytes, sha256
from .document import MAX_JSON_BYTES, parse, unseal, without_nan

# Of experiments and of the files of an entry. Raised when their meaning changes: it is part of an
# experiment's canonical form, so that results get new digests.
SCHEMA = 2


@dataclasses.dataclass(frozen=True)
class Entry:
    """A stored run without its arrays.

    Args:
        digest: SHA-256 of the experiment's canonical form, its name in the store.
        spec: That form, JSON.
        meta: Checksums, manifest and metrics.
    """

    digest: str
    spec: str
    meta: dict[str, Any]

    @functools.cached_property
    def experiment(self) -> dict[str, Any]:
        """The experiment as plain values."""
        return parse(self.spec, "a spec.json")

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


# -- writing ---------------------------------------------------------------------------------------


def describe(trajectory: Trajectory, experiment: dict[str, Any]) -> dict[str, Any]:
    """What is written beside the arrays: when, by what, and how it ended."""
    recorded = dict(trajectory.manifest)
    timed = [recorded.get(name) for name in ("compile_seconds", "run_seconds")]
    timed = [seconds for seconds in timed if isinstance(seconds, (int, float))]
    method = experiment.get("method")
    manifest = {
        "localfields": __version__,
        "commit": commit(),
        "jax": None,
        "device": None,
        "precision": str(trajectory.final.dtype),
        **recorded,
        "seeds": method.get("seed") if isinstance(method, dict) else None,
        "seconds": sum(timed) if timed else None,
        "outcome": trajectory.stopped,
    }
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")  # noqa: UP017
    return {
        "schema": SCHEMA,
        "created": now,
        "manifest": without_nan(manifest),
        "metrics": without_nan(summarize(trajectory)),
    }


def summarize(trajectory: Trajectory) -> dict[str, Any]:
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
        "outcomes": dict(sorted(Counter(end.kind for end in trajectory.outcome).items())),
        "members": trajectory.num_members,
        "neurons": int(final.shape[1]),
        "records": len(trajectory.steps),
    }


@functools.cache
def commit() -> str | None:
    """The commit of the package's source, `-dirty` if it was changed; None outside a checkout."""
    folder = Path(__file__).resolve().parents[1]
    settings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # read only

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(folder), *arguments]
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=10, check=False, env=settings
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return result.stdout.strip() if result.returncode == 0 else None

    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None  # installed into a folder of somebody else's repository
    return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


# -- reading ---------------------------------------------------------------------------------------


def check_schema(document: dict[str, Any]) -> None:
    """Check that a document was written by this version.

    Raises:
        Damaged: Or `OtherVersion`.
    """
    schema = document.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise Damaged("no schema")
    if schema > SCHEMA:
        raise OtherVersion(
            f"was written by a newer version of localfields (schema {schema}): update this one"
        )
    if schema < SCHEMA:
        raise OtherVersion(
            f"was written by an older version of localfields (schema {schema}), which this one "
            "cannot read: remove it, and run it again"
        )


_CREATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00")
MAX_WORD = 100  # characters of an outcome


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_ipr(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1 + 1e-6  # up to rounding


def is_word(value: Any) -> bool:
    """Whether a value is a short text that can be printed as it is."""
    return isinstance(value, str) and len(value) <= MAX_WORD and value.isprintable()


def _are_outcomes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_word(kind) and _is_count(count) for kind, count in value.items()
    )


# What `describe` writes where it does not write null; the rest of a manifest is free.
_LEGAL = {
    "metrics": {
        **dict.fromkeys(("ipr", "ipr_min", "ipr_max"), _is_ipr),
        **dict.fromkeys(("members", "neurons", "records", "bytes"), _is_count),
        "loss": _is_number,
        "outcomes": _are_outcomes,
    },
    "manifest": {"outcome": is_word, "seconds": _is_number},
}


def check_meta(meta: dict[str, Any]) -> None:
    """Check the types and ranges of what lists show: anybody can seal a meta.json of their own.

    Raises:
        Damaged: If a value is none that a run has.
    """
    if not isinstance(meta.get("created"), str) or not _CREATED.fullmatch(meta["created"]):
        raise Damaged(f"it was stored at {show(meta.get('created'))}, which is not a time")
    for part, legal in _LEGAL.items():
        values = meta.get(part)
        if not isinstance(values, dict):
            raise Damaged(f"a meta.json without {part}")
        for name, is_legal in legal.items():
            value = values.get(name)
            if value is not None and not is_legal(value):
                raise Damaged(f"its `{name}` is {show(value)}, which no run has")


def read_head(digest: str, handle: int) -> tuple[str, dict[str, Any]]:
    """An entry's spec.json and meta.json, checked against the digest and the checksums.

    Args:
        digest: Its name.
        handle: Of its open folder.

    Raises:
        Damaged: If anything in it is not as written.
    """
    line = read_bytes("meta.json", MAX_JSON_BYTES, handle)
    meta = parse(line, "a meta.json")
    check_schema(meta)  # first: another version may seal in another way
    unseal(line, meta, "a meta.json")
    spec = read_bytes("spec.json", MAX_JSON_BYTES, handle)
    if sha256(spec) != digest:
        raise Damaged("a spec.json that does not belong to its digest")
    parts = {"digest": str, "created": str, "manifest": dict, "metrics": dict, "checksums": dict}
    complete = all(isinstance(meta.get(name), kind) for name, kind in parts.items())
    if not complete or meta["digest"] != digest:
        raise Damaged("the meta.json of another run")
    checksums = meta["checksums"]
    if checksums.get("spec.json") != digest or not isinstance(checksums.get("arrays.npz"), str):
        raise Damaged("a meta.json without its checksums")
    check_meta(meta)
    parse(spec, "a spec.json")
    return spec.decode(), meta
