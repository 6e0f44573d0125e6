"""The same sweep on Dask: here, through a lost worker, through a batch system, and through a
lost job.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap

import dask
import distributed
import jax
import numpy as np
import pytest
import slurm

import localfields as lf
from localfields import InputError
from localfields.experiments import run_sweep
from localfields.experiments.cluster import Cluster, compute, modules_of

TASK = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
BASE = lf.Experiment(TASK, method=lf.Training(steps=400, batch=2000, every=50, evaluate=50))
SWEEP = lf.Sweep(BASE, {"coupling[1]": [0.5, 0.6, 0.7, 0.8]}, seeds=4, chunk=2)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the sweep gives without a cluster."""
    return run_sweep(SWEEP, tmp_path_factory.mktemp("here"))


def check_complete(found, here):
    """Every point is there, once, and is what it is without a cluster."""
    assert found.complete and not found.failures
    points = [point for part in found.parts for point in part.points]
    assert sorted(points) == list(range(len(here.sweep)))
    assert sorted(found.store.digests()) == sorted({part.digest for part in here.sweep.ensembles()})
    assert found.store.verify_all() == []
    one, other = found.dataset(), here.dataset()
    np.testing.assert_allclose(one["ipr"], other["ipr"], rtol=1e-9)
    assert np.isfinite(one["ipr_over_time"]).all() and (one["outcome"] == "ok").all()


# -- tasks -----------------------------------------------------------------------------------------


def test_a_task_goes_on_from_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "localfields.training.loop.POLL_INTERVAL", 0.0
    )  # looks at cancel at every record, however fast
    looks, told = [], []
    assert (
        compute(BASE.canonical(), str(tmp_path), cancel=lambda: looks.append(1) or True).end
        == "cancelled"
    )
    assert looks and lf.Store(tmp_path).digests() == []
    report = compute(BASE.canonical(), str(tmp_path), on_progress=told.append)
    assert report.end == "done" and report.digest == BASE.digest and told[0].first_step > 0
    np.testing.assert_array_equal(lf.Store(tmp_path).load(BASE.digest).final, BASE.run().final)
    assert (
        compute(
            BASE.canonical(), str(tmp_path), on_progress=lambda _: pytest.fail("computed twice")
        ).end
        == "done"
    )


def test_a_task_tells_what_went_wrong(tmp_path, monkeypatch):
    bad = BASE.replace(method=lf.Training(batch=1))
    report = compute(bad.canonical(), str(tmp_path))
    assert (report.end, report.digest) == ("divide", bad.digest) and "`batch`" in report.message

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("localfields.experiments.cluster.run_or_load", full)
    report = compute(BASE.canonical(), str(tmp_path))
    assert report.end == "failed" and "No space left" in report.message


def test_modules_of_a_user_are_found_by_workers(tmp_path, monkeypatch):
    file = tmp_path / "my_stimulus.py"
    file.write_text(
        textwrap.dedent(
            """
            from localfields.stimuli import Ising

            class Mine(Ising):
                pass
            """
        )
    )
    program = f"""
        import sys
        from localfields.experiments.cluster import compute
        report = compute(sys.argv[1], {str(tmp_path / "store")!r}, (("my_stimulus", {str(file)!r}),))
        sys.exit(report.message or None)
        """
    monkeypatch.syspath_prepend(tmp_path)
    import my_stimulus  # pyright: ignore[reportMissingImports]

    try:
        task = lf.Discrimination(*(my_stimulus.Mine((8,), coupling=j) for j in (0.3, 0.7)))
        experiment = lf.Experiment(task, method=lf.Training(steps=1, batch=20))
        assert modules_of(experiment) == (("my_stimulus", str(file)),)
        assert modules_of(BASE) == ()
        command = [sys.executable, "-c", textwrap.dedent(program), experiment.canonical()]
        done = subprocess.run(
            command, cwd="/", capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
    finally:
        from localfields import _registry

        del sys.modules["my_stimulus"], _registry.CLASSES["stimulus"]["mine"]


# -- clusters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "workers", "options"),
    [
        ("local:2", "local", 2, {}),
        ("local", "local", os.cpu_count(), {}),
        ("tcp://10.0.0.1:8786", "scheduler", 0, {}),
        ("slurm", "slurm", 1, {}),
        (
            "slurm:4,queue=long,walltime=02:00:00",
            "slurm",
            4,
            {"queue": "long", "walltime": "02:00:00"},
        ),
    ],
)
def test_names_of_clusters(text, kind, workers, options):
    found = Cluster.of(text)
    assert (found.kind, found.workers, found.options) == (kind, workers, options)


