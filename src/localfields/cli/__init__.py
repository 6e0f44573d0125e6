"""The command line. Each command's module is imported when that command is called."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence

from ._process import Interrupts, describe_failure, drop_output, open_streams

TYPE_CHECKING = False  # checkers know the name; Ctrl-C should be handled before `typing` is loaded
if TYPE_CHECKING:
    from typing import Any, NoReturn

COMMANDS = {
    "app": "Open the explorer in a browser: turn the gain and watch a receptive field being born.",
    "baseline": "Fit ICA, PCA, sparse coding, a Boltzmann machine or an autoencoder to samples.",
    "check": "Compare samples of a stimulus of your own with the statistics that it declares.",
    "predict": "Say whether a field will become localized, where, when and why, without training.",
    "reproduce": "Redraw the paper's figures and compare each published number with the exact one.",
    "run": "Run an experiment, from a file or from options, and store its result.",
    "runs": "List, show, export, verify and remove stored runs.",
    "sample": "Draw samples of a stimulus, to a file or as a picture.",
    "sweep": "Repeat an experiment over values of its fields and over seeds, here or on a cluster.",
    "train": "Train an ensemble of networks to tell two lengthscales of a stimulus apart.",
}

USAGE = """usage: localfields [--plugin MODULE] COMMAND [OPTIONS]

When does a neuron's receptive field become localized, where, and why?

commands:
{commands}

options:
  --plugin MODULE   first import a module (or .py file) of your own, with stimuli, networks, …
  --version         print the version
  -h, --help        print this, or after a command that command's options
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command; a user's mistake is one line on stderr and exit code 2."""
    with Interrupts(at_exit=argv is None) as interrupts:
        error = None
        try:
            _main(list(sys.argv[1:] if argv is None else argv), exits=argv is None)
        except BaseException as raised:
            error = raised
    if error is not None:
        _exit(error, interrupted=interrupts.asked > 0)


def _main(argv: list[str], exits: bool) -> None:
    from .._start import leave_checks_out

    leave_checks_out()
    open_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            _dispatch(argv, exits)
    finally:
        sys.stdout.flush()  # here an error of it can still be told


def _exit(error: BaseException, interrupted: bool) -> NoReturn:
    """Exit with the line and the code that an error deserves; a bug of ours has its traceback."""
    from ..errors import InputError

    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError):
        drop_output()  # its reader has gone (`| head`), which is no mistake
        sys.exit(141)
    if isinstance(error, InputError):
        message, code = str(error), 2
    elif isinstance(error, KeyboardInterrupt) or interrupted:
        message, code = "interrupted.", 130
    elif message := describe_failure(error):
        code = 2
    else:
        raise error
    if isinstance(error, OSError) and error.filename is None:
        drop_output()
    print(f"localfields: {message}", file=sys.stderr)
    sys.exit(code)


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"localfields: warning: {message}", file=sys.stderr)


def _dispatch(argv: list[str], exits: bool) -> None:
    from ..errors import InputError, unknown_name

    plugins, words = [], []
    rest = iter(argv)
    for word in rest:  # --plugin may stand anywhere
        if word == "--plugin":
            plugins.append(next(rest, ""))
        elif word.startswith("--plugin="):
            plugins.append(word.partition("=")[2])
        else:
            words.append(word)
    if "" in plugins:
        raise InputError("--plugin needs a module, for example --plugin my_stimuli.")
    if not words or words[0] in ("-h", "--help"):
        commands = "\n".join(f"  {name:<17} {meaning}" for name, meaning in COMMANDS.items())
        print(USAGE.format(commands=commands), end="")
    elif words[0] == "--version":
        from .. import __version__

        print(f"localfields {__version__}")
    elif words[0].startswith("-"):
        raise InputError(
            f"Unknown option {words[0]!r}. A command comes first; see `localfields --help`."
        )
    elif words[0] not in COMMANDS:
        raise unknown_name("command", words[0], COMMANDS)
    else:
        from .._start import load_plugins

        if exits and not plugins:
            from ._help import prints_help, use_stand_ins

            if prints_help(words):
                use_stand_ins()
        load_plugins(plugins)
        importlib.import_module(f".{words[0]}", __name__).run(words[1:])
