"""Runs as tasks: here, on the cores of this machine, on a Dask scheduler, or in jobs of a batch system.

The store is where they meet. A task is the text of an experiment and the folder of the store; it returns a line. A
task whose worker died runs again elsewhere and goes on from the checkpoint that the first one left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._spec import Spec
from ..errors import InputError, shorten, show, unknown_name
from ..store import Store
from .experiment import Experiment
from .paths import places
from .run import run_or_load

JOB_OPTIONS = ("queue", "account", "walltime", "memory", "cores", "interface", "logs")
PATIENCE = "10s"  # to find a scheduler
FORMS = "local:2, tcp://host:8786 or slurm:4"


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
    """Carry out one experiment unless its result is in the store already.

    Args:
        text: The experiment's canonical form.
        folder: The store's.
        modules: Names and files of modules of a user's own that define parts of it.
        on_progress: Called between chunks of training with its `Progress`.
        cancel: Called between chunks; training stops when it returns true.

    Returns:
        How it ended. What goes wrong is told, not raised: one bad run must not end a sweep.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    try:
        _load(modules)
        store = Store(folder)
        if digest not in store:
            found = run_or_load(Experiment.of(text), store, on_progress=on_progress, cancel=cancel)
            if found.stopped == "cancelled":
                return Report(digest, "cancelled")
        return Report(digest, "done")
    except (
        InputError,
        MemoryError,
        RuntimeError,
    ) as error:  # may be the fault of one member, or of their number
        return Report(digest, "divide", told(error))
    except Exception as error:
        return Report(digest, "failed", told(error))


def told(error: BaseException) -> str:
    """An exception in one line."""
    return (
        str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {shorten(error)}"
    )


def modules_of(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """Modules outside this package in which parts of an experiment are defined, with their files."""
    parts: list[Spec] = [experiment]
    for path, _ in places(experiment):
        value: Any = experiment
        for step in path:
            value = value[step] if isinstance(step, int) else getattr(value, step)
        parts += [
            one
            for one in (value if isinstance(value, tuple) else (value,))
            if isinstance(one, Spec)
        ]
    names = {type(part).__module__ for part in parts}
    own = sorted(name for name in names if name.partition(".")[0] != __name__.partition(".")[0])
    return tuple(
        (name, os.path.abspath(getattr(sys.modules[name], "__file__", None) or "")) for name in own
    )


def _load(modules: tuple[tuple[str, str], ...]) -> None:
    for name, file in modules:
        if name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except ImportError:
            location = (
                importlib.util.spec_from_file_location(name, file) if Path(file).is_file() else None
            )
            if location is None or location.loader is None:
                raise InputError(
                    f"A worker cannot import your module {show(name)}. "
                    "Install it there, or put its file on a disk that workers can read."
                ) from None
            sys.modules[name] = importlib.util.module_from_spec(location)
            location.loader.exec_module(sys.modules[name])


# -- clusters ---------------------------------------------------------------------------------------------------


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
        """Read `local:2`, `tcp://host:8786`, `slurm:4` or `slurm:4,queue=long,walltime=02:00:00,memory=4GB`.

        Raises:
            InputError: When it is none of these.
        """
        if re.fullmatch(r"(tcp|tls|ucx|ws|wss|inproc)://\S+", text):
            return cls("scheduler", address=text)
        kind, _, rest = text.partition(":")
        count, *more = rest.split(",") if rest else [""]
        if (
            kind not in ("local", "slurm")
            or not re.fullmatch(r"\d{0,5}", count)
            or count == "0"
            or (more and kind == "local")
        ):
            raise InputError(
                f"Cannot read the cluster {show(text)}. Use one of the forms {FORMS}; the number "
                "is that of workers or jobs."
            )
        options = {name: text for name, _, text in (part.partition("=") for part in more)}
        for name in options:
            if name not in JOB_OPTIONS:
                raise unknown_name("option of the cluster", name, JOB_OPTIONS)
        return cls(
            kind, int(count or (os.cpu_count() or 1 if kind == "local" else 1)), options=options
        )

    def environment(self) -> dict[str, str]:
        """What a worker's process must find before it starts: its share of the cores, and the cache of programs.

        JAX ignores the usual thread settings on a CPU; NPROC is the one that it heeds.
        """
        import jax

        cores = (
            int(self.options.get("cores", "1"))
            if self.kind == "slurm"
            else (os.cpu_count() or 1) // self.workers
        )
        settings: Any = jax.config
        found = {"NPROC": str(max(1, cores))}
        if settings.jax_compilation_cache_dir:
            found["JAX_COMPILATION_CACHE_DIR"] = settings.jax_compilation_cache_dir
            found["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        return found

    @contextlib.contextmanager
    def connect(self, tasks: int | None = None) -> Iterator[Any]:
        """A Dask client; workers of its own end with it.

        Args:
            tasks: How many there are to do: no more workers are started.

        Raises:
            InputError: When Dask is not installed, or the scheduler is not found.
        """
        distributed = _imported("distributed")
        workers = self.workers if tasks is None else max(1, min(self.workers, tasks))
        with contextlib.ExitStack() as stack:
            if self.kind == "scheduler":
                try:
                    yield stack.enter_context(distributed.Client(self.address, timeout=PATIENCE))
                except (OSError, TimeoutError) as error:
                    raise InputError(
                        f"No scheduler answers at {self.address} ({shorten(error)}). Start one "
                        "there with `dask scheduler`."
                    ) from None
                return
            if self.kind == "slurm":
                cluster = stack.enter_context(self._jobs())
                cluster.adapt(
                    minimum_jobs=workers, maximum_jobs=workers
                )  # a job that is lost is sent again
            else:
                stack.enter_context(_environment_kept())
                name = "distributed.nanny.pre-spawn-environ"
                before = _imported("dask").config.get(name)
                stack.enter_context(
                    _imported("dask").config.set({name: {**before, **self.environment()}})
                )
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=workers, threads_per_worker=1, dashboard_address=None
                    )
                )
            yield stack.enter_context(distributed.Client(cluster))

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
        same = (
            "queue",
            "account",
            "walltime",
            "interface",
        )  # options that Dask has by the same names
        more: Any = {name: text for name, text in self.options.items() if name in same}
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


@contextlib.contextmanager
def _environment_kept() -> Iterator[None]:
    """Put this process's environment back: Dask sets what workers should find in the process that starts them, too."""
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
