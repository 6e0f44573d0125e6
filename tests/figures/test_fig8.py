"""Figure 8: settings, drawing, and a claim that follows from the fields stored."""

import numpy as np
import pytest
from drawn import ipr, legend, level, lines, upright

from localfields.figures.fig8 import FIGURE, GAUSSIAN, SHARP, bump_at, experiments, shown, task
from localfields.plots._style import BLUE, GREEN, ORANGE

from .altered import bumps, waves, with_fields


def test_settings_are_the_papers():
    paper = experiments("paper")
    sharp, gaussian = (paper[f"NLGP({gain:g}): training"] for gain in (SHARP, GAUSSIAN))
    for experiment, gain in ((sharp, 100.0), (gaussian, 0.01)):
        assert experiment.task.shape == (100,) and experiment.network.init_scale == 0.001
        assert [stimulus.xi for stimulus in experiment.task.stimuli] == [0.3, 0.7]
        assert [stimulus.gain for stimulus in experiment.task.stimuli] == [gain, gain]
        assert experiment.method.every == 100
    assert (sharp.method.learning_rate, sharp.method.steps) == (0.01, 10_000)
    assert (gaussian.method.learning_rate, gaussian.method.steps) == (0.05, 5000)


@pytest.mark.slow
def test_same_starts(computed):
    for name, run in computed.items():
        np.testing.assert_array_equal(
            run.initial, computed["NLGP(100): training"].initial, err_msg=name
        )


def growing(size, sites, late, speed=3.0):
    """From waves to a bump at each site, in five records; `late` delays it."""
    part = np.clip((np.linspace(0, 1, 5) - late) * speed, 0, 1)[None, :, None]
    return (1 - part) * 0.3 * waves(len(sites), size)[:, None] + part * bumps(sites, size)[:, None]


@pytest.fixture(scope="module")
def grown(results):
    """Bumps that grow in training and, later, under eq. (5), at a wrong site in the first of two
    starts.
    """
    for kind, late, sites in (("training", 0.1, [4, 30]), ("eq. (5)", 0.4, [15, 30])):
        # So fast that the second record has 0.4 of the last ratio: not yet half of it.
        fields = growing(40, sites, late, speed=4.2)
        results = with_fields(results, f"NLGP(100): {kind}", fields)
        results = with_fields(results, f"NLGP(0.01): {kind}", (1 + late) * waves(2, 40))
    assert 0.35 < ipr(results["NLGP(100): training"].weights[1, 1, 0]) < 0.49
    return results


@pytest.fixture(scope="module")
def panels(grown):
    """Rows of six panels, and the axes on the right of the second of each."""
    axes = FIGURE.draw(grown).axes
    return np.reshape(axes[:30], (5, 6)), axes[30:]


def test_rows_show_a_start_in_training_and_under_eq_5(grown, panels):
    rows, right = panels
    # The second start is predicted right and comes first; rows that have no start are hidden.
    shown = [(rows[0], right[0], "NLGP(100)", 1), (rows[1], right[1], "NLGP(100)", 0)]
    shown.append((rows[4], right[2], "NLGP(0.01)", 1))
    assert not any(ax.get_visible() for ax in rows[2:4].flat)
    for row, beside, name, member in shown:
        assert row[0].get_ylabel() == f"{name}, start {member + 1}"
        run, flow = (
            grown[f"{name}: {kind}"].weights[member, :, 0].astype(float)
            for kind in ("training", "eq. (5)")
        )
        times = grown[f"{name}: training"].times
        for ax in (row[0], row[2]) if name == "NLGP(100)" else (row[0],):
            np.testing.assert_allclose(lines(ax, BLUE), [[times, ipr(run)]], rtol=1e-6)
            np.testing.assert_allclose(lines(ax, ORANGE, "--"), [[times, ipr(flow)]], rtol=1e-6)
        error = np.sqrt(np.mean((run - flow) ** 2, axis=1))  # ℓ2 over √N
        (result,) = (curve for curve in lines(row[1], "black") if len(curve[0]) > 1)
        np.testing.assert_allclose(result, [times, error], rtol=1e-5, atol=1e-9)
        relative = np.linalg.norm(run - flow, axis=1) / np.linalg.norm(run, axis=1)
        np.testing.assert_allclose(lines(beside, GREEN, "--"), [[times, relative]], rtol=1e-5)
    assert rows[0, 0].get_ylim() == (0, 1.03) and rows[0, 2].get_ylim() == (0, 0.1)
    assert level(rows[0, 2], GREEN, ":") == 4 / 42 and rows[4, 0].get_ylim() == (0, 0.1)


def test_fields_are_shown_before_during_and_after_the_rise(grown, panels):
    rows, _ = panels
    titles = [ax.get_title() for ax in rows[0]]
    assert titles[:3] == ["IPR", "error", "IPR, zoomed in"]
    for row, member in ((rows[0], 1), (rows[1], 0)):
        run, flow = (
            grown[f"NLGP(100): {kind}"].weights[member, :, 0] for kind in ("training", "eq. (5)")
        )
        ratio, times = ipr(run), grown["NLGP(100): training"].times
        before = np.flatnonzero(ratio <= 0.1)[-1]
        during = np.flatnonzero(ratio >= ratio[-1] / 2)[0]
        records = [before, during, len(run) - 1]
        for ax, record, word in zip(row[3:], records, ("before", "during", "after"), strict=True):
            np.testing.assert_allclose(lines(ax, BLUE)[0][1], run[record])
            np.testing.assert_allclose(lines(ax, ORANGE, "--")[0][1], flow[record])
            head = f"{word}\n" if member == 1 else ""
            assert ax.get_title() == f"{head}t = {times[record]:g}"
        marks = [curve[0][0] for curve in lines(row[0], "black", marker="^")]
        np.testing.assert_allclose(marks, times[records])
        # The onset: from there on for good above the threshold.
        onset = times[np.flatnonzero(ratio <= 4 / 42)[-1] : np.flatnonzero(ratio > 4 / 42)[-1] + 1]
        assert onset[0] <= upright(row[0], GREEN, "-.") <= onset[1]
        circles = lines(row[5], GREEN, marker="o")[0]
        site = {1: 30, 0: 4}[member]
        assert circles[0][np.abs(circles[1]).argmax()] == site
        np.testing.assert_allclose(circles[1], bump_at(run[-1])[circles[0].astype(int)])
    # On nearly normal data at two, three and five fifths of the time.
    times = grown["NLGP(0.01): training"].times
    assert [ax.get_title() for ax in rows[4, 3:]] == [
        f"t = {times[np.abs(times - share * times[-1]).argmin()]:g}" for share in (0.4, 0.6, 1)
    ]
    assert len(legend(rows[4, 2])) == 8
    assert legend(rows[4, 2])["training"] == BLUE.lower()
    assert legend(rows[4, 2])["eq. (5)"] == ORANGE.lower()


def test_rows_are_the_first_right_and_the_first_wrong():
    assert shown(np.array([0, 9, 1, 0, 5, 0])) == [0, 2, 1, 3]
    assert shown(np.array([0, 0, 1, 0, 0])) == [0, 1, 2, 3]
    assert shown(np.array([7, 7])) == [0, 1]


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
    # Its condition: half the labelled class's covariance is what both classes' covariances make of
    # it.
    first, second = (np.fft.fft(stimulus.covariance()).real for stimulus in task(SHARP).stimuli)
    np.testing.assert_allclose(
        np.fft.fft(-bump) * (first + second), np.fft.fft(np.eye(100)[33]) * second, atol=1e-9
    )
