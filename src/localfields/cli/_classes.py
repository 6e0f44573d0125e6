"""Classes of one stimulus family from options: a number, or a file of data, is one for all or one a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._check import refuse
from .._spec import Count, Number, fields, from_text
from ._options import Option, changed


def read_task(cls: Any, own: Mapping[str, Option], task: Mapping[str, Option], values: dict[str, Any]) -> Any:
    """Take out of `values` a stimulus's fields and a task's, and make the task of them."""
    from ..tasks import Discrimination

    classes = read_classes(cls, changed(own, values))
    kinds = {field.name: say.kind for field, say in fields(Discrimination)}
    given = {name: kinds[name].parse(name, text) for name, text in changed(task, values).items()}
    return Discrimination(*classes, **given)


def read_classes(cls: Any, given: dict[str, str]) -> list[Any]:
    """One stimulus a class, from texts such as `{"gain": "100", "xi": "1,3"}`."""
    kinds = {field.name: say.kind for field, say in fields(cls)}
    varied = {name: text for name, text in given.items() if _may_vary(kinds[name])}
    several = {name: text.split(",") for name, text in varied.items() if "," in text}
    counts = {len(parts) for parts in several.values()}
    if not counts:
        first = next((name for name, kind in kinds.items() if _may_vary(kind)), "xi")
        numbers = isinstance(kinds.get(first, Number()), (Number, Count))
        advice = f"Give it one value a class, such as --{first} {'1,3' if numbers else 'A,B'}."
        kind = "one of the stimulus's numbers" if numbers else "one of the stimulus's numbers or files"
        refuse("The parameter in which the classes differ", "none", kind, advice)
    if len(counts) > 1:
        got = {name: len(parts) for name, parts in several.items()}
        refuse("The number of classes", got, "the same in every option", "Give each as many values.")
    return [
        from_text(cls, {**given, **{name: parts[c] for name, parts in several.items()}}) for c in range(counts.pop())
    ]


def _may_vary(kind: Any) -> bool:
    return isinstance(kind, (Number, Count)) or getattr(kind, "several", False)
