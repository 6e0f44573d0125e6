"""The store: what goes in comes out, damaged or newer entries are refused."""

import dataclasses
import errno
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localfields as lf
from localfields.store import Store
from localfields.store import entry as entries
from localfields.store.disk import lock_file
from localfields.store.document import seal
from localfields.trajectory import Outcome

from .helpers import assert_same, experiment, named, put, trajectory


def refused(call, *words):
    """The message of a refusal: one line of sentences."""
    with pytest.raises(lf.InputError) as told:
        call()
    message = str(told.value)
    assert message.endswith((".", "?")), message
    assert "\n" not in message
    for word in words:
        assert word in message, message
    return message


# -- what goes in comes out ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(6,), (3, 4)])
def test_round_trip(store, dtype, shape):
    canonical, digest = experiment()
    made = trajectory(dtype=dtype, shape=shape)
    folder = store.save(canonical, digest, made)
    assert folder == store.path / digest
    assert_same(Store(store.path).load(digest), made)
    assert sorted(path.name for path in folder.iterdir()) == [
        "arrays.npz",
        "meta.json",
        "spec.json",
    ]
    assert (folder / "spec.json").read_text() == canonical
    assert [path.name for path in (store.path / "tmp").iterdir()] == []


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.text(max_size=5) | st.integers() | st.just("$float"), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    manifest=st.dictionaries(st.text(max_size=8), plain, max_size=4),
    swept=st.booleans(),
    data=st.data(),
)
def test_any_plain_values_round_trip(tmp_path_factory, manifest, swept, data):
    members, records = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    made = trajectory(
        manifest={"x": manifest, **manifest},
        stopped=data.draw(st.text(max_size=9).filter(str.isprintable)),
    )
    cut = [values[:members, :records] for values in made.series.values()]
    times = made.times[:records]
    made = dataclasses.replace(
        made,
        steps=made.steps[:records],
        times=np.outer(np.ones(members), times) if swept else times,
        initial=made.initial[:members],
        final=made.final[:members],
        outcome=made.outcome[:members],
        series={data.draw(st.text(min_size=1, max_size=20)): values for values in cut},
        events={},
    )
    store = Store(tmp_path_factory.mktemp("runs"))
    digest = put(store, made=made)
    assert_same(store.load(digest), made)


def test_fields_in_fortran_order_and_other_byte_orders(store):
    initial = np.asfortranarray(np.arange(36.0).reshape(3, 2, 6))
    series = {"loss": np.ones((3, 4), ">f4"), "flag": np.zeros((3, 4), np.uint8)[:, ::-1]}
    made = trajectory(initial=initial, series=series)
    found = store.load(put(store, made=made))
    np.testing.assert_array_equal(found.initial, initial)
    assert found.series["loss"].dtype == np.dtype(">f4") and found.series["loss"].sum() == 12


def test_metrics_and_manifest(store):
    final = np.zeros((3, 2, 6), np.float32)
    final[:, 0, 0] = final[:, 1, :] = 1.0
    made = trajectory(
        final=final, outcome=(Outcome("ok", 9), Outcome("non-finite", 3), Outcome("ok", 9))
    )
    made.series["loss"][:, -1] = [0.5, np.nan, 1.0]
    digest = put(store, made=made, seed=7)
    found = store.entry(digest)
    size = (store.path / digest / "arrays.npz").stat().st_size
    assert found.metrics == {
        "ipr": pytest.approx((1 + 1 / 6) / 2),
        "ipr_min": pytest.approx(1 / 6),
        "ipr_max": 1.0,
        "loss": 0.75,
        "outcomes": {"non-finite": 1, "ok": 2},
        "members": 3,
        "neurons": 2,
        "records": 4,
        "bytes": size,
    }
    manifest = found.manifest
    assert manifest["localfields"] == lf.__version__ and manifest["outcome"] == "at rest"
    assert (
        manifest["jax"] == "0.10.0"
        and manifest["device"] == "cpu"
        and manifest["precision"] == "float32"
    )
    assert manifest["seeds"] == 7 and manifest["seconds"] == 1.5 and manifest["inf"] is None
    assert manifest["commit"] is None or len(manifest["commit"].removesuffix("-dirty")) == 40
    assert found.experiment["method"]["steps"] == 1000


def test_the_experiment_is_that_of_the_entry(store):
    canonical, digest = experiment(seed=[4, 5])
    store.save(canonical, digest, trajectory())
    assert store.entry(digest).manifest["seeds"] == [4, 5]
    loaded, plain = store.load(digest), json.loads(canonical)
    assert plain.pop("schema") == 2 and loaded.experiment == plain and loaded.method == "training"


