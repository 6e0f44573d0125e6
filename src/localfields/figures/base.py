"""What a figure is: experiments, how to draw them, and what they claim or answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from ..experiments import Experiment
from ..trajectory import Trajectory

Verdict = Literal["reproduced", "differs", "not comparable"]
FigureScale = Literal["paper", "quick", "tiny"]
Group = Literal["paper", "notes", "extra"]
GROUPS: tuple[Group, ...] = ("paper", "notes", "extra")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Claim:
    """One published number (or statement) beside ours.

    Args:
        id: Short name, such as K1.
        statement: What is claimed, in a sentence.
        published: As printed.
        measured: As found here, with its spread over seeds where it has one.
        verdict: reproduced, differs or not comparable.
        reason: Why, in a sentence; the experiment behind it where the two differ.
        how: How ours is obtained.
    """

    id: str
    statement: str
    published: str
    measured: str
    verdict: Verdict
    reason: str
    how: str


@dataclasses.dataclass(frozen=True)
class Question:
    """What a working note asks or leaves open, and our answer.

    Args:
        id: Short name, such as Q1.
        source: Where it is asked, such as note 1, §5.1.
        question: What is asked or stated, in a sentence.
        answer: Ours, in a sentence or two.
        measured: The number behind it, with its spread over seeds where it has one.
        how: How that is obtained.
    """

    id: str
    source: str
    question: str
    answer: str
    measured: str
    how: str


@dataclasses.dataclass(frozen=True)
class Results(Mapping[str, Trajectory]):
    """The runs of a figure by the names of its experiments, and the scale they were made at."""

    scale: FigureScale
    runs: Mapping[str, Trajectory]
    kept: dict[Any, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def once(self, name: Any, compute: Callable[[], T]) -> T:
        """What drawing and claims both need and takes its time: computed for the first that asks.

        Example:
            >>> results = Results("tiny", {})
            >>> results.once("sum", lambda: 1 + 1), results.once("sum", lambda: 1 / 0)
            (2, 2)
        """
        if name not in self.kept:
            self.kept[name] = compute()
        return self.kept[name]

    def __getitem__(self, name: str) -> Trajectory:
        """The run of that name."""
        return self.runs[name]

    def __iter__(self) -> Any:
        """Names, in the order of the experiments."""
        return iter(self.runs)

    def __len__(self) -> int:
        """How many."""
        return len(self.runs)


def no_experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """For a figure that needs no run."""
    return {}


def none(results: Results) -> Sequence[Any]:
    """For a figure without claims, or without questions."""
    return ()


class NamedFigure:
    """What follows from the name of a figure and whether it is of our own."""

    name: str
    extra: bool

    @property
    def group(self) -> Group:
        """Whose it is: the paper's, the working notes', or our own."""
        return "extra" if self.extra else "notes" if self.name.startswith("notes/") else "paper"

    @property
    def stem(self) -> str:
        """What its files are called."""
        return self.name.replace("/", "-")


@dataclasses.dataclass(frozen=True)
class PaperFigure(NamedFigure):
    """A figure of the paper or its working notes: experiments, and what is made of their results.

    Args:
        name: As on the command line, such as fig5; one of the notes is called notes/ and a word.
        title: Above the figure.
        caption: What is to be seen, and what is ours rather than the paper's.
        setting: The settings at a scale, in words, with the estimator.
        draw: Draws results as a matplotlib figure.
        claims: The ledger rows that follow from results.
        experiments: What is to be run at a scale, by name.
        questions: What is asked, by the notes or by us, with the answers that follow from results.
        extra: Whether it is our own, of neither the paper nor the notes: made only when named.
    """

    name: str
    title: str
    caption: str
    setting: Callable[[FigureScale], str]
    draw: Callable[[Results], Any]
    claims: Callable[[Results], Sequence[Claim]] = none
    experiments: Callable[[FigureScale], Mapping[str, Experiment]] = no_experiments
    questions: Callable[[Results], Sequence[Question]] = none
    extra: bool = False


def at(scale: FigureScale, *, paper: T, quick: T, tiny: T) -> T:
    """The value of a setting at a scale: the paper's, a first look, or enough to run the code."""
    return {"paper": paper, "quick": quick, "tiny": tiny}[scale]


def verdict(holds: Any) -> Verdict:
    """Reproduced, or not (a bool, or one of numpy)."""
    return "reproduced" if holds else "differs"


def spread(values: Any, digits: int = 2) -> str:
    """Mean and standard deviation over seeds, in words.

    Example:
        >>> spread([0.84, 0.86], digits=3)
        '0.850 ± 0.014'
    """
    values = np.asarray(values, float).ravel()
    if len(values) == 1:
        return printed(values[0], digits)
    return f"{printed(values.mean(), digits)} ± {printed(values.std(ddof=1), digits)}"


def printed(value: float, digits: int = 2) -> str:
    """A number in print, with a minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")


def rounds_to(value: float, published: float, digits: int) -> bool:
    """Whether a value agrees with a published one at the digits printed."""
    return abs(value - published) <= 0.5 * 10.0**-digits + 1e-12
