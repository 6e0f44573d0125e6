"""Figure 7: settings, drawing, and claims that follow from the fields stored."""

import dataclasses

import numpy as np
import pytest
from drawn import ipr, legend, lines, over_time

from localfields.figures.base import Results
from localfields.figures.fig7 import FIGURE, RATES, TRAINS, at_rate, frequencies
from localfields.plots._style import BLUE, ORANGE
from localfields.stimuli import Kur
from localfields.trajectory import Outcome

from .altered import bumps, waves, with_neurons

SIGMOID, RELU, BARE = "Kur(4), sigmoid", "Kur(30), ReLU", "Kur(30), no output bias"
FAST_WAVES = np.cos(2 * np.pi * 9 * np.arange(40) / 40 + np.arange(10)[:, None])


def row(results, id="M2"):
    return {claim.id: claim for claim in FIGURE.claims(results)}[id]


def test_settings_are_the_papers():
    result = FIGURE.experiments("paper")
    for name, k in ((SIGMOID, 4.0), (RELU, 30.0)):
        wanted = [Kur((40,), xi=xi, k=k) for xi in (1.0, 3.0)]
        assert [repr(stimulus) for stimulus in result[name].task.stimuli] == list(map(repr, wanted))
        network = result[name].network
        assert (network.hidden, network.bias, network.init_scale) == (10, "trained", 0.001)
    assert (result[SIGMOID].network.activation, result[RELU].network.activation) == (
        "sigmoid",
        "relu",
    )
    upper, lower = result[SIGMOID].method, result[RELU].method
    assert (upper.steps, upper.batch, max(upper.learning_rate)) == (5000, 1000, 80.0)
    assert (lower.learning_rate, lower.steps, lower.batch) == (0.5, 2000, 5000)
    # What explains a difference changes one thing: the bias of the output, then the data.
    bare, control = result[BARE], result["Kur(4), no output bias"]
    assert (
        repr(result[RELU].network.replace(bias="hidden"))
        == repr(bare.network)
        == repr(control.network)
    )
    assert result[RELU].task.to_json() == bare.task.to_json()
    assert repr(lower) == repr(bare.method) == repr(control.method)


@pytest.fixture(scope="module")
def drawn_rows(results):
    """Rows of the figure with the run of each: second layers are mixed but for one member of
    ours.
    """
    runs = dict(results.runs)
    generator = np.random.default_rng(0)
    for name, run in runs.items():
        readout = np.sign(generator.normal(size=run.readout.shape)) * 0.1
        readout[:, -1, 0, :2] = [0.1, -0.1]
        if name.endswith("no output bias"):
            readout[-1] = 0.1
        runs[name] = dataclasses.replace(run, series={**run.series, "readout": readout})
    figure = FIGURE.draw(Results(results.scale, runs))
    panels = np.reshape(figure.axes[:20], (4, 5))
    order = (SIGMOID, RELU, BARE, "Kur(4), no output bias")
    return [(row, name, runs[name]) for row, name in zip(panels, order, strict=True)]


def test_fields_go_from_the_most_concentrated_to_the_least(drawn_rows):
    labels = [row[0].get_ylabel() for row, _, _ in drawn_rows]
    assert labels == [
        "Kur(4), sigmoid\n(learning rate 0.4)",
        "Kur(30), ReLU\n(M1 as it stands)",
        "ours: Kur(30), ReLU\n(no output bias)",
        "ours: Kur(4), ReLU\n(no output bias)",
    ]
    for row, name, run in drawn_rows:
        # The second of four rates with one seed each; the first seed; of ours, the one with a
        # positive second layer.
        member = {SIGMOID: 1, RELU: 0}.get(name, run.num_members - 1)
        order = np.argsort(-ipr(run.weights[member, -1]))
        for ax, neuron in zip(row[:4], order[[0, 3, 6, 9]], strict=True):
            fields, _, until = over_time(ax)
            np.testing.assert_allclose(fields, run.weights[member, :, neuron], err_msg=name)
            times = run.times[member] if run.times.ndim == 2 else run.times
            assert until == pytest.approx(times[-1])


def test_ratios_are_colored_by_the_sign_of_the_second_layer(drawn_rows):
    for row, name, run in drawn_rows:
        members = run.members(slice(1, 2)) if name == SIGMOID else run
        ax = row[4]
        for positive, color in ((True, ORANGE), (False, BLUE)):
            which = np.flatnonzero((members.readout[:, -1, 0] > 0).all(axis=1) == positive)
            points = np.concatenate([*lines(ax, color), np.empty((2, 0))], axis=1)
            wanted = [(x, m) for m in which for x in ipr(members.weights[m, -1])]
            assert points.shape == (2, len(wanted))
            np.testing.assert_allclose(sorted(points.T.tolist()), sorted(wanted), rtol=1e-6)
        ((threshold, _),) = lines(ax, "black", "--")
        np.testing.assert_allclose(threshold, 4 / 42)
    assert legend(drawn_rows[0][0][4]) == {
        "second layer all positive": ORANGE.lower(),
        "second layer mixed": BLUE.lower(),
        "localization threshold": "#000000",
    }


def test_members_by_rate(results):
    run = results[SIGMOID]
    for rate in RATES:
        part = at_rate(run, rate)
        np.testing.assert_allclose(
            part.times, np.broadcast_to(rate * run.steps, part.times.shape), rtol=1e-6
        )


def test_frequencies_are_those_of_waves(results):
    result = with_neurons(results, RELU, FAST_WAVES)[RELU]
    np.testing.assert_allclose(frequencies(result), 9, atol=1e-4)


def test_the_claim_follows_from_the_fields(results):
    most = np.concatenate([bumps(range(7), 40), waves(3, 40)])
    published = with_neurons(with_neurons(results, RELU, most), SIGMOID, FAST_WAVES)
    assert row(published).verdict == "reproduced"
    for name, fields in (
        (RELU, waves(10, 40)),
        (RELU, bumps(range(10), 40)),
        (SIGMOID, bumps(range(10), 40)),
    ):
        assert row(with_neurons(published, name, fields)).verdict == "differs"
    assert (
        row(with_neurons(published, SIGMOID, waves(10, 40))).verdict == "differs"
    )  # waves, but slow ones
    assert row(with_neurons(published, BARE, waves(10, 40))).reason != row(published).reason


@pytest.mark.slow
def test_the_published_rate_diverges(computed):
    # The output's bias alone is multiplied by 1 − 2·80 a step.
    assert all(end.kind != "ok" for end in at_rate(computed[SIGMOID], 80.0).outcome)
    assert all(end.kind == "ok" for end in at_rate(computed[SIGMOID], TRAINS).outcome)
    assert "80: all diverge" in row(computed).reason


def test_rates_at_which_all_diverge_are_named(results):
    run = results[SIGMOID]
    each = run.num_members // len(RATES)
    ends = (Outcome("ok", -1),) * (3 * each) + (Outcome("diverged", 7),) * each
    diverged = dataclasses.replace(run, outcome=ends)
    altered = Results(results.scale, {**results.runs, SIGMOID: diverged})
    assert "80: all diverge" in row(altered).reason
    assert "80: all diverge" not in row(results).reason
