"""Comparisons: hand-made trajectories with known answers, reported mistakes, pictures that show
what was counted.
"""

import dataclasses
import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import localfields as lf
from localfields.analysis import Comparison, compare, onset_times
from localfields.analysis.compare import _check, fields_at
from localfields.trajectory import Outcome, Trajectory, inverse_participation_ratio, localized_from

OK = Outcome("ok", -1)


def made(weights, times, outcome=None, events=None, **experiment):
    """A trajectory of these fields, (member, time, neuron, *shape)."""
    weights = np.asarray(weights, float)
    return Trajectory(
        steps=np.arange(weights.shape[1]),
        times=np.asarray(times, float),
        initial=weights[:, 0],
        final=weights[:, -1],
        series={"weights": weights},
        outcome=(OK,) * len(weights) if outcome is None else outcome,
        experiment=experiment,
        manifest={},
        events=events or {},
    )


def spikes(sites, shape, times=(0.0, 1.0)):
    """Members with one neuron, a single site each, the same at all times."""
    fields = np.zeros((len(sites), *shape))
    for field, site in zip(fields, sites, strict=True):
        field[site] = 1.0
    return made(np.repeat(fields[:, None, None], len(times), axis=1), times)


# -- fields over time ------------------------------------------------------------------------------


def test_distance_and_cosine_by_hand():
    first = made([[[[3.0, 0.0, 4.0]], [[1.0, 0.0, 0.0]]]], [0, 1])
    second = made([[[[0.0, 0.0, 4.0]], [[-1.0, 0.0, 0.0]]]], [0, 1])
    comparison = compare(first, second)
    np.testing.assert_allclose(
        comparison.distance[0, :, 0], [3 / 5, 2.0], rtol=1e-15
    )  # of the first's length
    np.testing.assert_allclose(
        comparison.cosine[0, :, 0], [4 / 5, -1.0], rtol=1e-15
    )  # a sign is not aligned
    np.testing.assert_allclose(comparison.ipr_first[0, :, 0], [(81 + 256) / 625, 1.0])
    np.testing.assert_allclose(comparison.ipr_second[0, :, 0], [1.0, 1.0])
    assert comparison.peak_distance.tolist() == [[0.0]] and comparison.exact == 1.0


def test_a_shift_is_not_aligned(rng):
    field = rng.normal(size=(1, 1, 1, 9))
    comparison = compare(made(field, [0.0]), made(np.roll(field, 1, axis=-1), [0.0]))
    assert (
        comparison.distance.item() > 0.1
        and comparison.exact == 0.0
        and comparison.within_one == 1.0
    )


@pytest.mark.parametrize("shape", ((8,), (4, 6), (3, 4, 2)), ids=str)
def test_swapped_arguments(rng, shape):
    weights = rng.normal(size=(2, 3, 5, 2, *shape))
    first, second = (made(field, [0, 1, 2, 3, 4]) for field in weights)
    forth, back = compare(first, second), compare(second, first)
    lengths = np.sqrt((weights.reshape(2, 3, 5, 2, -1) ** 2).sum(axis=-1))
    np.testing.assert_allclose(forth.distance * lengths[0], back.distance * lengths[1], rtol=1e-12)
    assert not np.allclose(forth.distance, back.distance)
    np.testing.assert_allclose(forth.cosine, back.cosine, rtol=1e-12)
    np.testing.assert_array_equal(forth.ipr_first, back.ipr_second)
    np.testing.assert_array_equal(forth.peak_first, back.peak_second)
    np.testing.assert_array_equal(forth.peak_distance, back.peak_distance)
    assert forth.distance.shape == (3, 5, 2) and forth.peak_distance.shape == (3, 2)


def test_float32_fields_are_compared_in_float64():
    first = made(np.full((1, 1, 1, 4), 1e-30), [0.0])
    first.series["weights"] = first.weights.astype(np.float32)
    assert compare(
        first, made(np.full((1, 1, 1, 4), 2e-30), [0.0])
    ).distance.item() == pytest.approx(1.0, rel=1e-6)


