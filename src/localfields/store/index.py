"""A cache for the list of runs. It may be lost at any time: it is made again from the entries."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .disk import Damaged, Unreadable, sha256
from .document import parse
from .entry import Entry, check_meta

NAME = "index.sqlite"
VERSION = 1
MAX_SPEC_LENGTH = 1 << 16  # characters of an experiment that are kept in the index
LOCK_TIMEOUT = 1.0  # seconds to wait for another process that writes it

_TABLE = (
    "CREATE TABLE entries (digest TEXT PRIMARY KEY, stamp TEXT, spec TEXT, meta TEXT) WITHOUT ROWID"
)
# The index is there but cannot be used now, which says nothing against what is in it.
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
}
_PASSING |= {sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_AUTH}


def gather(
    root: Path, names: list[str], read: Callable[[str], Entry]
) -> tuple[list[Entry], dict[str, Damaged]]:
    """Every entry, read from its own files only when the index does not know it.

    Args:
        root: The store.
        names: Digests that are there.
        read: Reads one from its files; raises `Damaged`, or `FileNotFoundError` when it is gone.

    Returns:
        The entries, and what is wrong with the others.
    """
    path = root / NAME
    known = _load(path)
    entries, damaged, fresh = [], {}, []
    for digest in names:
        try:
            stamp = _stamp(f"{root}/{digest}")
            entry = _entry(digest, known.get(digest), stamp)
            if entry is None:
                entry = read(digest)
                fresh.append((digest, stamp, entry))
            entries.append(entry)
        except FileNotFoundError:
            continue  # removed in the meantime
        except Damaged as error:
            damaged[digest] = error
        except OSError as error:
            damaged[digest] = Unreadable(f"cannot be read: {error.strerror}")
    gone = known.keys() - set(names)
    fresh = [
        (digest, stamp, entry.spec, json.dumps(entry.meta))
        for digest, stamp, entry in fresh
        if len(entry.spec) < MAX_SPEC_LENGTH
    ]
    if fresh or gone:
        _update(path, fresh, sorted(gone))
    return entries, damaged


def _stamp(path: str) -> str:
    """An entry that was removed and made again under the same name has another."""
    info = os.stat(path, follow_symlinks=False)
    return f"{info.st_ino}-{info.st_mtime_ns}"


def _entry(digest: str, row: tuple[Any, ...] | None, stamp: str) -> Entry | None:
    if row is None or row[0] != stamp or not isinstance(row[1], str) or sha256(row[1]) != digest:
        return None
    try:  # the index may be forged like any other file
        entry = Entry(digest, row[1], parse(row[2], "a row of the index"))
        check_meta(entry.meta)
        _ = entry.experiment  # is parsed and kept
    except (TypeError, Damaged):
        return None
    return entry


def _connect(path: Path) -> sqlite3.Connection:
    if path.is_symlink():
        raise sqlite3.OperationalError("a link")  # writing would follow it
    connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA synchronous=OFF")  # what a loss of power damages is rebuilt
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DROP TABLE IF EXISTS entries")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version={VERSION}")
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _load(path: Path) -> dict[str, tuple[Any, ...]]:
    if not path.exists():
        return {}
    try:
        with contextlib.closing(_connect(path)) as connection:
            rows = connection.execute("SELECT digest, stamp, spec, meta FROM entries").fetchall()
        return {row[0]: row[1:] for row in rows}
    except sqlite3.Error as error:
        _forget(path, error)
    except (
        ValueError,
        OverflowError,
        MemoryError,
    ):  # texts that are none, in a file that was changed
        _forget(path, None)
    return {}


def _update(path: Path, fresh: list[tuple[str, ...]], gone: list[str]) -> None:
    try:
        with contextlib.closing(_connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "DELETE FROM entries WHERE digest = ?", [(digest,) for digest in gone]
            )
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", fresh)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        _forget(path, error)


def _forget(path: Path, error: sqlite3.Error | None) -> None:
    """Remove a damaged index, unless it is merely out of reach."""
    code = getattr(error, "sqlite_errorcode", None)
    if path.is_symlink() or (code is not None and code & 0xFF in _PASSING):
        return
    for name in (path, path.with_name(f"{NAME}-journal")):
        with contextlib.suppress(OSError):
            name.unlink(missing_ok=True)