@pytest.mark.parametrize(
    ("timed", "seconds"),
    [
        ({"compile_seconds": 0.25, "run_seconds": 1.5}, 1.75),
        ({"compile_seconds": 0.25}, 0.25),
        ({"run_seconds": 1.5, "compile_seconds": None}, 1.5),
        ({}, None),
    ],
)
def test_seconds_include_compiling(store, timed, seconds):
    digest = put(store, made=trajectory(manifest=timed))
    assert store.entry(digest).manifest["seconds"] == seconds


def test_a_run_without_finite_numbers_has_none(store):
    nan = np.full((3, 2, 6), np.nan)
    digest = put(
        store, made=trajectory(final=nan, initial=nan, series={"loss": np.full((3, 4), np.inf)})
    )
    metrics = store.entry(digest).metrics
    assert metrics["ipr"] is metrics["ipr_min"] is metrics["ipr_max"] is metrics["loss"] is None
    assert "NaN" not in (store.path / digest / "meta.json").read_text()


def test_the_commit_is_not_that_of_a_repository_around_an_installation(tmp_path, monkeypatch):
    monkeypatch.setattr(
        entries, "__file__", str(tmp_path / "site-packages" / "localfields" / "store" / "entry.py")
    )
    (tmp_path / "site-packages" / "localfields").mkdir(parents=True)
    assert entries.commit.__wrapped__() is None


def test_the_first_is_kept(store):
    first = trajectory(1)
    digest = put(store, made=first)
    before = (store.path / digest / "meta.json").read_bytes()
    assert put(store, made=trajectory(2)) == digest
    assert_same(store.load(digest), first)
    assert (store.path / digest / "meta.json").read_bytes() == before


def test_a_result_is_not_dropped_for_a_damaged_entry(store):
    digest = put(store)
    (store.path / digest / "arrays.npz").write_bytes(b"")
    refused(lambda: put(store), digest[:12], "runs rm")
    store.remove(digest)
    put(store)
    assert store.verify(digest) == []


def test_saving_checks_what_it_is_given(store):
    canonical, digest = experiment()
    made = trajectory()
    refused(lambda: store.save(canonical + " ", digest, made), "does not belong to this experiment")
    refused(lambda: store.save("[1]", named([1])[1], made), "not valid JSON")
    refused(lambda: store.save(canonical, "../" + digest, made), "64 hexadecimal digits")
    for bad in (
        np.full((3, 4), {}),
        np.ones((3, 4), complex),
        np.full((3, 4), "2020", "M8[D]"),
        np.zeros((3, 4), "i4,f4"),
        np.ones((3, 4), "g"),
    ):
        refused(
            lambda bad=bad: store.save(canonical, digest, trajectory(series={"x": bad})),
            "`series.x`",
            "cannot be stored",
        )
    refused(
        lambda: store.save(canonical, digest, trajectory(manifest={"x": object()})),
        "`manifest`",
        "which cannot be stored. Use numbers, strings, lists and dicts.",
    )
    refused(
        lambda: store.save(canonical, digest, trajectory(outcome=())), "outcomes of 0 members of 3"
    )
    refused(lambda: store.save(canonical, digest, trajectory(steps=np.arange(2))), "steps")
    for changes in ({"series": {"x": np.ones(3)}}, {"events": {"x": np.ones(4)}}):
        refused(
            lambda changes=changes: store.save(canonical, digest, trajectory(**changes)),
            "do not fit together",
        )
    refused(lambda: store.save(canonical, digest, trajectory(stopped="\x1b[31m")), "short text")
    huge = np.broadcast_to(np.float32(0), (3, 4, 10**9))
    refused(
        lambda: store.save(canonical, digest, trajectory(series={"x": huge})),
        "a stored run may have 8 GB",
        "48.0 GB",
    )
    assert store.digests() == [] and not list(store.path.glob("tmp/*"))


def test_bfloat16_is_refused(store):
    import ml_dtypes

    made = trajectory(series={"x": np.ones((3, 4), ml_dtypes.bfloat16)})
    refused(lambda: put(store, made=made), "bfloat16", "cannot be stored")


# -- where it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("x" * 300, "File name too long"),
        ("~nosuchuser/x", "There is no home folder ~nosuchuser"),
        ("a\0b", "null character"),
    ],
)
def test_a_place_that_cannot_be(path, words):
    refused(lambda: Store(path).list(), words)


