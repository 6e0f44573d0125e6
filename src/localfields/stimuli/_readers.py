"""Files of numbers: one function per format, which says what a file holds before it is read.

Nothing here runs code that a file brings along: pickled objects, cells, structures and functions
are refused by what a file's header says, before they are read.
"""

from __future__ import annotations

import importlib
import itertools
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..errors import InputError, shorten, unknown_name
from ._images import read_pages

LARGEST_WHOLE = (
    2**30
)  # bytes of what can only be read as a whole; .npy, .h5 and .zarr may be larger
MOST_NAMES = 12  # of the arrays in a file that a message lists
HDF5 = b"\x89HDF\r\n\x1a\n"  # the first bytes of a file; of Matlab 7.3, those after 512 others

# Names of axes that number samples, and their plurals.
SAMPLE_AXES = "sample trial time observation frame image patch row draw epoch stimulus".split()
SAMPLE_AXES += [f"{name}s" for name in SAMPLE_AXES] + ["obs", "patches", "stimuli"]


class StoredArray(NamedTuple):
    """An array as its header describes it, before its numbers are read.

    `opened` returns something that can be indexed by slices and by rising row numbers.
    """

    variable: str
    shape: tuple[int, ...]
    dtype: Any
    opened: Callable[[], Any]


def _in_memory(variable: str, array: np.ndarray) -> StoredArray:
    array = np.ascontiguousarray(array)
    return StoredArray(variable, array.shape, array.dtype, lambda: array)


# -- what readers share ----------------------------------------------------------------------------


def too_large(name: str, path: str, size: int) -> NoReturn:
    """Refuse a file that would have to be read as a whole."""
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


def _optional(module: str, name: str, path: str) -> Any:
    """A library that not everybody has."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(
            f"`{name}`: reading {path!r} needs {module.partition('.')[0]}. "
            "Install it with: pip install 'localfields[files]'"
        ) from None


def _choose(path: str, variable: str, known: Sequence[str], usual: tuple[str, ...]) -> str:
    """The variable meant: the one named, the only one, or the one of a usual name."""
    if variable:
        if variable not in known:
            raise unknown_name(f"variable in {path}", variable, known)
        return variable
    likely = known if len(known) == 1 else [array for array in known if array in usual]
    if len(likely) != 1:
        more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
        names = f"the arrays {', '.join(known[:MOST_NAMES])}{more}"
        raise InputError(
            f"The file {path} contains {names if known else 'no array of numbers'}. "
            f"Choose one: {path}:{known[0] if known else 'x'}."
        )
    return likely[0]


def in_order(array: Any) -> Any:
    """An xarray DataArray with the axis of samples first, where the names of its axes say which."""
    named = [dim for dim in array.dims if str(dim).lower() in SAMPLE_AXES]
    if not named or array.dims[0] in named:
        return array
    if len(named) > 1:
        raise InputError(
            f"Of the axes {', '.join(map(str, array.dims))}, {' and '.join(map(str, named))} may "
            "number the samples. Transpose the array so that samples come first."
        )
    return array.transpose(named[0], ...)


def numeric_table(name: str, frame: Any) -> np.ndarray:
    """The numbers of a pandas DataFrame, one row per sample; missing ones are nan.

    The index is no number of a sample, nor is one that was read from a file as a column.
    """
    import pandas

    if len(frame.columns) and frame.columns[0] == "Unnamed: 0":
        frame = frame.iloc[:, 1:]
    for column, dtype in frame.dtypes.items():
        if not pandas.api.types.is_numeric_dtype(dtype):
            raise InputError(
                f"Column {column!r} of `{name}` is not numeric (type {dtype}). "
                "Drop it, or convert it with `pandas.to_numeric`."
            )
    array = frame.to_numpy()
    if array.dtype.kind in "biufc":
        return array
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


# -- numpy and Matlab ------------------------------------------------------------------------------


def _npy(name: str, path: str, variable: str, labels: bool) -> StoredArray:
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


def _npz(name: str, path: str, variable: str, labels: bool) -> StoredArray:
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
        too_large(name, path, math.prod(shape) * dtype.itemsize)
    with np.load(path, allow_pickle=False) as archive:
        return _in_memory(variable, archive[chosen])


PLAIN_MATLAB = {"double", "single", "logical"}
PLAIN_MATLAB |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _mat(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    import scipy.io

    with open(path, "rb") as file:
        if file.read(128).startswith(b"MATLAB 7.3"):
            return _mat73(name, path, variable)
    listed = {array: (shape, kind) for array, shape, kind in scipy.io.whosmat(path)}
    chosen = _choose_plain(name, path, variable, {k: kind for k, (_, kind) in listed.items()})
    size = math.prod(listed[chosen][0]) * 8
    if size > LARGEST_WHOLE:
        too_large(name, path, size)
    return _in_memory(variable, scipy.io.loadmat(path, variable_names=[chosen])[chosen])


def _mat73(name: str, path: str, variable: str) -> StoredArray:
    """A .mat file of version 7.3, which is HDF5 with the axes in Fortran's order."""
    h5py = _optional("h5py", name, path)
    with h5py.File(path, "r") as file:
        listed = {}
        for key, item in file.items():
            if not key.startswith("#"):
                kind = item.attrs.get("MATLAB_class", b"unknown")
                kind = kind.decode() if isinstance(kind, bytes) else str(kind)
                listed[key] = kind if isinstance(item, h5py.Dataset) else f"{kind} group"
        chosen = _choose_plain(name, path, variable, listed)
        if file[chosen].nbytes > LARGEST_WHOLE:
            too_large(name, path, file[chosen].nbytes)
        return _in_memory(variable, file[chosen][()].T)


