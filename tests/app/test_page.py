"""The parts of the explorer's first page, without a server: addresses, presets, controls, runs,
pictures.
"""

import types

import numpy as np
import pytest

import localfields as lf
from localfields import _registry
from localfields._spec import Count, Number, fields, registered
from localfields.app import messages as msg
from localfields.app.controls import POSITIONS, Controls, SliderScale
from localfields.app.downloads import Downloads
from localfields.app.explore import Explorer
from localfields.app.limits import Limits, is_safe
from localfields.app.live_run import LiveRun
from localfields.app.presets import presets
from localfields.app.state import from_query, read, to_python, to_query
from localfields.experiments.texts import experiment_of
from localfields.figures import all_figures

RING = {"stimulus": "nlgp", "xi": "1,3", "gain": "100", "steps": "40", "members": "2"}
STIMULI = sorted(name for name, cls in registered("stimulus").items() if is_safe(cls))

# Lengthscales that are long for a small lattice are warned of; here only their spelling matters.
pytestmark = pytest.mark.filterwarnings("ignore:The kernel is not positive")


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_legal_and_survives_address_and_python(name):
    texts = presets()[name]
    experiment = read(texts, Limits())
    assert from_query(to_query(texts), Limits()) == (texts, None)
    lines = to_python(experiment).splitlines()
    assert lines[-2].startswith("run = lf.run_or_load(")
    space = {}
    exec("\n".join([*lines[:-2], lines[-2].replace("lf.run_or_load(", "(")]), space)
    assert space["run"].digest == experiment.digest


def test_every_figure_of_the_paper_has_a_preset():
    wanted = {name for name, figure in all_figures().items() if figure.group == "paper"}
    have = {name.partition(":")[0] for name in presets()}
    # The runs of section 4.2 are those of Figure 3.
    assert wanted - have == {"sec4.2"}
    training = all_figures()["sec4.2"].experiments("quick")["training"]
    shown = read(presets()["fig3: Ising"], Limits())
    assert repr(training.task) == repr(shown.task) and training.method.steps == shown.method.steps


def test_a_link_can_hold_two_settings():
    query = to_query(RING, {"stimulus": "kur", "xi": "1,3", "k": "4"})
    assert from_query(query, Limits()) == (RING, {"stimulus": "kur", "xi": "1,3", "k": "4"})


@pytest.mark.parametrize(
    "query",
    [
        "stimulus=samples&data=/etc/passwd,/etc/hosts",
        "stimulus=image-patches&source=/etc&blur=1,2",
        "stimulus=nlgp&xi=1,3&beside=stimulus%3Dsamples%26data%3D/etc/passwd,x",
        "stimulus=nlgp&xi=1,3&shape=100000x100",
        "stimulus=nlgp&xi=1,3&steps=1000000",
        "stimulus=nlgp&xi=1,3&gain=__import__('os')",
        "stimulus=nlgp&xi=1,3&xi=1,4",
        "stimulus=nope",
        "x" * 300_000,
        "xi",
    ],
    ids=range(10),
)
def test_wrong_links_are_refused(query):
    with pytest.raises(lf.InputError):
        from_query(query, Limits())


# Sliders.


@pytest.mark.parametrize(
    "scale",
    [
        SliderScale(0.1, 1000, log=True),
        SliderScale(-2, 2),
        SliderScale(1, 400, log=True, whole=True),
    ],
)
def test_positions_and_values_belong_together(scale):
    assert (scale.value(0), scale.value(POSITIONS)) == (scale.low, scale.high)
    values = [scale.value(position) for position in range(POSITIONS + 1)]
    assert values == sorted(values)
    for value in set(values):
        assert scale.value(scale.position(value)) == pytest.approx(value, rel=0.02, abs=0.02)


def test_a_scale_is_widened_for_a_value_outside():
    scale = SliderScale(0.1, 90, log=True).including(0.01).including(100)
    assert (scale.value(0), scale.value(POSITIONS)) == (0.01, 100)


@pytest.mark.parametrize("name", STIMULI)
def test_every_place_of_every_slider_is_legal(name):
    """A stimulus of one's own gets sliders too: all that they can say must be allowed by its
    fields.
    """
    for field in fields(registered("stimulus")[name]):
        if isinstance(field.kind, (Number, Count)):
            scale = SliderScale.of(field.kind, float(field.default))
            for position in range(0, POSITIONS + 1, 10):
                field.kind.check(field.name, scale.value(position))


def make_controls(texts, calls=None):
    return Controls(Limits(), texts, (lambda: None) if calls is None else lambda: calls.append(1))


def test_controls_say_what_they_were_given():
    for texts in presets().values():
        assert experiment_of(make_controls(texts).texts).digest == experiment_of(texts).digest


def test_a_slider_writes_the_text_and_a_text_moves_the_slider():
    calls = []
    controls = make_controls(RING, calls)
    gain = controls.fields["gain"]
    gain.sliders[0].value -= 40
    assert 1 < float(gain.text) < 100 and controls.texts["gain"] == gain.text and calls == [1]
    gain.input.value = "0.5"
    assert gain.sliders[0].value == gain.scale.position(0.5) and calls == [1, 1]
    xi = controls.fields["xi"]
    assert len(xi.sliders) == 2
    xi.sliders[1].value += 20
    first, second = map(float, xi.text.split(","))
    assert first == 1 and second > 3


