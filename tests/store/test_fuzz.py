"""Damaged and hostile entries: refused with a message, and no harm done. Hundreds of generated
cases.
"""

import io
import json
import os
import pickle
import shutil
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localfields as lf
from localfields.store import Store
from localfields.store.disk import sha256
from localfields.store.document import seal

from .helpers import experiment, put, trajectory

FILES = ("spec.json", "arrays.npz", "meta.json")
MANY = settings(max_examples=120, deadline=None, derandomize=True)


def entry(seed):
    """The digest and the files of a good entry."""
    with tempfile.TemporaryDirectory() as place:
        store = Store(place)
        digest = put(store, seed=seed, made=trajectory(seed))
        return digest, {name: (store.path / digest / name).read_bytes() for name in FILES}


DIGEST, GOOD = entry(1)
OTHER, NEIGHBOR = entry(2)


class Payload:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return open, (str(self.mark), "w")


class Place:
    """A store with a good entry and one to be tampered with, and things around it that must stay
    as they are.
    """

    def __init__(self, root):
        self.root = Path(root)
        self.mark = self.root / "mark"
        self.outside = self.root / "outside"
        self.outside.mkdir()
        (self.outside / "precious").write_text("precious")
        self.store = Store(self.root / "runs")
        self.folder = self.store.path / DIGEST
        self.write(OTHER, NEIGHBOR)

    def write(self, digest, files):
        folder = self.store.path / digest
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def snapshot(self):
        paths = [
            path
            for path in sorted(self.root.rglob("*"))
            if not path.is_relative_to(self.store.path)
        ]
        return [(path, path.read_bytes() if path.is_file() else None) for path in paths]

    def check_refused(self, remove=True):
        """Loading is refused, the rest of the store works, and nothing outside has changed."""
        before = self.snapshot()
        with pytest.raises(lf.InputError) as told:
            self.store.load(DIGEST)
        message = str(told.value)
        assert (
            DIGEST[:12] in message
            and message.startswith(("The run", "No run"))
            and message.endswith(".")
            and "\n" not in message
        )
        problems = self.store.verify_all()
        assert [problem.digest for problem in problems] == [DIGEST]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert OTHER in [one.digest for one in self.store.list()]
        try:
            self.store.entry(DIGEST)
        except lf.InputError:
            pass
        assert self.store.load(OTHER).num_members == 3
        assert self.snapshot() == before and not self.mark.exists()
        if not remove:
            return
        self.store.remove(DIGEST)
        assert self.store.digests() == [OTHER]
        assert self.snapshot() == before and not self.mark.exists()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One place for the many cases."""
    return Place(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def tampered(shared):
    """Check that an entry of these files is refused."""

    def check(files):
        shutil.rmtree(shared.folder, ignore_errors=True)
        shared.write(DIGEST, files)
        shared.check_refused(remove=False)

    return check


def test_the_entries_are_good_before(place):
    place.write(DIGEST, GOOD)
    assert place.store.verify_all() == [] and place.store.load(DIGEST).num_members == 3


# -- damage ----------------------------------------------------------------------------------------

names = st.sampled_from(FILES)
shares = st.floats(0, 1, exclude_max=True)


@MANY
@given(name=names, share=shares)
def test_truncated(tampered, name, share):
    tampered({**GOOD, name: GOOD[name][: int(share * len(GOOD[name]))]})


@settings(MANY, max_examples=250)
@given(name=names, flips=st.lists(st.tuples(shares, st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped(tampered, name, flips):
    found = bytearray(GOOD[name])
    for share, mask in flips:
        found[int(share * len(found))] ^= mask
    if bytes(found) != GOOD[name]:
        tampered({**GOOD, name: bytes(found)})


@settings(MANY, max_examples=60)
@given(name=names, share=shares, more=st.binary(min_size=1, max_size=40))
def test_inserted(tampered, name, share, more):
    at = int(share * (len(GOOD[name]) + 1))
    tampered({**GOOD, name: GOOD[name][:at] + more + GOOD[name][at:]})


@settings(MANY, max_examples=60)
@given(
    name=names,
    content=st.binary(max_size=200)
    | st.text(max_size=50).map(lambda text: json.dumps(text).encode()),
)
def test_replaced(tampered, name, content):
    tampered({**GOOD, name: content})


@settings(MANY, max_examples=30)
@given(swapped=st.sets(names, min_size=1), emptied=st.sets(names))
def test_swapped_and_emptied(tampered, swapped, emptied):
    files = {name: NEIGHBOR[name] if name in swapped else GOOD[name] for name in FILES}
    tampered({name: b"" if name in emptied else content for name, content in files.items()})


@settings(MANY, max_examples=20)
@given(missing=st.sets(names, min_size=1))
def test_missing(tampered, missing):
    tampered({name: content for name, content in GOOD.items() if name not in missing})


# -- malice: everything fits together, checksums included ------------------------------------------


def with_arrays(archive):
    """An entry around any archive, with all checksums right."""
    meta = json.loads(GOOD["meta.json"])
    del meta["checksum"]
    meta["checksums"]["arrays.npz"] = sha256(archive)
    return {**GOOD, "arrays.npz": archive, "meta.json": seal(meta).encode()}


def sealed(archive):
    """An archive with its own checksum at its end, where its comment is."""
    body = archive[:-2] + struct.pack("<H", 64)
    return body + sha256(body).encode()


def zipped(members, compression=zipfile.ZIP_STORED):
    """An archive of any members, its checksum right."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of a name twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return sealed(file.getvalue())