def _choose_plain(name: str, path: str, variable: str, kinds: dict[str, str]) -> str:
    """The variable of a .mat file that is meant, among arrays of numbers."""
    plain = [array for array, kind in kinds.items() if kind in PLAIN_MATLAB]
    if not plain or (variable in kinds and variable not in plain):
        every = ", ".join(sorted(set(kinds.values()))) or "nothing"
        _no_objects(name, path, kinds.get(variable, every))
    return _choose(path, variable, plain, ("x", "data", "X"))


# -- text ------------------------------------------------------------------------------------------


def _text(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    """Numbers, or labels, one sample per line. The first line may hold names."""
    size = os.path.getsize(path)
    if size > LARGEST_WHOLE:
        too_large(name, path, size)
    with open(path, encoding="utf-8-sig") as file:
        # Lines that begin with # are comments, as of `np.savetxt`.
        lines = (item for item in enumerate(file, 1) if item[1].strip() and item[1][0] != "#")
        start = list(itertools.islice(lines, 2))
        if not start:
            return _in_memory("", np.zeros((0, 0)))
        separator = _separator(start[0][1], Path(path).suffix.lower())
        has_names, skipped = _first_line([_cells(line, separator) for _, line in start])
        if labels and not skipped:
            has_names = False  # a label may be a word: `_text_labels` decides
        lines = itertools.chain(start[has_names:], lines)
        read = _text_labels if labels else _text_numbers
        return _in_memory("", read(name, path, lines, separator, skipped))


def _separator(line: str, suffix: str) -> str | None:
    """What stands between two cells; None for any blanks."""
    usual = {".csv": ",", ".tsv": "\t"}.get(suffix)
    likely = [mark for mark in (",", ";", "\t") if mark in line]
    return usual if usual in likely or not likely else likely[0]


def _cells(line: str, separator: str | None) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(separator)]


def _first_line(start: list[list[str]]) -> tuple[bool, int]:
    """Whether the first of some lines holds names, and how many columns are an index."""
    head, second = start[0], start[1] if len(start) > 1 else []
    words = any(not _numeric(cell) for cell in head)
    # pandas and R leave the name of an index empty; R's tables have none at all for it.
    if len(head) > 1 and head[0] in ("", "Unnamed: 0"):
        if words or _counted(head[1:]):
            return True, 1
    elif words:
        return True, int(len(second) == len(head) + 1)
    # pandas numbers columns without names 0, 1, …
    elif len(head) > 2 and _counted(head) and not all(cell.isdigit() for cell in second):
        return True, 0
    return False, 0


def _numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not any(character.isalpha() for character in cell)  # a broken number, not a name
    return True


def _counted(cells: list[str]) -> bool:
    return cells == [str(place) for place in range(len(cells))]


def _text_numbers(
    name: str, path: str, lines: Iterator[tuple[int, str]], separator: str | None, skipped: int
) -> np.ndarray:
    rows: list[np.ndarray] = []
    for place, line in lines:
        parts = line.split(separator)[skipped:]
        if rows and len(parts) != len(rows[0]):
            raise InputError(
                f"`{name}`: line {place} of {path!r} has {len(parts)} numbers, and the lines "
                f"before it have {len(rows[0])}. Give one sample per line."
            )
        try:
            rows.append(np.array(parts, dtype=np.float64))
        except ValueError:
            cells = _cells(line, separator)[skipped:]
            rows.append(
                np.array(
                    [
                        _number(cell, f"`{name}`: line {place}, column {column} of {path!r}")
                        for column, cell in enumerate(cells, 1 + skipped)
                    ]
                )
            )
    return np.stack(rows) if rows else np.zeros((0, 0))


def _number(cell: str, where: str) -> float:
    if not cell:
        raise InputError(f"{where} is empty. Fill the gap, or drop that line.")
    try:
        return float(cell)
    except ValueError:
        advice = "Only the first line may hold names."
        if ";" in cell:
            advice = "Write decimals with points, not commas."
        raise InputError(f"{where} is not a number: {shorten(cell, 40)!r}. {advice}") from None


