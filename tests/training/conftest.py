"""What the tests of training share as fixtures."""

import zlib
from collections.abc import Callable

import equinox as eqx
import pytest

import localfields as lf
from localfields import tasks
from localfields._prng import make_key


class Offered(eqx.Module):
    """A flow from a function (task, network, params) → (loss, gradient)."""

    gradient: Callable = eqx.field(static=True)
    task: lf.Discrimination
    network: lf.networks.Network

    def __call__(self, params):
        return self.gradient(self.task, self.network, params)


@pytest.fixture
def seed(request):
    """A seed of the test's own, the same in every run."""
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture
def key(seed):
    """A key of the test's own, of the kind that training uses: it compiles in a third of the time."""
    return make_key(seed)


@pytest.fixture
def offer():
    """A function that offers a population gradient to `train(estimator="exact")`, until the test is over."""
    before = list(tasks.EXACT)
    tasks.EXACT.clear()

    def enter(gradient, applies=lambda task, network: True):
        tasks.EXACT.append(
            lambda *of: Offered(gradient, *of) if gradient and applies(*of) else None
        )

    yield enter
    tasks.EXACT[:] = before
