"""What commands show while they run: read back from what is drawn, for progress that is made up."""

import io

import numpy as np
import pytest
from rich.console import Console

from localfields.cli import _options, _run, reproduce, sweep
from localfields.experiments.plan import duration
from localfields.experiments.runner import SweepProgress
from localfields.training.loop import Progress

from .conftest import read_table


@pytest.fixture
def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=160, color_system=None)


def drawn(shown):
    """The text of something that rich draws."""
    console = Console(file=io.StringIO(), width=160)
    console.print(shown)
    return console.file.getvalue()


def test_training_is_a_table(terminal):
    told = Progress(
        step=300,
        steps=1000,
        seconds=5.0,
        time=15.0,
        ipr=np.array([0.1, 0.2, 0.6]),
        loss=np.array([0.25, 0.5, 0.25]),
        record_bytes=2_500_000,
        first_step=100,
    )
    with _run.LiveTable(terminal) as table:
        table.show(told)
        shown = drawn(table.live.get_renderable())
    assert read_table(shown) == [
        {
            "step": "300 of 1000",
            "flow time": "15",
            "IPR": "0.300 (0.100–0.600)",
            "loss": "0.3333",
            "steps/s": "40",  # 200 in 5 seconds
            "left": "18 s",  # 700 to go
            "records": "2.5 MB",
        }
    ]


def test_training_that_nobody_watches_draws_nothing():
    console = Console(file=io.StringIO())
    with _run.LiveTable(console) as table:
        table.show(None)
    assert console.file.getvalue() == ""


def test_a_prediction_says_what_it_is_doing(terminal, monkeypatch):
    monkeypatch.setattr("rich.console.Console", lambda **settings: terminal)
    with _options.working("starting") as status:
        status.update("measuring 2,000 rows of class 1 of 2")
        assert "measuring 2,000 rows of class 1 of 2" in drawn(status.renderable)
    monkeypatch.setattr("rich.console.Console", lambda **settings: Console(file=io.StringIO()))
    with _options.working("starting") as status:
        assert status is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5999, "100 min"),
        (6000, "1.7 h"),
        (9e5, "250.0 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_figures_move_a_bar(terminal):
    with reproduce.figures_bar(terminal, 4) as bar:
        reproduce.updater(bar, 2, "fig3")("training", 0.25)
        (task,) = bar.tasks
        assert (task.completed, task.total) == (2.25, 4)
        assert "fig3: training" in drawn(bar.get_renderable())


@pytest.mark.parametrize(
    ("failed", "seconds", "left"),
    [(0, 10.0, "20 s left"), (3, 10.0, "20 s left, 3 failed"), (0, 0.0, "compiling")],
)
def test_a_sweep_moves_a_bar(failed, seconds, left, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with sweep.sweep_bar("10 points in 2 runs") as bar:
        assert not bar.disable
        sweep.update(bar, SweepProgress(done=4, total=10, reused=1, failed=failed, seconds=seconds))
        (task,) = bar.tasks
        assert (task.completed, task.total, task.fields["left"]) == (4, 10, left)
        assert task.description == "10 points in 2 runs"