def _text_labels(
    name: str, path: str, lines: Iterator[tuple[int, str]], separator: str | None, skipped: int
) -> np.ndarray:
    rows = [_cells(line, separator)[skipped:] for _, line in lines]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise InputError(f"`{name}`: {path!r} must hold one label per line.")
    labels = [cell for row in rows for cell in row]
    # A word that stands in the first line alone is the name of the column: a class of a single
    # sample would be of no use.
    if widths == {1} and not _numeric(labels[0]) and labels.count(labels[0]) == 1:
        return np.array(labels[1:])
    return np.array(rows)


# -- formats that need another library -------------------------------------------------------------


def _hdf5(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    """An HDF5 file, of which NWB is a kind; `file.h5:group/name` chooses one of its arrays."""
    h5py = _optional("h5py", name, path)
    found: dict[str, Any] = {}

    def visit(key: str, item: Any) -> None:  # links to other files are not followed
        if isinstance(item, h5py.Dataset):
            text = labels and h5py.check_string_dtype(item.dtype) is not None
            if (text or item.dtype.kind in "biuf") and item.ndim >= (1 if labels else 2):
                found[key] = item.shape, item.dtype, text

    with h5py.File(path, "r") as file:
        file.visititems(visit)
        chosen = _choose(path, variable.strip("/"), list(found), ("x", "data"))
        shape, dtype, text = found[chosen]
        if text:
            return _in_memory(variable, np.asarray(file[chosen].asstr()[()], str))
    return StoredArray(variable, shape, dtype, lambda: _Rows(path, chosen))


class _Rows:
    """Rows of an array in an HDF5 file, which is open only while they are read."""

    def __init__(self, path: str, variable: str):
        self.path, self.variable = path, variable

    def __getitem__(self, which: Any) -> np.ndarray:
        import h5py

        with h5py.File(self.path, "r") as file:
            array: Any = file[self.variable]
            if isinstance(which, slice):
                return array[which]
            # Single rows are slow; they come from one part of the file at a time.
            first = int(which[0])
            return array[first : int(which[-1]) + 1][which - first]


def _netcdf(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    """A netCDF file of either kind, with its scales, gaps and names of axes, by xarray."""
    import xarray

    with open(path, "rb") as file:
        is_hdf5 = file.read(len(HDF5)) == HDF5
    if is_hdf5:
        _optional("h5netcdf", name, path)
    engine: Any = "h5netcdf" if is_hdf5 else "scipy"
    with xarray.open_dataset(path, engine=engine, decode_times=False) as dataset:
        arrays = dataset.variables if labels else dataset.data_vars
        fewest = 1 if labels else 2
        known = [
            str(key)
            for key, array in arrays.items()
            if array.dtype.kind in "biuf" and array.ndim >= fewest
        ]
        array = dataset[_choose(path, variable, known, ("x", "data"))]
        if array.nbytes > LARGEST_WHOLE:
            too_large(name, path, array.nbytes)
        return _in_memory(variable, in_order(array).to_numpy())


def _parquet(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    parquet = _optional("pyarrow.parquet", name, path)
    described = parquet.read_metadata(path)
    size = 8 * described.num_rows * described.num_columns
    if size > LARGEST_WHOLE:
        too_large(name, path, size)
    table = parquet.read_table(path).to_pandas()
    if labels and len(table.columns) == 1:
        return _in_memory("", table.iloc[:, 0].to_numpy())
    return _in_memory("", numeric_table(name, table))


def _zarr(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    zarr = _optional("zarr", name, path)
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


def _tiff(name: str, path: str, variable: str, labels: bool) -> StoredArray:
    """A stack of images, one sample per page."""
    pages = read_pages(path)
    if len(pages) < 2:
        raise InputError(
            f"`{name}`: {path!r} is a single image, and each page is a sample. "
            "For patches of an image use ImagePatches."
        )
    if len({page.shape for page in pages}) > 1:
        raise InputError(
            f"`{name}`: the pages of {path!r} have different sizes. For patches use ImagePatches."
        )
    return _in_memory("", np.stack(pages))


READERS: dict[str, Callable[[str, str, str, bool], StoredArray]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".csv": _text,
    ".tsv": _text,
    ".txt": _text,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".nwb": _hdf5,
    ".nc": _netcdf,
    ".parquet": _parquet,
    ".zarr": _zarr,
    ".tif": _tiff,
    ".tiff": _tiff,
}
SUFFIXES = tuple(READERS)
SINGLE = (".npy", ".csv", ".tsv", ".txt", ".parquet", ".tif", ".tiff")  # files of one array
