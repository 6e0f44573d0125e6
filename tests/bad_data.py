"""Mistakes with data, in Python and at the command line, beside those of `bad_inputs`.

Files are written to a folder that is the current one while a mistake is made, so that messages name
them without a path.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable
from typing import Any

from mistake import Mistake

Write = Callable[[], Any]


def rows(num: int = 20, sites: int = 6) -> Any:
    import numpy as np

    return np.random.default_rng(0).normal(size=(num, sites))


def text(name: str, content: str) -> Write:
    def write() -> None:
        with open(name, "w", encoding="utf-8") as file:
            file.write(content)

    return write


def save(name: str, make: Callable[[], Any] = rows) -> Write:
    def write() -> None:
        import numpy as np

        np.save(name, make())

    return write


def archive(name: str, **arrays: Callable[[], Any]) -> Write:
    def write() -> None:
        import numpy as np

        np.savez(name, **{key: make() for key, make in arrays.items()})

    return write


@contextlib.contextmanager
def folder_of(*files: Write) -> Any:
    """A folder with files, as the current one."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for write in files:
                write()
            yield
        finally:
            os.chdir(before)


def data(make: Callable[[], Any], **fields: Any) -> Mistake:
    """Samples of an array that a function makes."""
    return lambda lf: lf.stimuli.Samples(make(), **fields)


def file(name: str, *files: Write, **fields: Any) -> Mistake:
    """Samples of a file."""

    def make(lf: Any) -> Any:
        with folder_of(*files):
            return lf.stimuli.Samples(name, **fields)

    return make


def command(line: str, *files: Write) -> Mistake:
    """A command, in a folder with some files. Returns what it printed if it was not refused."""

    def run(lf: Any) -> Any:
        from localfields.cli import main

        out, err = io.StringIO(), io.StringIO()
        with folder_of(*files), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(line.split())
            except SystemExit as stop:
                told = err.getvalue()
                if stop.code == 2 and told.count("\n") == 1:
                    raise lf.InputError(told.removeprefix("localfields: ").strip()) from None
                return f"exit {stop.code}: {told}"
        return out.getvalue()

    return run


def masked() -> Any:
    import numpy as np

    return np.ma.masked_greater(rows(), 1.0)


def frame(**columns: Any) -> Callable[[], Any]:
    def make() -> Any:
        import pandas

        return pandas.DataFrame({name: pandas.array(values) for name, values in columns.items()})

    return make


def labelled_array(*dims: str) -> Callable[[], Any]:
    def make() -> Any:
        import xarray

        return xarray.DataArray(rows(24, 2).reshape(4, 3, 4), dims=dims)

    return make


def dataset() -> Any:
    import xarray

    return xarray.Dataset({"rates": (("trial", "cell"), rows()), "depth": ("cell", range(6))})


def sparse() -> Any:
    import scipy.sparse

    return scipy.sparse.eye_array(6)


def with_nan() -> Any:
    array = rows()
    array[3, 2] = float("nan")
    return array


def dates() -> Any:
    import numpy as np

    return np.zeros((5, 3), "M8[s]")


def objects() -> Any:
    import numpy as np

    return np.array([[1, None], [2, 3]], dtype=object)


