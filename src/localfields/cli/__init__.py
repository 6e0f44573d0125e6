"""The command line: a thin shell. Each command's module is imported when that command is asked for."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

COMMANDS = {
    "app": "Open the explorer in a browser: turn the gain and watch a receptive field being born.",
    "baseline": "Fit ICA, PCA, sparse coding, a Boltzmann machine or an autoencoder, and look at its fields.",
    "predict": "Say whether a receptive field will become localized, where, when and why, without training.",
    "reproduce": "Redraw the paper's figures and hold every published number against the exact one.",
    "run": "Carry out an experiment, from a file or from options, and keep its result in a store.",
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
  --plugin MODULE   import a module (or a .py file) of your own first; its stimuli join the others
  --version         print the version
  -h, --help        print this, or after a command that command's options
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command; a user's mistake is one line on stderr and exit code 2."""
    from .._start import leave_checks_out
    from ..errors import InputError

    leave_checks_out()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without ξ and ∞ gets question marks, not a traceback
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _tell
            _dispatch(list(sys.argv[1:] if argv is None else argv))
    except InputError as error:
        print(f"localfields: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("localfields: interrupted.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the reader went away: nothing to tell
        sys.exit(141)


def _tell(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"localfields: warning: {message}", file=sys.stderr)


def _dispatch(argv: list[str]) -> None:
    from ..errors import Said, refuse, unknown

    plugins = []
    argv = [
        part
        for word in argv
        for part in (word.split("=", 1) if word.startswith("--plugin=") else [word])
    ]
    while "--plugin" in argv:
        place = argv.index("--plugin")
        if place + 1 == len(argv):
            refuse(
                "`--plugin`",
                Said("nothing"),
                "followed by a module",
                "For example --plugin my_stimuli.",
            )
        plugins.append(argv[place + 1])
        del argv[place : place + 2]
    if not argv or argv[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:<17} {meaning}" for name, meaning in COMMANDS.items())
        print(USAGE.format(commands=listed), end="")
        return
    if argv[0] == "--version":
        from .. import __version__

        print(f"localfields {__version__}")
        return
    if argv[0] not in COMMANDS:
        unknown("The command", argv[0], COMMANDS)
    from ._options import load_plugins

    load_plugins(plugins)
    importlib.import_module(f".{argv[0]}", __name__).run(argv[1:])
