"""Tasks on data: classes from two blurs, two zooms, two sources, or labels of your own.

Each function returns an ordinary `Discrimination`. Classes are in the order of what is given, label
0 first; in the paper the longer lengthscale has label 1, so that the sharper class comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._spec import Count, Number
from .errors import InputError, show
from .stimuli import DeadLeaves, ImagePatches, Samples, Stimulus
from .stimuli._load import Data
from .stimuli.preprocess import LowPass, Scale
from .stimuli.samples import Rows
from .tasks import Discrimination

MOST_CLASSES = 1000


def blurs(stimulus: Any, sigmas: Any = (0.5, 2.0), **task: Any) -> Discrimination:
    """The lengthscale task on data: one world, seen through one blur a class.

    Images are blurred as a whole before patches are cut. Samples are blurred around their lattice
    and put back to unit variance, so that classes differ in lengthscale and not in contrast.

    Args:
        stimulus: `ImagePatches` or `Samples`.
        sigmas: Width of the blur of each class, in sites; at least two.
        **task: Other fields of the task (`labels`, `loss`, …).

    Returns:
        The task, one class a blur.

    Raises:
        InputError: For a stimulus that is not made of data.

    Example:
        >>> import localfields as lf
        >>> task = lf.data.blurs(lf.stimuli.ImagePatches(shape=(8, 8), patches=200), (0.5, 2))
        >>> [one.blur for one in task.stimuli]
        [0.5, 2.0]
    """
    widths = [Number(low=0, closed=True).check("sigmas", one) for one in _several("sigmas", sigmas)]
    if isinstance(stimulus, ImagePatches):
        return _task([stimulus.replace(blur=one) for one in widths], **task)
    if not isinstance(stimulus, Rows):
        raise InputError(
            f"`blurs` needs a stimulus made of data, got {show(stimulus)}. "
            "Stimuli with a lengthscale need no blur: give each class its own `xi`."
        )
    steps = [(LowPass(sigma=one),) if one else () for one in widths]
    return _task(
        [stimulus.replace(preprocess=(*stimulus.preprocess, *step, Scale())) for step in steps],
        **task,
    )


def zooms(stimulus: Any, factors: Any = (2, 1), **task: Any) -> Discrimination:
    """The lengthscale task on scenes: one world, from one distance a class.

    Images are averaged over blocks of that many pixels an axis before patches are cut, so that 2
    shows twice the field of view, and all lengths half as long. Dead leaves get radii divided by
    the factor.

    Args:
        stimulus: `ImagePatches` or `DeadLeaves`.
        factors: How far away each class is; the farthest first has the shortest lengthscale and
            label 0.
        **task: Other fields of the task.

    Returns:
        The task, one class a distance.

    Example:
        >>> import localfields as lf
        >>> task = lf.data.zooms(lf.stimuli.DeadLeaves(smallest=2), (2, 1))
        >>> [stimulus.smallest for stimulus in task.stimuli]
        [1.0, 2.0]
    """
    steps = [Count(high=1000).check("factors", one) for one in _several("factors", factors)]
    if isinstance(stimulus, DeadLeaves):
        return _task([stimulus.replace(smallest=stimulus.smallest / one) for one in steps], **task)
    if not isinstance(stimulus, ImagePatches):
        raise InputError(
            f"`zooms` needs ImagePatches or DeadLeaves, got {show(stimulus)}. "
            "Samples have no surroundings to zoom out to: use `blurs`."
        )
    return _task([stimulus.replace(zoom=stimulus.zoom * one) for one in steps], **task)


def sources(*given: Any, labels: Any = "zero-one", **fields: Any) -> Discrimination:
    """Tell sources apart: one array, file or folder of images a class.

    Args:
        *given: Arrays or files of samples, one a class; or stimuli, which are taken as they are.
        labels: How the classes are coded.
        **fields: Fields that all of them share, of `Samples` (`shape`, `preprocess`, `symmetry`).

    Returns:
        The task.

    Example:
        >>> import numpy as np, localfields as lf
        >>> quiet = np.random.default_rng(0).normal(size=(100, 8))
        >>> lf.data.sources(quiet, np.cumsum(quiet, axis=1), preprocess="scale").shape
        (8,)
    """
    return _task(
        [one if isinstance(one, Stimulus) else _samples(one, **fields) for one in given],
        labels=labels,
    )


def labelled(data: Any, classes: Any, *, labels: Any = None, **fields: Any) -> Discrimination:
    """Your own labels: every distinct number in `classes` is a class, in rising order.

    Args:
        data: Samples, one a row: an array or a file.
        classes: One whole number a sample: an array or a file.
        labels: How the classes are coded for the network; by default 0 and 1 for two, one-hot for
            more.
        **fields: Other fields of `Samples`.

    Returns:
        The task, with each class as likely as any other whatever their sizes.

    Raises:
        InputError: When labels are not whole numbers, or do not fit the data.

    Example:
        >>> import numpy as np, localfields as lf
        >>> x = np.random.default_rng(0).normal(size=(90, 8))
        >>> lf.data.labelled(x, np.arange(90) % 3).outputs
        3
    """
    source = Data().check("data", data)
    numbers = Data(labels=True).check("classes", classes)
    if numbers is None:
        raise InputError(
            f"`classes` must be one label per sample, got {show(classes)}. "
            "Give a list of labels, or a file of them."
        )
    found = np.unique(np.concatenate([piece.ravel() for piece in numbers.pieces()]))
    if not np.all(found == np.rint(found)) or len(found) > MOST_CLASSES:
        raise InputError(
            f"`classes` has {len(found)} different values, such as {found[0]:g} and {found[1]:g}. "
            f"Labels are whole numbers, at most {MOST_CLASSES} different ones: number the classes "
            "0, 1, …."
        )
    coded = labels if labels is not None else "zero-one" if len(found) == 2 else "one-hot"
    return _task(
        [_samples(source, classes=numbers, chosen=int(one), **fields) for one in found],
        labels=coded,
    )


def _task(classes: Any, **fields: Any) -> Discrimination:
    make: Any = Discrimination
    return make(*classes, **fields)


def _samples(data: Any, **fields: Any) -> Samples:
    make: Any = Samples
    return make(data, **fields)


def _several(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes)) or np.ndim(given) != 1 or len(given) < 2:
        raise InputError(
            f"`{name}` must be a list of at least two numbers, one per class, such as (1, 2), "
            f"got {show(given)}."
        )
    return list(given)
