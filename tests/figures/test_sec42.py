"""Section 4.2: settings, drawing, and a count of peaks that follows from the fields stored."""

import numpy as np
import pytest
from scipy.stats import beta

from localfields.figures.sec42 import FIGURE, apart, counts, experiments, first_fields, interval

from .altered import bumps, with_fields


def test_settings_are_the_papers():
    paper = experiments("paper")
    method = paper["training"].method
    assert (method.members, method.batch, method.steps, method.learning_rate) == (
        28,
        500,
        2000,
        0.05,
    )
    assert method.estimator == "independent"
    assert (
        paper["Taylor"].method.theory.amplifier == "taylor" and paper["Taylor"].method.members == 28
    )
    assert paper["other data"].method.seed != method.seed
    assert paper["larger batch"].method.batch == 5000
    assert paper["many: training"].method.members == 280


def test_other_data_from_the_same_starts(results):
    np.testing.assert_array_equal(first_fields(2), results["training"].initial)
    for name, run in results.items():
        np.testing.assert_array_equal(run.initial, results["training"].initial, err_msg=name)
    assert np.abs(results["training"].final - results["other data"].final).max() > 0


def test_draws(results):
    titles = [ax.get_title() for part in FIGURE.draw(results).subfigs for ax in part.axes]
    assert sum(title.startswith("ours") for title in titles) == 5
    assert titles[0].startswith("eq. (5), Taylor φ\n")


def peaks(results, name, sites):
    """Results with bumps at these sites, for as many members as sites."""
    return with_fields(results, name, bumps(sites, 40))


def test_the_count_follows_from_fields(results):
    sites = np.arange(28) % 40
    for name in results:
        results = peaks(results, name, sites)
    claim = FIGURE.claims(results)[0]
    assert (
        claim.id == "P1" and claim.verdict == "reproduced" and claim.measured.startswith("28 of 28")
    )
    # Two peaks elsewhere, as published; then half of them one site away, once around the end of the ring.
    two = peaks(results, "Taylor", np.where(sites < 2, sites + 15, sites))
    assert FIGURE.claims(two)[0].measured.startswith("26 of 28")
    assert FIGURE.claims(two)[0].verdict == "reproduced"
    beside = peaks(results, "Taylor", np.where(sites % 2 == 0, (sites - 1) % 40, sites))
    claim = FIGURE.claims(beside)[0]
    assert (
        claim.verdict == "differs"
        and "14 of 28" in claim.measured
        and "±1 site 28 of 28" in claim.measured
    )
    assert counts(apart(beside, "training", "Taylor")) == (14, 28, 28)


def test_interval_is_clopper_and_pearsons():
    low, high = interval(26, 28)
    assert low == pytest.approx(beta.ppf(0.025, 26, 3)) and high == pytest.approx(
        beta.ppf(0.975, 27, 2)
    )
    assert interval(0, 5)[0] == 0 and interval(5, 5)[1] == 1
