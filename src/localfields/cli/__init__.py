"""The command line. Each command's module is imported when that command is called."""

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
    "baseline": "Fit ICA, PCA, sparse coding, a Boltzmann machine or an autoencoder to samples.",
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
    from .._start import leave_checks_out
    from ..errors import InputError

    leave_checks_out()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without ξ and ∞ gets question marks, not a traceback.
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            _dispatch(list(sys.argv[1:] if argv is None else argv))
    except InputError as error:
        print(f"localfields: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("localfields: interrupted.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`), which is no mistake.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"localfields: warning: {message}", file=sys.stderr)


def _dispatch(argv: list[str]) -> None:
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
    elif words[0] not in COMMANDS:
        raise unknown_name("command", words[0], COMMANDS)
    else:
        from .._start import load_plugins

        load_plugins(plugins)
        importlib.import_module(f".{words[0]}", __name__).run(words[1:])