@pytest.mark.parametrize(
    "text",
    ["", "lokal:2", "local:0", "local:-1", "local:two", "local:2,queue=x", "slurm:2,walltme=1"]
    + ["local:99999", "slurm:2,cores=many", "slurm:2,queue", "slurm:2,memory="],
)
def test_clusters_that_are_none(text):
    with pytest.raises(InputError, match="cluster"):
        Cluster.of(text)


@pytest.fixture
def impatient(monkeypatch):
    for name in ("CONNECT_TIMEOUT", "START_TIMEOUT"):
        monkeypatch.setattr(f"localfields.experiments.cluster.{name}", 0.2)


def test_a_scheduler_that_does_not_answer(impatient, tmp_path):
    with pytest.raises(InputError, match="No scheduler answers at"):
        run_sweep(SWEEP, tmp_path, cluster="tcp://127.0.0.1:9")


def test_a_server_that_is_not_a_scheduler(impatient, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=f"The server at {address} did not answer within"):
            run_sweep(SWEEP, tmp_path, cluster=address)


def test_a_scheduler_without_workers(impatient, tmp_path):
    settings = {"n_workers": 0, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster:
        with pytest.raises(
            InputError, match=r"has no workers. Start some with `dask worker inproc:"
        ):
            run_sweep(SWEEP, tmp_path, cluster=cluster.scheduler_address)


def test_slurm_without_sbatch(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="SLURM's `sbatch` is not on the PATH"):
        run_sweep(SWEEP, tmp_path, cluster="slurm")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("echo 'invalid partition specified: nowhere' >&2; exit 1", "invalid partition specified"),
        ("exec sleep 10", "no answer within 0.2 seconds"),
    ],
)
def test_slurm_that_does_not_accept_jobs(program, words, impatient, monkeypatch, tmp_path):
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(InputError, match=rf"SLURM does not accept the job \(.*{words}"):
        run_sweep(SWEEP, tmp_path / "store", cluster="slurm:2,queue=nowhere")


QUICK = lf.Training(steps=6, batch=20, every=3, evaluate=10)
QUICK_SWEEP = lf.Sweep(
    BASE.replace(method=QUICK), {"coupling[1]": [0.5, 0.6, 0.7]}, seeds=4, chunk=4
)
ONE_WORKER = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}


def check_lost(address, path, lose, capfd):
    """The points that were finished are stored; the others are computed the next time."""

    def on_progress(progress):
        if progress.done and not lost:
            lost.append(progress.done)
            lose()

    lost = []
    with pytest.raises(InputError, match=r"is lost\. (\d+) of 12 points are stored; run the sweep"):
        run_sweep(QUICK_SWEEP, path, cluster=address, on_progress=on_progress)
    assert "Traceback" not in "".join(capfd.readouterr())
    found = run_sweep(QUICK_SWEEP, path)
    assert found.complete and found.reused >= lost[0]


def test_a_connection_that_is_lost(tmp_path, capfd):
    with distributed.LocalCluster(processes=False, **ONE_WORKER) as cluster:

        def lose():
            client = distributed.Client.current()
            client.loop.add_callback(client.scheduler_comm.abort)

        check_lost(cluster.scheduler_address, tmp_path, lose, capfd)


@pytest.mark.slow
def test_a_scheduler_that_is_killed(tmp_path, capfd):
    program = f"""
        import distributed, time
        with distributed.LocalCluster(processes=False, protocol="tcp", **{ONE_WORKER}) as cluster:
            print(cluster.scheduler_address, flush=True)
            time.sleep(600)
        """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        try:
            check_lost(address, tmp_path, process.kill, capfd)
        finally:
            process.kill()


def test_without_dask(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"localfields\[cluster\]"):
        run_sweep(SWEEP, tmp_path, cluster="local:2")


