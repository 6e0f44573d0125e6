"""Figure 3: settings, drawing, and claims that follow from the fields stored."""

import numpy as np
import pytest
from closed_forms import kur_cdf, kur_kurtosis, nlgp_kurtosis, normal_density
from drawn import ipr, legend, line, lines, over_time, words
from scipy.special import erf

from localfields.figures.fig3 import FIGURE, ROWS, trained
from localfields.stimuli import NLGP, Ising, Kur

from .altered import bumps, waves, with_fields

KINDS = ("training", "Taylor", "exact φ", "best")


@pytest.fixture(scope="module")
def as_published(results):
    """Bumps on Ising data, and waves on the others, in training and theory alike."""
    result = results
    for name in ROWS:
        for kind in KINDS:
            result = with_fields(
                result, f"{name}: {kind}", bumps([3, 30], 40) if name == "Ising" else waves(2, 40)
            )
    return result


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    for name, first, second in (
        ("Ising", Ising((40,), coupling=0.3), Ising((40,), coupling=0.7)),
        ("NLGP(0.01)", NLGP((40,), xi=1.0, gain=0.01), NLGP((40,), xi=3.0, gain=0.01)),
        ("Kur(5)", Kur((40,), xi=1.0, k=5.0), Kur((40,), xi=3.0, k=5.0)),
    ):
        experiment = trained(name, "paper")
        assert [repr(stimulus) for stimulus in experiment.task.stimuli] == [
            repr(first),
            repr(second),
        ]
        method = experiment.method
        assert (method.learning_rate, method.steps, method.every) == (0.05, 2000, 10)
        assert experiment.network.init_scale == 0.001
    assert (trained("Ising", "paper").method.estimator, trained("Ising", "paper").method.batch) == (
        "independent",
        500,
    )


@pytest.mark.slow
def test_all_start_from_one_field(computed):
    starts = {
        name: run.initial[0].tobytes()
        for name, run in computed.items()
        if name.endswith("training")
    }
    assert len(set(starts.values())) == 1
    for name, run in computed.items():
        assert abs(run.initial - computed["Ising: training"].initial).max() == 0, name


def test_marginals_and_amplifiers_are_those_of_the_row(figure):
    panels = np.reshape(figure.axes[:18], (3, 6))
    assert [ax.get_ylabel() for ax in panels[:, 0]] == list(ROWS)
    assert [ax.get_title() for ax in panels[0]] == [
        "marginal",
        "amplifier φ",
        "training",
        "eq. (5), Taylor φ",
        "ours: eq. (5), exact φ",
        "ours: exact flow",
    ]
    assert panels[1, 5].get_title() == "ours: normal data"
    atoms, mass = lines(panels[0, 0])[0]
    np.testing.assert_allclose(atoms, [-1, 1])
    np.testing.assert_allclose(mass, 0.5)
    for ax, density in (
        (panels[1, 0], normal_density),  # at gain 0.01 to three digits
        (panels[2, 0], lambda x: (kur_cdf(x + 1e-4, 5.0) - kur_cdf(x - 1e-4, 5.0)) / 2e-4),
    ):
        x, drawn = line(ax, "marginal")
        np.testing.assert_allclose(drawn, density(x), atol=1e-3)
        x, normal = line(ax, "normal")
        np.testing.assert_allclose(normal, normal_density(x), atol=1e-6)
    for ax, kurtosis in zip(
        panels[:, 1],
        (
            "κ = 1.00\n(paper 1.00)",
            f"κ = {nlgp_kurtosis(0.01):.4f}\n(paper 2.99)",
            f"κ = {kur_kurtosis(5.0):.4f}\n(paper 3.86)",
        ),
        strict=True,
    ):
        assert words(ax) == [kurtosis]
        a, normal = line(ax, "normal")
        np.testing.assert_allclose(normal, np.sqrt(2 / np.pi) * a, rtol=1e-12)
        _, taylor = line(ax, "Taylor")
        _, exact = line(ax, "exact")
        small = np.abs(a) < 0.1
        np.testing.assert_allclose(taylor[small], exact[small], atol=2e-4)
        degree = np.polynomial.Polynomial.fit(a, taylor, 3)
        np.testing.assert_allclose(degree(a), taylor, atol=1e-9)
    a, exact = line(panels[0, 1], "exact")
    inner = np.abs(a) < 1
    np.testing.assert_allclose(
        exact[inner], erf(a[inner] / np.sqrt(2 * (1 - a[inner] ** 2))), atol=1e-6
    )
    assert legend(panels[0, 1]) == {"normal": "#999999", "exact": "#000000", "Taylor": "#d55e00"}


def test_flows_are_those_of_the_first_start(results, figure):
    panels = np.reshape(figure.axes[:18], (3, 6))
    for row, name in zip(panels, ROWS, strict=True):
        for ax, kind in zip(row[2:], KINDS, strict=True):
            run = results[f"{name}: {kind}"]
            fields, times, until = over_time(ax)
            np.testing.assert_allclose(fields, run.weights[0, :, 0], err_msg=f"{name}: {kind}")
            np.testing.assert_allclose(times, run.times)
            assert until == pytest.approx(run.times[-1])
            text = f"IPR {ipr(run.weights[0, -1, 0]):.2f}"
            if name == "Ising":
                text += f", peak at {np.abs(run.weights[0, -1, 0]).argmax()}"
            assert words(ax) == [text]
        assert len({ax.get_ylim() for ax in row[2:]}) == 1  # one scale for the row
    assert "batch 20" in FIGURE.setting("tiny") and "orbit" in FIGURE.setting("paper")


def test_claims_follow_from_fields(results, as_published):
    assert set(verdicts(results)) == {"L1", "L2"}
    assert verdicts(as_published) == {"L1": "reproduced", "L2": "reproduced"}
    flat_ising = with_fields(as_published, "Ising: training", waves(2, 40))
    assert verdicts(flat_ising) == {"L1": "differs", "L2": "differs"}
    sharp_kur = with_fields(as_published, "Kur(5): training", bumps([3, 30], 40))
    assert verdicts(sharp_kur) == {"L1": "differs", "L2": "differs"}
    other_theory = with_fields(as_published, "NLGP(0.01): Taylor", bumps([3, 30], 40))
    assert verdicts(other_theory) == {"L1": "reproduced", "L2": "differs"}
