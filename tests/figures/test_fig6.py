"""Figure 6: settings, drawing, and claims that follow from the fields stored."""

import dataclasses

import numpy as np
from closed_forms import kur_kurtosis
from drawn import ipr, legend, lines, over_time, ticks, upright
from matplotlib.colors import to_hex

from localfields.figures.base import Results
from localfields.figures.fig6 import FIGURE, ICA, MODELS
from localfields.plots._style import BLUE, GREEN, ORANGE
from localfields.stimuli import Kur

from .altered import bumps, waves, with_neurons

LIGHT, HEAVY = MODELS


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


BUMPS, WAVES = bumps(range(10), 40), waves(10, 40)


def test_settings_are_the_papers():
    result = FIGURE.experiments("paper")
    for name, k in ((LIGHT, 10.0), (HEAVY, 4.0), (ICA, 3.0)):
        wanted = [Kur((40,), xi=xi, k=k) for xi in (1.0, 3.0)]
        assert [repr(stimulus) for stimulus in result[name].task.stimuli] == list(map(repr, wanted))
    for name in MODELS:
        network, method = result[name].network, result[name].method
        assert (network.hidden, network.activation, network.bias) == (10, "sigmoid", "trained")
        assert network.init_scale == 0.1
        assert (method.learning_rate, method.steps, method.batch) == (100.0, 5000, 1000)
        assert method.estimator == "shared" and method.members >= 5
    assert (result[ICA].method.samples, result[ICA].method.baseline.components) == (100_000, 40)


def test_fields_are_those_of_the_first_seed(results, figure):
    titles = {}
    groups = figure.subfigs[0].subfigs
    for group, name in zip(groups, (LIGHT, HEAVY, ICA), strict=True):
        run = results[name]
        for neuron, ax in enumerate(group.axes[:10]):
            fields, times, _ = over_time_or_once(ax)
            np.testing.assert_allclose(fields, run.weights[0, :, neuron], err_msg=name)
            np.testing.assert_allclose(times, run.times[: len(times)])
        titles[name] = group.get_suptitle()
    light = f"{kur_kurtosis(10.0) - 3:.2f}".replace("-", "−")
    assert list(titles.values()) == [
        f"{LIGHT}, excess kurtosis {light}",
        f"{HEAVY}, excess kurtosis ∞",
        f"{ICA}, excess kurtosis ∞",
    ]
    bar = groups[1].axes[10]
    assert bar.get_ylabel() == "flow time" and bar.get_ylim()[1] == results[HEAVY].times[-1]


def over_time_or_once(ax):
    """Fields of a panel; those of a fit have no time."""
    (result,) = ax.collections
    fields = np.array([segment[:, 1] for segment in result.get_segments()])
    if len(fields) == 1:
        assert to_hex(result.get_color()[0]) == "#000000"
        return fields, [0.0], 0.0
    return over_time(ax)


def test_every_field_of_every_seed_has_its_ratio(results, figure):
    (ax,) = figure.subfigs[1].axes
    assert ticks(ax.yaxis) == ([0, -1, -2], [LIGHT, HEAVY, ICA]) and ax.get_xscale() == "log"
    assert upright(ax, "black", "--") == 4 / 42 and list(legend(ax)) == ["localization threshold"]
    for place, (name, color) in enumerate(((LIGHT, ORANGE), (HEAVY, BLUE), (ICA, GREEN))):
        run = results[name]
        rows = lines(ax, color)
        assert len(rows) == run.num_members
        heights = [y.mean() + place for _, y in rows]
        assert heights == sorted(heights) and max(np.abs(heights)) < 0.5
        for (x, _), fields in zip(rows, run.weights[:, -1], strict=True):
            np.testing.assert_allclose(x, ipr(fields), rtol=1e-5)


def test_claims_follow_from_the_fields(results):
    published = with_neurons(
        with_neurons(with_neurons(results, LIGHT, BUMPS), HEAVY, WAVES), ICA, BUMPS
    )
    assert verdicts(published) == {"M1": "reproduced", "I1": "reproduced"}
    assert verdicts(with_neurons(published, LIGHT, WAVES)) == {"M1": "differs", "I1": "reproduced"}
    assert verdicts(with_neurons(published, HEAVY, BUMPS)) == {"M1": "differs", "I1": "reproduced"}
    assert verdicts(with_neurons(published, ICA, WAVES)) == {"M1": "reproduced", "I1": "differs"}


def test_a_run_that_went_wrong_is_told(results):
    run = results[HEAVY]
    bad = (dataclasses.replace(run.outcome[0], kind="diverged", step=7), *run.outcome[1:])
    other = Results(results.scale, {**results.runs, HEAVY: dataclasses.replace(run, outcome=bad)})
    assert all("diverged at step 7" in claim.reason for claim in FIGURE.claims(other))
