"""A sweep against single runs on a GPU, all draws independent: `python benchmarks/gpu_sweep.py`.

Ten gains × thirty seeds at N = 40, batch 5000, 2000 steps, as one command, against 300 commands one
after another, of which five are timed. Programs are compiled before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time

import localfields as lf

GAINS, SEEDS = 10, 30
NUMBERS = "--xi 1,3 --shape 40 --batch 5000 --steps 2000".split()
SINGLE = ["run", "nlgp", *NUMBERS, "--gain"]
MANY = ["sweep", "nlgp", *NUMBERS, "--gain", f"logspace:0.1:10:{GAINS}", "--seeds", str(SEEDS)]


def command(folder: str, *words: str) -> float:
    """Seconds of one command line in a process of its own."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "localfields.cli", *words, "--store", folder], check=True)
    return time.perf_counter() - start


def training(folder: str, *filters: str) -> list[float]:
    """Seconds that stored runs trained, without processes and compilation."""
    return [one.manifest["run_seconds"] for one in lf.Store(folder).list(filters)]


def main():
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as folder:
        command(warm, *SINGLE, "3", "--seed", "99")
        command(warm, *MANY, "--seed", "99")
        alone = [command(folder, *SINGLE, gain) for gain in ("0.1", "0.5", "1", "5", "10")]
        together = command(folder, *MANY)
        single, many = training(folder, "members=1"), training(folder, "members>1")
        device = lf.Store(folder).list()[0].manifest["device"]
    points = GAINS * SEEDS
    rows = {
        "device": device,
        "seconds of single commands": alone,
        "seconds of the sweep": together,
        "300 commands / the sweep": points * statistics.median(alone) / together,
        "seconds of training of single runs": single,
        "seconds of training of the sweep": sum(many),
        "the same ratio, training alone": points * statistics.median(single) / sum(many),
    }
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