def test_a_field_of_zeros_has_no_distance():
    fields = np.ones((2, 2, 1, 4))
    fields[0, 0] = 0
    comparison = compare(made(fields, [0, 1]), made(np.ones((2, 2, 1, 4)), [0, 1]))
    assert np.isnan(comparison.distance[0, 0, 0]) and np.isnan(comparison.cosine[0, 0, 0])
    assert comparison.to_dict()["distance_start"] == 0.0  # of the other member


# -- times -----------------------------------------------------------------------------------------


def straight(rng, shape=(6,), members=2, neurons=2):
    """Fields that move along straight lines: start and velocity of each."""
    return rng.normal(size=(2, members, 1, neurons, *shape))


def along(line, times):
    times = np.asarray(times, float)
    every = np.broadcast_to(times, (line.shape[1], times.shape[-1]))
    return made(line[0] + line[1] * every.reshape(*every.shape, *[1] * (line.ndim - 3)), times)


@pytest.mark.parametrize("shape", ((6,), (3, 4)), ids=str)
def test_interpolation_is_exact_for_straight_lines(rng, shape):
    line = straight(rng, shape)
    first, second = along(line, [0.0, 0.1, 0.7, 1.9, 2.0]), along(line, [0.0, 0.5, 0.6, 2.0])
    for result in (compare(first, second), compare(second, first)):
        assert result.distance.max() < 1e-14 and result.cosine.min() > 1 - 1e-14
        assert result.interpolation.max() < 1e-14
    assert compare(first, along(line + 0.01, second.times)).distance.max() > 1e-3


def test_only_times_of_the_first_within_the_second(rng):
    line = straight(rng)
    comparison = compare(along(line, [0, 1, 2, 3, 4, 5]), along(line, [0.5, 2.5, 4.0]))
    assert comparison.times.tolist() == [1, 2, 3, 4] and comparison.records.tolist() == [1, 2, 3, 4]
    assert comparison.inside.all() and comparison.distance.max() < 1e-14
    assert (comparison.to_dict()["time_start"], comparison.to_dict()["time_end"]) == (1.0, 4.0)
    assert comparison.ends == (5.0, 4.0)


def test_times_that_differ_by_rounding_are_kept(rng):
    line, times = straight(rng), 0.1 * np.arange(4)
    assert times[3] > 0.3
    assert len(compare(along(line, times), along(line, [0.0, 0.3])).records) == 4
    assert len(compare(along(line, times), along(line, [0.0, 0.2999])).records) == 3


def test_each_member_has_its_own_times(rng):
    line = straight(rng, members=3)
    swept = np.array([1.0, 2.0, 4.0])[:, None] * np.arange(5)
    comparison = compare(along(line, swept), along(line, [0.0, 3.0, 8.0]))
    assert comparison.times.shape == (3, 5) and comparison.records.tolist() == [0, 1, 2, 3, 4]
    assert comparison.inside.sum(axis=1).tolist() == [5, 5, 3]
    assert (np.isnan(comparison.distance) == ~comparison.inside[:, :, None]).all()
    assert np.nanmax(comparison.distance) < 1e-14
    back = compare(along(line, [0.0, 3.0, 8.0]), along(line, swept))
    assert (
        back.times.tolist() == [0, 3, 8]
        and back.inside.tolist() == [[True, True, False]] + [[True] * 3] * 2
    )
    assert np.nanmax(back.distance) < 1e-14


def test_the_end_is_the_last_common_record_of_each_member():
    times = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]])
    fields = np.ones((2, 3, 1, 4)) * np.array([1.0, 2.0, 4.0])[:, None, None]
    comparison = compare(made(fields, times), made(np.ones((2, 2, 1, 4)), [0.0, 2.0]))
    np.testing.assert_allclose(comparison.at_end(comparison.distance)[:, 0], [3 / 4, 1 / 2])
    np.testing.assert_allclose(comparison.at_start(comparison.distance)[:, 0], [0, 0])
    np.testing.assert_allclose(comparison.per_member()["distance"], [3 / 4, 1 / 2])


