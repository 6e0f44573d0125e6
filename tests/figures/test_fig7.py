"""Figure 7: settings, drawing, and claims that follow from the fields stored."""

import numpy as np

from localfields.figures.fig7 import FIGURE, RATES, TRAINS, at_rate, frequencies
from localfields.stimuli import Kur

from .altered import bumps, waves, with_neurons

SIGMOID, RELU, BARE = "Kur(4), sigmoid", "Kur(30), ReLU", "Kur(30), no output bias"
FAST_WAVES = np.cos(2 * np.pi * 9 * np.arange(40) / 40 + np.arange(10)[:, None])


def row(results, id="M2"):
    return {claim.id: claim for claim in FIGURE.claims(results)}[id]


def test_settings_are_the_papers():
    found = FIGURE.experiments("paper")
    for name, k in ((SIGMOID, 4.0), (RELU, 30.0)):
        wanted = [Kur((40,), xi=xi, k=k) for xi in (1.0, 3.0)]
        assert [repr(one) for one in found[name].task.stimuli] == list(map(repr, wanted))
        network = found[name].network
        assert (network.hidden, network.bias, network.init_scale) == (10, "trained", 0.001)
    assert (found[SIGMOID].network.activation, found[RELU].network.activation) == (
        "sigmoid",
        "relu",
    )
    upper, lower = found[SIGMOID].method, found[RELU].method
    assert (upper.steps, upper.batch, max(upper.learning_rate)) == (5000, 1000, 80.0)
    assert (lower.learning_rate, lower.steps, lower.batch) == (0.5, 2000, 5000)
    # What explains a difference changes one thing: the bias of the output, then the data.
    bare, control = found[BARE], found["Kur(4), no output bias"]
    assert (
        repr(found[RELU].network.replace(bias="hidden"))
        == repr(bare.network)
        == repr(control.network)
    )
    assert found[RELU].task.to_json() == bare.task.to_json()
    assert repr(lower) == repr(bare.method) == repr(control.method)


def test_draws(results):
    figure = FIGURE.draw(results)
    assert sum(len(ax.collections) > 0 for ax in figure.axes) >= 16


def test_members_by_rate(results):
    run = results[SIGMOID]
    for rate in RATES:
        part = at_rate(run, rate)
        np.testing.assert_allclose(
            part.times, np.broadcast_to(rate * run.steps, part.times.shape), rtol=1e-6
        )


def test_frequencies_are_those_of_waves(results):
    found = with_neurons(results, RELU, FAST_WAVES)[RELU]
    np.testing.assert_allclose(frequencies(found), 9, atol=1e-4)


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


def test_the_published_rate_diverges(results):
    # The output's bias alone is multiplied by 1 − 2·80 a step.
    assert all(end.kind != "ok" for end in at_rate(results[SIGMOID], 80.0).outcome)
    assert all(end.kind == "ok" for end in at_rate(results[SIGMOID], TRAINS).outcome)
    assert "80: all diverge" in row(results).reason
