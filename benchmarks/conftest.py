"""Benchmarks report ratios measured in one run: both sides are timed in turn, and the median of the
ratios counts.

Every benchmark adds a row to one table, printed at the end and written to `report/bench.json` with
its limit.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))  # visitors of the explorer
ROWS: list[dict[str, Any]] = []


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def clock(call: Callable[[], Any], rounds: int = 3) -> float:
    """Median seconds of a call that returns when it is done."""
    return statistics.median(seconds(call) for _ in range(rounds))


def interleaved(calls: dict[str, Callable[[], Any]], rounds: int = 31) -> dict[str, list[float]]:
    """Seconds of each call, taken in turn, after two calls to compile and to warm up."""
    for call in calls.values():
        seconds(call)
        seconds(call)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return times


def ratio(times: dict[str, list[float]], one: str, other: str) -> float:
    """Median over the rounds of the ratio within a round: slow drifts of a shared machine
    cancel.
    """
    return statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))


@pytest.fixture
def report():
    """Add a row: what, value, unit, and the limit that must hold (None: reported only)."""

    def add(
        what: str, value: float, unit: str = "×", limit: float | None = None, **more: Any
    ) -> None:
        ROWS.append({"what": what, "value": value, "unit": unit, "limit": limit, **more})
        if limit is not None:
            assert value <= limit, f"{what}: {value:.3g} {unit}, the limit is {limit:g}"

    return add


def pytest_terminal_summary(terminalreporter):
    if not ROWS:
        return
    terminalreporter.section("measured")
    for row in ROWS:
        limit = "" if row["limit"] is None else f"  (limit {row['limit']:g})"
        terminalreporter.write_line(f"{row['what']:<78} {row['value']:>9.3g} {row['unit']}{limit}")
    folder = ROOT / "report"
    folder.mkdir(exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(ROWS, indent=2, ensure_ascii=False) + "\n")
