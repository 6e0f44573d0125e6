"""Metrics along trajectories, and populations in hand-made ones, told from noise."""

import json
import re

import numpy as np
import pytest

from localfields import InputError, analysis
from localfields.analysis import METRICS, measure, metric, populations
from localfields.analysis.metrics import require_trajectory
from localfields.trajectory import Outcome, Trajectory

X = np.arange(40)


def made(weights, biases=None, outcome=None, times=None, recorded=True):
    """A trajectory of fields (member, time, neuron, *shape)."""
    weights = np.asarray(weights, float)
    num = weights.shape[1]
    series = {"weights": weights} if recorded else {}
    return Trajectory(
        steps=10 * np.arange(num),
        times=np.arange(num) / 2 if times is None else times,
        initial=weights[:, 0],
        final=weights[:, -1],
        series=series if biases is None else {**series, "biases": biases},
        outcome=outcome or (Outcome("ok", -1),) * len(weights),
        experiment={},
        manifest={},
    )


def bump(center, width=1.5):
    return np.exp(-(((X - center + 20) % 40 - 20) ** 2) / 2 / width**2)


def wave(frequency, phase=0.0):
    return np.cos(2 * np.pi * frequency * X / 40 + phase)


@pytest.fixture
def two(rng):
    """One member: eight bumps side by side, most biases negative; four waves, positive; noise
    twice; zeros.
    """
    fields = [bump(c) for c in range(0, 40, 5)] + [wave(k, 1) for k in (0, 3, 8, 20)]
    noise = rng.normal(size=(2, 40))
    fields = np.stack([*fields, *noise, np.zeros(40)])
    biases = np.array([-1.0] * 7 + [0.5] + [2.0] * 4 + [np.nan] * 3)
    return made(
        np.stack([rng.normal(size=(15, 40)), fields])[None], np.stack([np.zeros(15), biases])[None]
    )


def test_two_populations(two):
    sorted_neurons = populations(two)
    assert sorted_neurons.localized[0].tolist() == [True] * 8 + [False] * 7
    assert sorted_neurons.oscillatory[0].tolist() == [False] * 8 + [True] * 4 + [False] * 3
    assert sorted_neurons.neither.sum() == 3
    assert sorted_neurons.frequency[0, 8:12].tolist() == [0, 3, 8, 20]
    np.testing.assert_allclose(sorted_neurons.position[0, :8], range(0, 40, 5), atol=1e-9)
    assert np.isnan(sorted_neurons.ipr[0, -1]) and np.isnan(sorted_neurons.position[0, -1])
    assert sorted_neurons.tiling.num.tolist() == [8]
    summary = sorted_neurons.to_dict()
    assert summary == {
        "members": 1,
        "neurons": 15,
        "localized": 8,
        "bias_localized": -1.0,
        "bias_localized_negative": 7,
        "bias_localized_positive": 1,
        "oscillatory": 4,
        "bias_oscillatory": 2.0,
        "bias_oscillatory_negative": 0,
        "bias_oscillatory_positive": 4,
        "neither": 3,
        "bias_neither": None,
        "bias_neither_negative": None,
        "bias_neither_positive": None,
        "covered": pytest.approx(24 / 40),  # three sites each are above half of the peak
        "covered_by_chance": pytest.approx(1 - (1 - 3 / 40) ** 8),
        # No overlap, where 28 pairs of three sites each share 9/40 by chance, and as a square (9 +
        # 4 + 4 + 1 + 1)/40.
        "evenness": pytest.approx(28 * 9 / 40 / np.sqrt(28 * (19 / 40 - (9 / 40) ** 2))),
    }
    json.dumps(summary)
    assert re.search(r"localized +8   bias -1 \(negative 7, positive 1\)", repr(sorted_neurons))
    assert "cover 60% of the sites" in repr(sorted_neurons) and "more even than by chance" in repr(
        sorted_neurons
    )


def test_noise_is_in_no_population(rng):
    """Of Gaussian noise few fields pass for localized, and hardly one for a wave."""
    sorted_neurons = populations(made(rng.normal(size=(1, 1, 4000, 40))))
    assert sorted_neurons.oscillatory.mean() < 0.01
    assert sorted_neurons.localized.mean() < 0.15 and sorted_neurons.neither.mean() > 0.85


def test_a_few_neighboring_waves_are_oscillatory(rng):
    """Fields of the frequencies 9 to 11, as networks learn them, with random phases and sizes."""
    k = np.arange(9, 12)[:, None]
    waves = np.cos(2 * np.pi * k * X / 40 + rng.uniform(0, 2 * np.pi, (50, 3, 1))) * rng.uniform(
        0.5, 1, (50, 3, 1)
    )
    sorted_neurons = populations(made(waves.sum(axis=1)[None, None]))
    assert (
        not sorted_neurons.neither.any() and sorted_neurons.oscillatory.mean() > 0.8
    )  # where they meet they may be localized
    assert set(sorted_neurons.frequency.ravel()) == {9, 10, 11}


