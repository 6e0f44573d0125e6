"""Arrays in a file: exact, sealed, deterministic."""

import io
import tempfile
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from localfields.store.codec import read_arrays, write_arrays
from localfields.store.disk import Damaged, sha256

dtypes = (
    hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64))
)
dtypes |= hnp.boolean_dtypes() | hnp.unicode_string_dtypes(max_len=5)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))


def write(made):
    with tempfile.TemporaryFile() as file:
        checksum = write_arrays(file, made)
        file.seek(0)
        content = file.read()
    assert checksum == sha256(content)
    return content, checksum


def read(content, checksum=None):
    with tempfile.TemporaryFile() as file:
        file.write(content)
        return read_arrays(file, checksum)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    made=st.dictionaries(st.text(min_size=1, max_size=12), arrays, max_size=4),
    transpose=st.booleans(),
)
def test_round_trip(made, transpose):
    made = {name: array.T if transpose else array for name, array in made.items()}
    content, checksum = write(made)
    found = read(content, checksum)
    assert list(found) == list(made)
    for name, array in made.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes() and found[name].flags.writeable
    assert write(made) == (content, checksum)  # the same arrays make the same file


@pytest.mark.parametrize(
    "name", ["x.41", "x.", "steps.npy", "a.b_c.0", "..", "a/b", "Ä", "x" * 1000, "\ud800"]
)
def test_names_are_kept(name):
    content, _ = write({name: np.ones(1), "other": np.zeros(2)})
    assert list(read(content)) == [name, "other"]


def test_numpy_reads_it_too():
    content, _ = write({"series.loss": np.arange(3.0), "kind": np.array(["ok", "diverged"])})
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        assert found["series.loss"].tolist() == [0, 1, 2] and found["kind"].tolist() == [
            "ok",
            "diverged",
        ]


def test_another_file_is_told_by_its_checksum():
    one, other = write({"x": np.ones(3)}), write({"x": np.zeros(3)})
    with pytest.raises(Damaged, match="another checksum"):
        read(one[0], other[1])


@pytest.mark.parametrize("length", [4, 10**8, 10**12])
def test_nothing_is_allocated_before_sizes_are_checked(monkeypatch, length):
    """An array of three numbers that says to be longer, in an archive that is right in all else."""
    with zipfile.ZipFile(io.BytesIO(write({"x": np.ones(3)})[0])) as archive:
        member = archive.read("x.npy").replace(
            b"(3,), }".ljust(30), f"({length},), }}".encode().ljust(30)
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", member)
        archive.comment = b"0" * 64
    body = file.getvalue()[:-64]
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("allocated"))
    with pytest.raises(Damaged, match="size"):
        read(body + sha256(body).encode())
