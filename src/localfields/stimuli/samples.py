"""Stimuli made of data: rows drawn at random, with the statistics that the rows have."""

from __future__ import annotations

import abc
import collections
import json
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Choice, Count, Declaration, Shape, declare, derived, required
from .._types import Lattice, Whole, working_dtype
from ..errors import InputError
from ..lattice import along, distance
from ..marginals import Empirical, Marginal
from ._load import Data, DataField, LabelsField, Source
from .base import LARGEST_DRAW, Stimulus, as_key
from .preprocess import CHUNK, Applied, PreprocessField, Steps, apply_all, fit_all

LARGEST_HELD = 2**28  # bytes of rows that live in compiled code; more is streamed from the file
POOL = 2**26  # bytes of the rows that stand for streamed ones where a draw cannot wait for a file
LARGEST_MATRIX = 4096  # sites of a covariance matrix
MOST_VALUES = 2**17  # of a marginal; more are grouped
SMALLEST_DATA, LARGEST_DATA = 1e-15, 1e15  # of the largest number: squares are computed in float32
DEPENDENT = 0.1  # correlation of distant sites from which they count as dependent
SYMMETRIES = ("none", "shifts", "signs", "shifts-and-signs")
PLACEHOLDER = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))

_KNOWN: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()


def remembered(key: Hashable, make: Callable[[], Any], most: int = 8) -> Any:
    """What was made for a key not long ago: copies of a stimulus do not look at the data again."""
    if key not in _KNOWN:
        _KNOWN[key] = make()
        while len(_KNOWN) > most:
            _KNOWN.popitem(last=False)
    _KNOWN.move_to_end(key)
    return _KNOWN[key]


PREPROCESS = Declaration(
    Steps(),
    help="steps, such as center+scale or contrast-normalize+whiten:cutoff=0.01; none for the "
    "data as they are",
)
SYMMETRY = Declaration(
    Choice(SYMMETRIES),
    help="what a draw is moved by at random: shifts around the lattice, signs, both or none",
)


