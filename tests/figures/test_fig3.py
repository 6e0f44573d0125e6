"""Figure 3: settings, drawing, and claims that follow from the fields stored."""

import pytest

from localfields.figures.fig3 import FIGURE, ROWS, trained
from localfields.stimuli import NLGP, Ising, Kur

from .altered import bumps, waves, with_fields

KINDS = ("training", "Taylor", "exact φ", "best")


@pytest.fixture(scope="module")
def as_published(results):
    """Bumps on Ising data, and waves on the others, in training and theory alike."""
    found = results
    for name in ROWS:
        for kind in KINDS:
            found = with_fields(
                found, f"{name}: {kind}", bumps([3, 30], 40) if name == "Ising" else waves(2, 40)
            )
    return found


def verdicts(results):
    return {claim.id: claim.verdict for claim in FIGURE.claims(results)}


def test_settings_are_the_papers():
    for name, first, second in (
        ("Ising", Ising((40,), coupling=0.3), Ising((40,), coupling=0.7)),
        ("NLGP(0.01)", NLGP((40,), xi=1.0, gain=0.01), NLGP((40,), xi=3.0, gain=0.01)),
        ("Kur(5)", Kur((40,), xi=1.0, k=5.0), Kur((40,), xi=3.0, k=5.0)),
    ):
        experiment = trained(name, "paper")
        assert [repr(one) for one in experiment.task.stimuli] == [repr(first), repr(second)]
        method = experiment.method
        assert (method.learning_rate, method.steps, method.every) == (0.05, 2000, 10)
        assert experiment.network.init_scale == 0.001
    assert (trained("Ising", "paper").method.estimator, trained("Ising", "paper").method.batch) == (
        "independent",
        500,
    )


def test_all_start_from_one_field(results):
    starts = {
        name: run.initial[0].tobytes() for name, run in results.items() if name.endswith("training")
    }
    assert len(set(starts.values())) == 1
    for name, run in results.items():
        assert abs(run.initial - results["Ising: training"].initial).max() == 0, name


def test_draws_and_says_what_it_is(results):
    figure = FIGURE.draw(results)
    titles = {ax.get_title() for ax in figure.axes}
    assert {"marginal", "training", "eq. (5), Taylor φ", "ours: exact flow"} <= titles
    assert any(
        "κ = 4.2853\n(paper 3.86)" in text.get_text() for ax in figure.axes for text in ax.texts
    )
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