def test_a_current_folder_that_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused(Store, "The current folder no longer exists")
    assert Store(tmp_path).digests() == []


def denied(monkeypatch, name):
    """Have the system refuse to open what is named so; root may read everything otherwise."""
    original = os.open

    def instead(path, *arguments, **more):
        if str(path).endswith(name):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return original(path, *arguments, **more)

    monkeypatch.setattr(os, "open", instead)


@pytest.mark.parametrize("name", ["meta.json", "spec.json", "arrays.npz", "folder"])
def test_what_may_not_be_read_is_not_called_damaged(store, monkeypatch, name):
    digest = put(store)
    denied(monkeypatch, digest if name == "folder" else name)
    (problem,) = store.verify_all()
    assert "cannot be read" in problem.message and "Permission denied" in problem.message
    assert "damaged" not in problem.message and "emove" not in problem.message
    refused(lambda: store.load(digest), problem.message)


def test_a_checkpoint_that_may_not_be_read_is_kept(store, monkeypatch):
    checkpoint = store.checkpoint("0" * 64)
    checkpoint.save({"step": np.array(3)})
    with monkeypatch.context() as patch:
        denied(patch, ".npz")
        refused(checkpoint.load, "cannot be read", "Permission denied")
    assert checkpoint.load()["step"] == 3


def test_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCALFIELDS_STORE", raising=False)
    assert Store().path == tmp_path / "runs"
    monkeypatch.setenv("LOCALFIELDS_STORE", str(tmp_path / "mine"))
    assert Store().path == tmp_path / "mine"
    assert Store("given").path == tmp_path / "given"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store("~/there").path == tmp_path / "there"


def test_looking_makes_nothing(store):
    assert store.digests() == store.list() == store.verify_all() == store.list_sweeps() == []
    assert "0" * 64 not in store and "x" not in store
    assert store.checkpoint("0" * 64).load() is None
    store.clean()
    refused(lambda: store.load("0" * 64), "No run 000000000000 in", str(store.path))
    refused(lambda: store.find("0"), "runs list")
    assert not store.path.exists()


def test_a_file_in_place_of_the_folder(store):
    store.path.write_text("mine")
    refused(lambda: put(store), "The store", "cannot be read or written")
    refused(store.digests, "The store")
    with pytest.raises(lf.InputError), store.lock("0" * 64):
        pass
    assert store.path.read_text() == "mine"