A, B = save("a.npy"), save("b.npy", lambda: 2 * rows())
MISTAKES: dict[str, Mistake] = {
    # arrays
    "data masked": data(masked),
    "data with a nan": data(with_nan),
    "data transposed": data(lambda: rows(6, 20)),
    "data of one axis": data(lambda: rows().ravel()),
    "data of one sample": data(lambda: rows(1)),
    "data empty": data(list),
    "data ragged": data(lambda: [[1, 2], [3]]),
    "data of words": data(lambda: [["a", "b"], ["c", "d"]]),
    "data complex": data(lambda: rows() + 1j),
    "data of dates": data(dates),
    "data constant": data(lambda: rows() * 0 + 3),
    "data huge": data(lambda: 1e200 * rows()),
    "data large": data(lambda: 1e20 * rows()),
    "data sparse": data(sparse),
    "data a dictionary of arrays": data(lambda: {"x": rows()}),
    "data a class": data(lambda: list),
    "data a stimulus": lambda lf: lf.stimuli.Samples(lf.stimuli.Ising(6)),
    "data a Dataset": data(dataset),
    "data with two axes of samples": data(labelled_array("cell", "trial", "time")),
    "table with a column of words": data(frame(rate=[1.0, 2.0], cell=["a", "b"])),
    "table with gaps": data(frame(a=[1, None, 3], b=[4, 5, 6])),
    "table without columns": data(frame()),
    "shape of other sites": data(rows, shape=5),
    "labels too few": data(rows, classes=[0, 1]),
    "labels with gaps": data(rows, classes=["a", None] * 10),
    "label of no sample": data(rows, classes=[0, 1] * 10, chosen=5),
    "preprocess misspelled": data(rows, preprocess="whitten"),
    "symmetry misspelled": data(rows, symmetry="shift"),
    # files
    "file missing": file("no.npy"),
    "file of another format": file("a.xlsx", text("a.xlsx", "")),
    "file empty": file("a.npy", text("a.npy", "")),
    "file of another content": file("a.npy", text("a.npy", "hello")),
    "file cut short": file("a.csv", text("a.csv", "1,2\n3,4\n5\n")),
    "cell empty": file("a.csv", text("a.csv", "x,y\n1,2\n3,\n")),
    "cell no number": file("a.csv", text("a.csv", "1,2\n3,NA\n")),
    "decimal commas": file("a.csv", text("a.csv", "1,5;2,5\n3,5;4,5\n")),
    "file of pickles": file("a.npy", save("a.npy", objects)),
    "file of several arrays": file("a.npz", archive("a.npz", a=rows, b=rows)),
    "array misspelled": file("a.npz:rate", archive("a.npz", rates=rows, other=rows)),
    "array of a file of one": file("a.npy:x", A),
    "folder": file("."),
    # tasks
    "sources with a misspelled field": lambda lf: lf.data.sources(
        lf.stimuli.Samples(rows()), lf.stimuli.Samples(-rows()), symetry="signs"
    ),
    "sources with a field of data alone": lambda lf: lf.data.sources(
        lf.stimuli.Ising(6), lf.stimuli.Ising(6, coupling=0.2), symmetry="signs"
    ),
    "sources alone": lambda lf: lf.data.sources(rows()),
    "sources of other shapes": lambda lf: lf.data.sources(rows(), rows(20, 5)),
    "labels all different": lambda lf: lf.data.labelled(rows(), rows()[:, 0]),
    "labels none": lambda lf: lf.data.labelled(rows(), None),
    "blurs of no data": lambda lf: lf.data.blurs(lf.stimuli.Ising(6)),
    "blurs one": lambda lf: lf.data.blurs(lf.stimuli.Samples(rows()), 1.0),
    "zooms of rows": lambda lf: lf.data.zooms(lf.stimuli.Samples(rows())),
    "check of a name": lambda lf: lf.stimuli.check("nlgp"),
    "check of few samples": lambda lf: lf.stimuli.check(lf.stimuli.Ising(6), num=3),
    "check of data": lambda lf: lf.stimuli.check(lf.stimuli.Samples(rows())),
    # command line
    "train on a missing file": command("train no.npy b.npy", B),
    "train on a transposed file": command(
        "train a.npy b.npy", save("a.npy", lambda: rows(6, 20)), B
    ),
    "train with labels of two files": command("train a.npy b.npy --classes y.csv", A, B),
    "train on files of other sites": command(
        "train a.npy b.npy", A, save("b.npy", lambda: rows(20, 5))
    ),
    "train with an option of a stimulus": command("train a.npy b.npy --gain 3", A, B),
    "predict with labels too few": command(
        "predict a.npy --classes y.csv", A, text("y.csv", "0\n1\n")
    ),
    "predict with labels and blurs": command("predict a.npy --classes y.csv --blur 0,1", A),
    "predict with one blur": command("predict a.npy --blur 1", A),
    "predict from an empty cell": command("predict a.csv b.npy", text("a.csv", "1,2\n,4\n"), B),
    "sweep of files without values": command("sweep a.npy b.npy", A, B),
    "sweep of blurs": command("sweep a.npy --blur linspace:0:2:3", A),
    "baseline on a missing file": command("baseline pca no.npy"),
    "baseline on a table of words": command(
        "baseline pca a.csv", text("a.csv", "x,y\n1,2\n3,four\n")
    ),
    "run on a missing array": command("run a.npz:y b.npy", archive("a.npz", x=rows), B),
    "check of a missing file": command("check no.py"),
    "check of a file without stimuli": command(
        "check empty_plugin.py", text("empty_plugin.py", "")
    ),
}