def good_members():
    with zipfile.ZipFile(io.BytesIO(GOOD["arrays.npz"])) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def npy(array, **settings):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **settings)
    return file.getvalue()


def headed(header, data=b"", version=b"\x01\x00"):
    """The bytes of an array with any header."""
    text = header.encode() + b"\n"
    return (
        b"\x93NUMPY"
        + version
        + struct.pack("<H" if version[0] == 1 else "<I", len(text))
        + text
        + data
    )


def replaced(name, content):
    return [(one, content if one == name else old) for one, old in good_members()]


def test_the_tools_of_the_forger_work(place):
    """What they make of good parts is accepted: what is refused below is refused for its malice."""
    place.write(DIGEST, with_arrays(zipped(good_members())))
    assert place.store.verify_all() == [] and place.store.load(DIGEST).num_members == 3
    for header in (
        "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }",
        "{'shape': (4,), 'fortran_order': False, 'descr': '<i8', }",  # odd, and an array all the same
    ):
        shutil.rmtree(place.folder)
        place.write(DIGEST, with_arrays(zipped(replaced("steps.npy", headed(header, bytes(32))))))
        assert place.store.load(DIGEST).steps.tolist() == [0, 0, 0, 0]


TRICKS = [
    "../outside/precious",
    "../../x.npy",
    "/etc/x.npy",
    "a/b.npy",
    "a\\..\\b.npy",
    "C:x.npy",
    "X.npy",
    "x",
    ".npy",
]
TRICKS += [
    "..npy",
    "a..b.npy",
    "a.npy/",
    "dir/",
    "steps.pkl",
    "x.zz.npy",
    "x.ff.npy",
    "é.npy",
    " .npy",
    "a.npy.npy\n",
]
words = st.text(st.sampled_from("ab/\\.:\0é%x "), min_size=1, max_size=12)


@settings(MANY, max_examples=80)
@given(
    name=st.sampled_from(TRICKS) | words.map(lambda text: f"../{text}.npy") | words,
    place=st.integers(0, 12),
)
def test_names_with_tricks(tampered, name, place):
    members = good_members()
    members.insert(place, (name, npy(np.ones(3))))
    tampered(with_arrays(zipped(members)))


@settings(MANY, max_examples=20)
@given(which=st.integers(0, 10), content=st.sampled_from([npy(np.ones(4)), b""]))
def test_a_name_twice_or_missing(tampered, which, content):
    members = good_members()
    tampered(with_arrays(zipped([*members, (members[which][0], content)])))
    if not members[which][0].startswith(("series.", "events.", "x.")):
        tampered(with_arrays(zipped(members[:which] + members[which + 1 :])))


