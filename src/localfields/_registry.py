"""The registry of specification classes: by family and name, from this package and plugins."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import InputError, unknown_name

CLASSES: dict[str, dict[str, type[Any]]] = {}  # by family and name

# The module that defines each family, imported when the family is first needed: a specification can
# be read, and training finds the theories, whatever else has been imported.
HOMES = {
    "baseline": "baselines",
    "experiment": "experiments",
    "gates": "networks.gates",
    "kernel": "lattice",
    "marginal": "marginals",
    "method": "experiments",
    "network": "networks",
    "preprocess": "stimuli",
    "stimulus": "stimuli",
    "sweep": "experiments",
    "task": "tasks",
    "theory": "theory",
}


def name_of(cls: type[Any]) -> str:
    """Return the name used in JSON and at the command line: `StudentT` is `student-t`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def register(cls: type[Any]) -> None:
    """Enter a class under its family and name.

    Raises:
        InputError: If another module has a class of that name.
    """
    known = CLASSES.setdefault(cls.family, {})
    other = known.get(name_of(cls), cls)
    # A second class of the same module is a new version, as in a notebook.
    if other.__module__ != cls.__module__:
        raise InputError(
            f"There are two classes for the {cls.family} `{name_of(cls)}`: {cls.__name__} from "
            f"{other.__module__} and from {cls.__module__}. Rename one."
        )
    known[name_of(cls)] = cls


def families() -> set[str]:
    """Names of all families."""
    return {*HOMES, *CLASSES}


def registered(family: str) -> dict[str, type[Any]]:
    """Return every final class of a family, by name."""
    if family in HOMES:
        importlib.import_module(f".{HOMES[family]}", __package__)
    return {
        name: cls
        for name, cls in sorted(CLASSES.get(family, {}).items())
        if not inspect.isabstract(cls) and not cls.__name__.startswith("Abstract")
    }


def find(family: str, name: str) -> type[Any]:
    """Return the class of that name."""
    known = registered(family)
    if not isinstance(name, str) or name not in known:
        raise unknown_name(family, name, known)
    return known[name]


def attribute(room: str, family: str, name: str) -> type[Any]:
    """The class that a module is asked for, so that new files and plugins need no entry in it."""
    for cls in registered(family).values():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module {room!r} has no attribute {name!r}")


def unambiguous_name(cls: type[Any]) -> str:
    """`marginals.StudentT`, since there is a stimulus of that name; else the name alone."""
    if sum(name_of(cls) in known for known in CLASSES.values()) < 2:
        return cls.__name__
    return f"{cls.__module__.removeprefix('localfields.').partition('.')[0]}.{cls.__name__}"


def discover(package: str, path: Sequence[str]) -> Iterator[str]:
    """Import every module of a folder but those named `_…`, so that a new file is found."""
    for module in pkgutil.walk_packages(path, f"{package}."):
        name = module.name.removeprefix(f"{package}.")
        if not name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)
            yield name
