"""Tasks on data: classes from two blurs, two zooms, two sources, or labels of your own.

Each function returns an ordinary `Discrimination`. Classes are in the order of what is given, label
0 first; in the paper the longer lengthscale has label 1, so that the sharper class comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._spec import Count, Number
from .errors import InputError, show
from .stimuli import DeadLeaves, ImagePatches, Samples
from .stimuli._load import Data
from .stimuli.images import stimulus_of
from .stimuli.preprocess import LowPass, Scale
from .stimuli.samples import Rows
from .tasks import Discrimination

MOST_CLASSES = 1000


def blurs(stimulus: Any, sigmas: Any = (0.5, 2.0), **task: Any) -> Discrimination:
    """The lengthscale task on data: the same samples, with one blur per class.

    Images are blurred as a whole before patches are cut. Samples are blurred around their lattice
    and put back to unit variance, so that classes differ in lengthscale and not in contrast.

    Args:
        stimulus: `ImagePatches` or `Samples`.
        sigmas: Width of the blur of each class, in sites; at least two.
        **task: Other fields of the task (`labels`, `loss`, …).

    Raises:
        InputError: For a stimulus that is not made of data.

    Example:
        >>> import localfields as lf
        >>> task = lf.data.blurs(lf.stimuli.ImagePatches(shape=(8, 8), patches=200), (0.5, 2))
        >>> [stimulus.blur for stimulus in task.stimuli]
        [0.5, 2.0]
    """
    kind = Number(low=0, closed=True)
    widths = [kind.check("sigmas", sigma) for sigma in _several("sigmas", sigmas)]
    if isinstance(stimulus, ImagePatches):
        return Discrimination(*(stimulus.replace(blur=width) for width in widths), **task)
    if not isinstance(stimulus, Rows):
        raise InputError(
            f"`blurs` needs a stimulus made of data, got {show(stimulus)}. "
            "Stimuli with a lengthscale need no blur: give each class its own `xi`."
        )
    blurred = [(LowPass(sigma=width), Scale()) if width else (Scale(),) for width in widths]
    classes = [stimulus.replace(preprocess=(*stimulus.preprocess, *steps)) for steps in blurred]
    return Discrimination(*classes, **task)


def zooms(stimulus: Any, factors: Any = (2, 1), **task: Any) -> Discrimination:
    """The lengthscale task on scenes: the same images, at one distance per class.

    Images are averaged over blocks of that many pixels an axis before patches are cut, so that 2
    shows twice the field of view, and all lengths half as long. Dead leaves get radii divided by
    the factor.

    Args:
        stimulus: `ImagePatches` or `DeadLeaves`.
        factors: How far away each class is; the farthest first has the shortest lengthscale and
            label 0.
        **task: Other fields of the task.

    Example:
        >>> import localfields as lf
        >>> task = lf.data.zooms(lf.stimuli.DeadLeaves(smallest=2), (2, 1))
        >>> [stimulus.smallest for stimulus in task.stimuli]
        [1.0, 2.0]
    """
    kind = Count(high=1000)
    numbers = [kind.check("factors", factor) for factor in _several("factors", factors)]
    if isinstance(stimulus, DeadLeaves):
        classes = [stimulus.replace(smallest=stimulus.smallest / number) for number in numbers]
        return Discrimination(*classes, **task)
    if not isinstance(stimulus, ImagePatches):
        raise InputError(
            f"`zooms` needs ImagePatches or DeadLeaves, got {show(stimulus)}. "
            "Samples have no surroundings to zoom out to: use `blurs`."
        )
    classes = [stimulus.replace(zoom=stimulus.zoom * number) for number in numbers]
    return Discrimination(*classes, **task)


def sources(*given: Any, labels: Any = "zero-one", **fields: Any) -> Discrimination:
    """Tell sources apart: one array, file or folder of images per class.

    Args:
        *given: Arrays or files of samples, one per class; folders of images, of which patches are
            cut; or stimuli.
        labels: How the classes are coded.
        **fields: Fields that all of them share, of `Samples` (`shape`, `preprocess`, `symmetry`),
            of `ImagePatches` for folders, or of the stimuli.

    Raises:
        InputError: If a field is not one of the stimuli.

    Example:
        >>> import numpy as np, localfields as lf
        >>> quiet = np.random.default_rng(0).normal(size=(100, 8))
        >>> lf.data.sources(quiet, np.cumsum(quiet, axis=1), preprocess="scale").shape
        (8,)
    """
    return Discrimination(*(stimulus_of(item, **fields) for item in given), labels=labels)


def labelled(data: Any, classes: Any, *, labels: Any = None, **fields: Any) -> Discrimination:
    """Your own labels: every distinct label in `classes` is a class, in rising order.

    Args:
        data: Samples, one per row: an array or a file.
        classes: One whole number or word per sample: an array or a file. Words are classes in
            alphabetical order.
        labels: How the classes are coded for the network; by default 0 and 1 for two, one-hot for
            more.
        **fields: Other fields of `Samples`.

    Returns:
        The task, with each class equally likely, whatever their sizes.

    Raises:
        InputError: If labels are not whole numbers, or do not match the data.

    Example:
        >>> import numpy as np, localfields as lf
        >>> x = np.random.default_rng(0).normal(size=(90, 8))
        >>> lf.data.labelled(x, np.arange(90) % 3).outputs
        3
    """
    source = Data().check("data", data)
    assert source is not None, "only labels may be left out"
    numbers = Data(labels=True).check("classes", classes)
    if numbers is None:
        raise InputError(
            f"`classes` must be one label per sample, got {show(classes)}. "
            "Give a list of labels, or a file of them."
        )
    values = np.unique(np.concatenate([piece.ravel() for piece in numbers.pieces()]))
    if not np.all(values == np.rint(values)) or len(values) > MOST_CLASSES:
        raise InputError(
            f"`classes` has {len(values)} different values, such as {values[0]:g} and "
            f"{values[1]:g}. Labels are whole numbers, at most {MOST_CLASSES} different ones: "
            "number the classes 0, 1, …."
        )
    if labels is None:
        labels = "zero-one" if len(values) == 2 else "one-hot"
    classes = [Samples(source, classes=numbers, chosen=int(value), **fields) for value in values]
    return Discrimination(*classes, labels=labels)


def _several(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes)) or np.ndim(given) != 1 or len(given) < 2:
        raise InputError(
            f"`{name}` must be a list of at least two numbers, one per class, such as (1, 2), "
            f"got {show(given)}."
        )
    return list(given)