@pytest.mark.parametrize("name", STIMULI)
def test_another_stimulus_brings_its_own_controls(name):
    controls = make_controls(RING)
    controls.stimulus.value = name
    assert controls.texts["stimulus"] == name
    assert controls.texts["steps"] == "40"  # what both have stays
    if name != "dense-gaussian":  # its lattice belongs to its matrix, which is for Python
        assert len(experiment_of(controls.texts).task.stimuli) == 2


def test_a_new_stimulus_appears_by_itself():
    class Doubled(lf.stimuli.NLGP):
        pass

    try:
        controls = make_controls(RING)
        assert "doubled" in controls.stimulus.options
        controls.stimulus.value = "doubled"
        assert {"xi", "gain"} <= set(controls.fields)
    finally:
        del _registry.CLASSES["stimulus"]["doubled"]


def test_the_classes_can_differ_in_another_number():
    controls = make_controls(RING)
    controls.varied.value = "gain"
    texts = controls.texts
    assert "," in texts["gain"] and "," not in texts.get("xi", "3")
    assert len(experiment_of(texts).task.stimuli) == 2


def test_rare_fields_are_kept_while_folded():
    controls = make_controls({**RING, "l2": "0.1"})
    assert "l2" not in controls.fields and controls.texts["l2"] == "0.1"
    controls.rare.collapsed = False
    assert controls.fields["l2"].text == "0.1" and controls.texts["l2"] == "0.1"


# Runs.


def canned_records(first, last, members=2, sites=40):
    steps = np.arange(first, last)
    weights = np.zeros((members, len(steps), 1, sites))
    weights[..., 7] = 1.0
    return msg.Records(
        steps, 0.05 * steps, {"weights": weights, "loss": np.ones((members, len(steps)))}
    )


def canned_run(verdict="localized"):
    return LiveRun(RING, experiment_of(RING), msg.TheoryVerdict(verdict, ""))


def test_records_that_come_twice_count_once():
    run = canned_run()
    run.receive(canned_records(0, 5))
    run.receive(canned_records(3, 8))
    run.receive(canned_records(0, 4))
    assert run.steps.tolist() == list(range(8)) and run.series["weights"].shape == (2, 8, 1, 40)


@pytest.mark.parametrize(
    ("verdict", "word"), [("localized", "Confirmed"), ("oscillatory", "Refuted")]
)
def test_a_prediction_is_confirmed_or_refuted(verdict, word):
    run = canned_run(verdict)
    run.receive(canned_records(0, 5))
    assert word not in run.judgment()  # not before the end
    run.receive(msg.Done("finished", "", 1.0, ("ok", "ok")))
    assert run.judgment().startswith(word)
    run.done = msg.Done("finished", "", 1.0, ("ok", "diverged"))
    assert "diverged" in run.judgment()


def test_a_run_is_a_trajectory():
    run = canned_run()
    run.receive(canned_records(0, 5))
    run.receive(msg.Done("finished", "", 1.0, ("ok", "ok")))
    trajectory = run.trajectory()
    assert trajectory.ipr[:, -1].tolist() == [[1.0], [1.0]] and trajectory.peak[0, -1, 0] == 7


# The page, with a stand-in for the workers.


class RecordingPool:
    """Keeps requests, and lets a test answer them."""

    def __init__(self):
        self.jobs = []

    def submit(self, request, listener, **more):
        job = types.SimpleNamespace(request=request, tell=listener, ended=[])
        job.cancel, job.pause = (
            (lambda: job.ended.append("cancel")),
            (lambda: job.ended.append("pause")),
        )
        self.jobs.append(job)
        return job


@pytest.fixture
def explorer():
    def make(query=""):
        service = types.SimpleNamespace(
            pool=RecordingPool(), limits=Limits(), store=None, downloads=Downloads()
        )
        page = Explorer(service, query)
        page.layout()
        calls = []
        page.document = types.SimpleNamespace(
            add_next_tick_callback=calls.append,
            add_timeout_callback=lambda call, wait: calls.append(call),
        )

        def settle():
            while calls:
                calls.pop()()

        page.settle = settle
        return page

    return make


def test_start_pause_go_on_and_cancel(explorer):
    page = explorer(to_query(RING))
    jobs = page.service.pool.jobs
    assert [job.request.kind for job in jobs] == ["summary"]
    page.start_run()
    run = jobs[-1]
    assert run.request.kind == "run" and page.start.disabled and not page.pause.disabled
    run.tell(canned_records(0, 3))
    page.settle()
    assert page.player.value == 2
    page.pause_run()
    assert run.ended == ["pause"]
    run.tell(msg.RunCheckpoint({"run": np.array("x")}))
    run.tell(msg.Done("cancelled", "", 0.1))
    page.settle()
    assert page.start.label == "Go on" and not page.start.disabled
    page.start_run()
    assert jobs[-1].request.checkpoint is not None
    page.cancel_run()
    assert jobs[-1].ended == ["cancel"] and page.start.label == "Start"


