"""Data from outside: an array, or a file of numbers, as rows that are read when they are needed.

Nothing here runs code that a file brings along: pickled objects, cells, structures and functions
are refused by what a file's header says, before they are read. What is memory-mapped is opened for
one piece at a time and closed again, so that no more of it is ever in memory than one piece.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import weakref
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from .._kinds import Kind
from .._types import ArrayLike, Field
from ..errors import InputError, shorten, show, unknown_name

PIECE = 2**24  # bytes of one piece: what is in memory at a time
PART = 2**26  # bytes of a file that are mapped at a time to take single rows from
LARGEST_WHOLE = 2**30  # bytes of what can only be read as a whole; .npy and zarr have no limit
LARGEST_INLINE = 1024  # numbers of an array that is written out in JSON
MOST_AXES = 4  # one of samples, three of a lattice
SUFFIXES = (".npy", ".npz", ".mat", ".csv", ".zarr")
SINGLE = (".npy", ".csv")  # files of one array
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


class StoredArray(NamedTuple):
    """An array as its header describes it, before its numbers are read."""

    variable: str
    shape: tuple[int, ...]
    dtype: Any
    opened: Callable[[], Any]


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
    """A source of an array, or of nested lists."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # numpy says "inhomogeneous shape"
        raise InputError(f"`{name}` has rows of different lengths. {ONE_A_ROW}") from None
    if array.dtype.kind in "OSU":
        raise InputError(
            f"`{name}` must be an array of numbers or the name of a file, got {show(value)}. "
            f"{ONE_A_ROW}"
        )
    array = np.ascontiguousarray(array)
    source = _checked(name, "", StoredArray("", array.shape, array.dtype, lambda: array), labels)
    return _GIVEN.setdefault(source.sha256, source)


def _checked(name: str, path: str, array: StoredArray, labels: bool) -> Source:
    """Read all numbers once, a piece at a time: shape, type, range and checksum."""
    variable, shape, dtype, opened = array
    dtype, shape = np.dtype(dtype), tuple(int(n) for n in shape)
    where = f" in {path}" if path else ""
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
    if low == high:
        raise InputError(
            f"`{name}` is {low:g} throughout{where}. Check that the right array was saved."
        )
    return Source(path, variable, summed.hexdigest(), shape, dtype.str, opened)


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
        array = READERS[suffix](name, path, variable)
        source = _FILES[key] = _checked(name, path, array, labels)
    except InputError:
        raise
    except MemoryError:
        _too_large(name, path, state.st_size)
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


def _too_large(name: str, path: str, size: int) -> NoReturn:
    raise InputError(
        f"`{name}`: {path!r} has {size / 1e9:.2g} GB, and a file of this format must fit into "
        f"{LARGEST_WHOLE / 1e9:.2g} GB. Save it with `np.save`: .npy files of any size are read "
        "in pieces."
    )


def _no_objects(name: str, path: str, what: str) -> NoReturn:
    raise InputError(
        f"`{name}`: {path!r} contains {what}, which can run code when opened. "
        "Save a plain array of numbers."
    )


def _npy(name: str, path: str, variable: str) -> StoredArray:
    with open(path, "rb") as file:
        shape, _, dtype = _header(file)
    if dtype.hasobject:
        _no_objects(name, path, "pickled objects")
    return StoredArray("", shape, dtype, lambda: np.load(path, mmap_mode="r", allow_pickle=False))


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise ValueError(f"format version {version}")
    return read[version](file)


def _choose(path: str, variable: str, known: list[str], usual: tuple[str, ...]) -> str:
    """The variable meant: the one named, the only one, or the one of a usual name."""
    if variable:
        if variable not in known:
            raise unknown_name(f"variable in {path}", variable, known)
        return variable
    likely = known if len(known) == 1 else [array for array in known if array in usual]
    if len(likely) != 1:
        raise InputError(
            f"{path} contains "
            f"{'the arrays ' + ', '.join(known) if known else 'no array of numbers'}. "
            f"Choose one: {path}:{known[0] if known else 'x'}."
        )
    return likely[0]


