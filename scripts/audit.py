"""Look the locked packages up among known vulnerabilities, with pip-audit.

pip-audit is taken from PATH, or installed into a throwaway environment. Exit status: 0 if every
package was looked up and none is vulnerable, 1 if one is, 3 if some could not be looked up, as
without a network; the reason is on standard error.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LOCKS = sorted((Path(__file__).parents[1] / "requirements").glob("*.lock"))
TIMEOUT = 300  # seconds, of each step


def judge(report: dict) -> tuple[list[str], list[str]]:
    """Lines about vulnerable packages, and names of those not looked up, of pip-audit's report."""
    packages = report["dependencies"]
    vulnerable = [
        f"{package['name']} {package['version']}: {problem['id']}, fixed in "
        f"{', '.join(problem['fix_versions']) or 'no version'}"
        for package in packages
        for problem in package.get("vulns", [])
    ]
    return vulnerable, [package["name"] for package in packages if "skip_reason" in package]


def find_pip_audit(folder: str) -> str:
    """The program, installed into a folder where it is not on PATH."""
    program = shutil.which("pip-audit")
    if program:
        return program
    venv.create(folder, with_pip=True)
    pip = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--no-input", "pip-audit"]
    subprocess.run(pip, check=True, capture_output=True, text=True, timeout=TIMEOUT)
    return f"{folder}/bin/pip-audit"


def main() -> int:
    """Run as a program."""
    vulnerable, skipped = [], []
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = find_pip_audit(folder)
            for lock in LOCKS:
                command = [program, "--disable-pip", "--require-hashes", "--progress-spinner=off"]
                done = subprocess.run(
                    [*command, "--format=json", f"--requirement={lock}"],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=TIMEOUT,
                )
                found = judge(json.loads(done.stdout))
                vulnerable += found[0]
                skipped += found[1]
        except subprocess.SubprocessError as error:
            print(f"pip-audit cannot be installed or does not answer: {error}", file=sys.stderr)
            return 3
        except json.JSONDecodeError:
            print(f"pip-audit failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return 3
    for line in sorted(set(vulnerable)):
        print(line)
    if skipped:
        count = len(set(skipped))
        print(f"PyPI could not be asked about {count} locked packages.", file=sys.stderr)
    return 1 if vulnerable else 3 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