def test_pickles_in_disguise(tampered, tmp_path):
    mark = tmp_path / "mark"
    raw = pickle.dumps(Payload(mark))
    inside = npy(np.array([Payload(mark)], dtype=object), allow_pickle=True)
    hidden = headed("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", raw)
    archives = [
        raw,
        sealed(raw + b"00"),
        *(zipped(replaced("steps.npy", one)) for one in (raw, inside, hidden)),
    ]
    archives += [
        zipped([*good_members(), ("series.x.npy", inside)]),
        zipped([("data.pkl", raw), *good_members()]),
    ]
    with pytest.raises(ValueError):
        np.load(io.BytesIO(inside), allow_pickle=False)
    for archive in archives:
        tampered(with_arrays(archive))
        tampered({**GOOD, "arrays.npz": archive})
    for name in FILES:
        tampered({**GOOD, name: raw})
    assert not mark.exists()
    pickle.loads(raw).close()
    assert mark.exists()  # the payload does what it threatens, where it is loaded


DTYPES = [
    "|O",
    "<c16",
    "<M8[D]",
    "|V8",
    "|S3",
    "<f16",
    "<f999999",
    "<U0",
    "<U100000",
    "=i8",
    "<i3",
    "<b1",
    "O",
    "i8",
]
SIZES = [10**12, 2**62, 2**63, 2**64, 10**30, 8 * 10**9]
shapes = st.lists(st.sampled_from([0, 1, 4, *SIZES]), max_size=40)
numbers = shapes.map(lambda found: tuple(found)).filter(lambda found: found != (4,))


@MANY
@given(
    dtype=st.sampled_from(["<i8", "<f4", "|b1", "<U5", *DTYPES]),
    shape=numbers,
    size=st.sampled_from([0, 32, 1000]),
)
def test_types_and_sizes_that_lie(tampered, dtype, shape, size):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    tampered(with_arrays(zipped(replaced("steps.npy", headed(header, bytes(size))))))


HEADERS = [
    "{'descr': '<i8', 'fortran_order': False, 'shape': (-4,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (4.0,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (4), }" + " " * 70_00,
    "{'descr': '<i8', 'fortran_order': 1, 'shape': (4,), }",
    "{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), 'more': 1, }",
    "__import__('os').system('touch mark')",
    "(" * 5000,
    "",
]


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
def test_headers_that_numpy_never_writes(tampered, header):
    data = bytes(40) if "(4), }" in header else bytes(32)  # of the size it says, or not
    tampered(with_arrays(zipped(replaced("steps.npy", headed(header, data)))))


@pytest.mark.parametrize("version", [b"\x02\x00", b"\x03\x00", b"\x00\x00", b"\xff\xff"])
def test_versions_that_are_never_written(tampered, version):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }"
    tampered(with_arrays(zipped(replaced("steps.npy", headed(header, bytes(32), version)))))


def test_bombs(tampered, place):
    zeros = headed(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }", bytes(10**8)
    )
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive = zipped([*good_members(), ("series.x.npy", zeros[: 10**7])], compression)
        tampered(with_arrays(archive))
    place.write(
        DIGEST,
        with_arrays(zipped([*good_members(), ("series.x.npy", zeros)], zipfile.ZIP_DEFLATED)),
    )
    assert (place.folder / "arrays.npz").stat().st_size < 10**6
    place.check_refused()


@settings(MANY, max_examples=60)
@given(
    which=st.integers(0, 9),
    field=st.sampled_from(
        [(8, "H"), (10, "H"), (16, "I"), (20, "I"), (24, "I"), (28, "H"), (42, "I")]
    ),
    value=st.sampled_from([1, 8, 99, 2**15, 2**16 - 1, 2**31, 2**32 - 2, 2**32 - 1]),
)
def test_a_directory_of_members_that_lies(tampered, which, field, value):
    """In the central directory: flags, compression, checksum, sizes, length of the name, place."""
    archive = bytearray(GOOD["arrays.npz"][:-64])
    starts = [at for at in range(len(archive)) if archive[at : at + 4] == b"PK\x01\x02"]
    offset, kind = field
    value &= 2 ** (8 * struct.calcsize(kind)) - 1
    at = starts[which % len(starts)] + offset
    if struct.unpack_from(f"<{kind}", archive, at)[0] == value:
        return
    struct.pack_into(f"<{kind}", archive, at, value)
    tampered(with_arrays(bytes(archive) + sha256(bytes(archive)).encode()))


