"""Data from outside: what is read, bit for bit, and what is refused, with how much memory."""

import io
import json
import os
import subprocess
import sys
import types
import zipfile

import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse
import xarray
import zarr

import localfields as lf
from localfields.stimuli import _load

ROWS = np.random.default_rng(0).normal(size=(7, 2, 3))


def write_csv(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def write_npz(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def write_mat(path, **values):
    scipy.io.savemat(path, values)
    return path


@pytest.fixture
def files(tmp_path):
    flat = ROWS.reshape(7, 6)
    np.save(tmp_path / "a.npy", ROWS)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(ROWS))
    np.save(tmp_path / "big-endian.npy", ROWS.astype(">f8"))
    write_npz(tmp_path / "only.npz", anything=ROWS)
    write_npz(tmp_path / "usual.npz", x=ROWS, seed=np.array(3), other=flat)
    write_npz(tmp_path / "named.npz", a=flat, b=ROWS)
    write_mat(tmp_path / "a.mat", data=ROWS, note="text", cell=np.array([1, "two"], dtype=object))
    np.savetxt(tmp_path / "a.csv", flat, delimiter=",", fmt="%.17g")
    write_csv(tmp_path / "named.csv", "a,b,c,d,e,f\n" + (tmp_path / "a.csv").read_text() + "\n")
    return tmp_path


READ = (
    "a.npy",
    "fortran.npy",
    "big-endian.npy",
    "only.npz",
    "usual.npz",
    "named.npz:b",
    "a.mat",
    "a.csv",
    "named.csv",
)


@pytest.mark.parametrize("name", READ)
def test_every_format_holds_the_same_numbers(files, name):
    found = lf.stimuli.Samples(str(files / name))
    np.testing.assert_array_equal(found.rows, ROWS.reshape(7, 6))
    assert found.shape == ((6,) if name.endswith("csv") else (2, 3))
    which = np.array([3, 0, 3, 6])
    np.testing.assert_array_equal(found.take(which), ROWS.reshape(7, 6)[which])
    # A checksum is of the numbers, whatever holds them.
    assert found.data.sha256 == lf.stimuli.Samples(ROWS.reshape(7, *found.shape)).data.sha256


def test_json_names_the_file_and_its_numbers(files):
    found = lf.stimuli.Samples(f"{files / 'named.npz'}:b")
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["data"]["path"].endswith("named.npz") and plain["data"]["variable"] == "b"
    again = lf.from_json(plain)
    assert again == found and hash(again) == hash(found)
    write_npz(files / "named.npz", a=ROWS, b=ROWS + 1)
    with pytest.raises(lf.InputError, match="has changed since this was computed"):
        lf.from_json(plain)


def test_few_numbers_are_written_out():
    for dtype in (np.float64, np.float32, np.int16, bool):
        one = lf.stimuli.Samples((1 + ROWS).astype(np.int16).astype(dtype))
        plain = json.loads(json.dumps(one.to_json()))
        again = lf.from_json(plain)
        assert again == one and again.rows.dtype == one.rows.dtype
        np.testing.assert_array_equal(again.rows, one.rows)
    plain["data"]["values"][0] = "no"
    with pytest.raises(lf.InputError, match="`data`"):
        lf.from_json(plain)


def test_an_array_is_known_by_its_numbers_while_it_is_here():
    large = np.tile(ROWS, (30, 1, 1))
    one, other = (lf.stimuli.Samples(large + shift) for shift in (0, 1e-12))
    assert one != other and one == lf.stimuli.Samples(large.tolist())
    plain = one.to_json()
    assert "values" not in plain["data"] and lf.from_json(plain) == one
    plain["data"]["sha256"] = 64 * "0"
    with pytest.raises(lf.InputError, match="not in this process.*np.save"):
        lf.from_json(plain)


def test_the_key_of_a_result_depends_on_the_data():
    def digest(data):
        task = lf.Discrimination(lf.stimuli.Samples(data), lf.stimuli.Samples(-data))
        return lf.Experiment(task).digest

    changed = ROWS.copy()
    changed[4, 1, 2] = np.nextafter(changed[4, 1, 2], 1)
    assert digest(ROWS) == digest(ROWS.copy()) != digest(changed)


def test_zarr_arrays_and_groups(tmp_path):
    path = str(tmp_path / "a.zarr")
    zarr.create_array(store=path, data=ROWS, chunks=(2, 1, 3))
    group = str(tmp_path / "group.zarr")
    held = zarr.open_group(store=group, mode="w")
    held.create_array("a", data=ROWS, chunks=(3, 2, 2))
    held.create_array("b", data=-ROWS)
    expected = ROWS.reshape(7, 6)
    for name, sign in ((path, 1), (f"{group}:a", 1), (f"{group}:b", -1)):
        found = lf.stimuli.Samples(name)
        np.testing.assert_array_equal(found.rows, sign * expected)
        np.testing.assert_array_equal(found.take(np.array([5, 1, 5])), sign * expected[[5, 1, 5]])
    for wrong, message in ((group, "Choose one: .*group.zarr:a"), (f"{group}:c", "c")):
        with pytest.raises(lf.InputError, match=message):
            lf.stimuli.Samples(wrong)


def test_a_zarr_array_that_was_written_again_is_read_again(tmp_path):
    """Its folder is as old as before: what changed are files deep inside."""
    path = str(tmp_path / "a.zarr")
    written = zarr.create_array(store=path, data=ROWS)
    for file in (tmp_path / "a.zarr", *(tmp_path / "a.zarr").rglob("*")):
        os.utime(file, (10**9, 10**9))  # it was written a while ago
    before = lf.stimuli.Samples(path)
    written[:] = ROWS[::-1]
    after = lf.stimuli.Samples(path)
    np.testing.assert_array_equal(after.rows, before.rows[::-1])
    assert before.to_json() != after.to_json()


def test_zarr_is_optional(tmp_path, monkeypatch):
    path = tmp_path / "a.zarr"
    zarr.create_array(store=str(path), data=ROWS)
    monkeypatch.setitem(sys.modules, "zarr", None)  # as where it is not installed
    with pytest.raises(lf.InputError, match=r"needs zarr.*pip install 'localfields\[files\]'"):
        lf.stimuli.Samples(path)


def corrupt_zarr(path):
    """An array with one damaged chunk."""
    zarr.create_array(store=str(path), data=ROWS, chunks=(2, 2, 3))
    (path / "c" / "1" / "0" / "0").write_bytes(b"no chunk")
    return path


def corrupt(path):
    path.write_bytes(path.read_bytes()[:-5])
    return path


def hostile_npy(path):
    with path.open("wb") as file:
        np.save(
            file, np.array([[1, 2], [3, types.SimpleNamespace()]], dtype=object), allow_pickle=True
        )
    return path


def hostile_npz(path):
    np.savez(path, x=np.array([[{}, 1], [2, 3]], dtype=object), allow_pickle=True)
    return path


def bomb(path):
    """An archive of a few bytes whose header promises a terabyte."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**20, 2**17)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", buffer.getvalue())
    return path


def saved(path, array):
    np.save(path, array)
    return path


def filled(value):
    data = ROWS.copy()
    data[1:3] = value
    return data


MISTAKES = {
    "missing": (
        lambda d: d / "no.npy",
        r"no.npy. cannot be read .No such file.*Check its name",
    ),
    "folder": (lambda d: d, "must end in .npy"),
    "Excel": (lambda d: write_csv(d / "a.xlsx", "1,2\n3,4"), "must end in .npy"),
    "empty file": (lambda d: write_csv(d / "a.npy", ""), "a.npy. is empty"),
    "cut off npy": (
        lambda d: corrupt(saved(d / "a.npy", ROWS)),
        "not a valid .npy file",
    ),
    "cut off npz": (lambda d: corrupt(write_npz(d / "a.npz", x=ROWS)), "not a valid .npz file"),
    "cut off mat": (lambda d: corrupt(write_mat(d / "a.mat", x=ROWS)), "not a valid .mat file"),
    "no npy": (lambda d: write_csv(d / "a.npy", "hello"), "not a valid .npy file"),
    "no mat": (lambda d: write_csv(d / "a.mat", "hello"), "not a valid .mat file"),
    "binary csv": (
        lambda d: saved(d / "a.npy", ROWS).rename(d / "a.csv"),
        "not a valid .csv file .UnicodeDecodeError",
    ),
    "pickled npy": (
        lambda d: hostile_npy(d / "a.npy"),
        "pickled objects.*run code",
    ),
    "pickled npz": (
        lambda d: hostile_npz(d / "a.npz"),
        "pickled objects.*run code",
    ),
    "cells": (
        lambda d: write_mat(d / "a.mat", x=np.array([1, "a"], object)),
        "contains cell.*run code",
    ),
    "struct": (lambda d: write_mat(d / "a.mat", x={"f": 1}), "contains struct"),
    "text in mat": (lambda d: write_mat(d / "a.mat", x="text"), "contains char"),
    "bomb": (lambda d: bomb(d / "a.npz"), r"has .*GB.*np\.save"),
    "several arrays": (
        lambda d: write_npz(d / "a.npz", a=ROWS, b=ROWS),
        "contains the arrays a, b. Choose one: .*a.npz:a",
    ),
    "other variable": (
        lambda d: str(write_npz(d / "a.npz", rows=ROWS)) + ":row",
        "Did you mean 'rows'",
    ),
    "variable of an npy": (
        lambda d: f"{saved(d / 'a.npy', ROWS)}:x",
        "holds a single array",
    ),
    "ragged csv": (
        lambda d: write_csv(d / "a.csv", "1,2\n3,4\n5\n"),
        "line 3 of .* has 1 numbers, and the lines before it have 2",
    ),
    "words in csv": (
        lambda d: write_csv(d / "a.csv", "1,2\n3,x\n"),
        "line 2, column 2 of .* is not a number: 'x'",
    ),
    "csv of names": (lambda d: write_csv(d / "a.csv", "a,b\n"), "2 to 4 axes|at least two samples"),
    "empty zarr": (lambda d: (d / "a.zarr").mkdir() or d / "a.zarr", "a.zarr"),
    "corrupt zarr": (lambda d: corrupt_zarr(d / "a.zarr"), "Zstd decompression error"),
    "nan": (
        lambda d: filled(np.nan),
        "12 values that are nan or infinite, of 42",
    ),
    "infinite": (lambda d: saved(d / "a.npy", filled(np.inf)), "12 values that are nan"),
    "constant": (lambda d: np.ones((4, 4)), "is 1 throughout"),
    "constant file": (
        lambda d: saved(d / "a.npy", np.zeros((4, 4), np.int8)),
        "is 0 throughout",
    ),
    "huge": (lambda d: 1e200 * ROWS, "numbers from .* to .*, out of range. Divide or multiply"),
    "tiny": (lambda d: 1e-200 * ROWS, "numbers from .* to .*, out of range. Divide or multiply"),
    "large": (
        lambda d: 1e20 * ROWS,
        "out of the range of single precision. Use preprocess='scale'",
    ),
    "small": (
        lambda d: 1e-20 * ROWS,
        "out of the range of single precision. Use preprocess='scale'",
    ),
    "no samples": (lambda d: np.zeros((0, 4)), "at least two samples"),
    "one sample": (lambda d: ROWS[:1], "at least two samples"),
    "one axis": (lambda d: ROWS.ravel(), "2 to 4 axes.*one sample per row"),
    "five axes": (lambda d: ROWS.reshape(7, 1, 2, 3, 1, 1), "2 to 4 axes"),
    "ragged": (lambda d: [[1, 2], [3]], "rows of different lengths"),
    "words": (lambda d: [["a", "b"], ["c", "d"]], "an array of numbers or the name of a file"),
    "masked": (
        lambda d: np.ma.masked_where(ROWS > 1, ROWS),
        f"has {(ROWS > 1).sum()} masked values, of 42. Drop",
    ),
    "masked rows": (
        lambda d: [np.ma.array([1, 2], mask=[0, 1]), np.ma.array([3, 4])],
        "has 1 masked values, of 4",
    ),
    "sparse": (lambda d: scipy.sparse.eye_array(5), "sparse matrix. Pass its `toarray"),
    "two variables": (
        lambda d: xarray.Dataset({"a": ("x", [1.0]), "b": ("x", [2.0])}),
        "a Dataset with the variables a, b. Choose one",
    ),
    "column of words": (
        lambda d: pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"], "c": [1, 2, 3]}),
        r"Column 'b' of `data` is not numeric \(type (str|object)\)",
    ),
    "column of dates": (
        lambda d: pandas.DataFrame({"a": [1, 2], "b": pandas.to_datetime(["2020-01-01"] * 2)}),
        "Column 'b' of `data` is not numeric .type datetime64",
    ),
    "nullable column": (
        lambda d: pandas.DataFrame({"a": pandas.array([1, None, 3], "Int64"), "b": [1, 2, 3]}),
        "has 1 values that are nan or infinite, of 6",
    ),
    "transposed": (
        lambda d: ROWS.reshape(7, 6).T,
        "6 samples of 7 sites, or the other way round.*confirm it with `shape` 7; else transpose",
    ),
    "axes that may both be samples": (
        lambda d: xarray.DataArray(ROWS, dims=("neuron", "trial", "time")),
        "Of the axes neuron, trial, time, trial and time may number the samples",
    ),
    "complex": (lambda d: ROWS + 1j, "elements of type complex128"),
    "objects": (lambda d: np.array([[1, None], [2, 3]], dtype=object), "an array of numbers"),
    "records": (lambda d: np.zeros((3, 3), dtype=[("a", "f8")]), "elements of type"),
    "dates": (lambda d: np.zeros((3, 3), dtype="M8[s]"), "elements of type datetime64"),
    "nothing": (lambda d: None, "an array of numbers or the name of a file"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_data_is_refused(name, tmp_path):
    make, says = MISTAKES[name]
    with pytest.raises(lf.InputError, match=says) as told:
        lf.stimuli.Samples(make(tmp_path))
    assert "\n" not in str(told.value) and len(str(told.value)) < 500


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    """Neither what is refused nor what is read goes near pickle."""
    import pickle

    def opened(*_args, **_values):
        raise AssertionError("a pickle was opened")

    hostile_npy(tmp_path / "a.npy")
    hostile_npz(tmp_path / "a.npz")
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, opened)
    for name in ("a.npy", "a.npz", "a.npz:x"):
        with pytest.raises(lf.InputError):
            lf.stimuli.Samples(str(tmp_path / name))


@pytest.mark.parametrize(
    "values, says",
    [
        ({"shape": (4, 2)}, r"as many sites as a sample, \(2, 3\)"),
        ({"classes": [0, 1]}, "2 labels for 7 samples"),
        (
            {"classes": [0, 0, 0, 0, 0, 0, 1], "chosen": 1},
            "Only 1 samples have the label 1",
        ),
        ({"classes": [0, 0, 0, 0, 0, 0, 1], "chosen": 5}, "The labels are 0, 1"),
        ({"classes": ["a", None, "a", "b", "b", "", "b"]}, "2 missing labels.*of sample 1"),
        ({"preprocess": "centre"}, "Did you mean 'center'"),
        ({"symmetry": "shift"}, "Did you mean 'shifts'"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(values, says):
    with pytest.raises(lf.InputError, match=says):
        lf.stimuli.Samples(ROWS, **values)


class Tensor:
    """The part of a torch tensor that matters: it gives its numbers after `detach().cpu()`, and
    knows no bfloat16 in numpy.
    """

    def __init__(self, values, dtype="torch.float32", held=True):
        self.values, self.dtype, self.held = values, dtype, held

    def detach(self):
        return Tensor(self.values, self.dtype, held=True)

    def cpu(self):
        return Tensor(self.values, self.dtype, held=False)

    def float(self):
        return Tensor(self.values, "torch.float32", self.held)

    def __array__(self, dtype=None, copy=None):
        if self.held:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


FLAT = ROWS.reshape(7, 6).astype(np.float32)
ROUNDED = np.asarray(jnp.asarray(FLAT, jnp.bfloat16)).astype(np.float32)
NAMED = xarray.DataArray(FLAT.T, dims=("site", "samples"))
FRAME = pandas.DataFrame(FLAT, index=list("abcdefg"))
FROM_LIBRARIES = {
    "masked nowhere": np.ma.array(FLAT, mask=False),
    "table": FRAME,
    "table with pandas' index as a column": FRAME.reset_index(drop=True)
    .reset_index()
    .rename(columns={"index": "Unnamed: 0"}),
    "nullable table": FRAME.astype("Float32"),
    "mixed table": FRAME.astype({0: "float64"}),
    "named axes": NAMED,
    "named axes in order": NAMED.T,
    "dataset of one variable": NAMED.to_dataset(name="rates"),
    "tensor that requires grad": Tensor(FLAT),
    "tensor of bfloat16": Tensor(ROUNDED, "torch.bfloat16"),
    "JAX array of bfloat16": jnp.asarray(FLAT, jnp.bfloat16),
}


@pytest.mark.parametrize("name", FROM_LIBRARIES)
def test_arrays_of_other_libraries_keep_their_meaning(name):
    expected = ROUNDED if "bfloat16" in name else FLAT
    found = lf.stimuli.Samples(FROM_LIBRARIES[name])
    np.testing.assert_array_equal(found.rows, expected)
    assert found.shape == (6,)


def test_the_names_of_axes_say_which_are_samples():
    images = xarray.DataArray(np.moveaxis(ROWS, 0, 2), dims=("height", "width", "trial"))
    np.testing.assert_array_equal(lf.stimuli.Samples(images).data.opened(), ROWS)


def test_more_sites_than_samples_are_confirmed_by_a_shape():
    wide = FLAT.T
    assert lf.stimuli.Samples(wide, shape=7).shape == (7,)
    assert lf.from_json(lf.stimuli.Samples(wide, shape=7).to_json()).num == 6
    assert lf.stimuli.Samples(np.tile(FLAT, (1, 2)).reshape(7, 3, 4)).shape == (3, 4)  # images


@pytest.mark.parametrize(
    "labels",
    [
        ["dog", "cat", "dog", "cat", "dog", "dog", "cat"],
        np.array(["dog", "cat", "dog", "cat", "dog", "dog", "cat"]),
        pandas.Series(["dog", "cat", "dog", "cat", "dog", "dog", "cat"], dtype="category"),
        pandas.DataFrame({"animal": ["dog", "cat", "dog", "cat", "dog", "dog", "cat"]}),
        pandas.Series([1, 0, 1, 0, 1, 1, 0], dtype="Int8"),
        ["1", "0", "1", "0", "1", "1", "0"],
    ],
)
def test_labels_may_be_words(labels):
    """They are numbered in alphabetical order."""
    cats, dogs = lf.data.labelled(FLAT, labels).stimuli
    np.testing.assert_array_equal(cats.rows, FLAT[[1, 3, 6]])
    np.testing.assert_array_equal(dogs.rows, FLAT[[0, 2, 4, 5]])
    assert lf.from_json(cats.to_json()) == cats


GIANT = r"""
import pathlib, re, resource, sys
import numpy as np
import localfields as lf

def peak():  # in kB; on Linux not `ru_maxrss`, with which a process begins where the one that started it is
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

lf.stimuli.Samples().sample(0, 2)  # what importing and compiling take is not the file's
before = peak()
x = lf.stimuli.Samples(sys.argv[1], symmetry="signs", preprocess="scale:each=all")
assert x.streamed and x.num == 2**21
drawn = np.asarray(x.sample(0, 1000))
assert drawn.shape == (1000, 256)
print((peak() - before) / 1024)
"""


def test_two_gigabytes_take_little_memory(tmp_path):
    """The file is sparse: 2 GB of zeros but for a few rows, none of which are ever in memory at
    once.
    """
    path = tmp_path / "giant.npy"
    data = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(2**21, 256))
    data[::1000] = 1.0
    data[-1] = 2.0
    del data
    assert path.stat().st_size > 2**31
    command = [sys.executable, "-c", GIANT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    held = (_load.PIECE + lf.stimuli.samples.POOL) / 2**20
    assert (
        0 < float(done.stdout.split()[-1]) < 6 * held + 100
    )  # copies in float64 of what is held, not of 2048 MB
