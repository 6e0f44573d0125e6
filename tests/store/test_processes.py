"""Many processes on one store, and processes that are killed: nothing is lost, nothing is half
there.
"""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from localfields.store import Store

from .helpers import assert_same, experiment, put, start, trajectory


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def finish(processes):
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and err == "", (out, err)


def together(*lines):
    """Start processes, and let them go at the same moment."""
    processes = [start(*line, stdin=-1) for line in lines]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    finish(processes)  # which closes what they wait for


def test_eight_processes_with_different_entries_lose_nothing(store):
    together(*(("save_range", store.path, 10 * number, 10 * number + 10) for number in range(8)))
    assert len(store.digests()) == len(store.list()) == 80
    for seed in range(80):
        assert_same(store.load(experiment(seed=seed)[1]), trajectory(seed))
    assert store.verify_all() == [] and list((store.path / "tmp").iterdir()) == []


def test_eight_processes_with_the_same_entry_make_one(store):
    together(*(("save_range", store.path, 0, 3) for _ in range(8)))
    assert len(store.digests()) == 3 and store.verify_all() == []
    for seed in range(3):
        assert_same(store.load(experiment(seed=seed)[1]), trajectory(seed))
    assert list((store.path / "tmp").iterdir()) == []


def check_after_a_kill(store):
    """Everything that can be seen can be read."""
    assert store.verify_all() == []
    assert len(store.list()) == len(store.digests())
    kept = store.checkpoint("0" * 64).load()  # a damaged one would warn, which is an error here
    assert kept is None or (kept["many"] == kept["seed"]).all()


def test_a_writer_killed_at_any_moment_leaves_nothing_half_readable(store):
    moments = random.Random(0)
    for trial in range(12):
        process = start("save_forever", store.path, 1000 * trial)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(moments.uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        check_after_a_kill(store)
    assert len(store.digests()) > 12
    clean_up(store)
    put(store, seed=-1)
    check_after_a_kill(store)


def clean_up(store):
    for path in (store.path / "tmp").iterdir():
        os.utime(path, (0, 0))
    store.clean()
    assert list((store.path / "tmp").iterdir()) == []


def test_a_writer_killed_at_each_step_leaves_nothing_half_readable(store):
    """Every call by which an entry reaches the disk is, once, the one at which the writer dies."""
    left, appeared = 0, None
    for call in range(1, 100):
        process = start("die_at", store.path, call)
        out, err = process.communicate(timeout=60)
        assert store.verify_all() == []
        left = max(left, len(list(store.path.glob("tmp/*"))))
        if store.digests() and appeared is None:
            appeared = call
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, err
        if appeared is not None:
            store.remove(store.digests()[0])
    assert out == "alive\n" and 10 < call < 99, call
    assert appeared is not None and left > 3  # some died half way, some after the entry was whole
    assert_same(store.load(experiment(seed=1)[1]), trajectory())
    clean_up(store)


def test_a_lock_dies_with_its_holder(store):
    digest = "a" * 64
    holder = start("hold_lock", store.path, digest)
    assert holder.stdout.readline() == "held\n"
    got = threading.Event()

    def wait():
        with store.lock(digest):
            got.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    with store.lock("b" * 64):  # another one is free
        assert not got.wait(0.2)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert got.wait(10)
    waiting.join()
    assert list((store.path / "locks").iterdir()) == []


def test_locks_exclude(store):
    processes = [start("count_up", store.path, "a" * 64, 20) for _ in range(4)]

    def here():
        for _ in range(20):
            with store.lock("a" * 64):
                number = int(counter.read_text()) if counter.exists() else 0
                time.sleep(0.001)
                counter.write_text(str(number + 1))

    counter = store.path / "counter"
    threads = [threading.Thread(target=here) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    finish(processes)
    assert counter.read_text() == str(7 * 20)
    assert list((store.path / "locks").iterdir()) == []


def test_an_error_releases_a_lock(store):
    with pytest.raises(KeyError), store.lock("a" * 64):
        raise KeyError
    with store.lock("a" * 64):
        pass


def test_readers_beside_a_writer_and_a_remover_see_whole_entries_or_none(store):
    """Entries come and go under readers: what they get is whole, or told to be absent, never
    damaged.
    """
    digests = [put(store, seed=seed) for seed in range(4)]
    stop = threading.Event()
    seen, wrong = [], []

    def read():
        while not stop.is_set():
            for digest in digests:
                try:
                    seen.append(store.load(digest).num_members)
                except ValueError as error:
                    if "No run" not in str(error):
                        wrong.append(str(error))

    def look():
        while not stop.is_set():
            wrong.extend(problem.message for problem in store.verify_all())
            seen.append(len(store.list()))  # a warning in a thread is an error of pytest

    threads = [threading.Thread(target=one) for one in (read, look)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        for seed, digest in enumerate(digests):
            store.remove(digest)
            put(store, seed=seed)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(seen) > 10 and np.all(np.array(seen) <= 4)
