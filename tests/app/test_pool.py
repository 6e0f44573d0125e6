"""Processes and queues: what a page hears, in which order, and what happens when something goes
wrong.
"""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from localfields.app import messages as msg
from localfields.app.limits import Limits
from localfields.app.pool import Pool
from localfields.store import Store

from .helpers import Heard, experiment, long_experiment, request


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    with contextlib.closing(Pool(1, limits=Limits(stop_seconds=5.0), store=runs)) as pool:
        assert wait_ready(pool)
        yield pool
        children = [worker.process.pid for worker in pool.processes()]
    assert not any(_alive(pid) for pid in children)


@pytest.fixture
def pool(shared):
    """The shared pool; a test may change its limits."""
    before = shared.limits
    yield shared
    shared.limits = before


def wait_ready(pool, seconds=180):
    """Wait until every process has started; whether all have."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if sum(worker.ready for worker in pool.processes()) >= sum(pool.size.values()):
            return True
        time.sleep(0.05)
    return False


def pids(pool, lane):
    return [worker.process.pid for worker in pool.processes() if worker.lane == lane]


def run_to_end(pool, wanted, **more):
    """Everything that a run says until it is done."""
    heard = Heard()
    pool.submit(request("run", wanted, **more), heard)
    heard.until(msg.Done, msg.Failed, msg.Lost)
    return heard


def concatenated(messages, name):
    return np.concatenate([message.series[name] for message in messages], axis=1)


def test_a_run_tells_all_of_itself_in_order(pool):
    heard = run_to_end(pool, wanted := experiment(seed=1, members=2))
    kinds = [
        type(message)
        for message in heard.messages
        if not isinstance(message, (msg.TheoryCurves, msg.Queued))
    ]
    assert kinds[0] is msg.Started and kinds[-1] is msg.Done and kinds.count(msg.Started) == 1
    assert kinds[-2] is msg.GateAgreement and msg.Records in kinds
    records = heard.of(msg.Records)
    assert np.concatenate([message.steps for message in records]).tolist() == [0, 5, 10, 15, 20]
    assert np.allclose(
        np.concatenate([message.times for message in records]), 0.05 * np.array([0, 5, 10, 15, 20])
    )
    done = heard.messages[-1]
    assert (done.stopped, done.digest, done.outcomes, done.stored) == (
        "finished",
        wanted.digest,
        ("ok", "ok"),
        True,
    )
    weights = concatenated(records, "weights")
    assert weights.shape == (2, 5, 1, 12) and concatenated(records, "loss").shape == (2, 5)
    assert np.allclose(
        concatenated(records, "ipr"), (weights**4).sum(-1) / (weights**2).sum(-1) ** 2, rtol=1e-4
    )
    gates = heard.of(msg.GateAgreement)[-1]
    assert gates.agreement.shape == (2, 5, 1) and np.allclose(gates.agreement[:, -1], 1)
    stored = Store(pool._store).load(wanted.digest)
    assert np.array_equal(stored.weights, weights)


@pytest.mark.slow
def test_the_theory_starts_where_the_run_does(pool):
    heard = Heard()
    pool.submit(request("run", experiment(seed=2, members=6, estimator="exact")), heard)
    heard.until(msg.Done)
    theory = (heard.of(msg.TheoryCurves) or [heard.until(msg.TheoryCurves)])[0]
    weights = concatenated(heard.of(msg.Records), "weights")
    assert (theory.name, theory.exact, theory.missing) == ("ExactIsing", True, "")
    assert theory.weights.shape == (4, len(theory.times), 1, 12) and theory.times[-1] == 20 * 0.05
    assert np.allclose(theory.weights[:, 0], weights[:4, 0], atol=1e-6)
    # Exact gradients in steps of 0.05 against the flow itself; that of other starts is somewhere
    # else.
    apart = np.abs(theory.weights[:, -1] - weights[:4, -1]).max()
    others = np.abs(theory.weights[::-1, -1] - weights[:4, -1]).max()
    assert apart < others / 3
    assert (
        theory.gates.shape == theory.ipr.shape == (4, len(theory.times), 1)
        and theory.loss.shape[0] == 4
    )


def test_a_run_that_was_paused_goes_on_to_the_same_bit_for_bit(pool):
    wanted = experiment(seed=3, steps=2000, every=20)
    straight = run_to_end(pool, wanted)
    Store(pool._store).remove(wanted.digest)
    parts, checkpoint = [], None
    for step in range(3):  # to the first record, to the second, and then to the end
        heard = run_to_end(pool, wanted, checkpoint=checkpoint, one_record=step < 2)
        parts += heard.of(msg.Records)
        if step < 2:
            order = [type(message) for message in heard.messages]
            assert heard.messages[-1].stopped == "cancelled"
            assert order.index(msg.Records) < order.index(msg.RunCheckpoint) < order.index(msg.Done)
            checkpoint = heard.of(msg.RunCheckpoint)[-1].arrays
            assert parts[-1].steps[-1] == 20 * (step + 1)
    assert heard.messages[-1].stopped == "finished"
    steps = np.concatenate([message.steps for message in parts])
    assert steps.tolist() == list(range(0, 2001, 20))  # none twice, none left out
    for name in ("weights", "loss"):
        assert np.array_equal(
            concatenated(parts, name), concatenated(straight.of(msg.Records), name)
        )


def test_pause_frees_the_worker_and_keeps_the_place(pool):
    heard = Heard()
    job = pool.submit(request("run", long_experiment(4)), heard)
    heard.until(msg.Records)
    assert job.state == "running" and job.position == 0
    job.pause()
    done = heard.until(msg.Done)
    assert (done.stopped, done.stored) == ("cancelled", False) and job.state == "done"
    kept = heard.of(msg.RunCheckpoint)[-1].arrays
    last = heard.of(msg.Records)[-1].steps[-1]
    assert len(kept["record_weights"]) == last / 50 + 1
    again = Heard()
    job = pool.submit(request("run", long_experiment(4), checkpoint=kept), again)
    assert again.until(msg.Records).steps[0] == last + 50
    assert not again.of(msg.TheoryCurves)  # the page has it
    job.cancel()


@pytest.mark.slow
def test_cancel_says_done_and_no_more(pool):
    heard = Heard()
    job = pool.submit(request("run", long_experiment(5)), heard)
    heard.until(msg.Records)
    heard.until(msg.TheoryCurves)
    job.cancel()
    done = heard.until(msg.Done)
    assert (
        done.stopped == "cancelled" and job.state == "cancelled" and not heard.of(msg.RunCheckpoint)
    )
    assert heard.silent(1.0)
    job.cancel()  # once more does nothing
    assert run_to_end(pool, experiment(seed=5)).messages[-1].stopped == "finished"


def test_places_in_the_queue(pool):
    first, second, third, late = Heard(), Heard(), Heard(), Heard()
    while any(worker.task for worker in pool.processes()):  # with what another test asked for
        time.sleep(0.02)
    running = pool.submit(request("run", long_experiment(6)), first)
    first.until(msg.Started)
    pool.submit(request("run", experiment(seed=9)), late, background=True)
    assert late.until(msg.Queued).position == 1
    two = pool.submit(request("run", long_experiment(7)), second)
    three = pool.submit(request("run", experiment(seed=6)), third)
    assert second.until(msg.Queued).position == 1 and third.until(msg.Queued).position == 2
    while late.until(msg.Queued).position != 3:  # those who came later, but wait for it, go first
        pass
    assert (running.state, two.state, two.position, three.position) == ("running", "waiting", 1, 2)
    running.cancel()
    second.until(msg.Started)
    assert third.until(msg.Queued).position == 1
    two.pause()
    third.until(msg.Done)
    late.until(msg.Done)
    assert third.messages[-1].stopped == late.messages[-1].stopped == "finished"
    assert not first.of(msg.Queued)


def test_pausing_what_waits_gives_back_what_it_brought(pool):
    first, second = Heard(), Heard()
    running = pool.submit(request("run", long_experiment(8)), first)
    first.until(msg.Started)
    kept = {"run": np.array("of another life")}
    two = pool.submit(request("run", long_experiment(9), checkpoint=kept), second)
    second.until(msg.Queued)
    two.pause()
    assert second.until(msg.Done).stopped == "cancelled"
    assert second.of(msg.RunCheckpoint)[0].arrays is kept
    running.cancel()


def test_a_killed_worker_is_replaced_and_its_visitor_told(pool):
    heard, next_one = Heard(), Heard()
    job = pool.submit(request("run", long_experiment(10)), heard)
    heard.until(msg.Records)
    pool.submit(request("run", experiment(seed=10)), next_one)
    old = pids(pool, "runs")[0]
    os.kill(old, signal.SIGKILL)
    lost = heard.until(msg.Lost)
    assert "ended" in lost.message and "start it again" in lost.message and job.state == "done"
    assert next_one.until(msg.Done).stopped == "finished"
    assert len(pids(pool, "runs")) == 1 and pids(pool, "runs") != [old]


def test_a_killed_thinker_leaves_the_run_alone(pool):
    heard = Heard()
    job = pool.submit(request("run", long_experiment(11)), heard)
    heard.until(msg.Started)
    os.kill(pids(pool, "theory")[0], signal.SIGKILL)
    heard.until(msg.Records)
    assert job.state == "running"
    job.cancel()
    assert wait_ready(pool)
    answer = Heard()
    pool.submit(request("summary", experiment()), answer)
    assert answer.until(msg.TheoryVerdict).verdict == "localized"  # spins


def test_a_run_that_takes_too_long_is_paused_with_words(pool):
    pool.limits = dataclasses.replace(pool.limits, run_seconds=1.0)
    heard = run_to_end(pool, long_experiment(12))
    done = heard.messages[-1]
    assert (
        done.stopped == "cancelled"
        and "can be continued" in done.note
        and heard.of(msg.RunCheckpoint)
    )


def test_a_process_that_does_not_react_is_replaced(pool):
    pool.limits = dataclasses.replace(pool.limits, stop_seconds=1.0)
    heard = Heard()
    job = pool.submit(request("run", long_experiment(13), checkpoint=None), heard)
    heard.until(msg.Records)
    pid = pids(pool, "runs")[0]
    os.kill(pid, signal.SIGSTOP)
    job.pause()
    assert "did not stop within 1 s" in heard.until(msg.Lost).message
    assert run_to_end(pool, experiment(seed=13)).messages[-1].stopped == "finished"
    assert not os.path.exists(f"/proc/{pid}")


def test_a_process_that_takes_too_much_memory_is_ended(pool):
    heard = Heard()
    pool.submit(request("run", long_experiment(14)), heard)
    heard.until(msg.Records)
    pool.limits = dataclasses.replace(pool.limits, worker_bytes=1_000_000)
    assert "more than 0.001 GB of memory" in heard.until(msg.Lost).message


def test_an_old_process_is_replaced_when_it_is_idle(pool):
    pool.limits = dataclasses.replace(pool.limits, worker_jobs=1)
    assert wait_ready(pool)
    old = pids(pool, "runs")[0]
    assert run_to_end(pool, experiment(seed=15)).messages[-1].stopped == "finished"
    deadline = time.monotonic() + 60
    while pids(pool, "runs") in ([old], []) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids(pool, "runs")) == 1 and pids(pool, "runs") != [old]


def test_a_full_queue_says_so(pool):
    pool.limits = dataclasses.replace(pool.limits, queue=0)
    heard = Heard()
    job = pool.submit(request("run", experiment()), heard)
    assert "queue is full" in heard.until(msg.Failed).message and job.state == "done"


@pytest.mark.parametrize("kind", ["run", "summary"])
def test_what_is_not_allowed_fails_with_its_reason(pool, kind):
    heard = Heard()
    pool.submit(request(kind, experiment(steps=60_000)), heard)
    assert heard.until(msg.Failed, msg.Done).message.startswith(
        "`steps` must be at most 50000 here, got 60000."
    )
    assert heard.silent(0.5) or isinstance(heard.messages[-1], msg.TheoryCurves)


def test_a_checkpoint_of_another_run_is_refused(pool):
    heard = run_to_end(pool, experiment(seed=17), checkpoint={"run": np.array("of another")})
    assert "checkpoint" in heard.messages[-1].message


def test_a_stored_result_is_shown_at_once(pool):
    first = run_to_end(pool, wanted := experiment(seed=18))
    again = run_to_end(pool, wanted)
    assert again.messages[-1].stored and "store" in again.messages[-1].note
    assert len(again.of(msg.Records)) == 1
    assert np.array_equal(
        again.of(msg.Records)[0].series["weights"], concatenated(first.of(msg.Records), "weights")
    )


@pytest.mark.slow
def test_an_answer_comes_before_its_verdict_and_a_later_one_silences_it(pool):
    heard = Heard()
    pool.submit(request("summary", experiment()), heard)
    heard.until(msg.TheoryVerdict)
    kinds = [type(message) for message in heard.messages if not isinstance(message, msg.Queued)]
    assert kinds == [msg.Started, msg.TaskSummary, msg.TheoryVerdict]
    jobs = []
    for place in range(20):  # as a slider is dragged
        jobs and jobs[-1][0].cancel()
        heard = Heard()
        jobs.append((pool.submit(request("summary", experiment(seed=100 + place)), heard), heard))
    last = jobs[-1][1]
    last.until(msg.TheoryVerdict)
    # One process thinks, so that whatever it had to say about an earlier question is said by now.
    for _, heard in jobs[:-1]:
        assert not [
            message for message in heard.all_so_far() if isinstance(message, msg.TheoryVerdict)
        ]
    assert (
        len([message for message in last.all_so_far() if isinstance(message, msg.TheoryVerdict)])
        == 1
    )


def test_answers_come_while_runs_go_on(pool):
    run, heard = Heard(), Heard()
    job = pool.submit(request("run", long_experiment(19)), run)
    run.until(msg.Records)
    pool.submit(request("summary", experiment()), heard)
    heard.until(msg.TaskSummary)
    assert job.state == "running"
    job.cancel()


def test_a_listener_that_fails_hurts_nobody(pool, capfd):
    def broken(message):
        raise RuntimeError("of the page")

    pool.submit(request("summary", experiment()), broken)
    assert run_to_end(pool, experiment(seed=20)).messages[-1].stopped == "finished"
    assert "of the page" in capfd.readouterr().err


SCRIPT = """
import time
from localfields.app.pool import Pool
if __name__ == "__main__":
    pool = Pool(workers=1)
    while len(pool.processes()) < 3:
        time.sleep(0.05)
    print(*[worker.process.pid for worker in pool.processes()], flush=True)
    time.sleep(600)
"""


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(children) == 3 and all(_alive(pid) for pid in children)
    parent.kill()
    parent.wait(timeout=30)
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_alive(pid) for pid in children)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
