"""Errors for people: what is wrong, what was got, what is expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn


class InputError(ValueError):
    """A user's mistake, told in one line. The command line prints it and exits with code 2."""


def show(value: object) -> str:
    """Write a value the user gave so that it fits on one line of a message."""
    return shorten(repr(value), 80)


def shorten(text: object, most: int = 160) -> str:
    """Put a text, or what an exception of somebody else's says, on one line of at most that length."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def refuse(what: str, got: object, expected: str, advice: str) -> NoReturn:
    """Raise the four-part message. A string that is shown bare in `got` is given as `Said(...)`."""
    shown = got.text if isinstance(got, Said) else show(got)
    raise InputError(f"{what} must be {expected}, got {shown}. {advice}")


class Said:
    """A description that stands in a message without quotes."""

    def __init__(self, text: str):
        self.text = text


def unknown(what: str, got: str, known: Iterable[str]) -> NoReturn:
    """Refuse a name that is not among the known ones, with the nearest ones as advice."""
    known = sorted(known)
    if not known:
        raise InputError(f"{what} must be left out, as there is none; got {show(got)}. Remove it.")
    near = difflib.get_close_matches(str(got), known, n=1, cutoff=0.5)
    advice = f"Did you mean `{near[0]}`?" if near else "Choose one from that list."
    raise InputError(f"{what} must be one of {', '.join(known)}; got {show(got)}. {advice}")
