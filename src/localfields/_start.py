"""What a process does first: import plugins, and set up the cache of compiled programs."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import InputError, shorten, show


def load_plugins(names: Sequence[str]) -> None:
    """Import the entry points of installed packages, and modules or files named with `--plugin`."""
    for point in importlib.metadata.entry_points(group="localfields"):
        try:
            point.load()
            _remember(sys.modules[point.module])
        except Exception as error:
            owner = f" of {point.dist.name}" if point.dist else ""
            raise InputError(
                f"The plugin `{point.name}`{owner} cannot be imported ({_described(error)}). "
                "Update or remove that package."
            ) from None
    for name in names:
        _check_name(name)
        try:
            module = _load_file(name) if name.endswith(".py") else _load_module(name)
        except (Exception, SystemExit) as error:
            raise InputError(
                f"--plugin: {show(name)} cannot be imported ({_described(error)})."
            ) from None
        _remember(module)
        if name not in PLUGINS:
            PLUGINS.append(name)


def _load_file(name: str) -> ModuleType:
    path = Path(name)
    location = importlib.util.spec_from_file_location(path.stem, path)
    assert location is not None and location.loader is not None
    module = importlib.util.module_from_spec(location)
    sys.modules[path.stem] = module
    try:
        location.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _load_module(name: str) -> ModuleType:
    # Last: a file beside the user's must not take the place of an installed module.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return importlib.import_module(name)


def _check_name(name: str) -> None:
    """Raise `InputError` if there is no such file, or another module has the name of a plugin.

    Whoever imports that module would get the plugin. A file that is loaded again is a new version
    of itself.
    """
    path = Path(name)
    if not name.endswith(".py"):
        path = Path(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not path.is_file():
            return
    elif path.is_file():
        name = path.stem
    else:
        raise InputError(f"--plugin: there is no file {show(name)}. Check its name and folder.")
    file: Any = path
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
    elif name.isidentifier() and (location := importlib.util.find_spec(name)) is not None:
        file = location.origin
    if file is None or not (os.path.exists(file) and os.path.samefile(file, path)):
        raise InputError(f"--plugin: {path} has the name of another module, `{name}`. Rename it.")


PLUGINS: list[str] = []
"""Names given with --plugin: a worker process must load them, too, to know the same stimuli."""

MODULES: list[ModuleType] = []
"""All modules of plugins, in which figures are looked for."""


def _remember(module: ModuleType) -> None:
    # A module that is loaded again is a new version of the old one.
    MODULES[:] = [known for known in MODULES if known.__name__ != module.__name__] + [module]


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {shorten(error)}".rstrip(".")


def leave_checks_out() -> None:
    """Switch off equinox's runtime checks, with which compiled programs could not be cached.

    What they check, that times increase, is checked before. Call it before equinox is imported, and
    only in processes that are ours: elsewhere the setting is the user's.
    """
    os.environ.setdefault("EQX_ON_ERROR", "off")


def use_compilation_cache() -> None:
    """Keep compiled programs between runs, separately for each kind of processor.

    They are in $LOCALFIELDS_CACHE, by default the folder `localfields` in the user's cache.
    """
    import hashlib
    import platform

    import jax

    # A program compiled for one processor can crash on another with fewer instructions.
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    flags = [line for line in lines if line.startswith("flags")]
    cpu = hashlib.sha256("".join([platform.machine(), *flags[:1]]).encode()).hexdigest()[:12]
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("LOCALFIELDS_CACHE") or user / "localfields")
    jax.config.update("jax_compilation_cache_dir", str(folder / f"jax-{cpu}"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
