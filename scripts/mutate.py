#!/usr/bin/env python
"""Change one thing in a module, run its tests, and report the changes that no test notices.

    python scripts/mutate.py --num 200 --seed 0 --workers 14 --out mutants.json
    python scripts/mutate.py store lattice --num 20         # some rooms or modules
    python scripts/mutate.py theory/base.py --list           # what would be changed
    python scripts/mutate.py --out mutants.json --retry      # survivors again, after new tests
    python scripts/mutate.py --out mutants.json --retry --slow   # and with the slow tests

A run that is stopped continues from its result file; `--time-budget 540` stops it by itself.
Everything happens in copies of the tree, one per worker, and the tree itself is only read.

**Mutants.** One change of one expression: the sign of a term, a factor of 2, `*` for `/`, an axis,
a comparison (its boundary, its direction, its negation), a keyword argument dropped, two arguments
swapped, an integer increased by one. All possible changes of the chosen modules are listed, and
`--num` of them are drawn by a hash of the seed and the change, so an edit elsewhere does not alter
the sample. Left out are annotations, `__repr__`, f-strings, and the keyword arguments in `UNSEEN`,
which by their nature change no result: how thick a line is drawn, `zip(..., strict=True)`.
Mutants that provably change nothing are listed with a reason in `mutate_equivalent.toml`; they
are counted separately.

**Tests.** The doctests of the module and the test files that carry its name run first, then the
other tests of its folder and of the places in `BEYOND`; browser tests never do, slow ones only
with `--slow` (best together with `--retry`, for those that the fast tests miss). So a survivor is
one that *these* tests miss, and the rates are upper bounds for the whole suite. Each
test file runs once on the unchanged tree before it is used: tests that fail there are left out, and
reported. A mutant that takes five times as long as that and a minute more is a timeout, and one
with which Python ends before a test has failed is crashed; both count neither as killed nor as
survived.

Why not mutmut or cosmic-ray: mutmut 3.8 does not start with pytest 9.2, and it runs all mutants in
forks of one process, which JAX does not support, behind wrappers that tests with subprocesses
cannot import. cosmic-ray 8.7 works, in one new process per mutant as here, but with one command for
all modules, without axes and arguments, and in the working tree; `lattice.py` alone has 1019 of
its mutants, of which 12 000 would follow for the package.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import itertools
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mutants import Mutant, find_mutants

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/localfields")
EQUIVALENT = Path(__file__).with_name("mutate_equivalent.toml")

# Tests beyond those that mirror a module's path: `folder or module: test files or folders`.
BEYOND = {
    "_ensemble": ["tests/training/test_engine.py", "tests/theory/test_solve.py"],
    "_files": ["tests/store", "tests/test_errors.py"],
    "_kinds": ["tests/test_spec.py", "tests/test_plugin.py", "tests/test_errors.py"],
    "_registry": ["tests/test_spec.py", "tests/test_plugin.py"],
    "_spec": ["tests/test_plugin.py", "tests/test_errors.py"],
    "_start": ["tests/cli/test_cli.py"],
    "_types": ["tests/test_errors.py"],
    "fields": ["tests/test_plugin.py"],
    "lattice": ["tests/stimuli/test_stimuli.py", "tests/laws"],
    "marginals": ["tests/laws"],
    "networks": ["tests/training/test_estimators.py", "tests/theory/networks"],
    "plots": ["tests/figures"],
    "store/export": ["tests/cli/test_runs.py"],
    "stimuli": ["tests/laws", "tests/training/test_stream.py"],
    "tasks": ["tests/training/test_engine.py", "tests/theory/test_solve.py"],
    "trajectory": ["tests/training/test_engine.py", "tests/store/test_store.py"],
}


def find_modules(names: list[str]) -> Iterator[Path]:
    """The files of rooms and modules, named as paths under the package."""
    for name in names or ["."]:
        path = ROOT / PACKAGE / name.removeprefix(f"{PACKAGE}/")
        path = path if path.exists() else path.with_suffix(".py")
        if not path.exists():
            sys.exit(f"There is no {name} in {PACKAGE}.")
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def find_tests(module: str) -> list[list[str]]:
    """The test files of a module, in the order of use: its own, then those around it."""
    path = Path(module)
    name = path.stem.strip("_") if path.stem != "__init__" else path.parent.name
    folder = Path("tests") / path.parent
    own = sorted((ROOT / folder).glob(f"test_{name}.py")) + sorted(
        (ROOT / folder).glob(f"test_{name}_*.py")
    )
    around: list[Path] = []
    if path.parent.parts:
        around += sorted((ROOT / folder).rglob("test_*.py"))
    for key in (str(path.with_suffix("")), path.parts[0].removesuffix(".py")):
        for place in map(ROOT.joinpath, BEYOND.get(key, [])):
            around += sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    if path.parent.parts and not around:  # a folder without tests of its own
        around = sorted((ROOT / "tests" / path.parts[0]).rglob("test_*.py"))
    own_names = [str(file.relative_to(ROOT)) for file in own]
    if b"declare(" in (ROOT / PACKAGE / module).read_bytes():
        own_names.append("tests/test_fields.py")
    others = dict.fromkeys(str(file.relative_to(ROOT)) for file in around)
    return [[str(PACKAGE / module), *own_names], [f for f in others if f not in own_names]]


class Workplace:
    """A copy of the tree in which tests run."""

    def __init__(self, folder: Path, markers: str):
        """Copy everything tests may read."""
        self.markers = markers
        self.folder, self.temporary = folder / "tree", folder / "tmp"
        left_out = shutil.ignore_patterns(
            ".git",
            ".venv",
            ".cache",
            "__pycache__",
            "site",
            "report",
            "runs",
            ".hypothesis",
            ".benchmarks",
        )
        shutil.copytree(ROOT, self.folder, ignore=left_out, symlinks=True)

    def write(self, module: str, source: bytes) -> None:
        """Replace a module, and what Python compiled of it: size and second may be the same."""
        path = self.folder / PACKAGE / module
        path.write_bytes(source)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()

    def pytest(self, files: list[str], options: list[str], limit: float, stop: threading.Event):
        """Run pytest: its exit status (None after `limit` seconds or `stop`) and its output."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()
        mark = f"{self.folder}-{time.monotonic_ns()}"
        paths = [str(self.folder / "src"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "TMPDIR": str(self.temporary),
            "JAX_PLATFORMS": "cpu",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "LOCALFIELDS_MUTANT": mark,
        }
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-m", self.markers, "--doctest-modules", *options, *files]
        if importlib.util.find_spec("hypothesis"):
            command.append("--hypothesis-seed=0")
        with open(self.temporary / "output", "w+") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=limit_memory,
            )
            end = time.monotonic() + limit
            while process.poll() is None and time.monotonic() < end and not stop.is_set():
                time.sleep(0.05)
            status = process.poll()
            if status is None:
                process.kill()
                process.wait()
            kill_marked(mark)
            output.seek(0)
            return status, output.read()


