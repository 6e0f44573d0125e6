"""Small experiments, and a listener that waits for messages."""

import queue
import time

import localfields as lf
from localfields.app import messages as msg

PATIENCE = 120.0  # seconds until a test gives up: a cold cache on a busy machine


def experiment(**method):
    """Twelve sites, a few steps; `steps=…` and other fields of the training may differ."""
    task = lf.Discrimination(*(lf.stimuli.Ising((12,), coupling=j) for j in (0.3, 0.7)))
    return lf.Experiment(
        task, method=lf.Training(**{"steps": 20, "batch": 50, "every": 5, "evaluate": 50, **method})
    )


def long_experiment(seed=0):
    """One that lasts until it is stopped: minutes, if nobody does."""
    return experiment(steps=50_000, batch=5000, every=50, seed=seed)


def request(kind, wanted, **more):
    """What a page sends: an experiment, or its JSON."""
    return msg.Request(kind, wanted if isinstance(wanted, str) else wanted.canonical(), **more)


class Heard:
    """Listener: what one job said, in order."""

    def __init__(self):
        self.messages = []
        self._new = queue.Queue()

    def __call__(self, message):
        self._new.put(message)

    def until(self, *kinds, seconds=PATIENCE):
        """Wait for a message of these kinds, and return it."""
        deadline = time.monotonic() + seconds
        while True:
            message = self._new.get(timeout=max(0.01, deadline - time.monotonic()))
            self.messages.append(message)
            if isinstance(message, kinds):
                return message

    def silent(self, seconds):
        """Whether nothing more is said for so long."""
        try:
            self.messages.append(self._new.get(timeout=seconds))
        except queue.Empty:
            return True
        return False

    def all_so_far(self):
        """Everything that has arrived, without waiting."""
        while not self._new.empty():
            self.messages.append(self._new.get())
        return self.messages

    def of(self, kind):
        return [message for message in self.messages if isinstance(message, kind)]
