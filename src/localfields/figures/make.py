"""Making figures: experiments from the store or computed, drawings and claims into a folder."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .._files import publish
from ..errors import TrainingInterrupted
from ..experiments import Experiment, run_or_load
from ..store import Store
from ..trajectory import Trajectory
from .base import Claim, FigureScale, NamedFigure, PaperFigure, Question, Results

SUFFIXES = (".pdf", ".svg", ".png")
LEDGER = "claims.json"

OnProgress = Callable[[str, float], None]
"""Called with a few words and the share of the figure that is done."""


@dataclasses.dataclass(frozen=True)
class FigureRecord(NamedFigure):
    """A figure as made: what the report says of it.

    Args:
        name: Of the figure.
        title: Above it.
        caption: What is to be seen.
        setting: How its runs were made, in words.
        scale: paper, quick or tiny.
        runs: Digest of each experiment, by name.
        computed: Seconds its runs took when they were computed, each with others beside it.
        drawn: Seconds that drawing and claims took.
        elapsed: Seconds from beginning to end this time; less where runs were there already.
        slowest: Seconds of its slowest run, and how many members that had.
        claims: Its rows of the ledger.
        questions: Its rows of the questions.
        extra: Whether it is of our own, of neither the paper nor the notes.
    """

    name: str
    title: str
    caption: str
    setting: str
    scale: FigureScale
    runs: dict[str, str]
    computed: float
    drawn: float
    elapsed: float
    slowest: tuple[float, int]
    claims: tuple[Claim, ...]
    questions: tuple[Question, ...] = ()
    extra: bool = False


class Interrupted(Exception):
    """Somebody pressed Ctrl-C; what was computed is kept."""


def make(
    figure: PaperFigure,
    scale: FigureScale,
    store: Store,
    folder: Path,
    on_progress: OnProgress = lambda text, share: None,
) -> FigureRecord:
    """Make one figure: run what is missing, draw it, and compute its claims.

    Args:
        figure: Which.
        scale: At which settings.
        store: Where runs are found and kept.
        folder: Where pictures go.
        on_progress: Called with a few words and the share that is done.

    Raises:
        Interrupted: When training was interrupted; calling this again goes on from there.
    """
    begin = time.perf_counter()
    experiments = figure.experiments(scale)
    runs = _run_all(experiments, store, on_progress)
    on_progress("drawing", 1.0)
    start = time.perf_counter()
    results = Results(scale, runs)
    picture = figure.draw(results)
    picture.draw_without_rendering()
    picture.set_layout_engine("none")  # laid out once, not for every format
    for suffix in SUFFIXES:
        publish(folder / (figure.stem + suffix), lambda path: _save(picture, path))
    claims = tuple(_at_scale(claim, results) for claim in figure.claims(results))
    questions = tuple(figure.questions(results))
    seconds = {name: seconds_of(run) for name, run in runs.items()}
    longest = max(seconds, key=lambda name: seconds[name], default=None)
    return FigureRecord(
        name=figure.name,
        title=figure.title,
        caption=figure.caption,
        setting=figure.setting(scale),
        scale=scale,
        runs=digests(experiments),
        computed=sum(seconds.values()),
        drawn=time.perf_counter() - start,
        elapsed=time.perf_counter() - begin,
        slowest=(0.0, 0) if longest is None else (seconds[longest], runs[longest].num_members),
        claims=claims,
        questions=questions,
        extra=figure.extra,
    )


def _at_scale(claim: Claim, results: Results) -> Claim:
    """What runs smaller than the paper's do not show is no difference to the paper."""
    if claim.verdict != "differs" or results.scale == "paper" or not results:
        return claim
    reason = f"It differs in these runs, which are smaller than the paper's. {claim.reason}"
    return dataclasses.replace(claim, verdict="not comparable", reason=reason)


def _run_all(
    experiments: Mapping[str, Experiment], store: Store, on_progress: OnProgress
) -> dict[str, Trajectory]:
    """Load or run all, as many at once as there are cores: most runs keep one core busy."""
    stop, done = threading.Event(), dict.fromkeys(experiments, 0.0)

    def run_one(name: str, experiment: Experiment) -> Trajectory:
        def on_step(now: Any) -> None:
            done[name] = now.step / max(now.steps, 1)
            on_progress(f"{name}, step {now.step} of {now.steps}", sum(done.values()) / len(done))

        on_progress(name, sum(done.values()) / len(done))
        try:
            run = run_or_load(experiment, store, on_progress=on_step, cancel=stop.is_set)
        except TrainingInterrupted as interrupt:
            run = interrupt.trajectory
        done[name] = 1.0
        return run

    with concurrent.futures.ThreadPoolExecutor(_workers()) as pool:
        futures = {
            name: pool.submit(run_one, name, experiment) for name, experiment in experiments.items()
        }
        try:
            runs = {name: future.result() for name, future in futures.items()}
        except BaseException:
            stop.set()  # the others keep what they have, and end
            pool.shutdown(cancel_futures=True)
            raise
    cancelled = [name for name, run in runs.items() if run.stopped == "cancelled"]
    if cancelled:
        raise Interrupted(cancelled[0])
    return runs


def _workers() -> int:
    import jax

    return max(1, min(4, os.cpu_count() or 1)) if jax.default_backend() == "cpu" else 1


def seconds_of(run: Trajectory) -> float:
    """Seconds a run took when it was computed, compilation included."""
    return sum(float(run.manifest.get(part) or 0) for part in ("compile_seconds", "run_seconds"))


def is_current(
    figure: PaperFigure, scale: FigureScale, folder: Path, records: Mapping[str, FigureRecord]
) -> bool:
    """Whether a folder holds this figure, made at this scale of these experiments."""
    old = records.get(figure.name)
    if old is None or (old.scale, old.runs) != (scale, digests(figure.experiments(scale))):
        return False
    return all((folder / (figure.stem + suffix)).is_file() for suffix in SUFFIXES)


def digests(experiments: Mapping[str, Experiment]) -> dict[str, str]:
    """The digest of each."""
    return {name: experiment.digest for name, experiment in experiments.items()}


def read_records(folder: Path) -> dict[str, FigureRecord]:
    """What an earlier report in a folder says of its figures; nothing if none can be read."""
    try:
        plain = json.loads((folder / LEDGER).read_text(encoding="utf-8"))
        records = {}
        for entry in plain["figures"]:
            rows = {
                "claims": tuple(Claim(**claim) for claim in entry["claims"]),
                "questions": tuple(Question(**question) for question in entry.get("questions", ())),
            }
            records[entry["name"]] = FigureRecord(
                **{**entry, **rows, "slowest": tuple(entry["slowest"])}
            )
        return records
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def write_records(folder: Path, records: Mapping[str, FigureRecord]) -> None:
    """Write the ledger."""
    plain = {"figures": [dataclasses.asdict(record) for record in records.values()]}
    text = json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    publish(folder / LEDGER, lambda path: path.write_text(text, encoding="utf-8"))


def _save(picture: Any, path: Path) -> None:
    from matplotlib import rc_context

    # No date and no random names inside: the same runs give the same file.
    metadata = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}[path.suffix]
    with rc_context({"svg.hashsalt": "localfields"}):
        picture.savefig(path, dpi=160, metadata=metadata)