def _npz(name: str, path: str, variable: str) -> StoredArray:
    with zipfile.ZipFile(path) as archive:
        headers = {}
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as file:
                    headers[member.removesuffix(".npy")] = _header(file)
    planes = [array for array, (shape, _, _) in headers.items() if len(shape) >= 2]
    known = list(headers) if variable or not planes else planes
    chosen = _choose(path, variable, known, ("x", "data"))
    shape, _, dtype = headers[chosen]
    if dtype.hasobject:
        _no_objects(name, path, "pickled objects")
    # Asked of the header, as an archive may unpack to anything.
    if math.prod(shape) * dtype.itemsize > LARGEST_WHOLE:
        _too_large(name, path, math.prod(shape) * dtype.itemsize)
    with np.load(path, allow_pickle=False) as archive:
        array = np.ascontiguousarray(archive[chosen])
    return StoredArray(variable, array.shape, array.dtype, lambda: array)


PLAIN_MATLAB = {"double", "single", "logical"}
PLAIN_MATLAB |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _mat(name: str, path: str, variable: str) -> StoredArray:
    import scipy.io

    with open(path, "rb") as file:
        if file.read(128)[:20].startswith(b"MATLAB 7.3") or zipfile.is_zipfile(path):
            raise InputError(
                f"`{name}`: {path!r} is a .mat file of version 7.3, which cannot be read. "
                "In Matlab, save(…, '-v7'); or convert it to .npy."
            )
    listed = {array: (shape, kind) for array, shape, kind in scipy.io.whosmat(path)}
    plain = [array for array, (_, kind) in listed.items() if kind in PLAIN_MATLAB]
    if not plain or (variable in listed and variable not in plain):
        kinds = ", ".join(sorted({kind for _, kind in listed.values()})) or "nothing"
        _no_objects(name, path, listed[variable][1] if variable in listed else kinds)
    chosen = _choose(path, variable, plain, ("x", "data", "X"))
    size = math.prod(listed[chosen][0]) * 8
    if size > LARGEST_WHOLE:
        _too_large(name, path, size)
    array = np.ascontiguousarray(scipy.io.loadmat(path, variable_names=[chosen])[chosen])
    return StoredArray(variable, array.shape, array.dtype, lambda: array)


def _csv(name: str, path: str, variable: str) -> StoredArray:
    size = os.path.getsize(path)
    if size > LARGEST_WHOLE:
        _too_large(name, path, size)
    with open(path, encoding="utf-8-sig") as file:
        first = file.readline()
        named = not _numeric(first)
        rows: list[np.ndarray] = []
        for place, line in enumerate(file if named else (first, *file), start=2 if named else 1):
            if not line.strip():
                continue
            parts = line.split(",")
            if rows and len(parts) != len(rows[0]):
                raise InputError(
                    f"`{name}`: line {place} of {path!r} has {len(parts)} numbers, and the lines "
                    f"before it have {len(rows[0])}. Give one sample per line, sites joined by "
                    "commas."
                )
            try:
                rows.append(np.array(parts, dtype=np.float64))
            except ValueError:
                raise InputError(
                    f"`{name}`: line {place} of {path!r} is not numbers joined by commas: "
                    f"{shorten(line, 40)!r}. Only the first line may hold names."
                ) from None
    array = np.stack(rows) if rows else np.zeros((0, 0))
    return StoredArray("", array.shape, array.dtype, lambda: array)


def _numeric(line: str) -> bool:
    try:
        return bool([float(part) for part in line.split(",")])
    except ValueError:
        return not any(character.isalpha() for character in line)  # a broken number, not a name


def _zarr(name: str, path: str, variable: str) -> StoredArray:
    try:
        import zarr
    except ImportError:
        raise InputError(
            f"`{name}`: reading {path!r} needs zarr. Install it with: pip install zarr"
        ) from None
    stored: Any = zarr.open(store=path, mode="r")
    array = stored if hasattr(stored, "oindex") else None  # or a group of arrays
    if array is None or variable:
        keys = [] if array is not None else sorted(stored.array_keys())
        array = stored[_choose(path, variable, keys, ("x", "data"))]
    return StoredArray(variable, array.shape, array.dtype, lambda: _Zarr(array))


class _Zarr:
    """A zarr array that takes row indices as a numpy array does."""

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, which: Any) -> np.ndarray:
        return np.asarray(
            self.array[which] if isinstance(which, slice) else self.array.oindex[which]
        )


READERS: dict[str, Callable[[str, str, str], StoredArray]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".csv": _csv,
    ".zarr": _zarr,
}
