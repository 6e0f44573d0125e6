"""The phase diagram: cells from the store and from a sweep that never takes more than two places
in the queue.
"""

import html
import math
import re

import numpy as np
import pytest
from bokeh.document import Document

from localfields import InputError
from localfields._spec import registered
from localfields.app import messages as msg
from localfields.app import page as page_module
from localfields.app.diagram import (
    CELL_TEXTS,
    DIAGRAM_NAMES,
    Axis,
    Diagram,
    border_lines,
    cell_limits,
    kurtosis_and_critical,
    load_cells,
    numbers_of,
)
from localfields.app.limits import Limits, is_safe
from localfields.app.phase import MAX_JOBS, Phase
from localfields.app.state import from_query, read, to_query
from localfields.experiments import Training
from localfields.experiments.texts import names_of
from localfields.networks import SingleNeuron
from localfields.store import Store
from localfields.tasks import Discrimination

from .standins import IdleThreads, ImmediateThreads, ManualDocument, canned_service, store_canned

SMALL = "x=0.1,100,3&y=1,4,2"  # six cells
LIMITS = cell_limits(Limits())


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    monkeypatch.setattr(page_module, "THREADS", ImmediateThreads())


def opened(query="", **more):
    document = ManualDocument()
    phase = Phase(canned_service(**more), query, document)
    document.settle()
    return phase


def drawn(phase):
    return np.array(phase.heat.source.data["ipr"], float)


def test_diagram_to_begin_with():
    phase = opened()
    assert len(phase.cells) == 48 and len({cell.digest for cell in phase.cells}) == 48
    assert np.isnan(drawn(phase)).all() and not phase.start.disabled and phase.pause.disabled
    first, last = phase.cells[0].texts, phase.cells[-1].texts
    assert (first["gain"], first["xi"]) == ("0.1", "0.333,1") and (last["gain"], last["xi"]) == (
        "100",
        "2,6",
    )
    assert list(phase.heat.plot.xaxis[0].major_label_overrides.values()) == list(
        phase.diagram.x.values
    )


def test_sweep_fills_the_diagram_two_cells_at_a_time():
    phase = opened(SMALL)
    phase.start_sweep()
    pool, most = phase.service.pool, 0
    for place in range(6):
        most = max(most, len(pool.waiting))
        pool.waiting[0].finish(0.1 + place / 10)
        phase.document.settle()
    assert most == MAX_JOBS == 2 and not pool.waiting and len(pool.jobs) == 6
    assert {job.request.experiment for job in pool.jobs} == {
        cell.experiment for cell in phase.cells
    }
    by_run = {job.request.experiment: 0.1 + place / 10 for place, job in enumerate(pool.jobs)}
    assert drawn(phase) == pytest.approx([by_run[cell.experiment] for cell in phase.cells])
    assert "6 of 6 cells are known" in phase.status.object and phase.bar.value == 100
    assert phase.start.disabled and phase.pause.disabled and not phase.sweeping


def test_order_shows_the_shape_early():
    # Of the first quarter of the cells, some lie in each quarter of the diagram.
    phase = opened("x=0.1,100,6&y=1,6,4")
    phase.start_sweep()
    pool = phase.service.pool
    for _ in range(6):
        pool.waiting[0].finish(0.5)
        phase.document.settle()
    known = {(cell.column < 3, cell.row < 2) for cell in phase.cells if cell.state == "known"}
    assert len(known) == 4


def test_pause_ends_what_is_under_way_and_start_goes_on():
    phase = opened(SMALL)
    phase.start_sweep()
    pool = phase.service.pool
    pool.waiting[0].finish(0.7)
    phase.document.settle()
    running = pool.waiting
    running[0].begin()
    phase.pause_sweep()
    phase.document.settle()
    assert not pool.waiting and [job.state for job in running] == ["cancelled"] * 2
    assert [cell.state for cell in phase.cells].count("known") == 1 and not phase.start.disabled
    running[0].finish(0.9)  # too late: nobody listens
    phase.document.settle()
    assert np.nansum(drawn(phase)) == pytest.approx(0.7)
    phase.start_sweep()
    assert len(pool.waiting) == 2
    phase.reset_cells()
    phase.document.settle()
    assert np.isnan(drawn(phase)).all() and not pool.waiting and not phase.start.disabled


def test_a_full_queue_stops_the_sweep_and_a_bad_cell_does_not():
    phase = opened(SMALL)
    pool = phase.service.pool
    phase.start_sweep()
    pool.waiting[0].begin()
    pool.waiting[0].end(msg.Lost("It is <b>gone</b>."))
    phase.document.settle()
    states = [cell.state for cell in phase.cells]
    assert states.count("failed") == 1 and len(pool.waiting) == 2
    assert (
        "It is &lt;b&gt;gone&lt;/b&gt;." in phase.status.object and "<b>" not in phase.status.object
    )
    pool.refuse = "The queue is full."
    pool.waiting[0].finish(0.5)
    phase.document.settle()
    assert "The queue is full." in phase.message.object and not phase.sweeping and not pool.waiting
    pool.refuse = ""
    phase.start_sweep()  # the bad cell is tried again
    assert "failed" not in [cell.state for cell in phase.cells] and not phase.message.object


