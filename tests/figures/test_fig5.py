"""Figure 5: settings, the noise of its estimator, drawing, and claims that follow from the runs
stored.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import kur_kurtosis, nlgp_kurtosis
from drawn import error_bars, legend, line, lines, ticks, upright

import localfields as lf
from localfields._prng import make_key
from localfields.figures.base import Results
from localfields.figures.fig5 import (
    FAMILIES,
    FIGURE,
    KURS,
    MATCHED,
    NLGPS,
    border,
    experiments,
    half_height,
)
from localfields.plots._style import BLUE, GRAY, GREEN, ORANGE
from localfields.training.estimators import orbit, orbit_extra, sampled

TRAINED = ("nlgp", "kur", "nlgp at kur's kurtosis")


def with_ipr(results, curve, shift=0.0, noise=0.0):
    """The same with trained IPRs that follow a curve of kurtosis, Kur's moved to the right,
    starts apart by noise.
    """
    runs = dict(results.runs)
    for name in TRAINED:
        kurtosis = FAMILIES[name].kurtosis - (shift if name == "kur" else 0)
        run = runs[name]
        starts = run.num_members // len(kurtosis)
        ipr = np.repeat(curve(kurtosis), starts) + np.tile(
            noise * np.linspace(-1, 1, starts), len(kurtosis)
        )
        runs[name] = dataclasses.replace(
            run, series={"ipr": np.repeat(ipr[:, None, None], len(run.times), axis=1)}
        )
    return Results(results.scale, runs)


def falling(kurtosis):
    """As in the figure: from 1 to 0.03 around −0.6."""
    return 0.03 + 0.97 / (1 + np.exp((kurtosis + 0.6) / 0.08))


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    result = experiments("paper")
    values = {
        "nlgp": (np.geomspace(0.1, 10, 10), "gain"),
        "kur": ([4.1, 4.3, 4.5, 4.74, 5, 5.4, 6.1, 7.7, 10, 50], "k"),
    }
    for name, (wanted, field) in values.items():
        one = result[name]
        assert one.task.shape == (40,) and one.network.init_scale == 0.001
        assert [stimulus.xi for stimulus in one.task.stimuli] == [0.3, 0.7]
        for stimulus in one.task.stimuli:
            np.testing.assert_allclose(getattr(stimulus, field), np.repeat(wanted, 30))
        method = one.method
        assert (method.learning_rate, method.steps, method.members) == (0.1, 10_000, 300)
        assert method.seed == result[f"{name}, theory"].method.seed
        assert result[f"{name}, theory"].method.times[-1] == 1000


def test_kurtosis_is_exact_and_matched():
    np.testing.assert_allclose(
        KURS.kurtosis[[4, 8]], [1.2853, -0.9299], atol=1e-4
    )  # Kur(5) and Kur(10)
    assert (np.diff(NLGPS.kurtosis) < 0).all() and NLGPS.kurtosis[0] < 0 and NLGPS.kurtosis[-1] > -2
    np.testing.assert_allclose(MATCHED.kurtosis, KURS.kurtosis[KURS.kurtosis < 0], rtol=1e-3)
    assert round(border(), 2) == -0.11


def variance(estimate, task, weights, counts, repeats):
    network = lf.networks.SingleNeuron()
    extra = orbit_extra(task, network) if estimate is orbit else None
    extra = jax.tree.map(lambda leaf: jnp.asarray(leaf, weights.dtype), extra)

    def one(key):
        return estimate(task, network, extra, {"weights": weights}, key, counts)[1][
            "weights"
        ].ravel()

    keys = jax.random.split(make_key(7), repeats)
    result = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(keys), np.float64)
    return result.var(axis=0, ddof=1).sum()


@pytest.mark.parametrize(
    ("family", "value"), [(NLGPS, 0.1), (KURS, 4.1)], ids=["NLGP(0.1)", "Kur(4.1)"]
)
def test_the_gradient_is_no_noisier_than_the_papers(family, value):
    """At the value of each family that asks for most draws; a quarter of them would not do."""
    model, field = (lf.stimuli.Kur, "k") if family is KURS else (lf.stimuli.NLGP, "gain")
    task = lf.Discrimination(*(model((40,), xi=xi, **{field: value}) for xi in (0.3, 0.7)))
    smooth = np.exp(-((np.minimum(np.arange(40), 40 - np.arange(40)) / 2) ** 2))
    noise = np.random.default_rng(5).normal(size=40)
    weights = jnp.asarray(
        np.fft.ifft(np.fft.fft(noise) * np.fft.fft(smooth)).real[None] * 0.05, jnp.float32
    )
    half = family.samples // 2
    ours = variance(orbit, task, weights, (half, half), 1500)
    papers = variance(sampled, task, weights, (2500, 2500), 150)
    assert ours < papers
    assert variance(orbit, task, weights, (half // 4, half // 4), 1500) > papers


def final(results, name):
    """IPR of every start at the end, (value, start)."""
    values = FAMILIES[name.removesuffix(", theory")].values
    return results[name].ipr[:, -1, 0].astype(float).reshape(len(values), -1)


@pytest.fixture(scope="module")
def apart(results):
    """Runs in which families differ, and in which starts of one value do."""
    return with_ipr(results, falling, shift=0.2, noise=0.05)


@pytest.fixture(scope="module")
def panels(apart):
    return FIGURE.draw(apart).axes


@pytest.mark.parametrize(
    ("family", "color", "label"), [("nlgp", BLUE, "NLGP"), ("kur", ORANGE, "Kur")]
)
def test_every_family_is_drawn_at_its_own_kurtosis(apart, panels, family, color, label):
    exact = {"nlgp": nlgp_kurtosis, "kur": kur_kurtosis}[family]
    kurtosis = np.array([exact(value) - 3 for value in FAMILIES[family].values])
    ipr = final(apart, family)
    mean, deviation = ipr.mean(axis=1), ipr.std(axis=1, ddof=1)
    theory = final(apart, f"{family}, theory").mean(axis=1)
    order = np.argsort(kurtosis)
    inside, outside = order[kurtosis[order] <= 4], order[kurtosis[order] > 4]
    main, beyond, near = panels
    for ax in (main, near):
        ((_, drawn_in, x, y, low, high),) = (bar for bar in error_bars(ax) if bar[0] == label)
        assert drawn_in == color
        np.testing.assert_allclose(x, kurtosis[inside])
        np.testing.assert_allclose(y, mean[inside])
        np.testing.assert_allclose(high - low, 2 * deviation[inside])
        np.testing.assert_allclose((high + low) / 2, mean[inside])
        np.testing.assert_allclose(
            line(ax, f"ours: {label}, effective flow"), [kurtosis[inside], theory[inside]]
        )
    (starts,) = lines(near, color, marker=".")
    np.testing.assert_allclose(starts, [np.repeat(kurtosis, ipr.shape[1]), ipr.ravel()])
    tail = [bar for bar in error_bars(beyond) if bar[1] == color]
    assert len(outside) == (3 if family == "kur" else 0)
    np.testing.assert_allclose(tail[0][3], mean[outside])
    np.testing.assert_allclose(tail[0][5] - tail[0][4], 2 * deviation[outside])
    drawn = [y for _, y in lines(beyond, color, "--")]
    np.testing.assert_allclose(drawn, [theory[outside]] if family == "kur" else [])


def test_nlgp_is_drawn_at_the_kurtosis_of_kur(apart, panels):
    ((_, color, x, y, low, high),) = (bar for bar in error_bars(panels[2]) if "at the" in bar[0])
    ipr = final(apart, "nlgp at kur's kurtosis")
    kurtosis = np.array([kur_kurtosis(k) - 3 for k in KURS.values])
    assert color == GREEN
    np.testing.assert_allclose(x, kurtosis[kurtosis < 0], rtol=1e-3)
    np.testing.assert_allclose(y, ipr.mean(axis=1))
    np.testing.assert_allclose(high - low, 2 * ipr.std(axis=1, ddof=1))


def test_axes_and_words(panels):
    main, beyond, near = panels
    assert main.get_xlim() == (-2.1, 4.15) and near.get_xlim() == (-1.35, 0.2)
    assert ticks(beyond.xaxis) == ([0, 1, 2], ["4.1", "7.8", "26"])
    assert {upright(ax, GRAY, ":") for ax in (main, near)} == {border()}
    assert legend(main) == {
        "NLGP": BLUE.lower(),
        "Kur": ORANGE.lower(),
        "ours: NLGP, effective flow": BLUE.lower(),
        "ours: Kur, effective flow": ORANGE.lower(),
        "ours: below it, theory lets a flat field fall apart": GRAY,
    }
    assert legend(near) == {"ours: NLGP at the kurtosis of Kur": GREEN.lower()}
    assert "orbit" in FIGURE.setting("paper") and "30 starts" in FIGURE.setting("paper")


def test_claims_follow_from_runs(results):
    assert set(verdicts(results)) == {"L3", "L3b"}
    assert verdicts(with_ipr(results, falling)) == {"L3": "reproduced", "L3b": "reproduced"}
    assert verdicts(with_ipr(results, falling, shift=0.3)) == {"L3": "reproduced", "L3b": "differs"}
    assert verdicts(with_ipr(results, falling, noise=0.2))["L3"] == "differs"
    assert verdicts(with_ipr(results, lambda kurtosis: falling(kurtosis - 1)))["L3"] == "differs"
    assert verdicts(with_ipr(results, lambda kurtosis: falling(kurtosis + 1)))["L3"] == "differs"


def test_half_height():
    kurtosis = np.array([1.0, -2.0, 0.0, -1.0])
    assert half_height(kurtosis, np.array([0.1, 0.9, 0.2, 0.8])) == pytest.approx(-0.5)
    assert np.isnan(half_height(kurtosis, np.full(4, 0.1)))
