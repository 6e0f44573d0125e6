"""From the fields of a specification to command-line options, by way of tyro."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import tyro

from .._start import load_plugins as load_plugins
from .._start import use_compilation_cache as use_compilation_cache
from ..errors import InputError, unknown


def working(words: str) -> Any:
    """Show that one indivisible piece of work is under way, where somebody looks."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(words) if console.is_terminal else contextlib.nullcontext()


Option = tuple[Any, Any, str, str | None]


def option(annotation: Any, default: Any, help: str, metavar: str | None = None) -> Option:
    """One option of a command's own: type, default, meaning."""
    return annotation, default, help, metavar


def spec_command(cls: type[Any], options: Mapping[str, Option], run: Callable) -> Callable:
    """Make a function whose signature is the fields of `cls` and then `options`, for tyro to read.

    The fields arrive as text and are parsed by their own kinds, so that a mistake gets the same message as in Python.
    """
    from .._spec import from_text

    own = field_options(cls)

    def command(**values: Any) -> None:
        run(from_text(cls, changed(own, values)), **values)

    return with_options(command, {**own, **options}, cls)


def field_options(cls: type[Any]) -> dict[str, Option]:
    """The fields of a class as options, each a text; arrays and lists of other values are for Python."""
    from .._spec import fields

    own = {}
    for field in fields(cls):
        if field.kind.typed:
            help = f"{field.symbol}: {field.help}" if field.symbol else field.help
            own[field.name] = option(str, field.kind.text(field.default), help, field.kind.metavar)
    return own


def changed(own: Mapping[str, Option], values: dict[str, Any]) -> dict[str, str]:
    """Take out of `values` the options in `own`, and return those that differ from their defaults."""
    given = {name: values.pop(name) for name in own}
    return {name: text for name, text in given.items() if text != own[name][1]}


def with_options(command: Any, options: Mapping[str, Option], cls: type[Any]) -> Callable:
    """Give a function of keywords the signature that tyro reads, and the name and words of a class."""
    from .._spec import name_of

    parameters = [_parameter(name, *parts) for name, parts in options.items()]
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = inspect.getdoc(cls)
    command.__name__ = name_of(cls).replace("-", "_")
    return command


def _parameter(
    name: str, annotation: Any, default: Any, help: str, metavar: str | None
) -> inspect.Parameter:
    note = tyro.conf.arg(help=help, metavar=metavar) if metavar else tyro.conf.arg(help=help)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=Annotated[annotation, note])


def run_one_of(
    commands: Mapping[str, Callable], argv: Sequence[str], prog: str, what: str, description: str
) -> None:
    """Run the command named first in `argv`, or print the list of them."""
    if not argv or argv[0] in ("-h", "--help"):
        print(f"usage: {prog} {what.upper()} [OPTIONS]\n\n{description}\n")
        for name, command in commands.items():
            print(f"  {name:<20} {_first_sentence(command)}")
        print(f"\nOptions of one: {prog} NAME --help")
        return
    if argv[0] not in commands:
        unknown(f"The {what}", argv[0], commands)
    run_command(commands[argv[0]], argv[1:], f"{prog} {argv[0]}")


def _first_sentence(command: Callable) -> str:
    text = (command.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
    return text if len(text) <= 96 else text[:95] + "…"


def run_command(command: Callable, argv: Sequence[str], prog: str) -> None:
    """Parse with tyro and run. What tyro finds wrong is told in one line, like every other mistake."""
    names = [name.replace("_", "-") for name in inspect.signature(command).parameters]
    for word in argv:
        flag = word.removeprefix("--").partition("=")[0]
        known = flag.replace("_", "-") in [*names, *(f"no-{name}" for name in names), "help"]
        if word.startswith("--") and not known:
            unknown(f"An option of `{prog}`", f"--{flag}", [f"--{name}" for name in names])
    wanted_help = any(word in ("-h", "--help") for word in argv)
    captured = io.StringIO()
    parsed: dict[str, Any] = {}
    keep = _signed_as(command, lambda **values: parsed.update(values))
    try:
        with contextlib.nullcontext() if wanted_help else contextlib.redirect_stderr(captured):
            tyro.cli(keep, args=list(argv), prog=prog)
    except SystemExit as stop:
        if stop.code in (0, None):
            return
        raise InputError(_one_line(captured.getvalue(), prog)) from None
    command(**parsed)


def _signed_as(command: Callable, function: Any) -> Callable:
    function.__signature__ = inspect.signature(
        command, eval_str=True
    )  # names are those of the command's module
    function.__annotations__ = inspect.get_annotations(command, eval_str=True)
    function.__doc__, function.__name__ = command.__doc__, command.__name__
    return function


def _one_line(box: str, prog: str) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m|[─│╭╮╰╯━┃┏┓┗┛├┤]|-{4,}", " ", box)
    text = " ".join(text.replace("For full helptext, run", "For all options, run").split())
    return text or f"the options could not be read. For all options, run {prog} --help."
