"""The list of a store: in order, and its index only a cache."""

import os
import sqlite3
import time

import pytest

from localfields.store import Store, index

from .helpers import experiment, named, put, trajectory


def test_list_is_in_the_order_of_saving(store):
    digests = []
    for seed in range(3):
        digests.append(put(store, seed=seed))
        time.sleep(0.002)
    assert [one.digest for one in store.list()] == digests
    assert [one.spec for one in store.list()] == [experiment(seed=seed)[0] for seed in range(3)]


@pytest.fixture
def reads(monkeypatch):
    """Digests whose own files were read."""
    found = []
    original = Store._read
    monkeypatch.setattr(
        Store, "_read", lambda self, digest: (found.append(digest), original(self, digest))[1]
    )
    return found


def test_the_index_spares_reading(store, reads):
    digests = sorted(put(store, seed=seed) for seed in range(5))
    first = store.list()
    assert sorted(reads) == digests
    reads.clear()
    assert Store(store.path).list() == first and reads == []
    new = put(store, seed=9)
    store.remove(digests[0])
    assert sorted(one.digest for one in store.list()) == sorted([*digests[1:], new]) and reads == [
        new
    ]


@pytest.mark.parametrize("ipr", ["1e999", "9" * 4000, '"high"', "7"])
def test_a_forged_row_is_not_believed(store, reads, ipr):
    digest = put(store)
    before = store.list()[0].metrics
    with sqlite3.connect(store.path / index.NAME) as connection:
        ((meta,),) = connection.execute("SELECT meta FROM entries").fetchall()
        forged = meta.replace(f'"ipr": {before["ipr"]}', f'"ipr": {ipr}')
        assert forged != meta
        connection.execute("UPDATE entries SET meta = ?", (forged,))
    reads.clear()
    assert store.list()[0].metrics == before and reads == [digest]


def test_an_entry_made_again_is_read_again(store, reads):
    digest = put(store, made=trajectory(1))
    before = store.list()[0].metrics
    store.remove(digest)
    put(store, made=trajectory(2))
    assert store.list()[0].metrics != before and len(reads) == 2


def test_an_entry_replaced_inside_its_folder_is_read_again(store, tmp_path):
    """As when a copy of a store is updated from another machine, or a new folder gets an old
    one's inode.
    """
    digest = put(store, made=trajectory(1))
    folder = store.path / digest
    os.utime(folder, (10**9, 10**9))  # it was stored a while ago
    before = store.list()[0].metrics
    other = Store(tmp_path / "other")
    put(other, made=trajectory(2))
    expected = other.list()[0].metrics
    for file in sorted((other.path / digest).iterdir()):
        file.replace(folder / file.name)
    (entry,) = store.list()
    assert entry.metrics == expected != before


def wreck_garbage(path):
    path.write_bytes(b"no database at all" * 100)


def wreck_empty(path):
    path.write_bytes(b"")


def wreck_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def wreck_middle(path):
    found = bytearray(path.read_bytes())
    found[4096:] = b"\xff" * (len(found) - 4096)
    path.write_bytes(found)


def wreck_deleted(path):
    path.unlink()


def wreck_folder(path):
    path.unlink()
    path.mkdir()


def sql(*commands):
    def wreck(path):
        connection = sqlite3.connect(path)
        for command in commands:
            connection.execute(command)
        connection.commit()
        connection.close()

    return wreck


WRECKS = [
    wreck_garbage,
    wreck_empty,
    wreck_half,
    wreck_middle,
    wreck_deleted,
    wreck_folder,
    sql("DROP TABLE entries"),
    sql("PRAGMA user_version = 99"),
    sql("DROP TABLE entries", "CREATE TABLE entries (digest, other)"),
    sql("UPDATE entries SET spec = '{}'"),
    sql("UPDATE entries SET meta = '{'"),
    sql("UPDATE entries SET meta = '[]'"),
    sql("UPDATE entries SET meta = NULL, spec = x'ff'"),
    sql("UPDATE entries SET stamp = 'x'"),
    sql("UPDATE entries SET digest = '../../' || digest"),
    sql("UPDATE entries SET meta = CAST(x'fffe' AS TEXT)"),
]


@pytest.mark.parametrize("wreck", WRECKS)
def test_a_damaged_index_is_harmless(store, wreck):
    for seed in range(12):
        put(store, seed=seed)
    before = store.list()
    wreck(store.path / index.NAME)
    assert store.list() == before
    assert store.list() == before
    assert store.verify_all() == []


def test_a_damaged_index_is_rebuilt(store, reads):
    put(store)
    store.list()
    wreck_garbage(store.path / index.NAME)
    store.list()
    store.list()
    store.list()
    assert len(reads) <= 3  # once for the index, once for the rebuilt one
    reads.clear()
    store.list()
    assert reads == []


def test_a_locked_index_is_bypassed(store, monkeypatch):
    put(store)
    before = store.list()
    monkeypatch.setattr(index, "LOCK_TIMEOUT", 0.05)
    connection = sqlite3.connect(store.path / index.NAME)
    connection.execute("BEGIN EXCLUSIVE")
    put(store, seed=1)
    assert len(store.list()) == 2
    connection.rollback()
    connection.close()
    assert len(store.list()) == 2 and store.list()[0] == before[0]


def test_an_unwritable_index_is_bypassed(store, monkeypatch):
    put(store)
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda *_, **__: (_ for _ in ()).throw(sqlite3.OperationalError("read-only")),
    )
    assert len(store.list()) == 1


def test_an_index_that_is_a_link_is_not_followed(store, tmp_path):
    outside = tmp_path / "outside.sqlite"
    put(store)
    for content in (None, b"", b"mine"):
        if content is not None:
            outside.write_bytes(content)
        (store.path / index.NAME).unlink(missing_ok=True)
        (store.path / index.NAME).symlink_to(outside)
        assert len(store.list()) == 1
        assert (outside.read_bytes() if outside.exists() else None) == content


def test_large_specifications_stay_out_of_the_index(store, reads):
    canonical, digest = named({"initial": [0.125] * 20_000})
    store.save(canonical, digest, trajectory())
    for _ in range(2):
        assert store.list()[0].spec == canonical
    assert len(reads) == 2
    store.list(["members=3"])


def test_damaged_entries_are_left_out_of_a_list_with_a_warning(store):
    good, bad, worse = (put(store, seed=seed) for seed in range(3))
    (store.path / bad / "meta.json").write_text("{")
    (store.path / worse / "spec.json").unlink()
    with pytest.warns(UserWarning, match="2 of 3 runs cannot be read and are left out"):
        assert [one.digest for one in store.list()] == [good]
    assert {problem.digest for problem in store.verify_all()} == {bad, worse}