class Rows(Stimulus):
    """Rows drawn at random, each as likely as any other, with replacement.

    Statistics are those of the rows, exactly: nothing is estimated of a distribution behind them.
    With a `symmetry` every shift of a row, or its negative, is as likely as the row, so that the
    stimulus has that symmetry exactly, and `orbit` and the theories apply; whether the data had it
    is another question, which `predict` looks into.
    """

    preprocess = required(PreprocessField)
    symmetry = required(str)
    rows = required(np.ndarray)

    @property
    @abc.abstractmethod
    def num(self) -> int:
        """How many rows there are."""

    @abc.abstractmethod
    def take(self, which: np.ndarray) -> np.ndarray:
        """Rows of these numbers as a network sees them, (…, size), read from where they are."""

    @property
    def streamed(self) -> bool:
        """Whether there are too many rows to hold: then `rows` is a random part of them."""
        return len(self.rows) < self.num

    @property
    def translation_invariant(self) -> bool:
        """Where shifts are drawn."""
        return "shifts" in self.symmetry

    @property
    def sign_symmetric(self) -> bool:
        """Where signs are drawn."""
        return "signs" in self.symmetry

    @property
    def weakly_dependent(self) -> bool:
        """Whether the root mean square correlation of distant sites is below a tenth."""
        covariance = self.covariance()
        far = distance(self.shape)
        if covariance.shape == self.shape:
            correlation = covariance[far >= 0.9 * far.max()] / covariance.flat[0]
        else:
            flat = covariance.reshape(self.size, self.size)
            sd = np.sqrt(np.diag(flat))
            axes = range(far.ndim)
            apart = np.stack([np.roll(far, by, axes).ravel() for by in np.ndindex(self.shape)])
            correlation = (flat / np.outer(sd, sd))[apart >= 0.9 * far.max()]
        return bool(np.sqrt(np.mean(correlation**2)) < DEPENDENT)

    def __eq__(self, other: Any) -> bool:
        """Of the same kind, from the same data by the same steps."""
        return type(self) is type(other) and self._text() == other._text()

    def __hash__(self) -> int:
        """Of the data's checksum and all else."""
        return hash(self._text())

    def _text(self) -> str:
        return json.dumps(self.to_json(), sort_keys=True)

    # -- draws -------------------------------------------------------------------------------------

    def draw(self, key: Any, num: int) -> jax.Array:
        """Rows at random; of streamed data, from the part that is held."""
        for_row, for_shift, for_sign = jax.random.split(key, 3)
        which = jax.random.randint(for_row, (num,), 0, self.rows.shape[0])
        x = jnp.asarray(self.rows)[which].astype(working_dtype())
        if self.translation_invariant:
            x = x.reshape(num, *self.shape)
            for axis, n in enumerate(self.shape):
                by = jax.random.randint(jax.random.fold_in(for_shift, axis), (num, 1), 0, n)
                site = (jnp.arange(n)[None, :] + by) % n
                x = jnp.take_along_axis(x, along(site, axis, len(self.shape)), axis + 1)
            x = x.reshape(num, self.size)
        if self.sign_symmetric:
            x = jax.random.rademacher(for_sign, (num, 1), x.dtype) * x
        return x

    def moved(self, x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Rows, (num, size), each shifted or flipped at random by the symmetry; in numpy."""
        if self.translation_invariant:
            x = x.reshape(len(x), *self.shape)
            for axis, n in enumerate(self.shape):
                site = (np.arange(n) + generator.integers(0, n, (len(x), 1))) % n
                x = np.take_along_axis(x, along(site, axis, len(self.shape)), axis + 1)
            x = x.reshape(len(x), self.size)
        if self.sign_symmetric:
            x = x * generator.choice([-1.0, 1.0], (len(x), 1)).astype(x.dtype)
        return x

    def sample(self, key: Any, num: int) -> jax.Array:
        """Draw rows; of streamed data, from all of the file. See `Stimulus.sample`."""
        if not self.streamed:
            return super().sample(key, num)
        num = Count(high=LARGEST_DRAW // self.size).check("num", num)
        seed = np.asarray(jax.random.key_data(as_key(key))).tolist()
        generator = np.random.default_rng(seed)
        x = self.moved(self.take(generator.integers(0, self.num, num)), generator)
        return jnp.asarray(x, working_dtype())

    # -- statistics --------------------------------------------------------------------------------

    def pieces(self) -> Iterator[np.ndarray]:
        """All rows as a network sees them, a piece at a time, in float64."""
        for start in range(0, self.num, CHUNK):
            stop = min(start + CHUNK, self.num)
            part = self.take(np.arange(start, stop)) if self.streamed else self.rows[start:stop]
            yield np.asarray(part, np.float64)

    def _remembered(self, what: str, make: Callable[[], Any]) -> Any:
        self.require_one("to take statistics of")
        return remembered((self._text(), what), make, most=32)

    def site_means(self) -> np.ndarray:
        """Mean of every site, of the lattice's shape."""
        means = self._remembered(
            "means", lambda: sum(piece.sum(axis=0) for piece in self.pieces()) / self.num
        )
        if self.sign_symmetric:
            return np.zeros(self.shape)
        if self.translation_invariant:
            return np.full(self.shape, means.mean())
        return means.reshape(self.shape)

    def mean(self) -> float:
        """Mean over rows and sites; what is rounding beside the spread counts as zero."""
        mean = float(self.site_means().mean())
        largest = max(float(np.abs(self.rows[:CHUNK]).max()), np.finfo(np.float64).tiny)
        return 0.0 if abs(mean) < 1e-7 * largest else mean

    def covariance(self) -> np.ndarray:
        """Covariance of the rows, about the mean of each site; averaged over shifts if drawn."""
        if self.translation_invariant:
            return self._remembered("row", self._row)
        if self.size > LARGEST_MATRIX:
            raise InputError(
                f"A covariance matrix of {self.size} sites is too large; at most {LARGEST_MATRIX} "
                "are possible. "
                "Use smaller patches, or symmetry='shifts', whose covariance is one row."
            )
        return self._remembered("matrix", self._matrix)

    def _row(self) -> np.ndarray:
        axes, power = tuple(range(1, len(self.shape) + 1)), np.zeros(self.shape)
        mean = self.site_means().mean()
        for piece in self.pieces():
            transform = np.fft.fftn((piece - mean).reshape(-1, *self.shape), axes=axes)
            power += (transform.real**2 + transform.imag**2).sum(axis=0)
        return np.fft.ifftn(power).real / (self.num * self.size)

    def _matrix(self) -> np.ndarray:
        total, means = np.zeros((self.size, self.size)), self.site_means().ravel()
        for piece in self.pieces():
            piece = piece - means
            total += piece.T @ piece
        return (total / self.num).reshape(self.shape * 2)

    def marginal(self) -> Marginal:
        """The distribution of a random site; beyond 2¹⁷ values, grouped."""
        return self._remembered("marginal", self._marginal)

    def _marginal(self) -> Marginal:
        # Of streamed data, the rows that are held stand for all.
        values = np.sort(np.asarray(self.rows, np.float64), axis=None)
        if self.sign_symmetric:
            values = np.sort(np.concatenate([values, -values]))
        return Empirical(*grouped(values))


def grouped(values: np.ndarray, most: int = MOST_VALUES) -> tuple[np.ndarray, np.ndarray]:
    """Fewer values with weights: the extremes, and two points per group of neighbors between.

    A group keeps its mean and its variance. `values` rise.
    """
    if values.size <= most:
        return values, np.ones(1)
    tail, groups = most // 8, 3 * most // 8
    low, middle, high = values[:tail], values[tail:-tail], values[-tail:]
    parts = np.linspace(0, middle.size, groups + 1).astype(int)
    count = np.diff(parts)
    mean = np.add.reduceat(middle, parts[:-1]) / count
    around = middle - np.repeat(mean, count)
    sd = np.sqrt(np.add.reduceat(around**2, parts[:-1]) / count)
    pairs = np.stack([mean - sd, mean + sd], axis=1).ravel()
    weights = np.concatenate([np.ones(tail), np.repeat(count / 2, 2), np.ones(tail)])
    return np.concatenate([low, pairs, high]), weights / values.size


def held_type(dtype: Any) -> Any:
    """What rows are held in: single precision, unless they are stored in double."""
    return np.float64 if np.dtype(dtype).itemsize > 4 else np.float32


class Samples(Rows):
    """Your own data: each sample is a row of an array or a file, and draws are rows at random.

    A file is .npy, .npz, .mat, .csv, .tsv, .txt, .h5, .nwb, .nc, .parquet, .zarr or a .tif of
    several pages; `file.npz:name` chooses one of several arrays. A .npy, .h5 or .zarr file of any
    size is read where it lies. The default, all signs of two sites, only holds the place of data.

    Example:
        >>> import numpy as np, localfields as lf
        >>> data = np.random.default_rng(0).normal(size=(500, 8, 8))
        >>> patches = lf.stimuli.Samples(data, preprocess=("center", "scale"), symmetry="shifts")
        >>> patches.sample(0, 10).shape, patches.covariance().shape
        ((10, 64), (8, 8))
    """

    data: DataField = declare(
        Data(),
        default=PLACEHOLDER,
        help="file of samples, one per row: .npy, .npz, .mat, .csv, .h5, .nc, .parquet, .tif, …",
    )
    shape: Lattice = declare(
        Shape(),
        default=(),
        symbol="N",
        help="lattice of one sample, where the data do not tell: 40, or 30x30",
    )
    classes: LabelsField = declare(
        Data(labels=True), default=None, help="file of labels, one number or word per sample"
    )
    chosen: Whole = declare(
        Count(low=-(2**31), high=2**31), default=0, help="the label whose samples are taken"
    )
    preprocess: PreprocessField = declare(PREPROCESS, default=())
    symmetry: str = declare(SYMMETRY, default="none")
    rows: np.ndarray = derived(lambda stimulus: stimulus._prepared()[0])

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Read the data; the lattice is theirs unless another one of as many sites is given."""
        data = Data().check("data", given["data"])
        assert data is not None
        shape = data.shape[1:]
        if given["shape"] is not None and np.size(given["shape"]):
            shape = Shape().check("shape", given["shape"])
        elif len(shape) == 1 and data.num < shape[0]:
            raise InputError(
                f"`data` has {data.num} samples of {shape[0]} sites, or the other way round. "
                f"If each row is a sample, confirm it with `shape` {shape[0]}; "
                "else transpose the data."
            )
        if math.prod(shape) != math.prod(data.shape[1:]):
            raise InputError(
                f"`shape` {shape} does not have as many sites as a sample, {data.shape[1:]}."
            )
        return {**given, "data": data, "shape": shape, "classes": _labels(given["classes"], data)}

    def _numbers(self) -> np.ndarray | None:
        """Which rows of the data are taken, or None for all."""
        if self.classes is None:
            return None
        labels = np.concatenate([piece.reshape(-1) for piece in self.classes.pieces()])
        which = np.flatnonzero(labels == self.chosen)
        if which.size < 2:
            some = ", ".join(f"{label:g}" for label in np.unique(labels)[:8])
            raise InputError(
                f"Only {which.size} samples have the label {self.chosen}; at least two are needed. "
                f"The labels are {some}."
            )
        return which

    def _prepared(self) -> tuple[np.ndarray, list[Applied], np.ndarray | None]:
        """Rows to hold, the fitted steps, and which rows of the data they are taken from."""
        steps = json.dumps([step.to_json() for step in self.preprocess])
        named = self.classes and self.classes.sha256
        key = ("samples", self.data.sha256, self.shape, named, self.chosen if named else 0, steps)
        return remembered(key, self._prepare)

    def _prepare(self) -> tuple[np.ndarray, list[Applied], np.ndarray | None]:
        which, dtype = self._numbers(), held_type(self.data.dtype)
        num = self.data.num if which is None else len(which)
        width = self.size * np.dtype(dtype).itemsize
        if num * width > LARGEST_HELD:
            # Always the same part of the same data, so that results do not change between calls.
            generator = np.random.default_rng(0)
            part = np.sort(generator.choice(num, max(2, POOL // width), replace=False))
            raw = self.data.take(part if which is None else which[part]).reshape(-1, self.size)
        elif which is None:
            pieces = (piece.reshape(-1, self.size) for piece in self.data.pieces())
            raw = np.concatenate([piece.astype(dtype) for piece in pieces])
        else:
            raw = self.data.take(which).reshape(-1, self.size)
        fitted = fit_all(self.preprocess, raw, self.shape)
        rows = apply_all(fitted, raw, dtype) if fitted else raw.astype(dtype)
        check_rows(rows)
        rows.setflags(write=False)
        return rows, fitted, which

    @property
    def num(self) -> int:
        """How many rows there are, of the chosen label if there are labels."""
        which = self._prepared()[2]
        return self.data.num if which is None else len(which)

    def take(self, which: np.ndarray) -> np.ndarray:
        """Rows of these numbers, through all steps."""
        _, fitted, numbers = self._prepared()
        raw = self.data.take(which if numbers is None else numbers[which]).reshape(-1, self.size)
        return apply_all(fitted, raw, held_type(self.data.dtype))


def check_rows(rows: np.ndarray) -> None:
    """Check that the data are finite and vary after preprocessing."""
    finite = np.isfinite(rows).all()
    if not finite or np.ptp(rows) == 0:
        got = "constant" if finite else "not finite"
        raise InputError(f"After the steps of `preprocess` the data are {got}. Leave a step out.")
    largest = float(np.abs(rows).max())
    if not SMALLEST_DATA < largest < LARGEST_DATA:
        raise InputError(
            f"The largest of the data is {largest:.3g}, and squares of such numbers are out of the "
            "range of single precision. Use preprocess='scale'."
        )


def _labels(given: Any, data: Source) -> Source | None:
    labels = Data(labels=True).check("classes", given)
    if labels is not None and labels.num != data.num:
        raise InputError(
            f"`classes` has {labels.num} labels for {data.num} samples. Give one label per sample."
        )
    return labels
