"""Fields of photographs and dead leaves: settings, drawing, and answers that follow from stored
fields.
"""

import numpy as np
import pytest
from drawn import columns_of, dots, ipr, is_color, legend, scaled, ticks, tiles, upright, words

from localfields.analysis import subfields, tuning
from localfields.figures.images import (
    CENTERED,
    FIGURE,
    HEAVY,
    ICA,
    LEAVES,
    LIGHT,
    MANY,
    METHODS,
    NEURON,
    PHOTOGRAPHS,
    PLAIN,
    RETINA,
    SATURATED,
    THEORY,
    WORLDS,
    lobes,
    task_of,
)
from localfields.plots._style import BLUE, GRAY, GREEN, ORANGE

from .altered import bumps, with_neurons


def answers(results):
    return {question.id: question.answer for question in FIGURE.questions(results)}


def test_every_method_meets_every_world(results):
    assert FIGURE.group == "extra" and len(METHODS) == 4 and len(WORLDS) == 6
    result = FIGURE.experiments("tiny")
    assert set(result) == {
        f"{method}, {world}" for method in (*METHODS, THEORY) for world in WORLDS
    }
    for (
        world
    ) in WORLDS:  # all look at the same classes, and none but the network is told which is which
        assert len({str(result[f"{method}, {world}"].task.to_json()) for method in METHODS}) == 1


def test_what_is_seen_has_the_signs_that_the_figure_is_about():
    """Also on few patches: light tails as they are, heavy ones behind a filter, light ones after
    saturation.
    """
    for world, sign in ((PLAIN, -1), (CENTERED, 1), (SATURATED, -1), (LIGHT, -1), (HEAVY, 1)):
        for stimulus in task_of(world, "tiny").stimuli:
            assert np.sign(stimulus.marginal().excess_kurtosis) == sign


def point(site):
    """A field on one site of 6 × 6: localized, and as odd as even in any direction."""
    return bumps([site], 36).reshape(6, 6)


def bars(frequency, phase=0.0):
    """Stripes along the second axis, around its middle."""
    angle = 2 * np.pi * frequency * (np.arange(6) - 2.5) / 6 + phase
    return np.broadcast_to(np.cos(angle), (6, 6))


@pytest.fixture(scope="module")
def known(results):
    """A point for one method in each column, and stripes for all others."""
    for column, world in enumerate(WORLDS):
        for row, method in enumerate(METHODS):
            name = f"{method}, {world}"
            field = point(8 + column) if row == column % 4 else bars(2.0, 0.3 * row)
            fields = np.broadcast_to(field, results[name].weights.shape[2:])
            results = with_neurons(results, name, np.array(fields))
    return results


@pytest.fixture(scope="module")
def grid(known):
    return np.reshape(FIGURE.draw(known).axes, (8, 6))


def test_columns_show_their_classes_and_their_law(grid):
    heads = [f"photographs,\n{world}" for world in PHOTOGRAPHS]
    heads += ["dead leaves\nof two grays", "dead leaves\nof Laplace grays"]
    for column, world in enumerate(WORLDS):
        stimuli = task_of(world, "tiny").stimuli
        samples = [np.asarray(stimulus.sample(0, 3)).reshape(3, 6, 6) for stimulus in stimuli]
        assert grid[0, column].get_title() == heads[column]
        np.testing.assert_allclose(
            tiles(grid[0, column], (6, 6)), scaled(np.concatenate(samples)), rtol=1e-5, atol=1e-6
        )
        assert columns_of(grid[0, column], (6, 6)) == 3  # label 0 above label 1
        kurtosis = [stimulus.marginal().excess_kurtosis for stimulus in stimuli]
        texts = dict.fromkeys(f"{value:.2f}".replace("-", "−") for value in kurtosis)
        assert grid[1, column].get_title() == f"excess kurtosis {', '.join(texts)}"
    assert [words(ax)[-1] for ax in grid[:6, 0]] == ["classes", "marginal", *METHODS]


def test_fields_and_their_numbers_are_those_of_row_and_column(known, grid):
    for column, world in enumerate(WORLDS):
        for row, method in enumerate(METHODS):
            ax, fields = grid[2 + row, column], known[f"{method}, {world}"].final
            fields = fields.reshape(-1, 6, 6)
            local = row == column % 4
            shown = tiles(ax, (6, 6))
            assert len(shown) == min(6, len(fields))
            np.testing.assert_allclose(shown, scaled(fields)[: len(shown)], rtol=1e-5)
            selectivity = np.median(tuning(fields).selectivity)
            share = 100 if local else 0
            assert ax.get_title() == f"{share} % localized\norientation {selectivity:.2f}"
            assert is_color(ax.title.get_color(), ORANGE if local else BLUE)
            assert (selectivity > 0.5) == (not local)


