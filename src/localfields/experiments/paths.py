"""Names of fields inside an experiment: `gain`, `xi[1]`, `network.init_scale`, `stimuli.1.xi`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._spec import Choice, Count, Nested, Number, Spec, fields
from ..errors import InputError, show, unknown_name

Path = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True)
class Target:
    """The fields that a name stands for: one, or the same of every class."""

    label: str
    paths: tuple[Path, ...]
    kind: Any

    def plain(self, value: Any) -> Any:
        """A value for these fields in its JSON form; a list may have one value per class.

        Raises:
            InputError: If the value is illegal.
        """
        if self.is_class_wise(value):
            if len(value) != len(self.paths):
                raise InputError(
                    f"A value of `{self.label}` must be one number for all classes or one per "
                    f"class, got {show(value)}. There are {len(self.paths)} classes; "
                    f"`{self.label}[1]` is the field of class 1 alone."
                )
            return [self._encode(item) for item in value]
        return self._encode(value)

    def _encode(self, value: Any) -> Any:
        checked = self.kind.check(self.label, value)
        if isinstance(self.kind, Number) and np.ndim(checked):
            raise InputError(
                f"A value of `{self.label}` must be one number, got {show(value)}. "
                "Each point of a sweep has one."
            )
        return self.kind.encode(checked)

    def is_class_wise(self, value: Any) -> bool:
        """Whether a value has a part per class: a list, where the field itself takes none."""
        kinds = (Number, Count, Choice, Nested)
        return isinstance(value, (list, tuple)) and isinstance(self.kind, kinds)

    def spread(self, value: Any) -> dict[Path, Any]:
        """The value of every field, from what `plain` returned."""
        values = value if self.is_class_wise(value) else [value] * len(self.paths)
        return dict(zip(self.paths, values, strict=True))


def places(value: Spec, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field inside a specification, with its kind; those of nested ones follow."""
    for field in fields(type(value)):
        path, inner = (*at, field.name), getattr(value, field.name)
        yield path, field.kind
        if isinstance(inner, Spec):
            yield from places(inner, path)
        elif isinstance(inner, tuple):
            for index, part in enumerate(inner):
                if isinstance(part, Spec):
                    yield from places(part, (*path, index))


def resolve(value: Spec, text: Any) -> Target:
    """Find what a name stands for.

    The name is the end of a path: `gain` is that field of every class, `xi[1]` or
    `task.stimuli.1.xi` that of class 1 alone. If fields of different meaning end alike, more of the
    path must be given.

    Raises:
        InputError: If there is no such field, or there are several.

    Example:
        >>> import localfields as lf
        >>> resolve(lf.Experiment(), "xi[1]").paths
        (('task', 'stimuli', 1, 'xi'),)
    """
    all_places = list(places(value))
    if not isinstance(text, str) or not re.fullmatch(r"[a-z]\w*(\.\w+|\[\d+\])*", text):
        raise InputError(
            f"{show(text)} is not the name of a field, such as gain, xi[1] or network.init_scale."
        )
    # `xi[1]` and `stimuli.1.xi` alike: names in order, and the numbers of classes apart.
    tokens = text.replace("[", ".").replace("]", "").split(".")
    names = [token for token in tokens if not token.isdigit()]
    index = [int(token) for token in tokens if token.isdigit()]
    hits = [(path, kind) for path, kind in all_places if _names(path)[-len(names) :] == names]
    if not hits:
        raise unknown_name("field", text, {_names(path)[-1] for path, _ in all_places})
    meanings = {".".join(_names(path)) for path, _ in hits}
    if len(meanings) > 1:
        raise InputError(
            f"`{text}` could mean any of {', '.join(sorted(meanings))}. Give more of its path."
        )
    if index:
        hits = [hit for hit in hits if [i for i in hit[0] if isinstance(i, int)] == index]
    if not hits:
        raise InputError(
            f"`{text}`: the task has no class {str(*index[:1])}. Classes are counted from 0."
        )
    label = names[-1] + "".join(f"[{i}]" for i in index)
    return Target(label, tuple(path for path, _ in hits), hits[0][1])


def _names(path: Path) -> list[str]:
    return [part for part in path if isinstance(part, str)]


def placed(value: Any, changes: Mapping[Path, Any]) -> Any:
    """A copy of a specification with the fields at some paths changed, all at once.

    Raises:
        InputError: If the result is illegal.

    Example:
        >>> import localfields as lf
        >>> placed(lf.Experiment(), {("task", "stimuli", 1, "xi"): 5.0}).task.stimuli[1].xi
        5.0
    """
    if () in changes:
        return changes[()]
    # All changes at once, from the inside out: values that are illegal together with the old ones
    # of other fields may be legal with the new.
    below: dict[Any, dict[Path, Any]] = {}
    for path, new in changes.items():
        below.setdefault(path[0], {})[path[1:]] = new
    if isinstance(value, tuple):
        return tuple(
            placed(part, below[index]) if index in below else part
            for index, part in enumerate(value)
        )
    return value.replace(
        **{name: placed(getattr(value, name), inner) for name, inner in below.items()}
    )
