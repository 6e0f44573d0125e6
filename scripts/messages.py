"""Print every error message that the tables of mistakes in tests/ produce, to read them in one go.

`python scripts/messages.py` prints them; `--update` writes them to tests/messages.txt and, those of
the command line, to tests/cli/messages.txt, which the tests compare with. Read the difference
before you commit it: a message is one or two sentences that a colleague would say.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
MESSAGES = TESTS / "messages.txt"
LINE_MESSAGES = TESTS / "cli" / "messages.txt"


def outcomes() -> dict[str, dict]:
    """What comes of every mistake, by name. Warnings are errors, as in the tests."""
    sys.path.insert(0, str(TESTS))
    from bad_data import MISTAKES as data
    from bad_inputs import MISTAKES as inputs
    from bad_training import MISTAKES as training
    from mistake import attempt

    warnings.simplefilter("error")
    os.environ["LOCALFIELDS_MEMORY"] = "2"  # GB, whatever this machine has
    return {name: attempt(make) for name, make in (inputs | training | data).items()}


def line_messages() -> dict[str, str]:
    """What the command line says to every bad line."""
    sys.path.insert(0, str(TESTS / "cli"))
    from bad_lines import LINES, attempt, prepare

    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        with contextlib.chdir(folder):
            return {line: attempt(line)[2].strip() for line in LINES}


def read(file: Path = MESSAGES) -> dict[str, str]:
    """The messages that are expected, by the name of the mistake, or by its line."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {name: text.strip() for name, text in zip(lines[::2], lines[1::2], strict=True)}


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", action="store_true", help="write tests/messages.txt")
    parser.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    options = parser.parse_args()
    results = outcomes()
    if options.json:
        sys.stdout.write(json.dumps(results))
        return
    for file, messages in (
        (MESSAGES, {name: result["message"] for name, result in results.items()}),
        (LINE_MESSAGES, line_messages()),
    ):
        text = "".join(f"{name}\n    {message}\n" for name, message in messages.items())
        sys.stdout.write(text)
        if options.update:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
