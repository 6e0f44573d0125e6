"""The store: a folder with one entry a specification, safe with many processes at once."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from ..errors import InputError, show
from ..trajectory import Trajectory
from .arrays import from_arrays, to_arrays
from .checkpoint import Checkpoint
from .codec import read_arrays, write_arrays
from .disk import (
    Damaged,
    Found,
    Newer,
    discard,
    hold,
    is_old,
    names,
    publish,
    read_bytes,
    read_folder,
    regular,
    replace,
    sha256,
    sync_folder,
    told,
    write_new,
)
from .document import LARGEST, parse, seal, unseal
from .entry import SCHEMA, Entry, check_schema, describe, read_head
from .filters import Filter, choose
from .index import gather

VARIABLE = "LOCALFIELDS_STORE"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WORK = re.compile(r"[0-9a-f]{64}-[0-9a-f]{16}")

Digests = list[str]  # inside the class `list` is a method
Entries = list[Entry]


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something in a store that is not as it was written."""

    digest: str
    message: str

    def __str__(self) -> str:
        return self.message


Problems = list[Problem]


class Store:
    """Results by the digest of their specification, in a folder that many processes may share.

    An entry is a folder named by the SHA-256 of its specification, with `spec.json`, `arrays.npz` and `meta.json`. It
    appears whole, by one rename, and never changes; reading holds it against its checksums.

    Args:
        path: The folder. When left out, the environment variable LOCALFIELDS_STORE, or `runs` in the current folder.

    Example:
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> store.digests()
        []
    """

    def __init__(self, path: str | Path | None = None):
        self.path = Path(path or os.environ.get(VARIABLE) or "runs").expanduser().absolute()
        self._cleaned = False

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    # -- entries ------------------------------------------------------------------------------------------------

    def save(
        self, canonical: str, digest: str, trajectory: Trajectory, *, seeds: Any = None
    ) -> Path:
        """Store the result of a specification. An entry that is there already is kept.

        Args:
            canonical: The specification as canonical JSON.
            digest: Its SHA-256.
            trajectory: The result.
            seeds: Of everything random, for the manifest; when left out, the seed in the trajectory's specification.

        Returns:
            The entry's folder.

        Raises:
            InputError: When it cannot be written, or the entry that is there is damaged.
        """
        _check_digest(digest)
        if sha256(canonical) != digest:
            raise InputError(
                f"The digest {show(digest)} does not belong to this specification. Compute it again."
            )
        try:
            parse(canonical, "a text")
        except Damaged as error:
            raise InputError(
                f"This specification is not valid JSON ({error}). Give the canonical form of an experiment."
            ) from None
        target = self.path / digest
        if digest not in self:
            arrays, meta = to_arrays(trajectory), {"digest": digest, **describe(trajectory, seeds)}
            with told("The store", self.path), self._workspace(digest) as work:
                write_new(work / "spec.json", lambda file: file.write(canonical.encode()))
                checksums = {"spec.json": digest}
                write_new(
                    work / "arrays.npz",
                    lambda file: checksums.update({"arrays.npz": write_arrays(file, arrays)}),
                )
                size = (work / "arrays.npz").stat().st_size
                meta = {
                    **meta,
                    "checksums": checksums,
                    "metrics": {**meta["metrics"], "bytes": size},
                }
                write_new(work / "meta.json", lambda file: file.write(seal(meta).encode()))
                sync_folder(work)
                if publish(work, target):
                    return target
        for problem in self.verify(digest):
            raise InputError(
                problem.message
            )  # what is there is no result: do not drop this one in silence
        return target

    def load(self, digest: str) -> Trajectory:
        """Read a result.

        Raises:
            InputError: When it is absent, damaged, or of a newer version.
        """
        return self._see(digest, self._load)

    def entry(self, digest: str) -> Entry:
        """Read what is known of a result without its arrays.

        Raises:
            InputError: When it is absent, damaged, or of a newer version.
        """
        return self._see(digest, self._read)

    def __contains__(self, digest: str) -> bool:
        return bool(_DIGEST.fullmatch(digest)) and os.path.lexists(self.path / digest)

    def digests(self) -> Digests:
        """The names of all entries."""
        return names(self.path, _DIGEST)

    def find(self, prefix: str) -> str:
        """The one digest that starts so.

        Raises:
            InputError: When none or several do.
        """
        prefix = prefix.strip().lower()
        found = [digest for digest in self.digests() if digest.startswith(prefix)] if prefix else []
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(digest[: len(prefix) + 4] for digest in found[:3])
            raise InputError(
                f"{len(found)} runs start with {prefix}. "
                f"Add digits: {listed}{', …' if len(found) > 3 else ''}."
            )
        raise InputError(
            f"No run {prefix}… in {self.path}. List them with `localfields runs list`."
        )

    def list(self, filters: Iterable[str] = ()) -> Entries:
        """All entries that pass the filters, in the order in which they were stored; damaged ones are left out.

        Args:
            filters: Such as `gain=100` or `steps>=1000`: a field anywhere in specification, metrics or manifest.

        Raises:
            InputError: When a filter cannot be read, or asks for a field that no run has.
        """
        chosen = [Filter.of(text) for text in filters]
        found, damaged = gather(self.path, self.digests(), self._read)
        if damaged:
            one = next(iter(damaged))
            warnings.warn(
                f"{len(damaged)} of {len(found) + len(damaged)} runs cannot be read and are left out, such as "
                f"{one[:12]}: {damaged[one]}. `localfields runs verify` names them all.",
                stacklevel=2,
            )
        return choose(sorted(found, key=lambda one: (str(one.created), one.digest)), chosen)

    def remove(self, digest: str) -> None:
        """Remove an entry, whatever its state; its checkpoint too.

        Raises:
            InputError: When it is absent.
        """
        self._check_there(digest)
        with told("The store", self.path):
            grave = self._tmp() / f"{digest}-{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                os.rename(self.path / digest, grave)  # at once: no reader finds half of it
                sync_folder(self.path)
                discard(grave)
        self.checkpoint(digest).clear()

    def verify(self, digest: str) -> Problems:
        """Hold one entry against its checksums, its arrays included; empty when all is well.

        Raises:
            InputError: When it is absent.
        """
        self._check_there(digest)
        return self._problems(digest)

    def verify_all(self) -> Problems:
        """Hold every entry and sweep against its checksums."""
        found = [problem for digest in self.digests() for problem in self._problems(digest)]
        for digest in self.list_sweeps():
            try:
                self.load_sweep(digest)
            except InputError as error:
                found.append(Problem(digest, str(error)))
        return found

    # -- work under way -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, digest: str) -> Iterator[None]:
        """Hold the right to compute an entry: one process or thread at a time; a holder that is killed lets go."""
        _check_digest(digest)
        with contextlib.ExitStack() as stack:
            with told("The store", self.path):
                (self.path / "locks").mkdir(parents=True, exist_ok=True)
                stack.enter_context(hold(self.path / "locks" / digest))
            yield

    def checkpoint(self, digest: str, path: str | Path | None = None) -> Checkpoint:
        """What a run needs to go on after an interruption; in the store, or at a path of your own."""
        _check_digest(digest)
        return Checkpoint(path or self.path / "checkpoints" / f"{digest}.npz")

    def clean(self) -> None:
        """Remove what killed writers left behind an hour ago or earlier."""
        tmp = self.path / "tmp"
        for name in os.listdir(tmp) if tmp.is_dir() and not tmp.is_symlink() else ():
            path = tmp / name.removesuffix(".lock")
            if _WORK.fullmatch(path.name) and is_old(tmp / name):
                with (
                    contextlib.suppress(OSError),
                    hold(path.with_name(f"{path.name}.lock"), wait=False) as free,
                ):
                    if free:
                        discard(path)

    # -- sweeps -------------------------------------------------------------------------------------------------

    def save_sweep(self, digest: str, text: str) -> Path:
        """Store a small JSON document, such as a sweep's list of runs, in place of an older one of that name.

        Raises:
            InputError: When it is no JSON object, or cannot be written.
        """
        _check_digest(digest)
        try:
            parse(text, "a text")
        except Damaged as error:
            raise InputError(f"This sweep is not valid JSON ({error}).") from None
        path = self.path / "sweeps" / f"{digest}.json"
        sealed = seal({"schema": SCHEMA, "digest": digest, "text": text})
        if len(sealed) > LARGEST:
            raise InputError(
                f"This sweep takes {len(sealed)} bytes to store; at most {LARGEST} are allowed. "
                "Divide it into several."
            )
        with told("The store", path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, lambda file: file.write(sealed.encode()))
        return path

    def load_sweep(self, digest: str) -> str:
        """Read such a document, as it was given.

        Raises:
            InputError: When it is absent or damaged.
        """
        _check_digest(digest)
        path = self.path / "sweeps" / f"{digest}.json"
        if not os.path.lexists(path):
            raise InputError(f"No sweep {digest[:12]} in {path.parent}. Run it first.")
        try:
            line = read_bytes(str(path), LARGEST)
            found = parse(line, "a document")
            check_schema(found)
            unseal(line, found, "a document")
            if found["digest"] != digest:
                raise Damaged("one of another name")
            return found["text"]
        except Newer as error:
            raise InputError(
                f"The sweep {digest[:12]} was written by a newer version ({error}). {_UPDATE}"
            ) from None
        except Damaged as error:
            raise InputError(
                f"The sweep {digest[:12]} is damaged: {error}. Remove {path} and run it again."
            ) from None

    def list_sweeps(self) -> Digests:
        """The names of all such documents."""
        found = names(self.path / "sweeps", re.compile(_DIGEST.pattern + r"\.json"))
        return [name.removesuffix(".json") for name in found]

    # -- inside -------------------------------------------------------------------------------------------------

    def _check_there(self, digest: str) -> None:
        _check_digest(digest)
        if digest not in self:
            self._refuse(digest, FileNotFoundError())

    def _refuse(self, digest: str, error: Exception) -> NoReturn:
        """Tell what is wrong with an entry."""
        short = digest[:12]
        if isinstance(error, FileNotFoundError):
            raise InputError(
                f"No run {short} in {self.path}. List them with `localfields runs list`."
            )
        if isinstance(error, Newer):
            raise InputError(f"The run {short} was written by a newer version ({error}). {_UPDATE}")
        raise InputError(
            f"The run {short} is damaged: {error}. "
            f"Remove it with `localfields runs rm {short}` and run it again."
        )

    def _see(self, digest: str, read: Callable[[str], Found]) -> Found:
        _check_digest(digest)
        try:
            return read(digest)
        except (FileNotFoundError, Damaged) as error:
            self._refuse(digest, error)

    def _problems(self, digest: str) -> Problems:
        try:
            self._load(digest)
        except FileNotFoundError:
            return []
        except Damaged as error:
            try:
                self._refuse(digest, error)
            except InputError as told:
                return [Problem(digest, str(told))]
        return []

    def _read(self, digest: str) -> Entry:
        return Entry(
            digest, *read_folder(f"{self.path}/{digest}", lambda handle: read_head(digest, handle))
        )

    def _load(self, digest: str) -> Trajectory:
        def read(handle: int) -> Trajectory:
            _, meta = read_head(digest, handle)
            with regular("arrays.npz", handle) as file:
                return from_arrays(read_arrays(file, meta["checksums"]["arrays.npz"]))

        return read_folder(f"{self.path}/{digest}", read)

    def _tmp(self) -> Path:
        tmp = self.path / "tmp"
        tmp.mkdir(parents=True, exist_ok=True)
        if tmp.is_symlink():
            raise InputError(
                f"{tmp} is a symbolic link, and the store writes only to real folders. Remove the link."
            )
        if not self._cleaned:
            self._cleaned = True
            self.clean()
        return tmp

    @contextlib.contextmanager
    def _workspace(self, digest: str) -> Iterator[Path]:
        """A folder to make an entry in, with a lock that tells that its writer lives."""
        work = self._tmp() / f"{digest}-{secrets.token_hex(8)}"
        with hold(work.with_name(f"{work.name}.lock")):
            work.mkdir()
            try:
                yield work
            finally:
                discard(work)


_UPDATE = "It was written by a newer version of localfields: update this one."


def _check_digest(digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            f"{show(digest)} is not a digest of 64 hexadecimal digits. "
            "`Store.find` completes the start of one."
        )
