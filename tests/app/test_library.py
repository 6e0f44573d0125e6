"""Report and stored runs: read in a thread, all words escaped, one file served under one
address.
"""

import asyncio
import hashlib
import html
import json
import re

import pytest
from bokeh.document import Document
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

import localfields as lf
from localfields.app import library
from localfields.app import page as page_module
from localfields.app.library import (
    ALL_STIMULI,
    Library,
    patterns,
    read_runs,
    report_html,
    runs_html,
)
from localfields.app.limits import Limits
from localfields.app.state import from_query, read
from localfields.experiments.texts import experiment_of
from localfields.figures.base import Claim
from localfields.figures.make import FigureRecord, write_records
from localfields.store import Store
from localfields.store.document import seal

from .standins import (
    ImmediateThreads,
    ManualDocument,
    canned_service,
    canned_trajectory,
    store_canned,
)

EVIL = "<script>alert('x')</script>"


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    monkeypatch.setattr(page_module, "THREADS", ImmediateThreads())


def opened(**more):
    document = ManualDocument()
    page = Library(canned_service(**more), "", document)
    assert "Reading" in page.runs.object  # nothing is read before the page is there
    document.settle()
    return page


@pytest.fixture
def report(tmp_path):
    claim = Claim("K1", EVIL, "−2", "−2.1", "differs", f"Because of {EVIL}.", "closed form")
    setting = {"title": "Figure 2", "caption": "", "setting": "", "scale": "tiny", "runs": {}}
    times = {"computed": 1.0, "drawn": 1.0, "elapsed": 1.0, "slowest": (0.0, 0)}
    write_records(
        tmp_path, {"fig2": FigureRecord(name="fig2", claims=(claim,), **setting, **times)}
    )
    (tmp_path / "report.html").write_text("<h1>The report</h1>", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    return tmp_path


def test_no_report_says_how_to_make_one(tmp_path):
    for folder in (None, tmp_path, tmp_path / "absent"):
        page = opened(report=folder)
        assert "localfields reproduce" in page.report.object and "href" not in page.report.object


def test_ledger_is_shown_and_escaped(report):
    page = opened(report=report)
    shown = page.report.object
    assert "0 of 1 published claims are reproduced" in shown and "href='/report'" in shown
    assert "<script" not in shown and shown.count(html.escape(EVIL)) == 2
    (row,) = table(shown)
    verdict = row.pop("verdict")
    assert row == {"": "K1", "claim": EVIL, "published": "−2", "here": "−2.1"}
    assert verdict == f"differsBecause of {EVIL}."
    (report / "claims.json").write_text("{broken", encoding="utf-8")
    assert report_html(report).count("href") == 1  # the page can still be opened


def fetch(service, *paths):
    async def ask():
        sockets = bind_sockets(0, "127.0.0.1")
        server = HTTPServer(Application(patterns(service)))
        server.add_sockets(sockets)
        root = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        try:
            return [await AsyncHTTPClient().fetch(root + path, raise_error=False) for path in paths]
        finally:
            server.stop()

    return asyncio.run(ask())


def test_one_file_is_served_and_no_other(report):
    whole, *others = fetch(
        canned_service(report=report),
        "/report",
        "/report/secret.txt",
        "/report/../secret.txt",
        "/report%2fsecret.txt",
        "/reportsecret.txt",
    )
    assert whole.code == 200 and whole.body == b"<h1>The report</h1>"
    assert whole.headers["Content-Type"] == "text/html; charset=utf-8"
    assert [reply.code for reply in others] == [404] * 4
    same = fetch(canned_service(report=report), "/report?path=secret.txt")[0]
    assert same.body == whole.body
    (report / "report.html").unlink()
    assert [
        reply.code
        for folder in (report, None)
        for reply in fetch(canned_service(report=folder), "/report")
    ] == [404, 404]


def typed(**texts):
    return experiment_of({"stimulus": "nlgp", "xi": "0.5,1", "shape": "12", **texts})


def table(text):
    """The rows of the first table as dictionaries of words by the heads of its columns."""
    rows = [
        [
            html.unescape(re.sub("<.*?>", "", cell))
            for cell in re.findall("<t[hd].*?>(.*?)</t[hd]>", row)
        ]
        for row in re.findall("<tr>(.*?)</tr>", text)
    ]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def links(page):
    return [html.unescape(link) for link in re.findall("href='([^']*)'", page.runs.object)]


def test_stored_runs_newest_first_with_links(tmp_path):
    runs = [typed(gain="2"), typed(gain="5", members="3")]
    runs.append(
        experiment_of({"stimulus": "ising", "coupling": "0.3,0.7", "shape": "12", "steps": "70"})
    )
    for sites, run in enumerate(runs, start=1):
        store_canned(Store(tmp_path), run, sites)
    page = opened(store=tmp_path)
    digests = [
        read(from_query(link.removeprefix("/?"), Limits())[0], Limits()).digest
        for link in links(page)
    ]
    assert digests == [run.digest for run in reversed(runs)]
    assert "3 runs" in page.runs.object
    shown = table(page.runs.object)
    for row, run, sites in zip(shown, reversed(runs), (3, 2, 1), strict=True):
        assert row["run"] == run.digest[:12] and row["network"] == "single-neuron"
        assert row["IPR"] == f"{1 / sites:.3f}" and row["members"] == "2"  # of what was stored
        assert row["steps"] == str(run.method.steps)
    assert [row["stimulus"] for row in shown] == ["ising", "nlgp", "nlgp"]
    assert "gain=5" in shown[1]["setting"] and "gain=2" in shown[2]["setting"]
    assert page.filter.options == {
        ALL_STIMULI: ALL_STIMULI,
        "ising (1)": "ising",
        "nlgp (2)": "nlgp",
    }
    page.filter.value = "nlgp"
    page.document.settle()
    assert len(links(page)) == 2 and "2 runs" in page.runs.object


def test_runs_that_cannot_be_opened_say_why(tmp_path):
    store = Store(tmp_path)
    task = typed().task
    store_canned(store, lf.Experiment(task, method=lf.Solution()))
    store_canned(store, typed(members="1000"))
    page = opened(store=tmp_path)
    assert not links(page) and page.runs.object.count("not here") == 2
    assert (
        "`members` must be at most 100 here" in page.runs.object
        and "theory: effective-flow" in page.runs.object
    )


def stored_text(store, plain):
    """Store a result under a specification that no version of ours writes."""
    text = json.dumps(plain)
    store.save(text, hashlib.sha256(text.encode()).hexdigest(), canned_trajectory(typed()))


def test_words_of_a_store_are_escaped_and_its_files_are_not_opened(tmp_path, monkeypatch):
    store = Store(tmp_path / "runs")
    stored_text(
        store, {"schema": 2, "task": {"stimuli": [{"type": f"stimulus/{EVIL}"}]}, "network": EVIL}
    )
    stored_text(store, {"schema": 2, "task": EVIL, "method": [EVIL]})
    image = {"type": "stimulus/image-patches", "folder": str(tmp_path)}
    stored_text(
        store, {"schema": 2, "task": {"type": "task/discrimination", "stimuli": [image, image]}}
    )
    page = opened(store=store.path)
    shown = page.runs.object
    assert "<script" not in shown and html.escape(EVIL, quote=True) in shown
    assert shown.count("not here") == 3 and "may name a file" in shown
    assert not links(page) and any(EVIL.rpartition("/")[2] in name for name in page.filter.options)


def test_damaged_runs_are_counted_and_a_missing_store_is_none(tmp_path):
    store = Store(tmp_path)
    store_canned(store, typed(gain="2"))
    store_canned(store, typed(gain="5"))
    (tmp_path / typed(gain="5").digest / "meta.json").write_text("{}", encoding="utf-8")
    with pytest.warns(UserWarning, match="cannot be read"):
        page = opened(store=tmp_path)
    assert "1 more cannot be read" in page.runs.object and len(links(page)) == 1
    assert "no such runs" in opened(store=tmp_path / "absent").runs.object
    Store(tmp_path).remove(typed(gain="2").digest)
    with pytest.warns(UserWarning, match="cannot be read"):
        page = opened(store=tmp_path)
    assert "0 runs; 1 more cannot be read" in page.runs.object
    assert "without a store" in opened().runs.object


def test_a_forged_run_is_left_out_and_counted(tmp_path):
    store = Store(tmp_path)
    store_canned(store, typed(gain="2"))
    store_canned(store, typed(gain="5"))
    path = tmp_path / typed(gain="5").digest / "meta.json"
    meta = json.loads(path.read_text())
    del meta["checksum"]
    meta["metrics"]["ipr"] = 10**299
    path.write_text(seal(meta))
    with pytest.warns(UserWarning, match="`ipr`"):
        page = opened(store=tmp_path)
    assert "1 more cannot be read" in page.runs.object and len(links(page)) == 1


def test_many_runs_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "MAX_RUNS", 2)
    for gain in range(5, 9):
        store_canned(Store(tmp_path), typed(gain=str(gain)))
    page = opened(store=tmp_path)
    assert "The newest 2 of 4 runs" in page.runs.object
    assert [re.search("gain=([^&]*)", link)[1] for link in links(page)] == ["8", "7"]


def test_answers_to_older_questions_are_dropped(tmp_path):
    store_canned(Store(tmp_path), typed(gain="2"))
    page = opened(store=tmp_path)
    old = read_runs(tmp_path)
    page.load_runs()
    page._runs_loaded(page.number - 1, (old, runs_html(old, Limits(), dark=False)))
    assert "Reading" in page.runs.object
    page.document.settle()
    assert ">1 run." in page.runs.object


def test_page_is_small(report, tmp_path):
    document = Document()
    opened(report=report).layout().server_doc(document)
    assert len(document.models) < 150