def test_runs_that_were_stopped_or_diverged_say_so():
    phase = opened(SMALL)
    phase.start_sweep()
    first, second = phase.service.pool.waiting
    first.begin()
    first.end(msg.Done("cancelled", "", 120.0, note="Paused at the limit of 120 s."))
    second.finish(math.nan, ("diverged at step 7",))
    phase.document.settle()
    notes = {cell.note: cell.state for cell in phase.cells if cell.note}
    assert notes == {"Paused at the limit of 120 s.": "failed", "1 members diverged": "known"}


def test_cells_of_the_store_appear_at_once_and_those_of_others_later(tmp_path):
    store = Store(tmp_path)
    first, other = (
        read(Diagram.of({"x": "0.1,100,3", "y": "1,4,2"}).cell(*at), LIMITS)
        for at in ((0, 0), (2, 1))
    )
    store_canned(store, first, 2)
    phase = opened(SMALL, store=tmp_path)
    assert drawn(phase)[0] == pytest.approx(0.5) and np.isnan(drawn(phase)[1:]).all()
    store_canned(store, other, 4, ("ok", "diverged"))
    phase.poll()
    phase.document.settle()
    assert drawn(phase)[[0, 5]] == pytest.approx([0.5, 0.25]) and "2 of 6" in phase.status.object
    assert [phase.cells[place].note for place in (0, 5)] == ["", "1 members diverged"]
    phase.reset_cells()
    phase.poll()
    phase.document.settle()
    assert np.isnan(drawn(phase)).all()


def test_links_open_the_run_of_the_cell():
    phase = opened("stimulus=ising&x=0.1,1,3&y=0.3,0.9,2")
    links = phase.heat.source.data["link"]
    in_table = [html.unescape(link) for link in re.findall("href='([^']*)'", phase.table.object)]
    assert set(links) == set(in_table) and len(links) == 6
    for link, cell in zip(links, phase.cells, strict=True):
        assert link.startswith("/?")
        texts, _ = from_query(link.removeprefix("/?"), Limits())
        assert read(texts, Limits()).digest == cell.digest
    assert phase.cells[1].texts["coupling"] == "0.55,0.3"  # label 0 across, label 1 up
    assert phase.controls["rule"].disabled and phase.controls["other"].disabled


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("stimulus=<script>alert(1)</script>", "stimulus"),
        ("stimulus=image-patches", "file"),
        ("across=<img src=x>", "umber of `nlgp`"),
        ("x=0.1,100", "from,to,cells"),
        ("x=nan,inf,4", "from,to,cells"),
        ("x=-1,100,4", "`gain`"),
        ("x=1,2,1000000000", "2 to 16"),
        ("x=1,2,16&y=1,2,16", "at most 100"),
        ("x=1;2;x", "`gain`"),
        ("rule=<b>", "rule for label 0"),
        ("other=-1", "`other`"),
        ("gain=3", "`gain`"),
        ("steps=100000", "`steps`"),
        ("members=1000", "`members`"),
        ("batch=20000&steps=5000", "Steps × batch"),
        ("shape=100,100", "sites"),
        ("nonsense=1", "nonsense"),
        ("steps=1&steps=2", "twice"),
        ("&&&", "The link"),
    ],
)
def test_wrong_links_are_told_and_something_is_shown(query, expected, monkeypatch):
    monkeypatch.setattr(page_module, "THREADS", IdleThreads())
    phase = Phase(canned_service(), query, ManualDocument())
    words = phase.message.object
    assert "The link could not be read." in words and expected in html.unescape(words)
    inner = (
        words.removeprefix("<div class='note mistake' role='status'>")
        .replace("<b>", "")
        .replace("</b>", "")
    )
    assert "<" not in inner.removesuffix("</div>")
    assert phase.diagram == Diagram.of({})


def test_address_says_the_whole_diagram():
    query = "stimulus=kur&x=4.5;6;20&y=1,4,2&rule=fixed&other=0.5&steps=200&shape=30"
    phase = opened(query)
    assert (
        not phase.message.object
        and phase.controls["steps"].value == "200"
        and phase.cells[0].texts["xi"] == "0.5,1"
    )
    assert phase.cells[0].texts["shape"] == "30" and phase.cells[2].texts["k"] == "20"
    again = opened(to_query(phase.diagram.texts))
    assert again.diagram == phase.diagram and [a.digest for a in again.cells] == [
        b.digest for b in phase.cells
    ]
    own = {*names_of(Discrimination), *names_of(Training), *names_of(SingleNeuron)}
    own |= {name for cls in registered("stimulus").values() for name in names_of(cls)}
    assert not own & set(DIAGRAM_NAMES)  # else an address could not tell them apart


