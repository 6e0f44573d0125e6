"""The store: a folder with one entry per experiment, safe with many processes at once."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .._files import absolute_path
from ..errors import InputError, show
from ..trajectory import Trajectory
from .arrays import from_arrays, to_arrays
from .checkpoint import Checkpoint
from .codec import read_arrays, write_arrays
from .disk import (
    Damaged,
    OtherVersion,
    Result,
    Unreadable,
    discard,
    is_old,
    list_names,
    lock_file,
    move_into_place,
    open_plain,
    read_bytes,
    read_folder,
    replace,
    sha256,
    sync_folder,
    system_errors,
    write_new,
)
from .document import MAX_JSON_BYTES, parse, seal, unseal
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
    """Results by the digest of their experiment, in a folder that many processes may share.

    An entry is a folder named by the SHA-256 of the experiment's canonical form. It holds that form
    in `spec.json`, the result in `arrays.npz`, and `meta.json`. It appears whole, by one rename,
    and never changes; reading compares it with its checksums.

    Args:
        path: The folder; by default the environment variable LOCALFIELDS_STORE, or `runs` in the
            current folder.

    Example:
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> store.digests()
        []
    """

    def __init__(self, path: str | Path | None = None):
        self.path = absolute_path(path or os.environ.get(VARIABLE) or "runs")
        self._cleaned = False

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    # -- entries -----------------------------------------------------------------------------------

    def save(self, canonical: str, digest: str, trajectory: Trajectory) -> Path:
        """Store the result of an experiment. An entry that exists already is kept.

        Args:
            canonical: The experiment's canonical form, `Experiment.canonical()`.
            digest: Its SHA-256.
            trajectory: The result.

        Returns:
            The entry's folder.

        Raises:
            InputError: If it cannot be written, or the entry that exists is damaged.
        """
        _check_digest(digest)
        if sha256(canonical) != digest:
            raise InputError(
                f"The digest {show(digest)} does not belong to this experiment. Compute it again."
            )
        try:
            experiment = parse(canonical, "a text")
        except Damaged as error:
            raise InputError(
                f"This experiment is not valid JSON ({error}). Give its canonical form."
            ) from None
        target = self.path / digest
        if digest not in self:
            arrays = to_arrays(trajectory)
            meta = {"digest": digest, **describe(trajectory, experiment)}
            with system_errors("The store", self.path), self._workspace(digest) as work:
                write_new(work / "spec.json", lambda file: file.write(canonical.encode()))
                checksums = {"spec.json": digest}
                write_new(
                    work / "arrays.npz",
                    lambda file: checksums.update({"arrays.npz": write_arrays(file, arrays)}),
                )
                meta["checksums"] = checksums
                meta["metrics"]["bytes"] = (work / "arrays.npz").stat().st_size
                write_new(work / "meta.json", lambda file: file.write(seal(meta).encode()))
                sync_folder(work)
                if move_into_place(work, target):
                    return target
        # Somebody stored it before. If that is no result, this one must not be dropped in silence.
        for problem in self.verify(digest):
            raise InputError(problem.message)
        return target

    def load(self, digest: str) -> Trajectory:
        """Read a result.

        Raises:
            InputError: If it is absent, damaged, or of another version.
        """
        return self._checked(digest, self._load)

    def entry(self, digest: str) -> Entry:
        """Read what is known of a result without its arrays.

        Raises:
            InputError: If it is absent, damaged, or of another version.
        """
        return self._checked(digest, self._read)

    def __contains__(self, digest: str) -> bool:
        return bool(_DIGEST.fullmatch(digest)) and os.path.lexists(self.path / digest)

    def digests(self) -> Digests:
        """The names of all entries."""
        return list_names(self.path, _DIGEST)

    def find(self, prefix: str) -> str:
        """The one digest that starts so.

        Raises:
            InputError: If none or several do.
        """
        prefix = prefix.strip().lower()
        hits = [digest for digest in self.digests() if digest.startswith(prefix)] if prefix else []
        if len(hits) == 1:
            return hits[0]
        if hits:
            listed = ", ".join(digest[: len(prefix) + 4] for digest in hits[:3])
            raise InputError(
                f"{len(hits)} runs start with {prefix}. "
                f"Add digits: {listed}{', …' if len(hits) > 3 else ''}."
            )
        raise InputError(
            f"No run {prefix}… in {self.path}. List them with `localfields runs list`."
        )

    def list(self, filters: Iterable[str] = ()) -> Entries:
        """All entries that pass the filters, in the order of storing; damaged ones are left out.

        Args:
            filters: Such as `gain=100` or `steps>=1000`: a field anywhere in experiment, metrics or
                manifest.

        Raises:
            InputError: If a filter cannot be read, or asks for a field that no run has.
        """
        parsed = [Filter.of(text) for text in filters]
        with system_errors("The store", self.path):
            entries, damaged = gather(self.path, self.digests(), self._read)
        if damaged:
            digest = next(iter(damaged))
            warnings.warn(
                f"{len(damaged)} of {len(entries) + len(damaged)} runs cannot be read and are left "
                f"out, such as {digest[:12]}: {damaged[digest]}. `localfields runs verify` names "
                "them all.",
                stacklevel=2,
            )
        return choose(sorted(entries, key=lambda entry: (str(entry.created), entry.digest)), parsed)

    def remove(self, digest: str) -> None:
        """Remove an entry, whatever its state; its checkpoint too.

        Raises:
            InputError: If it is absent.
        """
        self._check_present(digest)
        with system_errors("The store", self.path):
            grave = self._tmp() / f"{digest}-{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                os.rename(self.path / digest, grave)  # at once: no reader finds half of it
                sync_folder(self.path)
                discard(grave)
        self.checkpoint(digest).clear()

    def verify(self, digest: str) -> Problems:
        """Compare one entry with its checksums, its arrays included; empty if all is well.

        Raises:
            InputError: If it is absent.
        """
        self._check_present(digest)
        return self._problems(digest)

    def verify_all(self) -> Problems:
        """Compare every entry and sweep with its checksums."""
        problems = [problem for digest in self.digests() for problem in self._problems(digest)]
        for digest in self.list_sweeps():
            try:
                self.load_sweep(digest)
            except InputError as error:
                problems.append(Problem(digest, str(error)))
        return problems

    # -- work under way ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, digest: str) -> Iterator[None]:
        """Hold the right to compute an entry, one process or thread at a time, while it lives."""
        _check_digest(digest)
        with contextlib.ExitStack() as stack:
            with system_errors("The store", self.path):
                (self.path / "locks").mkdir(parents=True, exist_ok=True)
                stack.enter_context(lock_file(self.path / "locks" / digest))
            yield

    def checkpoint(self, digest: str, path: str | Path | None = None) -> Checkpoint:
        """What a run needs to resume after an interruption; in the store, or at another path."""
        _check_digest(digest)
        return Checkpoint(path or self.path / "checkpoints" / f"{digest}.npz")

    def clean(self) -> None:
        """Remove what killed writers left behind an hour ago or earlier."""
        tmp = self.path / "tmp"
        for name in os.listdir(tmp) if tmp.is_dir() and not tmp.is_symlink() else ():
            path = tmp / name.removesuffix(".lock")
            if _WORK.fullmatch(path.name) and is_old(tmp / name):
                lock = path.with_name(f"{path.name}.lock")
                with contextlib.suppress(OSError), lock_file(lock, wait=False) as free:
                    if free:
                        discard(path)

    # -- sweeps ------------------------------------------------------------------------------------

    def save_sweep(self, digest: str, text: str) -> Path:
        """Store a sweep's JSON document, in place of an older one of that name.

        Raises:
            InputError: If it is no JSON object, or cannot be written.
        """
        _check_digest(digest)
        try:
            parse(text, "a text")
        except Damaged as error:
            raise InputError(f"This sweep is not valid JSON ({error}).") from None
        path = self.path / "sweeps" / f"{digest}.json"
        sealed = seal({"schema": SCHEMA, "digest": digest, "text": text})
        if len(sealed) > MAX_JSON_BYTES:
            raise InputError(
                f"This sweep takes {len(sealed)} bytes to store; at most {MAX_JSON_BYTES} are "
                "allowed. Divide it into several."
            )
        with system_errors("The store", path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, lambda file: file.write(sealed.encode()))
        return path

    def load_sweep(self, digest: str) -> str:
        """Read a sweep's document, as it was given.

        Raises:
            InputError: If it is absent, damaged, or of another version.
        """
        _check_digest(digest)
        path = self.path / "sweeps" / f"{digest}.json"
        if not os.path.lexists(path):
            raise InputError(f"No sweep {digest[:12]} in {path.parent}. Run it first.")
        try:
            line = read_bytes(str(path), MAX_JSON_BYTES)
            document = parse(line, "a document")
            check_schema(document)
            unseal(line, document, "a document")
            if document["digest"] != digest:
                raise Damaged("one of another name")
            return document["text"]
        except (OtherVersion, Unreadable) as error:
            raise InputError(f"The sweep {digest[:12]} {error}.") from None
        except Damaged as error:
            raise InputError(
                f"The sweep {digest[:12]} is damaged: {error}. Remove {path} and run it again."
            ) from None

    def list_sweeps(self) -> Digests:
        """The names of all sweeps."""
        files = list_names(self.path / "sweeps", re.compile(_DIGEST.pattern + r"\.json"))
        return [name.removesuffix(".json") for name in files]

    # -- inside ------------------------------------------------------------------------------------

    def _check_present(self, digest: str) -> None:
        _check_digest(digest)
        if digest not in self:
            raise self._error(digest, FileNotFoundError())

    def _error(self, digest: str, error: Exception) -> InputError:
        """What is wrong with an entry, for people."""
        short = digest[:12]
        if isinstance(error, FileNotFoundError):
            return InputError(
                f"No run {short} in {self.path}. List them with `localfields runs list`."
            )
        if isinstance(error, (OtherVersion, Unreadable)):
            return InputError(f"The run {short} {error}.")
        return InputError(
            f"The run {short} is damaged: {error}. "
            f"Remove it with `localfields runs rm {short}` and run it again."
        )

    def _checked(self, digest: str, read: Callable[[str], Result]) -> Result:
        _check_digest(digest)
        try:
            return read(digest)
        except (FileNotFoundError, Damaged) as error:
            raise self._error(digest, error) from None

    def _problems(self, digest: str) -> Problems:
        try:
            self._load(digest)
        except FileNotFoundError:
            return []  # removed in the meantime
        except Damaged as error:
            return [Problem(digest, str(self._error(digest, error)))]
        return []

    def _read(self, digest: str) -> Entry:
        folder = f"{self.path}/{digest}"
        return Entry(digest, *read_folder(folder, lambda handle: read_head(digest, handle)))

    def _load(self, digest: str) -> Trajectory:
        def read(handle: int) -> Trajectory:
            spec, meta = read_head(digest, handle)
            experiment = parse(spec, "a spec.json")
            experiment.pop("schema", None)  # as `Experiment.to_json` writes it
            with open_plain("arrays.npz", handle) as file:
                arrays = read_arrays(file, meta["checksums"]["arrays.npz"])
            return from_arrays(arrays, experiment)

        return read_folder(f"{self.path}/{digest}", read)

    def _tmp(self) -> Path:
        tmp = self.path / "tmp"
        tmp.mkdir(parents=True, exist_ok=True)
        if tmp.is_symlink():
            raise InputError(
                f"{tmp} is a symbolic link, and the store writes only to real folders. Remove the "
                "link."
            )
        if not self._cleaned:
            self._cleaned = True
            self.clean()
        return tmp

    @contextlib.contextmanager
    def _workspace(self, digest: str) -> Iterator[Path]:
        """A folder to make an entry in, with a lock that shows that its writer lives."""
        work = self._tmp() / f"{digest}-{secrets.token_hex(8)}"
        with lock_file(work.with_name(f"{work.name}.lock")):
            work.mkdir()
            try:
                yield work
            finally:
                discard(work)


def _check_digest(digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            f"{show(digest)} is not a digest of 64 hexadecimal digits. "
            "`Store.find` completes the start of one."
        )
