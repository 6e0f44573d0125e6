"""Fields of photographs and dead leaves: settings, drawing, and answers that follow from stored fields."""

import numpy as np

from localfields.analysis import subfields
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

from .altered import bumps, with_neurons


def answers(results):
    return {question.id: question.answer for question in FIGURE.questions(results)}


def test_every_method_meets_every_world(results):
    assert FIGURE.group == "extra" and len(METHODS) == 4 and len(WORLDS) == 6
    found = FIGURE.experiments("tiny")
    assert set(found) == {f"{method}, {world}" for method in (*METHODS, THEORY) for world in WORLDS}
    for (
        world
    ) in WORLDS:  # all look at the same classes, and none but the network is told which is which
        assert len({str(found[f"{method}, {world}"].task.to_json()) for method in METHODS}) == 1


def test_what_is_seen_has_the_signs_that_the_figure_is_about():
    """Also on few patches: light tails as they are, heavy ones behind a filter, light ones after saturation."""
    for world, sign in ((PLAIN, -1), (CENTERED, 1), (SATURATED, -1), (LIGHT, -1), (HEAVY, 1)):
        for stimulus in task_of(world, "tiny").stimuli:
            assert np.sign(stimulus.marginal().excess_kurtosis) == sign


def test_draws(results):
    figure = FIGURE.draw(results)
    assert len([ax for ax in figure.axes if ax.images]) == len(WORLDS) * (1 + len(METHODS))
    assert len([ax for ax in figure.axes if ax.collections]) >= 2 * len(WORLDS)
    assert [text.get_text() for text in figure.legends[0].texts] == list(METHODS)


def test_answers_follow_from_the_fields(results):
    def altered(results, method, worlds, fields):
        for world in worlds:
            shape = results[f"{method}, {world}"].weights.shape
            results = with_neurons(
                results, f"{method}, {world}", np.broadcast_to(fields, shape[2:]).astype(float)
            )
        return results

    point = bumps([8], 36).reshape(6, 6)
    bars = np.broadcast_to(np.cos(2 * np.pi * np.arange(6) / 3), (6, 6))
    flat = np.ones((6, 6))
    for method in (*METHODS, THEORY):
        results = altered(results, method, WORLDS, flat)
    nowhere = answers(results)
    assert nowhere["IMG1"] == "Localized on: none. The effective flow expects it on: none."
    assert nowhere["IMG4"] == "One neuron is localized on: none."
    assert "oriented: one neuron on none; 16 neurons on none; ICA on none" in nowhere["IMG2"]
    some = altered(altered(results, NEURON, [SATURATED, *LEAVES], point), MANY, [CENTERED], bars)
    some = altered(altered(some, THEORY, [SATURATED], point), ICA, PHOTOGRAPHS, point)
    found = answers(some)
    assert (
        found["IMG1"]
        == f"Localized on: {SATURATED}. The effective flow expects it on: {SATURATED}."
    )
    assert found["IMG4"] == f"One neuron is localized on: {LIGHT}, {HEAVY}."
    assert f"16 neurons on {CENTERED}; ICA on none" in found["IMG2"]
    assert (
        f"localized: one neuron on {SATURATED}; 16 neurons on none; ICA on {', '.join(PHOTOGRAPHS)}"
        in found["IMG2"]
    )
    assert (
        "4.0 subfields on the pixels in place of 1.0" in found["IMG3"]
        and found["IMG3"] != nowhere["IMG3"]
    )


def test_fields_on_pixels_are_seen_through_the_filter(results):
    """⟨w, Fx⟩ = ⟨Fw, x⟩: what acts on the pixels, by the matrix of the filter."""
    fields = results[f"{NEURON}, {CENTERED}"].final.reshape(-1, 36)
    matrix = RETINA.fit(fields, (6, 6))(np.eye(36))
    there = (fields @ matrix.T).reshape(-1, 6, 6)
    np.testing.assert_array_equal(lobes(results, NEURON, CENTERED)[1], subfields(there, axes=2))
    plain = lobes(results, NEURON, PLAIN)
    np.testing.assert_array_equal(plain[0], plain[1])
