"""What rows of data say: dependence, amplifier and directions, each with two standard errors."""

import numpy as np
from drawn import error_bars, legend, level, line, ticks, upright

from localfields.plots._prediction import (
    _draw_dependence,
    _draw_directions,
    _draw_measured_amplifier,
)
from localfields.plots._style import BLUE, ORANGE
from localfields.theory.checks.assumptions import StimulusCheck
from localfields.theory.data.evidence import ClassEvidence
from localfields.theory.data.rows import Flatness

from .canned import partly


def evidence(number):
    """Of a class in which every number is another."""
    distances = np.arange(4.0)
    check = partly(
        StimulusCheck,
        distances=distances,
        correlation=np.exp(-distances / (1 + number)),
        dependence=0.1 * (1 + number) * distances,
        dependence_error=0.01 * (1 + number) * (1 + distances),
    )
    kinds = ("one site", "neighbors", "random")
    flatness = partly(
        Flatness,
        kinds=kinds,
        values=np.array([0.02, -0.01, -0.03]),
        errors=np.array([1, 2, 3]) / 500,
    )
    a = np.linspace(0, 1, 6)
    return partly(
        ClassEvidence,
        number=number,
        check=check,
        flatness=flatness,
        correlations=a,
        amplifier=np.sqrt(2 / np.pi) * a + 0.1 * a**2,
        amplifier_error=0.01 * (1 + a),
    )


def test_dependence_of_every_class_with_two_errors(ax):
    _draw_dependence(ax, (evidence(0), evidence(1)))
    drawn = error_bars(ax)
    for number, (_, color, x, y, low, high) in enumerate(drawn):
        check = evidence(number).check
        np.testing.assert_allclose(
            line(ax, f"class {number}"), [check.distances, check.correlation]
        )
        assert color == (BLUE, ORANGE)[number] and legend(ax)[f"class {number}"] == color.lower()
        np.testing.assert_allclose([x, y], [check.distances, check.dependence])
        np.testing.assert_allclose([y - low, high - y], [2 * check.dependence_error] * 2)
    assert "of sizes, ±2 s.e." in legend(ax)


def test_the_amplifier_is_drawn_less_the_line_of_normal_data(ax):
    one = evidence(0)
    _draw_measured_amplifier(ax, one)
    a = one.correlations
    np.testing.assert_allclose(line(ax, "φ(a) − √(2/π) a"), [a, 0.1 * a**2], atol=1e-12)
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    for place, error in zip(a, one.amplifier_error, strict=True):
        heights = corners[np.isclose(corners[:, 0], place), 1]
        wanted = 0.1 * place**2 + np.array([-2, 2]) * error
        np.testing.assert_allclose([heights.min(), heights.max()], wanted)
    assert level(ax, style=":") == 0


def test_directions_are_in_percent_with_two_errors_from_above(ax):
    _draw_directions(ax, evidence(0))
    ((_, color, x, y, low, high),) = error_bars(ax)
    assert color == ORANGE and upright(ax, style=":") == 0
    np.testing.assert_allclose(x, [2, -1, -3])
    places, names = ticks(ax.yaxis)
    at = dict(zip(places, names, strict=True))
    assert [at[place] for place in y] == ["one site", "neighbors", "random"] and y[0] > y[-1]
    np.testing.assert_allclose([x - low, high - x], [[0.4, 0.8, 1.2]] * 2)
