"""Help of every command without the libraries that compute: fast, and the same text."""

import resource
import subprocess
import sys

import pytest

from localfields._spec import registered
from localfields.cli import COMMANDS, main

PROGRAM = """
import sys
from localfields.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["localfields", *line.split()]
    main()
    print("=" * 40)
real = [name for name in ("jax", "equinox", "scipy") if hasattr(sys.modules.get(name), "__file__")]
print(*real, end="")
"""


def printed(lines):
    """What one process prints for each of some command lines, and which libraries it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    *pages, libraries = done.stdout.split("=" * 40 + "\n")
    return pages, libraries


def check(lines, capsys):
    pages, libraries = printed(lines)
    assert libraries == "" and len(pages) == len(lines)
    for line, page in zip(lines, pages, strict=True):
        main(line.split())
        assert page == capsys.readouterr().out, line


def test_help_needs_no_library(capsys):
    lines = ["sample --help", "sample nlgp --help", "train copula --help", "sweep image-patches -h"]
    check([*lines, "predict a.npy b.npy --help", "baseline ica kur --help"], capsys)


@pytest.mark.slow
def test_all_help_needs_no_library(capsys):
    stimuli = ("", *registered("stimulus"))
    with_stimuli = ("sample", "train", "predict", "run", "sweep", "baseline rbm")
    lines = [f"{name} --help" for name in COMMANDS]
    lines += [f"{command} {name} --help" for command in with_stimuli for name in stimuli]
    lines += [f"baseline {name} --help" for name in registered("baseline")]
    lines += [f"runs {name} --help" for name in ("list", "show", "rm", "export", "verify")]
    check(lines, capsys)


def cpu_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_help_is_faster_than_importing_jax():
    helped = min(cpu_seconds("-m", "localfields", "train", "nlgp", "--help") for _ in range(3))
    imported = min(cpu_seconds("-c", "import jax, equinox") for _ in range(3))
    assert helped < 0.6 * imported, (helped, imported)