def test_controls_change_the_diagram_and_mistakes_leave_it():
    phase = opened(SMALL)
    jobs = phase.service.pool.jobs
    phase.start.clicks += 1
    assert not jobs  # a control is answered under the document's lock, not where Panel tells of it
    phase.document.settle()
    assert len(jobs) == 2
    phase.controls["steps"].value = "300"
    assert phase.cells[0].texts["steps"] == "1000"
    phase.document.settle()
    assert all(job.state == "cancelled" for job in jobs) and phase.cells[0].texts["steps"] == "300"
    phase.controls["stimulus"].value = "ising"
    phase.document.settle()
    assert (phase.diagram.x.name, phase.diagram.y.name) == ("coupling", "coupling")
    assert (
        phase.cells[0].texts["steps"] == "300"
        and "coupling J of label 0" in phase.heat.plot.xaxis[0].axis_label
    )
    before = phase.diagram
    phase.controls["x"].value = "one,two"
    phase.document.settle()
    assert "from,to,cells" in phase.message.object and phase.diagram == before
    phase.controls["stimulus"].value = "nlgp"
    phase.document.settle()
    phase.controls["across"].value = "xi"
    phase.document.settle()
    assert phase.diagram.one_number and not phase.message.object


def test_every_stimulus_for_visitors_has_a_diagram():
    for name, cls in registered("stimulus").items():
        if is_safe(cls) and numbers_of(name):
            diagram = Diagram.of({"stimulus": name})
            columns, rows = len(diagram.x.values), len(diagram.y.values)
            legal = 0
            for place in ((0, rows - 1), (columns - 1, 0), (columns // 2, rows // 2)):
                try:
                    read(diagram.cell(*place), LIMITS)
                except InputError:  # such as pulses of one length, or whose longest is the shorter
                    continue
                legal += 1
            assert legal >= 2, name


def test_axis_values_stay_legal_and_are_spread_evenly():
    values = np.array([float(value) for value in Axis.of("gain", "0.1,100,7", "nlgp").values])
    assert np.diff(np.log(values)) == pytest.approx(np.full(6, np.log(1000) / 6), abs=0.02)
    tight = Axis.of("k", "2.0004,3,3", "kur").values  # three digits would be 2, which is no order
    assert float(tight[0]) == 2.0004
    assert Axis.of("length", "1,4,16", "block-pulse").values == ("1", "2", "3", "4")
    linear = [float(value) for value in Axis.of("coupling", "-1,1,5", "ising").values]
    assert linear == [-1, -0.5, 0, 0.5, 1]


@pytest.mark.parametrize("stimulus", ["nlgp", "kur"])
def test_border_is_drawn_where_kurtosis_is_critical(stimulus):
    # Against bisection along one row, with theory evaluated between the cells.
    diagram = Diagram.of({"stimulus": stimulus, "y": "2;3;4"})
    cells = load_cells(diagram, LIMITS, None)
    for cell in cells:
        cell.kurtosis, cell.critical = kurtosis_and_critical(cell.experiment)
    lines = border_lines(cells, len(diagram.x.values))
    assert len(lines) == 1
    place = lines[0][np.argmin(np.abs(lines[0][:, 1] - 1)), 0]
    logs = np.log([float(value) for value in diagram.x.values])

    def gap(at):
        value = math.exp(np.interp(at, np.arange(len(logs)), logs))
        texts = diagram.cell(0, 1) | {diagram.x.name: repr(value)}
        kurtosis, critical = kurtosis_and_critical(read(texts, LIMITS).canonical())
        return kurtosis - critical

    low, high = 0.0, len(logs) - 1.0
    assert gap(low) > 0 > gap(high)
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) > 0 else (low, middle)
    assert place == pytest.approx((low + high) / 2, abs=0.1)  # a tenth of a cell


def test_agreement_is_counted():
    phase = opened(SMALL)
    phase.start_sweep()
    for _ in range(6):
        job = phase.service.pool.waiting[0]
        place = [cell.experiment for cell in phase.cells].index(job.request.experiment)
        localized = phase.cells[place].predicted == "localized"
        job.finish(0.9 if localized or place == 0 else 0.03)
        phase.document.settle()
    assert phase.cells[0].predicted == "not localized"  # gain 0.1
    assert "agree in 5 of 6 cells (localized: IPR above 0.095)" in phase.status.object


def test_a_visitor_who_leaves_takes_the_cells_along():
    phase = opened(SMALL)
    phase.start_sweep()
    jobs = phase.service.pool.waiting
    phase.leave()
    assert [job.state for job in jobs] == ["cancelled"] * 2 and not phase.document


def test_page_is_small():
    document = Document()
    opened(SMALL).layout().server_doc(document)
    assert len(document.models) < 150
    assert set(CELL_TEXTS) <= set(names_of(Training))
