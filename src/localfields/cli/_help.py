"""Help without the libraries that compute: while it is printed, stand-ins take their place.

Options are read from the declared fields of classes, whose modules import JAX and equinox at the
top. To read declarations nothing of these has to work, so their modules are replaced by ones that
have every name, as documentation tools do. The process only prints help after that.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

LIBRARIES = ("jax", "jaxlib", "equinox", "jaxtyping", "optax", "diffrax", "optimistix", "lineax")
LIBRARIES += ("scipy", "xarray", "sklearn", "matplotlib")


def prints_help(argv: Sequence[str]) -> bool:
    """Whether a command prints its help and does nothing else."""
    return any(word in ("-h", "--help") for word in argv)


def use_stand_ins() -> None:
    """Replace the libraries in this process, unless one is loaded or plugins may need them."""
    loaded = any(name in sys.modules for name in LIBRARIES)
    if not loaded and not importlib.metadata.entry_points(group="localfields"):
        sys.meta_path.insert(0, _Finder())


class _Anything(type):
    """A class with every attribute, which can be called, subscripted and joined to unions."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # A decorated function is a name like any other; of arrays the first is as good as any.
        return cls if not args or isinstance(args[0], FunctionType) else args[0]

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


class _Name(metaclass=_Anything):
    """Any name of a library."""


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name


class _Dataclass(abc.ABCMeta):
    """Makes dataclasses, as the metaclass of equinox does."""

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> None:
        super().__init__(name, bases, body)
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)


def _field(*, static: bool = False, **settings: Any) -> Any:
    return dataclasses.field(**settings)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in LIBRARIES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        module = _Module(spec.name)
        if spec.name == "equinox":
            module.Module = _Dataclass("Module", (), {})  # pyright: ignore[reportAttributeAccessIssue]  # set on a module
            module.field = _field  # pyright: ignore[reportAttributeAccessIssue]  # as above
        return module

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""