def test_members_that_ended_badly_count_nowhere(two):
    weights = np.concatenate([two.weights, np.full_like(two.weights, np.nan)])
    outcome = (Outcome("ok", -1), Outcome("non-finite", 3))
    sorted_neurons = populations(made(weights, outcome=outcome))
    assert sorted_neurons.to_dict()["members"] == 1 and sorted_neurons.localized.sum(
        axis=1
    ).tolist() == [8, 0]
    assert not sorted_neurons.neither[1].any() and np.isnan(sorted_neurons.bias).all()
    assert "bias" not in repr(sorted_neurons)


def test_without_localized_fields():
    sorted_neurons = populations(made(np.stack([wave(1), wave(2)])[None, None]))
    assert sorted_neurons.to_dict()["covered"] is None and "cover" not in repr(sorted_neurons)


def test_on_a_torus(rng):
    x, y = np.meshgrid(np.arange(10), np.arange(8), indexing="ij")
    fields = np.stack(
        [np.exp(-((x - 4) ** 2 + (y - 3) ** 2) / 2), np.cos(2 * np.pi * (2 * x / 10 + 3 * y / 8))]
    )
    sorted_neurons = populations(made(fields[None, None]))
    assert sorted_neurons.localized.tolist() == [
        [True, False]
    ] and sorted_neurons.oscillatory.tolist() == [[False, True]]
    assert sorted_neurons.frequency[0, 1].tolist() == [2, 3] and sorted_neurons.position.shape == (
        1,
        2,
        2,
    )
    np.testing.assert_allclose(sorted_neurons.position[0, 0], [4, 3], atol=1e-3)


# -- metrics ---------------------------------------------------------------------------------------


def test_measure_is_the_function_at_every_record(two):
    measured = measure(two)
    assert set(measured) == {name for name, metric in METRICS.items() if not metric.slow}
    for name in ("width", "uncertainty", "ipr"):
        assert measured[name].dims == ("member", "time", "neuron")
        direct = METRICS[name].function(two.weights[0, 0], 1)
        np.testing.assert_allclose(measured[name].values[0, 0], direct)
    assert np.isnan(measured["width"].values[0, 1, -1])  # a field of zeros
    assert measured["width"].attrs["long_name"].startswith("Circular standard deviation")
    assert measured["time"].values.tolist() == [0, 0.5] and measured["step"].values.tolist() == [
        0,
        10,
    ]


def test_slow_ones_are_asked_for(two):
    measured = measure(two, "sinusoid_error", "gabor_error")
    assert list(measured) == ["sinusoid_error", "gabor_error"]
    last = measured.isel(member=0, time=1)
    assert (last["sinusoid_error"][8:12] < 1e-9).all() and (last["sinusoid_error"][:8] > 0.3).all()
    assert (last["gabor_error"][:8] < 1e-5).all()


def test_measure_on_a_torus_with_times_of_their_own(rng):
    measured = measure(
        made(rng.normal(size=(2, 3, 1, 6, 6)), times=np.arange(6.0).reshape(2, 3)),
        "position",
        "ipr",
    )
    assert measured["position"].dims == ("member", "time", "neuron", "coordinate")
    assert measured["flow_time"].shape == (2, 3) and measured["time"].values.tolist() == [0, 10, 20]


def test_a_metric_of_ones_own(two):
    @metric(name="largest")
    def anything(fields, axes=1):
        """The largest weight."""
        return np.asarray(fields).max(axis=tuple(range(-axes, 0)))

    try:
        assert METRICS["largest"].help == "The largest weight."
        np.testing.assert_allclose(measure(two, "largest")["largest"].values[0, 1, :8], 1)
        with pytest.raises(InputError, match="two metrics called `width`"):
            metric(anything, name="width")
    finally:
        del METRICS["largest"]
    assert analysis.METRICS is METRICS


def test_a_metric_of_nothing(two):
    """All members diverged."""
    measured = measure(made(np.full((1, 2, 1, 8), np.inf)), "position", "spectral_peak")
    assert np.isnan(measured["position"]).all() and measured["spectral_peak"].shape == (1, 2, 1)


def test_mistakes_are_told(two):
    with pytest.raises(InputError, match="Did you mean 'width'"):
        measure(two, "widht")
    with pytest.raises(InputError, match="a Trajectory"):
        require_trajectory(np.ones(3))
    with pytest.raises(InputError, match="Record it"):
        measure(made(np.ones((1, 1, 1, 8)), recorded=False))
