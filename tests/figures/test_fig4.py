"""Figure 4: settings, drawing, and claims that follow from the fields stored."""

import numpy as np
import pytest
from drawn import legend, level, lines, over_time
from scipy.optimize import minimize_scalar

from localfields.figures.fig4 import FIGURE, PANELS, centered, experiments, fit_sinusoid
from localfields.plots._style import BLUE, GREEN, ORANGE
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
    """Records of one field whose error goes to and fro between 0.7 and 1.3 times so many
    percent.
    """
    run = results[name]
    over = percent * (1 + 0.3 * np.cos(np.pi * np.arange(len(run.times))))
    scale = 0.2 if name.startswith("t") else 0.04 * np.sqrt(40)
    return with_fields(
        results, name, np.repeat(scale * noisy(shape, over)[None], run.num_members, axis=0)
    )


@pytest.fixture(scope="module")
def as_published(results):
    for name, panel in PANELS.items():
        shape = WAVE if name == "t" else -np.ones(40)
        results = fields(results, name, shape, panel.published)
        results = fields(results, f"{name}, fewer samples", shape, 3 * panel.published)
    return results


def left_by_best_wave(field):
    """‖w − fit‖/‖w‖ of the best wave with offset, from projections at many frequencies."""

    def left(frequency):
        angle = 2 * np.pi * frequency * SITES / 40
        basis = np.linalg.qr(np.stack([np.cos(angle), np.sin(angle), np.ones(40)], axis=1))[0]
        return np.linalg.norm(field - basis @ (basis.T @ field)) / np.linalg.norm(field)

    grid = np.linspace(0.5, 20, 400)
    best = grid[np.argmin([left(place) for place in grid])]
    return minimize_scalar(left, bounds=(max(best - 0.1, 0.5), best + 0.1), method="bounded").fun


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    result = experiments("paper")
    for name, model, rate, steps, batch in (
        ("t", StudentT, 0.01, 10_000, 50_000),
        ("shell", EllipticalShell, 0.05, 5000, 10_000),
        ("extreme", EllipticalExtreme, 0.05, 5000, 10_000),
    ):
        one = result[name]
        assert all(type(stimulus) is model for stimulus in one.task.stimuli)
        assert [stimulus.xi for stimulus in one.task.stimuli] == [1.0, 3.0]
        assert one.task.shape == (40,) and one.network.init_scale == 0.001
        method = one.method
        assert (method.learning_rate, method.steps, method.batch) == (rate, steps, batch)
        assert method.estimator == "independent"
        # The prediction is for the same times, and has the same starts.
        assert result[f"{name}, predicted"].method.times[-1] == pytest.approx(rate * steps)
        assert result[f"{name}, predicted"].method.seed == method.seed
    assert [stimulus.nu for stimulus in result["t"].task.stimuli] == [3.0, 3.0]


@pytest.mark.slow
def test_training_and_prediction_start_alike(computed):
    for name in PANELS:
        np.testing.assert_array_equal(
            computed[name].initial[0], computed[f"{name}, predicted"].initial[0]
        )


def test_panels_show_the_field_its_fit_and_the_prediction(results, figure):
    for ax, (name, panel) in zip(figure.axes[:3], PANELS.items(), strict=True):
        run, flow = results[name], results[f"{name}, predicted"]
        fields, times, until = over_time(ax)
        np.testing.assert_allclose(fields, run.weights[0, :, 0])
        np.testing.assert_allclose(times, run.times / run.times[-1])
        assert until == 1
        ((x, fit),) = lines(ax, "red", "--")
        ((_, predicted),) = lines(ax, GREEN, "-.")
        np.testing.assert_allclose(predicted, flow.final[0, 0])
        # What the drawn sinusoid leaves of the last field is the number above it.
        field = run.final[0, 0]
        left = np.linalg.norm(field - np.interp(SITES, x, fit)) / np.linalg.norm(field)
        title, error = ax.get_title().split("\n")
        assert title == panel.title and error.endswith(f"(paper {panel.published:.2f} %)")
        assert float(error.split(" %")[0].rpartition(" ")[2]) == pytest.approx(100 * left, abs=0.2)
    assert list(legend(figure.legends[0])) == [
        "field over time (last: dark red)",
        "sinusoid fitted to the end",
        "ours: predicted, no fit",
    ]


def test_errors_of_fits_over_time(as_published):
    """Of both batches, whose errors are put in, and of the flow; each on its own axis of time."""
    figure = FIGURE.draw(as_published)
    for ax, (name, panel) in zip(figure.axes[3:6], PANELS.items(), strict=True):
        assert ax.get_yscale() == "log" and level(ax, "red", "--") == panel.published
        for color, which, percent in (
            (BLUE, name, panel.published),
            (ORANGE, f"{name}, fewer samples", 3 * panel.published),
        ):
            run = as_published[which]
            curves = lines(ax, color)
            assert len(curves) == run.num_members
            for (times, error), fields in zip(curves, run.weights[:, :, 0], strict=True):
                np.testing.assert_allclose(times, run.times[1:])
                two = [left_by_best_wave(field) for field in fields[1:3]]  # they alternate
                np.testing.assert_allclose(error, 100 * np.resize(two, len(error)), rtol=1e-3)
                assert error.max() < 1.3 * percent  # what was put in is one way to fit it
        ((times, error),) = lines(ax, GREEN, "-.")
        flow = as_published[f"{name}, predicted"]
        np.testing.assert_allclose(times, flow.times[1:])
        early = [100 * left_by_best_wave(field) for field in flow.weights[0, 1:3, 0].astype(float)]
        np.testing.assert_allclose(error[:2], early, rtol=1e-3)
    assert legend(figure.axes[5]) == {
        "ours: paper's batch": BLUE.lower(),
        "ours: a tenth of it": ORANGE.lower(),
        "ours: predicted flow": GREEN.lower(),
        "published": "#ff0000",
    }
    assert "independent" in FIGURE.setting("paper") and "50,000" in FIGURE.setting("paper")


def test_claims_follow_from_fields(results, as_published):
    assert set(verdicts(results)) == {"E1", "E1b"}
    assert verdicts(as_published) == {"E1": "reproduced", "E1b": "reproduced"}
    clean = fields(as_published, "shell", -np.ones(40), 0.1)
    assert verdicts(clean) == {"E1": "differs", "E1b": "reproduced"}
    bump = with_fields(as_published, "extreme", bumps([3] * results["extreme"].num_members, 40))
    assert verdicts(bump) == {"E1": "differs", "E1b": "reproduced"}
    constant = fields(as_published, "t", np.ones(40), PANELS["t"].published)
    assert verdicts(constant)["E1b"] == "differs"
    strong = fields(as_published, "shell", -WAVE, PANELS["shell"].published)
    assert verdicts(strong)["E1b"] == "differs"


def test_what_counts_as_a_wave_about_zero():
    assert centered(
        fit_sinusoid([WAVE, WAVE + 2, np.cos(2 * np.pi * 3 * SITES / 40)])
    ).tolist() == [True, False, False]
