"""Patches of images: natural scenes on a small lattice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from .._spec import Choice, Count, Shape, declare, derived, number
from .._types import Lattice, Real, Whole
from ..errors import InputError
from ._images import SUFFIXES as IMAGES
from ._images import ImageData, Images, ImagesField
from ._readers import SUFFIXES as DATA
from .base import Stimulus
from .preprocess import Center, PreprocessField, Scale, apply_all, fit_all
from .samples import LARGEST_HELD, PREPROCESS, SYMMETRY, Rows, Samples, check_rows, remembered


class ImagePatches(Rows):
    """Patches cut from images at random; every place of every image is equally likely.

    Without images of your own, the two photographs that come with scikit-learn. Colors become
    luminance. Blur and zoom act on whole images, before they are normalized and cut, so that
    classes that differ in them see one world at two resolutions: the lengthscale task on scenes.

    Example:
        >>> import localfields as lf
        >>> patches = lf.stimuli.ImagePatches(shape=(8, 8), patches=500, blur=1)
        >>> patches.sample(0, 10).shape
        (10, 64)
    """

    source: ImagesField = declare(
        ImageData(),
        default=None,
        help="folder or file of images; embedded: the photographs of scikit-learn",
    )
    shape: Lattice = declare(
        Shape(2, "Give (16, 16) for patches of 16 by 16 pixels."),
        default=(16, 16),
        symbol="N",
        help="size of a patch, as 16x16",
    )
    patches: Whole = declare(
        Count(low=2, high=10**7), default=20_000, help="how many patches are cut"
    )
    blur: Real = number(
        default=0.0,
        low=0,
        high=1000,
        closed=True,
        symbol="σ",
        help="width of a Gaussian blur of the images, in pixels",
    )
    zoom: Whole = declare(
        Count(high=1000), default=1, help="pixels an axis that are averaged into one"
    )
    normalize: str = declare(
        Choice(("standard", "log", "none")),
        default="standard",
        help="each image to mean 0 and variance 1; its logarithm; no",
    )
    places: Whole = declare(
        Count(low=0, high=2**62), default=0, help="seed of where patches are cut"
    )
    preprocess: PreprocessField = declare(PREPROCESS, default=(Center(), Scale()))
    symmetry: str = declare(SYMMETRY, default="none")
    rows: np.ndarray = derived(lambda stimulus: stimulus._cut_once())

    def __check_init__(self):
        """Refuse a patch that is no plane."""
        if len(self.shape) != 2:
            raise InputError(
                "`shape` must have two numbers, such as (16, 16) for patches of 16 × 16 pixels, "
                f"got {self.shape}."
            )

    @property
    def num(self) -> int:
        """How many patches there are."""
        return self.patches

    def take(self, which: np.ndarray) -> np.ndarray:
        """Patches of these numbers."""
        return self.rows[which]

    def _cut_once(self) -> np.ndarray:
        self.__check_init__()
        plain = {name: value for name, value in self.to_json().items() if name != "symmetry"}
        return remembered(json.dumps(plain, sort_keys=True), self._cut)

    def _cut(self) -> np.ndarray:
        if 8 * self.patches * self.size > LARGEST_HELD:
            most = LARGEST_HELD // (8 * self.size)
            raise InputError(
                f"{self.patches} patches of this size do not fit into memory; at most {most} do. "
                "Use fewer, or save patches as .npy for `Samples`."
            )
        source: Images = self.source
        planes = [self._prepared(plane) for plane in source.planes()]
        # Corners at which a patch fits, along each axis and in all, of every image.
        room = np.maximum(np.array([plane.shape for plane in planes]) - self.shape + 1, 0)
        places = room.prod(axis=1)
        if not places.any():
            raise InputError(
                f"A patch of {' × '.join(map(str, self.shape))} is larger than the images, "
                f"{planes[0].shape}. Choose a smaller `shape` or a smaller `zoom`."
            )
        generator = np.random.default_rng(self.places)
        which = generator.choice(len(planes), self.patches, p=places / places.sum())
        corner = np.floor(generator.random((self.patches, 2)) * room[which]).astype(int)
        rows = np.empty((self.patches, self.size), np.float64)
        for place, plane in enumerate(planes):
            mine = which == place
            if mine.any():
                windows = np.lib.stride_tricks.sliding_window_view(plane, self.shape)
                rows[mine] = windows[tuple(corner[mine].T)].reshape(-1, self.size)
        steps = fit_all(self.preprocess, rows, self.shape)
        rows = apply_all(steps, rows, np.float64) if steps else rows
        check_rows(rows)
        rows.setflags(write=False)
        return rows

    def _prepared(self, plane: np.ndarray) -> np.ndarray:
        """One image blurred, coarsened and normalized."""
        if self.normalize == "log":
            plane = np.log1p(plane - plane.min())
        if self.blur:
            from scipy.ndimage import gaussian_filter

            plane = gaussian_filter(plane, self.blur, mode="reflect")
        if self.zoom > 1:
            height, width = (n // self.zoom for n in plane.shape)
            plane = plane[: height * self.zoom, : width * self.zoom]
            plane = plane.reshape(height, self.zoom, width, self.zoom).mean(axis=(1, 3))
        if self.normalize == "none" or not plane.size or np.ptp(plane) == 0:
            return plane
        return (plane - plane.mean()) / plane.std()


def stimulus_of(source: Any, **fields: Any) -> Stimulus:
    """Samples of an array or a file, patches of an image or a folder of images, or a stimulus.

    Args:
        source: Any of these.
        **fields: Fields of the stimulus.

    Raises:
        InputError: If the stimulus has no such field.

    Example:
        >>> import numpy as np
        >>> stimulus_of(np.eye(8), symmetry="signs").symmetry
        'signs'
    """
    if isinstance(source, Stimulus):
        return source.replace(**fields)
    if isinstance(source, (str, os.PathLike)):
        suffix = Path(source).suffix.lower()
        if suffix not in DATA and (suffix in IMAGES or Path(source).is_dir()):
            return ImagePatches(source, **fields)
    return Samples(source, **fields)
