"""What a run needs to resume after an interruption."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..errors import InputError
from .codec import read_arrays, write_arrays
from .disk import Damaged, Unreadable, open_plain, replace, sync_folder, system_errors


class Checkpoint:
    """Arrays kept while a run is under way, replaced as a whole by the next ones.

    A checkpoint that does not read back as it was written counts as none, with a warning: the run
    starts again.

    Args:
        path: The file, an .npz archive.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    def load(self) -> dict[str, np.ndarray] | None:
        """The arrays saved last; None if there are none.

        Raises:
            InputError: If the operating system does not let us read them.
        """
        with system_errors("The checkpoint", self.path):
            if not self.path.exists() and not self.path.is_symlink():
                return None
        try:
            with open_plain(str(self.path)) as file:
                return read_arrays(file)
        except Unreadable as error:
            raise InputError(f"The checkpoint {self.path} {error}.") from None
        except Damaged as error:
            if not self.path.exists() and not self.path.is_symlink():
                return None  # cleared by another process in the meantime
            warnings.warn(f"A damaged checkpoint is ignored: {error} ({self.path}).", stacklevel=2)
            return None

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep these arrays instead; an interruption on the way leaves the ones before.

        Raises:
            InputError: If they cannot be written, or are of no plain type.
        """
        with system_errors("The checkpoint", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace(self.path, lambda file: write_arrays(file, arrays))

    def clear(self) -> None:
        """Remove them: the run is done."""
        with system_errors("The checkpoint", self.path):
            if self.path.exists() or self.path.is_symlink():
                self.path.unlink(missing_ok=True)
                sync_folder(self.path.parent)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r})"
