"""Choosing runs by their experiment, metrics and manifest: `gain=100`, `network=committee`."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import operator
import re
from collections.abc import Collection, Sequence
from typing import Any

from ..errors import InputError, show
from .entry import Entry

_FORM = re.compile(r"\s*([\w.-]+?)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*", re.DOTALL)
_ORDERS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_WORDS = {"true": True, "false": False, "null": None, "none": None}
# By the last name on the way to a value: the whole way, and the value.
Fields = dict[str, list[tuple[tuple[str, ...], Any]]]

LONGEST = 64  # lists longer than this (fields to start from) are not searched


@dataclasses.dataclass(frozen=True)
class Filter:
    """A field, an operator and a value.

    The field may be bare or dotted: `xi`, `stimuli.0.xi` and `task.xi` all find the lengthscales of
    a task. A filter holds if it does for any value that the field has in a run; `!=` if no value is
    equal.

    Example:
        >>> Filter.of("steps>=1e3").holds(fields({"method": {"steps": 2000}}))
        True
    """

    field: str
    operator: str
    value: str

    @classmethod
    def of(cls, text: str) -> Filter:
        """Read a text.

        Raises:
            InputError: When it is none.
        """
        found = _FORM.fullmatch(text)
        if not found:
            raise InputError(
                f"Cannot read the filter {show(text)}. "
                "Give a field, one of = != < <= > >=, and a value, for example gain=100."
            )
        return cls(found[1], "=" if found[2] == "==" else found[2], found[3])

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The parts of the field."""
        return tuple(self.field.replace("-", "_").split("."))

    def values(self, among: Fields) -> list[Any]:
        """All that the field is in a run."""
        wanted = self.names
        return [value for path, value in among.get(_last(wanted), ()) if _leads(wanted, path)]

    def holds(self, among: Fields) -> bool:
        """Whether a run passes; one without the field does not."""
        found = self.values(among)
        if self.operator == "!=":
            return bool(found) and not any(_equal(value, self.value) for value in found)
        if self.operator == "=":
            return any(_equal(value, self.value) for value in found)
        return any(_ordered(value, self.value, _ORDERS[self.operator]) for value in found)


def choose(entries: Sequence[Entry], filters: Sequence[Filter]) -> list[Entry]:
    """The entries that pass all filters.

    Raises:
        InputError: When no entry has a field that is asked for: more likely a slip than a wish.
    """
    if not filters:
        return list(entries)
    chosen, unseen = [], set(filters)
    only = {_last(one.names) for one in filters}
    for entry in entries:
        among = fields(_plain(entry), only)
        if all(one.holds(among) for one in filters):
            chosen.append(entry)
        if unseen:
            unseen = {one for one in unseen if not one.values(among)}
    if entries and unseen:
        one = min(unseen, key=lambda one: one.field)
        known = sorted({name for entry in entries for name in fields(_plain(entry))})
        near = difflib.get_close_matches(one.names[-1], known, n=1, cutoff=0.5)
        hint = "`localfields runs show` prints the fields of a run."
        advice = f"Did you mean {near[0]!r}?" if near else hint
        raise InputError(f"No run in the store has a field {show(one.field)}. {advice}")
    return chosen


def _plain(entry: Entry) -> dict[str, Any]:
    known = {name: entry.meta.get(name) for name in ("metrics", "manifest", "created")}
    return {"digest": entry.digest, **entry.experiment, **known}


def fields(plain: dict[str, Any], only: Collection[str] | None = None) -> Fields:
    """Every value in nested dicts and lists, or those with some last names."""
    found: Fields = {}
    _collect(plain, (), "", found, only)
    return found


def _collect(
    value: Any, path: tuple[str, ...], last: str, found: Fields, only: Collection[str] | None
) -> None:
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and "/" in kind:
            # “network/committee” is found as network=committee, wherever it stands.
            family, _, name = kind.partition("/")
            for other, way in ((family, (*path, family)), ("type", (*path, "type")), (last, path)):
                if other and (only is None or other in only):
                    found.setdefault(other, []).append((way, name))
        for name, inner in value.items():
            name = name.replace("-", "_")
            if isinstance(inner, (dict, list)):
                _collect(inner, (*path, name), name, found, only)
            elif only is None or name in only:
                found.setdefault(name, []).append(((*path, name), inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value) if len(value) <= LONGEST else ():
            _collect(inner, (*path, str(place)), last, found, only)
    elif only is None or last in only:
        found.setdefault(last, []).append((path, value))


def _last(names: tuple[str, ...]) -> str:
    """The last name that is no place in a list."""
    return next((name for name in reversed(names) if not name.isdigit()), "")


def _leads(wanted: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a way passes the wanted names in their order, up to places in a list at its end."""
    if len(wanted) == 1:
        return True
    way = iter(path)
    return all(name in way for name in wanted)


def _number(text: str) -> int | float | None:
    for kind in (int, float):  # whole numbers first: seeds keep their digits
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _equal(value: Any, text: str) -> bool:
    if value is None or isinstance(value, bool):
        return text.lower() in _WORDS and _WORDS[text.lower()] is value
    if isinstance(value, str):
        return value == text
    number = _number(text)
    return number is not None and value == number


def _ordered(value: Any, text: str, compare: Any) -> bool:
    if isinstance(value, str):
        return compare(value, text)  # dates and versions
    number = _number(text)
    if number is None and value is not None and not isinstance(value, bool):
        raise InputError(
            f"Cannot compare a number with {text!r}. Give a number, for example steps>=1000."
        )
    return value is not None and not isinstance(value, bool) and compare(value, number)
