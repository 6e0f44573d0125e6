"""Runs as tasks: here, on the cores of this machine, on a Dask scheduler, or in batch jobs.

They share the store. A task is the text of an experiment and the folder of the store; it returns a
line. A task whose worker died runs again elsewhere and resumes from the checkpoint that the first
one left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._spec import Spec
from ..errors import InputError, TrainingInterrupted, shorten, show, unknown_name
from ..store import Store
from .experiment import Experiment
from .paths import places
from .run import run_or_load

# Options of a job, each with an example.
JOB_OPTIONS = {
    "queue": "long",
    "account": "lab",
    "walltime": "02:00:00",
    "memory": "4GB",
    "cores": "4",
    "interface": "eth0",
    "logs": "logs",
}
MOST_LOCAL_WORKERS = max(64, 4 * (os.cpu_count() or 1))
CONNECT_TIMEOUT = 10.0  # seconds, to find a scheduler, and its first worker
START_TIMEOUT = 25.0  # seconds, for workers of our own and for the batch system
CLUSTER_FORMS = "local:2, tcp://host:8786 or slurm:4"


@dataclasses.dataclass(frozen=True)
class Report:
    """How a task ended: `done`, `cancelled`, `divide` (try its members apart) or `failed`."""

    digest: str
    end: str
    message: str = ""


def compute(
    text: str,
    folder: str,
    modules: tuple[tuple[str, str], ...] = (),
    on_progress: Callable[[Any], Any] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Report:
    """Run one experiment unless its result is in the store already.

    Args:
        text: The experiment's canonical form.
        folder: The store's.
        modules: Names and files of a user's own modules that define parts of it.
        on_progress: Called between chunks of training with its `Progress`.
        cancel: Called between chunks; training stops when it returns true.

    Returns:
        How it ended. Errors are reported, not raised: one bad run must not end a sweep.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    try:
        _import_modules(modules)
        store = Store(folder)
        if digest not in store:
            experiment = Experiment.of(text)
            result = run_or_load(experiment, store, on_progress=on_progress, cancel=cancel)
            if result.stopped == "cancelled":
                return Report(digest, "cancelled")
        return Report(digest, "done")
    except TrainingInterrupted:
        return Report(digest, "cancelled")
    except (InputError, MemoryError, RuntimeError) as error:
        # This may be the fault of one member, or of their number.
        return Report(digest, "divide", describe_error(error))
    except Exception as error:
        return Report(digest, "failed", describe_error(error))


