"""Twenty visitors at once, on the explorer as it is started by people: none fails, and it ends
without a word.
"""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from localfields.app.process import memory_bytes

from .serving import Visitors, ask

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # those of the libraries that draw the pages
]

VISITORS = 20
MOST_BYTES = 1_200_000_000  # of the server with twenty pages; about 0.6 GB were measured


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """The command in a process of its own: its address and its pid; then Ctrl-C."""
    words = [sys.executable, "-m", "localfields.cli", "app", "--port", "0", "--workers", "1"]
    words += ["--store", str(tmp_path_factory.mktemp("store"))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    match = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
    assert match is not None
    yield match.group(), int(match.group(1)), process.pid
    os.kill(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and "Traceback" not in errors


def test_twenty_visitors(explorer):
    url, port, pid = explorer
    # Each asks for a task of its own, as by twenty hands on twenty sliders.
    queries = [f"?stimulus=nlgp&xi=1,3&gain={place + 1}&members=2" for place in range(VISITORS)]
    visitors = Visitors(url, queries)
    visitors.wait(lambda: all(visitors.heard))  # the prediction of each
    waits = []
    for _ in range(VISITORS):
        begin = time.perf_counter()
        assert ask(port, "/health").status == 200
        waits.append(time.perf_counter() - begin)
    assert sorted(waits)[VISITORS // 2] < 1
    assert 0 < memory_bytes(pid) < MOST_BYTES
    visitors.close()
    assert not visitors.failed
