"""Command-line options, made from the declared fields of specifications and read with argparse."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import InputError, unknown_name


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a command.

    Args:
        help: Its meaning, in a few words.
        metavar: What stands for its value in the help.
        default: Its value if it is not given; False makes a flag. An option without a default is
            passed on only if it is given.
        convert: Makes the value from its text.
        choices: The only legal values.
        required: Whether it must be given.
        repeated: Whether it may be given several times; the value is the list of all.
        positional: "1" or "*" for an argument without a name, given once or any number of times.
    """

    help: str
    metavar: str | None = None
    default: Any = None
    convert: Callable[[str], Any] = str
    choices: Sequence[str] | None = None
    required: bool = False
    repeated: bool = False
    positional: str = ""


@dataclasses.dataclass(frozen=True)
class Command:
    """A function of keywords, its options by group and name, and its help text."""

    run: Callable[..., None]
    groups: Mapping[str, Mapping[str, Option]]
    about: str


STORE = Option("folder of results; otherwise $LOCALFIELDS_STORE, or runs", "PATH", default="")
OVERWRITE = Option("replace files that exist", default=False)


def field_options(cls: type[Any]) -> dict[str, Option]:
    """The fields of a class as options whose texts the fields' own kinds parse.

    So a mistake gets the same message as in Python. Arrays and lists of other specifications cannot
    be typed and have no option.
    """
    from .._spec import fields

    options = {}
    for field in fields(cls):
        if field.kind.typed:
            text = field.kind.text(field.default)
            if "[" in text:  # `tabulated:table=[…]`: an array is not for reading
                text = text.partition(":")[0]
            help = f"{field.symbol}: {field.help}" if field.symbol else field.help
            options[field.name] = Option(
                f"{help} (default: {text})" if text else help, field.kind.metavar
            )
    return options


def given(options: Mapping[str, Option], values: dict[str, Any]) -> dict[str, Any]:
    """Take out of `values` those of `options`."""
    return {name: values.pop(name) for name in options if name in values}


def run_one_of(
    commands: Mapping[str, Command], argv: Sequence[str], prog: str, noun: str, about: str
) -> None:
    """Run the command named first in `argv`, or list them."""
    if not argv or argv[0] in ("-h", "--help"):
        print(f"usage: {prog} {noun.upper()} [OPTIONS]\n\n{about}\n")
        for name, command in commands.items():
            summary = inspect.cleandoc(command.about).split("\n\n")[0].replace("\n", " ")
            print(f"  {name:<20} {summary if len(summary) <= 96 else summary[:95] + '…'}")
        print(f"\nOptions of one: {prog} NAME --help")
    elif argv[0] not in commands:
        raise unknown_name(noun, argv[0], commands)
    else:
        run_command(commands[argv[0]], argv[1:], f"{prog} {argv[0]}")


def run_command(command: Command, argv: Sequence[str], prog: str) -> None:
    """Read the options of a command and run it, or print its help.

    Raises:
        InputError: If an option is unknown, lacks its value, or has an illegal one.
    """
    parser = _parser(command, prog)
    if any(word in ("-h", "--help") for word in argv):
        print(parser.format_help(), end="")
        return
    words = _join_values(argv, parser, prog)
    # Intermixed: arguments may stand before and after options, `runs list a=1 --store x b=2`.
    values, extra = parser.parse_known_intermixed_args(words)
    if extra:
        raise InputError(f"Unexpected argument {extra[0]!r}. See `{prog} --help`.")
    for group in command.groups.values():
        for name, option in group.items():
            if option.choices and getattr(values, name) not in option.choices:
                raise unknown_name(f"value of {_flag(name)}", getattr(values, name), option.choices)
    command.run(**vars(values))


