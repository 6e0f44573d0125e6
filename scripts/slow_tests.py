"""Write tests/slow.txt, the tests that `make test` leaves out, from measured CPU times.

    make test-all OPTIONS="--cpu-times times.txt"
    python scripts/slow_tests.py times.txt

Run the first line twice, so that the second time nothing is compiled. A test that takes more than
`LIMIT` CPU seconds once its programs have been compiled is slow. CPU time, unlike time, hardly
depends on what else the machine does. New tests are not in the list and run by default.

Tests in tests/fast.txt are never slow: they run code that no faster test does, as coverage showed.
With them `make test` runs 99 % of the lines that `make test-all` runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 0.4
TESTS = Path(__file__).parents[1] / "tests"
TARGET, NEEDED = TESTS / "slow.txt", TESTS / "fast.txt"


def slow_tests(text: str, limit: float = LIMIT) -> str:
    """The list, from lines `seconds test`; of several measurements of one test the least counts."""
    seconds: dict[str, float] = {}
    for line in text.splitlines():
        number, test = line.split(maxsplit=1)
        seconds[test] = min(float(number), seconds.get(test, float("inf")))
    needed = set(NEEDED.read_text().splitlines())
    slow = sorted(
        (test, number) for test, number in seconds.items() if number > limit and test not in needed
    )
    return "".join(f"{number:.1f} {test}\n" for test, number in slow)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/slow_tests.py TIMES")
    text = slow_tests(Path(sys.argv[1]).read_text())
    TARGET.write_text(text)
    print(f"{text.count(chr(10))} tests take more than {LIMIT} CPU seconds: {TARGET.name}")