def test_the_error_of_interpolation_is_told():
    """Between records of t² the line is off by (t − t₀)(t₁ − t), exactly; at records by nothing."""
    fine, coarse = np.linspace(0, 2, 17), np.array([0.0, 0.5, 0.75, 2.0])
    first, second = (made(t[None, :, None, None] ** 2 + np.ones(5), t) for t in (fine, coarse))
    comparison = compare(first, second)
    assert comparison.distance.max() > 0.05
    np.testing.assert_allclose(comparison.interpolation, comparison.distance, atol=1e-14)
    assert comparison.interpolation[0, [0, 4, 6, 16], 0].tolist() == [0.0] * 4
    assert "may come from interpolation" in repr(comparison)
    assert (
        "interpolation" not in repr(compare(second, first))
        and compare(second, first).interpolation.max() == 0
    )


def test_with_few_records_the_error_is_unknown():
    first = made(np.ones((1, 3, 1, 4)), [0, 1, 2])
    comparison = compare(first, made(np.ones((1, 2, 1, 4)), [0, 2]))
    assert np.isnan(comparison.interpolation[0, 1]) and comparison.interpolation[
        0, [0, 2]
    ].tolist() == [
        [0],
        [0],
    ]
    single = compare(first, made(np.ones((1, 1, 1, 4)), [1.0]))
    assert single.times.tolist() == [1.0] and single.distance.item() == 0


def test_records_at_the_same_time():
    """A learning rate that falls to zero: the later record counts."""
    fields = np.arange(1.0, 5)[None, :, None, None] * np.ones(4)
    result, wrong = fields_at(made(fields, [0.0, 1.0, 1.0, 1.0]), 0, np.array([0.5, 1.0]))
    np.testing.assert_allclose(result[:, 0, 0], [1.5, 4.0])
    assert wrong[1] == 0


# -- onset -----------------------------------------------------------------------------------------


def with_ipr(ipr, times, neurons=1, **rest):
    """A trajectory on 40 sites with these IPRs, (member, time)."""
    ipr = np.asarray(ipr, float)[..., None]
    run = made(np.ones((*ipr.shape[:2], neurons, 40)), times, **rest)
    run.series["ipr"] = np.concatenate([ipr] + [np.full_like(ipr, 0.0)] * (neurons - 1), axis=-1)
    return run


def test_onset_by_hand():
    c = localized_from(40)
    ipr = [
        [c / 2, c / 2, 3 * c / 2, 2 * c],  # half way between the middle records
        [c / 2, 2 * c, c / 2, 3 * c / 2],  # it left again: only the last time counts
        [c / 2, c / 2, c / 2, c],  # at the threshold is not above it
        [2 * c, c, 2 * c, c / 2],  # not localized in the end
        [2 * c, 2 * c, 2 * c, 2 * c],  # from the first record on
        [np.nan, 2 * c, 2 * c, 2 * c],  # a field of zeros is not localized
    ]
    expected = np.array([2.0, 4.5, np.nan, np.nan, 0.0, 0.5])
    times = np.array([0.0, 1.0, 3.0, 6.0])
    for neurons in (1, 3):  # one localized neuron is enough
        np.testing.assert_allclose(onset_times(with_ipr(ipr, times, neurons)), expected, rtol=1e-12)
    swept = times * np.arange(1, 7)[:, None]
    np.testing.assert_allclose(
        onset_times(with_ipr(ipr, swept)), expected * np.arange(1, 7), rtol=1e-12
    )


def test_onset_before_the_first_record():
    """The flow begins at 0 with the initial fields, here constant: their IPR is 1/40."""
    c = localized_from(40)
    run = with_ipr([[2 * c, 2 * c]], [0.5, 1.0])
    assert onset_times(run).item() == pytest.approx(0.5 * (c - 1 / 40) / (2 * c - 1 / 40))
    run.initial[:] = np.eye(40)[0]
    assert onset_times(run).item() == 0.0


def test_onset_is_taken_from_the_events():
    c = localized_from(40)
    run = with_ipr([[c / 2, 2 * c]], [0, 1], events={"onset": np.array([0.123])})
    assert onset_times(run).tolist() == [0.123]
    comparison = compare(run, with_ipr([[c / 2, 3 * c / 2]], [0, 1]))
    assert (comparison.onset_first.item(), comparison.onset_second.item()) == (
        0.123,
        pytest.approx(0.5),
    )
    assert comparison.to_dict()["onset_difference"] == pytest.approx(0.5 - 0.123)


