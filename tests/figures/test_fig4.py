"""Figure 4: settings, drawing, and claims that follow from the fields stored."""

import numpy as np
import pytest

from localfields.figures.fig4 import FIGURE, LAWS, centered, experiments, fit_sinusoid
from localfields.stimuli import EllipticalExtreme, EllipticalShell, StudentT

from .altered import bumps, with_fields

SITES = np.arange(40)
WAVE = np.cos(2 * np.pi * SITES / 40 + 1)
# Orthogonal to every wave of one period with offset, and nowhere near any other.
NOISE = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0][0]
NOISE = NOISE - NOISE.mean() - (NOISE @ WAVE) * WAVE / (WAVE @ WAVE)
NOISE /= np.linalg.norm(NOISE)


def noisy(field, percent):
    """A field and noise, of which the fit of a sinusoid leaves about so many percent."""
    share = np.asarray(percent)[..., None] / 100
    return field / np.linalg.norm(field) * np.sqrt(1 - share**2) + share * NOISE


def fields(results, name, shape, percent):
    """Records of one field whose error goes to and fro between 0.7 and 1.3 times so many percent."""
    run = results[name]
    over = percent * (1 + 0.3 * np.cos(np.pi * np.arange(len(run.times))))
    scale = 0.2 if name.startswith("t") else 0.04 * np.sqrt(40)
    return with_fields(
        results, name, np.repeat(scale * noisy(shape, over)[None], run.num_members, axis=0)
    )


@pytest.fixture(scope="module")
def as_published(results):
    for name, law in LAWS.items():
        shape = WAVE if name == "t" else -np.ones(40)
        results = fields(results, name, shape, law.published)
        results = fields(results, f"{name}, fewer draws", shape, 3 * law.published)
    return results


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    found = experiments("paper")
    for name, model, rate, steps, batch in (
        ("t", StudentT, 0.01, 10_000, 50_000),
        ("shell", EllipticalShell, 0.05, 5000, 10_000),
        ("extreme", EllipticalExtreme, 0.05, 5000, 10_000),
    ):
        one = found[name]
        assert all(type(stimulus) is model for stimulus in one.task.stimuli)
        assert [stimulus.xi for stimulus in one.task.stimuli] == [1.0, 3.0]
        assert one.task.shape == (40,) and one.network.init_scale == 0.001
        method = one.method
        assert (method.learning_rate, method.steps, method.batch) == (rate, steps, batch)
        assert method.estimator == "independent"
        # The prediction is for the same times, and has the same starts.
        assert found[f"{name}, predicted"].method.times[-1] == pytest.approx(rate * steps)
        assert found[f"{name}, predicted"].method.seed == method.seed
    assert [stimulus.nu for stimulus in found["t"].task.stimuli] == [3.0, 3.0]


def test_training_and_prediction_start_alike(results):
    for name in LAWS:
        np.testing.assert_array_equal(
            results[name].initial[0], results[f"{name}, predicted"].initial[0]
        )


def test_draws(results):
    figure = FIGURE.draw(results)
    titles = [ax.get_title() for ax in figure.axes]
    for law in LAWS.values():
        assert any(law.title in title and f"{law.published}" in title for title in titles)
    assert "independent" in FIGURE.setting("paper") and "50,000" in FIGURE.setting("paper")


def test_claims_follow_from_fields(results, as_published):
    assert set(verdicts(results)) == {"E1", "E1b"}
    assert verdicts(as_published) == {"E1": "reproduced", "E1b": "reproduced"}
    clean = fields(as_published, "shell", -np.ones(40), 0.1)
    assert verdicts(clean) == {"E1": "differs", "E1b": "reproduced"}
    bump = with_fields(as_published, "extreme", bumps([3] * results["extreme"].num_members, 40))
    assert verdicts(bump) == {"E1": "differs", "E1b": "reproduced"}
    constant = fields(as_published, "t", np.ones(40), LAWS["t"].published)
    assert verdicts(constant)["E1b"] == "differs"
    strong = fields(as_published, "shell", -WAVE, LAWS["shell"].published)
    assert verdicts(strong)["E1b"] == "differs"


def test_what_counts_as_a_wave_about_zero():
    assert centered(
        fit_sinusoid([WAVE, WAVE + 2, np.cos(2 * np.pi * 3 * SITES / 40)])
    ).tolist() == [True, False, False]
