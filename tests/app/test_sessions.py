"""Twenty visitors at once, on the explorer as it is started by people: none fails, and it ends without a word."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from localfields.app.process import resident

from .serving import Visitor, ask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the libraries that draw the pages

VISITORS = 20
MOST_BYTES = 1_200_000_000  # of the server with twenty pages; about 0.6 GB were measured


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """The command in a process of its own: its address and its pid; then Ctrl-C."""
    words = [sys.executable, "-m", "localfields.cli", "app", "--port", "0", "--workers", "1"]
    words += ["--store", str(tmp_path_factory.mktemp("store"))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
    assert found is not None
    yield found.group(), int(found.group(1)), process.pid
    os.kill(process.pid, signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and "Traceback" not in told


def test_twenty_visitors(explorer):
    url, port, pid = explorer
    visitors, failed = [], []

    def visit(place):
        try:
            # Each asks for a task of its own; the gain is swept as by twenty hands on twenty sliders.
            visitors.append(Visitor(url, f"?stimulus=nlgp&xi=1,3&gain={place + 1}&members=2"))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=visit, args=(place,)) for place in range(VISITORS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(300)
    assert not failed and len(visitors) == VISITORS
    # Looking pulls the whole page anew, which is work for the server: two of them look, all of them are answered.
    assert all(visitor.wait(lambda v=visitor: "Asking theory" not in v.texts(), 240) for visitor in visitors[:2])
    waits = []
    for visitor in visitors:
        begin = time.perf_counter()
        visitor.force_roundtrip()
        waits.append(time.perf_counter() - begin)
    assert sorted(waits)[VISITORS // 2] < 1 and ask(port, "/health").status == 200
    assert 0 < resident(pid) < MOST_BYTES
    for visitor in visitors:
        visitor.close()