def test_a_sweep_on_a_scheduler(tmp_path):
    """Its worker is a thread here; in processes and in jobs of their own they are slow to start."""
    here = run_sweep(QUICK_SWEEP, tmp_path / "here")
    with distributed.LocalCluster(processes=False, **ONE_WORKER) as cluster:
        found = run_sweep(QUICK_SWEEP, tmp_path / "there", cluster=cluster.scheduler_address)
    check_complete(found, here)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_no_point(tmp_path, here):
    killed, before = [], dict(os.environ)
    with Cluster.of("local:2").connect() as client:
        assert set(client.run(lambda: os.environ["NPROC"]).values()) == {
            str(max(1, (os.cpu_count() or 1) // 2))
        }
        workers = client.run(os.getpid)

        def kill(progress):
            busy = [address for address, tasks in client.processing().items() if tasks]
            if progress.done >= 4 and not killed and busy:
                killed.append(workers[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

        found = run_sweep(SWEEP, tmp_path, cluster=client.scheduler.address, on_progress=kill)
        assert killed and killed[0] not in client.run(os.getpid).values()
    check_complete(found, here)
    assert dict(os.environ) == before  # Dask sets what workers should find here, too


@pytest.fixture(params=[slurm.which()])
def batch_system(request, monkeypatch):
    """SLURM where it can be had, a stand-in elsewhere; the name of the test tells which."""
    with slurm.started(request.param) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield request.param


@pytest.mark.slow
@pytest.mark.slow
def test_jobs_of_a_batch_system(batch_system, tmp_path, here, monkeypatch):
    """A job is lost on the way: it is sent again, and nothing is missing. SLURM grants what was
    asked for.
    """
    monkeypatch.chdir(tmp_path)
    seen, lost, granted = set(), [], []

    def lose(progress):
        new = set(slurm.jobs()) - seen
        granted.extend(slurm.granted(job) for job in new if batch_system == "slurm")
        seen.update(new)
        if progress.done >= 4 and not lost:
            lost.extend(seen)
            slurm.kill(lost[0])

    where = "slurm:1,memory=1GB,walltime=00:10:00"
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}):  # in place of 15 s
        found = run_sweep(SWEEP, tmp_path / "store", cluster=where, on_progress=lose)
    check_complete(found, here)
    assert len(lost) == 1 and seen > set(lost)  # another job took its place
    for job in granted:  # 1 GB is 953.7 MiB
        assert (job["NumCPUs"], job["TimeLimit"], job["MinMemoryNode"]) == ("1", "00:10:00", "954M")
    assert len(granted) == len(seen) * (batch_system == "slurm")


def test_the_job_script():
    script = Cluster.of(
        "slurm:3,queue=long,account=me,walltime=02:00:00,memory=3GB,cores=4"
    ).job_script()
    for words in (
        "#SBATCH -p long",
        "#SBATCH -A me",
        "-t 02:00:00",
        "--cpus-per-task=4",
        "export NPROC=4",
        "--nthreads 1",
    ):
        assert words in script
    with pytest.raises(InputError, match="slurm"):
        Cluster.of("local:2").job_script()


# -- devices of one machine ------------------------------------------------------------------------

CACHED = {
    "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),  # pyright: ignore
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
ON_DEVICES = """
import sys
import jax, numpy as np
import localfields as lf
assert len(jax.devices()) == int(sys.argv[1])
runs = [lf.Experiment.of(text).run() for text in sys.argv[3:]]
found = {f"{name}{i}": getattr(run, name) for i, run in enumerate(runs) for name in ("weights", "loss")}
np.savez(sys.argv[2], **found)
"""


@pytest.mark.parametrize(
    "kinds",
    [
        [("independent", 6)],
        pytest.param([("shared", 6), ("independent", 5)], marks=pytest.mark.slow),
    ],
    ids=["evenly", "other streams, not evenly"],
)
def test_members_divided_over_devices(kinds, tmp_path):
    """What one device gives, to rounding; where members do not divide evenly, one device takes them
    all.

    It is not bit for bit: a program for three members may add in another order than one for six.
    """
    method = lf.Training(steps=12, batch=20, every=4, evaluate=10)
    experiments = [
        BASE.replace(method=method.replace(estimator=kind, members=count), precision="float64")
        for kind, count in kinds
    ]
    file = tmp_path / "two.npz"
    command = [
        sys.executable,
        "-c",
        ON_DEVICES,
        "2",
        file,
        *(one.canonical() for one in experiments),
    ]
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", **CACHED}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert len(jax.devices()) == 1
    with np.load(file) as two:
        for place, (experiment, (_, count)) in enumerate(zip(experiments, kinds, strict=True)):
            one = experiment.run()
            assert one.weights.shape[0] == count
            np.testing.assert_allclose(one.weights, two[f"weights{place}"], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(one.series["loss"], two[f"loss{place}"], rtol=1e-9)