def test_a_full_disk_leaves_nothing(store, monkeypatch):
    monkeypatch.setattr(
        os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    refused(lambda: put(store), "No space left on device")
    assert store.digests() == [] and list((store.path / "tmp").iterdir()) == []


def test_find(store):
    digests = sorted(put(store, seed=seed) for seed in range(20))
    for digest in digests:
        assert store.find(digest) == store.find(digest[:20].upper()) == digest
    first = next(d for d in digests if sum(other[0] == d[0] for other in digests) > 1)[0]
    assert f"{sum(d[0] == first for d in digests)} runs start with" in refused(
        lambda: store.find(first), "Add digits"
    )
    for prefix in ("", "xyz", "..", "*"):
        refused(lambda prefix=prefix: store.find(prefix), "runs list")


def test_remove(store):
    one, other = put(store, seed=1), put(store, seed=2)
    store.checkpoint(one).save({"x": np.ones(2)})
    store.remove(one)
    assert (
        one not in store
        and store.digests() == [other]
        and list((store.path / "tmp").iterdir()) == []
    )
    assert store.checkpoint(one).load() is None
    refused(lambda: store.remove(one), "No run")
    refused(lambda: store.verify(one), "No run")


def test_removing_a_link_keeps_what_it_points_to(store, tmp_path):
    digest = put(store)
    (store.path / digest).rename(tmp_path / "elsewhere")
    (store.path / digest).symlink_to(tmp_path / "elsewhere")
    refused(lambda: store.load(digest), "a link")
    refused(lambda: store.entry(digest), "a link")
    assert [problem.digest for problem in store.verify_all()] == [digest]
    store.remove(digest)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 3 and digest not in store


def test_other_things_in_the_folder_are_none_of_its_business(store):
    digest = put(store)
    (store.path / "notes.txt").write_text("mine")
    (store.path / ("A" * 64)).mkdir()
    (store.path / digest[:63]).mkdir()
    assert store.digests() == [digest] and len(store.list()) == 1 and store.verify_all() == []


# -- a newer version -------------------------------------------------------------------------------


def rewrite(store, digest, **changes):
    path = store.path / digest / "meta.json"
    meta = json.loads(path.read_text())
    meta.pop("checksum")
    path.write_text(seal({**meta, **changes}))


@pytest.mark.parametrize("seals", [True, False])
def test_a_newer_schema_is_refused(store, seals):
    digest = put(store)
    rewrite(store, digest, schema=3)
    if not seals:  # nor may a newer version's way of sealing be taken for damage
        path = store.path / digest / "meta.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "checksum": "newer"}, indent=1))
    for read in (store.load, store.entry):
        refused(
            lambda read=read: read(digest),
            "was written by a newer version",
            "update this one",
        )
    with pytest.warns(UserWarning, match="1 of 1 runs cannot be read"):
        assert store.list() == []
    assert "newer version" in store.verify(digest)[0].message
    store.remove(digest)


def test_an_older_schema_is_refused(store):
    digest = put(store)
    rewrite(store, digest, schema=1)
    words = ("was written by an older version of localfields (schema 1)", "run it again")
    for read in (store.load, store.entry):
        refused(lambda read=read: read(digest), *words)
    (store.path / "sweeps").mkdir()
    path = store.path / "sweeps" / f"{'c' * 64}.json"
    path.write_text(seal({"schema": 1, "digest": "c" * 64, "text": "{}"}))
    refused(lambda: store.load_sweep("c" * 64), *words)


@pytest.mark.parametrize("schema", [0, -1, "1", None, True, 1.5, [1]])
def test_no_schema_is_damage(store, schema):
    digest = put(store)
    rewrite(store, digest, schema=schema)
    refused(lambda: store.load(digest), "runs rm")


# -- checkpoints and sweeps ------------------------------------------------------------------------


def test_checkpoint(store, tmp_path):
    kept = store.checkpoint("a" * 64)
    assert kept.path == store.path / "checkpoints" / f"{'a' * 64}.npz" and kept.load() is None
    for value in (1, 2):
        arrays = {
            "state.0": np.full((2, 3), value, np.float32),
            "Key": np.array([value], np.uint32),
            "n": np.array(value),
        }
        kept.save(arrays)
        found = kept.load()
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
        assert list(kept.path.parent.iterdir()) == [kept.path]
    kept.clear()
    kept.clear()
    assert kept.load() is None
    own = store.checkpoint("a" * 64, tmp_path / "own" / "keep.npz")
    own.save({"x": np.ones(1)})
    assert (
        own.path == tmp_path / "own" / "keep.npz" and own.load()["x"] == 1 and kept.load() is None
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_a_damaged_checkpoint_counts_as_none(tmp_path_factory, place, bit, cut):
    kept = Store(tmp_path_factory.getbasetemp() / "kept").checkpoint("b" * 64)
    kept.save({"x": np.arange(20.0)})
    found = bytearray(kept.path.read_bytes())
    at = int(place * len(found))
    found[at] ^= 1 << bit
    kept.path.write_bytes(found[:at] if cut else found)
    with pytest.warns(UserWarning, match="A damaged checkpoint is ignored"):
        assert kept.load() is None
    kept.save({"x": np.ones(1)})
    assert kept.load()["x"] == 1


def test_what_killed_writers_of_a_checkpoint_left_is_cleaned_up(store):
    kept = store.checkpoint("a" * 64)
    kept.save({"x": np.ones(1)})
    old, young = (
        kept.path.with_name(f".{kept.path.name}-{name}.part") for name in ("old", "young")
    )
    for path in (old, young):
        path.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)
    kept.save({"x": np.ones(1)})
    assert not old.exists() and young.exists()


def test_links_among_what_writers_left_are_as_old_as_themselves(store, tmp_path):
    kept = store.checkpoint("a" * 64)
    kept.save({"x": np.ones(1)})
    target = tmp_path / "precious"
    target.write_text("mine")
    os.utime(target, (0, 0))
    old, young = (
        kept.path.with_name(f".{kept.path.name}-{name}.part") for name in ("old", "young")
    )
    old.symlink_to(tmp_path / "nowhere")
    os.utime(old, (0, 0), follow_symlinks=False)
    young.symlink_to(target)
    kept.save({"x": np.ones(1)})
    assert not old.is_symlink() and young.is_symlink() and target.read_text() == "mine"


def test_an_unwritable_checkpoint_keeps_the_last(store, monkeypatch):
    kept = store.checkpoint("a" * 64)
    kept.save({"x": np.ones(1)})
    monkeypatch.setattr(
        os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    refused(lambda: kept.save({"x": np.zeros(1)}), "The checkpoint", "No space left")
    refused(lambda: kept.save({"x": np.array([{}])}), "cannot be stored")
    assert kept.load()["x"] == 1 and len(list(kept.path.parent.iterdir())) == 1


def test_sweeps(store):
    text = '{"runs": ["Ä", 1.5],\n "b": null}'
    assert store.save_sweep("c" * 64, text) == store.path / "sweeps" / f"{'c' * 64}.json"
    assert store.load_sweep("c" * 64) == text and store.list_sweeps() == ["c" * 64]
    store.save_sweep("c" * 64, "{}")
    assert store.load_sweep("c" * 64) == "{}"
    refused(lambda: store.load_sweep("d" * 64), "No sweep dddddddddddd")
    refused(lambda: store.save_sweep("d" * 64, "[1"), "JSON")
    refused(lambda: store.save_sweep("../x", "{}"), "64 hexadecimal digits")
    path = store.path / "sweeps" / f"{'c' * 64}.json"
    whole = path.read_text()
    for damaged in (
        "",
        whole[:-1],
        whole.replace("{}", "[]"),
        "[]",
        whole.replace('"c', '"d'),
        whole + " ",
    ):
        path.write_text(damaged)
        refused(lambda: store.load_sweep("c" * 64), "The sweep cccccccccccc")
        assert [problem.digest for problem in store.verify_all()] == ["c" * 64]
    path.write_text(seal({"schema": 3, "digest": "c" * 64, "text": "{}"}))
    refused(lambda: store.load_sweep("c" * 64), "newer version", "update this one")


@pytest.mark.parametrize(
    "digest", ["", "../x", "a" * 63, "A" * 64, "a" * 64 + "\n", "/" + "a" * 63, "a" * 63 + "\0"]
)
def test_names_that_are_no_digests(store, digest):
    def lock():
        with store.lock(digest):
            pass

    calls = (
        store.load,
        store.entry,
        store.remove,
        store.verify,
        store.checkpoint,
        store.load_sweep,
    )
    for call in (
        *(lambda call=call: call(digest) for call in calls),
        lock,
        lambda: store.save_sweep(digest, "{}"),
    ):
        refused(call, "64 hexadecimal digits")
    assert digest not in store and not store.path.exists()


# -- cleaning up -----------------------------------------------------------------------------------


def left_behind(store, name, age):
    path = store.path / "tmp" / name
    path.mkdir(parents=True)
    (path / "spec.json").write_text("{")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_what_dead_writers_left_is_cleaned_up(store, tmp_path):
    old, young, alive, mine = (
        left_behind(store, name, age)
        for name, age in (
            ("a" * 64 + "-" + "0" * 16, 7200),
            ("a" * 64 + "-" + "1" * 16, 60),
            ("a" * 64 + "-" + "2" * 16, 7200),
            ("mine", 7200),
        )
    )
    lock = old.with_name(f"{old.name}.lock")
    lock.write_text("")
    with lock_file(alive.with_name(f"{alive.name}.lock")):
        put(store)
        assert [path.exists() for path in (old, lock, young, alive, mine)] == [
            False,
            False,
            True,
            True,
            True,
        ]
        assert len(store.list()) == 1 and store.verify_all() == []
    Store(store.path).clean()
    assert not alive.exists() and not list(store.path.glob("tmp/*.lock"))


def test_a_linked_folder_for_work_is_not_cleaned(store, tmp_path):
    outside = tmp_path / "outside"
    precious = outside / ("a" * 64 + "-" + "0" * 16)
    precious.mkdir(parents=True)
    os.utime(precious, (0, 0))
    store.path.mkdir()
    (store.path / "tmp").symlink_to(outside)
    store.clean()
    refused(lambda: put(store), "is a symbolic link")
    assert list(outside.iterdir()) == [precious]


def test_a_store_may_be_a_link_itself(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "scratch")
    store = Store(tmp_path / "runs")
    digest = put(store)
    assert_same(store.load(digest), trajectory())
    assert (tmp_path / "scratch" / digest).is_dir()


def test_locks_leave_no_files(store):
    with store.lock("a" * 64):
        assert [path.name for path in Path(store.path / "locks").iterdir()] == ["a" * 64]
    with store.lock("a" * 64):
        pass
    assert list((store.path / "locks").iterdir()) == []
