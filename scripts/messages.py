"""Print every error message that the tables of mistakes in tests/ produce, to read them in one go.

`python scripts/messages.py` prints them; `--update` writes them to tests/messages.txt, which the
tests compare with. Read the difference before you commit it: a message is one or two sentences that
a colleague would say.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
MESSAGES = TESTS / "messages.txt"


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


def read() -> dict[str, str]:
    """The messages that are expected, by the name of the mistake."""
    lines = MESSAGES.read_text(encoding="utf-8").splitlines()
    return {name: text.strip() for name, text in zip(lines[::2], lines[1::2], strict=True)}


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", action="store_true", help="write tests/messages.txt")
    parser.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    options = parser.parse_args()
    results = outcomes()
    text = "".join(f"{name}\n    {result['message']}\n" for name, result in results.items())
    if options.update:
        MESSAGES.write_text(text, encoding="utf-8")
    sys.stdout.write(json.dumps(results) if options.json else text)


if __name__ == "__main__":
    main()
