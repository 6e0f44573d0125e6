"""A task from options: a number, or a file of data, is one for all classes or one a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._options import Option, changed, parsed


def read_task(cls: Any, own: Mapping[str, Option], task: Mapping[str, Option], values: dict[str, Any]) -> Any:
    """Take out of `values` a stimulus's fields and a task's, and make the task of them."""
    from ..experiments.texts import read_classes
    from ..tasks import Discrimination

    classes = read_classes(cls, changed(own, values))
    return Discrimination(*classes, **parsed(Discrimination, changed(task, values)))