# What argparse says of a mistake, and what we say. Names come with their dashes.
REWORDED = {
    r"argument (\S+): expected one argument": r"\1 needs a value",
    r"argument (\S+): ignored explicit argument (.*)": r"\1 takes no value, got \2",
    r"argument (\S+): invalid int value: (.*)": r"\1 must be a whole number, got \2",
    r"the following arguments are required: (.*)": r"\1 is missing",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print below a usage text before it exits."""
        for pattern, replacement in REWORDED.items():
            message = re.sub(pattern, replacement, message)
        raise InputError(f"{message[0].upper()}{message[1:]}. See `{self.prog} --help`.")


def _parser(command: Command, prog: str) -> _Parser:
    every = [pair for group in command.groups.values() for pair in group.items()]
    named = "".join(
        f" {option.metavar}" if option.positional == "1" else f" [{option.metavar} …]"
        for _, option in every
        if option.positional
    )
    parser = _Parser(
        prog,
        usage=f"{prog}{named} [OPTIONS]",
        description=_description(command.about),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for title, options in command.groups.items():
        group = parser if title == "options" else parser.add_argument_group(title)
        for name, option in options.items():
            _add(group, name, option)
    return parser


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _add(group: Any, name: str, option: Option) -> None:
    """Add an option, or a positional argument, to a group of a parser."""
    flag = _flag(name)
    help = option.help.replace("%", "%%")
    if option.positional:
        nargs = "*" if option.positional == "*" else None
        group.add_argument(name, nargs=nargs, help=help, metavar=option.metavar)
    elif option.default is False:
        group.add_argument(flag, dest=name, action="store_true", help=help)
        off = f"--no-{name.replace('_', '-')}"
        group.add_argument(off, dest=name, action="store_false", help=argparse.SUPPRESS)
    else:
        if option.default not in (None, "", []):
            help = f"{help} (default: {option.default})"
        group.add_argument(
            flag,
            dest=name,
            action="append" if option.repeated else "store",
            default=argparse.SUPPRESS if option.default is None else option.default,
            type=option.convert,
            required=option.required,
            help=help,
            metavar=option.metavar,
        )


def _description(about: str) -> str:
    """A docstring up to its sections, wrapped; indented lines are examples and stay as they are."""
    text = re.split(r"\n\n(?:Args|Example|Raises|Returns):", inspect.cleandoc(about))[0]
    width = min(shutil.get_terminal_size().columns - 2, 100)
    return "\n\n".join(
        part if part.startswith(" ") else textwrap.fill(part, width) for part in text.split("\n\n")
    )


def _join_values(argv: Sequence[str], parser: argparse.ArgumentParser, prog: str) -> list[str]:
    """Words in which `--labels -1,1` is `--labels=-1,1` and `--batch_size` is `--batch-size`.

    argparse would take a value such as -1,1 or -1e3 for another option.

    Raises:
        InputError: If an option is unknown, or is given twice and takes one value.
    """
    # The table of options is not public, but has been there since the first argparse.
    actions = parser._option_string_actions
    visible = [flag for flag, action in actions.items() if action.help != argparse.SUPPRESS]
    words: list[str] = []
    for word in argv:
        flag, equals, value = word.partition("=")
        before = actions.get(words[-1]) if words else None
        takes_value = before is not None and before.nargs is None
        if takes_value and re.match("-[^-]", word):
            words[-1] += f"={word}"
        elif word.startswith("-") and len(word) > 1:
            flag = flag.replace("_", "-")
            if flag not in actions:
                raise unknown_name(f"option of `{prog}`", flag, visible)
            repeated = any(word.partition("=")[0] == flag for word in words)
            if repeated and isinstance(actions[flag], argparse._StoreAction):
                raise InputError(f"{flag} is given twice. Give it once.")
            words.append(f"{flag}{equals}{value}")
        else:
            words.append(word)
    return words


def open_store(path: str) -> Any:
    """The store of a command; raises `InputError` if a file is in its place."""
    from ..store import Store

    results = Store(path or None)
    if results.path.exists() and not results.path.is_dir():
        raise InputError(f"The store {results.path} is a file. Choose a folder.")
    return results


def working(text: str) -> Any:
    """Show on a terminal that one indivisible piece of work is under way."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(text) if console.is_terminal else contextlib.nullcontext()
