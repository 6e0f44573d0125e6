"""What a process does before it works: import plugins, keep compiled programs."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from .errors import InputError, shorten, show


def load_plugins(names: Sequence[str]) -> None:
    """Import the entry points of installed packages, and the modules or files named with `--plugin`."""
    for point in importlib.metadata.entry_points(group="localfields"):
        try:
            point.load()
            _keep(sys.modules[point.module])
        except Exception as error:
            owner = f" of {point.dist.name}" if point.dist else ""
            raise InputError(
                f"The plugin `{point.name}`{owner} cannot be imported ({_described(error)}). "
                "Update or remove that package."
            ) from None
    for name in names:
        if name.endswith(".py") and not Path(name).is_file():
            raise InputError(f"--plugin: there is no file {show(name)}. Check its name and folder.")
        try:
            if name.endswith(".py"):
                location = importlib.util.spec_from_file_location(Path(name).stem, name)
                assert location is not None and location.loader is not None
                module = importlib.util.module_from_spec(location)
                sys.modules[Path(name).stem] = module
                location.loader.exec_module(module)
            else:
                sys.path.insert(0, str(Path.cwd()))
                module = importlib.import_module(name)
            _keep(module)
        except Exception as error:
            raise InputError(
                f"--plugin: {show(name)} cannot be imported ({_described(error)})."
            ) from None
        if name not in PLUGINS:
            PLUGINS.append(name)


PLUGINS: list[str] = []
"""Names that were loaded so: what a process of our own must load to know the same stimuli."""

MODULES: list[ModuleType] = []
"""The modules themselves, of packages too: where a figure of a user's own is looked for."""


def _keep(module: ModuleType) -> None:
    MODULES[:] = [one for one in MODULES if one.__name__ != module.__name__] + [
        module
    ]  # loaded again: a new version


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {shorten(error)}".rstrip(".")


def leave_checks_out() -> None:
    """Keep checks of the integrator's own out of compiled programs, which could not be kept between runs with them.

    What they look at (that times increase) is looked at before. To be called before equinox is imported, in processes
    that are ours: elsewhere the setting is the user's.
    """
    os.environ.setdefault("EQX_ON_ERROR", "off")


def use_compilation_cache() -> None:
    """Keep compiled programs between runs, apart for each kind of processor.

    They are in the folder that the variable LOCALFIELDS_CACHE names, by default `localfields` in the user's cache.
    """
    import hashlib
    import platform

    import jax

    info = Path("/proc/cpuinfo")
    flags = (
        [line for line in info.read_text().splitlines() if line.startswith("flags")]
        if info.exists()
        else []
    )
    cpu = hashlib.sha256("".join([platform.machine(), *flags[:1]]).encode()).hexdigest()[:12]
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("LOCALFIELDS_CACHE") or user / "localfields")
    jax.config.update("jax_compilation_cache_dir", str(folder / f"jax-{cpu}"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
