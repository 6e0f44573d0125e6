"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from .errors import refuse, shorten


def check_target(path: Path, suffixes: tuple[str, ...], overwrite: bool) -> None:
    """Refuse, before any work is done, a target that cannot or should not be written."""
    if path.suffix not in suffixes:
        refuse(
            "The name of the output",
            str(path),
            f"one ending in {', '.join(suffixes)}",
            "Change its ending.",
        )
    if not path.parent.is_dir():
        refuse(
            "The folder of the output", str(path.parent), "an existing folder", "Create it first."
        )
    if path.is_dir():
        refuse("The output", str(path), "a file", "That is a folder: choose another name.")
    if path.exists() and not overwrite:
        refuse(
            "The output",
            str(path),
            "a new file",
            "Add --overwrite to replace it, or choose another name.",
        )


def publish(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the target and move into place, so that an interrupted run leaves nothing half-written."""
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
            part.chmod(
                0o666 & ~mask
            )  # mkstemp makes files private; the result should be as any other file
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        advice = f"The system says: {error.strerror or shorten(error)}."
        refuse("The output", str(path), "a place that can be written", advice)
