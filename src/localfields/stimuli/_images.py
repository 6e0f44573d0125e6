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
        if self.files:
            return repr(list(self.files))
        return f"<{len(self.arrays)} images, {self.sha256[:12]}>"

    def planes(self) -> list[np.ndarray]:
        """Luminance of every image, (height, width), in float64."""
        if self.arrays is not None:
            return [_luminance(array) for array in self.arrays]
        files = _shipped() if self.embedded else self.files
        return [page for path in files for page in read_pages(path)]


_GIVEN: weakref.WeakValueDictionary[str, Images] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True)
class ImageData(Kind):
    """A field that holds images."""

    per_class: ClassVar[bool] = True
    metavar = "FOLDER | FILE"

    def check(self, name: str, value: Any) -> Images:
        """Return the images."""
        if isinstance(value, Images):
            return value
        if isinstance(value, dict):
            return _from_json(name, value)
        if value is None or (isinstance(value, str) and value in ("", "embedded")):
            return _from_files(name, (), True)
        if isinstance(value, (str, os.PathLike)):
            return _from_files(name, _list_files(name, os.fspath(value)), False)
        paths = value if isinstance(value, Sequence) else ()
        if paths and all(isinstance(path, (str, os.PathLike)) for path in paths):
            return _from_files(name, tuple(os.fspath(path) for path in paths), False)
        return _from_arrays(name, value)

    def encode(self, value: Images) -> dict[str, Any]:
        """The JSON form: names and checksum."""
        files = "embedded" if value.embedded else list(value.files)
        return {"files": files, "sha256": value.sha256}

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


def _from_json(name: str, plain: dict[str, Any]) -> Images:
    files, wanted = plain.get("files"), plain.get("sha256")
    embedded = files == "embedded"
    are_names = isinstance(files, list) and all(isinstance(path, str) for path in files)
    if not (embedded or are_names) or not isinstance(wanted, str):
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
    images = _from_files(name, () if embedded else tuple(files), embedded)
    if images.sha256 != wanted:
        raise InputError(
            f"The images of `{name}` have changed since this was computed ({images.sha256[:12]} "
            f"instead of {wanted[:12]}). Restore the old files, or give the new ones by name."
        )
    return images


def _shipped() -> tuple[str, ...]:
    """The photographs that come with scikit-learn, found without importing it."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None and package.submodule_search_locations is not None
    folder = Path(package.submodule_search_locations[0]) / "datasets" / "images"
    return tuple(str(folder / file) for file in ("china.jpg", "flower.jpg"))


def _list_files(name: str, path: str) -> tuple[str, ...]:
    if not Path(path).is_dir():
        return (path,)
    files = sorted(str(file) for file in Path(path).iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(
            f"`{name}`: there are no images in {path!r}. Their names end in {', '.join(SUFFIXES)}."
        )
    return tuple(files)


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
        arrays = [np.asarray(array) for array in value]
    except (TypeError, ValueError):
        raise InputError(
            f"`{name}` must be {FORMS}, got {show(value)}. "
            "Leave it out for the photographs that come with scikit-learn."
        ) from None
    if isinstance(value, np.ndarray):
        if value.ndim == 2 or (value.ndim == 3 and value.shape[-1] in (3, 4)):
            arrays = [value]  # a single image
    for array in arrays:
        colors = array.ndim == 3 and array.shape[-1] in (1, 3, 4)
        if array.dtype.kind not in "biuf" or not (array.ndim == 2 or colors):
            raise InputError(
                f"`{name}` has an image of shape {array.shape} and type {array.dtype}. "
                f"Give {FORMS}; check the order of the axes."
            )
        if not np.isfinite(array).all():
            raise InputError(f"`{name}` has pixels that are nan or infinite. Fill the gaps.")
    if not arrays:
        raise InputError(f"`{name}` has no images. Give at least one.")
    summed = hashlib.sha256()
    for array in arrays:
        summed.update(f"{array.dtype.str} {array.shape}".encode())
        summed.update(np.ascontiguousarray(array).data)
    checksum = summed.hexdigest()
    return _GIVEN.setdefault(checksum, Images((), False, checksum, tuple(arrays)))


def read_pages(path: str) -> list[np.ndarray]:
    """Luminance of every page of an image file, (height, width), in float64; most have one page."""
    from PIL import Image, ImageSequence

    try:
        with Image.open(path) as image:
            pages = getattr(image, "n_frames", 1)
            if image.width * image.height * pages > LARGEST_IMAGE:
                of_pages = f" on each of {pages} pages" if pages > 1 else ""
                raise InputError(
                    f"The image {path!r} has {image.width} × {image.height} pixels{of_pages}; at "
                    f"most {LARGEST_IMAGE:g} in all can be read. Cut it into parts."
                )
            return [_page(page) for page in ImageSequence.Iterator(image)]
    except InputError:
        raise
    except Exception as error:  # whatever the library makes of a broken file
        raise InputError(
            f"The image {path!r} cannot be read ({type(error).__name__}: {shorten(error, 100)}). "
            "Save it again, or leave it out."
        ) from None


def _page(image: Any) -> np.ndarray:
    plain = image.mode in ("L", "I", "F") or image.mode.startswith("I;16")
    return _luminance(np.asarray(image if plain else image.convert("RGB")))


def _luminance(image: np.ndarray) -> np.ndarray:
    image = np.asarray(image, np.float64)
    if image.ndim == 2:
        return image
    return image[..., 0] if image.shape[-1] == 1 else image[..., :3] @ LUMINANCE
