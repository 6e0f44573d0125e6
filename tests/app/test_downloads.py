"""Files of a run: offered under a secret of the page, with what the page shows inside."""

import asyncio
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from localfields.app import messages as msg
from localfields.app.downloads import FILE_TYPES, Downloads, make_file
from localfields.app.live_run import LiveRun
from localfields.experiments.texts import experiment_of

TEXTS = {"stimulus": "nlgp", "xi": "1,2", "shape": "12", "steps": "20", "members": "2"}


def finished_run(seed=0):
    """Two members with three records of random fields."""
    run = LiveRun(TEXTS, experiment_of(TEXTS))
    weights = np.random.default_rng(seed).normal(size=(2, 3, 1, 12)).astype(np.float32)
    steps = np.array([0, 10, 20])
    series = {"weights": weights, "loss": np.arange(6.0).reshape(2, 3)}
    run.receive(msg.Records(steps, 0.05 * steps, series))
    run.receive(msg.Done("finished", "", 1.0, ("ok", "ok")))
    return run


def test_data_hold_what_the_page_shows(tmp_path):
    run = finished_run()
    path = tmp_path / "run.nc"
    path.write_bytes(make_file(run.trajectory(), "nc"))
    with xr.open_dataset(path) as dataset:
        np.testing.assert_array_equal(dataset["weights"], run.series["weights"])
        np.testing.assert_array_equal(dataset["loss"], run.series["loss"])
        np.testing.assert_allclose(dataset["time"], run.times)


def test_the_picture_is_an_svg():
    tree = ElementTree.parse(io.BytesIO(make_file(finished_run().trajectory(), "svg")))
    assert tree.getroot().tag.endswith("}svg")


def fetch(downloads, *paths):
    async def ask():
        sockets = bind_sockets(0, "127.0.0.1")
        server = HTTPServer(Application(downloads.patterns()))
        server.add_sockets(sockets)
        root = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        try:
            return [await AsyncHTTPClient().fetch(root + path, raise_error=False) for path in paths]
        finally:
            server.stop()

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_links_lead_to_the_run_that_is_shown_last(kind, tmp_path):
    downloads, first, second = Downloads(), object(), object()
    downloads.publish(first, finished_run(1))
    downloads.publish(second, finished_run(2))
    downloads.publish(first, finished_run(3))
    links = {
        page: dict(re.findall(r"href='(.*?)' download='(.*?)'", downloads.links(page)))
        for page in (first, second)
    }
    for page, offered in links.items():
        assert sorted(offered.values()) == [f"nlgp.{suffix}" for suffix in sorted(FILE_TYPES)], page
    assert not set(links[first]) & set(links[second])
    paths = [next(one for one in links[page] if one.endswith(kind)) for page in (first, second)]
    for reply, seed in zip(fetch(downloads, *paths), (3, 2), strict=True):
        assert reply.code == 200 and reply.headers["Content-Type"] == FILE_TYPES[kind][0]
        assert f'filename="nlgp.{kind}"' in reply.headers["Content-Disposition"]
        if kind == "nc":
            (tmp_path / "x.nc").write_bytes(reply.body)
            with xr.open_dataset(tmp_path / "x.nc") as dataset:
                np.testing.assert_array_equal(
                    dataset["weights"], finished_run(seed).series["weights"]
                )
    downloads.withdraw(first)
    gone, other = fetch(downloads, *paths)
    assert (gone.code, other.code) == (404, 200)