def test_tuning_and_phases_are_colored_by_method(known, grid):
    colors = (ORANGE, BLUE, GREEN, GRAY)
    for column, world in enumerate(WORLDS):
        scatter, phases = grid[6, column], grid[7, column]
        assert scatter.get_xscale() == "log" and upright(scatter, "black", "--") == 4 / 38
        for row, method in enumerate(METHODS):
            fields = known[f"{method}, {world}"].final.reshape(-1, 6, 6)
            points, color = dots(scatter.collections[row])
            assert set(color) == {colors[row].lower()}
            tuned = tuning(fields)
            np.testing.assert_allclose(points[:, 0], ipr(fields.reshape(-1, 36)), rtol=1e-5)
            np.testing.assert_allclose(points[:, 1], tuned.selectivity, rtol=1e-5)
            points, color = dots(phases.collections[row])
            if row == column % 4:
                assert len(points) == 0  # no orientation to speak of
                continue
            assert set(color) == {colors[row].lower()}
            # A grating that goes along the second axis; its phase folded between even and odd.
            np.testing.assert_allclose(points[:, 0], 90)
            np.testing.assert_allclose(np.sin(np.radians(points[:, 1])) ** 2, tuned.oddness)
    assert ticks(grid[7, 0].yaxis) == ([0, 45, 90], ["even", "", "odd"])


def test_methods_have_one_color(grid):
    result = legend(grid[0, 0].figure.legends[0])
    assert result == dict(
        zip(METHODS, (ORANGE.lower(), BLUE.lower(), GREEN.lower(), GRAY), strict=True)
    )


def test_answers_follow_from_the_fields(results):
    def altered(results, method, worlds, fields):
        for world in worlds:
            shape = results[f"{method}, {world}"].weights.shape
            results = with_neurons(
                results, f"{method}, {world}", np.broadcast_to(fields, shape[2:]).astype(float)
            )
        return results

    spot = point(8)
    stripes = np.broadcast_to(np.cos(2 * np.pi * np.arange(6) / 3), (6, 6))
    flat = np.ones((6, 6))
    for method in (*METHODS, THEORY):
        results = altered(results, method, WORLDS, flat)
    nowhere = answers(results)
    assert nowhere["IMG1"] == "Localized on: none. The effective flow expects it on: none."
    assert nowhere["IMG4"] == "One neuron is localized on: none."
    assert "oriented: one neuron on none; 16 neurons on none; ICA on none" in nowhere["IMG2"]
    some = altered(altered(results, NEURON, [SATURATED, *LEAVES], spot), MANY, [CENTERED], stripes)
    some = altered(altered(some, THEORY, [SATURATED], spot), ICA, PHOTOGRAPHS, spot)
    result = answers(some)
    assert (
        result["IMG1"]
        == f"Localized on: {SATURATED}. The effective flow expects it on: {SATURATED}."
    )
    assert result["IMG4"] == f"One neuron is localized on: {LIGHT}, {HEAVY}."
    assert f"16 neurons on {CENTERED}; ICA on none" in result["IMG2"]
    assert (
        f"localized: one neuron on {SATURATED}; 16 neurons on none; ICA on {', '.join(PHOTOGRAPHS)}"
        in result["IMG2"]
    )
    assert (
        "4.0 subfields on the pixels in place of 1.0" in result["IMG3"]
        and result["IMG3"] != nowhere["IMG3"]
    )


def test_fields_on_pixels_are_seen_through_the_filter(results):
    """⟨w, Fx⟩ = ⟨Fw, x⟩: what acts on the pixels, by the matrix of the filter."""
    fields = results[f"{NEURON}, {CENTERED}"].final.reshape(-1, 36)
    matrix = RETINA.fit(fields, (6, 6))(np.eye(36))
    filtered = (fields @ matrix.T).reshape(-1, 6, 6)
    np.testing.assert_array_equal(lobes(results, NEURON, CENTERED)[1], subfields(filtered, axes=2))
    plain = lobes(results, NEURON, PLAIN)
    np.testing.assert_array_equal(plain[0], plain[1])