def test_onset_needs_no_weights_but_something():
    run = with_ipr([[0.0, 1.0]], [0, 1])
    del run.series["weights"]
    assert onset_times(run).item() == pytest.approx(localized_from(40))
    del run.series["ipr"]
    with pytest.raises(lf.InputError, match="`weights` was not recorded"):
        onset_times(run)


# -- peaks -----------------------------------------------------------------------------------------


def test_peaks_around_the_ring():
    first = spikes([0, 0, 9, 0, 2, 7], (10,))
    second = spikes([9, 8, 0, 5, 2, 4], (10,))
    comparison = compare(first, second)
    assert comparison.peak_distance[:, 0].tolist() == [1, 2, 1, 5, 0, 3]
    assert (comparison.exact, comparison.within_one) == (1 / 6, 3 / 6)
    assert comparison.peak_first[:, 0].tolist() == [0, 0, 9, 0, 2, 7]
    assert comparison.by_chance == (0.1, 0.3)


def test_peaks_around_a_torus():
    first = spikes([(0, 0), (0, 0), (3, 5), (1, 1), (2, 2)], (4, 6))
    second = spikes([(3, 5), (3, 4), (3, 5), (3, 1), (2, 5)], (4, 6))
    comparison = compare(first, second)
    assert comparison.peak_distance[:, 0].tolist() == [
        1,
        2,
        0,
        2,
        3,
    ]  # the largest of the axes, not their sum
    assert (comparison.exact, comparison.within_one) == (0.2, 0.4)
    assert comparison.peak_first.shape == (5, 1, 2) and comparison.by_chance == (1 / 24, 9 / 24)


@pytest.mark.parametrize("shape", ((7,), (8,), (5, 6), (2, 3)), ids=str)
def test_peaks_that_know_nothing_of_each_other(shape):
    """Over all displacements the agreement is exactly the one by chance."""
    every = list(np.ndindex(*shape))
    comparison = compare(spikes([every[0]] * len(every), shape), spikes(every, shape))
    assert (comparison.exact, comparison.within_one) == pytest.approx(comparison.by_chance)


@pytest.mark.parametrize("shift", (-3, -2, -1, 0, 1, 2, 3))
def test_a_peak_moved_by_two_is_not_within_one(rng, shift):
    fields = rng.normal(size=(5, 2, 3, 11))
    comparison = compare(made(fields, [0, 1]), made(np.roll(fields, shift, axis=-1), [0, 1]))
    assert (comparison.peak_distance == abs(shift)).all() and comparison.peak_distance.shape == (
        5,
        3,
    )
    assert (comparison.exact, comparison.within_one) == (float(shift == 0), float(abs(shift) <= 1))


def test_the_peak_is_that_of_the_final_field_of_either_sign():
    early, late = np.eye(6)[0], -np.eye(6)[3]
    moves = made(np.stack([early, late])[None, :, None], [0, 1])
    assert (
        compare(moves, made(np.stack([early, early])[None, :, None], [0, 1])).peak_distance.item()
        == 3
    )
    assert compare(moves, made(np.stack([early, -late])[None, :, None], [0, 1])).exact == 1.0


def test_zeros_have_no_peak():
    comparison = compare(
        spikes([0, 0], (6,)),
        made(np.stack([np.zeros((2, 1, 6)), np.tile(np.eye(6)[1], (2, 1, 1))]), [0, 1]),
    )
    assert np.isnan(comparison.peak_distance[0, 0]) and comparison.peak_distance[1, 0] == 1
    assert (comparison.exact, comparison.within_one, comparison.to_dict()["peaks"]) == (0.0, 1.0, 1)
    assert np.isnan(comparison.per_member()["exact"][0])


# -- summaries -------------------------------------------------------------------------------------


def test_members_that_ended_badly_are_left_out(rng):
    fields = rng.normal(size=(4, 3, 2, 8))
    other = fields * 1.1
    fields[1, 1:] = np.nan
    other[2, -1] = np.inf
    first = made(fields, [0, 1, 2], (OK, Outcome("non-finite", 7), OK, OK))
    second = made(other, [0, 1, 2], (OK, OK, Outcome("diverged", 2), OK))
    comparison = compare(first, second)
    summary = comparison.to_dict()
    assert comparison.ok.tolist() == [True, False, False, True]
    assert (summary["members"], summary["left_out"], summary["peaks"], summary["peaks_exact"]) == (
        2,
        2,
        4,
        1.0,
    )
    for name in ("distance_start", "distance_end", "distance_largest"):
        assert summary[name] == pytest.approx(0.1)
    assert "left out: 2 members" in repr(comparison)
    none = compare(dataclasses.replace(first, outcome=(Outcome("diverged", 1),) * 4), second)
    assert none.to_dict()["peaks_exact"] is None and none.to_dict()["distance_end"] is None
    assert "0 members × 2 neurons" in repr(none)


