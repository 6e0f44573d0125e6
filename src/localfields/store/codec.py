"""Arrays in one file: an uncompressed .npz without pickles, read after all that it says of itself was checked."""

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

LARGEST = 8 * 10**9  # bytes of all arrays together
MOST = 10_000  # arrays
LONGEST = 1000  # characters of a string in an array, and of a name
SEAL = 64  # hexadecimal digits of a SHA-256

_PLAIN = re.compile(r"(?!x\.)[a-z0-9_]+(\.[a-z0-9_]+)*")
_MEMBER = re.compile(r"([a-z0-9_]+(\.[a-z0-9_]+)*)\.npy")
# Exactly what numpy writes. Nothing of a header is evaluated, and structured or object types have no place in it.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufU]\d{1,6})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,19}(?:, \d{1,19})*,?)?)\), \} *\n"
)


def write_arrays(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays of numbers, truth values or short strings; names and their order are kept.

    The archive's comment is the SHA-256 of all before it: a file that was cut or changed gives itself away.

    Args:
        file: Empty, open to read and write.
        arrays: By name.

    Returns:
        SHA-256 of the whole file.

    Raises:
        InputError: When an array is of another type, or all are too large.
    """
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    _check(arrays)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # A fixed date: the same arrays make the same file.
            with archive.open(
                zipfile.ZipInfo(_member(name)), "w", force_zip64=array.nbytes > 2**30
            ) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        archive.comment = b"0" * SEAL
    body, _ = _hash(file)
    file.seek(-SEAL, 2)
    file.write(body.hexdigest().encode())
    body.update(body.hexdigest().encode())
    return body.hexdigest()


def read_arrays(file: IO[bytes], checksum: str | None = None) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote.

    Args:
        file: Open to read.
        checksum: SHA-256 that the whole file must have.

    Raises:
        Damaged: When anything of it is not as written.
    """
    _check_seal(file, checksum)
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            _check_members(archive, file.seek(0, 2))
            return {_name(info.filename): _read(archive, info) for info in archive.infolist()}
    except Damaged:
        raise
    except Exception as error:  # whatever a crafted archive makes the standard library stumble over
        raise Damaged(f"arrays that are no .npz archive ({type(error).__name__})") from None


def _check_seal(file: IO[bytes], checksum: str | None) -> None:
    """Hold a file against the checksum at its own end, and against one from elsewhere."""
    body, end = _hash(file)
    if end != body.hexdigest().encode():
        raise Damaged("arrays with another checksum than they say")
    body.update(end)
    if checksum is not None and body.hexdigest() != checksum:
        raise Damaged("arrays with another checksum than its meta.json says")


def _check(arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if not name or len(name) > LONGEST:
            raise InputError(
                f"An array cannot be stored under the name {show(name)}. Give it 1 to {LONGEST} characters."
            )
        if not _is_legal(array.dtype):
            raise InputError(
                f"The array `{name}` has elements of type {array.dtype}, which cannot be stored. "
                "Use numbers of up to 8 bytes, booleans or short strings."
            )
    size = sum(_extent(array.shape, array.dtype) for array in arrays.values())
    if size > LARGEST:
        raise InputError(
            f"The arrays of this run take {size / 1e9:.1f} GB; a stored run may have {LARGEST / 1e9:g} GB. "
            "Record less often, or only reductions such as ('ipr', 'loss')."
        )
    if len(arrays) > MOST:
        raise InputError(
            f"This run has {len(arrays)} arrays; at most {MOST} can be stored. Stack some of them."
        )


def _is_legal(dtype: np.dtype) -> bool:
    # `type` tells numpy's own numbers from those that other libraries register under the same letters.
    strings = dtype.kind == "U" and 0 < dtype.itemsize <= 4 * LONGEST
    return strings or (
        dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.type.__module__ == "numpy"
    )


def _extent(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Bytes; an axis of length 0 counts as 1, as numpy cannot make one beside huge others."""
    return math.prod(max(n, 1) for n in shape) * dtype.itemsize


def _member(name: str) -> str:
    return f"{name if _PLAIN.fullmatch(name) else 'x.' + name.encode(errors='surrogatepass').hex()}.npy"


def _name(member: str) -> str:
    stem = member.removesuffix(".npy")
    return bytes.fromhex(stem[2:]).decode(errors="surrogatepass") if stem.startswith("x.") else stem


def _hash(file: IO[bytes]) -> tuple[Any, bytes]:
    """SHA-256 of all but the end of a file, and that end."""
    size = file.seek(0, 2)
    if not SEAL < size <= LARGEST + (1 << 26):
        raise Damaged(f"arrays of {size} bytes")
    file.seek(0)
    found, left = hashlib.sha256(), size - SEAL
    while left > 0:
        block = file.read(min(left, BLOCK))
        if not block:
            raise Damaged("arrays that end early")
        found.update(block)
        left -= len(block)
    return found, file.read(SEAL)


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse, before anything is read, names and sizes that are not those of plain uncompressed arrays."""
    members = archive.infolist()
    names = [info.filename for info in members]
    if len(names) > MOST or len(set(names)) != len(names):
        raise Damaged("arrays with names twice, or too many")
    for info in members:
        if not _MEMBER.fullmatch(info.filename) or info.orig_filename != info.filename:
            raise Damaged("arrays with names that are none of arrays")
        if (
            info.compress_type != zipfile.ZIP_STORED
            or info.flag_bits
            or info.compress_size != info.file_size
        ):
            raise Damaged("arrays that are compressed or encrypted")
    # Nothing is compressed, so members that say to be larger than the file lie, or lie over one another.
    if sum(info.file_size for info in members) > size:
        raise Damaged("arrays that say to be larger than their file")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        start = member.read(10)
        if len(start) != 10 or start[:8] != b"\x93NUMPY\x01\x00":
            raise Damaged("arrays that are none")
        length = int.from_bytes(start[8:], "little")
        said = _HEADER.fullmatch(member.read(length))
        if not said:
            raise Damaged("arrays of a type that is never stored")
        dtype = np.dtype(said[1].decode())
        shape = tuple(int(n) for n in re.findall(rb"\d+", said[3]))
        if not _is_legal(dtype) or len(shape) > 32 or _extent(shape, dtype) > LARGEST:
            raise Damaged("arrays of a type or size that is never stored")
        if 10 + length + math.prod(shape) * dtype.itemsize != info.file_size:
            raise Damaged("arrays of another size than they say")
        flat = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
        done = 0
        while block := member.read(
            BLOCK
        ):  # to the very end, where the archive's own checksum is compared
            flat[done : done + len(block)] = np.frombuffer(block, np.uint8)
            done += len(block)
    if done != flat.size:
        raise Damaged("arrays that end early")
    if dtype.kind == "U" and flat.size:
        points = flat.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if points.max() > 0x10FFFF:
            raise Damaged("texts that are none")
    return flat.view(dtype).reshape(shape, order="F" if said[2] == b"True" else "C")
