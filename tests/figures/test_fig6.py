"""Figure 6: settings, drawing, and claims that follow from the fields stored."""

import dataclasses

from localfields.figures.base import Results
from localfields.figures.fig6 import FIGURE, ICA, MODELS
from localfields.stimuli import Kur

from .altered import bumps, waves, with_neurons

LIGHT, HEAVY = MODELS


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


BUMPS, WAVES = bumps(range(10), 40), waves(10, 40)


def test_settings_are_the_papers():
    found = FIGURE.experiments("paper")
    for name, k in ((LIGHT, 10.0), (HEAVY, 4.0), (ICA, 3.0)):
        wanted = [Kur((40,), xi=xi, k=k) for xi in (1.0, 3.0)]
        assert [repr(one) for one in found[name].task.stimuli] == list(map(repr, wanted))
    for name in MODELS:
        network, method = found[name].network, found[name].method
        assert (network.hidden, network.activation, network.bias) == (10, "sigmoid", "trained")
        assert network.init_scale == 0.1
        assert (method.learning_rate, method.steps, method.batch) == (100.0, 5000, 1000)
        assert method.estimator == "shared" and method.members >= 5
    assert (found[ICA].method.samples, found[ICA].method.baseline.components) == (100_000, 40)


def test_draws(results):
    axes = [ax for part in FIGURE.draw(results).subfigs for ax in part.get_figure(root=True).axes]
    assert sum(len(ax.collections) > 0 for ax in set(axes)) >= 30


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