def describe_error(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {shorten(error)}"


def modules_of(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """Modules outside this package that define parts of an experiment, with their files."""
    names = {type(experiment).__module__}
    for path, _ in places(experiment):
        value: Any = experiment
        for step in path:
            value = value[step] if isinstance(step, int) else getattr(value, step)
        parts = value if isinstance(value, tuple) else (value,)
        names |= {type(part).__module__ for part in parts if isinstance(part, Spec)}
    own = sorted(name for name in names if name.partition(".")[0] != __name__.partition(".")[0])
    return tuple(
        (name, os.path.abspath(getattr(sys.modules[name], "__file__", None) or "")) for name in own
    )


def _import_modules(modules: tuple[tuple[str, str], ...]) -> None:
    for name, file in modules:
        if name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except ImportError:
            location = None
            if Path(file).is_file():
                location = importlib.util.spec_from_file_location(name, file)
            if location is None or location.loader is None:
                raise InputError(
                    f"A worker cannot import your module {show(name)}. "
                    "Install it there, or put its file on a disk that workers can read."
                ) from None
            sys.modules[name] = importlib.util.module_from_spec(location)
            location.loader.exec_module(sys.modules[name])


# -- clusters --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Where tasks run: `local` processes, a running `scheduler`, or `slurm` jobs.

    Example:
        >>> Cluster.of("slurm:4,walltime=02:00:00").options
        {'walltime': '02:00:00'}
    """

    kind: str
    workers: int = 0
    address: str = ""
    options: dict[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Cluster:
        """Read `local:2`, `tcp://host:8786`, `slurm:4` or `slurm:4,queue=long,memory=4GB`.

        Raises:
            InputError: If it is none of these.
        """
        if re.fullmatch(r"(tcp|tls|ucx|ws|wss|inproc)://\S+", text):
            return cls("scheduler", address=text)
        kind, _, rest = text.partition(":")
        count, *more = rest.split(",") if rest else [""]
        legal = kind == "slurm" or (kind == "local" and not more)
        if not legal or not re.fullmatch(r"\d{0,5}", count) or count == "0":
            raise InputError(
                f"Cannot read the cluster {show(text)}. Use one of the forms {CLUSTER_FORMS}; "
                "the number is that of workers or jobs."
            )
        if kind == "local" and int(count or 0) > MOST_LOCAL_WORKERS:
            raise InputError(
                f"The cluster {show(text)} would start {count} processes on this machine. "
                f"Use at most {MOST_LOCAL_WORKERS}; one per core is usual."
            )
        options = {name: text for name, _, text in (part.partition("=") for part in more)}
        for name, value in options.items():
            if name not in JOB_OPTIONS:
                raise unknown_name("option of the cluster", name, JOB_OPTIONS)
            if not value or (name == "cores" and not re.fullmatch(r"[1-9]\d{0,4}", value)):
                raise InputError(
                    f"The cluster's option `{name}` cannot be {show(value)}. Write for example "
                    f"{name}={JOB_OPTIONS[name]}."
                )
        default = os.cpu_count() or 1 if kind == "local" else 1
        return cls(kind, int(count or default), options=options)

    def environment(self) -> dict[str, str]:
        """Variables for a worker's process: its share of the cores, and the compilation cache.

        JAX ignores the usual thread settings on a CPU; NPROC is the one that it heeds.
        """
        import jax

        if self.kind == "slurm":
            cores = int(self.options.get("cores", "1"))
        else:
            cores = (os.cpu_count() or 1) // self.workers
        settings: Any = jax.config
        variables = {"NPROC": str(max(1, cores))}
        if settings.jax_compilation_cache_dir:
            variables["JAX_COMPILATION_CACHE_DIR"] = settings.jax_compilation_cache_dir
            variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        return variables

    @contextlib.contextmanager
    def connect(self, tasks: int | None = None) -> Iterator[Any]:
        """A Dask client; workers of its own end with it.

        Args:
            tasks: How many there are: no more workers are started.

        Raises:
            InputError: If Dask is not installed, no scheduler or worker answers, or the batch
                system refuses the job.
        """
        distributed = _imported("distributed")
        workers = self.workers if tasks is None else max(1, min(self.workers, tasks))
        with contextlib.ExitStack() as stack:
            stack.enter_context(_quiet("distributed.client"))  # we report a lost one
            if self.kind == "scheduler":
                yield stack.enter_context(self._find_scheduler(distributed))
                return
            if self.kind == "slurm":
                _check_sbatch()
                cluster = stack.enter_context(self._jobs())
                # Dask submits in the background, and again and again if that fails.
                _check_job(cluster.job_script())
                # A job that is lost is sent again.
                cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)
            else:
                stack.enter_context(_environment_kept())
                name, config = "distributed.nanny.pre-spawn-environ", _imported("dask").config
                variables = {**config.get(name), **self.environment()}
                stack.enter_context(config.set({name: variables}))
                settings = {"threads_per_worker": 1, "dashboard_address": None}
                start = functools.partial(distributed.LocalCluster, n_workers=workers, **settings)
                try:
                    started = _within(START_TIMEOUT + workers, start, "The local workers")
                except (OSError, RuntimeError, TimeoutError) as error:
                    raise InputError(
                        f"The local workers do not start ({shorten(error)}). Try fewer of them."
                    ) from None
                cluster = stack.enter_context(started)
            yield stack.enter_context(distributed.Client(cluster))

    def _find_scheduler(self, distributed: Any) -> Any:
        """A client of the scheduler, which has at least one worker."""
        connect = functools.partial(distributed.Client, self.address, timeout=CONNECT_TIMEOUT)
        try:
            # Dask sets no limit to how long a server that is not a scheduler may be silent.
            client = _within(2 * CONNECT_TIMEOUT, connect, f"The server at {self.address}")
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            raise InputError(
                f"No scheduler answers at {self.address} ({shorten(error)}). Start one "
                "there with `dask scheduler`."
            ) from None
        try:
            client.wait_for_workers(1, timeout=CONNECT_TIMEOUT)
        except TimeoutError:
            client.close()
            raise InputError(
                f"The scheduler at {self.address} has no workers. Start some with "
                f"`dask worker {self.address}`."
            ) from None
        return client

    def job_script(self) -> str:
        """The script that is sent to the batch system for each job."""
        if self.kind != "slurm":
            raise InputError(
                f"A dry run shows the job script of a batch system, and {self.kind} has none. Use "
                "it with slurm."
            )
        with self._jobs() as cluster:
            return cluster.job_script()

    def _jobs(self) -> Any:
        jobqueue = _imported("dask_jobqueue", "dask-jobqueue")
        same = ("queue", "account", "walltime", "interface")  # Dask has them by the same names
        more: Any = {name: text for name, text in self.options.items() if name in same}
        try:
            return jobqueue.SLURMCluster(
                cores=1,  # of Dask's threads; those of JAX are set by NPROC
                processes=1,
                memory=self.options.get("memory", "4GB"),
                job_cpu=int(self.options.get("cores", "1")),
                job_script_prologue=[
                    f"export {name}={text}" for name, text in self.environment().items()
                ],
                log_directory=self.options.get("logs"),
                python=sys.executable,
                scheduler_options={"dashboard_address": None},
                **more,
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(
                f"Cannot prepare jobs of SLURM ({shorten(error)}). Check the options of --cluster."
            ) from None


def _check_sbatch() -> None:
    if shutil.which("sbatch") is None:
        raise InputError(
            "SLURM's `sbatch` is not on the PATH of this machine. Run this where jobs are "
            "submitted, or use local workers, such as local:2."
        )


def _check_job(script: str) -> None:
    """Raise `InputError` unless SLURM would accept the job."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        try:
            done = subprocess.run(
                ["sbatch", "--test-only", file.name],
                capture_output=True,
                text=True,
                check=False,
                timeout=START_TIMEOUT,
            )
            problem = done.stderr if done.returncode else ""
        except subprocess.TimeoutExpired:
            problem = f"no answer within {START_TIMEOUT} seconds"
        except OSError as error:
            problem = error.strerror
    if problem:
        raise InputError(
            f"SLURM does not accept the job ({shorten(problem)}). See its script with --dry-run."
        )


def _within(seconds: float, make: Callable[[], Any], subject: str) -> Any:
    """The value of a function that may hang.

    Raises:
        InputError: If it has not returned in time; the thread that it runs in is left alone.
    """
    result: list[Any] = []

    def call() -> None:
        try:
            result.append((make(), None))
        except BaseException as error:
            result.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if not result:
        raise InputError(f"{subject} did not answer within {seconds:g} seconds.")
    value, error = result[0]
    if error is not None:
        raise error
    return value


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep another library's messages, with their tracebacks, off the terminal."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore this process's environment: Dask sets the variables of its workers here, too."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def _imported(name: str, package: str | None = None) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"Clusters need {package or name}, which is not installed ({shorten(error)}). "
            "Install it with: pip install 'localfields[cluster]'"
        ) from None
