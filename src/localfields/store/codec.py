"""Arrays in one file: an uncompressed .npz without pickles, checked in full before it is read."""

from __future__ import annotations

import hashlib
import math
import re
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ..errors import InputError, show
from .disk import BLOCK, Damaged

MAX_ARRAY_BYTES = 8 * 10**9  # of all arrays together
MAX_ARRAYS = 10_000
MAX_LENGTH = 1000  # characters of a string in an array, and of a name
SEAL = 64  # hexadecimal digits of a SHA-256

_PLAIN = re.compile(r"(?!x\.)[a-z0-9_]+(\.[a-z0-9_]+)*")
_MEMBER = re.compile(r"([a-z0-9_]+(\.[a-z0-9_]+)*)\.npy")


def write_arrays(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays of numbers, booleans or short strings; names and their order are kept.

    The archive's comment is the SHA-256 of all before it, so that a file that was cut or changed
    is recognized by itself.

    Args:
        file: Empty, open to read and write.
        arrays: By name.

    Returns:
        SHA-256 of the whole file.

    Raises:
        InputError: If an array is of another type, or all are too large.
    """
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    _check_arrays(arrays)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(_member(name))  # of a fixed date: the same arrays, the same file
            with archive.open(info, "w", force_zip64=array.nbytes > 2**30) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        archive.comment = b"0" * SEAL
    digest, _ = _hash(file)
    seal = digest.hexdigest().encode()
    file.seek(-SEAL, 2)
    file.write(seal)
    digest.update(seal)
    return digest.hexdigest()


def read_arrays(file: IO[bytes], checksum: str | None = None) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote.

    Args:
        file: Open to read.
        checksum: SHA-256 that the whole file must have.

    Raises:
        Damaged: If anything in it is not as written.
    """
    digest, seal = _hash(file)
    if seal != digest.hexdigest().encode():
        raise Damaged("arrays with another checksum than they say")
    digest.update(seal)
    if checksum is not None and digest.hexdigest() != checksum:
        raise Damaged("arrays with another checksum than its meta.json says")
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            _check_members(archive, file.seek(0, 2))
            return {_name(info.filename): _read(archive, info) for info in archive.infolist()}
    except Damaged:
        raise
    except Exception as error:  # whatever a crafted archive makes zipfile or numpy stumble over
        raise Damaged(f"arrays that are no .npz archive ({type(error).__name__})") from None


def _check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if not name or len(name) > MAX_LENGTH:
            raise InputError(
                f"An array cannot be stored under the name {show(name)}. Give it 1 to {MAX_LENGTH} "
                "characters."
            )
        if not _is_legal(array.dtype):
            raise InputError(
                f"The array `{name}` has elements of type {array.dtype}, which cannot be stored. "
                "Use numbers of up to 8 bytes, booleans or short strings."
            )
    size = sum(_extent(array.shape, array.dtype) for array in arrays.values())
    if size > MAX_ARRAY_BYTES:
        raise InputError(
            f"The arrays of this run take {size / 1e9:.1f} GB; a stored run may have "
            f"{MAX_ARRAY_BYTES / 1e9:g} GB. "
            "Record less often, or only reductions such as ('ipr', 'loss')."
        )
    if len(arrays) > MAX_ARRAYS:
        raise InputError(
            f"This run has {len(arrays)} arrays; at most {MAX_ARRAYS} can be stored. Stack some of "
            "them."
        )


def _is_legal(dtype: np.dtype) -> bool:
    if dtype.kind == "U":
        return 0 < dtype.itemsize <= 4 * MAX_LENGTH
    # The module tells numpy's own numbers from those that other libraries register under the same
    # letters.
    return dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.type.__module__ == "numpy"


def _extent(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Bytes; an axis of length 0 counts as 1, as numpy cannot make one beside huge others."""
    return math.prod(max(n, 1) for n in shape) * dtype.itemsize


def _member(name: str) -> str:
    """The name of an array in the archive: its own if that is plain, otherwise in hexadecimal."""
    encoded = name if _PLAIN.fullmatch(name) else f"x.{name.encode(errors='surrogatepass').hex()}"
    return f"{encoded}.npy"


def _name(member: str) -> str:
    stem = member.removesuffix(".npy")
    return bytes.fromhex(stem[2:]).decode(errors="surrogatepass") if stem.startswith("x.") else stem


def _hash(file: IO[bytes]) -> tuple[Any, bytes]:
    """SHA-256 of all but the end of a file, and that end."""
    size = file.seek(0, 2)
    if not SEAL < size <= MAX_ARRAY_BYTES + (1 << 26):
        raise Damaged(f"arrays of {size} bytes")
    file.seek(0)
    digest, left = hashlib.sha256(), size - SEAL
    while left > 0:
        block = file.read(min(left, BLOCK))
        if not block:
            raise Damaged("arrays that end early")
        digest.update(block)
        left -= len(block)
    return digest, file.read(SEAL)


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Check names and sizes before anything is read: only plain uncompressed arrays are legal."""
    members = archive.infolist()
    names = [info.filename for info in members]
    if len(names) > MAX_ARRAYS or len(set(names)) != len(names):
        raise Damaged("arrays with names twice, or too many")
    for info in members:
        if not _MEMBER.fullmatch(info.filename) or info.orig_filename != info.filename:
            raise Damaged("arrays with illegal names")
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.flag_bits:
            raise Damaged("arrays that are compressed or encrypted")
    # Nothing is compressed, so members that claim to be larger than the file lie, or overlap.
    if sum(info.file_size for info in members) > size:
        raise Damaged("arrays that claim to be larger than their file")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        # Type and size first: nothing is allocated for an array that claims more than its file has.
        if np.lib.format.read_magic(member) != (1, 0):
            raise Damaged("arrays of a version that is never stored")
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        legal = _is_legal(dtype) and len(shape) <= 32 and min(shape, default=0) >= 0
        if not legal or _extent(shape, dtype) > MAX_ARRAY_BYTES:
            raise Damaged("arrays of a type or size that is never stored")
        if member.tell() + math.prod(shape) * dtype.itemsize != info.file_size:
            raise Damaged("arrays of another size than they say")
        member.seek(0)
        array = np.lib.format.read_array(member, allow_pickle=False)
    if dtype.kind == "U" and array.size:
        points = array.ravel(order="K").view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if points.max() > 0x10FFFF:
            raise Damaged("strings that are not text")
    return array
