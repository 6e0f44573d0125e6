"""What a page needs of a server, without one: a document that waits, threads that do not, a pool
that obeys.
"""

import types

import numpy as np

from localfields.app import messages as msg
from localfields.app.limits import Limits
from localfields.trajectory import Outcome, Trajectory


class ManualDocument:
    """A document whose callbacks are called when the test says so."""

    def __init__(self):
        self.waiting = []

    def add_next_tick_callback(self, call):
        self.waiting.append(call)

    def add_timeout_callback(self, call, milliseconds):
        self.waiting.append(call)

    def settle(self):
        while self.waiting:
            self.waiting.pop(0)()


class ImmediateThreads:
    """Threads that have done it when they are asked."""

    def submit(self, work):
        work()


class IdleThreads:
    """Threads that do not come to it."""

    def submit(self, work):
        pass


class ManualJob:
    def __init__(self, request, listener):
        self.request, self.listener, self.state = request, listener, "waiting"

    def cancel(self):
        self.state = "cancelled"
        self.listener(msg.Done("cancelled", "", 0.0))

    def begin(self):
        self.listener(msg.Started())

    def finish(self, ipr, outcomes=("ok",)):
        self.begin()
        series = {"ipr": np.array([[[0.0], [ipr]]])}
        self.listener(msg.Records(np.array([0, 1]), np.array([0.0, 1.0]), series))
        self.end(msg.Done("finished", "", 0.1, outcomes))

    def end(self, message):
        self.state = "done"
        self.listener(message)


class ManualPool:
    """A pool that computes nothing: the test tells what becomes of a job."""

    def __init__(self):
        self.jobs, self.refuse = [], ""

    def submit(self, request, listener, *, background=False):
        assert background
        job = ManualJob(request, listener)
        if self.refuse:
            job.end(msg.Failed(self.refuse))
        else:
            self.jobs.append(job)
        return job

    @property
    def waiting(self):
        return [job for job in self.jobs if job.state == "waiting"]


def canned_service(store=None, report=None, limits=None):
    limits = Limits() if limits is None else limits
    return types.SimpleNamespace(pool=ManualPool(), limits=limits, store=store, report=report)


def canned_trajectory(experiment, sites=1, kinds=("ok", "ok")):
    """A result of an experiment in which every field is spread over so many sites: IPR is
    1/sites.
    """
    shape = experiment.task.shape
    final = np.zeros((2, 1, *shape), np.float32)
    final.reshape(2, -1)[:, :sites] = 1.0
    series = {"weights": np.stack([final, final], axis=1)}
    ends = {"initial": final, "final": final, "series": series}
    outcome = tuple(Outcome(kind, -1) for kind in kinds)
    steps = np.array([0, 10])
    return Trajectory(
        steps=steps, times=steps / 10, outcome=outcome, experiment={}, manifest={}, **ends
    )


def store_canned(store, experiment, *more):
    store.save(experiment.canonical(), experiment.digest, canned_trajectory(experiment, *more))