def test_summary_is_plain_and_right(rng):
    first, second = (made(rng.normal(size=(5, 4, 2, 8)), [0, 1, 2, 3]) for _ in range(2))
    comparison = compare(first, second)
    summary = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert summary["distance_end"] == np.median(comparison.distance[:, -1])
    assert summary["distance_largest"] == np.median(comparison.distance.max(axis=1))
    assert summary["cosine_smallest"] == np.median(comparison.cosine.min(axis=1))
    assert summary["ipr_second"] == np.median(inverse_participation_ratio(second.final, 1))
    assert (summary["members"], summary["neurons"], summary["records"]) == (5, 2, 4)
    assert summary["peaks_within_one"] == np.mean(comparison.peak_distance <= 1)
    members = comparison.per_member()
    assert {values.shape for values in members.values()} == {(5,)}
    np.testing.assert_allclose(members["cosine"], comparison.cosine[:, -1].mean(axis=1))
    np.testing.assert_allclose(members["within_one"], (comparison.peak_distance <= 1).mean(axis=1))


def test_onsets_are_counted_and_subtracted():
    c = localized_from(40)
    low, late, early = (
        [c / 2, c / 2, 3 * c / 2],
        [c / 2, c / 2, 3 * c / 2],
        [c / 2, 3 * c / 2, 3 * c / 2],
    )
    never = [c / 2] * 3
    first, second = (
        with_ipr([low, early, never, late], [0, 1, 2]),
        with_ipr([early, early, late, never], [0, 1, 2]),
    )
    summary = compare(first, second).to_dict()
    assert [summary[f"localized_{name}"] for name in ("first", "second", "both")] == [3, 3, 2]
    assert summary["onset_first"] == pytest.approx(1.5) and summary[
        "onset_second"
    ] == pytest.approx(0.5)
    assert summary["onset_difference"] == pytest.approx(-0.5)  # of −1 and 0


TRAINED = {"method": {"type": "method/training", "steps": 3}}


def solved(theory):
    return {"method": {"type": "method/solution", "theory": {"type": f"theory/{theory}"}}}


def test_repr_says_it_in_a_few_lines(rng):
    fields = rng.normal(size=(4, 2, 1, 40))
    text = repr(
        compare(
            made(fields, [0, 2], **TRAINED),
            made(fields, [0, 2], **solved("mine")),
        )
    )
    assert text.startswith(
        "Comparison: training and mine theory, 4 members × 1 neurons on (40,), 2 records, flow time 0 … 2"
    )
    assert "4 of 4 on the same site, 4 within ±1 (by chance 0.1 and 0.3)" in text
    assert len(text.splitlines()) <= 9 and max(len(line) for line in text.splitlines()) <= 130


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (TRAINED, solved("exact-ising"), ("training", "exact-ising theory")),
        (TRAINED, TRAINED, ("training (first)", "training (second)")),
        ({}, {}, ("first", "second")),
    ],
)
def test_names(first, second, names):
    fields = np.ones((1, 1, 1, 4))
    assert compare(made(fields, [0], **first), made(fields, [0], **second)).names == names


# -- mistakes --------------------------------------------------------------------------------------

GOOD = made(np.ones((3, 2, 1, 6)), [0, 1])