def test_members_over_one_another(tampered):
    """Many names for the same bytes: a small file that would unfold to a large one."""
    file = io.BytesIO()
    big = npy(np.zeros(10**5))
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in good_members():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.writestr(zipfile.ZipInfo("series.y0.npy"), big)
        info = archive.infolist()[-1]
        for number in range(1, 50):
            more = zipfile.ZipInfo(f"series.y{number}.npy")
            more.header_offset, more.CRC, more.compress_size = (
                info.header_offset,
                info.CRC,
                info.compress_size,
            )
            more.file_size = info.file_size
            archive.filelist.append(more)
    tampered(with_arrays(sealed(file.getvalue())))


TEXTS = [
    b"[" * 10**5,
    b'{"a":' * 10**5,
    b'{"a":NaN}',
    b"{}",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"a":1e999}',
    b"9" * 10**5,
]
TEXTS += [json.dumps({"manifest": {}, "stopped": one}).encode() for one in (1, None, {})]
TEXTS += [json.dumps({"manifest": one, "stopped": ""}).encode() for one in (1, {"$tuple": [1]})]
TEXTS += [json.dumps({"manifest": {"x": {"$dict": [[[], 1]]}}, "stopped": ""}).encode()]
TEXTS += [json.dumps({"manifest": {"x": {"$evil": 1}}, "stopped": ""}).encode()]
TEXTS += [json.dumps({"manifest": {}, "stopped": "", "more": 1}).encode()]
TEXTS += [b'{"manifest":{"x":' + b"[" * 80 + b"]" * 80 + b'},"stopped":""}']


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_descriptions_that_are_none(tampered, text):
    tampered(with_arrays(zipped(replaced("about.npy", npy(np.frombuffer(text, np.uint8))))))


MISFITS = [
    ("steps", np.zeros((2, 2))),
    ("times", np.zeros(3)),
    ("final", np.zeros((3, 2, 7))),
    ("initial", np.zeros(3)),
    ("outcome.kind", np.array(["ok"])),
    ("outcome.step", np.zeros(3)),
    ("about", np.zeros(3)),
    ("series.loss", np.zeros(4)),
    ("events.onset", np.zeros((3, 4))),
    ("times", np.full(4, "soon")),
    ("outcome.kind", np.array(["ok", "ok", "\x1b[31m"])),
]


@pytest.mark.parametrize(("name", "array"), MISFITS)
def test_arrays_that_do_not_fit_together(tampered, name, array):
    tampered(with_arrays(zipped(replaced(f"{name}.npy", npy(array)))))


def test_texts_that_are_none(tampered):
    bad = headed(
        "{'descr': '<U1', 'fortran_order': False, 'shape': (3,), }", b"\xff\xff\xff\x7f" * 3
    )
    tampered(with_arrays(zipped(replaced("outcome.kind.npy", bad))))


METAS = [
    {"manifest": 1},
    {"metrics": None},
    {"checksums": {}},
    {"checksums": {"arrays.npz": 1}},
    {"digest": OTHER},
]
METAS += [
    {"created": 5},
    {"checksums": {"spec.json": DIGEST, "arrays.npz": 5}},
    {"checksums": {"spec.json": DIGEST, "arrays.npz": None}},
    {"deep": [0]},
    {"digest": None},
]


@pytest.mark.parametrize("changes", METAS, ids=range(len(METAS)))
def test_sealed_meta_that_is_none(tampered, changes):
    meta = json.loads(GOOD["meta.json"])
    del meta["checksum"]
    if "deep" in changes:
        deep = []
        for _ in range(100):
            deep = [deep]
        changes = {"deep": deep}
    tampered({**GOOD, "meta.json": seal({**meta, **changes}).encode()})


