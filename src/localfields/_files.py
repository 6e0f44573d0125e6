"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from .errors import InputError, shorten, show


def absolute_path(path: str | Path) -> Path:
    """A path from the root, with `~` for a home folder.

    Raises:
        InputError: If there is no such user, or the current folder is gone.
    """
    try:
        if "\0" in str(path):
            raise InputError(f"{show(str(path))} is not a path. Remove the null character.")
        return Path(path).expanduser().absolute()
    except RuntimeError:
        user = Path(path).parts[0]
        raise InputError(f"There is no home folder {user}. Write out the path {path}.") from None
    except FileNotFoundError:
        raise InputError(
            f"The current folder no longer exists. Change to another one, or write out the path "
            f"{path}."
        ) from None


def check_target(path: Path, suffixes: tuple[str, ...], overwrite: bool) -> None:
    """Raise `InputError`, before any work is done, if a file cannot or should not be written."""
    if path.name in suffixes:
        raise InputError(f"Cannot write {path}: give it a name before the ending.")
    if path.suffix not in suffixes:
        raise InputError(f"Cannot write {path}: its name must end in {' or '.join(suffixes)}.")
    if path.parent.exists() and not path.parent.is_dir():
        raise InputError(f"Cannot write {path}: {path.parent} is a file, not a folder.")
    if not path.parent.is_dir():
        raise InputError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    if path.is_dir():
        raise InputError(f"Cannot write {path}: that is a folder. Choose another name.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists. Add --overwrite to replace it, or choose another name.")


def publish(path: Path, write: Callable[[Path], object]) -> None:
    """Write a temporary file beside the target and rename it, so that no file is half-written."""
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix
        )
        os.close(handle)
        part = Path(name)
        try:
            write(part)
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o666 & ~mask)  # mkstemp makes files private
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or shorten(error)}.") from None
