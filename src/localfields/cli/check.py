"""`localfields check`: samples of a stimulus compared with the statistics that it declares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._spec import registered
from .._start import load_plugins, use_compilation_cache
from ..errors import InputError
from ._options import Command, Option, field_options, given, run_command, run_one_of, working

OPTIONS = {
    "num": Option("how many samples; by default 100000, and fewer on many sites", "INT"),
    "seed": Option("seed for the samples", "INT", default="0"),
}
ABOUT = """Compare samples of a stimulus of your own with the statistics that it declares:

  localfields check my_stimulus.py
  localfields check my_stimulus.py --strength 0.2

Or name a stimulus that is known already. The exit code is 1 where they disagree."""


def run(argv: Sequence[str]) -> None:
    """Check the stimuli of a file, or offer every registered stimulus."""
    if not argv or not argv[0].endswith(".py"):
        commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
        run_one_of(commands, argv, "localfields check", "stimulus", ABOUT)
        return
    file, *options = argv
    load_plugins([file])
    module = Path(file).stem
    classes = [cls for cls in registered("stimulus").values() if cls.__module__ == module]
    if not classes:
        raise InputError(f"The file {file} defines no stimulus. Begin with skeletons/stimulus.py.")
    # Options belong to one class. Several are checked as they are by default.
    if len(classes) > 1 and not set(options) <= {"-h", "--help"}:
        names = ", ".join(cls.__name__ for cls in classes)
        raise InputError(
            f"The file {file} defines several stimuli, {names}, so that options are ambiguous. "
            "Give them after the name of one: localfields --plugin FILE check NAME."
        )
    for cls in classes:
        run_command(_command(cls), options, f"localfields check {file}")


def _command(cls: Any) -> Command:
    from .._spec import from_text

    stimulus_options = field_options(cls)

    def command(**values: Any) -> None:
        _check(from_text(cls, given(stimulus_options, values)), **values)

    return Command(command, {"stimulus": stimulus_options, "check": OPTIONS}, cls.__doc__ or "")


def _check(stimulus: Any, seed: str, num: str | None = None) -> None:
    from .._spec import Count
    from ..stimuli import check

    count = None if num is None else Count(low=1000, high=10**7).parse("num", num)
    first = Count(low=0, high=2**62).parse("seed", seed)
    use_compilation_cache()
    with working("drawing samples"):
        report = check(stimulus, count, first)
    print(report)
    if not report.ok:
        sys.exit(1)
