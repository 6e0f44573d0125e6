"""Work that would hold up the server's loop: done in a few threads, and handed back to the page that asked."""

from __future__ import annotations

import concurrent.futures
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

Found = TypeVar("Found")

THREADS = concurrent.futures.ThreadPoolExecutor(
    2, thread_name_prefix="page"
)  # for all pages together


def later(document: Any, work: Callable[[], Found], take: Callable[[Found], None]) -> None:
    """Do `work` in a thread, then `take` what it returned in the page's own.

    Args:
        document: Of the page.
        work: Must not touch the page.
        take: May.
    """

    def run() -> None:
        try:
            found = work()
        except Exception:  # nobody waits for a thread: say it where the server speaks
            traceback.print_exc(file=sys.stderr)
            return
        document.add_next_tick_callback(lambda: take(found))

    THREADS.submit(run)
