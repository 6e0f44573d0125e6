"""Images from outside: files, folders or arrays, as planes of luminance."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._kinds import Kind
from .._types import Field
from ..errors import InputError, shorten, show

SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".pgm", ".ppm")
LARGEST_IMAGE = 10**8  # pixels; a small file can claim any number of them
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of red, green and blue (Rec. 709)
FORMS = (
    "a folder, a file, a list of files, or an array (image, height, width) or "
    "(image, height, width, color)"
)


@dataclasses.dataclass(frozen=True)
class Images:
    """Where images come from. None of them is held: `planes` reads them."""

    files: tuple[str, ...]  # as they were given; none for arrays
    embedded: bool
    sha256: str
    arrays: Any = dataclasses.field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        if self.embedded:
            return "None"
        return (
            repr(list(self.files))
            if self.files
            else f"<{len(self.arrays)} images, {self.sha256[:12]}>"
        )

    def planes(self) -> list[np.ndarray]:
        """Luminance of every image, (height, width), in float64."""
        if self.arrays is not None:
            return [_luminance(one) for one in self.arrays]
        return [_opened(path) for path in (_shipped() if self.embedded else self.files)]


_GIVEN: weakref.WeakValueDictionary[str, Images] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True)
class ImageData(Kind):
    """The kind of a field that holds images."""

    per_class: ClassVar[bool] = True
    metavar = "FOLDER | FILE"

    def check(self, name: str, value: Any) -> Images:
        """Return the images, or refuse."""
        if isinstance(value, Images):
            return value
        if isinstance(value, dict):
            return _again(name, value)
        if value is None or (isinstance(value, str) and value in ("", "embedded")):
            return _from_files(name, (), True)
        if isinstance(value, (str, os.PathLike)):
            return _from_files(name, _listed(name, os.fspath(value)), False)
        if (
            isinstance(value, Sequence)
            and value
            and all(isinstance(one, (str, os.PathLike)) for one in value)
        ):
            return _from_files(name, tuple(os.fspath(one) for one in value), False)
        return _from_arrays(name, value)

    def encode(self, value: Images) -> dict[str, Any]:
        """The JSON form: names and checksum."""
        return {
            "files": "embedded" if value.embedded else list(value.files),
            "sha256": value.sha256,
        }

    def text(self, value: Any) -> str:
        """The default as the command line has it."""
        return "embedded"


# A folder, files, one image or several; None for the photographs of scikit-learn; or the JSON form.
ImagesField = Field[
    Images,
    Images
    | str
    | os.PathLike[str]
    | np.ndarray
    | Sequence[str | os.PathLike[str]]
    | Sequence[np.ndarray]
    | Mapping[str, Any]
    | None,
]


def _again(name: str, plain: dict[str, Any]) -> Images:
    files, wanted = plain.get("files"), plain.get("sha256")
    listed = files == "embedded" or (
        isinstance(files, list) and all(isinstance(one, str) for one in files)
    )
    if not listed or not isinstance(wanted, str):
        raise InputError(
            f"`{name}` must be an object with `files` and `sha256`, or the name of a folder, got "
            f"{show(plain)}."
        )
    if not files:
        if wanted not in _GIVEN:
            raise InputError(
                f"`{name}` refers to images (checksum {wanted[:12]}) that are not in this process. "
                "Save them as files and give their folder."
            )
        return _GIVEN[wanted]
    found = _from_files(name, () if files == "embedded" else tuple(files), files == "embedded")
    if found.sha256 != wanted:
        raise InputError(
            f"The images of `{name}` have changed since this was computed ({found.sha256[:12]} "
            "instead of "
            f"{wanted[:12]}). Restore the old files, or give the new ones by name."
        )
    return found


def _shipped() -> tuple[str, ...]:
    """The photographs that come with scikit-learn, found without importing it."""
    found = importlib.util.find_spec("sklearn")
    assert found is not None and found.submodule_search_locations is not None
    folder = Path(found.submodule_search_locations[0]) / "datasets" / "images"
    return tuple(str(folder / one) for one in ("china.jpg", "flower.jpg"))


def _listed(name: str, path: str) -> tuple[str, ...]:
    if not Path(path).is_dir():
        return (path,)
    found = sorted(str(one) for one in Path(path).iterdir() if one.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(
            f"`{name}`: there are no images in {path!r}. Their names end in {', '.join(SUFFIXES)}."
        )
    return tuple(found)


def _from_files(name: str, files: tuple[str, ...], embedded: bool) -> Images:
    summed = hashlib.sha256()
    for path in _shipped() if embedded else files:
        if not embedded and Path(path).suffix.lower() not in SUFFIXES:
            raise InputError(f"`{name}`: {path!r} is not an image that can be read. Give {FORMS}.")
        try:
            with open(path, "rb") as file:
                summed.update(hashlib.file_digest(file, "sha256").digest())
        except (OSError, ValueError) as error:
            raise InputError(
                f"`{name}`: {path!r} cannot be read "
                f"({shorten(getattr(error, 'strerror', None) or error)}). "
                "Check its name and folder."
            ) from None
    return Images(files, embedded, summed.hexdigest())


def _from_arrays(name: str, value: Any) -> Images:
    try:
        arrays = [np.asarray(one) for one in value]
    except (TypeError, ValueError):
        raise InputError(
            f"`{name}` must be {FORMS}, got {show(value)}. "
            "Leave it out for the photographs that come with scikit-learn."
        ) from None
    if isinstance(value, np.ndarray) and (
        value.ndim == 2 or (value.ndim == 3 and value.shape[-1] in (3, 4))
    ):
        arrays = [value]  # a single image
    for one in arrays:
        colors = one.ndim == 3 and one.shape[-1] in (1, 3, 4)
        if one.dtype.kind not in "biuf" or not (one.ndim == 2 or colors):
            raise InputError(
                f"`{name}` has an image of shape {one.shape} and type {one.dtype}. Give {FORMS}; "
                "check the order of the axes."
            )
        if not np.isfinite(one).all():
            raise InputError(f"`{name}` has pixels that are nan or infinite. Fill the gaps.")
    if not arrays:
        raise InputError(f"`{name}` has no images. Give at least one.")
    summed = hashlib.sha256()
    for one in arrays:
        summed.update(f"{one.dtype.str} {one.shape}".encode())
        summed.update(np.ascontiguousarray(one).data)
    return _GIVEN.setdefault(
        summed.hexdigest(), Images((), False, summed.hexdigest(), tuple(arrays))
    )


def _opened(path: str) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.width * image.height > LARGEST_IMAGE:
                raise InputError(
                    f"The image {path!r} has {image.width} × {image.height} pixels; at most "
                    f"{LARGEST_IMAGE:g} can be read. Cut it into parts."
                )
            plain = image.mode in ("L", "I", "F") or image.mode.startswith("I;16")
            return _luminance(np.asarray(image if plain else image.convert("RGB")))
    except InputError:
        raise
    except Exception as error:  # whatever the library makes of a broken file
        raise InputError(
            f"The image {path!r} cannot be read ({type(error).__name__}: {shorten(error, 100)}). "
            "Save it again, or leave it out."
        ) from None


def _luminance(image: np.ndarray) -> np.ndarray:
    image = np.asarray(image, np.float64)
    if image.ndim == 2:
        return image
    return image[..., 0] if image.shape[-1] == 1 else image[..., :3] @ LUMINANCE
