"""Files people have: what is read is what was written, and what cannot be read is said."""

import sys

import h5py
import numpy as np
import pandas
import pytest
import scipy.io
import xarray
from PIL import Image

import localfields as lf

ROWS = np.random.default_rng(1).normal(size=(7, 2, 3))
FLAT = ROWS.reshape(7, 6)
WORDS = ["dog", "cat", "dog", "cat", "dog", "dog", "cat"]


def text(name, content):
    return lambda folder: (folder / name).write_text(content, encoding="utf-8")


def lines(separator=",", rows=FLAT):
    return "\n".join(separator.join(map(repr, row)) for row in rows.tolist()) + "\n"


def savetxt(name, **settings):
    return lambda folder: np.savetxt(folder / name, FLAT, fmt="%.17g", **settings)


def to_csv(name, frame, **settings):
    return lambda folder: frame.to_csv(folder / name, **settings)


def hdf5(name, **arrays):
    def write(folder):
        with h5py.File(folder / name, "w") as file:
            for path, array in arrays.items():
                file[path] = array

    return write


def matlab(name, **arrays):
    """As Matlab writes version 7.3: HDF5 after 512 bytes, axes reversed, each with its class."""

    def write(folder):
        with h5py.File(folder / name, "w", userblock_size=512) as file:
            for key, (array, kind) in arrays.items():
                file[key] = np.asarray(array).T
                file[key].attrs["MATLAB_class"] = np.bytes_(kind)
        with (folder / name).open("r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128))

    return write


def netcdf(name, engine, dims=("trial", "y", "x"), values=ROWS, **encoding):
    def write(folder):
        array = xarray.DataArray(values, dims=dims, name="rates")
        array.to_netcdf(folder / name, engine=engine, encoding={"rates": encoding})

    return write


def parquet(name, frame):
    return lambda folder: frame.to_parquet(folder / name)


def tiff(name, pages):
    def write(folder):
        first, *others = (Image.fromarray(page) for page in pages)
        first.save(folder / name, save_all=True, append_images=others)

    return write


FRAME = pandas.DataFrame(FLAT, columns=list("abcdef"))
SINGLE = ROWS.astype(np.float32)
FILES = {
    "comma": ("a.csv", text("a.csv", lines())),
    "semicolon": ("a.csv", text("a.csv", lines(";"))),
    "tab in csv": ("a.csv", text("a.csv", lines("\t"))),
    "quoted": ("a.csv", text("a.csv", lines().replace(",", '","').replace("\n", '"\n"')[:-1])),
    "tsv": ("a.tsv", text("a.tsv", "a\tb\tc\td\te\tf\n" + lines("\t"))),
    "savetxt": ("a.txt", savetxt("a.txt", header="rates of six cells")),
    "savetxt with commas": ("a.txt", savetxt("a.txt", delimiter=",")),
    "pandas": ("a.csv", to_csv("a.csv", FRAME)),
    "pandas without index": ("a.csv", to_csv("a.csv", FRAME, index=False)),
    "pandas, numbered columns": ("a.csv", to_csv("a.csv", pandas.DataFrame(FLAT))),
    "pandas, numbered columns without index": (
        "a.csv",
        to_csv("a.csv", pandas.DataFrame(FLAT), index=False),
    ),
    "pandas, named rows": ("a.csv", to_csv("a.csv", FRAME.set_index(pandas.Index(WORDS)))),
    "pandas, tabs": ("a.tsv", to_csv("a.tsv", FRAME, sep="\t")),
    "R": (
        "a.txt",
        text(
            "a.txt",
            "a b c d e f\n"
            + "".join(f"{n} {row}\n" for n, row in enumerate(lines(" ").split("\n")[:-1], 1)),
        ),
    ),
    "h5": ("a.h5", hdf5("a.h5", rates=ROWS, time=np.arange(7.0))),
    "h5, usual name": ("a.hdf5", hdf5("a.hdf5", data=ROWS, other=FLAT)),
    "h5, named": ("a.h5:session/rates", hdf5("a.h5", **{"session/rates": ROWS, "b": FLAT})),
    "h5, from the root": (
        "a.h5:/session/rates",
        hdf5("a.h5", **{"session/rates": ROWS, "b": FLAT}),
    ),
    "nwb": (
        "a.nwb:acquisition/rates/data",
        hdf5("a.nwb", **{"acquisition/rates/data": ROWS, "acquisition/position/data": FLAT}),
    ),
    "matlab 7.3": (
        "a.mat",
        matlab("a.mat", rates=(ROWS, "double"), note=(np.zeros((1, 4), np.uint16), "char")),
    ),
    "matlab 7.3, named": (
        "a.mat:rates",
        matlab("a.mat", rates=(ROWS, "double"), flat=(FLAT, "double")),
    ),
    "netcdf 3": ("a.nc", netcdf("a.nc", "scipy")),
    "netcdf 4": ("a.nc", netcdf("a.nc", "h5netcdf")),
    "netcdf, samples last": (
        "a.nc",
        netcdf("a.nc", "scipy", ("y", "x", "trial"), np.moveaxis(ROWS, 0, 2)),
    ),
    "parquet": ("a.parquet", parquet("a.parquet", FRAME)),
    "parquet with an index": (
        "a.parquet",
        parquet("a.parquet", FRAME.set_index(pandas.Index(WORDS))),
    ),
    "tiff": ("a.tif", tiff("a.tif", SINGLE)),
}


@pytest.mark.parametrize("name", FILES)
def test_what_was_written_is_read(name, tmp_path):
    path, write = FILES[name]
    write(tmp_path)
    found = lf.stimuli.Samples(str(tmp_path / path))
    expected = SINGLE.reshape(7, 6) if name == "tiff" else FLAT
    np.testing.assert_array_equal(found.rows, expected)
    which = np.array([3, 0, 3, 6])
    np.testing.assert_array_equal(found.take(which), expected[which])
    assert found.shape in ((2, 3), (6,)) and lf.from_json(found.to_json()) == found


def test_scales_and_gaps_of_netcdf_are_honored(tmp_path):
    packed = np.array([[1.0, 2.5], [3.0, 4.5], [0.5, 1.0]])
    write = netcdf(
        "a.nc", "h5netcdf", ("time", "x"), packed, dtype="i2", scale_factor=0.5, _FillValue=-1
    )
    write(tmp_path)
    np.testing.assert_allclose(lf.stimuli.Samples(tmp_path / "a.nc").rows, packed)
    packed[1, 1] = np.nan
    netcdf("b.nc", "h5netcdf", ("time", "x"), packed, dtype="i2", _FillValue=-1)(tmp_path)
    with pytest.raises(lf.InputError, match="1 values that are nan"):
        lf.stimuli.Samples(tmp_path / "b.nc")


LABELS = {
    "csv": ("y.csv", text("y.csv", "\n".join(WORDS))),
    "csv with a name": ("y.csv", text("y.csv", "animal\n" + "\n".join(WORDS))),
    "csv of pandas": ("y.csv", to_csv("y.csv", pandas.Series(WORDS, name="animal"))),
    "txt": ("y.txt", text("y.txt", "\n".join(WORDS))),
    "numbers with a name": ("y.csv", text("y.csv", "y\n1\n0\n1\n0\n1\n1\n0\n")),
    "npy": ("y.npy", lambda folder: np.save(folder / "y.npy", np.array(WORDS))),
    "h5": ("y.h5:animal", hdf5("y.h5", animal=WORDS, rates=FLAT)),
    "parquet": ("y.parquet", parquet("y.parquet", pandas.DataFrame({"animal": WORDS}))),
    "mat": (
        "y.mat",
        lambda folder: scipy.io.savemat(folder / "y.mat", {"y": [1, 0, 1, 0, 1, 1, 0]}),
    ),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read(name, tmp_path):
    path, write = LABELS[name]
    write(tmp_path)
    cats, dogs = lf.data.labelled(FLAT, str(tmp_path / path)).stimuli
    np.testing.assert_array_equal(cats.rows, FLAT[[1, 3, 6]])
    np.testing.assert_array_equal(dogs.rows, FLAT[[0, 2, 4, 5]])


REFUSED = {
    "empty cell": (
        "a.csv",
        text("a.csv", "a,b,c\n1,2,3\n4,,6\n"),
        "line 3, column 2 of .* is empty. Fill the gap, or drop that line",
    ),
    "empty first cell": (
        "a.csv",
        text("a.csv", ",2,3\n4,5,6\n"),
        "line 1, column 1 of .* is empty",
    ),
    "empty cell after an index": (
        "a.csv",
        text("a.csv", ",a,b\n0,1,2\n1,,4\n"),
        "line 3, column 2 of .* is empty",
    ),
    "decimal commas": (
        "a.csv",
        text("a.csv", "1,5;2,5\n3,5;4,5\n"),
        "line 1, column 2 of .* is not a number: '5;2'",
    ),
    "missing by name": ("a.csv", text("a.csv", "1,2\n3,NA\n"), "line 2, column 2 .*'NA'"),
    "nothing but comments": ("a.txt", text("a.txt", "# one\n"), "at least two samples"),
    "labels of two columns": ("a.txt", text("a.txt", "1 2\n3\n"), "line 2 of .* has 1 numbers"),
    "no h5": ("a.h5", text("a.h5", "hello"), "not a valid .h5 file"),
    "no netcdf": ("a.nc", text("a.nc", "hello"), "not a valid .nc file"),
    "no parquet": ("a.parquet", text("a.parquet", "hello"), "not a valid .parquet file"),
    "no tiff": ("a.tif", text("a.tif", "hello"), "The image .* cannot be read"),
    "no Matlab 7.3": (
        "a.mat",
        lambda folder: (folder / "a.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(700)),
        "not a valid .mat file",
    ),
    "which array of h5": (
        "a.h5",
        hdf5("a.h5", a=FLAT, b=FLAT),
        "contains the arrays a, b. Choose one: .*a.h5:a",
    ),
    "many arrays of h5": (
        "a.h5",
        hdf5("a.h5", **{f"cell{n:02}": FLAT for n in range(20)}),
        "cell00, .*, cell11 and 8 more. Choose one",
    ),
    "other array of h5": ("a.h5:cel", hdf5("a.h5", cell=FLAT), "Did you mean 'cell'"),
    "no array in h5": ("a.h5", hdf5("a.h5", note="text"), "contains no array of numbers"),
    "cells of Matlab 7.3": (
        "a.mat",
        matlab("a.mat", c=(np.zeros((2, 2)), "cell")),
        "contains cell, which can run code",
    ),
    "words in parquet": (
        "a.parquet",
        parquet("a.parquet", pandas.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"]})),
        "Column 'kind' of `data` is not numeric",
    ),
    "single image": ("a.tif", tiff("a.tif", SINGLE[:1]), "single image.*use ImagePatches"),
    "pages of two sizes": (
        "a.tif",
        tiff("a.tif", [np.eye(3, dtype=np.float32), np.eye(4, dtype=np.float32)]),
        "pages of .* have different sizes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_said(name, tmp_path):
    path, write, says = REFUSED[name]
    write(tmp_path)
    with pytest.raises(lf.InputError, match=says) as told:
        lf.stimuli.Samples(str(tmp_path / path))
    assert "\n" not in str(told.value) and len(str(told.value)) < 500


@pytest.mark.parametrize(
    "module, write, path",
    [
        ("h5py", hdf5("a.h5", x=FLAT), "a.h5"),
        ("h5py", matlab("a.mat", x=(FLAT, "double")), "a.mat"),
        ("h5netcdf", netcdf("a.nc", "h5netcdf"), "a.nc"),
        ("pyarrow.parquet", parquet("a.parquet", FRAME), "a.parquet"),
    ],
)
def test_a_library_that_is_not_there_is_named(module, write, path, tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)  # as where it is not installed
    package = module.partition(".")[0]
    says = rf"{path}' needs {package}. Install it with: pip install 'localfields\[files\]'"
    with pytest.raises(lf.InputError, match=says):
        lf.stimuli.Samples(tmp_path / path)


def test_h5_is_read_in_pieces(tmp_path, monkeypatch):
    """Rows come from the file when they are drawn, and in the order asked for."""
    rows = np.arange(6000.0).reshape(1000, 6)
    hdf5("a.h5", x=rows)(tmp_path)
    monkeypatch.setattr("localfields.stimuli._load.PIECE", 480)
    monkeypatch.setattr("localfields.stimuli._load.PART", 4800)
    monkeypatch.setattr("localfields.stimuli.samples.LARGEST_HELD", 4800)
    monkeypatch.setattr("localfields.stimuli.samples.POOL", 960)
    found = lf.stimuli.Samples(tmp_path / "a.h5")
    assert found.streamed and len(found.rows) == 20
    which = np.array([999, 0, 500, 0, 37])
    np.testing.assert_array_equal(found.take(which), rows[which])
    np.testing.assert_allclose(found.site_means(), rows.mean(axis=0))


def test_all_pages_of_a_tiff_are_images(tmp_path):
    pages = np.random.default_rng(2).normal(size=(3, 6, 6)).astype(np.float32)
    tiff("a.tif", pages)(tmp_path)
    settings = {"shape": (6, 6), "patches": 200, "normalize": "none", "preprocess": ()}
    found = lf.stimuli.ImagePatches(str(tmp_path / "a.tif"), **settings)
    assert {row.tobytes() for row in found.rows} == {
        page.astype(np.float64).tobytes() for page in pages
    }
