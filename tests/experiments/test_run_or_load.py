"""Nothing is computed twice, nothing is lost: results, checkpoints, and many processes that ask
for the same.
"""

from __future__ import annotations

import inspect
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from bits import SPAWN, assert_same

import localfields as lf
from localfields._start import use_compilation_cache
from localfields.experiments import Experiment
from localfields.store import Store
from localfields.training import loop

RING = lf.Discrimination(*(lf.stimuli.Gaussian((8,), xi=xi) for xi in (0.6, 1.1)))
NEURON = lf.networks.SingleNeuron(init_scale=0.1)
QUICK = lf.Training(steps=30, batch=10, every=3, evaluate=10, members=2)
ONE = lf.Experiment(RING, NEURON, QUICK)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


@pytest.fixture
def computed(monkeypatch):
    """Digests of the experiments that were carried out."""
    found, run = [], Experiment.run
    monkeypatch.setattr(
        Experiment, "run", lambda self, **more: (found.append(self.digest), run(self, **more))[1]
    )
    return found


@pytest.fixture(autouse=True)
def every_record(monkeypatch):
    """Cancel is looked at after each record, and checkpoints are kept there."""
    for name in ("POLL_INTERVAL", "CHECKPOINT_INTERVAL", "CHECKPOINT_SHARE"):
        monkeypatch.setattr(loop, name, 0)


def test_computed_once_and_loaded_ever_after(store, computed):
    first = lf.run_or_load(ONE, store)
    assert store.digests() == [ONE.digest] and computed == [ONE.digest]
    assert_same(first, ONE.run())
    computed.clear()
    for again in (store, Store(store.path), str(store.path), store.path):
        assert_same(lf.run_or_load(Experiment.of(ONE.canonical()), again), first)
    assert computed == []
    other = ONE.replace(method=QUICK.replace(seed=1))
    assert not np.array_equal(lf.run_or_load(other, store).final, first.final)
    assert computed == [other.digest] and len(store.digests()) == 2
    entry = store.entry(ONE.digest)
    assert Experiment.of(entry.spec).digest == ONE.digest and entry.spec == ONE.canonical()
    assert entry.manifest["seeds"] == 0 and entry.manifest["outcome"] == "finished"


def test_the_place_of_the_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCALFIELDS_STORE", raising=False)
    lf.run_or_load(ONE)
    assert (tmp_path / "runs" / ONE.digest).is_dir()
    monkeypatch.setenv("LOCALFIELDS_STORE", str(tmp_path / "elsewhere"))
    lf.run_or_load(ONE)
    assert (tmp_path / "elsewhere" / ONE.digest).is_dir()


def test_a_cancelled_run_is_kept_not_stored_and_goes_on(store):
    answers = iter([False, False, True])
    stopped = lf.run_or_load(ONE, store, cancel=lambda: next(answers))
    kept = store.checkpoint(ONE.digest)
    assert stopped.stopped == "cancelled" and len(stopped.steps) == 4
    assert store.digests() == [] and kept.path.exists()
    told = []
    found = lf.run_or_load(ONE, store, on_progress=told.append)
    assert [progress.step for progress in told] == list(range(9, 31, 3)) and told[0].first_step == 9
    assert_same(found, ONE.run())
    assert store.digests() == [ONE.digest] and not kept.path.exists()
    assert (
        list((store.path / "checkpoints").iterdir()) == []
        and list((store.path / "locks").iterdir()) == []
    )


def test_an_error_on_the_way_keeps_the_checkpoint_and_frees_the_lock(store):
    def fail(progress):
        if progress.step == 12:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lf.run_or_load(ONE, store, on_progress=fail)
    told = []
    assert_same(lf.run_or_load(ONE, store, on_progress=told.append), ONE.run())
    assert told[0].first_step == 9  # the record before the one at which it failed


def interrupted(store, experiment=ONE, count=4):
    answers = iter([False] * (count - 1) + [True])
    lf.run_or_load(experiment, store, cancel=lambda: next(answers))
    return store.checkpoint(experiment.digest).path


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text", "folder"])
def test_a_damaged_checkpoint_is_left_out_and_the_run_starts_anew(store, damage):
    path = interrupted(store)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    whole = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.symlink_to(store.path)
    else:
        path.write_bytes(
            {"cut": whole[:-100], "empty": b"", "flipped": bytes(content), "text": b"no archive"}[
                damage
            ]
        )
    told = []
    with pytest.warns(UserWarning, match="A damaged checkpoint is ignored"):
        found = lf.run_or_load(ONE, store, on_progress=told.append)
    assert told[0].first_step == 0
    assert_same(found, ONE.run())
    assert not os.path.lexists(path) and store.verify_all() == []


