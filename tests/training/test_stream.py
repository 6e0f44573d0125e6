"""Training on data: every sample once an epoch, from memory or from a file; draws that never see
the whole file.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import localfields as lf
from localfields.stimuli import samples as room
from localfields.training import stream

SITES, ROWS = 12, (7, 5)  # rows of the two classes: site i is one in row i alone
NEURON = lf.networks.SingleNeuron()
BATCH = 4  # two a class: neither seven nor five rows end with a batch


def marked(tmp_path, where):
    """Two classes in which every row has a site of its own, so that a gradient tells which rows
    it saw.
    """
    whole = np.eye(SITES)
    parts = whole[: ROWS[0]], whole[ROWS[0] :]
    if where == "file":
        for place, part in enumerate(parts):
            np.save(tmp_path / f"{place}.npy", part)
        parts = tuple(str(tmp_path / f"{place}.npy") for place in range(2))
    return lf.Discrimination(*(lf.stimuli.Samples(part, shape=SITES) for part in parts))


@pytest.fixture(params=["held", "file"])
def where(request, monkeypatch):
    """Rows that are held, or rows of a file of which two at most are held and few brought at a
    time.
    """
    if request.param == "file":
        monkeypatch.setattr(room, "LARGEST_HELD", 2 * SITES * 8)
        monkeypatch.setattr(room, "POOL", 2 * SITES * 8)
        monkeypatch.setattr(stream, "WINDOW_BYTES", 3 * BATCH * SITES * 8)
    room._KNOWN.clear()
    yield request.param
    room._KNOWN.clear()


def seen(run):
    """How often each row was in each step, (member, step, row), from how its weight moved."""
    moved = -np.diff(run.weights[:, :, 0], axis=1) / 1e-6
    w = run.weights[:, :-1, 0]
    # 2(w − y) of one row; a class has two rows a step, and probability ½.
    once = np.where(np.arange(SITES) < ROWS[0], w, w - 1) / 2
    return np.rint(moved / once).astype(int)


def trained(task, estimator, steps=70, **more):
    given = {
        "learning_rate": 1e-6,
        "batch": BATCH,
        "steps": steps,
        "seed": 3,
        "initial": np.full((1, SITES), 0.5),
    }
    given["record"] = lf.Record(every=1, quantities=("weights",))
    return lf.train(task, NEURON, estimator=estimator, **given | more)


def test_every_sample_is_seen_once_an_epoch(tmp_path, where):
    """Exactly: by what each step changed. 70 steps are 20 epochs of seven rows, and 28 of five."""
    task = marked(tmp_path, where)
    assert all(one.streamed is (where == "file") for one in task.stimuli)
    run = trained(task, "epochs", members=2)
    counts = seen(run)
    assert counts.sum(axis=2).tolist() == [[BATCH] * 70] * 2
    orders = []
    for start, num in ((0, 7), (7, 5)):
        of_class = counts[0, :, start : start + num]
        assert of_class.sum() == 140
        # The k-th draw of a class lies in step k // 2; within a step the order does not matter.
        for epoch in range(140 // num):
            first, last = epoch * num, (epoch + 1) * num
            inner = of_class[-(-first // 2) : last // 2].sum(axis=0)
            assert inner.max() <= 1  # nothing twice in the steps that lie in one epoch
        assert of_class.sum(axis=0).tolist() == [140 // num] * num
        orders.append([tuple(step) for step in of_class[:num]])
    np.testing.assert_array_equal(counts[0], counts[1])  # members see one order
    assert len(set(orders[0])) > 3  # and it is shuffled
    other = seen(trained(task, "epochs", members=2, seed=4))
    assert not np.array_equal(other, counts)


def test_epochs_end_exactly_where_rows_do(tmp_path, where):
    """With a batch that divides the rows, each epoch is a permutation, and another one each
    time.
    """
    data = np.eye(8)
    if where == "file":
        np.save(tmp_path / "a.npy", data)
        data = str(tmp_path / "a.npy")
    labels = np.arange(8) % 2
    task = lf.Discrimination(*(lf.stimuli.Samples(data, classes=labels, chosen=c) for c in (0, 1)))
    run = trained(task, "epochs", steps=12, initial=np.full((1, 8), 0.5))
    moved = np.diff(run.weights[0, :, 0], axis=0) != 0
    assert moved.reshape(6, 2, 8).sum(axis=1).tolist() == [[1] * 8] * 6
    assert len({tuple(one.ravel().tolist()) for one in moved.reshape(6, 2, 8)}) > 1


def test_file_and_memory_give_one_run(tmp_path, monkeypatch):
    data = np.random.default_rng(5).normal(size=(30, SITES))
    for place in range(2):
        np.save(tmp_path / f"{place}.npy", (1 + place) * data)

    def task():
        return lf.Discrimination(
            *(lf.stimuli.Samples(str(tmp_path / f"{p}.npy"), symmetry="shifts") for p in (0, 1))
        )

    held = trained(task(), "epochs", learning_rate=0.05)
    for name in ("LARGEST_HELD", "POOL"):
        monkeypatch.setattr(room, name, 5 * SITES * 8)
    monkeypatch.setattr(stream, "WINDOW_BYTES", BATCH * SITES * 8)
    room._KNOWN.clear()
    files = task()
    assert all(one.streamed for one in files.stimuli)
    streamed = trained(files, "epochs", learning_rate=0.05)
    np.testing.assert_array_equal(streamed.weights, held.weights)
    room._KNOWN.clear()


def test_fresh_draws_of_streamed_rows_are_uniform(tmp_path, where):
    """Each row as likely as any other, members apart unless they share; χ² at five deviations."""
    task = marked(tmp_path, where)
    run = trained(task, "independent", steps=200, members=2)
    counts = seen(run)
    assert not np.array_equal(counts[0], counts[1])
    for start, num in ((0, 7), (7, 5)):
        found = counts[:, :, start : start + num].sum(axis=(0, 1))
        expected = 2 * 200 * 2 / num
        assert ((found - expected) ** 2 / expected).sum() < num + 5 * np.sqrt(2 * num) + 25
        assert counts[:, :, start : start + num].max() == 2  # with replacement
    shared = seen(trained(task, "shared", steps=200, members=2))
    np.testing.assert_array_equal(shared[0], shared[1])


def seen_rows_and_shifts(run, amplitudes):
    """Row and shift of the one draw of each class in every step: (step, 4) of row, shift, row,
    shift.

    Row r of class c has `amplitudes[c][r]` at its first site and zeros elsewhere, and w = ½
    throughout, so that a draw moves the weight of one site, by an amount that tells the row.
    """
    num = len(amplitudes[0])
    of_class = [a * (a / 2 - label) for label, a in enumerate(amplitudes)]  # ½ · 2(h − y) x
    outcomes = np.array(list(np.ndindex(num, num, num, num)))
    predicted = np.zeros((len(outcomes), num))
    for row, shift, gradient in zip(outcomes.T[::2], outcomes.T[1::2], of_class, strict=True):
        np.add.at(predicted, (np.arange(len(outcomes)), shift), gradient[row])
    observed = -np.diff(run.weights[0, :, 0], axis=0) / LITTLE
    off = np.abs(observed[:, None] - predicted).max(axis=2)
    assert off.min(axis=1).max() < 1e-5 < 1e-3 < np.partition(off, 1, axis=1)[:, 1].min()
    return outcomes[off.argmin(axis=1)]


LITTLE = 1e-9  # a learning rate that leaves weights where they are


@pytest.mark.parametrize("estimator", ["epochs", "independent", "shared"])
def test_rows_and_shifts_of_all_classes_are_independent(tmp_path, where, estimator):
    """As many rows in each class as sites: any two draws from one generator would be equal, step
    by step.
    """
    num, steps = 5, 400
    amplitudes = 1.01 + 0.17 * np.arange(num), 1.05 + 0.19 * np.arange(num)
    data = [np.pad(a[:, None], ((0, 0), (0, num - 1))) for a in amplitudes]
    if where == "file":
        for place, rows in enumerate(data):
            np.save(tmp_path / f"{place}.npy", rows)
        data = [str(tmp_path / f"{place}.npy") for place in range(2)]
    task = lf.Discrimination(*(lf.stimuli.Samples(rows, symmetry="shifts") for rows in data))
    assert all(stimulus.streamed is (where == "file") for stimulus in task.stimuli)
    settings = {"initial": np.full((1, num), 0.5), "learning_rate": LITTLE, "batch": 2}
    seen = seen_rows_and_shifts(trained(task, estimator, steps, **settings), amplitudes)
    pairs = [(seen[:, a], seen[:, b]) for a, b in itertools.combinations(range(4), 2)]
    pairs += [(shift[1:], shift[:-1]) for shift in seen.T[1::2]]  # shifts of steps in succession
    limit = scipy.stats.chi2.isf(scipy.stats.norm.sf(5), num**2 - 1)
    for first, second in pairs:
        counts = np.zeros((num, num))
        np.add.at(counts, (first, second), 1)
        expected = len(first) / num**2
        assert ((counts - expected) ** 2 / expected).sum() < limit
    assert steps * (num - 1) > 10 * limit  # the statistic of two draws that are equal


@pytest.mark.parametrize(
    "where", ["file"], indirect=True
)  # of rows that are held, this is the engine's own law
def test_a_member_does_not_depend_on_its_neighbors(tmp_path, where):
    task = marked(tmp_path, where)
    three = trained(task, "independent", members=3)
    seeds = trained(task, "independent", seed=[3, 9])
    np.testing.assert_array_equal(three.weights[:1], trained(task, "independent").weights)
    np.testing.assert_array_equal(seeds.weights[1], trained(task, "independent", seed=9).weights[0])


class Interrupted:
    """Keeps a checkpoint in memory."""

    arrays = None

    def load(self):
        return self.arrays

    def save(self, arrays):
        self.arrays = arrays


def test_an_interrupted_run_goes_on_with_the_rows_it_would_have_had(tmp_path, where):
    task, keep = marked(tmp_path, where), Interrupted()
    whole = trained(task, "epochs", learning_rate=0.05, steps=120)
    looks = iter(range(120))
    first = trained(
        task,
        "epochs",
        learning_rate=0.05,
        steps=120,
        checkpoint=keep,
        cancel=lambda: next(looks) == 40,
        poll_interval=0,
    )
    assert first.stopped == "cancelled" and first.steps[-1] == 41
    again = trained(task, "epochs", learning_rate=0.05, steps=120, checkpoint=keep)
    np.testing.assert_array_equal(again.weights, whole.weights)


@pytest.mark.parametrize("where", ["file"], indirect=True)
def test_an_interrupt_within_a_record_keeps_the_ones_before(tmp_path, where, monkeypatch):
    """Ctrl-C while the rows of step 25 are read, with records every ten steps."""
    task, record = marked(tmp_path, where), lf.Record(every=10, quantities=("weights",))
    whole = trained(task, "epochs", learning_rate=0.05, record=record)
    read, take = 0, lf.stimuli.Samples.take

    def interrupted(stimulus, which):
        nonlocal read
        read += len(which)
        if read > 25 * BATCH:
            raise KeyboardInterrupt
        return take(stimulus, which)

    monkeypatch.setattr(lf.stimuli.Samples, "take", interrupted)
    with pytest.raises(lf.TrainingInterrupted) as stop:
        trained(task, "epochs", learning_rate=0.05, record=record)
    stopped = stop.value.trajectory
    assert stopped.stopped == "cancelled" and stopped.steps.tolist() == [0, 10, 20]
    np.testing.assert_array_equal(stopped.weights, whole.weights[:, :3])
    np.testing.assert_array_equal(stopped.final, whole.weights[:, 2])


def test_what_cannot_be_streamed_is_refused(tmp_path, where):
    ising = lf.Discrimination(*(lf.stimuli.Ising(SITES, coupling=j) for j in (0.3, 0.7)))
    with pytest.raises(lf.InputError, match="made of data.*never repeat"):
        trained(ising, "epochs")
    if where == "file":
        paths = [
            lf.stimuli.Samples(one.data, shape=SITES, symmetry="shifts-and-signs")
            for one in marked(tmp_path, where).stimuli
        ]
        with pytest.raises(lf.InputError, match="on data too large for memory"):
            trained(lf.Discrimination(*paths), "orbit")


def test_gradients_on_data_are_those_of_all_rows(key):
    """The mean gradient over one epoch is that of the whole data, as the network's loss has it."""
    generator = np.random.default_rng(6)
    parts = [generator.normal(size=(10, SITES)) + shift for shift in (0.0, 0.5)]
    task = lf.Discrimination(*(lf.stimuli.Samples(part, shape=SITES) for part in parts))
    w = generator.normal(size=(1, SITES))
    run = trained(task, "epochs", steps=5, initial=w, learning_rate=1e-9)
    found = -np.diff(run.weights[0, :, 0], axis=0).mean(axis=0) / 1e-9

    def loss(w):
        out = [jax.nn.relu(jnp.asarray(part) @ w[0]) for part in parts]
        return 0.5 * jnp.mean(out[0] ** 2) + 0.5 * jnp.mean((out[1] - 1) ** 2)

    np.testing.assert_allclose(found, jax.grad(loss)(jnp.asarray(w))[0], rtol=1e-4, atol=1e-6)