def without_weights():
    return dataclasses.replace(GOOD, series={"ipr": GOOD.ipr})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            made(np.ones((3, 2, 1, 8)), [0, 1]),
            r"differ in lattice: \(6,\) and \(8,\)\. Train and solve",
        ),
        (made(np.ones((3, 2, 1, 2, 3)), [0, 1]), r"differ in lattice: \(6,\) and \(2, 3\)"),
        (
            made(np.ones((3, 2, 2, 6)), [0, 1]),
            r"differ in the number of neurons: 1 and 2\. Give `solve` the same",
        ),
        (
            made(np.ones((1, 2, 1, 6)), [0, 1]),
            r"the number of members: 3 and 1\. Start `solve` from `initial=run",
        ),
        (
            made(np.ones((3, 2, 1, 6)), [2, 3]),
            r"no flow times in common: member 0 has 0 … 1 and 2 … 3"
            r"\. Solve with `times=run.times`",
        ),
        (
            made(np.ones((3, 2, 1, 6)), [[0, 1], [1.5, 2], [0, 1]]),
            r"member 1 has 0 … 1 and 1\.5 … 2\.",
        ),
        (
            without_weights(),
            r"`sol` has no recorded fields\. Record them",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(other, message):
    with pytest.raises(lf.InputError) as error:
        compare(GOOD, other)
    assert re.match(
        message if message.startswith(("The", "Rec")) else f".*{message}", str(error.value)
    ), str(error.value)
    with pytest.raises(lf.InputError):
        compare(other, GOOD)


def test_something_else_is_refused():
    with pytest.raises(
        lf.InputError,
        match="`sol` must be a Trajectory, as `lf.train` and `lf.solve` return, got 3.",
    ):
        _check(GOOD, 3)
    with pytest.raises(lf.InputError, match="`run` has no recorded fields"):
        compare(without_weights(), GOOD)


# -- pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((9,), kind) for kind in ("plain", "swept", "one", "none ok")]
    + [((4, 6), kind) for kind in ("plain", "none ok")]
    + [((3, 4, 2), "swept")],
    ids=str,
)
def test_every_kind_can_be_drawn(rng, tmp_path, shape, kind):
    members = 1 if kind == "one" else 4
    line = straight(rng, shape, members)
    times = np.linspace(0, 3, 7) * (np.arange(1, members + 1)[:, None] if kind == "swept" else 1)
    first, second = along(line, times), along(line, [0.0, 2.0, 4.0])
    if kind == "none ok":
        first = dataclasses.replace(first, outcome=(Outcome("diverged", 1),) * members)
    path = tmp_path / "comparison.png"
    axes = lf.plots.comparison(first, second, neuron=1, ax=Figure)
    axes.flat[0].figure.savefig(path)
    assert path.stat().st_size > 10_000


def test_the_picture_shows_what_was_compared():
    first, second = (
        spikes([0, 3, 9, 4], (10,), (0.0, 1.0, 2.0)),
        spikes([9, 3, 6, 4], (10,), (0.0, 1.0, 2.0)),
    )
    comparison = compare(first, second)
    fields, agreement, ipr, peaks = lf.plots.comparison(first, second, member=2, ax=Figure).flat
    solid, dashed = fields.lines[1:3]
    assert solid.get_linestyle() == "-" and solid.get_ydata().argmax() == 9
    assert dashed.get_linestyle() == "--" and dashed.get_ydata().argmax() == 6
    np.testing.assert_allclose(
        agreement.lines[0].get_ydata(), np.median(comparison.distance, axis=(0, 2))
    )
    np.testing.assert_allclose(
        agreement.lines[1].get_ydata(), np.median(comparison.cosine, axis=(0, 2))
    )
    assert ipr.lines[0].get_ydata()[0] == localized_from(10)
    assert peaks.collections[-1].get_offsets().tolist() == [[0, 9], [3, 3], [4, 4], [9, 6]]
    assert peaks.get_title("left").endswith("2 of 4 exact, 3 within ±1")


def test_displacements_on_a_torus_go_the_short_way():
    first, second = spikes([(0, 0), (1, 5)], (4, 6)), spikes([(3, 5), (3, 0)], (4, 6))
    *_, peaks = lf.plots.comparison(first, second, ax=Figure).flat
    assert peaks.collections[-1].get_offsets().tolist() == [
        [-1, -1],
        [1, -2],
    ]  # across, down; two of four is as far


def test_it_is_a_value():
    comparison = compare(GOOD, GOOD)
    assert (
        isinstance(comparison, Comparison)
        and comparison == comparison
        and comparison != compare(GOOD, GOOD)
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        comparison.shape = (3,)