def limit_memory() -> None:
    """A mutant that asks for all memory fails alone."""
    resource.setrlimit(resource.RLIMIT_AS, (48 * 2**30, resource.RLIM_INFINITY))


def kill_marked(mark: str) -> None:
    """End the processes that tests left behind."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"LOCALFIELDS_MUTANT={mark}".encode() in (path / "environ").read_bytes():
                os.kill(int(path.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def failures(output: str) -> list[str]:
    """The tests that pytest says failed."""
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, flags=re.MULTILINE)


class Run:
    """A sample of mutants, the tests to run, and the result file."""

    def __init__(self, arguments: argparse.Namespace):
        """Draw the sample and read what is already known."""
        self.arguments = arguments
        self.sources = {
            str(path.relative_to(ROOT / PACKAGE)): path.read_bytes()
            for path in find_modules(arguments.modules)
        }
        every = [m for module in self.sources for m in find_mutants(module, self.sources[module])]
        every.sort(key=lambda m: hashlib.sha256(f"{arguments.seed} {m.id}".encode()).digest())
        self.population = len(every)
        valid = (m for m in every if m.is_valid(self.sources[m.module]))
        self.sample = list(itertools.islice(valid, arguments.num))
        listed = tomllib.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
        self.equivalent = {entry["id"]: entry["reason"] for entry in listed.get("mutant", [])}
        self.path = Path(arguments.out)
        self.known = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.baseline: dict = self.known.get("baseline", {})
        self.results: dict = self.known.get("mutants", {})
        if arguments.retry:
            self.results = {k: v for k, v in self.results.items() if v["outcome"] == "killed"}
            self.baseline = {}
        self.claimed: set[str] = set()
        self.lock = threading.Lock()
        self.stop = threading.Event()

    def save(self) -> None:
        """Write the result file, whole or not at all."""
        text = json.dumps(
            {
                "command": sys.argv,
                "population": self.population,
                "baseline": self.baseline,
                "mutants": self.results,
            },
            indent=1,
        )
        aside = self.path.with_name(self.path.name + ".new")
        aside.write_text(text)
        aside.replace(self.path)

    def measure(self, workplace: Workplace, files: list[str]) -> None:
        """Run test files without a mutant: how long they take, and what fails here."""
        for file in files:
            with self.lock:
                if file in self.baseline or file in self.claimed:
                    continue
                self.claimed.add(file)
            begin = time.monotonic()
            status, output = workplace.pytest([file], [], 900, self.stop)
            if self.stop.is_set():
                return
            entry = {"seconds": round(time.monotonic() - begin, 1), "failing": failures(output)}
            # 0: passed, 1: some failed, 5: nothing to run. Otherwise the file cannot be used here.
            if status not in (0, 1, 5):
                entry["unusable"] = "took over 900 seconds" if status is None else output[-600:]
            with self.lock:
                self.baseline[file] = entry
                self.save()
        while not self.stop.is_set() and any(file not in self.baseline for file in files):
            time.sleep(0.2)  # another worker measures the rest

    def batches(self, workplace: Workplace, module: str) -> Iterator[list[str]]:
        """The usable test files of a module: its own, then quick ones together, then the others."""
        for files in find_tests(module):
            self.measure(workplace, files)
            if self.stop.is_set():
                return
            usable = [file for file in files if "unusable" not in self.baseline[file]]
            usable.sort(key=lambda file: self.baseline[file]["seconds"])
            quick = [file for file in usable if self.baseline[file]["seconds"] < 20]
            yield from filter(None, [quick, *([file] for file in usable[len(quick) :])])

    def judge(self, workplace: Workplace, mutant: Mutant) -> None:
        """Run the tests of a mutant until one fails."""
        source = self.sources[mutant.module]
        result = {
            "module": mutant.module,
            "line": mutant.line,
            "room": mutant.room,
            "kind": mutant.kind,
            "diff": mutant.diff(source),
            "outcome": "survived",
        }
        begin, tested = time.monotonic(), False
        for files in self.batches(workplace, mutant.module):
            tested |= any(file.startswith("tests/") for file in files)
            usual = sum(self.baseline[file]["seconds"] for file in files)
            left_out = [test for file in files for test in self.baseline[file]["failing"]]
            options = ["-x", *(f"--deselect={test}" for test in left_out)]
            workplace.write(mutant.module, mutant.apply(source))
            status, output = workplace.pytest(files, options, 60 + 5 * usual, self.stop)
            workplace.write(mutant.module, source)
            if self.stop.is_set():
                return
            if status is None:
                result |= {"outcome": "timeout", "by": " ".join(files)}
            elif failing := failures(output):
                result |= {"outcome": "killed", "by": failing[0]}
            elif status not in (0, 5):  # Python itself ended: no test has noticed anything
                result |= {"outcome": "crashed", "by": output.strip()[-200:]}
            if result["outcome"] != "survived":
                break
        if self.stop.is_set():
            return
        if result["outcome"] == "survived" and not tested:
            result["outcome"] = "untested"
        result["seconds"] = round(time.monotonic() - begin, 1)
        with self.lock:
            self.results[mutant.id] = result
            self.save()
            place = f"{mutant.module}:{mutant.line} {mutant.kind}"
            print(f"{result['outcome']:9} {place} ({result['seconds']} s)")

    def work(self, workplace: Workplace, jobs: queue.SimpleQueue) -> None:
        """Take mutants until there is none, or time is up."""
        while not self.stop.is_set():
            try:
                self.judge(workplace, jobs.get_nowait())
            except queue.Empty:
                return

    def run(self) -> None:
        """Measure what is not yet known, with one copy of the tree per worker."""
        for mutant in self.sample:
            if mutant.id in self.equivalent:
                self.results[mutant.id] = {
                    "module": mutant.module,
                    "line": mutant.line,
                    "room": mutant.room,
                    "kind": mutant.kind,
                    "diff": mutant.diff(self.sources[mutant.module]),
                    "outcome": "equivalent",
                    "by": self.equivalent[mutant.id],
                }
        mutants = [mutant for mutant in self.sample if mutant.id not in self.results]
        if not mutants:
            return
        jobs: queue.SimpleQueue = queue.SimpleQueue()
        for mutant in mutants:
            jobs.put(mutant)
        timer = threading.Timer(self.arguments.time_budget, self.stop.set)
        timer.start()
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            markers = "not browser" if self.arguments.slow else "not slow and not browser"
            names = map(str, range(self.arguments.workers))
            places = [Workplace(Path(folder) / name, markers) for name in names]
            threads = [threading.Thread(target=self.work, args=(place, jobs)) for place in places]
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:  # also after Ctrl-C
                self.stop.set()
                for thread in threads:
                    thread.join()
        timer.cancel()

    def report(self) -> None:
        """Print survivors and a table of rooms."""
        chosen = {m.id: self.results[m.id] for m in self.sample if m.id in self.results}
        for outcome in ("survived", "crashed", "timeout", "untested"):
            for name, result in chosen.items():
                if result["outcome"] == outcome:
                    place = f"{PACKAGE}/{result['module']}:{result['line']} ({result['kind']})"
                    print(f"\n{outcome} {name}: {place}")
                    print(result["diff"])
        for file, entry in self.baseline.items():
            if "unusable" in entry or entry["failing"]:
                print(
                    f"\nnot used here: {file}: {entry.get('unusable', ' '.join(entry['failing']))}"
                )
        tried = f"{len(chosen)} of {len(self.sample)} mutants tried"
        print(f"\n{tried}, of {self.population} that there are\n")
        columns = ("killed", "survived", "crashed", "timeout", "equivalent", "untested")
        print(f"| room | {' | '.join(columns)} | survival |\n|---{'|---' * (len(columns) + 1)}|")
        rooms = sorted({result["room"] for result in chosen.values()})
        for room in [*rooms, "all"]:
            counts = Counter(r["outcome"] for r in chosen.values() if room in (r["room"], "all"))
            judged = counts["killed"] + counts["survived"]
            rate = f"{100 * counts['survived'] / judged:.0f} %" if judged else ""
            print(f"| `{room}` | {' | '.join(str(counts[c]) for c in columns)} | {rate} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "modules", nargs="*", help="rooms or modules under src/localfields; all by default"
    )
    parser.add_argument("--num", type=int, default=200, help="how many mutants to draw")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--out", default="mutants.json", help="result file; an existing one is continued"
    )
    parser.add_argument(
        "--time-budget", type=float, default=1e7, help="seconds after which to stop"
    )
    parser.add_argument(
        "--retry", action="store_true", help="run mutants again that were not killed"
    )
    parser.add_argument("--slow", action="store_true", help="run slow tests too")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    arguments = parser.parse_args()
    run = Run(arguments)
    if arguments.list:
        for mutant in run.sample:
            print(f"{mutant.id} {PACKAGE}/{mutant.module}:{mutant.line} ({mutant.kind})")
            print(mutant.diff(run.sources[mutant.module]))
        print(f"{len(run.sample)} of {run.population}: {dict(Counter(m.kind for m in run.sample))}")
        return
    run.run()
    run.report()


if __name__ == "__main__":
    main()
