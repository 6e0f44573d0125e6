"""Files and folders shared by many processes.

They are written whole or not at all, locked, and read without following links.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from ..errors import InputError, shorten

OLD = 3600.0  # seconds after which what a dead writer left behind is cleaned up
BLOCK = 1 << 22  # bytes read at a time

Result = TypeVar("Result")


class Damaged(Exception):
    """What was read is not what was written; the text follows “is damaged:” in a message."""


class OtherVersion(Damaged):
    """What was read was written by another version; the text follows the name in a message."""


class Unreadable(Damaged):
    """What the operating system does not let us read; the text follows the name in a message."""


def _unreadable(name: str, error: OSError) -> Unreadable:
    reason = error.strerror or shorten(error)
    return Unreadable(f"cannot be read: {name}: {reason}. Check its owner and permissions")


@contextlib.contextmanager
def system_errors(name: str, path: Path) -> Iterator[None]:
    """Turn an error of the operating system into an InputError that names the path."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{name} cannot be read or written at {path}: {error.strerror or shorten(error)}."
        ) from None


# -- locks -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def lock_file(path: Path, wait: bool = True) -> Iterator[bool]:
    """Lock a file between processes and threads; yields whether it is locked (always, if waiting).

    The kernel releases it when its holder dies. The holder removes the file, so that none pile up.
    """
    handle = _acquire(path, wait)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            path.unlink(missing_ok=True)
            fcntl.flock(handle, fcntl.LOCK_UN)  # a forked child may have a copy of the handle
            os.close(handle)


def _acquire(path: Path, wait: bool) -> int | None:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(handle, path):
                return handle
            # Otherwise the last holder removed this file in the meantime: try with the new one.
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        at_path, opened = os.stat(path, follow_symlinks=False), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (at_path.st_dev, at_path.st_ino) == (opened.st_dev, opened.st_ino)


# -- writing ---------------------------------------------------------------------------------------


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a loss of power."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file that does not exist yet, down to the disk."""
    with open(path, "x+b") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside a file and rename: readers see the whole old one or the whole new one."""
    prefix = f".{path.name}-"
    for name in os.listdir(path.parent):
        if name.startswith(prefix) and name.endswith(".part") and is_old(path.parent / name):
            (path.parent / name).unlink(missing_ok=True)  # left behind by a dead writer
    part = path.parent / f".{path.name}-{secrets.token_hex(8)}.part"
    try:
        write_new(part, write)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def is_old(path: Path) -> bool:
    """Whether a file or folder was last touched long ago; false when it is gone."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime < time.time() - OLD
    except FileNotFoundError:
        return False


def move_into_place(work: Path, target: Path) -> bool:
    """Move a finished folder into its place; False when another was there first."""
    try:
        os.rename(work, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    sync_folder(target.parent)
    return True


def discard(path: Path) -> None:
    """Remove a file, a link (not what it points to) or a folder with all in it."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


# -- reading ---------------------------------------------------------------------------------------


def read_folder(path: str, read: Callable[[int], Result]) -> Result:
    """Read files of a folder through its handle. It must be a folder itself, not a link to one.

    Raises:
        FileNotFoundError: If it is gone, or goes while it is read.
        Damaged: If something in it is not as written.
    """
    while True:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise Damaged("a link or a file in place of its folder") from None
            raise _unreadable(path, error) from None
        try:
            return read(handle)
        except Damaged:
            if _is_at(handle, Path(path)):
                raise
            # Otherwise it was removed, and perhaps made again, while it was read: look again.
        except OSError as error:
            raise _unreadable(path, error) from None
        finally:
            os.close(handle)


@contextlib.contextmanager
def open_plain(name: str, within: int | None = None) -> Iterator[IO[bytes]]:
    """Open a plain file to read: no link is followed, and nothing waits for a pipe."""
    with os.fdopen(_open_handle(name, within), "rb") as file:
        yield file


def read_bytes(name: str, max_size: int, within: int | None = None) -> bytes:
    """All of a small plain file; without buffers, as thousands are read in a row."""
    handle = _open_handle(name, within)
    try:
        size = os.fstat(handle).st_size
        if size > max_size:
            raise Damaged(f"a {os.path.basename(name)} of more than {max_size} bytes")
        parts = [os.read(handle, size)]
        while parts[-1] and (left := size - sum(map(len, parts))) > 0:
            parts.append(os.read(handle, left))
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(handle)


def _open_handle(name: str, within: int | None) -> int:
    shown = os.path.basename(name)
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
    except FileNotFoundError:
        raise Damaged(f"no {shown}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Damaged(f"a {shown} that is a link") from None
        raise _unreadable(shown, error) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Damaged(f"a {shown} that is no plain file")
    return handle


def list_names(path: Path, form: re.Pattern[str]) -> list[str]:
    """Names in a folder that have a form, sorted; none if there is no such folder."""
    with system_errors("The store", path):
        if not path.exists():
            return []
        return sorted(name for name in os.listdir(path) if form.fullmatch(name))


def sha256(content: bytes | str) -> str:
    """SHA-256 in hexadecimal digits."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()