FORGED = {
    "metrics": {
        **{f"ipr {n}": {"ipr": value} for n, value in enumerate((10**299, 7, -0.1, "0.5", True))},
        "outcomes, a list": {"outcomes": ["ok"]},
        "outcomes, a number": {"outcomes": 3},
        "outcomes of another type": {"outcomes": {"diverged": {}}},
        "outcomes with escapes": {"outcomes": {"\x1b[31m": 1}},
        "members, negative": {"members": -1},
        "members, a list": {"members": [1] * 1000},
        "loss, a text": {"loss": "small"},
    },
    "manifest": {
        "seconds, a text": {"seconds": "long"},
        "outcome, a list": {"outcome": [1]},
        "outcome with escapes": {"outcome": "\x1b]0;title\x07"},
        "outcome, long": {"outcome": "x" * 1000},
    },
}


@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part, cases in FORGED.items() for name in cases]
)
def test_sealed_values_that_no_run_has(tampered, part, name):
    meta = json.loads(GOOD["meta.json"])
    del meta["checksum"]
    meta[part] |= FORGED[part][name]
    tampered({**GOOD, "meta.json": seal(meta).encode()})


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 4000, "9" * 5000])
def test_sealed_numbers_out_of_range(tampered, number):
    meta = json.loads(GOOD["meta.json"])
    del meta["checksum"]
    meta["metrics"]["ipr"] = "here"
    body = json.dumps(meta, sort_keys=True, separators=(",", ":")).replace('"here"', number)
    line = f'{{"checksum":"{sha256(body)}",{body[1:]}'
    tampered({**GOOD, "meta.json": line.encode()})


@pytest.mark.parametrize("created", ["yesterday", "\x1b[31m", "2026" * 1000])
def test_sealed_times_that_are_none(tampered, created):
    meta = json.loads(GOOD["meta.json"])
    del meta["checksum"]
    tampered({**GOOD, "meta.json": seal({**meta, "created": created}).encode()})


@pytest.mark.parametrize(
    "spec", ["[]", "1", "", "{", '{"a": NaN}', '{"a":' * 100 + "1" + "}" * 100], ids=range(6)
)
def test_a_specification_that_is_none_under_its_own_digest(place, spec):
    digest = sha256(spec)
    meta = json.loads(GOOD["meta.json"])
    del meta["checksum"]
    meta |= {"digest": digest, "checksums": {**meta["checksums"], "spec.json": digest}}
    place.write(digest, {**GOOD, "spec.json": spec.encode(), "meta.json": seal(meta).encode()})
    with pytest.raises(lf.InputError, match="spec.json"):
        place.store.load(digest)


# -- things in place of files ----------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe", "socketless", "huge"])
def test_something_else_in_place_of_a_file(place, name, kind):
    place.write(DIGEST, GOOD)
    path = place.folder / name
    path.unlink()
    if kind == "link":
        (place.outside / name).write_bytes(GOOD[name])
        path.symlink_to(place.outside / name)
    elif kind == "dangling":
        path.symlink_to(place.outside / "nothing")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)  # opening it to read would wait for ever
    elif kind == "socketless":
        path.symlink_to("/dev/zero")
    else:
        with open(path, "wb") as file:
            file.truncate(10**11)  # a file with a hole: as large as it says, and never to be read
    place.check_refused()


@pytest.mark.parametrize("kind", ["link", "dangling", "file", "empty", "loop"])
def test_something_else_in_place_of_an_entry(place, kind):
    if kind == "link":
        place.write("elsewhere", GOOD)
        shutil.move(place.store.path / "elsewhere", place.outside / "elsewhere")
        place.folder.symlink_to(place.outside / "elsewhere")
    elif kind == "dangling":
        place.folder.symlink_to(place.outside / "nothing")
    elif kind == "file":
        place.folder.write_bytes(GOOD["arrays.npz"])
    elif kind == "empty":
        place.folder.mkdir()
    else:
        place.folder.symlink_to(place.folder)
    place.check_refused()


def test_a_result_for_an_empty_folder_is_not_dropped_in_silence(place):
    place.folder.mkdir()
    with pytest.raises(lf.InputError, match=r"no meta\.json\. Remove it"):
        place.store.save(*experiment(seed=1), trajectory(1))