def test_an_older_answer_is_called_off_by_a_newer_one(explorer):
    page = explorer(to_query(RING))
    page.controls.fields["gain"].input.value = "5"
    first, second = page.service.pool.jobs
    assert first.ended == ["cancel"] and second.request.kind == "summary"
    assert experiment_of({**RING, "gain": "5"}).canonical() == second.request.experiment


def test_what_is_wrong_is_said_and_escaped(explorer):
    page = explorer("stimulus=%3Cscript%3E")
    assert "&lt;script&gt;" in page.message.object and "<script>" not in page.message.object
    page = explorer(to_query(RING))
    page.controls.fields["gain"].input.value = "<i>"
    assert (
        "gain" in page.message.object and "<i>" not in page.message.object and page.start.disabled
    )


def test_a_lost_worker_is_told(explorer):
    page = explorer(to_query(RING))
    page.start_run()
    page.service.pool.jobs[-1].tell(msg.Lost("The worker died."))
    page.settle()
    assert "The worker died" in page.status.object and not page.start.disabled


def test_a_kept_run_is_in_the_link(explorer):
    page = explorer(to_query(RING))
    page.start_run()
    page.service.pool.jobs[-1].tell(canned_records(0, 3))
    page.settle()
    page.keep_run()
    page.controls.fields["gain"].input.value = "5"
    texts, beside = from_query(page.copied.value.partition("?")[2], Limits())
    assert (texts["gain"], beside) == ("5", RING)


def test_a_link_to_two_runs_shows_both_after_a_click(explorer):
    page = explorer(to_query({**RING, "gain": "5"}, RING))
    jobs = page.service.pool.jobs
    assert [job.request.kind for job in jobs] == ["summary"]  # no run without a click
    assert page.kept_box.visible and page.keep.label == "Remove kept" and page.start_kept.visible
    page.start_kept.clicks += 1
    page.settle()
    assert (jobs[1].request.kind, jobs[1].request.experiment) == (
        "run",
        experiment_of(RING).canonical(),
    )
    assert not page.start_kept.visible
    jobs[1].tell(canned_records(0, 3))
    page.settle()
    assert page.kept_view.now_source.data["y"][7] == 1.0 and not page.start_kept.visible
    page.keep_run()
    assert not page.kept_box.visible and jobs[1].ended == ["cancel"]


def test_a_kept_run_that_fails_says_so_and_can_be_started_again(explorer):
    page = explorer(to_query({**RING, "gain": "5"}, RING))
    page.start_kept_run()
    page.service.pool.jobs[1].tell(msg.Failed("Too many requests wait."))
    page.settle()
    assert "Too many requests wait." in page.message.object and page.start_kept.visible


def test_a_finished_run_cannot_be_gone_on_with(explorer):
    page = explorer(to_query(RING))
    page.start_run()
    tell = page.service.pool.jobs[-1].tell
    for message in (
        canned_records(0, 3),
        msg.RunCheckpoint({"run": np.array("x")}),
        msg.Done("finished", "", 1.0, ("ok", "ok")),
    ):
        tell(message)
    page.settle()
    assert page.start.label == "Start" and not page.start.disabled


def test_sliders_choose_the_field_and_the_record_that_are_drawn(explorer):
    texts = {**RING, "network": "committee", "hidden": "3"}
    page = explorer(to_query(texts))
    page.start_run()
    weights = np.random.default_rng(0).normal(size=(2, 5, 3, 40))
    steps = np.arange(5)
    loss = np.ones((2, 5))
    page.service.pool.jobs[-1].tell(
        msg.Records(steps, 0.1 * steps, {"weights": weights, "loss": loss})
    )
    page.settle()
    drawn = page.run_view.now_source
    np.testing.assert_array_equal(drawn.data["y"], weights[0, 4, 0])  # the last record of the first
    assert (page.field.start, page.field.end, page.field.disabled) == (1, 6, False)
    for shown, (member, neuron) in {2: (0, 1), 4: (1, 0), 6: (1, 2)}.items():
        page.field.value = shown
        page.settle()
        np.testing.assert_array_equal(drawn.data["y"], weights[member, 4, neuron])
        assert page.run_view.lines.title.text == f"this run: neuron {neuron + 1}"
    page.player.value = 2
    page.settle()
    np.testing.assert_array_equal(drawn.data["y"], weights[1, 2, 2])
    assert page.run_view.series["ipr"].now.location == pytest.approx(0.2)
    # A visitor who looks back is not taken to the end by the next record; one who is at the end is.
    more = msg.Records(
        np.array([5]), np.array([0.5]), {"weights": weights[:, :1], "loss": loss[:, :1]}
    )
    page.service.pool.jobs[-1].tell(more)
    page.settle()
    np.testing.assert_array_equal(drawn.data["y"], weights[1, 2, 2])
    page.player.value = 5
    page.settle()
    np.testing.assert_array_equal(drawn.data["y"], weights[1, 0, 2])
