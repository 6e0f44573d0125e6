"""Tiling: the laws of random arrangements against enumeration, and arrangements that are even or
crowded.
"""

import itertools
import re

import numpy as np
import pytest

from localfields import InputError
from localfields.analysis import tiling


def blocks(starts, size, length):
    """Fields of ones on so many sites from each start."""
    return np.stack([np.roll(np.arange(size) < length, start) for start in starts]).astype(float)


def counted(fields):
    """Covered fraction and sites shared by pairs, straight from the definition."""
    sites = [set(np.flatnonzero(np.abs(f.ravel()) >= np.abs(f).max() / 2)) for f in fields]
    covered = len(set().union(*sites)) / fields[0].size
    return covered, sum(len(a & b) for a, b in itertools.combinations(sites, 2))


@pytest.mark.parametrize("shape", ((5,), (2, 3)), ids=str)
def test_chance_is_what_enumeration_says(rng, shape):
    """All ways to move three footprints of unequal shape, as many as there are."""
    fields = rng.normal(size=(3, *shape))
    axes, places = len(shape), list(itertools.product(*(range(n) for n in shape)))
    every = []
    for shifts in itertools.product(places, repeat=3):
        moved = [
            np.roll(f, s, axis=tuple(range(axes))) for f, s in zip(fields, shifts, strict=True)
        ]
        every.append(counted(moved))
    covered, overlap = np.array(every).T
    result = tiling(fields, axes)
    assert (result.covered, result.overlap) == counted(fields)
    assert result.covered_by_chance == pytest.approx(covered.mean())
    assert result.overlap_by_chance == pytest.approx(overlap.mean())
    assert result.evenness == pytest.approx((overlap.mean() - result.overlap) / overlap.std())
    p = (overlap <= result.overlap).mean()
    assert abs(result.chance - (1 + 999 * p) / 1000) <= 5 * np.sqrt(p * (1 - p) / 999)


def test_footprints_side_by_side_and_on_top_of_each_other():
    apart, crowded = tiling(blocks(range(0, 40, 5), 40, 5)), tiling(blocks([0] * 8, 40, 5))
    assert apart.num == crowded.num == 8
    assert (apart.covered, apart.overlap) == (1, 0) and apart.chance == 0.001 and apart.evenness > 2
    assert (
        (crowded.covered, crowded.overlap) == (0.125, 28 * 5)
        and crowded.chance == 1
        and crowded.evenness < -10
    )
    assert apart.covered_by_chance == pytest.approx(1 - (1 - 5 / 40) ** 8)


def test_random_arrangements_are_neither(rng):
    """Of 400 random sets, evenness has mean 0 and variance 1, and chance is uniform."""
    fields = np.stack([blocks(rng.integers(40, size=6), 40, 4) for _ in range(400)])
    result = tiling(fields)
    assert abs(result.evenness.mean()) < 5 / 20
    spread = (result.evenness**2).std() / 20
    assert abs((result.evenness**2).mean() - 1) < 5 * spread
    for level in (0.1, 0.5):  # ties make it no more likely than the level
        assert (result.chance <= level).mean() < level + 5 * np.sqrt(level * (1 - level) / 400)
    assert abs((result.covered - result.covered_by_chance).mean()) < 5 * result.covered.std() / 20


def test_some_of_the_fields():
    fields = np.stack([blocks([0, 5, 10], 20, 5), blocks([0, 0, 0], 20, 5)])
    result = tiling(fields, which=np.array([[True, True, False], [True, False, False]]))
    assert result.num.tolist() == [2, 1] and result.covered.tolist() == [0.5, 0.25]
    assert result.overlap[0] == 0 and np.isnan(result.overlap[1]) and np.isnan(result.chance[1])
    none = tiling(fields, which=np.zeros((2, 3), bool))
    assert none.num.tolist() == [0, 0] and np.isnan(none.covered).all()


def test_fields_that_cover_everything():
    result = tiling(np.ones((4, 10)))
    assert (result.covered, result.evenness, result.chance, result.overlap) == (1, 0, 1, 60)


def test_fields_left_out_may_be_anything():
    fields = np.stack([np.eye(8)[0], np.full(8, np.nan), np.zeros(8)])
    assert tiling(fields, which=np.array([True, False, False])).covered == 1 / 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        ((np.ones(8),), "(…, neuron, *shape), got shape (8,)"),
        ((np.zeros((2, 8)),), "2 of 2 zero everywhere"),
        (
            (np.ones((2, 8)), 1, [True]),
            "booleans of shape (2,), got bool of shape (1,)",
        ),
        ((np.ones((2, 8)), 1, [1, 0]), "must be booleans of shape"),
    ),
)
def test_mistakes_are_told(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        tiling(*arguments)
