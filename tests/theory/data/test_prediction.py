"""`predict` on data: the statistics against closed forms, and verdicts against those of the laws
behind the rows.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest
import scipy.special

import localfields as lf
from localfields.stimuli import (
    NLGP,
    EllipticalShell,
    Gaussian,
    Ising,
    Kur,
    Samples,
    SinglePulse,
    StudentT,
)
from localfields.theory.checks.assumptions import Measured, check_stimulus
from localfields.theory.data import prediction
from localfields.theory.data import rows as _rows
from localfields.theory.data.prediction import POWER, REJECTION_LEVEL, ROWS_PER_SITE
from localfields.theory.data.rows import (
    ROW_GROUPS,
    Measurements,
    flatness,
    hill,
    ising_p,
    neighbor_correlation,
    resamples,
)

SIZE = 16


MOST = 20_000


def rows(stimulus, num, seed=0):
    """The first of as many rows as any test takes: one program for each class of stimuli."""
    with jax.enable_x64(False):
        return Samples(np.asarray(stimulus.sample(seed, MOST))[:num])


def drawn(cls, num, seed=0, **values):
    """A task of rows, from two lengthscales of a law."""
    return lf.Discrimination(
        *(rows(cls((SIZE,), xi=xi, **values), num, seed + c) for c, xi in enumerate((0.5, 1.5)))
    )


@pytest.mark.slow
def test_progress_is_reported():
    said = []
    lf.predict(drawn(Gaussian, 2000), starts=2, on_progress=said.append)
    assert said[:2] == [f"measuring 2,000 rows of class {c} of 2" for c in (1, 2)]
    assert said[2].startswith("following fields on 16 sites, of the rows and of resamples")
    few = lf.Discrimination(*(Samples(scale * np.eye(4)) for scale in (1, 2)))
    said.clear()
    assert lf.predict(few, on_progress=said.append).verdict == "undecided" and said == []


# -- what is measured ------------------------------------------------------------------------------


def test_statistics_are_those_of_the_rows():
    """Covariance, kurtosis and law of weighted groups: as if the rows had been repeated."""
    data = rows(Kur((SIZE,), k=10.0, xi=1.0), 4000)
    found = Measurements(data)
    weights = resamples(1)[0]
    parts = np.split(data.rows.astype(float), found.bounds[1:-1])
    repeated = np.concatenate(
        [part for part, times in zip(parts, weights, strict=True) for _ in range(int(times))]
    )
    centered = repeated - data.site_means()
    wanted = [np.mean(centered * np.roll(centered, d, axis=1)) for d in range(SIZE)]
    np.testing.assert_allclose(found.row(weights), wanted, atol=1e-12)
    np.testing.assert_allclose(
        found.matrix(weights), centered.T @ centered / len(centered), atol=1e-12
    )
    kurtosis = np.mean(centered**4) / np.mean(centered**2) ** 2 - 3
    assert found.kurtosis(weights) == pytest.approx(kurtosis, abs=1e-9)
    assert found.kurtosis(resamples(3)).shape == (3,)
    law = found.marginal(weights)
    assert law.mean == pytest.approx(repeated.mean(), abs=2e-3)
    assert law.variance == pytest.approx(repeated.var(), rel=2e-3)
    exact = lf.theory.Amplifier.of_samples(repeated)
    np.testing.assert_allclose(lf.theory.Amplifier(law)(0.7), exact(0.7), atol=1e-4)


@pytest.mark.parametrize("values", [(-1.0, 1.0), (-2.0, -2.0, 0.5, 3.5)])
def test_laws_of_few_values_stay_atoms(values):
    data = Samples(np.random.default_rng(0).choice(values, (500, 6)))
    found = Measurements(data)
    assert found.discrete and set(found.marginal(found.ones).values) <= set(values)
    assert found.two_valued == (values == (-1.0, 1.0))


@pytest.mark.parametrize("nu", [3.0, 5.0])
def test_hill_finds_the_tail_index(nu):
    """|X|^ν of Pareto values is exact: 1/index is a mean of exponentials."""
    values = np.random.default_rng(1).random(1_000_000) ** (-1 / nu)
    index, error = hill(values)
    assert error == pytest.approx(index / math.sqrt(1000))
    assert abs(index - nu) < 5 * error
    assert hill(np.array([-1.0, 1.0] * 500)) == (math.inf, 0.0)


ELLIPTICAL = {
    "gaussian": Gaussian((SIZE,), xi=1.5),
    "shell": EllipticalShell((SIZE,), xi=1.5),
    "student t": StudentT((SIZE,), xi=1.5, nu=3.0),
}


@pytest.mark.parametrize("name", ELLIPTICAL)
def test_elliptical_rows_look_alike_in_every_direction(name):
    """Chances of true hypotheses are spread evenly: the least of 12 is above the level, and half
    are above a tenth.
    """
    heavy = name == "student t"
    chances = [
        flatness(Measurements(rows(ELLIPTICAL[name], 2000, seed)), heavy).p for seed in range(12)
    ]
    assert min(chances) > REJECTION_LEVEL and np.median(chances) > 0.1


@pytest.mark.parametrize("heavy", [False, True])
def test_other_rows_do_not(heavy):
    """Sites of uniform law: E|X|/σ = √3/2 and E|X|/(E√|X|)² = 9/8, those of sums are nearly a
    normal's.
    """
    found = flatness(Measurements(rows(NLGP((SIZE,), xi=0.3, gain=1 / math.sqrt(2)), 4000)), heavy)
    assert found.p < 1e-12 and found.power > POWER
    one, many = (found.values[found.kinds.index(kind)] for kind in ("site", "constant"))
    scale = scipy.special.gamma(0.75) ** 2 * math.sqrt(2) / math.pi  # (E√|Z|)²
    sixteen = (
        1.2 / 24 / SIZE
    )  # first correction of a sum of sixteen: −κ/24, halved and turned for the other ratio
    wanted = (
        math.log(9 / 8 * scale / math.sqrt(2 / math.pi))
        if heavy
        else math.log(math.sqrt(3) / 2 / math.sqrt(2 / math.pi))
    )
    wanted -= -0.5 * sixteen if heavy else sixteen
    error = math.hypot(*(found.errors[found.kinds.index(kind)] for kind in ("site", "constant")))
    assert abs(one - many - wanted) < 5 * error + 2e-4
    assert abs(one - many) > 10 * error  # the test above could have failed


def test_ising_rings_are_known_by_their_covariance():
    assert ising_p(Measurements(rows(Ising((SIZE,), coupling=0.7), 5000))) > REJECTION_LEVEL
    signs = np.sign(rows(Gaussian((SIZE,), xi=1.5), 5000).rows)
    assert ising_p(Measurements(Samples(signs))) < REJECTION_LEVEL
    assert ising_p(Measurements(rows(Gaussian((SIZE,), xi=1.5), 500))) == 0.0


def test_likeness_of_rows_in_a_row():
    steps = np.random.default_rng(0).normal(size=(4000, 6))
    walk = np.zeros_like(steps)
    for t in range(1, len(steps)):
        walk[t] = 0.8 * walk[t - 1] + steps[t]
    assert neighbor_correlation(steps) < 0.05
    assert neighbor_correlation(walk) == pytest.approx(0.8, abs=0.03)


def test_checks_of_data_take_every_row_once():
    """Drawn with replacement, the z of a true hypothesis would be √2 too large, and its chance
    too small.
    """
    data = rows(Gaussian((SIZE,), xi=1.0), 4000)
    check = check_stimulus(data)
    assert check.num == 4000
    assert check_stimulus(data, num=200).num == 200
    centered = data.rows - data.mean()
    unit = centered / np.sqrt(np.mean(centered**2))
    assert np.mean(unit * np.roll(unit, 1, axis=1)) == pytest.approx(check.correlation[1], abs=5e-3)


# -- verdicts --------------------------------------------------------------------------------------

CASES = {
    "gaussian": (Gaussian, {}),
    "bounded": (NLGP, {"gain": 3.0}),
    "shell": (EllipticalShell, {}),
}


SOME = ["gaussian", "bounded", pytest.param("shell", marks=pytest.mark.slow)]


@functools.cache
def found(name):
    """What is predicted of many rows of a law, and of the law."""
    cls, values = CASES[name]
    law = lf.Discrimination(*(cls((SIZE,), xi=xi, **values) for xi in (0.5, 1.5)))
    return lf.predict(drawn(cls, MOST, **values), starts=4), lf.predict(law, starts=4)


@pytest.mark.parametrize("name", SOME)
def test_many_rows_say_what_the_law_says(name):
    data, exact = found(name)
    assert data.verdict == exact.verdict == data.leaning != "undecided"
    assert data.doubts == () and data.needed == 0
    assert data.ipr == pytest.approx(exact.ipr, rel=0.1)
    assert data.largest_rate == pytest.approx(exact.largest_rate, rel=0.05)
    kurtosis = data.evidence[1].kurtosis
    assert kurtosis.low < exact.excess_kurtosis < kurtosis.high
    assert all(not (evidence.signs_differ or evidence.shifts_differ) for evidence in data.evidence)


def test_where_rows_cannot_tell_it_is_said():
    data, _ = found("gaussian")
    assert data.reason.startswith("As far as the samples can tell") and not data.exact
    assert "as these may be" in str(data)


@pytest.mark.slow
def test_where_rows_can_tell_it_is_said():
    data, _ = found("shell")
    assert data.exact and "exact for this task" in str(data)


@pytest.mark.parametrize("name", SOME)
def test_kinds_are_told_apart(name):
    kinds = {"gaussian": "either", "bounded": "sites", "shell": "elliptical"}
    assert found(name)[0].evidence[1].kind == kinds[name]


def test_the_amplifier_has_an_error_band():
    data, _ = found("bounded")
    one = data.evidence[1]
    exact = lf.theory.Amplifier(NLGP((SIZE,), xi=1.5, gain=3.0).marginal())(one.correlations)
    assert np.all(np.abs(one.amplifier - exact) < 5 * one.amplifier_error + 1e-4)
    assert 0 < one.amplifier_error[1:].max() < 0.01


@pytest.mark.parametrize("name", SOME)
def test_few_rows_are_not_guessed_from(name):
    cls, values = CASES[name]
    predicted = lf.predict(drawn(cls, 500, **values), starts=4)
    assert (
        predicted.verdict == "undecided"
        and "500 samples are few for 16 weights" in predicted.reason
    )
    assert predicted.needed >= ROWS_PER_SITE * SIZE
    assert "samples per class would decide" in str(predicted) and "exact for this task" not in str(
        predicted
    )


def shell(num, xi, seed=0):
    """Rows of an elliptical law whose sites alone would be taken for those of a bounded one."""
    return rows(EllipticalShell((SIZE,), xi=xi), num, seed)


def test_needed_rows_are_those_that_would_tell(monkeypatch):
    """The response is linear, and 4000 rows show it by 17 standard errors: too few where 60 are
    asked for.

    Standard errors fall with the root of the rows, so that 60 of them take (60/17)² as many.
    """
    monkeypatch.setattr(prediction, "POWER", 60.0)
    predicted = lf.predict(lf.Discrimination(shell(4000, 0.3), shell(4000, 0.4, seed=1)), starts=4)
    assert predicted.leaning == "undecided" and "cannot tell whether the response is linear" in str(
        predicted
    )
    power = predicted.evidence[1].flatness.power
    assert 0 < power < 60
    assert predicted.needed == pytest.approx(4000 * (60 / power) ** 2, abs=1)


def test_power_grows_with_the_root_of_the_rows():
    few, many = (
        np.array([flatness(Measurements(shell(num, 0.4, seed)), False).power for seed in range(16)])
        for num in (500, 8000)
    )
    error = math.hypot(*(x.std(ddof=1) / 4 / x.mean() for x in (few, many)))
    assert abs(math.log(many.mean() / few.mean() / 4)) < 5 * error < math.log(2)


def test_fewer_still_are_not_looked_at():
    predicted = lf.predict(drawn(Gaussian, 60))
    assert (predicted.verdict, predicted.flow, predicted.evidence) == ("undecided", None, ())
    assert "60 samples" in predicted.reason and str(predicted)


def test_a_few_patterns_are_summed_over():
    """Pulses of zeros and ones have no sign symmetry: the sum over patterns needs none."""
    task = lf.Discrimination(
        *(SinglePulse(SIZE, a, b, coding="zero-one") for a, b in ((1, 2), (4, 6)))
    )
    data = task.replace(
        stimuli=tuple(rows(stimulus, 4000, c) for c, stimulus in enumerate(task.stimuli))
    )
    predicted, exact = lf.predict(data, starts=4), lf.predict(task, starts=4)
    assert predicted.theory == exact.theory == "ExactPulse"
    assert predicted.verdict == exact.verdict
    assert predicted.evidence[1].signs_differ


# -- assumptions that fail -------------------------------------------------------------------------


def changed(change):
    task = drawn(NLGP, 4000, gain=3.0)
    return task.replace(
        stimuli=tuple(Samples(change(stimulus.rows.astype(float))) for stimulus in task.stimuli)
    )


FAILING = {
    "a mean": (lambda x: x + 0.3, "S3", 'preprocess="center"'),
    "sites apart": (lambda x: x * np.linspace(0.5, 2, SIZE), "S2", 'preprocess="scale"'),
    "one contrast a row": (
        lambda x: x * np.random.default_rng(0).choice([0.3, 1.7], (len(x), 1)),
        "S1",
        '"contrast-normalize"',
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_is_named_with_what_to_try(name):
    change, assumption, step = FAILING[name]
    predicted = lf.predict(changed(change), starts=4)
    assert predicted.verdict == "undecided"
    assert any(f"{assumption} fails" in sentence for sentence in predicted.doubts), predicted.doubts
    assert any(step in sentence for sentence in predicted.advice), predicted.advice
    assert f"{assumption} fails" in str(predicted)


def test_the_advice_helps():
    task = changed(FAILING["a mean"][0])
    predicted = lf.predict(
        task.replace(
            stimuli=tuple(stimulus.replace(preprocess="center") for stimulus in task.stimuli)
        ),
        starts=4,
    )
    assert predicted.verdict == "localized"


def test_heavy_tails_are_warned_of():
    predicted = lf.predict(drawn(StudentT, 4000, nu=3.0), starts=4)
    assert predicted.evidence[1].heavy and any(
        "heavy tails" in sentence for sentence in predicted.advice
    )
    assert predicted.evidence[1].tail_index == pytest.approx(
        3, abs=5 * predicted.evidence[1].tail_error
    )


def test_rows_that_resemble_the_next_count_for_less():
    task = drawn(NLGP, 2000, gain=3.0)
    slow = [Samples(np.repeat(stimulus.rows, 10, axis=0)) for stimulus in task.stimuli]
    predicted = lf.predict(task.replace(stimuli=tuple(slow)), starts=4)
    assert predicted.evidence[0].effective < 2000 and any(
        "are correlated" in sentence for sentence in predicted.advice
    )


def test_a_class_beside_data_is_drawn_from():
    task = drawn(NLGP, 4000, gain=3.0)
    predicted = lf.predict(
        task.replace(stimuli=(NLGP((SIZE,), xi=0.5, gain=3.0), task.stimuli[1])), starts=4
    )
    assert predicted.verdict == "localized" and predicted.evidence[0].num == 50_000


def test_no_theory_covers_other_losses():
    predicted = lf.predict(drawn(NLGP, 1000, gain=3.0).replace(loss="absolute"))
    assert (
        predicted.verdict == "undecided" and "No theory" in predicted.reason and predicted.evidence
    )


@pytest.mark.parametrize(
    "mistake", [{"starts": 0}, {"seed": -1}, {"initial": np.zeros((4, 1, SIZE - 1))}], ids=str
)
def test_mistakes_are_errors_not_verdicts(mistake):
    with pytest.raises(lf.InputError, match=f"`{next(iter(mistake))}`"):
        lf.predict(drawn(NLGP, 100, gain=3.0), **mistake)


def test_measured_chances_count_the_tries():
    once, often = Measured(0.1, 0.02, 5.0), Measured(0.1, 0.02, 5.0, tries=100)
    assert often.p == pytest.approx(100 * once.p)
    assert dataclasses.replace(once, z=0.0).p == 1.0
    assert _rows.leave_one_out().sum() == ROW_GROUPS * (ROW_GROUPS - 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # pixels that are never lit
def test_the_reason_names_what_decided():
    """Pixels of digits as they are: positive kurtosis, and yet a super-linear amplifier, since each
    site's distribution has a mean of its own. The reason must not derive one from the other.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    classes = [digits.images[digits.target == label] for label in (0, 1)]
    predicted = lf.predict(lf.data.sources(*classes), starts=4)
    first, second = (of_class.kurtosis.value for of_class in predicted.evidence)
    assert predicted.excess_kurtosis == second > 0 and predicted.amplifier_index > 0
    assert predicted.reason.startswith(
        f"The amplifier of class 1 is super-linear (index {predicted.amplifier_index:.3g}), although "
        f"the excess kurtosis is {second:.4g} (class 0, of label 0, has {first:.4g}), yet the flow "
    )
