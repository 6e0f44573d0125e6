"""What a figure of the paper is: a value with its settings, how to draw it, and what it claims."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

Verdict = Literal["reproduced", "differs", "not comparable"]
Step = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Claim:
    """One published number (or statement) beside ours.

    Args:
        id: Short name, such as K1.
        statement: What is claimed, in a sentence.
        published: As printed.
        measured: As found here, with its uncertainty where it has one.
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
class PaperFigure:
    """A figure: `draw` returns a matplotlib figure, `claims` the ledger rows that belong to it.

    Both receive a function to call with a few words at each step of work, which moves the progress bar.
    """

    name: str
    title: str
    setting: str
    caption: str
    steps: int
    draw: Callable[[Step], Any]
    claims: Callable[[Step], Sequence[Claim]]


def rounds_to(value: float, published: float, digits: int) -> bool:
    """Whether a value agrees with a published one at the digits printed."""
    return abs(value - published) <= 0.5 * 10.0**-digits + 1e-12
