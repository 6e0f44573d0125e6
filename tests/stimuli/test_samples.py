"""Stimuli of rows: statistics against enumeration of all draws; streamed rows against held ones."""

import jax
import numpy as np
import pytest

import localfields as lf
from localfields.stimuli import samples as room
from localfields.stimuli.preprocess import CHUNK

SHAPE = (3, 4)


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(2)
    return generator.exponential(size=(40, 12)) @ generator.normal(size=(12, 12))


def outcomes(rows, symmetry):
    """Every outcome of a draw, all equally likely."""
    found = rows.reshape(-1, *SHAPE)
    if "shifts" in symmetry:
        found = np.concatenate([np.roll(found, by, (1, 2)) for by in np.ndindex(SHAPE)])
    if "signs" in symmetry:
        found = np.concatenate([found, -found])
    return found.reshape(-1, 12)


@pytest.mark.parametrize("symmetry", room.SYMMETRIES)
def test_statistics_are_those_of_all_outcomes(rows, symmetry):
    stimulus = lf.stimuli.Samples(rows, SHAPE, symmetry=symmetry)
    every = outcomes(rows, symmetry)
    assert stimulus.mean() == pytest.approx(every.mean(), abs=1e-12)
    np.testing.assert_allclose(stimulus.site_means().ravel(), every.mean(axis=0), atol=1e-12)
    wanted = np.cov(every, rowvar=False, bias=True)
    found = stimulus.covariance()
    assert found.shape == (SHAPE if stimulus.translation_invariant else SHAPE * 2)
    full = lf.lattice.matrix(found) if found.shape == SHAPE else found.reshape(12, 12)
    np.testing.assert_allclose(full, wanted, atol=1e-11)
    law = stimulus.marginal()
    for order in (1, 2, 4):
        centered = np.abs(every - every.mean())
        assert law.abs_moment(order) == pytest.approx(np.mean(centered**order), rel=1e-10)
    amplifier = lf.theory.Amplifier.of_samples(every)
    np.testing.assert_allclose(lf.theory.Amplifier(law)(0.5), amplifier(0.5), rtol=1e-10)


@pytest.mark.parametrize("symmetry", room.SYMMETRIES)
def test_a_draw_is_one_of_the_outcomes_and_all_occur(rows, symmetry, key):
    few = rows[:5]
    stimulus = lf.stimuli.Samples(few, SHAPE, symmetry=symmetry)
    every = outcomes(few, symmetry)
    number = {tuple(one): place for place, one in enumerate(every.tolist())}
    for x in (
        stimulus.sample(key, 4000),
        stimulus.moved(np.repeat(few, 800, axis=0), np.random.default_rng(3)),
    ):
        seen = [number[tuple(one)] for one in np.asarray(x).tolist()]
        counts = np.bincount(seen, minlength=len(every))
        assert counts.min() > 0  # 4000 draws of at most 120: one in 10¹² misses one
        expected = 4000 / len(every)
        assert ((counts - expected) ** 2 / expected).sum() < len(every) + 5 * np.sqrt(
            2 * len(every)
        ) + 25


def test_labels_choose_rows(rows, tmp_path):
    labels = np.arange(40) % 3
    np.save(tmp_path / "labels.npy", labels)
    for classes in (labels, labels[:, None], str(tmp_path / "labels.npy")):
        one = lf.stimuli.Samples(rows, SHAPE, classes=classes, chosen=2)
        np.testing.assert_array_equal(one.rows, rows[labels == 2])
        assert one.num == 13 and not one.streamed
        assert lf.from_json(one.to_json()) == one != one.replace(chosen=1)


@pytest.fixture
def small_limits(monkeypatch):
    """Limits so small that a few rows are too many to hold."""
    monkeypatch.setattr(room, "LARGEST_HELD", 1000)
    monkeypatch.setattr(room, "POOL", 960)
    room._KNOWN.clear()
    yield
    room._KNOWN.clear()


