"""Benchmarks and scripts are not run here, but what they ask the library for is there."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pathlib, sys
for folder in ("benchmarks", "scripts"):
    sys.path.insert(0, folder)
    for path in sorted(pathlib.Path(folder).glob("*.py")):
        importlib.import_module(path.stem)
        print(path.stem)
"""


def test_benchmarks_can_be_imported():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    files = [
        path.stem for folder in ("benchmarks", "scripts") for path in (ROOT / folder).glob("*.py")
    ]
    assert sorted(done.stdout.split()) == sorted(files)
