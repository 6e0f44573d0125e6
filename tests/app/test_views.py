"""The pictures of the explorer: what is in their sources is what a page draws."""

import math

import numpy as np
import pytest
from bokeh.palettes import Viridis256

from localfields.app import messages as msg
from localfields.app.live_run import LiveRun
from localfields.app.views import DataView, Picture, RunView, TimeSeries, tiled
from localfields.experiments.texts import experiment_of
from localfields.plots._style import BLUE, GREEN, ORANGE

RING = {"stimulus": "nlgp", "xi": "1,3", "gain": "100", "steps": "40", "members": "2"}
MEMBERS, RECORDS, NEURONS, SITES = 2, 5, 3, 40


def canned_answer(samples, **more):
    """What is known of a task, with a uniform law and an amplifier that is a parabola."""
    x, a = np.linspace(-1, 1, 5), np.linspace(0, 1, 11)
    known = {"density": (x, np.full(5, 0.5)), "atoms": False, "kurtosis": -1.2}
    return msg.TaskSummary(samples, **(known | {"amplifier": (a, a**2), "slope": 0.8} | more))


def canned_run(shape=(SITES,), neurons=NEURONS, texts=None):
    """Five records of a committee in which every weight tells its member, record and neuron;
    theory for one member.
    """
    size = math.prod(shape)
    member, record, neuron = np.meshgrid(
        np.arange(MEMBERS), np.arange(RECORDS), np.arange(neurons), indexing="ij"
    )
    level = 1 + 100 * member + 10 * record + neuron
    weights = level[..., None] + np.arange(size) / size  # no two fields and no two sites alike
    texts = texts or {**RING, "network": "committee", "hidden": str(neurons)}
    run = LiveRun(texts, experiment_of(texts))
    steps = 10 * np.arange(RECORDS)
    loss = member[..., 0] + 1 / (1 + record[..., 0])
    run.receive(
        msg.Records(
            steps, 0.5 * steps, {"weights": weights.reshape(*level.shape, *shape), "loss": loss}
        )
    )
    return run


def theory_of(run, times):
    """A flow from the first member: minus its fields at these times, which are not those of the
    records.
    """
    fields = -run.series["weights"][:1, : len(times)]
    ipr = np.full((1, len(times), NEURONS), 0.5) + 0.1 * np.arange(len(times))[None, :, None]
    return msg.TheoryCurves(
        "effective flow", False, np.array(times), ipr, fields, ipr[..., 0], ipr / 2
    )


# Before a run.


def test_samples_of_label_0_are_below_and_have_its_color():
    generator = np.random.default_rng(0)
    samples = tuple(generator.normal(size=(4, SITES)) for _ in range(2))
    view = DataView()
    view.show(canned_answer(samples))
    drawn = view.sample_source.data
    assert view.lines.visible and not view.picture.plot.visible
    assert [list(x) for x in drawn["xs"]] == [list(range(SITES))] * 4
    wanted = [*samples[0][:2], *samples[1][:2]]  # two of each class, from below
    heights = []
    for curve, sample in zip(drawn["ys"], wanted, strict=True):
        shift = curve - sample
        np.testing.assert_allclose(shift, shift[0], atol=1e-12)
        heights.append(shift[0])
    assert heights[0] == 0 and heights == sorted(heights)
    np.testing.assert_allclose(
        np.diff(heights), heights[1]
    )  # evenly spaced, and not through each other:
    assert heights[1] > 2 * np.percentile(np.abs(wanted), 90)
    assert drawn["color"] == [BLUE, BLUE, ORANGE, ORANGE]
    low, high = view.lines.y_range.start, view.lines.y_range.end
    assert low < 0 and heights[-1] < high
    assert "label 0 below" in view.lines.title.text
    assert f"{BLUE}'></span>label 0" in view.key and f"{ORANGE}'></span>label 1" in view.key


def test_samples_on_a_torus_are_pictures_with_label_0_below():
    samples = tuple(np.full((4, 3, 3), level) for level in (1.0, 2.0))
    view = DataView()
    view.show(canned_answer(samples))
    assert not view.lines.visible and view.picture.plot.visible
    (picture,) = view.picture.source.data["image"]  # the first row is drawn at the bottom
    assert np.nanmax(picture[:3]) == 1 and np.nanmin(picture[4:]) == 2
    assert (view.picture.colors.low, view.picture.colors.high) == (-2, 2)