def test_the_checkpoint_of_another_run_is_refused(store):
    """Of the same sizes, too: nothing but its name tells it apart."""
    other = ONE.replace(method=QUICK.replace(seed=1))
    path = interrupted(store, other)
    mine = store.checkpoint(ONE.digest).path
    path.rename(mine)
    with pytest.raises(lf.InputError) as told:
        lf.run_or_load(ONE, store)
    message = str(told.value)
    assert (
        message.startswith("The checkpoint does not belong to this run")
        and "it is of a run with another task, network, seed or setting" in message
    )
    assert f"Remove {mine} to start anew." in message
    assert store.digests() == [] and mine.exists()
    mine.unlink()
    assert_same(lf.run_or_load(ONE, store), ONE.run())


def test_the_checkpoint_of_another_size_is_refused(store):
    path = interrupted(store)
    kept = store.checkpoint(ONE.digest)
    arrays = kept.load()
    kept.save({**arrays, "state_0": arrays["state_0"][:1]})
    with pytest.raises(
        lf.InputError, match="The checkpoint does not belong to this run: it has a"
    ) as told:
        lf.run_or_load(ONE, store)
    assert f"Remove {path} to start anew" in str(told.value)


def test_a_checkpoint_left_beside_its_result_is_cleared(store):
    path = interrupted(store)
    left = path.read_bytes()
    first = lf.run_or_load(ONE, store)
    path.write_bytes(left)
    assert_same(lf.run_or_load(ONE, store), first)
    assert not path.exists()


def test_a_damaged_result_is_told_and_not_replaced(store, computed):
    lf.run_or_load(ONE, store)
    path = store.path / ONE.digest / "arrays.npz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(lf.InputError, match=f"localfields runs rm {ONE.digest[:12]}"):
        lf.run_or_load(ONE, store)
    store.remove(ONE.digest)
    lf.run_or_load(ONE, store)
    assert computed == [ONE.digest] * 2 and store.verify_all() == []


def test_a_full_disk_loses_no_more_than_the_last_seconds(store, monkeypatch):
    """What was kept before stays, and when there is room again the run goes on from it."""
    fsync, left = os.fsync, [9]

    def full(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(lf.InputError, match="No space left on device"):
            lf.run_or_load(ONE, store)
    told = []
    assert_same(lf.run_or_load(ONE, store, on_progress=told.append), ONE.run())
    assert told[0].first_step > 0


@pytest.mark.parametrize(
    "given", [None, "experiment", {"task": {}}, RING, QUICK, Experiment], ids=type
)
def test_what_is_no_experiment(given, store):
    unchecked = inspect.unwrap(lf.run_or_load)  # without the check of annotations that tests add
    with pytest.raises(lf.InputError, match="`experiment` must be an Experiment"):
        unchecked(given, store)
    assert not store.path.exists()


def test_an_experiment_that_cannot_run_leaves_nothing(store):
    wrong = ONE.replace(initial=np.ones((1, 7)))
    with pytest.raises(lf.InputError, match="`initial` must have shape"):
        lf.run_or_load(wrong, store)
    assert store.digests() == [] and not list(store.path.glob("*/*"))


def test_threads_that_ask_at_once_compute_once(store, computed):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(lf.run_or_load(ONE, store))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert computed == [ONE.digest] and len(found) == 4
    for one in found:
        assert_same(one, found[0])


# -- many processes --------------------------------------------------------------------------------


def ask(number, path, marks, start):
    """Ask for the common experiment, then for one's own; a line in a file for each that is
    carried out.
    """
    use_compilation_cache()
    run = Experiment.run

    def marked(self, **more):
        with open(marks, "a") as file:
            file.write(f"{self.digest}\n")  # one write of a short line: whole, whoever else writes
        return run(self, **more)

    Experiment.run = marked
    own = ONE.replace(method=QUICK.replace(seed=100 + number))
    start.wait(60)
    finals = [lf.run_or_load(one, path).final.tobytes().hex() for one in (ONE, own)]
    (Path(marks).parent / f"{number}.json").write_text(json.dumps(finals))


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_many_processes(count, store, tmp_path):
    """Of many that ask for the same, one computes; many that ask for different ones lose
    nothing.
    """
    marks, start = tmp_path / "marks", SPAWN.Barrier(count)
    processes = [
        SPAWN.Process(target=ask, args=(number, store.path, marks, start))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
        process.close()
    own = [ONE.replace(method=QUICK.replace(seed=100 + number)) for number in range(count)]
    expected = sorted(one.digest for one in (ONE, *own))
    assert sorted(marks.read_text().split()) == expected == store.digests()
    assert store.verify_all() == [] and len(store.list()) == count + 1
    for number, experiment in enumerate(own):
        finals = json.loads((tmp_path / f"{number}.json").read_text())
        assert finals == [store.load(one.digest).final.tobytes().hex() for one in (ONE, experiment)]
    for one in (ONE, own[0], own[-1]):
        assert_same(store.load(one.digest), one.run())
    assert [list((store.path / name).iterdir()) for name in ("locks", "tmp")] == [[], []]
