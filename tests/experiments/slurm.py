"""A batch system for tests: SLURM itself, on this machine alone, or a stand-in with the same
commands.

SLURM is taken where its daemons are installed and the tests run as root, as in a container; `make
test-all` installs it with `scripts/slurm.sh` where it can. LOCALFIELDS_TEST_SLURM=1 asks for it:
the tests then fail where it does not start. LOCALFIELDS_TEST_SLURM=0 asks for the stand-in, which
knows the commands and ignores their options.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
VARIABLE = "LOCALFIELDS_TEST_SLURM"
STARTS_WITHIN = 60.0  # seconds

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=2000 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES State=UP
"""

STAND_IN = {
    # Starts the job's script in the background, in a session of its own, and prints the line that
    # sbatch prints.
    "sbatch": """
if [ "$1" = --test-only ]; then exit 0; fi
script=$(mktemp "$0-XXXXXX"); cp "$1" "$script"
setsid sh "$script" >"$script.log" 2>&1 &
echo $! >>"$0-jobs"
echo "Submitted batch job $!"
""",
    "squeue": """
for job in $(cat "${0%squeue}sbatch-jobs" 2>/dev/null); do kill -s 0 -- "-$job" 2>/dev/null && echo "$job"; done
exit 0
""",
    "scancel": """
for word in "$@"; do case "$word" in --*) ;; *) kill -s KILL -- "-$word" 2>/dev/null ;; esac; done
exit 0
""",
}


def which() -> str:
    """`slurm` or `stand-in`: what the tests run on."""
    asked = os.environ.get(VARIABLE, "")
    there = os.geteuid() == 0 and all(map(shutil.which, DAEMONS))
    return "slurm" if asked == "1" or (asked != "0" and there) else "stand-in"


def jobs() -> list[str]:
    """Numbers of the jobs that run."""
    command = ["squeue", "--noheader", "--states=RUNNING", "--format=%A"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def granted(job: str) -> dict[str, str]:
    """What SLURM itself says that a job may use. The stand-in knows nothing of it."""
    command = ["scontrol", "--oneliner", "show", "job", job]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def kill(job: str) -> None:
    """End a job as the death of its machine would: without a word."""
    subprocess.run(["scancel", "--signal=KILL", "--full", job], check=True)


@contextlib.contextmanager
def started(kind: str) -> Iterator[dict[str, str]]:
    """A batch system, and the environment in which its commands find it."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, contextlib.ExitStack() as stack:
        yield stack.enter_context((_slurm if kind == "slurm" else _stand_in)(Path(folder)))


@contextlib.contextmanager
def _stand_in(folder: Path) -> Iterator[dict[str, str]]:
    for name, text in STAND_IN.items():
        (folder / name).write_text(f"#!/bin/sh{text}")
        (folder / name).chmod(0o755)
    yield {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    listed = folder / "sbatch-jobs"
    subprocess.run(
        [folder / "scancel", *(listed.read_text().split() if listed.exists() else ())], check=True
    )


@contextlib.contextmanager
def _slurm(folder: Path) -> Iterator[dict[str, str]]:
    folder.chmod(0o755)  # munge wants its socket to be reached by all,
    (folder / "munge.key").touch(0o600)  # and its key by nobody else
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host, cores = socket.gethostname().partition(".")[0], os.cpu_count()
    file = folder / "slurm.conf"
    file.write_text(
        CONFIGURATION.format(folder=folder, host=host, cores=cores, ports=_free_ports(2))
    )
    environment = {"SLURM_CONF": str(file)}
    own = {name: f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")}
    commands = [
        ["munged", "--foreground", f"--socket={folder}/munge.socket", *own.values()],
        ["slurmctld", "-D", "-c"],
        ["slurmd", "-D"],
    ]
    with contextlib.ExitStack() as stack:
        for command in commands:
            stack.enter_context(_daemon(command, folder, {**os.environ, **environment}))
            if command[0] == "munged":
                _wait((folder / "munge.socket").exists, folder)
        _wait(lambda: _state({**os.environ, **environment}) == "idle", folder)
        try:
            yield environment
        finally:
            subprocess.run(
                ["scancel", "--user=root"], env={**os.environ, **environment}, check=False
            )


@contextlib.contextmanager
def _daemon(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    with open(folder / f"{command[0]}.out", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def _state(environment: dict[str, str]) -> str:
    command = ["sinfo", "--noheader", "--format=%t"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    ).stdout.strip()


def _wait(ready, folder: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not ready():
        if time.monotonic() > deadline:
            said = "\n".join(
                f"{file.name}:\n{file.read_text()[-2000:]}" for file in folder.glob("*.out")
            )
            raise RuntimeError(f"SLURM does not start.\n{said}")
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
