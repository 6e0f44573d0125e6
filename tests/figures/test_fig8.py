"""Figure 8: settings, drawing, and a claim that follows from the fields stored."""

import numpy as np

from localfields.figures.fig8 import FIGURE, GAUSSIAN, SHARP, bump_at, experiments, shown, task

from .altered import bumps, waves, with_fields


def test_settings_are_the_papers():
    paper = experiments("paper")
    sharp, gaussian = (paper[f"NLGP({gain:g}): training"] for gain in (SHARP, GAUSSIAN))
    for experiment, gain in ((sharp, 100.0), (gaussian, 0.01)):
        assert experiment.task.shape == (100,) and experiment.network.init_scale == 0.001
        assert [one.xi for one in experiment.task.stimuli] == [0.3, 0.7]
        assert [one.gain for one in experiment.task.stimuli] == [gain, gain]
        assert experiment.method.every == 100
    assert (sharp.method.learning_rate, sharp.method.steps) == (0.01, 10_000)
    assert (gaussian.method.learning_rate, gaussian.method.steps) == (0.05, 5000)


def test_same_starts(results):
    for name, run in results.items():
        np.testing.assert_array_equal(
            run.initial, results["NLGP(100): training"].initial, err_msg=name
        )


def test_draws(results):
    figure = FIGURE.draw(results)
    titles = [ax.get_title() for ax in figure.axes]
    assert {"IPR", "error", "IPR, zoomed in"} <= set(titles)
    assert sum(title.split("\n")[0] in ("before", "during", "after") for title in titles) == 3


def test_rows_are_the_first_right_and_the_first_wrong():
    assert shown(np.array([0, 9, 1, 0, 5, 0])) == [0, 2, 1, 3]
    assert shown(np.array([0, 0, 1, 0, 0])) == [0, 1, 2, 3]
    assert shown(np.array([7, 7])) == [0, 1]


def growing(size, sites, late):
    """From waves to a bump at each site, in five records; `late` delays it."""
    part = np.clip((np.linspace(0, 1, 5) - late) * 3, 0, 1)[None, :, None]
    return (1 - part) * 0.3 * waves(len(sites), size)[:, None] + part * bumps(sites, size)[:, None]


def test_the_claim_follows_from_fields(results):
    def claim(results):
        return FIGURE.claims(results)[0]

    assert claim(results).id == "A1"
    sites = [4, 30]
    for kind, late in (("training", 0.1), ("eq. (5)", 0.4)):
        results = with_fields(results, f"NLGP(100): {kind}", growing(40, sites, late))
        results = with_fields(results, f"NLGP(0.01): {kind}", waves(2, 40))
    assert claim(results).verdict == "reproduced" and "wrong site 0 of 2" in claim(results).measured
    astray = with_fields(results, "NLGP(100): eq. (5)", growing(40, [4, 15], 0.4))
    assert "wrong site 1 of 2" in claim(astray).measured
    flat = with_fields(results, "NLGP(100): eq. (5)", waves(2, 40))
    assert claim(flat).verdict == "differs" and "localized in both 0 of 2" in claim(flat).measured
    apart = with_fields(results, "NLGP(0.01): eq. (5)", -waves(2, 40))
    assert claim(apart).verdict == "differs"
    early = with_fields(results, "NLGP(100): eq. (5)", -growing(40, sites, 0.4))
    assert claim(early).verdict == "differs"


def test_bump_sits_where_the_field_does():
    field = -0.7 * np.eye(100)[33]
    bump = bump_at(field)
    assert np.abs(bump).argmax() == 33 and bump[33] < 0
    # Its condition: half the labelled class's covariance is what both classes' covariances make of it.
    first, second = (np.fft.fft(one.covariance()).real for one in task(SHARP).stimuli)
    np.testing.assert_allclose(
        np.fft.fft(-bump) * (first + second), np.fft.fft(np.eye(100)[33]) * second, atol=1e-9
    )