def test_streamed_rows_are_those_of_the_file(rows, tmp_path, small_limits, key):
    np.save(tmp_path / "a.npy", rows)
    streamed = lf.stimuli.Samples(str(tmp_path / "a.npy"), SHAPE)
    assert streamed.streamed and streamed.num == 40 and len(streamed.rows) == 10
    which = np.array([[3, 39], [0, 3]])
    np.testing.assert_array_equal(streamed.take(which.ravel()), rows[which.ravel()])
    assert {tuple(one) for one in streamed.rows.tolist()} < {tuple(one) for one in rows.tolist()}
    drawn = {tuple(one) for one in np.asarray(streamed.sample(key, 1000)).tolist()}
    assert drawn == {
        tuple(one) for one in rows.tolist()
    }  # of all the file, not of the part that is held
    np.testing.assert_allclose(
        streamed.covariance().reshape(12, 12), np.cov(rows, rowvar=False, bias=True), atol=1e-11
    )
    assert (
        streamed.sample(7, 10).tolist()
        == streamed.sample(7, 10).tolist()
        != streamed.sample(8, 10).tolist()
    )
    labels = np.arange(40) % 2
    odd = lf.stimuli.Samples(str(tmp_path / "a.npy"), SHAPE, classes=labels, chosen=1)
    assert odd.streamed and odd.num == 20
    np.testing.assert_array_equal(odd.take(np.arange(20)), rows[1::2])


@pytest.mark.parametrize("held", [True, False], ids=["held", "streamed"])
def test_statistics_of_many_rows_take_each_row_once(held, tmp_path, monkeypatch):
    """More rows than are read at a time, the largest ones where one piece ends and the next
    begins.
    """
    data = np.random.default_rng(6).normal(size=(2 * CHUNK + 3, 2))
    for end in (CHUNK, 2 * CHUNK, len(data)):
        data[end - 1] += 100.0
        data[end % len(data)] -= 50.0
    if not held:
        monkeypatch.setattr(room, "LARGEST_HELD", 1000)
        monkeypatch.setattr(room, "POOL", 960)
    np.save(tmp_path / "a.npy", data)
    room._KNOWN.clear()
    stimulus = lf.stimuli.Samples(str(tmp_path / "a.npy"))
    assert stimulus.streamed is not held
    np.testing.assert_array_equal(np.concatenate(list(stimulus.pieces())), data)
    np.testing.assert_allclose(stimulus.site_means(), data.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        stimulus.covariance(), np.cov(data, rowvar=False, bias=True), rtol=1e-12
    )
    room._KNOWN.clear()


@pytest.mark.parametrize(
    ("stored", "held"),
    [
        (np.int8, np.float32),
        (np.float16, np.float32),
        (np.int32, np.float32),
        (np.float32, np.float32),
        (np.int64, np.float64),
        (np.float64, np.float64),
    ],
)
def test_rows_are_held_in_single_precision_unless_stored_in_double(stored, held):
    data = np.arange(12).reshape(4, 3).astype(stored)
    for preprocess in ("none", "center"):
        assert lf.stimuli.Samples(data, preprocess=preprocess).rows.dtype == held


def test_many_values_are_grouped_without_losing_moments():
    values = np.sort(np.random.default_rng(4).standard_t(5, 300_000))
    found, weights = room.grouped(values, 2**12)
    assert found.size == weights.size <= 2**12 and weights.sum() == pytest.approx(1)
    for power, error in ((1, 1e-12), (2, 1e-12), (4, 1e-5)):
        assert weights @ found**power == pytest.approx(np.mean(values**power), rel=error, abs=1e-12)
    np.testing.assert_array_equal(room.grouped(values[:100], 200)[0], values[:100])


def test_rows_are_leaves_and_data_are_not(rows):
    stimulus = lf.stimuli.Samples(rows, SHAPE, preprocess="low-pass")
    paths = {path[0].name for path, _ in jax.tree_util.tree_leaves_with_path(stimulus)}
    assert paths == {"rows", "preprocess"}
    again = lf.stimuli.Samples(rows.copy(), SHAPE, preprocess="low-pass")
    assert again.rows is stimulus.rows  # the data are not looked at again
    assert jax.tree.structure(again) == jax.tree.structure(stimulus)
    assert type(stimulus.gaussian_clone()) is lf.stimuli.DenseGaussian
    assert type(stimulus.replace(symmetry="shifts").gaussian_clone()) is lf.stimuli.Gaussian
