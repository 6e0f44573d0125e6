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

MAX_LIST = 64  # lists longer than this (fields to start from) are not searched


@dataclasses.dataclass(frozen=True)
class Filter:
    """A field, an operator and a value.

    The field may be bare or dotted: `xi`, `stimuli.0.xi` and `task.xi` all find the lengthscales of
    a task. A filter holds if it does for any value that the field has in a run; `!=` if no value is
    equal.

    Example:
        >>> Filter.of("steps>=1e3").holds(fields_of_run({"method": {"steps": 2000}}))
        True
    """

    field: str
    operator: str
    value: str

    @classmethod
    def of(cls, text: str) -> Filter:
        """Read a text.

        Raises:
            InputError: If it is none.
        """
        match = _FORM.fullmatch(text)
        if not match:
            raise InputError(
                f"Cannot read the filter {show(text)}. "
                "Give a field, one of = != < <= > >=, and a value, for example gain=100."
            )
        return cls(match[1], "=" if match[2] == "==" else match[2], match[3])

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The parts of the field."""
        return tuple(self.field.replace("-", "_").split("."))

    def values(self, among: Fields) -> list[Any]:
        """All values that the field has in a run."""
        wanted = self.names
        return [value for path, value in among.get(_last(wanted), ()) if _leads(wanted, path)]

    def holds(self, among: Fields) -> bool:
        """Whether a run passes; one without the field does not."""
        values = self.values(among)
        if self.operator in ("=", "!="):
            equal = any(_equal(value, self.value) for value in values)
            return equal if self.operator == "=" else bool(values) and not equal
        return any(_ordered(value, self.value, _ORDERS[self.operator]) for value in values)


def choose(entries: Sequence[Entry], filters: Sequence[Filter]) -> list[Entry]:
    """The entries that pass all filters.

    Raises:
        InputError: If no entry has a field that is asked for: that is probably a slip.
    """
    if not filters:
        return list(entries)
    chosen, unseen = [], set(filters)
    only = {_last(condition.names) for condition in filters}
    for entry in entries:
        among = fields_of_run(_plain(entry), only)
        if all(condition.holds(among) for condition in filters):
            chosen.append(entry)
        if unseen:
            unseen = {condition for condition in unseen if not condition.values(among)}
    if entries and unseen:
        first = min(unseen, key=lambda condition: condition.field)
        known = sorted({name for entry in entries for name in fields_of_run(_plain(entry))})
        near = difflib.get_close_matches(first.names[-1], known, n=1, cutoff=0.5)
        hint = "`localfields runs show` prints the fields of a run."
        advice = f"Did you mean {near[0]!r}?" if near else hint
        raise InputError(f"No run in the store has a field {show(first.field)}. {advice}")
    return chosen


def _plain(entry: Entry) -> dict[str, Any]:
    known = {name: entry.meta.get(name) for name in ("metrics", "manifest", "created")}
    return {"digest": entry.digest, **entry.experiment, **known}


def fields_of_run(plain: dict[str, Any], only: Collection[str] | None = None) -> Fields:
    """Every value in nested dicts and lists, or those with some last names."""
    collected: Fields = {}
    _collect(plain, (), "", collected, only)
    return collected


def _collect(
    value: Any, path: tuple[str, ...], last: str, collected: Fields, only: Collection[str] | None
) -> None:
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and "/" in kind:
            # “network/committee” is found as network=committee, wherever it stands.
            family, _, name = kind.partition("/")
            for other, way in ((family, (*path, family)), ("type", (*path, "type")), (last, path)):
                if other and (only is None or other in only):
                    collected.setdefault(other, []).append((way, name))
        for name, inner in value.items():
            name = name.replace("-", "_")
            if isinstance(inner, (dict, list)):
                _collect(inner, (*path, name), name, collected, only)
            elif only is None or name in only:
                collected.setdefault(name, []).append(((*path, name), inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value) if len(value) <= MAX_LIST else ():
            _collect(inner, (*path, str(place)), last, collected, only)
    elif only is None or last in only:
        collected.setdefault(last, []).append((path, value))


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