def test_laws_are_curves_or_atoms_with_their_kurtosis():
    samples = (np.zeros((4, SITES)) + 1,) * 2
    view = DataView()
    view.show(canned_answer(samples))
    np.testing.assert_allclose(view.density_source.data["y"], 0.5)
    np.testing.assert_allclose(view.density_source.data["x"], np.linspace(-1, 1, 5))
    grid, bell = (np.asarray(view.normal_source.data[name]) for name in "xy")
    np.testing.assert_allclose(bell, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi))
    assert (
        len(view.atom_source.data["x"]) == 0
        and view.marginal_caption.text == "excess kurtosis -1.2"
    )
    view.show(canned_answer(samples, density=(np.array([-1, 1]), np.array([0.5, 0.5])), atoms=True))
    atoms = view.atom_source.data
    assert [list(atoms[name]) for name in ("x", "y", "zero")] == [[-1, 1], [0.5, 0.5], [0, 0]]
    assert not len(view.density_source.data["x"]) and not len(view.normal_source.data["x"])
    view.show(canned_answer(samples, kurtosis=math.inf))
    assert view.marginal_caption.text == "excess kurtosis infinite"
    view.show(canned_answer(samples, density=None, amplifier=None))
    assert not any(len(source.data["x"]) for source in (view.density_source, view.normal_source))
    assert view.marginal_caption.text == "not known in closed form"
    assert view.amplifier_caption.text == "needs the distribution of one site"


def test_the_amplifier_has_the_line_of_normal_data_beside_it():
    view = DataView()
    view.show(canned_answer((np.ones((4, SITES)),) * 2))
    data = {name: np.asarray(values) for name, values in view.amplifier_source.data.items()}
    np.testing.assert_allclose(data["y"], data["x"] ** 2)
    np.testing.assert_allclose(data["line"], 0.8 * data["x"])
    area, curve, line = (renderer.glyph for renderer in view.amplifier.renderers)
    assert (area.y1, area.y2, curve.y, line.y) == ("line", "y", "y", "line")
    assert (curve.line_color, line.line_dash) == (ORANGE, [6])


# A run.


@pytest.mark.parametrize("chosen", range(MEMBERS * NEURONS))
def test_the_field_chosen_is_that_of_its_member_and_neuron(chosen):
    """Fields are counted member by member, all neurons of the first before those of the second."""
    run, view = canned_run(), RunView("run")
    record = 3
    view.show(run, record, chosen)
    member, neuron = [(m, k) for m in range(MEMBERS) for k in range(NEURONS)][chosen]
    fields = run.series["weights"][member, :, neuron]
    np.testing.assert_array_equal(view.now_source.data["y"], fields[record])
    drawn = view.field_source.data
    np.testing.assert_array_equal(drawn["ys"], fields[: record + 1])  # as far as the run is shown
    shades = [Viridis256.index(color) for color in drawn["color"]]
    assert shades == sorted(shades, reverse=True) and shades[0] > 150  # early is pale
    assert view.lines.title.text == f"run: neuron {neuron + 1}"
    assert view.time.text == "flow time 15"
    low, high = view.lines.y_range.start, view.lines.y_range.end
    assert low <= fields[: record + 1].min() and fields[: record + 1].max() <= high


def test_members_of_one_neuron_are_called_members():
    run, view = canned_run(neurons=1, texts=RING), RunView("run")
    view.show(run, 1, 1)
    np.testing.assert_array_equal(view.now_source.data["y"], run.series["weights"][1, 1, 0])
    assert view.lines.title.text == "run: member 2"
    view.show(run, 1, 99)  # fewer fields than the slider once had
    assert view.lines.title.text == "run: member 2"


def test_all_fields_are_rows_each_on_its_own_scale():
    run, view = canned_run(), RunView("run")
    run.series["weights"][1] *= 1e-3  # small fields are drawn as large as others
    view.show(run, 2, 0)
    (picture,) = view.picture.source.data["image"]
    fields = run.series["weights"][:, 2].reshape(-1, SITES)
    np.testing.assert_allclose(picture[::-1], fields / fields.max(axis=1, keepdims=True), rtol=1e-6)
    assert view.picture.plot.title.text == "run: 6 fields"


def test_theory_is_drawn_at_the_time_of_the_record_for_the_members_it_has():
    run, view = canned_run(), RunView("run")
    run.receive(theory_of(run, [0.0, 4.0, 11.0]))
    for record, place in ((0, 0), (1, 1), (2, 2), (4, 2)):  # flow times 0, 5, 10, 20
        view.show(run, record, 1)
        np.testing.assert_array_equal(
            view.theory_source.data["y"], -run.series["weights"][0, place, 1]
        )
    view.show(run, 2, NEURONS)  # the second member
    assert len(view.theory_source.data["y"]) == 0


