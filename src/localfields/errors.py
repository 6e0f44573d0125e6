"""Errors for people: one or two sentences that say what is wrong and what to do about it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """A mistake in the input. The command line prints its message and exits with code 2."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training. What was recorded until then is its `trajectory`.

    `except lf.TrainingInterrupted as stop: run = stop.trajectory` keeps it; in a console it is
    `sys.last_value.trajectory`.

    Args:
        trajectory: The run so far; its `stopped` is `cancelled` unless it had reached its end.
    """

    def __init__(self, trajectory: Any):
        super().__init__(trajectory)
        self.trajectory = trajectory

    def __str__(self) -> str:
        return (
            f"Interrupted at step {self.trajectory.steps[-1]}. To keep what was recorded: "
            "`except lf.TrainingInterrupted as stop: run = stop.trajectory`; in a console: "
            "`sys.last_value.trajectory`."
        )


def show(value: object) -> str:
    """A value that the user gave, short enough for one line of a message."""
    return shorten(repr(value), 80)


def shorten(text: object, most: int = 160) -> str:
    """A text, or the message of another library's exception, on one line of limited length."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def printable(text: str) -> str:
    r"""A text of unknown origin without characters that a terminal would obey.

    They are written as in JSON; line breaks stay.

    Example:
        >>> print(printable("ξ\x1b[31m"))
        ξ\u001b[31m
    """
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does.

    Example:
        >>> unknown_name("stimulus", "isling", ["ising", "nlgp"])
        InputError("Unknown stimulus 'isling'. Did you mean 'ising'?")
    """
    known = sorted(known)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    advice = f"Choose one of {', '.join(known)}." if known else "There are none."
    if near:
        advice = f"Did you mean {near[0]!r}?"
    return InputError(f"Unknown {kind} {show(name)}. {advice}")
