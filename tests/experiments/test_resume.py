"""Runs that are interrupted anywhere, by anything, end with the bits of a run that was not."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time

import jax
import numpy as np
import optax
import pytest
from bits import SPAWN, assert_same

import localfields as lf
from localfields._start import use_compilation_cache
from localfields.store import Store
from localfields.training import loop

TRAINING = os.path.dirname(loop.__file__)

ISING = lf.Discrimination(*(lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)))
SWEPT = lf.Discrimination(
    lf.stimuli.NLGP((12,), xi=0.5, gain=3), lf.stimuli.NLGP((12,), xi=1.0, gain=[1.0, 3.0, 10.0])
)
NEURON = lf.networks.SingleNeuron(init_scale=0.1)
COMMITTEE = lf.networks.Committee(2, init_scale=0.1)
QUICK = lf.Training(steps=450, batch=20, every=3, evaluate=20)

CASES = {
    "adam, a swept field": lf.Experiment(SWEPT, NEURON, QUICK.replace(optimizer="adam")),
    "exact, to rest": lf.Experiment(
        ISING, NEURON, QUICK.replace(estimator="exact", stop_tol=3e-3, members=2)
    ),
    "a committee, seeds": lf.Experiment(
        ISING, COMMITTEE, QUICK.replace(seed=(5, 9), estimator="shared")
    ),
}


def whole(experiment):
    """The run without an interruption, in this process, without a store."""
    return experiment.run()


# -- processes that are killed ---------------------------------------------------------------------


def settle():
    """The settings of the tests, a checkpoint after every record."""
    use_compilation_cache()
    loop.POLL_INTERVAL = loop.CHECKPOINT_INTERVAL = loop.CHECKPOINT_SHARE = 0


def run_and_tell(case, path, pipe):
    """Run, and tell each step; then wait to be killed."""
    settle()
    lf.run_or_load(
        CASES[case],
        path,
        on_progress=lambda progress: pipe.send((progress.first_step, progress.step)),
    )
    pipe.send((-1, 10**9))
    time.sleep(600)


def run_and_die(case, path, place, call):
    """Run, and be killed at one of the calls by which things reach the disk."""
    settle()
    owner, name = {"write_array": (np.lib.format, place)}.get(place, (os, place))
    function, left = getattr(owner, name), [call]

    def deadly(*arguments, **settings):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **settings)

    def arm():
        setattr(owner, name, deadly)

    save = Store.save
    if call < 0:  # counted from where the result is stored
        left[0] = -call
        Store.save = lambda *arguments, **settings: (arm(), save(*arguments, **settings))[1]
    else:
        arm()
    lf.run_or_load(CASES[case], path)


def check_after_a_kill(store):
    """Everything that can be seen can be read; a damaged checkpoint would warn, which is an
    error here.
    """
    assert store.verify_all() == [] and len(store.list()) == len(store.digests())
    for path in store.path.glob("checkpoints/*.npz"):
        assert store.checkpoint(path.stem).load() is not None


def kill_after(case, store, step, delay):
    """Kill a process some time after it told a step; returns where it began and where it was."""
    here, there = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=run_and_tell, args=(case, store.path, there))
    process.start()
    there.close()
    begun, now = here.recv()
    first = begun
    while now < step:
        begun, now = here.recv()
    time.sleep(delay)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    here.close()
    process.close()
    return first, now


@pytest.mark.parametrize(
    ("case", "kills"),
    [
        pytest.param("adam, a swept field", 4, marks=pytest.mark.slow),
        ("exact, to rest", 3),
        pytest.param("a committee, seeds", 3, marks=pytest.mark.slow),
    ],
)
def test_ten_kills_at_random_moments(case, kills, key, tmp_path):
    """Several in a row, each while the run goes on from the one before; then it is finished
    here.
    """
    store, experiment = Store(tmp_path), CASES[case]
    expected = whole(experiment)
    moments = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    begins = []
    for step in np.sort(moments.uniform(0, 0.95 * expected.steps[-1], kills)):
        first, now = kill_after(case, store, step, moments.uniform(0, 0.02))
        begins.append(first)
        assert now >= step
        check_after_a_kill(store)
    assert begins == sorted(begins) and begins[-1] > 0  # each went on from where the one before was
    begun = []
    found = lf.run_or_load(
        experiment, store, on_progress=lambda progress: begun.append(progress.first_step)
    )
    assert_same(found, expected)
    assert_same(store.load(experiment.digest), expected)
    assert not begun or begun[0] >= begins[-1]
    assert store.verify_all() == [] and not list(tmp_path.glob("checkpoints/*.npz"))


def test_kills_while_writing(tmp_path):
    """In the midst of a checkpoint, before it is moved into its place, in the midst of the
    result, before and after that appears: one run through all of them.
    """
    case, store = "adam, a swept field", Store(tmp_path)
    experiment = CASES[case]
    expected = whole(experiment)
    kept = store.checkpoint(experiment.digest)
    places = [
        ("write_array", 40),
        ("fsync", 7),
        ("replace", 5),
        ("write_array", -4),
        ("rename", -1),
        ("unlink", -1),
    ]
    steps = []
    for place, call in places:
        process = SPAWN.Process(target=run_and_die, args=(case, store.path, place, call))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, (place, process.exitcode)
        process.close()
        check_after_a_kill(store)
        arrays = kept.load()
        steps.append(
            max(
                int(one)
                for name, one in arrays.items()
                if name.startswith("state_") and one.ndim == 0
            )
        )
        stored = experiment.digest in store
        assert stored == (place == "unlink"), place
    assert 0 < steps[0] < steps[1] < steps[2] < steps[3] == steps[4] == steps[5] < 450
    parts, works = (
        list(tmp_path.glob("checkpoints/.*.part")),
        list(tmp_path.glob("tmp/*-*[0-9a-f]")),
    )
    assert len(parts) >= 2 and works  # some did die half way
    # The result is there, and the checkpoint, too: its process died between storing the one and
    # clearing the other.
    found = lf.run_or_load(
        experiment, store, on_progress=lambda progress: pytest.fail("computed again")
    )
    assert_same(found, expected)
    assert kept.load() is None and store.verify_all() == []


# -- interruptions between chunks ------------------------------------------------------------------


class Memory:
    """A checkpoint without a disk."""

    def __init__(self):
        self.arrays, self.saves = None, 0

    def load(self):
        return (
            None if self.arrays is None else {name: one.copy() for name, one in self.arrays.items()}
        )

    def save(self, arrays):
        self.arrays, self.saves = (
            {name: np.array(one) for name, one in arrays.items()},
            self.saves + 1,
        )


def after(count):
    """A cancel that says yes at the n-th question."""
    asked = []

    def cancel():
        asked.append(0)
        return len(asked) >= count

    return cancel


@pytest.fixture
def every_record(monkeypatch):
    for name in ("POLL_INTERVAL", "CHECKPOINT_INTERVAL", "CHECKPOINT_SHARE"):
        monkeypatch.setattr(loop, name, 0)


SMALL = lf.Training(steps=40, batch=10, every=3, evaluate=10, members=2)
RING = lf.Discrimination(*(lf.stimuli.Gaussian((8,), xi=xi) for xi in (0.6, 1.1)))
SHORT = {
    "sgd": (RING, NEURON, SMALL),
    "nothing recorded": (RING, NEURON, SMALL.replace(quantities=())),
    "reductions": (RING, COMMITTEE, SMALL.replace(quantities=("ipr", "peak", "loss"))),
    "adam, swept rates": (
        RING,
        COMMITTEE,
        SMALL.replace(optimizer="adam", learning_rate=[0.01, 0.1]),
    ),
    "a swept field": (RING.replace(l2=[0.0, 0.3]), NEURON, SMALL.replace(members=1)),
    "orbit": (RING, NEURON, SMALL.replace(estimator="orbit")),
    "exact, to rest": (ISING, NEURON, SMALL.replace(estimator="exact", stop_tol=0.05, steps=400)),
    "diverging": (RING, NEURON, SMALL.replace(learning_rate=[0.05, 1e5])),
}


@pytest.mark.parametrize("name", SHORT)
def test_cancel_and_go_on(name, every_record):
    experiment = lf.Experiment(*SHORT[name])
    expected = whole(experiment)
    records = len(expected.steps)
    assert records > 10
    assert (expected.stopped == "at rest") == ("rest" in name)
    assert (expected.outcome[1].kind != "ok") == (name == "diverging")
    for count in (1, records - 2):
        keep = Memory()
        stopped = experiment.run(cancel=after(count), checkpoint=keep)
        assert stopped.stopped == "cancelled" and len(stopped.steps) == count + 1
        told = []
        assert_same(experiment.run(checkpoint=keep, on_progress=told.append), expected)
        assert {progress.first_step for progress in told} == {expected.steps[count]} and told[
            0
        ].step == told[0].first_step
    # A few chunks at a time, each in a run of its own.
    keep = Memory()
    for count in range(3, min(records, 13) - 1, 3):
        assert len(experiment.run(cancel=after(3), checkpoint=keep).steps) == count + 1
    assert_same(experiment.run(checkpoint=keep), expected)


def test_a_run_that_reached_its_end_is_not_cancelled(every_record):
    """Where a run ends does not depend on who asks to stop at that moment: going on it would
    miss its rest.
    """
    for name in ("sgd", "exact, to rest"):
        experiment, keep = lf.Experiment(*SHORT[name]), Memory()
        expected = whole(experiment)
        last = len(expected.steps) - 1
        assert_same(experiment.run(cancel=after(last), checkpoint=keep), expected)
        assert keep.saves == last - 1

        def interrupt(progress, last=expected.steps[-1]):
            if progress.step == last:
                raise KeyboardInterrupt

        with pytest.raises(lf.TrainingInterrupted) as stop:
            experiment.run(on_progress=interrupt)
        assert_same(stop.value.trajectory, expected)


class Interrupt:
    """Raises KeyboardInterrupt at a chosen line of the package's training code, counted as they
    are executed.
    """

    def __init__(self, at=None):
        self.at, self.lines = at, 0

    def __call__(self, frame, event, _):
        return self.line if frame.f_code.co_filename.startswith(TRAINING) else None

    def line(self, frame, event, _):
        if event == "line":
            self.lines += 1
            if self.lines - 1 == self.at:
                raise KeyboardInterrupt
        return self.line

    def run(self, experiment, **settings):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return experiment.run(**settings)
        finally:
            sys.settrace(before)


def test_ctrl_c_anywhere_and_go_on(every_record):
    """At any line of training: what was told is kept, and the run goes on to the same end."""
    experiment = lf.Experiment(*SHORT["exact, to rest"])
    experiment = experiment.replace(method=experiment.method.replace(stop_tol=0.2))
    expected = whole(experiment)
    count = Interrupt()
    assert_same(count.run(experiment, checkpoint=Memory(), on_progress=lambda _: None), expected)
    records = len(expected.steps)
    assert 5 < records < 40 and count.lines > 20 * records
    cancelled = 0
    for line in range(0, count.lines, 13):
        keep, told = Memory(), []
        with pytest.raises(KeyboardInterrupt) as stop:
            Interrupt(line).run(experiment, checkpoint=keep, on_progress=told.append)
        stopped = getattr(stop.value, "trajectory", None)
        if stopped is None:  # before the first step, or while the result is put together
            assert len(told) in (0, records), line
        else:
            made = len(stopped.steps)
            assert stopped.steps.tolist() == expected.steps[:made].tolist()
            assert not told or stopped.steps[-1] >= told[-1].step
            np.testing.assert_array_equal(stopped.weights, expected.weights[:, :made])
            np.testing.assert_array_equal(stopped.final, stopped.weights[:, -1])
            cancelled += stopped.stopped == "cancelled"
        assert_same(experiment.run(checkpoint=keep), expected)
    assert cancelled > records  # it was met within records, not only between them


def test_schedules_go_on(every_record):
    settings = {
        "learning_rate": optax.cosine_decay_schedule(0.1, 40),
        "steps": 40,
        "batch": 10,
        "members": 2,
    }
    settings |= {"record": lf.Record(3, evaluate=10)}
    expected, keep = lf.train(RING, NEURON, **settings), Memory()
    lf.train(RING, NEURON, **settings, cancel=after(5), checkpoint=keep)
    assert_same(lf.train(RING, NEURON, **settings, checkpoint=keep), expected)


def test_a_checkpoint_holds_what_was_computed(every_record):
    """The test above would not see a run that starts anew: what it goes on from is changed here,
    and shows.
    """
    experiment, keep = lf.Experiment(*SHORT["sgd"]), Memory()
    expected = whole(experiment)
    experiment.run(cancel=after(5), checkpoint=keep)
    keep.arrays["record_loss"][2] += 1
    changed = experiment.run(checkpoint=keep)
    np.testing.assert_array_equal(np.flatnonzero((changed.loss != expected.loss).any(axis=0)), [2])
    assert_same(dataclasses.replace(changed, series=expected.series), expected)


def test_checkpoints_are_rare(monkeypatch):
    """Ten seconds apart, and further where one takes long."""
    experiment, keep = lf.Experiment(*SHORT["sgd"]), Memory()
    experiment.run(checkpoint=keep)
    assert keep.saves == 0
    monkeypatch.setattr(loop, "CHECKPOINT_INTERVAL", 0.0)
    save = keep.save
    monkeypatch.setattr(keep, "save", lambda arrays: (time.sleep(0.2), save(arrays)))
    experiment.run(checkpoint=keep)
    assert keep.saves == 1


OTHERS = {
    "more members": {"method": SMALL.replace(members=3)},
    "another optimizer": {"method": SMALL.replace(optimizer="adam")},
    "less recorded": {"method": SMALL.replace(quantities=("weights", "loss"))},
    "other steps": {"method": SMALL.replace(every=4)},
    "another seed": {"method": SMALL.replace(seed=1)},
    "another rate": {"method": SMALL.replace(learning_rate=0.04)},
    "other draws": {
        "task": lf.Discrimination(*(one.replace(xi=0.9 * one.xi) for one in RING.stimuli))
    },
    "another precision": {"precision": "float64"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_checkpoints_of_other_runs_are_refused(name, every_record):
    experiment, keep = lf.Experiment(RING, NEURON, SMALL), Memory()
    experiment.replace(**OTHERS[name]).run(cancel=after(2), checkpoint=keep)
    before = keep.saves
    words = r"checkpoint does not belong to this run: it is of .*another task.*Remove .* to start anew\."
    with pytest.raises(lf.InputError, match=words):
        experiment.run(checkpoint=keep)
    assert keep.saves == before


def test_a_checkpoint_with_records_that_do_not_fit_its_state_is_refused(every_record):
    experiment, keep = lf.Experiment(RING, NEURON, SMALL), Memory()
    experiment.run(cancel=after(4), checkpoint=keep)
    keep.arrays["record_loss"] = keep.arrays["record_loss"][:-1]
    with pytest.raises(lf.InputError, match="`record_loss` of float32 and shape"):
        experiment.run(checkpoint=keep)


def test_forked_processes_use_no_backend_of_their_parent():
    """What is loaded before processes are divided starts no backend: they would share its
    threads.
    """
    process = SPAWN.Process(target=_leave_if_started)
    process.start()
    process.join()
    assert process.exitcode == 0
    process.close()


def _leave_if_started():
    from jax._src import xla_bridge

    sys.exit(int(bool(xla_bridge._backends)))
