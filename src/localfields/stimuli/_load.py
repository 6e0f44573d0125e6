"""Data from outside: an array, or a file of numbers, as rows that are read when they are needed.

What is memory-mapped is opened for one piece at a time and closed again, so that no more of it is
ever in memory than one piece. File formats are in `_readers.py`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._kinds import Kind
from .._types import ArrayLike, Field
from ..errors import InputError, shorten, show
from ._readers import READERS, SINGLE, SUFFIXES, StoredArray, in_order, numeric_table, too_large

PIECE = 2**24  # bytes of one piece: what is in memory at a time
PART = 2**26  # bytes of a file that are mapped at a time to take single rows from
LARGEST_INLINE = 1024  # numbers of an array that is written out in JSON
LARGEST_NUMBER = 1e60  # its fourth power is a float, and so is that of its inverse
MOST_AXES = 4  # one of samples, three of a lattice
ONE_A_ROW = "Give one sample per row: (samples, sites), or (samples, height, width)."


@dataclasses.dataclass(frozen=True)
class Source:
    """Where rows come from: a file, or an array of this process. The checksum is of the numbers.

    Args:
        path: The file as it was given; empty for an array.
        variable: Its name in a file that holds several.
        sha256: Of element type, shape and numbers.
        shape: (samples, …), as stored.
        dtype: Element type, as stored.
        opened: Returns something that can be indexed by slices and by rising row numbers.
    """

    path: str
    variable: str
    sha256: str
    shape: tuple[int, ...]
    dtype: str
    opened: Callable[[], Any] = dataclasses.field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """As it was given; empty for an array."""
        return f"{self.path}:{self.variable}" if self.variable else self.path

    @property
    def num(self) -> int:
        """Number of samples."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all numbers, as stored."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def __repr__(self) -> str:
        if self.path:
            return repr(self.name)
        if self.small:
            return repr(self.values())
        return f"<array of shape {self.shape}, {self.sha256[:12]}>"

    @property
    def small(self) -> bool:
        """Whether the numbers of an array can stand in a text."""
        return not self.path and math.prod(self.shape) <= LARGEST_INLINE

    def values(self) -> list[Any]:
        """All numbers as nested lists."""
        return np.asarray(self.opened()[:]).tolist()

    def pieces(self) -> Iterator[np.ndarray]:
        """All rows in their order, a piece at a time."""
        return _pieces(self.opened, self.shape, self.dtype)

    def take(self, which: np.ndarray) -> np.ndarray:
        """The rows of these numbers, in this order; a number may come several times."""
        numbers, back = np.unique(which, return_inverse=True)  # a file is read forward
        rows = np.empty((len(numbers), *self.shape[1:]), np.dtype(self.dtype).newbyteorder("="))
        # What was touched of a mapped file stays in memory until it is closed: it is opened for a
        # part at a time.
        ends = np.flatnonzero(np.diff(numbers // max(1, PART // (self.nbytes // self.num)))) + 1
        for start, stop in zip([0, *ends], [*ends, len(numbers)], strict=True):
            rows[start:stop] = self.opened()[numbers[start:stop]]
        return rows[back.reshape(np.shape(which))]


def _pieces(opened: Callable[[], Any], shape: tuple[int, ...], dtype: Any) -> Iterator[np.ndarray]:
    rows = max(1, PIECE // max(1, math.prod(shape[1:]) * np.dtype(dtype).itemsize))
    for start in range(0, shape[0], rows):
        yield np.asarray(opened()[start : start + rows])


@dataclasses.dataclass(frozen=True)
class Data(Kind):
    """A field that holds data: an array, or the name of a file. Labels: one number per sample."""

    labels: bool = False
    per_class: ClassVar[bool] = True
    metavar = "FILE"

    def check(self, name: str, value: Any) -> Source | None:
        """Return the source."""
        if isinstance(value, Source):
            return value
        if self.labels and (value is None or (isinstance(value, str) and not value)):
            return None
        if isinstance(value, dict):
            return _from_json(name, value, self.labels)
        if isinstance(value, (str, os.PathLike)):
            return read_file(name, os.fspath(value), self.labels)
        return read_array(name, value, self.labels)

    def encode(self, value: Source | None) -> Any:
        """The JSON form: a file's name and checksum; a small array's numbers, else a checksum."""
        if value is None:
            return None
        if value.small:
            return {"values": value.values(), "dtype": value.dtype}
        if value.path:
            return {"path": value.path, "variable": value.variable, "sha256": value.sha256}
        return {"shape": list(value.shape), "sha256": value.sha256}

    def text(self, value: Any) -> str:
        """As it is typed: the name of a file; an array of this process has none."""
        return value.name if isinstance(value, Source) else ""


# An array, nested lists, or the name of a file; or the JSON form.
DataLike = Source | str | os.PathLike[str] | ArrayLike | Mapping[str, Any]
DataField = Field[Source, DataLike]
LabelsField = Field[Source | None, DataLike | None]

_GIVEN: weakref.WeakValueDictionary[str, Source] = weakref.WeakValueDictionary()


def _from_json(name: str, plain: dict[str, Any], labels: bool) -> Source:
    """The source of a JSON form, if its numbers have not changed since."""
    if "values" in plain:
        kind = str(plain.get("dtype", "<f8"))
        try:
            return read_array(name, np.asarray(plain["values"]).astype(kind), labels)
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"`{name}` must be numbers of type {kind}, got {show(plain['values'])}. {ONE_A_ROW}"
            ) from None
    if not plain.keys() & {"path", "sha256"}:
        names = ", ".join(map(str, plain)) or "nothing"
        raise InputError(f"`{name}` is a dictionary with {names}. Give one of its arrays.")
    wanted = plain.get("sha256")
    if not isinstance(wanted, str) or not isinstance(plain.get("path", ""), str):
        raise InputError(
            f"`{name}` must be an object with `path` and `sha256`, or the name of a file, got "
            f"{show(plain)}."
        )
    if not plain.get("path"):
        if wanted not in _GIVEN:
            raise InputError(
                f"`{name}` refers to an array (checksum {wanted[:12]}) that is not in this "
                "process. Save it with `np.save` and give the file's name."
            )
        return _GIVEN[wanted]
    variable = plain.get("variable") or ""
    source = read_file(name, f"{plain['path']}:{variable}" if variable else plain["path"], labels)
    if source.sha256 != wanted:
        raise InputError(
            f"`{name}`: the file {plain['path']} has changed since this was computed "
            f"({source.sha256[:12]} "
            f"instead of {wanted[:12]}). Restore the old file, or give the new one by name."
        )
    return source


# -- arrays ----------------------------------------------------------------------------------------


def read_array(name: str, value: Any, labels: bool = False) -> Source:
    """A source of an array, of nested lists, or of what another library calls its data."""
    try:
        array = _from_library(name, value, labels)
        array = np.asarray(value) if array is None else array
    except InputError:
        raise
    except (TypeError, ValueError):  # numpy says "inhomogeneous shape"
        raise InputError(f"`{name}` has rows of different lengths. {ONE_A_ROW}") from None
    if array.dtype.kind in "OSU" and not labels:
        raise InputError(
            f"`{name}` must be an array of numbers or the name of a file, got {show(value)}. "
            f"{ONE_A_ROW}"
        )
    if array.dtype.type.__module__ == "ml_dtypes":
        array = array.astype(np.float32)  # bfloat16 and its relatives, of which numpy knows nothing
    array = np.ascontiguousarray(array)
    source = _checked(name, "", StoredArray("", array.shape, array.dtype, lambda: array), labels)
    return _GIVEN.setdefault(source.sha256, source)


def _from_library(name: str, value: Any, labels: bool) -> np.ndarray | None:
    """The numbers of a masked array, a tensor, a table or a labelled array, as those mean them.

    `np.asarray` would forget a mask, the names of axes, and which columns are no numbers. None for
    what it understands.
    """
    pandas, xarray = sys.modules.get("pandas"), sys.modules.get("xarray")
    parts = value if type(value) in (list, tuple) else [value]
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        masked = np.ma.array(value)
        if count := int(np.ma.count_masked(masked)):
            raise InputError(
                f"`{name}` has {count} masked values, of {masked.size}. "
                "Drop those samples, or fill the gaps."
            )
        return masked.data
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a torch tensor
        tensor = value.detach().cpu()
        return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise InputError(f"`{name}` is a sparse matrix. Pass its `toarray()`.")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        if not labels or len(value.columns) != 1:
            return numeric_table(name, value)
        value = value.iloc[:, 0]
    if pandas is not None and isinstance(value, pandas.Series):
        if pandas.api.types.is_numeric_dtype(value.dtype):
            return numeric_table(name, value.to_frame())[:, 0]
        return np.asarray(value, object)
    if xarray is not None and isinstance(value, xarray.Dataset):
        if len(value.data_vars) != 1:
            names = ", ".join(map(str, value.data_vars)) or "none"
            raise InputError(
                f"`{name}` is a Dataset with the variables {names}. Choose one of them."
            )
        value = next(iter(value.data_vars.values()))
    if xarray is not None and isinstance(value, xarray.DataArray):
        return in_order(value).to_numpy()
    return None


def _checked(name: str, path: str, array: StoredArray, labels: bool) -> Source:
    """Read all numbers once, a piece at a time: shape, type, range and checksum."""
    variable, shape, dtype, opened = array
    dtype, shape = np.dtype(dtype), tuple(int(n) for n in shape)
    where = f" in {path}" if path else ""
    if labels and dtype.kind in "OSUT":
        numbers = _numbered(name, np.asarray(opened()[:]), where)
        dtype, opened = numbers.dtype, lambda: numbers
    if dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` has elements of type {dtype}{where}. Convert them to float first."
        )
    if labels:
        if math.prod(shape) != max(shape, default=0) or max(shape, default=0) < 2:
            raise InputError(
                f"`{name}` must be a list of labels, one per sample, got shape {shape}{where}."
            )
        column = np.asarray(opened()[:]).reshape(-1, 1)
        shape, opened = column.shape, lambda: column
    elif not 2 <= len(shape) <= MOST_AXES:
        raise InputError(
            f"`{name}` must have 2 to {MOST_AXES} axes, got shape {shape}{where}. {ONE_A_ROW}"
        )
    elif shape[0] < 2 or math.prod(shape[1:]) < 2:
        raise InputError(
            f"`{name}` needs at least two samples of at least two sites, got shape "
            f"{shape}{where}. {ONE_A_ROW}"
        )
    summed = hashlib.sha256(f"{dtype.newbyteorder('=').str} {shape}".encode())
    low, high, missing = math.inf, -math.inf, 0
    for piece in _pieces(opened, shape, dtype):
        piece = np.ascontiguousarray(piece, dtype.newbyteorder("="))
        summed.update(piece.data)
        least, most = float(piece.min()), float(piece.max())  # nan if there is one
        if not math.isfinite(least) or not math.isfinite(most):
            missing += int(np.count_nonzero(~np.isfinite(piece)))
        low, high = min(low, least), max(high, most)
    if missing:
        raise InputError(
            f"`{name}` has {missing} values that are nan or infinite, of "
            f"{math.prod(shape)}{where}. Drop those samples, or fill the gaps."
        )
    if (
        max(abs(low), abs(high)) > LARGEST_NUMBER
        or 0 < max(abs(low), abs(high)) < 1 / LARGEST_NUMBER
    ):
        raise InputError(
            f"`{name}` has numbers from {low:.3g} to {high:.3g}{where}, out of range. "
            "Divide or multiply the data by a constant."
        )
    if low == high:
        raise InputError(
            f"`{name}` is {low:g} throughout{where}. Check that the right array was saved."
        )
    return Source(path, variable, summed.hexdigest(), shape, dtype.str, opened)


def _numbered(name: str, labels: np.ndarray, where: str) -> np.ndarray:
    """Labels as numbers: words are numbered in alphabetical order."""
    texts = [None if label is None or label != label else str(label) for label in labels.flat]
    missing = [place for place, text in enumerate(texts) if text in (None, "", "<NA>")]
    if missing:
        raise InputError(
            f"`{name}` has {len(missing)} missing labels{where}; the first is that of sample "
            f"{missing[0]}. Drop those samples, or label them."
        )
    try:
        return np.array([float(text) for text in texts if text]).reshape(labels.shape)
    except ValueError:
        return np.unique(np.array(texts), return_inverse=True)[1].reshape(labels.shape)


# -- files -----------------------------------------------------------------------------------------


def read_file(name: str, text: str, labels: bool = False) -> Source:
    """A source of a file; `file.npz:variable` chooses among several arrays."""
    path, variable = text, ""
    if not Path(text).exists() and ":" in text:
        path, _, variable = text.rpartition(":")
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"`{name}`: {text!r} is not a file that can be read. "
            f"Its name must end in {', '.join(SUFFIXES)}."
        )
    if variable and suffix in SINGLE:
        raise InputError(
            f"`{name}`: a {suffix} file holds a single array, so {text!r} names one too many. "
            f"Write {path} alone."
        )
    try:
        state = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"`{name}`: {path!r} cannot be read "
            f"({shorten(getattr(error, 'strerror', None) or error)}). Check its name and folder."
        ) from None
    if not state.st_size:
        raise InputError(f"`{name}`: the file {path!r} is empty.")
    key = (os.path.abspath(path), variable, labels, state.st_size, _last_change(path))
    source = _FILES.get(key)  # a file that has not changed is not read again
    if source is not None and source.path == path:
        return source
    try:
        array = READERS[suffix](name, path, variable, labels)
        source = _FILES[key] = _checked(name, path, array, labels)
    except InputError:
        raise
    except MemoryError:
        too_large(name, path, state.st_size)
    except IsADirectoryError:
        raise InputError(f"`{name}`: {path!r} is a folder, not a {suffix} file.") from None
    except Exception as error:  # whatever a library makes of a broken file
        raise InputError(
            f"`{name}`: {path!r} is not a valid {suffix} file ({type(error).__name__}: "
            f"{shorten(error, 100)})."
        ) from None
    return source


def _last_change(path: str) -> int:
    """Time of the last change in nanoseconds; of a folder, the latest inside it."""
    inside = (file.path for folder, _, _ in os.walk(path) for file in os.scandir(folder))
    return max(os.stat(file).st_mtime_ns for file in (path, *inside))


_FILES: weakref.WeakValueDictionary[tuple[Any, ...], Source] = weakref.WeakValueDictionary()
