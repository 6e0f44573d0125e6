"""Trajectories: what is read off them, their axes, and how they show themselves."""

import json

import numpy as np
import pytest

import localfields as lf
from localfields.trajectory import Outcome, Trajectory, inverse_participation_ratio, peak_position

# -- measures of a field ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (np.eye(1, 12, 5)[0], 1.0),
        (np.ones(12), 1 / 12),
        (np.cos(2 * np.pi * np.arange(12) / 12 + 0.3), 1.5 / 12),
        (np.array([1.0, 1.0, 0.0, 0.0]), 0.5),
        (np.array([2.0, -1.0]), (16 + 1) / 25),
    ],
)
def test_ipr_by_hand(field, expected):
    for scale in (1.0, -3.0, 1e-200, 1e200):
        assert inverse_participation_ratio(scale * field[None], 1) == pytest.approx(
            expected, rel=1e-13
        )
    np.testing.assert_allclose(
        inverse_participation_ratio(np.stack([field, -field])[None], 1), [[expected] * 2]
    )


def test_ipr_of_float32_is_computed_in_float64():
    tiny = np.array([[1e-30, 2e-30, 0.0]], np.float32)
    assert inverse_participation_ratio(tiny, 1) == pytest.approx((1 + 16) / 25, rel=1e-6)


def test_ipr_of_nothing_is_undefined():
    assert np.isnan(inverse_participation_ratio(np.zeros((2, 4)), 1)).all()


def test_ipr_on_a_torus_is_over_both_axes():
    field = np.zeros((3, 4, 6))
    field[:, 1, 2] = 1.0
    assert inverse_participation_ratio(field, 2).tolist() == [1.0] * 3


def test_peak_is_the_largest_weight_of_either_sign():
    assert peak_position(np.array([[0.1, -0.5, 0.3], [0.1, 0.2, 0.3]]), 1).tolist() == [1, 2]
    field = np.zeros((2, 4, 6))
    field[0, 1, 5], field[1, 3, 0] = -2.0, 1.0
    assert peak_position(field, 2).tolist() == [[1, 5], [3, 0]]


# -- the value -------------------------------------------------------------------------------------

MEMBERS, TIMES, NEURONS, OUTPUTS = 3, 4, 2, 5


def trajectory(shape=(6,), swept=False, bad=False):
    rng = np.random.default_rng(list(shape))
    steps = np.array([0, 10, 20, 25])
    lead = (MEMBERS, TIMES)
    series = {
        "weights": rng.normal(size=(*lead, NEURONS, *shape)),
        "biases": rng.normal(size=(*lead, NEURONS)),
        "readout": rng.normal(size=(*lead, OUTPUTS, NEURONS)),
        "readout_bias": rng.normal(size=(*lead, OUTPUTS)),
        "loss": rng.uniform(size=lead),
        "accuracy": rng.uniform(size=lead),
        "norm": rng.uniform(size=(*lead, NEURONS)),
    }
    rates = np.array([0.1, 0.2, 0.3])
    ok = Outcome("ok", -1)
    return Trajectory(
        steps=steps,
        times=rates[:, None] * steps if swept else 0.1 * steps,
        initial=series["weights"][:, 0],
        final=series["weights"][:, -1],
        series=series,
        outcome=(ok, Outcome("diverged", 7), Outcome("non-finite", 9)) if bad else (ok, ok, ok),
        experiment={"method": {"type": "method/training", "steps": 25}},
        manifest={"precision": "float64"},
    )


def test_properties():
    run = trajectory((4, 6))
    assert (run.shape, run.num_members) == ((4, 6), MEMBERS)
    for name in ("weights", "biases", "readout", "loss", "accuracy"):
        assert getattr(run, name) is run.series[name]
    assert run.ipr.shape == (MEMBERS, TIMES, NEURONS) and run.peak.shape == (
        MEMBERS,
        TIMES,
        NEURONS,
        2,
    )
    np.testing.assert_array_equal(run.ipr, inverse_participation_ratio(run.weights, 2))
    np.testing.assert_array_equal(run.peak, peak_position(run.weights, 2))
    assert trajectory().peak.shape == (MEMBERS, TIMES, NEURONS)


def test_recorded_reductions_are_used_without_weights():
    run = trajectory()
    ipr, peak = run.ipr, run.peak
    del run.series["weights"]
    run.series.update(ipr=ipr, peak=peak)
    assert run.ipr is ipr and run.peak is peak


@pytest.mark.parametrize("name", ("weights", "biases", "readout", "loss", "accuracy"))
def test_what_was_not_recorded_is_refused(name):
    run = trajectory()
    del run.series[name]
    with pytest.raises(lf.InputError, match=f"`{name}` was not recorded. Record it with"):
        getattr(run, name)


def test_ipr_without_weights_is_refused():
    run = trajectory()
    del run.series["weights"]
    for name in ("ipr", "peak"):
        with pytest.raises(lf.InputError, match="`weights` was not recorded"):
            getattr(run, name)


def test_outcome_in_words():
    assert [str(outcome) for outcome in trajectory(bad=True).outcome] == [
        "ok",
        "diverged at step 7",
        "non-finite at step 9",
    ]


@pytest.mark.parametrize("shape", ((6,), (4, 6)), ids=str)
@pytest.mark.parametrize("swept", (False, True))
def test_xarray_has_named_axes(shape, swept):
    run = trajectory(shape, swept, bad=True)
    run.series.update(ipr=run.ipr, peak=run.peak)
    data = run.to_xarray()
    sizes = {"member": MEMBERS, "time": TIMES, "neuron": NEURONS, "output": OUTPUTS}
    space = {"x": 6} if len(shape) == 1 else {"x0": 4, "x1": 6, "coordinate": 2}
    assert dict(data.sizes) == sizes | space
    axes = ("member", "time", "neuron", *[name for name in space if name != "coordinate"])
    assert data.weights.dims == axes and data.initial.dims == data.final.dims == (
        axes[0],
        *axes[2:],
    )
    for name, values in run.series.items():
        np.testing.assert_array_equal(data[name].to_numpy(), values)
    np.testing.assert_array_equal(data.initial.to_numpy(), run.initial)
    np.testing.assert_array_equal(data.final.to_numpy(), run.final)
    assert data.outcome.to_numpy().tolist() == [str(outcome) for outcome in run.outcome]
    np.testing.assert_array_equal(data.step.to_numpy(), run.steps)
    times = data.flow_time if swept else data.time
    np.testing.assert_array_equal(times.to_numpy(), run.times)
    assert times.dims == (("member", "time") if swept else ("time",))
    assert json.loads(data.attrs["experiment"]) == run.experiment
    assert json.loads(data.attrs["manifest"]) == run.manifest
    assert data.attrs["stopped"] == "finished"


def test_repr_says_what_it_is():
    text = repr(trajectory())
    assert text.startswith(
        "Trajectory: 3 members × 4 records × 2 neurons on (6,), flow time 0 … 2.5\n"
    )
    assert "finished, all members ok" in text and "weights (3, 4, 2, 6)" in text
    ipr = inverse_participation_ratio(trajectory().final, 1)
    assert f"final IPR {ipr.mean():.3f} (from {ipr.min():.3f} to {ipr.max():.3f})" in text
    assert "flow time 0 … 7.5" in repr(trajectory(swept=True))
    assert "2 not ok: member 1 diverged at step 7" in repr(trajectory(bad=True))


def test_repr_of_fields_of_zeros():
    run = trajectory()
    run.final[0] = 0
    assert "final IPR 0." in repr(run)
    run.final[:] = 0
    assert "final IPR undefined" in repr(run)