def test_numbers_over_time_are_those_of_every_member_and_their_mean():
    run, view = canned_run(), RunView("run")
    run.receive(theory_of(run, [0.0, 4.0, 11.0]))
    run.receive(
        msg.GateAgreement(np.array([0.0, 20.0]), np.array([[[0.25], [1.0]], [[0.75], [1.0]]]))
    )
    view.show(run, 3, 0)
    weights = run.series["weights"].astype(float)
    ipr = (weights**4).sum(-1) / (weights**2).sum(-1) ** 2
    wanted = {
        "ipr": [ipr[m, :, k] for m in range(MEMBERS) for k in range(NEURONS)],
        "loss": list(run.series["loss"]),
        "gates": [[0.25, 1.0], [0.75, 1.0]],
    }
    for name, curves in wanted.items():
        series = view.series[name]
        times = [0.0, 20.0] if name == "gates" else run.times
        np.testing.assert_allclose(series.each.data["ys"], curves, rtol=1e-6)
        assert all(list(x) == list(times) for x in series.each.data["xs"])
        np.testing.assert_allclose(series.mean.data["y"], np.mean(curves, axis=0), rtol=1e-6)
        assert series.now.location == 15 and series.now.visible
        whole = run.experiment.method.learning_rate * 40
        assert (series.plot.x_range.start, series.plot.x_range.end) == (0, whole)
        np.testing.assert_allclose(series.theory.data["x"], [0, 4, 11])
    np.testing.assert_allclose(view.series["ipr"].theory.data["y"], [0.5, 0.6, 0.7])
    np.testing.assert_allclose(view.series["gates"].theory.data["y"], [0.25, 0.3, 0.35])
    threshold = view.series["ipr"].threshold
    assert threshold.visible and threshold.location == 4 / 42
    assert threshold.line_color == GREEN
    assert not view.series["loss"].threshold.visible
    assert view.series["ipr"].plot.y_range.start == 0
    assert view.series["ipr"].plot.y_range.end >= 0.7
    view.clear()
    assert not len(view.now_source.data["y"]) and not view.series["ipr"].now.visible
    assert not any(len(series.mean.data["y"]) for series in view.series.values())


def test_on_a_torus_all_fields_are_pictures_beside_those_of_theory():
    texts = {**RING, "network": "committee", "hidden": "3", "shape": "4x5", "xi": "0.3,0.5"}
    run, view = canned_run((4, 5), texts=texts), RunView("run")
    view.show(run, 1, 0)
    assert not view.lines.visible and not view.theory_picture.plot.visible
    (picture,) = view.picture.source.data["image"]
    top_left = picture[::-1][:4, :5]
    field = run.series["weights"][0, 1, 0]
    np.testing.assert_allclose(top_left, field / field.max(), rtol=1e-6)
    assert view.picture.plot.title.text == "run: 6 fields, flow time 5"
    run.receive(theory_of(run, [0.0, 4.0, 11.0]))
    view.show(run, 1, 0)
    assert view.theory_picture.plot.visible
    (picture,) = view.theory_picture.source.data["image"]
    np.testing.assert_allclose(picture[::-1][:4, :5], -field / field.max(), rtol=1e-6)


def test_a_series_that_is_not_there_is_empty():
    series = TimeSeries("loss", "run", "held-out loss")
    series.show(np.arange(3.0), None, 1.0, 2.0, None)
    assert not len(series.mean.data["y"]) and series.now.location == 1


# Pictures.


def test_tiles_hold_every_field_once():
    fields = np.arange(3 * 4 * 5, dtype=float).reshape(3, 4, 5)
    whole = tiled(fields)
    assert whole.shape == (4 + 1 + 4, 5 + 1 + 5)
    # Pictures are drawn upward: the first field is at the top left, the second beside it, the third
    # below.
    upright = whole[::-1]
    np.testing.assert_array_equal(upright[:4, :5], fields[0])
    np.testing.assert_array_equal(upright[:4, 6:], fields[1])
    np.testing.assert_array_equal(upright[5:, :5], fields[2])
    assert np.isfinite(whole).sum() == fields.size
    rings = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(tiled(rings), rings[::-1])


def test_the_strongest_colors_are_the_largest_value_of_either_sign():
    picture = Picture("")
    picture.show(np.array([[-3.0, 1.0], [np.nan, 2.0]]))
    assert (picture.colors.low, picture.colors.high) == (-3, 3)
    redder = [int(color[1:3], 16) - int(color[5:], 16) for color in picture.colors.palette]
    assert np.sign(redder).tolist() == [-1] * 5 + [0] + [1] * 5  # blue is negative, red positive
    picture.show(np.zeros((2, 2)))
    assert (picture.colors.low, picture.colors.high) == (-1, 1)
